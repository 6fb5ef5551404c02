//! A cell of the direct engine: plain targets without an array.

use crate::answer::{backlog, hold, plain, recorded};
use crate::cell::{live_error, Teller};
use crate::error::from_json;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use raidlab_live::direct::{DirectConfig, DirectResult};
use raidlab_live::Stage;

/// Runs the cell of this text.
pub(crate) fn run<'py>(py: Python<'py>, request: &str, progress: Option<&Py<PyAny>>) -> PyResult<Bound<'py, PyDict>> {
    let config: DirectConfig = from_json(py, "", request)?;
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
    out.set_item("content", plain(py, &result.content)?)?;
    out.set_item("checks", plain(py, &result.checks)?)?;
    out.set_item("interrupted", result.interrupted)?;
    Ok(out)
}
