//! The door of the engine `streams`: sequential streams between any two endpoints.

use crate::answer::{column, histogram, plain};
use crate::cell::{live_error, Teller};
use crate::files::without_engine;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use raidlab_live::streams::{self, EndResult, LateResult, StreamResult, StreamVerify, StreamsConfig, StreamsResult};
use raidlab_live::{Progress, Stage};

/// Runs a cell of this engine.
pub(crate) fn run<'py>(py: Python<'py>, request: &str, progress: Option<&Py<PyAny>>) -> PyResult<Bound<'py, PyDict>> {
    let config: StreamsConfig = without_engine(py, request)?;
    let teller = Teller { callback: progress, wanted: None };
    let mut observe = |p: Progress| {
        teller.tell_share(match p.stage {
            Stage::Running => p.fraction,
            Stage::Filling | Stage::Writing => 0.0,
            Stage::Checking => 1.0,
        })
    };
    let result = py.detach(|| streams::run(&config, &mut observe)).map_err(|e| live_error(py, &e))?;
    answer(py, config.seed, &result)
}

fn answer<'py>(py: Python<'py>, seed: u64, result: &StreamsResult) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("engine", "streams")?;
    out.set_item("seed", seed)?;
    out.set_item("bytes", result.streams.iter().map(|s| s.bytes).sum::<u64>())?;
    out.set_item("elapsed_ns", result.elapsed_ns)?;
    let all = result.streams.iter().map(|one| stream(py, one)).collect::<PyResult<Vec<_>>>()?;
    out.set_item("streams", PyList::new(py, all)?)?;
    let facts = PyDict::new(py);
    facts.set_item("endpoints", plain(py, &result.endpoints)?)?;
    facts.set_item("arrays", plain(py, &result.arrays)?)?;
    facts.set_item("data", plain(py, &result.data)?)?;
    out.set_item("facts", facts)?;
    out.set_item("checks", plain(py, &result.checks())?)?;
    out.set_item("stopped_by", result.stopped_by.as_ref().map(ToString::to_string))?;
    out.set_item("interrupted", result.interrupted)?;
    Ok(out)
}

fn stream<'py>(py: Python<'py>, one: &StreamResult) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("name", &one.name)?;
    for (key, value) in [
        ("bytes", one.bytes),
        ("blocks", one.blocks),
        ("start_ns", one.start_ns),
        ("elapsed_ns", one.elapsed_ns),
        ("sync_ns", one.sync_ns),
        ("paced_ns", one.paced_ns),
    ] {
        out.set_item(key, value)?;
    }
    out.set_item("overlapped", one.overlapped)?;
    out.set_item("bound_by", one.bound_by())?;
    out.set_item("source", end(py, &one.source)?)?;
    out.set_item("sink", end(py, &one.sink)?)?;
    out.set_item("late", one.late.as_ref().map(|l| late(py, l)).transpose()?)?;
    let series = PyDict::new(py);
    column(py, &series, "time_ns", (1..=one.series.len() as u64).map(|second| second * 1_000_000_000))?;
    column(py, &series, "bytes", one.series.iter().copied())?;
    out.set_item("series", series)?;
    out.set_item("verify", one.verify.as_ref().map(|v| verify(py, v)).transpose()?)?;
    Ok(out)
}

fn end<'py>(py: Python<'py>, end: &EndResult) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("busy_ns", end.busy_ns)?;
    out.set_item("waited_ns", end.waited_ns)?;
    out.set_item("time", histogram(py, &end.time)?)?;
    out.set_item("time_mean_ns", end.time.mean_ns())?;
    out.set_item("stops", end.stops)?;
    Ok(out)
}

fn late<'py>(py: Python<'py>, late: &LateResult) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("time", histogram(py, &late.time)?)?;
    out.set_item("mean_ns", late.time.mean_ns())?;
    out.set_item("max_ns", late.max_ns)?;
    Ok(out)
}

fn verify<'py>(py: Python<'py>, verify: &StreamVerify) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("blocks_checked", verify.blocks_checked)?;
    out.set_item("mismatch_count", verify.mismatch_count)?;
    column(py, &out, "mismatch_offsets", verify.mismatches.iter().copied())?;
    Ok(out)
}
