//! The search for the queue depth at which a percentile of response time equals a target.
//!
//! Purpose: equal-percentile comparisons. Depths are doubled from 1 until the target is exceeded, then bisected until two
//! neighbouring whole depths bracket it; depth and throughput are interpolated linearly between these two, and both are
//! given as bounds.
//!
//! Invariants:
//! - The next depth is a function of the points reported so far, in whatever order they came; known points may be
//!   reported beforehand to save runs.
//! - Every point below the bracket meets the target. Where noise makes the percentile fall with depth, the *lowest*
//!   depth that exceeds the target bounds the answer.
//!
//! Reference: Chen et al., *An Evaluation of Redundant Arrays of Disks Using an Amdahl 5890*, SIGMETRICS 1990.

use crate::error::{depth, SpecError};
use raidlab_types::number::f64_from;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run of the search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Queue depth.
    pub depth: u32,
    /// The percentile of response time reached there.
    pub percentile_ns: u64,
    /// Throughput there, in the caller's unit.
    pub throughput: f64,
}

/// What the search found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    /// Two neighbouring depths bracket the target.
    Between {
        /// Interpolated depth.
        depth: f64,
        /// Interpolated throughput.
        throughput: f64,
        /// The highest depth that meets the target.
        lower: Point,
        /// The depth after it, which exceeds the target.
        upper: Point,
    },
    /// The target is met even at the greatest depth allowed: the true depth is at least this.
    NeverExceeded {
        /// The greatest depth.
        last: Point,
    },
    /// The target is exceeded even at depth 1: no depth meets it.
    AlwaysExceeded {
        /// Depth 1.
        first: Point,
    },
}

/// The search. Run at [`next`](DepthSearch::next), [`report`](DepthSearch::report), until there is an
/// [`answer`](DepthSearch::answer).
#[derive(Debug, Clone)]
pub struct DepthSearch {
    percentile: f64,
    target_ns: u64,
    max_depth: u32,
    points: BTreeMap<u32, Point>,
}

impl DepthSearch {
    /// A search for `percentile` (0 to 100) at `target_ns`, up to `max_depth`.
    pub fn new(percentile: f64, target_ns: u64, max_depth: u32) -> Result<Self, SpecError> {
        check_percentile("percentile", percentile)?;
        if target_ns == 0 {
            return Err(SpecError::new("target_ns", "0; accepted: above 0"));
        }
        depth("", "max_depth", max_depth)?;
        Ok(DepthSearch { percentile, target_ns, max_depth, points: BTreeMap::new() })
    }

    /// The percentile to report, 0 to 100.
    pub fn percentile(&self) -> f64 {
        self.percentile
    }

    /// The depth to run next; none once there is an answer. Asking again without a report gives the same.
    #[allow(clippy::should_implement_trait)] // It takes no part in iteration: a report must come between two calls.
    pub fn next(&self) -> Option<u32> {
        let (met, exceeded) = self.bracket();
        let next = match (met.map_or(0, |p| p.depth), exceeded.map(|p| p.depth)) {
            (met, None) if met >= self.max_depth => return None,
            (met, None) => met.saturating_mul(2).clamp(1, self.max_depth),
            (met, Some(exceeded)) if exceeded - met <= 1 => return None,
            // Below the first point there is nothing to bisect with, so depth 1 itself.
            (0, Some(_)) => 1,
            (met, Some(exceeded)) => met + (exceeded - met) / 2,
        };
        Some(next)
    }

    /// The percentile and the throughput (in any unit) of a run at `depth`. A second report of a depth replaces the first.
    pub fn report(&mut self, depth: u32, percentile_ns: u64, throughput: f64) {
        self.points.insert(depth, Point { depth, percentile_ns, throughput });
    }

    /// The answer, once no further run is needed.
    pub fn answer(&self) -> Option<Answer> {
        if self.next().is_some() {
            return None;
        }
        match self.bracket() {
            (Some(lower), Some(upper)) => Some(self.interpolate(lower, upper)),
            (Some(last), None) => Some(Answer::NeverExceeded { last }),
            (None, Some(first)) => Some(Answer::AlwaysExceeded { first }),
            (None, None) => None,
        }
    }

