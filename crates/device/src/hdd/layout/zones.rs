//! Zones of equal tracks with spares, slipped and remapped sectors, written out.
//!
//! Purpose: which physical sector holds which address, under the ways in which disks keep sectors in reserve.
//!
//! In each zone the physical sectors are numbered along the tracks, in the order in which addresses take them (heads of a
//! cylinder, then cylinders). A *region* (a track, a cylinder, a range of cylinders, the zone) keeps `spares` of its sectors in
//! reserve. A slipped sector is left out, and everything after it in its region moves up by one, into the reserve; where
//! slips go *to the end*, everything after it in the zone moves, and the reserve stays free. The first
//! `reserved_sectors` of what is left belong to the disk. A remapped sector lies elsewhere, in the reserve.
//!
//! Invariants: within a zone, rising addresses take rising sectors, remapped ones apart; no sector is taken twice, unless
//! a remap names one that is taken.
//!
//! Reference: `layout_g1` of the diskmodel library of DiskSim 4.0. Where its two directions of translation disagree (spares at
//! the front of a cylinder), the parameter's description decides.

use super::{SectorTable, TableBuilder, FRACTION};
use crate::hdd::zone_spec::{Mapping, Sparing};
use crate::SpecError;
use raidlab_types::number::{u32_from, usize_from};

/// One zone, checked for itself; angles in 2^-20 ns of rotation.
#[derive(Debug, Clone)]
pub(crate) struct ZoneTrack {
    pub first_cylinder: u32,
    pub cylinders: u32,
    pub sectors_per_track: u32,
    /// Angle of the zone's first sector; `None` goes on where the zone before it would have.
    pub start_fixed: Option<u64>,
    pub track_skew_fixed: u64,
    pub cylinder_skew_fixed: u64,
    pub reserved_sectors: u64,
    pub spares: u64,
    /// Rising.
    pub slips: Vec<u64>,
    pub remaps: Vec<(u64, u64)>,
}

/// The zones of a disk and what they have in common.
#[derive(Debug, Clone)]
pub(crate) struct ZoneTable {
    pub zones: Vec<ZoneTrack>,
    pub heads: u32,
    pub mapping: Mapping,
    pub sparing: Sparing,
    pub revolution_ns: u64,
    pub usable_ns: u64,
    pub cylinders: Option<u32>,
}

/// Physical sectors in a row: first and number.
type Interval = (u64, u64);

impl ZoneTable {
    /// Writes all zones out.
    pub(crate) fn build(&self) -> Result<SectorTable, SpecError> {
        let mut builder = TableBuilder::new(self.revolution_ns);
        let mut start_fixed = 0;
        for (i, zone) in self.zones.iter().enumerate() {
            start_fixed = zone.start_fixed.map_or(start_fixed, u128::from);
            let wrong = |key: &str, message: String| SpecError::new(format!("zones[{i}].{key}"), message);
            let mut intervals = self.taken(zone).map_err(|message| wrong("slips", message))?;
            drop_front(&mut intervals, zone.reserved_sectors);
            if intervals.is_empty() {
                let message = format!("{} leave nothing of the zone", zone.reserved_sectors);
                return Err(wrong("reserved_sectors", message));
            }
            let length = builder.length(zone.sectors_per_track, self.usable_ns);
            let writer = ZoneWriter { table: self, zone, start_fixed, length, pushed: self.pushed_by_slips(zone) };
            writer.write(&intervals, &mut builder)?;
            start_fixed += self.per_cylinder_fixed(zone) * u128::from(zone.cylinders);
        }
        builder.finish(self.cylinders)
    }

    fn per_cylinder_fixed(&self, zone: &ZoneTrack) -> u128 {
        (u128::from(self.heads) - 1) * u128::from(zone.track_skew_fixed) + u128::from(zone.cylinder_skew_fixed)
    }

    /// Whether slips also turn the tracks after them: where spares lie in every track or cylinder, the start of the next
    /// one follows the sectors, not the numbering.
    fn pushed_by_slips(&self, zone: &ZoneTrack) -> Option<u64> {
        let per_track = u64::from(zone.sectors_per_track);
        match self.sparing {
            Sparing::SectorsPerTrack => Some(per_track),
            Sparing::SectorsPerCylinder
            | Sparing::SectorsPerCylinderSlipToEnd
            | Sparing::SectorsAtCylinderFront
            | Sparing::SectorsAtCylinderFrontSlipToEnd => Some(per_track * u64::from(self.heads)),
            _ => None,
        }
    }

