//! What a run of the direct engine answers.

use crate::content::ContentReport;
use crate::error::LiveError;
use crate::result::{Check, MemberCounts};
use crate::target::TargetFacts;
use crate::usage::Accounting;
use raidlab_load::{Backlog, HoldReport, Recorder};
use serde::Serialize;

/// The record of a run over plain targets.
#[derive(Debug, Clone)]
pub struct DirectResult {
    /// Response and service times, counts, completions a second, of all workers together.
    pub recorder: Recorder,
    /// How far an open loop was behind.
    pub backlog: Backlog,
    /// How the depth was held, if it was.
    pub hold: Option<HoldReport>,
    /// One a target; `leaf` is its number.
    pub members: Vec<MemberCounts>,
    /// One a target.
    pub targets: Vec<TargetFacts>,
    /// How requests were carried out.
    pub engine: DirectFacts,
    /// What became of every request.
    pub requests: RequestCounts,
    /// What it cost, and what moved on the devices below, while the window was open.
    pub accounting: Accounting,
    /// What was compared with what was written; nothing where that was switched off or targets keep nothing.
    pub content: Option<ContentReport>,
    /// What to know of this run before its figures are believed.
    pub checks: Vec<Check>,
    /// Whether the observer stopped it.
    pub interrupted: bool,
    /// What stopped it before its end, if something did; what was measured till then is here.
    pub stopped_by: Option<LiveError>,
}

/// How requests were carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DirectFacts {
    /// `io_uring`, `threads`, or `none` where no target needs a system call.
    pub interface: &'static str,
    /// Threads that offered requests.
    pub workers: u32,
    /// The processor each of them was bound to; empty where they were not.
    pub cpus: Vec<u32>,
    /// Depth of each worker; an open loop's most in flight, if it has one.
    pub depths: Vec<u32>,
    /// Whether all buffers were registered with the kernel beforehand.
    pub registered_buffers: bool,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// What times were read from.
    pub clock: &'static str,
    /// When the load began, warm-up and all, by the machine's clock: nanoseconds of the Unix epoch.
    pub began_unix_ns: u64,
    /// Most requests submitted or taken in a turn; none: no limit.
    pub batch: Option<u32>,
    /// Whether completions were watched for.
    pub busy: bool,
    /// Whether the device was asked for them.
    pub poll_completions: bool,
    /// Whether the page cache was asked for.
    pub buffered: bool,
    /// Share of every sector written that compresses away.
    pub compressible_percent: u32,
}

/// What became of every request, warm-up included: `submitted = completed + failed + in_flight`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RequestCounts {
    /// Handed to a target.
    pub submitted: u64,
    /// Came back whole.
    pub completed: u64,
    /// Came back with an error, or short for good.
    pub failed: u64,
    /// Had not come back when the run was over.
    pub in_flight: u64,
}

impl RequestCounts {
    pub(super) fn add(&mut self, other: &RequestCounts) {
        self.submitted += other.submitted;
        self.completed += other.completed;
        self.failed += other.failed;
        self.in_flight += other.in_flight;
    }
}
