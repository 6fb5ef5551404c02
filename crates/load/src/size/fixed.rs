//! `fixed`: every request the same.
//!
//! Purpose: the size of most benchmarks. Invariant: a whole number of sectors that fits the volume; nothing is rounded.

use super::Room;
use crate::error::{join, whole_sectors, LoadError};

/// One size.
#[derive(Debug, Clone)]
pub(crate) struct Fixed {
    sectors: u64,
}

impl Fixed {
    pub(crate) fn new(key: &str, bytes: u64, room: Room) -> Result<Self, LoadError> {
        let sectors = whole_sectors(key, "bytes", bytes, room.sector_bytes)?;
        if sectors > room.longest_sectors {
            let most = room.longest_sectors * u64::from(room.sector_bytes);
            let message =
                format!("{bytes} bytes are more than the longest request possible; accepted: at most {most} bytes");
            return Err(LoadError::new(join(key, "bytes"), message));
        }
        Ok(Fixed { sectors })
    }

    #[inline]
    pub(crate) fn sectors(&self) -> u64 {
        self.sectors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_sectors_that_fit() {
        let room = Room { sector_bytes: 512, longest_sectors: 16 };
        assert_eq!(Fixed::new("workload.size", 8192, room).unwrap().sectors(), 16);
        for bad in [0, 8193, 100, 8704] {
            assert_eq!(Fixed::new("workload.size", bad, room).unwrap_err().key, "workload.size.bytes");
        }
    }
}
