//! What goes wrong in a schedule: drawn as it runs, written down, and given again when it is repeated.

use raidlab_array::ScrubKind;
use std::fmt;
use std::str::FromStr;

/// Every kind of scrub.
pub const SCRUBS: [ScrubKind; 3] = [ScrubKind::Check, ScrubKind::Repair, ScrubKind::Resync];

/// What may go wrong in a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct FaultRates {
    /// Chance in 1000 that a step kills a member.
    pub deaths: u64,
    /// Chance in 1000 that a step makes a sector unreadable.
    pub bad_sectors: u64,
    /// Chance in 1000 that a write fails with a media error.
    pub write_errors: u64,
    /// Chance in 1000 that a step puts a new member in the place of one that the array knows to be gone.
    pub replacements: u64,
    /// Chance in 1000 that a step begins a scrub.
    pub scrubs: u64,
    /// When all is quiet, sectors are changed behind the array's back, and a scrub is to put them right.
    pub rot: bool,
    /// Also what the tree does not bear.
    pub beyond: bool,
}

/// A thing that goes wrong, or a new member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberFaultKind {
    /// The member answers no more; the array is told, or finds it out.
    Death { told: bool },
    /// Its sector becomes unreadable.
    BadSector { lba: u64 },
    /// Its next write fails.
    WriteError,
    /// The array begins to go over what it holds, unless it does already; of no member.
    Scrub(ScrubKind),
    /// A new member takes its place, once it is known to be gone and has nothing more to answer.
    Replacement,
    /// It is rebuilt into a distributed spare, once it is known to be gone and one is free.
    Spare,
}

/// One thing that goes wrong with one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberFault {
    /// The step of the run, or the first after it in which it can be.
    pub at: u64,
    pub leaf: usize,
    pub kind: MemberFaultKind,
}

/// As a command line has it: `lost:2@31`, `found-lost:2@31`, `bad:2/7@31`, `write-error:2@31`, `new:2@40`,
/// `spare:2@40`, `check:0@31`, `repair:0@31`, `resync:0@31`.
impl fmt::Display for MemberFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemberFault { at, leaf, kind } = self;
        match kind {
            MemberFaultKind::Death { told: true } => write!(f, "lost:{leaf}@{at}"),
            MemberFaultKind::Death { told: false } => write!(f, "found-lost:{leaf}@{at}"),
            MemberFaultKind::BadSector { lba } => write!(f, "bad:{leaf}/{lba}@{at}"),
            MemberFaultKind::WriteError => write!(f, "write-error:{leaf}@{at}"),
            MemberFaultKind::Replacement => write!(f, "new:{leaf}@{at}"),
            MemberFaultKind::Spare => write!(f, "spare:{leaf}@{at}"),
            MemberFaultKind::Scrub(kind) => write!(f, "{}:{leaf}@{at}", word(*kind)),
        }
    }
}

fn word(kind: ScrubKind) -> &'static str {
    match kind {
        ScrubKind::Check => "check",
        ScrubKind::Repair => "repair",
        ScrubKind::Resync => "resync",
    }
}

impl FromStr for MemberFault {
    type Err = String;

    fn from_str(text: &str) -> Result<MemberFault, String> {
        let wrong = || {
            format!("{text}: accepted are lost:LEAF@STEP, found-lost:, bad:LEAF/SECTOR@, write-error:, new:, spare:, check:, repair:, resync:")
        };
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (place, at) = rest.split_once('@').ok_or_else(wrong)?;
        let (leaf, lba) = place.split_once('/').map_or((place, None), |(leaf, lba)| (leaf, Some(lba)));
        let kind = match (kind, lba) {
            ("lost", None) => MemberFaultKind::Death { told: true },
            ("found-lost", None) => MemberFaultKind::Death { told: false },
            ("bad", Some(lba)) => MemberFaultKind::BadSector { lba: number(lba)? },
            ("write-error", None) => MemberFaultKind::WriteError,
            ("new", None) => MemberFaultKind::Replacement,
            ("spare", None) => MemberFaultKind::Spare,
            (kind, None) => {
                MemberFaultKind::Scrub(SCRUBS.into_iter().find(|one| word(*one) == kind).ok_or_else(wrong)?)
            }
            _ => return Err(wrong()),
        };
        Ok(MemberFault { at: number(at)?, leaf: leaf.parse().map_err(|_| wrong())?, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_reads_as_it_is_written() {
        for text in
            ["lost:2@31", "found-lost:2@31", "bad:2/7@31", "write-error:0@1", "new:12@40", "spare:2@9", "repair:0@7"]
        {
            assert_eq!(text.parse::<MemberFault>().map(|fault| fault.to_string()), Ok(text.to_owned()));
        }
        for text in ["lost:2", "bad:2@31", "lost:2/7@31", "gone:2@31", "new:x@1", ""] {
            assert!(text.parse::<MemberFault>().is_err(), "{text}");
        }
    }
}
