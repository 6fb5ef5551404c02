//! How windows run: locks, plan, operations, and what happens when something fails on the way.
//!
//! - Before the first write of a window is issued, a failure lets what is in flight drain and plans the window anew with
//!   what is known now. A read gives up its place then and queues for the locks it needs: which those are depends on what
//!   has failed, so a read that waited while a member went queues again too.
//! - Where rows of a stripe are planned one by one (`Policy::parity_row_bytes`), the same holds for each row: its writes become ready
//!   together, after its reads, and are finished.
//! - From the first write on, no read is left in the window (the barrier), so the remaining writes finish; those to a
//!   member that has gone are dropped, since the redundancy written beside them carries their content.
//! - A media error on a read costs the sectors it names for this window only, unless it is one too many
//!   (`Policy::max_read_errors`); one on a write costs the member, as its content can no longer be trusted.
//! - Nothing is taken out of the queue of ready nodes: what a draining window has there is dropped when its turn comes.

use super::locks::collect;
use super::scrub::is_within;
use super::{Array, Event, LockMode, Owner, RequestState, Window, WindowPhase};
use crate::layout::{Layout, NodeId};
use crate::plan::{narrow, place, BadExtent, Body, MemberViews, Plan, Planner, NONE};
use crate::policy::MemberState;
use crate::weakness::Weakness;
use raidlab_types::{Extent, LeafId, OpError, OpKind, Operation, RequestError, RequestKind};
use std::collections::VecDeque;

/// Media errors of one window that are believed to the sector; beyond, each costs its whole operation, so that a member
/// that answers every read with the next bad sector cannot keep a window busy for ever.
const NARROW_ERRORS: usize = 64;

/// How often a read forgets the bad sectors it found before it gives up.
const SECOND_LOOKS: u8 = 3;

/// The next window of a request that goes on from `next` to `end`: all of it where it is no longer than `longest`, else as
/// many sectors as end with a stripe. Where the request lies decides nothing else: one that crosses a multiple of `longest`
/// is not cut there.
#[inline]
fn window(next: u64, end: u64, longest: u64, stripe: u64) -> Extent {
    if end - next <= longest {
        return Extent::new(next, end - next);
    }
    let furthest = next + longest;
    let whole_stripes = furthest / stripe * stripe;
    // A stripe may be longer than any window.
    let cut = if whole_stripes > next { whole_stripes } else { furthest };
    Extent::new(next, cut - next)
}

impl Window {
    /// How much of members it has found unreadable.
    pub(super) fn bad_sectors(&self) -> u64 {
        self.bad.iter().map(|bad| bad.extent.sectors).sum()
    }

    /// Forgets what it has found unreadable.
    pub(super) fn forget_bad(&mut self) {
        self.bad.clear();
        self.vague = 0;
    }

    /// Whether the node is a write of a row whose writes are all ready: they are finished even where the window is to be
    /// planned anew, so that no row is left half written.
    fn ends_row(&self, node: u32) -> bool {
        self.plan.by_rows && matches!(self.plan.nodes[node as usize].body, Body::Device { kind: OpKind::Write, .. })
    }
}

impl Array {
    /// Starts as many windows of the request as may be in flight together.
    pub(super) fn start_windows(&mut self, id: u32) {
        loop {
            let r = &mut self.requests[id as usize];
            if r.next_lba >= r.end_lba || r.windows >= self.windows_in_flight || r.error.is_some() {
                return;
            }
            let stripe = self.layout.node(r.node).alignment;
            let extent = window(r.next_lba, r.end_lba, self.window_sectors, stripe);
            r.next_lba = extent.end();
            r.windows += 1;
            let last = extent.end() == r.end_lba;
            let window = self.new_window(Owner::Client(id), extent);
            self.lock(window);
            if last {
                return;
            }
        }
    }

