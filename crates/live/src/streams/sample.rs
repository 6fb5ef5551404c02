//! The user's own data: a sample that memory and tapes hand over in place of what raidlab makes up.
//!
//! Purpose: a box that compresses, or keeps one copy of what is alike, is judged by data like those that it will hold.
//!
//! Invariants:
//! - The bytes are handed over as they are, whole blocks from the front of the file, round and round.
//! - The file is only read.

use super::config::StreamsConfig;
use crate::directory::open_regular;
use crate::error::LiveError;
use crate::memory::MemoryMapping;
use raidlab_types::number::usize_from;
use serde::Serialize;
use std::io::{self, Read};
use std::path::PathBuf;

/// The most of a sample that is kept: as much as memory that raidlab fills itself.
pub(super) const MOST_BYTES: u64 = 64 << 20;

/// What was handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SampleFacts {
    /// The file.
    pub path: PathBuf,
    /// How much of it is handed over, round and round.
    pub used_bytes: u64,
}

/// The sample of a cell, read once.
#[derive(Debug, Default)]
pub(super) struct Sample {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Sample {
    /// Reads the cell's sample; none if it has none.
    pub(super) fn of(config: &StreamsConfig) -> Result<Option<Sample>, LiveError> {
        let Some(path) = &config.data else { return Ok(None) };
        let fail = |e: io::Error| LiveError::io("data", path.display().to_string(), "reading it", &e);
        let mut bytes = Vec::new();
        open_regular(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes)).map_err(fail)?;
        let longest = config.streams.iter().map(|stream| stream.block_bytes).max().unwrap_or(0);
        if (bytes.len() as u64) < longest {
            let message =
                format!("{} holds {} bytes; accepted: at least a block of {longest}", path.display(), bytes.len());
            return Err(LiveError::bad("data", message));
        }
        Ok(Some(Sample { path: path.clone(), bytes }))
    }

    /// Whole blocks of it, at most so much.
    pub(super) fn region(&self, most_bytes: u64, block_bytes: u64) -> io::Result<MemoryMapping> {
        let blocks = (most_bytes.min(self.bytes.len() as u64) / block_bytes).max(1);
        let mut memory = MemoryMapping::new(usize_from(blocks * block_bytes))?;
        let bytes = memory.bytes_mut();
        let len = bytes.len();
        bytes.copy_from_slice(&self.bytes[..len]);
        Ok(memory)
    }

    pub(super) fn facts(&self) -> SampleFacts {
        SampleFacts { path: self.path.clone(), used_bytes: self.bytes.len() as u64 }
    }
}
