//! What every sector may hold: the table that reads are checked against.
//!
//! Purpose: after any history of overlapping reads and writes, the set of writes a read may legitimately return.
//!
//! A sector has *candidates*: writes that may be what it holds. A write becomes one when it begins. When a write ends
//! well, every candidate that had ended before it began was overwritten and is none any more. A failed write stays one
//! (it may have happened or not) until a later write ends well. A read may return any candidate there was when it began,
//! or any write that began after.
//!
//! Invariants: a sector with one candidate that has ended is *settled* and costs eight bytes; others cost a map entry.
//! Sequence 0 stands for whatever was there before the run, about which nothing is known.

use super::stamp::{SectorContent, Stamper};
use raidlab_types::number::{u32_from, usize_from};
use raidlab_types::{Extent, Lba, RequestTag};
use serde::Serialize;
use std::collections::BTreeMap;

/// Mismatches kept in full; beyond that they are only counted.
const KEPT: usize = 16;

/// A sector that did not hold what it should.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// Volume of the array.
    pub volume: u32,
    /// Sector of the volume.
    pub lba: Lba,
    /// What was found, and what was expected.
    pub message: String,
}

/// What a verifying run checked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct VerifyReport {
    /// Sectors read and compared.
    pub sectors_checked: u64,
    /// Sectors written.
    pub sectors_written: u64,
    /// Sectors that did not hold what they should.
    pub mismatch_count: u64,
    /// The first of them.
    pub mismatches: Vec<Mismatch>,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    sequence: u64,
    began: u64,
    /// `u64::MAX` while it is in flight.
    ended: u64,
}

#[derive(Debug, Clone, Default)]
struct Reading {
    /// Writes with a higher sequence began after the read.
    newest: u64,
    /// Candidates when it began: index of the sector within the extent, sequence; in order of the index.
    allowed: Vec<(u32, u64)>,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Verifier {
    stamper: Stamper,
    sector_bytes: usize,
    settled: Vec<Vec<u64>>,
    open: BTreeMap<(u32, Lba), Vec<Candidate>>,
    readings: Vec<Reading>,
    newest: u64,
    tick: u64,
    report: VerifyReport,
}

impl Verifier {
    pub(crate) fn new(stamper: Stamper, sector_bytes: u32, volume_sectors: &[u64]) -> Verifier {
        Verifier {
            stamper,
            sector_bytes: sector_bytes as usize,
            settled: volume_sectors.iter().map(|&n| vec![0; usize_from(n)]).collect(),
            open: BTreeMap::new(),
            readings: Vec::new(),
            newest: 0,
            tick: 0,
            report: VerifyReport::default(),
        }
    }

    pub(crate) fn into_report(self) -> VerifyReport {
        self.report
    }

    /// A write begins; sequences must ascend.
    pub(crate) fn write_begins(&mut self, volume: u32, extent: Extent, sequence: u64) {
        debug_assert!(sequence > self.newest);
        self.newest = sequence;
        self.tick += 1;
        for lba in extent.lba..extent.end() {
            let settled = self.settled[volume as usize][usize_from(lba)];
            let candidates = self.open.entry((volume, lba)).or_insert_with(|| {
                let before = Candidate { sequence: settled, began: 0, ended: 0 };
                vec![before]
            });
            candidates.push(Candidate { sequence, began: self.tick, ended: u64::MAX });
        }
    }

    /// A write ends, well or not.
    pub(crate) fn write_ends(&mut self, volume: u32, extent: Extent, sequence: u64, ok: bool) {
        self.tick += 1;
        self.report.sectors_written += extent.sectors;
        for lba in extent.lba..extent.end() {
            let Some(candidates) = self.open.get_mut(&(volume, lba)) else { continue };
            let Some(own) = candidates.iter_mut().find(|c| c.sequence == sequence) else { continue };
            own.ended = self.tick;
            let began = own.began;
            if ok {
                candidates.retain(|c| c.sequence == sequence || c.ended > began);
            }
            if let [only] = candidates[..] {
                if only.ended != u64::MAX {
                    self.settled[volume as usize][usize_from(lba)] = only.sequence;
                    self.open.remove(&(volume, lba));
                }
            }
        }
    }

    /// A read begins.
    pub(crate) fn read_begins(&mut self, tag: RequestTag, volume: u32, extent: Extent) {
        let tag = usize_from(tag);
        if tag >= self.readings.len() {
            self.readings.resize_with(tag + 1, Reading::default);
        }
        let reading = &mut self.readings[tag];
        reading.newest = self.newest;
        reading.allowed.clear();
        for (i, lba) in (extent.lba..extent.end()).enumerate() {
            let settled = self.settled[volume as usize][usize_from(lba)];
            match self.open.get(&(volume, lba)) {
                Some(candidates) => reading.allowed.extend(candidates.iter().map(|c| (u32_from(i), c.sequence))),
                None => reading.allowed.push((u32_from(i), settled)),
            }
        }
    }

