//! Between the shortest way and the elevator: the shortest, where turning round counts as a further share of the disk.
//!
//! 0 percent is the shortest way of the arm first (`sstf`): what lies at the edges waits for long while nearer ones keep
//! coming. 100 percent turns only when nothing lies ahead, as `look` does.
//!
//! Reference: R. Geist and S. Daniel, *A continuum of disk scheduling algorithms*, ACM TOCS 5(1), 1987.

use super::sorted::AddressOrder;
use super::{ArmAddress, PendingOperation, Schedule};
use raidlab_types::number::u64_from;

#[derive(Debug, Clone)]
pub(crate) struct Vscan {
    waiting: AddressOrder,
    down: bool,
    /// What turning round counts, in sectors.
    turn: u64,
}

impl Vscan {
    pub(super) fn new(percent: u8, capacity: u64) -> Self {
        let turn = u64_from(u128::from(capacity) * u128::from(percent) / 100);
        Vscan { waiting: AddressOrder::default(), down: false, turn }
    }
}

impl Schedule for Vscan {
    fn push(&mut self, waiting: PendingOperation) {
        self.waiting.push(waiting);
    }

    fn take(
        &mut self,
        arm: ArmAddress,
        _positioning_ns: impl Fn(&PendingOperation) -> u64,
    ) -> Option<PendingOperation> {
        let (above, below) = (self.waiting.from(arm.end), self.waiting.below(arm.end));
        self.down = match (above, below) {
            (Some(above), Some(below)) => {
                let rank = |index, turns: bool| {
                    let waiting = self.waiting.get(index);
                    (waiting.lba.abs_diff(arm.end) + if turns { self.turn } else { 0 }, waiting.sequence)
                };
                rank(below, !self.down) < rank(above, self.down)
            }
            (None, Some(_)) => true,
            _ => false,
        };
        let next = if self.down { below } else { above }?;
        Some(self.waiting.remove(next))
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::order;

    #[test]
    fn turning_counts_a_share_of_the_disk() {
        let at = [40, 70, 95, 30];
        // Up from 51: 70 is 19 away. 40 is 11 away, and 31 with a turn of 20 of 100 sectors.
        assert_eq!(order(Vscan::new(20, 100), 50, &at), [70, 95, 40, 30]);
        // With 5 it is 16 away; then 30 lies ahead (11 away, 70 would be 29 and 5).
        assert_eq!(order(Vscan::new(5, 100), 50, &at), [40, 30, 70, 95]);
    }

    #[test]
    fn without_a_price_for_turning_nearest_first_and_the_earlier_of_two_as_near() {
        let sstf = || Vscan::new(0, 100);
        // From 51: 52 is 1 away. From 53: 45 is 8, 40 is 13. From 41: 10 is 31, 100 is 59.
        assert_eq!(order(sstf(), 50, &[100, 40, 52, 10, 45]), [52, 45, 40, 10, 100]);
        assert_eq!(order(sstf(), 50, &[60, 42]), [60, 42]);
        assert_eq!(order(sstf(), 50, &[42, 60]), [42, 60]);
    }
}
