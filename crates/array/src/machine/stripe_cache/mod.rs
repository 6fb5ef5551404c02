//! The stripe cache of Linux md: writes with parity as pages of rows that stay in memory (`Policy::stripe_cache_size`).
//!
//! A request hangs its pages into their rows, one row after the other, and is complete when all of them and their parity are
//! written. A row is looked at (`handle.rs`) when nobody holds it any more: it then reads what its new parity needs and it
//! does not know yet, computes, writes. What it knows it knows until its memory is wanted for another row, the one idle
//! longest. Requests that meet in a row before it is computed are written together.
//!
//! There is one submitter, as of a host with one queue: it waits where there is no row for it (until a quarter of all
//! are idle) or where a page that it writes waits to be written already, and later requests wait behind it. There is
//! one thread. Direct writes alone are modelled, which md never delays.
//!
//! Where members are missing, reads come here too: md then reads no chunk past its rows, for it may have to read the whole
//! row. A page of a missing member is computed once all others of its row are known, both parities included.
//!
//! The array's own work takes rows as requests do (`work.rs`): all of a row is read, and compared or written to the members
//! that are rebuilt. These are missing in the rows above [`StripeCache::set_valid`], but that they are written.
//!
//! Rows, not bytes: what a page contains nobody needs to know, so this is for a driver that moves no bytes. A member that
//! fails ends it: what is on its way is finished, then all requests are planned as they are without a cache.
//!
//! Invariants: the writes of a row become ready together, after all its reads; nothing is allocated for a request once the
//! pools have grown; there are never more than [`MOST_ROWS`].
//!
//! Reference: `raid5_make_request`, `raid5d` and `handle_stripe` of Linux 6.12, drivers/md/raid5.c.

mod handle;
mod pool;
mod submit;
mod work;

use crate::layout::{Layout, Node, NodeId};
use crate::level::{Level, ParityLayout};
use crate::plan::NONE;
use crate::policy::Policy;
use pool::{CachedRow, RowPhase, RowPool};
use raidlab_types::number::usize_from;
use raidlab_types::{Extent, LeafId, OpKind};
use slab::Slab;
use std::collections::VecDeque;
use submit::{Submission, Waiting};
pub(super) use work::OwnRow;

/// The most rows that a cache grows to: what md's `stripe_cache_size` accepts.
const MOST_ROWS: usize = 32_768;

/// A page is known, or about to be.
const UP_TO_DATE: u8 = 1;
/// It is read, written or computed.
const LOCKED: u8 = 2;
/// It is to be written whole.
const OVERWRITE: u8 = 4;
const WANT_READ: u8 = 8;
const WANT_WRITE: u8 = 16;
/// What is on its way is a write.
const WRITING: u8 = 32;
/// It is for the array's own work.
const OWN: u8 = 64;

/// The page of one member in a row.
#[derive(Debug, Clone, Copy)]
struct CachedPage {
    flags: u8,
    /// Sectors that are to be written, a bit each.
    covered: u64,
    /// Requests that are to be written, and that are being written.
    to_write: u32,
    written: u32,
    /// Sectors that are to be read, a bit each, and the requests that wait for them.
    asked: u64,
    to_read: u32,
}

const UNKNOWN: CachedPage = CachedPage { flags: 0, covered: 0, to_write: NONE, written: NONE, asked: 0, to_read: NONE };

impl CachedPage {
    fn is(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}

/// One page of a request.
#[derive(Debug, Clone, Copy)]
struct RequestPage {
    request: u32,
    next: u32,
}

/// A request, or what is left of it, that waits to be submitted.
#[derive(Debug, Clone, Copy)]
struct Queued {
    request: u32,
    extent: Extent,
    kind: OpKind,
    force_unit_access: bool,
}

/// What the array is to do: an operation on a member, or a computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowOp {
    Device { leaf: LeafId, kind: OpKind, extent: Extent, force_unit_access: bool },
    Compute { read_sectors: u64, written_sectors: u64 },
}

