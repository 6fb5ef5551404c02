//! What of a file is in the page cache, and how to get it out.
//!
//! Purpose: a file read through the page cache is timed honestly only if nothing of it is there beforehand. Advice to
//! drop it may be ignored (dirty pages, pages in use, file systems that live in memory), so what is left is counted.
//!
//! Invariant: what cannot be known is none, never 0. For files that the caller neither owns nor may write, the kernel
//! tells nobody what is cached.
//!
//! Reference: posix_fadvise(2), mincore(2), cachestat in Linux's mm/filemap.c (6.5 and later).

use crate::memory::PAGE_BYTES;
use memmap2::MmapOptions;
use rustix::fs::{access, fadvise, Access, Advice};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

/// Writes back what is dirty and asks the kernel to drop every page of the file.
pub(crate) fn evict(file: &File) -> io::Result<()> {
    // Dirty pages are not dropped; data of a file opened to read may be written back as well.
    file.sync_data()?;
    drop_clean(file)
}

/// Asks the kernel to drop the pages that are clean.
pub(crate) fn drop_clean(file: &File) -> io::Result<()> {
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

/// How many of the file's first `size_bytes` are in the page cache, in whole pages; none where it cannot be known.
pub(crate) fn cached_bytes(file: &File, size_bytes: u64) -> Option<u64> {
    if size_bytes == 0 {
        return Some(0);
    }
    let pages = cachestat(file, size_bytes).unwrap_or_else(|| mincore(file, size_bytes))?;
    Some((pages * PAGE_BYTES as u64).min(size_bytes))
}

/// Has the kernel drop all clean pages, directory entries and inodes of the whole system; root only.
pub(crate) fn drop_everything() -> io::Result<()> {
    rustix::fs::sync();
    std::fs::write(DROP_CACHES, "3")
}

/// Whether [`drop_everything`] is allowed.
pub(crate) fn may_drop_everything() -> io::Result<()> {
    std::fs::OpenOptions::new().write(true).open(DROP_CACHES).map(|_| ())
}

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
/// The number is the same on all architectures; libc does not have it everywhere yet.
const SYS_CACHESTAT: libc::c_long = 451;

/// Pages in the cache, in one cheap call: none if this kernel has no such call, some none if it does not tell us.
fn cachestat(file: &File, size_bytes: u64) -> Option<Option<u64>> {
    let range = [0u64, size_bytes];
    // cached, dirty, in writeback, evicted, evicted lately
    let mut found = [0u64; 5];
    // SAFETY: the call reads two words and writes five.
    let result = unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &range, &mut found, 0) };
    match result {
        0 => Some(Some(found[0])),
        _ => match io::Error::last_os_error().raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Some(None),
            _ => None,
        },
    }
}

/// The same by mapping the file; where the caller may not know, the kernel says that all is there.
fn mincore(file: &File, size_bytes: u64) -> Option<u64> {
    if !may_know(file) {
        return None;
    }
    let len = usize::try_from(size_bytes).ok()?;
    // It is not read through.
    let mapping = MmapOptions::new().len(len).map_raw_read_only(file).ok()?;
    let mut pages = vec![0u8; len.div_ceil(PAGE_BYTES)];
    // SAFETY: one byte a page of the mapping is written, of which there are as many.
    let result = unsafe { libc::mincore(mapping.as_mut_ptr().cast(), len, pages.as_mut_ptr()) };
    (result == 0).then(|| pages.iter().filter(|&&page| page & 1 != 0).count() as u64)
}

/// Owner, or allowed to write: the rule of the kernel's `mincore`.
fn may_know(file: &File) -> bool {
    access(format!("/proc/self/fd/{}", file.as_raw_fd()), Access::WRITE_OK).is_ok()
        || file.metadata().is_ok_and(|status| status.uid() == rustix::process::geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file_of(name: &str, bytes: usize) -> (std::path::PathBuf, File) {
        let path = std::env::temp_dir().join(format!("raidlab-page-cache-{name}-{}", std::process::id()));
        let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&path).expect("a file");
        file.write_all(&vec![7; bytes]).expect("to write it");
        (path, file)
    }

    #[test]
    fn both_ways_of_asking_agree_before_and_after() {
        let (path, file) = file_of("agree", 300_000);
        let both = |what: &str| {
            let mapped = mincore(&file, 300_000);
            if let Some(counted) = cachestat(&file, 300_000) {
                assert_eq!(counted, mapped, "{what}");
            }
            mapped.expect("our own file")
        };
        assert_eq!(both("just written"), 74, "every page, the last in part");
        assert_eq!(cached_bytes(&file, 300_000), Some(300_000), "never more than the file has");
        evict(&file).expect("to drop it");
        // A file system in memory keeps it all; any other gives it up.
        assert!([0, 74].contains(&both("dropped")));
        assert_eq!(cached_bytes(&file, 0), Some(0));
        let _ = std::fs::remove_file(path);
    }
}
