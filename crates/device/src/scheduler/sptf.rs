//! The shortest time of arm and rotation first, as the disk's own mechanism reckons it.
//!
//! Nothing is promised to what lies badly. What the buffer holds is not considered.
//!
//! Reference: M. Seltzer, P. Chen and J. Ousterhout, *Disk scheduling revisited*, Winter USENIX 1990.

use super::{ArmAddress, PendingOperation, Schedule};

#[derive(Debug, Clone)]
pub(crate) struct Sptf {
    /// In no order: each choice looks at all.
    waiting: Vec<PendingOperation>,
}

impl Default for Sptf {
    fn default() -> Self {
        Sptf { waiting: Vec::with_capacity(64) }
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
        let rank = |waiting: &PendingOperation| (positioning_ns(waiting), waiting.sequence);
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

    #[test]
    fn least_time_first_and_the_earlier_of_two_as_short() {
        let mut sptf = Sptf::default();
        [(0, 30), (1, 7), (2, 30), (3, 5)].into_iter().for_each(|(id, lba)| sptf.push(waiting_at(id, lba)));
        let arm = ArmAddress { lba: 0, end: 1 };
        let order: Vec<u64> =
            std::iter::from_fn(|| sptf.take(arm, |waiting| waiting.lba % 10)).map(|w| w.id.0).collect();
        assert_eq!(order, [0, 2, 3, 1]);
    }
}
