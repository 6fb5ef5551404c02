//! The stamp at the head of every sector written: who wrote it, to which place, as which write.
//!
//! Purpose: no two sectors written are alike, however often a buffer of random bytes is used again; and a sector read
//! tells which write made it. Four words cost a few nanoseconds a sector.
//!
//! Invariants: the stamp is the first [`STAMP_BYTES`] of a sector, little-endian: place, sequence, seed, check. The check
//! is a hash of the other three. With `whole`, the rest of the sector is a function of the check, so that a wrong byte
//! anywhere is found. Where random bytes are written again and again under new stamps, the stamp is followed by a sum of
//! the bytes after it ([`seal`]), made once when they are: so a wrong byte there is found too, and a write costs no more.

use raidlab_types::number::u64_from;
use raidlab_types::{Lba, Seed};

/// Bytes of a stamp.
pub(crate) const STAMP_BYTES: usize = 32;
/// Where what the sum is of begins.
const BODY: usize = STAMP_BYTES + 8;

/// Writes and reads stamps of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamper {
    seed: u64,
    sector_bytes: usize,
}

/// What a sector turned out to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SectorContent {
    /// Write number so and so to this very place.
    Write(u64),
    /// A sound stamp of another place.
    OtherPlace { volume: u32, lba: Lba, sequence: u64 },
    /// The stamp is sound, a byte after it is not.
    Torn { sequence: u64, at: usize },
    /// Nothing this run has written.
    Foreign,
}

/// A sector of sealed random bytes, read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SealedSector {
    /// Stamp and body are sound.
    Sound(Stamp),
    /// The stamp is sound, the body is not what was written with it.
    Torn(Stamp),
    /// Nothing but zeros.
    Zeros,
    /// No stamp.
    Foreign,
}

/// What a stamp says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub seed: u64,
    pub volume: u32,
    pub lba: Lba,
    pub sequence: u64,
}

/// Puts the sum of each sector's body where its stamp ends; whatever stamp it gets, it holds.
pub(crate) fn seal(bytes: &mut [u8], sector_bytes: usize) {
    assert!(sector_bytes > BODY && sector_bytes.is_power_of_two());
    for sector in bytes.chunks_exact_mut(sector_bytes) {
        let sum = sum(&sector[BODY..]);
        sector[STAMP_BYTES..BODY].copy_from_slice(&sum.to_le_bytes());
    }
}

/// A sum that every byte changes; four lanes, so that the processor works on several words at once.
fn sum(body: &[u8]) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let step = |lane: u64, bytes: &[u8]| (lane ^ word(bytes, 0)).wrapping_mul(ODD).rotate_left(29);
    let mut lanes = [1u64, 2, 3, 4];
    let mut pieces = body.chunks_exact(32);
    for piece in pieces.by_ref() {
        for (lane, bytes) in lanes.iter_mut().zip(piece.chunks_exact(8)) {
            *lane = step(*lane, bytes);
        }
    }
    let rest = pieces.remainder().chunks_exact(8);
    debug_assert!(rest.remainder().is_empty(), "sectors are whole words");
    let all = lanes.iter().fold(0, |all: u64, lane| step(all, &lane.to_le_bytes()));
    rest.fold(all, step)
}

impl Stamper {
    pub(crate) fn new(seed: u64, sector_bytes: u32) -> Stamper {
        Stamper { seed, sector_bytes: sector_bytes as usize }
    }

    /// Stamps every sector of `bytes`, which begin at `lba`, and leaves the rest of each as it is.
    #[inline]
    pub(crate) fn stamp(&self, bytes: &mut [u8], volume: u32, lba: Lba, sequence: u64) {
        for (i, sector) in bytes.chunks_exact_mut(self.sector_bytes).enumerate() {
            self.head(sector, volume, lba + i as u64, sequence);
        }
    }

    /// Makes every byte of every sector of `bytes`, which begin at `lba`.
    pub(crate) fn stamp_whole(&self, bytes: &mut [u8], volume: u32, lba: Lba, sequence: u64) {
        for (i, sector) in bytes.chunks_exact_mut(self.sector_bytes).enumerate() {
            let check = self.head(sector, volume, lba + i as u64, sequence);
            let mut body = Seed::new(check).draws();
            let words = sector[STAMP_BYTES..].chunks_exact_mut(8);
            words.for_each(|word| word.copy_from_slice(&body.next_u64().to_le_bytes()));
        }
    }

    /// What one sector, made by [`Self::stamp_whole`], holds.
    pub(crate) fn read_whole(&self, sector: &[u8], volume: u32, lba: Lba) -> SectorContent {
        let Some((stamp, check)) = stamp_at(sector).filter(|(stamp, _)| stamp.seed == self.seed) else {
            return SectorContent::Foreign;
        };
        let sequence = stamp.sequence;
        if (stamp.volume, stamp.lba) != (volume, lba) {
            return SectorContent::OtherPlace { volume: stamp.volume, lba: stamp.lba, sequence };
        }
        let mut body = Seed::new(check).draws();
        let words = sector[STAMP_BYTES..].chunks_exact(8);
        match words.into_iter().position(|word| word != body.next_u64().to_le_bytes()) {
            Some(at) => SectorContent::Torn { sequence, at: STAMP_BYTES + at * 8 },
            None => SectorContent::Write(sequence),
        }
    }

