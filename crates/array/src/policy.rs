//! Policies as values, and what a policy may know of the members.

use raidlab_types::Lba;
use serde::{Deserialize, Serialize};

/// Which copy of a mirror serves a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum MirrorRead {
    /// The first copy that is there.
    Primary,
    /// Each copy in turn.
    RoundRobin,
    /// The copy whose queued operations end where the read begins, so that its disk goes on; else each copy in turn (the
    /// `round` policy of the Veritas Volume Manager).
    RoundRobinSequential,
    /// The copy with the fewest operations in flight; the first of equals.
    ShortestQueue,
    /// The copy whose arm will be nearest once its queue is done, by distance of addresses.
    Nearest {
        /// Take the shortest queue instead where queues differ by more than this (Chen et al. 1990 behaves so beyond 5).
        #[serde(default)]
        queue_override: Option<u32>,
    },
}

/// How a write of part of a parity stripe gets its new parity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParityWrite {
    /// From old data and old parity.
    ReadModifyWrite,
    /// From the rest of the stripe.
    ReconstructWrite,
    /// Whichever takes fewer accesses; `Policy::parity_write_tie` decides between equals.
    FewestAccesses,
}

/// How a large read passes over the parity chunks between its data chunks on one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParityRead {
    /// Two accesses, around the parity.
    Skip,
    /// One access that reads the parity too and drops it.
    ReadThrough,
}

/// All choices a plan depends on besides the tree and the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Which copy serves a read.
    pub mirror_read: MirrorRead,
    /// How partial stripes are written.
    pub parity_write: ParityWrite,
    /// What `fewest_accesses` takes between equals: `read_modify_write` (Chen et al. 1990) or `reconstruct_write` (md).
    pub parity_write_tie: ParityWrite,
    /// How large reads pass over parity.
    pub parity_read: ParityRead,
    /// Largest part of a request planned at once, rounded to whole stripes (at least one).
    pub window_bytes: u64,
    /// Windows of one request that may be in flight together.
    pub windows_in_flight: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            mirror_read: MirrorRead::Nearest { queue_override: Some(5) },
            parity_write: ParityWrite::FewestAccesses,
            parity_write_tie: ParityWrite::ReadModifyWrite,
            parity_read: ParityRead::Skip,
            window_bytes: 8 << 20,
            windows_in_flight: 4,
        }
    }
}

impl Policy {
    /// Whether a partial stripe is better written by read-modify-write, given the accesses each way takes.
    pub(crate) fn prefers_modify(&self, modify: u32, reconstruct: u32) -> bool {
        match self.parity_write {
            ParityWrite::ReadModifyWrite => true,
            ParityWrite::ReconstructWrite => false,
            ParityWrite::FewestAccesses if modify == reconstruct => {
                self.parity_write_tie != ParityWrite::ReconstructWrite
            }
            ParityWrite::FewestAccesses => modify < reconstruct,
        }
    }
}

/// State of a member, as the glossary names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// In use.
    #[default]
    Online,
    /// Not there: never found, or taken out.
    Missing,
    /// Was there and answers no more.
    Failed,
}

/// What plans and policies may know of one member.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemberView {
    /// Whether it can be used.
    pub state: MemberState,
    /// Operations queued to it and not yet done.
    pub in_flight: u32,
    /// One past the last sector of the operation queued last: where its arm will be.
    pub end_lba: Lba,
}

impl MemberView {
    /// Whether operations may be sent to it.
    #[inline]
    pub fn usable(&self) -> bool {
        self.state == MemberState::Online
    }
}
