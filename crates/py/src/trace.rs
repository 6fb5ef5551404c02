//! Traces as files: opened here, for the loads and for the doors that count, convert and hand out columns.

use crate::answer::{columns, dict, Column};
use crate::error::cell_error;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use raidlab_live::{open_regular, Check, Verdict};
use raidlab_load::trace::{
    guess, Format, Names, Parser, Record, Records, Replay, ReplayCounts, SkippedLines, Summary, TraceError, TraceSpec,
    VolumeSummary, Writer,
};
use raidlab_types::number::f64_from;
use raidlab_types::RequestKind;
use serde_json::{json, Value};
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

/// Read at a time: a few thousand lines, whose records stay in the processor's cache.
const BLOCK_BYTES: usize = 1 << 17;
/// What a file begins with that gzip has made.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// What a text may begin with to say that it is UTF-8.
const MARK: &[u8] = "\u{feff}".as_bytes();
/// Batches between two looks at signals.
const BATCHES_BETWEEN_SIGNALS: u32 = 64;

/// A trace that is read block by block.
pub(crate) struct TraceFile {
    file: File,
    format: Format,
    parser: Parser,
    block: Box<[u8]>,
    /// Bytes of the block that were read to guess the format, and have not been parsed.
    unread: usize,
    holds_requests: bool,
}

impl TraceFile {
    /// Opens a trace; its format is guessed from its first lines where it is not given.
    pub(crate) fn open(path: &str, format: Option<Format>) -> Result<TraceFile, TraceError> {
        let mut file = open_regular(Path::new(path)).map_err(|e| unreadable(path, &e))?;
        let mut block = vec![0; BLOCK_BYTES].into_boxed_slice();
        let mut unread = fill_block(&mut file, &mut block).map_err(|e| unreadable(path, &e))?;
        if block[..unread].starts_with(MARK) {
            block.copy_within(MARK.len()..unread, 0);
            unread -= MARK.len();
        }
        let beginning = &block[..unread];
        if beginning.starts_with(GZIP) {
            return Err(TraceError::of_file(path, "is compressed by gzip", "text; gunzip makes it that"));
        }
        let format = format.or_else(|| guess(beginning)).ok_or_else(|| {
            let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
            let message = "its first lines are of no format that is known";
            TraceError::of_file(path, message, &format!("one of {}, or its name given", names.join(", ")))
        })?;
        Ok(TraceFile { file, format, parser: Parser::new(format, path), block, unread, holds_requests: false })
    }

    fn skipped(&self) -> SkippedLines {
        self.parser.skipped()
    }

    /// Nothing to replay: most likely the wrong half of a recording, such as completions without what was queued.
    fn empty(&self) -> TraceError {
        let SkippedLines { other_lines, empty_requests, .. } = self.skipped();
        let message =
            format!("holds no requests of data: {other_lines} lines are of other events, {empty_requests} of no bytes");
        TraceError::of_file(self.parser.file(), &message, &format!("lines such as {}", self.format.accepted()))
    }
}

impl Records for TraceFile {
    fn fill(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        let count = match std::mem::take(&mut self.unread) {
            0 => fill_block(&mut self.file, &mut self.block).map_err(|e| unreadable(self.parser.file(), &e))?,
            unread => unread,
        };
        let before = out.len();
        if count == 0 {
            self.parser.finish(out)?;
        } else {
            self.parser.feed(&self.block[..count], out)?;
        }
        self.holds_requests |= out.len() > before;
        if count == 0 && !self.holds_requests {
            return Err(self.empty());
        }
        Ok(count > 0)
    }

    fn names(&self) -> &Names {
        self.parser.names()
    }

    fn file(&self) -> &str {
        self.parser.file()
    }
}

