//! The words of streams as they stand in a simulated cell's JSON text, `streams[i]`, and whether they make sense.
//!
//! Invariants: unknown keys are refused. Validation happens when a load is built; the error names the key.

use crate::{SpecError, Volume};
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

/// Checks one stream against the volumes and ways that there are.
pub(super) fn check(
    key: &str,
    spec: &StreamSpec,
    volumes: &[Volume],
    sector: u64,
    ways: usize,
) -> Result<(), SpecError> {
    let wrong = |name: &str, message: String| Err(SpecError::new(format!("{key}.{name}"), message));
    if spec.block_bytes == 0 || spec.block_bytes > 1 << 30 {
        return wrong("block_bytes", format!("{}; accepted: 1 byte to 1 GiB", spec.block_bytes));
    }
    if spec.bytes == 0 || spec.bytes / spec.block_bytes > 1 << 32 {
        return wrong("bytes", format!("{}; accepted: 1 to 2^32 blocks of {}", spec.bytes, spec.block_bytes));
    }
    if spec.buffers == 0 || spec.buffers > 1 << 16 {
        return wrong("buffers", format!("{}; accepted: 1 to 65536", spec.buffers));
    }
    if [&spec.source, &spec.sink].iter().all(|end| matches!(end, EndSpec::Memory)) {
        return wrong("sink", "from memory to memory takes no time here; accepted: one end that is not memory".into());
    }
    for (name, end) in [("source", &spec.source), ("sink", &spec.sink)] {
        let key = format!("{key}.{name}");
        match end {
            EndSpec::Way { way } if *way as usize >= ways => {
                let message = format!("{way}; accepted: the number of one of {ways} ways");
                return Err(SpecError::new(format!("{key}.way"), message));
            }
            EndSpec::Memory | EndSpec::Way { .. } => {}
            EndSpec::Tape { mb_s, start_stop_ms, .. } => {
                crate::error::positive(&key, "mb_s", *mb_s)?;
                time(&key, "start_stop", *start_stop_ms)?;
            }
            EndSpec::Array { .. } => check_file(&key, end, spec, volumes, sector)?,
        }
    }
    Ok(())
}

fn check_file(key: &str, end: &EndSpec, spec: &StreamSpec, volumes: &[Volume], sector: u64) -> Result<(), SpecError> {
    let EndSpec::Array { volume, offset_bytes, request_bytes, file_us_per_kib, .. } = end else { return Ok(()) };
    let wrong = |name: &str, message: String| Err(SpecError::new(format!("{key}.{name}"), message));
    let Some(of) = volumes.get(*volume as usize) else {
        return wrong("volume", format!("{volume}; accepted: 0 to {}", volumes.len() - 1));
    };
    let request = request_bytes.unwrap_or(spec.block_bytes);
    if request == 0 || request > 1 << 30 || !request.is_multiple_of(sector) {
        let message = format!("{request}; accepted: a multiple of the sector's {sector} bytes up to 1 GiB");
        return wrong("request", message);
    }
    if !offset_bytes.is_multiple_of(sector) {
        return wrong("offset_bytes", format!("{offset_bytes}; accepted: whole sectors"));
    }
    let room = of.capacity_sectors * sector;
    if offset_bytes.saturating_add(spec.bytes.next_multiple_of(sector)) > room {
        let message = format!("{offset_bytes}; accepted: so that {} bytes fit in {room}", spec.bytes);
        return wrong("offset_bytes", message);
    }
    time(key, "file_per_kib", *file_us_per_kib)
}

fn time(key: &str, name: &str, value: f64) -> Result<(), SpecError> {
    match value.is_finite() && value >= 0.0 {
        true => Ok(()),
        false => Err(SpecError::new(format!("{key}.{name}"), format!("{value}; accepted: a time of at least 0"))),
    }
}
