//! Results as dictionaries of numbers and NumPy columns.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use raidlab_cell::{files, stages, BadDay, Part, Table};
use raidlab_device::Totals;
use raidlab_live::{LiveResult, MemberCounts};
use raidlab_load::{Recorder, Times};
use raidlab_sim::SimResult;
use serde_json::{json, Value};

/// A column of a table: its name, and what a row has there.
pub(crate) type Column<'a, Row> = (&'a str, fn(&Row) -> u64);

/// NumPy columns of whole numbers, by name: what every row has there.
pub(crate) fn columns<'py, Row, const N: usize>(
    py: Python<'py>,
    rows: &[Row],
    names: [Column<'_, Row>; N],
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for (name, value) in names {
        out.set_item(name, PyArray1::from_vec(py, rows.iter().map(value).collect()))?;
    }
    Ok(out)
}

/// A part of an answer as Python has it: tables are dictionaries, columns those of NumPy.
fn object<'py>(py: Python<'py>, part: Part) -> PyResult<Bound<'py, PyAny>> {
    match part {
        Part::Plain(value) => py.import("json")?.call_method1("loads", (value.to_string(),)),
        Part::Column(numbers) => Ok(PyArray1::from_vec(py, numbers).into_any()),
        Part::Table(parts) => {
            let out = PyDict::new(py);
            put(py, &out, parts)?;
            Ok(out.into_any())
        }
    }
}

fn put<'py>(py: Python<'py>, into: &Bound<'py, PyDict>, parts: Table) -> PyResult<()> {
    parts.into_iter().try_for_each(|(name, part)| into.set_item(name, object(py, part)?))
}

pub(crate) fn histogram<'py>(py: Python<'py>, times: &Times) -> PyResult<Bound<'py, PyAny>> {
    object(py, raidlab_cell::histogram(times))
}

/// The answer of an engine, with what its recorder says; histograms and rows are NumPy columns.
pub(crate) fn recorded<'py>(py: Python<'py>, answer: &Value, recorder: &Recorder) -> PyResult<Bound<'py, PyDict>> {
    let out = dict(py, answer)?;
    put(py, &out, raidlab_cell::recorded(recorder))?;
    Ok(out)
}

/// A JSON object as a dictionary of Python's, by way of its text: what is asked for once a cell is short.
pub(crate) fn dict<'py>(py: Python<'py>, object: &Value) -> PyResult<Bound<'py, PyDict>> {
    Ok(py.import("json")?.call_method1("loads", (object.to_string(),))?.cast_into()?)
}

/// The answer of a live cell.
pub(crate) fn of_live<'py>(py: Python<'py>, seed: u64, result: &LiveResult) -> PyResult<Bound<'py, PyDict>> {
    // Only modelled disks say where their time went; what the host spent is real, and in the times.
    let totals: Option<Vec<Totals>> = result.members.iter().map(totals_of).collect();
    let requests = result.recorder.requests();
    let mut checks = result.checks.clone();
    checks.extend(result.replayed.as_ref().map(crate::trace::check));
    let mut checks: Vec<serde_json::Value> = checks.iter().map(|check| json!(check)).collect();
    let bad_day = BadDay {
        rebuilds: &result.rebuilds,
        scrubs: &result.scrubs,
        sat_out: &result.sat_out,
        data_loss: result.data_loss,
        unreadable: result.unreadable,
        failed: result.recorder.all().failed,
    };
    checks.extend(bad_day.checks());
    let answer = json!({
        "engine": "live",
        "seed": seed,
        "hold": result.hold,
        "members": result.members,
        "stations": [],
        "stages": totals.map(|totals| stages(requests, 0, &totals)),
        "sector_bytes": result.engine.sector_bytes,
        "backlog": result.backlog,
        "accounting": result.accounting,
        "facts": {
            "targets": result.targets,
            "engine": result.engine,
            "failed_members": result.failed_members,
        },
        "stopped_by": result.stopped_by.as_ref().map(ToString::to_string),
        "checks": checks,
        "content": result.content,
        "replayed": result.replayed,
        "rebuilds": result.rebuilds,
        "scrubs": result.scrubs,
        "files": result.files.as_ref().map(files),
        "interrupted": result.interrupted,
    });
    recorded(py, &answer, &result.recorder)
}

/// An emulated member in the words of a simulated one.
fn totals_of(m: &MemberCounts) -> Option<Totals> {
    let mechanics = m.mechanics?;
    Some(Totals {
        reads: m.reads,
        writes: m.writes,
        others: m.others,
        read_bytes: m.read_bytes,
        write_bytes: m.write_bytes,
        busy_ns: mechanics.busy_ns,
        seek_ns: mechanics.seek_ns,
        rotation_ns: mechanics.rotation_ns,
        transfer_ns: mechanics.transfer_ns,
        overhead_ns: mechanics.overhead_ns,
        paired_ns: mechanics.paired_ns,
        wait_ns: m.wait_ns,
    })
}

/// The answer of a simulated cell.
pub(crate) fn of_sim<'py>(py: Python<'py>, seed: u64, result: &SimResult) -> PyResult<Bound<'py, PyDict>> {
    let checks = result.replayed.iter().map(|counts| json!(crate::trace::check(counts))).collect();
    recorded(py, &raidlab_cell::of_sim(seed, result, checks), &result.recorder)
}