    pub(super) fn new_window(&mut self, owner: Owner, extent: Extent) -> u32 {
        let id = match self.idle_windows.pop() {
            None => {
                self.windows.push(Window {
                    phase: WindowPhase::Idle,
                    owner,
                    extent,
                    plan: Plan::default(),
                    locks: NONE,
                    blockers: 0,
                    epoch: 0,
                    locked_all: false,
                    second_looks: 0,
                    writes_seen: 0,
                    run_sectors: 0,
                    outstanding: 0,
                    remaining: 0,
                    reads_left: 0,
                    held: Vec::new(),
                    bad: Vec::new(),
                    vague: 0,
                    wrong: Vec::new(),
                    mends: false,
                    salvages: false,
                });
                place(self.windows.len()) - 1
            }
            Some(id) => id,
        };
        let window = &mut self.windows[id as usize];
        (window.owner, window.extent, window.locks, window.blockers) = (owner, extent, NONE, 0);
        (window.outstanding, window.second_looks, window.run_sectors) = (0, 0, 0);
        window.salvages = false;
        window.forget_bad();
        id
    }

    /// Queues for the locks the window needs now, and marks it runnable if none is in the way.
    pub(super) fn lock(&mut self, id: u32) {
        let has_members_out = self.has_members_out() && !self.views.is_weak(Weakness::SittingOutTakesNoLocks);
        let window = &mut self.windows[id as usize];
        self.lock_list.clear();
        let mut locks_all = false;
        match window.owner {
            Owner::Client(request) => {
                let &RequestState { ref request, node, .. } = &self.requests[request as usize];
                let mode = match request.kind {
                    RequestKind::Write => Some(LockMode::Exclusive { row_sectors: self.row_sectors }),
                    RequestKind::Read if !window.bad.is_empty() || has_members_out => Some(LockMode::Shared),
                    RequestKind::Read if self.views.is_degraded(node) => Some(LockMode::SharedIfDegraded(&self.views)),
                    _ => None,
                };
                if let Some(mode) = mode {
                    collect(&self.layout, node, window.extent, mode, false, &mut self.lock_list);
                }
                locks_all = matches!(mode, Some(LockMode::Shared));
            }
            Owner::Rebuild(_) if self.views.is_weak(Weakness::RebuildTakesNoLocks) => {}
            Owner::Rebuild(work)
                if self.rebuilds[work as usize].scrubs && self.views.is_weak(Weakness::ScrubTakesNoLocks) => {}
            Owner::Rebuild(work) => {
                self.rebuilds[work as usize].collect_unit(
                    (&self.layout, &self.views),
                    window.extent,
                    self.row_sectors,
                    &mut self.lock_list,
                );
            }
            Owner::Repair(_) if self.views.is_weak(Weakness::RepairTakesNoLocks) => {}
            Owner::Repair(node) => {
                let mut locks = std::mem::take(&mut self.lock_list);
                self.collect_repair(node, self.windows[id as usize].extent, &mut locks);
                self.lock_list = locks;
            }
        }
        if self.drops_locks(id) {
            self.lock_list.clear();
        }
        let window = &mut self.windows[id as usize];
        let (mut locks, mut blockers) = (NONE, 0);
        if !self.lock_list.is_empty() {
            (locks, blockers) = self.locks.acquire(id, &self.lock_list);
        }
        (window.locks, window.blockers, window.epoch, window.phase) =
            (locks, blockers, self.epoch, WindowPhase::Waiting);
        window.locked_all = locks_all;
        if blockers == 0 {
            self.runnable.push_back(id);
        }
    }

    /// Whether a deliberate fault lets a client's window go without locks.
    #[inline]
    fn drops_locks(&self, id: u32) -> bool {
        let of = |kind| self.request_of(id).is_some_and(|state| state.request.kind == kind);
        self.views.is_weak(Weakness::WritesTakeNoLocks) && of(RequestKind::Write)
            || self.views.is_weak(Weakness::DegradedReadsTakeNoLocks) && of(RequestKind::Read)
    }

