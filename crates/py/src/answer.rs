//! Results as dictionaries of numbers and NumPy columns.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use raidlab_device::Totals;
use raidlab_live::{LiveResult, MemberCounts};
use raidlab_load::files::{AccessName, FilesRecord};
use raidlab_load::{Backlog, HoldReport, Recorder, Tally, Times};
use raidlab_sim::{MemberResult, SimResult, StationResult, HOST_CPU};
use raidlab_types::number::f64_from;

/// Sets `key` to a uint64 column.
pub(crate) fn column(
    py: Python<'_>,
    out: &Bound<'_, PyDict>,
    key: &str,
    values: impl Iterator<Item = u64>,
) -> PyResult<()> {
    out.set_item(key, PyArray1::from_vec(py, values.collect::<Vec<u64>>()))
}

pub(crate) fn histogram<'py>(py: Python<'py>, times: &Times) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let rows: Vec<(u64, u64)> = times.columns().collect();
    column(py, &out, "value_ns", rows.iter().map(|r| r.0))?;
    column(py, &out, "count", rows.iter().map(|r| r.1))?;
    Ok(out)
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

/// What every engine's recorder answers.
pub(crate) fn recorded(py: Python<'_>, out: &Bound<'_, PyDict>, recorder: &Recorder) -> PyResult<()> {
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
    let snapshots = PyDict::new(py);
    let rows: Vec<_> = recorder.snapshots().collect();
    column(py, &snapshots, "time_ns", rows.iter().map(|s| s.time_ns))?;
    column(py, &snapshots, "requests", rows.iter().map(|s| s.requests))?;
    column(py, &snapshots, "bytes", rows.iter().map(|s| s.bytes))?;
    column(py, &snapshots, "response_sum_ns", rows.iter().map(|s| s.response_sum_ns))?;
    let (histograms, rows) = (PyDict::new(py), recorder.second_histograms());
    column(py, &histograms, "time_ns", rows.iter().map(|r| r.0))?;
    column(py, &histograms, "value_ns", rows.iter().map(|r| r.1))?;
    column(py, &histograms, "count", rows.iter().map(|r| r.2))?;
    snapshots.set_item("histograms", histograms)?;
    out.set_item("snapshots", snapshots)
}

pub(crate) fn hold<'py>(py: Python<'py>, report: Option<HoldReport>) -> PyResult<Option<Bound<'py, PyDict>>> {
    report
        .map(|h| {
            let out = PyDict::new(py);
            out.set_item("depth_mean", h.depth_mean)?;
            out.set_item("depth_final", h.depth_final)?;
            out.set_item("share_within_target", h.share_within_target)?;
            out.set_item("settled", h.settled)?;
            Ok(out)
        })
        .transpose()
}

pub(crate) fn backlog<'py>(py: Python<'py>, b: &Backlog) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("max_waiting", b.max_waiting)?;
    out.set_item("final_waiting", b.final_waiting)?;
    out.set_item("max_in_flight", b.max_in_flight)?;
    out.set_item("max_delay_ns", b.max_delay_ns)?;
    Ok(out)
}

/// Plain data of the engine's as Python objects, by way of JSON: facts are small and come once a cell.
pub(crate) fn plain<'py, T: serde::Serialize>(py: Python<'py>, value: &T) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(value).map_err(|e| crate::error::cell_error(py, "", &e.to_string()))?;
    py.import("json")?.call_method1("loads", (text,))
}

/// The answer of a live cell.
pub(crate) fn of_live<'py>(py: Python<'py>, seed: u64, result: &LiveResult) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("engine", "live")?;
    out.set_item("seed", seed)?;
    recorded(py, &out, &result.recorder)?;
    out.set_item("hold", hold(py, result.hold)?)?;
    out.set_item("members", plain(py, &result.members)?)?;
    out.set_item("stations", PyList::empty(py))?;
    // Only modelled disks say where their time went; what the host spent is real, and in the times.
    let totals: Option<Vec<Totals>> = result.members.iter().map(totals_of).collect();
    let requests = result.recorder.all().requests;
    out.set_item("stages", totals.map(|totals| stages(py, requests, 0, totals.iter())).transpose()?)?;
    out.set_item("sector_bytes", result.engine.sector_bytes)?;
    out.set_item("backlog", backlog(py, &result.backlog)?)?;
    out.set_item("accounting", plain(py, &result.accounting)?)?;
    let facts = PyDict::new(py);
    facts.set_item("targets", plain(py, &result.targets)?)?;
    facts.set_item("engine", plain(py, &result.engine)?)?;
    facts.set_item("failed_members", plain(py, &result.failed_members)?)?;
    out.set_item("facts", facts)?;
    out.set_item("stopped_by", result.stopped_by.as_ref().map(ToString::to_string))?;
    let checks = plain(py, &result.checks)?;
    if let Some(replayed) = &result.replayed {
        checks.call_method1("append", (crate::trace::check(py, replayed)?,))?;
    }
    out.set_item("checks", checks)?;
    out.set_item("content", plain(py, &result.content)?)?;
    out.set_item("replayed", result.replayed.as_ref().map(|r| crate::trace::replayed(py, r)).transpose()?)?;
    out.set_item("files", result.files.as_ref().map(|record| files(py, record)).transpose()?)?;
    out.set_item("interrupted", result.interrupted)?;
    Ok(out)
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

