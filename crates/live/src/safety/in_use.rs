//! Who uses a block device: file systems, swap, other drivers.
//!
//! The kernel's own exclusive claim (`O_EXCL`) has the last word; what is here names the user in the message, and finds
//! uses that claim nothing (a loop device's backing device).

use super::{mounts, numbers::DevNumbers};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How the device, one of its partitions or its disk is in use, as the end of the sentence "X is ...".
pub(super) fn user_of(numbers: DevNumbers) -> Option<String> {
    let related = numbers.related();
    [mounted, in_btrfs, swapped_on, held, behind_loop].iter().find_map(|user| user(&related))
}

/// The loop device that a regular file is behind, if any: whoever made it takes the file for a disk.
pub(crate) fn loop_over(file: &Path) -> Option<String> {
    let file = fs::canonicalize(file).ok()?;
    loops().find(|(_, backing)| *backing == file).map(|(name, _)| name)
}

/// Every loop device with what is behind it.
fn loops() -> impl Iterator<Item = (String, PathBuf)> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let backing = fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
        Some((entry.file_name().to_string_lossy().into_owned(), PathBuf::from(backing.trim_end_matches('\n'))))
    })
}

fn numbers_of_path(path: impl AsRef<Path>) -> Option<DevNumbers> {
    fs::metadata(path).ok().map(|m| DevNumbers::of(m.rdev())).filter(|n| n.major != 0)
}

fn mounted(related: &[DevNumbers]) -> Option<String> {
    let is_ours = |m: &mounts::Mount| {
        related.contains(&m.numbers)
            || (m.source.starts_with('/') && numbers_of_path(&m.source).is_some_and(|n| related.contains(&n)))
    };
    let mount = mounts::all().into_iter().find(is_ours)?;
    Some(format!("mounted on {} ({})", mount.point.display(), mount.kind))
}

/// A btrfs of several devices is mounted by one of them; sysfs lists all.
fn in_btrfs(related: &[DevNumbers]) -> Option<String> {
    let has_ours = |devices: &[(DevNumbers, String)]| devices.iter().any(|(numbers, _)| related.contains(numbers));
    let (system, _) = mounted_btrfs().find(|(_, devices)| has_ours(devices))?;
    Some(format!("part of the mounted btrfs {system}"))
}

/// Every btrfs that is mounted, with the numbers and names of all its devices.
pub(crate) fn mounted_btrfs() -> impl Iterator<Item = (String, Vec<(DevNumbers, String)>)> {
    let entries = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    let name = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let device = move |entry: fs::DirEntry| {
        let numbers = DevNumbers::parse(&fs::read_to_string(entry.path().join("dev")).ok()?)?;
        Some((numbers, name(&entry)))
    };
    entries("/sys/fs/btrfs".into())
        .map(move |entry| (name(&entry), entries(entry.path().join("devices")).filter_map(device).collect()))
}

fn swapped_on(related: &[DevNumbers]) -> Option<String> {
    let text = fs::read_to_string("/proc/swaps").ok()?;
    let mut paths = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let is_ours = |path: &&str| numbers_of_path(path).is_some_and(|n| related.contains(&n));
    paths.find(is_ours).map(|_| "in use as swap".to_string())
}

fn held(related: &[DevNumbers]) -> Option<String> {
    related.iter().find_map(|numbers| {
        let holder = fs::read_dir(numbers.sysfs().join("holders")).ok()?.flatten().next()?;
        Some(format!("held by {}", holder.file_name().to_string_lossy()))
    })
}

fn behind_loop(related: &[DevNumbers]) -> Option<String> {
    let is_ours = |backing: &Path| numbers_of_path(backing).is_some_and(|n| related.contains(&n));
    loops().find(|(_, backing)| is_ours(backing)).map(|(name, _)| format!("behind the loop device {name}"))
}
