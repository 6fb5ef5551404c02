//! The shortest time of arm and rotation first, as the disk's own mechanism reckons it.
//!
//! Plain, nothing is promised to what lies badly. With age, a share of what each has waited is taken off its time, so that one
//! operation is overtaken only by those that arrived less than the longest positioning over that share later.
//!
//! Reference: M. Seltzer, P. Chen and J. Ousterhout, *Disk scheduling revisited*, Winter USENIX 1990; with age: D. Jacobson
//! and J. Wilkes, *Disk scheduling algorithms based on rotational position*, HP Laboratories HPL-CSP-91-7, 1991.

use super::{ArmAddress, PendingOperation, Schedule};

#[derive(Debug, Clone)]
pub(crate) struct Sptf {
    /// In no order: each choice looks at all.
    waiting: Vec<PendingOperation>,
    /// Share of the time waited that counts, in percent.
    percent: u64,
}

impl Sptf {
    pub(super) fn new(percent: u8) -> Self {
        Sptf { waiting: Vec::with_capacity(64), percent: u64::from(percent) }
    }
}

impl Schedule for Sptf {
    fn push(&mut self, waiting: PendingOperation) {
        self.waiting.push(waiting);
    }

    fn take(
        &mut self,
        _arm: ArmAddress,
        positioning_ns: impl Fn(&PendingOperation) -> u64,
    ) -> Option<PendingOperation> {
        // What all have waited since is the same for each, so that the arrival says what age takes off.
        let rank = |waiting: &PendingOperation| {
            (positioning_ns(waiting) + waiting.arrived.as_ns() / 100 * self.percent, waiting.sequence)
        };
        let (next, _) = self.waiting.iter().map(rank).enumerate().min_by_key(|&(_, rank)| rank)?;
        Some(self.waiting.swap_remove(next))
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::waiting_at;
    use raidlab_types::Instant;

    #[test]
    fn least_time_first_and_the_earlier_of_two_as_short() {
        let mut sptf = Sptf::new(0);
        [(0, 30), (1, 7), (2, 30), (3, 5)].into_iter().for_each(|(id, lba)| sptf.push(waiting_at(id, lba)));
        let arm = ArmAddress { lba: 0, end: 1 };
        let order: Vec<u64> =
            std::iter::from_fn(|| sptf.take(arm, |waiting| waiting.lba % 10)).map(|w| w.id.0).collect();
        assert_eq!(order, [0, 2, 3, 1]);
    }

    #[test]
    fn who_has_waited_longer_is_preferred_by_a_share_of_it() {
        // The one that takes 1000 ns more arrived 2000 ns before: half of that is as much, and of equals the earlier is first.
        for (percent, first) in [(0, 1), (49, 1), (50, 0)] {
            let mut sptf = Sptf::new(percent);
            for (id, lba, arrived) in [(0, 1000, 10_000), (1, 0, 12_000)] {
                sptf.push(PendingOperation { arrived: Instant::from_ns(arrived), ..waiting_at(id, lba) });
            }
            let taken = sptf.take(ArmAddress::default(), |waiting| waiting.lba).unwrap();
            assert_eq!(taken.id.0, first, "{percent} %");
        }
    }
}
