//! Where the files of one volume lie: cylinder groups, inode blocks, data.
//!
//! Purpose: addresses that a Unix file system would give, without keeping the file system. Files are spread evenly over the
//! groups in the order of their numbers, which says nothing of their sizes. In its group a file lies whole, or in runs that
//! are strewn over it; the free space is evenly between them, so that a volume that is not full is used over its whole length
//! all the same. A long file goes on in the next group after a quarter of one, so that none is used up by one file.
//!
//! Invariants:
//! - A pure function of the sizes and the seed; where a file is broken does not depend on where others are.
//! - Runs and inode blocks are disjoint and begin on a block.
//!
//! Reference: M. McKusick et al., *A fast file system for UNIX*, 1984; tunefs(8), `maxbpg`.

use super::spec::FileSystemSpec;
use crate::SpecError;
use raidlab_types::number::{f64_from, u32_from, usize_from};
use raidlab_types::Seed;

/// Blocks of a file that lie side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRun {
    /// First sector on the volume.
    pub lba: u64,
    /// Blocks.
    pub blocks: u64,
}

/// Where one file lies, in sectors of its volume.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilePlace {
    /// The block that holds its inode.
    pub inode: u64,
    /// Its blocks, indirect ones among them, in order.
    pub runs: Vec<BlockRun>,
}

/// Blocks of a file with its indirect ones, each of which stands before the blocks that it leads to.
pub(super) fn blocks_of(fs: &FileSystemSpec, size_bytes: u64) -> u64 {
    let data = size_bytes.div_ceil(fs.block_bytes);
    data + data.saturating_sub(fs.direct_blocks).div_ceil(fs.blocks_per_indirect)
}

/// A part of a file that is to be put somewhere.
#[derive(Debug, Clone, Copy)]
struct FileFragment {
    file: u32,
    run: u32,
    blocks: u64,
}

/// The groups of a volume while files are put into them.
struct Groups<'a> {
    fs: &'a FileSystemSpec,
    /// By group: its first block behind the inodes, blocks that are free, and what it holds.
    first: Vec<u64>,
    room: Vec<u64>,
    held: Vec<Vec<FileFragment>>,
}

impl Groups<'_> {
    /// Puts a part into `group`, or the next one that has room; where none has room for all of it, as much as goes into
    /// the one with most. The blocks put away: 0 where all is full.
    fn hold(&mut self, group: u64, part: FileFragment) -> u64 {
        let groups = self.room.len();
        let in_turn = || (0..groups).map(|i| (usize_from(group) + i) % groups);
        let fits = in_turn().find(|&g| self.room[g] >= part.blocks);
        let found = fits.or_else(|| in_turn().max_by_key(|&g| self.room[g])).expect("there is a group");
        let blocks = part.blocks.min(self.room[found]);
        self.room[found] -= blocks;
        self.held[found].push(FileFragment { blocks, ..part });
        blocks
    }

    /// Lays out what each group holds, with equal gaps; strewn where files are broken.
    fn lay(&mut self, sector_bytes: u64, seed: Seed, places: &mut [FilePlace]) {
        let block_sectors = self.fs.block_bytes / sector_bytes;
        for (group, parts) in self.held.iter_mut().enumerate() {
            if self.fs.run_bytes.is_some() {
                super::plan::shuffle(parts, &mut seed.child(group as u64).draws());
            }
            let mut laid = 0;
            for (i, part) in parts.iter().enumerate() {
                let gaps = self.room[group] * i as u64 / parts.len() as u64;
                let block = self.first[group] + laid + gaps;
                laid += part.blocks;
                let lba = group as u64 * (self.fs.group_bytes / sector_bytes) + block * block_sectors;
                places[part.file as usize].runs[part.run as usize].lba = lba;
            }
        }
    }
}

/// Lays out the files of a volume. `sizes` are those of the volume's files, in order.
pub fn place(
    fs: &FileSystemSpec,
    sizes: &[u64],
    volume_bytes: u64,
    sector_bytes: u64,
    seed: Seed,
) -> Result<Vec<FilePlace>, SpecError> {
    let groups = volume_bytes / fs.group_bytes;
    if groups == 0 {
        let message = format!(
            "{} bytes are more than a volume of {volume_bytes}; accepted: at least one group a volume",
            fs.group_bytes
        );
        return Err(SpecError::new("files.file_system.group", message));
    }
    let group_of = |file: usize| file as u64 * groups / sizes.len() as u64;
    let mut places = vec![FilePlace::default(); sizes.len()];
    let mut inodes = vec![0u64; usize_from(groups)];
    for (file, place) in places.iter_mut().enumerate() {
        let group = group_of(file);
        let block = fs.group_header_blocks + inodes[usize_from(group)] / fs.inodes_per_block;
        inodes[usize_from(group)] += 1;
        place.inode = (group * fs.group_bytes + block * fs.block_bytes) / sector_bytes;
    }
    let first: Vec<u64> = inodes.iter().map(|&n| fs.group_header_blocks + n.div_ceil(fs.inodes_per_block)).collect();
    let room = first.iter().map(|&first| (fs.group_bytes / fs.block_bytes).saturating_sub(first)).collect();
    let mut all = Groups { fs, first, room, held: vec![Vec::new(); usize_from(groups)] };
    for (number, &size) in sizes.iter().enumerate() {
        let (file, group) = (u32_from(number), group_of(number));
        for (run, mut blocks) in broken(fs, size, seed.named("runs").child(number as u64)).into_iter().enumerate() {
            // The runs of a broken file are strewn over its group, the parts of a whole one lie a group apart.
            let group = if fs.run_bytes.is_none() { group + run as u64 } else { group };
            while blocks > 0 {
                let runs = &mut places[number].runs;
                let held = all.hold(group, FileFragment { file, run: u32_from(runs.len()), blocks });
                if held == 0 {
                    return Err(does_not_fit(sizes, volume_bytes));
                }
                runs.push(BlockRun { lba: 0, blocks: held });
                blocks -= held;
            }
        }
    }
    all.lay(sector_bytes, seed.named("order"), &mut places);
    Ok(places)
}

