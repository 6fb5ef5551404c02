//! A disk with everything, checked and compiled.
//!
//! Invariant: what compiles prices every command within its capacity; what does not is named by key.

use super::buffer_spec::{BufferSpec, BusSpec, CommandSpec, ExtraDisconnect};
use super::drive::{Bus, CommandTimes, DiskModel, Extra};
use super::geometry::DiskGeometry;
use super::layout::{sectors_fixed, DiskLayout, ExtentBand, Index, ZoneTable, ZoneTrack, FRACTION};
use super::layout_spec::LayoutSpec;
use super::reciprocal::Reciprocal;
use super::seek::SeekTable;
use super::zone_spec::{Skew, Sparing, ZoneSpec};
use super::HddSpec;
use crate::error::{ms_to_ns, within};
use crate::SpecError;
use raidlab_types::number::{f64_from, i64_from, saturating_u64, u64_from};

/// Longest time of the electronics accepted, in ms.
const MAX_MS: f64 = 1000.0;

/// Most physical sectors of a disk whose layout is written out.
const MAX_SECTORS: u64 = 1 << 40;

impl HddSpec {
    /// Checks the parameters and computes everything that does not change, for a disk whose speed deviates by this share.
    pub(crate) fn compile_model(&self, deviation: f64) -> Result<DiskModel, SpecError> {
        self.check()?;
        within("rpm_error_percent", self.rpm_error_percent, 0.0..=50.0, "")?;
        let (nominal_ns, usable_ns) = self.turn_ns()?;
        let speed = 1.0 + deviation;
        let slow = |ns: u64| saturating_u64((f64_from(ns) / speed).round());
        let (revolution_ns, usable_ns) = (slow(nominal_ns), slow(usable_ns));
        let layout = self.layout(revolution_ns, usable_ns)?;
        let cylinders = self.cylinders.unwrap_or(layout.cylinders());
        let head_switch = ms_to_ns("head_switch_ms", self.head_switch_ms, MAX_MS)?;
        let seek = SeekTable::new(&self.seek, cylinders, 0)?;
        let write_settle = self.write_settle_ns(&seek, cylinders, head_switch)?;
        Ok(DiskModel {
            capacity: layout.capacity(),
            layout,
            seek,
            head_switch,
            write_settle,
            revolution: Reciprocal::new(revolution_ns),
            turnaround: ms_to_ns("pair_turnaround_ms", self.pair_turnaround_ms, MAX_MS)?,
            timings: self.timings()?,
            bus: self.bus.as_ref().map_or(Ok(Bus::default()), bus)?,
            destage_after_read: match &self.buffer {
                Some(buffer) => ms_to_ns("buffer.destage_after_read_ms", buffer.destage_after_read_ms, MAX_MS)?,
                None => 0,
            },
            rules: rules(self.buffer.as_ref())?,
        })
    }

    /// The settling of writes, which may shorten a movement but not turn it round.
    fn write_settle_ns(&self, seek: &SeekTable, cylinders: u32, head_switch: u64) -> Result<i64, SpecError> {
        let (key, ms) = ("write_settle_ms", self.write_settle_ms);
        let size = i64_from(ms_to_ns(key, ms.abs(), MAX_MS)?);
        if ms >= 0.0 {
            return Ok(size);
        }
        let shortest = (1..cylinders).map(|distance| u64::from(seek.ns(distance))).min().unwrap_or(u64::MAX);
        let shortest = if self.heads > 1 { shortest.min(head_switch) } else { shortest };
        if shortest < u64_from(size) {
            let message = format!("{ms} ms is more than the shortest movement takes ({} ms)", f64_from(shortest) / 1e6);
            return Err(SpecError::new(key, message));
        }
        Ok(-size)
    }

