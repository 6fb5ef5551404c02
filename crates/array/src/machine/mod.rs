//! The array as a state machine: requests in, operations out, results in, events out.
//!
//! Recommended order of polling, after every `handle_*` call: [`Array::poll_op`] until `None` (start each operation),
//! then [`Array::poll_event`] until `None` (finish each request). A computation is polled and completed like any
//! operation, so that the simulator can price it and the live engine can run the kernel.
//!
//! A request longer than a *window* is cut into windows that end where stripes do; each takes its locks, is planned, runs,
//! and is retired by itself. Failures: see `run.rs`.

mod cached;
mod gate;
mod locks;
mod memory;
mod rebuild;
mod repair;
mod run;
mod scrub;
mod slow;
mod spares;
mod stripe_cache;

pub(crate) use locks::{LockMode, LockRange};
pub use scrub::{ScrubCounts, ScrubKind, ScrubMismatch};
pub use slow::SatOut;

use crate::layout::{Layout, NodeId};
use crate::plan::{
    place, BadExtent, Body, ComputeKind, MemberViews, NodeView, Piece, Plan, Scratch, Segment, WrongExtent, NONE,
};
use crate::policy::{MemberState, MemberView, Policy};
use crate::throttle::{RebuildThrottle, Traffic};
use gate::{ResyncGate, SUPERBLOCKS};
use locks::LockTable;
use raidlab_types::number::u32_from;
use raidlab_types::{
    Extent, Instant, Lba, LeafId, OpError, OpId, OpKind, Operation, Request, RequestError, RequestKind, RequestTag,
};
use rebuild::Rebuild;
use repair::ReadErrors;
use scrub::Scrub;
use slab::Slab;
use slow::Slowness;
use std::collections::VecDeque;
use stripe_cache::StripeCache;

/// A window of a request while it runs; its number names its scratch memory.
pub type WindowId = u32;

/// An operation that the array asks its driver to carry out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ArrayOp {
    /// An operation on a member.
    Device(Operation),
    /// A computation, see [`Array::compute`].
    Compute {
        /// Name to be given back when it is done.
        id: OpId,
        /// The client's request it serves, or [`OF_ARRAY`].
        tag: RequestTag,
        /// Bytes it reads.
        read_bytes: u64,
        /// Bytes it makes.
        write_bytes: u64,
    },
}

/// A computation with its inputs and outputs.
#[derive(Debug, Clone, Copy)]
pub struct ComputeWork<'a> {
    /// The plan it belongs to, for [`Plan::inputs`].
    pub plan: &'a Plan,
    /// What it is for.
    pub kind: ComputeKind,
    /// What to compute.
    pub segments: &'a [Segment],
}

/// An outcome that the array reports to its driver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// A request is complete, or has failed.
    RequestDone {
        /// The client's name for it.
        tag: RequestTag,
        /// Success, or why not.
        result: Result<(), RequestError>,
    },
    /// A member was found gone, or has had too many read errors, and is used no more.
    MemberFailed {
        /// Which.
        leaf: LeafId,
    },
    /// A member that took a lost one's place holds all it should, or a distributed spare does.
    MemberRebuilt {
        /// Which.
        leaf: LeafId,
    },
    /// A member is not rebuilt any further: too little can be read of the others.
    RebuildStopped {
        /// Which.
        leaf: LeafId,
    },
    /// A scrub has gone over all there is, or was broken off: see [`Array::scrub_counts`].
    ScrubDone,
}

#[derive(Debug, Clone, Copy)]
struct RequestState {
    request: Request,
    /// The volume's node.
    node: NodeId,
    /// First sector not yet handed to a window.
    next_lba: u64,
    /// One past the last; a flush is one window of one made-up sector.
    end_lba: u64,
    windows: u32,
    error: Option<RequestError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowPhase {
    /// In the list of idle windows.
    Idle,
    /// Queued for locks.
    Waiting,
    /// Its plan runs.
    Running,
    /// Something failed before the first write: what is in flight drains, then the window is planned anew.
    Draining,
}

/// The tag of operations that serve no client but the array's own work: beyond those of clients.
pub const OF_ARRAY: RequestTag = 1 << 62;

/// Whose a window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// A client's request.
    Client(u32),
    /// The array's own work; its extent is of the children of the work's node.
    Rebuild(u32),
    /// A repair of what a read could not read; its extent is of the children of the node.
    Repair(NodeId),
}

