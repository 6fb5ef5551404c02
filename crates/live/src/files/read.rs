//! Reading one whole file, timed.
//!
//! Purpose: what a program that retrieves a file waits for: opening it, the first bytes, all of it. What of the file is in
//! the page cache is looked up between opening and reading, on the descriptor that was just opened: so it is known for
//! this very reading, and neither the file's inode nor its directory entry is warmed beforehand. That look, comparing
//! contents, the eviction afterwards and closing are not in any time.
//!
//! Invariant: a file that ends before its size is an error, never a short time.

use super::content::FileCheck;
use super::result::{ReadRecord, CACHE_UNKNOWN};
use crate::error::plain;
use crate::io::Clock;
use crate::memory::Mapping;
use crate::page_cache;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// One to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub reader: u32,
    pub file: u32,
    pub path: &'a Path,
    pub size_bytes: u64,
    /// Past the page cache.
    pub direct: bool,
}

/// What went wrong, as the end of a sentence that begins with the file.
pub(super) struct Failure {
    pub message: String,
    pub errno: i32,
}

impl Failure {
    fn of(doing: &str, error: &io::Error) -> Failure {
        Failure { message: format!("{doing}: {}", plain(error)), errno: error.raw_os_error().unwrap_or(0) }
    }
}

/// Opens a file to read, as readers do.
pub(super) fn open(path: &Path, direct: bool) -> io::Result<File> {
    let flags = if direct { libc::O_DIRECT } else { 0 };
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Reads one file with calls as long as `buffer`, and has `check` compare what they bring; none if `stop` said so before its end.
pub(super) fn read_file(
    wanted: Wanted<'_>,
    buffer: &mut Mapping,
    check: Option<&mut FileCheck<'_>>,
    clock: Clock,
    stop: &dyn Fn() -> bool,
) -> Result<Option<ReadRecord>, Failure> {
    let start = clock.now();
    let mut check = check;
    let file = open(wanted.path, wanted.direct).map_err(|e| Failure::of("opening it", &e))?;
    let open_ns = clock.now().since(start).as_ns();
    let cached = page_cache::cached_bytes(&file, wanted.size_bytes);

    let reading = clock.now();
    let (mut at, mut first_byte_ns, mut ended, mut comparing_ns) = (0, open_ns, reading, 0);
    if let Some(check) = check.as_deref_mut() {
        check.begin(wanted.size_bytes);
    }
    while at < wanted.size_bytes {
        let n = read(&file, buffer).map_err(|e| Failure::of("reading it", &e))?;
        ended = clock.now();
        if n == 0 {
            let message = format!("it ends after {at} of {} bytes: somebody has cut it", wanted.size_bytes);
            return Err(Failure { message, errno: 0 });
        }
        if at == 0 {
            first_byte_ns = open_ns + ended.since(reading).as_ns();
        }
        if let Some(check) = check.as_deref_mut().filter(|check| check.wants(at, n)) {
            let len = usize::try_from(n).expect("a call brings no more than the buffer holds");
            check.compare(wanted.file, at, &buffer.bytes_mut()[..len]);
            let compared_ns = clock.now().since(ended).as_ns();
            comparing_ns += if at + n < wanted.size_bytes { compared_ns } else { 0 };
        }
        at += n;
        if at < wanted.size_bytes && stop() {
            return Ok(None);
        }
    }
    // For whoever reads it next: some file systems go through the cache even when asked not to. What stays in spite of it
    // is found when that happens.
    let _ = page_cache::drop_clean(&file);
    Ok(Some(ReadRecord {
        reader: wanted.reader,
        file: wanted.file,
        size_bytes: wanted.size_bytes,
        start_ns: start.as_ns(),
        open_ns,
        first_byte_ns,
        total_ns: open_ns + ended.since(reading).as_ns() - comparing_ns,
        cached_bytes: cached.unwrap_or(CACHE_UNKNOWN),
    }))
}

/// One read call into as much of the buffer as there is.
fn read(file: &File, buffer: &mut Mapping) -> io::Result<u64> {
    loop {
        // SAFETY: the mapping is as long as is said, and ours alone.
        let n = unsafe { libc::read(file.as_raw_fd(), buffer.as_ptr().cast(), buffer.len()) };
        match u64::try_from(n) {
            Ok(n) => {
                assert!(n <= buffer.len() as u64, "the kernel has read {n} bytes into {}", buffer.len());
                return Ok(n);
            }
            Err(_) => match io::Error::last_os_error() {
                e if e.kind() == io::ErrorKind::Interrupted => {}
                e => return Err(e),
            },
        }
    }
}
