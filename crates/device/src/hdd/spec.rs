//! Parameters of a rotating disk, checked and compiled.
//!
//! Invariant: what compiles has no empty zone, a gap shorter than a revolution, seeks between 0 and 4 s and at least one
//! sector of the array.

use super::buffer_spec::{BufferSpec, BusSpec, CommandSpec};
use super::geometry::{DiskGeometry, ZoneInput};
use super::layout_spec::LayoutSpec;
use super::mechanism::{Crossing, Crossings, Plant};
use super::seek::{SeekSpec, SeekTable};
use super::zone_spec::{Mapping, Skew, Sparing, ZoneSpec};
use crate::error::{check_sector_bytes, ms_to_ns, within};
use crate::fixed::default_sector_bytes;
use crate::{Provenance, SchedulerSpec, SpecError, ThrottleSpec};
use raidlab_types::number::{f64_from, saturating_u64, u32_from};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Longest revolution, overhead, settle and gap accepted, in ms.
const MAX_MS: f64 = 1000.0;

/// Parameters of a rotating disk.
///
/// A disk without any of `layout`, `mapping`, `sparing`, `cylinders`, `sectors`, `rpm_error_percent`, `buffer`, `bus`, `commands` and the
/// finer keys of zones is priced by a shorter way of reckoning, to the same times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HddSpec {
    /// What the disk is called.
    pub name: Option<String>,
    /// What it stands for.
    pub description: Option<String>,
    /// Where each parameter comes from.
    #[serde(default)]
    pub provenance: BTreeMap<String, Provenance>,
    /// Limits on the rate at which it takes operations.
    #[serde(default)]
    pub throttle: Vec<ThrottleSpec>,
    /// Logical block, in bytes.
    #[serde(default = "default_sector_bytes")]
    pub sector_bytes: u32,
    /// Length of a revolution, in ms; either this or `rpm`.
    pub revolution_ms: Option<f64>,
    /// Revolutions a minute; either this or `revolution_ms`.
    pub rpm: Option<f64>,
    /// Largest deviation of the speed, in percent: each disk draws its own, uniformly.
    #[serde(default)]
    pub rpm_error_percent: f64,
    /// Tracks a cylinder.
    pub heads: u32,
    /// Cylinders that the arm can reach, where there are more than hold data.
    pub cylinders: Option<u32>,
    /// Addresses that the disk gives out, where the layout has room for more.
    pub sectors: Option<u64>,
    /// Zones from the outer edge (address 0) in.
    #[serde(default)]
    pub zones: Vec<ZoneSpec>,
    /// In place of zones: a map of extents or an index of patterns.
    pub layout: Option<LayoutSpec>,
    /// In which order addresses take the heads of a cylinder.
    #[serde(default)]
    pub mapping: Mapping,
    /// Where spare sectors are, and what a slipped sector moves.
    #[serde(default)]
    pub sparing: Sparing,
    /// Part of each revolution that holds no sectors, in ms.
    #[serde(default)]
    pub track_gap_ms: f64,
    /// How far the first sector of a track lies behind that of the track before it in the same cylinder.
    #[serde(default)]
    pub track_skew: Skew,
    /// How far the first sector of a cylinder lies behind that of the last track of the cylinder before it.
    #[serde(default)]
    pub cylinder_skew: Skew,
    /// Switch to another head of the same cylinder, in ms; hidden under a seek that is longer.
    #[serde(default)]
    pub head_switch_ms: f64,
    /// Time of the controller before a read moves anything, in ms; `commands` says it more finely.
    #[serde(default)]
    pub read_overhead_ms: f64,
    /// Time of the controller before a write moves anything, in ms; all that a flush or discard takes.
    #[serde(default)]
    pub write_overhead_ms: f64,
    /// Further settling of a write after each movement of arm or switch of head, in ms; negative where reads take longer.
    #[serde(default)]
    pub write_settle_ms: f64,
    /// How long the arm takes.
    pub seek: SeekSpec,
    /// From the end of a prepaid pair's read to when its write could begin, overheads of the write included, in ms.
    #[serde(default)]
    pub pair_turnaround_ms: f64,
    /// What commands cost in the electronics.
    pub commands: Option<CommandSpec>,
    /// The bus between disk and host.
    pub bus: Option<BusSpec>,
    /// The track buffer.
    pub buffer: Option<BufferSpec>,
    /// Order of service.
    #[serde(default)]
    pub scheduler: SchedulerSpec,
    /// Commands the disk holds at a time, the one in service included; the rest wait with the host.
    pub queue_depth: Option<u32>,
    /// The order in which the host gives the disk what it had no room for.
    #[serde(default)]
    pub host_scheduler: SchedulerSpec,
    /// Only reads of it were measured, so that it is never written.
    #[serde(default)]
    pub reads_only: bool,
}

