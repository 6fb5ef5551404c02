//! `listed`: the starts of a given list, one after another.
//!
//! Purpose: to ask for exactly what somebody else asked for. Several streams begin equal parts of the list apart and run
//! through all of it.
//!
//! Invariants: no random word is drawn; a stream that has come to the list's end goes on at its beginning.

use super::AddressSpace;
use crate::error::{join, SpecError};
use raidlab_types::Lba;
use std::sync::Arc;

/// Starts from a list.
#[derive(Debug, Clone)]
pub(crate) struct AddressList {
    /// Shared by copies of the load: it may be long.
    starts: Arc<[Lba]>,
    longest: u64,
    /// Which entry is each stream's next.
    cursors: Box<[usize]>,
}

impl AddressList {
    pub(crate) fn new(key: &str, offset_bytes: &[u64], site: AddressSpace) -> Result<Self, SpecError> {
        let key = join(key, "offset_bytes");
        let sector = u64::from(site.sector_bytes);
        let start = |(index, &bytes): (usize, &u64)| {
            if bytes.is_multiple_of(sector) && bytes / sector < site.capacity_sectors {
                return Ok(bytes / sector);
            }
            let volume = site.capacity_sectors * sector;
            let message = format!("{bytes}; accepted: multiples of {sector} bytes below the volume's {volume} bytes");
            Err(SpecError::new(format!("{key}[{index}]"), message))
        };
        let starts = offset_bytes.iter().enumerate().map(start).collect::<Result<Arc<[Lba]>, _>>()?;
        let Some(last) = starts.iter().max() else {
            return Err(SpecError::new(key, "an empty list; accepted: at least one offset"));
        };
        let (length, streams) = (starts.len(), site.streams as usize);
        let cursors = (0..streams).map(|stream| stream * length / streams).collect();
        Ok(AddressList { longest: site.capacity_sectors - last, starts, cursors })
    }

    /// Behind the start that lies farthest back there must be room for it.
    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    #[inline]
    pub(crate) fn draw(&mut self, stream: u32) -> Lba {
        let cursor = &mut self.cursors[stream as usize];
        let start = self.starts[*cursor];
        *cursor = if *cursor + 1 == self.starts.len() { 0 } else { *cursor + 1 };
        start
    }
}

#[cfg(test)]
mod tests {
    use crate::address::test_support::{draw, site, starts};
    use crate::address::{Address, AddressSpace};
    use crate::spec::AddressSpec;
    use raidlab_types::Seed;

    fn listed(sectors: &[u64]) -> AddressSpec {
        AddressSpec::Listed { offset_bytes: sectors.iter().map(|sector| 512 * sector).collect() }
    }

    #[test]
    fn the_list_in_order_and_from_the_beginning_again() {
        assert_eq!(starts(&listed(&[7, 0, 7]), site(10), 3, 5), [7, 0, 7, 7, 0]);
    }

    #[test]
    fn streams_begin_apart_and_run_through_all_of_it() {
        let site = AddressSpace { sector_bytes: 512, capacity_sectors: 10, streams: 2, align_bytes: None };
        let mut address = Address::new(&listed(&[1, 2, 3, 4]), "a", site).unwrap();
        let mut draw = |stream| draw(&mut address, &mut Seed::new(1).draws(), 1, stream);
        assert_eq!([draw(0), draw(1), draw(1), draw(1), draw(0)], [1, 3, 4, 1, 2]);
    }

    #[test]
    fn a_start_that_cannot_be_is_named_with_its_place() {
        let key = |spec: &AddressSpec| Address::new(spec, "w.address", site(10)).unwrap_err().key;
        assert_eq!(key(&listed(&[])), "w.address.offset_bytes");
        assert_eq!(key(&listed(&[0, 10])), "w.address.offset_bytes[1]");
        assert_eq!(key(&AddressSpec::Listed { offset_bytes: vec![512, 0, 100] }), "w.address.offset_bytes[2]");
        assert_eq!(Address::new(&listed(&[0, 8]), "a", site(10)).unwrap().longest(), 2);
    }
}
