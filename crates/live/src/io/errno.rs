//! What the system's error numbers mean to a run.
//!
//! - On a read, EIO, ENODATA and EILSEQ are unreadable sectors: how Linux reports BLK_STS_IOERR, BLK_STS_MEDIUM and
//!   BLK_STS_PROTECTION. An array loses this extent of the member.
//! - ENOSPC, EINVAL and others say "the run is set up wrongly": they end it with one sentence.
//! - Everything else (ENODEV, ENXIO, EIO on a write, ...) means that the device is gone.
//!
//! A plain target has nothing to make good for it: there every error but "again" ends the run.

use raidlab_types::OpKind;

/// What to make of an error number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Try once more.
    Again,
    /// Sectors that cannot be read.
    Unreadable,
    /// The device answers no more.
    Gone,
    /// No failure of a device: the run cannot go on.
    Fatal,
}

/// What `errno` means for an operation of this kind.
pub(crate) fn meaning(kind: OpKind, errno: i32) -> Meaning {
    use libc::*;
    match errno {
        EAGAIN | EINTR => Meaning::Again,
        EIO | ENODATA | EILSEQ if kind == OpKind::Read => Meaning::Unreadable,
        ENOSPC | EDQUOT | EFBIG | EINVAL | EPERM | EACCES | EROFS | EBADF | EFAULT | ENOMEM | EOPNOTSUPP
        | EOVERFLOW => Meaning::Fatal,
        _ => Meaning::Gone,
    }
}

/// What was being done, for a sentence.
pub(crate) fn verb(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Read => "reading",
        OpKind::Write => "writing",
        OpKind::Flush => "flushing",
        OpKind::Discard => "discarding",
        OpKind::WriteZeroes => "writing zeroes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_mean_what_the_kernel_means() {
        assert_eq!(meaning(OpKind::Read, libc::EIO), Meaning::Unreadable);
        assert_eq!(meaning(OpKind::Write, libc::EIO), Meaning::Gone);
        assert_eq!(meaning(OpKind::Read, libc::ENODEV), Meaning::Gone);
        assert_eq!(meaning(OpKind::Write, libc::ENOSPC), Meaning::Fatal);
        assert_eq!(meaning(OpKind::Read, libc::EAGAIN), Meaning::Again);
    }
}
