//! What a target is: the facts that go with every result.
//!
//! Purpose: path, size, file system and its options, direct or buffered, and the block device beneath with the settings
//! that decide its speed; enough to see that two members share one disk.
//!
//! Reference: sysfs-block (Documentation/ABI/stable/sysfs-block), proc(5) for mountinfo.

use super::direct::Access;
use crate::safety::mounts::{self, Mount};
use crate::safety::numbers::DevNumbers;
use serde::Serialize;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a target is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TargetFacts {
    /// One of [`super::TARGETS`].
    pub kind: &'static str,
    /// Where it is; none for memory.
    pub path: Option<String>,
    /// Bytes the array may use.
    pub size_bytes: u64,
    /// Least sector it allows.
    pub sector_bytes: u32,
    /// `direct`, `buffered`, `memory`, `null` or `emulated`.
    pub io: &'static str,
    /// The file system it lies in.
    pub filesystem: Option<FilesystemFacts>,
    /// `major:minor` of the file system (or of the block device itself).
    pub st_dev: Option<String>,
    /// Number of the file in its file system.
    pub inode: Option<u64>,
    /// The block device beneath, where there is one.
    pub device: Option<DeviceFacts>,
    /// Whether raidlab made it.
    pub made_by_raidlab: bool,
    /// Bytes that are really allocated to it, for a file.
    pub allocated_bytes: Option<u64>,
    /// What was found on a block device that the user named for overwriting, or that nothing was found.
    pub overwritten_signature: Option<String>,
    /// The model of an emulated member.
    pub emulated: Option<EmulatedFacts>,
}

/// What stands behind an emulated member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EmulatedFacts {
    /// The model's own name, if its file gives one.
    pub device: Option<String>,
    /// `none`, `memory` or `file`.
    pub content: &'static str,
}

/// The file system a file lies in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilesystemFacts {
    /// Type, such as `ext4`.
    pub kind: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// What is mounted there.
    pub source: String,
    /// Mount options.
    pub options: String,
}

/// A block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceFacts {
    /// Kernel name, such as `nvme0n1p2`.
    pub name: String,
    /// `major:minor`.
    pub numbers: String,
    /// Kernel name of the whole disk.
    pub disk: String,
    /// Whether the kernel takes it for a rotating one.
    pub rotational: Option<bool>,
    /// I/O scheduler in use.
    pub scheduler: Option<String>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Vendor's model name.
    pub model: Option<String>,
    /// Logical block in bytes.
    pub logical_block_bytes: Option<u32>,
    /// Longest transfer the kernel passes on in one piece.
    pub max_transfer_bytes: Option<u64>,
    /// File or device behind a loop device.
    pub backing: Option<String>,
}

impl TargetFacts {
    pub(super) fn of_memory(size_bytes: u64, sector_bytes: u32) -> TargetFacts {
        TargetFacts {
            kind: "memory",
            size_bytes,
            sector_bytes,
            io: "memory",
            made_by_raidlab: true,
            ..TargetFacts::default()
        }
    }

    pub(super) fn of_file(path: &Path, file: &File, size_bytes: u64, access: Access) -> io::Result<TargetFacts> {
        let status = file.metadata()?;
        let numbers = DevNumbers::of(status.dev());
        let (filesystem, device) = beneath(path, Some(numbers));
        Ok(TargetFacts {
            kind: "file",
            path: Some(absolute(path).display().to_string()),
            io: name_of(access),
            filesystem,
            st_dev: Some(numbers.to_string()),
            inode: Some(status.ino()),
            device,
            allocated_bytes: Some(status.blocks() * 512),
            ..TargetFacts::of_memory(size_bytes, 0)
        })
    }

    pub(super) fn of_block(path: &Path, numbers: DevNumbers, size_bytes: u64, access: Access) -> TargetFacts {
        TargetFacts {
            kind: "block",
            path: Some(path.display().to_string()),
            io: name_of(access),
            st_dev: Some(numbers.to_string()),
            device: DeviceFacts::of(numbers),
            made_by_raidlab: false,
            ..TargetFacts::of_memory(size_bytes, 0)
        }
    }
}

pub(crate) fn name_of(access: Access) -> &'static str {
    match access {
        Access::Direct { .. } => "direct",
        Access::Buffered => "buffered",
    }
}

pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The file system that holds a path, and the device beneath it, where there are such. File systems with several devices
/// (btrfs) have numbers of no device: then what is mounted tells.
pub(crate) fn beneath(path: &Path, numbers: Option<DevNumbers>) -> (Option<FilesystemFacts>, Option<DeviceFacts>) {
    let mount = mounts::containing(path);
    let of_source = || Some(DevNumbers::of(std::fs::metadata(&mount.as_ref()?.source).ok()?.rdev()));
    let is_there = |numbers: &DevNumbers| numbers.sysfs().exists();
    let device = numbers.filter(is_there).or_else(|| of_source().filter(is_there)).and_then(DeviceFacts::of);
    (mount.map(FilesystemFacts::from), device)
}

impl From<Mount> for FilesystemFacts {
    fn from(mount: Mount) -> Self {
        FilesystemFacts {
            kind: mount.kind,
            mount_point: mount.point.display().to_string(),
            source: mount.source,
            options: mount.options,
        }
    }
}

impl DeviceFacts {
    /// Facts of the device with these numbers, if sysfs knows it.
    pub(crate) fn of(numbers: DevNumbers) -> Option<DeviceFacts> {
        let here = std::fs::canonicalize(numbers.sysfs()).ok()?;
        let name = here.file_name()?.to_str()?.to_string();
        // A partition is a directory within its disk's.
        let whole = if here.join("partition").exists() { here.parent()?.to_path_buf() } else { here.clone() };
        let read = |path: PathBuf| std::fs::read_to_string(path).ok().map(|text| text.trim().to_string());
        let queue = |file: &str| read(whole.join("queue").join(file));
        let bracketed = |text: String| match (text.find('['), text.find(']')) {
            (Some(a), Some(b)) if a < b => text[a + 1..b].to_string(),
            _ => text,
        };
        Some(DeviceFacts {
            name,
            numbers: numbers.to_string(),
            disk: whole.file_name()?.to_str()?.to_string(),
            rotational: queue("rotational").map(|text| text == "1"),
            scheduler: queue("scheduler").map(bracketed),
            write_cache: queue("write_cache"),
            model: read(whole.join("device/model")),
            logical_block_bytes: queue("logical_block_size").and_then(|text| text.parse().ok()),
            max_transfer_bytes: queue("max_sectors_kb").and_then(|text| text.parse::<u64>().ok()).map(|kib| kib * 1024),
            backing: read(whole.join("loop/backing_file")),
        })
    }
}
