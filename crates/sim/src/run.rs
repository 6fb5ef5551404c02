//! The loop: the earliest event, then everything that follows from it at the same time.
//!
//! A request passes the host (if it costs anything), the array, per member operation the host again, the device, and
//! back. Order within an instant: first what the array wants started, then what it reports, then new requests.

use crate::config::SimConfig;
use crate::error::SimError;
use crate::events::{Jobs, Timers};
use crate::result::{MemberResult, SimResult, StationResult};
use crate::station::Station;
use raidlab_array::{Array, ArrayOp, Event, Layout, MemberState};
use raidlab_device::{Device, DeviceSpec};
use raidlab_load::{Load, Volume};
use raidlab_types::{Duration, Instant, OpError, OpId, Operation, Request, Seed};
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

/// Work of the host, by what follows when it is done.
#[derive(Debug, Clone, Copy)]
enum Job {
    Free(u32),
    Admit(Request),
    Issue(Operation),
    /// The request of this tag may issue its next operation.
    Next(u32, u32),
    Computed(OpId),
    Completed(OpId, Result<(), OpError>),
}

#[derive(Debug, Clone, Copy, Default)]
struct Costs {
    request: Duration,
    access: Duration,
    issue: Duration,
    completion: Duration,
    parity_ns_per_byte: f64,
}

/// Operations of one request that wait for the one before them to be issued.
#[derive(Debug, Default)]
struct Issuer {
    /// Requests that had this tag so far; what an earlier one's host work leaves behind is not this one's business.
    generation: u32,
    busy: bool,
    waiting: VecDeque<Operation>,
}

struct Sim<'o, O: Observer> {
    now: Instant,
    array: Array,
    load: Load,
    devices: Vec<Device>,
    timers: Timers,
    in_service: Jobs,
    cpu: Option<Station>,
    costs: Costs,
    jobs: Vec<Job>,
    free_job: u32,
    /// By tag of the request.
    issuers: Vec<Issuer>,
    handled: u64,
    measuring: bool,
    observer: &'o mut O,
}

/// Events between two calls of [`Observer::progress`].
const PROGRESS_EVERY: u64 = 1 << 16;
const NO_JOB: u32 = u32::MAX;

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
    let mut sim = Sim::new(config, observer)?;
    let interrupted = sim.run();
    Ok(sim.result(interrupted))
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

impl<'o, O: Observer> Sim<'o, O> {
    fn new(config: &SimConfig, observer: &'o mut O) -> Result<Self, SimError> {
        config.tree.validate().map_err(|e| SimError::new(e.place, e.message))?;
        let (devices, sector_bytes) = devices(config, config.tree.leaves())?;
        let sizes: Vec<u64> = devices.iter().map(Device::capacity_sectors).collect();
        let layout =
            Layout::new(&config.tree, &sizes, sector_bytes).map_err(|e| SimError::new("tree", e.to_string()))?;
        let volumes: Vec<Volume> =
            layout.volumes().iter().map(|v| Volume { capacity_sectors: v.capacity_sectors }).collect();
        let seed = Seed::new(config.seed).named("load");
        let load = Load::new(&config.load, &config.workload, &config.limits, &volumes, sector_bytes, seed)?;
        let mut array = Array::new(layout, config.policy);
        for &leaf in &config.missing {
            if leaf as usize >= devices.len() {
                let message = format!("member {leaf} of {}; accepted: 0 to {}", devices.len(), devices.len() - 1);
                return Err(SimError::new("missing", message));
            }
            array.set_member_state(leaf, MemberState::Missing);
        }
        let host = &config.host;
        if host.cpus == 0 {
            return Err(SimError::new("host.cpus", "0; accepted: at least 1"));
        }
        let us = |key: &str, value: f64| {
            if value.is_finite() && value >= 0.0 {
                return Ok(Duration::from_s_f64(value / 1e6));
            }
            Err(SimError::new(format!("host.{key}"), format!("{value}; accepted: a time of at least 0")))
        };
        us("parity_us_per_kib", host.parity_us_per_kib)?;
        let costs = Costs {
            request: us("request_us", host.request_us)?,
            access: us("access_us", host.access_us)?,
            issue: us("issue_us", host.issue_us)?,
            completion: us("completion_us", host.completion_us)?,
            parity_ns_per_byte: host.parity_us_per_kib * 1000.0 / 1024.0,
        };
        Ok(Sim {
            now: Instant::ZERO,
            array,
            load,
            timers: Timers::new(devices.len()),
            devices,
            in_service: Jobs::default(),
            cpu: (!host.is_free()).then(|| Station::new("host cpu", host.cpus)),
            costs,
            jobs: Vec::new(),
            free_job: NO_JOB,
            issuers: Vec::new(),
            handled: 0,
            measuring: false,
            observer,
        })
    }