    fn layout(&self, revolution_ns: u64, usable_ns: u64) -> Result<DiskLayout, SpecError> {
        if let Some(layout) = &self.layout {
            if !self.zones.is_empty() {
                return Err(SpecError::new("zones", "give either zones or layout"));
            }
            return self.offered(self.written_out(layout, revolution_ns)?).map(DiskLayout::Table);
        }
        // Checks what all zones have in common with those of a plain disk.
        let inputs = self.zone_inputs(revolution_ns, usable_ns)?;
        let plain = HddSpec {
            buffer: None,
            bus: None,
            commands: None,
            write_settle_ms: 0.0,
            rpm_error_percent: 0.0,
            ..self.clone()
        };
        if plain.is_plain() {
            return Ok(DiskLayout::Regular(DiskGeometry::new(&inputs, self.heads, revolution_ns, usable_ns)));
        }
        let mut next = 0;
        let zones = self.zones.iter().enumerate().map(|(i, zone)| {
            let track = self.zone(i, zone, next, revolution_ns, usable_ns)?;
            next = track.first_cylinder + track.cylinders;
            Ok(track)
        });
        let (heads, mapping, sparing, cylinders) = (self.heads, self.mapping, self.sparing, self.cylinders);
        let zones = zones.collect::<Result<_, SpecError>>()?;
        let table = ZoneTable { zones, heads, mapping, sparing, revolution_ns, usable_ns, cylinders }.build()?;
        self.offered(table).map(DiskLayout::Table)
    }

    fn offered(&self, table: super::layout::SectorTable) -> Result<super::layout::SectorTable, SpecError> {
        match self.sectors {
            Some(sectors) => table.offering(sectors),
            None => Ok(table),
        }
    }

    fn written_out(&self, layout: &LayoutSpec, revolution_ns: u64) -> Result<super::layout::SectorTable, SpecError> {
        match layout {
            LayoutSpec::Extents { bands, extents } => {
                let band = |(i, band): (usize, &super::layout_spec::BandSpec)| {
                    let key = |name: &str| format!("layout.bands[{i}].{name}");
                    let per_track = band.sectors_per_track;
                    if !(1..=65_536).contains(&per_track) || band.first_cylinder > band.last_cylinder {
                        let message = "needs 1 to 65536 sectors a track, and cylinders from first to last";
                        return Err(SpecError::new(format!("layout.bands[{i}]"), message));
                    }
                    let fixed =
                        |name: &str, skew: Skew| skew_fixed(&key(name), skew, per_track, revolution_ns, revolution_ns);
                    Ok(ExtentBand {
                        first_cylinder: band.first_cylinder,
                        last_cylinder: band.last_cylinder,
                        sectors_per_track: per_track,
                        start_fixed: fixed("start_angle", band.start_angle)?,
                        track_skew_fixed: fixed("track_skew", band.track_skew)?,
                        cylinder_skew_fixed: fixed("cylinder_skew", band.cylinder_skew)?,
                    })
                };
                let bands = bands.iter().enumerate().map(band).collect::<Result<Vec<_>, _>>()?;
                super::layout::from_extents(&bands, extents, self.heads, revolution_ns, self.cylinders)
            }
            LayoutSpec::Index { sectors, tracks, nodes, slips, remaps } => {
                let heads = self.heads;
                Index { sectors: *sectors, tracks, nodes, slips, remaps, heads, revolution_ns }.build(self.cylinders)
            }
        }
    }