/// The cache of one volume.
#[derive(Debug)]
pub(crate) struct StripeCache {
    parity: ParityLayout,
    /// By position.
    leaves: Box<[LeafId]>,
    row_sectors: u64,
    pool: RowPool,
    /// By row and position.
    pages: Vec<CachedPage>,
    riders: Slab<RequestPage>,
    /// By request: its pages that are not written yet, and one while it is being submitted.
    pending: Vec<u32>,
    queue: VecDeque<Queued>,
    submission: Option<Submission>,
    waiting: Waiting,
    /// The submitter found no row, and takes none until enough are idle.
    is_full: bool,
    /// One more row is to be made; one was made, and nothing has come back since.
    wants_row: bool,
    has_grown: bool,
    /// Rows that nobody holds any more and the thread has not taken back yet.
    released: VecDeque<u32>,
    ready: VecDeque<u32>,
    done: VecDeque<u32>,
    /// Operations that are ready or on their way.
    outstanding: u32,
    /// Reconstruct-write or not, see [`Policy`].
    policy: Policy,
    /// By position, a bit each: members that are not there, or are rebuilt; and those of them that are not there.
    lost: u64,
    absent: u64,
    /// Rows below this are there on members that are rebuilt.
    valid_rows: u64,
    worker: OwnRow,
    /// Numbers of rows that the array's own work is done with.
    worked: VecDeque<u64>,
    /// Superblocks that the thread waits for.
    superblocks: u32,
    /// A member has failed: nothing is begun.
    ends: bool,
}

impl StripeCache {
    /// The cache of the volume at `node`, if the policy has one and the volume is parity over members in whole rows.
    pub(crate) fn new(layout: &Layout, node: &Node, policy: &Policy) -> Option<StripeCache> {
        let Level::Parity(parity) = &node.level else { return None };
        let row_sectors = policy.row_sectors(layout.sector_bytes());
        let leaf = |&child: &NodeId| match &layout.node(child).level {
            Level::Member(member) => Some(member.leaf),
            _ => None,
        };
        let leaves: Box<[LeafId]> = node.children.iter().map(leaf).collect::<Option<_>>()?;
        let fits = parity.spread.is_none()
            && parity.chunk.is_multiple_of(row_sectors)
            && (1..=64).contains(&row_sectors)
            && leaves.len() <= 64;
        if policy.stripe_cache_size == 0 || policy.parity_row_bytes == 0 || !fits {
            return None;
        }
        let rows = policy.stripe_cache_size;
        Some(StripeCache {
            pages: vec![UNKNOWN; rows as usize * leaves.len()],
            parity: parity.clone(),
            leaves,
            row_sectors,
            pool: RowPool::new(rows),
            riders: Slab::new(),
            pending: Vec::new(),
            queue: VecDeque::new(),
            submission: None,
            waiting: Waiting::No,
            is_full: false,
            wants_row: false,
            has_grown: false,
            released: VecDeque::new(),
            ready: VecDeque::new(),
            done: VecDeque::new(),
            outstanding: 0,
            policy: *policy,
            lost: 0,
            absent: 0,
            valid_rows: 0,
            worker: OwnRow::Free,
            worked: VecDeque::new(),
            superblocks: 0,
            ends: false,
        })
    }

    /// The next operation to start, by a number of its own.
    pub(crate) fn poll_op(&mut self) -> Option<u32> {
        loop {
            if let Some(slot) = self.ready.pop_front() {
                return Some(slot);
            }
            if self.ends || self.superblocks > 0 || !(self.run_thread() || self.resume()) {
                return None;
            }
        }
    }

    /// The next request that is complete.
    pub(crate) fn poll_done(&mut self) -> Option<u32> {
        self.done.pop_front()
    }

