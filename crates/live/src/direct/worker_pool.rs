//! The workers of a run: set up, started together, watched over, and their records put together.
//!
//! Invariants:
//! - No worker begins before all are ready, and all read the same clock.
//! - If one cannot be set up, none runs, and its error is that of the run.

use super::config::{DirectConfig, Interface};
use super::deal::{Share, TargetPart};
use super::most_in_flight;
use super::read_back;
use super::result::{DirectFacts, DirectResult, RequestCounts};
use super::shared::Shared;
use super::span::Sectors;
use super::threads::{Threads, MOST_THREADS};
use super::transport::Transport;
use super::worker::{IoPath, LoopOptions, Outcome, Worker, WorkerVolume};
use crate::begin;
use crate::config::{fraction, OnProgress, RunProgress, RunStage, PULSE};
use crate::content::{not_compared, ContentCheck, ContentReport, Stamper, Verify, Writers};
use crate::error::LiveError;
use crate::io::{Clock, Ring};
use crate::memory::{available_bytes, Pool, Use};
use crate::result::{Check, MemberCounts};
use crate::run::writes;
use crate::target::{Store, Target};
use crate::usage::{Accounting, Devices};
use raidlab_load::{Backlog, Generator, Load, Recorder, SizeSpec};
use raidlab_types::number::{u32_from, usize_from};
use raidlab_types::{Duration, Instant, Seed};
use rustix::thread::{sched_setaffinity, CpuSet};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{Builder, ScopedJoinHandle};

type Handle<'scope> = ScopedJoinHandle<'scope, Option<Outcome>>;
/// Whether a worker could be set up.
type Ready = Result<(), LiveError>;

/// Name of the warning that there is no ring.
const THREADS: &str = "threads_instead_of_io_uring";

/// Beyond this share of their time spent waiting for a processor, workers ask for less than they would. A worker that
/// never sleeps on an idle machine waits some tenths of a per cent.
const MOST_WAITED_PERCENT: u64 = 10;

/// Most submitted and taken in one turn where the cell does not say. All that has come back at once would be answered at
/// once: requests then move in convoys between a busy device and an idle one, a tenth slower at a depth of 32.
const FEW_AT_ONCE: usize = 4;
/// The same where nothing leaves the process: what is done is told before much more is begun.
const MANY_AT_ONCE: usize = 128;

/// What workers are made from.
pub(super) struct WorkerPool<'a> {
    config: &'a DirectConfig,
    targets: &'a [Target],
    /// The part of each target that is its volume.
    parts: &'a [Sectors],
    sector_bytes: u32,
    shares: Vec<Share>,
    stamper: Stamper,
    shared: Shared,
    warnings: Mutex<Vec<Check>>,
}