#[derive(Debug)]
struct Window {
    phase: WindowPhase,
    owner: Owner,
    extent: Extent,
    plan: Plan,
    locks: u32,
    blockers: u32,
    /// The array's epoch when it queued for its locks.
    epoch: u32,
    /// A read that holds all the locks it may ever need.
    locked_all: bool,
    /// How often a read has forgotten its bad sectors.
    second_looks: u8,
    /// Writes the array had done when the plan began that found the first bad sector.
    writes_seen: u32,
    /// Longest operation after media errors; 0 for any length.
    run_sectors: u32,
    /// Nodes handed out or queued and not yet done.
    outstanding: u32,
    /// Nodes not yet done.
    remaining: u32,
    reads_left: u32,
    /// Writes that wait only for the last read.
    held: Vec<u32>,
    bad: Vec<BadExtent>,
    /// Sectors of the longest operation of which a device has named no part.
    vague: u64,
    /// Of a scrub: what is not believed, and whether the plan writes it anew.
    wrong: Vec<WrongExtent>,
    mends: bool,
    /// Of a rebuild: it goes on without what cannot be had.
    salvages: bool,
}

/// The array.
#[derive(Debug)]
pub struct Array {
    layout: Layout,
    policy: Policy,
    views: MemberViews,
    scratch: Scratch,
    locks: LockTable,
    lock_list: Vec<LockRange>,
    requests: Slab<RequestState>,
    windows: Vec<Window>,
    /// Windows that nobody uses: what they have allocated serves the next.
    idle_windows: Vec<u32>,
    ready: VecDeque<(u32, u32)>,
    runnable: VecDeque<u32>,
    /// By volume; none at all where the policy has none, or the driver moves bytes.
    caches: Vec<Option<StripeCache>>,
    /// By volume; none at all where no volume has one.
    gates: Vec<Option<ResyncGate>>,
    /// Requests that a gate has let in, and that have not begun.
    let_in: VecDeque<u32>,
    writes_superblocks: bool,
    events: VecDeque<Event>,
    /// Longest window.
    window_sectors: u64,
    windows_in_flight: u32,
    /// Counts changes of members' states.
    epoch: u32,
    /// That with which a distributed spare was last given back.
    spares_freed: u32,
    /// Counts writes of members.
    writes_done: u32,
    /// Sectors in 4 KiB, the first step of looking closer after media errors.
    block_sectors: u32,
    /// Sectors of a row in which stripes are written; 1 where these are written by sectors.
    row_sectors: u64,
    /// The accesses of writes are to be gathered.
    gathers_writes: bool,
    /// A write waits for its own read alone.
    writes_early: bool,
    requests_in_flight: u32,
    /// Requests taken so far.
    requests_taken: u64,
    /// What it does for itself.
    rebuilds: Slab<Rebuild>,
    /// What passes over members, by leaf; where work in stripe caches asks for it.
    traffic: Vec<Traffic>,
    scrub: Option<Scrub>,
    scrub_counts: ScrubCounts,
    repairs_in_flight: u32,
    repaired_sectors: u64,
    /// By leaf; none at all where the policy bears any number.
    read_errors: Vec<ReadErrors>,
    /// None where the policy has nobody sit out.
    slowness: Option<Slowness>,
    /// How fast; as the member replaced last.
    throttle: RebuildThrottle,
    /// Bytes of a member that a unit of a rebuild is asked to have.
    rebuild_unit: Option<u64>,
    /// Counts units that have begun.
    units_begun: u64,
    /// Work in stripe caches goes on once what is ready now has been handed on.
    worker_is_woken: bool,
    /// When work may go on that has to wait for it.
    next_work_at: Option<Instant>,
    /// The time as it was last told.
    now: Instant,
}