    /// A read has ended well and brought `bytes`.
    pub(crate) fn check(&mut self, tag: RequestTag, volume: u32, extent: Extent, bytes: &[u8]) {
        let reading = std::mem::take(&mut self.readings[usize_from(tag)]);
        let mut allowed = &reading.allowed[..];
        for (i, sector) in bytes.chunks_exact(self.sector_bytes).enumerate() {
            let count = allowed.iter().take_while(|(index, _)| *index == u32_from(i)).count();
            let (mine, rest) = allowed.split_at(count);
            allowed = rest;
            self.report.sectors_checked += 1;
            if mine.iter().any(|&(_, sequence)| sequence == 0) {
                continue;
            }
            let lba = extent.lba + i as u64;
            let found = self.stamper.read_whole(sector, volume, lba);
            let is_fine = |s: u64| s > reading.newest || mine.iter().any(|&(_, sequence)| sequence == s);
            if !matches!(found, SectorContent::Write(sequence) if is_fine(sequence)) {
                self.mismatch(volume, lba, found, mine);
            }
        }
        // Its memory is kept for the tag's next read.
        self.readings[usize_from(tag)] = reading;
    }

    #[cold]
    fn mismatch(&mut self, volume: u32, lba: Lba, found: SectorContent, expected: &[(u32, u64)]) {
        self.report.mismatch_count += 1;
        if self.report.mismatches.len() >= KEPT {
            return;
        }
        let sequences: Vec<String> = expected.iter().map(|(_, sequence)| sequence.to_string()).collect();
        let what = match found {
            SectorContent::Write(sequence) => format!("write {sequence}"),
            SectorContent::OtherPlace { volume, lba, sequence } => {
                format!("write {sequence} of sector {lba} of volume {volume}")
            }
            SectorContent::Torn { sequence, at } => format!("write {sequence} with a wrong byte from {at} on"),
            SectorContent::Foreign => "nothing that this run has written".to_string(),
        };
        let message = format!("found {what}; expected write {}", sequences.join(" or "));
        self.report.mismatches.push(Mismatch { volume, lba, message });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTOR: u32 = 512;

    fn verifier() -> (Verifier, Stamper) {
        let stamper = Stamper::new(1, SECTOR);
        (Verifier::new(stamper, SECTOR, &[16]), stamper)
    }

    /// A read of sector 3 that began at `begin` (as `read_begins`) and brings write `sequence`: is it accepted?
    fn brings(v: &mut Verifier, stamper: &Stamper, sequence: u64) -> bool {
        let mut bytes = vec![0; SECTOR as usize];
        stamper.stamp_whole(&mut bytes, 0, 3, sequence);
        let before = v.report.mismatch_count;
        v.check(0, 0, Extent::new(3, 1), &bytes);
        v.report.mismatch_count == before
    }

    #[test]
    fn what_was_overwritten_must_not_come_back() {
        let (mut v, stamper) = verifier();
        let at = Extent::new(3, 1);
        for sequence in [1, 2] {
            v.write_begins(0, at, sequence);
            v.write_ends(0, at, sequence, true);
        }
        v.read_begins(0, 0, at);
        assert!(brings(&mut v, &stamper, 2));
        assert!(!brings(&mut v, &stamper, 1));
        assert!(v.open.is_empty());
    }

    #[test]
    fn concurrent_and_failed_writes_leave_a_choice_until_the_next() {
        let (mut v, stamper) = verifier();
        let at = Extent::new(3, 1);
        v.write_begins(0, at, 1);
        v.write_begins(0, at, 2);
        v.write_ends(0, at, 2, true);
        v.write_ends(0, at, 1, true);
        v.read_begins(0, 0, at);
        assert!(brings(&mut v, &stamper, 1) && brings(&mut v, &stamper, 2));
        v.write_begins(0, at, 3);
        assert!(brings(&mut v, &stamper, 3), "a write that began after the read may be seen");
        v.write_ends(0, at, 3, false);
        v.read_begins(0, 0, at);
        assert!([1, 2, 3].iter().all(|&s| brings(&mut v, &stamper, s)));
        v.write_begins(0, at, 4);
        v.write_ends(0, at, 4, true);
        v.read_begins(0, 0, at);
        assert!(!brings(&mut v, &stamper, 3) && brings(&mut v, &stamper, 4));
    }
}