/// Reads until the block is full or the file at its end.
fn fill_block(file: &mut File, block: &mut [u8]) -> std::io::Result<usize> {
    let mut count = 0;
    while count < block.len() {
        match file.read(&mut block[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

fn unreadable(path: &str, error: &std::io::Error) -> TraceError {
    TraceError::of_file(path, &format!("cannot be read: {}", reason(error)), "a text file that can be read")
}

/// What the system says, without its number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn trace_error(error: TraceError) -> PyErr {
    cell_error("trace", error.to_string())
}

/// The trace that a cell names, opened.
pub(crate) fn replay(spec: TraceSpec) -> PyResult<Replay> {
    let records = TraceFile::open(&spec.file, spec.format).map_err(trace_error)?;
    Ok(Replay { spec, records: Box::new(records) })
}

/// The verdict on a replay, as the engines' own checks: whether it was the trace.
pub(crate) fn check(replayed: &ReplayCounts) -> Check {
    let changes = replayed.changes();
    let end = if replayed.to_its_end { "to the trace's end" } else { "and stopped before the trace's end" };
    let mut evidence = format!("{} requests of the trace were replayed, {end}", replayed.requests);
    if changes.is_empty() {
        return Check { name: "replay", verdict: Verdict::Pass, evidence: evidence + ".", mend: "" };
    }
    evidence += &format!("; {}.", changes.join(", "));
    let remedy =
        "Give each volume of the trace one of the array that is at least as large (raidlab trace show says how \
                  large), and what is asked for by another name is another workload.";
    Check { name: "replay", verdict: Verdict::Warn, evidence, mend: remedy }
}

fn named(format: Option<&str>) -> PyResult<Option<Format>> {
    let Some(name) = format else { return Ok(None) };
    let found = Format::ALL.into_iter().find(|format| format.name() == name);
    found.map(Some).ok_or_else(|| {
        let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        cell_error("format", format!("{name} is no format of traces; accepted: {}", names.join(", ")))
    })
}

/// Reads a trace to its end without the interpreter's lock, which is taken now and then to see whether a signal came.
fn read_all(
    py: Python<'_>,
    trace: &mut TraceFile,
    mut take: impl FnMut(&[Record], &Names) -> Result<(), TraceError> + Send,
) -> PyResult<()> {
    let mut batch = Vec::new();
    loop {
        let mut read_some = || -> Result<bool, TraceError> {
            for _ in 0..BATCHES_BETWEEN_SIGNALS {
                batch.clear();
                let more = trace.fill(&mut batch)?;
                take(&batch, trace.names())?;
                if !more {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let more = py.detach(&mut read_some).map_err(trace_error)?;
        if !more {
            return Ok(());
        }
        py.check_signals()?;
    }
}

/// The formats: name, and what a line of it looks like.
#[pyfunction]
pub(crate) fn trace_formats() -> Vec<(&'static str, &'static str)> {
    Format::ALL.iter().map(|format| (format.name(), format.accepted())).collect()
}

/// A trace in the format of this name, or in the one that is guessed.
fn open(path: &str, format_name: Option<&str>) -> PyResult<TraceFile> {
    TraceFile::open(path, named(format_name)?).map_err(trace_error)
}

/// The format of a file, as given or as guessed.
#[pyfunction]
#[pyo3(signature = (path, format_name = None))]
pub(crate) fn trace_format(path: &str, format_name: Option<&str>) -> PyResult<&'static str> {
    Ok(open(path, format_name)?.format.name())
}

/// What a trace holds.
#[pyfunction]
#[pyo3(signature = (path, format_name = None))]
pub(crate) fn trace_summary<'py>(
    py: Python<'py>,
    path: &str,
    format_name: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut trace = open(path, format_name)?;
    let mut summary = Summary::default();
    read_all(py, &mut trace, |batch, _| {
        batch.iter().for_each(|record| summary.add(record));
        Ok(())
    })?;
    let mean = (summary.responses > 0).then(|| f64_from(summary.response_sum_ns) / f64_from(summary.responses));
    let volumes = summary.volumes.iter().zip(0..).map(|(of_volume, i)| volume(trace.names().name(i), of_volume));
    let answer = json!({
        "format": trace.format.name(),
        "resolution_ns": trace.format.resolution_ns(),
        "requests": summary.requests(),
        "other_lines": trace.skipped().other_lines,
        "empty_requests": trace.skipped().empty_requests,
        "first_ns": summary.first_ns,
        "span_ns": summary.span_ns(),
        "most_in_a_second": summary.most_in_a_second,
        "out_of_order": summary.out_of_order,
        "response_mean_ns": mean,
        "other_sizes": summary.other_sizes,
        "volumes": volumes.collect::<Vec<_>>(),
    });
    let sizes: Vec<(u64, u64)> = summary.sizes.into_iter().collect();
    let out = dict(py, &answer)?;
    out.set_item("sizes", columns(py, &sizes, [("bytes", |s| s.0), ("requests", |s| s.1)])?)?;
    Ok(out)
}

fn volume(name: &str, summary: &VolumeSummary) -> Value {
    json!({
        "name": name,
        "reads": summary.reads,
        "read_bytes": summary.read_bytes,
        "writes": summary.writes,
        "write_bytes": summary.write_bytes,
        "end_bytes": summary.end_bytes,
        "sequential": summary.sequential,
        "working_set_bytes": summary.working_set_bytes(),
    })
}

/// Writes a trace in another format, to a file that must not be there; answers with how many requests it has.
#[pyfunction]
pub(crate) fn trace_convert(
    py: Python<'_>,
    path: &str,
    format_name: Option<&str>,
    to: &str,
    to_format: &str,
) -> PyResult<u64> {
    let mut trace = open(path, format_name)?;
    let format = named(Some(to_format))?.ok_or_else(|| cell_error("format", "is missing"))?;
    let unwritable = |error: &std::io::Error| {
        TraceError::of_file(to, &format!("cannot be written: {}", reason(error)), "the path of a new file")
    };
    let file = File::create_new(to).map_err(|e| trace_error(unwritable(&e)))?;
    let (mut file, mut text, mut requests) = (BufWriter::with_capacity(BLOCK_BYTES, file), String::new(), 0);
    let mut writer = Writer::new(format);
    let written = read_all(py, &mut trace, |batch, names| {
        text.clear();
        for record in batch {
            writer.write(record, names, path, &mut text)?;
        }
        requests += batch.len() as u64;
        file.write_all(text.as_bytes()).map_err(|e| unwritable(&e))
    });
    let flushed = file.flush().map_err(|e| trace_error(unwritable(&e)));
    if let Err(error) = written.and(flushed) {
        // Half a trace would be taken for a whole one. That it cannot be removed is told by what comes of it.
        let _ = std::fs::remove_file(to);
        return Err(error);
    }
    Ok(requests)
}

/// All requests of a trace, a column each; memory grows with its length.
#[pyfunction]
#[pyo3(signature = (path, format_name = None))]
pub(crate) fn trace_columns<'py>(
    py: Python<'py>,
    path: &str,
    format_name: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut trace = open(path, format_name)?;
    let mut all: Vec<Record> = Vec::new();
    read_all(py, &mut trace, |batch, _| {
        all.extend_from_slice(batch);
        Ok(())
    })?;
    let out = columns(
        py,
        &all,
        [
            ("line", |r| r.line),
            ("time_ns", |r| r.time_ns),
            ("volume", |r| u64::from(r.volume)),
            ("is_write", |r| u64::from(r.kind == RequestKind::Write)),
            ("offset_bytes", |r| r.offset_bytes),
            ("bytes", |r| r.bytes),
        ],
    )?;
    if all.iter().all(|record| record.response_ns.is_some()) {
        let responses: [Column<Record>; 1] = [("response_ns", |r| r.response_ns.unwrap_or_default())];
        out.update(columns(py, &all, responses)?.as_mapping())?;
    }
    out.set_item("volumes", trace.names().all().to_vec())?;
    Ok(out)
}
