//! The measuring window: when counting begins and ends.
//!
//! Purpose: the rule of `warmup` and `measure`. The window opens when the warm-up is satisfied (the *later* of its
//! limits) and closes when the measurement is (the *earlier* of its limits).
//!
//! Invariants:
//! - It opens *at a completion*, which itself is not counted (without any warm-up: at the first poll). A
//!   window that closes by count closes at a completion that is counted. So requests / elapsed has no fence-post error.
//! - A window that closes by duration closes exactly then, whenever that is noticed.
//! - A held load has no window before its depth has settled.
//! - Where several loads share one window, the driver opens and closes it: at the very times it says, whatever completes.

use crate::error::{join, SpecError};
use crate::spec::{Limit, Limits};
use raidlab_types::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MeasurePhase {
    Warming,
    Measuring,
    Over,
}

/// What an observation of the clock or a completion did to the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    /// At this time, which may lie before the observation (as below).
    Opened(Instant),
    Closed(Instant),
    /// Over before it was opened.
    NeverOpened,
}

#[derive(Debug, Clone)]
pub(crate) struct MeasureWindow {
    phase: MeasurePhase,
    /// Completions still to come before the warm-up is over.
    warm_requests: u64,
    warm_until: Instant,
    /// Somebody waits for more than the limits say.
    waits: bool,
    /// Completions still to be counted; `u64::MAX` without a limit.
    measure_requests: u64,
    measure_for: Option<Duration>,
    /// When it opened, if it has.
    pub(super) opened: Option<Instant>,
    /// When it opens, where that is the driver's to say; `Instant::MAX` until it has.
    opens_at: Option<Instant>,
    /// When the window closes by duration; `Instant::MAX` before it opens and without a limit.
    pub(super) deadline: Instant,
    /// From when on an observation needs a closer look: the deadline; at once where there is no warm-up, and when all is
    /// over. One comparison an event.
    look_from: Instant,
    /// When it closed, or the last time seen.
    pub(super) seen: Instant,
    pub(super) interrupted: bool,
}

impl MeasureWindow {
    /// `settles`: there is a depth to settle before the window may open.
    pub(crate) fn new(limits: &Limits, settles: bool) -> Result<Self, SpecError> {
        let warm_for = checked(&limits.warmup, "warmup")?;
        let measure_for = checked(&limits.measure, "measure")?;
        if limits.measure.requests.is_none() && measure_for.is_none() {
            return Err(SpecError::new("measure", "says no amount; accepted: requests, a duration or both"));
        }
        if limits.measure.requests == Some(0) || measure_for == Some(Duration::ZERO) {
            let name = if limits.measure.requests == Some(0) { "requests" } else { "duration" };
            return Err(SpecError::new(join("measure", name), "0; accepted: above 0"));
        }
        let warm_requests = limits.warmup.requests.unwrap_or(0);
        let warm_until = Instant::ZERO + warm_for.unwrap_or(Duration::ZERO);
        let open_at_once = warm_requests == 0 && warm_until == Instant::ZERO && !settles;
        Ok(MeasureWindow {
            phase: MeasurePhase::Warming,
            warm_requests,
            warm_until,
            waits: false,
            measure_requests: limits.measure.requests.unwrap_or(u64::MAX),
            measure_for,
            opened: None,
            opens_at: None,
            deadline: Instant::MAX,
            look_from: if open_at_once { Instant::ZERO } else { Instant::MAX },
            seen: Instant::ZERO,
            interrupted: false,
        })
    }

    /// To be called with the time of every event, before anything else is done about it.
    #[inline]
    pub(crate) fn observe(&mut self, now: Instant) -> Change {
        if now >= self.look_from {
            return self.look(now);
        }
        self.seen = now;
        Change::None
    }

    #[cold]
    fn look(&mut self, now: Instant) -> Change {
        match self.phase {
            MeasurePhase::Over => Change::None,
            MeasurePhase::Measuring => {
                let at = self.deadline;
                self.close(at)
            }
            MeasurePhase::Warming => {
                self.seen = now;
                self.open(self.opens_at.unwrap_or(now))
            }
        }
    }

