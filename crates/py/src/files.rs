//! The door of the engine `files`: whole files opened and read.

use crate::answer::{column, histogram, plain};
use crate::cell::{live_error, Teller};
use crate::error::{cell_error, from_json};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use raidlab_live::files::{self, FilesConfig, FilesResult, FillResult, ReadRecord, ReadResult};
use raidlab_live::{Progress, Stage};
use serde_json::Value;

/// Runs a cell of this engine.
pub(crate) fn run<'py>(py: Python<'py>, request: &str, progress: Option<&Py<PyAny>>) -> PyResult<Bound<'py, PyDict>> {
    let config: FilesConfig = without_engine(py, request)?;
    let teller = Teller { callback: progress, wanted: None };
    let mut observe = |p: Progress| teller.tell_share(if p.stage == Stage::Running { p.fraction } else { 0.0 });
    let result = py.detach(|| files::run(&config, &mut observe)).map_err(|e| live_error(py, &e))?;
    answer(py, config.seed, &result)
}

/// A cell without its key `engine`, which has been looked at.
pub(crate) fn without_engine<T: serde::de::DeserializeOwned>(py: Python<'_>, request: &str) -> PyResult<T> {
    let mut cell: Value = from_json(py, "", request)?;
    if let Value::Object(keys) = &mut cell {
        keys.remove("engine");
    }
    let text = serde_json::to_string(&cell).map_err(|e| cell_error(py, "", &e.to_string()))?;
    from_json(py, "", &text)
}

fn answer<'py>(py: Python<'py>, seed: u64, result: &FilesResult) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("engine", "files")?;
    out.set_item("seed", seed)?;
    let files = PyDict::new(py);
    column(py, &files, "size_bytes", result.size_bytes.iter().copied())?;
    column(py, &files, "directory", result.directory.iter().map(|&d| u64::from(d)))?;
    out.set_item("files", files)?;
    out.set_item("fill", result.fill.as_ref().map(|fill| fill_answer(py, fill)).transpose()?)?;
    out.set_item("read", read_answer(py, &result.read)?)?;
    let facts = PyDict::new(py);
    facts.set_item("directories", plain(py, &result.directories)?)?;
    out.set_item("facts", facts)?;
    out.set_item("checks", plain(py, &result.content.as_ref().into_iter().collect::<Vec<_>>())?)?;
    out.set_item("stopped_by", result.stopped_by.as_ref().map(ToString::to_string))?;
    out.set_item("interrupted", result.interrupted)?;
    Ok(out)
}

fn fill_answer<'py>(py: Python<'py>, fill: &FillResult) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("files", fill.records.len())?;
    out.set_item("bytes", fill.records.iter().map(|r| r.size_bytes).sum::<u64>())?;
    out.set_item("elapsed_ns", fill.elapsed_ns)?;
    out.set_item("content_ns", fill.content_ns)?;
    out.set_item("sync_ns", fill.sync_ns)?;
    let records = PyDict::new(py);
    let set = |key, value: fn(&files::FillRecord) -> u64| column(py, &records, key, fill.records.iter().map(value));
    set("file", |r| u64::from(r.file))?;
    set("size_bytes", |r| r.size_bytes)?;
    set("start_ns", |r| r.start_ns)?;
    set("create_ns", |r| r.create_ns)?;
    set("write_ns", |r| r.write_ns)?;
    set("sync_ns", |r| r.sync_ns)?;
    set("total_ns", |r| r.total_ns)?;
    out.set_item("records", records)?;
    Ok(out)
}

fn read_answer<'py>(py: Python<'py>, read: &ReadResult) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("files", read.records.len())?;
    out.set_item("bytes", read.bytes())?;
    out.set_item("warmup_files", read.warmup_files)?;
    out.set_item("elapsed_ns", read.elapsed_ns)?;
    let (cached_files, cached_bytes) = read.cached();
    out.set_item("cached_files", cached_files)?;
    out.set_item("cached_bytes", cached_bytes)?;
    out.set_item("unknown_files", read.unknown())?;
    for (name, times) in [("open", &read.open), ("first_byte", &read.first_byte), ("total", &read.total)] {
        out.set_item(name, histogram(py, times)?)?;
        out.set_item(format!("{name}_mean_ns"), times.mean_ns())?;
    }
    let records = PyDict::new(py);
    let set = |key, value: fn(&ReadRecord) -> u64| column(py, &records, key, read.records.iter().map(value));
    set("reader", |r| u64::from(r.reader))?;
    set("file", |r| u64::from(r.file))?;
    set("size_bytes", |r| r.size_bytes)?;
    set("start_ns", |r| r.start_ns)?;
    set("open_ns", |r| r.open_ns)?;
    set("first_byte_ns", |r| r.first_byte_ns)?;
    set("total_ns", |r| r.total_ns)?;
    set("cached_bytes", |r| r.cached_bytes)?;
    out.set_item("records", records)?;
    Ok(out)
}
