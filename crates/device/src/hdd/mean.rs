//! What an idle disk takes on average, worked out rather than sampled.
//!
//! Purpose: figures for reports, and something for tests to hold the model against.
//! Invariant: every sector is equally likely, so outer cylinders, which hold more, weigh more.

use super::buffer_spec::WriteBack;
use super::geometry::Zone;
use super::layout::DiskLayout;
use super::seek::SeekTable;
use super::HddSpec;
use crate::{IdleMean, SpecError};
use raidlab_types::number::{f64_from, i64_from, saturating_u64, u32_from, usize_from};
use raidlab_types::{Duration, OpKind};

impl HddSpec {
    /// Mean times of an operation of `bytes` bytes; flushes and discards cost their overhead.
    pub(crate) fn idle_mean(&self, kind: OpKind, bytes: u64) -> Result<IdleMean, SpecError> {
        if !self.is_plain() {
            return self.idle_mean_of_drive(kind, bytes);
        }
        let plant = self.compile()?;
        let overhead =
            Duration::from_ns(if kind == OpKind::Read { plant.read_overhead_ns } else { plant.write_overhead_ns });
        if matches!(kind, OpKind::Flush | OpKind::Discard) {
            return Ok(IdleMean::still(overhead, Duration::ZERO));
        }
        let settle = if kind == OpKind::Read { 0.0 } else { f64_from(plant.write_settle_ns) };
        let zones: Vec<(i64, i64, f64)> = plant
            .geometry
            .zones
            .iter()
            .zip(&self.zones)
            .map(|(at, zone)| {
                let first = i64::from(at.first_cylinder);
                (first, first + i64::from(zone.cylinders), f64::from(zone.sectors_per_track))
            })
            .collect();
        let same_track_head = 1.0 / f64::from(self.heads);
        let on_arrival = (1.0 - same_track_head) * (f64_from(plant.head_switch_ns) + settle);
        let seek_ns = mean_over_distances(&zones, &plant.seek, settle, on_arrival);
        let tracks: f64 = zones.iter().map(|z| f64_from(z.1 - z.0)).sum();
        let sectors: f64 = zones.iter().map(|z| f64_from(z.1 - z.0) * z.2).sum();
        let sector_ns = f64_from(plant.geometry.usable_ns) * tracks / sectors;
        Ok(IdleMean {
            overhead,
            seek: Duration::from_ns(saturating_u64(seek_ns.round())),
            rotation: Duration::from_ns(plant.geometry.revolution.divisor() / 2),
            transfer: Duration::from_ns(saturating_u64(
                (sector_ns * f64_from(bytes) / f64::from(self.sector_bytes)).round(),
            )),
        })
    }
}

impl HddSpec {
    /// The same for a disk with everything: a miss after a read, of an idle disk whose buffer holds nothing of use.
    fn idle_mean_of_drive(&self, kind: OpKind, bytes: u64) -> Result<IdleMean, SpecError> {
        let model = self.compile_model(0.0)?;
        let (timings, read) = (&model.timings, kind == OpKind::Read);
        let write_back = model.rules.write_back != WriteBack::None;
        let own = match kind {
            OpKind::Read => timings.read_miss[0] + timings.read_completion,
            OpKind::Write | OpKind::WriteZeroes if write_back => timings.write_hit[0] + timings.write_completion,
            _ => timings.write_miss[0] + timings.write_completion,
        };
        let overhead = Duration::from_ns(timings.every + own);
        if matches!(kind, OpKind::Flush | OpKind::Discard) {
            return Ok(IdleMean::still(overhead, Duration::ZERO));
        }
        let sectors = f64_from(bytes) / f64::from(self.sector_bytes);
        if !read && write_back {
            let transfer = Duration::from_ns(saturating_u64((f64_from(model.bus.write_sector) * sectors).round()));
            return Ok(IdleMean::still(overhead, transfer));
        }
        let settle = if read { 0.0 } else { f64_from(model.write_settle) };
        let bands = bands(&model.layout);
        let at_zero = (1.0 - 1.0 / f64::from(self.heads)) * (f64_from(model.head_switch) + settle);
        let seek_ns = mean_over_distances(&bands, &model.seek, settle, at_zero);
        let all: f64 = bands.iter().map(|band| f64_from(band.1 - band.0) * band.2).sum();
        let tracks: f64 = bands.iter().map(|band| f64_from(band.1 - band.0)).sum::<f64>() * f64::from(self.heads);
        let sector_ns = f64_from(model.revolution_ns()) * tracks / all;
        Ok(IdleMean {
            overhead,
            seek: Duration::from_ns(saturating_u64(seek_ns.round())),
            rotation: Duration::from_ns(model.revolution_ns() / 2),
            transfer: Duration::from_ns(saturating_u64((sector_ns * sectors).round())),
        })
    }
}

/// Cylinders of about equal size in a row, as `(first cylinder, end, sectors of a cylinder)`: zones, or pieces of them
/// where slips make cylinders differ.
fn bands(layout: &DiskLayout) -> Vec<(i64, i64, f64)> {
    const PIECES: usize = 256;
    let table = match layout {
        DiskLayout::Regular(geometry) => {
            let heads = f64_from(geometry.heads.divisor());
            let ends = geometry.zones.iter().skip(1).map(|zone| i64::from(zone.first_cylinder));
            let ends = ends.chain([i64::from(geometry.cylinders)]);
            let band = |(zone, end): (&Zone, i64)| {
                (i64::from(zone.first_cylinder), end, f64_from(zone.per_track.divisor()) * heads)
            };
            return geometry.zones.iter().zip(ends).map(band).collect();
        }
        DiskLayout::Table(table) => table,
    };
    let mut sectors = vec![0u64; table.cylinders as usize];
    table.runs().for_each(|run| sectors[run.cylinder as usize] += run.end - run.first);
    let size = sectors.len().div_ceil(PIECES);
    let piece = |(i, piece): (usize, &[u64])| {
        let (first, sum) = (i64_from(i * size), piece.iter().sum::<u64>());
        (first, first + i64_from(piece.len()), f64_from(sum) / f64_from(piece.len()))
    };
    sectors.chunks(size).enumerate().map(piece).collect()
}

/// Mean movement between two independent sectors, for zones `(first cylinder, end, weight of a cylinder)`.
///
/// The number of ways to be d cylinders apart is the autocorrelation of the weights. Between two zones it is a trapezium
/// in d, a sum of four ramps; so over all zones it is piecewise linear, and its second differences say it all.
fn mean_over_distances(zones: &[(i64, i64, f64)], seek: &SeekTable, settle: f64, at_zero: f64) -> f64 {
    let cylinders = usize_from(zones.last().map_or(0, |zone| zone.1));
    let (mut ways, mut slope) = (0.0, 0.0);
    let mut bends = vec![0.0; cylinders + 1];
    for a in zones {
        for b in zones {
            let weight = a.2 * b.2;
            for (start, sign) in [(b.0 - a.1, 1.0), (b.0 - a.0, -1.0), (b.1 - a.1, -1.0), (b.1 - a.0, 1.0)] {
                if start <= 0 {
                    ways += sign * weight * f64_from(-start);
                    slope += sign * weight;
                } else if let Some(bend) = bends.get_mut(usize_from(start)) {
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
        sum += 2.0 * ways * (f64::from(seek.ns(u32_from(distance))) + settle);
    }
    sum / total
}
