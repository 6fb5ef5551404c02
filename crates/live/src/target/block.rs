//! `block`: a whole block device, read by default, written only as the safety rules allow.

use super::direct::{self, Access};
use super::{Intent, Store, Target, TargetFacts};
use crate::error::{plain, LiveError};
use crate::safety::{self, numbers::DevNumbers};
use raidlab_types::number::u32_from;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

pub(super) fn open(path: &Path, named: bool, key: &str, intent: Intent<'_>) -> Result<Target, LiveError> {
    let path_key = format!("{key}.path");
    let found = std::fs::metadata(path)
        .map_err(|e| LiveError::bad(path_key.clone(), format!("{}: {}", path.display(), plain(&e))))?;
    if !found.file_type().is_block_device() {
        let message = format!("{} is not a block device; a regular file's kind is \"file\"", path.display());
        return Err(LiveError::bad(path_key, message));
    }
    let numbers = DevNumbers::of(found.rdev());
    let named = named || intent.destroy.iter().any(|name| numbers.is_named_by(name));
    let (file, signature) = if intent.writes {
        let allowed = safety::may_overwrite(path, numbers, named, &path_key)?;
        (allowed.device, Some(allowed.signature))
    } else {
        (open_to_read(path, &path_key)?, None)
    };
    let fail = |doing: &str, e: &io::Error| LiveError::io(path_key.clone(), path.display().to_string(), doing, e);
    let size_bytes = device_bytes(&file).map_err(|e| fail("reading its size", &e))?;
    if size_bytes == 0 {
        return Err(LiveError::bad(path_key, format!("{} has a size of 0 (no medium?)", path.display())));
    }
    let block = logical_block(&file).map_err(|e| fail("reading its logical block size", &e))?;
    let access = direct::enable(&file, intent.buffered);
    let mut facts = TargetFacts::of_block(path, numbers, size_bytes, access);
    facts.sector_bytes = match access {
        Access::Direct { align_bytes } => align_bytes.max(block),
        Access::Buffered => block,
    };
    facts.overwritten_signature = signature;
    let least_sector_bytes = facts.sector_bytes;
    Ok(Target {
        key: key.to_string(),
        facts,
        least_sector_bytes,
        store: Store::Fd(file),
        needs_fill: false,
        stamped: None,
    })
}

fn open_to_read(path: &Path, key: &str) -> Result<File, LiveError> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_CLOEXEC).open(path);
    opened.map_err(|e| LiveError::io(key, path.display().to_string(), "opening to read", &e))
}

/// `BLKGETSIZE64`: not in every libc crate, fixed by the kernel's ABI: _IOR(0x12, 114, size_t).
const BLKGETSIZE64: u64 = 0x8000_1272 | ((size_of::<usize>() as u64) << 16);
/// `BLKSSZGET`: _IO(0x12, 104).
const BLKSSZGET: u64 = 0x1268;

fn device_bytes(file: &File) -> io::Result<u64> {
    let mut bytes = 0u64;
    // SAFETY: the call writes one u64.
    match unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64 as libc::Ioctl, &mut bytes) } {
        0 => Ok(bytes),
        _ => Err(io::Error::last_os_error()),
    }
}

fn logical_block(file: &File) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes one int.
    match unsafe { libc::ioctl(file.as_raw_fd(), BLKSSZGET as libc::Ioctl, &mut bytes) } {
        0 => Ok(u32_from(bytes)),
        _ => Err(io::Error::last_os_error()),
    }
}
