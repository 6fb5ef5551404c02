//! How much of the members' time the array takes for its own work beside its clients'.
//!
//! Invariant: a throttle says when work may go on, from the time it is told and what it is told of clients; it never
//! looks at a clock.
//!
//! Reference: `md_do_sync` of Linux 6.12, drivers/md/md.c, for [`RebuildThrottle::Md`].

use raidlab_types::number::f64_from;
use raidlab_types::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// How fast a rebuild goes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum RebuildThrottle {
    /// As Linux md: never faster than `max_kib_s`; slower than `min_kib_s` it heeds nobody; between, it goes on while no
    /// client asks for anything, and else lets what it has in flight end once that is as much as `depth` requests of md's
    /// (4 KiB with parity, 64 KiB on mirrors). Work in a stripe cache is let end instead where a member has moved for others
    /// since it was looked at, and after each sixteenth, as before Linux had that setting; so is work behind md's barrier.
    Md {
        /// KiB/s of each member (`speed_limit_min`).
        #[serde(default = "md_min_kib_s")]
        min_kib_s: u64,
        /// KiB/s of each member (`speed_limit_max`).
        #[serde(default = "md_max_kib_s")]
        max_kib_s: u64,
        /// Requests (`sync_io_depth`).
        #[serde(default = "md_depth")]
        depth: u32,
    },
    /// At one rate, whatever clients do: where units wait for clients, up to a second of lost time is made up for.
    Rate {
        /// KiB/s of each member.
        kib_s: f64,
    },
    /// Only while no request of a client is in flight: the vacationing server.
    Idle,
    /// One unit at a time, and after each a rest, so that this share of the time is worked.
    Share {
        /// From 0 (exclusive) to 1.
        fraction: f64,
    },
}

fn md_min_kib_s() -> u64 {
    1000
}

fn md_max_kib_s() -> u64 {
    200_000
}

fn md_depth() -> u32 {
    32
}

impl RebuildThrottle {
    /// As md comes.
    pub const MD: RebuildThrottle = RebuildThrottle::Md { min_kib_s: 1000, max_kib_s: 200_000, depth: 32 };

    /// What is wrong with it, if anything: the key, and what would be accepted.
    ///
    /// # Errors
    /// When a rate is not positive, or a share is none.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        match *self {
            RebuildThrottle::Md { min_kib_s, max_kib_s, .. } if max_kib_s == 0 || min_kib_s > max_kib_s => {
                Err(("max_kib_s", format!("is below min_kib_s, {min_kib_s}; accepted: at least {}", min_kib_s.max(1))))
            }
            RebuildThrottle::Rate { kib_s } if !(kib_s.is_finite() && kib_s > 0.0) => {
                Err(("kib_s", "must be above 0; accepted: a number above 0".to_string()))
            }
            RebuildThrottle::Share { fraction } if !(fraction > 0.0 && fraction <= 1.0) => {
                Err(("fraction", "is no share; accepted: a number above 0, at most 1".to_string()))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a unit of work may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    /// At once.
    Now,
    /// Not before this time.
    At(Instant),
    /// Not before something completes.
    Later,
}

/// What passes over a member, in sectors.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traffic {
    /// Moved for others than the array itself, so far.
    pub others: u64,
    /// On its way for the array itself.
    pub own: u64,
}

/// What a throttle is told of the rest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beside<'t> {
    /// Requests that clients have sent so far, and those in flight.
    pub requests: u64,
    pub requests_in_flight: u64,
    /// Units of this work in flight, and what they are of each member.
    pub units: u32,
    pub bytes: u64,
    /// By member; for [`Pace::in_steps`] only.
    pub traffic: &'t [Traffic],
}

/// Marks over which md measures its speed, and how far apart they are.
const MARKS: usize = 10;
const MARK_STEP: Duration = Duration::from_ns(3_000_000_000);
/// How long md sleeps when it is too fast.
const TOO_FAST: Duration = Duration::from_ns(500_000_000);
/// How much lost time a rate makes up for. Units wait for clients by the operation, which is less; and a rate is of a second,
/// so that in no span of time more is done than the rate allows in a second more.
const MADE_UP_FOR: Duration = Duration::from_ns(1_000_000_000);
/// What one of md's requests is of a member: with parity, and without.
const MD_REQUEST_BYTES: [u64; 2] = [4 << 10, 64 << 10];

