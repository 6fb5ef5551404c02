//! Anonymous memory straight from the kernel: page-aligned, zeroed, returned on drop.

use std::io;
use std::ptr::NonNull;

/// A private anonymous mapping.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is owned memory without ties to a thread.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference gives no more than the address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `len` bytes of zeroes, in huge pages where the kernel likes.
    pub fn new(len: usize) -> io::Result<Mapping> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping touches no memory that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the range was just mapped. Advice may be refused without harm.
        unsafe { libc::madvise(start, len, libc::MADV_HUGEPAGE) };
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Mapping { start, len })
    }

    /// First byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The whole of it.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped, initialised (zeroes), and borrowed exclusively through `self`.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and is unmapped once.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
