//! The words of a load as they stand in a cell's JSON text.
//!
//! Purpose: plain data with serde, one variant a kind. Types here say what *can be written*; whether it makes sense for
//! a given array (a mean beyond the volume, an alignment that is no multiple of the sector) is decided by the kind's own
//! constructor when [`crate::Load::new`] builds it, with an error that names the key.
//!
//! Invariant: unknown keys are refused, so that a misspelt option is never silently ignored.
//!
//! Reference: `docs/internals/cell-contract.md`.

use serde::{Deserialize, Serialize};

/// How requests are offered: `load` in the cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadSpec {
    /// A fixed number of tasks outstanding, counted over all volumes together; the next starts when one ends.
    Closed {
        /// Tasks outstanding, at least 1 and at most [`crate::MOST_IN_FLIGHT`].
        depth: u32,
    },
    /// Tasks arrive on their own schedule, whatever the array does.
    Open {
        /// When they arrive.
        arrival: ArrivalSpec,
        /// Tasks admitted at once, at most; those beyond wait and keep their intended time. None: the most there can be.
        max_in_flight: Option<u32>,
    },
    /// A closed loop whose depth is moved while it runs, until `percentile` per cent of the tasks respond within
    /// `target_ms` (Chen et al., 1990).
    Hold {
        /// Between 0 and 100, such as 90.
        percentile: f64,
        /// Response time to be held, in milliseconds.
        #[serde(rename = "target", with = "raidlab_types::unit::ns_as_ms")]
        target_ms: f64,
        /// Depth to start from, at least 1.
        initial_depth: u32,
        /// Depth never exceeded.
        max_depth: u32,
    },
}

/// When tasks of an open loop arrive: `load.arrival`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ArrivalSpec {
    /// Independent exponential gaps.
    Poisson {
        /// Mean rate in tasks a second.
        rate_per_s: f64,
    },
    /// Equal gaps.
    Uniform {
        /// Rate in tasks a second.
        rate_per_s: f64,
    },
    /// Bursty: gaps from a hyperexponential of two phases with balanced means.
    H2 {
        /// Mean rate in tasks a second.
        rate_per_s: f64,
        /// Squared coefficient of variation of the gaps, at least 1 (1 is Poisson).
        cv2: f64,
    },
    /// By the time stamps of a trace; only where one is replayed.
    Trace {
        /// How many times as fast as it was recorded.
        #[serde(default = "as_recorded")]
        speed: f64,
    },
}

fn as_recorded() -> f64 {
    1.0
}

/// What is asked for: `workload` in the cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Share of requests that read, 0 to 1; all of them if absent. Without effect where `task` names its operations.
    #[serde(rename = "read", default = "all_reads")]
    pub read_fraction: f64,
    /// How long requests are.
    pub size: SizeSpec,
    /// Where they begin.
    pub address: AddressSpec,
    /// What starts are multiples of; if absent the size where that is fixed, else the sector. Without effect on addresses
    /// that say where requests begin (`listed`, `aligned_stripe`).
    pub align: Option<Align>,
    /// Share of each volume that is used, from its front, above 0 to 1; all of it if absent.
    pub span: Option<f64>,
    /// How tasks are spread over the volumes of an `independent` root.
    #[serde(default)]
    pub volumes: VolumeSpec,
    /// Steps of a task, issued one after another; absent: a task is one request.
    pub task: Option<Vec<StepSpec>>,
}

fn all_reads() -> f64 {
    1.0
}

impl Default for WorkloadSpec {
    /// Reads of single pages from anywhere.
    fn default() -> WorkloadSpec {
        WorkloadSpec {
            read_fraction: 1.0,
            size: SizeSpec::Fixed { bytes: 4096 },
            address: AddressSpec::Uniform {},
            align: Some(Align::SECTOR),
            span: None,
            volumes: VolumeSpec::Uniform,
            task: None,
        }
    }
}

/// What starts are multiples of: `workload.align`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a number of bytes, or \"sector\"")]
pub enum Align {
    /// So many bytes, whole sectors.
    Bytes(u64),
    /// A unit of the array.
    Unit(AlignUnit),
}

/// A unit of the array that starts may be multiples of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlignUnit {
    /// The sector.
    Sector,
}

impl Align {
    /// To the sector: not aligned any further than requests are anyway.
    pub const SECTOR: Align = Align::Unit(AlignUnit::Sector);
}

impl WorkloadSpec {
    /// Whether any of its requests writes.
    pub fn writes(&self) -> bool {
        match &self.task {
            Some(steps) => steps.iter().any(|step| step.op == StepOp::Write),
            None => self.read_fraction < 1.0,
        }
    }

    /// What starts are multiples of, in bytes; `None`: the sector.
    pub fn align_bytes(&self) -> Option<u64> {
        match (self.align, &self.size) {
            (Some(Align::Bytes(bytes)), _) => Some(bytes),
            (None, SizeSpec::Fixed { bytes }) => Some(*bytes),
            (Some(Align::Unit(AlignUnit::Sector)) | None, _) => None,
        }
    }
}

