//! What a run of the direct engine is told.

use super::span::Span;
use crate::content::Verify;
use crate::target::TargetSpec;
use raidlab_load::{Limits, LoadSpec, WorkloadSpec};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Plain targets, each a volume of the load, and how to drive them.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectConfig {
    /// Volume `i` is target `i`, or the part of it that `spans[i]` names.
    pub targets: Vec<TargetSpec>,
    /// One a target; empty: the whole of each.
    pub spans: Vec<Span>,
    /// Threads that drive them, at least 1.
    pub workers: u32,
    /// Worker `i` runs on processor `cpus[i % n]`; empty: wherever the system puts it.
    pub cpus: Vec<u32>,
    /// How requests reach the kernel.
    pub interface: Interface,
    /// Through the page cache, even where O_DIRECT is possible.
    pub buffered: bool,
    /// Watch for completions instead of sleeping until one comes.
    pub busy: bool,
    /// Ask the device for completions instead of taking its interrupts.
    pub poll_completions: bool,
    /// Most requests submitted, and most completions taken, in one turn; none: a few (4), so that a device is given its
    /// next work before all that it has finished has been looked at; 128 where nothing leaves the process.
    pub batch: Option<u32>,
    /// Share of every sector written that compresses away, 0 to 100.
    pub compressible_percent: u32,
    /// Sector of the volumes in bytes, at least; it is never less than the largest that a target needs.
    pub sector_bytes: Option<u32>,
    /// Block devices that may be overwritten: exactly these, by path or as `major:minor`.
    pub destroy: Vec<PathBuf>,
    /// How requests are offered; depths and rates are those of all workers together.
    pub load: LoadSpec,
    /// What they ask for.
    pub workload: WorkloadSpec,
    /// When measuring begins and ends, for all workers together.
    pub limits: Limits,
    /// Root of all randomness.
    pub seed: u64,
    /// How much of what raidlab wrote is compared with what comes back.
    pub verify: Verify,
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
