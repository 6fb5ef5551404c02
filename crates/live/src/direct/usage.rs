//! What a run cost: the processor's time and its switches, and what the kernel says moved on the devices below.
//!
//! Purpose: user and system time a request, and sectors moved by the kernel's own counters beside the bytes asked for: a
//! cache that answers, or a file system that writes more than it was given, shows here.
//!
//! Invariants:
//! - Times of workers are taken by themselves, when they see their window open and close. Work the kernel does elsewhere on
//!   their behalf (its own threads, interrupts on idle processors) is in nobody's account.
//! - Counters of devices are read when the window has opened and when it has closed, some ten microseconds after; others
//!   that use the device meanwhile are in them too.
//!
//! Reference: getrusage(2); Documentation/block/stat.rst of the kernel.

use crate::result::MemberCounts;
use crate::target::Target;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The sector of the kernel's counters, whatever the device's is.
const COUNTED_SECTOR_BYTES: u64 = 512;

/// What a run cost while its window was open.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Accounting {
    /// Of all workers together.
    #[serde(flatten)]
    pub total: Usage,
    /// Of each worker.
    pub workers: Vec<Usage>,
    /// One a block device below the targets.
    pub devices: Vec<DeviceTraffic>,
}

/// The processor's work for a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Usage {
    /// In the program itself.
    pub user_ns: u64,
    /// In the kernel, on its behalf.
    pub system_ns: u64,
    /// Times it gave the processor up, mostly to wait.
    pub voluntary_switches: u64,
    /// Times it was taken from it.
    pub involuntary_switches: u64,
}

/// What moved on a device, and what was asked of the targets on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceTraffic {
    /// Kernel name.
    pub name: String,
    /// `major:minor`.
    pub numbers: String,
    /// Numbers of the targets on it.
    pub targets: Vec<usize>,
    /// Bytes read from it, and written to it, according to the kernel.
    pub read_bytes: u64,
    /// See above.
    pub write_bytes: u64,
    /// Bytes of the requests that completed.
    pub asked_read_bytes: u64,
    /// See above.
    pub asked_write_bytes: u64,
}

impl Usage {
    /// What the calling thread has used so far.
    pub(super) fn of_this_thread() -> Usage {
        // SAFETY: all zeroes is a valid `rusage`, and the call writes at most that.
        let used = unsafe {
            let mut used: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &mut used);
            used
        };
        let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        Usage {
            user_ns: ns(used.ru_utime),
            system_ns: ns(used.ru_stime),
            voluntary_switches: used.ru_nvcsw as u64,
            involuntary_switches: used.ru_nivcsw as u64,
        }
    }

    /// What was used from `earlier` to here.
    pub(super) fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
        }
    }

    pub(super) fn add(&mut self, other: &Usage) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }
}

/// Bytes read and written so far.
type Moved = (u64, u64);

/// The devices below some targets, and what their counters said.
#[derive(Debug, Default)]
pub(super) struct Devices {
    /// By numbers: name, targets.
    below: BTreeMap<String, (String, Vec<usize>)>,
    opened: BTreeMap<String, Moved>,
    closed: BTreeMap<String, Moved>,
}

impl Devices {
    pub fn below(targets: &[Target]) -> Devices {
        let mut devices = Devices::default();
        for (i, target) in targets.iter().enumerate() {
            let Some(device) = &target.facts.device else { continue };
            let entry =
                devices.below.entry(device.numbers.clone()).or_insert_with(|| (device.name.clone(), Vec::new()));
            entry.1.push(i);
        }
        devices
    }

    /// The window has opened.
    pub fn window_opened(&mut self) {
        self.opened = self.read();
    }

    /// The window has closed.
    pub fn window_closed(&mut self) {
        self.closed = self.read();
    }

    fn read(&self) -> BTreeMap<String, Moved> {
        let stat = |numbers: &String| {
            let text = std::fs::read_to_string(Path::new("/sys/dev/block").join(numbers).join("stat")).ok()?;
            Some((numbers.clone(), moved(&text)?))
        };
        self.below.keys().filter_map(stat).collect()
    }

    /// What moved between the two, beside what was asked of the targets. A device whose counters could not be read twice
    /// is left out.
    pub fn traffic(&self, members: &[MemberCounts]) -> Vec<DeviceTraffic> {
        let one = |(numbers, (name, targets)): (&String, &(String, Vec<usize>))| {
            let (before, after) = (self.opened.get(numbers)?, self.closed.get(numbers)?);
            let sum = |of: fn(&MemberCounts) -> u64| targets.iter().map(|&i| of(&members[i])).sum();
            Some(DeviceTraffic {
                name: name.clone(),
                numbers: numbers.clone(),
                targets: targets.clone(),
                read_bytes: after.0.saturating_sub(before.0),
                write_bytes: after.1.saturating_sub(before.1),
                asked_read_bytes: sum(|m| m.read_bytes),
                asked_write_bytes: sum(|m| m.write_bytes),
            })
        };
        self.below.iter().filter_map(one).collect()
    }
}

/// Bytes read and written, from the text of a device's `stat`.
fn moved(text: &str) -> Option<Moved> {
    let fields: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    Some((fields.get(2)? * COUNTED_SECTOR_BYTES, fields.get(6)? * COUNTED_SECTOR_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_the_third_and_the_seventh_field() {
        let text =
            "     100        1      800       20       30        2      240       10        0       30       30\n";
        assert_eq!(moved(text), Some((800 * 512, 240 * 512)));
        assert_eq!(moved("1 2 3"), None);
    }

    #[test]
    fn a_thread_that_works_is_seen_to_work() {
        let before = Usage::of_this_thread();
        let mut sum = 0u64;
        while Usage::of_this_thread().since(&before).user_ns < 5_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(Usage::of_this_thread().since(&before).user_ns >= 5_000_000);
    }
}
