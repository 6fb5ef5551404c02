//! The words of whole files as they stand in a cell's JSON text.
//!
//! Purpose: plain data with serde. [`Order`] and [`Numbers`] are those of files on real disks, too; the file system and the
//! reader's own work are told only where they are modelled.
//!
//! Invariant: unknown keys are refused.

use serde::{Deserialize, Serialize};

/// How the numbers of a table of sizes come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Numbers {
    /// Each file's size is drawn.
    #[default]
    Drawn,
    /// Every size of a table has its share of the files (to within one), in random order.
    Even,
}

/// In which order a reader reads its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Every file once, shuffled.
    #[default]
    Once,
    /// Again and again, shuffled anew each time.
    Shuffled,
    /// Drawn one by one, with replacement.
    Random,
}

/// A Unix file system of cylinder groups: `files.file_system` in the cell. What it asks of an array for one file is a list of
/// named accesses (see [`super::access`]).
///
/// Reference: M. McKusick, W. Joy, S. Leffler, R. Fabry, *A fast file system for UNIX*, ACM TOCS 2(3), 1984; L. McVoy and
/// S. Kleiman, *Extent-like performance from a UNIX file system*, USENIX Winter 1991 (clusters and reading ahead).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileSystemSpec {
    /// A block.
    #[serde(rename = "block")]
    pub block_bytes: u64,
    /// Most that is read at a time.
    #[serde(rename = "cluster")]
    pub cluster_bytes: u64,
    /// Clusters asked for before they are needed.
    pub read_ahead_clusters: u32,
    /// Blocks whose addresses are in the inode; those behind them are reached by an indirect block.
    pub direct_blocks: u64,
    /// Data blocks that one indirect block leads to.
    pub blocks_per_indirect: u64,
    /// Mean length of the runs in which a file's blocks lie side by side: after each block the file goes on elsewhere in its
    /// group with the chance that gives this mean. Null: every file lies whole.
    #[serde(rename = "run")]
    pub run_bytes: Option<f64>,
    /// Bytes of the volume that a cylinder group covers.
    #[serde(rename = "group")]
    pub group_bytes: u64,
    /// At the front of a group, before its inodes: its own structures.
    pub group_header_blocks: u64,
    /// Inodes in a block.
    pub inodes_per_block: u64,
    /// Memory for inode blocks, those used longest ago dropped first.
    #[serde(rename = "inode_cache")]
    pub inode_cache_bytes: u64,
    /// Inode blocks of files that were read, for the time of access in them has changed, are written at multiples of this
    /// time, all at once; null: never.
    #[serde(rename = "inode_update", with = "raidlab_types::unit::ns_as_s_option")]
    pub inode_update_s: Option<f64>,
}

impl Default for FileSystemSpec {
    fn default() -> Self {
        FileSystemSpec {
            block_bytes: 8192,
            cluster_bytes: 57_344,
            read_ahead_clusters: 1,
            direct_blocks: 12,
            blocks_per_indirect: 2048,
            run_bytes: None,
            group_bytes: 6_201_344,
            group_header_blocks: 2,
            inodes_per_block: 64,
            inode_cache_bytes: 0,
            inode_update_s: None,
        }
    }
}

/// Whole files in place of requests: `files` in the cell. Their sizes are those of the workload, their readers are the tasks
/// of a closed loop, and each file read is one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesSpec {
    /// Whether sizes are drawn, or a table's numbers are kept exactly.
    #[serde(default)]
    pub numbers: Numbers,
    /// How many.
    pub count: Option<u64>,
    /// As many as fit into this; instead of `count`.
    pub total_bytes: Option<u64>,
    /// Disjoint lists that the files are dealt into; reader k reads list k. With one, every reader reads all.
    #[serde(default = "one")]
    pub lists: u32,
    /// In which order a reader reads its list.
    #[serde(default)]
    pub order: Order,
    /// What holds them.
    #[serde(default)]
    pub file_system: FileSystemSpec,
}

fn one() -> u32 {
    1
}
