//! What a target holds before the run: random bytes, or zeroes.
//!
//! Purpose: measured reads meet real blocks that no layer can compress or leave out, so what raidlab makes is filled with
//! random bytes, once. A verifying run needs redundancy that is right from the start, and zeroes are right for every
//! level (with random bytes, a read-modify-write would carry wrong parity on for ever): it writes zeroes everywhere.
//!
//! Invariants:
//! - A file's trailer says "filled" only while it is: not before the last byte is written, nor once zeroes are.
//! - The caller sees to it that the target may be written; nothing here asks again.

use super::trailer::{StampedSectors, Trailer, TRAILER_BYTES};
use super::{OpenContent, Store, Target};
use crate::config::{ByteProgress, OnProgress, RunStage};
use crate::content::{seal, Knowledge, Stamper};
use crate::error::LiveError;
use crate::memory::{fill_random, MemoryMapping, PAGE_BYTES};
use raidlab_types::number::{u32_from, usize_from};
use raidlab_types::CounterRng;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

/// Bytes written at once.
const STEP_BYTES: usize = 1 << 20;

/// What to fill with.
#[derive(Debug)]
pub(crate) enum Filling {
    /// Only what raidlab has made, and not yet filled: random bytes in stamped sectors.
    Random(CounterRng, Stamper),
    /// Everything.
    Zeroes,
}

impl Target {
    /// Bytes that [`Target::fill`] would write.
    pub(crate) fn bytes_to_fill(&self, filling: &Filling) -> u64 {
        match filling {
            Filling::Random(..) if !self.needs_fill => 0,
            _ if matches!(self.store, Store::Emulated(_, OpenContent::Nothing)) => 0,
            _ => self.facts.size_bytes,
        }
    }

