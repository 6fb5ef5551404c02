//! What every offered load can be asked and told, whichever clock drives it.
//!
//! Purpose: one loop of a clock for requests that are drawn, those of a trace, whole files, and streams. The loop is compiled
//! once for each, so that what only one of them has costs the others nothing.
//!
//! Invariant: as the drivers' orders of [`Load`], [`TraceLoad`], [`FileLoad`] and [`crate::streams::StreamLoad`] say.

use crate::files::{FileLoad, FilesRecord};
use crate::streams::{Carry, StreamRecord};
use crate::trace::{Replayed, TraceLoad};
use crate::{Backlog, HoldReport, Load, LoadError, Recorder};
use raidlab_types::{Duration, Instant, Request, RequestTag};

/// An offered load as a clock drives it.
pub trait Generator {
    /// Whether clients have work for the host besides their requests.
    const WORKS: bool = false;
    /// The next request to issue at `now`, if there is one. To be called until it gives none.
    fn poll_request(&mut self, now: Instant) -> Option<Request>;
    /// Work for the host: whose, and how long it takes.
    fn poll_work(&mut self) -> Option<(u32, Duration)> {
        None
    }
    /// A block that goes along one of the ways between machines.
    fn poll_carry(&mut self) -> Option<Carry> {
        None
    }
    /// When to poll again if nothing completes before.
    fn poll_timeout(&self) -> Option<Instant>;
    /// A request has completed, or failed.
    fn handle_done(&mut self, now: Instant, tag: RequestTag, ok: bool);
    /// Work for the host, or a block's way, is done.
    fn handle_work_done(&mut self, _now: Instant, _who: u32) {}
    /// Nothing more will be issued.
    fn is_finished(&self) -> bool;
    /// Ends it before its end.
    fn interrupt(&mut self, now: Instant);
    /// From here on the record keeps the response times of each second.
    fn keep_histograms(&mut self);
    /// The record so far.
    fn recorder(&self) -> &Recorder;
    /// A copy to be driven beforehand, which shows what memory its requests will need; none where it would not.
    fn rehearsal(&self) -> Option<Load> {
        None
    }
    /// How a depth was held.
    fn hold(&self) -> Option<HoldReport> {
        None
    }
    /// How far arrivals are behind their schedule.
    fn backlog(&self) -> Backlog {
        Backlog::default()
    }
    /// What whole files asked for.
    fn files(&self) -> Option<&FilesRecord> {
        None
    }
    /// What of a trace was offered, and what not.
    fn replayed(&self) -> Option<Replayed> {
        None
    }
    /// What became of streams.
    fn streams(&self) -> Vec<StreamRecord> {
        Vec::new()
    }
    /// What ended it before its time.
    fn fault(&self) -> Option<&LoadError> {
        None
    }
}

/// What all of them have as methods of their own.
macro_rules! forward {
    () => {
        #[inline]
        fn poll_request(&mut self, now: Instant) -> Option<Request> {
            Self::poll_request(self, now)
        }

        #[inline]
        fn poll_timeout(&self) -> Option<Instant> {
            Self::poll_timeout(self)
        }

        #[inline]
        fn is_finished(&self) -> bool {
            Self::is_finished(self)
        }

        fn interrupt(&mut self, now: Instant) {
            Self::interrupt(self, now);
        }

        fn keep_histograms(&mut self) {
            Self::keep_histograms(self);
        }

        #[inline]
        fn recorder(&self) -> &Recorder {
            Self::recorder(self)
        }
    };
}

impl Generator for Load {
    forward!();

    #[inline]
    fn handle_done(&mut self, now: Instant, tag: RequestTag, ok: bool) {
        Load::handle_done(self, now, tag, ok);
    }

    /// What an adjustment keeps in flight is not known beforehand.
    fn rehearsal(&self) -> Option<Load> {
        Load::hold(self).is_none().then(|| self.clone())
    }

    fn hold(&self) -> Option<HoldReport> {
        Load::hold(self)
    }

    fn backlog(&self) -> Backlog {
        Load::backlog(self)
    }
}

impl Generator for TraceLoad {
    forward!();

    #[inline]
    fn handle_done(&mut self, now: Instant, tag: RequestTag, ok: bool) {
        TraceLoad::handle_done(self, now, tag, ok);
    }

    fn backlog(&self) -> Backlog {
        TraceLoad::backlog(self)
    }

    fn replayed(&self) -> Option<Replayed> {
        Some(TraceLoad::replayed(self))
    }

    fn fault(&self) -> Option<&LoadError> {
        TraceLoad::fault(self)
    }
}

impl Generator for FileLoad {
    const WORKS: bool = true;
    forward!();

    fn poll_work(&mut self) -> Option<(u32, Duration)> {
        FileLoad::poll_work(self)
    }

    /// Arrays of whole files lose no members, and what one could not read has failed its cell by then.
    fn handle_done(&mut self, now: Instant, tag: RequestTag, _ok: bool) {
        FileLoad::handle_done(self, now, tag);
    }

    fn handle_work_done(&mut self, now: Instant, who: u32) {
        FileLoad::handle_work_done(self, now, who);
    }

    fn files(&self) -> Option<&FilesRecord> {
        Some(self.record())
    }
}
