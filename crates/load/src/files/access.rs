//! What reading a file asks of an array: named accesses, in the order in which they are needed.
//!
//! Purpose: the behaviour of a file system as a list that can be printed and counted: the block with the file's inode, its
//! data in clusters, the indirect blocks on the way, and the inode's write afterwards.
//!
//! Invariant: clusters of a file cover it exactly, in order; none is longer than a cluster or goes over a gap on the volume.

use super::layout::FilePlace;
use super::spec::FileSystemSpec;

/// What an access is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessName {
    /// The block that holds the inode is read.
    Inode,
    /// An indirect block is read.
    Indirect,
    /// A cluster of data is read.
    Data,
    /// The block that holds the inode is written, for the time of access.
    InodeUpdate,
}

impl AccessName {
    /// All, in the order of results.
    pub const ALL: [AccessName; 4] =
        [AccessName::Inode, AccessName::Indirect, AccessName::Data, AccessName::InodeUpdate];

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            AccessName::Inode => "inode",
            AccessName::Indirect => "indirect",
            AccessName::Data => "data",
            AccessName::InodeUpdate => "inode update",
        }
    }
}

/// A run of data read in one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cluster {
    /// First sector on the volume, and sectors.
    pub lba: u64,
    pub sectors: u64,
    /// Bytes of it that are the file's.
    pub bytes: u64,
    /// The indirect block that must be known first.
    pub indirect: Option<u64>,
}

/// The clusters of a file, in order, into `out`.
pub(super) fn clusters(
    fs: &FileSystemSpec,
    place: &FilePlace,
    size_bytes: u64,
    sector_bytes: u64,
    out: &mut Vec<Cluster>,
) {
    out.clear();
    let (block_sectors, per_cluster) = (fs.block_bytes / sector_bytes, (fs.cluster_bytes / fs.block_bytes).max(1));
    let (mut data, mut left, mut indirect) = (0, size_bytes, None);
    for run in &place.runs {
        // What is open of a cluster: its first sector, and blocks.
        let mut open = (run.lba, 0);
        let mut close = |(lba, blocks): (u64, u64), indirect, left: &mut u64| {
            if blocks > 0 {
                let bytes = (blocks * fs.block_bytes).min(*left);
                *left -= bytes;
                out.push(Cluster { lba, sectors: bytes.div_ceil(sector_bytes), bytes, indirect });
            }
        };
        for block in 0..run.blocks {
            let lba = run.lba + block * block_sectors;
            if is_indirect(fs, data, indirect) {
                close(open, indirect.map(|(lba, _)| lba), &mut left);
                indirect = Some((lba, data));
                open = (lba + block_sectors, 0);
                continue;
            }
            if open.1 == per_cluster {
                close(open, indirect.map(|(lba, _)| lba), &mut left);
                open = (lba, 0);
            }
            open.1 += 1;
            data += 1;
        }
        close(open, indirect.map(|(lba, _)| lba), &mut left);
    }
}

/// Whether the block before data block `data` is an indirect one; `last` is the indirect block before, with the data block
/// that it stood before.
fn is_indirect(fs: &FileSystemSpec, data: u64, last: Option<(u64, u64)>) -> bool {
    let is_due = data >= fs.direct_blocks && (data - fs.direct_blocks).is_multiple_of(fs.blocks_per_indirect);
    is_due && last.is_none_or(|(_, before)| before != data)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::files::layout::{blocks_of, BlockRun};

    #[test]
    fn clusters_cover_the_file_and_stop_at_indirect_blocks() {
        let fs = FileSystemSpec::default();
        let whole = |size| FilePlace { inode: 0, runs: vec![BlockRun { lba: 1000, blocks: blocks_of(&fs, size) }] };
        let mut found = Vec::new();
        clusters(&fs, &whole(200_000), 200_000, 512, &mut found);
        let rows: Vec<_> = found.iter().map(|c| (c.lba, c.sectors, c.bytes, c.indirect)).collect();
        let expected = [
            (1000, 112, 57_344, None),
            (1112, 80, 40_960, None),
            (1208, 112, 57_344, Some(1192)),
            (1320, 87, 44_352, Some(1192)),
        ];
        assert_eq!(rows, expected);
        for size in [0, 1, 8192, 98_304, 98_305, 20_000_000, 40_000_000] {
            clusters(&fs, &whole(size), size, 512, &mut found);
            assert_eq!(found.iter().map(|c| c.bytes).sum::<u64>(), size);
            assert!(found.windows(2).all(|two| two[0].lba + two[0].sectors <= two[1].lba), "{size}");
        }
        let leads: Vec<u64> = found.iter().filter_map(|c| c.indirect).collect();
        assert_eq!((leads.first(), leads.last()), (Some(&1192), Some(&(1192 + 2 * 2049 * 16))));
    }

    #[test]
    fn a_cluster_ends_with_its_run() {
        let fs = FileSystemSpec { direct_blocks: 3, ..FileSystemSpec::default() };
        // Two blocks; one, the indirect one, one; three.
        let runs = [(0, 2), (100, 3), (500, 3)].map(|(lba, blocks)| BlockRun { lba, blocks }).to_vec();
        let mut found = Vec::new();
        clusters(&fs, &FilePlace { inode: 900, runs }, 7 * 8192 - 100, 512, &mut found);
        let rows: Vec<_> = found.iter().map(|c| (c.lba, c.bytes, c.indirect)).collect();
        let all = [(0, 16_384, None), (100, 8192, None), (132, 8192, Some(116)), (500, 3 * 8192 - 100, Some(116))];
        assert_eq!(rows, all);
    }
}
