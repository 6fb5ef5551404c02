//! How long nothing completed.
//!
//! Purpose: what a closed loop hides. It sends nothing new while a device stalls, so a stall counts for as many requests as
//! were in flight, however long it is; whoever comes from outside meets it as often as it is long.
//!
//! Invariants:
//! - A gap lies within the window: from its opening, or the completion before, to the next completion, or its close.
//! - Nothing is allocated while recording; most completions cost a subtraction and a comparison.

use super::Times;
use raidlab_types::Instant;

/// Shorter gaps are not kept: they are service times.
pub(super) const LEAST_GAP_NS: u64 = 1_000_000;

#[derive(Debug, Clone, Default)]
pub(super) struct CompletionGaps {
    last: Instant,
    times: Times,
}

impl CompletionGaps {
    /// The window opened: what was before does not count.
    pub(super) fn opened(&mut self, at: Instant) {
        self.last = at;
        self.times.clear();
    }

    /// A request completed, or the window closed. Times of completions that came in one turn may be out of order.
    #[inline]
    pub(super) fn completed(&mut self, now: Instant) {
        let gap_ns = now.as_ns().saturating_sub(self.last.as_ns());
        if gap_ns >= LEAST_GAP_NS {
            self.times.record(gap_ns);
        }
        self.last = self.last.max(now);
    }

    pub(super) fn times(&self) -> &Times {
        &self.times
    }

    pub(super) fn merge(&mut self, other: &CompletionGaps) {
        self.times.merge(&other.times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_lie_within_the_window() {
        let mut gaps = CompletionGaps::default();
        let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
        gaps.completed(at(50));
        gaps.opened(at(100));
        [100, 101, 400, 399, 400].into_iter().for_each(|ms| gaps.completed(at(ms)));
        gaps.completed(Instant::from_ns(400_999_999));
        gaps.completed(at(410));
        assert_eq!(gaps.times().count(), 3, "1, 299 and 9 ms");
        assert_eq!(gaps.times().sum_ns(), 1_000_000 + 299_000_000 + 9_000_001);
    }
}