impl Array {
    /// An idle array with all members online.
    pub fn new(layout: Layout, policy: Policy) -> Array {
        let widest = (0..layout.volumes().len()).map(|v| layout.full_stripe_sectors(v)).max().unwrap_or(1);
        let target = (policy.window_bytes / u64::from(layout.sector_bytes())).max(1);
        // A window is at least a stripe, and short enough for 32-bit offsets within plans.
        let window_sectors = (target / widest).max(1).saturating_mul(widest).min(1 << 28);
        let mut array = Array {
            views: MemberViews::new(&layout),
            windows_in_flight: policy.windows_in_flight.max(1),
            epoch: 0,
            spares_freed: 0,
            writes_done: 0,
            block_sectors: (4096 / layout.sector_bytes()).max(1),
            row_sectors: policy.row_sectors(layout.sector_bytes()),
            gathers_writes: policy.plug && layout.has_parity(),
            writes_early: false,
            read_errors: ReadErrors::of_members(&layout, &policy),
            slowness: Slowness::of_members(&layout, policy.sit_out),
            layout,
            policy,
            scratch: Scratch::default(),
            locks: LockTable::new(),
            lock_list: Vec::new(),
            requests: Slab::new(),
            windows: Vec::new(),
            idle_windows: Vec::new(),
            ready: VecDeque::new(),
            runnable: VecDeque::new(),
            caches: Vec::new(),
            gates: Vec::new(),
            let_in: VecDeque::new(),
            writes_superblocks: false,
            events: VecDeque::new(),
            window_sectors,
            requests_in_flight: 0,
            requests_taken: 0,
            rebuilds: Slab::new(),
            traffic: Vec::new(),
            scrub: None,
            scrub_counts: ScrubCounts::default(),
            repairs_in_flight: 0,
            repaired_sectors: 0,
            throttle: RebuildThrottle::Idle,
            rebuild_unit: None,
            units_begun: 0,
            worker_is_woken: false,
            next_work_at: None,
            now: Instant::ZERO,
        };
        array.set_up_gates();
        array
    }

    /// Gives the array a deliberate fault.
    #[cfg(feature = "weakened")]
    pub fn weaken(&mut self, weakness: crate::Weakness) {
        self.views.weakness = Some(weakness);
    }

    /// The compiled tree.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// A member as plans see it.
    pub fn member(&self, leaf: LeafId) -> &MemberView {
        self.views.leaf(leaf)
    }

    /// Whether every volume can still be read and written.
    pub fn bears_its_losses(&self) -> bool {
        (0..self.layout.volumes().len()).all(|volume| !self.views.is_lost(self.layout.volume_node(volume)))
    }

    /// Whether something of a volume can be given back no more: too many members are gone, or hold not yet what they should.
    pub fn has_lost_data(&self) -> bool {
        (0..self.layout.volumes().len()).any(|volume| self.views.is_unsure(self.layout.volume_node(volume)))
    }

    /// Requests taken and not yet reported done.
    pub fn in_flight(&self) -> u32 {
        self.requests_in_flight
    }

    /// Changes a member's state: taken out before a run, or found gone. Operations already handed out for it must still
    /// be completed (with [`OpError::MemberGone`] where it did not serve them). A member that is put online again is
    /// believed to hold what it should: one that has missed writes is rebuilt by [`Array::replace_member`].
    pub fn set_member_state(&mut self, leaf: LeafId, state: MemberState) {
        let frees_spare = state == MemberState::Online && self.views.leaf(leaf).spare.is_some();
        self.views.set_state(&self.layout, leaf, state);
        self.end_sitting_out();
        self.epoch = self.epoch.wrapping_add(1);
        self.spares_freed = if frees_spare { self.epoch } else { self.spares_freed };
        if !self.rebuilds.is_empty() && !self.views.leaf(leaf).writes() {
            self.leave_rebuilds();
            self.rebuild_around(leaf);
        }
        self.end_caches();
    }

    /// A member is found gone, or to be of no more use.
    pub(super) fn fail_member(&mut self, leaf: LeafId) {
        self.set_member_state(leaf, MemberState::Failed);
        self.events.push_back(Event::MemberFailed { leaf });
    }

