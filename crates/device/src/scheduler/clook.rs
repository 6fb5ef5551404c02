//! The elevator that only goes up: after the highest address it begins again with the lowest.
//!
//! Invariant: as for `look`, with sweeps in one direction: waits depend less on the address.

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
        let next = self.waiting.from(arm.lba + 1).or((self.waiting.len() > 0).then_some(0))?;
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
    }
}
