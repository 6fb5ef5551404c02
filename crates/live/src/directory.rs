//! A directory held open: its files are opened, made and removed by name, and no name leads out of it.
//!
//! Purpose: member files and whole files lie where others may write. A name there may be a symbolic link, a FIFO or a
//! second name of another file, or become one between two calls; relative to an open directory it can lead nowhere else.
//!
//! Invariants:
//! - The directory is what its path led to when it was opened: who names a path may name a link. Within a folder that
//!   raidlab made ([`OWN_FOLDER`]) no part of the path may be one.
//! - A file is opened without following a link, unless the caller only reads what the user named; it is a regular one,
//!   looked at by its own descriptor; a FIFO is never waited for.
//! - A file is made anew (`O_EXCL`), and removed only while its name stands for a regular file.

use rustix::fs::{fcntl_setfl, mkdirat, openat, unlinkat, AtFlags, Mode, OFlags, CWD};
use rustix::io::retry_on_intr;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

/// Names of the folders that raidlab makes for members begin with this (`python/raidlab/run/members.py`).
const OWN_FOLDER: &[u8] = b"raidlab-members-";
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// An open directory.
#[derive(Debug)]
pub(crate) struct Directory {
    file: File,
}

impl Directory {
    /// Opens the directory that a path leads to.
    pub(crate) fn open(path: &Path) -> io::Result<Directory> {
        let is_own = |part: &Component<'_>| part.as_os_str().as_bytes().starts_with(OWN_FOLDER);
        let outside: PathBuf = path.components().take_while(|part| !is_own(part)).collect();
        let outside = if outside.as_os_str().is_empty() { Path::new(".") } else { &outside };
        let start = Directory { file: open_at(CWD, outside.as_os_str(), OFlags::PATH | OFlags::DIRECTORY)? };
        path.components().skip_while(|part| !is_own(part)).try_fold(start, |at, part| at.child(part.as_os_str()))
    }

    /// The directory that a file's path names, and the file's name in it.
    pub(crate) fn around(path: &Path) -> io::Result<(Directory, OsString)> {
        let Some(name) = path.file_name() else { return Err(io::Error::from_raw_os_error(libc::EISDIR)) };
        Ok((Directory::open(path.parent().unwrap_or(Path::new("")))?, name.to_os_string()))
    }

    /// A directory in it; a link to one is none.
    pub(crate) fn child(&self, name: &OsStr) -> io::Result<Directory> {
        Ok(Directory { file: self.open_at(name, OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW)? })
    }

    /// Makes a directory whose name is free.
    pub(crate) fn make_child(&self, name: &OsStr) -> io::Result<()> {
        Ok(mkdirat(&self.file, name, Mode::RWXU)?)
    }

    /// Opens a regular file that is there; `access` is `RDONLY` or `RDWR`, and a link may be followed to read only.
    pub(crate) fn open_file(&self, name: &OsStr, access: OFlags, follow: bool) -> io::Result<File> {
        assert!(!follow || access == OFlags::RDONLY, "nothing is written through a link");
        let link = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
        // Without waiting for whoever may be at the other end of a FIFO.
        let file = self.open_at(name, access | link | OFlags::NONBLOCK)?;
        let status = file.metadata()?;
        let other = match status.file_type() {
            kind if kind.is_file() => None,
            kind if kind.is_dir() => Some("a directory"),
            kind if kind.is_fifo() => Some("a named pipe"),
            kind if kind.is_block_device() || kind.is_char_device() => Some("a device"),
            _ => Some("something else"),
        };
        if let Some(other) = other {
            return Err(io::Error::other(format!("it is {other}, not a regular file")));
        }
        if access != OFlags::RDONLY && status.nlink() > 1 {
            return Err(io::Error::other("has a second name (a hard link) elsewhere, so it is not written"));
        }
        // io_uring would give up on a regular file, too, rather than wait.
        fcntl_setfl(&file, access)?;
        Ok(file)
    }

    /// Makes a file whose name is free, for reading and writing.
    pub(crate) fn create_file(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        self.open_at(name, flags | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW)
    }

    /// What a name stands for, be it a link.
    pub(crate) fn status(&self, name: &OsStr) -> io::Result<Metadata> {
        self.open_at(name, OFlags::PATH | OFlags::NOFOLLOW)?.metadata()
    }

    /// Removes a regular file: any, or only the very one that is open.
    pub(crate) fn remove(&self, name: &OsStr, only: Option<&File>) -> io::Result<()> {
        let status = self.status(name)?;
        let numbers = |status: &Metadata| (status.dev(), status.ino());
        let is_it = match only {
            Some(file) => numbers(&file.metadata()?) == numbers(&status),
            None => true,
        };
        if !status.is_file() || !is_it {
            return Err(io::Error::other("is another file by now"));
        }
        Ok(unlinkat(&self.file, name, AtFlags::empty())?)
    }

