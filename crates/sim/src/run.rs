//! The loop: the earliest event, then everything that follows from it at the same time.
//!
//! A request walks down the request path (if that costs anything) to the array, or to the cache above it, each member
//! operation down the member path to its device, and both back up. Order within an instant: first what the array wants started, then what it reports, then new requests.

use crate::cache::{Cache, CacheOp};
use crate::config::SimConfig;
use crate::conserve::Ledger;
use crate::error::SimError;
use crate::events::Timers;
use crate::offer::Offer;
use crate::path::{Leg, Span};
use crate::result::{MemberResult, SimResult, StationResult};
use crate::station::Station;
use crate::walks::{Then, Walks};
use raidlab_array::{Array, ArrayOp, Event, Layout, MemberState};
use raidlab_device::{Device, DeviceSpec};
use raidlab_load::files::FileLoad;
use raidlab_load::streams::{Carry, StreamLoad};
use raidlab_load::trace::{Replay, TraceLoad};
use raidlab_load::{Load, LoadError, Volume};
use raidlab_types::{Duration, Instant, OpId, Operation, Request, RequestKind, RequestTag, Seed};
use std::collections::VecDeque;
use std::ops::ControlFlow;

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

/// Operations of one request that wait for the one before them to be issued.
#[derive(Debug, Default)]
struct Issuer {
    /// Requests that had this tag so far; what an earlier one's host work leaves behind is not this one's business.
    generation: u32,
    busy: bool,
    waiting: VecDeque<Operation>,
}

struct Sim<'o, L: Offer, O: Observer> {
    now: Instant,
    array: Array,
    load: L,
    devices: Vec<Device>,
    timers: Timers,
    /// None where nothing but the disks costs time.
    walks: Option<Walks>,
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
    measuring: bool,
    ledger: Ledger,
    observer: &'o mut O,
}

/// Marks requests that caches make of the array; the volume stands above the cache's own number.
const OF_CACHE: u64 = 1 << 63;
const VOLUME_SHIFT: u32 = 40;

/// Events between two calls of [`Observer::progress`].
const PROGRESS_EVERY: u64 = 1 << 16;

/// Runs a simulation.
///
/// # Errors
/// When the configuration makes no sense; the error names the key.
pub fn run(config: &SimConfig) -> Result<SimResult, SimError> {
    run_observed(config, &mut ())
}

/// Runs a simulation that `observer` watches.
///
/// # Errors
/// As [`run`].
pub fn run_observed<O: Observer>(config: &SimConfig, observer: &mut O) -> Result<SimResult, SimError> {
    match (&config.files, &config.streams) {
        (None, None) => Ok(Sim::new(config, requests, observer)?.run_to_end()),
        (Some(_), _) => Ok(Sim::new(config, files, observer)?.run_to_end()),
        (None, Some(_)) => Ok(Sim::new(config, streams, observer)?.run_to_end()),
    }
}

/// Whether this could be run: everything is built and nothing run.
///
/// # Errors
/// As [`run`].
pub fn check(config: &SimConfig) -> Result<(), SimError> {
    match (&config.files, &config.streams) {
        (None, None) => Sim::new(config, requests, &mut ()).map(drop),
        (Some(_), _) => Sim::new(config, files, &mut ()).map(drop),
        (None, Some(_)) => Sim::new(config, streams, &mut ()).map(drop),
    }
}

/// Runs a simulation of a trace, which `observer` watches. The workload of the configuration is not looked at.
///
/// # Errors
/// As [`run`], and where a line of the trace is wrong or a request cannot be offered: what was measured until then is
/// worth nothing.
pub fn run_trace<O: Observer>(config: &SimConfig, replay: Replay, observer: &mut O) -> Result<SimResult, SimError> {
    let mut sim = Sim::new(config, replaying(replay), observer)?;
    let interrupted = sim.run();
    match sim.load.fault() {
        Some(fault) => Err(fault.clone().into()),
        None => Ok(sim.result(interrupted)),
    }
}

