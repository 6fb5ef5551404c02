//! A disk with everything, checked and compiled.
//!
//! Invariant: what compiles prices every command within its capacity; what does not is named by key.

use super::buffer_spec::{BufferSpec, BusSpec, CommandSpec, ExtraDisconnect};
use super::drive::{Bus, Extra, Rules, Timings, Works};
use super::geometry::Geometry;
use super::layout::{sectors_fixed, Band, Index, Layout, ZoneTable, ZoneTrack, FRACTION};
use super::layout_spec::LayoutSpec;
use super::reciprocal::Reciprocal;
use super::seek::SeekTable;
use super::zone_spec::{Skew, Sparing, ZoneSpec};
use super::HddSpec;
use crate::error::ms_to_ns;
use crate::DeviceError;
use raidlab_types::number::{f64_from, i64_from, saturating_u64, u64_from};

/// Longest time of the electronics accepted, in ms.
const MAX_MS: f64 = 1000.0;

/// Most physical sectors of a disk whose layout is written out.
const MAX_SECTORS: u64 = 1 << 40;

impl HddSpec {
    /// Checks the parameters and computes everything that does not change, for a disk whose speed deviates by this share.
    pub(crate) fn compile_works(&self, deviation: f64) -> Result<Works, DeviceError> {
        self.check()?;
        if !(0.0..=50.0).contains(&self.rpm_error_percent) {
            let message = format!("{} must lie between 0 and 50", self.rpm_error_percent);
            return Err(DeviceError::new("rpm_error_percent", message));
        }
        let (nominal_ns, usable_ns) = self.turn_ns()?;
        let speed = 1.0 + deviation;
        let slow = |ns: u64| saturating_u64((f64_from(ns) / speed).round());
        let (revolution_ns, usable_ns) = (slow(nominal_ns), slow(usable_ns));
        let layout = self.layout(revolution_ns, usable_ns)?;
        let cylinders = self.cylinders.unwrap_or(layout.cylinders());
        let head_switch = ms_to_ns("head_switch_ms", self.head_switch_ms, MAX_MS)?;
        let seek = SeekTable::new(&self.seek, cylinders, 0)?;
        let write_settle = self.write_settle_ns(&seek, cylinders, head_switch)?;
        Ok(Works {
            capacity: layout.capacity(),
            layout,
            seek,
            head_switch,
            write_settle,
            revolution: Reciprocal::new(revolution_ns),
            turnaround: ms_to_ns("pair_turnaround_ms", self.pair_turnaround_ms, MAX_MS)?,
            timings: self.timings()?,
            bus: self.bus.as_ref().map_or(Ok(Bus::default()), bus)?,
            rules: rules(self.buffer.as_ref())?,
        })
    }

    /// The settling of writes, which may shorten a movement but not turn it round.
    fn write_settle_ns(&self, seek: &SeekTable, cylinders: u32, head_switch: u64) -> Result<i64, DeviceError> {
        let (key, ms) = ("write_settle_ms", self.write_settle_ms);
        let size = i64_from(ms_to_ns(key, ms.abs(), MAX_MS)?);
        if ms >= 0.0 {
            return Ok(size);
        }
        let shortest = (1..cylinders).map(|distance| u64::from(seek.ns(distance))).min().unwrap_or(u64::MAX);
        let shortest = if self.heads > 1 { shortest.min(head_switch) } else { shortest };
        if shortest < u64_from(size) {
            let message = format!("{ms} ms is more than the shortest movement takes ({} ms)", f64_from(shortest) / 1e6);
            return Err(DeviceError::new(key, message));
        }
        Ok(-size)
    }

    fn layout(&self, revolution_ns: u64, usable_ns: u64) -> Result<Layout, DeviceError> {
        if let Some(layout) = &self.layout {
            if !self.zones.is_empty() {
                return Err(DeviceError::new("zones", "give either zones or layout"));
            }
            return self.offered(self.written_out(layout, revolution_ns)?).map(Layout::Table);
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
            return Ok(Layout::Regular(Geometry::new(&inputs, self.heads, revolution_ns, usable_ns)));
        }
        let mut next = 0;
        let zones = self.zones.iter().enumerate().map(|(i, zone)| {
            let track = self.zone(i, zone, next, revolution_ns, usable_ns)?;
            next = track.first_cylinder + track.cylinders;
            Ok(track)
        });
        let (heads, mapping, sparing, cylinders) = (self.heads, self.mapping, self.sparing, self.cylinders);
        let zones = zones.collect::<Result<_, DeviceError>>()?;
        let table = ZoneTable { zones, heads, mapping, sparing, revolution_ns, usable_ns, cylinders }.build()?;
        self.offered(table).map(Layout::Table)
    }

    fn offered(&self, table: super::layout::Table) -> Result<super::layout::Table, DeviceError> {
        match self.sectors {
            Some(sectors) => table.offering(sectors),
            None => Ok(table),
        }
    }

