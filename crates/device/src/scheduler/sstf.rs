//! The shortest way of the arm first, by address.
//!
//! What lies at the edges waits for long while nearer ones keep coming: nothing is promised to it.

use super::sorted::Sorted;
use super::{Arm, Schedule, Waiting};

#[derive(Debug, Clone, Default)]
pub(crate) struct Sstf {
    waiting: Sorted,
}

impl Schedule for Sstf {
    fn push(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    fn take(&mut self, arm: Arm, _positioning_ns: impl Fn(&Waiting) -> u64) -> Option<Waiting> {
        let nearest = match (self.waiting.from(arm.end), self.waiting.below(arm.end)) {
            (Some(above), Some(below)) => {
                let rank = |index| {
                    let waiting = self.waiting.get(index);
                    (waiting.lba.abs_diff(arm.end), waiting.sequence)
                };
                if rank(above) <= rank(below) {
                    above
                } else {
                    below
                }
            }
            (above, below) => above.or(below)?,
        };
        Some(self.waiting.remove(nearest))
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
    fn nearest_first_and_the_earlier_of_two_as_near() {
        // From 51: 52 is 1 away. From 53: 45 is 8, 40 is 13. From 41: 10 is 31, 100 is 59.
        assert_eq!(order(Sstf::default(), 50, &[100, 40, 52, 10, 45]), [52, 45, 40, 10, 100]);
        assert_eq!(order(Sstf::default(), 50, &[60, 42]), [60, 42]);
        assert_eq!(order(Sstf::default(), 50, &[42, 60]), [42, 60]);
    }
}