/// How much begins before md looks at the speed and whether others are there again (`window` in `md_do_sync`).
const LOOK_BYTES: u64 = 128 << 10;
/// More sectors than this since the last look, and others are there (`is_mddev_idle`).
const OTHERS_SECTORS: i64 = 64;
/// Into so many steps md cuts what it does, and lets all end after each, as after so long a time.
const STEPS: u64 = 16;
const LONGEST_STEP: Duration = Duration::from_ns(300_000_000_000);

/// Work as md of Linux 6.12 and before does it: `md_do_sync`.
#[derive(Debug, Clone)]
struct Steps {
    /// Bytes of each member: all, begun, begun when it looked last, and when all had ended last.
    total: u64,
    begun: u64,
    looked: u64,
    ended: u64,
    ended_at: Instant,
    /// It has found itself too fast, and looks again.
    looks: bool,
    /// By member: what others had moved, less what was on its way, when that was found to be much.
    seen: Vec<i64>,
}

impl Steps {
    fn sees_others(&mut self, traffic: &[Traffic]) -> bool {
        let mut sees = false;
        for (seen, now) in self.seen.iter_mut().zip(traffic) {
            let now = now.others.cast_signed() - now.own.cast_signed();
            if now - *seen > OTHERS_SECTORS {
                (*seen, sees) = (now, true);
            }
        }
        sees
    }
}

/// A throttle at work.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    throttle: RebuildThrottle,
    md_request_bytes: u64,
    not_before: Instant,
    /// Bytes of each member done.
    done_bytes: u64,
    marks: [(Instant, u64); MARKS],
    last_mark: usize,
    /// The mark from which speed is measured.
    base: (Instant, u64),
    requests_seen: u64,
    draining: bool,
    steps: Option<Steps>,
}

impl Pace {
    pub(crate) fn new(throttle: RebuildThrottle, has_parity: bool, now: Instant) -> Pace {
        Pace {
            throttle,
            md_request_bytes: MD_REQUEST_BYTES[usize::from(!has_parity)],
            not_before: now,
            done_bytes: 0,
            marks: [(now, 0); MARKS],
            last_mark: 0,
            base: (now, 0),
            requests_seen: 0,
            draining: false,
            steps: None,
        }
    }

    /// The same in the steps of md, of `total` bytes of each member.
    pub(crate) fn in_steps(self, total: u64, traffic: &[Traffic], now: Instant) -> Pace {
        let seen = traffic.iter().map(|t| t.others.cast_signed() - t.own.cast_signed()).collect();
        let (begun, looked, ended) = (0, 0, 0);
        Pace { steps: Some(Steps { total, begun, looked, ended, ended_at: now, looks: false, seen }), ..self }
    }

    /// Bytes of each member that had been done when a step ended last; of work without steps what is done.
    pub(crate) fn noted_bytes(&self) -> u64 {
        self.steps.as_ref().map_or(self.done_bytes, |steps| steps.ended)
    }

    /// Whether a unit may begin now; whoever is told so begins one.
    pub(crate) fn go(&mut self, now: Instant, beside: Beside) -> Go {
        if now < self.not_before {
            return Go::At(self.not_before);
        }
        if self.steps.is_some() {
            match self.go_in_steps(now, beside) {
                Go::Now => {}
                waits => return waits,
            }
        }
        match self.throttle {
            RebuildThrottle::Md { .. } if self.steps.is_some() => Go::Now,
            RebuildThrottle::Rate { .. } => Go::Now,
            RebuildThrottle::Idle if beside.requests_in_flight > 0 => Go::Later,
            RebuildThrottle::Share { .. } if beside.units > 0 => Go::Later,
            RebuildThrottle::Idle | RebuildThrottle::Share { .. } => Go::Now,
            RebuildThrottle::Md { min_kib_s, max_kib_s, depth } => {
                self.go_as_md(now, beside, (min_kib_s, max_kib_s), depth)
            }
        }
    }

    fn go_as_md(&mut self, now: Instant, beside: Beside, (min, max): (u64, u64), depth: u32) -> Go {
        if self.draining && beside.units > 0 {
            return Go::Later;
        }
        if std::mem::take(&mut self.draining) {
            return Go::Now;
        }
        let kib_s = self.kib_s(now);
        if kib_s <= min {
            return Go::Now;
        }
        if kib_s > max {
            self.not_before = now + TOO_FAST;
            return Go::At(self.not_before);
        }
        let busy = beside.requests_in_flight > 0 || beside.requests != self.requests_seen;
        self.requests_seen = beside.requests;
        self.draining = busy && beside.units > 0 && beside.bytes >= u64::from(depth) * self.md_request_bytes;
        if self.draining {
            Go::Later
        } else {
            Go::Now
        }
    }

