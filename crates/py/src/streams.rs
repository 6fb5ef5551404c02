//! The door of the engine `streams`: sequential streams between any two endpoints.

use crate::answer::dict;
use crate::cell::ProgressCall;
use crate::error::{from_json, live_error};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use raidlab_live::streams::{self, EndResult, LateResult, StreamResult, StreamVerify, StreamsConfig, StreamsResult};
use raidlab_load::Times;
use serde_json::{json, Value};

/// Runs a cell of this engine.
pub(crate) fn run<'py>(py: Python<'py>, request: &str, progress: ProgressCall<'_>) -> PyResult<Bound<'py, PyDict>> {
    let config: StreamsConfig = from_json("", request)?;
    let result = py.detach(|| streams::run(&config, &mut |p| progress.report(p))).map_err(live_error)?;
    dict(py, &answer(config.seed, &result))
}

fn answer(seed: u64, result: &StreamsResult) -> Value {
    json!({
        "engine": "streams",
        "seed": seed,
        "bytes": result.streams.iter().map(|s| s.bytes).sum::<u64>(),
        "elapsed_ns": result.elapsed_ns,
        "streams": result.streams.iter().map(stream).collect::<Vec<_>>(),
        "facts": {
            "endpoints": result.endpoints,
            "arrays": result.arrays,
            "data": result.data,
            "began_unix_ns": result.began_unix_ns,
        },
        "checks": result.checks(),
        "stopped_by": result.stopped_by.as_ref().map(ToString::to_string),
        "interrupted": result.interrupted,
    })
}

fn stream(one: &StreamResult) -> Value {
    json!({
        "name": one.name,
        "bytes": one.bytes,
        "blocks": one.blocks,
        "start_ns": one.start_ns,
        "elapsed_ns": one.elapsed_ns,
        "sync_ns": one.sync_ns,
        "paced_ns": one.paced_ns,
        "overlapped": one.overlapped,
        "bound_by": one.bound_by(),
        "source": end(&one.source),
        "sink": end(&one.sink),
        "late": one.late.as_ref().map(late),
        "series": {
            "time_ns": (1..=one.series.len() as u64).map(|second| second * 1_000_000_000).collect::<Vec<_>>(),
            "bytes": one.series,
        },
        "verify": one.verify.as_ref().map(verify),
    })
}

fn end(end: &EndResult) -> Value {
    json!({
        "busy_ns": end.busy_ns,
        "waited_ns": end.waited_ns,
        "time": histogram(&end.time),
        "time_mean_ns": end.time.mean_ns(),
        "stops": end.stops,
    })
}

fn late(late: &LateResult) -> Value {
    json!({"time": histogram(&late.time), "mean_ns": late.time.mean_ns(), "max_ns": late.max_ns})
}

fn verify(verify: &StreamVerify) -> Value {
    json!({
        "blocks_checked": verify.blocks_checked,
        "mismatch_count": verify.mismatch_count,
        "mismatch_offsets": verify.mismatches,
    })
}

fn histogram(times: &Times) -> Value {
    let (values, counts): (Vec<u64>, Vec<u64>) = times.columns().unzip();
    json!({"value_ns": values, "count": counts})
}