impl<'a> WorkerPool<'a> {
    pub(super) fn new(
        config: &'a DirectConfig,
        targets: &'a [Target],
        parts: &'a [Sectors],
        sector_bytes: u32,
        shares: Vec<Share>,
    ) -> WorkerPool<'a> {
        let shared = Shared::new(shares.len(), &config.limits(), std::thread::current());
        let stamper = Stamper::of_this_run(config.seed, sector_bytes);
        WorkerPool { config, targets, parts, sector_bytes, shares, stamper, shared, warnings: Mutex::new(Vec::new()) }
    }

    /// Runs the loads, one a worker, to their end. `stopped`: that was already asked for.
    pub(super) fn run(
        self,
        loads: Vec<Load>,
        stopped: bool,
        observer: OnProgress<'_>,
    ) -> Result<DirectResult, LiveError> {
        if stopped {
            self.shared.stop();
        }
        let volumes: Vec<Vec<WorkerVolume<'_>>> = self.shares.iter().map(|share| self.volumes(share)).collect();
        let (workers, clock) = (loads.len(), OnceLock::new());
        let mut began_unix_ns = 0;
        let mut devices = Devices::below(self.targets.iter().map(|t| &t.facts).enumerate());
        let run = std::thread::scope(|scope| -> Result<_, LiveError> {
            let (ready, all_ready) = channel();
            let mut handles = Vec::with_capacity(workers);
            for (number, (load, volumes)) in loads.into_iter().zip(&volumes).enumerate() {
                let (pool, of_worker, clock) = (&self, ready.clone(), &clock);
                let work = move || pool.work(number, load, volumes, of_worker, clock);
                match Builder::new().name(format!("raidlab-{number}")).spawn_scoped(scope, work) {
                    Ok(handle) => handles.push(handle),
                    Err(e) => drop(ready.send(Err(LiveError::io("workers", "threads", "starting one", &e)))),
                }
            }
            drop(ready);
            let set_up = all_ready.iter().take(workers).collect::<Result<Vec<()>, LiveError>>();
            // A worker that panicked has said nothing; joining it passes that on.
            let is_complete = set_up.as_ref().is_ok_and(|all| all.len() == workers);
            let called_off = is_complete && begin::wait(self.config.begin_at_unix_ns, observer).is_break();
            if called_off {
                self.shared.stop();
            }
            let started = is_complete.then(Clock::start);
            began_unix_ns = started.map_or_else(begin::unix_ns, begin::began_unix_ns_of);
            let since = |started| begin::clock_since(self.config.begin_at_unix_ns, started, began_unix_ns);
            let clock = *clock.get_or_init(|| started.map(since));
            let interrupted = clock.is_some_and(|clock| self.watch(clock, &mut devices, observer)) || called_off;
            let join = |handle: Handle<'_>| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let outcomes: Vec<Outcome> = handles.into_iter().filter_map(join).collect();
            set_up.map(|_| (outcomes, interrupted))
        });
        let (mut outcomes, interrupted) = run?;
        if !interrupted && !stopped && outcomes.iter().all(|o| o.failure.is_none()) {
            self.read_back(&mut outcomes);
        }
        Ok(self.result(outcomes, &devices, began_unix_ns, interrupted || stopped))
    }

    /// Compares a sample of what was written, now that nobody waits for it.
    fn read_back(&self, outcomes: &mut [Outcome]) {
        let took = outcomes.iter().map(|o| o.load.recorder().elapsed()).max().unwrap_or(Duration::ZERO);
        let budget = Duration::from_ns(self.config.verify.budget(took).as_ns() / outcomes.len().max(1) as u64);
        for check in outcomes.iter_mut().filter_map(|o| o.check.as_mut()) {
            read_back::read_back(check, self.targets, self.sector_bytes, self.config.seed, budget);
        }
    }

    /// The life of a worker: it says whether it is set up, and waits for the clock that all go by, or for none.
    fn work(
        &self,
        number: usize,
        load: Load,
        volumes: &[WorkerVolume<'_>],
        ready: Sender<Ready>,
        clock: &OnceLock<Option<Clock>>,
    ) -> Option<Outcome> {
        let (worker, is_ready) = match self.set_up(number, load, volumes) {
            Ok(worker) => (Some(worker), Ok(())),
            Err(error) => (None, Err(error)),
        };
        // Whoever listens does so until all have spoken, or one could not.
        let _ = ready.send(is_ready);
        drop(ready);
        let outcome = worker.zip(*clock.wait()).map(|(worker, clock)| worker.drive(clock));
        self.shared.worker_ended();
        outcome
    }

    /// The volumes of a worker's load, in order.
    fn volumes(&self, share: &Share) -> Vec<WorkerVolume<'a>> {
        let volume = |(i, part): (usize, &TargetPart)| {
            let target = &self.targets[part.target];
            let sectors = part.of_span(self.parts[part.target], &self.config.workload, self.sector_bytes);
            let backend = match &target.store {
                // Emulated ones are refused before anything is opened.
                Store::Null | Store::Emulated(..) => IoPath::Null,
                Store::Memory(mapping) => IoPath::Memory(mapping),
                Store::Fd(file) => IoPath::File(u32_from(i), file.as_fd()),
            };
            WorkerVolume {
                target: u32_from(part.target),
                first_lba: sectors.first,
                sectors: sectors.count,
                backend,
                known: target.keeps_content().then(|| target.known(self.sector_bytes)),
                key: target.key.clone(),
                name: target.name(),
            }
        };
        share.parts.iter().enumerate().map(volume).collect()
    }

    /// A worker with all it needs. To be called in the thread that will drive it: a ring belongs to its thread.
    fn set_up<'w>(
        &'w self,
        number: usize,
        load: Load,
        volumes: &'w [WorkerVolume<'w>],
    ) -> Result<Worker<'w>, LiveError> {
        let config = self.config;
        if !config.cpus.is_empty() {
            bind(config.cpus[number % config.cpus.len()])?;
        }
        let transport = self.transport(volumes, load.depth())?;
        // Some is left for the rest of the system: running it out of memory would cost more than this run.
        let most = available_bytes().map_or(u64::MAX, |bytes| bytes / 10 * 9) / self.shares.len() as u64;
        let pool = Pool::new(Seed::new(config.seed).named("content").child(number as u64), most)
            .of_sectors(self.sector_bytes, config.compressible_percent);
        let writers = if self.shares.len() > 1 && writes(&config.workload) { Writers::Several } else { Writers::Alone };
        let keeps = volumes.iter().any(|volume| volume.known.is_some());
        let check = ContentCheck::new(self.stamper, config.verify, writers, load.depth()).filter(|_| keeps);
        let options = LoopOptions {
            batch: config.batch.map_or(if transport.is_some() { FEW_AT_ONCE } else { MANY_AT_ONCE }, |n| n as usize),
            busy: config.busy,
            sector_bytes: self.sector_bytes,
            number: u32_from(number),
            shares_window: self.shares.len() > 1,
        };
        let mut worker = Worker::new(load, volumes, transport, (pool, self.stamper, check), options, &self.shared);
        if let (SizeSpec::Fixed { bytes }, Some(_)) = (&config.workload.size, most_in_flight(&config.load)) {
            let mut uses = Vec::new();
            if config.workload.read_fraction > 0.0 || config.workload.task.is_some() {
                uses.push(Use::Any);
            }
            if writes(&config.workload) {
                uses.push(Use::Write);
            }
            worker.prepare(usize_from(*bytes), &uses)?;
        }
        Ok(worker)
    }

    /// The way to files and devices; none where there are none.
    fn transport(&self, volumes: &[WorkerVolume<'_>], depth: u32) -> Result<Option<Transport>, LiveError> {
        let fd_of =
            |volume: &WorkerVolume<'_>| if let IoPath::File(_, fd) = volume.backend { fd.as_raw_fd() } else { -1 };
        let fds: Vec<RawFd> = volumes.iter().map(fd_of).collect();
        if fds.iter().all(|&fd| fd < 0) {
            return Ok(None);
        }
        let why = match self.config.interface {
            Interface::Threads => "threads were asked for".to_string(),
            interface => match Ring::new(&fds, self.config.poll_completions) {
                Ok(mut ring) => {
                    if self.config.poll_completions {
                        self.try_polling(&mut ring, volumes)?;
                    }
                    return Ok(Some(Transport::ring(ring)));
                }
                Err(error) if interface == Interface::IoUring => return Err(error),
                Err(error) => error.message(),
            },
        };
        let most = (MOST_THREADS / u32_from(self.shares.len())).max(1);
        let count = depth.min(most);
        tracing::debug!(why, threads = count, "falling back to threads");
        let threads = Threads::new(count).map_err(|e| LiveError::io("interface", "threads", "starting them", &e))?;
        let evidence = format!("{why}; {count} threads serve a depth of {depth}, at a higher cost a request");
        let remedy = "allow io_uring (kernel.io_uring_disabled, the container's seccomp profile)";
        self.warn(Check::warning(THREADS, evidence, remedy));
        Ok(Some(Transport::threads(threads)))
    }

    /// Reads a sector of each file and device by polling, so that one that cannot is found before the load begins.
    fn try_polling(&self, ring: &mut Ring, volumes: &[WorkerVolume<'_>]) -> Result<(), LiveError> {
        for volume in volumes {
            let IoPath::File(index, _) = volume.backend else { continue };
            let offset = volume.first_lba * u64::from(self.sector_bytes);
            ring.try_read(index, offset, self.sector_bytes).map_err(|e| match e.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::EINVAL) => LiveError::Unsupported {
                    key: "poll_completions".into(),
                    message: format!(
                        "{} cannot be asked for completions: that needs O_DIRECT and a driver with queues for it, such as \
                         NVMe with nvme.poll_queues set",
                        volume.name
                    ),
                },
                _ => LiveError::io(&volume.key, &volume.name, "reading its first sector", &e),
            })?;
        }
        Ok(())
    }

    fn warn(&self, warning: Check) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        // Of several workers with the same to say, one does.
        if warnings.iter().all(|other| other.name != warning.name) {
            warnings.push(warning);
        }
    }

    /// Tells the observer how far it is until all workers have ended, and reads the devices' counters when their windows
    /// open and close. True if the observer stopped it.
    fn watch(&self, clock: Clock, devices: &mut Devices, observer: OnProgress<'_>) -> bool {
        let (mut interrupted, mut next) = (false, Instant::ZERO + PULSE);
        let (mut opened, mut closed) = (false, false);
        loop {
            let over = self.shared.is_over();
            if !opened && self.shared.has_opened() {
                opened = true;
                devices.window_opened();
            }
            if !closed && (over || self.shared.has_closed()) {
                closed = true;
                devices.window_closed();
            }
            let now = clock.now();
            if over {
                return interrupted;
            }
            if now >= next {
                next = now + PULSE;
                let requests = self.shared.completed();
                let fraction = fraction(&self.config.limits(), now, requests);
                let elapsed = now.since(Instant::ZERO);
                let progress = RunProgress { stage: RunStage::Running, fraction, requests, elapsed };
                if observer(progress).is_break() && !interrupted {
                    self.shared.stop();
                    interrupted = true;
                }
            }
            std::thread::park_timeout(std::time::Duration::from_nanos(next.since(clock.now()).as_ns()));
        }
    }

    fn result(
        self,
        mut outcomes: Vec<Outcome>,
        devices: &Devices,
        began_unix_ns: u64,
        interrupted: bool,
    ) -> DirectResult {
        let config = self.config;
        let mut checks = self.warnings.into_inner().unwrap_or_else(PoisonError::into_inner);
        let uses_files = self.targets.iter().any(|t| matches!(t.store, Store::Fd(_)));
        let threads = checks.iter().any(|w| w.name == THREADS);
        let all_registered = outcomes.iter().all(|o| o.all_registered);
        if uses_files && !threads && !all_registered {
            let evidence = "the limit on locked memory refused them: the kernel looks every request's memory up";
            checks.push(Check::warning("buffers_not_registered", evidence.into(), "raise the limit (ulimit -l)"));
        }
        let interface = match (uses_files, threads) {
            (false, _) => "none",
            (true, true) => "threads",
            (true, false) => "io_uring",
        };
        let depth = |share: &Share| most_in_flight(&share.load);
        let processor = |i: usize| config.cpus[i % config.cpus.len()];
        let engine = DirectFacts {
            interface,
            workers: config.workers,
            cpus: if config.cpus.is_empty() { Vec::new() } else { (0..self.shares.len()).map(processor).collect() },
            depths: self.shares.iter().filter_map(depth).collect(),
            registered_buffers: all_registered,
            sector_bytes: self.sector_bytes,
            began_unix_ns,
            clock: outcomes.first().map_or("", |o| o.clock),
            batch: config.batch,
            busy: config.busy,
            poll_completions: config.poll_completions,
            buffered: config.buffered,
            compressible_percent: config.compressible_percent,
        };
        let members = members(self.targets.len(), &outcomes);
        let mut accounting =
            Accounting { devices: devices.traffic(&members), machine: devices.machine(), ..Accounting::default() };
        let mut requests = RequestCounts::default();
        for outcome in &outcomes {
            accounting.total.add(&outcome.used);
            accounting.workers.push(outcome.used);
            requests.add(&outcome.counts);
        }
        let content = content(&outcomes);
        let open_ns = outcomes.iter().map(|o| o.load.recorder().elapsed().as_ns()).sum();
        checks.extend(kept_from_processor(accounting.total.waited_ns, open_ns));
        checks.extend(content.as_ref().map(|report| report.check(&|target| self.targets[target as usize].name())));
        if config.verify == Verify::Off && self.targets.iter().any(Target::keeps_content) {
            checks.push(not_compared("it was switched off", "Leave --verify off away."));
        }
        let backlog = outcomes.iter().fold(Backlog::default(), |sum, o| sum.merge(&o.load.backlog()));
        DirectResult {
            backlog,
            hold: outcomes.first().and_then(|o| o.load.hold()),
            stopped_by: outcomes.iter_mut().find_map(|o| o.failure.take()),
            recorder: together(&outcomes),
            members,
            targets: self.targets.iter().map(|t| t.facts.clone()).collect(),
            engine,
            requests,
            accounting,
            checks,
            content,
            interrupted,
        }
    }
}

