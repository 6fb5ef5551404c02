//! The offered load: which request enters when.
//!
//! Purpose: the clients of an array, for both clocks alike. [`Load`] hands out requests and is told of their
//! completion; it never waits.
//!
//! The driver's order at each event:
//! 1. [`Generator::handle_done`] for everything that has completed by now,
//! 2. [`Generator::poll_request`] until it gives none, submitting each,
//! 3. wait for a completion or for [`Generator::poll_timeout`], whichever is first; then again from 1,
//! 4. until [`Generator::is_finished`]. What is in flight then need not be awaited; its completion is not counted.
//!
//! Time counts from the start of the run (intended arrivals do, and warm-up by duration) and never goes backwards from
//! one call to the next.
//!
//! Invariants:
//! - Task `i` of a lane asks the same whatever completes when (see [`crate::WorkloadSpec`]).
//! - Closed loop: after polling, exactly `depth` tasks are in flight until the measurement is over.
//! - Open loop: a task's intended time is its scheduled arrival, however late it is polled or admitted.
//! - Nothing is allocated once as many tasks have been in flight as ever will be.
//!
//! Reference: Schroeder, Wierman, Harchol-Balter, *Open Versus Closed: A Cautionary Tale*, NSDI 2006.

use crate::arrival::Arrivals;
use crate::control::adjust::{Adjust, HoldReport};
use crate::error::{depth, SpecError};
use crate::generator::Generator;
use crate::lanes::Lanes;
use crate::recorder::{CompletedRequest, Recorder};
use crate::request_log::RequestTimes;
use crate::spec::{Limits, LoadSpec, WorkloadSpec};
use crate::workload::{TaskOperation, Workload};
use raidlab_types::number::{u32_from, usize_from};
use raidlab_types::{Duration, Instant, Request, RequestKind, RequestTag, Seed, Volume};
use serde::Serialize;
use slab::Slab;
use std::collections::VecDeque;

/// Most tasks in flight at once, whatever the load: deeper than any queue of a device, and what memory bears. Arrivals
/// of an open loop beyond it wait, and their time counts.
pub const MOST_IN_FLIGHT: u32 = 1 << 16;

/// Arrivals that may be counted one by one at a poll, when long since none were: a driver that comes late is told exactly.
const MOST_COUNTED: u32 = 1 << 16;
/// Those that may be counted for each poll in the long run. More arrive where an open loop asks for many times what is
/// served; if they were all looked at, looking would take longer than they took to come, and nothing else were done.
const COUNTED_A_POLL: u32 = 16;

/// How far an open loop is behind its schedule, and how many tasks it has piled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Backlog {
    /// Most tasks found waiting at a poll although their time had passed: kept out by the admission limit, or not polled.
    /// Counted one by one; where far more arrive than are served, some are only reckoned from the rate.
    pub max_waiting: u64,
    /// Those the admission limit still kept out at the end of the last round of polling.
    pub final_waiting: u64,
    /// Most tasks in flight at once.
    pub max_in_flight: u64,
    /// Longest time from intended arrival to admission: what the admission limit, or a late driver, has cost.
    pub max_delay_ns: u64,
}

impl Backlog {
    /// That of two loads side by side: what piled up adds up (at worst at once), the longest delay is that of either.
    pub fn merge(self, other: &Backlog) -> Backlog {
        Backlog {
            max_waiting: self.max_waiting + other.max_waiting,
            final_waiting: self.final_waiting + other.final_waiting,
            max_in_flight: self.max_in_flight + other.max_in_flight,
            max_delay_ns: self.max_delay_ns.max(other.max_delay_ns),
        }
    }
}

/// Who decides when a task enters.
#[derive(Debug, Clone)]
enum Admission {
    Closed,
    /// `admitted` stands at the next task to enter, `due` at the first whose time has not come, or that has not been
    /// counted among the `waiting`, because only so many may be.
    Open {
        admitted: Arrivals,
        due: Arrivals,
        waiting: u64,
        may_count: u32,
    },
    Hold(Adjust),
}

/// A task's current request. Its tag is its place in the slab, so no two in flight have the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    /// When it was meant to arrive: for a later step, the end of the one it depends on.
    pub(crate) intended: Instant,
    /// When it was issued: handed to the driver.
    pub(crate) issued: Instant,
    pub(crate) bytes: u64,
    pub(crate) lane: u32,
    /// Number of the step within the task.
    pub(crate) step: u16,
    pub(crate) kind: RequestKind,
    /// Whether it is in flight (rather than waiting to be polled).
    pub(crate) in_flight: bool,
}