    #[inline]
    fn unlock(&mut self, id: u32) {
        if self.windows[id as usize].locks == NONE {
            return;
        }
        let chain = std::mem::replace(&mut self.windows[id as usize].locks, NONE);
        let (windows, runnable) = (&mut self.windows, &mut self.runnable);
        self.locks.release(chain, |owner| {
            let window = &mut windows[owner as usize];
            window.blockers -= 1;
            if window.blockers == 0 {
                runnable.push_back(owner);
            }
        });
    }

    fn requeue(&mut self, id: u32) {
        self.unlock(id);
        self.lock(id);
    }

    /// Plans and starts every window whose locks are free.
    pub(super) fn run_unblocked(&mut self) {
        loop {
            while let Some(request) = self.let_in.pop_front() {
                self.start_windows(request);
            }
            let Some(id) = self.runnable.pop_front() else { return };
            let window = &self.windows[id as usize];
            if window.epoch != self.epoch && !window.locked_all && self.reads_degraded(id) {
                // A member went while it waited: what it queued for may not be what it needs now.
                self.requeue(id);
                continue;
            }
            match self.plan_window(id) {
                Ok(()) => self.start_plan(id),
                Err(error) => self.cannot_plan(id, error),
            }
        }
    }

    /// Something that a window needs cannot be read: it is planned anew where that may help, else it is over.
    #[cold]
    fn cannot_plan(&mut self, id: u32, error: RequestError) {
        let is_borne = self.look_closer(id)
            || self.look_again(id)
            || self.begins_to_salvage(id)
            || matches!(error, RequestError::BeyondTolerance { node, .. } if self.gives_up_member(id, node));
        if is_borne {
            self.runnable.push_back(id);
        } else {
            self.retire(id, Some(error));
        }
    }

    /// The request of a window, if it is a client's.
    fn request_of(&self, id: u32) -> Option<&RequestState> {
        match self.windows[id as usize].owner {
            Owner::Client(request) => Some(&self.requests[request as usize]),
            Owner::Rebuild(_) | Owner::Repair(_) => None,
        }
    }

    fn reads(&self, id: u32) -> bool {
        self.request_of(id).is_some_and(|r| r.request.kind == RequestKind::Read)
    }

    fn reads_degraded(&self, id: u32) -> bool {
        self.request_of(id).is_some_and(|r| r.request.kind == RequestKind::Read && self.views.is_degraded(r.node))
    }

    /// Whether a window that found too much unreadable may forget it and read in shorter operations: a device that names
    /// the whole of a long operation unreadable may mean one sector of it, and two such extents hide what is well. A unit of
    /// the array's own work believes a device that names a part.
    pub(super) fn look_closer(&mut self, id: u32) -> bool {
        let window = &mut self.windows[id as usize];
        let widest = match window.owner {
            Owner::Rebuild(_) => window.vague,
            _ => window.bad.iter().map(|b| b.extent.sectors).max().unwrap_or(0),
        };
        let shorter = match window.run_sectors {
            0 if widest > u64::from(self.block_sectors) => self.block_sectors,
            1 => return false,
            _ => 1,
        };
        let closer = widest > u64::from(shorter) && !self.views.is_weak(Weakness::NeverLooksCloser);
        if closer {
            window.forget_bad();
            window.run_sectors = shorter;
        }
        closer
    }

    /// Whether a read that found too many bad sectors may look again, since a write that it waited for or that ran beside
    /// it may have repaired some of them.
    fn look_again(&mut self, id: u32) -> bool {
        let reads = self.reads(id);
        let window = &mut self.windows[id as usize];
        let again = reads
            && !window.bad.is_empty()
            && window.writes_seen != self.writes_done
            && window.second_looks < SECOND_LOOKS;
        if again {
            window.bad.clear();
            window.second_looks += 1;
        }
        again
    }

