//! What the whole machine did while a window was open: the time of its processors, that of the kernel's own threads, and
//! the energy that its counters say was used.
//!
//! Purpose: md, the device mapper and file systems work in threads of the kernel's (`md0_raid5`, `btrfs-endio`, `kworker`),
//! whose time is in nobody's account but theirs. An array that seems to cost nothing costs that.
//!
//! Invariants:
//! - What the kernel does not tell is `None`, never 0. A thread that ended meanwhile took its time with it: the times of
//!   the kernel's threads are a lower bound. One that began meanwhile is counted whole.
//! - Reading takes milliseconds, so it is done beside the thread that measures: begun when the window opens, and done after
//!   it has closed. Other programs are in the machine's time and energy, too.
//!
//! Reference: proc_stat(5), proc_pid_stat(5); Documentation/scheduler/sched-stats.rst and
//! Documentation/power/powercap/powercap.rst of the kernel.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread::JoinHandle;

/// Of a task's flags: it is one of the kernel's.
const KERNEL_THREAD: u64 = 0x0020_0000;
const NS_PER_S: u64 = 1_000_000_000;
/// What a zone of the whole platform is called: it holds the processors, which have zones of their own.
const PLATFORM: &str = "psys";

/// What the machine used while a window was open.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct MachineUsage {
    /// Time that all processors worked, whoever for.
    pub busy_ns: Option<u64>,
    /// Time of the kernel's own threads, by what they are called, the busiest first; those that worked at all.
    pub kernel_threads: Option<Vec<KernelThread>>,
    /// Energy of the processors, by their own counters (RAPL), in microjoules.
    pub energy_uj: Option<u64>,
}

/// Threads of the kernel's that bear one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelThread {
    /// Such as `md0_raid5`; of several on processors of their own what they have in common, such as `kworker`.
    pub name: String,
    /// Their time on a processor.
    pub cpu_ns: u64,
}

/// Counters since boot, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct MachineCounters {
    busy_ns: Option<u64>,
    /// By number: name and time on a processor.
    threads: BTreeMap<u32, (String, u64)>,
    /// By zone: energy, and where its counter begins again.
    energy_uj: BTreeMap<String, (u64, u64)>,
}

/// Watches the machine over a window.
#[derive(Debug, Default)]
pub(crate) struct MachineWatch {
    opening: Option<JoinHandle<MachineCounters>>,
    usage: MachineUsage,
}

impl MachineWatch {
    /// The window has opened.
    pub(crate) fn window_opened(&mut self) {
        let name = "raidlab-machine".to_owned();
        // Where no thread can be had, nothing is known.
        self.opening = std::thread::Builder::new().name(name).spawn(|| MachineCounters::of(Path::new("/"))).ok();
    }

    /// The window has closed.
    pub(crate) fn window_closed(&mut self) {
        let before = self.opening.take().and_then(|reading| reading.join().ok());
        self.usage = before.map(|before| MachineCounters::of(Path::new("/")).since(&before)).unwrap_or_default();
    }

    /// What was used while it was open.
    pub(crate) fn usage(&self) -> MachineUsage {
        self.usage.clone()
    }
}

impl MachineCounters {
    /// The counters below a root, which is `/` but for tests.
    fn of(root: &Path) -> MachineCounters {
        MachineCounters { busy_ns: busy_ns(root), threads: kernel_threads(root), energy_uj: energy_uj(root) }
    }

