//! Where addresses lie on a disk that is described exactly: as stretches of consecutive sectors.
//!
//! Purpose: one answer for all ways in which disks lay out their sectors (zones with skews, spares and slips; a map of
//! extents; an index of repeated patterns), so that the mechanism knows none of them.
//!
//! - `table`: the stretches of a whole disk, one after another
//! - `zones`, `extents`, `index`: make a table from what the device file says
//!
//! Invariants:
//! - Stretches cover the addresses from 0 to the capacity without gap or overlap.
//! - Consecutive sectors of a stretch pass the head one directly after the other; between stretches anything may lie: a
//!   slipped sector, the end of a track, another cylinder.
//! - Angles are nanoseconds of rotation after the index mark, below a revolution.
//!
//! Reference: the diskmodel library of DiskSim 4.0 (J. Bucy, G. Ganger and others, Carnegie Mellon University), whose
//! layouts `g1`, `g2` and `g4` these three follow.

mod extents;
mod index;
mod table;
#[cfg(test)]
mod tests;
mod zones;

use super::geometry::DiskGeometry;
pub(crate) use extents::{build as from_extents, ExtentBand};
pub(crate) use index::Index;
pub(crate) use table::SectorTable;
use table::TableBuilder;
pub(crate) use zones::{sectors_fixed, ZoneTable, ZoneTrack};

/// Bits after the binary point in the length of a sector.
pub(crate) const FRACTION: u32 = 20;

/// Consecutive addresses on consecutive sectors of one track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// First address, and one past the last.
    pub first: u64,
    pub end: u64,
    pub cylinder: u32,
    pub head: u32,
    /// Angle at which `first` begins, in ns.
    angle_ns: u64,
    /// Length of a sector in 2^-20 ns.
    sector_fixed: u64,
    /// Position in the table, for the neighbours.
    at: u32,
}

impl Stretch {
    /// Length of `sectors` sectors, in ns.
    #[inline]
    pub(crate) fn length_ns(&self, sectors: u64) -> u64 {
        (sectors * self.sector_fixed) >> FRACTION
    }

    /// Angle at which `lba`, which lies here, begins; may exceed a revolution.
    #[inline]
    pub(crate) fn angle_ns(&self, lba: u64) -> u64 {
        self.angle_ns + self.length_ns(lba - self.first)
    }

    /// How many sectors have passed completely after `ns`, counted from the first.
    #[inline]
    pub(crate) fn sectors_in(&self, ns: u64) -> u64 {
        // Boundaries are rounded down: sector k is complete at floor(k w), that is as soon as ns + 1 > k w.
        (((ns + 1) << FRACTION) - 1) / self.sector_fixed
    }

    /// Whether both lie on one track.
    #[inline]
    pub(crate) fn same_track(&self, other: &Stretch) -> bool {
        (self.cylinder, self.head) == (other.cylinder, other.head)
    }
}

/// The layout of one model of disk.
#[derive(Debug)]
pub(crate) enum DiskLayout {
    /// Equal tracks in zones, worked out by arithmetic.
    Regular(DiskGeometry),
    /// Anything else, written out.
    Table(SectorTable),
}

impl DiskLayout {
    /// Number of addresses.
    pub(crate) fn capacity(&self) -> u64 {
        match self {
            DiskLayout::Regular(geometry) => geometry.capacity,
            DiskLayout::Table(table) => table.capacity,
        }
    }

    /// Cylinders that hold data or lie between those that do.
    pub(crate) fn cylinders(&self) -> u32 {
        match self {
            DiskLayout::Regular(geometry) => geometry.cylinders,
            DiskLayout::Table(table) => table.cylinders,
        }
    }

    /// The stretch that holds `lba`, which must lie on the disk.
    #[inline]
    pub(crate) fn stretch(&self, lba: u64) -> Stretch {
        match self {
            DiskLayout::Regular(geometry) => regular(geometry, lba),
            DiskLayout::Table(table) => table.stretch(table.position(lba)),
        }
    }

    /// The stretch that follows, if the disk does not end.
    #[inline]
    pub(crate) fn after(&self, stretch: &Stretch) -> Option<Stretch> {
        if stretch.end >= self.capacity() {
            return None;
        }
        Some(match self {
            DiskLayout::Regular(geometry) => regular(geometry, stretch.end),
            DiskLayout::Table(table) => table.stretch(stretch.at as usize + 1),
        })
    }

    fn before(&self, stretch: &Stretch) -> Option<Stretch> {
        if stretch.first == 0 {
            return None;
        }
        Some(match self {
            DiskLayout::Regular(geometry) => regular(geometry, stretch.first - 1),
            DiskLayout::Table(table) => table.stretch(stretch.at as usize - 1),
        })
    }

    /// The first address on the track that holds this stretch.
    pub(crate) fn track_first(&self, stretch: &Stretch) -> u64 {
        let mut first = *stretch;
        while let Some(before) = self.before(&first).filter(|before| before.same_track(stretch)) {
            first = before;
        }
        first.first
    }

    /// One past the last address on the track that holds this stretch.
    pub(crate) fn track_end(&self, stretch: &Stretch) -> u64 {
        let mut last = *stretch;
        while let Some(after) = self.after(&last).filter(|after| after.same_track(stretch)) {
            last = after;
        }
        last.end
    }

    /// Sectors that fit a whole revolution where this stretch lies, holes counted.
    pub(crate) fn sectors_per_track(&self, stretch: &Stretch, revolution_ns: u64) -> u64 {
        (revolution_ns << FRACTION) / stretch.sector_fixed
    }
}

/// The whole track of a regular layout that holds `lba`.
#[inline]
fn regular(geometry: &DiskGeometry, lba: u64) -> Stretch {
    let mut place = geometry.place(lba);
    let first = lba - place.sector;
    place.sector = 0;
    let zone = &geometry.zones[place.zone];
    Stretch {
        first,
        end: first + zone.per_track.divisor(),
        cylinder: place.cylinder,
        head: place.head,
        angle_ns: geometry.angle_ns(&place),
        sector_fixed: zone.sector_fixed(),
        at: 0,
    }
}
