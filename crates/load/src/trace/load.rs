//! A trace as an offered load.
//!
//! Purpose: [`TraceLoad`] hands out a trace's requests as [`crate::Load`] does those it draws, in the same order of calls: to
//! an open loop by their time stamps, as recorded or faster or slower; to a closed one as fast as its depth allows.
//!
//! Invariants:
//! - Requests enter in the order of the trace, each once. By time stamps, request `i` is meant to arrive `(t_i - t_0) / speed`
//!   after the start, `t_0` being the time of the first one offered; at speed 1 to the nanosecond.
//! - One record is looked at ahead, so that the end is known when the last request ends; a batch is read ahead.
//! - A record that cannot be offered ends the run: [`Generator::fault`] says why.
//! - Nothing is allocated for a request, but by whoever gives the records.

use super::place::{PlaceError, VolumeChoice, VolumeMap};
use super::{KindFilter, Record, Records, TraceError, TraceSpec};
use crate::error::{depth, positive};
use crate::generator::Generator;
use crate::load::{check_array, in_flight, Backlog, Task, MOST_IN_FLIGHT};
use crate::recorder::{CompletedRequest, Recorder};
use crate::request_log::RequestTimes;
use crate::spec::{ArrivalSpec, Limit, Limits, LoadSpec};
use crate::SpecError;
use raidlab_types::number::{f64_from, saturating_u64, usize_from};
use raidlab_types::{Extent, Instant, Request, RequestKind, RequestTag, Volume};
use serde::Serialize;
use slab::Slab;

/// Slots taken in advance.
const ROOM: u32 = 4096;

/// A trace in place of a workload that is drawn.
pub struct Replay {
    /// Its volumes, and what becomes of requests that do not fit.
    pub spec: TraceSpec,
    /// Its records: whoever has opened the file reads them on demand.
    pub records: Box<dyn Records + Send>,
}

/// What became of a trace, besides the times: counts of records, and the volumes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ReplayCounts {
    /// Offered to the array.
    pub requests: u64,
    /// Left out: of another kind than asked for, or of a volume that has none here.
    pub left_out: u64,
    /// Whose address was taken modulo the volume's length.
    pub wrapped: u64,
    /// That were no whole sectors of the array, and were offered as those they touch.
    pub rounded: u64,
    /// Whose time lay before that of the record before them: offered together with that one.
    pub out_of_order: u64,
    /// Whether it was replayed to its end.
    pub to_its_end: bool,
    /// Length of what was offered, by the trace's own clock.
    pub span_ns: u64,
    /// The trace's volumes of which something was met, and the array's volume of each, if it has one.
    pub volumes: Vec<(String, Option<u32>)>,
}

impl ReplayCounts {
    /// What was done otherwise than recorded, a phrase each; none for a replay that is the trace.
    pub fn changes(&self) -> Vec<String> {
        let counted = [
            (self.left_out, "left out"),
            (self.wrapped, "beyond their volume and wrapped into it"),
            (self.rounded, "widened to whole sectors"),
            (self.out_of_order, "older than the one before them and offered with it"),
        ];
        let phrase = |&(count, what): &(u64, &str)| (count > 0).then(|| format!("{count} {what}"));
        counted.iter().filter_map(phrase).collect()
    }
}

/// Who decides when a request enters.
#[derive(Debug, Clone, Copy)]
enum ReplayPace {
    Closed,
    /// So many times as fast as recorded.
    Stamps(f64),
}

/// The request that is next.
#[derive(Debug, Clone, Copy)]
struct Next {
    due: Instant,
    volume: u32,
    kind: RequestKind,
    extent: Extent,
}

/// The offered load of one replay. See the head of this file.
pub struct TraceLoad {
    records: Box<dyn Records + Send>,
    /// Records read and not yet looked at, from `at` on.
    batch: Vec<Record>,
    at: usize,
    may_have_more: bool,
    places: VolumeMap,
    only: KindFilter,
    pace: ReplayPace,
    limit: u32,
    sector_bytes: u64,
    /// Time stamp of the first request offered, and of the latest.
    first_ns: Option<u64>,
    latest_ns: u64,
    next: Option<Next>,
    tasks: Slab<Task>,
    backlog: Backlog,
    recorder: Recorder,
    replayed: ReplayCounts,
    fault: Option<SpecError>,
}

