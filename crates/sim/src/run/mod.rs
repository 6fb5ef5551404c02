//! The loop: the earliest event, then everything that follows from it at the same time.
//!
//! A request walks down the request path (if that costs anything) to the array, or to the cache above it, each member
//! operation down the member path to its device, and both back up. Order within an instant: first what the array wants started, then what it reports, then new requests.

mod cached;
mod filling;
mod in_turn;
mod set_up;
mod turns;

use crate::blocks::BlockLayer;
use crate::cache::Cache;
use crate::config::SimConfig;
use crate::conserve::Ledger;
use crate::events::Timers;
use crate::path::{Leg, Paths};
use crate::result::{MemberResult, SimResult};
use crate::walks::{Continuation, Walks};
use cached::OF_CACHE;
use filling::CacheFilling;
use in_turn::Issuer;
use raidlab_array::{Array, ArrayOp, Befallen, Event, Outages, OF_ARRAY};
use raidlab_device::Device;
use raidlab_load::streams::Carry;
use raidlab_load::trace::Replay;
use raidlab_load::{Generator, RequestLog};
use raidlab_types::number::{u32_from, usize_from};
use raidlab_types::{Duration, Instant, LeafId, OpId, Operation, Request, RequestKind, RequestTag, SpecError};
use set_up::{files, recorded, replaying, requests, streams};
use std::ops::ControlFlow;
use turns::Turns;

/// How far a run has come.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Time on the virtual clock.
    pub now: Instant,
    /// Requests completed in the measuring window so far.
    pub requests: u64,
}

/// Watches a run; every method has a default that does nothing.
pub trait Observer {
    /// A member operation is issued.
    #[inline]
    fn operation(&mut self, _now: Instant, _op: &Operation) {}
    /// A request enters the array.
    #[inline]
    fn request(&mut self, _now: Instant, _request: &Request) {}
    /// A member operation is complete.
    #[inline]
    fn completion(&mut self, _now: Instant, _id: OpId) {}
    /// Called now and then; `Break` stops the run, keeping what was measured.
    fn progress(&mut self, _progress: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Observer for () {}

struct Sim<'o, L: Generator, O: Observer> {
    now: Instant,
    array: Array,
    load: L,
    /// One a member, or the one of which all members are areas.
    devices: Vec<Device>,
    /// How long such an area is.
    area_sectors: Option<u64>,
    timers: Timers,
    /// None where nothing but the disks costs time.
    walks: Option<Walks>,
    /// None where every operation is a request of its own.
    blocks: Option<BlockLayer>,
    /// Between one operation of a request and the next.
    issue_cost: Duration,
    sector_bytes: u64,
    /// By tag; kept where the way back costs something.
    requests: Vec<Request>,
    /// By volume; none at all where no volume has one.
    caches: Vec<Option<Cache>>,
    /// By tag of a read through a cache: sectors that have not reached the client, and whether any has set out.
    arriving: Vec<(u64, bool)>,
    /// Whether the load has been told of a request since it was asked.
    answered: bool,
    /// By tag of the request; used where issuing costs time.
    issuers: Vec<Issuer>,
    handled: u64,
    /// None where threads of the host are in nobody's way.
    turns: Option<Turns>,
    measuring: bool,
    /// While the window waits for write caches.
    filling: Option<CacheFilling>,
    ledger: Ledger,
    /// Who fails and is rebuilt.
    outages: Outages,
    observer: &'o mut O,
}

/// Events between two calls of [`Observer::progress`].
const PROGRESS_EVERY: u64 = 1 << 16;

/// Events after which write caches that fill are looked at anew.
const FILLING_EVERY: u64 = 64;

/// Runs a simulation.
///
/// # Errors
/// When the configuration makes no sense; the error names the key.
pub fn run(config: &SimConfig) -> Result<SimResult, SpecError> {
    run_observed(config, None, &mut ())
}

/// Runs a simulation that `observer` watches; of the requests of a trace, if there is one, and then the workload of the
/// configuration is not looked at.
///
/// # Errors
/// As [`run`]; and where a line of the trace is wrong or a request cannot be offered: what was measured until then is
/// worth nothing.
pub fn run_observed<O: Observer>(
    config: &SimConfig,
    trace: Option<Replay>,
    observer: &mut O,
) -> Result<SimResult, SpecError> {
    match (trace, &config.files, &config.streams) {
        (Some(trace), _, _) => Sim::new(config, replaying(trace), observer)?.run_to_end(),
        (None, None, None) => Sim::new(config, requests, observer)?.run_to_end(),
        (None, Some(_), _) => Sim::new(config, files, observer)?.run_to_end(),
        (None, None, Some(_)) => Sim::new(config, streams, observer)?.run_to_end(),
    }
}

/// Runs a simulation that `observer` watches, of which each request leaves a row in `log`.
///
/// # Errors
/// As [`run_observed`]; and for whole files and streams, whose requests are not kept one by one.
pub fn run_recorded<O: Observer>(
    config: &SimConfig,
    trace: Option<Replay>,
    log: RequestLog,
    observer: &mut O,
) -> Result<SimResult, SpecError> {
    match (trace, config.files.is_none() && config.streams.is_none()) {
        (Some(trace), _) => Sim::new(config, recorded(replaying(trace), log), observer)?.run_to_end(),
        (None, true) => Sim::new(config, recorded(requests, log), observer)?.run_to_end(),
        (None, false) => {
            let message = "are not kept of whole files and streams; accepted: drawn requests, or a trace";
            Err(SpecError::new("records", message))
        }
    }
}

/// Whether this could be run, of a trace as far as its beginning says: everything is built and nothing run.
///
/// # Errors
/// As [`run_observed`].
pub fn check(config: &SimConfig, trace: Option<Replay>) -> Result<(), SpecError> {
    match (trace, &config.files, &config.streams) {
        (Some(trace), _, _) => Sim::new(config, replaying(trace), &mut ()).map(drop),
        (None, None, None) => Sim::new(config, requests, &mut ()).map(drop),
        (None, Some(_), _) => Sim::new(config, files, &mut ()).map(drop),
        (None, None, Some(_)) => Sim::new(config, streams, &mut ()).map(drop),
    }
}

impl<L: Generator, O: Observer> Sim<'_, L, O> {
    fn run_to_end(mut self) -> Result<SimResult, SpecError> {
        let interrupted = self.run();
        match self.load.fault() {
            Some(fault) => Err(fault.clone()),
            None => Ok(self.result(interrupted)),
        }
    }