    /// What the operation does.
    pub(crate) fn op(&self, slot: u32) -> RowOp {
        let (id, position) = self.split(slot);
        let row = self.row(id);
        let Some(number) = row.number else { unreachable!("an operation is of a row in use") };
        if position == self.parity.members {
            let (read_sectors, written_sectors) = self.computed_sectors(id);
            return RowOp::Compute { read_sectors, written_sectors };
        }
        let writes = self.page(id, position).is(WRITING);
        RowOp::Device {
            leaf: self.leaves[position as usize],
            kind: if writes { OpKind::Write } else { OpKind::Read },
            extent: Extent::new(number * self.row_sectors, self.row_sectors),
            force_unit_access: writes && row.force_unit_access,
        }
    }

    /// A request that the operation serves; none where it serves the array's own work alone.
    pub(crate) fn request_of(&self, slot: u32) -> Option<u32> {
        let (id, _) = self.split(slot);
        let pages = &self.pages[self.pages_of(id)];
        let mut riders = pages.iter().flat_map(|page| [page.written, page.to_write, page.to_read]);
        riders.find(|&rider| rider != NONE).map(|rider| self.riders[rider as usize].request)
    }

    /// The operation is done.
    pub(crate) fn handle_op_done(&mut self, slot: u32) {
        self.outstanding -= 1;
        if self.ends {
            return;
        }
        let (id, position) = self.split(slot);
        if position == self.parity.members {
            self.end_computation(id);
        } else {
            let page = self.page_mut(id, position);
            if !page.is(WRITING) {
                page.flags |= UP_TO_DATE;
            }
            page.flags &= !(LOCKED | WRITING | OWN);
            let head = self.row(id).batch_head;
            if head != NONE && head != id {
                self.release(head);
            }
        }
        self.row_mut(id).to_handle = true;
        self.release(id);
    }

    /// A member has failed: nothing more is begun. What is ready is finished, reads being of no use any more.
    pub(crate) fn end(&mut self) {
        self.ends = true;
    }

    /// Whether a member has failed and requests wait for what is on its way.
    pub(crate) fn is_ending(&self) -> bool {
        self.ends
    }

    /// Whether operations are on their way.
    pub(crate) fn is_busy(&self) -> bool {
        self.outstanding > 0
    }

    /// Keeps a request until the cache has ended.
    pub(crate) fn keep(&mut self, request: u32) {
        self.count(request);
    }

    /// A request that is to go another way now that the cache has ended, and is forgotten here.
    pub(crate) fn next_given_up(&mut self) -> Option<u32> {
        if !self.ends || self.outstanding > 0 {
            return None;
        }
        let request = self.pending.iter().position(|&pages| pages > 0)?;
        self.pending[request] = 0;
        Some(crate::plan::place(request))
    }

    /// The members of its rows, by position.
    pub(crate) fn leaves(&self) -> &[LeafId] {
        &self.leaves
    }

    /// Whether it can do without these members, a bit each by position.
    pub(crate) fn bears(&self, lost: u64) -> bool {
        lost.count_ones() <= self.parity.parities
    }

    /// The members that it does without, a bit each by position; reads come here too where there are any.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Begins again, knowing nothing, without some members.
    pub(crate) fn begin_again(&mut self, lost: u64) {
        debug_assert!(self.bears(lost), "a cache of rows that cannot be read");
        (self.absent, self.valid_rows, self.worker) = (lost, 0, OwnRow::Free);
        self.worked.clear();
        debug_assert!(
            self.outstanding == 0 && self.pending.iter().all(|&pages| pages == 0),
            "requests in an ended cache"
        );
        self.pool.reset();
        self.pages.fill(UNKNOWN);
        self.riders.clear();
        self.queue.clear();
        self.released.clear();
        (self.submission, self.waiting, self.ends, self.lost) = (None, Waiting::No, false, lost);
        (self.is_full, self.wants_row, self.has_grown) = (false, false, false);
    }

    /// Whether nothing is left of past requests.
    pub(crate) fn is_idle(&self) -> bool {
        let nothing = self.ready.is_empty() && self.done.is_empty() && self.outstanding + self.superblocks == 0;
        nothing && self.pending.iter().all(|&pages| pages == 0) && (self.ends || self.pool.active == 0)
    }