    /// A request completed; it was counted if the window is open.
    #[inline]
    pub(crate) fn completed(&mut self, now: Instant, settled: bool) -> Change {
        match self.phase {
            MeasurePhase::Measuring => {
                self.measure_requests -= 1;
                if self.measure_requests == 0 {
                    return self.close(now);
                }
            }
            MeasurePhase::Warming => {
                self.warm_requests = self.warm_requests.saturating_sub(1);
                if self.warm_requests == 0 && now >= self.warm_until && settled && !self.waits {
                    return self.open(now);
                }
            }
            MeasurePhase::Over => {}
        }
        Change::None
    }

    #[cold]
    fn open(&mut self, at: Instant) -> Change {
        self.phase = MeasurePhase::Measuring;
        self.opened = Some(at);
        if let Some(duration) = self.measure_for {
            self.deadline = Instant::from_ns(at.as_ns().saturating_add(duration.as_ns()));
        }
        self.look_from = self.deadline;
        Change::Opened(at)
    }

    /// Whether it stays shut for now, though the limits for warm-up may be reached.
    pub(crate) fn wait(&mut self, waits: bool) {
        self.waits = waits;
    }

    /// From here on it stays shut until [`Self::open_at`] says when it opens, whatever its limits for warm-up were.
    pub(crate) fn keep_shut(&mut self) {
        if self.phase == MeasurePhase::Warming {
            self.opens_at = Some(Instant::MAX);
            self.look_from = Instant::MAX;
            self.warm_requests = u64::MAX;
        }
    }

    /// It opens at `at`, or at the last time seen if that is later.
    pub(crate) fn open_at(&mut self, at: Instant) {
        if self.phase == MeasurePhase::Warming {
            let at = at.max(self.seen);
            (self.opens_at, self.look_from) = (Some(at), at);
        }
    }

    /// It closes at `at`, or at the last time seen if that is later, as if its limit were reached.
    pub(crate) fn close_at(&mut self, at: Instant) -> Change {
        match self.phase {
            MeasurePhase::Over => Change::None,
            _ => self.close(at.max(self.seen)),
        }
    }

    #[cold]
    fn close(&mut self, at: Instant) -> Change {
        let measuring = self.phase == MeasurePhase::Measuring;
        self.phase = MeasurePhase::Over;
        self.deadline = Instant::MAX;
        self.look_from = Instant::ZERO;
        self.seen = at;
        if measuring {
            Change::Closed(at)
        } else {
            Change::NeverOpened
        }
    }

    /// Ends it now, whatever is left to measure.
    pub(crate) fn interrupt(&mut self, now: Instant) -> Change {
        if self.phase == MeasurePhase::Over {
            return Change::None;
        }
        self.interrupted = true;
        self.close(now)
    }

    #[inline]
    pub(crate) fn is_measuring(&self) -> bool {
        self.phase == MeasurePhase::Measuring
    }

    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.phase == MeasurePhase::Over
    }

    /// How long it has been open, up to its close or the last time seen.
    pub(crate) fn elapsed(&self) -> Duration {
        match self.opened {
            Some(opened) => self.seen.since(opened),
            None => Duration::ZERO,
        }
    }
}