    /// Whether a write goes on without a member of `node`, of which what it had to read there can be had from nobody: the
    /// write of a nested node that has failed costs the node, as it does with md, where those above bear that.
    fn gives_up_member(&mut self, id: u32, node: NodeId) -> bool {
        let Some(RequestState { request, node: volume, .. }) = self.request_of(id) else { return false };
        if request.kind != RequestKind::Write || node == *volume {
            return false;
        }
        // Others may have gone since they could not be read.
        let may_go =
            |&leaf: &LeafId| self.views.leaf(leaf).writes() && is_within(&self.layout, node, self.layout.node_of(leaf));
        let Some(leaf) = self.windows[id as usize].bad.iter().map(|bad| bad.leaf).find(may_go) else { return false };
        let is_borne = !self.is_unsure_without(leaf, *volume);
        if is_borne {
            self.fail_member(leaf);
        }
        is_borne
    }

    /// Whether a node would not give back all it should, or not everywhere, once a member had failed.
    pub(super) fn is_unsure_without(&self, leaf: LeafId, node: NodeId) -> bool {
        let mut without = self.views.clone();
        without.set_state(&self.layout, leaf, MemberState::Failed);
        without.is_unsure(node)
    }

    fn plan_window(&mut self, id: u32) -> Result<(), RequestError> {
        let window = &mut self.windows[id as usize];
        self.scratch.run_sectors = window.run_sectors;
        let (request, node) = match window.owner {
            Owner::Client(request) => {
                let RequestState { request, node, .. } = &self.requests[request as usize];
                (request, *node)
            }
            Owner::Rebuild(_) | Owner::Repair(_) => return self.plan_unit(id),
        };
        // What it has found bad comes first: who sits out may be needed.
        let knows_all = window.bad.is_empty() && window.run_sectors == 0;
        let is_read = request.kind == RequestKind::Read;
        let locked = window.locked_all || self.views.is_weak(Weakness::SittingOutTakesNoLocks);
        let out = self.slowness.as_ref().map(|slowness| &slowness.out);
        let around = out.filter(|out| is_read && locked && knows_all && !out.is_empty());
        let mut planner = Planner {
            layout: &self.layout,
            views: &self.views,
            policy: &self.policy,
            bad: &window.bad,
            scratch: &mut self.scratch,
            plan: &mut window.plan,
        };
        let write = match request.kind {
            RequestKind::Flush => return planner.flush(node),
            kind => kind == RequestKind::Write,
        };
        let (extent, offset) = (window.extent, narrow(window.extent.lba - request.extent.lba));
        if let Some(out) = around {
            planner.bad = out;
            if planner.request(node, write, extent, offset).is_ok() {
                return Ok(());
            }
            planner.bad = &window.bad;
        }
        planner.request(node, write, extent, offset)
    }

    fn start_plan(&mut self, id: u32) {
        let window = &mut self.windows[id as usize];
        if window.bad.is_empty() {
            // A write may be done between a read's finding a bad sector and our hearing of it: count from the start.
            window.writes_seen = self.writes_done;
        }
        window.phase = WindowPhase::Running;
        window.remaining = place(window.plan.len());
        // What the array does for itself copies what it has read, with nothing computed between.
        let early = self.writes_early && matches!(window.owner, Owner::Client(_));
        window.reads_left = if early { 0 } else { window.plan.barrier_reads() };
        window.outstanding = 0;
        window.held.clear();
        if window.remaining == 0 {
            self.retire(id, None);
            return;
        }
        let mut ready_queue = ReadyQueue { views: &mut self.views, ready: &mut self.ready, layout: &self.layout };
        for node in 0..window.remaining {
            if window.plan.nodes[node as usize].pending == 0 {
                ready_queue.make_ready(id, window, node);
            }
        }
    }

    /// The operation for a ready node; `None` if its member has gone meanwhile (its consequences are then drawn) or its
    /// window is to be planned anew.
    #[inline]
    pub(super) fn hand_out(&mut self, id: u32, node: u32) -> Option<super::ArrayOp> {
        let window = &self.windows[id as usize];
        let ends_row = window.ends_row(node) && !self.views.is_weak(Weakness::RowsLeftHalfWritten);
        if window.phase == WindowPhase::Draining && !ends_row {
            self.op_done(id, node, Ok(()));
            return None;
        }
        if let Body::Device { leaf, kind, extent, .. } = window.plan.nodes[node as usize].body {
            let view = self.views.leaf(leaf);
            let serves = if kind == OpKind::Read { view.reads(extent) } else { view.writes() };
            let stale = self.views.is_weak(Weakness::MirrorReadsStaleCopy) && view.writes();
            if !serves && !stale {
                self.op_done(id, node, Err(OpError::MemberGone));
                return None;
            }
        }
        let op = self.operation(window, id, node);
        self.note_own(id, node, true);
        if let super::ArrayOp::Device(Operation { leaf, kind, .. }) = op {
            self.note_begun(leaf, kind);
        }
        Some(op)
    }