impl TraceLoad {
    /// The replay of `records` on these volumes.
    ///
    /// # Errors
    /// Where the words make no sense, the trace holds no request to offer, or its first one cannot be.
    pub fn new(
        replay: Replay,
        load: &LoadSpec,
        limits: &Limits,
        volumes: &[Volume],
        sector_bytes: u32,
    ) -> Result<TraceLoad, SpecError> {
        check_array(volumes, sector_bytes)?;
        let (pace, limit) = pace(load)?;
        let Replay { spec, records } = replay;
        let mut load = TraceLoad {
            records,
            batch: Vec::new(),
            at: 0,
            may_have_more: true,
            places: VolumeMap::new(&spec, volumes, sector_bytes),
            only: spec.only,
            pace,
            limit,
            sector_bytes: u64::from(sector_bytes),
            first_ns: None,
            latest_ns: 0,
            next: None,
            tasks: Slab::with_capacity(limit.min(ROOM) as usize),
            backlog: Backlog::default(),
            recorder: Recorder::new(&to_the_end(limits), 1, false)?,
            replayed: ReplayCounts::default(),
            fault: None,
        };
        load.prepare();
        if let Some(fault) = load.fault {
            return Err(fault);
        }
        if load.next.is_none() {
            let message =
                format!("{}: holds no request to offer; accepted: a trace with requests", load.records.file());
            return Err(SpecError::new("trace", message));
        }
        Ok(load)
    }

    /// Looks for the next record to offer.
    #[inline]
    fn prepare(&mut self) {
        self.next = loop {
            if self.at == self.batch.len() {
                if !self.read_on() {
                    break None;
                }
                continue;
            }
            let record = self.batch[self.at];
            self.at += 1;
            match self.place(&record) {
                Ok(Some(next)) => break Some(next),
                Ok(None) => self.replayed.left_out += 1,
                Err(misplaced) => {
                    self.fault = Some(self.fault_of(&record, &misplaced));
                    break None;
                }
            }
        };
    }

    /// Reads the next batch; false at the end of the trace, or where it cannot be read.
    fn read_on(&mut self) -> bool {
        if !self.may_have_more {
            return false;
        }
        self.batch.clear();
        self.at = 0;
        match self.records.fill(&mut self.batch) {
            Ok(more) => self.may_have_more = more,
            Err(error) => {
                // What was read before the fault is not offered: it would only tell of the fault later.
                self.batch.clear();
                self.may_have_more = false;
                self.fault = Some(SpecError::new("trace", error.to_string()));
            }
        }
        self.fault.is_none()
    }

    /// The record as a request; none where it is left out.
    #[inline]
    fn place(&mut self, record: &Record) -> Result<Option<Next>, PlaceError> {
        let is_wanted = match self.only {
            KindFilter::All => true,
            KindFilter::Reads => record.kind == RequestKind::Read,
            KindFilter::Writes => record.kind == RequestKind::Write,
        };
        if !is_wanted {
            return Ok(None);
        }
        let target = match self.places.known(record.volume) {
            VolumeChoice::Unmet => self.places.meet(record.volume, self.records.names())?,
            known => known,
        };
        let VolumeChoice::Volume(volume) = target else { return Ok(None) };
        let extent = self.places.extent(record, volume, &mut self.replayed)?;
        let first_ns = *self.first_ns.get_or_insert(record.time_ns);
        let since_ns = record.time_ns.saturating_sub(first_ns);
        if since_ns < self.latest_ns || record.time_ns < first_ns {
            self.replayed.out_of_order += 1;
        }
        self.latest_ns = self.latest_ns.max(since_ns);
        let due_ns = match self.pace {
            ReplayPace::Stamps(speed) if speed != 1.0 => saturating_u64(f64_from(self.latest_ns) / speed),
            _ => self.latest_ns,
        };
        Ok(Some(Next { due: Instant::from_ns(due_ns), volume, kind: record.kind, extent }))
    }

    #[cold]
    fn fault_of(&self, record: &Record, misplaced: &PlaceError) -> SpecError {
        let PlaceError { message, accepted } = misplaced;
        let text = if record.kind == RequestKind::Read { "a read" } else { "a write" };
        let error = TraceError::of_line(self.records.file(), record.line, text.as_bytes(), message, accepted);
        SpecError::new("trace", error.to_string())
    }

