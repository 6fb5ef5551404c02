//! The engine: one thread, one ring, one array.
//!
//! Purpose: to carry out what the array asks on real members and tell it what came of it, as often and as cheaply as
//! can be. A turn of the loop reads the clock once, reaps what has completed, tells the load, takes new requests, starts
//! what the array wants done, and hands it to the kernel in one call that also waits. Computations run inline.
//!
//! Invariants:
//! - Times are those at which the engine saw things: completions of a turn share its reading of the clock, but for those
//!   of emulated members, each of which has its own.
//! - Memory named by an operation in flight is neither moved nor used otherwise; the ring is dropped before any memory.
//! - In steady state a turn allocates nothing: requests, flights and windows have slots that are used again.
//! - An error that is no member's failure ends the run, after what is in flight has come back.
//!
//! Code map: `flight` knows what an operation moves, `store` carries it out, `compute` runs
//! parity, `source` offers requests, `requests` gives them memory and content and ends them, `accounts` counts what began
//! and ended, `faults` breaks members on purpose, `spindles` are emulated members, `run_clock` makes the
//! clock go faster, and `priority` keeps other programs from the processor meanwhile.

mod accounts;
mod compute;
mod faults;
mod flight;
mod priority;
mod requests;
mod run_clock;
mod source;
mod spindles;
mod steal;
mod store;

pub use accounts::{Account, Accounts};
pub(crate) use source::{every_sector, OfferedLoad, Source, Sweep};

use crate::config::{LiveConfig, OnProgress, RunProgress, RunStage, PULSE};
use crate::content::{ContentCheck, ContentReport, Knowledge, NotedWrite, Stamper, Verifier, Verify, Writers};
use crate::error::LiveError;
use crate::io::{wait_limit, PromptWakes, Ring, LONGEST_WAIT};
use crate::lateness::Lateness;
use crate::memory::{available_bytes, Block, Pool, Use};
use crate::result::{ArrayInput, FailedMember, Mechanics, MemberCounts, TracedOperation};
use crate::target::{Store, Target};
use crate::usage::{Accounting, OneThread};
use compute::Combiner;
use faults::Faults;
use flight::Flights;
use priority::Precedence;
use raidlab_array::{
    Array, ArrayOp, Befallen, Event, MemberState, Outages, RebuildResult, SatOut, ScrubMismatch, ScrubResult,
    UnreadableResult,
};
use raidlab_types::number::u32_from;
use raidlab_types::{Duration, Instant, LeafId, OpError, OpId, Request, RequestKind, RequestTag, Seed};
use run_clock::RunClock;
use spindles::Spindles;
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use tracing::debug;

/// Most requests begun before completions are looked at again: an open loop may offer more than can ever be begun.
const BEGUN_AT_ONCE: usize = 4096;

/// A request being served.
#[derive(Debug, Clone, Copy)]
struct ActiveRequest {
    request: Request,
    block: Option<Block>,
    sequence: u64,
    /// How many requests entered before it.
    number: u64,
    /// What the comparison of contents wants to know when it is over.
    mark: u64,
}

/// The array with its members, on the real clock.
pub(crate) struct Engine {
    array: Array,
    /// Before `pool` and `targets`, so that it is dropped before the memory it knows.
    ring: Option<Ring>,
    pub(crate) targets: Vec<Option<Target>>,
    spindles: Option<Spindles>,
    pool: Pool,
    /// By request tag.
    slots: Vec<Option<ActiveRequest>>,
    /// By window.
    scratch: Vec<Option<Block>>,
    /// Where what nobody wants is read to.
    sink: Block,
    flights: Flights,
    /// Flights that found the ring full.
    waiting: VecDeque<u32>,
    combiner: Combiner,
    /// What a computation has just found to be wrong.
    mismatches: Vec<ScrubMismatch>,
    faults: Faults,
    /// Who fails at which time, and is rebuilt.
    pub(crate) outages: Outages,
    /// How far that had come when the load was over.
    pub(crate) rebuilds: Vec<RebuildResult>,
    pub(crate) scrubs: Vec<ScrubResult>,
    /// Ended requests that the source has not been told of.
    ended: Vec<(RequestTag, bool)>,
    stamper: Stamper,
    pub(crate) verifier: Option<Verifier>,
    check: Option<ContentCheck>,
    /// What is known of all members' content.
    known: Knowledge,
    /// While they are read back: the writes that were noted, request by request.
    noted: Vec<NotedWrite>,
    sequence: u64,
    counts: Vec<MemberCounts>,
    /// What began and ended since the load began.
    pub(crate) accounts: Accounts,
    measuring: bool,
    usage: OneThread,
    /// Those found gone.
    pub(crate) failed_members: Vec<FailedMember>,
    failure: Option<LiveError>,
    sector_bytes: usize,
    clock: RunClock,
    now: Instant,
    /// Requests that have entered since the stage began.
    begun: u64,
    /// Those whose operations are listed: none but while the load runs.
    traced: u64,
    trace_requests: u64,
    /// Operations of the first requests.
    pub(crate) trace: Vec<TracedOperation>,
    /// What the array was told while the load ran, if requests were traced.
    pub(crate) inputs: Vec<ArrayInput>,
}