impl Task {
    /// When its request was meant to arrive, and was issued.
    #[inline]
    pub(crate) fn times(&self) -> RequestTimes {
        RequestTimes { arrival: self.intended, start: self.issued }
    }
}

/// The task whose request is in flight under this tag; a driver that names another has lost count.
#[inline]
pub(crate) fn in_flight(tasks: &mut Slab<Task>, tag: RequestTag) -> &mut Task {
    match tasks.get_mut(usize_from(tag)) {
        Some(task) if task.in_flight => task,
        _ => panic!("request {tag} is not in flight: completed twice, or never issued"),
    }
}

/// A task of several requests.
#[derive(Debug, Clone, Copy, Default)]
struct Chain {
    /// When the task was meant to arrive.
    intended: Instant,
    /// When its first request was issued.
    issued: Instant,
    /// Bytes of the steps done.
    bytes: u64,
}

/// The offered load of one run. See the [module's documentation](self) for the order of calls.
#[derive(Debug, Clone)]
pub struct Load {
    pace: Admission,
    /// Tasks in flight at once, at most: the depth of a closed loop, the admission limit of an open one.
    limit: u32,
    sector_bytes: u64,
    workload: Workload,
    lanes: Lanes,
    /// By tag.
    tasks: Slab<Task>,
    /// Requests of a task.
    steps: usize,
    /// Each slot's task, and the steps of all slots one after another; both empty where a task is one request.
    chains: Vec<Chain>,
    plans: Vec<TaskOperation>,
    /// Slots whose next step may be issued, in the order in which they became ready.
    ready: VecDeque<u32>,
    requests_in_flight: usize,
    backlog: Backlog,
    recorder: Recorder,
}

impl Load {
    /// The load that a cell describes, for these volumes. Every random number stems from `seed`.
    pub fn new(
        load: &LoadSpec,
        workload: &WorkloadSpec,
        limits: &Limits,
        volumes: &[Volume],
        sector_bytes: u32,
        seed: Seed,
    ) -> Result<Load, SpecError> {
        check_array(volumes, sector_bytes)?;
        let (pace, limit, room) = pace(load, seed)?;
        let workload = Workload::new(workload, volumes, sector_bytes, seed)?;
        let steps = workload.steps();
        let recorder = Recorder::new(limits, steps, matches!(pace, Admission::Hold(_)))?;
        let lanes = Lanes::new(workload.lanes(), workload.shares());
        let chains = if steps > 1 { room } else { 0 };
        Ok(Load {
            pace,
            limit,
            sector_bytes: u64::from(sector_bytes),
            workload,
            lanes,
            tasks: Slab::with_capacity(room),
            steps,
            chains: Vec::with_capacity(chains),
            plans: Vec::with_capacity(chains * steps),
            ready: VecDeque::with_capacity(chains),
            requests_in_flight: 0,
            backlog: Backlog::default(),
            recorder,
        })
    }

    /// Whether a task may enter now, and if so, when it was meant to.
    #[inline]
    fn admit(&mut self, now: Instant) -> Option<Instant> {
        let has_room = self.tasks.len() < self.limit as usize;
        match &mut self.pace {
            Admission::Closed | Admission::Hold(_) => has_room.then_some(now),
            Admission::Open { admitted, due, waiting, may_count } => {
                *may_count = (*may_count + COUNTED_A_POLL).min(MOST_COUNTED);
                let mut count = |by: Instant| {
                    while due.next_at() < by && *may_count > 0 {
                        due.advance();
                        *waiting += 1;
                        *may_count -= 1;
                    }
                    *waiting + if due.next_at() < by { due.expected_by(by) } else { 0 }
                };
                // Before those of this very instant: a punctual driver without a limit leaves none waiting.
                self.backlog.max_waiting = self.backlog.max_waiting.max(count(now));
                let found = count(now + Duration::from_ns(1));
                if *waiting == 0 || !has_room {
                    self.backlog.final_waiting = found;
                    return None;
                }
                *waiting -= 1;
                let intended = admitted.next_at();
                // Where none is left waiting both stand at the same arrival, and a copy spares drawing its gap again.
                if *waiting == 0 {
                    admitted.clone_from(due);
                } else {
                    admitted.advance();
                }
                self.backlog.max_delay_ns = self.backlog.max_delay_ns.max(now.since(intended).as_ns());
                self.backlog.max_in_flight = self.backlog.max_in_flight.max(self.tasks.len() as u64 + 1);
                Some(intended)
            }
        }
    }

