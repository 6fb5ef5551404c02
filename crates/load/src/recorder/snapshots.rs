//! Completions a second of the run's clock, and on demand their response times.
//!
//! Purpose: the time series by which warm-up and steadiness are judged and drawn. It covers the whole run, the warm-up
//! included, from its first completion on.
//!
//! Invariants:
//! - Rows stand in order of time, at most one a second; a second without completions has no row (a simulated clock may leap
//!   over days).
//! - Only here may recording allocate: a row a second (room for an hour is taken in advance), and its histogram.
//! - A second's histogram counts exactly the requests of its row. It costs nothing a request: it is what the running
//!   histograms have gained within the second, found once a second.

use super::times::{upper_end, Times, BUCKETS};
use raidlab_types::number::u16_from;

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

/// How many requests of a second responded within the times of one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gain {
    bucket: u16,
    count: u32,
}

const _: () = assert!(BUCKETS <= 1 << 16);

#[derive(Debug, Clone)]
pub(crate) struct Snapshots {
    rows: Vec<Snapshot>,
    current: Snapshot,
    seconds: Option<Seconds>,
}

/// The response times of each second: what the running histograms have gained.
#[derive(Debug, Clone)]
struct Seconds {
    /// What the histograms held when the last second ended, or they began anew.
    seen: Box<[u64]>,
    /// What this second has gained before the histograms began anew.
    before: Vec<Gain>,
    /// One a row, in order of buckets.
    rows: Vec<Box<[Gain]>>,
    /// Room for the gains of a second, so that keeping them takes a single allocation.
    found: Vec<Gain>,
}

impl Seconds {
    fn new() -> Self {
        Seconds {
            seen: vec![0; BUCKETS].into(),
            before: Vec::new(),
            rows: Vec::with_capacity(ROOM),
            found: Vec::with_capacity(BUCKETS),
        }
    }

    /// What this second has gained since the histograms were last seen, if they now hold this.
    fn since_seen<'a>(&'a self, responses: [&'a Times; 2]) -> impl Iterator<Item = Gain> + 'a {
        let gains = now(responses).zip(&self.seen).enumerate().filter(|(_, (now, seen))| now != *seen);
        gains.map(|(bucket, (now, seen))| Gain {
            bucket: u16_from(bucket),
            count: u32::try_from(now - seen).unwrap_or(u32::MAX),
        })
    }

    /// What this second has gained up to now.
    fn gained(&self, responses: [&Times; 2]) -> Vec<Gain> {
        add(&self.before, &self.since_seen(responses).collect::<Vec<_>>())
    }

    /// The second is over.
    fn end(&mut self, responses: [&Times; 2]) {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        found.extend(self.since_seen(responses));
        let row = if self.before.is_empty() { found[..].into() } else { add(&self.before, &found).into() };
        self.rows.push(row);
        self.found = found;
        self.before.clear();
        self.see(responses);
    }

    fn see(&mut self, responses: [&Times; 2]) {
        self.seen.iter_mut().zip(now(responses)).for_each(|(seen, now)| *seen = now);
    }
}

/// What each bucket of both histograms together counts.
fn now(responses: [&Times; 2]) -> impl Iterator<Item = u64> + '_ {
    let [first, second] = responses.map(Times::counts);
    first.iter().zip(second).map(|(a, b)| a + b)
}

/// Two lists of gains, both in order of buckets, as one.
fn add(first: &[Gain], second: &[Gain]) -> Vec<Gain> {
    let mut sum: Vec<Gain> = first.iter().chain(second).copied().collect();
    sum.sort_by_key(|gain| gain.bucket);
    sum.dedup_by(|later, kept| {
        let same = later.bucket == kept.bucket;
        if same {
            kept.count = kept.count.saturating_add(later.count);
        }
        same
    });
    sum
}

impl Snapshots {
    pub(crate) fn new() -> Self {
        let current = Snapshot { time_ns: SNAPSHOT_NS, ..Snapshot::default() };
        Snapshots { rows: Vec::with_capacity(ROOM), current, seconds: None }
    }