    /// The speed as md measures it.
    fn kib_s(&mut self, now: Instant) -> u64 {
        if now.since(self.marks[self.last_mark].0) >= MARK_STEP {
            let next = (self.last_mark + 1) % MARKS;
            self.base = self.marks[next];
            self.marks[next] = (now, self.done_bytes);
            self.last_mark = next;
        }
        let seconds = now.since(self.base.0).as_ns() / 1_000_000_000;
        (self.done_bytes - self.base.1) / 1024 / (seconds + 1) + 1
    }

    fn go_in_steps(&mut self, now: Instant, beside: Beside) -> Go {
        if self.draining && beside.units > 0 {
            return Go::Later;
        }
        self.draining = false;
        let Some(mut steps) = self.steps.take() else { return Go::Now };
        let go = self.go_on_in_steps(&mut steps, now, beside);
        self.steps = Some(steps);
        go
    }

    fn go_on_in_steps(&mut self, steps: &mut Steps, now: Instant, beside: Beside) -> Go {
        if let RebuildThrottle::Md { min_kib_s, max_kib_s, .. } = self.throttle {
            if steps.looks || steps.begun >= steps.looked + LOOK_BYTES {
                (steps.looked, steps.looks) = (steps.begun, false);
                let kib_s = self.kib_s(now);
                if kib_s > max_kib_s {
                    steps.looks = true;
                    self.not_before = now + TOO_FAST;
                    return Go::At(self.not_before);
                }
                self.draining = kib_s > min_kib_s && steps.sees_others(beside.traffic) && beside.units > 0;
            }
        }
        let ends = steps.begun - steps.ended > steps.total / STEPS || now.since(steps.ended_at) >= LONGEST_STEP;
        if ends && beside.units == 0 {
            (steps.ended, steps.ended_at) = (steps.begun, now);
        }
        self.draining |= ends && beside.units > 0;
        if self.draining {
            Go::Later
        } else {
            Go::Now
        }
    }

    /// A unit of so many bytes of each member begins.
    pub(crate) fn begin(&mut self, now: Instant, bytes: u64) {
        if let Some(steps) = &mut self.steps {
            steps.begun += bytes;
        }
        if let RebuildThrottle::Rate { kib_s } = self.throttle {
            // A bucket of tokens, which holds those of so long a time.
            let earliest = Instant::from_ns(now.as_ns().saturating_sub(MADE_UP_FOR.as_ns()));
            self.not_before = self.not_before.max(earliest) + Duration::from_s_f64(f64_from(bytes) / 1024.0 / kib_s);
        }
    }