/// How tasks are spread over several volumes: `workload.volumes`. Sequential workloads are always spread evenly.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VolumeSpec {
    /// Each task's volume is drawn uniformly.
    #[default]
    Uniform,
    /// In closed loop every volume has the same number of tasks outstanding (within one); in open loop they take turns.
    Even,
    /// Each task's volume is drawn with these weights, one a volume.
    Weights(Vec<f64>),
    /// As `even`, but in these shares, one a volume: of the depth in closed loop, of the turns in open loop.
    Shares(Vec<f64>),
}

/// One step of a task: `workload.task[k]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// Read or write.
    pub op: StepOp,
    /// Its size; the workload's if absent.
    pub size: Option<SizeSpec>,
    /// Its place; the workload's if absent.
    pub address: Option<AddressSpec>,
    /// An earlier step, counted from 0, whose extent is used again (read, then write back).
    pub same_extent_as: Option<usize>,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOp {
    /// Bytes from the array.
    Read,
    /// Bytes to the array.
    Write,
}

/// How long requests are: `workload.size`. All are whole sectors, at least one, and never longer than
/// the volume or 1 GiB.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SizeSpec {
    /// Always the same.
    Fixed {
        /// A multiple of the sector.
        bytes: u64,
    },
    /// Exponential, kept to its mean in whole sectors.
    Exponential {
        /// Mean after rounding, at least one sector.
        #[serde(rename = "mean")]
        mean_bytes: f64,
    },
    /// Normal, rounded to the nearest sector.
    Normal {
        /// Mean.
        #[serde(rename = "mean")]
        mean_bytes: f64,
        /// Standard deviation.
        #[serde(rename = "sd")]
        sd_bytes: f64,
    },
    /// Log-normal, rounded to the nearest sector.
    Lognormal {
        /// Mean of the size itself (not of its logarithm).
        #[serde(rename = "mean")]
        mean_bytes: f64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
    /// One of a list.
    Table {
        /// Sizes, multiples of the sector.
        bytes: Vec<u64>,
        /// Their weights, in any unit.
        weights: Vec<f64>,
    },
}

/// Where requests begin: `workload.address`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AddressSpec {
    /// Every aligned place equally often. (A variant with fields, if none: of one without, serde takes any key.)
    Uniform {},
    /// One after another, in streams that share each volume equally.
    Sequential {
        /// Streams on each volume.
        #[serde(default = "one")]
        streams: u32,
    },
    /// The place of rank r in popularity with a chance proportional to `r^-theta`; ranks are scattered over the volume.
    Zipf {
        /// Skew, above 0. Places are as long as the alignment.
        theta: f64,
    },
    /// Stripe uniform, data chunk within the stripe by weights: some members are hot. Aligned within the chunk (to the chunk
    /// itself: always at its beginning).
    HotMembers {
        /// One weight a data chunk of a stripe.
        weights: Vec<f64>,
        /// Length of a chunk.
        #[serde(rename = "chunk")]
        chunk_bytes: u64,
    },
    /// Each request a fixed distance after the start of the last, from the beginning again at the end.
    Strided {
        /// Distance from start to start.
        #[serde(rename = "stride")]
        stride_bytes: u64,
    },
    /// Some go on where the last request ended, some begin near its start, the rest at a uniformly drawn place.
    Mixed {
        /// Share that goes on.
        sequential: f64,
        /// Share that begins near the start of the last.
        #[serde(default)]
        local: f64,
        /// Standard deviation of the distance between the two starts, which is normally distributed about 0; needed where
        /// any begin near.
        #[serde(rename = "local_sd")]
        local_sd_bytes: Option<f64>,
        /// Whether what goes on is as long as the last request and does the same: reads or writes.
        #[serde(default)]
        alike: bool,
    },
    /// One start after another from a given list, from its beginning again at its end.
    Listed {
        /// Starts in bytes, multiples of the sector.
        offset_bytes: Vec<u64>,
    },
    /// Requests of a stripe or more begin or end on a stripe boundary, smaller ones begin on a uniformly drawn chunk.
    AlignedStripe {
        /// User data of a stripe.
        #[serde(rename = "stripe")]
        stripe_bytes: u64,
        /// Length of a chunk.
        #[serde(rename = "chunk")]
        chunk_bytes: u64,
    },
}

fn one() -> u32 {
    1
}

/// How long to go on: a number of requests, a duration, or both.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Completed requests, failed ones included.
    pub requests: Option<u64>,
    /// Seconds of the run's clock.
    #[serde(rename = "duration", default, skip_serializing_if = "Option::is_none")]
    #[serde(with = "raidlab_types::unit::ns_as_s_option")]
    pub duration_s: Option<f64>,
}

/// When measuring begins and ends: `warmup` and `measure` in the cell.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Over when the *later* of its two is reached; empty: nothing is discarded.
    #[serde(default)]
    pub warmup: Limit,
    /// Over when the *earlier* of its two is reached; must not be empty.
    pub measure: Limit,
}
