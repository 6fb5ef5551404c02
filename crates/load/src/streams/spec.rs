//! The words of streams as they stand in a simulated cell's JSON text: `streams[i]`.
//!
//! Purpose: plain data with serde.
//!
//! Invariant: unknown keys are refused.

use serde::{Deserialize, Serialize};

/// One stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamSpec {
    /// What it is called in the result.
    pub name: String,
    /// Where its bytes come from.
    pub source: EndSpec,
    /// Where they go.
    pub sink: EndSpec,
    /// Bytes that its program moves at once.
    pub block_bytes: u64,
    /// How many bytes in all.
    pub bytes: u64,
    /// Blocks under way between the two ends; with one they take turns, as in a program that reads and then writes.
    #[serde(default = "one")]
    pub buffers: u32,
}

/// An end of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EndSpec {
    /// Memory of the program: hands over and takes at once.
    Memory,
    /// A file on a volume of the array, one run of sectors, through the host's file system.
    Array {
        /// Which volume.
        #[serde(default)]
        volume: u32,
        /// Where on it the file begins.
        #[serde(default)]
        offset_bytes: u64,
        /// What the file system asks of the array at a time; absent: a block.
        #[serde(rename = "request", default)]
        request_bytes: Option<u64>,
        /// How far the file system reads ahead of the program, or writes behind it.
        #[serde(default)]
        ahead_bytes: u64,
        /// The host's work for each KiB (1024 bytes): copying between the program and the file system.
        #[serde(rename = "file_per_kib", default, with = "raidlab_types::unit::ns_as_us")]
        file_us_per_kib: f64,
    },
    /// A tape drive.
    Tape {
        /// While it runs.
        mb_s: f64,
        /// What it holds between the stream and the tape.
        #[serde(rename = "buffer")]
        buffer_bytes: u64,
        /// From the arrival of data (or of room) to running again.
        #[serde(rename = "start_stop", default, with = "raidlab_types::unit::ns_as_ms")]
        start_stop_ms: f64,
    },
    /// Somewhere behind stations of the path: a network, somebody else's disk.
    Way {
        /// Which of the path's ways.
        way: u32,
    },
}

impl EndSpec {
    /// The word a cell uses.
    pub fn kind(&self) -> &'static str {
        match self {
            EndSpec::Memory => "memory",
            EndSpec::Array { .. } => "array",
            EndSpec::Tape { .. } => "tape",
            EndSpec::Way { .. } => "way",
        }
    }
}

fn one() -> u32 {
    1
}