/// Whether a trace could be replayed, as far as its beginning says: everything is built and nothing run.
///
/// # Errors
/// As [`run_trace`].
pub fn check_trace(config: &SimConfig, replay: Replay) -> Result<(), SimError> {
    Sim::new(config, replaying(replay), &mut ()).map(drop)
}

/// The load of a trace.
fn replaying(replay: Replay) -> impl FnOnce(&SimConfig, &[Volume], u32, Seed) -> Result<TraceLoad, LoadError> {
    move |config, volumes, sector_bytes, _| TraceLoad::new(replay, &config.load, &config.limits, volumes, sector_bytes)
}

/// The load of a configuration without files.
fn requests(config: &SimConfig, volumes: &[Volume], sector_bytes: u32, seed: Seed) -> Result<Load, LoadError> {
    Load::new(&config.load, &config.workload, &config.limits, volumes, sector_bytes, seed)
}

/// That of one with streams.
fn streams(config: &SimConfig, volumes: &[Volume], sector_bytes: u32, _seed: Seed) -> Result<StreamLoad, LoadError> {
    let Some(streams) = &config.streams else { unreachable!("the caller looked") };
    StreamLoad::new(streams, &config.limits, volumes, sector_bytes, config.path.ways.len())
}

/// That of one with files.
fn files(config: &SimConfig, volumes: &[Volume], sector_bytes: u32, seed: Seed) -> Result<FileLoad, LoadError> {
    let Some(files) = &config.files else { unreachable!("the caller looked") };
    if config.streams.is_some() {
        return Err(LoadError::new("streams", "they do not go with whole files; accepted: either files or streams"));
    }
    if !config.missing.is_empty() {
        return Err(LoadError::new("missing", "whole files are read from arrays that are whole; accepted: []"));
    }
    FileLoad::new(files, &config.load, &config.workload.size, &config.limits, volumes, sector_bytes, seed)
}

fn devices(config: &SimConfig, leaves: usize) -> Result<(Vec<Device>, u32), SimError> {
    let specs = &config.devices;
    if specs.len() != leaves && specs.len() != 1 {
        let message = format!("{} devices for {leaves} members; accepted: one, or one a member", specs.len());
        return Err(SimError::new("members", message));
    }
    let largest = specs.iter().map(DeviceSpec::sector_bytes).max().unwrap_or(512);
    let sector_bytes = config.sector_bytes.unwrap_or(largest);
    let seed = Seed::new(config.seed).named("device");
    let build = |i: usize| {
        Device::new(&specs[i], sector_bytes, config.pair_pricing, seed.child(i as u64))
            .map_err(|e| SimError::device(i, e))
    };
    let mut built = vec![build(0)?];
    for leaf in 1..leaves {
        let next = if specs.len() == 1 { built[0].twin(seed.child(leaf as u64)) } else { build(leaf)? };
        built.push(next);
    }
    Ok((built, sector_bytes))
}

/// The cache of each volume; empty where none has one.
fn caches(config: &SimConfig, layout: &Layout) -> Result<Vec<Option<Cache>>, SimError> {
    let (specs, sector_bytes) = (&config.path.caches, u64::from(layout.sector_bytes()));
    for (i, spec) in specs.iter().enumerate() {
        spec.check(&format!("path.caches[{i}]"), sector_bytes)?;
    }
    if !specs.is_empty() && config.host.issue_us > 0.0 {
        let message = format!("{}; accepted: 0 where caches stand between host and array", config.host.issue_us);
        return Err(SimError::new("host.issue_us", message));
    }
    if specs.is_empty() {
        return Ok(Vec::new());
    }
    let of = |i: usize, capacity_sectors: u64| {
        let spec = config.path.cache_of(i as u32)?;
        // Where nothing is striped, what is gathered before it is destaged is as long as a fetch.
        let (stripe, fetch) = (layout.full_stripe_sectors(i).max(1), spec.fetch_bytes / sector_bytes);
        let gathered = if stripe < fetch { fetch / stripe * stripe } else { stripe };
        Some(Cache::new(spec, sector_bytes, capacity_sectors, gathered))
    };
    Ok(layout.volumes().iter().enumerate().map(|(i, volume)| of(i, volume.capacity_sectors)).collect())
}