fn member<'py>(py: Python<'py>, m: &MemberResult) -> PyResult<Bound<'py, PyDict>> {
    let (out, t) = (PyDict::new(py), &m.totals);
    out.set_item("leaf", m.leaf)?;
    out.set_item("servers", m.servers)?;
    for (key, value) in [
        ("reads", t.reads),
        ("writes", t.writes),
        ("read_bytes", t.read_bytes),
        ("write_bytes", t.write_bytes),
        ("busy_ns", t.busy_ns),
        ("seek_ns", t.seek_ns),
        ("rotation_ns", t.rotation_ns),
        ("transfer_ns", t.transfer_ns),
        ("overhead_ns", t.overhead_ns),
        ("paired_ns", t.paired_ns),
        ("wait_ns", t.wait_ns),
    ] {
        out.set_item(key, value)?;
    }
    if let Some(flash) = &m.flash {
        out.set_item("flash_host_bytes", flash.host_bytes)?;
        out.set_item("flash_moved_bytes", flash.moved_bytes)?;
        out.set_item("flash_padded_bytes", flash.padded_bytes)?;
        out.set_item("flash_erased_blocks", flash.erased_blocks)?;
        out.set_item("flash_die_busy_ns", flash.die_busy_ns)?;
        out.set_item("flash_channel_busy_ns", flash.channel_busy_ns)?;
        out.set_item("flash_link_busy_ns", flash.link_busy_ns)?;
    }
    Ok(out)
}

fn station<'py>(py: Python<'py>, s: &StationResult) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("name", &s.name)?;
    out.set_item("visits", s.visits)?;
    out.set_item("busy_ns", s.busy_ns)?;
    out.set_item("wait_ns", s.wait_ns)?;
    out.set_item("servers", s.servers)?;
    Ok(out)
}

/// Means a request of where its time went: the host's work, waiting for members, their arms, rotation and transfer.
fn stages<'py, 'a>(
    py: Python<'py>,
    requests: u64,
    host_cpu_ns: u64,
    members: impl Iterator<Item = &'a Totals> + Clone,
) -> PyResult<Bound<'py, PyDict>> {
    let requests = f64_from(requests.max(1));
    let sum = |f: fn(&Totals) -> u64| f64_from(members.clone().map(f).sum::<u64>()) / requests;
    let out = PyDict::new(py);
    out.set_item("host_cpu_ns", f64_from(host_cpu_ns) / requests)?;
    out.set_item("accesses", sum(|t| t.reads + t.writes))?;
    out.set_item("queue_ns", sum(|t| t.wait_ns))?;
    out.set_item("disconnect_ns", sum(|t| t.seek_ns + t.rotation_ns))?;
    out.set_item("transfer_ns", sum(|t| t.transfer_ns))?;
    out.set_item("overhead_ns", sum(|t| t.overhead_ns))?;
    out.set_item("paired_ns", sum(|t| t.paired_ns))?;
    Ok(out)
}

/// What whole files asked for: accesses by name, times by size.
fn files<'py>(py: Python<'py>, record: &FilesRecord) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let mean = |sum: u128, count: u64| f64_from(sum) / f64_from(count.max(1));
    out.set_item("files", record.files)?;
    out.set_item("open_mean_ns", mean(record.open_ns, record.files))?;
    out.set_item("first_byte_mean_ns", mean(record.first_byte_ns, record.files))?;
    let accesses = PyList::empty(py);
    for name in AccessName::ALL {
        let (row, totals) = (PyDict::new(py), record.accesses(name));
        row.set_item("name", name.name())?;
        row.set_item("count", totals.count)?;
        row.set_item("bytes", totals.bytes)?;
        row.set_item("found", totals.found)?;
        row.set_item("mean_ns", mean(u128::from(totals.time_ns), totals.answered))?;
        accesses.append(row)?;
    }
    out.set_item("accesses", accesses)?;
    let sizes = PyDict::new(py);
    column(py, &sizes, "size_bytes", record.by_size.keys().copied())?;
    column(py, &sizes, "files", record.by_size.values().map(|s| s.files))?;
    column(py, &sizes, "time_ns", record.by_size.values().map(|s| u64::try_from(s.time_ns).unwrap_or(u64::MAX)))?;
    out.set_item("sizes", sizes)?;
    Ok(out)
}

/// The answer of a simulated cell.
pub(crate) fn of_sim<'py>(py: Python<'py>, seed: u64, result: &SimResult) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("engine", "sim")?;
    out.set_item("seed", seed)?;
    recorded(py, &out, &result.recorder)?;
    out.set_item("hold", hold(py, result.hold)?)?;
    let members: Vec<_> = result.members.iter().map(|m| member(py, m)).collect::<PyResult<_>>()?;
    out.set_item("members", PyList::new(py, members)?)?;
    let stations: Vec<_> = result.stations.iter().map(|s| station(py, s)).collect::<PyResult<_>>()?;
    out.set_item("stations", PyList::new(py, stations)?)?;
    let of_host = result.stations.iter().filter(|s| s.name == HOST_CPU).map(|s| s.busy_ns);
    let (requests, host_cpu_ns) = (result.recorder.all().requests, of_host.sum());
    out.set_item("stages", stages(py, requests, host_cpu_ns, result.members.iter().map(|m| &m.totals))?)?;
    out.set_item("sector_bytes", result.sector_bytes)?;
    out.set_item("user_bytes", result.user_bytes)?;
    out.set_item("backlog", backlog(py, &result.backlog)?)?;
    out.set_item("files", result.files.as_ref().map(|record| files(py, record)).transpose()?)?;
    out.set_item("streams", plain(py, &result.streams)?)?;
    out.set_item("facts", PyDict::new(py))?;
    let judged = result.replayed.as_ref().map(|r| crate::trace::check(py, r)).transpose()?;
    out.set_item("checks", PyList::new(py, judged)?)?;
    out.set_item("replayed", result.replayed.as_ref().map(|r| crate::trace::replayed(py, r)).transpose()?)?;
    out.set_item("interrupted", result.interrupted)?;
    Ok(out)
}
