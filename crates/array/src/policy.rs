//! Policies as values, and what a policy may know of the members.

use raidlab_types::number::usize_from;
use raidlab_types::{Extent, Lba, LeafId};
use serde::{Deserialize, Serialize};

/// Units of a rebuild or a scrub in flight, whatever their length: one is written while the next is read.
const LEAST_UNITS: usize = 2;

/// How many units of the array's own work may be in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnitPlaces {
    /// At most.
    pub most: usize,
    /// Where there were as many, the next begins below this.
    pub most_again: usize,
}

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
    /// As Linux md does. RAID 1 (a mirror below no stripe): the copy on which the read before this one ended; else one with
    /// nothing pending; else the one with the fewest operations pending, or the nearest of disks that rotate. RAID 10
    /// (mirrors below a stripe): the same for each chunk by itself, and never for going on where a read ended.
    Md {
        /// Whether the members rotate.
        #[serde(default)]
        rotating: bool,
    },
}

/// Whether neighbouring parts of a request on one member, a chunk each, are one access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChunkAccesses {
    /// One access for all that lies together.
    Joined,
    /// One for each chunk, in order of the request.
    Apart,
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

/// What a write waits for besides the computation of what it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteAfter {
    /// Every read of its window: until then all can be planned anew.
    AllReads,
    /// The read of the very sectors that it writes, if there is one (DiskSim, where writes are not `synch ... for safety`).
    OwnRead,
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

/// When a member that is slower than its peers is read last.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SitOut {
    /// An operation takes it more than so many times as long as the median of the others of its volume.
    pub times: f64,
    /// For so many nanoseconds without a break.
    pub hold: u64,
    /// After so many more it is tried again.
    pub rest: u64,
}

/// All choices a plan depends on besides the tree and the members.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Which copy serves a read.
    pub mirror_read: MirrorRead,
    /// How partial stripes are written.
    pub parity_write: ParityWrite,
    /// What `fewest_accesses` takes between equals: `read_modify_write` (Chen et al. 1990) or `reconstruct_write` (md).
    pub parity_write_tie: ParityWrite,
    /// What writes wait for. `own_read` is heeded by drivers that move no bytes alone
    /// ([`Array::expect_no_bytes`](crate::Array::expect_no_bytes)): where a read fails after a write, the stripe is lost.
    pub write_after: WriteAfter,
    /// How large reads pass over parity.
    pub parity_read: ParityRead,
    /// Bytes of a row: the same part of every chunk of a stripe, which a write of less than the stripe reads, computes and
    /// writes whole and by itself, as Linux md's stripe cache does with pages of 4 KiB. 0: the stripe is written as one, and
    /// no sector is touched that need not be.
    #[serde(rename = "parity_row")]
    pub parity_row_bytes: u64,
    /// Rows that writes with parity keep in memory, at first: they know what they have read or written until another row
    /// needs the place, and requests meet in them, as in Linux md's `stripe_cache_size`. For rows of `parity_row` only, and
    /// for drivers that move no bytes ([`Array::expect_no_bytes`](crate::Array::expect_no_bytes)). 0: nothing is kept.
    pub stripe_cache_size: u32,
    /// Whether chunks that lie together on a member are one access.
    pub chunk_accesses: ChunkAccesses,
    /// Longest request to which the host merges neighbouring accesses of one member that wait; 0: it merges none.
    #[serde(rename = "merge")]
    pub merge_bytes: u64,
    /// Whether the accesses of writes with parity that become ready together are gathered before they are handed on.
    pub plug: bool,
    /// Whether the array's own work on copies, over members, goes in units of 64 KiB that take turns with clients' requests,
    /// as Linux md's barrier has them do.
    pub resync_barrier: bool,
    /// Whether what could not be read, and was worked out from the rest, is written anew, as Linux md does.
    pub read_error_repair: bool,
    /// Read errors of a member that are borne: with one more it has failed, where its level bears that, as in Linux
    /// md's `max_read_errors`. Of copies those are counted that requests of clients meet, and half are forgotten for
    /// each whole hour without any; with parity in rows that are kept, instead as many rows as these
    /// (`stripe_cache_size`), with no read between that succeeds. None: however many.
    pub max_read_errors: Option<u32>,
    /// Whether a rebuild goes on where too little can be read of the others: what the new member lacks there is kept in
    /// a list of its own (at most 512 entries a member), and cannot be read before it is written, as in Linux md.
    pub bad_blocks: bool,
    /// When a member that is slow is read last, where its level bears that. None: it never is.
    pub sit_out: Option<SitOut>,
    /// Largest part of a request planned at once, measured from where the request begins and rounded to whole stripes (at
    /// least one).
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
            write_after: WriteAfter::AllReads,
            parity_read: ParityRead::Skip,
            parity_row_bytes: 0,
            stripe_cache_size: 0,
            chunk_accesses: ChunkAccesses::Joined,
            merge_bytes: 0,
            plug: false,
            resync_barrier: false,
            read_error_repair: true,
            max_read_errors: None,
            bad_blocks: false,
            sit_out: None,
            window_bytes: 8 << 20,
            windows_in_flight: 4,
        }
    }
}

