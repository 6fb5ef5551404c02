//! Memory that one thread lends to another until that has answered.

/// An address and a length that may go to another thread. Safe code can do nothing with it but look at the numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LentMemory {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: sending it sends two numbers. Whoever reads or writes there does so in unsafe code, by the promise of `LentMemory::new`.
unsafe impl Send for LentMemory {}

impl LentMemory {
    /// No memory, for requests that move none.
    pub(crate) const NONE: LentMemory = LentMemory { start: std::ptr::null_mut(), bytes: 0 };

    /// Lends `bytes` bytes from `start` on.
    ///
    /// # Safety
    /// Until the thread that it is sent to has answered, or has ended, the memory stays valid and nobody else touches it;
    /// if the request only reads it (a write to a disk), others may read it too.
    pub(crate) unsafe fn new(start: *mut u8, bytes: usize) -> LentMemory {
        assert!(!start.is_null() || bytes == 0, "{bytes} bytes at no address");
        LentMemory { start, bytes }
    }

    /// First byte.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }
}