/// How a stage ended, when nothing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StageEnd {
    AsPlanned,
    Interrupted,
}

impl Engine {
    /// An idle engine over open targets (none where a member is missing).
    pub(crate) fn new(array: Array, targets: Vec<Option<Target>>, config: &LiveConfig) -> Result<Engine, LiveError> {
        let fd_of = |target: &Option<Target>| match target.as_ref().map(|t| &t.store) {
            Some(Store::Fd(file)) => file.as_raw_fd(),
            _ => -1,
        };
        let fds: Vec<i32> = targets.iter().map(fd_of).collect();
        let mut ring = if fds.iter().any(|&fd| fd >= 0) { Some(Ring::new(&fds, false)?) } else { None };
        // Some is left for the rest of the system: running it out of memory would cost more than this run.
        let most = available_bytes().map_or(u64::MAX, |bytes| bytes / 10 * 9);
        let sector_bytes = array.layout().sector_bytes();
        let mut pool = Pool::new(Seed::new(config.seed).named("content"), most).of_sectors(sector_bytes, 0);
        let sink = pool.take(store::SINK_BYTES, Use::Any, |start, len| ring.as_mut()?.register(start, len))?;
        let spindles = Spindles::new(&targets, &config.emulation, sector_bytes, config.seed)?;
        let facts = targets.iter().enumerate().filter_map(|(i, target)| Some((i, &target.as_ref()?.facts)));
        let usage = OneThread::new(facts);
        let count = |leaf| MemberCounts { leaf, ..MemberCounts::default() };
        Ok(Engine {
            faults: Faults::new(&config.faults, targets.len()),
            outages: Outages::default(),
            rebuilds: Vec::new(),
            scrubs: Vec::new(),
            mismatches: Vec::new(),
            counts: (0..u32_from(targets.len())).map(count).collect(),
            array,
            ring,
            targets,
            spindles,
            pool,
            slots: Vec::new(),
            scratch: Vec::new(),
            sink,
            flights: Flights::default(),
            waiting: VecDeque::new(),
            combiner: Combiner::default(),
            ended: Vec::new(),
            stamper: Stamper::of_this_run(config.seed, sector_bytes),
            verifier: None,
            check: None,
            known: Knowledge::Nothing,
            noted: Vec::new(),
            sequence: 0,
            accounts: Accounts::default(),
            measuring: false,
            usage,
            failed_members: Vec::new(),
            failure: None,
            sector_bytes: sector_bytes as usize,
            clock: RunClock::start(config.emulation.speed),
            now: Instant::ZERO,
            begun: 0,
            traced: 0,
            trace_requests: config.trace_requests,
            trace: Vec::new(),
            inputs: Vec::new(),
        })
    }

    /// Whether what members do counts from here on; the account is opened and closed with it.
    #[inline]
    fn measure(&mut self, measuring: bool) {
        if measuring != self.measuring {
            self.measuring = measuring;
            if let Some(spindles) = &mut self.spindles {
                spindles.count(self.now, measuring);
            }
            match measuring {
                true => self.usage.window_opened(),
                false => self.usage.window_closed(),
            }
        }
    }

    /// What was used, and what moved on the devices, while the window was open.
    pub(crate) fn accounting(&self) -> Accounting {
        self.usage.accounting(&self.counts)
    }

    /// From here on every sector is made whole and checked.
    pub(crate) fn verify(&mut self) {
        let sectors: Vec<u64> = self.array.layout().volumes().iter().map(|v| v.capacity_sectors).collect();
        self.verifier = Some(Verifier::new(self.stamper, u32_from(self.sector_bytes), &sectors));
    }

