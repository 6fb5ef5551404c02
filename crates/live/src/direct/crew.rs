//! The workers of a run: set up, started together, watched over, and their records put together.
//!
//! Invariants:
//! - No worker begins before all are ready, and all read the same clock.
//! - If one cannot be set up, none runs, and its error is that of the run.

use super::config::{DirectConfig, Interface};
use super::most_in_flight;
use super::result::{DirectFacts, DirectResult, Warning};
use super::shared::Shared;
use super::span::Sectors;
use super::threads::{Threads, MOST_THREADS};
use super::transport::Transport;
use super::worker::{Manner, Outcome, Reach, Site, Worker};
use crate::config::{fraction, Progress, Stage, PULSE};
use crate::content::Stamper;
use crate::engine::clock::Clock;
use crate::engine::ring::Ring;
use crate::error::LiveError;
use crate::memory::{available_bytes, Pool, Use};
use crate::target::{Store, Target};
use raidlab_load::{Load, SizeSpec};
use raidlab_types::{Instant, Seed};
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Barrier, Mutex, OnceLock, PoisonError};

/// What workers are made from.
pub(super) struct Crew<'a> {
    config: &'a DirectConfig,
    targets: &'a [Target],
    /// The part of each target that is its volume.
    parts: &'a [Sectors],
    sector_bytes: u32,
    shared: Shared,
    warnings: Mutex<Vec<Warning>>,
}

/// Where all meet before the start.
struct Start {
    ready: Barrier,
    go: Barrier,
    /// Set between the two, unless somebody could not be set up.
    clock: OnceLock<Clock>,
    failed: Mutex<Option<LiveError>>,
}

impl<'a> Crew<'a> {
    pub fn new(config: &'a DirectConfig, targets: &'a [Target], parts: &'a [Sectors], sector_bytes: u32) -> Crew<'a> {
        let shared = Shared::new(config.workers as usize);
        Crew { config, targets, parts, sector_bytes, shared, warnings: Mutex::new(Vec::new()) }
    }

    /// Runs the load to its end. `stopped`: it was already ended while targets were filled.
    pub fn run(
        self,
        load: Load,
        stopped: bool,
        observer: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<DirectResult, LiveError> {
        if stopped {
            self.shared.stop();
        }
        let sites = self.sites();
        let start =
            Start { ready: Barrier::new(2), go: Barrier::new(2), clock: OnceLock::new(), failed: Mutex::new(None) };
        let supervisor = std::thread::current();
        let (outcome, interrupted) = std::thread::scope(|scope| {
            let (crew, start, sites) = (&self, &start, &sites[..]);
            let handle = scope.spawn(move || {
                let worker = crew.set_up(load, sites);
                let outcome = start.begin(worker);
                supervisor.unpark();
                outcome
            });
            let interrupted = start.give_the_sign().is_some_and(|clock| crew.watch(&handle, clock, observer));
            (handle.join(), interrupted)
        });
        let outcome = outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let failed = start.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Some(outcome) => Ok(self.result(outcome, interrupted || stopped)),
            None => Err(failed.unwrap_or_else(|| LiveError::bad("workers", "could not be set up"))),
        }
    }

    fn sites(&self) -> Vec<Site> {
        let site = |(i, target): (usize, &Target)| {
            let reach = match &target.store {
                // Emulated ones are refused before anything is opened.
                Store::Null | Store::Emulated(..) => Reach::Null,
                Store::Memory(mapping) => Reach::Memory(mapping.as_ptr()),
                Store::Fd(file) => Reach::File(i as u32, file.as_raw_fd()),
            };
            let (target_number, first_lba) = (i as u32, self.parts[i].first);
            Site { target: target_number, first_lba, reach, key: target.key.clone(), name: target.name() }
        };
        self.targets.iter().enumerate().map(site).collect()
    }

    /// A worker with all it needs. To be called in the thread that will drive it: a ring belongs to its thread.
    fn set_up<'w>(&'w self, load: Load, sites: &'w [Site]) -> Result<Worker<'w>, LiveError> {
        let config = self.config;
        if let Some(&cpu) = config.cpus.first() {
            bind(cpu)?;
        }
        let depth = load.depth();
        let transport = self.transport(sites, depth)?;
        // Some is left for the rest of the system: running it out of memory would cost more than this run.
        let most = available_bytes().map_or(u64::MAX, |bytes| bytes / 10 * 9);
        let pool = Pool::new(Seed::new(config.seed).named("content"), most);
        let stamper = Stamper::new(config.seed, self.sector_bytes);
        let manner = Manner {
            batch: config.batch.map_or(usize::MAX, |batch| batch as usize),
            busy: config.busy,
            sector_bytes: self.sector_bytes,
            number: 0,
        };
        let mut worker = Worker::new(load, sites, transport, (pool, stamper), manner, &self.shared);
        if let (SizeSpec::Fixed { bytes }, Some(_)) = (&config.workload.size, most_in_flight(&config.load)) {
            let mut uses = Vec::new();
            if config.workload.read_fraction > 0.0 || config.workload.task.is_some() {
                uses.push(Use::Any);
            }
            if crate::run::writes(&config.workload) {
                uses.push(Use::Write);
            }
            worker.prepare(*bytes as usize, &uses)?;
        }
        Ok(worker)
    }

    /// The way to files and devices; none where there are none.
    fn transport(&self, sites: &[Site], depth: u32) -> Result<Option<Transport>, LiveError> {
        let fd_of = |site: &Site| if let Reach::File(_, fd) = site.reach { fd } else { -1 };
        let fds: Vec<RawFd> = sites.iter().map(fd_of).collect();
        if fds.iter().all(|&fd| fd < 0) {
            return Ok(None);
        }
        let why = match self.config.interface {
            Interface::Threads => "threads were asked for".to_string(),
            interface => match Ring::new(&fds, self.config.poll_completions) {
                Ok(ring) => return Ok(Some(Transport::ring(ring))),
                Err(error) if interface == Interface::IoUring => return Err(error),
                Err(error) => error.message(),
            },
        };
        let count = depth.min(MOST_THREADS);
        let threads = Threads::new(count).map_err(|e| LiveError::io("interface", "threads", "starting them", &e))?;
        self.warn(Warning {
            name: "threads_instead_of_io_uring",
            evidence: format!("{why}; {count} threads serve a depth of {depth}, at a higher cost a request"),
            mend: "allow io_uring (kernel.io_uring_disabled, the container's seccomp profile)",
        });
        Ok(Some(Transport::threads(threads)))
    }

    fn warn(&self, warning: Warning) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
    }

