//! What the comparison of contents found, and the verdict on it.

use crate::result::{Check, Verdict};
use raidlab_types::number::{f64_from, gcd, saturating_u64};
use raidlab_types::Lba;
use serde::Serialize;

/// Wrong sectors kept in full, and of these so many in the sentence; beyond that they are only counted.
const KEPT: usize = 8;
const TOLD: usize = 3;
/// So many sectors that answer for others show at which distance they do.
const ENOUGH_FOR_WRAP: u64 = 4;
/// With so many compared, a fault of one in N is missed with a chance of 5 %: N is their number over this.
const SURE: f64 = 3.0;
/// Fewer compared than this show nothing.
const LEAST: u64 = 30;

/// How a sector was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WrongKind {
    /// Nothing but zeros.
    Zeros,
    /// What was written to another sector.
    Elsewhere,
    /// What was written before what was acknowledged last.
    Older,
    /// A part of it is not what was written with the rest.
    Torn,
    /// Nothing that raidlab wrote.
    Foreign,
    /// It could not be read back.
    Unreadable,
}

/// In the order of [`ContentReport::wrong`], with what a sentence says that sectors held.
const WRONG_KINDS: [(WrongKind, &str); 6] = [
    (WrongKind::Zeros, "zeros"),
    (WrongKind::Elsewhere, "what was written to another sector"),
    (WrongKind::Older, "older data than were acknowledged"),
    (WrongKind::Torn, "data that differ in a part"),
    (WrongKind::Foreign, "nothing that raidlab wrote"),
    (WrongKind::Unreadable, "nothing: reading them back failed"),
];

/// A sector that did not hold what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// How.
    pub kind: WrongKind,
    /// Which target, or volume of an array.
    pub volume: u32,
    /// Which sector of it.
    pub lba: Lba,
    /// The sector whose content it held, where that is another.
    pub holds: Option<(u32, Lba)>,
}

/// What was compared, and what was wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ContentReport {
    /// Bytes of a sector.
    pub sector_bytes: u64,
    /// Requests that read.
    pub reads: u64,
    /// Of those compared, sectors of which it was known what they must hold.
    pub reads_checked: u64,
    /// Sectors of which that was not known.
    pub reads_unknown: u64,
    /// Requests that wrote and were acknowledged.
    pub writes: u64,
    /// Written sectors that were read back after the load.
    pub writes_checked: u64,
    /// Sectors that were written while they were read, or by another worker: either content is right.
    pub undecided: u64,
    /// Wrong sectors, by kind in the order of [`WrongKind`].
    pub wrong: [u64; 6],
    /// The first of them.
    pub first: Vec<Wrong>,
    /// The distances between sectors and those they answered for have this as their greatest common divisor.
    pub distance_sectors: u64,
}

impl ContentReport {
    pub(crate) fn of_sectors(sector_bytes: usize) -> ContentReport {
        ContentReport { sector_bytes: sector_bytes as u64, ..ContentReport::default() }
    }

    /// All wrong sectors.
    #[must_use]
    pub fn wrong_count(&self) -> u64 {
        self.wrong.iter().sum()
    }

    #[cold]
    pub(crate) fn note(&mut self, wrong: Wrong) {
        self.wrong[wrong.kind as usize] += 1;
        if let Some((volume, lba)) = wrong.holds {
            if volume == wrong.volume {
                self.distance_sectors = gcd(self.distance_sectors, lba.abs_diff(wrong.lba));
            }
        }
        if self.first.len() < KEPT {
            self.first.push(wrong);
        }
    }

    pub(crate) fn merge(&mut self, other: &ContentReport) {
        self.reads += other.reads;
        self.reads_checked += other.reads_checked;
        self.reads_unknown += other.reads_unknown;
        self.writes += other.writes;
        self.writes_checked += other.writes_checked;
        self.undecided += other.undecided;
        self.wrong.iter_mut().zip(other.wrong).for_each(|(mine, theirs)| *mine += theirs);
        self.distance_sectors = gcd(self.distance_sectors, other.distance_sectors);
        let room = KEPT - self.first.len().min(KEPT);
        self.first.extend(other.first.iter().take(room));
    }

    /// The verdict; `name` names a target or volume.
    pub(crate) fn check(&self, name: &dyn Fn(u32) -> String) -> Check {
        let (verdict, evidence, mend) = if self.wrong_count() > 0 {
            let mend = "The device loses or changes data: do not use its figures, and do not use it.";
            (Verdict::Invalid, self.wrong_words(name), mend)
        } else if self.reads_checked + self.writes_checked < LEAST {
            let mend =
                "Let the workload write too (a device must be given up for that with --destroy); what is only read \
                        can be read twice (raidlab check).";
            (Verdict::Unknown, self.unknown_words(), mend)
        } else {
            (Verdict::Pass, self.passed_words(), "")
        };
        Check { name: "content", verdict, evidence, mend }
    }

