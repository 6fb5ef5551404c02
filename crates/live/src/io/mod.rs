//! What the loops over one ring share, with an array between (`engine`) and without (`direct`): the ring itself, the clock,
//! how long to wait, and what the system's errors mean.

mod clock;
mod errno;
mod ring;

pub(crate) use clock::{Clock, PromptWakes};
pub(crate) use errno::{meaning, verb, Meaning};
pub(crate) use ring::{transfer, Ring, MOST_BYTES};

use raidlab_types::{Duration, Instant};

/// Longest wait for completions: how late an interruption may be noticed.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_ms(100);
/// How long before an arrival a loop stops sleeping and watches the clock: waking up takes about as long.
const WATCHFUL: Duration = Duration::from_us(60);

/// How long may be waited before something is `due`; none if that is so near that it must be watched for.
#[inline]
pub(crate) fn wait_limit(due: Option<Instant>, now: Instant) -> Option<Duration> {
    let limit = due.map_or(LONGEST_WAIT, |at| at.since(now)).min(LONGEST_WAIT);
    (limit > WATCHFUL).then(|| limit - WATCHFUL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_far_is_waited_for_and_what_is_near_is_watched_for() {
        let (now, us) = (Instant::from_ns(7), |us| Some(Instant::from_ns(7) + Duration::from_us(us)));
        assert_eq!(wait_limit(us(1060), now), Some(Duration::from_us(1000)));
        assert_eq!(wait_limit(us(60), now), None);
        assert_eq!(wait_limit(Some(Instant::ZERO), now), None, "it is late already");
        assert_eq!(wait_limit(None, now), Some(Duration::from_us(99_940)));
    }
}
