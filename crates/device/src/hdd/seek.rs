//! The time the arm takes, by distance.
//!
//! Purpose: the ways to say it (Lee's three-point curve, a measured table, formulas), compiled into one table.
//!
//! Invariants: no distance, no time; the table is exact to the nanosecond for the first 8192 cylinders and
//! linear between points a few cylinders apart beyond, where every seek curve is all but straight.
//!
//! References: E. K. Lee and R. H. Katz, *An analytic performance model of disk arrays*, SIGMETRICS 1993; C. Ruemmler and
//! J. Wilkes, *An introduction to disk drive modeling*, IEEE Computer 27(3), 1994.

use crate::SpecError;
use raidlab_types::number::{saturating_u32, u32_from};
use serde::{Deserialize, Serialize};

/// Distances held one by one: 32 KiB, which stays in a first-level cache.
const NEAR: usize = 8192;

/// Longest seek accepted, in ms: what 32 bits of nanoseconds hold.
const MAX_MS: f64 = 4000.0;

/// How long a seek takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SeekSpec {
    /// Lee's curve `a sqrt(x - 1) + b (x - 1) + c` through three figures that data sheets print: with n cylinders,
    /// `a = (-10 min + 15 avg - 5 max) / (3 sqrt n)`, `b = (7 min - 15 avg + 8 max) / 3n`, `c = min`.
    Lee {
        /// Seek of one cylinder, in ms.
        min_ms: f64,
        /// Mean over random pairs of cylinders, in ms.
        avg_ms: f64,
        /// Seek across all cylinders, in ms.
        max_ms: f64,
    },
    /// Measured points `[cylinders, ms]` by rising distance, linear between; the first also counts for
    /// shorter distances, beyond the last the last slope goes on.
    Table {
        /// The points.
        points: Vec<(u32, f64)>,
    },
    /// `a + b sqrt(d) + c d` for a distance of d > 0 cylinders.
    Curve {
        /// Constant, in ms.
        a_ms: f64,
        /// Coefficient of the square root, in ms.
        b_ms: f64,
        /// Coefficient of the distance, in ms a cylinder.
        c_ms: f64,
    },
    /// The same time for every distance.
    Constant {
        /// That time, in ms.
        ms: f64,
    },
    /// Straight from a seek of one cylinder to the mean at a third of the cylinders, and from there to the longest.
    Linear {
        /// Seek of one cylinder, in ms.
        min_ms: f64,
        /// Mean over random pairs of cylinders, in ms.
        avg_ms: f64,
        /// Seek across all cylinders, in ms.
        max_ms: f64,
    },
    /// Two pieces, as Ruemmler and Wilkes (1994) fit disks: `root_a + root_b sqrt(d)` for distances below `division`
    /// cylinders, `line_a + line_b d` from there on.
    Hp {
        /// The first distance of the straight piece.
        division: u32,
        /// Constant of the curved piece, in ms.
        root_a_ms: f64,
        /// Coefficient of the square root, in ms.
        root_b_ms: f64,
        /// Constant of the straight piece, in ms.
        line_a_ms: f64,
        /// Coefficient of the distance, in ms a cylinder.
        line_b_ms: f64,
        /// Times of 1, 2, ... cylinders that differ from the curve, in ms.
        #[serde(default)]
        first_ms: Vec<f64>,
    },
}

impl SeekSpec {
    /// The seek over `distance` > 0 of `cylinders` cylinders, in ms.
    fn ms(&self, distance: u32, cylinders: u32) -> f64 {
        let d = f64::from(distance);
        match self {
            SeekSpec::Lee { min_ms, avg_ms, max_ms } => {
                let n = f64::from(cylinders);
                let a = (-10.0 * min_ms + 15.0 * avg_ms - 5.0 * max_ms) / (3.0 * n.sqrt());
                let b = (7.0 * min_ms - 15.0 * avg_ms + 8.0 * max_ms) / (3.0 * n);
                a * (d - 1.0).sqrt() + b * (d - 1.0) + min_ms
            }
            SeekSpec::Curve { a_ms, b_ms, c_ms } => a_ms + b_ms * d.sqrt() + c_ms * d,
            SeekSpec::Constant { ms } => *ms,
            SeekSpec::Linear { min_ms, avg_ms, max_ms } => {
                let n = f64::from(cylinders);
                if 3.0 * d <= n {
                    min_ms + (avg_ms - min_ms) * 3.0 * (d - 1.0) / n
                } else {
                    avg_ms + (max_ms - avg_ms) * (3.0 * d - n) / (2.0 * n)
                }
            }
            SeekSpec::Hp { division, root_a_ms, root_b_ms, line_a_ms, line_b_ms, first_ms } => {
                match first_ms.get(distance as usize - 1) {
                    Some(&ms) => ms,
                    None if distance < *division => root_a_ms + root_b_ms * d.sqrt(),
                    None => line_a_ms + line_b_ms * d,
                }
            }
            SeekSpec::Table { points } => interpolate(points, distance),
        }
    }

