//! A cell of the direct engine: plain targets without an array.

use crate::answer::{backlog, hold, plain, recorded};
use crate::cell::{live_error, Teller};
use crate::error::from_json;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use raidlab_live::direct::{DirectConfig, DirectResult, Interface, Span};
use raidlab_live::{Stage, TargetSpec, Verify};
use raidlab_load::{Limit, Limits, LoadSpec, WorkloadSpec};
use serde::Deserialize;
use std::path::PathBuf;

/// The cell as its JSON text says it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DirectSpec {
    /// `direct`; what it is was read before.
    #[serde(rename = "engine")]
    _engine: String,
    seed: u64,
    targets: Vec<TargetSpec>,
    #[serde(default)]
    spans: Vec<Span>,
    #[serde(default = "one")]
    workers: u32,
    #[serde(default)]
    cpus: Vec<u32>,
    #[serde(default)]
    interface: Interface,
    #[serde(default)]
    buffered: bool,
    #[serde(default)]
    busy: bool,
    #[serde(default)]
    poll_completions: bool,
    #[serde(default)]
    batch: Option<u32>,
    #[serde(default)]
    compressible_percent: u32,
    #[serde(default)]
    sector_bytes: Option<u32>,
    #[serde(default)]
    destroy: Vec<PathBuf>,
    load: LoadSpec,
    workload: WorkloadSpec,
    #[serde(default)]
    verify: Verify,
    #[serde(default)]
    warmup: Limit,
    measure: Limit,
}

fn one() -> u32 {
    1
}

impl From<DirectSpec> for DirectConfig {
    fn from(spec: DirectSpec) -> DirectConfig {
        DirectConfig {
            targets: spec.targets,
            spans: spec.spans,
            workers: spec.workers,
            cpus: spec.cpus,
            interface: spec.interface,
            buffered: spec.buffered,
            busy: spec.busy,
            poll_completions: spec.poll_completions,
            batch: spec.batch,
            compressible_percent: spec.compressible_percent,
            sector_bytes: spec.sector_bytes,
            destroy: spec.destroy,
            load: spec.load,
            workload: spec.workload,
            limits: Limits { warmup: spec.warmup, measure: spec.measure },
            seed: spec.seed,
            verify: spec.verify,
        }
    }
}

/// Runs the cell of this text.
pub(crate) fn run<'py>(py: Python<'py>, request: &str, progress: Option<&Py<PyAny>>) -> PyResult<Bound<'py, PyDict>> {
    let spec: DirectSpec = from_json(py, "", request)?;
    let config = DirectConfig::from(spec);
    let teller = Teller { callback: progress, wanted: None };
    let mut observe = |p: raidlab_live::Progress| match p.stage {
        Stage::Running => teller.tell_share(p.fraction),
        _ => teller.tell_share(0.0),
    };
    let result = py.detach(|| raidlab_live::direct::run(&config, &mut observe));
    answer(py, config.seed, &result.map_err(|e| live_error(py, &e))?)
}

fn answer<'py>(py: Python<'py>, seed: u64, result: &DirectResult) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("engine", "direct")?;
    out.set_item("seed", seed)?;
    recorded(py, &out, &result.recorder)?;
    out.set_item("hold", hold(py, result.hold)?)?;
    out.set_item("members", plain(py, &result.members)?)?;
    out.set_item("stations", PyList::empty(py))?;
    out.set_item("stages", py.None())?;
    out.set_item("sector_bytes", result.engine.sector_bytes)?;
    out.set_item("backlog", backlog(py, &result.backlog)?)?;
    out.set_item("requests_of_run", plain(py, &result.requests)?)?;
    out.set_item("accounting", plain(py, &result.accounting)?)?;
    let facts = PyDict::new(py);
    facts.set_item("targets", plain(py, &result.targets)?)?;
    facts.set_item("engine", plain(py, &result.engine)?)?;
    out.set_item("facts", facts)?;
    out.set_item("stopped_by", result.stopped_by.as_ref().map(ToString::to_string))?;
    let checks = PyList::empty(py);
    for warning in &result.warnings {
        let check = PyDict::new(py);
        check.set_item("name", warning.name)?;
        check.set_item("verdict", "WARN")?;
        check.set_item("evidence", &warning.evidence)?;
        check.set_item("mend", warning.mend)?;
        checks.append(check)?;
    }
    for check in &result.checks {
        checks.append(plain(py, check)?)?;
    }
    out.set_item("content", plain(py, &result.content)?)?;
    out.set_item("checks", checks)?;
    out.set_item("interrupted", result.interrupted)?;
    Ok(out)
}