    /// The physical sectors that hold addresses or belong to the disk, in order of address.
    fn taken(&self, zone: &ZoneTrack) -> Result<Vec<Interval>, String> {
        let per_track = u64::from(zone.sectors_per_track);
        let per_cylinder = per_track * u64::from(self.heads);
        let all = per_cylinder * u64::from(zone.cylinders);
        let good = match self.sparing {
            Sparing::None => keep(&[(0, all)], &zone.slips, 0, false)?,
            Sparing::TracksPerZone => {
                let slips: Vec<u64> = zone.slips.iter().flat_map(|t| t * per_track..(t + 1) * per_track).collect();
                keep(&[(0, all)], &slips, zone.spares * per_track, false)?
            }
            Sparing::SectorsPerTrack => regions(all, per_track, &zone.slips, zone.spares, false)?,
            Sparing::SectorsPerCylinder => regions(all, per_cylinder, &zone.slips, zone.spares, false)?,
            Sparing::SectorsAtCylinderFront => regions(all, per_cylinder, &zone.slips, zone.spares, true)?,
            Sparing::SectorsPerCylinderSlipToEnd => {
                let spared = regions(all, per_cylinder, &[], zone.spares, false)?;
                keep(&spared, &zone.slips, 0, false)?
            }
            Sparing::SectorsAtCylinderFrontSlipToEnd => {
                let spared = regions(all, per_cylinder, &[], zone.spares, true)?;
                keep(&spared, &zone.slips, 0, false)?
            }
            Sparing::EndOfDisk => keep(&[(0, all)], &zone.slips, 0, false)?,
            Sparing::SectorsPerRange { cylinders } => {
                regions(all, per_cylinder * u64::from(cylinders), &zone.slips, zone.spares, false)?
            }
            Sparing::SectorsPerZone => keep(&[(0, all)], &zone.slips, zone.spares, false)?,
            Sparing::SectorsPerZoneSlipToEnd => keep(&[(0, all - zone.spares.min(all))], &zone.slips, 0, false)?,
        };
        Ok(good)
    }
}

/// What is left of each region of `size` sectors; a region that `all` cuts short has no reserve.
fn regions(all: u64, size: u64, slips: &[u64], spares: u64, front: bool) -> Result<Vec<Interval>, String> {
    let mut good = Vec::with_capacity(usize_from(all / size + 1));
    let mut slips = slips;
    for first in (0..all).step_by(usize_from(size)) {
        let length = size.min(all - first);
        let here = slips.partition_point(|&slip| slip < first + length);
        let reserve = if length == size { spares } else { 0 };
        good.extend(keep(&[(first, length)], &slips[..here], reserve, front)?);
        slips = &slips[here..];
    }
    Ok(good)
}

/// The sectors of `intervals` but those slipped, less as many at the end (or front) as make `spares` with them.
fn keep(intervals: &[Interval], slips: &[u64], spares: u64, front: bool) -> Result<Vec<Interval>, String> {
    let length: u64 = intervals.iter().map(|interval| interval.1).sum();
    let mut good = without(intervals, slips);
    let slipped = length - good.iter().map(|interval| interval.1).sum::<u64>();
    if spares > 0 && slipped > spares {
        return Err(format!("{slipped} slipped sectors in a region with {spares} spares"));
    }
    let left = spares.saturating_sub(slipped);
    if left >= length.saturating_sub(slipped) {
        return Err(format!("{spares} spares leave nothing of a region of {length} sectors"));
    }
    if front {
        drop_front(&mut good, left);
    } else {
        drop_back(&mut good, left);
    }
    Ok(good)
}

/// The intervals cut at the slips.
fn without(intervals: &[Interval], slips: &[u64]) -> Vec<Interval> {
    let mut out = Vec::with_capacity(intervals.len() + slips.len());
    for &(first, length) in intervals {
        let end = first + length;
        let mut from = first;
        let inside = slips.partition_point(|&slip| slip < first)..slips.partition_point(|&slip| slip < end);
        for &slip in &slips[inside] {
            if slip > from {
                out.push((from, slip - from));
            }
            from = from.max(slip + 1);
        }
        if end > from {
            out.push((from, end - from));
        }
    }
    out
}