    /// Runs to the end of the measurement; true if the observer stopped it.
    fn run(&mut self) -> bool {
        self.settle(true);
        // Without a warm-up the window is open by now, and nothing has completed that would have to be forgotten.
        self.measuring = self.load.recorder().is_measuring();
        while !self.load.is_finished() {
            let device = self.next_completion();
            let walker = self.walks.as_ref().map_or(Instant::MAX, Walks::next_at);
            let arrival = self.load.poll_timeout().unwrap_or(Instant::MAX);
            let rebuild = self.array.poll_timeout().unwrap_or(Instant::MAX);
            let step = self.outages.next_at().unwrap_or(Instant::MAX);
            // Completions go before arrivals at the same time, and those of devices before those of stations; the array's
            // own work lies between, and what befalls members.
            let others = walker.min(arrival).min(rebuild).min(step);
            let others = self.turns.as_ref().map_or(others, |turns| turns.not_before(others));
            let next = device.min(others);
            if next == Instant::MAX {
                break;
            }
            self.now = next;
            if device == next {
                self.poll_devices(next);
            } else if self.turns.as_ref().is_some_and(Turns::is_taken) {
                // Whoever is at it comes first.
            } else if walker <= next {
                let follows = self.walks.as_mut().and_then(|walks| walks.proceed(next));
                self.follow_at_once(follows);
            } else if rebuild <= next {
                self.array.handle_time(next);
            } else if step <= next {
                self.befall(next);
            }
            // A load has something to say when its time has come, or after one of its requests has ended.
            let told = std::mem::take(&mut self.answered);
            self.settle(arrival == next || told);
            self.handled += 1;
            self.look_at_filling();
            if self.handled.is_multiple_of(PROGRESS_EVERY) {
                let requests = self.load.recorder().requests();
                if self.observer.progress(Progress { now: self.now, requests }).is_break() {
                    self.load.interrupt(self.now);
                    return true;
                }
            }
        }
        false
    }

    /// Lets measuring begin where it waits for write caches that have filled.
    #[inline]
    fn look_at_filling(&mut self) {
        if let Some(filling) = &self.filling {
            if self.handled.is_multiple_of(FILLING_EVERY) && filling.is_over(&self.devices) {
                self.filling = None;
                self.load.recorder_mut().wait(false);
            }
        }
    }

    /// When the host hears of a device next.
    fn next_completion(&mut self) -> Instant {
        let first = self.timers.first().0;
        match &mut self.turns {
            Some(turns) => turns.next_interrupt(self.now, first),
            None => first,
        }
    }

