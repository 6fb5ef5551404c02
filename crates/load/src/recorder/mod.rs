//! The record of a run: what completed in the measuring window, how fast, and how much was in flight.
//!
//! Purpose: response and service times of reads, writes and tasks as histograms with exact sums, counts, bytes,
//! failures, the mean number in flight, and completions a second. It answers every figure of a run and keeps no list of
//! requests, for which there is `request_log.rs`.
//!
//! Words: *response time* counts from the intended arrival (so a stalled array is charged for those it made wait),
//! *service time* from the moment the request was issued. Where the way to the array takes time, that is part of both.
//!
//! Invariants:
//! - Counted is what *completes* in the window, whenever it was issued; failed requests are counted apart, have no
//!   times, and do count towards the limits (a broken array must not keep a run going for ever).
//! - Nothing is allocated while recording, but for one row a second (see [`Snapshot`]).
//! - `read` and `write` are kept apart and merged on demand: percentiles of both are those of all values.
//!
//! Reference: G. Tene, *How NOT to Measure Latency*, 2013 (coordinated omission).

mod gaps;
mod snapshots;
mod times;
mod window;

pub use snapshots::{Snapshot, SNAPSHOT_NS};
pub use times::{Times, LONGEST_NS, SIGNIFICANT_DIGITS};

use crate::error::SpecError;
use crate::spec::Limits;
use gaps::CompletionGaps;
use raidlab_types::number::f64_from;
use raidlab_types::{Duration, Instant, RequestKind};
use snapshots::Snapshots;
use window::{Change, MeasureWindow};

/// What was counted of one kind of request, or of tasks.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Completed without failure (tasks: all their steps).
    pub requests: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Completed with a failure.
    pub failed: u64,
    /// Times from the intended arrival.
    pub response: Times,
    /// Times from being issued.
    pub service: Times,
}

impl Tally {
    /// Adds all that `other` has counted.
    pub fn merge(&mut self, other: &Tally) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.failed += other.failed;
        self.response.merge(&other.response);
        self.service.merge(&other.service);
    }

    #[inline]
    fn add(&mut self, done: &CompletedRequest, now: Instant) {
        if !done.ok {
            self.failed += 1;
            return;
        }
        self.requests += 1;
        self.bytes += done.bytes;
        let (response, service) = (now.since(done.intended).as_ns(), now.since(done.issued).as_ns());
        self.response.record_both(response, &mut self.service, service);
    }

    /// Forgets all that was counted, and keeps the memory.
    fn clear(&mut self) {
        (self.requests, self.bytes, self.failed) = (0, 0, 0);
        self.response.clear();
        self.service.clear();
    }
}

/// A completion, as the load tells it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompletedRequest {
    pub(crate) kind: RequestKind,
    pub(crate) bytes: u64,
    pub(crate) intended: Instant,
    pub(crate) issued: Instant,
    pub(crate) ok: bool,
}

/// The record of a run. See the [module's documentation](self).
#[derive(Debug, Clone)]
pub struct Recorder {
    window: MeasureWindow,
    read: Tally,
    write: Tally,
    /// None where a task is one request.
    tasks: Option<Tally>,
    in_flight: u64,
    /// Sum of all times of leaving less that of all times of entering, modulo 2^128. With `in_flight * t` added it is the
    /// time spent in flight by all requests up to t: two additions an event instead of an integral.
    left_less_entered: u128,
    /// Request-nanoseconds in flight: up to the opening of the window, and within it once it is closed.
    in_flight_before: u128,
    in_flight_within: u128,
    snapshots: Snapshots,
    /// On the real clock only.
    gaps: Option<CompletionGaps>,
}

impl Recorder {
    /// `steps`: requests of a task; `settles`: there is a depth to settle before the window may open.
    pub(crate) fn new(limits: &Limits, steps: usize, settles: bool) -> Result<Self, SpecError> {
        Ok(Recorder {
            window: MeasureWindow::new(limits, settles)?,
            read: Tally::default(),
            write: Tally::default(),
            tasks: (steps > 1).then(Tally::default),
            in_flight: 0,
            left_less_entered: 0,
            in_flight_before: 0,
            in_flight_within: 0,
            snapshots: Snapshots::new(),
            gaps: None,
        })
    }