    fn zone(
        &self,
        i: usize,
        zone: &ZoneSpec,
        next: u32,
        revolution_ns: u64,
        usable_ns: u64,
    ) -> Result<ZoneTrack, SpecError> {
        let key = |name: &str| format!("zones[{i}].{name}");
        let first_cylinder = zone.first_cylinder.unwrap_or(next);
        if first_cylinder < next || u64::from(first_cylinder) + u64::from(zone.cylinders) > 1 << 24 {
            let message =
                format!("{first_cylinder} must lie between {next}, where the zone before ends, and {}", 1 << 24);
            return Err(SpecError::new(key("first_cylinder"), message));
        }
        let per_track = zone.sectors_per_track;
        let tracks = u64::from(zone.cylinders) * u64::from(self.heads);
        let places = if self.sparing == Sparing::TracksPerZone { tracks } else { tracks * u64::from(per_track) };
        if places > MAX_SECTORS {
            return Err(SpecError::new(key("cylinders"), format!("more than {MAX_SECTORS} sectors")));
        }
        let mut slips = zone.slips.clone();
        slips.sort_unstable();
        slips.dedup();
        let outside =
            slips.iter().chain(zone.remaps.iter().flat_map(|remap| [&remap.0, &remap.1])).find(|&&at| at >= places);
        if let Some(at) = outside {
            let name = if slips.contains(at) { "slips" } else { "remaps" };
            return Err(SpecError::new(key(name), format!("{at} lies outside the zone; accepted: below {places}")));
        }
        if matches!(self.sparing, Sparing::SectorsPerRange { cylinders: 0 }) {
            return Err(SpecError::new("sparing", "a range needs at least one cylinder"));
        }
        let fixed = |name: &str, own: Option<Skew>, common: Skew| {
            let key = if own.is_some() { key(name) } else { name.to_owned() };
            skew_fixed(&key, own.unwrap_or(common), per_track, revolution_ns, usable_ns)
        };
        // Where zones begin at angles of their own or go on from one to the next is said zone by zone.
        let start_fixed = zone.start_angle.map(|skew| fixed("start_angle", Some(skew), skew)).transpose()?;
        Ok(ZoneTrack {
            first_cylinder,
            cylinders: zone.cylinders,
            sectors_per_track: per_track,
            start_fixed,
            track_skew_fixed: fixed("track_skew", zone.track_skew, self.track_skew)?,
            cylinder_skew_fixed: fixed("cylinder_skew", zone.cylinder_skew, self.cylinder_skew)?,
            reserved_sectors: zone.reserved_sectors,
            spares: zone.spares,
            slips,
            remaps: zone.remaps.clone(),
        })
    }

    fn timings(&self) -> Result<CommandTimes, SpecError> {
        let (read, write) = (
            ms_to_ns("read_overhead_ms", self.read_overhead_ms, MAX_MS)?,
            ms_to_ns("write_overhead_ms", self.write_overhead_ms, MAX_MS)?,
        );
        let Some(commands) = &self.commands else {
            let ([read_hit, read_miss], [write_hit, write_miss]) = ([[read; 2]; 2], [[write; 2]; 2]);
            return Ok(CommandTimes { read_hit, read_miss, write_hit, write_miss, ..CommandTimes::default() });
        };
        if (read, write) != (0, 0) {
            let message = "give either commands or read_overhead_ms and write_overhead_ms";
            return Err(SpecError::new("commands", message));
        }
        timings(commands)
    }
}

/// A key that says milliseconds, in whole nanoseconds.
macro_rules! ns {
    ($table:literal, $spec:ident.$key:ident) => {
        ms_to_ns(concat!($table, ".", stringify!($key)), $spec.$key, MAX_MS)?
    };
}

fn timings(spec: &CommandSpec) -> Result<CommandTimes, SpecError> {
    Ok(CommandTimes {
        every: ns!("commands", spec.every_ms),
        read_hit: [ns!("commands", spec.read_hit_after_read_ms), ns!("commands", spec.read_hit_after_write_ms)],
        read_miss: [ns!("commands", spec.read_miss_after_read_ms), ns!("commands", spec.read_miss_after_write_ms)],
        write_hit: [ns!("commands", spec.write_hit_after_read_ms), ns!("commands", spec.write_hit_after_write_ms)],
        write_miss: [ns!("commands", spec.write_miss_after_read_ms), ns!("commands", spec.write_miss_after_write_ms)],
        read_completion: ns!("commands", spec.read_completion_ms),
        write_completion: ns!("commands", spec.write_completion_ms),
        preparation: ns!("commands", spec.data_preparation_ms),
        first_reselect: ns!("commands", spec.first_reselect_ms),
        other_reselect: ns!("commands", spec.other_reselect_ms),
        read_disconnect: [
            ns!("commands", spec.read_disconnect_after_read_ms),
            ns!("commands", spec.read_disconnect_after_write_ms),
        ],
        write_disconnect: ns!("commands", spec.write_disconnect_ms),
        extra: spec.extra_write_disconnect.as_ref().map(extra).transpose()?,
        minimum_write_seek: ns!("commands", spec.minimum_write_seek_ms),
    })
}