    /// Hears of what has completed.
    #[inline]
    fn poll_devices(&mut self, now: Instant) {
        if self.turns.is_some() {
            return self.interrupt(now);
        }
        self.poll_device(self.timers.first().1);
        if self.blocks.is_some() {
            // What was handed on together and ends together is gathered together, too.
            while self.timers.first().0 == now {
                self.poll_device(self.timers.first().1);
            }
        }
    }

    /// Something befalls a member, or a run that waited for the last of it is over.
    #[cold]
    fn befall(&mut self, now: Instant) {
        match self.outages.take_step(now, &mut self.array) {
            Befallen::End | Befallen::Lost(_) => self.load.recorder_mut().close_at(now),
            Befallen::Slowed(leaf, times) => self.devices[leaf as usize].slow_down(times),
            Befallen::Replaced(leaf) => self.devices[leaf as usize].slow_down(1.0),
            Befallen::Failed(_) | Befallen::Nothing => {}
        }
    }

    /// Everything that follows at this instant; `ask_load`: whether the load may have a request without being told.
    #[inline]
    fn settle(&mut self, ask_load: bool) {
        if self.turns.is_some() {
            return self.settle_in_turns();
        }
        let mut ask_load = ask_load;
        loop {
            while let Some(op) = self.array.poll_op() {
                match op {
                    ArrayOp::Device(op) => self.issue(&op),
                    ArrayOp::Compute { id, read_bytes, .. } => self.compute(id, read_bytes),
                }
            }
            if let Some(blocks) = &mut self.blocks {
                blocks.hand_on(self.now, &mut self.devices);
                self.note_asked();
            }
            let mut caches_moved = false;
            while let Some(event) = self.array.poll_event() {
                match event {
                    Event::RequestDone { tag, .. } if tag & OF_CACHE != 0 => {
                        self.cache_served(tag);
                        caches_moved = true;
                    }
                    event => self.hear(event),
                }
                ask_load |= std::mem::take(&mut self.answered);
            }
            if caches_moved {
                continue;
            }
            if !ask_load {
                return;
            }
            ask_load = false;
            let mut admitted = self.ask_load();
            if L::WORKS {
                while let Some((who, cost)) = self.load.poll_work() {
                    self.work(who, cost);
                    admitted = true;
                }
                while let Some(carry) = self.load.poll_carry() {
                    self.carry(carry);
                    admitted = true;
                }
                ask_load |= std::mem::take(&mut self.answered);
            }
            if !admitted {
                return;
            }
        }
    }

    /// Takes the requests that the load has now; whether there are any.
    #[inline]
    fn ask_load(&mut self) -> bool {
        if !self.measuring && self.load.recorder().is_measuring() {
            self.begin_measuring();
        }
        let mut admitted = false;
        while let Some(request) = self.load.poll_request(self.now) {
            self.admit(request);
            admitted = true;
        }
        admitted
    }

    /// The array reports something.
    #[inline]
    fn hear(&mut self, event: Event) {
        match event {
            Event::RequestDone { tag, result } => self.leave(tag, result.is_ok()),
            Event::MemberRebuilt { leaf } => self.outages.rebuilt(self.now, leaf, &self.array),
            Event::ScrubDone => self.outages.scrubbed(self.now, &self.array),
            Event::RebuildStopped { leaf } => self.outages.stopped(self.now, leaf),
            Event::MemberFailed { leaf } => self.outages.failed(self.now, leaf, &self.array),
        }
    }

    fn begin_measuring(&mut self) {
        self.measuring = true;
        let now = self.now;
        self.devices.iter_mut().for_each(|device| device.reset_totals(now));
        if let Some(walks) = &mut self.walks {
            walks.reset_totals(self.now);
        }
    }

    /// A client has work for the host.
    fn work(&mut self, who: u32, cost: Duration) {
        let follows = match &mut self.walks {
            Some(walks) => walks.work(self.now, cost, Continuation::Worked(who)),
            None => Some(Continuation::Worked(who)),
        };
        self.follow_at_once(follows);
    }

    /// A block of a stream sets out along one of the path's ways.
    fn carry(&mut self, carry: Carry) {
        self.walk(|paths| paths.way(carry.way, carry.outward), carry.bytes, true, Continuation::Worked(carry.who));
    }

    /// Somebody walks a leg of the paths with so many bytes; see [`Walks::walk`].
    fn walk(&mut self, leg: impl FnOnce(&Paths) -> Leg, bytes: u64, pays: bool, then: Continuation) {
        let follows = match &mut self.walks {
            Some(walks) => {
                let leg = leg(&walks.paths);
                walks.walk(self.now, leg, bytes, pays, then)
            }
            None => Some(then),
        };
        self.follow_at_once(follows);
    }