    /// Takes a request; its outcome comes as [`Event::RequestDone`] with its tag. Its length must be below 2^32 sectors,
    /// since plans address its buffer so; a longer one is refused as out of range.
    pub fn handle_request(&mut self, now: Instant, request: Request) {
        self.now = now;
        self.requests_in_flight += 1;
        self.requests_taken += 1;
        let node = match self.check(&request) {
            Ok(node) => node,
            Err(error) => return self.events.push_back(Event::RequestDone { tag: request.tag, result: Err(error) }),
        };
        let Extent { lba, sectors } = match request.kind {
            RequestKind::Flush => Extent::new(0, 1),
            _ => request.extent,
        };
        let request = Request { extent: Extent::new(lba, sectors), ..request };
        let (next_lba, end_lba) = (lba, lba + sectors);
        let state = RequestState { request, node, next_lba, end_lba, windows: 0, error: None };
        let id = place(self.requests.insert(state));
        if !self.caches.is_empty() && self.goes_to_cache(id) || !self.gates.is_empty() && self.is_kept_out(id) {
            return;
        }
        self.start_windows(id);
        self.run_unblocked();
    }

    /// The next operation to start.
    #[inline]
    pub fn poll_op(&mut self) -> Option<ArrayOp> {
        loop {
            let Some((window, node)) = self.ready.pop_front() else {
                match self.poll_caches() {
                    // A cache that has ended gives its requests back.
                    None if !self.ready.is_empty() => continue,
                    None if self.is_at_work() && !self.caches.is_empty() && self.work_in_caches() => continue,
                    op => return op,
                }
            };
            if window == SUPERBLOCKS {
                return Some(self.superblock_op(node));
            }
            if let Some(op) = self.hand_out(window, node) {
                return Some(op);
            }
            // A write to a member that has gone meanwhile counts as done; what follows from that may be ready now, the next
            // unit of a rebuild not least.
            self.run_unblocked();
            if !self.rebuilds.is_empty() {
                self.go_on();
            }
        }
    }

    /// The operation `id` is done. A media error names sectors of the device, as [`Operation::extent`] does; the fewer it
    /// names, the less has to be read again.
    pub fn handle_op_done(&mut self, now: Instant, id: OpId, result: Result<(), OpError>) {
        self.now = now;
        let (window, node) = split(id);
        if let Some(volume) = self.volume_of_cache(window) {
            return self.cache_op_done(volume, node, result);
        }
        if window == SUPERBLOCKS {
            self.superblock_done(node, result);
        } else {
            self.note_done(window, node);
            if result.is_ok() && self.heeds_what_is_served() {
                self.note_served(window, node);
            }
            if self.gates.is_empty() || !self.is_late(window, node, result) {
                self.note_own(window, node, false);
                self.op_done(window, node, result);
            }
        }
        self.run_unblocked();
        if !self.rebuilds.is_empty() {
            self.go_on();
        }
    }

