//! Writing whole files: create, write, synchronise, close; each measured.
//!
//! Purpose: the files to be read, and how fast this place takes them. One after another, in the order of their numbers,
//! so that where they lie follows from the plan.
//!
//! Invariants:
//! - Every byte is a function of the seed and of its place in the row of all files, so no two sectors are alike, nothing
//!   can be compressed, and a set made again is the same.
//! - The time in which content is made counts for no file.
//! - What was written before an error or an interruption is in the result.

use super::config::SyncRule;
use super::content::WRITTEN_ONCE;
use super::result::{FillRecord, FillResult};
use super::set::Set;
use crate::content::Stamper;
use crate::error::LiveError;
use crate::io::Clock;
use crate::memory::{MemoryMapping, PAGE_BYTES};
use raidlab_types::number::{u32_from, usize_from};
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

/// Unit of the content.
pub(super) const SECTOR_BYTES: u64 = PAGE_BYTES as u64;

/// Sectors of the content that a file takes.
pub(super) fn sectors_of(size_bytes: u64) -> u64 {
    size_bytes.div_ceil(SECTOR_BYTES)
}

/// A file to be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlannedFile {
    pub number: u32,
    pub size_bytes: u64,
    /// Its directory.
    pub set: u32,
    /// Its first sector in the row of all files.
    pub first_sector: u64,
}

/// Writes files of sets, one after another.
pub(super) struct Filler<'a> {
    pub sets: &'a [Set],
    /// By set: past the page cache.
    pub direct: &'a [bool],
    pub seed: u64,
    pub sync: SyncRule,
    pub buffer: &'a mut MemoryMapping,
    pub clock: Clock,
}

impl Filler<'_> {
    /// Writes them all, unless `progress` (told the bytes of each block) stops it. What was done is in the result.
    pub(super) fn write_all(
        &mut self,
        files: &[PlannedFile],
        result: &mut FillResult,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, LiveError> {
        for file in files {
            let path = self.sets[file.set as usize].file(file.number).display().to_string();
            let written = self.write(file, result, progress);
            let key = format!("files.directories[{}]", file.set);
            if written.map_err(|(doing, e)| LiveError::io(key, path, doing, &e))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if self.sync == SyncRule::End {
            let start = self.clock.now();
            for (i, set) in self.sets.iter().enumerate() {
                let key = format!("files.directories[{i}]");
                set.sync_filesystem().map_err(|e| LiveError::io(key, "its file system", "synchronising it", &e))?;
            }
            result.sync_ns = self.clock.now().since(start).as_ns();
        }
        Ok(ControlFlow::Continue(()))
    }

    fn write(
        &mut self,
        planned: &PlannedFile,
        result: &mut FillResult,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, (&'static str, io::Error)> {
        let direct = self.direct[planned.set as usize];
        let start = self.clock.now();
        let file = self.sets[planned.set as usize].create(planned.number, direct).map_err(|e| ("creating it", e))?;
        let create_ns = self.clock.now().since(start).as_ns();
        let (mut at, mut write_ns) = (0, 0);
        while at < planned.size_bytes {
            let making = self.clock.now();
            let step = (planned.size_bytes - at).min(self.buffer.len() as u64);
            self.make(planned.first_sector + at / SECTOR_BYTES, step);
            let began = self.clock.now();
            result.content_ns += began.since(making).as_ns();
            write_block(&file, self.buffer.bytes_mut(), at, step, direct).map_err(|e| ("writing it", e))?;
            write_ns += self.clock.now().since(began).as_ns();
            at += step;
            if progress(step).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let closing = self.clock.now();
        if direct && !planned.size_bytes.is_multiple_of(SECTOR_BYTES) {
            file.set_len(planned.size_bytes).map_err(|e| ("cutting it to its size", e))?;
        }
        if self.sync == SyncRule::Each {
            file.sync_all().map_err(|e| ("synchronising it", e))?;
        }
        let synced = self.clock.now();
        drop(file);
        let sync_ns = synced.since(closing).as_ns();
        let total_ns = create_ns + write_ns + self.clock.now().since(closing).as_ns();
        result.records.push(FillRecord {
            file: planned.number,
            size_bytes: planned.size_bytes,
            start_ns: start.as_ns(),
            create_ns,
            write_ns,
            sync_ns,
            total_ns,
        });
        Ok(ControlFlow::Continue(()))
    }

    fn make(&mut self, first_sector: u64, bytes: u64) {
        let len = usize_from(bytes.next_multiple_of(SECTOR_BYTES));
        let stamper = Stamper::new(self.seed, u32_from(SECTOR_BYTES));
        stamper.stamp_whole(&mut self.buffer.bytes_mut()[..len], 0, first_sector, WRITTEN_ONCE);
    }
}

/// Past the page cache only whole sectors can be written: the last goes beyond the end, which is cut off afterwards.
fn write_block(file: &File, buffer: &[u8], at: u64, bytes: u64, direct: bool) -> io::Result<()> {
    let len = if direct { bytes.next_multiple_of(SECTOR_BYTES) } else { bytes };
    file.write_all_at(&buffer[..usize_from(len)], at)
}