impl HddSpec {
    /// Whether nothing is asked for that the short way of reckoning does not know.
    pub(crate) fn is_plain(&self) -> bool {
        let plain_zone = |zone: &ZoneSpec| {
            zone.first_cylinder.is_none()
                && zone.start_angle.is_none()
                && (zone.reserved_sectors, zone.spares) == (0, 0)
                && zone.slips.is_empty()
                && zone.remaps.is_empty()
        };
        self.layout.is_none()
            && self.cylinders.is_none()
            && self.sectors.is_none()
            && (self.mapping, self.sparing) == (Mapping::Normal, Sparing::None)
            && self.rpm_error_percent == 0.0
            && self.write_settle_ms >= 0.0
            && self.buffer.is_none()
            && self.bus.is_none()
            && self.commands.is_none()
            && self.zones.iter().all(plain_zone)
    }

    /// Length of a revolution and of the part of it that holds sectors, in ns.
    pub(super) fn turn_ns(&self) -> Result<(u64, u64), SpecError> {
        let revolution_ns = self.revolution_ns()?;
        let gap_ns = ms_to_ns("track_gap_ms", self.track_gap_ms, MAX_MS)?;
        if gap_ns * 2 > revolution_ns {
            let message = format!("{} ms must be at most half a revolution", self.track_gap_ms);
            return Err(SpecError::new("track_gap_ms", message));
        }
        Ok((revolution_ns, revolution_ns - gap_ns))
    }