    /// The next outcome.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        if let Some(Event::RequestDone { .. }) = event {
            self.requests_in_flight -= 1;
        }
        event
    }

    /// Memory that the device operation `id` moves to or from, in order.
    pub fn pieces(&self, id: OpId) -> &[Piece] {
        let (window, node) = split(id);
        match self.windows[window as usize].plan.node(node as usize) {
            NodeView::Device(device) => device.pieces,
            NodeView::Compute(..) => &[],
        }
    }

    /// What the device operation `id` does, on which member, and to which sectors of its data area (superblocks lie beyond);
    /// `None` if it is a computation.
    #[inline]
    pub fn moves(&self, id: OpId) -> Option<(LeafId, OpKind, Extent)> {
        let (window, node) = split(id);
        if let Some(volume) = self.volume_of_cache(window) {
            return self.cached_moves(volume, node);
        }
        if window == SUPERBLOCKS {
            return Some((node, OpKind::Write, Extent::new(Lba::MAX - 1, 1)));
        }
        match self.windows[window as usize].plan.node(node as usize) {
            NodeView::Device(device) => Some((device.leaf, device.kind, device.extent)),
            NodeView::Compute(..) => None,
        }
    }

    /// Whether the host gathers the operation `id` with others that become ready at the same time, before it hands them on.
    pub fn is_gathered(&self, id: OpId) -> bool {
        let (window, _) = split(id);
        if self.volume_of_cache(window).is_some() {
            return self.gathers_writes;
        }
        if window == SUPERBLOCKS {
            return false;
        }
        match self.windows[window as usize].owner {
            Owner::Client(request) => {
                self.gathers_writes && self.requests[request as usize].request.kind == RequestKind::Write
            }
            Owner::Repair(_) => false,
            Owner::Rebuild(work) => self.policy.plug && self.rebuilds[work as usize].gate.is_some(),
        }
    }

    /// The computation `id`; `None` if it is a device operation.
    pub fn compute(&self, id: OpId) -> Option<ComputeWork<'_>> {
        let (window, node) = split(id);
        let plan = &self.windows[window as usize].plan;
        match plan.node(node as usize) {
            NodeView::Compute(kind, segments) => Some(ComputeWork { plan, kind, segments }),
            NodeView::Device(_) => None,
        }
    }

    /// The window that operation `id` belongs to, and the scratch sectors its plan needs.
    pub fn scratch_of(&self, id: OpId) -> (WindowId, u32) {
        let (window, _) = split(id);
        (window, self.windows[window as usize].plan.scratch_sectors())
    }

    /// The node of the request's volume, if the request lies within it.
    fn check(&self, request: &Request) -> Result<NodeId, RequestError> {
        let Request { volume, extent, kind, .. } = *request;
        let found = self.layout.volumes().get(volume as usize);
        let capacity_sectors = found.map_or(0, |v| v.capacity_sectors);
        let inside = (1..=u64::from(u32::MAX)).contains(&extent.sectors)
            && extent.lba.checked_add(extent.sectors).is_some_and(|end| end <= capacity_sectors);
        match found {
            Some(_) if inside || kind == RequestKind::Flush => Ok(self.layout.volume_node(volume as usize)),
            _ => Err(RequestError::OutOfRange { volume, extent, capacity_sectors }),
        }
    }

    /// Whether nothing is left of past requests, for tests and debug assertions of drivers.
    ///
    /// # Errors
    /// Names the first thing found that an idle array must not have.
    pub fn check_idle(&self) -> Result<(), &'static str> {
        let idle = [
            (self.requests_in_flight == 0, "requests in flight"),
            (self.ready.is_empty() && self.runnable.is_empty() && self.events.is_empty(), "queued work or events"),
            (self.locks.is_empty(), "locks"),
            (self.views.leaves.iter().all(|v| v.in_flight == 0), "operations counted in flight"),
            (self.windows.iter().all(|p| p.phase == WindowPhase::Idle), "windows"),
            (self.idle_windows.len() == self.windows.len(), "windows not in the list of idle ones"),
            (self.requests.is_empty(), "requests"),
            (self.rebuilds.is_empty() && self.repairs_in_flight == 0, "work of its own"),
            (self.caches.iter().flatten().all(StripeCache::is_idle), "rows in a stripe cache"),
            (self.let_in.is_empty() && self.gates.iter().flatten().all(ResyncGate::is_idle), "requests at a gate"),
        ];
        idle.iter().find(|(fine, _)| !fine).map_or(Ok(()), |(_, what)| Err(what))
    }

    #[inline]
    fn operation(&self, window: &Window, id: u32, node: u32) -> ArrayOp {
        let (tag, force_unit_access) = match window.owner {
            Owner::Client(request) => {
                let Request { tag, force_unit_access, .. } = self.requests[request as usize].request;
                (tag, force_unit_access)
            }
            Owner::Rebuild(_) | Owner::Repair(_) => (OF_ARRAY, false),
        };
        let (id, join) = (join(id, node), |other| join(id, other));
        match &window.plan.nodes[node as usize].body {
            Body::Device { leaf, kind, extent, pair, .. } => ArrayOp::Device(Operation {
                id,
                tag,
                leaf: *leaf,
                kind: *kind,
                extent: Extent::new(extent.lba + self.layout.leaves[*leaf as usize].data_offset, extent.sectors),
                force_unit_access: force_unit_access && *kind == OpKind::Write,
                pair_with: (*pair != NONE).then(|| join(*pair)),
            }),
            Body::Compute { segments, .. } => {
                let (read, written) = window.plan.compute_sectors(window.plan.segments_of(segments));
                let sector = u64::from(self.layout.sector_bytes());
                ArrayOp::Compute { id, tag, read_bytes: read * sector, write_bytes: written * sector }
            }
        }
    }
}

fn join(window: u32, node: u32) -> OpId {
    OpId(u64::from(window) << 32 | u64::from(node))
}

fn split(id: OpId) -> (u32, u32) {
    (u32_from(id.0 >> 32), u32_from(id.0 & u64::from(u32::MAX)))
}
