//! What a run of the direct engine is told.

use super::span::TargetSpan;
use crate::content::Verify;
use crate::target::TargetSpec;
use raidlab_load::{Limit, Limits, LoadSpec, WorkloadSpec};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A cell of the engine `direct`: plain targets, each a volume of the load, and how to drive them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectConfig {
    /// `direct`: by this word whoever reads cells knows whose this is.
    pub engine: String,
    /// Root of all randomness.
    pub seed: u64,
    /// Volume `i` is target `i`, or the part of it that `spans[i]` names.
    pub targets: Vec<TargetSpec>,
    /// One a target; empty: the whole of each.
    #[serde(default)]
    pub spans: Vec<TargetSpan>,
    /// Threads that drive them, at least 1.
    #[serde(default = "one")]
    pub workers: u32,
    /// Worker `i` runs on processor `cpus[i % n]`; empty: wherever the system puts it.
    #[serde(default)]
    pub cpus: Vec<u32>,
    /// How requests reach the kernel.
    #[serde(default)]
    pub interface: Interface,
    /// Through the page cache, even where O_DIRECT is possible.
    #[serde(default)]
    pub buffered: bool,
    /// Watch for completions instead of sleeping until one comes.
    #[serde(default)]
    pub busy: bool,
    /// Ask the device for completions instead of taking its interrupts.
    #[serde(default)]
    pub poll_completions: bool,
    /// Most requests submitted, and most completions taken, in one turn; none: a few (4), so that a device is given its
    /// next work before all that it has finished has been looked at; 128 where nothing leaves the process.
    #[serde(default)]
    pub batch: Option<u32>,
    /// Share of every sector written that compresses away, 0 to 100.
    #[serde(default)]
    pub compressible_percent: u32,
    /// Sector of the volumes in bytes, at least; it is never less than the largest that a target needs.
    #[serde(default)]
    pub sector_bytes: Option<u32>,
    /// Block devices that may be overwritten: exactly these, by path or as `major:minor`.
    #[serde(default)]
    pub destroy: Vec<PathBuf>,
    /// How requests are offered; depths and rates are those of all workers together.
    pub load: LoadSpec,
    /// What they ask for.
    pub workload: WorkloadSpec,
    /// How much of what raidlab wrote is compared with what comes back.
    #[serde(default)]
    pub verify: Verify,
    /// Wait, all ready, until this time of the machine's clock (nanoseconds of the Unix epoch), so that several machines
    /// begin together.
    #[serde(default)]
    pub begin_at_unix_ns: Option<u64>,
    /// Until when completions of all workers together do not count.
    #[serde(default)]
    pub warmup: Limit,
    /// When measuring ends, for all workers together.
    pub measure: Limit,
}

fn one() -> u32 {
    1
}

impl DirectConfig {
    /// When measuring begins and ends.
    pub(super) fn limits(&self) -> Limits {
        Limits { warmup: self.warmup, measure: self.measure }
    }
}

/// How requests reach the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    /// io_uring, or threads where there is none.
    #[default]
    Auto,
    /// io_uring or nothing.
    IoUring,
    /// Threads that each wait for one request at a time.
    Threads,
}