    /// From here on a share of what is read is compared with what is known of it. Members are whole and keep what is written
    /// to them: what a missing one held comes from parity over random bytes, and is garbage.
    pub(crate) fn compare(&mut self, verify: Verify, depth: u32) {
        let sector_bytes = u32_from(self.sector_bytes);
        let all_known = self.targets.iter().flatten().all(|target| target.known(sector_bytes) != Knowledge::Nothing);
        self.known = if all_known { Knowledge::Sound } else { Knowledge::Nothing };
        self.check = ContentCheck::new(self.stamper, verify, Writers::Alone, depth);
    }

    /// What was compared; nothing if nothing was to be, or a member failed meanwhile.
    pub(crate) fn content(&self) -> Option<&ContentReport> {
        self.check.as_ref().filter(|_| self.failed_members.is_empty()).map(ContentCheck::report)
    }

    /// Reads back what was noted of the writes, now that nobody waits for it.
    pub(crate) fn read_back(
        &mut self,
        depth: usize,
        budget: Duration,
        observer: OnProgress<'_>,
    ) -> Result<StageEnd, LiveError> {
        let Some(check) = self.check.as_mut().filter(|_| self.failed_members.is_empty()) else {
            return Ok(StageEnd::AsPlanned);
        };
        self.noted = check.take_noted();
        let places: Vec<_> = self.noted.iter().map(|written| (written.volume, written.extent)).collect();
        let accounts = self.accounts;
        let mut reads = Sweep::new(places.into_iter(), RequestKind::Read, depth).within(budget);
        let outcome = self.drive(&mut reads, RunStage::Checking, observer);
        // They are of the load alone.
        self.accounts = accounts;
        self.noted.clear();
        outcome
    }

    /// What members did while it counted.
    pub(crate) fn counts(&self) -> Vec<MemberCounts> {
        let of_disk = |leaf: LeafId| {
            let spindles = self.spindles.as_ref()?;
            // A disk that is not there does nothing, as in the simulator.
            spindles.mechanics(leaf).or_else(|| self.targets[leaf as usize].is_none().then(|| Mechanics::of(1)))
        };
        self.counts.iter().map(|&counts| MemberCounts { mechanics: of_disk(counts.leaf), ..counts }).collect()
    }

    /// How late completions of emulated members were while it counted.
    pub(crate) fn lateness(&self) -> Option<Lateness> {
        self.spindles.as_ref().map(Spindles::lateness)
    }

    /// Tells the array that an operation is done.
    fn finish(&mut self, id: OpId, result: Result<(), OpError>) {
        if self.traced > 0 {
            self.inputs.push(ArrayInput::Done(id, result));
        }
        self.array.handle_op_done(self.now, id, result);
    }

    /// Whether a ring is in use, and whether it knows all memory.
    pub(crate) fn interface(&self) -> (&'static str, bool) {
        let emulated = self.spindles.as_ref().is_some_and(|spindles| spindles.are_all(&self.targets));
        match &self.ring {
            Some(ring) => ("io_uring", ring.all_registered()),
            None if emulated => ("emulated", true),
            None => ("memory", true),
        }
    }

    /// Drives the array with what `source` offers until that is finished, interrupted or something fails.
    pub(crate) fn drive<S: Source>(
        &mut self,
        source: &mut S,
        stage: RunStage,
        observer: OnProgress<'_>,
    ) -> Result<StageEnd, LiveError> {
        let running = stage == RunStage::Running;
        self.faults.arm(running);
        (self.begun, self.traced) = (0, if running { self.trace_requests } else { 0 });
        let _prompt = PromptWakes::new();
        let _precedence = self.spindles.as_ref().map(|_| Precedence::take());
        self.restart(running);
        let pulse = self.clock.real(PULSE);
        let (mut requests, mut next_pulse, mut outcome) = (0, Instant::ZERO + pulse, StageEnd::AsPlanned);
        loop {
            // At the time at which the source saw the window open or close, before the clock is read again.
            self.measure(source.is_measuring());
            self.tick();
            self.reap();
            self.pump();
            self.deliver();
            requests += self.ended.len() as u64;
            self.tell(source);
            self.let_pass(source, running);
            if self.now >= next_pulse {
                next_pulse = self.now + pulse;
                let fraction = source.fraction(self.now, requests);
                let progress = RunProgress { stage, fraction, requests, elapsed: self.now.since(Instant::ZERO) };
                if observer(progress).is_break() && outcome == StageEnd::AsPlanned {
                    source.interrupt(self.now);
                    outcome = StageEnd::Interrupted;
                }
            }
            for _ in 0..BEGUN_AT_ONCE {
                let Some(request) = source.poll_request(self.now) else { break };
                self.begin(request, source.lent(request.tag));
            }
            self.pump();
            if self.failure.is_none() && self.ended.is_empty() {
                if source.is_finished() && self.array.in_flight() == 0 && !self.still_rebuilds(running) {
                    if running {
                        self.watch_steal(false);
                    }
                    self.measure(false);
                    return Ok(outcome);
                }
                self.wait(self.earliest(source.poll_timeout(), running));
            } else {
                self.submit();
            }
            if let Some(error) = self.failure.take() {
                source.interrupt(self.now);
                self.measure(false);
                self.drain();
                return Err(error);
            }
        }
    }

