//! How late the completions of emulated members were delivered, and whether the run is still worth something.
//!
//! Purpose: an emulated disk is as good as its host is prompt. A completion delivered late delays whatever follows from
//! it, so the distribution of lateness goes with every result, and a run in which it is more than a small share of the
//! disks' own time is INVALID.
//!
//! All times are the run's: at `speed` 5 a microsecond of the host is five.

use crate::result::{Check, Verdict};
use raidlab_types::number::f64_from;
use serde::Serialize;

/// Most that the 99th percentile of lateness may be of the mean service time.
const MOST_OF_SERVICE: f64 = 0.02;

/// Lateness of the completions in the measuring window.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Lateness {
    /// Completions.
    pub count: u64,
    /// Mean of their lateness: delivered minus due.
    pub mean_ns: u64,
    /// Its median.
    pub p50_ns: u64,
    /// Its 99th percentile.
    pub p99_ns: u64,
    /// The latest.
    pub max_ns: u64,
    /// Mean time that the disks served an operation.
    pub mean_service_ns: u64,
    /// Share of all processors' time that the owner of this virtual machine took; none where the system does not say.
    pub steal_share: Option<f64>,
}

impl Lateness {
    /// The verdict on the run; none where nothing was delivered.
    pub fn check(&self) -> Option<Check> {
        if self.count == 0 {
            return None;
        }
        let share = f64_from(self.p99_ns) / f64_from(self.mean_service_ns.max(1));
        let is_late = share > MOST_OF_SERVICE;
        let verdict = if is_late { Verdict::Invalid } else { Verdict::Pass };
        let us = |ns: u64| f64_from(ns) / 1e3;
        let mut evidence = format!(
            "Completions of emulated members came {:.1} us late at the 99th percentile (median {:.1} us, at most {:.0} \
             us, {} completions), {:.1} % of their mean service time of {:.0} us; accepted: {:.0} %.",
            us(self.p99_ns),
            us(self.p50_ns),
            us(self.max_ns),
            self.count,
            100.0 * share,
            us(self.mean_service_ns),
            100.0 * MOST_OF_SERVICE,
        );
        if let Some(stolen) = self.steal_share.filter(|&stolen| stolen >= 0.001) {
            evidence += &format!(" {:.1} % of the processors' time was taken by the machine's owner.", 100.0 * stolen);
        }
        let mend = match is_late {
            true => "Lower the speed, keep other work off the machine, or give the run a processor of its own.",
            false => "",
        };
        Some(Check { name: "lateness", verdict, evidence, mend })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_percent_of_the_service_time_is_the_limit() {
        let prompt = Lateness { count: 100, p99_ns: 200_000, mean_service_ns: 10_000_000, ..Lateness::default() };
        let check = prompt.check().expect("there were completions");
        assert_eq!((check.name, check.verdict, check.mend), ("lateness", Verdict::Pass, ""));
        let late = Lateness { p99_ns: 200_001, steal_share: Some(0.03), ..prompt }.check().expect("the same");
        assert_eq!(late.verdict, Verdict::Invalid);
        assert!(late.evidence.contains("3.0 % of the processors' time"), "{}", late.evidence);
        assert!(!late.mend.is_empty());
        assert_eq!(Lateness::default().check(), None);
    }
}