    /// The last request of the trace has ended.
    #[cold]
    fn end(&mut self, now: Instant) {
        self.replayed.to_its_end = true;
        if !self.recorder.is_measuring() {
            let message = format!(
                "{}: its {} requests end within the warm-up; accepted: a shorter warm-up, or a longer trace",
                self.records.file(),
                self.replayed.requests
            );
            self.fault = Some(SpecError::new("trace", message));
        }
        self.recorder.close_at(now);
    }
}

impl Generator for TraceLoad {
    #[inline]
    fn poll_request(&mut self, now: Instant) -> Option<Request> {
        self.recorder.observe(now);
        if self.recorder.is_over() || self.tasks.len() >= self.limit as usize {
            return None;
        }
        let next = self.next?;
        let intended = match self.pace {
            ReplayPace::Closed => now,
            ReplayPace::Stamps(_) if next.due > now => return None,
            ReplayPace::Stamps(_) => {
                self.backlog.max_delay_ns = self.backlog.max_delay_ns.max(now.since(next.due).as_ns());
                self.backlog.max_in_flight = self.backlog.max_in_flight.max(self.tasks.len() as u64 + 1);
                next.due
            }
        };
        let Next { volume, kind, extent, .. } = next;
        let bytes = extent.sectors * self.sector_bytes;
        let slot = self.tasks.insert(Task { intended, issued: now, bytes, lane: 0, step: 0, kind, in_flight: true });
        self.recorder.issued(now);
        self.replayed.requests += 1;
        self.prepare();
        if self.fault.is_some() {
            // What has been offered stands; the run ends here.
            self.recorder.interrupt(now);
        }
        Some(Request { tag: slot as RequestTag, volume, kind, extent, force_unit_access: false })
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        if self.recorder.is_over() {
            return None;
        }
        let arrival = match (self.pace, self.next) {
            (ReplayPace::Stamps(_), Some(next)) if self.tasks.len() < self.limit as usize => next.due,
            _ => Instant::MAX,
        };
        Some(arrival.min(self.recorder.deadline())).filter(|&at| at != Instant::MAX)
    }

    #[inline]
    fn times_of(&self, tag: RequestTag) -> Option<RequestTimes> {
        self.tasks.get(usize_from(tag)).map(Task::times)
    }

    #[inline]
    fn handle_done(&mut self, now: Instant, tag: RequestTag, ok: bool) {
        self.recorder.observe(now);
        let task = in_flight(&mut self.tasks, tag);
        task.in_flight = false;
        let Task { intended, issued, bytes, kind, .. } = *task;
        self.recorder.left(now);
        self.recorder.request_done(now, &CompletedRequest { kind, bytes, intended, issued, ok });
        self.tasks.remove(usize_from(tag));
        self.recorder.advance(now, true);
        if self.next.is_none() && self.tasks.is_empty() && !self.recorder.is_over() {
            self.end(now);
        }
    }

    #[inline]
    fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    fn recorder_mut(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    /// Requests that wait are not counted, only the longest delay.
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn replayed(&self) -> Option<ReplayCounts> {
        let volumes = self.places.met(self.records.names());
        Some(ReplayCounts { span_ns: self.latest_ns, volumes, ..self.replayed.clone() })
    }

    fn fault(&self) -> Option<&SpecError> {
        self.fault.as_ref()
    }
}

fn pace(load: &LoadSpec) -> Result<(ReplayPace, u32), SpecError> {
    match load {
        LoadSpec::Closed { depth: asked } => Ok((ReplayPace::Closed, depth("load", "depth", *asked)?)),
        LoadSpec::Open { arrival: ArrivalSpec::Trace { speed }, max_in_flight } => {
            let limit = depth("load", "max_in_flight", max_in_flight.unwrap_or(MOST_IN_FLIGHT))?;
            Ok((ReplayPace::Stamps(positive("load.arrival", "speed", *speed)?), limit))
        }
        LoadSpec::Open { .. } | LoadSpec::Hold { .. } => {
            let message = "is no load of a trace; accepted: open with the arrival \"trace\", or closed";
            Err(SpecError::new("load.kind", message))
        }
    }
}

/// Without a limit a replay is measured to the trace's end.
fn to_the_end(limits: &Limits) -> Limits {
    if limits.measure.requests.is_some() || limits.measure.duration_s.is_some() {
        return *limits;
    }
    Limits { measure: Limit { requests: Some(u64::MAX), duration_s: None }, ..*limits }
}
