//! `file`: a regular file that raidlab makes, preallocates and fills; any other file is only ever read.
//!
//! Invariants:
//! - What is written is not reached through a link in the file's place, and has no second name.
//! - The mark that allows it is read by the very descriptor that is written through.

use super::direct::{self, Access};
use super::trailer::{StampedSectors, Trailer, TRAILER_BYTES};
use super::{Intent, Store, Target, TargetFacts};
use crate::directory::Directory;
use crate::error::{plain, LiveError};
use crate::memory::PAGE_BYTES;
use crate::safety::in_use;
use rustix::fs::{fallocate, FallocateFlags, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

/// Least sector of a file: smaller writes make the file system read the rest of its block first.
const SECTOR_BYTES: u32 = 4096;
/// What the page cache takes is counted in sectors of this, as on any block device.
const LEAST_SECTOR_BYTES: u32 = 512;

/// A file that a cell names: where it lies, and where it stands in the cell.
#[derive(Clone, Copy)]
struct NamedFile<'a> {
    path: &'a Path,
    key: &'a str,
}

impl NamedFile<'_> {
    fn path_key(&self) -> String {
        format!("{}.path", self.key)
    }

    /// Bad input; `what` is the sentence after the path.
    fn bad(&self, what: &str) -> LiveError {
        LiveError::bad(self.path_key(), format!("{} {what}", self.path.display()))
    }

    /// A refusal; `what` is the sentence after the path.
    fn refused(&self, what: &str) -> LiveError {
        LiveError::refused(self.path_key(), format!("{} {what}", self.path.display()))
    }

    fn io(&self, doing: &str, error: &io::Error) -> LiveError {
        LiveError::io(self.path_key(), self.path.display().to_string(), doing, error)
    }

    fn bad_size(&self, message: String) -> LiveError {
        LiveError::bad(format!("{}.size_bytes", self.key), message)
    }
}

/// Opens the file, or makes it if there is none.
pub(super) fn open(path: &Path, size_bytes: u64, key: &str, intent: Intent<'_>) -> Result<Target, LiveError> {
    let named = NamedFile { path, key };
    match open_if_there(named, size_bytes, intent)? {
        Some(target) => Ok(target),
        None => create(named, size_bytes, intent),
    }
}

/// Opens a file that was there when the run began: none is made in its place.
pub(super) fn open_again(path: &Path, size_bytes: u64, key: &str, intent: Intent<'_>) -> Result<Target, LiveError> {
    let named = NamedFile { path, key };
    open_if_there(named, size_bytes, intent)?.ok_or_else(|| {
        let gone = io::Error::from_raw_os_error(libc::ENOENT);
        named.io("was taken away or replaced while it was measured", &gone)
    })
}

fn open_if_there(named: NamedFile<'_>, size_bytes: u64, intent: Intent<'_>) -> Result<Option<Target>, LiveError> {
    if size_bytes < u64::from(SECTOR_BYTES) {
        return Err(named.bad_size(format!("{size_bytes} must be at least one page of {SECTOR_BYTES}")));
    }
    match std::fs::metadata(named.path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(LiveError::bad(named.path_key(), format!("{}: {}", named.path.display(), plain(&e)))),
        Ok(found) if found.is_dir() => Err(named.bad("is a directory: name a file in it")),
        Ok(found) if found.file_type().is_block_device() => Err(named.bad("is a block device: its kind is \"block\"")),
        Ok(found) if !found.is_file() => Err(named.bad("is not a regular file")),
        Ok(_) => match open_existing(named, size_bytes, intent) {
            // Removed since it was looked at.
            Err(LiveError::Io { errno: libc::ENOENT, .. }) => Ok(None),
            opened => opened.map(Some),
        },
    }
}

fn create(named: NamedFile<'_>, size_bytes: u64, intent: Intent<'_>) -> Result<Target, LiveError> {
    let made = Directory::around(named.path)
        .and_then(|(around, name)| Ok((around.create_file(&name, OFlags::empty())?, around, name)));
    let (file, around, name) = made.map_err(|e| named.bad(&format!("cannot be created: {}", plain(&e))))?;
    if let Err(error) = lock(&file, true, named).and_then(|()| allocate(&file, size_bytes, named)) {
        // Nothing of worth is in it, and a stump without a trailer would be refused ever after.
        let _ = around.remove(&name, Some(&file));
        return Err(error);
    }
    finish(file, named, size_bytes, intent, Origin { ours: true, needs_fill: true, stamped: None })
}

