//! `sequential`: one request after another, in streams.
//!
//! Purpose: scans and copies, the transfers of Uselton (2000). Each volume is divided equally among its streams; a stream
//! runs through its own part from front to back and begins again.
//!
//! Invariants: no random word is drawn; within a stream requests leave no gap but what the alignment asks for, and never
//! cross into the next stream's part.

use super::AddressSpace;
use crate::error::{join, SpecError};
use raidlab_types::Lba;

/// Sequential starts.
#[derive(Debug, Clone)]
pub(crate) struct Sequential {
    align_sectors: u64,
    /// Length of a stream's part, a multiple of the alignment.
    part_sectors: u64,
    /// Where each stream goes on, from the beginning of its part.
    cursors: Box<[u64]>,
}

impl Sequential {
    pub(crate) fn new(key: &str, site: AddressSpace) -> Result<Self, SpecError> {
        let align_sectors = site.align()?;
        let streams = u64::from(site.streams);
        // The only stream owns all of the volume, an unaligned remainder included.
        let part_sectors = match streams {
            1 => site.capacity_sectors,
            _ => site.capacity_sectors / streams / align_sectors * align_sectors,
        };
        if part_sectors == 0 {
            let most = site.capacity_sectors / align_sectors;
            let message = format!("{streams} streams leave no aligned place for each; accepted: at most {most}");
            return Err(SpecError::new(join(key, "streams"), message));
        }
        Ok(Sequential { align_sectors, part_sectors, cursors: vec![0; site.streams as usize].into() })
    }

    pub(crate) fn longest(&self) -> u64 {
        self.part_sectors
    }

    #[inline]
    pub(crate) fn draw(&mut self, sectors: u64, stream: u32) -> Lba {
        let cursor = &mut self.cursors[stream as usize];
        let start = if *cursor + sectors <= self.part_sectors { *cursor } else { 0 };
        *cursor = start + sectors;
        // Sizes are mostly multiples of the alignment already; a remainder costs a division only where there is one.
        if self.align_sectors > 1 {
            *cursor = cursor.next_multiple_of(self.align_sectors);
        }
        u64::from(stream) * self.part_sectors + start
    }
}

#[cfg(test)]
mod tests {
    use crate::address::test_support::{draw, site, starts};
    use crate::address::{Address, AddressSpace};
    use crate::spec::AddressSpec;
    use raidlab_types::Seed;

    #[test]
    fn a_stream_wraps_where_the_next_request_no_longer_fits() {
        let spec = AddressSpec::Sequential { streams: 1 };
        assert_eq!(starts(&spec, site(10), 3, 5), [0, 3, 6, 0, 3]);
        let aligned = AddressSpace { align_bytes: Some(2048), ..site(12) };
        assert_eq!(starts(&spec, aligned, 3, 4), [0, 4, 8, 0]);
    }

    #[test]
    fn streams_keep_to_their_parts() {
        let spec = AddressSpec::Sequential { streams: 3 };
        let site = AddressSpace { sector_bytes: 512, capacity_sectors: 32, streams: 3, align_bytes: Some(1024) };
        let mut address = Address::new(&spec, "a", site).unwrap();
        let mut rng = Seed::new(1).draws();
        let mut draw = |stream| draw(&mut address, &mut rng, 4, stream);
        assert_eq!([draw(0), draw(2), draw(1), draw(2), draw(2), draw(0)], [0, 20, 10, 24, 20, 4]);
    }

    #[test]
    fn more_streams_than_places_are_refused() {
        let spec = AddressSpec::Sequential { streams: 5 };
        let site = AddressSpace { sector_bytes: 512, capacity_sectors: 9, streams: 5, align_bytes: Some(1024) };
        assert_eq!(Address::new(&spec, "w.address", site).unwrap_err().key, "w.address.streams");
    }
}
