//! The workers of a run: set up, started together, watched over, and their records put together.
//!
//! Invariants:
//! - No worker begins before all are ready, and all read the same clock.
//! - If one cannot be set up, none runs, and its error is that of the run.

use super::config::{DirectConfig, Interface};
use super::deal::{Part, Share};
use super::most_in_flight;
use super::read_back;
use super::result::{DirectFacts, DirectResult, RequestCounts, Warning};
use super::shared::Shared;
use super::span::Sectors;
use super::start::Start;
use super::threads::{Threads, MOST_THREADS};
use super::transport::Transport;
use super::worker::{Manner, Outcome, Reach, Site, Worker};
use crate::config::{fraction, Progress, Stage, PULSE};
use crate::content::{not_compared, ContentCheck, ContentReport, Stamper, Verify, Writers};
use crate::error::LiveError;
use crate::io::{Clock, Ring};
use crate::memory::{available_bytes, Pool, Use};
use crate::result::MemberCounts;
use crate::run::writes;
use crate::target::{Store, Target};
use crate::usage::{Accounting, Devices};
use raidlab_load::{Backlog, Generator, Load, Recorder, SizeSpec};
use raidlab_types::number::{u32_from, usize_from};
use raidlab_types::{Duration, Instant, Seed};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, ScopedJoinHandle};

type Handle<'scope> = ScopedJoinHandle<'scope, Option<Outcome>>;

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
pub(super) struct Crew<'a> {
    config: &'a DirectConfig,
    targets: &'a [Target],
    /// The part of each target that is its volume.
    parts: &'a [Sectors],
    sector_bytes: u32,
    shares: Vec<Share>,
    stamper: Stamper,
    shared: Shared,
    warnings: Mutex<Vec<Warning>>,
}

