//! The places files lie in, and the memory they are read into: what is allowed, what is there.
//!
//! Invariant: whether a place can be read past the page cache is tried there, never assumed.

use super::config::{BlockBytes, FilesConfig, IoMode};
use super::fill::{sectors_of, PlannedFile};
use super::read::{self, FileToRead};
use super::result::DirectoryFacts;
use super::LONGEST_CALL;
use crate::config::{ByteProgress, OnProgress, RunStage};
use crate::error::LiveError;
use crate::memory::{available_bytes, MemoryMapping, PAGE_BYTES};
use crate::page_cache;
use crate::safety::numbers::DevNumbers;
use crate::target::direct::Access;
use crate::target::facts;
use raidlab_types::number::usize_from;
use rustix::fs::statvfs;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Whether each place is read past the page cache.
pub(super) fn choose<'a>(
    config: &FilesConfig,
    access: &[Access],
    place: impl Fn(usize) -> (String, &'a PathBuf),
) -> Result<Vec<bool>, LiveError> {
    let one = |(i, access): (usize, &Access)| match (config.io, access) {
        (IoMode::Buffered, _) | (IoMode::Auto, Access::Buffered) => Ok(false),
        (IoMode::Direct, Access::Buffered) => {
            let (key, path) = place(i);
            let message = format!(
                "{} lies in a file system without direct I/O: \"io\" must be \"auto\" or \"buffered\"",
                path.display()
            );
            Err(LiveError::Unsupported { key, message })
        }
        (_, Access::Direct { align_bytes }) => match config.block_bytes {
            BlockBytes::Bytes(bytes) if bytes % u64::from(*align_bytes) != 0 => {
                let (_, path) = place(i);
                let message =
                    format!("{bytes} must be a multiple of {align_bytes} for direct I/O in {}", path.display());
                Err(LiveError::bad("block_bytes", message))
            }
            _ => Ok(true),
        },
    };
    access.iter().enumerate().map(one).collect()
}

/// Memory of every reader, and one more to fill with.
pub(super) fn buffers(config: &FilesConfig, sizes: &[u64]) -> Result<Vec<MemoryMapping>, LiveError> {
    let largest = sizes.iter().copied().max().unwrap_or(0).max(1);
    let wanted = match config.block_bytes {
        BlockBytes::Whole if largest > LONGEST_CALL => {
            let message = format!("a file of {largest} bytes cannot be read in one call: give a number of bytes");
            return Err(LiveError::bad("block_bytes", message));
        }
        BlockBytes::Whole => largest.next_multiple_of(PAGE_BYTES as u64),
        BlockBytes::Bytes(bytes) => bytes,
    };
    let number = u64::from(config.readers) + 1;
    if available_bytes().is_some_and(|available| wanted.saturating_mul(number) > available / 10 * 9) {
        let message = format!("{number} buffers of {wanted} bytes exceed the memory that is available");
        return Err(LiveError::bad("block_bytes", message));
    }
    let take = |i: u64| {
        // Content is made in whole sectors.
        let bytes = if i == 0 { wanted.next_multiple_of(PAGE_BYTES as u64) } else { wanted };
        let mut buffer = MemoryMapping::new(usize_from(bytes))?;
        // Touched here, so that no page fault falls into a measurement.
        buffer.bytes_mut().chunks_mut(PAGE_BYTES).for_each(|page| page[0] = 1);
        Ok(buffer)
    };
    let taken: std::io::Result<Vec<MemoryMapping>> = (0..number).map(take).collect();
    taken.map_err(|e| LiveError::io("block_bytes", "memory", &format!("taking {number} buffers of {wanted} bytes"), &e))
}

/// Whether the file systems have room, before anything is written.
pub(super) fn check_room(directories: &[PathBuf], missing: &[PlannedFile]) -> Result<(), LiveError> {
    for (i, directory) in directories.iter().enumerate() {
        let files = missing.iter().filter(|f| f.set as usize == i);
        let (number, bytes) = files.fold((0, 0), |(n, b), f| (n + 1, b + sectors_of(f.size_bytes) * PAGE_BYTES as u64));
        let Ok(room) = statvfs(directory) else { continue };
        // File systems without a table of inodes say that they have none at all.
        let free_files = if room.f_files == 0 { u64::MAX } else { room.f_favail };
        let free_bytes = room.f_bavail.saturating_mul(room.f_frsize);
        let short = [("bytes", bytes, free_bytes), ("files", number, free_files)];
        let short: Vec<String> = short
            .iter()
            .filter(|(_, needed, free)| needed > free)
            .map(|(what, needed, free)| format!("{free} {what} more, and {needed} are needed"))
            .collect();
        if !short.is_empty() {
            let message = format!("{} has room for {}", directory.display(), short.join("; "));
            return Err(LiveError::bad(format!("files.directories[{i}]"), message));
        }
    }
    Ok(())
}

pub(super) fn facts_of(directory: &Path, direct: bool, ours: bool) -> DirectoryFacts {
    let numbers = std::fs::metadata(directory).ok().map(|status| DevNumbers::of(status.dev()));
    let (filesystem, device) = facts::beneath(directory, numbers);
    DirectoryFacts {
        path: facts::absolute(directory).display().to_string(),
        io: if direct { "direct" } else { "buffered" },
        filesystem,
        st_dev: numbers.map(|numbers| numbers.to_string()),
        device,
        made_by_raidlab: ours,
    }
}

/// Writes back and drops every file's pages; then, if so asked, everything the kernel holds.
pub(super) fn empty_cache(
    config: &FilesConfig,
    files: &[FileToRead],
    observer: OnProgress<'_>,
) -> Result<ControlFlow<()>, LiveError> {
    let mut progress = ByteProgress::new(RunStage::Filling, 0, observer);
    for file in files {
        let opened = read::open(&file.path, false).map_err(|e| file.error("opening it", &e))?;
        page_cache::evict(&opened).map_err(|e| file.error("dropping it from the page cache", &e))?;
        if progress.add(1).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    if config.drop_caches {
        page_cache::drop_everything().map_err(|e| LiveError::io("drop_caches", "the kernel", "dropping caches", &e))?;
    }
    Ok(ControlFlow::Continue(()))
}