fn extra(spec: &ExtraDisconnect) -> Result<Extra, SpecError> {
    Ok(Extra {
        command: ns!("commands.extra_write_disconnect", spec.command_ms),
        disconnect: ns!("commands.extra_write_disconnect", spec.disconnect_ms),
        away: ns!("commands.extra_write_disconnect", spec.away_ms),
        second_disconnect: ns!("commands.extra_write_disconnect", spec.second_disconnect_ms),
        seek_delay: ns!("commands.extra_write_disconnect", spec.seek_delay_ms),
        gather: spec.gather_sectors,
        gather_long: spec.gather_long_sectors,
        long_from: spec.long_from_sectors,
    })
}

fn bus(spec: &BusSpec) -> Result<Bus, SpecError> {
    Ok(Bus {
        read_sector: ns!("bus", spec.read_sector_ms),
        write_sector: ns!("bus", spec.write_sector_ms),
        hold_for_read: spec.hold_for_read,
        hold_for_write: spec.hold_for_write,
        never_disconnect: spec.never_disconnect,
    })
}

/// The rules of a buffer, checked; without one, of a segment that fits everything and keeps nothing.
fn rules(spec: Option<&BufferSpec>) -> Result<BufferSpec, SpecError> {
    let Some(spec) = spec else {
        let (segments, segment_sectors) = (1, u64::from(u32::MAX));
        return Ok(BufferSpec { segments, segment_sectors, caching: false, ..BufferSpec::default() });
    };
    let wrong = |name: &str, message: String| Err(SpecError::new(format!("buffer.{name}"), message));
    within("buffer.segments", spec.segments, 1..=4096, "")?;
    within("buffer.segment_sectors", spec.segment_sectors, 1..=u64::from(u32::MAX), "")?;
    if !(1..=spec.segments).contains(&spec.write_segments) {
        let message = format!("{} must lie between 1 and the {} segments", spec.write_segments, spec.segments);
        return wrong("write_segments", message);
    }
    if spec.separate_write_segment && spec.segments < 2 {
        return wrong("separate_write_segment", "needs at least two segments".into());
    }
    within("buffer.read_watermark", spec.read_watermark, 0.0..=1.0, "")?;
    within("buffer.write_watermark", spec.write_watermark, 0.0..=1.0, "")?;
    if spec.orders_writes() {
        within("buffer.write_cache_sectors", spec.write_cache_sectors, 1..=u64::from(u32::MAX), "")?;
        within("buffer.write_cache_extents", spec.write_cache_extents, 1..=65_536, "")?;
    } else if (spec.write_cache_sectors, spec.write_cache_extents) != (0, 0) || spec.destage_after_read_ms != 0.0 {
        return wrong("write_back", "a write cache needs ordered write-back".into());
    }
    for (name, sectors) in [
        ("minimum_read_ahead_sectors", spec.minimum_read_ahead_sectors),
        ("maximum_read_ahead_sectors", spec.maximum_read_ahead_sectors),
    ] {
        if sectors > spec.segment_sectors {
            return wrong(name, format!("{sectors} must be at most the segment's {}", spec.segment_sectors));
        }
    }
    Ok(spec.clone())
}

/// An angle in 2^-20 ns, below a revolution.
fn skew_fixed(key: &str, skew: Skew, per_track: u32, revolution_ns: u64, usable_ns: u64) -> Result<u64, SpecError> {
    let fixed = match skew {
        Skew::Sectors(sectors) => sectors_fixed(u64::from(sectors) % (1 << 24), per_track, usable_ns),
        Skew::Ms(ms) => ms_to_ns(key, ms, MAX_MS)? << FRACTION,
        Skew::Revolutions(share) if (0.0..=1000.0).contains(&share) => {
            let part = share - libm::floor(share);
            saturating_u64(part * f64_from(revolution_ns << FRACTION))
        }
        Skew::Revolutions(share) => {
            return Err(SpecError::new(key, format!("{share} revolutions must lie between 0 and 1000")));
        }
    };
    Ok(fixed % (revolution_ns << FRACTION))
}
