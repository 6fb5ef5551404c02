//! The elevator that only goes up: after the highest address it begins again with the lowest.
//!
//! Invariant: sweeps go in one direction, so waits depend less on the address than with `look`. What lies where the last
//! operation began is served before anything above it, as in DiskSim; so one address that is asked for without end holds up
//! all others.

use super::sorted::AddressOrder;
use super::{ArmAddress, PendingOperation, Schedule};

#[derive(Debug, Clone, Default)]
pub(crate) struct Clook {
    waiting: AddressOrder,
}

impl Schedule for Clook {
    fn push(&mut self, waiting: PendingOperation) {
        self.waiting.push(waiting);
    }

    fn take(
        &mut self,
        arm: ArmAddress,
        _positioning_ns: impl Fn(&PendingOperation) -> u64,
    ) -> Option<PendingOperation> {
        // Where the last one began, too: the arm has not left it.
        let next = self.waiting.from(arm.lba).or((self.waiting.len() > 0).then_some(0))?;
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
    fn up_and_again_from_the_bottom() {
        assert_eq!(order(Clook::default(), 50, &[40, 90, 10, 60]), [60, 90, 10, 40]);
        assert_eq!(order(Clook::default(), 50, &[40, 90, 50, 40, 50]), [50, 50, 90, 40, 40]);
    }
}
