//! Running one cell.

use crate::answer::{self, Column};
use crate::error::{cell_error, live_error, spec_error};
use crate::records::{recorded, WhenFull};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use raidlab_cell::{CellSpec, EngineName, LiveWords};
use raidlab_live::{ContentMode, Emulation, Fault, LiveConfig, RunStage, TargetSpec, Verify};
use raidlab_load::trace::Replay;
use raidlab_sim::{HostSpec, Observer, PathSpec, Progress};
use raidlab_types::number::{f64_from, usize_from};
use raidlab_types::{Instant, OpKind, Operation, Request, SpecError};
use serde::Deserialize;
use std::ops::ControlFlow;
use tracing::info;

/// The words of live cells are the live engine's.
struct Live;

impl LiveWords for Live {
    type Content = ContentMode;
    type Fault = Fault;
    type Verify = Verify;
}

type Cell = CellSpec<Live>;

/// The engine that a cell names; none where that cannot be read, for whoever reads the whole cell to complain of.
fn engine_named(request: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct EngineKey {
        engine: Option<String>,
    }
    serde_json::from_str::<EngineKey>(request).ok()?.engine
}

/// The trace of a cell, opened, if there is one.
fn replay_of(spec: &mut Cell) -> PyResult<Option<Replay>> {
    spec.trace.take().map(crate::trace::replay).transpose()
}

/// What the live engine is told.
fn live_config(spec: Cell) -> Result<LiveConfig, SpecError> {
    if spec.streams.is_some() {
        let message = "streams are simulated here; accepted: with engine \"sim\" (on real members: engine \"streams\")";
        return Err(SpecError::new("streams", message));
    }
    let of_models = [
        ("host", spec.host != HostSpec::default()),
        ("path", spec.path != PathSpec::default()),
        ("fill_caches", spec.fill_caches),
        ("area_bytes", spec.area_bytes.is_some()),
    ];
    for (key, is_said) in of_models {
        if is_said {
            let message = "is modelled, and the host is real here; accepted: only with engine \"sim\"";
            return Err(SpecError::new(key, message));
        }
    }
    let targets: Vec<TargetSpec> = spec.members()?;
    let limits = spec.limits();
    Ok(LiveConfig {
        tree: spec.tree,
        policy: spec.policy,
        targets,
        missing: spec.missing,
        events: spec.events,
        rebuild: spec.rebuild,
        load: spec.load,
        // Where a trace is replayed, nobody looks at it.
        workload: spec.workload.unwrap_or_default(),
        files: spec.files,
        limits,
        seed: spec.seed,
        sector_bytes: spec.sector_bytes,
        content: spec.content,
        destroy: spec.destroy,
        faults: spec.faults,
        trace_requests: 0,
        emulation: Emulation { speed: spec.speed.unwrap_or(1.0), pair_pricing: spec.pair_pricing },
        verify: spec.verify,
    })
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
///
/// `records` is called with the columns of some requests after another, as they end; cells of the engines `sim` and `live`.
#[pyfunction]
#[pyo3(signature = (request, progress = None, records = None))]
pub(crate) fn run_cell<'py>(
    py: Python<'py>,
    request: &str,
    progress: Option<Py<PyAny>>,
    records: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (engine, begun) = (engine_named(request), std::time::Instant::now());
    info!(engine = engine.as_deref(), "cell begins");
    let progress = ProgressCall(progress.as_ref());
    // Engines whose cells have keys of their own have doors of their own.
    let answer = match engine.as_deref() {
        Some(engine @ ("direct" | "files" | "streams")) if records.is_some() => {
            let message = format!("are not kept by the engine \"{engine}\"; accepted: \"sim\", \"live\"");
            return Err(cell_error("records", message));
        }
        Some("direct") => crate::direct::run(py, request, progress),
        Some("files") => crate::files::run(py, request, progress),
        Some("streams") => crate::streams::run(py, request, progress),
        _ => run_array(py, request, progress, records.as_ref()),
    };
    let (engine, elapsed_ms) = (engine.as_deref(), begun.elapsed().as_millis());
    match &answer {
        Ok(_) => info!(engine, elapsed_ms, "cell ended"),
        Err(error) => info!(engine, elapsed_ms, %error, "cell failed"),
    }
    answer
}

/// Runs a cell of an array on either clock.
fn run_array<'py>(
    py: Python<'py>,
    request: &str,
    progress: ProgressCall<'_>,
    records: Option<&Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut spec = Cell::read(request).map_err(spec_error)?;
    let (seed, replay) = (spec.seed, replay_of(&mut spec)?);
    match spec.engine {
        EngineName::Sim => {
            let mut observer = SimProgress { call: progress, requests: spec.measure.requests };
            let config = spec.sim().map_err(spec_error)?;
            let (result, lost) = py.detach(|| match records {
                None => (raidlab_sim::run_observed(&config, replay, &mut observer), None),
                Some(call) => {
                    recorded(call, WhenFull::Wait, |log| raidlab_sim::run_recorded(&config, replay, log, &mut observer))
                }
            });
            with_lost(answer::of_sim(py, seed, &result.map_err(spec_error)?)?, lost)
        }
        EngineName::Live => {
            let config = live_config(spec).map_err(spec_error)?;
            let mut report = |p| progress.report(p);
            let (result, lost) = py.detach(|| match records {
                None => (raidlab_live::run(&config, replay, &mut report), None),
                Some(call) => {
                    recorded(call, WhenFull::Lose, |log| raidlab_live::run_recorded(&config, replay, log, &mut report))
                }
            });
            with_lost(answer::of_live(py, seed, &result.map_err(live_error)?)?, lost)
        }
    }
}

/// The answer with how many requests left no row, where rows were kept.
fn with_lost(answer: Bound<'_, PyDict>, lost: Option<u64>) -> PyResult<Bound<'_, PyDict>> {
    if let Some(lost) = lost {
        answer.set_item("records_lost", lost)?;
    }
    Ok(answer)
}

/// Whether a cell of the engines `sim` and `live` could be run, as far as that can be said without opening anything.
#[pyfunction]
pub(crate) fn check_cell(request: &str) -> PyResult<()> {
    let mut spec = Cell::read(request).map_err(spec_error)?;
    let replay = replay_of(&mut spec)?;
    match spec.engine {
        EngineName::Sim => raidlab_sim::check(&spec.sim().map_err(spec_error)?, replay).map_err(spec_error),
        EngineName::Live => raidlab_live::check(&live_config(spec).map_err(spec_error)?, replay).map_err(live_error),
    }
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
    let mut spec = Cell::read(request).map_err(spec_error)?;
    let replay = replay_of(&mut spec)?;
    let mut rows = match spec.engine {
        EngineName::Sim => {
            let config = spec.sim().map_err(spec_error)?;
            let mut log = OperationLog { requests, entered: 0, by_tag: Vec::new(), rows: Vec::new() };
            py.detach(|| raidlab_sim::run_observed(&config, replay, &mut log)).map_err(spec_error)?;
            log.rows
        }
        EngineName::Live => {
            let config = LiveConfig { trace_requests: requests, ..live_config(spec).map_err(spec_error)? };
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
