//! What an idle disk takes on average, worked out rather than sampled.
//!
//! Purpose: figures for reports, and something for tests to hold the model against.
//! Invariant: every sector is equally likely, so outer cylinders, which hold more, weigh more.

use super::buffer_spec::WriteBack;
use super::geometry::Zone;
use super::layout::Layout;
use super::seek::SeekTable;
use super::HddSpec;
use crate::{DeviceError, IdleMean};
use raidlab_types::{Duration, OpKind};

impl HddSpec {
    /// Mean times of an operation of `bytes` bytes; flushes and discards cost their overhead.
    pub(crate) fn idle_mean(&self, kind: OpKind, bytes: u64) -> Result<IdleMean, DeviceError> {
        if !self.is_plain() {
            return self.idle_mean_of_drive(kind, bytes);
        }
        let plant = self.compile()?;
        let zero = Duration::ZERO;
        let overhead =
            Duration::from_ns(if kind == OpKind::Read { plant.read_overhead_ns } else { plant.write_overhead_ns });
        if matches!(kind, OpKind::Flush | OpKind::Discard) {
            return Ok(IdleMean { overhead, seek: zero, rotation: zero, transfer: zero });
        }
        let settle = if kind == OpKind::Read { 0.0 } else { plant.write_settle_ns as f64 };
        let zones: Vec<(i64, i64, f64)> = plant
            .geometry
            .zones
            .iter()
            .zip(&self.zones)
            .map(|(at, zone)| {
                let first = at.first_cylinder as i64;
                (first, first + zone.cylinders as i64, zone.sectors_per_track as f64)
            })
            .collect();
        let same_track_head = 1.0 / self.heads as f64;
        let on_arrival = (1.0 - same_track_head) * (plant.head_switch_ns as f64 + settle);
        let seek_ns = mean_over_distances(&zones, &plant.seek, settle, on_arrival);
        let tracks: f64 = zones.iter().map(|z| (z.1 - z.0) as f64).sum();
        let sectors: f64 = zones.iter().map(|z| (z.1 - z.0) as f64 * z.2).sum();
        let sector_ns = plant.geometry.usable_ns as f64 * tracks / sectors;
        Ok(IdleMean {
            overhead,
            seek: Duration::from_ns(seek_ns.round() as u64),
            rotation: Duration::from_ns(plant.geometry.revolution.divisor() / 2),
            transfer: Duration::from_ns((sector_ns * bytes as f64 / self.sector_bytes as f64).round() as u64),
        })
    }
}

impl HddSpec {
    /// The same for a disk with everything: a miss after a read, of an idle disk whose buffer holds nothing of use.
    fn idle_mean_of_drive(&self, kind: OpKind, bytes: u64) -> Result<IdleMean, DeviceError> {
        let works = self.compile_works(0.0)?;
        let (timings, read) = (&works.timings, kind == OpKind::Read);
        let write_back = works.rules.write_back != WriteBack::None;
        let own = match kind {
            OpKind::Read => timings.read_miss[0] + timings.read_completion,
            OpKind::Write | OpKind::WriteZeroes if write_back => timings.write_hit[0] + timings.write_completion,
            _ => timings.write_miss[0] + timings.write_completion,
        };
        let overhead = Duration::from_ns(timings.every + own);
        let zero = Duration::ZERO;
        if matches!(kind, OpKind::Flush | OpKind::Discard) {
            return Ok(IdleMean { overhead, seek: zero, rotation: zero, transfer: zero });
        }
        let sectors = bytes as f64 / self.sector_bytes as f64;
        if !read && write_back {
            let transfer = Duration::from_ns((works.bus.write_sector as f64 * sectors).round() as u64);
            return Ok(IdleMean { overhead, seek: zero, rotation: zero, transfer });
        }
        let settle = if read { 0.0 } else { works.write_settle as f64 };
        let bands = bands(&works.layout);
        let at_zero = (1.0 - 1.0 / self.heads as f64) * (works.head_switch as f64 + settle);
        let seek_ns = mean_over_distances(&bands, &works.seek, settle, at_zero);
        let all: f64 = bands.iter().map(|band| (band.1 - band.0) as f64 * band.2).sum();
        let tracks: f64 = bands.iter().map(|band| (band.1 - band.0) as f64).sum::<f64>() * self.heads as f64;
        let sector_ns = works.revolution_ns() as f64 * tracks / all;
        Ok(IdleMean {
            overhead,
            seek: Duration::from_ns(seek_ns.round() as u64),
            rotation: Duration::from_ns(works.revolution_ns() / 2),
            transfer: Duration::from_ns((sector_ns * sectors).round() as u64),
        })
    }
}

/// Cylinders of about equal size in a row, as `(first cylinder, end, sectors of a cylinder)`: zones, or pieces of them
/// where slips make cylinders differ.
fn bands(layout: &Layout) -> Vec<(i64, i64, f64)> {
    const PIECES: usize = 256;
    let table = match layout {
        Layout::Regular(geometry) => {
            let heads = geometry.heads.divisor() as f64;
            let ends = geometry.zones.iter().skip(1).map(|zone| zone.first_cylinder as i64);
            let ends = ends.chain([geometry.cylinders as i64]);
            let band =
                |(zone, end): (&Zone, i64)| (zone.first_cylinder as i64, end, zone.per_track.divisor() as f64 * heads);
            return geometry.zones.iter().zip(ends).map(band).collect();
        }
        Layout::Table(table) => table,
    };
    let mut sectors = vec![0u64; table.cylinders as usize];
    table.runs().for_each(|run| sectors[run.cylinder as usize] += run.end - run.first);
    let size = sectors.len().div_ceil(PIECES);
    let piece = |(i, piece): (usize, &[u64])| {
        let (first, sum) = ((i * size) as i64, piece.iter().sum::<u64>());
        (first, first + piece.len() as i64, sum as f64 / piece.len() as f64)
    };
    sectors.chunks(size).enumerate().map(piece).collect()
}

/// Mean movement between two independent sectors, for zones `(first cylinder, end, weight of a cylinder)`.
///
/// The number of ways to be d cylinders apart is the autocorrelation of the weights. Between two zones it is a trapezium
/// in d, a sum of four ramps; so over all zones it is piecewise linear, and its second differences say it all.
fn mean_over_distances(zones: &[(i64, i64, f64)], seek: &SeekTable, settle: f64, at_zero: f64) -> f64 {
    let cylinders = zones.last().map_or(0, |zone| zone.1) as usize;
    let (mut ways, mut slope) = (0.0, 0.0);
    let mut bends = vec![0.0; cylinders + 1];
    for a in zones {
        for b in zones {
            let weight = a.2 * b.2;
            for (start, sign) in [(b.0 - a.1, 1.0), (b.0 - a.0, -1.0), (b.1 - a.1, -1.0), (b.1 - a.0, 1.0)] {
                if start <= 0 {
                    ways += sign * weight * -start as f64;
                    slope += sign * weight;
                } else if let Some(bend) = bends.get_mut(start as usize) {
                    *bend += sign * weight;
                }
            }
        }
    }
    let (mut total, mut sum) = (ways, ways * at_zero);
    for (distance, bend) in bends.iter().enumerate().take(cylinders).skip(1) {
        ways += slope;
        slope += bend;
        // The other direction has as many ways.
        total += 2.0 * ways;
        sum += 2.0 * ways * (seek.ns(distance as u32) as f64 + settle);
    }
    sum / total
}
