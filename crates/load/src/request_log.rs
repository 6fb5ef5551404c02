//! A row for each request that ended: when it was meant to arrive, was issued and ended, where it went, what became of it.
//!
//! Purpose: what a histogram has added up can be asked again in another way: by address, by time, by what went before.
//! [`RecordedLoad`] stands between a clock and any load of requests, so that a run without rows is compiled without them.
//!
//! Invariants:
//! - Nothing is allocated for a request once as many have been in flight as ever will be: rows are written into a buffer
//!   that [`RecordSink`] takes when it is full, and gives back empty.
//! - The rows that are `measured` are those that the [`Recorder`] has counted, with the same two times: the histograms
//!   made of them are its own.

use crate::files::FilesRecord;
use crate::generator::Generator;
use crate::streams::{Carry, StreamRecord};
use crate::trace::ReplayCounts;
use crate::{Backlog, HoldReport, Load, Recorder, SpecError};
use raidlab_types::number::usize_from;
use raidlab_types::{Duration, Extent, Instant, Request, RequestKind, RequestTag};
use std::fmt;

/// What is kept of one request. Times count from the beginning of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRecord {
    /// When it was meant to arrive.
    pub arrival_ns: u64,
    /// When it was issued.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Its first byte within the volume.
    pub offset_bytes: u64,
    /// How many it moved.
    pub bytes: u64,
    /// Which volume.
    pub volume: u32,
    /// What it did.
    pub kind: RequestKind,
    /// Whether it failed.
    pub failed: bool,
    /// Whether it ended within the measuring window.
    pub measured: bool,
}

/// Where rows go.
pub trait RecordSink: Send {
    /// Takes all rows, which are in the order in which requests ended, and leaves none; the room for the next ones is as
    /// large as before.
    fn take(&mut self, rows: &mut Vec<RequestRecord>);
}

/// When a request in flight was meant to arrive, and when it was issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTimes {
    /// Of the step of its task that it is: for a later one the end of the one before.
    pub arrival: Instant,
    /// Handed to the driver.
    pub start: Instant,
}

/// The rows of one run, or of one worker of it. What is left goes to the sink when this is dropped.
pub struct RequestLog {
    rows: Vec<RequestRecord>,
    sink: Box<dyn RecordSink>,
    /// Known when the load is.
    sector_bytes: u64,
    /// Where each request in flight goes, by its tag.
    places: Vec<(u32, RequestKind, Extent)>,
}

impl RequestLog {
    /// So many rows at a time, at least one.
    ///
    /// # Panics
    /// Where `rows` is 0.
    pub fn new(rows: usize, sink: Box<dyn RecordSink>) -> RequestLog {
        assert!(rows > 0, "a log of no rows takes none");
        RequestLog { rows: Vec::with_capacity(rows), sink, sector_bytes: 0, places: Vec::new() }
    }

    /// A request goes to this place of a volume.
    #[inline]
    pub fn issued(&mut self, tag: RequestTag, volume: u32, kind: RequestKind, extent: Extent) {
        let tag = usize_from(tag);
        if tag >= self.places.len() {
            self.places.resize(tag + 1, (0, RequestKind::Flush, Extent::new(0, 0)));
        }
        self.places[tag] = (volume, kind, extent);
    }

    /// The request ended; to be called before the load is told. Nothing is kept once the window of `recorder` has closed.
    #[inline]
    pub fn ended(&mut self, now: Instant, tag: RequestTag, times: RequestTimes, ok: bool, recorder: &mut Recorder) {
        recorder.observe(now);
        if recorder.is_over() {
            return;
        }
        let (volume, kind, extent) = self.places[usize_from(tag)];
        debug_assert!(times.arrival <= times.start && times.start <= now, "request {tag} ended before it began");
        self.rows.push(RequestRecord {
            arrival_ns: times.arrival.as_ns(),
            start_ns: times.start.as_ns(),
            end_ns: now.as_ns(),
            offset_bytes: extent.lba * self.sector_bytes,
            bytes: extent.sectors * self.sector_bytes,
            volume,
            kind,
            failed: !ok,
            measured: recorder.is_measuring(),
        });
        if self.rows.len() == self.rows.capacity() {
            self.hand_on();
        }
    }

    #[cold]
    fn hand_on(&mut self) {
        let room = self.rows.capacity();
        self.sink.take(&mut self.rows);
        assert!(self.rows.is_empty() && self.rows.capacity() == room, "a sink gives back as much room as it took");
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        if !self.rows.is_empty() {
            self.sink.take(&mut self.rows);
        }
    }
}

impl fmt::Debug for RequestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestLog").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}

/// A load of requests of which each leaves a row.
#[derive(Debug)]
pub struct RecordedLoad<L> {
    load: L,
    log: RequestLog,
}

impl<L: Generator> RecordedLoad<L> {
    /// The same load, whose requests `log` keeps.
    pub fn new(load: L, mut log: RequestLog, sector_bytes: u32) -> RecordedLoad<L> {
        log.sector_bytes = u64::from(sector_bytes);
        RecordedLoad { load, log }
    }
}

impl<L: Generator> Generator for RecordedLoad<L> {
    const WORKS: bool = L::WORKS;
    const DRAWS: bool = L::DRAWS;

    #[inline]
    fn poll_request(&mut self, now: Instant) -> Option<Request> {
        let request = self.load.poll_request(now)?;
        self.log.issued(request.tag, request.volume, request.kind, request.extent);
        Some(request)
    }

    #[inline]
    fn handle_done(&mut self, now: Instant, tag: RequestTag, ok: bool) {
        if let Some(times) = self.load.times_of(tag) {
            self.log.ended(now, tag, times, ok, self.load.recorder_mut());
        }
        self.load.handle_done(now, tag, ok);
    }

    fn times_of(&self, tag: RequestTag) -> Option<RequestTimes> {
        self.load.times_of(tag)
    }

    fn poll_work(&mut self) -> Option<(u32, Duration)> {
        self.load.poll_work()
    }

    fn poll_carry(&mut self) -> Option<Carry> {
        self.load.poll_carry()
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        self.load.poll_timeout()
    }

    fn handle_work_done(&mut self, now: Instant, who: u32) {
        self.load.handle_work_done(now, who);
    }

    #[inline]
    fn is_finished(&self) -> bool {
        self.load.is_finished()
    }

    fn interrupt(&mut self, now: Instant) {
        self.load.interrupt(now);
    }

    fn keep_histograms(&mut self) {
        self.load.keep_histograms();
    }

    #[inline]
    fn recorder(&self) -> &Recorder {
        self.load.recorder()
    }

    fn recorder_mut(&mut self) -> &mut Recorder {
        self.load.recorder_mut()
    }

    fn rehearsal(&self) -> Option<Load> {
        self.load.rehearsal()
    }

    fn hold(&self) -> Option<HoldReport> {
        self.load.hold()
    }

    fn backlog(&self) -> Backlog {
        self.load.backlog()
    }

    fn files(&self) -> Option<&FilesRecord> {
        self.load.files()
    }

    fn replayed(&self) -> Option<ReplayCounts> {
        self.load.replayed()
    }

    fn streams(&self) -> Vec<StreamRecord> {
        self.load.streams()
    }

    fn fault(&self) -> Option<&SpecError> {
        self.load.fault()
    }
}