    /// Draws all steps of a task of several requests into its slot's plan.
    fn begin_chain(&mut self, slot: u32, index: u64, intended: Instant) {
        let first = slot as usize * self.steps;
        if self.chains.len() <= slot as usize {
            // Slots begin in order, so there is exactly one more.
            self.chains.push(Chain::default());
            self.plans.resize(first + self.steps, TaskOperation::NONE);
        }
        self.chains[slot as usize] = Chain { intended, issued: intended, bytes: 0 };
        let lane = self.tasks[slot as usize].lane;
        self.workload.draw_task(lane, index, &mut self.plans[first..first + self.steps]);
    }

    fn issue_step(&mut self, slot: u32, now: Instant) -> Request {
        let step = usize::from(self.tasks[slot as usize].step);
        let drawn = self.plans[slot as usize * self.steps + step];
        if step == 0 {
            self.chains[slot as usize].issued = now;
        }
        self.issue(slot, drawn, now)
    }

    #[inline]
    fn issue(&mut self, slot: u32, drawn: TaskOperation, now: Instant) -> Request {
        self.recorder.issued(now);
        self.requests_in_flight += 1;
        let task = &mut self.tasks[slot as usize];
        task.issued = now;
        task.kind = drawn.kind;
        task.bytes = drawn.extent.sectors * self.sector_bytes;
        task.in_flight = true;
        let TaskOperation { volume, kind, extent } = drawn;
        Request { tag: RequestTag::from(slot), volume, kind, extent, force_unit_access: false }
    }

    /// Whether only a completion can let another request in: a closed loop at its depth. Asking spares a poll in vain.
    #[inline]
    pub fn is_full(&self) -> bool {
        let open = matches!(self.pace, Admission::Open { .. });
        !open && self.ready.is_empty() && self.tasks.len() >= self.limit as usize
    }

    /// The request completed at `now`, or failed. True if it was counted: it ended while the window was open.
    ///
    /// # Panics
    /// Where no such request is in flight: the driver has lost count.
    #[inline]
    pub fn handle_done(&mut self, now: Instant, tag: RequestTag, ok: bool) -> bool {
        self.recorder.observe(now);
        let counted = self.recorder.is_measuring();
        let task = in_flight(&mut self.tasks, tag);
        task.in_flight = false;
        let Task { intended, issued, bytes, lane, step, kind, .. } = *task;
        self.requests_in_flight -= 1;
        self.recorder.left(now);
        let done = CompletedRequest { kind, bytes, intended, issued, ok };
        self.recorder.request_done(now, &done);
        if self.steps == 1 {
            self.end_task(now, u32_from(tag), lane, &done);
        } else if usize::from(step) + 1 == self.steps || !ok {
            self.end_chain(now, u32_from(tag), lane, &done);
        } else {
            self.next_step(now, u32_from(tag), bytes);
        }
        let settled = match &self.pace {
            Admission::Hold(adjust) => adjust.settled(),
            _ => true,
        };
        self.recorder.advance(now, settled);
        counted
    }

    #[inline]
    fn end_task(&mut self, now: Instant, slot: u32, lane: u32, task: &CompletedRequest) {
        if let Admission::Hold(adjust) = &mut self.pace {
            let response = task.ok.then(|| now.since(task.intended));
            adjust.completed(now, response, self.recorder.is_measuring());
            self.limit = adjust.depth();
        }
        self.lanes.end(lane);
        self.tasks.remove(slot as usize);
    }

    /// The last step of a task is done, or one failed: what depends on that cannot be asked.
    fn end_chain(&mut self, now: Instant, slot: u32, lane: u32, last: &CompletedRequest) {
        let Chain { intended, issued, bytes } = self.chains[slot as usize];
        let task = CompletedRequest { bytes: bytes + last.bytes, intended, issued, ..*last };
        self.recorder.task_done(now, &task);
        self.end_task(now, slot, lane, &task);
    }

    fn next_step(&mut self, now: Instant, slot: u32, bytes: u64) {
        let task = &mut self.tasks[slot as usize];
        task.step += 1;
        // What depends on a request is meant to follow it at once.
        task.intended = now;
        self.chains[slot as usize].bytes += bytes;
        self.ready.push_back(slot);
    }

