//! What an idle disk takes on average, worked out rather than sampled.
//!
//! Purpose: figures for reports, and something for tests to hold the model against.
//! Invariant: every sector is equally likely, so outer cylinders, which hold more, weigh more.

use super::seek::SeekTable;
use super::HddSpec;
use crate::{DeviceError, IdleMean};
use raidlab_types::{Duration, OpKind};

impl HddSpec {
    /// Mean times of an operation of `bytes` bytes; flushes and discards cost their overhead.
    pub(crate) fn idle_mean(&self, kind: OpKind, bytes: u64) -> Result<IdleMean, DeviceError> {
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
