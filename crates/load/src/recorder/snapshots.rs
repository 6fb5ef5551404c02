//! Completions a second of the run's clock.
//!
//! Purpose: the time series by which warm-up and steadiness are judged and drawn. It covers the whole run, the warm-up
//! included, from its first completion on.
//!
//! Invariants: rows stand in order of time, at most one a second; a second without completions has no row (a simulated
//! clock may leap over days). Only here may recording allocate: a row a second, and room for an hour is taken in advance.

/// Length of an interval.
pub const SNAPSHOT_NS: u64 = 1_000_000_000;
const ROOM: usize = 3600;

/// What completed within one second of the run's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// End of the interval, nanoseconds since the start of the run: a multiple of [`SNAPSHOT_NS`].
    pub time_ns: u64,
    /// Requests completed without failure.
    pub requests: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Sum of their response times.
    pub response_sum_ns: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Snapshots {
    rows: Vec<Snapshot>,
    current: Snapshot,
}

impl Snapshots {
    pub(crate) fn new() -> Self {
        Snapshots { rows: Vec::with_capacity(ROOM), current: Snapshot { time_ns: SNAPSHOT_NS, ..Snapshot::default() } }
    }

    #[inline]
    pub(crate) fn add(&mut self, now_ns: u64, bytes: u64, response_ns: u64) {
        if now_ns >= self.current.time_ns {
            self.next(now_ns);
        }
        self.current.requests += 1;
        self.current.bytes += bytes;
        self.current.response_sum_ns = self.current.response_sum_ns.saturating_add(response_ns);
    }

    #[cold]
    fn next(&mut self, now_ns: u64) {
        if self.current.requests > 0 {
            self.rows.push(self.current);
        }
        let time_ns = (now_ns / SNAPSHOT_NS + 1).saturating_mul(SNAPSHOT_NS);
        self.current = Snapshot { time_ns, ..Snapshot::default() };
    }

    /// All rows, the second still running included.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Snapshot> + '_ {
        self.rows.iter().copied().chain(Some(self.current).filter(|row| row.requests > 0))
    }

    /// Adds rows of the same seconds together.
    pub(crate) fn merge(&mut self, other: &Snapshots) {
        let mut rows: Vec<Snapshot> = self.rows().chain(other.rows()).collect();
        rows.sort_by_key(|row| row.time_ns);
        rows.dedup_by(|later, kept| {
            let same = later.time_ns == kept.time_ns;
            if same {
                kept.requests += later.requests;
                kept.bytes += later.bytes;
                kept.response_sum_ns = kept.response_sum_ns.saturating_add(later.response_sum_ns);
            }
            same
        });
        self.current = rows.pop().unwrap_or(self.current);
        self.rows = rows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_seconds_with_completions() {
        let mut snapshots = Snapshots::new();
        for (at, bytes) in [(0, 1), (999_999_999, 2), (1_000_000_000, 4), (5_500_000_000, 8)] {
            snapshots.add(at, bytes, 10);
        }
        let rows: Vec<_> = snapshots.rows().map(|r| (r.time_ns / SNAPSHOT_NS, r.requests, r.bytes)).collect();
        assert_eq!(rows, [(1, 2, 3), (2, 1, 4), (6, 1, 8)]);
    }

    #[test]
    fn merging_adds_the_same_seconds() {
        let (mut first, mut second) = (Snapshots::new(), Snapshots::new());
        first.add(0, 1, 1);
        first.add(2_000_000_000, 1, 1);
        second.add(1_000_000_000, 1, 1);
        second.add(2_500_000_000, 1, 5);
        first.merge(&second);
        let rows: Vec<_> = first.rows().map(|r| (r.time_ns / SNAPSHOT_NS, r.requests, r.response_sum_ns)).collect();
        assert_eq!(rows, [(1, 1, 1), (2, 1, 1), (3, 2, 6)]);
    }
}
