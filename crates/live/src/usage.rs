//! What a run cost: the processor's time and its switches, and what the kernel says moved on the devices below.
//!
//! Purpose: user and system time a request, and sectors moved by the kernel's own counters beside the bytes asked for: a
//! cache that answers, or a file system that writes more than it was given, shows here.
//!
//! Invariants:
//! - Times of workers are taken by themselves, when they see their window open and close. Work the kernel does elsewhere on
//!   their behalf (its own threads, interrupts on idle processors) is in none of these; it is in the machine's
//!   (`machine`).
//! - Counters of devices are read when the window has opened and when it has closed, some ten microseconds after; others
//!   that use the device meanwhile are in them too.
//! - A file system of several devices (btrfs) has moved what all of them moved; what was asked of a target on it is
//!   divided among them, so that the sums are those of the target.
//!
//! Reference: getrusage(2); Documentation/block/stat.rst and Documentation/scheduler/sched-stats.rst of the kernel.

use crate::machine::{MachineUsage, MachineWatch};
use crate::result::MemberCounts;
use crate::safety::in_use::mounted_btrfs;
use crate::target::TargetFacts;
use raidlab_types::number::u64_from;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
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
    /// Of the whole machine.
    pub machine: MachineUsage,
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
    /// While it could have run and another had the processor; 0 where the kernel does not tell.
    pub waited_ns: u64,
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
    /// Bytes of the operations on its targets that completed; of a target on several devices, an equal part.
    pub asked_read_bytes: u64,
    /// See above.
    pub asked_write_bytes: u64,
}

impl Usage {
    /// What the calling thread has used so far.
    pub(crate) fn of_this_thread() -> Usage {
        // SAFETY: all zeroes is a valid `rusage`, and the call writes at most that.
        let used = unsafe {
            let mut used: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &mut used);
            used
        };
        let ns = |time: libc::timeval| u64_from(time.tv_sec) * 1_000_000_000 + u64_from(time.tv_usec) * 1000;
        Usage {
            user_ns: ns(used.ru_utime),
            system_ns: ns(used.ru_stime),
            voluntary_switches: u64_from(used.ru_nvcsw),
            involuntary_switches: u64_from(used.ru_nivcsw),
            waited_ns: waited_ns().unwrap_or(0),
        }
    }

    /// What was used from `earlier` to here.
    pub(crate) fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
            waited_ns: self.waited_ns.saturating_sub(earlier.waited_ns),
        }
    }

    pub(crate) fn add(&mut self, other: &Usage) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.waited_ns += other.waited_ns;
    }
}

/// How long the calling thread has waited for a processor so far.
fn waited_ns() -> Option<u64> {
    fs::read_to_string("/proc/thread-self/schedstat").ok()?.split_whitespace().nth(1)?.parse().ok()
}

/// Bytes read and written so far.
type BytesMoved = (u64, u64);

/// A device below targets.
#[derive(Debug, Default)]
struct DeviceBelow {
    name: String,
    /// Number of each target on it, and on how many devices that target is.
    targets: Vec<(usize, u64)>,
}

/// The devices below some targets, and what their counters and those of the machine said.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    /// By numbers.
    below: BTreeMap<String, DeviceBelow>,
    opened: BTreeMap<String, BytesMoved>,
    closed: BTreeMap<String, BytesMoved>,
    machine: MachineWatch,
}