    /// The clock starts anew, and what goes by it.
    fn restart(&mut self, running: bool) {
        if let Some(spindles) = &mut self.spindles {
            spindles.restart();
        }
        if running {
            self.accounts = Accounts::default();
            self.watch_steal(true);
        }
        self.clock.restart();
        self.now = Instant::ZERO;
    }

    /// Reads the clock. The engine's time never goes back, though the counters of two processors may differ by some ticks.
    #[inline]
    fn tick(&mut self) {
        self.now = self.now.max(self.clock.now());
    }

    fn watch_steal(&mut self, on: bool) {
        if let Some(spindles) = &mut self.spindles {
            spindles.watch_steal(on);
        }
    }

    /// Tells the source of requests that have ended.
    fn tell<S: Source>(&mut self, source: &mut S) {
        for &(tag, ok) in &self.ended {
            source.handle_done(self.now, tag, ok);
        }
        self.ended.clear();
    }

    /// Starts all that the array wants done, and notes what it has to tell.
    fn pump(&mut self) {
        loop {
            while self.failure.is_none() {
                match self.array.poll_op() {
                    Some(ArrayOp::Device(operation)) => self.start(operation),
                    Some(ArrayOp::Compute { id, tag, .. }) => self.compute(id, tag),
                    None => break,
                }
            }
            let Some(event) = self.array.poll_event() else { return };
            match event {
                Event::RequestDone { tag, result } => self.end(tag, result),
                Event::MemberFailed { leaf } => self.note_member(leaf),
                Event::MemberRebuilt { leaf } => self.outages.rebuilt(self.now, leaf, &self.array),
                Event::ScrubDone => self.outages.scrubbed(self.now, &self.array),
                Event::RebuildStopped { leaf } => self.outages.stopped(self.now, leaf),
            }
        }
    }

    fn compute(&mut self, id: OpId, tag: RequestTag) {
        let Some(places) = self.places(id, tag) else { return };
        if let Some(work) = self.array.compute(id) {
            // SAFETY: the plan's places; operations on them have completed or come after this.
            unsafe { self.combiner.run(&work, places) };
            // SAFETY: as before; what was computed is not written while it is looked at.
            let sector_of = |offset| unsafe { places.sector(offset) };
            work.mismatches(sector_of, |mismatch| self.mismatches.push(mismatch));
        }
        self.mismatches.drain(..).for_each(|mismatch| self.array.note_mismatch(id, mismatch));
        self.finish(id, Ok(()));
    }

    fn note_member(&mut self, leaf: LeafId) {
        if !self.failed_members.iter().any(|m| m.leaf == leaf) {
            let has_worn_out = self.array.has_too_many_read_errors(leaf);
            let reason = if has_worn_out { "too many read errors" } else { "failed on purpose" };
            self.failed_members.push(FailedMember { leaf, reason: reason.to_string() });
        }
        self.outages.failed(self.now, leaf, &self.array);
    }

    /// A member is taken out while it works.
    fn take_out(&mut self, leaf: LeafId) {
        self.array.set_member_state(leaf, MemberState::Failed);
        self.failed_members.push(FailedMember { leaf, reason: "taken out on purpose".to_string() });
    }

    /// What is due because time has passed: members fail and are replaced while the load runs, the array goes on with its own
    /// work.
    fn let_pass<S: Source>(&mut self, source: &mut S, running: bool) {
        if running && self.outages.next_at().is_some_and(|at| at <= self.now) {
            let befallen = self.outages.take_step(self.now, &mut self.array);
            if let Befallen::Failed(leaf) | Befallen::Lost(leaf) = befallen {
                let reason = "made to fail by the study".to_string();
                self.failed_members.push(FailedMember { leaf, reason });
            }
            match befallen {
                Befallen::Replaced(leaf) => self.blank(leaf),
                Befallen::End | Befallen::Lost(_) => source.finish(self.now),
                Befallen::Failed(_) | Befallen::Slowed(..) | Befallen::Nothing => {}
            }
        }
        if self.array.poll_timeout().is_some_and(|at| at <= self.now) {
            self.array.handle_time(self.now);
        }
    }

