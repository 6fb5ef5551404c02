//! A cell of the direct engine: plain targets without an array.

use crate::answer::recorded;
use crate::cell::ProgressCall;
use crate::error::{from_json, live_error};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use raidlab_live::direct::{DirectConfig, DirectResult};
use serde_json::json;

/// Runs the cell of this text.
pub(crate) fn run<'py>(py: Python<'py>, request: &str, progress: ProgressCall<'_>) -> PyResult<Bound<'py, PyDict>> {
    let config: DirectConfig = from_json("", request)?;
    let result = py.detach(|| raidlab_live::direct::run(&config, &mut |p| progress.report(p)));
    answer(py, config.seed, &result.map_err(live_error)?)
}

fn answer<'py>(py: Python<'py>, seed: u64, result: &DirectResult) -> PyResult<Bound<'py, PyDict>> {
    let answer = json!({
        "engine": "direct",
        "seed": seed,
        "hold": result.hold,
        "members": result.members,
        "stations": [],
        "stages": null,
        "sector_bytes": result.engine.sector_bytes,
        "backlog": result.backlog,
        "requests_of_run": result.requests,
        "accounting": result.accounting,
        "facts": {"targets": result.targets, "engine": result.engine},
        "stopped_by": result.stopped_by.as_ref().map(ToString::to_string),
        "content": result.content,
        "checks": result.checks,
        "interrupted": result.interrupted,
    });
    recorded(py, &answer, &result.recorder)
}