    /// What was used from `before` to here.
    fn since(&self, before: &MachineCounters) -> MachineUsage {
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (number, (name, ns)) in &self.threads {
            let earlier = before.threads.get(number).filter(|(same, _)| same == name).map_or(0, |(_, ns)| *ns);
            *by_name.entry(name).or_default() += ns.saturating_sub(earlier);
        }
        let worked = by_name.into_iter().filter(|(_, ns)| *ns > 0);
        let mut threads: Vec<_> = worked.map(|(name, cpu_ns)| KernelThread { name: name.to_owned(), cpu_ns }).collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.cpu_ns));
        MachineUsage {
            busy_ns: self.busy_ns.zip(before.busy_ns).map(|(now, then)| now.saturating_sub(then)),
            kernel_threads: (!before.threads.is_empty() && !self.threads.is_empty()).then_some(threads),
            energy_uj: self.energy_since(before),
        }
    }

    /// Energy of all zones that could be read at both moments; none where there is none, or one is missing.
    fn energy_since(&self, before: &MachineCounters) -> Option<u64> {
        let one = |(zone, (now, range)): (&String, &(u64, u64))| {
            let (then, _) = before.energy_uj.get(zone)?;
            // A counter that has reached its range begins again.
            Some(if now < then { now + range.saturating_sub(*then) } else { now - then })
        };
        let used: Option<Vec<u64>> = self.energy_uj.iter().map(one).collect();
        used.filter(|zones| !zones.is_empty()).map(|zones| zones.iter().sum())
    }
}

/// Time that all processors worked since boot: all but what they idled, waited for I/O, or were kept from by their host.
fn busy_ns(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/stat")).ok()?;
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().skip(1).map_while(|word| word.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq; what guests used is in user and nice.
    let worked: u64 = [0, 1, 2, 5, 6].into_iter().map(|i| ticks.get(i).copied()).sum::<Option<u64>>()?;
    Some(worked * ns_per_tick()?)
}

fn ns_per_tick() -> Option<u64> {
    // SAFETY: the call takes a number and touches no memory of ours.
    let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks_per_s).ok().filter(|ticks| *ticks > 0).map(|ticks| NS_PER_S / ticks)
}

fn kernel_threads(root: &Path) -> BTreeMap<u32, (String, u64)> {
    let entries = fs::read_dir(root.join("proc")).into_iter().flatten().flatten();
    let one = |entry: fs::DirEntry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((number, kernel_thread(&entry.path())?))
    };
    entries.filter_map(one).collect()
}

/// The name and the time of a task, if it is one of the kernel's.
fn kernel_thread(task: &Path) -> Option<(String, u64)> {
    let text = fs::read_to_string(task.join("stat")).ok()?;
    // The name in brackets may hold anything, brackets too.
    let (head, tail) = text.rsplit_once(')')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let flags: u64 = fields.get(6)?.parse().ok()?;
    if flags & KERNEL_THREAD == 0 {
        return None;
    }
    let name = head.split_once('(')?.1;
    // What follows a slash is the processor, or what a worker does at the moment.
    let name = name.split('/').next().unwrap_or(name).to_owned();
    let precise = fs::read_to_string(task.join("schedstat")).ok();
    let precise = precise.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    let by_ticks =
        || Some((fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?) * ns_per_tick()?);
    Some((name, precise.or_else(by_ticks)?))
}