    /// When to look again: what the source says, or what is due before.
    fn earliest(&self, source: Option<Instant>, running: bool) -> Option<Instant> {
        let step = self.outages.next_at().filter(|_| running);
        [source, step, self.array.poll_timeout()].into_iter().flatten().min()
    }

    /// What could not be read of members, where something was to be so.
    pub(crate) fn unreadable(&self) -> Option<UnreadableResult> {
        self.outages.unreadable(&self.array)
    }

    /// Members that were read last for being slow.
    pub(crate) fn sat_out(&self) -> &[SatOut] {
        self.array.sat_out()
    }

    /// The load is over. A rebuild that is to be verified goes on to its end; another is broken off, and what is in flight
    /// of it comes back.
    fn still_rebuilds(&mut self, running: bool) -> bool {
        if running && !self.outages.is_empty() && (self.rebuilds.is_empty() || self.verifier.is_some()) {
            let sector = self.sector_bytes as u64;
            let sectors =
                |leaf: LeafId| self.targets[leaf as usize].as_ref().map_or(0, |t| t.facts.size_bytes / sector);
            self.rebuilds = self.outages.results(self.now, &self.array, sectors);
            if self.verifier.is_none() {
                let leaves: Vec<LeafId> = self.rebuilds.iter().filter(|one| !one.is_over).map(|one| one.leaf).collect();
                leaves.into_iter().for_each(|leaf| self.array.set_member_state(leaf, MemberState::Failed));
            }
        }
        if running && self.array.is_scrubbing() {
            self.scrubs = self.outages.scrub_results(self.now, &self.array);
            self.array.stop_scrub();
        } else if running && self.scrubs.is_empty() {
            self.scrubs = self.outages.scrub_results(self.now, &self.array);
        }
        self.array.is_at_work()
    }

    fn fail(&mut self, error: LiveError) {
        debug!(%error, "the run cannot go on");
        // The first cause is the one worth telling.
        self.failure.get_or_insert(error);
    }

    /// Submits what is queued and waits until something completes, or `timeout`.
    fn wait(&mut self, timeout: Option<Instant>) {
        if self.spindles.is_some() {
            return self.watch(timeout);
        }
        let Some(limit) = wait_limit(timeout, self.now) else { return self.submit() };
        self.assert_none_lost();
        let result = match &mut self.ring {
            Some(ring) => ring.submit_and_wait(limit),
            None => {
                std::thread::sleep(std::time::Duration::from_nanos(limit.as_ns()));
                Ok(())
            }
        };
        self.check_enter(result);
    }

    /// As [`Self::wait`] where members are emulated: watches the clock until the next completion is due.
    fn watch(&mut self, timeout: Option<Instant>) {
        self.assert_none_lost();
        self.submit();
        if self.ring.as_ref().is_some_and(|ring| ring.in_flight() > 0) {
            return;
        }
        let due = self.spindles.as_ref().map_or(Instant::MAX, Spindles::next_due);
        let longest = self.now + self.clock.real(LONGEST_WAIT);
        self.clock.watch(due.min(longest).min(timeout.unwrap_or(Instant::MAX)));
    }

    fn assert_none_lost(&self) {
        let with_disks = self.spindles.as_ref().map_or(0, Spindles::in_flight);
        let is_idle = with_disks == 0 && self.ring.as_ref().is_none_or(|ring| ring.in_flight() == 0);
        assert!(!(is_idle && self.array.in_flight() > 0), "the array waits for an operation that was lost");
    }

    fn submit(&mut self) {
        let result = self.ring.as_mut().filter(|ring| ring.in_flight() > 0).map_or(Ok(()), Ring::submit);
        self.check_enter(result);
    }

    fn check_enter(&mut self, result: io::Result<()>) {
        if let Err(e) = result {
            self.fail(LiveError::io("engine", "io_uring", "io_uring_enter failed", &e));
        }
    }

    /// Waits for all that is in flight, without telling anybody.
    fn drain(&mut self) {
        let Some(ring) = &mut self.ring else { return };
        while ring.in_flight() > 0 && ring.submit_and_wait(LONGEST_WAIT).is_ok() {
            while ring.reap().is_some() {}
        }
    }
}