    /// Requests issued and not yet completed.
    pub fn in_flight(&self) -> usize {
        self.requests_in_flight
    }

    /// Tasks that may be in flight at once: a closed or held loop's depth now, an open loop's admission limit.
    pub fn depth(&self) -> u32 {
        self.limit
    }

    /// Shifts all arrivals of an open loop that has not begun: streams of equal gaps interleave so, instead of arriving
    /// together.
    pub fn delay_arrivals(&mut self, by: Duration) {
        if let Admission::Open { admitted, due, .. } = &mut self.pace {
            admitted.delay(by);
            due.delay(by);
        }
    }
}

impl Generator for Load {
    const DRAWS: bool = true;

    #[inline]
    fn poll_request(&mut self, now: Instant) -> Option<Request> {
        self.recorder.observe(now);
        if self.recorder.is_over() {
            return None;
        }
        if let Some(slot) = self.ready.pop_front() {
            return Some(self.issue_step(slot, now));
        }
        let intended = self.admit(now)?;
        let (lane, index) = self.lanes.begin(matches!(self.pace, Admission::Open { .. }));
        let task = Task { intended, issued: now, bytes: 0, lane, step: 0, kind: RequestKind::Read, in_flight: false };
        let slot = u32_from(self.tasks.insert(task));
        if self.steps == 1 {
            let drawn = self.workload.draw_one(lane, index);
            return Some(self.issue(slot, drawn, now));
        }
        self.begin_chain(slot, index, intended);
        Some(self.issue_step(slot, now))
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        if self.recorder.is_over() {
            return None;
        }
        let arrival = match &self.pace {
            // At its admission limit only a completion lets a task in.
            Admission::Open { admitted, .. } if self.tasks.len() < self.limit as usize => admitted.next_at(),
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
        Load::handle_done(self, now, tag, ok);
    }

    #[inline]
    fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    fn recorder_mut(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    /// What an adjustment keeps in flight is not known beforehand.
    fn rehearsal(&self) -> Option<Load> {
        self.hold().is_none().then(|| self.clone())
    }

    fn hold(&self) -> Option<HoldReport> {
        match &self.pace {
            Admission::Hold(adjust) => Some(adjust.report()),
            _ => None,
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

pub(crate) fn check_array(volumes: &[Volume], sector_bytes: u32) -> Result<(), SpecError> {
    if sector_bytes == 0 || !sector_bytes.is_power_of_two() {
        return Err(SpecError::new("sector_bytes", format!("{sector_bytes}; accepted: a power of two")));
    }
    if volumes.is_empty() || volumes.len() > 1 << 16 {
        let message = format!("{} volumes; accepted: 1 to 65536", volumes.len());
        return Err(SpecError::new("tree", message));
    }
    // 2^60 bytes keep every sum of addresses, sizes and alignments within 64 bits.
    let most = (1u64 << 60) / u64::from(sector_bytes);
    if let Some(bad) = volumes.iter().find(|v| v.capacity_sectors == 0 || v.capacity_sectors > most) {
        let message = format!("a volume of {} sectors; accepted: 1 to {most}", bad.capacity_sectors);
        return Err(SpecError::new("tree", message));
    }
    Ok(())
}

/// The pace, the limit to start with, and the number of slots to take in advance.
fn pace(load: &LoadSpec, seed: Seed) -> Result<(Admission, u32, usize), SpecError> {
    /// An open loop without a limit grows beyond this when it must.
    const OPEN_ROOM: u32 = 4096;
    Ok(match load {
        LoadSpec::Closed { depth: asked } => {
            let limit = depth("load", "depth", *asked)?;
            (Admission::Closed, limit, limit as usize)
        }
        LoadSpec::Open { arrival, max_in_flight } => {
            let limit = depth("load", "max_in_flight", max_in_flight.unwrap_or(MOST_IN_FLIGHT))?;
            let admitted = Arrivals::new(arrival, "load.arrival", seed.named("arrival"))?;
            let due = admitted.clone();
            (
                Admission::Open { admitted, due, waiting: 0, may_count: MOST_COUNTED },
                limit,
                limit.min(OPEN_ROOM) as usize,
            )
        }
        LoadSpec::Hold { percentile, target_ms, initial_depth, max_depth } => {
            depth("load", "max_depth", *max_depth)?;
            let adjust = Adjust::new("load", *percentile, *target_ms, *initial_depth, *max_depth)?;
            (Admission::Hold(adjust), *initial_depth, *max_depth as usize)
        }
    })
}