    /// The stamper of a run that must know its own sectors from those of every other, even of one with the same seed.
    pub(crate) fn of_this_run(seed: u64, sector_bytes: u32) -> Stamper {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let moment = Seed::new(u64_from(since.as_nanos())).child(u64::from(std::process::id()));
        Stamper::new(Seed::new(seed).child(moment.as_u64()).as_u64(), sector_bytes)
    }

    pub(crate) fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// What one sector holds that was sealed and stamped, by whatever run.
    pub(crate) fn read_sealed(&self, sector: &[u8]) -> SealedSector {
        assert_eq!(sector.len(), self.sector_bytes);
        match stamp_at(sector) {
            Some((stamp, _)) if word(sector, STAMP_BYTES / 8) == sum(&sector[BODY..]) => SealedSector::Sound(stamp),
            Some((stamp, _)) => SealedSector::Torn(stamp),
            None if sector.chunks_exact(8).all(|word| word == [0; 8]) => SealedSector::Zeros,
            None => SealedSector::Foreign,
        }
    }

    #[inline]
    fn head(&self, sector: &mut [u8], volume: u32, lba: Lba, sequence: u64) -> u64 {
        let place = place_of(volume, lba);
        let check = check_of(place, sequence, self.seed);
        for (i, word) in [place, sequence, self.seed, check].into_iter().enumerate() {
            sector[i * 8..i * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        check
    }
}

#[inline]
fn check_of(place: u64, sequence: u64, seed: u64) -> u64 {
    Seed::new(place.rotate_left(23) ^ sequence.wrapping_mul(0xD1B5_4A32_D192_ED03) ^ seed).as_u64()
}

/// What the sound stamp at the head of a sector says, and its check.
fn stamp_at(sector: &[u8]) -> Option<(Stamp, u64)> {
    let [place, sequence, seed, check] = [0, 1, 2, 3].map(|i| word(sector, i));
    let stamp = Stamp { seed, volume: (place >> 48) as u32, lba: place & ((1 << 48) - 1), sequence };
    (check == check_of(place, sequence, seed)).then_some((stamp, check))
}

/// Word `i` of some bytes.
fn word(bytes: &[u8], i: usize) -> u64 {
    u64::from_le_bytes(bytes[i * 8..i * 8 + 8].try_into().expect("eight bytes"))
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
        assert_eq!(stamper.read_whole(&bytes[512..], 2, 41), SectorContent::Write(9));
        assert_eq!(
            stamper.read_whole(&bytes[512..], 2, 40),
            SectorContent::OtherPlace { volume: 2, lba: 41, sequence: 9 }
        );
        bytes[511] ^= 1;
        assert_eq!(stamper.read_whole(&bytes[..512], 2, 40), SectorContent::Torn { sequence: 9, at: 504 });
        bytes[8] ^= 1;
        assert_eq!(stamper.read_whole(&bytes[..512], 2, 40), SectorContent::Foreign);
        assert_eq!(Stamper::new(8, 512).read_whole(&bytes[512..], 2, 41), SectorContent::Foreign);
    }

    #[test]
    fn a_sealed_sector_tells_every_wrong_byte_under_any_stamp() {
        let stamper = Stamper::new(7, 512);
        let mut bytes: Vec<u8> = (0..1024u32).map(|i| (i * 7 + i / 256) as u8).collect();
        seal(&mut bytes, 512);
        for sequence in [1, 2] {
            stamper.stamp(&mut bytes, 3, 10, sequence);
            let stamp = Stamp { seed: 7, volume: 3, lba: 11, sequence };
            assert_eq!(Stamper::new(8, 512).read_sealed(&bytes[512..]), SealedSector::Sound(stamp));
            for at in 512..1024 {
                bytes[at] ^= 0x40;
                let expected = if at < 512 + STAMP_BYTES { SealedSector::Foreign } else { SealedSector::Torn(stamp) };
                assert_eq!(stamper.read_sealed(&bytes[512..]), expected, "byte {at}");
                bytes[at] ^= 0x40;
            }
        }
        assert_eq!(stamper.read_sealed(&[0; 512]), SealedSector::Zeros);
        assert_eq!(stamper.read_sealed(&[1; 512]), SealedSector::Foreign);
    }

    #[test]
    fn two_runs_of_one_seed_have_stamps_of_their_own() {
        let first = Stamper::of_this_run(1, 512);
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert_ne!(first.seed, Stamper::of_this_run(1, 512).seed);
    }

    #[test]
    fn a_stamp_alone_leaves_the_rest() {
        let mut bytes = vec![0xEE; 1024];
        Stamper::new(7, 512).stamp(&mut bytes, 0, 0, 1);
        assert!(bytes[STAMP_BYTES..512].iter().all(|&b| b == 0xEE));
        assert_ne!(bytes[..STAMP_BYTES], bytes[512..512 + STAMP_BYTES]);
    }
}
