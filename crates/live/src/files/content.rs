//! Whether the files that raidlab made hold what it wrote, looked at while they are read.
//!
//! Purpose: a file system or a device that returns wrong data is fast and worthless. Every sector of a made file is a
//! function of the seed and of its place in the row of all files (`fill`), so whatever part of it a read call brings is
//! compared with that, to the byte.
//!
//! Invariants:
//! - Comparing is in no file's time.
//! - Which sectors are looked at follows from the seed, the reader and the number of its reading: a run made again looks
//!   at the same ones.

use super::fill::SECTOR_BYTES;
use crate::content::{ContentReport, SectorContent, Stamper, Verify, Wrong, WrongKind};
use raidlab_types::number::{u32_from, usize_from};
use raidlab_types::{CounterRng, Seed};

/// A sample has one sector of so many bytes of a file,
const BYTES_OF_A_SECTOR: u64 = 1 << 20;
/// and of a long file no more than these.
const MOST_OF_A_FILE: u64 = 16;

/// What one reader compares.
pub(super) struct FileCheck<'a> {
    verify: Verify,
    stamper: Stamper,
    /// By file: its first sector in the row of all files.
    first_sectors: &'a [u64],
    draws: CounterRng,
    /// In a sample: the sectors of the file being read that are compared, ascending.
    chosen: Vec<u64>,
    expected: Box<[u8]>,
    report: ContentReport,
}