/// A file that exists: ours is used or made anew, others are only read.
fn open_existing(named: NamedFile<'_>, size_bytes: u64, intent: Intent<'_>) -> Result<Target, LiveError> {
    let (around, name) = Directory::around(named.path).map_err(|e| named.io("opening", &e))?;
    let reader = around.open_file(&name, OFlags::RDONLY, true).map_err(|e| named.io("opening", &e))?;
    let len = |file: &File| file.metadata().map(|status| status.len()).map_err(|e| named.io("reading its size", &e));
    let there = len(&reader)?;
    let trailer = read_trailer(&reader, there);
    let usable = trailer.is_some_and(|t| t.filled && t.data_bytes >= size_bytes);
    if trailer.is_none() && intent.writes {
        return Err(named
            .refused("exists and was not made by raidlab, so it is not overwritten: name another path, or remove it"));
    }
    if trailer.is_none() && there < size_bytes {
        return Err(named.bad_size(format!("{size_bytes} bytes asked for, {} has {there}", named.path.display())));
    }
    if trailer.is_none() || (usable && !intent.writes) {
        lock(&reader, false, named)?;
        let stamped = trailer.and_then(|trailer| trailer.stamped);
        let origin = Origin { ours: trailer.is_some(), needs_fill: false, stamped };
        return finish(reader, named, size_bytes, intent, origin);
    }
    let file = around.open_file(&name, OFlags::RDWR, false).map_err(|e| match e.raw_os_error() {
        Some(libc::ELOOP) => {
            let file = std::fs::canonicalize(named.path).unwrap_or_default();
            let what = "is a symbolic link, and what is written is named itself; accepted:";
            named.refused(&format!("{what} {}", file.display()))
        }
        _ => named.io("opening to write", &e),
    })?;
    lock(&file, true, named)?;
    if let Some(name) = in_use::loop_over(named.path) {
        return Err(named.refused(&format!("is behind the loop device {name}: it is never written meanwhile")));
    }
    // Between the look and the lock another run may have changed it.
    let Some(trailer) = read_trailer(&file, len(&file)?) else {
        return Err(named.refused("has just been replaced"));
    };
    if trailer.data_bytes < size_bytes {
        allocate(&file, size_bytes, named)?;
    }
    let needs_fill = !(trailer.filled && trailer.data_bytes >= size_bytes);
    let stamped = trailer.stamped.filter(|_| !needs_fill);
    finish(file, named, size_bytes, intent, Origin { ours: true, needs_fill, stamped })
}

fn read_trailer(file: &File, len: u64) -> Option<Trailer> {
    let mut page = [0; PAGE_BYTES];
    file.read_exact_at(&mut page, len.checked_sub(TRAILER_BYTES)?).ok()?;
    Trailer::decode(&page, len)
}

/// Gives the file its size with all blocks allocated, and a trailer that says it is not filled.
fn allocate(file: &File, size_bytes: u64, named: NamedFile<'_>) -> Result<(), LiveError> {
    let data_bytes = size_bytes.next_multiple_of(TRAILER_BYTES);
    let trailer = Trailer { data_bytes, filled: false, stamped: None }.encode();
    let total = data_bytes + TRAILER_BYTES;
    let made = file.set_len(0).and_then(|()| preallocate(file, total)).and_then(|()| {
        file.set_len(total)?;
        file.write_all_at(&trailer, data_bytes)
    });
    made.map_err(|e| named.io(&format!("allocating {total} bytes"), &e))
}

fn preallocate(file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        // Filling writes every block anyhow.
        Err(Errno::OPNOTSUPP) => {
            tracing::debug!(bytes, "the file system cannot preallocate, falling back to filling");
            Ok(())
        }
        done => Ok(done?),
    }
}

fn lock(file: &File, exclusive: bool, named: NamedFile<'_>) -> Result<(), LiveError> {
    let locked = if exclusive { file.try_lock() } else { file.try_lock_shared() };
    locked.map_err(|_| named.refused("is in use by another run"))
}

/// Who made a file, and whether it still lacks its content.
struct Origin {
    ours: bool,
    needs_fill: bool,
    stamped: Option<StampedSectors>,
}

fn finish(
    file: File,
    named: NamedFile<'_>,
    size_bytes: u64,
    intent: Intent<'_>,
    origin: Origin,
) -> Result<Target, LiveError> {
    let access = direct::enable(&file, intent.buffered);
    let mut facts = TargetFacts::of_file(named.path, &file, size_bytes, access)
        .map_err(|e| named.io("reading its attributes", &e))?;
    let least_sector_bytes = match access {
        Access::Direct { align_bytes } => align_bytes,
        Access::Buffered => LEAST_SECTOR_BYTES,
    };
    facts.sector_bytes = least_sector_bytes.max(SECTOR_BYTES);
    facts.made_by_raidlab = origin.ours;
    let mut target = Target::new(named.key, facts, Store::Fd(file));
    target.least_sector_bytes = least_sector_bytes;
    (target.needs_fill, target.stamped) = (origin.needs_fill, origin.stamped);
    Ok(target)
}