    #[inline]
    pub(super) fn op_done(&mut self, id: u32, node: u32, result: Result<(), OpError>) {
        let window = &mut self.windows[id as usize];
        debug_assert!(
            matches!(window.phase, WindowPhase::Running | WindowPhase::Draining),
            "completion of an idle window"
        );
        window.outstanding -= 1;
        if let Body::Device { leaf, kind, extent, .. } = window.plan.nodes[node as usize].body {
            self.views.leaves[leaf as usize].in_flight -= 1;
            self.writes_done = self.writes_done.wrapping_add(u32::from(kind == OpKind::Write));
            if !self.traffic.is_empty() && !self.is_own(id) {
                self.traffic[leaf as usize].others += extent.sectors;
            }
            if let Err(error) = result {
                self.note_failure(id, leaf, kind, extent, error);
            }
        }
        let window = &self.windows[id as usize];
        match window.phase {
            WindowPhase::Draining if window.outstanding == 0 => self.replan(id),
            WindowPhase::Draining => {}
            _ => self.complete_node(id, node),
        }
    }

    #[cold]
    fn note_failure(&mut self, id: u32, leaf: LeafId, kind: OpKind, extent: Extent, error: OpError) {
        match error {
            OpError::Media(_) if kind == OpKind::Read && self.views.is_weak(Weakness::MediaErrorIgnored) => return,
            OpError::Media(_) if kind == OpKind::Read && self.views.is_weak(Weakness::MediaErrorForgotten) => {}
            OpError::Media(_) if kind == OpKind::Write && self.views.is_weak(Weakness::WriteErrorForgiven) => {}
            OpError::Media(bad) if kind == OpKind::Read => {
                let known = self.windows[id as usize].bad.len();
                let named = if known < NARROW_ERRORS { self.narrowed(leaf, extent, bad) } else { extent };
                if self.is_one_too_many(id, leaf, named) {
                    self.fail_member(leaf);
                } else {
                    let window = &mut self.windows[id as usize];
                    window.bad.push(BadExtent { leaf, extent: named });
                    window.vague = window.vague.max(if named == extent { extent.sectors } else { 0 });
                }
            }
            // One that is being rebuilt was not asked for this, or what was asked is not yet there: its predecessor was.
            _ if self.views.leaf(leaf).writes() && (kind != OpKind::Read || self.views.leaf(leaf).reads(extent)) => {
                self.fail_member(leaf);
            }
            _ => {}
        }
        if kind == OpKind::Read {
            self.windows[id as usize].phase = WindowPhase::Draining;
        }
    }

    /// The part of an operation's `extent` that the device says is `bad`; all of it if the device says nothing of use.
    fn narrowed(&self, leaf: LeafId, extent: Extent, bad: Extent) -> Extent {
        let offset = self.layout.data_offset(leaf);
        let end = bad.lba.saturating_add(bad.sectors).saturating_sub(offset).min(extent.end());
        let start = bad.lba.saturating_sub(offset).max(extent.lba);
        if start < end {
            Extent::new(start, end - start)
        } else {
            extent
        }
    }

    fn replan(&mut self, id: u32) {
        let blind = self.views.is_weak(Weakness::ReplansWithoutLocks);
        if !self.windows[id as usize].locked_all && self.reads(id) && !blind {
            // What has failed decides which locks a read needs.
            self.requeue(id);
        } else {
            self.windows[id as usize].phase = WindowPhase::Waiting;
            self.runnable.push_back(id);
        }
    }