    /// From here on the response times of each second are kept too.
    pub(crate) fn keep_histograms(&mut self) {
        self.seconds.get_or_insert_with(Seconds::new);
    }

    #[inline]
    pub(crate) fn keeps_histograms(&self) -> bool {
        self.seconds.is_some()
    }

    /// Counts a completion. To be called before it enters the histograms `responses`.
    #[inline]
    pub(crate) fn add(&mut self, now_ns: u64, bytes: u64, response_ns: u64, responses: [&Times; 2]) {
        if now_ns >= self.current.time_ns {
            self.next(now_ns, responses);
        }
        self.current.requests += 1;
        self.current.bytes += bytes;
        self.current.response_sum_ns = self.current.response_sum_ns.saturating_add(response_ns);
    }

    #[cold]
    fn next(&mut self, now_ns: u64, responses: [&Times; 2]) {
        if self.current.requests > 0 {
            self.rows.push(self.current);
            if let Some(seconds) = &mut self.seconds {
                seconds.end(responses);
            }
        }
        let time_ns = (now_ns / SNAPSHOT_NS + 1).saturating_mul(SNAPSHOT_NS);
        self.current = Snapshot { time_ns, ..Snapshot::default() };
    }

    /// The histograms, which hold this, are about to begin anew.
    pub(crate) fn begin_anew(&mut self, responses: [&Times; 2]) {
        if let Some(seconds) = &mut self.seconds {
            seconds.before = seconds.gained(responses);
            seconds.seen.fill(0);
        }
    }

