//! Running one cell.

use crate::answer::{self, Column};
use crate::error::{cell_error, from_json, live_error, spec_error};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use raidlab_array::{Policy, Tree};
use raidlab_device::{DeviceSpec, PairPricing};
use raidlab_live::{ContentMode, Emulation, Fault, LiveConfig, RunStage, TargetSpec, Verify};
use raidlab_load::files::FilesSpec;
use raidlab_load::streams::StreamSpec;
use raidlab_load::trace::{Replay, TraceSpec};
use raidlab_load::{Limit, Limits, LoadSpec, WorkloadSpec};
use raidlab_sim::{HostSpec, Observer, PathSpec, Progress, SimConfig};
use raidlab_types::number::{f64_from, usize_from};
use raidlab_types::{Instant, OpKind, Operation, Request};
use serde::Deserialize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use tracing::info;

/// A cell as its JSON text says it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellSpec {
    pub engine: EngineName,
    pub seed: u64,
    #[serde(default)]
    pub sector_bytes: Option<u32>,
    pub tree: Tree,
    #[serde(default)]
    pub policy: Policy,
    pub members: Vec<serde_json::Value>,
    #[serde(default)]
    pub missing: Vec<u32>,
    /// Live: block devices that may be overwritten.
    #[serde(default)]
    pub destroy: Vec<PathBuf>,
    /// Live: whether what is read is checked.
    #[serde(default)]
    pub content: ContentMode,
    /// Live: members that are to break.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// Live, over emulated members: how many times faster their time goes.
    #[serde(default)]
    pub speed: Option<f64>,
    #[serde(default)]
    pub pair_pricing: PairPricing,
    #[serde(default)]
    pub host: HostSpec,
    /// Simulator: the stations between the client and the disks.
    #[serde(default)]
    pub path: PathSpec,
    pub load: LoadSpec,
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
    pub verify: Verify,
    #[serde(default)]
    pub warmup: Limit,
    pub measure: Limit,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EngineName {
    Sim,
    Live,
}

/// The engine that a cell names; none where that cannot be read, for whoever reads the whole cell to complain of.
fn engine_named(request: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct EngineKey {
        engine: Option<String>,
    }
    serde_json::from_str::<EngineKey>(request).ok()?.engine
}

impl CellSpec {
    /// The trace, opened, if there is one.
    fn replay(&mut self) -> PyResult<Option<Replay>> {
        self.trace.take().map(crate::trace::replay).transpose()
    }

    /// A trace stands in place of a workload, and of whatever else says what is requested.
    fn check_trace(&self) -> PyResult<()> {
        if self.trace.is_none() && self.workload.is_none() {
            return Err(cell_error("workload", "is missing; accepted: a workload, or a trace"));
        }
        let others = [
            (self.workload.is_some(), "a workload"),
            (self.files.is_some(), "whole files"),
            (self.streams.is_some(), "streams"),
        ];
        match others.iter().find(|(is_there, _)| *is_there && self.trace.is_some()) {
            Some((_, other)) => Err(cell_error("trace", format!("stands beside {other}; accepted: one of them"))),
            None => Ok(()),
        }
    }

    fn members<T: serde::de::DeserializeOwned>(&self) -> PyResult<Vec<T>> {
        let read = |(i, value): (usize, &serde_json::Value)| from_json(&format!("members[{i}]"), &value.to_string());
        self.members.iter().enumerate().map(read).collect()
    }

    fn limits(&self) -> Limits {
        Limits { warmup: self.warmup, measure: self.measure }
    }

    fn live(self) -> PyResult<LiveConfig> {
        if self.streams.is_some() {
            let message =
                "streams are simulated here; accepted: with engine \"sim\" (on real members: engine \"streams\")";
            return Err(cell_error("streams", message));
        }
        for (key, is_said) in [("host", self.host != HostSpec::default()), ("path", self.path != PathSpec::default())] {
            if is_said {
                let message = "is modelled, and the host is real here; accepted: only with engine \"sim\"";
                return Err(cell_error(key, message));
            }
        }
        let targets: Vec<TargetSpec> = self.members()?;
        let limits = self.limits();
        Ok(LiveConfig {
            tree: self.tree,
            policy: self.policy,
            targets,
            missing: self.missing,
            load: self.load,
            // Where a trace is replayed, nobody looks at it.
            workload: self.workload.unwrap_or_default(),
            files: self.files,
            limits,
            seed: self.seed,
            sector_bytes: self.sector_bytes,
            content: self.content,
            destroy: self.destroy,
            faults: self.faults,
            trace_requests: 0,
            emulation: Emulation { speed: self.speed.unwrap_or(1.0), pair_pricing: self.pair_pricing },
            verify: self.verify,
        })
    }