impl Policy {
    /// Sectors of a row in which stripes are written; 1 where that is by sectors.
    pub(crate) fn row_sectors(&self, sector_bytes: u32) -> u64 {
        (self.parity_row_bytes / u64::from(sector_bytes)).max(1)
    }

    /// Whether rows of parity stripes stay in memory, each with all that is there of it.
    pub(crate) fn keeps_rows(&self) -> bool {
        self.stripe_cache_size > 0 && self.parity_row_bytes > 0
    }

    /// How many units of so many bytes of each member a rebuild or a scrub has in flight: with parity as many as the rows are
    /// that are kept.
    pub(crate) fn unit_places(&self, has_parity: bool, unit_bytes: u64) -> UnitPlaces {
        if !has_parity || !self.keeps_rows() {
            return UnitPlaces { most: LEAST_UNITS, most_again: LEAST_UNITS };
        }
        let rows = u64::from(self.stripe_cache_size) * self.parity_row_bytes;
        let most = usize_from(rows / unit_bytes.max(1)).max(LEAST_UNITS);
        // Once no row is idle, nobody gets one before a quarter are.
        UnitPlaces { most, most_again: (most * 3).div_ceil(4) }
    }

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
    /// Takes a lost one's place: it is written, and read below [`MemberView::valid`] only.
    Rebuilding,
}

/// What plans and policies may know of one member.
#[derive(Debug, Clone, Copy)]
pub struct MemberView {
    /// Whether it can be used.
    pub state: MemberState,
    /// Sectors of its data area below this one hold what they should: `Lba::MAX` of a member that is online, 0 of one that
    /// is not there.
    pub valid: Lba,
    /// Sectors that its rebuild has written. They hold what they should, though some may count as `valid` later only: as md,
    /// the array may go by what superblocks say, and a level may keep together what others have far apart.
    pub(crate) rebuilt: u64,
    /// Operations queued to it and not yet done.
    pub in_flight: u32,
    /// One past the last sector of the operation queued last: where its arm will be.
    pub end_lba: Lba,
    /// The distributed spare in which what it held stands, or comes to stand.
    pub(crate) spare: Option<LeafId>,
}

impl Default for MemberView {
    fn default() -> Self {
        MemberView { state: MemberState::Online, valid: Lba::MAX, rebuilt: 0, in_flight: 0, end_lba: 0, spare: None }
    }
}

impl MemberView {
    /// Whether these sectors of its data area may be read.
    #[inline]
    pub fn reads(&self, extent: Extent) -> bool {
        extent.end() <= self.valid
    }

    /// Whether it is written: below `valid` and above it, so that nothing rebuilt is ever stale.
    #[inline]
    pub fn writes(&self) -> bool {
        matches!(self.state, MemberState::Online | MemberState::Rebuilding)
    }

    /// Whether all of it holds what it should.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.valid == Lba::MAX
    }
}