/// Energy of each package of processors; their parts are in them, and not counted twice.
fn energy_uj(root: &Path) -> BTreeMap<String, (u64, u64)> {
    let entries = fs::read_dir(root.join("sys/class/powercap")).into_iter().flatten().flatten();
    let one = |entry: fs::DirEntry| {
        let zone = entry.file_name().into_string().ok()?;
        let is_package = zone.starts_with("intel-rapl:") && zone.matches(':').count() == 1;
        let read = |file: &str| fs::read_to_string(entry.path().join(file)).ok();
        if !is_package || read("name")?.trim() == PLATFORM {
            return None;
        }
        let used = read("energy_uj")?.trim().parse().ok()?;
        let range = read("max_energy_range_uj").and_then(|text| text.trim().parse().ok()).unwrap_or(used);
        Some((zone, (used, range)))
    };
    entries.filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn task(root: &Path, number: u32, name: &str, flags: u64, ticks: u64, precise_ns: Option<u64>) {
        let stat = format!("{number} ({name}) S 2 0 0 0 -1 {flags} 0 0 0 0 {ticks} 0 0 0 20 0 1 0\n");
        write(root, &format!("proc/{number}/stat"), &stat);
        if let Some(ns) = precise_ns {
            write(root, &format!("proc/{number}/schedstat"), &format!("{ns} 0 1\n"));
        }
    }

    fn zone(root: &Path, zone: &str, name: &str, energy_uj: u64) {
        write(root, &format!("sys/class/powercap/{zone}/name"), name);
        write(root, &format!("sys/class/powercap/{zone}/energy_uj"), &energy_uj.to_string());
        write(root, &format!("sys/class/powercap/{zone}/max_energy_range_uj"), "1000");
    }

    fn root(name: &str) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("raidlab-machine-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        root
    }

    #[test]
    fn what_nobody_tells_is_not_nothing() {
        let root = root("empty");
        let nothing = MachineCounters::of(&root);
        assert_eq!(nothing.since(&nothing), MachineUsage::default());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn threads_of_the_kernel_are_told_by_name_and_programs_are_not() {
        let root = root("threads");
        write(&root, "proc/stat", "cpu  10 0 5 100 7 1 2 9 0 0\n");
        task(&root, 20, "md0_raid5", KERNEL_THREAD, 1, Some(5_000_000));
        task(&root, 21, "kworker/0:1-events", KERNEL_THREAD, 1, Some(1_000));
        task(&root, 22, "kworker/u4:0-btrfs", KERNEL_THREAD, 1, Some(2_000));
        task(&root, 23, "kswapd0", KERNEL_THREAD, 3, None);
        task(&root, 24, "a (strange) program", 0, 900, Some(9_000_000_000));
        let before = MachineCounters::of(&root);
        write(&root, "proc/stat", "cpu  20 0 9 300 7 2 3 9 0 0\n");
        task(&root, 20, "md0_raid5", KERNEL_THREAD, 2, Some(9_000_000));
        task(&root, 21, "kworker/0:1-md", KERNEL_THREAD, 2, Some(4_000));
        task(&root, 22, "kworker/u4:0", KERNEL_THREAD, 2, Some(2_500));
        task(&root, 23, "kswapd0", KERNEL_THREAD, 5, None);
        task(&root, 25, "loop0", KERNEL_THREAD, 1, Some(700));
        let used = MachineCounters::of(&root).since(&before);
        assert_eq!(used.busy_ns, Some(16 * ns_per_tick().unwrap()));
        let named: Vec<_> = used.kernel_threads.unwrap().into_iter().map(|t| (t.name, t.cpu_ns)).collect();
        let expected =
            [("kswapd0", 2 * ns_per_tick().unwrap()), ("md0_raid5", 4_000_000), ("kworker", 3_500), ("loop0", 700)];
        assert_eq!(named, expected.map(|(name, ns)| (name.to_owned(), ns)));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn energy_is_that_of_the_packages_and_its_counter_begins_again() {
        let root = root("energy");
        zone(&root, "intel-rapl:0", "package-0", 900);
        zone(&root, "intel-rapl:1", "package-1", 10);
        zone(&root, "intel-rapl:0:0", "core", 800);
        zone(&root, "intel-rapl:2", "psys", 5000);
        let before = MachineCounters::of(&root);
        zone(&root, "intel-rapl:0", "package-0", 50);
        zone(&root, "intel-rapl:1", "package-1", 35);
        assert_eq!(MachineCounters::of(&root).since(&before).energy_uj, Some(150 + 25));
        // A package that cannot be read any more leaves the sum unknown.
        fs::remove_file(root.join("sys/class/powercap/intel-rapl:0/energy_uj")).unwrap();
        let mut fewer = before.clone();
        fewer.energy_uj.remove("intel-rapl:1");
        assert_eq!(MachineCounters::of(&root).since(&fewer).energy_uj, None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn this_machine_works_while_it_is_watched() {
        let mut watch = MachineWatch::default();
        assert_eq!(watch.usage(), MachineUsage::default());
        watch.window_opened();
        watch.window_closed();
        let (has_stat, used) = (Path::new("/proc/stat").exists(), watch.usage());
        assert_eq!(used.busy_ns.is_some(), has_stat);
    }
}
