//! The running adjustment of the Berkeley study: the depth moves until a given share of responses meets the target.
//!
//! Purpose: "count periodically the share of requests inside the target, raise or lower N until it is 90 %". A *period*
//! is a number of completions. The depth is multiplied or divided by `1 + step` after each; the step
//! is halved whenever the direction turns, down to the smallest that changes the depth by at least one.
//!
//! Settling rule: the depth has settled when the direction has turned four times with the smallest step (it then
//! straddles the target), or when it has stood at its bound for four periods (1: the target cannot be met; the
//! greatest depth: it is met with ease). Only then may measuring begin. The adjustment goes on while measuring:
//! the mean depth over the window is the result, and the share within the target shows how well it was held.
//!
//! Invariants: completions of tasks admitted before the last change of depth are not counted towards the next decision;
//! the depth stays within 1 and its maximum; a function of its inputs alone.
//!
//! Reference: Chen et al., *An Evaluation of Redundant Arrays of Disks Using an Amdahl 5890*, SIGMETRICS 1990.

use super::search::check_percentile;
use crate::error::{at_least_one, positive, LoadError};
use raidlab_types::{Duration, Instant};

/// Turns with the smallest step (or periods at a bound) after which the depth has settled.
const SETTLING_TURNS: u32 = 4;
/// The first step: doubling or halving.
const FIRST_STEP: f64 = 1.0;
/// The smallest step as a share of the depth (never less than one task).
const SMALLEST_STEP: f64 = 0.02;
/// Responses beyond the target that a period expects to see: its share of them then has a relative error near 20 %.
const EXPECTED_BEYOND: f64 = 25.0;

/// How a depth was held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HoldReport {
    /// Mean depth limit while measuring, weighted by time.
    pub depth_mean: f64,
    /// Depth limit at the end.
    pub depth_final: u32,
    /// Share of tasks counted whose response time was within the target, 0 to 1.
    pub share_within_target: f64,
    /// Whether the depth settled, so that measuring could begin.
    pub settled: bool,
}

/// The adjustment of one run.
#[derive(Debug, Clone)]
pub(crate) struct Adjust {
    wanted_share: f64,
    target: Duration,
    max_depth: u32,
    depth: u32,
    step: f64,
    raised_last: Option<bool>,
    turns: u32,
    /// Tasks admitted before this time do not count towards the next decision.
    counts_from: Instant,
    counted: u32,
    within: u32,
    /// While measuring: tasks, tasks within the target, and depth x nanoseconds since `integrated_to`.
    measured: u64,
    measured_within: u64,
    depth_integral: u128,
    integrated_to: Option<Instant>,
    integrated_from: Instant,
}

impl Adjust {
    pub(crate) fn new(
        key: &str,
        percentile: f64,
        target_ms: f64,
        initial: u32,
        max_depth: u32,
    ) -> Result<Self, LoadError> {
        let percentile = check_percentile(&crate::error::join(key, "percentile"), percentile)?;
        let target = Duration::from_s_f64(positive(key, "target_ms", target_ms)? / 1e3);
        at_least_one(key, "initial_depth", initial)?;
        if max_depth < initial {
            let message = format!("{max_depth} must be at least initial_depth, {initial}");
            return Err(LoadError::new(crate::error::join(key, "max_depth"), message));
        }
        Ok(Adjust {
            wanted_share: percentile / 100.0,
            target,
            max_depth,
            depth: initial,
            step: FIRST_STEP,
            raised_last: None,
            turns: 0,
            counts_from: Instant::ZERO,
            counted: 0,
            within: 0,
            measured: 0,
            measured_within: 0,
            depth_integral: 0,
            integrated_to: None,
            integrated_from: Instant::ZERO,
        })
    }

    #[inline]
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    pub(crate) fn settled(&self) -> bool {
        self.turns >= SETTLING_TURNS
    }

    /// Completions of a period: enough to see the share, and each slot of the queue once or more.
    fn period(&self) -> u32 {
        ((EXPECTED_BEYOND / (1.0 - self.wanted_share)) as u32).max(self.depth.saturating_mul(2))
    }

    /// A task admitted at `admitted` completed, `response` after its intended arrival. The depth may change.
    pub(crate) fn completed(&mut self, now: Instant, admitted: Instant, response: Option<Duration>, measuring: bool) {
        // A failure is never within the target.
        let within = response.is_some_and(|response| response <= self.target);
        if measuring {
            self.integrate(now);
            self.measured += 1;
            self.measured_within += u64::from(within);
        }
        if admitted < self.counts_from {
            return;
        }
        self.counted += 1;
        self.within += u32::from(within);
        if self.counted >= self.period() {
            self.decide(now);
        }
    }

    fn integrate(&mut self, now: Instant) {
        match self.integrated_to {
            Some(before) => self.depth_integral += u128::from(self.depth) * u128::from(now.since(before).as_ns()),
            None => self.integrated_from = now,
        }
        self.integrated_to = Some(now);
    }

    fn decide(&mut self, now: Instant) {
        let raise = f64::from(self.within) >= self.wanted_share * f64::from(self.counted);
        let smallest = SMALLEST_STEP.max(1.0 / f64::from(self.depth));
        let turned = self.raised_last.is_some_and(|last| last != raise);
        if turned {
            self.turns += u32::from(self.step <= smallest);
            self.step = (self.step * 0.5).max(smallest);
        }
        let before = self.depth;
        self.depth = self.moved(raise);
        if self.depth == before {
            // At a bound, and pushed against it.
            self.turns += 1;
        }
        self.raised_last = Some(raise);
        (self.counted, self.within) = (0, 0);
        self.counts_from = now;
    }

    fn moved(&self, raise: bool) -> u32 {
        let depth = f64::from(self.depth);
        let factor = 1.0 + self.step;
        // At least one task either way, so that low depths move at all.
        let moved =
            if raise { (depth * factor).floor().max(depth + 1.0) } else { (depth / factor).ceil().min(depth - 1.0) };
        (moved.max(1.0) as u32).min(self.max_depth)
    }

    pub(crate) fn report(&self) -> HoldReport {
        let span = self.integrated_to.map_or(0, |to| to.since(self.integrated_from).as_ns());
        let depth_mean = if span == 0 { f64::from(self.depth) } else { self.depth_integral as f64 / span as f64 };
        let share = if self.measured == 0 { 0.0 } else { self.measured_within as f64 / self.measured as f64 };
        HoldReport { depth_mean, depth_final: self.depth, share_within_target: share, settled: self.settled() }
    }
}
