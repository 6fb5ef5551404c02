//! What a simulation needs to know: the array, its devices, the host, the load.

use crate::path::PathSpec;
use raidlab_array::{MemberEventSpec, Policy, RebuildSpec, Tree};
use raidlab_device::{DeviceSpec, PairPricing};
use raidlab_load::files::FilesSpec;
use raidlab_load::streams::StreamSpec;
use raidlab_load::{Limits, LoadSpec, WorkloadSpec};
use raidlab_types::LeafId;
use serde::{Deserialize, Serialize};

/// Costs of the host's processors. All zero: no host is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostSpec {
    /// Processors; each serves one piece of work at a time, first come first served.
    pub cpus: u32,
    /// Work before a request enters the array, in microseconds.
    #[serde(rename = "request", with = "raidlab_types::unit::ns_as_us")]
    pub request_us: f64,
    /// Work before each member operation is issued, in microseconds; operations of one request may share processors.
    #[serde(rename = "access", with = "raidlab_types::unit::ns_as_us")]
    pub access_us: f64,
    /// Work between one member operation of a request and the next, in microseconds: whoever serves the request issues
    /// its operations one after another, so that each delays the rest.
    #[serde(rename = "issue", with = "raidlab_types::unit::ns_as_us")]
    pub issue_us: f64,
    /// What a look at the clock takes, in microseconds, on a host where nothing else takes time and whose threads take turns
    /// on one processor: that of the md lab. 0: they are in nobody's way. For a host that merges operations.
    #[serde(rename = "look", with = "raidlab_types::unit::ns_as_us")]
    pub look_us: f64,
    /// Work after each member operation, before the array is told, in microseconds.
    #[serde(rename = "completion", with = "raidlab_types::unit::ns_as_us")]
    pub completion_us: f64,
    /// Work per KiB that a parity computation reads, in microseconds.
    #[serde(rename = "parity_per_kib", with = "raidlab_types::unit::ns_as_us")]
    pub parity_us_per_kib: f64,
    /// Whole files: finding and opening one, before anything is read, in microseconds.
    #[serde(rename = "file", with = "raidlab_types::unit::ns_as_us")]
    pub file_us: f64,
    /// Whole files: taking in each KiB (1024 bytes) that was read, in microseconds.
    #[serde(rename = "file_per_kib", with = "raidlab_types::unit::ns_as_us")]
    pub file_us_per_kib: f64,
}

impl Default for HostSpec {
    fn default() -> Self {
        HostSpec {
            cpus: 1,
            request_us: 0.0,
            access_us: 0.0,
            issue_us: 0.0,
            look_us: 0.0,
            completion_us: 0.0,
            parity_us_per_kib: 0.0,
            file_us: 0.0,
            file_us_per_kib: 0.0,
        }
    }
}

impl HostSpec {
    /// Whether no work of requests costs time; that of whole files and streams needs no place of its own.
    pub fn is_free(&self) -> bool {
        [self.request_us, self.access_us, self.issue_us, self.completion_us, self.parity_us_per_kib]
            .iter()
            .all(|&c| c == 0.0)
    }
}

/// One simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct SimConfig {
    /// The array.
    pub tree: Tree,
    /// Its choices.
    pub policy: Policy,
    /// One device a leaf in depth-first order, or one for all.
    pub devices: Vec<DeviceSpec>,
    /// All members are areas of one device, side by side and of so many bytes: they wait for one another.
    pub area_bytes: Option<u64>,
    /// How read-modify-write pairs are priced.
    pub pair_pricing: PairPricing,
    /// Members that are not there.
    pub missing: Vec<LeafId>,
    /// Members that fail, or become slow, meanwhile.
    pub events: Vec<MemberEventSpec>,
    /// New members take the places of the missing ones as the run begins, and of those that fail, and are rebuilt.
    pub rebuild: Option<RebuildSpec>,
    /// The host.
    pub host: HostSpec,
    /// The stations between the client and the disks.
    pub path: PathSpec,
    /// How requests are offered.
    pub load: LoadSpec,
    /// What is asked for.
    pub workload: WorkloadSpec,
    /// Whole files in place of requests: their sizes are those of the workload, their readers the depth of the load.
    pub files: Option<FilesSpec>,
    /// Streams in place of requests; the load and the workload then say nothing.
    pub streams: Option<Vec<StreamSpec>>,
    /// Warm-up and measurement.
    pub limits: Limits,
    /// A warm-up of requests that are drawn goes on until the write caches of members are as full as the load keeps them. Not
    /// where members fail or are rebuilt: that is at times of its own.
    pub fill_caches: bool,
    /// The array's sector; `None`: the largest logical block among the devices.
    pub sector_bytes: Option<u32>,
    /// Root of the seed tree.
    pub seed: u64,
}
