//! How busy something was that works in order: exact at any time, though what it will do is known beforehand.
//!
//! Invariants: no allocation; busy time is exact as long as no more than [`KEPT`] stretches of work lie ahead, and at most
//! the work of those before them too early otherwise.

/// Stretches of work that are remembered. A die seldom has more than two ahead: what waits in its backlog is not worked
/// out yet.
const KEPT: usize = 16;

/// The work of one die.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter {
    /// All work that is known of, and how much of it was over when the totals were started.
    known: u64,
    before: u64,
    /// The last stretches, and where the latest stands.
    stretches: [(u64, u64); KEPT],
    latest: usize,
}

impl Meter {
    /// It works from `start` to `end`, and on nothing else before that.
    #[inline]
    pub(super) fn works(&mut self, start: u64, end: u64) {
        self.known += end - start;
        let latest = &mut self.stretches[self.latest];
        debug_assert!(latest.1 <= start, "work in order");
        if latest.1 == start {
            latest.1 = end;
        } else {
            self.latest = (self.latest + 1) % KEPT;
            self.stretches[self.latest] = (start, end);
        }
    }

    /// How long it worked since the totals were started, up to `now`.
    pub(super) fn busy(&self, now: u64) -> u64 {
        self.worked(now) - self.before
    }

    /// Starts the totals anew.
    pub(super) fn reset(&mut self, now: u64) {
        self.before = self.worked(now);
    }

    fn worked(&self, now: u64) -> u64 {
        let ahead = self.stretches.iter().map(|&(start, end)| end.saturating_sub(start.max(now)));
        self.known - ahead.sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_is_what_is_over_by_now() {
        let mut meter = Meter::default();
        for (start, end) in [(0, 10), (100, 120), (120, 130), (200, 210)] {
            meter.works(start, end);
        }
        assert_eq!([5, 50, 110, 130, 205, 300].map(|now| meter.busy(now)), [5, 10, 20, 40, 45, 50]);
        meter.reset(205);
        assert_eq!([205, 207, 300].map(|now| meter.busy(now)), [0, 2, 5]);
        (0..100).for_each(|i| meter.works(1000 + 10 * i, 1004 + 10 * i));
        assert_eq!(meter.busy(5000), 5 + 400);
        assert_eq!(meter.busy(1982), 5 + 394, "of the last two something is left");
    }
}
