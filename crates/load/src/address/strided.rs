//! `strided`: a fixed distance from start to start.
//!
//! Purpose: access patterns that hit the same member again and again, or skip through a file. Several streams begin
//! equal parts of the volume apart (as `sequential` does) but run through all of it.
//!
//! Invariants: no random word is drawn; the stride is a multiple of the alignment; where the next request no longer
//! fits, the stream begins again at the volume's beginning.

use super::AddressSpace;
use crate::error::{join, SpecError};
use raidlab_types::Lba;

/// Strided starts.
#[derive(Debug, Clone)]
pub(crate) struct Strided {
    stride_sectors: u64,
    capacity_sectors: u64,
    /// Where each stream goes on.
    cursors: Box<[u64]>,
}

impl Strided {
    pub(crate) fn new(key: &str, stride_bytes: u64, site: AddressSpace) -> Result<Self, SpecError> {
        let stride_sectors = site.length(key, "stride", stride_bytes)?;
        let align = site.align()?;
        if !stride_sectors.is_multiple_of(align) {
            let align = align * u64::from(site.sector_bytes);
            let message = format!("{stride_bytes} bytes are not aligned; accepted: a multiple of {align} bytes");
            return Err(SpecError::new(join(key, "stride"), message));
        }
        let part = site.capacity_sectors / u64::from(site.streams) / align * align;
        let cursors = (0..u64::from(site.streams)).map(|stream| stream * part).collect();
        Ok(Strided { stride_sectors, capacity_sectors: site.capacity_sectors, cursors })
    }

    pub(crate) fn longest(&self) -> u64 {
        self.capacity_sectors
    }

    #[inline]
    pub(crate) fn draw(&mut self, sectors: u64, stream: u32) -> Lba {
        let cursor = &mut self.cursors[stream as usize];
        let start = if *cursor + sectors <= self.capacity_sectors { *cursor } else { 0 };
        *cursor = start + self.stride_sectors;
        start
    }
}

#[cfg(test)]
mod tests {
    use crate::address::test_support::{site, starts};
    use crate::address::{Address, AddressSpace};
    use crate::spec::AddressSpec;

    #[test]
    fn starts_are_a_stride_apart() {
        let spec = AddressSpec::Strided { stride_bytes: 2048 };
        assert_eq!(starts(&spec, site(13), 2, 5), [0, 4, 8, 0, 4]);
    }

    #[test]
    fn the_stride_is_a_multiple_of_the_alignment() {
        let spec = AddressSpec::Strided { stride_bytes: 1536 };
        let site = AddressSpace { align_bytes: Some(1024), ..site(13) };
        assert_eq!(Address::new(&spec, "a", site).unwrap_err().key, "a.stride");
    }
}
