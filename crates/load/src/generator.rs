//! What every offered load can be asked and told, whichever clock drives it.
//!
//! Purpose: one loop of a clock for requests that are drawn, those of a trace, whole files, and streams. The loop is compiled
//! once for each, so that what only one of them has costs the others nothing.
//!
//! Invariant: as the drivers' orders of [`Load`], [`TraceLoad`], [`FileLoad`] and [`crate::streams::StreamLoad`] say.

use crate::files::FilesRecord;
use crate::streams::{Carry, StreamRecord};
use crate::trace::ReplayCounts;
use crate::{Backlog, HoldReport, Load, Recorder, RequestTimes, SpecError};
use raidlab_types::{Duration, Instant, Request, RequestTag};

/// An offered load as a clock drives it.
pub trait Generator {
    /// Whether clients have work for the host besides their requests.
    const WORKS: bool = false;
    /// Whether requests are drawn, as many as anybody wants.
    const DRAWS: bool = false;
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
    /// When the request in flight under this tag was meant to arrive and was issued; none where a load keeps no times of
    /// single requests.
    fn times_of(&self, _tag: RequestTag) -> Option<RequestTimes> {
        None
    }
    /// A request has completed, or failed.
    fn handle_done(&mut self, now: Instant, tag: RequestTag, ok: bool);
    /// Work for the host, or a block's way, is done.
    fn handle_work_done(&mut self, _now: Instant, _who: u32) {}
    /// The measurement is over and nothing more will be issued. What may still be in flight is not counted.
    #[inline]
    fn is_finished(&self) -> bool {
        self.recorder().is_over()
    }
    /// Ends the run at `now`: nothing more is issued or counted.
    fn interrupt(&mut self, now: Instant) {
        self.recorder_mut().observe(now);
        self.recorder_mut().interrupt(now);
    }
    /// From here on the record keeps the response times of each second ([`Recorder::second_histograms`]).
    fn keep_histograms(&mut self) {
        self.recorder_mut().keep_histograms();
    }
    /// The record so far.
    fn recorder(&self) -> &Recorder;
    /// The record, to be told when to begin and to end.
    fn recorder_mut(&mut self) -> &mut Recorder;
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
    fn replayed(&self) -> Option<ReplayCounts> {
        None
    }
    /// What became of streams.
    fn streams(&self) -> Vec<StreamRecord> {
        Vec::new()
    }
    /// What ended it before its time.
    fn fault(&self) -> Option<&SpecError> {
        None
    }
}