/// The lengths of a file's runs, in blocks.
fn broken(fs: &FileSystemSpec, size_bytes: u64, seed: Seed) -> Vec<u64> {
    let blocks = blocks_of(fs, size_bytes);
    let Some(mean) = fs.run_bytes else { return parts(blocks, most_in_group(fs)) };
    let chance = f64_from(fs.block_bytes) / mean;
    let (mut random, mut runs, mut length) = (seed.draws(), Vec::new(), 0);
    for block in 1..=blocks {
        length += 1;
        if block == blocks || random.unit() < chance {
            runs.push(length);
            length = 0;
        }
    }
    runs
}

/// Blocks that one file may have of a group before it goes on in another.
fn most_in_group(fs: &FileSystemSpec) -> u64 {
    // Inodes take a few blocks of a group, whose number is not known here.
    let data = (fs.group_bytes / fs.block_bytes).saturating_sub(fs.group_header_blocks + 16);
    (data / 4).max(1)
}

fn parts(blocks: u64, most: u64) -> Vec<u64> {
    (0..blocks.div_ceil(most)).map(|part| most.min(blocks - part * most)).collect()
}

fn does_not_fit(sizes: &[u64], volume_bytes: u64) -> SpecError {
    let total: u64 = sizes.iter().sum();
    let message =
        format!("{} files of {total} bytes do not fit a volume of {volume_bytes}; ask for fewer", sizes.len());
    SpecError::new("files.count", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps_and_the_whole_volume_is_used() {
        let sizes: Vec<u64> = (0..2000).map(|i| 50_000 + 25_000 * (i * 7 % 10)).collect();
        for run_bytes in [None, Some(8192.0), Some(30_000.0)] {
            let fs = FileSystemSpec { run_bytes, ..FileSystemSpec::default() };
            let places = place(&fs, &sizes, 700_000_000, 512, Seed::new(1)).expect("they fit");
            let of_place =
                |p: &FilePlace| p.runs.iter().map(|run| (run.lba, run.lba + run.blocks * 16)).collect::<Vec<_>>();
            let mut runs: Vec<(u64, u64)> = places.iter().flat_map(of_place).collect();
            runs.extend(places.iter().map(|place| (place.inode, place.inode + 16)));
            runs.sort_unstable();
            runs.dedup();
            assert!(runs.windows(2).all(|two| two[0].1 <= two[1].0), "{run_bytes:?}");
            assert!(runs.last().is_some_and(|last| last.1 * 512 > 680_000_000));
            assert!(runs.iter().all(|run| run.1 * 512 <= 700_000_000 && run.0 % 16 == 0));
            for (place, &size) in places.iter().zip(&sizes) {
                assert_eq!(place.runs.iter().map(|run| run.blocks).sum::<u64>(), blocks_of(&fs, size));
            }
        }
    }

    #[test]
    fn runs_have_their_mean_length() {
        // Long files, so that ends do not count: 100 of 10,000 blocks, mean 3 blocks, standard error 0.4 %.
        let fs = FileSystemSpec { run_bytes: Some(3.0 * 8192.0), ..FileSystemSpec::default() };
        let runs: usize = (0..100).map(|i| broken(&fs, 10_000 * 8192, Seed::new(i)).len()).sum();
        assert!((1e6 / runs as f64 / 3.0 - 1.0).abs() < 0.02, "{runs}");
    }

    #[test]
    fn a_long_file_goes_on_in_the_next_group() {
        let fs = FileSystemSpec { run_bytes: None, ..FileSystemSpec::default() };
        assert_eq!(broken(&fs, 80 * 8192, Seed::new(1)), [81], "with the indirect block");
        assert_eq!(broken(&fs, 0, Seed::new(1)), [] as [u64; 0]);
        let most = most_in_group(&fs);
        assert_eq!(broken(&fs, 400 * 8192, Seed::new(1)), [most, most, 401 - 2 * most]);
        // Twenty files of eight parts over 112 groups: all find room, each part a group further on.
        let places = place(&fs, &[12_000_000; 20], 700_000_000, 512, Seed::new(1)).expect("they fit");
        let groups: Vec<u64> = places[0].runs.iter().map(|run| run.lba * 512 / fs.group_bytes).collect();
        assert!(groups.windows(2).all(|two| two[1] == two[0] + 1), "{groups:?}");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let fs = FileSystemSpec::default();
        let error = place(&fs, &[250_000; 100], 20_000_000, 512, Seed::new(1)).expect_err("25 MB into 20");
        assert_eq!(error.key, "files.count");
        let error = place(&fs, &[1000], 1_000_000, 512, Seed::new(1)).expect_err("no group");
        assert_eq!(error.key, "files.file_system.group");
    }

    #[test]
    fn indirect_blocks_come_with_what_is_behind_the_direct_ones() {
        let fs = FileSystemSpec::default();
        assert_eq!((blocks_of(&fs, 98_304), blocks_of(&fs, 98_305)), (12, 14));
        assert_eq!(blocks_of(&fs, 98_304 + 2049 * 8192), 12 + 2049 + 2);
    }
}
