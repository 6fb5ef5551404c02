//! What a run over whole files is told.

use crate::content::Verify;
use raidlab_load::files::{Numbers, Order};
use raidlab_load::SizeSpec;
use serde::Deserialize;
use std::path::PathBuf;

/// A cell of the engine `files`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesConfig {
    /// `files`: by this word whoever reads cells knows whose this is.
    #[serde(default)]
    pub engine: String,
    /// Root of all randomness.
    pub seed: u64,
    /// Which files.
    pub files: FileSource,
    /// How many read at the same time; 0 if files are only to be written.
    #[serde(default = "one")]
    pub readers: u32,
    /// Disjoint lists that the files are dealt into; reader k reads list k. With one, every reader reads all.
    #[serde(default = "one")]
    pub lists: u32,
    /// In which order a reader reads its list.
    #[serde(default)]
    pub order: Order,
    /// Bytes of one read call, and of one write call.
    #[serde(default)]
    pub block_bytes: BlockBytes,
    /// Past the page cache or through it.
    #[serde(default)]
    pub io: IoMode,
    /// Have the kernel drop every cache (directory entries and inodes too) before reading begins; needs root.
    #[serde(default)]
    pub drop_caches: bool,
    /// How much of the files that raidlab made is compared with what was written.
    #[serde(default)]
    pub verify: Verify,
    /// Wait, all ready, until this time of the machine's clock (nanoseconds of the Unix epoch), so that several machines
    /// begin together.
    #[serde(default)]
    pub begin_at_unix_ns: Option<u64>,
    /// Files read first that do not count.
    #[serde(default)]
    pub warmup: FilesWarmup,
    /// When reading ends; may be left out where every list is read once.
    #[serde(default)]
    pub measure: FilesMeasure,
}

fn one() -> u32 {
    1
}

/// Which files: `files` in the cell.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum FileSource {
    /// Made by raidlab, in a subdirectory of its own.
    Made {
        /// One a file system, as a rule; the files are spread over them evenly.
        directories: Vec<PathBuf>,
        /// How long they are, to the byte.
        sizes: SizeSpec,
        /// Whether sizes are drawn, or a table's numbers are kept exactly.
        #[serde(default)]
        numbers: Numbers,
        /// How many.
        #[serde(default)]
        count: Option<u64>,
        /// As many as fit into this; instead of `count`.
        #[serde(default)]
        total_bytes: Option<u64>,
        /// When written files are made to be on the medium.
        #[serde(default)]
        sync: SyncRule,
        /// Leave them for the next cell, which uses them if it asks for the very same.
        #[serde(default)]
        keep: bool,
    },
    /// Files that exist; they are only read.
    List {
        /// Their paths.
        paths: Vec<PathBuf>,
    },
}

/// When written files are made to be on the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncRule {
    /// Each before it is closed.
    #[default]
    Each,
    /// All at the end.
    End,
}

/// Past the page cache or through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IoMode {
    /// Past it where the file system allows, else through it.
    #[default]
    Auto,
    /// Past it, or not at all.
    Direct,
    /// Through it, emptied of the file beforehand.
    Buffered,
}

/// Bytes of a read call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", expecting = "a number of bytes, or \"whole\"")]
pub enum BlockBytes {
    /// The file in one call.
    Whole,
    /// So many, the last of a file fewer.
    #[serde(untagged)]
    Bytes(u64),
}

impl Default for BlockBytes {
    fn default() -> Self {
        BlockBytes::Bytes(128 << 10)
    }
}

/// Files read first that do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesWarmup {
    /// By all readers together.
    #[serde(default)]
    pub files: u64,
}

/// When reading ends: at the earlier of the two.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesMeasure {
    /// Files begun by all readers together.
    #[serde(default)]
    pub files: Option<u64>,
    /// No file is begun later than this after the first one that counts.
    #[serde(rename = "duration", default, with = "raidlab_types::unit::ns_as_s_option")]
    pub duration_s: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_read_as_the_contract_writes_it() {
        let text = r#"{"seed": 1, "files": {"kind": "made", "directories": ["/a"], "count": 3,
            "sizes": {"kind": "fixed", "bytes": 1000}}, "block_bytes": "whole"}"#;
        let config: FilesConfig = serde_json::from_str(text).expect("a cell");
        assert_eq!((config.readers, config.lists, config.order), (1, 1, Order::Once));
        assert_eq!(config.block_bytes, BlockBytes::Whole);
        let bytes: BlockBytes = serde_json::from_str("4096").expect("bytes");
        assert_eq!(bytes, BlockBytes::Bytes(4096));
        let error = serde_json::from_str::<BlockBytes>("\"all\"").expect_err("no such word");
        assert!(error.to_string().contains("a number of bytes, or \"whole\""), "{error}");
        assert!(serde_json::from_str::<FilesConfig>(&text.replace("count", "number")).is_err());
    }
}