    fn written_out(&self, layout: &LayoutSpec, revolution_ns: u64) -> Result<super::layout::Table, DeviceError> {
        match layout {
            LayoutSpec::Extents { bands, extents } => {
                let band = |(i, band): (usize, &super::layout_spec::BandSpec)| {
                    let key = |name: &str| format!("layout.bands[{i}].{name}");
                    let per_track = band.sectors_per_track;
                    if !(1..=65_536).contains(&per_track) || band.first_cylinder > band.last_cylinder {
                        let message = "needs 1 to 65536 sectors a track, and cylinders from first to last";
                        return Err(DeviceError::new(format!("layout.bands[{i}]"), message));
                    }
                    let fixed =
                        |name: &str, skew: Skew| skew_fixed(&key(name), skew, per_track, revolution_ns, revolution_ns);
                    Ok(Band {
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
    ) -> Result<ZoneTrack, DeviceError> {
        let key = |name: &str| format!("zones[{i}].{name}");
        let first_cylinder = zone.first_cylinder.unwrap_or(next);
        if first_cylinder < next || u64::from(first_cylinder) + u64::from(zone.cylinders) > 1 << 24 {
            let message =
                format!("{first_cylinder} must lie between {next}, where the zone before ends, and {}", 1 << 24);
            return Err(DeviceError::new(key("first_cylinder"), message));
        }
        let per_track = zone.sectors_per_track;
        let tracks = u64::from(zone.cylinders) * u64::from(self.heads);
        let places = if self.sparing == Sparing::TracksPerZone { tracks } else { tracks * u64::from(per_track) };
        if places > MAX_SECTORS {
            return Err(DeviceError::new(key("cylinders"), format!("more than {MAX_SECTORS} sectors")));
        }
        let mut slips = zone.slips.clone();
        slips.sort_unstable();
        slips.dedup();
        let outside =
            slips.iter().chain(zone.remaps.iter().flat_map(|remap| [&remap.0, &remap.1])).find(|&&at| at >= places);
        if let Some(at) = outside {
            let name = if slips.contains(at) { "slips" } else { "remaps" };
            return Err(DeviceError::new(key(name), format!("{at} lies outside the zone; accepted: below {places}")));
        }
        if matches!(self.sparing, Sparing::SectorsPerRange { cylinders: 0 }) {
            return Err(DeviceError::new("sparing", "a range needs at least one cylinder"));
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

    fn timings(&self) -> Result<Timings, DeviceError> {
        let (read, write) = (
            ms_to_ns("read_overhead_ms", self.read_overhead_ms, MAX_MS)?,
            ms_to_ns("write_overhead_ms", self.write_overhead_ms, MAX_MS)?,
        );
        let Some(commands) = &self.commands else {
            let ([read_hit, read_miss], [write_hit, write_miss]) = ([[read; 2]; 2], [[write; 2]; 2]);
            return Ok(Timings { read_hit, read_miss, write_hit, write_miss, ..Timings::default() });
        };
        if (read, write) != (0, 0) {
            let message = "give either commands or read_overhead_ms and write_overhead_ms";
            return Err(DeviceError::new("commands", message));
        }
        timings(commands)
    }
}

fn timings(spec: &CommandSpec) -> Result<Timings, DeviceError> {
    let ns = |name: &str, ms: f64| ms_to_ns(&format!("commands.{name}"), ms, MAX_MS);
    Ok(Timings {
        every: ns("every_ms", spec.every_ms)?,
        read_hit: [
            ns("read_hit_after_read_ms", spec.read_hit_after_read_ms)?,
            ns("read_hit_after_write_ms", spec.read_hit_after_write_ms)?,
        ],
        read_miss: [
            ns("read_miss_after_read_ms", spec.read_miss_after_read_ms)?,
            ns("read_miss_after_write_ms", spec.read_miss_after_write_ms)?,
        ],
        write_hit: [
            ns("write_hit_after_read_ms", spec.write_hit_after_read_ms)?,
            ns("write_hit_after_write_ms", spec.write_hit_after_write_ms)?,
        ],
        write_miss: [
            ns("write_miss_after_read_ms", spec.write_miss_after_read_ms)?,
            ns("write_miss_after_write_ms", spec.write_miss_after_write_ms)?,
        ],
        read_completion: ns("read_completion_ms", spec.read_completion_ms)?,
        write_completion: ns("write_completion_ms", spec.write_completion_ms)?,
        preparation: ns("data_preparation_ms", spec.data_preparation_ms)?,
        first_reselect: ns("first_reselect_ms", spec.first_reselect_ms)?,
        other_reselect: ns("other_reselect_ms", spec.other_reselect_ms)?,
        read_disconnect: [
            ns("read_disconnect_after_read_ms", spec.read_disconnect_after_read_ms)?,
            ns("read_disconnect_after_write_ms", spec.read_disconnect_after_write_ms)?,
        ],
        write_disconnect: ns("write_disconnect_ms", spec.write_disconnect_ms)?,
        extra: spec.extra_write_disconnect.as_ref().map(extra).transpose()?,
        minimum_write_seek: ns("minimum_write_seek_ms", spec.minimum_write_seek_ms)?,
    })
}

fn extra(spec: &ExtraDisconnect) -> Result<Extra, DeviceError> {
    let ns = |name: &str, ms: f64| ms_to_ns(&format!("commands.extra_write_disconnect.{name}"), ms, MAX_MS);
    Ok(Extra {
        command: ns("command_ms", spec.command_ms)?,
        disconnect: ns("disconnect_ms", spec.disconnect_ms)?,
        away: ns("away_ms", spec.away_ms)?,
        second_disconnect: ns("second_disconnect_ms", spec.second_disconnect_ms)?,
        seek_delay: ns("seek_delay_ms", spec.seek_delay_ms)?,
        gather: spec.gather_sectors,
        gather_long: spec.gather_long_sectors,
        long_from: spec.long_from_sectors,
    })
}

fn bus(spec: &BusSpec) -> Result<Bus, DeviceError> {
    Ok(Bus {
        read_sector: ms_to_ns("bus.read_sector_ms", spec.read_sector_ms, MAX_MS)?,
        write_sector: ms_to_ns("bus.write_sector_ms", spec.write_sector_ms, MAX_MS)?,
        hold_for_read: spec.hold_for_read,
        hold_for_write: spec.hold_for_write,
        never_disconnect: spec.never_disconnect,
    })
}

/// The rules of a buffer; without one, of a segment that fits everything and keeps nothing.
fn rules(spec: Option<&BufferSpec>) -> Result<Rules, DeviceError> {
    let nothing;
    let spec = match spec {
        Some(spec) => spec,
        None => {
            nothing = BufferSpec { caching: false, ..BufferSpec::of(1, u64::from(u32::MAX)) };
            &nothing
        }
    };
    let wrong = |name: &str, message: String| Err(DeviceError::new(format!("buffer.{name}"), message));
    if !(1..=4096).contains(&spec.segments) {
        return wrong("segments", format!("{} must lie between 1 and 4096", spec.segments));
    }
    if spec.segment_sectors == 0 || spec.segment_sectors > u64::from(u32::MAX) {
        return wrong("segment_sectors", format!("{} must lie between 1 and {}", spec.segment_sectors, u32::MAX));
    }
    if !(1..=spec.segments).contains(&spec.write_segments) {
        let message = format!("{} must lie between 1 and the {} segments", spec.write_segments, spec.segments);
        return wrong("write_segments", message);
    }
    if spec.separate_write_segment && spec.segments < 2 {
        return wrong("separate_write_segment", "needs at least two segments".into());
    }
    for (name, share) in [("read_watermark", spec.read_watermark), ("write_watermark", spec.write_watermark)] {
        if !(0.0..=1.0).contains(&share) {
            return wrong(name, format!("{share} must lie between 0 and 1"));
        }
    }
    for (name, sectors) in [
        ("minimum_read_ahead_sectors", spec.minimum_read_ahead_sectors),
        ("maximum_read_ahead_sectors", spec.maximum_read_ahead_sectors),
    ] {
        if sectors > spec.segment_sectors {
            return wrong(name, format!("{sectors} must be at most the segment's {}", spec.segment_sectors));
        }
    }
    Ok(Rules {
        segments: spec.segments as usize,
        segment_sectors: spec.segment_sectors,
        write_segments: spec.write_segments as usize,
        separate_write_segment: spec.separate_write_segment,
        caching: spec.caching,
        read_ahead: spec.read_ahead,
        minimum_read_ahead: spec.minimum_read_ahead_sectors,
        maximum_read_ahead: spec.maximum_read_ahead_sectors,
        keep_requested: spec.keep_requested,
        read_ahead_on_hit: spec.read_ahead_on_hit,
        read_free_sectors: spec.read_free_sectors,
        zero_latency_read: spec.zero_latency_read,
        zero_latency_write: spec.zero_latency_write,
        write_back: spec.write_back,
        combine_writes: spec.combine_writes,
        read_hits_on_written: spec.read_hits_on_written,
        almost_read_hits: spec.almost_read_hits,
        transfer_partial_hits: spec.transfer_partial_hits,
        stop_within_sector: spec.stop_within_sector,
        read_watermark: spec.read_watermark,
        write_watermark: spec.write_watermark,
        watermark_of_command: spec.watermark_of_command,
        write_prebuffering: spec.write_prebuffering,
        preseek: spec.preseek,
    })
}

/// An angle in 2^-20 ns, below a revolution.
fn skew_fixed(key: &str, skew: Skew, per_track: u32, revolution_ns: u64, usable_ns: u64) -> Result<u64, DeviceError> {
    let fixed = match skew {
        Skew::Sectors(sectors) => sectors_fixed(u64::from(sectors) % (1 << 24), per_track, usable_ns),
        Skew::Ms(ms) => ms_to_ns(key, ms, MAX_MS)? << FRACTION,
        Skew::Revolutions(share) if (0.0..=1000.0).contains(&share) => {
            let part = share - libm::floor(share);
            saturating_u64(part * f64_from(revolution_ns << FRACTION))
        }
        Skew::Revolutions(share) => {
            return Err(DeviceError::new(key, format!("{share} revolutions must lie between 0 and 1000")));
        }
    };
    Ok(fixed % (revolution_ns << FRACTION))
}
