//! A cell of an array as its JSON text says it.

use crate::read::from_json;
use raidlab_array::{MemberEventSpec, Policy, RebuildSpec, Tree};
use raidlab_device::{DeviceSpec, PairPricing};
use raidlab_load::files::FilesSpec;
use raidlab_load::streams::StreamSpec;
use raidlab_load::trace::{KindFilter, TraceSpec};
use raidlab_load::{Limit, Limits, LoadSpec, WorkloadSpec};
use raidlab_sim::{HostSpec, PathSpec, SimConfig};
use raidlab_types::SpecError;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::Deserialize;
use std::path::PathBuf;

/// Of a device without times of writes, where something may write.
const READ_ONLY: &str =
    "only reads of this device were measured, and this writes; accepted: loads that only read, or a \
    device file with [[measured]] writes";

/// What a door makes of the words that only live cells have.
pub trait LiveWords {
    /// Of `content`.
    type Content: DeserializeOwned + Default;
    /// Of one of `faults`.
    type Fault: DeserializeOwned;
    /// Of `verify`.
    type Verify: DeserializeOwned + Default;
}

/// Words of live cells at a door behind which there is no live engine: they may stand there, as they may beside any
/// simulated cell.
#[derive(Debug)]
pub struct Unheeded;

impl LiveWords for Unheeded {
    type Content = IgnoredAny;
    type Fault = IgnoredAny;
    type Verify = IgnoredAny;
}

/// A cell of the engines `sim` and `live`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound = "")]
pub struct CellSpec<W: LiveWords> {
    /// Which clock it runs on.
    pub engine: EngineName,
    /// Root of all randomness.
    pub seed: u64,
    /// Sector of the array; that of its members if absent.
    #[serde(default)]
    pub sector_bytes: Option<u32>,
    /// The array.
    pub tree: Tree,
    /// Its choices.
    #[serde(default)]
    pub policy: Policy,
    /// One a leaf, or one for all: device models, or targets.
    pub members: Vec<serde_json::Value>,
    /// Simulator: all members are areas of the one device, each of so many bytes.
    #[serde(default)]
    pub area_bytes: Option<u64>,
    /// Leaves that are not there.
    #[serde(default)]
    pub missing: Vec<u32>,
    /// Members that fail, or in the simulator become slow, while the load runs.
    #[serde(default)]
    pub events: Vec<MemberEventSpec>,
    /// New members take the places of the missing ones, and of those that fail, and are rebuilt.
    #[serde(default)]
    pub rebuild: Option<RebuildSpec>,
    /// Live: block devices that may be overwritten.
    #[serde(default)]
    pub destroy: Vec<PathBuf>,
    /// Live: whether what is read is checked.
    #[serde(default)]
    pub content: W::Content,
    /// Live: members that are to break.
    #[serde(default = "Vec::new")]
    pub faults: Vec<W::Fault>,
    /// Live, over emulated members: how many times faster their time goes.
    #[serde(default)]
    pub speed: Option<f64>,
    /// How read-modify-write pairs are priced.
    #[serde(default)]
    pub pair_pricing: PairPricing,
    /// Simulator: what the host's processors cost.
    #[serde(default)]
    pub host: HostSpec,
    /// Simulator: the stations between the client and the disks.
    #[serde(default)]
    pub path: PathSpec,
    /// How requests are offered.
    pub load: LoadSpec,
    /// What they ask for.
    #[serde(default)]
    pub workload: Option<WorkloadSpec>,
    /// Requests recorded elsewhere in place of a workload.
    #[serde(default)]
    pub trace: Option<TraceSpec>,
    /// Whole files in place of requests.
    #[serde(default)]
    pub files: Option<FilesSpec>,
    /// Simulator: streams in place of requests.
    #[serde(default)]
    pub streams: Option<Vec<StreamSpec>>,
    /// Live: how much of what was written is compared.
    #[serde(default)]
    pub verify: W::Verify,
    /// What is not counted at the beginning.
    #[serde(default)]
    pub warmup: Limit,
    /// Simulator: the warm-up goes on until the members' write caches are as full as the load keeps them.
    #[serde(default)]
    pub fill_caches: bool,
    /// How much is measured.
    pub measure: Limit,
}

/// The engines of arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineName {
    /// The virtual clock.
    Sim,
    /// The real one.
    Live,
}

impl<W: LiveWords> CellSpec<W> {
    /// A cell from its text.
    ///
    /// # Errors
    /// Where a key is not known, a value is of the wrong kind, or a trace stands beside what it stands in place of.
    pub fn read(text: &str) -> Result<Self, SpecError> {
        let spec: Self = from_json("", text)?;
        spec.check_trace()?;
        Ok(spec)
    }

    /// A trace stands in place of a workload, and of whatever else says what is requested.
    fn check_trace(&self) -> Result<(), SpecError> {
        if self.trace.is_none() && self.workload.is_none() {
            return Err(SpecError::new("workload", "is missing; accepted: a workload, or a trace"));
        }
        let others = [
            (self.workload.is_some(), "a workload"),
            (self.files.is_some(), "whole files"),
            (self.streams.is_some(), "streams"),
        ];
        match others.iter().find(|(is_there, _)| *is_there && self.trace.is_some()) {
            Some((_, other)) => Err(SpecError::new("trace", format!("stands beside {other}; accepted: one of them"))),
            None => Ok(()),
        }
    }

    /// Its members, as the engine takes them.
    ///
    /// # Errors
    /// Where one is none that the engine knows.
    pub fn members<T: DeserializeOwned>(&self) -> Result<Vec<T>, SpecError> {
        let read = |(i, value): (usize, &serde_json::Value)| from_json(&format!("members[{i}]"), &value.to_string());
        self.members.iter().enumerate().map(read).collect()
    }

    /// When measuring begins and ends.
    pub fn limits(&self) -> Limits {
        Limits { warmup: self.warmup, measure: self.measure }
    }

    /// Whether anything of it may write to a member.
    fn may_write(&self) -> bool {
        let requests = self.workload.as_ref().is_some_and(WorkloadSpec::writes);
        let trace = self.trace.as_ref().is_some_and(|trace| trace.only != KindFilter::Reads);
        requests || trace || self.streams.is_some() || self.rebuild.is_some()
    }

    /// What the simulator is told. The trace, if there is one, is opened by whoever has files.
    ///
    /// # Errors
    /// Where a member is no device model, or a speed is given to the virtual clock.
    pub fn sim(self) -> Result<SimConfig, SpecError> {
        if let Some(speed) = self.speed {
            let message = format!("{speed}: virtual time has no speed; accepted: only with engine \"live\"");
            return Err(SpecError::new("speed", message));
        }
        let devices: Vec<DeviceSpec> = self.members()?;
        if let Some(i) = devices.iter().position(|device| !device.takes_writes()).filter(|_| self.may_write()) {
            return Err(SpecError::new(format!("members[{i}]"), READ_ONLY));
        }
        let limits = self.limits();
        Ok(SimConfig {
            tree: self.tree,
            policy: self.policy,
            devices,
            area_bytes: self.area_bytes,
            pair_pricing: self.pair_pricing,
            missing: self.missing,
            events: self.events,
            rebuild: self.rebuild,
            host: self.host,
            path: self.path,
            load: self.load,
            // Where a trace is replayed, nobody looks at it.
            workload: self.workload.unwrap_or_default(),
            files: self.files,
            streams: self.streams,
            limits,
            fill_caches: self.fill_caches,
            sector_bytes: self.sector_bytes,
            seed: self.seed,
        })
    }
}
