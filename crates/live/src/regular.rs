//! Files that somebody else named: opened only if they are regular ones.
//!
//! Invariant: nothing here waits. To open a named pipe is to wait for its writer, perhaps for ever, and a device may have
//! no end. What was opened is what is looked at, so it makes no difference what the name means a moment later.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file to read.
///
/// # Errors
///
/// When it cannot be opened, or is a directory, a pipe, a device or a socket.
pub fn open_regular(path: &Path) -> Result<File> {
    // To a regular file the flag means nothing.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let name = match kind {
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a named pipe",
        kind if kind.is_block_device() || kind.is_char_device() => "a device",
        _ => "something else",
    };
    Err(Error::new(ErrorKind::InvalidInput, format!("it is {name}, not a regular file")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{mkfifoat, Mode, CWD};

    #[test]
    fn only_regular_files_are_opened_and_none_is_waited_for() {
        let folder = std::env::temp_dir().join(format!("raidlab-regular-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("pipe");
        mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        let file = folder.join("file");
        std::fs::write(&file, b"text").unwrap();
        assert!(open_regular(&file).is_ok());
        for (path, kind) in [(&pipe, "a named pipe"), (&folder, "a directory"), (&"/dev/zero".into(), "a device")] {
            let told = open_regular(path).unwrap_err().to_string();
            assert!(told.contains(kind), "{told}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
