//! Traces: requests that were recorded elsewhere, read line by line and offered again.
//!
//! Purpose: what a real system asked is the load that no distribution stands for. [`Parser`] turns the bytes of a text file
//! into [`Record`]s, [`TraceLoad`] offers them to an array by their time stamps or as fast as a depth allows, on either
//! clock, [`Summary`] counts what a trace holds, [`Writer`] writes it in another format.
//!
//! Code map: `format/` one file a format, `fields` numbers in text, `names` which volumes there are, `parser` lines,
//! `record` what comes of them, `spec` the words of a cell, `place` where on the array a record lies, `load` the load and
//! what came of it besides the times, which a [`crate::Recorder`] keeps.
//!
//! Invariants:
//! - No file: bytes are handed in, records are asked for ([`Records`]). Memory does not grow with the length of a trace, only
//!   with its volumes (and, in a summary, with the addresses it touches).
//! - A line is a request, or known to be none, or an error that names file, line, text and what is accepted.
//! - A record is offered as it stands, or counted among those that were not.

mod error;
mod fields;
mod format;
mod load;
mod names;
mod parser;
mod place;
mod record;
mod spec;
mod summary;
mod writer;

pub use error::TraceError;
pub use format::Format;
pub use load::{Replay, ReplayCounts, TraceLoad};
pub use names::Names;
pub use parser::{guess, Parser, SkippedLines};
pub use record::{Record, Records, Text};
pub use spec::{BeyondEnd, KindFilter, OtherVolumes, TraceSpec};
pub use summary::{Summary, VolumeSummary, PAGE_BYTES};
pub use writer::Writer;
