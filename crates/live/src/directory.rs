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

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Names of the folders that raidlab makes for members begin with this (`python/raidlab/run/members.py`).
const OWN_FOLDER: &[u8] = b"raidlab-members-";
const FILE_MODE: libc::mode_t = 0o600;
const CHILD_MODE: libc::mode_t = 0o700;

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
        let start =
            Directory { file: open_at(libc::AT_FDCWD, outside.as_os_str(), libc::O_PATH | libc::O_DIRECTORY, 0)? };
        path.components().skip_while(|part| !is_own(part)).try_fold(start, |at, part| at.child(part.as_os_str()))
    }

    /// The directory that a file's path names, and the file's name in it.
    pub(crate) fn around(path: &Path) -> io::Result<(Directory, OsString)> {
        let Some(name) = path.file_name() else { return Err(io::Error::from_raw_os_error(libc::EISDIR)) };
        Ok((Directory::open(path.parent().unwrap_or(Path::new("")))?, name.to_os_string()))
    }

    /// A directory in it; a link to one is none.
    pub(crate) fn child(&self, name: &OsStr) -> io::Result<Directory> {
        Ok(Directory { file: self.open_at(name, libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW)? })
    }

    /// Makes a directory whose name is free.
    pub(crate) fn make_child(&self, name: &OsStr) -> io::Result<()> {
        let name = c_string(name)?;
        // SAFETY: the name ends with a zero, and the descriptor is open.
        done(unsafe { libc::mkdirat(self.file.as_raw_fd(), name.as_ptr(), CHILD_MODE) })
    }

    /// Opens a regular file that is there; `access` is `O_RDONLY` or `O_RDWR`, and a link may be followed to read only.
    pub(crate) fn open_file(&self, name: &OsStr, access: libc::c_int, follow: bool) -> io::Result<File> {
        assert!(!follow || access == libc::O_RDONLY, "nothing is written through a link");
        let link = if follow { 0 } else { libc::O_NOFOLLOW };
        // Without waiting for whoever may be at the other end of a FIFO.
        let file = self.open_at(name, access | link | libc::O_NONBLOCK)?;
        let status = file.metadata()?;
        if !status.is_file() {
            return Err(io::Error::other("is not a regular file"));
        }
        if access != libc::O_RDONLY && status.nlink() > 1 {
            return Err(io::Error::other("has a second name (a hard link) elsewhere, so it is not written"));
        }
        // io_uring would give up on a regular file, too, rather than wait.
        // SAFETY: flags of an open descriptor; no memory is involved.
        done(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, access) })?;
        Ok(file)
    }

    /// Makes a file whose name is free, for reading and writing.
    pub(crate) fn create_file(&self, name: &OsStr, flags: libc::c_int) -> io::Result<File> {
        self.open_at(name, flags | libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW)
    }

    /// What a name stands for, be it a link.
    pub(crate) fn status(&self, name: &OsStr) -> io::Result<Metadata> {
        self.open_at(name, libc::O_PATH | libc::O_NOFOLLOW)?.metadata()
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
        self.unlink(name, 0)
    }

    /// Removes an empty directory.
    pub(crate) fn remove_child(&self, name: &OsStr) -> io::Result<()> {
        self.unlink(name, libc::AT_REMOVEDIR)
    }

    /// The names of all that is in it.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let entries = std::fs::read_dir(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?;
        entries.map(|entry| Ok(entry?.file_name())).collect()
    }

    /// Whether it is this user's, by the name that its file system gives this user (NFS, FUSE, FAT).
    pub(crate) fn is_own(&self) -> io::Result<bool> {
        let owner = self.file.metadata()?.uid();
        // SAFETY: no memory is involved.
        if owner == unsafe { libc::geteuid() } {
            return Ok(true);
        }
        let name = OsString::from(format!(".raidlab-{}", std::process::id()));
        let Ok(probe) = self.create_file(&name, 0) else { return Ok(false) };
        self.remove(&name, Some(&probe))?;
        Ok(probe.metadata()?.uid() == owner)
    }

    fn open_at(&self, name: &OsStr, flags: libc::c_int) -> io::Result<File> {
        assert!(Path::new(name).components().count() == 1, "one name, no path");
        open_at(self.file.as_raw_fd(), name, flags, FILE_MODE)
    }

    fn unlink(&self, name: &OsStr, flags: libc::c_int) -> io::Result<()> {
        let name = c_string(name)?;
        // SAFETY: the name ends with a zero, and the descriptor is open.
        done(unsafe { libc::unlinkat(self.file.as_raw_fd(), name.as_ptr(), flags) })
    }
}

fn open_at(at: libc::c_int, name: &OsStr, flags: libc::c_int, mode: libc::mode_t) -> io::Result<File> {
    let name = c_string(name)?;
    loop {
        // SAFETY: the name ends with a zero; `at` is an open directory or AT_FDCWD.
        let opened = unsafe { libc::openat(at, name.as_ptr(), flags | libc::O_CLOEXEC | libc::O_NOCTTY, mode) };
        match done(opened) {
            // SAFETY: just opened, and nobody else's.
            Ok(()) => return Ok(unsafe { File::from_raw_fd(opened) }),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

fn c_string(name: &OsStr) -> io::Result<CString> {
    CString::new(name.as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

fn done(result: libc::c_int) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let file = directory.create_file(&name, 0).expect("a new file");
        assert!(directory.create_file(&name, 0).is_err(), "it is there");
        std::fs::hard_link(base.join("f"), base.join("second")).expect("a second name");
        assert!(directory.open_file(&name, libc::O_RDWR, false).is_err(), "it has two names");
        std::fs::remove_file(base.join("second")).expect("ours");
        assert!(directory.open_file(&name, libc::O_RDWR, false).is_ok());
        symlink(base.join("f"), base.join("link")).expect("a link");
        assert!(directory.open_file(OsStr::new("link"), libc::O_RDONLY, true).is_ok());
        assert!(directory.open_file(OsStr::new("link"), libc::O_RDONLY, false).is_err());
        assert!(directory.remove(OsStr::new("link"), None).is_err(), "a link is no file");
        let fifo = CString::new(base.join("fifo").as_os_str().as_bytes()).expect("a name");
        // SAFETY: the name ends with a zero.
        done(unsafe { libc::mkfifo(fifo.as_ptr(), FILE_MODE) }).expect("a FIFO");
        assert!(directory.open_file(OsStr::new("fifo"), libc::O_RDONLY, false).is_err(), "nobody is waited for");
        std::fs::rename(base.join("f"), base.join("gone")).expect("ours");
        std::fs::write(base.join("f"), "another").expect("a file");
        assert!(directory.remove(&name, Some(&file)).is_err(), "another has its name");
        assert!(directory.remove(&name, None).is_ok());
        std::fs::remove_dir_all(&base).expect("ours");
    }
}
