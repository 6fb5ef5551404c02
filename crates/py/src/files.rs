//! The door of the engine `files`: whole files opened and read.

use crate::answer::{columns, dict, histogram};
use crate::cell::ProgressCall;
use crate::error::{from_json, live_error};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use raidlab_live::files::{self, FilesConfig, FilesResult, FillResult, ReadResult};
use serde_json::json;

/// Runs a cell of this engine.
pub(crate) fn run<'py>(py: Python<'py>, request: &str, progress: ProgressCall<'_>) -> PyResult<Bound<'py, PyDict>> {
    let config: FilesConfig = from_json("", request)?;
    let result = py.detach(|| files::run(&config, &mut |p| progress.report(p))).map_err(live_error)?;
    answer(py, config.seed, &result)
}

fn answer<'py>(py: Python<'py>, seed: u64, result: &FilesResult) -> PyResult<Bound<'py, PyDict>> {
    let answer = json!({
        "engine": "files",
        "seed": seed,
        "facts": {"directories": result.directories, "began_unix_ns": result.began_unix_ns},
        "checks": result.content.iter().collect::<Vec<_>>(),
        "stopped_by": result.stopped_by.as_ref().map(ToString::to_string),
        "interrupted": result.interrupted,
    });
    let out = dict(py, &answer)?;
    let files: Vec<(u64, u32)> = result.size_bytes.iter().copied().zip(result.directory.iter().copied()).collect();
    out.set_item("files", columns(py, &files, [("size_bytes", |f| f.0), ("directory", |f| u64::from(f.1))])?)?;
    out.set_item("fill", result.fill.as_ref().map(|fill| fill_answer(py, fill)).transpose()?)?;
    out.set_item("read", read_answer(py, &result.read)?)?;
    Ok(out)
}

fn fill_answer<'py>(py: Python<'py>, fill: &FillResult) -> PyResult<Bound<'py, PyDict>> {
    let answer = json!({
        "files": fill.records.len(),
        "bytes": fill.records.iter().map(|r| r.size_bytes).sum::<u64>(),
        "elapsed_ns": fill.elapsed_ns,
        "content_ns": fill.content_ns,
        "sync_ns": fill.sync_ns,
    });
    let records = columns(
        py,
        &fill.records,
        [
            ("file", |r| u64::from(r.file)),
            ("size_bytes", |r| r.size_bytes),
            ("start_ns", |r| r.start_ns),
            ("create_ns", |r| r.create_ns),
            ("write_ns", |r| r.write_ns),
            ("sync_ns", |r| r.sync_ns),
            ("total_ns", |r| r.total_ns),
        ],
    )?;
    let out = dict(py, &answer)?;
    out.set_item("records", records)?;
    Ok(out)
}

fn read_answer<'py>(py: Python<'py>, read: &ReadResult) -> PyResult<Bound<'py, PyDict>> {
    let (cached_files, cached_bytes) = read.cached();
    let answer = json!({
        "files": read.records.len(),
        "bytes": read.bytes(),
        "warmup_files": read.warmup_files,
        "elapsed_ns": read.elapsed_ns,
        "cached_files": cached_files,
        "cached_bytes": cached_bytes,
        "unknown_files": read.unknown(),
    });
    let out = dict(py, &answer)?;
    for (name, times) in [("open", &read.open), ("first_byte", &read.first_byte), ("total", &read.total)] {
        out.set_item(name, histogram(py, times)?)?;
        out.set_item(format!("{name}_mean_ns"), times.mean_ns())?;
    }
    let records = columns(
        py,
        &read.records,
        [
            ("reader", |r| u64::from(r.reader)),
            ("file", |r| u64::from(r.file)),
            ("size_bytes", |r| r.size_bytes),
            ("start_ns", |r| r.start_ns),
            ("open_ns", |r| r.open_ns),
            ("first_byte_ns", |r| r.first_byte_ns),
            ("total_ns", |r| r.total_ns),
            ("cached_bytes", |r| r.cached_bytes),
        ],
    )?;
    out.set_item("records", records)?;
    Ok(out)
}
