//! The stamp at the head of every sector written: who wrote it, to which place, as which write.
//!
//! Purpose: no two sectors written are alike, however often a buffer of random bytes is used again; and a sector read
//! tells which write made it. Four words cost a few nanoseconds a sector.
//!
//! Invariants: the stamp is the first [`STAMP_BYTES`] of a sector, little-endian: place, sequence, seed, check. The check
//! is a hash of the other three. With `whole`, the rest of the sector is a function of the check, so that a wrong byte
//! anywhere is found.

use raidlab_types::{Lba, Seed};

/// Bytes of a stamp.
pub(crate) const STAMP_BYTES: usize = 32;

/// Writes and reads stamps of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamper {
    seed: u64,
    sector_bytes: usize,
}

/// What a sector turned out to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Write number so and so to this very place.
    Write(u64),
    /// A sound stamp of another place.
    OtherPlace { volume: u32, lba: Lba, sequence: u64 },
    /// The stamp is sound, a byte after it is not.
    Torn { sequence: u64, at: usize },
    /// Nothing this run has written.
    Foreign,
}

impl Stamper {
    pub fn new(seed: u64, sector_bytes: u32) -> Stamper {
        Stamper { seed, sector_bytes: sector_bytes as usize }
    }

    /// Stamps every sector of `bytes`, which begin at `lba`, and leaves the rest of each as it is.
    #[inline]
    pub fn stamp(&self, bytes: &mut [u8], volume: u32, lba: Lba, sequence: u64) {
        for (i, sector) in bytes.chunks_exact_mut(self.sector_bytes).enumerate() {
            self.head(sector, volume, lba + i as u64, sequence);
        }
    }

    /// Makes every byte of every sector of `bytes`, which begin at `lba`.
    pub fn stamp_whole(&self, bytes: &mut [u8], volume: u32, lba: Lba, sequence: u64) {
        for (i, sector) in bytes.chunks_exact_mut(self.sector_bytes).enumerate() {
            let check = self.head(sector, volume, lba + i as u64, sequence);
            let mut body = Seed::new(check).draws();
            let words = sector[STAMP_BYTES..].chunks_exact_mut(8);
            words.for_each(|word| word.copy_from_slice(&body.next_u64().to_le_bytes()));
        }
    }

    /// What one sector, made by [`Self::stamp_whole`], holds.
    pub fn read_whole(&self, sector: &[u8], volume: u32, lba: Lba) -> Found {
        let word = |i: usize| u64::from_le_bytes(sector[i * 8..i * 8 + 8].try_into().expect("eight bytes"));
        let (place, sequence, seed, check) = (word(0), word(1), word(2), word(3));
        if seed != self.seed || check != self.check(place, sequence) {
            return Found::Foreign;
        }
        if place != place_of(volume, lba) {
            let (volume, lba) = ((place >> 48) as u32, place & ((1 << 48) - 1));
            return Found::OtherPlace { volume, lba, sequence };
        }
        let mut body = Seed::new(check).draws();
        let words = sector[STAMP_BYTES..].chunks_exact(8);
        match words.into_iter().position(|word| word != body.next_u64().to_le_bytes()) {
            Some(at) => Found::Torn { sequence, at: STAMP_BYTES + at * 8 },
            None => Found::Write(sequence),
        }
    }

    #[inline]
    fn head(&self, sector: &mut [u8], volume: u32, lba: Lba, sequence: u64) -> u64 {
        let place = place_of(volume, lba);
        let check = self.check(place, sequence);
        for (i, word) in [place, sequence, self.seed, check].into_iter().enumerate() {
            sector[i * 8..i * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        check
    }

    #[inline]
    fn check(&self, place: u64, sequence: u64) -> u64 {
        Seed::new(place.rotate_left(23) ^ sequence.wrapping_mul(0xD1B5_4A32_D192_ED03) ^ self.seed).as_u64()
    }
}

/// Volumes are at most 2^16 and sectors of a volume below 2^48, so a place is one word.
#[inline]
fn place_of(volume: u32, lba: Lba) -> u64 {
    u64::from(volume) << 48 | lba
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_tells_place_sequence_and_damage() {
        let stamper = Stamper::new(7, 512);
        let mut bytes = vec![0; 1024];
        stamper.stamp_whole(&mut bytes, 2, 40, 9);
        assert_eq!(stamper.read_whole(&bytes[512..], 2, 41), Found::Write(9));
        assert_eq!(stamper.read_whole(&bytes[512..], 2, 40), Found::OtherPlace { volume: 2, lba: 41, sequence: 9 });
        bytes[511] ^= 1;
        assert_eq!(stamper.read_whole(&bytes[..512], 2, 40), Found::Torn { sequence: 9, at: 504 });
        bytes[8] ^= 1;
        assert_eq!(stamper.read_whole(&bytes[..512], 2, 40), Found::Foreign);
        assert_eq!(Stamper::new(8, 512).read_whole(&bytes[512..], 2, 41), Found::Foreign);
    }

    #[test]
    fn a_stamp_alone_leaves_the_rest() {
        let mut bytes = vec![0xEE; 1024];
        Stamper::new(7, 512).stamp(&mut bytes, 0, 0, 1);
        assert!(bytes[STAMP_BYTES..512].iter().all(|&b| b == 0xEE));
        assert_ne!(bytes[..STAMP_BYTES], bytes[512..512 + STAMP_BYTES]);
    }
}
