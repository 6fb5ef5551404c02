//! Who uses a block device: file systems, swap, other drivers.
//!
//! The kernel's own exclusive claim (`O_EXCL`) has the last word; what is here names the user in the message, and finds
//! uses that claim nothing (a loop device's backing device).

use super::{mounts, numbers::DevNumbers};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How the device, one of its partitions or its disk is in use, as the end of the sentence "X is ...".
pub(super) fn user_of(numbers: DevNumbers) -> Option<String> {
    let related = numbers.related();
    let uses: [fn(&[DevNumbers]) -> Option<String>; 5] = [mounted, in_btrfs, swapped_on, held, behind_loop];
    uses.iter().find_map(|user| user(&related))
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
    for system in fs::read_dir("/sys/fs/btrfs").ok()?.flatten() {
        for device in fs::read_dir(system.path().join("devices")).into_iter().flatten().flatten() {
            let numbers = fs::read_to_string(device.path().join("dev")).ok().and_then(|text| DevNumbers::parse(&text));
            if numbers.is_some_and(|n| related.contains(&n)) {
                return Some(format!("part of the mounted btrfs {}", system.file_name().to_string_lossy()));
            }
        }
    }
    None
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
    for entry in fs::read_dir("/sys/block").ok()?.flatten() {
        let Ok(backing) = fs::read_to_string(entry.path().join("loop/backing_file")) else { continue };
        if numbers_of_path(backing.trim()).is_some_and(|n| related.contains(&n)) {
            return Some(format!("behind the loop device {}", entry.file_name().to_string_lossy()));
        }
    }
    None
}