    fn check(&self) -> Result<(), SpecError> {
        let SeekSpec::Table { points } = self else { return Ok(()) };
        if points.is_empty() || points[0].0 == 0 {
            return Err(SpecError::new("seek.points", "needs [cylinders, ms] points from 1 cylinder up"));
        }
        match points.windows(2).position(|pair| pair[0].0 >= pair[1].0) {
            Some(i) => {
                let message = format!("{} cylinders after {}: distances must rise", points[i + 1].0, points[i].0);
                Err(SpecError::new(format!("seek.points[{}]", i + 1), message))
            }
            None => Ok(()),
        }
    }

    /// The key to blame when the curve leaves the range of possible times.
    fn key(&self) -> &'static str {
        match self {
            SeekSpec::Lee { .. } => "seek.avg_ms",
            SeekSpec::Table { .. } => "seek.points",
            SeekSpec::Curve { .. } | SeekSpec::Hp { .. } => "seek",
            SeekSpec::Constant { .. } => "seek.ms",
            SeekSpec::Linear { .. } => "seek.avg_ms",
        }
    }
}

fn interpolate(points: &[(u32, f64)], distance: u32) -> f64 {
    let above = points.partition_point(|point| point.0 < distance);
    if above == 0 || points.len() == 1 {
        return points[0].1;
    }
    let above = above.min(points.len() - 1);
    let ((d0, t0), (d1, t1)) = (points[above - 1], points[above]);
    t0 + (t1 - t0) * (f64::from(distance) - f64::from(d0)) / (f64::from(d1) - f64::from(d0))
}

/// Seek times in ns by distance in cylinders.
#[derive(Debug, Clone)]
pub(crate) struct SeekTable {
    near: Box<[u32]>,
    /// Every 2^shift-th distance from 0 on; empty where `near` holds them all.
    far: Box<[u32]>,
    shift: u32,
}

impl SeekTable {
    /// Compiles `spec` for a disk of `cylinders` cylinders; no movement is shorter than `floor_ns` (the switch of head
    /// that may go with it, done while the arm moves).
    pub(crate) fn new(spec: &SeekSpec, cylinders: u32, floor_ns: u32) -> Result<Self, SpecError> {
        spec.check()?;
        let at = |distance: u32| -> Result<u32, SpecError> {
            if distance == 0 {
                return Ok(0);
            }
            let ms = spec.ms(distance, cylinders);
            if !(0.0..=MAX_MS).contains(&ms) {
                let message = format!("gives {ms} ms for a seek of {distance} cylinders; accepted: 0 to {MAX_MS} ms");
                return Err(SpecError::new(spec.key(), message));
            }
            Ok(saturating_u32((ms * 1e6).round()).max(floor_ns))
        };
        let near = (0..cylinders.min(u32_from(NEAR))).map(at).collect::<Result<_, _>>()?;
        if cylinders as usize <= NEAR {
            return Ok(SeekTable { near, far: Box::new([]), shift: 0 });
        }
        // The smallest power of two that covers the stroke in NEAR steps.
        let shift = (cylinders.div_ceil(u32_from(NEAR))).next_power_of_two().trailing_zeros();
        // One point beyond the stroke, so that interpolation always finds a right neighbour.
        let far = (0..=(cylinders >> shift) + 1).map(|step| at(step << shift)).collect::<Result<_, _>>()?;
        Ok(SeekTable { near, far, shift })
    }

    /// The seek over `distance` cylinders, in ns.
    #[inline]
    pub(crate) fn ns(&self, distance: u32) -> u32 {
        match self.near.get(distance as usize) {
            Some(&ns) => ns,
            None => self.far_ns(distance),
        }
    }