/// The duration of a limit, if it has one.
fn checked(limit: &Limit, key: &str) -> Result<Option<Duration>, SpecError> {
    let Some(seconds) = limit.duration_s else { return Ok(None) };
    // A century is far beyond any run and well within 64 bits of nanoseconds.
    if !(0.0..=3.2e9).contains(&seconds) {
        let message = format!("{seconds} s; accepted: 0 to 3.2e9 s");
        return Err(SpecError::new(join(key, "duration"), message));
    }
    Ok(Some(Duration::from_s_f64(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(requests: Option<u64>, duration_s: Option<f64>) -> Limit {
        Limit { requests, duration_s }
    }

    fn window(warmup: Limit, measure: Limit) -> MeasureWindow {
        MeasureWindow::new(&Limits { warmup, measure }, false).unwrap()
    }

    /// Completes one request at `ns`.
    fn complete(window: &mut MeasureWindow, ns: u64) -> Change {
        let now = Instant::from_ns(ns);
        match window.observe(now) {
            Change::None => window.completed(now, true),
            change => change,
        }
    }

    #[test]
    fn the_completion_that_opens_is_not_counted_and_the_last_one_is() {
        let mut window = window(limit(Some(2), None), limit(Some(3), None));
        let changes: Vec<Change> = (1..=5).map(|ns| complete(&mut window, ns * 10)).collect();
        assert_eq!(changes[1], Change::Opened(Instant::from_ns(20)));
        assert_eq!(changes[4], Change::Closed(Instant::from_ns(50)));
        assert_eq!(window.elapsed(), Duration::from_ns(30));
    }

    #[test]
    fn the_later_limit_of_warm_up_and_the_earlier_of_measuring() {
        let mut window = window(limit(Some(1), Some(1e-6)), limit(Some(100), Some(1e-6)));
        assert_eq!(complete(&mut window, 500), Change::None);
        assert_eq!(complete(&mut window, 1200), Change::Opened(Instant::from_ns(1200)));
        assert_eq!(complete(&mut window, 2199), Change::None);
        // Noticed late, closed on time.
        assert_eq!(complete(&mut window, 9000), Change::Closed(Instant::from_ns(2200)));
        assert_eq!(window.elapsed(), Duration::from_ns(1000));
    }

    #[test]
    fn without_warm_up_it_opens_at_the_first_event() {
        let mut window = window(Limit::default(), limit(Some(1), None));
        assert_eq!(window.observe(Instant::from_ns(7)), Change::Opened(Instant::from_ns(7)));
        assert_eq!(window.opened, Some(Instant::from_ns(7)));
        assert_eq!(window.interrupt(Instant::from_ns(9)), Change::Closed(Instant::from_ns(9)));
        assert!(window.interrupted && window.is_over());
    }

    #[test]
    fn an_unsettled_depth_keeps_it_shut() {
        let limits = Limits { warmup: Limit::default(), measure: limit(Some(1), None) };
        let mut window = MeasureWindow::new(&limits, true).unwrap();
        let now = Instant::from_ns(5);
        assert_eq!((window.observe(now), window.completed(now, false)), (Change::None, Change::None));
        assert_eq!(window.completed(now, true), Change::Opened(now));
    }

    #[test]
    fn a_driver_opens_and_closes_it_to_the_nanosecond() {
        let mut window = window(limit(Some(2), None), limit(None, Some(1e-6)));
        window.keep_shut();
        (1..=50).for_each(|ns| assert_eq!(complete(&mut window, ns), Change::None));
        window.open_at(Instant::from_ns(80));
        assert_eq!(complete(&mut window, 79), Change::None);
        // Noticed late, opened on time, and by then already over.
        assert_eq!(window.observe(Instant::from_ns(5000)), Change::Opened(Instant::from_ns(80)));
        assert_eq!(window.observe(Instant::from_ns(5000)), Change::Closed(Instant::from_ns(1080)));
        assert_eq!(window.elapsed(), Duration::from_ns(1000));

        let mut window = self::window(Limit::default(), limit(Some(1000), None));
        window.keep_shut();
        window.open_at(Instant::from_ns(10));
        (10..=30).for_each(|ns| assert!(!matches!(complete(&mut window, ns), Change::Closed(_))));
        assert_eq!(
            window.close_at(Instant::from_ns(20)),
            Change::Closed(Instant::from_ns(30)),
            "not before what was seen"
        );
        assert!(window.is_over() && !window.interrupted);
        assert_eq!(window.close_at(Instant::from_ns(40)), Change::None);
    }

    #[test]
    fn limits_are_checked_with_their_key() {
        let key = |warmup, measure| MeasureWindow::new(&Limits { warmup, measure }, false).unwrap_err().key;
        assert_eq!(key(Limit::default(), Limit::default()), "measure");
        assert_eq!(key(limit(None, Some(-1.0)), limit(Some(1), None)), "warmup.duration");
        assert_eq!(key(Limit::default(), limit(Some(0), None)), "measure.requests");
        assert_eq!(key(Limit::default(), limit(None, Some(0.0))), "measure.duration");
    }
}
