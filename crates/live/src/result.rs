//! What a live run answers.

use crate::content::{ContentReport, VerifyReport};
use crate::engine::Accounts;
use crate::error::LiveError;
use crate::lateness::Lateness;
use crate::target::TargetFacts;
use crate::usage::Accounting;
use raidlab_array::{DataLoss, RebuildResult, SatOut, ScrubResult, UnreadableResult};
use raidlab_device::FlashTotals;
use raidlab_load::files::FilesRecord;
use raidlab_load::trace::ReplayCounts;
use raidlab_load::{Backlog, HoldReport, Recorder};
use raidlab_types::{Duration, Extent, LeafId, OpError, OpId, OpKind, Request};
use serde::Serialize;

/// The record of a live run.
#[derive(Debug, Clone)]
pub struct LiveResult {
    /// Response and service times, counts, completions a second.
    pub recorder: Recorder,
    /// How far an open loop was behind.
    pub backlog: Backlog,
    /// How the depth was held, if it was.
    pub hold: Option<HoldReport>,
    /// What became of a trace's requests, where one was replayed.
    pub replayed: Option<ReplayCounts>,
    /// What whole files asked for, where clients read such.
    pub files: Option<FilesRecord>,
    /// One a leaf.
    pub members: Vec<MemberCounts>,
    /// One a leaf; a missing one has none.
    pub targets: Vec<Option<TargetFacts>>,
    /// How operations were carried out.
    pub engine: EngineFacts,
    /// What it cost while the window was open.
    pub accounting: Accounting,
    /// How long the measuring window was open.
    pub elapsed: Duration,
    /// Whether the observer stopped it.
    pub interrupted: bool,
    /// What stopped it before its end, if something did; what was measured till then is here.
    pub stopped_by: Option<LiveError>,
    /// Members that were found gone, with the reason, in that order.
    pub failed_members: Vec<FailedMember>,
    /// Places of members that failed on purpose, and how far new ones had come when the load was over.
    pub rebuilds: Vec<RebuildResult>,
    /// Every time that the array went over what it holds, and how far it had come when the load was over.
    pub scrubs: Vec<ScrubResult>,
    /// Members that were read last for being slow.
    pub sat_out: Vec<SatOut>,
    /// The failure with which data were lost and the load ended, if one was too many.
    pub data_loss: Option<DataLoss>,
    /// What could not be read of members, where something was to be so.
    pub unreadable: Option<UnreadableResult>,
    /// What was compared with what was written while the load ran and after it; nothing where contents were not compared.
    pub content: Option<ContentReport>,
    /// What the engine judges itself.
    pub checks: Vec<Check>,
    /// What was checked; none unless the content was to be verified.
    pub verify: Option<VerifyReport>,
    /// Member operations of the first requests, as they were started; as many requests as were asked for.
    pub trace: Vec<TracedOperation>,
    /// What the array was told while the load ran; empty unless requests were traced.
    pub inputs: Vec<ArrayInput>,
}

/// A member operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TracedOperation {
    /// Number of the request, in order of entering the array, from 0.
    pub request: u64,
    /// Which member.
    pub leaf: LeafId,
    /// What was done.
    pub kind: OpKind,
    /// Sectors of the member.
    pub extent: Extent,
}

/// What the array was told, in order. An array is a function of this alone, so replaying it elsewhere must give the same
/// member operations, whatever its policies look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayInput {
    /// A request entered.
    Request(Request),
    /// A member operation or a computation ended.
    Done(OpId, Result<(), OpError>),
}

/// A member that was found gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedMember {
    /// Which.
    pub leaf: LeafId,
    /// What the system said.
    pub reason: String,
}

/// Operations a member completed while the measuring window was open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct MemberCounts {
    /// Which.
    pub leaf: LeafId,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Flushes, discards and zeroing.
    pub others: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Time from submission to completion, summed over operations; of an emulated member the time to the start of
    /// service, as in the simulator.
    pub wait_ns: u64,
    /// What an emulated member's disk did meanwhile.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub mechanics: Option<Mechanics>,
}

/// Time in service of a modelled disk, in the simulator's words; `busy_ns` is the sum of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Mechanics {
    /// Time in service.
    pub busy_ns: u64,
    /// Moving the arm and switching heads.
    pub seek_ns: u64,
    /// Waiting for sectors to come round.
    pub rotation_ns: u64,
    /// Moving bytes.
    pub transfer_ns: u64,
    /// Work of the controller.
    pub overhead_ns: u64,
    /// Spent on prepaid writes, of which there are none live.
    pub paired_ns: u64,
    /// Operations it serves at the same time.
    pub servers: u64,
    /// What it did with its flash, if it is a flash drive.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub flash: Option<FlashTotals>,
}

impl Mechanics {
    /// Of a disk with so many servers that has done nothing yet.
    pub(crate) fn of(servers: usize) -> Self {
        Mechanics { servers: servers as u64, ..Mechanics::default() }
    }
}

/// A verdict of the engine on its own run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// A sentence with the figures it rests on.
    pub evidence: String,
    /// What to do about it; empty for a pass.
    pub mend: &'static str,
}

impl Check {
    /// Something that weakens a result, such as `threads_instead_of_io_uring`.
    pub(crate) fn warning(name: &'static str, evidence: String, mend: &'static str) -> Check {
        Check { name, verdict: Verdict::Warn, evidence, mend }
    }
}

/// What a check may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// As it should be.
    Pass,
    /// It could not be determined.
    Unknown,
    /// To be read with care.
    Warn,
    /// Not to be used.
    Invalid,
}

impl MemberCounts {
    /// Counts an operation that is over, so long after it was submitted.
    #[inline]
    pub(crate) fn add(&mut self, kind: OpKind, bytes: u64, wait_ns: u64, ok: bool) {
        self.wait_ns += wait_ns;
        match kind {
            _ if !ok => self.failed += 1,
            OpKind::Read => (self.reads, self.read_bytes) = (self.reads + 1, self.read_bytes + bytes),
            OpKind::Write => (self.writes, self.write_bytes) = (self.writes + 1, self.write_bytes + bytes),
            _ => self.others += 1,
        }
    }

    /// Adds what others have counted of the same target.
    pub(crate) fn merge(&mut self, other: &MemberCounts) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
        self.others += other.others;
        self.failed += other.failed;
        self.wait_ns += other.wait_ns;
    }
}

/// How operations were carried out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EngineFacts {
    /// `io_uring`, or `memory` or `emulated` where no member needs the ring.
    pub interface: &'static str,
    /// Whether all buffers were registered with the kernel beforehand.
    pub registered_buffers: bool,
    /// Bytes of the array's sector.
    pub sector_bytes: u32,
    /// The parity kernels that ran.
    pub parity_backend: &'static str,
    /// What began and ended from the beginning of the load to its very end.
    pub accounts: Accounts,
    /// How many times faster than the system's clock the run's clock went.
    pub speed: f64,
    /// How late completions of emulated members were; none without such members.
    pub lateness: Option<Lateness>,
}
