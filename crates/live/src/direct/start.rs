//! Where workers meet before the load begins: all set up and reading one clock, or none runs.

use crate::error::LiveError;
use crate::io::Clock;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The meeting.
#[derive(Debug)]
pub(super) struct Start {
    meeting: Mutex<Meeting>,
    changed: Condvar,
}

#[derive(Debug)]
struct Meeting {
    /// Workers not there yet.
    missing: usize,
    failed: Option<LiveError>,
    sign: Sign,
}

#[derive(Debug, Clone, Copy)]
enum Sign {
    Wait,
    Go(Clock),
    Never,
}

impl Start {
    pub(super) fn new(workers: usize) -> Start {
        let meeting = Meeting { missing: workers, failed: None, sign: Sign::Wait };
        Start { meeting: Mutex::new(meeting), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Meeting> {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, meeting: MutexGuard<'a, Meeting>) -> MutexGuard<'a, Meeting> {
        self.changed.wait(meeting).unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker has come, or could not; it waits for the sign. The clock to go by, if all could.
    pub(super) fn meet(&self, failed: Option<LiveError>) -> Option<Clock> {
        let mut meeting = self.lock();
        meeting.missing -= 1;
        // The first cause is the one worth telling.
        meeting.failed = meeting.failed.take().or(failed);
        self.changed.notify_all();
        loop {
            match meeting.sign {
                Sign::Go(clock) => return Some(clock),
                Sign::Never => return None,
                Sign::Wait => meeting = self.wait(meeting),
            }
        }
    }

    /// Somebody will never come.
    pub(super) fn cancel(&self, error: LiveError) {
        let mut meeting = self.lock();
        meeting.failed.get_or_insert(error);
        meeting.sign = Sign::Never;
        self.changed.notify_all();
    }

    /// Waits for all workers and lets them go, if all could be set up. The clock they go by.
    pub(super) fn give_the_sign(&self) -> Result<Clock, LiveError> {
        let mut meeting = self.lock();
        while meeting.missing > 0 && meeting.failed.is_none() {
            meeting = self.wait(meeting);
        }
        let answer = match meeting.failed.take() {
            Some(error) => Err(error),
            None => Ok(Clock::start()),
        };
        meeting.sign = answer.as_ref().map_or(Sign::Never, |&clock| Sign::Go(clock));
        self.changed.notify_all();
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_one_cannot_nobody_goes() {
        let start = Start::new(3);
        std::thread::scope(|scope| {
            let go = |failed| scope.spawn(|| start.meet(failed).is_some());
            let handles = [go(None), go(Some(LiveError::bad("x", "broken"))), go(None)];
            assert_eq!(start.give_the_sign().unwrap_err().key(), "x");
            handles.into_iter().for_each(|handle| assert!(!handle.join().unwrap()));
        });
    }

    #[test]
    fn when_all_are_there_all_go_by_one_clock() {
        let start = Start::new(2);
        std::thread::scope(|scope| {
            let handles = [(); 2].map(|()| scope.spawn(|| start.meet(None)));
            let clock = format!("{:?}", start.give_the_sign().unwrap());
            handles.into_iter().for_each(|h| assert_eq!(format!("{:?}", h.join().unwrap().unwrap()), clock));
        });
    }
}