    fn sim(self) -> PyResult<SimConfig> {
        if let Some(speed) = self.speed {
            let message = format!("{speed}: virtual time has no speed; accepted: only with engine \"live\"");
            return Err(cell_error("speed", message));
        }
        let devices: Vec<DeviceSpec> = self.members()?;
        let limits = self.limits();
        Ok(SimConfig {
            tree: self.tree,
            policy: self.policy,
            devices,
            pair_pricing: self.pair_pricing,
            missing: self.missing,
            host: self.host,
            path: self.path,
            load: self.load,
            // Where a trace is replayed, nobody looks at it.
            workload: self.workload.unwrap_or_default(),
            files: self.files,
            streams: self.streams,
            limits,
            sector_bytes: self.sector_bytes,
            seed: self.seed,
        })
    }
}

/// The caller's function that is called with the share done, 0 to 1, if it has given one.
#[derive(Clone, Copy)]
pub(crate) struct ProgressCall<'a>(Option<&'a Py<PyAny>>);

impl ProgressCall<'_> {
    /// Calls it; its answer `False`, an exception, or a signal stops the run.
    fn share(self, share: f64) -> ControlFlow<()> {
        Python::attach(|py| {
            // The signal is taken up here: the run ends, what it measured is kept and marked as interrupted.
            if py.check_signals().is_err() {
                return ControlFlow::Break(());
            }
            let Some(callback) = self.0 else { return ControlFlow::Continue(()) };
            match callback.call1(py, (share,)).and_then(|answer| answer.extract::<Option<bool>>(py)) {
                Ok(Some(false)) | Err(_) => ControlFlow::Break(()),
                Ok(_) => ControlFlow::Continue(()),
            }
        })
    }

    /// Reports a run on the real clock. The share done is that of its load: filling comes before, checking after.
    pub(crate) fn report(self, progress: raidlab_live::RunProgress) -> ControlFlow<()> {
        self.share(match progress.stage {
            RunStage::Filling | RunStage::Writing => 0.0,
            RunStage::Running => progress.fraction,
            RunStage::Checking => 1.0,
        })
    }
}

/// Reports a simulated run of so many requests.
struct SimProgress<'a> {
    call: ProgressCall<'a>,
    requests: Option<u64>,
}

impl Observer for SimProgress<'_> {
    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        let share = |total: u64| (f64_from(progress.requests) / f64_from(total.max(1))).min(1.0);
        self.call.share(self.requests.map_or(0.0, share))
    }
}

/// Runs one cell on the engine it names.
#[pyfunction]
#[pyo3(signature = (request, progress = None))]
pub(crate) fn run_cell<'py>(
    py: Python<'py>,
    request: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (engine, begun) = (engine_named(request), std::time::Instant::now());
    info!(engine = engine.as_deref(), "cell begins");
    let progress = ProgressCall(progress.as_ref());
    // Engines whose cells have keys of their own have doors of their own.
    let answer = match engine.as_deref() {
        Some("direct") => crate::direct::run(py, request, progress),
        Some("files") => crate::files::run(py, request, progress),
        Some("streams") => crate::streams::run(py, request, progress),
        _ => run_array(py, request, progress),
    };
    let (engine, elapsed_ms) = (engine.as_deref(), begun.elapsed().as_millis());
    match &answer {
        Ok(_) => info!(engine, elapsed_ms, "cell ended"),
        Err(error) => info!(engine, elapsed_ms, %error, "cell failed"),
    }
    answer
}

