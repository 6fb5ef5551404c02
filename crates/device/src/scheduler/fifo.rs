//! First come, first served.

use super::{ArmAddress, PendingOperation, Schedule};
use std::collections::VecDeque;

/// Operations in order of arrival.
#[derive(Debug, Clone)]
pub(crate) struct Fifo {
    waiting: VecDeque<PendingOperation>,
}

impl Default for Fifo {
    fn default() -> Self {
        // Room for common depths, so that growing is a matter of the first moments of a run.
        Fifo { waiting: VecDeque::with_capacity(64) }
    }
}

impl Fifo {
    /// All that wait, the earliest first.
    pub(super) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut PendingOperation> {
        self.waiting.iter_mut()
    }
}

impl Schedule for Fifo {
    #[inline]
    fn push(&mut self, waiting: PendingOperation) {
        self.waiting.push_back(waiting);
    }

    #[inline]
    fn take(
        &mut self,
        _arm: ArmAddress,
        _positioning_ns: impl Fn(&PendingOperation) -> u64,
    ) -> Option<PendingOperation> {
        self.waiting.pop_front()
    }

    #[inline]
    fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::order;

    #[test]
    fn order_of_arrival_wherever_the_arm_is() {
        assert_eq!(order(Fifo::default(), 4, &[5, 1, 3]), [5, 1, 3]);
    }
}