/// What all workers compared; nothing if none did.
fn content(outcomes: &[Outcome]) -> Option<ContentReport> {
    let mut reports = outcomes.iter().filter_map(|o| o.check.as_ref().map(ContentCheck::report));
    let mut all = reports.next()?.clone();
    reports.for_each(|report| all.merge(report));
    Some(all)
}

/// The warning that workers waited long for a processor; `open_ns` is the time of all their windows.
fn kept_from_processor(waited_ns: u64, open_ns: u64) -> Option<Check> {
    let percent = 100 * waited_ns / open_ns.max(1);
    (percent >= MOST_WAITED_PERCENT).then(|| {
        let evidence = format!("threads that offer requests waited {percent} % of the time for a processor others had");
        let remedy = "Stop what else runs on this machine, or give raidlab processors of its own.";
        Check::warning("kept_from_processor", evidence, remedy)
    })
}

/// What each target did, by all workers.
fn members(targets: usize, outcomes: &[Outcome]) -> Vec<MemberCounts> {
    let count = |leaf| MemberCounts { leaf, ..MemberCounts::default() };
    let mut members: Vec<MemberCounts> = (0..u32_from(targets)).map(count).collect();
    for part in outcomes.iter().flat_map(|o| &o.members) {
        members[part.leaf as usize].merge(part);
    }
    members
}