    /// Fills it. `progress` is told every byte written, and may stop it.
    pub(crate) fn fill(
        &mut self,
        filling: &mut Filling,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, LiveError> {
        if self.bytes_to_fill(filling) == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let done = match &mut self.store {
            Store::Null | Store::Emulated(_, OpenContent::Nothing) => ControlFlow::Continue(()),
            Store::Memory(mapping) | Store::Emulated(_, OpenContent::Memory(mapping)) => {
                fill_memory(mapping.bytes_mut(), filling, progress)
            }
            Store::Fd(file) | Store::Emulated(_, OpenContent::File(file)) => {
                let (ours, size_bytes) = (self.facts.made_by_raidlab, self.facts.size_bytes);
                fill_file(file, ours, size_bytes, filling, progress).map_err(|e| {
                    LiveError::io(format!("{}.path", self.key), self.name(), "filling it before the run", &e)
                })?
            }
        };
        self.needs_fill = done.is_break() || matches!(filling, Filling::Zeroes);
        self.stamped = if self.needs_fill { None } else { filling.stamped() };
        Ok(done)
    }

    /// What is known of its sectors, if they are of this size.
    pub(crate) fn known(&self, sector_bytes: u32) -> Knowledge {
        match self.stamped {
            Some(stamped) if stamped.sector_bytes != sector_bytes => Knowledge::Nothing,
            Some(StampedSectors { placed: true, .. }) => Knowledge::Placed,
            Some(StampedSectors { placed: false, .. }) => Knowledge::Sound,
            None => Knowledge::Nothing,
        }
    }

    /// Takes back what is said of all its sectors, as far as this no longer holds of what is going to be written. To be
    /// called before anything is.
    pub(crate) fn will_be_written(&mut self, sector_bytes: u32, known: Knowledge) -> Result<(), LiveError> {
        let before = self.stamped;
        self.stamped = match (self.known(sector_bytes), known) {
            (Knowledge::Nothing, _) | (_, Knowledge::Nothing) => None,
            (found, written) => {
                let placed = (found, written) == (Knowledge::Placed, Knowledge::Placed);
                Some(StampedSectors { sector_bytes, placed })
            }
        };
        let (Some(file), true) = (self.store.file(), self.stamped != before) else { return Ok(()) };
        let stamped = self.stamped;
        let write = || -> io::Result<()> {
            let data_bytes = file.metadata()?.len().saturating_sub(TRAILER_BYTES);
            write_trailer(file, Trailer { data_bytes, filled: true, stamped }, &mut MemoryMapping::new(PAGE_BYTES)?)?;
            file.sync_data()
        };
        write().map_err(|e| LiveError::io(format!("{}.path", self.key), self.name(), "marking it before the run", &e))
    }
}

impl Filling {
    fn stamped(&self) -> Option<StampedSectors> {
        match self {
            Filling::Random(_, stamper) => {
                Some(StampedSectors { sector_bytes: u32_from(stamper.sector_bytes()), placed: true })
            }
            Filling::Zeroes => None,
        }
    }
}

/// Fills all of these that need it, each with what `filling` gives for its number; the observer may stop it.
pub(crate) fn fill_all<'a>(
    targets: impl Iterator<Item = (u64, &'a mut Target)>,
    filling: &dyn Fn(u64) -> Filling,
    observer: OnProgress<'_>,
) -> Result<ControlFlow<()>, LiveError> {
    let targets: Vec<(u64, &mut Target)> = targets.collect();
    let total = targets.iter().map(|(number, t)| t.bytes_to_fill(&filling(*number))).sum();
    let mut progress = ByteProgress::new(RunStage::Filling, total, observer);
    for (number, target) in targets {
        if target.fill(&mut filling(number), &mut |bytes| progress.add(bytes))?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Makes the bytes that lie from byte `at` on.
fn make(bytes: &mut [u8], at: u64, filling: &mut Filling) {
    match filling {
        Filling::Random(random, stamper) => {
            debug_assert_eq!(at % stamper.sector_bytes() as u64, 0);
            fill_random(bytes, random);
            seal(bytes, stamper.sector_bytes());
            stamper.stamp(bytes, 0, at / stamper.sector_bytes() as u64, 0);
        }
        Filling::Zeroes => bytes.fill(0),
    }
}

fn fill_memory(
    bytes: &mut [u8],
    filling: &mut Filling,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for (i, step) in bytes.chunks_mut(STEP_BYTES).enumerate() {
        make(step, (i * STEP_BYTES) as u64, filling);
        progress(step.len() as u64)?;
    }
    ControlFlow::Continue(())
}

/// Writes the whole of a file up to its trailer, or of a device.
fn fill_file(
    file: &File,
    ours: bool,
    size_bytes: u64,
    filling: &mut Filling,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> io::Result<ControlFlow<()>> {
    let mut buffer = MemoryMapping::new(STEP_BYTES)?;
    let length = if ours { file.metadata()?.len().saturating_sub(TRAILER_BYTES) } else { size_bytes };
    if ours {
        write_trailer(file, Trailer { data_bytes: length, filled: false, stamped: None }, &mut buffer)?;
    }
    let mut at = 0;
    while at < length {
        let step = usize_from((length - at).min(STEP_BYTES as u64));
        make(&mut buffer.bytes_mut()[..step], at, filling);
        file.write_all_at(&buffer.bytes_mut()[..step], at)?;
        at += step as u64;
        if progress(step as u64).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    file.sync_data()?;
    if ours && matches!(filling, Filling::Random(..)) {
        write_trailer(file, Trailer { data_bytes: length, filled: true, stamped: filling.stamped() }, &mut buffer)?;
        file.sync_data()?;
    }
    Ok(ControlFlow::Continue(()))
}

/// `buffer` is aligned as O_DIRECT needs it.
fn write_trailer(file: &File, trailer: Trailer, buffer: &mut MemoryMapping) -> io::Result<()> {
    let page = &mut buffer.bytes_mut()[..PAGE_BYTES];
    page.copy_from_slice(&trailer.encode());
    file.write_all_at(page, trailer.data_bytes)
}
