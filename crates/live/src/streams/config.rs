//! What a run of streams is told.

use crate::config::ContentMode;
use crate::target::TargetSpec;
use raidlab_array::{Policy, Tree};
use raidlab_types::LeafId;
use serde::Deserialize;
use std::path::PathBuf;

/// A cell of the engine `streams`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamsConfig {
    /// `streams`: by this word whoever reads cells knows whose this is.
    #[serde(default)]
    pub engine: String,
    /// Root of all randomness.
    pub seed: u64,
    /// All start together.
    pub streams: Vec<LiveStreamSpec>,
    /// Arrays that streams use.
    #[serde(default)]
    pub arrays: Vec<ArraySpec>,
    /// Block devices that may be overwritten: exactly these, by path or as `major:minor`.
    #[serde(default)]
    pub destroy: Vec<PathBuf>,
    /// A file whose bytes memory and tapes hand over, in place of what raidlab makes up.
    #[serde(default)]
    pub data: Option<PathBuf>,
    /// Whether what arrives is compared with what was sent.
    #[serde(default)]
    pub content: ContentMode,
    /// Wait, all ready, until this time of the machine's clock (nanoseconds of the Unix epoch), so that several machines
    /// begin together.
    #[serde(default)]
    pub begin_at_unix_ns: Option<u64>,
    /// No block is begun later than this after the start.
    #[serde(rename = "duration", default, with = "raidlab_types::unit::ns_as_s_option")]
    pub duration_s: Option<f64>,
}

/// An array that streams may use, several at the same time: `arrays[i]` in the cell.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArraySpec {
    /// Its levels.
    pub tree: Tree,
    /// Its policies.
    #[serde(default)]
    pub policy: Policy,
    /// One a leaf in depth-first order, or a single one for all that lies in no file or device of its own.
    pub members: Vec<TargetSpec>,
    /// Leaves that are not there.
    #[serde(default)]
    pub missing: Vec<LeafId>,
    /// Its sector, at least; never less than the largest that a member needs.
    #[serde(default)]
    pub sector_bytes: Option<u32>,
}

/// One stream: `streams[i]` in the cell.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveStreamSpec {
    /// What it is called in the result.
    pub name: String,
    /// Where its bytes come from.
    pub source: EndpointSpec,
    /// Where they go.
    pub sink: EndpointSpec,
    /// Bytes moved at once.
    pub block_bytes: u64,
    /// How many bytes in all.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// How many blocks in all; instead of `bytes`.
    #[serde(default)]
    pub count: Option<u64>,
    /// Pace: block i is handed over no earlier than i + 1 blocks are due.
    #[serde(default)]
    pub rate_mb_s: Option<f64>,
    /// Blocks under way between the two ends; with one, they take turns.
    #[serde(default = "two")]
    pub buffers: u32,
}

fn two() -> u32 {
    2
}

/// An end of a stream: `streams[i].source` and `streams[i].sink`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EndpointSpec {
    /// Hands a block over, or takes it, at once and without looking at it.
    Null,
    /// Memory of this process, used round and round.
    Memory {
        /// How much.
        #[serde(default = "memory_bytes")]
        size_bytes: u64,
    },
    /// A regular file. Written only if raidlab made it; made if it is not there.
    File {
        /// Where.
        path: PathBuf,
        /// Where in it the stream begins.
        #[serde(default)]
        offset_bytes: u64,
        /// Through the page cache, even where it can be gone past.
        #[serde(default)]
        buffered: bool,
    },
    /// A block device.
    Block {
        /// Its device file.
        path: PathBuf,
        /// Where on it the stream begins.
        #[serde(default)]
        offset_bytes: u64,
        /// Through the page cache, even where it can be gone past.
        #[serde(default)]
        buffered: bool,
        /// The user has named this very device for overwriting.
        #[serde(default)]
        destroy: bool,
    },
    /// A volume of one of the cell's arrays.
    Array {
        /// Which array.
        array: usize,
        /// Which of its volumes.
        #[serde(default)]
        volume: u32,
        /// Where in it the stream begins.
        #[serde(default)]
        offset_bytes: u64,
    },
    /// What a tape drive does: memory at a constant rate, with a buffer of its own; when that runs dry (or full), the drive
    /// stops, and takes its time to start again.
    Tape {
        /// While it runs.
        mb_s: f64,
        /// What it holds between the stream and the tape.
        #[serde(rename = "buffer", default = "tape_buffer_bytes")]
        buffer_bytes: u64,
        /// From the arrival of data (or of room) to running again.
        #[serde(rename = "start_stop", default, with = "raidlab_types::unit::ns_as_ms")]
        start_stop_ms: f64,
    },
    /// Another machine, by a connection that is open already; a sink only. The far end answers how much it has for good.
    Connection {
        /// The connection's number in this process.
        descriptor: i32,
    },
}

