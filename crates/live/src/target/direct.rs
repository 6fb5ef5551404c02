//! O_DIRECT where the target allows it: asked of the kernel, then tried.

use crate::memory::{MemoryMapping, PAGE_BYTES};
use raidlab_types::number::u32_from;
use rustix::fs::{fcntl_getfl, fcntl_setfl, OFlags};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use tracing::debug;

/// How a target is read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Past the page cache, in multiples of this.
    Direct {
        /// Least multiple of offsets, lengths and addresses.
        align_bytes: u32,
    },
    /// Through the page cache.
    Buffered,
}

/// Switches `file` to O_DIRECT if reading a page of it that way works; else, or if it is to be `buffered`, leaves it so.
pub(crate) fn enable(file: &File, buffered: bool) -> Access {
    if buffered {
        return Access::Buffered;
    }
    let align_bytes = match statx_alignment(file) {
        Some(0) => {
            debug!("the file system has no direct I/O on this file, falling back to the page cache");
            return Access::Buffered;
        }
        Some(align) if align as usize <= PAGE_BYTES => align,
        // Unknown, or larger than any buffer's alignment: a page is tried.
        _ => u32_from(PAGE_BYTES),
    };
    if !set_direct(file, true) {
        debug!("O_DIRECT is refused, falling back to the page cache");
        return Access::Buffered;
    }
    if !can_read(file) {
        debug!("a page cannot be read with O_DIRECT, falling back to the page cache");
        set_direct(file, false);
        return Access::Buffered;
    }
    Access::Direct { align_bytes }
}

/// What the file system says about direct I/O: 0 for "not on this file", none where it says nothing.
fn statx_alignment(file: &File) -> Option<u32> {
    // SAFETY: all zeroes is a valid `statx`, and the call writes at most that.
    let (result, answer) = unsafe {
        let mut answer: libc::statx = std::mem::zeroed();
        let empty = c"".as_ptr();
        (libc::statx(file.as_raw_fd(), empty, libc::AT_EMPTY_PATH, libc::STATX_DIOALIGN, &mut answer), answer)
    };
    let answered = result == 0 && answer.stx_mask & libc::STATX_DIOALIGN != 0;
    answered.then(|| match answer.stx_dio_offset_align {
        0 => 0,
        offset => offset.max(answer.stx_dio_mem_align).max(512),
    })
}

/// Least multiple of offsets, lengths and addresses with O_DIRECT: what the file system says, or a page.
pub(crate) fn alignment(file: &File) -> u32 {
    statx_alignment(file).filter(|&align| align > 0).unwrap_or(u32_from(PAGE_BYTES))
}

/// Switches O_DIRECT on or off; whether the file system took it.
fn set_direct(file: &File, on: bool) -> bool {
    let set = |mut flags: OFlags| {
        flags.set(OFlags::DIRECT, on);
        fcntl_setfl(file, flags)
    };
    fcntl_getfl(file).and_then(set).is_ok()
}

fn can_read(file: &File) -> bool {
    MemoryMapping::new(PAGE_BYTES).and_then(|mut page| file.read_at(page.bytes_mut(), 0)).is_ok()
}
