//! The run's clock: nanoseconds since its start on the monotonic clock of the system; and waking up in time.

use raidlab_types::Instant;

/// Started once a stage; read once a turn of the loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(std::time::Instant);

impl Clock {
    pub fn start() -> Clock {
        Clock(std::time::Instant::now())
    }

    /// What times are read from.
    pub fn source() -> &'static str {
        "clock_gettime"
    }

    #[inline]
    pub fn now(&self) -> Instant {
        Instant::from_ns(self.0.elapsed().as_nanos() as u64)
    }
}

/// While it lives, the kernel wakes this thread when its time has come and not, to save power, up to 50 us later.
#[derive(Debug)]
pub(crate) struct PromptWakes {
    slack_ns: libc::c_int,
}

impl PromptWakes {
    pub fn new() -> PromptWakes {
        // SAFETY: reads and sets a number of this thread.
        unsafe {
            let slack_ns = libc::prctl(libc::PR_GET_TIMERSLACK);
            libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
            PromptWakes { slack_ns }
        }
    }
}

impl Drop for PromptWakes {
    fn drop(&mut self) {
        // 0 asks for the thread's default.
        let slack_ns = self.slack_ns.max(0) as libc::c_ulong;
        // SAFETY: sets a number of this thread.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns) };
    }
}