impl<'o, L: Offer, O: Observer> Sim<'o, L, O> {
    fn new(
        config: &SimConfig,
        load: impl FnOnce(&SimConfig, &[Volume], u32, Seed) -> Result<L, LoadError>,
        observer: &'o mut O,
    ) -> Result<Self, SimError> {
        config.tree.validate().map_err(|e| SimError::new(e.place, e.message))?;
        let (devices, sector_bytes) = devices(config, config.tree.leaves())?;
        let sizes: Vec<u64> = devices.iter().map(Device::capacity_sectors).collect();
        let layout =
            Layout::new(&config.tree, &sizes, sector_bytes).map_err(|e| SimError::new("tree", e.to_string()))?;
        let volumes: Vec<Volume> =
            layout.volumes().iter().map(|v| Volume { capacity_sectors: v.capacity_sectors }).collect();
        let seed = Seed::new(config.seed).named("load");
        let load = load(config, &volumes, sector_bytes, seed)?;
        let mut array = Array::new(layout, config.policy);
        for &leaf in &config.missing {
            if leaf as usize >= devices.len() {
                let message = format!("member {leaf} of {}; accepted: 0 to {}", devices.len(), devices.len() - 1);
                return Err(SimError::new("missing", message));
            }
            array.set_member_state(leaf, MemberState::Missing);
        }
        let walk_seed = Seed::new(config.seed).named("walks");
        let walks = Walks::new(&config.path, &config.host, volumes.len(), devices.len(), walk_seed, L::WORKS)?;
        let caches = caches(config, array.layout())?;
        Ok(Sim {
            now: Instant::ZERO,
            array,
            load,
            timers: Timers::new(devices.len()),
            devices,
            walks,
            issue_cost: Duration::from_s_f64(config.host.issue_us / 1e6),
            sector_bytes: u64::from(sector_bytes),
            requests: Vec::new(),
            caches,
            arriving: Vec::new(),
            answered: false,
            issuers: Vec::new(),
            handled: 0,
            measuring: false,
            ledger: Ledger::default(),
            observer,
        })
    }

    fn run_to_end(mut self) -> SimResult {
        let interrupted = self.run();
        self.result(interrupted)
    }

    /// Runs to the end of the measurement; true if the observer stopped it.
    fn run(&mut self) -> bool {
        self.settle(true);
        // Without a warm-up the window is open by now, and nothing has completed that would have to be forgotten.
        self.measuring = self.load.recorder().is_measuring();
        while !self.load.is_finished() {
            let device = self.timers.first();
            let walker = self.walks.as_ref().map_or(Instant::MAX, Walks::next_at);
            let arrival = self.load.poll_timeout().unwrap_or(Instant::MAX);
            // Completions go before arrivals at the same time, and those of devices before those of stations.
            let next = device.0.min(walker).min(arrival);
            if next == Instant::MAX {
                break;
            }
            self.now = next;
            if device.0 == next {
                self.poll_device(device.1);
            } else if walker == next {
                if let Some(then) = self.walks.as_mut().and_then(|walks| walks.proceed(next)) {
                    self.follow(then);
                }
            }
            // A load has something to say when its time has come, or after one of its requests has ended.
            let told = std::mem::take(&mut self.answered);
            self.settle(arrival == next || told);
            self.handled += 1;
            if self.handled.is_multiple_of(PROGRESS_EVERY) {
                let requests = self.load.recorder().read().requests + self.load.recorder().write().requests;
                if self.observer.progress(Progress { now: self.now, requests }).is_break() {
                    self.load.interrupt(self.now);
                    return true;
                }
            }
        }
        false
    }