    /// All rows, the second still running included.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Snapshot> + '_ {
        self.rows.iter().copied().chain(Some(self.current).filter(|row| row.requests > 0))
    }

    /// The response times of each row, the second still running included, if they are kept: end of the second, longest
    /// time of the bucket, number of requests.
    pub(crate) fn histograms(&self, responses: [&Times; 2]) -> Vec<(u64, u64, u64)> {
        let Some(seconds) = &self.seconds else { return Vec::new() };
        let running = seconds.gained(responses);
        let gains = seconds.rows.iter().map(|row| &row[..]).chain(std::iter::once(&running[..]));
        let row = |(row, gains): (Snapshot, &[Gain])| -> Vec<(u64, u64, u64)> {
            gains.iter().map(|g| (row.time_ns, upper_end(usize::from(g.bucket)), u64::from(g.count))).collect()
        };
        self.rows().zip(gains).flat_map(row).collect()
    }

    /// Adds rows of the same seconds together. `mine` and `theirs` are the running histograms of both before these are
    /// added up, `sum` afterwards.
    pub(crate) fn merge(&mut self, other: &Snapshots, mine: [&Times; 2], theirs: [&Times; 2]) {
        let lists = |of: &Snapshots, responses| {
            let gains = of.seconds.as_ref().map(|seconds| {
                let running = seconds.gained(responses).into();
                seconds.rows.iter().cloned().chain(std::iter::once(running)).collect::<Vec<Box<[Gain]>>>()
            });
            of.rows().enumerate().map(|(i, row)| (row, gains.as_ref().map(|g| g[i].clone()))).collect::<Vec<_>>()
        };
        let mut rows = lists(self, mine);
        rows.extend(lists(other, theirs));
        rows.sort_by_key(|(row, _)| row.time_ns);
        rows.dedup_by(|(later, gains), (kept, sum)| {
            let same = later.time_ns == kept.time_ns;
            if same {
                kept.requests += later.requests;
                kept.bytes += later.bytes;
                kept.response_sum_ns = kept.response_sum_ns.saturating_add(later.response_sum_ns);
                *sum = sum.take().zip(gains.take()).map(|(a, b)| add(&a, &b).into());
            }
            same
        });
        let last = rows.pop();
        self.rows = rows.iter().map(|(row, _)| *row).collect();
        self.current = last.as_ref().map_or(self.current, |(row, _)| *row);
        if let Some(seconds) = &mut self.seconds {
            seconds.rows = rows.into_iter().filter_map(|(_, gains)| gains).collect();
            seconds.before = last.and_then(|(_, gains)| gains).map_or(Vec::new(), Vec::from);
        }
    }

    /// The running histograms hold this from now on, and all of it belongs to rows there are.
    pub(crate) fn go_on_from(&mut self, responses: [&Times; 2]) {
        if let Some(seconds) = &mut self.seconds {
            seconds.see(responses);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The load's order: a completion enters the snapshots, then the histogram.
    fn complete(snapshots: &mut Snapshots, times: &mut Times, at_ns: u64, bytes: u64, response_ns: u64) {
        snapshots.add(at_ns, bytes, response_ns, [times, &Times::new()]);
        times.record(response_ns);
    }

    #[test]
    fn rows_are_seconds_with_completions() {
        let (mut snapshots, mut times) = (Snapshots::new(), Times::new());
        for (at, bytes) in [(0, 1), (999_999_999, 2), (1_000_000_000, 4), (5_500_000_000, 8)] {
            complete(&mut snapshots, &mut times, at, bytes, 10);
        }
        let rows: Vec<_> = snapshots.rows().map(|r| (r.time_ns / SNAPSHOT_NS, r.requests, r.bytes)).collect();
        assert_eq!(rows, [(1, 2, 3), (2, 1, 4), (6, 1, 8)]);
        assert!(snapshots.histograms([&times, &Times::new()]).is_empty(), "not asked for");
    }

    #[test]
    fn each_second_has_its_histogram_also_across_a_new_beginning() {
        let (mut snapshots, mut times, none) = (Snapshots::new(), Times::new(), Times::new());
        snapshots.keep_histograms();
        for (at, response) in [(0, 10), (5, 20), (1_000_000_000, 10), (1_500_000_000, 30)] {
            complete(&mut snapshots, &mut times, at, 1, response);
        }
        // The window opens in the middle of the second second.
        snapshots.begin_anew([&times, &none]);
        times.clear();
        for (at, response) in [(1_700_000_000, 10), (3_000_000_000, 10)] {
            complete(&mut snapshots, &mut times, at, 1, response);
        }
        let second = |(time_ns, value, count)| (time_ns / SNAPSHOT_NS, value, count);
        let seen: Vec<_> = snapshots.histograms([&times, &none]).into_iter().map(second).collect();
        assert_eq!(seen, [(1, 10, 1), (1, 20, 1), (2, 10, 2), (2, 30, 1), (4, 10, 1)]);
    }

    #[test]
    fn merging_adds_the_same_seconds() {
        let (mut first, mut mine) = (Snapshots::new(), Times::new());
        let (mut second, mut theirs) = (Snapshots::new(), Times::new());
        [&mut first, &mut second].into_iter().for_each(Snapshots::keep_histograms);
        complete(&mut first, &mut mine, 0, 1, 1);
        complete(&mut first, &mut mine, 2_000_000_000, 1, 1);
        complete(&mut second, &mut theirs, 1_000_000_000, 1, 1);
        complete(&mut second, &mut theirs, 2_500_000_000, 1, 5);
        let none = Times::new();
        first.merge(&second, [&mine, &none], [&theirs, &none]);
        mine.merge(&theirs);
        first.go_on_from([&mine, &none]);
        let rows: Vec<_> = first.rows().map(|r| (r.time_ns / SNAPSHOT_NS, r.requests, r.response_sum_ns)).collect();
        assert_eq!(rows, [(1, 1, 1), (2, 1, 1), (3, 2, 6)]);
        let second = |(time_ns, value, count)| (time_ns / SNAPSHOT_NS, value, count);
        let seen: Vec<_> = first.histograms([&mine, &none]).into_iter().map(second).collect();
        assert_eq!(seen, [(1, 1, 1), (2, 1, 1), (3, 1, 1), (3, 5, 1)]);
    }
}