fn drop_front(intervals: &mut Vec<Interval>, mut sectors: u64) {
    let mut gone = 0;
    for interval in intervals.iter_mut() {
        if interval.1 > sectors {
            *interval = (interval.0 + sectors, interval.1 - sectors);
            break;
        }
        sectors -= interval.1;
        gone += 1;
    }
    intervals.drain(..gone);
}

fn drop_back(intervals: &mut Vec<Interval>, mut sectors: u64) {
    while let Some(last) = intervals.last_mut() {
        if last.1 > sectors {
            last.1 -= sectors;
            break;
        }
        sectors -= last.1;
        intervals.pop();
    }
}

/// Writes one zone.
struct ZoneWriter<'a> {
    table: &'a ZoneTable,
    zone: &'a ZoneTrack,
    start_fixed: u128,
    length: u16,
    /// Sectors of the region after which a slip turns the tracks, if any.
    pushed: Option<u64>,
}

impl ZoneWriter<'_> {
    fn write(&self, intervals: &[Interval], builder: &mut TableBuilder) -> Result<(), SpecError> {
        let per_track = u64::from(self.zone.sectors_per_track);
        let mut remaps: Vec<(u64, u64)> = self.sector_remaps();
        remaps.sort_unstable();
        for &(first, length) in intervals {
            let (mut at, end) = (first, first + length);
            let mut next_remap = remaps.partition_point(|remap| remap.0 < first);
            while at < end {
                let track_end = (at / per_track + 1) * per_track;
                let remap = remaps.get(next_remap).copied().filter(|remap| remap.0 < end);
                let stop = end.min(track_end).min(remap.map_or(u64::MAX, |remap| remap.0));
                if stop > at {
                    self.place(at, stop - at, builder)?;
                    at = stop;
                }
                if let Some((_, to)) = remap.filter(|remap| remap.0 == at) {
                    self.place(to, 1, builder)?;
                    at += 1;
                    next_remap += 1;
                }
            }
        }
        Ok(())
    }

    /// Remapped sectors, also where whole tracks are; one that stays where it is is none.
    fn sector_remaps(&self) -> Vec<(u64, u64)> {
        let per_track = u64::from(self.zone.sectors_per_track);
        let moved = self.zone.remaps.iter().filter(|remap| remap.0 != remap.1);
        match self.table.sparing {
            Sparing::TracksPerZone => moved
                .flat_map(|&(from, to)| (0..per_track).map(move |s| (from * per_track + s, to * per_track + s)))
                .collect(),
            _ => moved.copied().collect(),
        }
    }

    /// Places the next addresses on physical sectors of one track.
    fn place(&self, sector: u64, sectors: u64, builder: &mut TableBuilder) -> Result<(), SpecError> {
        let per_track = u64::from(self.zone.sectors_per_track);
        let heads = u64::from(self.table.heads);
        let (track, on_track) = (sector / per_track, sector % per_track);
        let (cylinder, turn) = (track / heads, track % heads);
        let absolute = self.zone.first_cylinder + u32_from(cylinder);
        let reversed = match self.table.mapping {
            Mapping::Normal => false,
            Mapping::SerpentineByZone => cylinder % 2 == 1,
            Mapping::Serpentine => absolute % 2 == 1,
        };
        let head = if reversed { heads - 1 - turn } else { turn };
        let switches = u128::from(turn + (heads - 1) * cylinder);
        let skew = switches * u128::from(self.zone.track_skew_fixed)
            + u128::from(cylinder) * u128::from(self.zone.cylinder_skew_fixed);
        let shift = self.slips_before(track * per_track) + on_track;
        let angle_fixed = self.start_fixed + skew + u128::from(shift) * u128::from(builder.length_fixed(self.length));
        builder.push(sectors, (absolute, u32_from(head)), angle_fixed, self.length)
    }

    /// Slips that turn the track that starts at this sector.
    fn slips_before(&self, track_start: u64) -> u64 {
        let Some(region) = self.pushed else { return 0 };
        let cutoff = track_start / region * region;
        self.zone.slips.partition_point(|&slip| slip < cutoff) as u64
    }
}

/// A length in sectors of a track, as an angle in 2^-20 ns.
pub(crate) fn sectors_fixed(sectors: u64, sectors_per_track: u32, usable_ns: u64) -> u64 {
    sectors * (usable_ns << FRACTION).div_ceil(u64::from(sectors_per_track))
}
