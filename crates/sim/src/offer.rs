//! What offers the load: requests that are drawn, those of a trace, whole files, or streams.
//!
//! Purpose: one loop for all. The loop is compiled once for each, so that what only one of them has costs the others nothing.
//!
//! Invariant: as the drivers' orders of [`Load`], [`TraceLoad`], [`FileLoad`] and [`StreamLoad`] say.

use raidlab_load::files::{FileLoad, FilesRecord};
use raidlab_load::streams::{Carry, StreamLoad, StreamRecord};
use raidlab_load::trace::{Replayed, TraceLoad};
use raidlab_load::{Backlog, HoldReport, Load, Recorder};
use raidlab_types::{Duration, Instant, Request, RequestTag};

/// A load as the loop drives it.
pub(crate) trait Offer {
    /// Whether clients have work for the host besides their requests.
    const WORKS: bool = false;
    fn poll_request(&mut self, now: Instant) -> Option<Request>;
    /// Work for the host: whose, and how long.
    fn poll_work(&mut self) -> Option<(u32, Duration)> {
        None
    }
    /// A block that goes along one of the path's ways.
    fn poll_carry(&mut self) -> Option<Carry> {
        None
    }
    fn poll_timeout(&self) -> Option<Instant>;
    fn handle_done(&mut self, now: Instant, tag: RequestTag, ok: bool);
    fn handle_work_done(&mut self, _now: Instant, _who: u32) {}
    fn is_finished(&self) -> bool;
    fn interrupt(&mut self, now: Instant);
    fn recorder(&self) -> &Recorder;
    fn hold(&self) -> Option<HoldReport> {
        None
    }
    fn backlog(&self) -> Backlog {
        Backlog::default()
    }
    fn files(&self) -> Option<&FilesRecord> {
        None
    }
    fn replayed(&self) -> Option<Replayed> {
        None
    }
    fn streams(&self) -> Vec<StreamRecord> {
        Vec::new()
    }
}

impl Offer for Load {
    #[inline]
    fn poll_request(&mut self, now: Instant) -> Option<Request> {
        Load::poll_request(self, now)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        Load::poll_timeout(self)
    }

    #[inline]
    fn handle_done(&mut self, now: Instant, tag: RequestTag, ok: bool) {
        Load::handle_done(self, now, tag, ok);
    }

    #[inline]
    fn is_finished(&self) -> bool {
        Load::is_finished(self)
    }

    fn interrupt(&mut self, now: Instant) {
        Load::interrupt(self, now);
    }

    #[inline]
    fn recorder(&self) -> &Recorder {
        Load::recorder(self)
    }

    fn hold(&self) -> Option<HoldReport> {
        Load::hold(self)
    }

    fn backlog(&self) -> Backlog {
        Load::backlog(self)
    }
}

impl Offer for TraceLoad {
    #[inline]
    fn poll_request(&mut self, now: Instant) -> Option<Request> {
        TraceLoad::poll_request(self, now)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        TraceLoad::poll_timeout(self)
    }

    #[inline]
    fn handle_done(&mut self, now: Instant, tag: RequestTag, ok: bool) {
        TraceLoad::handle_done(self, now, tag, ok);
    }

    #[inline]
    fn is_finished(&self) -> bool {
        TraceLoad::is_finished(self)
    }

    fn interrupt(&mut self, now: Instant) {
        TraceLoad::interrupt(self, now);
    }

    #[inline]
    fn recorder(&self) -> &Recorder {
        TraceLoad::recorder(self)
    }

    fn backlog(&self) -> Backlog {
        TraceLoad::backlog(self)
    }

    fn replayed(&self) -> Option<Replayed> {
        Some(TraceLoad::replayed(self))
    }
}

impl Offer for FileLoad {
    const WORKS: bool = true;

    fn poll_request(&mut self, now: Instant) -> Option<Request> {
        FileLoad::poll_request(self, now)
    }

    fn poll_work(&mut self) -> Option<(u32, Duration)> {
        FileLoad::poll_work(self)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        FileLoad::poll_timeout(self)
    }

    /// Arrays of whole files lose no members, so that every request succeeds.
    fn handle_done(&mut self, now: Instant, tag: RequestTag, _ok: bool) {
        FileLoad::handle_done(self, now, tag);
    }

    fn handle_work_done(&mut self, now: Instant, who: u32) {
        FileLoad::handle_work_done(self, now, who);
    }

    fn is_finished(&self) -> bool {
        FileLoad::is_finished(self)
    }

    fn interrupt(&mut self, now: Instant) {
        FileLoad::interrupt(self, now);
    }

    fn recorder(&self) -> &Recorder {
        FileLoad::recorder(self)
    }

    fn files(&self) -> Option<&FilesRecord> {
        Some(self.record())
    }
}

impl Offer for StreamLoad {
    const WORKS: bool = true;

    fn poll_request(&mut self, now: Instant) -> Option<Request> {
        StreamLoad::poll_request(self, now)
    }

    fn poll_work(&mut self) -> Option<(u32, Duration)> {
        StreamLoad::poll_work(self)
    }

    fn poll_carry(&mut self) -> Option<Carry> {
        StreamLoad::poll_carry(self)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        StreamLoad::poll_timeout(self)
    }

    fn handle_done(&mut self, now: Instant, tag: RequestTag, ok: bool) {
        StreamLoad::handle_done(self, now, tag, ok);
    }

    fn handle_work_done(&mut self, now: Instant, who: u32) {
        StreamLoad::handle_work_done(self, now, who);
    }

    fn is_finished(&self) -> bool {
        StreamLoad::is_finished(self)
    }

    fn interrupt(&mut self, now: Instant) {
        StreamLoad::interrupt(self, now);
    }

    fn recorder(&self) -> &Recorder {
        StreamLoad::recorder(self)
    }

    fn streams(&self) -> Vec<StreamRecord> {
        self.record()
    }
}
