//! `file`: a regular file that raidlab makes, preallocates and fills; any other file is only ever read.
//!
//! Invariants:
//! - What is written is not reached through a link in the file's place, and has no second name.
//! - The mark that allows it is read by the very descriptor that is written through.

use super::direct::{self, Access};
use super::trailer::{Stamped, Trailer, TRAILER_BYTES};
use super::{Intent, Store, Target, TargetFacts};
use crate::directory::Directory;
use crate::error::{plain, LiveError};
use crate::memory::PAGE_BYTES;
use crate::safety::in_use;
use raidlab_types::number::i64_from;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

/// Least sector of a file: smaller writes make the file system read the rest of its block first.
const SECTOR_BYTES: u32 = 4096;
/// What the page cache takes is counted in sectors of this, as on any block device.
const LEAST_SECTOR_BYTES: u32 = 512;

/// Opens the file, or makes it if there is none.
pub(super) fn open(path: &Path, size_bytes: u64, key: &str, intent: Intent<'_>) -> Result<Target, LiveError> {
    match open_if_there(path, size_bytes, key, intent)? {
        Some(target) => Ok(target),
        None => create(path, size_bytes, key, intent),
    }
}

/// Opens a file that was there when the run began: none is made in its place.
pub(super) fn open_again(path: &Path, size_bytes: u64, key: &str, intent: Intent<'_>) -> Result<Target, LiveError> {
    open_if_there(path, size_bytes, key, intent)?.ok_or_else(|| {
        let doing = "was taken away or replaced while it was measured";
        let gone = io::Error::from_raw_os_error(libc::ENOENT);
        LiveError::io(path_key(key), path.display().to_string(), doing, &gone)
    })
}

fn open_if_there(path: &Path, size_bytes: u64, key: &str, intent: Intent<'_>) -> Result<Option<Target>, LiveError> {
    if size_bytes < u64::from(SECTOR_BYTES) {
        let message = format!("{size_bytes} must be at least one page of {SECTOR_BYTES}");
        return Err(LiveError::bad(format!("{key}.size_bytes"), message));
    }
    match std::fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(LiveError::bad(path_key(key), format!("{}: {}", path.display(), plain(&e)))),
        Ok(found) if found.is_dir() => {
            let message = format!("{} is a directory: name a file in it", path.display());
            Err(LiveError::bad(path_key(key), message))
        }
        Ok(found) if found.file_type().is_block_device() => {
            let message = format!("{} is a block device: its kind is \"block\"", path.display());
            Err(LiveError::bad(path_key(key), message))
        }
        Ok(found) if !found.is_file() => {
            Err(LiveError::bad(path_key(key), format!("{} is not a regular file", path.display())))
        }
        Ok(_) => match open_existing(path, size_bytes, key, intent) {
            // Removed since it was looked at.
            Err(LiveError::Io { errno: libc::ENOENT, .. }) => Ok(None),
            opened => opened.map(Some),
        },
    }
}

fn path_key(key: &str) -> String {
    format!("{key}.path")
}

fn create(path: &Path, size_bytes: u64, key: &str, intent: Intent<'_>) -> Result<Target, LiveError> {
    let made = Directory::around(path).and_then(|(around, name)| Ok((around.create_file(&name, 0)?, around, name)));
    let (file, around, name) = made.map_err(|e| {
        let message = format!("{} cannot be created: {}", path.display(), plain(&e));
        LiveError::bad(path_key(key), message)
    })?;
    let made = lock(&file, true, path, key).and_then(|()| allocate(&file, size_bytes, path, key));
    if let Err(error) = made {
        // Nothing of worth is in it, and a stump without a trailer would be refused ever after.
        let _ = around.remove(&name, Some(&file));
        return Err(error);
    }
    finish(file, path, size_bytes, key, intent, Origin { ours: true, needs_fill: true, stamped: None })
}