    /// Everything that follows at this instant; `ask_load`: whether the load may have a request without being told.
    #[inline]
    fn settle(&mut self, ask_load: bool) {
        let mut ask_load = ask_load;
        loop {
            while let Some(op) = self.array.poll_op() {
                match op {
                    ArrayOp::Device(op) => self.issue(&op),
                    ArrayOp::Compute { id, read_bytes, .. } => self.compute(id, read_bytes),
                }
            }
            let mut caches_moved = false;
            while let Some(event) = self.array.poll_event() {
                if let Event::RequestDone { tag, result } = event {
                    if tag & OF_CACHE != 0 {
                        self.cache_served(tag);
                        caches_moved = true;
                    } else {
                        self.leave(tag, result.is_ok());
                    }
                    ask_load |= std::mem::take(&mut self.answered);
                }
            }
            if caches_moved {
                continue;
            }
            if !ask_load {
                return;
            }
            ask_load = false;
            if !self.measuring && self.load.recorder().is_measuring() {
                self.begin_measuring();
            }
            let mut admitted = false;
            while let Some(request) = self.load.poll_request(self.now) {
                self.admit(request);
                admitted = true;
            }
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

    fn begin_measuring(&mut self) {
        self.measuring = true;
        self.devices.iter_mut().for_each(Device::reset_totals);
        if let Some(walks) = &mut self.walks {
            walks.reset_totals(self.now);
        }
    }

    /// A client has work for the host.
    fn work(&mut self, who: u32, cost: Duration) {
        let done = match &mut self.walks {
            Some(walks) => walks.work(self.now, cost, Then::Worked(who)),
            None => Some(Then::Worked(who)),
        };
        if let Some(then) = done {
            self.follow(then);
        }
    }

    /// A block of a stream sets out along one of the path's ways.
    fn carry(&mut self, carry: Carry) {
        let then = Then::Worked(carry.who);
        let done = match &mut self.walks {
            Some(walks) => {
                let leg = walks.paths.way(carry.way, carry.outward);
                walks.walk(self.now, leg, carry.bytes, then)
            }
            None => Some(then),
        };
        if let Some(then) = done {
            self.follow(then);
        }
    }

    /// A request sets out from its client.
    #[inline]
    fn admit(&mut self, request: Request) {
        self.ledger.enter(self.now, request.tag);
        let Some(walks) = &mut self.walks else { return self.enter(request) };
        let tag = request.tag as usize;
        if tag >= self.requests.len() {
            self.requests.resize(tag + 1, request);
        }
        self.requests[tag] = request;
        let writes = request.kind == RequestKind::Write;
        let leg = walks.paths.request_down(request.volume, writes);
        if let Some(then) = walks.walk(self.now, leg, request.extent.sectors * self.sector_bytes, Then::Enter(request))
        {
            self.follow(then);
        }
    }

    #[inline]
    fn enter(&mut self, request: Request) {
        self.observer.request(self.now, &request);
        if self.issue_cost > Duration::ZERO {
            self.new_issuer(request.tag as usize);
        }
        match self.caches.get_mut(request.volume as usize) {
            Some(Some(cache)) if request.kind != RequestKind::Flush => {
                let tag = request.tag as usize;
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

    /// The array has done what a cache asked of it.
    fn cache_served(&mut self, tag: RequestTag) {
        let (volume, id) = (((tag & !OF_CACHE) >> VOLUME_SHIFT) as u32, tag & ((1 << VOLUME_SHIFT) - 1));
        if let Some(Some(cache)) = self.caches.get_mut(volume as usize) {
            cache.handle_done(id);
        }
        self.serve_cache(volume);
    }

    /// Does what the cache of a volume wants.
    fn serve_cache(&mut self, volume: u32) {
        let own = |id: u64, kind, extent| Request {
            tag: OF_CACHE | u64::from(volume) << VOLUME_SHIFT | id,
            volume,
            kind,
            extent,
            force_unit_access: false,
        };
        while let Some(op) = self.caches[volume as usize].as_mut().and_then(Cache::poll) {
            match op {
                CacheOp::Fetch { id, extent } => {
                    self.array.handle_request(self.now, own(id, RequestKind::Read, extent));
                }
                CacheOp::Destage { id, extent } => {
                    self.array.handle_request(self.now, own(id, RequestKind::Write, extent));
                }
                CacheOp::Ready { tag, sectors } => self.bring(volume, tag, sectors),
                CacheOp::Stored { tag, sectors } => self.copy(volume, tag, sectors),
                CacheOp::Written { tag } => self.leave(tag, true),
            }
        }
    }

    /// Sectors of a read set out for the client.
    fn bring(&mut self, volume: u32, tag: RequestTag, sectors: u64) {
        let is_first = !std::mem::replace(&mut self.arriving[tag as usize].1, true);
        let Some(walks) = &mut self.walks else { return self.arrived(tag, sectors) };
        // The status follows when all is there.
        let leg = Leg { after: Span::default(), ..walks.paths.request_up(volume, false) };
        let bytes = sectors * self.sector_bytes;
        if let Some(then) = walks.walk_on(self.now, leg, bytes, is_first, Then::Arrived(tag, sectors)) {
            self.follow(then);
        }
    }

    /// Sectors of a read have reached the client; after the last of them comes the status.
    fn arrived(&mut self, tag: RequestTag, sectors: u64) {
        let left = &mut self.arriving[tag as usize].0;
        *left -= sectors;
        if *left > 0 {
            return;
        }
        let Some(walks) = &mut self.walks else { return self.answer(tag, true) };
        let volume = self.requests[tag as usize].volume;
        let leg = Leg { after: walks.paths.request_up(volume, false).after, ..Leg::default() };
        if let Some(then) = walks.walk(self.now, leg, 0, Then::Answer(tag, true)) {
            self.follow(then);
        }
    }

    /// A write is in its cache: what that costs beyond the request's own way, before it is answered.
    fn copy(&mut self, volume: u32, tag: RequestTag, sectors: u64) {
        let Some(walks) = &mut self.walks else { return self.leave(tag, true) };
        let leg = walks.paths.copy(volume);
        if let Some(then) = walks.walk(self.now, leg, sectors * self.sector_bytes, Then::Leave(tag)) {
            self.follow(then);
        }
    }

    /// The array is done with a request, which goes back to its client.
    #[inline]
    fn leave(&mut self, tag: RequestTag, ok: bool) {
        let Some(walks) = &mut self.walks else { return self.answer(tag, ok) };
        let Request { volume, kind, extent, .. } = self.requests[tag as usize];
        let leg = walks.paths.request_up(volume, kind == RequestKind::Write);
        if let Some(then) = walks.walk(self.now, leg, extent.sectors * self.sector_bytes, Then::Answer(tag, ok)) {
            self.follow(then);
        }
    }

    #[inline]
    fn answer(&mut self, tag: RequestTag, ok: bool) {
        self.load.handle_done(self.now, tag, ok);
        self.answered = true;
        self.ledger.leave(self.now, tag);
        if self.ledger.is_to_be_checked() {
            // Caches go on destaging behind their clients, and a load of files records files, not what they are read with.
            let array = self.caches.is_empty().then_some(&self.array);
            self.ledger.check(array, (!L::WORKS).then(|| self.load.recorder()));
        }
    }

    #[inline]
    fn issue(&mut self, op: &Operation) {
        if self.issue_cost > Duration::ZERO {
            return self.issue_in_turn(*op);
        }
        if self.walks.is_some() {
            return self.send(*op);
        }
        self.start(op);
    }

    /// An operation sets out for its member.
    fn send(&mut self, op: Operation) {
        let Some(walks) = &mut self.walks else { return self.start(&op) };
        let leg = walks.paths.member_down(op.leaf, op.kind);
        if let Some(then) = walks.walk(self.now, leg, op.extent.sectors * self.sector_bytes, Then::Start(op)) {
            self.follow(then);
        }
    }

    /// Issues the operation now if its request is not busy issuing another, else after those.
    fn issue_in_turn(&mut self, op: Operation) {
        let tag = op.tag as usize;
        if self.issuers[tag].busy {
            self.issuers[tag].waiting.push_back(op);
            return;
        }
        self.issuers[tag].busy = true;
        self.send(op);
        let then = Then::Next(tag as u32, self.issuers[tag].generation);
        let issued = self.walks.as_mut().and_then(|walks| walks.work(self.now, self.issue_cost, then));
        debug_assert!(issued.is_none(), "issuing costs time");
    }

    fn new_issuer(&mut self, tag: usize) {
        if tag >= self.issuers.len() {
            self.issuers.resize_with(tag + 1, Issuer::default);
        }
        self.issuers[tag].generation = self.issuers[tag].generation.wrapping_add(1);
        self.issuers[tag].busy = false;
    }

    fn next_in_turn(&mut self, tag: u32, generation: u32) {
        let issuer = &mut self.issuers[tag as usize];
        if issuer.generation != generation {
            return;
        }
        issuer.busy = false;
        if let Some(op) = issuer.waiting.pop_front() {
            self.issue_in_turn(op);
        }
    }

    #[inline]
    fn start(&mut self, op: &Operation) {
        self.observer.operation(self.now, op);
        self.ledger.start();
        let leaf = op.leaf;
        self.devices[leaf as usize].handle_op(self.now, *op);
        self.schedule(leaf);
    }

    #[inline]
    fn compute(&mut self, id: OpId, read_bytes: u64) {
        let Some(walks) = &mut self.walks else { return self.array.handle_op_done(self.now, id, Ok(())) };
        if let Some(then) = walks.compute(self.now, read_bytes, Then::Computed(id)) {
            self.follow(then);
        }
    }

    #[inline]
    fn poll_device(&mut self, leaf: u32) {
        // One completion a turn: what follows from it at this instant may change what the device does next.
        if let Some(done) = self.devices[leaf as usize].poll_done(self.now) {
            self.observer.completion(self.now, done.id);
            self.ledger.complete();
            if self.walks.is_some() {
                self.come_back(leaf, done.id);
            } else {
                self.array.handle_op_done(self.now, done.id, Ok(()));
            }
        }
        self.schedule(leaf);
    }

    /// An operation goes back from its member to the array.
    fn come_back(&mut self, leaf: u32, id: OpId) {
        let (Some(walks), Some((kind, sectors))) = (&mut self.walks, self.array.moves(id)) else { return };
        let leg = walks.paths.member_up(leaf, kind);
        if let Some(then) = walks.walk(self.now, leg, sectors * self.sector_bytes, Then::Completed(id, Ok(()))) {
            self.follow(then);
        }
    }

    #[inline]
    fn schedule(&mut self, leaf: u32) {
        let at = self.devices[leaf as usize].poll_timeout().unwrap_or(Instant::MAX);
        self.timers.set(leaf, at);
    }

    fn follow(&mut self, then: Then) {
        match then {
            Then::Enter(request) => self.enter(request),
            Then::Answer(tag, ok) => self.answer(tag, ok),
            Then::Arrived(tag, sectors) => self.arrived(tag, sectors),
            Then::Leave(tag) => self.leave(tag, true),
            Then::Start(op) => self.start(&op),
            Then::Next(tag, generation) => self.next_in_turn(tag, generation),
            Then::Worked(who) => {
                self.load.handle_work_done(self.now, who);
                self.answered = true;
            }
            Then::Computed(id) => self.array.handle_op_done(self.now, id, Ok(())),
            Then::Completed(id, result) => self.array.handle_op_done(self.now, id, result),
        }
    }

    fn result(self, interrupted: bool) -> SimResult {
        let layout = self.array.layout();
        let (sector_bytes, user_sectors) = (layout.sector_bytes(), layout.user_sectors());
        let station = |s: &Station| StationResult {
            name: s.name.clone(),
            visits: s.visits,
            busy_ns: s.busy_ns(self.now),
            wait_ns: s.wait_ns,
            servers: s.servers(),
        };
        SimResult {
            members: self
                .devices
                .iter()
                .enumerate()
                .map(|(leaf, d)| MemberResult { leaf: leaf as u32, totals: *d.totals(), flash: d.flash() })
                .collect(),
            stations: self.walks.iter().flat_map(Walks::stations).map(station).collect(),
            hold: self.load.hold(),
            backlog: self.load.backlog(),
            files: self.load.files().cloned(),
            replayed: self.load.replayed(),
            streams: self.load.streams(),
            recorder: self.load.recorder().clone(),
            sector_bytes,
            user_bytes: user_sectors * sector_bytes as u64,
            events: self.handled,
            interrupted,
        }
    }
}
