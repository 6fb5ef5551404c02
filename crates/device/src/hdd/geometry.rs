//! Where a sector lies: zone, cylinder, head, place on the track, and the angle at which it passes the head.
//!
//! Invariants:
//! - The mapping from address to (cylinder, head, sector) is one to one and rising: addresses run along a track, then over
//!   the heads of a cylinder, then to the next cylinder, from the outer edge in.
//! - Sectors fill `revolution - gap` of each track; angles are whole nanoseconds of rotation, and consecutive sectors
//!   share their boundary exactly, so that times are exact and not merely close.
//! - The skew of a track is a function of its place alone; from any track to the next, also across zones, it grows by the
//!   track skew (same cylinder) or the cylinder skew (next cylinder).

use super::layout::FRACTION;
use super::reciprocal::Reciprocal;
use raidlab_types::number::{u16_from, u32_from, usize_from};

/// Buckets of the index from address to zone.
const BUCKETS: u64 = 1024;

/// Consecutive cylinders with the same number of sectors a track.
#[derive(Debug, Clone)]
pub(crate) struct Zone {
    /// First sector and one past the last.
    pub first_lba: u64,
    pub end_lba: u64,
    pub first_cylinder: u32,
    /// Tracks in the zone.
    pub tracks: u64,
    /// Division by sectors a track.
    pub per_track: Reciprocal,
    /// Length of a sector in 2^-20 ns, rounded up so that the last sector ends exactly where the gap begins.
    sector_fixed: u64,
    /// Angle of sector 0 of the zone's first track, in ns.
    base_ns: u64,
    /// Skew from head to head, and from the first head of a cylinder to the first head of the next.
    track_skew_ns: u64,
    per_cylinder_ns: u64,
}

/// What a zone is made from, skews in ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ZoneInput {
    pub cylinders: u32,
    pub sectors_per_track: u32,
    pub track_skew_ns: u64,
    pub cylinder_skew_ns: u64,
}

/// A sector's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SectorPlace {
    pub cylinder: u32,
    pub head: u32,
    pub sector: u64,
    /// Index of the zone, and of the track within it.
    pub zone: usize,
    pub track: u64,
}

/// The layout of a disk.
#[derive(Debug, Clone)]
pub(crate) struct DiskGeometry {
    pub zones: Box<[Zone]>,
    pub capacity: u64,
    pub cylinders: u32,
    /// Division by heads, and by the length of a revolution in ns.
    pub heads: Reciprocal,
    pub revolution: Reciprocal,
    /// Length of a track's sectors in ns.
    pub usable_ns: u64,
    /// Zone of the first address of each bucket of 2^shift addresses.
    index: Box<[u16]>,
    index_shift: u32,
}

impl Zone {
    /// Length of the first `sectors` sectors of a track in ns.
    #[inline]
    pub(crate) fn length_ns(&self, sectors: u64) -> u64 {
        (sectors * self.sector_fixed) >> FRACTION
    }

    /// Length of a sector in 2^-20 ns.
    #[inline]
    pub(crate) fn sector_fixed(&self) -> u64 {
        self.sector_fixed
    }

    fn new(input: &ZoneInput, first_lba: u64, first_cylinder: u32, base_ns: u64, heads: u64, usable_ns: u64) -> Self {
        let tracks = u64::from(input.cylinders) * heads;
        let per_track = u64::from(input.sectors_per_track);
        Zone {
            first_lba,
            end_lba: first_lba + tracks * per_track,
            first_cylinder,
            tracks,
            per_track: Reciprocal::new(per_track),
            sector_fixed: (usable_ns << FRACTION).div_ceil(per_track),
            base_ns,
            track_skew_ns: input.track_skew_ns,
            per_cylinder_ns: (heads - 1) * input.track_skew_ns + input.cylinder_skew_ns,
        }
    }
}

impl DiskGeometry {
    /// Lays the zones out one after another. Inputs are checked by the spec: no zone is empty, and the number of zones
    /// fits 16 bits.
    pub(crate) fn new(inputs: &[ZoneInput], heads: u32, revolution_ns: u64, usable_ns: u64) -> Self {
        let revolution = Reciprocal::new(revolution_ns);
        let (mut lba, mut cylinder, mut base_ns) = (0, 0, 0);
        let mut zones = Vec::with_capacity(inputs.len());
        for input in inputs {
            let zone = Zone::new(input, lba, cylinder, base_ns, u64::from(heads), usable_ns);
            (lba, cylinder) = (zone.end_lba, cylinder + input.cylinders);
            base_ns = revolution.rem(base_ns + revolution.rem(zone.per_cylinder_ns) * u64::from(input.cylinders));
            zones.push(zone);
        }
        let index_shift = (lba.div_ceil(BUCKETS)).next_power_of_two().trailing_zeros();
        let zone_of = |bucket: u64| u16_from(zones.partition_point(|zone| zone.end_lba <= bucket << index_shift));
        let index = (0..=(lba - 1) >> index_shift).map(zone_of).collect();
        DiskGeometry {
            zones: zones.into(),
            capacity: lba,
            cylinders: cylinder,
            heads: Reciprocal::new(u64::from(heads)),
            revolution,
            usable_ns,
            index,
            index_shift,
        }
    }

