//! Rows of single requests on their way to Python, in batches and by a thread of their own.
//!
//! Purpose: whoever runs the cell fills a buffer and goes on with an empty one; the thread calls Python with NumPy columns,
//! as fast as that takes them.
//!
//! Invariants:
//! - There are [`BUFFERS`] buffers of [`BATCH_ROWS`] rows, however long the cell runs.
//! - On the virtual clock nothing is lost: whoever has no empty buffer waits. On the real one nobody waits for Python: rows
//!   without a buffer are counted and thrown away.

use crate::answer::{columns, Column};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use raidlab_load::{RecordSink, RequestLog, RequestRecord};
use raidlab_types::RequestKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;

/// A group of rows of the file.
const BATCH_ROWS: usize = 1 << 16;
/// One is filled, one is handed over, the others bridge the time that a slow disk takes.
const BUFFERS: usize = 8;

/// What becomes of rows for which there is no empty buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// They wait for one.
    Wait,
    /// They are lost, and counted.
    Lose,
}

/// The end of the channel at which rows come in.
struct BatchSink {
    full: Sender<Vec<RequestRecord>>,
    empty: Receiver<Vec<RequestRecord>>,
    when_full: WhenFull,
    lost: Arc<AtomicU64>,
}

impl RecordSink for BatchSink {
    fn take(&mut self, rows: &mut Vec<RequestRecord>) {
        let empty = match self.when_full {
            WhenFull::Wait => self.empty.recv().ok(),
            WhenFull::Lose => self.empty.try_recv().ok(),
        };
        // Whoever takes rows does so until this end is gone, unless Python has raised.
        if let Some(empty) = empty {
            if self.full.send(std::mem::replace(rows, empty)).is_ok() {
                return;
            }
        }
        self.lost.fetch_add(rows.len() as u64, Ordering::Relaxed);
        rows.clear();
    }
}

/// Runs a cell whose requests are told to `call`, which must not be attached to Python; its result, and how many rows were
/// lost. An exception of `call` ends the telling: the rows after it are lost.
pub(crate) fn recorded<R>(
    call: &Py<PyAny>,
    when_full: WhenFull,
    run: impl FnOnce(RequestLog) -> R,
) -> (R, Option<u64>) {
    let (full, to_tell) = channel();
    let (give_back, empty) = channel();
    let lost = Arc::new(AtomicU64::new(0));
    // One is in the log itself.
    for _ in 1..BUFFERS {
        // The other end lives here.
        let _ = give_back.send(Vec::with_capacity(BATCH_ROWS));
    }
    let result = std::thread::scope(|scope| {
        scope.spawn(|| tell(call, to_tell, &give_back, &lost));
        let sink = BatchSink { full, empty, when_full, lost: Arc::clone(&lost) };
        run(RequestLog::new(BATCH_ROWS, Box::new(sink)))
    });
    (result, Some(lost.load(Ordering::Relaxed)))
}

/// Tells Python of all rows that come, until nobody sends any.
fn tell(
    call: &Py<PyAny>,
    to_tell: Receiver<Vec<RequestRecord>>,
    give_back: &Sender<Vec<RequestRecord>>,
    lost: &AtomicU64,
) {
    let mut goes_on = true;
    for mut rows in to_tell {
        goes_on = goes_on && Python::attach(|py| numbered(py, &rows).and_then(|rows| call.call1(py, (rows,)))).is_ok();
        if !goes_on {
            lost.fetch_add(rows.len() as u64, Ordering::Relaxed);
        }
        rows.clear();
        // Nobody wants it back once the cell has ended.
        let _ = give_back.send(rows);
    }
}

/// Rows as NumPy columns of whole numbers. `operation` is 0 for a read, 1 for a write, 2 for a flush.
fn numbered<'py>(py: Python<'py>, rows: &[RequestRecord]) -> PyResult<Bound<'py, PyDict>> {
    let names: [Column<'_, RequestRecord>; 9] = [
        ("arrival_ns", |r| r.arrival_ns),
        ("start_ns", |r| r.start_ns),
        ("end_ns", |r| r.end_ns),
        ("volume", |r| u64::from(r.volume)),
        ("operation", |r| match r.kind {
            RequestKind::Read => 0,
            RequestKind::Write => 1,
            RequestKind::Flush => 2,
        }),
        ("offset_bytes", |r| r.offset_bytes),
        ("bytes", |r| r.bytes),
        ("failed", |r| u64::from(r.failed)),
        ("measured", |r| u64::from(r.measured)),
    ];
    columns(py, rows, names)
}