    /// To be called with the time of every event before anything else is done about it, also of one that is none of the
    /// load's, such as waking up: the window opens or closes if it is due.
    #[inline]
    pub fn observe(&mut self, now: Instant) {
        let change = self.window.observe(now);
        if change != Change::None {
            self.changed(change);
            // It may have been opened for a time so long ago that it is over by now.
            let change = self.window.observe(now);
            self.changed(change);
        }
    }

    /// A request entered.
    #[inline]
    pub(crate) fn issued(&mut self, now: Instant) {
        self.left_less_entered = self.left_less_entered.wrapping_sub(u128::from(now.as_ns()));
        self.in_flight += 1;
    }

    /// A request left.
    #[inline]
    pub(crate) fn left(&mut self, now: Instant) {
        self.left_less_entered = self.left_less_entered.wrapping_add(u128::from(now.as_ns()));
        self.in_flight -= 1;
    }

    /// A request completed: to be called after `left`, and before `task_done` and `advance`.
    #[inline]
    pub(crate) fn request_done(&mut self, now: Instant, done: &CompletedRequest) {
        if self.window.is_over() {
            return;
        }
        if let Some(gaps) = &mut self.gaps {
            gaps.completed(now);
        }
        if done.ok {
            let response_ns = now.since(done.intended).as_ns();
            self.snapshots.add(now.as_ns(), done.bytes, response_ns, [&self.read.response, &self.write.response]);
        }
        // The histograms of seconds are made from these, warm-up included; they begin anew when the window opens.
        if self.window.is_measuring() || self.snapshots.keeps_histograms() {
            let tally = if done.kind == RequestKind::Read { &mut self.read } else { &mut self.write };
            tally.add(done, now);
        }
    }

    /// A task of several requests completed, or failed.
    pub(crate) fn task_done(&mut self, now: Instant, done: &CompletedRequest) {
        if self.window.is_measuring() {
            if let Some(tasks) = &mut self.tasks {
                tasks.add(done, now);
            }
        }
    }