    /// Runs to the end of the measurement; true if the observer stopped it.
    fn run(&mut self) -> bool {
        self.settle(true);
        // Without a warm-up the window is open by now, and nothing has completed that would have to be forgotten.
        self.measuring = self.load.recorder().is_measuring();
        while !self.load.is_finished() {
            let (device, job) = (self.timers.first(), self.in_service.next_at());
            let arrival = self.load.poll_timeout().unwrap_or(Instant::MAX);
            // Completions go before arrivals at the same time, and those of devices before those of stations.
            let next = device.0.min(job).min(arrival);
            if next == Instant::MAX {
                break;
            }
            self.now = next;
            if device.0 == next {
                self.poll_device(device.1);
            } else if job == next {
                self.finish_service();
            }
            // A load has something to say when its time has come, or after one of its requests has ended.
            self.settle(arrival == next);
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

    fn finish_service(&mut self) {
        let Some(job) = self.in_service.pop() else { return };
        if let Some((next, done)) = self.cpu.as_mut().and_then(|cpu| cpu.finish(self.now)) {
            self.in_service.push(done, next);
        }
        self.finish_job(job);
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
            while let Some(event) = self.array.poll_event() {
                if let Event::RequestDone { tag, result } = event {
                    self.load.handle_done(self.now, tag, result.is_ok());
                    ask_load = true;
                }
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
            if !admitted {
                return;
            }
        }
    }

    fn begin_measuring(&mut self) {
        self.measuring = true;
        self.devices.iter_mut().for_each(Device::reset_totals);
        if let Some(cpu) = &mut self.cpu {
            cpu.reset_totals();
        }
    }

    #[inline]
    fn admit(&mut self, request: Request) {
        if self.cpu.is_some() {
            return self.work(Job::Admit(request), self.costs.request);
        }
        self.enter(request);
    }

    #[inline]
    fn enter(&mut self, request: Request) {
        self.observer.request(self.now, &request);
        if self.costs.issue > Duration::ZERO {
            self.new_issuer(request.tag as usize);
        }
        self.array.handle_request(self.now, request);
    }

    #[inline]
    fn issue(&mut self, op: &Operation) {
        if self.costs.issue > Duration::ZERO {
            return self.issue_in_turn(*op);
        }
        if self.cpu.is_some() {
            return self.work(Job::Issue(*op), self.costs.access);
        }
        self.start(op);
    }

    /// Issues the operation now if its request is not busy issuing another, else after those.
    fn issue_in_turn(&mut self, op: Operation) {
        let tag = op.tag as usize;
        if self.issuers[tag].busy {
            self.issuers[tag].waiting.push_back(op);
            return;
        }
        self.issuers[tag].busy = true;
        self.work(Job::Issue(op), self.costs.access);
        self.work(Job::Next(tag as u32, self.issuers[tag].generation), self.costs.issue);
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
        let leaf = op.leaf;
        self.devices[leaf as usize].handle_op(self.now, *op);
        self.schedule(leaf);
    }

    #[inline]
    fn compute(&mut self, id: OpId, read_bytes: u64) {
        if self.cpu.is_some() {
            let cost = Duration::from_ns((read_bytes as f64 * self.costs.parity_ns_per_byte) as u64);
            return self.work(Job::Computed(id), cost);
        }
        self.array.handle_op_done(self.now, id, Ok(()));
    }

    #[inline]
    fn poll_device(&mut self, leaf: u32) {
        // One completion a turn: what follows from it at this instant may change what the device does next.
        if let Some(done) = self.devices[leaf as usize].poll_done(self.now) {
            self.observer.completion(self.now, done.id);
            if self.cpu.is_some() {
                self.work(Job::Completed(done.id, Ok(())), self.costs.completion);
            } else {
                self.array.handle_op_done(self.now, done.id, Ok(()));
            }
        }
        self.schedule(leaf);
    }

    #[inline]
    fn schedule(&mut self, leaf: u32) {
        let at = self.devices[leaf as usize].poll_timeout().unwrap_or(Instant::MAX);
        self.timers.set(leaf, at);
    }

    /// Gives the host a piece of work; what costs nothing is done at once.
    fn work(&mut self, job: Job, cost: Duration) {
        if cost == Duration::ZERO {
            return self.follow(job);
        }
        let id = match self.free_job {
            NO_JOB => {
                self.jobs.push(job);
                self.jobs.len() as u32 - 1
            }
            id => {
                if let Job::Free(next) = self.jobs[id as usize] {
                    self.free_job = next;
                }
                self.jobs[id as usize] = job;
                id
            }
        };
        if let Some(done) = self.cpu.as_mut().and_then(|cpu| cpu.arrive(self.now, id, cost)) {
            self.in_service.push(done, id);
        }
    }

    fn finish_job(&mut self, id: u32) {
        let job = std::mem::replace(&mut self.jobs[id as usize], Job::Free(self.free_job));
        self.free_job = id;
        self.follow(job);
    }

    fn follow(&mut self, job: Job) {
        match job {
            Job::Free(_) => unreachable!("a free job cannot finish"),
            Job::Admit(request) => self.enter(request),
            Job::Issue(op) => self.start(&op),
            Job::Next(tag, generation) => self.next_in_turn(tag, generation),
            Job::Computed(id) => self.array.handle_op_done(self.now, id, Ok(())),
            Job::Completed(id, result) => self.array.handle_op_done(self.now, id, result),
        }
    }

    fn result(self, interrupted: bool) -> SimResult {
        let layout = self.array.layout();
        let (sector_bytes, user_sectors) = (layout.sector_bytes(), layout.user_sectors());
        let station =
            |s: &Station| StationResult { name: s.name, visits: s.visits, busy_ns: s.busy_ns, servers: s.servers };
        SimResult {
            members: self
                .devices
                .iter()
                .enumerate()
                .map(|(leaf, d)| MemberResult { leaf: leaf as u32, totals: *d.totals() })
                .collect(),
            stations: self.cpu.iter().map(station).collect(),
            hold: self.load.hold(),
            backlog: self.load.backlog(),
            recorder: self.load.recorder().clone(),
            sector_bytes,
            user_bytes: user_sectors * sector_bytes as u64,
            events: self.handled,
            interrupted,
        }
    }
}