    /// All points reported, by depth.
    pub fn points(&self) -> impl Iterator<Item = Point> + '_ {
        self.points.values().copied()
    }

    /// The lowest depth that exceeds the target, and the highest below it.
    fn bracket(&self) -> (Option<Point>, Option<Point>) {
        let exceeded = self.points().find(|point| point.percentile_ns > self.target_ns);
        let limit = exceeded.map_or(u32::MAX, |point| point.depth);
        (self.points().take_while(|point| point.depth < limit).last(), exceeded)
    }

    fn interpolate(&self, lower: Point, upper: Point) -> Answer {
        // The upper percentile lies above the target and the lower does not, so the difference is not zero.
        let rise = f64_from(upper.percentile_ns - lower.percentile_ns);
        let share = f64_from(self.target_ns - lower.percentile_ns) / rise;
        let depth = f64::from(lower.depth) + share * f64::from(upper.depth - lower.depth);
        let throughput = lower.throughput + share * (upper.throughput - lower.throughput);
        Answer::Between { depth, throughput, lower, upper }
    }
}

/// Percentiles lie strictly between 0 and 100.
pub(crate) fn check_percentile(key: &str, percentile: f64) -> Result<f64, SpecError> {
    if percentile > 0.0 && percentile < 100.0 {
        return Ok(percentile);
    }
    Err(SpecError::new(key, format!("{percentile}; accepted: a number between 0 and 100, such as 90")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs a search against a response-time curve; the depths it asked for.
    fn run(search: &mut DepthSearch, curve: impl Fn(u32) -> u64) -> Vec<u32> {
        let mut asked = Vec::new();
        while let Some(depth) = search.next() {
            assert_eq!(search.next(), Some(depth));
            asked.push(depth);
            search.report(depth, curve(depth), f64::from(depth) * 10.0);
            assert!(asked.len() < 100);
        }
        asked
    }

    #[test]
    fn doubles_then_bisects_then_interpolates() {
        let mut search = DepthSearch::new(90.0, 1_050, 1000).unwrap();
        assert_eq!(run(&mut search, |d| u64::from(d) * 100), [1, 2, 4, 8, 16, 12, 10, 11]);
        let Some(Answer::Between { depth, throughput, lower, upper }) = search.answer() else { panic!() };
        assert_eq!((lower.depth, upper.depth), (10, 11));
        assert!((depth - 10.5).abs() < 1e-12 && (throughput - 105.0).abs() < 1e-12);
    }

    #[test]
    fn the_ends_are_named() {
        let mut search = DepthSearch::new(90.0, 1_000, 20).unwrap();
        assert_eq!(run(&mut search, |_| 5), [1, 2, 4, 8, 16, 20]);
        assert!(matches!(search.answer(), Some(Answer::NeverExceeded { last }) if last.depth == 20));
        let mut search = DepthSearch::new(90.0, 1_000, 20).unwrap();
        assert_eq!(run(&mut search, |_| 1001), [1]);
        assert!(matches!(search.answer(), Some(Answer::AlwaysExceeded { first }) if first.depth == 1));
    }

    #[test]
    fn known_points_save_runs_and_bad_input_is_named() {
        let mut search = DepthSearch::new(90.0, 1_000, 1000).unwrap();
        search.report(64, 5_000, 1.0);
        assert_eq!(search.next(), Some(1));
        search.report(9, 900, 1.0);
        assert_eq!(run(&mut search, |d| u64::from(d) * 100).len(), 6);
        assert_eq!(DepthSearch::new(100.0, 1, 1).unwrap_err().key, "percentile");
        assert_eq!(DepthSearch::new(90.0, 0, 1).unwrap_err().key, "target_ns");
        assert_eq!(DepthSearch::new(90.0, 1, 0).unwrap_err().key, "max_depth");
    }

    proptest! {
        #[test]
        fn any_curve_ends_in_a_bracket_of_neighbours(values in prop::collection::vec(1u64..2000, 1..70)) {
            let mut search = DepthSearch::new(90.0, 1_000, values.len() as u32).unwrap();
            run(&mut search, |d| values[d as usize - 1]);
            match search.answer().unwrap() {
                Answer::Between { depth, lower, upper, .. } => {
                    prop_assert_eq!(lower.depth + 1, upper.depth);
                    prop_assert!(lower.percentile_ns <= 1_000 && upper.percentile_ns > 1_000);
                    prop_assert!(depth >= f64::from(lower.depth) && depth < f64::from(upper.depth));
                }
                Answer::NeverExceeded { last } => prop_assert_eq!(last.depth as usize, values.len()),
                Answer::AlwaysExceeded { first } => prop_assert!(first.depth == 1 && first.percentile_ns > 1_000),
            }
        }
    }
}
