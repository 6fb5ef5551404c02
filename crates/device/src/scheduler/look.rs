//! The elevator: on in one direction while anything lies there, then back.
//!
//! Invariant: a sweep goes strictly on in addresses, so it ends, and everything that waits when it begins is served in it or
//! in the next.

use super::sorted::AddressOrder;
use super::{ArmAddress, PendingOperation, Schedule};

#[derive(Debug, Clone, Default)]
pub(crate) struct Look {
    waiting: AddressOrder,
    /// Which way the arm goes; up at first.
    down: bool,
}

impl Schedule for Look {
    fn push(&mut self, waiting: PendingOperation) {
        self.waiting.push(waiting);
    }

    fn take(
        &mut self,
        arm: ArmAddress,
        _positioning_ns: impl Fn(&PendingOperation) -> u64,
    ) -> Option<PendingOperation> {
        // By where the last one began: one behind whose end the arm stands lies behind it on the way up.
        let (above, below) = (self.waiting.from(arm.lba + 1), self.waiting.below(arm.lba));
        self.down = match (above, below) {
            (None, Some(_)) => true,
            (Some(_), None) => false,
            _ => self.down,
        };
        let onward = if self.down { below } else { above };
        // Neither way: what is left lies where the last one lay.
        let next = onward.or((self.waiting.len() > 0).then_some(0))?;
        Some(self.waiting.remove(next))
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::{order, waiting_at, NOWHERE};

    #[test]
    fn up_and_then_down() {
        assert_eq!(order(Look::default(), 50, &[40, 90, 10, 60]), [60, 90, 40, 10]);
    }

    #[test]
    fn one_address_asked_for_again_and_again_holds_up_nobody() {
        let mut look = Look::default();
        look.push(waiting_at(0, 40));
        for id in 1..4 {
            look.push(waiting_at(id, 50));
        }
        let mut arm = ArmAddress { lba: 50, end: 51 };
        let mut order = Vec::new();
        for id in 4..8 {
            let next = look.take(arm, NOWHERE).unwrap();
            arm = ArmAddress { lba: next.lba, end: next.lba + next.sectors };
            order.push(next.lba);
            look.push(waiting_at(id, 50));
        }
        assert_eq!(order[0], 40);
    }
}