impl<'a> Crew<'a> {
    pub(super) fn new(
        config: &'a DirectConfig,
        targets: &'a [Target],
        parts: &'a [Sectors],
        sector_bytes: u32,
        shares: Vec<Share>,
    ) -> Crew<'a> {
        let shared = Shared::new(shares.len(), &config.limits, std::thread::current());
        let stamper = Stamper::of_this_run(config.seed, sector_bytes);
        Crew { config, targets, parts, sector_bytes, shares, stamper, shared, warnings: Mutex::new(Vec::new()) }
    }

    /// Runs the loads, one a worker, to their end. `stopped`: that was already asked for.
    pub(super) fn run(
        self,
        loads: Vec<Load>,
        stopped: bool,
        observer: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<DirectResult, LiveError> {
        if stopped {
            self.shared.stop();
        }
        let sites: Vec<Vec<Site<'_>>> = self.shares.iter().map(|share| self.sites(share)).collect();
        let start = Start::new(loads.len());
        let mut devices = Devices::below(self.targets.iter().map(|t| &t.facts).enumerate());
        let run = std::thread::scope(|scope| -> Result<_, LiveError> {
            let mut handles = Vec::with_capacity(loads.len());
            for (number, (load, sites)) in loads.into_iter().zip(&sites).enumerate() {
                let (crew, start) = (&self, &start);
                let work = move || crew.work(number, load, sites, start);
                match Builder::new().name(format!("raidlab-{number}")).spawn_scoped(scope, work) {
                    Ok(handle) => handles.push(handle),
                    Err(e) => start.cancel(LiveError::io("workers", "threads", "starting one", &e)),
                }
            }
            let clock = start.give_the_sign()?;
            let interrupted = self.watch(clock, &mut devices, observer);
            let join = |handle: Handle<'_>| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let outcomes: Vec<Outcome> = handles.into_iter().filter_map(join).collect();
            Ok((outcomes, interrupted))
        });
        let (mut outcomes, interrupted) = run?;
        if !interrupted && !stopped && outcomes.iter().all(|o| o.failure.is_none()) {
            self.read_back(&mut outcomes);
        }
        Ok(self.result(outcomes, &devices, interrupted || stopped))
    }

    /// Compares a sample of what was written, now that nobody waits for it.
    fn read_back(&self, outcomes: &mut [Outcome]) {
        let took = outcomes.iter().map(|o| o.load.recorder().elapsed()).max().unwrap_or(Duration::ZERO);
        let budget = Duration::from_ns(self.config.verify.budget(took).as_ns() / outcomes.len().max(1) as u64);
        for check in outcomes.iter_mut().filter_map(|o| o.check.as_mut()) {
            read_back::read_back(check, self.targets, self.sector_bytes, self.config.seed, budget);
        }
    }

    /// The life of a worker.
    fn work(&self, number: usize, load: Load, sites: &[Site<'_>], start: &Start) -> Option<Outcome> {
        let (worker, failed) = match self.set_up(number, load, sites) {
            Ok(worker) => (Some(worker), None),
            Err(error) => (None, Some(error)),
        };
        let clock = start.meet(failed);
        let outcome = worker.zip(clock).map(|(worker, clock)| worker.drive(clock));
        self.shared.worker_ended();
        outcome
    }

    fn sites(&self, share: &Share) -> Vec<Site<'a>> {
        let site = |(i, part): (usize, &Part)| {
            let target = &self.targets[part.target];
            let sectors = part.of_span(self.parts[part.target], &self.config.workload, self.sector_bytes);
            let reach = match &target.store {
                // Emulated ones are refused before anything is opened.
                Store::Null | Store::Emulated(..) => Reach::Null,
                Store::Memory(mapping) => Reach::Memory(mapping),
                Store::Fd(file) => Reach::File(u32_from(i), file.as_fd()),
            };
            let (target, key, name) = (u32_from(part.target), target.key.clone(), target.name());
            let known = (!matches!(reach, Reach::Null)).then(|| self.targets[part.target].known(self.sector_bytes));
            Site { target, first_lba: sectors.first, sectors: sectors.count, reach, known, key, name }
        };
        share.parts.iter().enumerate().map(site).collect()
    }

    /// A worker with all it needs. To be called in the thread that will drive it: a ring belongs to its thread.
    fn set_up<'w>(&'w self, number: usize, load: Load, sites: &'w [Site<'w>]) -> Result<Worker<'w>, LiveError> {
        let config = self.config;
        if !config.cpus.is_empty() {
            bind(config.cpus[number % config.cpus.len()])?;
        }
        let transport = self.transport(sites, load.depth())?;
        // Some is left for the rest of the system: running it out of memory would cost more than this run.
        let most = available_bytes().map_or(u64::MAX, |bytes| bytes / 10 * 9) / self.shares.len() as u64;
        let pool = Pool::new(Seed::new(config.seed).named("content").child(number as u64), most)
            .of_sectors(self.sector_bytes, config.compressible_percent);
        let writers = if self.shares.len() > 1 && writes(&config.workload) { Writers::Several } else { Writers::Alone };
        let keeps = sites.iter().any(|site| site.known.is_some());
        let check = ContentCheck::new(self.stamper, config.verify, writers, load.depth()).filter(|_| keeps);
        let manner = Manner {
            batch: config.batch.map_or(if transport.is_some() { FEW_AT_ONCE } else { MANY_AT_ONCE }, |n| n as usize),
            busy: config.busy,
            sector_bytes: self.sector_bytes,
            number: u32_from(number),
            shares_window: self.shares.len() > 1,
        };
        let mut worker = Worker::new(load, sites, transport, (pool, self.stamper, check), manner, &self.shared);
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
    fn transport(&self, sites: &[Site<'_>], depth: u32) -> Result<Option<Transport>, LiveError> {
        let fd_of = |site: &Site<'_>| if let Reach::File(_, fd) = site.reach { fd.as_raw_fd() } else { -1 };
        let fds: Vec<RawFd> = sites.iter().map(fd_of).collect();
        if fds.iter().all(|&fd| fd < 0) {
            return Ok(None);
        }
        let why = match self.config.interface {
            Interface::Threads => "threads were asked for".to_string(),
            interface => match Ring::new(&fds, self.config.poll_completions) {
                Ok(mut ring) => {
                    if self.config.poll_completions {
                        self.try_polling(&mut ring, sites)?;
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
        self.warn(Warning {
            name: THREADS,
            evidence: format!("{why}; {count} threads serve a depth of {depth}, at a higher cost a request"),
            mend: "allow io_uring (kernel.io_uring_disabled, the container's seccomp profile)",
        });
        Ok(Some(Transport::threads(threads)))
    }

    /// Reads a sector of each file and device by polling, so that one that cannot is found before the load begins.
    fn try_polling(&self, ring: &mut Ring, sites: &[Site<'_>]) -> Result<(), LiveError> {
        for site in sites {
            let Reach::File(index, _) = site.reach else { continue };
            let offset = site.first_lba * u64::from(self.sector_bytes);
            ring.try_read(index, offset, self.sector_bytes).map_err(|e| match e.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::EINVAL) => LiveError::Unsupported {
                    key: "poll_completions".into(),
                    message: format!(
                        "{} cannot be asked for completions: that needs O_DIRECT and a driver with queues for it, such as \
                         NVMe with nvme.poll_queues set",
                        site.name
                    ),
                },
                _ => LiveError::io(site.key.clone(), site.name.clone(), "reading its first sector", &e),
            })?;
        }
        Ok(())
    }

    fn warn(&self, warning: Warning) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        // Of several workers with the same to say, one does.
        if warnings.iter().all(|other| other.name != warning.name) {
            warnings.push(warning);
        }
    }

    /// Tells the observer how far it is until all workers have ended, and reads the devices' counters when their windows
    /// open and close. True if the observer stopped it.
    fn watch(
        &self,
        clock: Clock,
        devices: &mut Devices,
        observer: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> bool {
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
                let fraction = fraction(&self.config.limits, now, requests);
                let elapsed = now.since(Instant::ZERO);
                let progress = Progress { stage: Stage::Running, fraction, requests, elapsed };
                if observer(progress).is_break() && !interrupted {
                    self.shared.stop();
                    interrupted = true;
                }
            }
            std::thread::park_timeout(std::time::Duration::from_nanos(next.since(clock.now()).as_ns()));
        }
    }

    fn result(self, mut outcomes: Vec<Outcome>, devices: &Devices, interrupted: bool) -> DirectResult {
        let config = self.config;
        let mut warnings = self.warnings.into_inner().unwrap_or_else(PoisonError::into_inner);
        let uses_files = self.targets.iter().any(|t| matches!(t.store, Store::Fd(_)));
        let threads = warnings.iter().any(|w| w.name == THREADS);
        let all_registered = outcomes.iter().all(|o| o.all_registered);
        if uses_files && !threads && !all_registered {
            warnings.push(Warning {
                name: "buffers_not_registered",
                evidence: "the limit on locked memory refused them: the kernel looks every request's memory up".into(),
                mend: "raise the limit (ulimit -l)",
            });
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
            clock: outcomes.first().map_or("", |o| o.clock),
            batch: config.batch,
            busy: config.busy,
            poll_completions: config.poll_completions,
            buffered: config.buffered,
            compressible_percent: config.compressible_percent,
        };
        let members = members(self.targets.len(), &outcomes);
        let mut accounting = Accounting { devices: devices.traffic(&members), ..Accounting::default() };
        let mut requests = RequestCounts::default();
        for outcome in &outcomes {
            accounting.total.add(&outcome.used);
            accounting.workers.push(outcome.used);
            requests.add(&outcome.counts);
        }
        let content = content(&outcomes);
        let keeps = self.targets.iter().any(|t| !matches!(t.store, Store::Null | Store::Emulated(..)));
        let is_off = config.verify == Verify::Off && keeps;
        let switched_off = is_off.then(|| not_compared("it was switched off", "Leave --verify off away."));
        let name = |target: u32| self.targets[target as usize].name();
        let open_ns = outcomes.iter().map(|o| o.load.recorder().elapsed().as_ns()).sum();
        warnings.extend(kept_from_processor(accounting.total.waited_ns, open_ns));
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
            warnings,
            checks: content.iter().map(|report| report.check(&name)).chain(switched_off).collect(),
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
fn kept_from_processor(waited_ns: u64, open_ns: u64) -> Option<Warning> {
    let percent = 100 * waited_ns / open_ns.max(1);
    (percent >= MOST_WAITED_PERCENT).then(|| Warning {
        name: "kept_from_processor",
        evidence: format!("threads that offer requests waited {percent} % of the time for a processor others had"),
        mend: "Stop what else runs on this machine, or give raidlab processors of its own.",
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
    let fail = |message: String| Err(LiveError::bad("cpus", message));
    if cpu as usize >= libc::CPU_SETSIZE as usize {
        return fail(format!("{cpu}: processors are numbered from 0 to {}", libc::CPU_SETSIZE - 1));
    }
    // SAFETY: all zeroes is an empty set; the index was checked; the call reads the set.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    match result {
        0 => Ok(()),
        _ => fail(format!("{cpu}: {}", crate::error::plain(&std::io::Error::last_os_error()))),
    }
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