    /// Tells the observer how far it is until the worker has ended. True if the observer stopped it.
    fn watch(
        &self,
        handle: &std::thread::ScopedJoinHandle<'_, Option<Outcome>>,
        clock: Clock,
        observer: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> bool {
        let pulse = std::time::Duration::from_nanos(PULSE.as_ns());
        let mut interrupted = false;
        let mut next = Instant::ZERO + PULSE;
        while !handle.is_finished() {
            std::thread::park_timeout(pulse);
            let (now, requests) = (clock.now(), self.shared.completed());
            if now < next {
                continue;
            }
            next = now + PULSE;
            let fraction = fraction(&self.config.limits, now, requests);
            let progress = Progress { stage: Stage::Running, fraction, requests, elapsed: now.since(Instant::ZERO) };
            if observer(progress).is_break() && !interrupted {
                self.shared.stop();
                interrupted = true;
            }
        }
        interrupted
    }

    fn result(self, outcome: Outcome, interrupted: bool) -> DirectResult {
        let config = self.config;
        let uses_files = self.targets.iter().any(|t| matches!(t.store, Store::Fd(_)));
        let mut warnings = self.warnings.into_inner().unwrap_or_else(PoisonError::into_inner);
        let threads = warnings.iter().any(|w| w.name == "threads_instead_of_io_uring");
        if uses_files && !threads && !outcome.all_registered {
            warnings.push(Warning {
                name: "buffers_not_registered",
                evidence: "the kernel or the limit on locked memory refused them: every request maps its memory".into(),
                mend: "raise the limit (ulimit -l)",
            });
        }
        let interface = match (uses_files, threads) {
            (false, _) => "none",
            (true, true) => "threads",
            (true, false) => "io_uring",
        };
        let depths = most_in_flight(&config.load).into_iter().collect();
        DirectResult {
            recorder: outcome.load.recorder().clone(),
            backlog: outcome.load.backlog(),
            hold: outcome.load.hold(),
            members: outcome.members,
            targets: self.targets.iter().map(|t| t.facts.clone()).collect(),
            engine: DirectFacts {
                interface,
                workers: config.workers,
                cpus: config.cpus.iter().copied().take(1).collect(),
                depths,
                registered_buffers: outcome.all_registered,
                sector_bytes: self.sector_bytes,
                clock: outcome.clock,
                batch: config.batch,
                busy: config.busy,
                poll_completions: config.poll_completions,
                buffered: config.buffered,
                compressible_percent: config.compressible_percent,
            },
            requests: outcome.counts,
            warnings,
            interrupted,
            stopped_by: outcome.failure,
        }
    }
}

impl Start {
    /// In a worker's thread: waits for the others, then drives the load if all are ready.
    fn begin(&self, worker: Result<Worker<'_>, LiveError>) -> Option<Outcome> {
        let worker = match worker {
            Ok(worker) => Some(worker),
            Err(error) => {
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                None
            }
        };
        self.ready.wait();
        self.go.wait();
        Some(worker?.drive(*self.clock.get()?))
    }

    /// Starts all workers, if all could be set up.
    fn give_the_sign(&self) -> Option<Clock> {
        self.ready.wait();
        if self.failed.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            self.clock.get_or_init(Clock::start);
        }
        self.go.wait();
        self.clock.get().copied()
    }
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