fn memory_bytes() -> u64 {
    64 << 20
}

fn tape_buffer_bytes() -> u64 {
    1 << 20
}

/// One end of one stream of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndOfStream {
    pub stream: usize,
    pub is_source: bool,
}

impl EndOfStream {
    /// `streams[3].sink`.
    pub(super) fn key(self) -> String {
        format!("streams[{}].{}", self.stream, self.side())
    }

    pub(super) fn side(self) -> &'static str {
        if self.is_source {
            "source"
        } else {
            "sink"
        }
    }

    /// The key to look at when it fails: its path, where it has one.
    pub(super) fn place(self, config: &StreamsConfig) -> String {
        match self.spec(config) {
            EndpointSpec::File { .. } | EndpointSpec::Block { .. } => format!("{}.path", self.key()),
            _ => self.key(),
        }
    }

    pub(super) fn spec(self, config: &StreamsConfig) -> &EndpointSpec {
        let stream = &config.streams[self.stream];
        if self.is_source {
            &stream.source
        } else {
            &stream.sink
        }
    }
}

impl StreamsConfig {
    /// Both ends of every stream, in order.
    pub(super) fn ends(&self) -> impl Iterator<Item = (EndOfStream, &EndpointSpec)> {
        let both = |stream| [true, false].map(|is_source| EndOfStream { stream, is_source });
        (0..self.streams.len()).flat_map(both).map(|end| (end, end.spec(self)))
    }
}

impl EndpointSpec {
    /// The word a cell uses.
    pub fn kind(&self) -> &'static str {
        match self {
            EndpointSpec::Null => "null",
            EndpointSpec::Memory { .. } => "memory",
            EndpointSpec::File { .. } => "file",
            EndpointSpec::Block { .. } => "block",
            EndpointSpec::Array { .. } => "array",
            EndpointSpec::Tape { .. } => "tape",
            EndpointSpec::Connection { .. } => "connection",
        }
    }

    /// How a sentence names it.
    pub(super) fn name(&self) -> String {
        match self {
            EndpointSpec::File { path, .. } | EndpointSpec::Block { path, .. } => path.display().to_string(),
            EndpointSpec::Array { array, volume, .. } => format!("volume {volume} of array {array}"),
            other => other.kind().to_string(),
        }
    }

    /// Where an end that is a part of something begins.
    pub(super) fn offset_bytes(&self) -> Option<u64> {
        match self {
            EndpointSpec::File { offset_bytes, .. }
            | EndpointSpec::Block { offset_bytes, .. }
            | EndpointSpec::Array { offset_bytes, .. } => Some(*offset_bytes),
            _ => None,
        }
    }

    /// Whether it goes through the page cache on purpose.
    pub(super) fn is_buffered(&self) -> bool {
        matches!(self, EndpointSpec::File { buffered: true, .. } | EndpointSpec::Block { buffered: true, .. })
    }

    /// Whether handing over (or taking) a block is no wait for anything.
    pub(super) fn is_passive(&self, is_source: bool) -> bool {
        match self {
            EndpointSpec::Null => true,
            // A source in memory hands over the very bytes; a sink copies them.
            EndpointSpec::Memory { .. } => is_source,
            _ => false,
        }
    }
}