    fn complete_node(&mut self, id: u32, node: u32) {
        let window = &mut self.windows[id as usize];
        let mut ready_queue = ReadyQueue { views: &mut self.views, ready: &mut self.ready, layout: &self.layout };
        window.remaining -= 1;
        let done = &window.plan.nodes[node as usize];
        let mut edge = done.first_edge;
        if window.reads_left > 0 && matches!(done.body, Body::Device { kind: OpKind::Read, .. }) {
            window.reads_left -= 1;
            if window.reads_left == 0 {
                for i in 0..window.held.len() {
                    ready_queue.make_ready(id, window, window.held[i]);
                }
                window.held.clear();
            }
        }
        while edge != NONE {
            let e = window.plan.edges[edge as usize];
            edge = e.next;
            let waiting = &mut window.plan.nodes[e.to as usize];
            waiting.pending -= 1;
            if waiting.pending == 0 {
                ready_queue.make_ready(id, window, e.to);
            }
        }
        if window.remaining == 0 {
            self.retire(id, None);
        }
    }

    /// The window is over: frees its locks and, if it was the last, reports the request.
    fn retire(&mut self, id: u32, error: Option<RequestError>) {
        let owner = self.windows[id as usize].owner;
        if error.is_none() && !matches!(owner, Owner::Client(_)) && self.goes_over_again(id) {
            return;
        }
        if error.is_none() || !self.views.is_weak(Weakness::LocksKeptAfterError) {
            self.unlock(id);
        }
        if error.is_none() && !self.windows[id as usize].bad.is_empty() && matches!(owner, Owner::Client(_)) {
            self.repair(id);
        }
        let window = &mut self.windows[id as usize];
        window.phase = WindowPhase::Idle;
        self.idle_windows.push(id);
        let request = match owner {
            Owner::Client(request) => request,
            Owner::Rebuild(work) => {
                let extent = window.extent;
                return self.end_unit(work, extent, error.is_some());
            }
            Owner::Repair(_) => return self.end_repair(),
        };
        let r = &mut self.requests[request as usize];
        let node = r.node;
        // Writes that were dropped because a member went are carried by its peers only while the level bears the loss, and
        // only so long is anything durable.
        let lost = r.request.kind != RequestKind::Read && self.views.is_lost(node);
        let error = error.or(lost.then_some(RequestError::BeyondTolerance { node, extent: None }));
        if error.is_some() && r.error.is_none() && !self.views.is_weak(Weakness::ErrorsAreSwallowed) {
            r.error = error;
        }
        r.windows -= 1;
        if r.error.is_none() && r.next_lba < r.end_lba {
            self.start_windows(request);
        } else if r.windows == 0 {
            let (tag, result) = (r.request.tag, r.error.map_or(Ok(()), Err));
            if !self.gates.is_empty() {
                self.leave_gate(request);
            }
            self.requests.remove(request as usize);
            self.events.push_back(Event::RequestDone { tag, result });
        }
    }
}

/// Where ready nodes go: a window is borrowed beside it.
struct ReadyQueue<'a> {
    views: &'a mut MemberViews,
    ready: &'a mut VecDeque<(u32, u32)>,
    layout: &'a Layout,
}

impl ReadyQueue<'_> {
    /// Queues a node all of whose predecessors are done, or holds a write until the last read is.
    #[inline]
    fn make_ready(&mut self, id: u32, window: &mut Window, node: u32) {
        if let Body::Device { leaf, kind, extent, .. } = &window.plan.nodes[node as usize].body {
            let waits = window.reads_left > 0 && !self.views.is_weak(Weakness::BarrierNotKept);
            if *kind == OpKind::Write && waits {
                window.held.push(node);
                return;
            }
            let view = &mut self.views.leaves[*leaf as usize];
            view.in_flight += 1;
            if *kind != OpKind::Flush {
                view.end_lba = extent.end() + self.layout.leaves[*leaf as usize].data_offset;
            }
        }
        window.outstanding += 1;
        self.ready.push_back((id, node));
    }
}