    /// A request sets out from its client.
    #[inline]
    fn admit(&mut self, request: Request) {
        self.ledger.enter(self.now, request.tag);
        if self.walks.is_none() {
            return self.enter(request);
        }
        let tag = usize_from(request.tag);
        if tag >= self.requests.len() {
            self.requests.resize(tag + 1, request);
        }
        self.requests[tag] = request;
        let (bytes, writes) = (request.extent.sectors * self.sector_bytes, request.kind == RequestKind::Write);
        self.walk(|paths| paths.request(request.volume, writes).down, bytes, true, Continuation::Enter(request));
    }

    #[inline]
    fn enter(&mut self, request: Request) {
        self.observer.request(self.now, &request);
        if self.issue_cost > Duration::ZERO {
            self.new_issuer(usize_from(request.tag));
        }
        match self.caches.get_mut(request.volume as usize) {
            Some(Some(cache)) if request.kind != RequestKind::Flush => {
                let tag = usize_from(request.tag);
                if tag >= self.arriving.len() {
                    self.arriving.resize(tag + 1, (0, false));
                }
                self.arriving[tag] = (request.extent.sectors, false);
                cache.handle_request(&request);
                self.serve_cache(request.volume);
            }
            _ => self.array.handle_request(self.now, request),
        }
    }

    /// The array is done with a request, which goes back to its client.
    #[inline]
    fn leave(&mut self, tag: RequestTag, ok: bool) {
        if self.walks.is_none() {
            return self.answer(tag, ok);
        }
        let Request { volume, kind, extent, .. } = self.requests[usize_from(tag)];
        let (bytes, writes) = (extent.sectors * self.sector_bytes, kind == RequestKind::Write);
        self.walk(|paths| paths.request(volume, writes).up, bytes, true, Continuation::Answer(tag, ok));
    }

    #[inline]
    fn answer(&mut self, tag: RequestTag, ok: bool) {
        self.load.handle_done(self.now, tag, ok);
        self.answered = true;
        self.ledger.leave(self.now, tag);
        if self.ledger.is_to_be_checked() {
            // Caches go on destaging behind their clients, and a load of files records files, not what they are read with.
            let quiet = self.caches.is_empty() && !self.array.is_at_work();
            let array = quiet.then_some(&self.array);
            self.ledger.check(array, (!L::WORKS).then(|| self.load.recorder()));
        }
    }

    #[inline]
    fn issue(&mut self, op: &Operation) {
        // Nobody's request issues what the array does for itself.
        if self.issue_cost > Duration::ZERO && op.tag != OF_ARRAY {
            return self.issue_in_turn(*op);
        }
        if self.walks.is_some() {
            return self.send(*op);
        }
        self.start(op);
    }

    /// An operation sets out for its member.
    fn send(&mut self, op: Operation) {
        let bytes = op.extent.sectors * self.sector_bytes;
        self.walk(|paths| paths.member(op.leaf, op.kind).down, bytes, true, Continuation::Start(op));
    }

    #[inline]
    fn start(&mut self, op: &Operation) {
        if let Some(blocks) = &mut self.blocks {
            let how = (self.array.is_gathered(op.id), self.array.memory_pieces(op));
            let now = self.turns.as_ref().map_or(self.now, |turns| turns.clock(self.now));
            blocks.take(now, op, how, &mut self.devices);
            return self.note_asked();
        }
        self.observer.operation(self.now, op);
        self.ledger.start();
        let (device, mut op) = (self.device_of(op.leaf), *op);
        if let Some(sectors) = self.area_sectors {
            op.extent.lba += u64::from(op.leaf) * sectors;
        }
        self.devices[device as usize].handle_op(self.now, op);
        self.schedule(device);
    }

    /// Which device a member is on.
    #[inline]
    fn device_of(&self, leaf: LeafId) -> u32 {
        if self.area_sectors.is_some() {
            return 0;
        }
        leaf
    }

    /// Whose operation a device has completed.
    #[inline]
    fn leaf_of(&self, device: u32, id: OpId) -> LeafId {
        match self.area_sectors {
            None => device,
            Some(_) => self.array.moves(id).map_or(device, |(leaf, ..)| leaf),
        }
    }

    /// Takes note of what the block layer has asked of members.
    fn note_asked(&mut self) {
        while let Some(op) = self.blocks.as_mut().and_then(BlockLayer::next_asked) {
            self.observer.operation(self.now, &op);
            self.ledger.start();
            self.schedule(op.leaf);
        }
    }

