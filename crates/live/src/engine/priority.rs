//! Precedence of the thread that plays emulated disks over other programs of the machine.
//!
//! Purpose: a disk does not wait for a processor. Where another program gets one for some milliseconds, completions are
//! late by as much, and the run is INVALID for something that is not the array's.
//!
//! Invariant: taken only where the system allows it (root, or `CAP_SYS_NICE`), and given back; lateness is measured and
//! judged all the same.
//!
//! Reference: setpriority(2), which on Linux speaks of the calling thread; sched(7).

/// What the kernel calls the greatest precedence among ordinary threads. One of its real-time classes would keep
/// everything else from the processor, and is stopped for 50 ms a second by default.
const GREATEST: libc::c_int = -20;

/// While it lives, this thread has precedence, if that is allowed.
#[derive(Debug)]
pub(super) struct Precedence {
    before: libc::c_int,
}

impl Precedence {
    pub(super) fn take() -> Precedence {
        // SAFETY: reads and sets a number of this thread.
        unsafe {
            let before = libc::getpriority(libc::PRIO_PROCESS, 0);
            libc::setpriority(libc::PRIO_PROCESS, 0, GREATEST);
            Precedence { before }
        }
    }
}

impl Drop for Precedence {
    fn drop(&mut self) {
        // SAFETY: sets a number of this thread.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, self.before) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> libc::c_int {
        // SAFETY: reads a number of this thread.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
    }

    #[test]
    fn it_is_given_back() {
        let before = now();
        let precedence = Precedence::take();
        assert!(now() == GREATEST || now() == before, "taken, or not allowed");
        drop(precedence);
        assert_eq!(now(), before);
    }
}
