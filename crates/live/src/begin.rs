//! Several machines that begin together: each waits, all ready, for a moment of its own clock.
//!
//! Invariants:
//! - Nothing of the load is begun before that moment, and whoever waits is asked whether the run goes on.
//! - Who was late for it goes by a clock that started at that moment all the same: its warm-up is shorter, and windows
//!   that are so long by the clock open and close at one time everywhere.

use crate::config::{OnProgress, RunProgress, RunStage, PULSE};
use crate::error::LiveError;
use crate::io::Clock;
use raidlab_types::Duration;
use std::ops::ControlFlow;
use std::time::SystemTime;

/// Longer is nobody waited for.
const LONGEST_WAIT_NS: u64 = 300_000_000_000;

/// Refuses a moment that is too far away.
pub(crate) fn check(begin_at_unix_ns: Option<u64>) -> Result<(), LiveError> {
    if begin_at_unix_ns.is_some_and(|at| at > unix_ns().saturating_add(LONGEST_WAIT_NS)) {
        let message = "is more than five minutes away; accepted: a moment before that";
        return Err(LiveError::bad("begin_at_unix_ns", message));
    }
    Ok(())
}

/// Waits until the load is to begin; breaks off if the observer will not wait.
pub(crate) fn wait(begin_at_unix_ns: Option<u64>, observer: OnProgress<'_>) -> ControlFlow<()> {
    let Some(begin_at) = begin_at_unix_ns else { return ControlFlow::Continue(()) };
    loop {
        let left = Duration::from_ns(begin_at.saturating_sub(unix_ns()));
        if left == Duration::ZERO {
            return ControlFlow::Continue(());
        }
        let (stage, elapsed) = (RunStage::Running, Duration::ZERO);
        observer(RunProgress { stage, fraction: 0.0, requests: 0, elapsed })?;
        std::thread::sleep(std::time::Duration::from_nanos(left.min(PULSE).as_ns()));
    }
}

/// The machine's clock.
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// The clock of a run that was to begin at a moment and has begun at another.
pub(crate) fn clock_since(begin_at_unix_ns: Option<u64>, started: Clock, began_unix_ns: u64) -> Clock {
    let late_ns = begin_at_unix_ns.map_or(0, |at| began_unix_ns.saturating_sub(at));
    started.earlier_by(Duration::from_ns(late_ns))
}

/// When a clock was started, by the machine's clock. A thread that is held up between its two looks finds it too late:
/// the earliest of some is believed.
pub(crate) fn began_unix_ns_of(clock: Clock) -> u64 {
    const LOOKS: usize = 5;
    let look = || {
        let elapsed_ns = clock.now().as_ns();
        unix_ns().saturating_sub(elapsed_ns)
    };
    std::iter::repeat_with(look).take(LOOKS).min().unwrap_or_else(unix_ns)
}