    /// Removes an empty directory.
    pub(crate) fn remove_child(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.file, name, AtFlags::REMOVEDIR)?)
    }

    /// The names of all that is in it.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let entries = std::fs::read_dir(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?;
        entries.map(|entry| Ok(entry?.file_name())).collect()
    }

    /// Whether it is this user's, by the name that its file system gives this user (NFS, FUSE, FAT).
    pub(crate) fn is_own(&self) -> io::Result<bool> {
        let owner = self.file.metadata()?.uid();
        if owner == rustix::process::geteuid().as_raw() {
            return Ok(true);
        }
        let name = OsString::from(format!(".raidlab-{}", std::process::id()));
        let Ok(probe) = self.create_file(&name, OFlags::empty()) else { return Ok(false) };
        self.remove(&name, Some(&probe))?;
        Ok(probe.metadata()?.uid() == owner)
    }

    fn open_at(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        assert!(Path::new(name).components().count() == 1, "one name, no path");
        open_at(&self.file, name, flags)
    }
}

/// Opens a regular file to read, through links, as whoever named it has set them.
///
/// # Errors
///
/// When it cannot be opened, or is a directory, a pipe, a device or a socket.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let (around, name) = Directory::around(path)?;
    let file = around.open_file(&name, OFlags::RDONLY, true)?;
    // The kernel's log calls itself a regular file, and would have its reader wait.
    fcntl_setfl(&file, OFlags::RDONLY | OFlags::NONBLOCK)?;
    Ok(file)
}

fn open_at(at: impl AsFd, name: &OsStr, flags: OFlags) -> io::Result<File> {
    let opened = retry_on_intr(|| openat(&at, name, flags | OFlags::CLOEXEC | OFlags::NOCTTY, FILE_MODE));
    Ok(opened?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::mkfifoat;
    use std::os::unix::fs::symlink;

    fn folder(test: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("raidlab-directory-{}-{test}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory");
        path
    }

    #[test]
    fn what_the_user_names_is_followed_and_nothing_below_a_folder_of_ours() {
        let base = folder("follow");
        std::fs::create_dir_all(base.join("victim/raidlab-files")).expect("a directory");
        std::fs::create_dir_all(base.join("raidlab-members-0123abcd")).expect("a directory");
        symlink(base.join("victim"), base.join("link")).expect("a link");
        symlink(base.join("victim"), base.join("raidlab-members-0123abcd/files-0")).expect("a link");
        symlink(base.join("victim"), base.join("raidlab-members-4567cdef")).expect("a link");
        assert!(Directory::open(&base.join("link/raidlab-files")).is_ok());
        assert!(Directory::open(&base.join("raidlab-members-0123abcd")).is_ok());
        assert!(Directory::open(&base.join("raidlab-members-0123abcd/files-0")).is_err());
        assert!(Directory::open(&base.join("raidlab-members-4567cdef")).is_err());
        std::fs::remove_dir_all(&base).expect("ours");
    }

    #[test]
    fn only_regular_files_with_one_name_are_written_and_only_the_same_is_removed() {
        let base = folder("files");
        let (directory, name) = Directory::around(&base.join("f")).expect("a directory");
        let file = directory.create_file(&name, OFlags::empty()).expect("a new file");
        assert!(directory.create_file(&name, OFlags::empty()).is_err(), "it is there");
        std::fs::hard_link(base.join("f"), base.join("second")).expect("a second name");
        assert!(directory.open_file(&name, OFlags::RDWR, false).is_err(), "it has two names");
        std::fs::remove_file(base.join("second")).expect("ours");
        assert!(directory.open_file(&name, OFlags::RDWR, false).is_ok());
        symlink(base.join("f"), base.join("link")).expect("a link");
        assert!(directory.open_file(OsStr::new("link"), OFlags::RDONLY, true).is_ok());
        assert!(directory.open_file(OsStr::new("link"), OFlags::RDONLY, false).is_err());
        assert!(directory.remove(OsStr::new("link"), None).is_err(), "a link is no file");
        mkfifoat(CWD, base.join("fifo"), FILE_MODE).expect("a FIFO");
        assert!(directory.open_file(OsStr::new("fifo"), OFlags::RDONLY, false).is_err(), "nobody is waited for");
        assert!(open_regular(&base.join("link")).is_ok());
        for (path, kind) in
            [(base.join("fifo"), "a named pipe"), (base.clone(), "a directory"), ("/dev/zero".into(), "a device")]
        {
            let error = open_regular(&path).expect_err("not a regular file").to_string();
            assert!(error.contains(kind), "{error}");
        }
        std::fs::rename(base.join("f"), base.join("gone")).expect("ours");
        std::fs::write(base.join("f"), "another").expect("a file");
        assert!(directory.remove(&name, Some(&file)).is_err(), "another has its name");
        assert!(directory.remove(&name, None).is_ok());
        std::fs::remove_dir_all(&base).expect("ours");
    }
}