    #[inline]
    fn far_ns(&self, distance: u32) -> u32 {
        let step = (distance >> self.shift) as usize;
        let within = i64::from(distance & ((1 << self.shift) - 1));
        let (left, right) = (i64::from(self.far[step]), i64::from(self.far[step + 1]));
        u32_from(left + (((right - left) * within) >> self.shift))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEE: SeekSpec = SeekSpec::Lee { min_ms: 3.5, avg_ms: 15.0, max_ms: 26.0 };

    #[test]
    fn lee_goes_through_its_three_figures() {
        let n = 885u32;
        let table = SeekTable::new(&LEE, n, 0).unwrap();
        assert_eq!((table.ns(0), table.ns(1)), (0, 3_500_000));
        assert!((table.ns(n - 1) as f64 / 26e6 - 1.0).abs() < 0.002, "{}", table.ns(n - 1));
        // Mean over random pairs of cylinders: d has n - |d| ways on either side.
        let ways = |d: u32| if d == 0 { n as u64 } else { 2 * (n - d) as u64 };
        let mean = (0..n).map(|d| ways(d) * table.ns(d) as u64).sum::<u64>() as f64 / (n as f64).powi(2);
        assert!((mean / 15e6 - 1.0).abs() < 0.005, "mean {mean}");
        assert!((1..n).all(|d| table.ns(d) >= table.ns(d - 1)));
    }

    #[test]
    fn a_wide_disk_is_interpolated_closely() {
        let (spec, n) = (SeekSpec::Lee { min_ms: 1.0, avg_ms: 8.5, max_ms: 17.0 }, 376_832);
        let table = SeekTable::new(&spec, n, 0).unwrap();
        for d in (1..n).step_by(37).chain([NEAR as u32 - 1, NEAR as u32, n - 1]) {
            let exact = spec.ms(d, n) * 1e6;
            assert!((table.ns(d) as f64 - exact).abs() < 100.0, "{d}: {} against {exact}", table.ns(d));
        }
    }

    #[test]
    fn tables_interpolate_and_go_on_at_the_last_slope() {
        let spec = SeekSpec::Table { points: vec![(2, 1.0), (10, 3.0), (20, 4.0)] };
        let table = SeekTable::new(&spec, 100, 500_000).unwrap();
        let ms = |d| table.ns(d) as f64 / 1e6;
        assert_eq!((ms(1), ms(2), ms(6), ms(10), ms(15), ms(30)), (1.0, 1.0, 2.0, 3.0, 3.5, 5.0));
        assert_eq!(SeekTable::new(&spec, 100, 1_200_000).unwrap().ns(1), 1_200_000);
    }

    #[test]
    fn two_pieces_straight_lines_and_a_constant() {
        let ms = |spec: &SeekSpec, d| SeekTable::new(spec, 901, 0).unwrap().ns(d) as f64 / 1e6;
        let hp = |first_ms: Vec<f64>| SeekSpec::Hp {
            division: 400,
            root_a_ms: 2.0,
            root_b_ms: 0.3,
            line_a_ms: 5.0,
            line_b_ms: 0.01,
            first_ms,
        };
        assert_eq!((ms(&hp(vec![]), 1), ms(&hp(vec![]), 100), ms(&hp(vec![]), 400)), (2.3, 5.0, 9.0));
        let measured = hp(vec![1.5, 1.75]);
        assert_eq!((ms(&measured, 1), ms(&measured, 2), ms(&measured, 4)), (1.5, 1.75, 2.6));
        let lines = SeekSpec::Linear { min_ms: 2.0, avg_ms: 5.0, max_ms: 11.0 };
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 0.01, "{found} {expected}");
        near(ms(&lines, 1), 2.0);
        near(ms(&lines, 301), 5.0);
        near(ms(&lines, 601), 8.0);
        assert_eq!(ms(&SeekSpec::Constant { ms: 1.25 }, 900), 1.25);
    }

    #[test]
    fn the_formula_and_what_is_refused() {
        let curve = SeekSpec::Curve { a_ms: 2.0, b_ms: 0.5, c_ms: 0.01 };
        assert_eq!(SeekTable::new(&curve, 200, 0).unwrap().ns(100), 8_000_000);
        let key = |spec: SeekSpec| SeekTable::new(&spec, 1000, 0).unwrap_err().key;
        assert_eq!(key(SeekSpec::Curve { a_ms: 1.0, b_ms: 0.0, c_ms: -0.01 }), "seek");
        assert_eq!(key(SeekSpec::Table { points: vec![] }), "seek.points");
        assert_eq!(key(SeekSpec::Table { points: vec![(1, 1.0), (1, 2.0)] }), "seek.points[1]");
        assert_eq!(key(SeekSpec::Lee { min_ms: 1.0, avg_ms: -50.0, max_ms: 2.0 }), "seek.avg_ms");
    }
}
