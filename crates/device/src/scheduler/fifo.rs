//! First come, first served.

use super::{Schedule, Waiting};
use std::collections::VecDeque;

/// Operations in order of arrival.
#[derive(Debug, Clone)]
pub(crate) struct Fifo {
    waiting: VecDeque<Waiting>,
}

impl Default for Fifo {
    fn default() -> Self {
        // Room for common depths, so that growing is a matter of the first moments of a run.
        Fifo { waiting: VecDeque::with_capacity(64) }
    }
}

impl Schedule for Fifo {
    #[inline]
    fn push(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    #[inline]
    fn take(&mut self, _position: u64) -> Option<Waiting> {
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
    use crate::scheduler::waiting;

    #[test]
    fn order_of_arrival_wherever_the_arm_is() {
        let mut fifo = Fifo::default();
        [5, 1, 3].into_iter().for_each(|id| fifo.push(waiting(id)));
        assert_eq!(fifo.len(), 3);
        let order: Vec<u64> = [9, 0, 3, 1].iter().filter_map(|&at| fifo.take(at)).map(|w| w.id.0).collect();
        assert_eq!(order, [5, 1, 3]);
    }
}