    #[inline]
    fn compute(&mut self, id: OpId, read_bytes: u64) {
        let Some(walks) = &mut self.walks else { return self.array.handle_op_done(self.now, id, Ok(())) };
        let follows = walks.compute(self.now, read_bytes, Continuation::Computed(id));
        self.follow_at_once(follows);
    }

    #[inline]
    fn poll_device(&mut self, device: u32) {
        // One completion a turn: what follows from it at this instant may change what the device does next.
        if let Some(done) = self.devices[device as usize].poll_done(self.now) {
            self.observer.completion(self.now, done.id);
            self.ledger.complete();
            let leaf = self.leaf_of(device, done.id);
            if self.blocks.is_some() {
                self.complete_all(leaf, done.id);
            } else if self.walks.is_some() {
                self.come_back(leaf, done.id);
            } else {
                let outcome = self.outages.outcome(&self.array, done.id, leaf);
                self.array.handle_op_done(self.now, done.id, outcome);
            }
        }
        self.schedule(device);
    }

    /// Every operation that rode on the request is done.
    fn complete_all(&mut self, leaf: u32, request: OpId) {
        let count = self.blocks.as_mut().map_or(0, |blocks| blocks.complete(request));
        for i in 0..count {
            let Some(id) = self.blocks.as_ref().map(|blocks| blocks.completed(i)) else { return };
            if self.walks.is_some() {
                self.come_back(leaf, id);
            } else {
                let outcome = self.outages.outcome(&self.array, id, leaf);
                self.array.handle_op_done(self.now, id, outcome);
            }
        }
    }

    /// An operation goes back from its member to the array.
    fn come_back(&mut self, leaf: u32, id: OpId) {
        let Some((_, kind, extent)) = self.array.moves(id) else { return };
        let bytes = extent.sectors * self.sector_bytes;
        let outcome = self.outages.outcome(&self.array, id, leaf);
        self.walk(|paths| paths.member(leaf, kind).up, bytes, true, Continuation::Completed(id, outcome));
    }

    #[inline]
    fn schedule(&mut self, device: u32) {
        let at = self.devices[device as usize].poll_timeout().unwrap_or(Instant::MAX);
        self.timers.set(device, at);
    }

    /// What took no time is over: what follows from it.
    fn follow_at_once(&mut self, follows: Option<Continuation>) {
        if let Some(then) = follows {
            self.follow(then);
        }
    }

    fn follow(&mut self, then: Continuation) {
        match then {
            Continuation::Enter(request) => self.enter(request),
            Continuation::Answer(tag, ok) => self.answer(tag, ok),
            Continuation::Arrived(tag, sectors) => self.arrived(tag, sectors),
            Continuation::Leave(tag) => self.leave(tag, true),
            Continuation::Start(op) => self.start(&op),
            Continuation::Next(tag, generation) => self.next_in_turn(tag, generation),
            Continuation::Worked(who) => {
                self.load.handle_work_done(self.now, who);
                self.answered = true;
            }
            Continuation::Computed(id) => self.array.handle_op_done(self.now, id, Ok(())),
            Continuation::Completed(id, result) => self.array.handle_op_done(self.now, id, result),
        }
    }

    /// What the run leaves.
    fn result(mut self, interrupted: bool) -> SimResult {
        let layout = self.array.layout();
        let (sector_bytes, user_sectors) = (layout.sector_bytes(), layout.user_sectors());
        let sectors = |leaf: u32| self.devices[self.device_of(leaf) as usize].capacity_sectors();
        let rebuilds = self.outages.results(self.now, &self.array, sectors);
        let scrubs = self.outages.scrub_results(self.now, &self.array);
        let now = self.now;
        let member = |(leaf, d): (usize, &mut Device)| MemberResult {
            leaf: u32_from(leaf),
            totals: *d.totals(),
            servers: d.servers(),
            flash: d.flash(now),
        };
        SimResult {
            members: self.devices.iter_mut().enumerate().map(member).collect(),
            rebuilds,
            scrubs,
            sat_out: self.array.sat_out().to_vec(),
            data_loss: self.outages.data_loss(),
            unreadable: self.outages.unreadable(&self.array),
            stations: self.walks.iter().flat_map(Walks::stations).map(|station| station.result(now)).collect(),
            hold: self.load.hold(),
            backlog: self.load.backlog(),
            files: self.load.files().cloned(),
            replayed: self.load.replayed(),
            streams: self.load.streams(),
            recorder: self.load.recorder().clone(),
            sector_bytes,
            user_bytes: user_sectors * u64::from(sector_bytes),
            events: self.handled,
            interrupted,
        }
    }
}
