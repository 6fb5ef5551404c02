//! What a live run is told, and how it is watched.

use crate::content::Verify;
use crate::target::TargetSpec;
use raidlab_array::{MemberEventSpec, Policy, RebuildSpec, Tree};
use raidlab_device::PairPricing;
use raidlab_load::files::FilesSpec;
use raidlab_load::{Limits, LoadSpec, WorkloadSpec};
use raidlab_types::number::{f64_from, u64_from};
use raidlab_types::{Duration, Instant, LeafId};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// One cell on the real clock: an array of real members, and the load to put on it.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveConfig {
    /// The array.
    pub tree: Tree,
    /// Its policies.
    pub policy: Policy,
    /// One a leaf in depth-first order, or a single one for all that lies in no file or device of its own.
    pub targets: Vec<TargetSpec>,
    /// Leaves that are not there; their targets are not touched.
    pub missing: Vec<LeafId>,
    /// Members that fail while the load runs: what they are asked from then on fails.
    pub events: Vec<MemberEventSpec>,
    /// New members take the places of those that fail, and are rebuilt. They are the same files and devices, of whose old
    /// content nothing is read.
    pub rebuild: Option<RebuildSpec>,
    /// How requests are offered.
    pub load: LoadSpec,
    /// What they ask for.
    pub workload: WorkloadSpec,
    /// Whole files that its clients read, of the workload's sizes, laid out on the array by the same rules as in the
    /// simulator. The host is this machine, so no work of a reader stands here.
    pub files: Option<FilesSpec>,
    /// When measuring begins and ends.
    pub limits: Limits,
    /// Root of all randomness.
    pub seed: u64,
    /// Sector of the array in bytes, at least; it is never less than the largest that a member needs.
    pub sector_bytes: Option<u32>,
    /// What is written, and whether what is read is checked.
    pub content: ContentMode,
    /// Block devices that may be overwritten: exactly these, by path or as `major:minor`.
    pub destroy: Vec<PathBuf>,
    /// What is to break while the run lasts.
    pub faults: Vec<Fault>,
    /// Requests, from the first on, whose member operations are to be listed in the result.
    pub trace_requests: u64,
    /// How emulated members are driven.
    pub emulation: Emulation,
    /// How much of what raidlab wrote is compared with what comes back, where the content is random.
    pub verify: Verify,
}

impl LiveConfig {
    /// An array of these members, of which one page is read at a time, without end.
    pub fn new(tree: Tree, targets: Vec<TargetSpec>) -> LiveConfig {
        LiveConfig {
            tree,
            policy: Policy::default(),
            targets,
            missing: Vec::new(),
            events: Vec::new(),
            rebuild: None,
            load: LoadSpec::Closed { depth: 1 },
            workload: WorkloadSpec::default(),
            files: None,
            limits: Limits::default(),
            seed: 1,
            sector_bytes: None,
            content: ContentMode::Random,
            destroy: Vec::new(),
            faults: Vec::new(),
            trace_requests: 0,
            emulation: Emulation::default(),
            verify: Verify::default(),
        }
    }
}

/// How emulated members are driven.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Emulation {
    /// How many times faster than the system's clock the run's clock goes; other than 1 only where all members are
    /// emulated. All times of the result are the run's.
    pub speed: f64,
    /// How read-modify-write pairs are priced: queued or head.
    pub pair_pricing: PairPricing,
}

impl Default for Emulation {
    fn default() -> Emulation {
        Emulation { speed: 1.0, pair_pricing: PairPricing::Queued }
    }
}

/// What is written, and whether what is read is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentMode {
    /// Random bytes, every sector stamped so that no two are alike. For measuring.
    #[default]
    Random,
    /// Members are filled with zeroes and every sector of every volume is written first; then each sector read must hold,
    /// to the last byte, what was written to it last; at the end all volumes are read. For testing, not for measuring.
    Verify,
}

/// A member that breaks while the run lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Which member.
    pub leaf: LeafId,
    /// Operations it serves before, counted from the start of the load.
    pub after_operations: u64,
    /// How it breaks.
    pub kind: FaultKind,
}

/// How a member breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum FaultKind {
    /// It answers no more.
    Gone,
    /// One read in `every` finds its sectors unreadable.
    Media {
        /// At least 1.
        every: u64,
    },
    /// It is taken out by hand: what it is doing still completes.
    TakenOut,
}

/// Between two reports of progress.
pub(crate) const PULSE: Duration = Duration::from_ms(150);

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStage {
    /// Members are being created and filled.
    Filling,
    /// The volumes are being written (verify only).
    Writing,
    /// The load runs.
    Running,
    /// All volumes are being read and checked (verify only).
    Checking,
}

/// How far a run is; told at most ten times a second, and about as often while the run lasts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunProgress {
    /// What is being done.
    pub stage: RunStage,
    /// Share of the stage that is done, 0 to 1, as far as it can be foreseen.
    pub fraction: f64,
    /// Requests completed in this stage.
    pub requests: u64,
    /// Time the stage has taken.
    pub elapsed: Duration,
}

/// Who is told how far a run is, and may end it.
pub(crate) type OnProgress<'a> = &'a mut dyn FnMut(RunProgress) -> ControlFlow<()>;

/// Tells an observer of a stage whose whole is known in bytes, no more often than it wants to hear.
pub(crate) struct ByteProgress<'a> {
    stage: RunStage,
    total_bytes: u64,
    clock: std::time::Instant,
    done_bytes: u64,
    told: Duration,
    observer: OnProgress<'a>,
}

impl<'a> ByteProgress<'a> {
    pub(crate) fn new(stage: RunStage, total_bytes: u64, observer: OnProgress<'a>) -> ByteProgress<'a> {
        let clock = std::time::Instant::now();
        ByteProgress { stage, total_bytes, clock, done_bytes: 0, told: Duration::ZERO, observer }
    }

    /// So many bytes more are done.
    pub(crate) fn add(&mut self, bytes: u64) -> ControlFlow<()> {
        self.done_bytes += bytes;
        let elapsed = Duration::from_ns(u64_from(self.clock.elapsed().as_nanos()));
        if elapsed < self.told + PULSE {
            return ControlFlow::Continue(());
        }
        self.told = elapsed;
        let fraction = (f64_from(self.done_bytes) / f64_from(self.total_bytes.max(1))).min(1.0);
        let requests = if self.stage == RunStage::Checking { self.done_bytes } else { 0 };
        (self.observer)(RunProgress { stage: self.stage, fraction, requests, elapsed })
    }
}

/// Share that is done, 0 to 1, as far as it can be foreseen.
pub(crate) fn fraction(limits: &Limits, now: Instant, requests: u64) -> f64 {
    let Limits { warmup, measure } = limits;
    let by_count = measure.requests.map(|n| f64_from(requests) / f64_from(n + warmup.requests.unwrap_or(0)));
    let seconds = now.since(Instant::ZERO).as_s_f64();
    let by_time = measure.duration_s.map(|s| seconds / (s + warmup.duration_s.unwrap_or(0.0)));
    by_count.unwrap_or(0.0).max(by_time.unwrap_or(0.0)).min(1.0)
}