    fn compared(&self) -> String {
        let of_reads = format!("{} sectors of {} reads", self.reads_checked, self.reads);
        let of_writes = format!("{} sectors of {} writes (read back afterwards)", self.writes_checked, self.writes);
        match (self.reads_checked, self.writes) {
            (0, _) => of_writes,
            (_, 0) => of_reads,
            _ => format!("{of_reads} and {of_writes}"),
        }
    }

    fn passed_words(&self) -> String {
        let one_in = |checked: u64| saturating_u64(f64_from(checked) / SURE);
        let read =
            (self.reads_checked >= LEAST).then(|| format!("wrong data in one of {} reads", one_in(self.reads_checked)));
        let written =
            (self.writes_checked >= LEAST).then(|| format!("one lost write in {}", one_in(self.writes_checked)));
        let faults: Vec<String> = read.into_iter().chain(written).collect();
        let unknown = match self.reads_unknown {
            0 => String::new(),
            n => format!(" Of {n} sectors read nobody knows what they must hold, as raidlab did not write them."),
        };
        let faults = faults.join(" and ");
        let all = self.compared();
        format!(
            "Compared {all}: all held what was written. With a chance of 95 %, {faults} would have been seen.{unknown}"
        )
    }

    fn unknown_words(&self) -> String {
        let checked = self.reads_checked + self.writes_checked;
        if checked > 0 {
            return format!("Compared {}, which is too few to say anything.", self.compared());
        }
        format!("Nobody knows what the {} requests should have read, as no request had written it.", self.reads)
    }

    fn wrong_words(&self, name: &dyn Fn(u32) -> String) -> String {
        let counts = WRONG_KINDS.iter().zip(self.wrong).filter(|(_, count)| *count > 0);
        let kinds: Vec<String> = counts.map(|((_, words), count)| format!("{count} held {words}")).collect();
        let first: Vec<String> = self.first.iter().take(TOLD).map(|wrong| self.place(wrong, name)).collect();
        let elsewhere = self.wrong[WrongKind::Elsewhere as usize];
        let wraps = if elsewhere >= ENOUGH_FOR_WRAP && self.distance_sectors > 1 {
            let bytes = self.distance_sectors * self.sector_bytes;
            format!(" All are a multiple of {bytes} bytes apart: the capacity wraps there.")
        } else {
            String::new()
        };
        format!(
            "Compared {}: {} were wrong ({}).{wraps} First: {}.",
            self.compared(),
            self.wrong_count(),
            kinds.join(", "),
            first.join("; ")
        )
    }

    fn place(&self, wrong: &Wrong, name: &dyn Fn(u32) -> String) -> String {
        let place = format!("sector {} of {}", wrong.lba, name(wrong.volume));
        match wrong.holds {
            Some((volume, lba)) if volume != wrong.volume => {
                format!("{place} holds what was written to sector {lba} of {}", name(volume))
            }
            Some((_, lba)) => format!("{place} holds what was written to sector {lba}"),
            None => format!("{place} held {}", WRONG_KINDS[wrong.kind as usize].1),
        }
    }
}

/// The finding where nothing was compared.
pub(crate) fn not_compared(why: &str, mend: &'static str) -> Check {
    let evidence = format!("Nobody looked whether what was read is what was written: {why}.");
    Check { name: "content", verdict: Verdict::Unknown, evidence, mend }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(report: &ContentReport) -> (Verdict, String) {
        let check = report.check(&|volume| format!("disk {volume}"));
        (check.verdict, check.evidence)
    }

    #[test]
    fn a_pass_says_what_would_have_been_seen() {
        let report =
            ContentReport { reads: 9000, reads_checked: 3000, writes: 50, writes_checked: 10, ..Default::default() };
        let (verdict, evidence) = said(&report);
        assert_eq!(verdict, Verdict::Pass);
        assert!(evidence.contains("one of 1000 reads would have been seen"), "{evidence}");
    }

    #[test]
    fn what_was_only_read_is_unknown() {
        let (verdict, evidence) = said(&ContentReport { reads: 9000, reads_unknown: 400, ..Default::default() });
        assert_eq!(verdict, Verdict::Unknown);
        assert!(evidence.contains("9000 requests"), "{evidence}");
    }

    #[test]
    fn a_wrap_is_named_with_its_capacity() {
        let mut report = ContentReport { reads: 90, reads_checked: 90, ..ContentReport::of_sectors(4096) };
        for (lba, holds) in [(2048, 0), (4099, 2051), (7, 6151), (2060, 12)] {
            report.note(Wrong { kind: WrongKind::Elsewhere, volume: 0, lba, holds: Some((0, holds)) });
        }
        let (verdict, evidence) = said(&report);
        assert_eq!(verdict, Verdict::Invalid);
        assert!(evidence.contains("4 held what was written to another sector"), "{evidence}");
        assert!(evidence.contains("8388608 bytes apart: the capacity wraps"), "{evidence}");
        assert!(evidence.contains("sector 2048 of disk 0 holds what was written to sector 0"), "{evidence}");
    }
}