/// The records of all workers as one. Their windows opened together; that which closed last stands for all.
fn together(outcomes: &[Outcome]) -> Recorder {
    let recorders: Vec<&Recorder> = outcomes.iter().map(|o| o.load.recorder()).collect();
    let last = (0..recorders.len()).max_by_key(|&i| (recorders[i].opened().is_some(), recorders[i].elapsed()));
    let last = last.unwrap_or(0);
    let mut all = recorders[last].clone();
    recorders.iter().enumerate().filter(|(i, _)| *i != last).for_each(|(_, other)| all.merge(other));
    all
}

/// Binds this thread to a processor.
fn bind(cpu: u32) -> Result<(), LiveError> {
    let fail = |message: String| LiveError::bad("cpus", message);
    if cpu as usize >= CpuSet::MAX_CPU {
        return Err(fail(format!("{cpu}: processors are numbered from 0 to {}", CpuSet::MAX_CPU - 1)));
    }
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    sched_setaffinity(None, &set).map_err(|e| fail(format!("{cpu}: {}", crate::error::plain(&e.into()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_wait_for_a_processor_are_told_of() {
        assert_eq!(kept_from_processor(99, 1000), None);
        assert_eq!(kept_from_processor(0, 0), None);
        assert!(kept_from_processor(300, 1000).unwrap().evidence.contains(" 30 %"));
    }
}
