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
use crate::error::LiveError;
use crate::io::Clock;
use crate::memory::MemoryMapping;
use crate::page_cache;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that may be read.
#[derive(Debug, Clone)]
pub(super) struct FileToRead {
    pub path: PathBuf,
    pub size_bytes: u64,
    /// Past the page cache.
    pub direct: bool,
    /// Key of the cell that leads to it.
    pub key: String,
}

impl FileToRead {
    /// What the system said of it.
    pub(super) fn error(&self, doing: &str, error: &io::Error) -> LiveError {
        LiveError::io(&self.key, self.path.display().to_string(), doing, error)
    }
}

/// Opens a file to read, as readers do.
pub(super) fn open(path: &Path, direct: bool) -> io::Result<File> {
    let flags = if direct { libc::O_DIRECT } else { 0 };
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Reads file `number` with calls as long as `buffer`, and has `check` compare what they bring; none if `stop` said so before
/// its end.
pub(super) fn read_file(
    (reader, number): (u32, u32),
    wanted: &FileToRead,
    buffer: &mut MemoryMapping,
    mut check: Option<&mut FileCheck<'_>>,
    clock: Clock,
    stop: &dyn Fn() -> bool,
) -> Result<Option<ReadRecord>, LiveError> {
    let start = clock.now();
    let file = open(&wanted.path, wanted.direct).map_err(|e| wanted.error("opening it", &e))?;
    let open_ns = clock.now().since(start).as_ns();
    let cached = page_cache::cached_bytes(&file, wanted.size_bytes);

    let reading = clock.now();
    let (mut at, mut first_byte_ns, mut ended, mut comparing_ns) = (0, open_ns, reading, 0);
    if let Some(check) = check.as_deref_mut() {
        check.begin(wanted.size_bytes);
    }
    while at < wanted.size_bytes {
        let n = read(&file, buffer).map_err(|e| wanted.error("reading it", &e))?;
        ended = clock.now();
        if n == 0 {
            let message = format!("it ends after {at} of {} bytes: somebody has cut it", wanted.size_bytes);
            let (key, target) = (wanted.key.clone(), wanted.path.display().to_string());
            return Err(LiveError::Io { key, target, errno: 0, message });
        }
        if at == 0 {
            first_byte_ns = open_ns + ended.since(reading).as_ns();
        }
        if let Some(check) = check.as_deref_mut().filter(|check| check.wants(at, n)) {
            let len = usize::try_from(n).expect("a call brings no more than the buffer holds");
            check.compare(number, at, &buffer.bytes_mut()[..len]);
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
        reader,
        file: number,
        size_bytes: wanted.size_bytes,
        start_ns: start.as_ns(),
        open_ns,
        first_byte_ns,
        total_ns: open_ns + ended.since(reading).as_ns() - comparing_ns,
        cached_bytes: cached.unwrap_or(CACHE_UNKNOWN),
    }))
}

/// One read call into as much of the buffer as there is.
fn read(mut file: &File, buffer: &mut MemoryMapping) -> io::Result<u64> {
    loop {
        match file.read(buffer.bytes_mut()) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            read => return read.map(|n| n as u64),
        }
    }
}
