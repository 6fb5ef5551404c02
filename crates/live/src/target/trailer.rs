//! The last page of every file raidlab makes: by it the file is known as ours.
//!
//! Purpose: "files are only overwritten when raidlab made them". The mark is in the file itself, so that it survives
//! renaming, copying and file systems without extended attributes; it lies at the end, so that the member's sectors
//! begin at 0.
//!
//! Invariants:
//! - `filled` is written only after every byte before the trailer is.
//! - `stamped` is taken back before anything is written that has no stamp of raidlab's.

use crate::memory::PAGE_BYTES;

/// Length of the trailer.
pub(super) const TRAILER_BYTES: u64 = PAGE_BYTES as u64;

const MAGIC: &[u8; 32] = b"raidlab member file, version 1\n\0";

/// What a trailer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trailer {
    /// Bytes before the trailer.
    pub data_bytes: u64,
    /// Whether they have been filled.
    pub filled: bool,
    /// What is known of every sector, if anything is.
    pub stamped: Option<StampedSectors>,
}

/// All sectors of a target bear stamps of raidlab's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StampedSectors {
    /// A stamp begins every so many bytes.
    pub sector_bytes: u32,
    /// Each names the very place where it lies, not that of an array over it.
    pub placed: bool,
}

impl Trailer {
    pub(super) fn encode(self) -> [u8; PAGE_BYTES] {
        let mut page = [0; PAGE_BYTES];
        page[..32].copy_from_slice(MAGIC);
        page[32..40].copy_from_slice(&self.data_bytes.to_le_bytes());
        page[40] = u8::from(self.filled);
        if let Some(stamped) = self.stamped {
            page[41] = u8::from(stamped.placed);
            page[44..48].copy_from_slice(&stamped.sector_bytes.to_le_bytes());
        }
        page
    }

    /// The trailer of a file of `file_bytes`, if this is one.
    pub(super) fn decode(page: &[u8], file_bytes: u64) -> Option<Trailer> {
        if page.len() < PAGE_BYTES || &page[..32] != MAGIC {
            return None;
        }
        let data_bytes = u64::from_le_bytes(page[32..40].try_into().ok()?);
        let sector_bytes = u32::from_le_bytes(page[44..48].try_into().ok()?);
        // Files of versions that knew nothing of this have zeroes there.
        let stamped = (sector_bytes > 0).then_some(StampedSectors { sector_bytes, placed: page[41] == 1 });
        let trailer = Trailer { data_bytes, filled: page[40] == 1, stamped };
        (data_bytes.checked_add(TRAILER_BYTES)? == file_bytes).then_some(trailer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_and_fitting_trailer_is_known() {
        let stamped = Some(StampedSectors { sector_bytes: 4096, placed: true });
        let trailer = Trailer { data_bytes: 8192, filled: true, stamped };
        let mut page = trailer.encode();
        assert_eq!(Trailer::decode(&page, 12288), Some(trailer));
        assert_eq!(Trailer::decode(&page, 16384), None, "the file was resized by someone else");
        page[3] ^= 1;
        assert_eq!(Trailer::decode(&page, 12288), None);
    }
}