/// A file that exists: ours is used or made anew, others are only read.
fn open_existing(path: &Path, size_bytes: u64, key: &str, intent: Intent<'_>) -> Result<Target, LiveError> {
    let writes = intent.writes;
    let refuse_io = |doing: &str, e: &io::Error| LiveError::io(path_key(key), path.display().to_string(), doing, e);
    let (around, name) = Directory::around(path).map_err(|e| refuse_io("opening", &e))?;
    let reader = around.open_file(&name, libc::O_RDONLY, true).map_err(|e| refuse_io("opening", &e))?;
    let len = reader.metadata().map_err(|e| refuse_io("reading its size", &e))?.len();
    let trailer = read_trailer(&reader, len);
    let usable = trailer.is_some_and(|t| t.filled && t.data_bytes >= size_bytes);
    if trailer.is_none() && writes {
        let message = format!(
            "{} exists and was not made by raidlab, so it is not overwritten: name another path, or remove it",
            path.display()
        );
        return Err(LiveError::refused(path_key(key), message));
    }
    if trailer.is_none() && len < size_bytes {
        let message = format!("{size_bytes} bytes asked for, {} has {len}", path.display());
        return Err(LiveError::bad(format!("{key}.size_bytes"), message));
    }
    if trailer.is_none() || (usable && !writes) {
        lock(&reader, false, path, key)?;
        let stamped = trailer.and_then(|trailer| trailer.stamped);
        let origin = Origin { ours: trailer.is_some(), needs_fill: false, stamped };
        return finish(reader, path, size_bytes, key, intent, origin);
    }
    let file = match around.open_file(&name, libc::O_RDWR, false) {
        Err(e) if e.raw_os_error() == Some(libc::ELOOP) => return refuse_link(path, key),
        opened => opened.map_err(|e| refuse_io("opening to write", &e))?,
    };
    lock(&file, true, path, key)?;
    if let Some(name) = in_use::loop_over(path) {
        let message = format!("{} is behind the loop device {name}: it is never written meanwhile", path.display());
        return Err(LiveError::refused(path_key(key), message));
    }
    // Between the look and the lock another run may have changed it.
    let len = file.metadata().map_err(|e| refuse_io("reading its size", &e))?.len();
    let Some(trailer) = read_trailer(&file, len) else {
        return Err(LiveError::refused(path_key(key), format!("{} has just been replaced", path.display())));
    };
    if trailer.data_bytes < size_bytes {
        allocate(&file, size_bytes, path, key)?;
    }
    let needs_fill = !(trailer.filled && trailer.data_bytes >= size_bytes);
    let stamped = trailer.stamped.filter(|_| !needs_fill);
    finish(file, path, size_bytes, key, intent, Origin { ours: true, needs_fill, stamped })
}

fn refuse_link<T>(path: &Path, key: &str) -> Result<T, LiveError> {
    let file = std::fs::canonicalize(path).unwrap_or_default();
    let message = format!(
        "{} is a symbolic link, and what is written is named itself; accepted: {}",
        path.display(),
        file.display()
    );
    Err(LiveError::refused(path_key(key), message))
}

fn read_trailer(file: &File, len: u64) -> Option<Trailer> {
    let mut page = [0; PAGE_BYTES];
    file.read_exact_at(&mut page, len.checked_sub(TRAILER_BYTES)?).ok()?;
    Trailer::decode(&page, len)
}

/// Gives the file its size with all blocks allocated, and a trailer that says it is not filled.
fn allocate(file: &File, size_bytes: u64, path: &Path, key: &str) -> Result<(), LiveError> {
    let data_bytes = size_bytes.next_multiple_of(TRAILER_BYTES);
    let trailer = Trailer { data_bytes, filled: false, stamped: None }.encode();
    let total = data_bytes + TRAILER_BYTES;
    let made = file.set_len(0).and_then(|()| preallocate(file, total)).and_then(|()| {
        file.set_len(total)?;
        file.write_all_at(&trailer, data_bytes)
    });
    made.map_err(|e| {
        let doing = format!("allocating {total} bytes");
        LiveError::io(path_key(key), path.display().to_string(), &doing, &e)
    })
}

fn preallocate(file: &File, bytes: u64) -> io::Result<()> {
    // SAFETY: no memory is involved.
    if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, i64_from(bytes)) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // Filling writes every block anyhow.
        e if e.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            tracing::debug!(bytes, "the file system cannot preallocate, falling back to filling");
            Ok(())
        }
        e => Err(e),
    }
}

fn lock(file: &File, exclusive: bool, path: &Path, key: &str) -> Result<(), LiveError> {
    let how = if exclusive { libc::LOCK_EX } else { libc::LOCK_SH };
    // SAFETY: no memory is involved.
    if unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) } == 0 {
        return Ok(());
    }
    let message = format!("{} is in use by another run", path.display());
    Err(LiveError::refused(path_key(key), message))
}

/// Who made a file, and whether it still lacks its content.
struct Origin {
    ours: bool,
    needs_fill: bool,
    stamped: Option<Stamped>,
}

fn finish(
    file: File,
    path: &Path,
    size_bytes: u64,
    key: &str,
    intent: Intent<'_>,
    origin: Origin,
) -> Result<Target, LiveError> {
    let access = direct::enable(&file, intent.buffered);
    let mut facts = TargetFacts::of_file(path, &file, size_bytes, access)
        .map_err(|e| LiveError::io(path_key(key), path.display().to_string(), "reading its attributes", &e))?;
    let least_sector_bytes = match access {
        Access::Direct { align_bytes } => align_bytes,
        Access::Buffered => LEAST_SECTOR_BYTES,
    };
    facts.sector_bytes = least_sector_bytes.max(SECTOR_BYTES);
    facts.made_by_raidlab = origin.ours;
    let Origin { needs_fill, stamped, .. } = origin;
    Ok(Target { key: key.to_string(), facts, least_sector_bytes, store: Store::Fd(file), needs_fill, stamped })
}