    fn row(&self, id: u32) -> &CachedRow {
        &self.pool.rows[id as usize]
    }

    fn row_mut(&mut self, id: u32) -> &mut CachedRow {
        &mut self.pool.rows[id as usize]
    }

    fn pages_of(&self, id: u32) -> std::ops::Range<usize> {
        let members = self.leaves.len();
        id as usize * members..(id as usize + 1) * members
    }

    fn page(&self, id: u32, position: u32) -> &CachedPage {
        &self.pages[id as usize * self.leaves.len() + position as usize]
    }

    fn page_mut(&mut self, id: u32, position: u32) -> &mut CachedPage {
        &mut self.pages[id as usize * self.leaves.len() + position as usize]
    }

    fn slot(&self, id: u32, position: u32) -> u32 {
        id * (self.parity.members + 1) + position
    }

    fn split(&self, slot: u32) -> (u32, u32) {
        let places = self.parity.members + 1;
        (slot / places, slot % places)
    }

    /// The members whose page of the row is not there, by position.
    fn lost_of(&self, id: u32) -> u64 {
        match self.row(id).number {
            Some(number) if number < self.valid_rows => self.absent,
            _ => self.lost,
        }
    }

    fn is_lost(&self, id: u32, position: u32) -> bool {
        self.lost_of(id) >> position & 1 == 1
    }

    fn is_parity(&self, id: u32, position: u32) -> bool {
        let p = self.row(id).p;
        position == p || (self.parity.parities == 2 && position == self.parity.q_position(p))
    }

    /// One more page of a request is to be read or written.
    fn count(&mut self, request: u32) {
        if request as usize >= self.pending.len() {
            self.pending.resize(request as usize + 1, 0);
        }
        self.pending[request as usize] += 1;
    }

    /// One page less; the last completes the request.
    fn uncount(&mut self, request: u32) {
        let left = &mut self.pending[request as usize];
        *left -= 1;
        if *left == 0 {
            self.done.push_back(request);
        }
    }

    /// Somebody holds the row no more; where that was the last, the thread will take it back.
    fn release(&mut self, id: u32) {
        let row = self.row_mut(id);
        if row.holders > 1 || row.is_released {
            return self.release_at_once(id);
        }
        row.is_released = true;
        self.released.push_back(id);
    }

    fn release_at_once(&mut self, id: u32) {
        let row = self.row_mut(id);
        row.holders -= 1;
        if row.holders > 0 {
            return;
        }
        if row.to_handle {
            return self.pool.push(pool::TO_HANDLE, id);
        }
        debug_assert!(row.phase == RowPhase::Idle && row.batch_head == NONE, "an idle row has nothing to do");
        self.pool.active -= 1;
        self.pool.push(RowPool::class(id), id);
    }

    /// Where P is in the row of this number.
    fn p_of(&self, number: u64) -> u32 {
        self.parity.p_position(number * self.row_sectors / self.parity.chunk)
    }

    /// The row's number and P, of the page that begins at sector `lba` of the volume.
    fn locate(&self, lba: u64) -> (u64, u32) {
        let (chunk, within) = (lba / self.parity.chunk, lba % self.parity.chunk);
        let stripe = chunk / u64::from(self.parity.data());
        ((stripe * self.parity.chunk + within) / self.row_sectors, self.parity.p_position(stripe))
    }

    /// Where the volume has the page of data column `column` in the row of this number.
    fn page_lba(&self, number: u64, column: u32) -> u64 {
        let (stripe, within) =
            (number * self.row_sectors / self.parity.chunk, number * self.row_sectors % self.parity.chunk);
        (stripe * u64::from(self.parity.data()) + u64::from(column)) * self.parity.chunk + within
    }

    /// The bits of sectors `[lo, hi)` of a page.
    fn bits(lo: u64, hi: u64) -> u64 {
        (u64::MAX >> (64 - usize_from(hi - lo))) << lo
    }
}