    /// Counts the completion towards warm-up or measurement.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant, settled: bool) {
        let change = self.window.completed(now, settled);
        if change != Change::None {
            self.changed(change);
        }
    }

    pub(crate) fn interrupt(&mut self, now: Instant) {
        let change = self.window.interrupt(now);
        self.changed(change);
    }

    /// Whether the window stays shut for now, though the limits for warm-up may be reached.
    pub fn wait(&mut self, waits: bool) {
        self.window.wait(waits);
    }

    /// Several loads are to share one window: this one's stays shut, whatever the limits for warm-up, until
    /// [`Self::open_at`] says when it opens.
    pub fn keep_shut(&mut self) {
        self.window.keep_shut();
    }

    /// The window opens at exactly `at`, which should lie ahead of all that has been observed.
    pub fn open_at(&mut self, at: Instant) {
        self.window.open_at(at);
    }

    /// The window closes at `at`, as if a limit were reached: nothing more is issued or counted.
    pub fn close_at(&mut self, at: Instant) {
        // If it was to open before that, it has.
        self.observe(at.max(self.window.seen));
        let change = self.window.close_at(at);
        self.changed(change);
    }

    /// From here on response times are kept for each second too, and how long nothing completed.
    pub(crate) fn keep_histograms(&mut self) {
        self.snapshots.keep_histograms();
        self.gaps.get_or_insert_with(CompletionGaps::default);
    }

    #[cold]
    fn changed(&mut self, change: Change) {
        match change {
            Change::Opened(at) => {
                self.gaps.iter_mut().for_each(|gaps| gaps.opened(at));
                self.in_flight_before = self.in_flight_ns(at);
                self.forget_warm_up();
            }
            Change::Closed(at) => {
                self.gaps.iter_mut().for_each(|gaps| gaps.completed(at));
                self.in_flight_within = self.in_flight_ns(at).saturating_sub(self.in_flight_before)
            }
            Change::NeverOpened => self.forget_warm_up(),
            Change::None => {}
        }
    }

    /// What completed while it warmed up is not counted, though it may be kept for the seconds.
    fn forget_warm_up(&mut self) {
        if self.snapshots.keeps_histograms() {
            self.snapshots.begin_anew([&self.read.response, &self.write.response]);
            self.read.clear();
            self.write.clear();
        }
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        self.window.deadline
    }

    /// Reads.
    pub fn read(&self) -> &Tally {
        &self.read
    }

    /// Writes.
    pub fn write(&self) -> &Tally {
        &self.write
    }

    /// Reads and writes together (merged at each call).
    pub fn all(&self) -> Tally {
        let mut all = self.read.clone();
        all.merge(&self.write);
        all
    }

    /// How many reads and writes completed without failure.
    pub fn requests(&self) -> u64 {
        self.read.requests + self.write.requests
    }

    /// Tasks of several requests; their times run from the intended arrival, or the issue of the first request, to the
    /// end of the last. None where a task is one request.
    pub fn tasks(&self) -> Option<&Tally> {
        self.tasks.as_ref()
    }

    /// Whether the window is open.
    pub fn is_measuring(&self) -> bool {
        self.window.is_measuring()
    }

    /// Whether the window has closed.
    pub fn is_over(&self) -> bool {
        self.window.is_over()
    }

    /// Whether it was closed by an interruption.
    pub fn is_interrupted(&self) -> bool {
        self.window.interrupted
    }

    /// When the window opened, if it has.
    pub fn opened(&self) -> Option<Instant> {
        self.window.opened
    }

    /// How long the window was open: to its close, or to the last event seen.
    pub fn elapsed(&self) -> Duration {
        self.window.elapsed()
    }

    /// Mean number of requests in flight while the window was open: to its close, or to the last event seen.
    pub fn mean_in_flight(&self) -> f64 {
        let within = if self.window.is_measuring() {
            self.in_flight_ns(self.window.seen).saturating_sub(self.in_flight_before)
        } else {
            self.in_flight_within
        };
        match self.elapsed().as_ns() {
            0 => 0.0,
            ns => f64_from(within) / f64_from(ns),
        }
    }

    /// Time spent in flight by all requests since the beginning of the run, up to `at`, which must not lie before the last
    /// event; in request-nanoseconds.
    pub fn in_flight_ns(&self, at: Instant) -> u128 {
        self.left_less_entered.wrapping_add(u128::from(self.in_flight) * u128::from(at.as_ns()))
    }

    /// Completions a second of the run's clock, warm-up included.
    pub fn snapshots(&self) -> impl Iterator<Item = Snapshot> + '_ {
        self.snapshots.rows()
    }

    /// The response times of each of those seconds, where the load was told to keep them (else none): end of the second,
    /// longest time of the bucket, number of requests.
    pub fn second_histograms(&self) -> Vec<(u64, u64, u64)> {
        self.snapshots.histograms([&self.read.response, &self.write.response])
    }

    /// Times of 1 ms or more within the window in which no request of a worker completed, of each worker by
    /// itself; none where the load was not told to keep histograms.
    pub fn gaps(&self) -> Option<&Times> {
        self.gaps.as_ref().map(CompletionGaps::times)
    }

    /// Adds what another worker recorded beside this one on the same clock. Counts, times and numbers in flight add up;
    /// the window is this one's, so merge only closed windows that agree.
    pub fn merge(&mut self, other: &Recorder) {
        let mine = [&self.read.response, &self.write.response];
        self.snapshots.merge(&other.snapshots, mine, [&other.read.response, &other.write.response]);
        if let (Some(mine), Some(theirs)) = (&mut self.gaps, &other.gaps) {
            mine.merge(theirs);
        }
        self.read.merge(&other.read);
        self.write.merge(&other.write);
        self.snapshots.go_on_from([&self.read.response, &self.write.response]);
        match (&mut self.tasks, &other.tasks) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (Some(mine), None) => mine.merge(&other.all()),
            (None, Some(theirs)) => {
                // Mine were tasks of one request; all() would now mix in requests that are not tasks.
                let mut tasks = theirs.clone();
                tasks.merge(&self.read);
                tasks.merge(&self.write);
                self.tasks = Some(tasks);
            }
            (None, None) => {}
        }
        self.in_flight_within += other.in_flight_within;
    }
}