impl Devices {
    pub(crate) fn below<'a>(targets: impl Iterator<Item = (usize, &'a TargetFacts)>) -> Devices {
        let mut devices = Devices::default();
        for (i, target) in targets {
            let Some(device) = &target.device else { continue };
            let in_btrfs = target.filesystem.as_ref().is_some_and(|f| f.kind == "btrfs");
            let mut all = if in_btrfs { of_btrfs(&device.numbers) } else { Vec::new() };
            if all.is_empty() {
                all.push((device.numbers.clone(), device.name.clone()));
            }
            let count = all.len() as u64;
            for (numbers, name) in all {
                let entry = devices.below.entry(numbers).or_insert_with(|| DeviceBelow { name, targets: Vec::new() });
                entry.targets.push((i, count));
            }
        }
        devices
    }

    /// The window has opened.
    pub(crate) fn window_opened(&mut self) {
        self.opened = self.read();
        self.machine.window_opened();
    }

    /// The window has closed.
    pub(crate) fn window_closed(&mut self) {
        self.closed = self.read();
        self.machine.window_closed();
    }

    /// What the whole machine used meanwhile.
    pub(crate) fn machine(&self) -> MachineUsage {
        self.machine.usage()
    }

    fn read(&self) -> BTreeMap<String, BytesMoved> {
        let stat = |numbers: &String| Some((numbers.clone(), counted(&Path::new("/sys/dev/block").join(numbers))?));
        self.below.keys().filter_map(stat).collect()
    }

    /// What moved between the two, beside what was asked of the targets. A device whose counters could not be read twice
    /// is left out.
    pub(crate) fn traffic(&self, members: &[MemberCounts]) -> Vec<DeviceTraffic> {
        let one = |(numbers, below): (&String, &DeviceBelow)| {
            let (before, after) = (self.opened.get(numbers)?, self.closed.get(numbers)?);
            let asked = |of: fn(&MemberCounts) -> u64| below.targets.iter().map(|&(i, n)| of(&members[i]) / n).sum();
            Some(DeviceTraffic {
                name: below.name.clone(),
                numbers: numbers.clone(),
                targets: below.targets.iter().map(|&(i, _)| i).collect(),
                read_bytes: after.0.saturating_sub(before.0),
                write_bytes: after.1.saturating_sub(before.1),
                asked_read_bytes: asked(|m| m.read_bytes),
                asked_write_bytes: asked(|m| m.write_bytes),
            })
        };
        self.below.iter().filter_map(one).collect()
    }
}

/// The account of a driver that is one thread.
#[derive(Debug, Default)]
pub(crate) struct OneThread {
    devices: Devices,
    opened: Option<Usage>,
    used: Usage,
}

impl OneThread {
    pub(crate) fn new<'a>(targets: impl Iterator<Item = (usize, &'a TargetFacts)>) -> OneThread {
        OneThread { devices: Devices::below(targets), ..OneThread::default() }
    }

    /// The window has opened. To be told by the thread itself.
    #[cold]
    pub(crate) fn window_opened(&mut self) {
        self.devices.window_opened();
        self.opened = Some(Usage::of_this_thread());
    }

    /// The window has closed, if it was open.
    #[cold]
    pub(crate) fn window_closed(&mut self) {
        if let Some(opened) = self.opened.take() {
            self.used = Usage::of_this_thread().since(&opened);
            self.devices.window_closed();
        }
    }

    /// What was used while it was open.
    pub(crate) fn accounting(&self, members: &[MemberCounts]) -> Accounting {
        Accounting {
            total: self.used,
            workers: vec![self.used],
            devices: self.devices.traffic(members),
            machine: self.devices.machine(),
        }
    }
}

/// Numbers and names of all devices of the btrfs that is mounted from one of them.
fn of_btrfs(numbers: &str) -> Vec<(String, String)> {
    let systems = mounted_btrfs().map(|(_, devices)| devices.into_iter().map(|(n, name)| (n.to_string(), name)));
    let mut systems = systems.map(Iterator::collect::<Vec<_>>);
    systems.find(|devices| devices.iter().any(|(own, _)| own == numbers)).unwrap_or_default()
}

/// Bytes read and written so far by the device with this directory in sysfs; none where the kernel was told not to count,
/// for then its figures stand still while data move.
fn counted(node: &Path) -> Option<BytesMoved> {
    let disk = if node.join("partition").exists() { node.join("..") } else { node.to_path_buf() };
    let off = fs::read_to_string(disk.join("queue/iostats")).is_ok_and(|text| text.trim() == "0");
    if off {
        return None;
    }
    moved(&fs::read_to_string(node.join("stat")).ok()?)
}

/// Bytes read and written, from the text of a device's `stat`.
fn moved(text: &str) -> Option<BytesMoved> {
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
    fn a_device_that_was_told_not_to_count_has_no_counters() {
        let node = std::env::temp_dir().join(format!("raidlab-usage-{}", std::process::id()));
        fs::create_dir_all(node.join("queue")).unwrap();
        fs::write(node.join("stat"), "1 0 8 0 1 0 16 0").unwrap();
        assert_eq!(counted(&node), Some((8 * 512, 16 * 512)));
        fs::write(node.join("queue/iostats"), "0\n").unwrap();
        assert_eq!(counted(&node), None);
        fs::write(node.join("queue/iostats"), "1\n").unwrap();
        assert_eq!(counted(&node), Some((8 * 512, 16 * 512)));
        fs::remove_dir_all(&node).unwrap();
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