/// Runs a cell of an array on either clock.
fn run_array<'py>(py: Python<'py>, request: &str, progress: ProgressCall<'_>) -> PyResult<Bound<'py, PyDict>> {
    let mut spec = cell(request)?;
    let (seed, replay) = (spec.seed, spec.replay()?);
    match spec.engine {
        EngineName::Sim => {
            let mut observer = SimProgress { call: progress, requests: spec.measure.requests };
            let config = spec.sim()?;
            let result = py.detach(|| raidlab_sim::run_observed(&config, replay, &mut observer));
            answer::of_sim(py, seed, &result.map_err(spec_error)?)
        }
        EngineName::Live => {
            let config = spec.live()?;
            let result = py.detach(|| raidlab_live::run(&config, replay, &mut |p| progress.report(p)));
            answer::of_live(py, seed, &result.map_err(live_error)?)
        }
    }
}

/// Whether a cell of the engines `sim` and `live` could be run, as far as that can be said without opening anything.
#[pyfunction]
pub(crate) fn check_cell(request: &str) -> PyResult<()> {
    let mut spec = cell(request)?;
    let replay = spec.replay()?;
    match spec.engine {
        EngineName::Sim => raidlab_sim::check(&spec.sim()?, replay).map_err(spec_error),
        EngineName::Live => raidlab_live::check(&spec.live()?, replay).map_err(live_error),
    }
}

/// A cell from its text.
fn cell(request: &str) -> PyResult<CellSpec> {
    let spec: CellSpec = from_json("", request)?;
    spec.check_trace()?;
    Ok(spec)
}

/// A member operation: number of its request, leaf, whether it writes, sectors of the member.
type LoggedOperation = (u64, u32, bool, u64, u64);

/// The member operations of the first requests of a simulated cell, in the order in which they were issued.
struct OperationLog {
    requests: u64,
    entered: u64,
    /// Number of the request that has a tag now.
    by_tag: Vec<u64>,
    rows: Vec<LoggedOperation>,
}

impl Observer for OperationLog {
    fn request(&mut self, _now: Instant, request: &Request) {
        let tag = usize_from(request.tag);
        if tag >= self.by_tag.len() {
            self.by_tag.resize(tag + 1, 0);
        }
        self.by_tag[tag] = self.entered;
        self.entered += 1;
    }

    fn operation(&mut self, _now: Instant, op: &Operation) {
        // What a cache asks of the array belongs to no request.
        let Some(&request) = self.by_tag.get(usize_from(op.tag)) else { return };
        if request < self.requests {
            self.rows.push((request, op.leaf, op.kind == OpKind::Write, op.extent.lba, op.extent.sectors));
        }
    }
}

/// The member operations of the first `requests` requests of a cell, on the engine it names: columns `request`, `leaf`,
/// `write`, `lba`, `sectors`, sorted, so that two engines can be compared request by request.
#[pyfunction]
pub(crate) fn member_operations<'py>(py: Python<'py>, request: &str, requests: u64) -> PyResult<Bound<'py, PyDict>> {
    let mut spec = cell(request)?;
    let replay = spec.replay()?;
    let mut rows = match spec.engine {
        EngineName::Sim => {
            let config = spec.sim()?;
            let mut log = OperationLog { requests, entered: 0, by_tag: Vec::new(), rows: Vec::new() };
            py.detach(|| raidlab_sim::run_observed(&config, replay, &mut log)).map_err(spec_error)?;
            log.rows
        }
        EngineName::Live => {
            let config = LiveConfig { trace_requests: requests, ..spec.live()? };
            let mut go_on = |_: raidlab_live::RunProgress| ControlFlow::Continue(());
            let result = py.detach(|| raidlab_live::run(&config, replay, &mut go_on)).map_err(live_error)?;
            let row = |t: &raidlab_live::TracedOperation| {
                (t.request, t.leaf, t.kind == OpKind::Write, t.extent.lba, t.extent.sectors)
            };
            result.trace.iter().map(row).collect()
        }
    };
    rows.sort_unstable();
    let names: [Column<LoggedOperation>; 5] = [
        ("request", |r| r.0),
        ("leaf", |r| u64::from(r.1)),
        ("write", |r| u64::from(r.2)),
        ("lba", |r| r.3),
        ("sectors", |r| r.4),
    ];
    answer::columns(py, &rows, names)
}