impl<'a> FileCheck<'a> {
    /// Nothing if nothing is to be compared, or nothing is known of the files.
    pub(crate) fn new(verify: Verify, seed: u64, reader: u32, first_sectors: &'a [u64]) -> Option<FileCheck<'a>> {
        (verify != Verify::Off && !first_sectors.is_empty()).then(|| FileCheck {
            verify,
            stamper: Stamper::new(seed, u32_from(SECTOR_BYTES)),
            first_sectors,
            draws: Seed::new(seed).named("file contents").child(u64::from(reader)).draws(),
            chosen: Vec::with_capacity(usize_from(MOST_OF_A_FILE)),
            expected: vec![0; usize_from(SECTOR_BYTES)].into_boxed_slice(),
            report: ContentReport::of_sectors(usize_from(SECTOR_BYTES)),
        })
    }

    /// A file of so many bytes is about to be read.
    pub(crate) fn begin(&mut self, size_bytes: u64) {
        self.report.reads += 1;
        self.chosen.clear();
        if self.verify == Verify::Sample && size_bytes > 0 {
            let sectors = size_bytes.div_ceil(SECTOR_BYTES);
            let wanted = (size_bytes / BYTES_OF_A_SECTOR).clamp(1, MOST_OF_A_FILE);
            self.chosen.extend((0..wanted).map(|_| self.draws.next_u64() % sectors));
            self.chosen.sort_unstable();
            self.chosen.dedup();
        }
    }

    /// Whether any of these bytes of the file is to be compared.
    pub(crate) fn wants(&self, at: u64, len: u64) -> bool {
        self.verify == Verify::Full || self.chosen.iter().any(|&sector| overlap(sector, at, len).is_some())
    }

    /// Compares what a call brought of `file`, from its byte `at` on.
    pub(crate) fn compare(&mut self, file: u32, at: u64, bytes: &[u8]) {
        let len = bytes.len() as u64;
        for sector in at / SECTOR_BYTES..(at + len).div_ceil(SECTOR_BYTES) {
            let is_chosen = self.verify == Verify::Full || self.chosen.binary_search(&sector).is_ok();
            if let (true, Some((from, to))) = (is_chosen, overlap(sector, at, len)) {
                let part = &bytes[usize_from(from - at)..usize_from(to - at)];
                self.compare_part(file, sector, usize_from(from - sector * SECTOR_BYTES), part);
            }
        }
    }

    /// Compares a part of a sector, which begins so many bytes into it.
    fn compare_part(&mut self, file: u32, sector: u64, from: usize, part: &[u8]) {
        let place = self.first_sectors[file as usize] + sector;
        self.stamper.stamp_whole(&mut self.expected, 0, place, WRITTEN_ONCE);
        // A sector that comes in several calls counts with the first of them.
        self.report.reads_checked += u64::from(from == 0);
        if self.expected[from..from + part.len()] == *part {
            return;
        }
        let wrong = |kind, holds| Wrong { kind, volume: file, lba: sector, holds };
        self.report.note(match self.found(part, place) {
            _ if part.iter().all(|&byte| byte == 0) => wrong(WrongKind::Zeros, None),
            Some(SectorContent::OtherPlace { lba, .. }) => wrong(WrongKind::Elsewhere, Some(self.file_of(lba))),
            Some(SectorContent::Foreign) => wrong(WrongKind::Foreign, None),
            Some(SectorContent::Torn { .. } | SectorContent::Write(_)) | None => wrong(WrongKind::Torn, None),
        });
    }

    /// What a whole sector turned out to hold; nothing of a part.
    fn found(&self, part: &[u8], place: u64) -> Option<SectorContent> {
        (part.len() as u64 == SECTOR_BYTES).then(|| self.stamper.read_whole(part, 0, place))
    }

    /// The file and its sector that have a place in the row of all files.
    fn file_of(&self, place: u64) -> (u32, u64) {
        let file = self.first_sectors.partition_point(|&first| first <= place).saturating_sub(1);
        (u32_from(file), place - self.first_sectors[file])
    }

    /// What was found.
    pub(crate) fn into_report(self) -> ContentReport {
        self.report
    }
}

/// The sequence of the only write that a sector of a file has.
pub(super) const WRITTEN_ONCE: u64 = 1;

/// From which to which byte of a file a sector and a call overlap.
fn overlap(sector: u64, at: u64, len: u64) -> Option<(u64, u64)> {
    let (from, to) = ((sector * SECTOR_BYTES).max(at), ((sector + 1) * SECTOR_BYTES).min(at + len));
    (from < to).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: [u64; 3] = [0, 3, 5];

    /// The bytes of file 1, whose last sector is not whole.
    fn written() -> Vec<u8> {
        let mut bytes = vec![0; 2 * SECTOR_BYTES as usize];
        Stamper::new(7, SECTOR_BYTES as u32).stamp_whole(&mut bytes, 0, FIRST[1], WRITTEN_ONCE);
        bytes.truncate(6000);
        bytes
    }

    fn read(bytes: &[u8], call: usize) -> ContentReport {
        let mut check = FileCheck::new(Verify::Full, 7, 0, &FIRST).expect("something is to be compared");
        check.begin(bytes.len() as u64);
        for (number, part) in bytes.chunks(call).enumerate() {
            check.compare(1, (number * call) as u64, part);
        }
        check.into_report()
    }

    #[test]
    fn what_was_written_is_right_in_calls_of_any_length() {
        for call in [512, 1000, 4096, 5000, 6000] {
            let report = read(&written(), call);
            assert_eq!((report.wrong_count(), report.reads_checked, report.reads), (0, 2, 1), "calls of {call}");
        }
    }

    #[test]
    fn every_wrong_byte_is_found() {
        for at in [0, 31, 32, 4095, 4096, 5999] {
            for call in [512, 6000] {
                let mut bytes = written();
                bytes[at] ^= 0x40;
                assert_eq!(read(&bytes, call).wrong_count(), 1, "byte {at}, calls of {call}");
            }
        }
    }

    #[test]
    fn what_it_holds_instead_is_named() {
        let zeros = read(&[0; 6000], 4096);
        assert_eq!(zeros.wrong[WrongKind::Zeros as usize], 2);
        let mut elsewhere = written();
        Stamper::new(7, 4096).stamp_whole(&mut elsewhere[..4096], 0, FIRST[2] + 4, WRITTEN_ONCE);
        let report = read(&elsewhere, 4096);
        assert_eq!(report.first[0].holds, Some((2, 4)));
        assert_eq!((report.first[0].volume, report.first[0].lba), (1, 0));
    }

    #[test]
    fn a_sample_is_of_every_file_and_never_of_all_of_a_long_one() {
        let mut check = FileCheck::new(Verify::Sample, 7, 0, &FIRST).expect("something is to be compared");
        check.begin(100);
        assert_eq!(check.chosen, [0]);
        check.begin(1 << 30);
        assert!((2..=16).contains(&check.chosen.len()), "{:?}", check.chosen);
        let chosen = check.chosen[0];
        assert!(check.wants(chosen * SECTOR_BYTES + 4095, 1) && !check.wants((chosen + 1) * SECTOR_BYTES, 0));
        assert!(
            FileCheck::new(Verify::Off, 7, 0, &FIRST).is_none() && FileCheck::new(Verify::Full, 7, 0, &[]).is_none()
        );
    }
}