    /// A unit that began at `begun` is done.
    pub(crate) fn end(&mut self, now: Instant, begun: Instant, bytes: u64) {
        self.done_bytes += bytes;
        if let RebuildThrottle::Share { fraction } = self.throttle {
            let worked = f64_from(now.since(begun).as_ns()) / 1e9;
            self.not_before = now + Duration::from_s_f64(worked * (1.0 - fraction) / fraction);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: u64 = 64 << 10;

    /// Bytes done after `seconds`, where a unit takes 1 ms and two may be in flight; `requests`: clients' by the millisecond.
    fn done_after(throttle: RebuildThrottle, seconds: u64, requests: impl Fn(u64) -> (u64, u64)) -> u64 {
        let mut pace = Pace::new(throttle, true, Instant::ZERO);
        let mut units: Vec<Instant> = Vec::new();
        for ms in 0..seconds * 1000 {
            let now = Instant::from_ns(ms * 1_000_000);
            for begun in units.extract_if(.., |begun| now.since(*begun).as_ns() >= 1_000_000) {
                pace.end(now, begun, UNIT);
            }
            let (requests, requests_in_flight) = requests(ms);
            while units.len() < 2 {
                let n = units.len() as u64;
                let (in_flight, bytes) = (n as u32, n * UNIT);
                let beside = Beside { requests, requests_in_flight, units: in_flight, bytes, traffic: &[] };
                if pace.go(now, beside) != Go::Now {
                    break;
                }
                pace.begin(now, UNIT);
                units.push(now);
            }
        }
        pace.done_bytes
    }

    fn kib_s(throttle: RebuildThrottle, requests: impl Fn(u64) -> (u64, u64)) -> f64 {
        done_after(throttle, 60, requests) as f64 / 1024.0 / 60.0
    }

    #[test]
    fn each_keeps_what_it_says() {
        let quiet = |_| (0, 0);
        let busy = |ms| (ms, 1);
        let rate = RebuildThrottle::Rate { kib_s: 6400.0 };
        assert!((kib_s(rate, busy) / 6400.0 - 1.0).abs() < 0.01);
        assert_eq!(kib_s(RebuildThrottle::Idle, busy), 0.0);
        // Two units of 64 KiB a millisecond.
        assert!(kib_s(RebuildThrottle::Idle, quiet) > 127_000.0);
        let half = kib_s(RebuildThrottle::Share { fraction: 0.5 }, busy);
        assert!((half / 32_000.0 - 1.0).abs() < 0.01, "{half} KiB/s: a unit, and as long a rest");
    }

    #[test]
    fn a_rate_makes_up_for_what_it_lost_behind_clients_and_for_no_more_than_a_second() {
        // Units begin only at times that are let through, as where they wait behind clients; KiB begun by the millisecond.
        let begun = |kib_s: f64, seconds: u64, is_let: fn(u64) -> bool| -> Vec<u64> {
            let mut pace = Pace::new(RebuildThrottle::Rate { kib_s }, true, Instant::ZERO);
            let beside = Beside { requests: 0, requests_in_flight: 1, units: 0, bytes: 0, traffic: &[] };
            let one = |ms: u64| {
                let now = Instant::from_ns(ms * 1_000_000);
                let goes = is_let(ms) && pace.go(now, beside) == Go::Now;
                if goes {
                    pace.begin(now, UNIT);
                }
                u64::from(goes) * UNIT / 1024
            };
            (0..seconds * 1000).map(one).collect()
        };
        let total = |kib: &[u64]| kib.iter().sum::<u64>() as f64;
        // Of each 100 ms 40 are lost: 38,400 KiB/s could be done of 64 KiB a millisecond, and all that is asked for is.
        for kib_s in [6400.0, 20_000.0, 38_000.0] {
            let beside_clients = total(&begun(kib_s, 60, |ms| ms % 100 >= 40)) / 60.0;
            assert!((beside_clients / kib_s - 1.0).abs() < 0.01, "{beside_clients} KiB/s of {kib_s}");
        }
        // After ten seconds of nothing there is a second's worth more, however long the span, and then the rate again.
        let after = begun(6400.0, 30, |ms| !(10_000..20_000).contains(&ms));
        for span in [100, 1000, 5000, 30_000] {
            let most = after.windows(span).map(total).fold(0.0, f64::max);
            assert!(most <= 6400.0 * (1.0 + span as f64 / 1000.0) + 64.0, "{most} KiB in {span} ms");
        }
        assert!((total(&after[20_000..22_000]) - 3.0 * 6400.0).abs() <= 64.0, "{}", total(&after[20_000..22_000]));
    }

    #[test]
    fn md_goes_at_its_most_when_alone_and_below_its_least_heeds_nobody() {
        let most = RebuildThrottle::Md { min_kib_s: 1000, max_kib_s: 20_000, depth: 32 };
        let alone = kib_s(most, |_| (0, 0));
        assert!((alone / 20_000.0 - 1.0).abs() < 0.1, "{alone} KiB/s");
        // A depth of one request of 4 KiB, and clients always there: one unit at a time.
        let shy = |min_kib_s| RebuildThrottle::Md { min_kib_s, max_kib_s: 200_000, depth: 1 };
        let beside = kib_s(shy(1000), |ms| (ms, 1));
        let unheeding = kib_s(shy(190_000), |ms| (ms, 1));
        assert!(beside < 0.6 * unheeding, "{beside} and {unheeding} KiB/s");
    }

    #[test]
    fn nonsense_is_named() {
        let key = |throttle: RebuildThrottle| throttle.check().unwrap_err().0;
        assert_eq!(key(RebuildThrottle::Rate { kib_s: 0.0 }), "kib_s");
        assert_eq!(key(RebuildThrottle::Share { fraction: 1.5 }), "fraction");
        assert_eq!(key(RebuildThrottle::Md { min_kib_s: 5, max_kib_s: 4, depth: 32 }), "max_kib_s");
        assert_eq!(RebuildThrottle::Share { fraction: 1.0 }.check(), Ok(()));
    }
}
