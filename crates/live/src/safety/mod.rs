//! Whether a block device may be overwritten.
//!
//! Purpose: the safety rules of the design, in one place. Reading is the default. A device that is mounted or held by
//! another driver is never written, whatever is said. Any other is written only when the user has named that very
//! device; a signature found on it is reported, and overridden only by that naming. Without it even a blank device is
//! refused.
//!
//! Invariants:
//! - `may_overwrite` is the only function that opens a block device for writing, and it opens with `O_EXCL`: the kernel
//!   refuses if anybody mounts, swaps on or otherwise claims it, in any mount namespace, until the run is over.
//! - "Mounted or held" looks at the device, its partitions and the disk it is a partition of.
//! - What cannot be determined is said to be so, and never taken for "blank".

pub(crate) mod in_use;
pub(crate) mod mounts;
pub(crate) mod numbers;
mod signature;

use crate::error::{plain, LiveError};
use numbers::DevNumbers;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use tracing::debug;

/// A device that may be overwritten, open and claimed.
#[derive(Debug)]
pub(crate) struct ClaimedDevice {
    pub device: File,
    /// What was found on it.
    pub signature: String,
}

/// Applies the rules to the device `path`, with these numbers; `named` says whether the user named it.
pub(crate) fn may_overwrite(
    path: &Path,
    numbers: DevNumbers,
    named: bool,
    key: &str,
) -> Result<ClaimedDevice, LiveError> {
    let refuse = |message: String| Err(LiveError::refused(key, message));
    if let Some(user) = in_use::user_of(numbers) {
        return refuse(format!("{} is {user}: it is never written, whatever is said", path.display()));
    }
    let signature = signature::describe(path);
    if !named {
        return refuse(format!(
            "{} is a block device and {signature}: it is overwritten only when named with --destroy {}",
            path.display(),
            path.display()
        ));
    }
    let device = match claim(path) {
        Ok(device) => device,
        Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {
            return refuse(format!(
                "{} is held by another driver or mounted elsewhere: it is never written, whatever is said",
                path.display()
            ))
        }
        Err(e) if READ_ONLY.contains(&e.raw_os_error().unwrap_or(0)) => {
            return refuse(format!("{} cannot be written: {}; nothing was touched", path.display(), plain(&e)))
        }
        Err(e) => return Err(LiveError::io(key, path.display().to_string(), "opening to write", &e)),
    };
    if is_read_only(&device) {
        return refuse(format!("{} is read-only: it cannot be written; nothing was touched", path.display()));
    }
    // The name may have been given to another device since it was looked at.
    let same = device.metadata().is_ok_and(|status| DevNumbers::of(status.rdev()) == numbers);
    if !same {
        return refuse(format!("{} has just become another device", path.display()));
    }
    // Now nobody can claim it any more; somebody may have just before.
    if let Some(user) = in_use::user_of(numbers) {
        return refuse(format!("{} is {user}: it is never written, whatever is said", path.display()));
    }
    debug!(path = %path.display(), signature, "block device claimed for overwriting");
    Ok(ClaimedDevice { device, signature })
}

/// Who uses a block device or a part of it, in words ("mounted at /mnt"); none for one that is free, or is no device.
///
/// An early answer, for a refusal before anything else is judged: whether a device may be written `may_overwrite` alone
/// decides.
pub fn device_user(path: &Path) -> Option<String> {
    let status = std::fs::metadata(path).ok().filter(|status| status.file_type().is_block_device())?;
    in_use::user_of(DevNumbers::of(status.rdev()))
}

/// What the system says where a device may not be written: read-only, or not by this user.
const READ_ONLY: [i32; 3] = [libc::EROFS, libc::EACCES, libc::EPERM];
/// `BLKROGET`: _IO(0x12, 94).
const BLKROGET: u64 = 0x125E;

/// Whether the device is read-only: the kernel lets such a one be opened for writing, and fails the first write.
fn is_read_only(device: &File) -> bool {
    let mut read_only: libc::c_int = 0;
    // SAFETY: the call writes one int.
    let asked = unsafe { libc::ioctl(device.as_raw_fd(), BLKROGET as libc::Ioctl, &mut read_only) };
    asked == 0 && read_only != 0
}

/// Opens the device for writing, so that nobody else can claim it. Who has just let go of it may take a moment.
fn claim(path: &Path) -> std::io::Result<File> {
    let mut tries = 10;
    loop {
        tries -= 1;
        let opened = OpenOptions::new().read(true).write(true).custom_flags(libc::O_EXCL | libc::O_CLOEXEC).open(path);
        match opened {
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) && tries > 0 => {
                debug!(path = %path.display(), tries, "block device is busy, trying again");
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            other => return other,
        }
    }
}
