//! A subdirectory of raidlab's own, with the files it has made there.
//!
//! Purpose: whole files to read, without ever touching anybody else's. A marker in the subdirectory says that raidlab
//! made it, for which files, and whether they are all there; a set asked for again is used as it is.
//!
//! Invariants:
//! - Nothing is written or removed but in a subdirectory that raidlab made for this user: one that is there without its
//!   marker is refused. In it, only regular files with raidlab's names are removed, and the marker.
//! - Every file is created anew (`O_EXCL`), relative to the open subdirectory, so nothing is followed or overwritten.
//! - The marker says "complete" only after every file has been written and synchronised.
//! - The marker is locked while a run lasts: two runs never share a set.

use crate::directory::Directory;
use crate::error::{plain, LiveError};
use crate::target::direct::{self, Access};
use raidlab_types::Seed;
use rustix::fs::OFlags;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Name of the subdirectory.
pub(super) const SUBDIRECTORY: &str = "raidlab-files";
const MARKER: &str = "made-by-raidlab";
const FIRST_LINE: &str = "raidlab file set, version 1";

/// The subdirectory of one directory, claimed.
#[derive(Debug)]
pub(super) struct Set {
    path: PathBuf,
    /// The directory it is in, and itself.
    around: Directory,
    directory: Directory,
    key: String,
    marker: File,
    keep: bool,
    /// What the files are: two sets of one identity hold the same files.
    identity: u64,
    /// All of them are there.
    pub complete: bool,
    /// How its files are opened where that is to be found out.
    pub access: Access,
}

impl Set {
    /// Claims the subdirectory of `directory`, made now if it is not there.
    pub(super) fn claim(directory: &Path, key: &str, keep: bool) -> Result<Set, LiveError> {
        let around = Directory::open(directory)
            .map_err(|e| LiveError::bad(key, format!("{}: {}", directory.display(), plain(&e))))?;
        let path = directory.join(SUBDIRECTORY);
        let fail = |doing: &str, e: &io::Error| LiveError::io(key, path.display().to_string(), doing, e);
        match around.make_child(OsStr::new(SUBDIRECTORY)) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(fail("creating it", &e)),
            _ => {}
        }
        let (directory, marker) = open_own(&around, &path, key)?;
        if marker.try_lock().is_err() {
            return Err(LiveError::refused(key, format!("{} is in use by another run", path.display())));
        }
        let (identity, complete) = read_marker(&marker);
        let access = Access::Buffered;
        let mut set = Set { path, around, directory, key: key.to_string(), marker, keep, identity, complete, access };
        if !set.complete {
            set.write_marker(false)?;
        }
        set.access = set.try_direct();
        Ok(set)
    }

    /// Whether files of this file system can be read past the page cache: tried on the marker, opened once more.
    fn try_direct(&self) -> Access {
        let opened = self.directory.open_file(OsStr::new(MARKER), OFlags::RDONLY, false);
        opened.map_or(Access::Buffered, |file| direct::enable(&file, false))
    }

    /// Makes the set be that of `identity`: what else is there is removed, unless it is that very set.
    pub(super) fn prepare(&mut self, identity: u64) -> Result<(), LiveError> {
        if self.complete && self.identity == identity {
            return Ok(());
        }
        self.identity = identity;
        self.write_marker(false)?;
        self.remove_files().map_err(|e| self.error("removing files of an earlier run", &e))
    }

    /// A file of a set that was complete is to be written once more; it may be there with another length.
    pub(super) fn begin_again(&mut self, number: u32) -> Result<(), LiveError> {
        if self.complete {
            self.write_marker(false)?;
        }
        match self.directory.remove(&name(number), None) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(self.error("removing a file of it", &e)),
            _ => Ok(()),
        }
    }

    /// Writes the marker file, which says whether every file is there.
    pub(super) fn write_marker(&mut self, complete: bool) -> Result<(), LiveError> {
        self.complete = complete;
        // Padded, so that the marker is a page in length and direct reading can be tried on it.
        let text = format!("{FIRST_LINE}\nidentity {:016x}\ncomplete {}\n", self.identity, u8::from(complete));
        let page = format!("{text:4095}\n");
        let written = self.marker.write_all_at(page.as_bytes(), 0).and_then(|()| self.marker.sync_data());
        written.map_err(|e| self.error("writing its marker", &e))
    }

    /// Where file `number` is.
    pub(super) fn file(&self, number: u32) -> PathBuf {
        self.path.join(name(number))
    }

    /// A new file to be written.
    pub(super) fn create(&self, number: u32, direct: bool) -> io::Result<File> {
        self.directory.create_file(&name(number), if direct { OFlags::DIRECT } else { OFlags::empty() })
    }

    /// Writes back all of the file system.
    pub(super) fn sync_filesystem(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.marker)?)
    }

    fn remove_files(&self) -> io::Result<()> {
        for name in self.directory.names()? {
            if is_our_name(&name.to_string_lossy()) && self.directory.status(&name)?.is_file() {
                self.directory.remove(&name, None)?;
            }
        }
        Ok(())
    }

    fn only_marker_is_left(&self) -> bool {
        self.directory.names().is_ok_and(|names| names.iter().all(|name| name == MARKER))
    }

    fn error(&self, doing: &str, e: &io::Error) -> LiveError {
        LiveError::io(&self.key, self.path.display().to_string(), doing, e)
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        if !self.keep {
            // The marker last: what is interrupted here is still known as ours. A subdirectory in which somebody has put
            // something stays.
            if self.remove_files().is_ok() && self.only_marker_is_left() {
                let _ = self.directory.remove(OsStr::new(MARKER), Some(&self.marker));
                let _ = self.around.remove_child(OsStr::new(SUBDIRECTORY));
            }
        }
        // A process that was being started meanwhile may hold a copy of the descriptor for a moment longer.
        let _ = self.marker.unlock();
    }
}

