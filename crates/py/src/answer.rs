//! Results as dictionaries of numbers and NumPy columns.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use raidlab_device::Totals;
use raidlab_live::{LiveResult, MemberCounts};
use raidlab_load::files::{AccessName, FilesRecord};
use raidlab_load::{Recorder, Snapshot, Tally, Times};
use raidlab_sim::{SimResult, HOST_CPU};
use raidlab_types::number::f64_from;
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

pub(crate) fn histogram<'py>(py: Python<'py>, times: &Times) -> PyResult<Bound<'py, PyDict>> {
    let rows: Vec<(u64, u64)> = times.columns().collect();
    columns(py, &rows, [("value_ns", |r| r.0), ("count", |r| r.1)])
}

fn tally<'py>(py: Python<'py>, tally: &Tally) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("requests", tally.requests)?;
    out.set_item("bytes", tally.bytes)?;
    out.set_item("failed", tally.failed)?;
    out.set_item("response", histogram(py, &tally.response)?)?;
    out.set_item("service", histogram(py, &tally.service)?)?;
    out.set_item("response_mean_ns", tally.response.mean_ns())?;
    out.set_item("service_mean_ns", tally.service.mean_ns())?;
    Ok(out)
}

/// The answer of an engine, with what its recorder says; histograms and rows are NumPy columns.
pub(crate) fn recorded<'py>(py: Python<'py>, answer: &Value, recorder: &Recorder) -> PyResult<Bound<'py, PyDict>> {
    let out = dict(py, answer)?;
    let (all, tasks) = (recorder.all(), recorder.tasks());
    out.set_item("requests", all.requests)?;
    out.set_item("tasks", tasks.requests)?;
    out.set_item("elapsed_ns", recorder.elapsed().as_ns())?;
    out.set_item("read", tally(py, recorder.read())?)?;
    out.set_item("write", tally(py, recorder.write())?)?;
    out.set_item("all", tally(py, &all)?)?;
    out.set_item("task", tally(py, &tasks)?)?;
    out.set_item("depth", recorder.mean_in_flight())?;
    if let Some(gaps) = recorder.gaps() {
        out.set_item("gaps", histogram(py, gaps)?)?;
    }
    let rows: Vec<Snapshot> = recorder.snapshots().collect();
    let snapshots = columns(
        py,
        &rows,
        [
            ("time_ns", |s| s.time_ns),
            ("requests", |s| s.requests),
            ("bytes", |s| s.bytes),
            ("response_sum_ns", |s| s.response_sum_ns),
        ],
    )?;
    let rows = recorder.second_histograms();
    let histograms = columns(py, &rows, [("time_ns", |r| r.0), ("value_ns", |r| r.1), ("count", |r| r.2)])?;
    snapshots.set_item("histograms", histograms)?;
    out.set_item("snapshots", snapshots)?;
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
    let requests = result.recorder.all().requests;
    let mut checks = result.checks.clone();
    checks.extend(result.replayed.as_ref().map(crate::trace::check));
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

/// Means a request of where its time went: the host's work, waiting for members, their arms, rotation and transfer.
fn stages(requests: u64, host_cpu_ns: u64, members: &[Totals]) -> Value {
    let requests = f64_from(requests.max(1));
    let sum = |of: fn(&Totals) -> u64| f64_from(members.iter().map(of).sum::<u64>()) / requests;
    json!({
        "host_cpu_ns": f64_from(host_cpu_ns) / requests,
        "accesses": sum(|t| t.reads + t.writes),
        "queue_ns": sum(|t| t.wait_ns),
        "disconnect_ns": sum(|t| t.seek_ns + t.rotation_ns),
        "transfer_ns": sum(|t| t.transfer_ns),
        "overhead_ns": sum(|t| t.overhead_ns),
        "paired_ns": sum(|t| t.paired_ns),
    })
}

/// What whole files asked for: accesses by name, times by size.
fn files(record: &FilesRecord) -> Value {
    let mean = |sum: u128, count: u64| f64_from(sum) / f64_from(count.max(1));
    let accesses = AccessName::ALL.map(|name| {
        let totals = record.accesses(name);
        json!({
            "name": name.name(),
            "count": totals.count,
            "bytes": totals.bytes,
            "found": totals.found,
            "mean_ns": mean(u128::from(totals.time_ns), totals.answered),
        })
    });
    let by_size = record.by_size.values();
    json!({
        "files": record.files,
        "open_mean_ns": mean(record.open_ns, record.files),
        "first_byte_mean_ns": mean(record.first_byte_ns, record.files),
        "accesses": accesses,
        "sizes": {
            "size_bytes": record.by_size.keys().collect::<Vec<_>>(),
            "files": by_size.clone().map(|size| size.files).collect::<Vec<_>>(),
            "time_ns": by_size.map(|size| u64::try_from(size.time_ns).unwrap_or(u64::MAX)).collect::<Vec<_>>(),
        },
    })
}

/// The answer of a simulated cell.
pub(crate) fn of_sim<'py>(py: Python<'py>, seed: u64, result: &SimResult) -> PyResult<Bound<'py, PyDict>> {
    let of_host = result.stations.iter().filter(|station| station.name == HOST_CPU).map(|station| station.busy_ns);
    let totals: Vec<Totals> = result.members.iter().map(|member| member.totals).collect();
    let answer = json!({
        "engine": "sim",
        "seed": seed,
        "hold": result.hold,
        "members": result.members,
        "stations": result.stations,
        "stages": stages(result.recorder.all().requests, of_host.sum(), &totals),
        "sector_bytes": result.sector_bytes,
        "user_bytes": result.user_bytes,
        "backlog": result.backlog,
        "files": result.files.as_ref().map(files),
        "streams": result.streams,
        "facts": {},
        "checks": result.replayed.iter().map(crate::trace::check).collect::<Vec<_>>(),
        "replayed": result.replayed,
        "interrupted": result.interrupted,
    });
    recorded(py, &answer, &result.recorder)
}
