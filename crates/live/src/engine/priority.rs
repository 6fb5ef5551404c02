//! Precedence of the thread that plays emulated disks over other programs of the machine.
//!
//! Purpose: a disk does not wait for a processor. Where another program gets one for some milliseconds, completions are
//! late by as much, and the run is INVALID for something that is not the array's.
//!
//! Invariant: taken only where the system allows it (root, or `CAP_SYS_NICE`), and given back; lateness is measured and
//! judged all the same.
//!
//! Reference: setpriority(2), which on Linux speaks of the calling thread; sched(7).

use rustix::process::{getpriority_process, setpriority_process};

/// What the kernel calls the greatest precedence among ordinary threads. One of its real-time classes would keep
/// everything else from the processor, and is stopped for 50 ms a second by default.
const GREATEST: i32 = -20;

/// While it lives, this thread has precedence, if that is allowed.
#[derive(Debug)]
pub(super) struct Precedence {
    before: i32,
}

impl Precedence {
    pub(super) fn take() -> Precedence {
        let before = getpriority_process(None).unwrap_or(0);
        let _ = setpriority_process(None, GREATEST);
        Precedence { before }
    }
}

impl Drop for Precedence {
    fn drop(&mut self) {
        let _ = setpriority_process(None, self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_given_back() {
        let now = || getpriority_process(None).expect("one may ask");
        let before = now();
        let precedence = Precedence::take();
        assert!(now() == GREATEST || now() == before, "taken, or not allowed");
        drop(precedence);
        assert_eq!(now(), before);
    }
}
