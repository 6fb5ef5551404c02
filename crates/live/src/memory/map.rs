//! Anonymous memory straight from the kernel: page-aligned, zeroed, returned on drop.

use memmap2::{Advice, MmapMut, MmapRaw};
use raidlab_types::number::usize_from;
use std::io;

/// A private anonymous mapping.
#[derive(Debug)]
pub(crate) struct MemoryMapping(MmapRaw);

impl MemoryMapping {
    /// `len` bytes of zeroes, in huge pages where the kernel likes.
    pub(crate) fn new(len: usize) -> io::Result<MemoryMapping> {
        let mapping = MmapMut::map_anon(len)?;
        // Advice may be refused without harm.
        let _ = mapping.advise(Advice::HugePage);
        assert!(mapping.as_ptr().addr().is_multiple_of(super::PAGE_BYTES), "the kernel maps whole pages");
        Ok(MemoryMapping(mapping.into()))
    }

    /// First byte.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    /// First of `bytes` bytes from byte `offset` on.
    ///
    /// # Panics
    /// When they do not lie within the mapping.
    #[inline]
    pub(crate) fn at(&self, offset: u64, bytes: usize) -> *mut u8 {
        let fits = usize::try_from(offset).is_ok_and(|offset| offset <= self.len() && bytes <= self.len() - offset);
        assert!(fits, "{bytes} bytes from byte {offset} on lie beyond a mapping of {} bytes", self.len());
        self.as_ptr().wrapping_add(usize_from(offset))
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All of its bytes.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped, initialised (zeroes), and borrowed exclusively through `self`.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_within_a_mapping_have_an_address() {
        let mapping = MemoryMapping::new(8192).expect("memory");
        assert_eq!(mapping.at(4096, 4096), mapping.as_ptr().wrapping_add(4096));
        assert_eq!(mapping.at(8192, 0), mapping.as_ptr().wrapping_add(8192));
        for (offset, bytes) in [(4096, 4097), (8193, 0), (u64::MAX, 1), (1, usize::MAX)] {
            let asked = std::panic::catch_unwind(|| mapping.at(offset, bytes));
            assert!(asked.is_err(), "{bytes} bytes from {offset} on");
        }
    }
}