fn name(number: u32) -> OsString {
    format!("f{number:08}").into()
}

fn is_our_name(name: &str) -> bool {
    name.len() >= 9 && name.starts_with('f') && name[1..].bytes().all(|byte| byte.is_ascii_digit())
}

/// Opens the subdirectory and its marker: it is ours if that says so, or if nothing at all is in it.
fn open_own(around: &Directory, path: &Path, key: &str) -> Result<(Directory, File), LiveError> {
    let refuse = |why: &str| {
        let message =
            format!("{} {why}, so nothing is written there: remove it, or name another directory", path.display());
        Err(LiveError::refused(key, message))
    };
    let Ok(directory) = around.child(OsStr::new(SUBDIRECTORY)) else { return refuse("is not a directory") };
    if !directory.is_own().unwrap_or(false) {
        return refuse("belongs to another user");
    }
    match directory.open_file(OsStr::new(MARKER), OFlags::RDWR, false) {
        Ok(marker) if first_line_fits(&marker) => Ok((directory, marker)),
        Err(e) if e.kind() == io::ErrorKind::NotFound && directory.names().is_ok_and(|names| names.is_empty()) => {
            let made = directory.create_file(OsStr::new(MARKER), OFlags::empty());
            let marker = made.map_err(|e| LiveError::io(key, path.display().to_string(), "making its marker", &e))?;
            Ok((directory, marker))
        }
        _ => refuse("exists and was not made by raidlab"),
    }
}

fn marker_text(marker: &File) -> String {
    let mut bytes = [0; 256];
    let n = marker.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..n]).into_owned()
}

fn first_line_fits(marker: &File) -> bool {
    // An empty one is left by a run that died as it began.
    matches!(marker_text(marker).lines().next(), None | Some(FIRST_LINE))
}

/// Identity and whether it is complete; what cannot be read is not.
fn read_marker(marker: &File) -> (u64, bool) {
    let text = marker_text(marker);
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ').map(str::to_string));
    let identity = value("identity").and_then(|hex| u64::from_str_radix(&hex, 16).ok());
    let complete = value("complete").is_some_and(|word| word.trim() == "1");
    (identity.unwrap_or(0), complete && identity.is_some())
}

/// What a set is: the seed of its content, and number, size and place in the content of each of its files.
pub(super) fn identity(seed: u64, files: impl Iterator<Item = (u32, u64, u64)>) -> u64 {
    let start = Seed::new(seed).named("file set");
    let add =
        |hash: Seed, (number, size, first): (u32, u64, u64)| hash.child(u64::from(number)).child(size).child(first);
    files.fold(start, add).as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_markers_are_known_again() {
        assert!(is_our_name("f00000012") && is_our_name("f123456789"));
        assert!(!is_our_name("f0000001x") && !is_our_name("f12") && !is_our_name("g00000012"));
        let files = || [(0, 5, 0), (1, 6, 1)].into_iter();
        assert_eq!(identity(1, files()), identity(1, files()));
        assert_ne!(identity(1, files()), identity(2, files()));
        assert_ne!(identity(1, files()), identity(1, [(0, 6, 0), (1, 5, 1)].into_iter()));
    }
}