    /// Checks what every disk has.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        check_sector_bytes(self.sector_bytes)?;
        within("heads", self.heads, 1..=256, "")?;
        if self.queue_depth == Some(0) {
            return Err(SpecError::new("queue_depth", "0 must be at least 1"));
        }
        Ok(())
    }

    /// Checks the parameters of a plain disk and computes everything that does not change.
    pub(crate) fn compile(&self) -> Result<Plant, SpecError> {
        self.check()?;
        let ns = |key: &str, ms: f64| ms_to_ns(key, ms, MAX_MS);
        let (revolution_ns, usable_ns) = self.turn_ns()?;
        let gap_ns = revolution_ns - usable_ns;
        let zones = self.zone_inputs(revolution_ns, usable_ns)?;
        let geometry = DiskGeometry::new(&zones, self.heads, revolution_ns, usable_ns);
        let head_switch_ns = ns("head_switch_ms", self.head_switch_ms)?;
        let seek = SeekTable::new(&self.seek, geometry.cylinders, u32_from(head_switch_ns))?;
        let write_settle_ns = ns("write_settle_ms", self.write_settle_ms)?;
        let next_cylinder = if geometry.cylinders > 1 { u64::from(seek.ns(1)) } else { 0 };
        let steps_with = |settle: u64| {
            let step = |skew: u64, movement: u64| boundary(skew + gap_ns, movement + settle, revolution_ns);
            let of_zone = |zone: &ZoneInput| Crossings {
                head: step(zone.track_skew_ns, head_switch_ns),
                cylinder: step(zone.cylinder_skew_ns, next_cylinder),
            };
            zones.iter().map(of_zone).collect::<Box<[Crossings]>>()
        };
        Ok(Plant {
            steps: [steps_with(0), steps_with(write_settle_ns)],
            geometry,
            seek,
            head_switch_ns,
            read_overhead_ns: ns("read_overhead_ms", self.read_overhead_ms)?,
            write_overhead_ns: ns("write_overhead_ms", self.write_overhead_ms)?,
            write_settle_ns,
            turnaround_ns: ns("pair_turnaround_ms", self.pair_turnaround_ms)?,
        })
    }

    fn revolution_ns(&self) -> Result<u64, SpecError> {
        let ms = match (self.revolution_ms, self.rpm) {
            (Some(ms), None) => ms,
            (None, Some(rpm)) => 60e3 / rpm,
            _ => return Err(SpecError::new("revolution_ms", "give either revolution_ms or rpm")),
        };
        let key = if self.rpm.is_some() { "rpm" } else { "revolution_ms" };
        match ms_to_ns(key, ms, MAX_MS)? {
            short if short < 1000 => Err(SpecError::new(key, format!("a revolution of {ms} ms is below 1 us"))),
            ns => Ok(ns),
        }
    }

    /// The zones as equal tracks, one after another.
    pub(super) fn zone_inputs(&self, revolution_ns: u64, usable_ns: u64) -> Result<Vec<ZoneInput>, SpecError> {
        if !(1..=4096).contains(&self.zones.len()) {
            return Err(SpecError::new("zones", format!("{} zones; accepted: 1 to 4096", self.zones.len())));
        }
        let cylinders: u64 = self.zones.iter().map(|zone| u64::from(zone.cylinders)).sum();
        if cylinders > 1 << 24 {
            return Err(SpecError::new("zones", format!("{cylinders} cylinders; accepted: up to {}", 1 << 24)));
        }
        let input = |(i, zone): (usize, &ZoneSpec)| {
            let key = |name: &str| format!("zones[{i}].{name}");
            if zone.cylinders == 0 {
                return Err(SpecError::new(key("cylinders"), "must be at least 1"));
            }
            let per_track = within(&key("sectors_per_track"), zone.sectors_per_track, 1..=65_536, "")?;
            let skew = |name: &str, own: Option<Skew>, common: Skew| {
                let key = if own.is_some() { key(name) } else { name.to_owned() };
                skew_ns(&key, own.unwrap_or(common), per_track, revolution_ns, usable_ns)
            };
            Ok(ZoneInput {
                cylinders: zone.cylinders,
                sectors_per_track: per_track,
                track_skew_ns: skew("track_skew", zone.track_skew, self.track_skew)?,
                cylinder_skew_ns: skew("cylinder_skew", zone.cylinder_skew, self.cylinder_skew)?,
            })
        };
        self.zones.iter().enumerate().map(input).collect()
    }
}

/// A skew in ns, modulo a revolution.
fn skew_ns(key: &str, skew: Skew, per_track: u32, revolution: u64, usable: u64) -> Result<u64, SpecError> {
    let ns = match skew {
        Skew::Ms(ms) => ms_to_ns(key, ms, MAX_MS)?,
        Skew::Sectors(sectors) => {
            saturating_u64((f64::from(sectors) * f64_from(usable) / f64::from(per_track)).round())
        }
        Skew::Revolutions(share) => ms_to_ns(key, share * f64_from(revolution) / 1e6, MAX_MS)?,
    };
    Ok(ns % revolution)
}

/// Movement and wait from the end of one track's sectors to the first of the next, which lies `ahead` ns further on.
fn boundary(ahead: u64, movement: u64, revolution: u64) -> Crossing {
    // Both are below a few revolutions, so one multiple of the revolution keeps the difference positive.
    let turns = movement.div_ceil(revolution) * revolution;
    Crossing { seek: movement, rotation: (ahead + turns - movement) % revolution }
}