    /// Where sector `lba`, which must lie on the disk, is.
    #[inline(always)]
    pub(crate) fn place(&self, lba: u64) -> SectorPlace {
        let mut zone = self.index[usize_from(lba >> self.index_shift)] as usize;
        while lba >= self.zones[zone].end_lba {
            zone += 1;
        }
        let z = &self.zones[zone];
        let (track, sector) = z.per_track.div_rem(lba - z.first_lba);
        let (cylinder, head) = self.heads.div_rem(track);
        SectorPlace { cylinder: z.first_cylinder + u32_from(cylinder), head: u32_from(head), sector, zone, track }
    }

    /// The angle at which a sector's start passes the head, in ns after the index mark.
    #[inline]
    pub(crate) fn angle_ns(&self, place: &SectorPlace) -> u64 {
        let zone = &self.zones[place.zone];
        let cylinders = u64::from(place.cylinder - zone.first_cylinder);
        let skew = zone.base_ns + cylinders * zone.per_cylinder_ns + u64::from(place.head) * zone.track_skew_ns;
        self.revolution.rem(skew + zone.length_ns(place.sector))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn geometry(zones: &[(u32, u32)], heads: u32) -> DiskGeometry {
        let inputs: Vec<ZoneInput> = zones
            .iter()
            .map(|&(cylinders, sectors_per_track)| ZoneInput {
                cylinders,
                sectors_per_track,
                track_skew_ns: 700_001,
                cylinder_skew_ns: 1_300_003,
            })
            .collect();
        DiskGeometry::new(&inputs, heads, 8_333_333, 8_300_000)
    }

    proptest! {
        #[test]
        fn mapping_is_one_to_one_and_rising(
            zones in prop::collection::vec((1u32..9, 1u32..40), 1..6), heads in 1u32..5,
        ) {
            let g = geometry(&zones, heads);
            let sectors: u64 = zones.iter().map(|&(c, s)| c as u64 * s as u64).sum::<u64>() * heads as u64;
            prop_assert_eq!(g.capacity, sectors);
            // Rising and of the right number is one to one and onto.
            let places: Vec<_> = (0..g.capacity).map(|lba| g.place(lba)).collect();
            let order = |p: &SectorPlace| (p.cylinder, p.head, p.sector);
            prop_assert!(places.windows(2).all(|pair| order(&pair[0]) < order(&pair[1])));
            for p in &places {
                prop_assert!(p.head < heads && p.cylinder < g.cylinders);
                prop_assert!(p.sector < g.zones[p.zone].per_track.divisor());
                let z = &g.zones[p.zone];
                prop_assert_eq!(p.track, (p.cylinder - z.first_cylinder) as u64 * heads as u64 + p.head as u64);
            }
        }

        #[test]
        fn sectors_share_boundaries_and_fill_the_track(sectors in 1u32..5000) {
            let g = geometry(&[(1, sectors)], 1);
            let z = &g.zones[0];
            prop_assert_eq!(z.length_ns(0), 0);
            prop_assert_eq!(z.length_ns(sectors as u64), g.usable_ns);
            for s in 0..sectors as u64 {
                prop_assert_eq!(g.angle_ns(&g.place(s)), z.length_ns(s));
            }
        }
    }

    #[test]
    fn skew_grows_by_the_same_step_everywhere() {
        let g = geometry(&[(3, 20), (2, 15), (4, 10)], 2);
        let first_of_track = |lba: &u64| g.place(*lba).sector == 0;
        let starts: Vec<u64> = (0..g.capacity).filter(first_of_track).collect();
        assert_eq!(starts.len(), 18);
        for pair in starts.windows(2) {
            let (a, b) = (g.place(pair[0]), g.place(pair[1]));
            let grown = (g.angle_ns(&b) + 8_333_333 - g.angle_ns(&a)) % 8_333_333;
            assert_eq!(grown, if a.cylinder == b.cylinder { 700_001 } else { 1_300_003 }, "{a:?} {b:?}");
        }
    }
}
