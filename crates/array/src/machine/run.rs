//! How windows run: locks, plan, operations, and what happens when something fails on the way.
//!
//! - Before the first write of a window is issued, a failure lets what is in flight drain and plans the window anew with
//!   what is known now. A read that turns degraded gives up its place and queues for the locks it needs.
//! - From the first write on, no read is left in the window (the barrier), so the remaining writes finish; those to a
//!   member that has gone are dropped, since the redundancy written beside them carries their content.
//! - A media error on a read costs that extent of that member for this window only; one on a write costs the member, as
//!   its content can no longer be trusted.

use super::locks::{collect, Wanted};
use super::{Array, Event, Part, Phase, NONE};
use crate::plan::{BadExtent, Body, Plan, Planner};
use crate::policy::MemberState;
use raidlab_types::{Extent, LeafId, OpError, OpKind, RequestError, RequestKind};

impl Array {
    /// Starts as many windows of the request as may be in flight together.
    pub(super) fn start_windows(&mut self, id: u32) {
        loop {
            let r = &mut self.requests[id as usize];
            let end = r.request.extent.end();
            let flush = r.request.kind == RequestKind::Flush;
            if (flush && r.parts > 0) || r.parts >= self.policy.windows_in_flight.max(1) || r.error.is_some() {
                return;
            }
            let extent = if flush {
                Extent::new(0, 0)
            } else {
                if r.next_lba >= end {
                    return;
                }
                let stop = (r.next_lba / self.window_sectors + 1) * self.window_sectors;
                let extent = Extent::new(r.next_lba, stop.min(end) - r.next_lba);
                r.next_lba = extent.end();
                extent
            };
            r.parts += 1;
            let part = self.new_part(id, extent);
            self.lock(part);
            if flush {
                return;
            }
        }
    }

    fn new_part(&mut self, request: u32, extent: Extent) -> u32 {
        let id = match self.free_part {
            NONE => {
                self.parts.push(Part {
                    phase: Phase::Idle,
                    request,
                    extent,
                    plan: Plan::default(),
                    locks: NONE,
                    blockers: 0,
                    locked: false,
                    outstanding: 0,
                    remaining: 0,
                    reads_left: 0,
                    held: Vec::new(),
                    bad: Vec::new(),
                    next_free: NONE,
                });
                self.parts.len() as u32 - 1
            }
            id => {
                self.free_part = self.parts[id as usize].next_free;
                id
            }
        };
        let part = &mut self.parts[id as usize];
        (part.request, part.extent, part.locks, part.blockers) = (request, extent, NONE, 0);
        (part.locked, part.outstanding) = (false, 0);
        part.bad.clear();
        id
    }

    /// Queues for the locks the window needs now, and marks it runnable if none is in the way.
    fn lock(&mut self, id: u32) {
        let part = &self.parts[id as usize];
        let request = &self.requests[part.request as usize].request;
        let node = self.layout.volumes()[request.volume as usize].node;
        self.lock_list.clear();
        let mut locked = false;
        match request.kind {
            RequestKind::Write => {
                locked = true;
                collect(&self.layout, node, part.extent, Wanted::Exclusive, false, &mut self.lock_list);
            }
            RequestKind::Read if self.views.is_degraded(node) || !part.bad.is_empty() => {
                locked = true;
                if !part.bad.is_empty() {
                    self.degraded_nodes.fill(true);
                }
                let wanted = Wanted::SharedWhere(&self.degraded_nodes);
                collect(&self.layout, node, part.extent, wanted, false, &mut self.lock_list);
                if !part.bad.is_empty() {
                    for n in 0..self.degraded_nodes.len() {
                        self.degraded_nodes[n] = self.views.is_degraded(n as u32);
                    }
                }
            }
            _ => {}
        }
        let (locks, blockers) =
            if self.lock_list.is_empty() { (NONE, 0) } else { self.locks.acquire(id, &self.lock_list) };
        let part = &mut self.parts[id as usize];
        (part.locks, part.blockers, part.locked, part.phase) = (locks, blockers, locked, Phase::Waiting);
        if blockers == 0 {
            self.runnable.push_back(id);
        }
    }

    fn unlock(&mut self, id: u32) {
        let chain = std::mem::replace(&mut self.parts[id as usize].locks, NONE);
        let (parts, runnable) = (&mut self.parts, &mut self.runnable);
        self.locks.release(chain, |owner| {
            let part = &mut parts[owner as usize];
            part.blockers -= 1;
            if part.blockers == 0 {
                runnable.push_back(owner);
            }
        });
    }

    /// Plans and starts every window whose locks are free.
    pub(super) fn run_unblocked(&mut self) {
        while let Some(id) = self.runnable.pop_front() {
            let part = &self.parts[id as usize];
            let request = &self.requests[part.request as usize].request;
            let node = self.layout.volumes()[request.volume as usize].node;
            let read = request.kind == RequestKind::Read;
            if read && !part.locked && self.views.is_degraded(node) {
                // It waited as an optimal read and has become a degraded one: queue again, now for locks.
                self.unlock(id);
                self.lock(id);
                continue;
            }
            match self.plan_part(id) {
                Ok(()) => self.start_part(id),
                Err(error) => self.retire(id, Some(error)),
            }
        }
    }

    fn plan_part(&mut self, id: u32) -> Result<(), RequestError> {
        let part = &mut self.parts[id as usize];
        let request = &self.requests[part.request as usize].request;
        let node = self.layout.volumes()[request.volume as usize].node;
        let mut planner = Planner {
            layout: &self.layout,
            views: &self.views,
            policy: &self.policy,
            bad: &part.bad,
            scratch: &mut self.scratch,
            plan: &mut part.plan,
        };
        let offset = (part.extent.lba.wrapping_sub(request.extent.lba)) as u32;
        match request.kind {
            RequestKind::Read => planner.request(node, false, part.extent, offset),
            RequestKind::Write => planner.request(node, true, part.extent, offset),
            RequestKind::Flush => planner.flush(node),
        }
    }

    fn start_part(&mut self, id: u32) {
        let part = &mut self.parts[id as usize];
        part.phase = Phase::Running;
        part.remaining = part.plan.len() as u32;
        part.reads_left = part.plan.reads();
        part.outstanding = 0;
        part.held.clear();
        if part.remaining == 0 {
            self.retire(id, None);
            return;
        }
        for node in 0..self.parts[id as usize].plan.len() as u32 {
            if self.parts[id as usize].plan.nodes[node as usize].pending == 0 {
                self.make_ready(id, node);
            }
        }
    }

    /// Queues a node all of whose predecessors are done, or holds a write until the last read is.
    fn make_ready(&mut self, id: u32, node: u32) {
        let part = &mut self.parts[id as usize];
        if let Body::Device { leaf, kind, extent, .. } = &part.plan.nodes[node as usize].body {
            if *kind == OpKind::Write && part.reads_left > 0 {
                part.held.push(node);
                return;
            }
            let view = &mut self.views.leaves[*leaf as usize];
            view.in_flight += 1;
            view.end_lba = extent.end() + self.layout.leaves[*leaf as usize].data_offset;
        }
        part.outstanding += 1;
        self.ready.push_back((id, node));
    }

    /// The operation for a ready node; `None` if its member has gone meanwhile (its consequences are then drawn).
    pub(super) fn hand_out(&mut self, id: u32, node: u32) -> Option<super::ArrayOp> {
        if let Body::Device { leaf, .. } = self.parts[id as usize].plan.nodes[node as usize].body {
            if !self.views.leaf(leaf).usable() {
                self.op_done(id, node, Err(OpError::MemberGone));
                return None;
            }
        }
        Some(self.operation(id, node))
    }

    pub(super) fn op_done(&mut self, id: u32, node: u32, result: Result<(), OpError>) {
        let part = &mut self.parts[id as usize];
        debug_assert!(matches!(part.phase, Phase::Running | Phase::Draining), "completion of an idle window");
        part.outstanding -= 1;
        if let Body::Device { leaf, kind, extent, .. } = part.plan.nodes[node as usize].body {
            self.views.leaves[leaf as usize].in_flight -= 1;
            if let Err(error) = result {
                self.note_failure(id, leaf, kind, extent, error);
            }
        }
        if self.parts[id as usize].phase == Phase::Draining {
            if self.parts[id as usize].outstanding == 0 {
                self.replan(id);
            }
            return;
        }
        self.complete_node(id, node);
    }

    fn note_failure(&mut self, id: u32, leaf: LeafId, kind: OpKind, extent: Extent, error: OpError) {
        let media_read = matches!(error, OpError::Media(_)) && kind == OpKind::Read;
        if media_read {
            // Which sectors of the operation are bad need not be known exactly: the whole extent is rebuilt.
            self.parts[id as usize].bad.push(BadExtent { leaf, extent });
        } else if self.views.leaf(leaf).usable() {
            self.set_member_state(leaf, MemberState::Failed);
            self.events.push_back(Event::MemberFailed { leaf });
        }
        if kind == OpKind::Read && self.parts[id as usize].phase == Phase::Running {
            self.begin_draining(id);
        }
    }

    /// Takes back what is queued and not handed out; what is in flight drains before the window is planned anew.
    fn begin_draining(&mut self, id: u32) {
        self.parts[id as usize].phase = Phase::Draining;
        let mut taken_back = 0;
        let (parts, views) = (&self.parts, &mut self.views);
        self.ready.retain(|&(part, node)| {
            if part != id {
                return true;
            }
            taken_back += 1;
            if let Body::Device { leaf, .. } = parts[id as usize].plan.nodes[node as usize].body {
                views.leaves[leaf as usize].in_flight -= 1;
            }
            false
        });
        self.parts[id as usize].outstanding -= taken_back;
    }

    fn replan(&mut self, id: u32) {
        let part = &self.parts[id as usize];
        let read = self.requests[part.request as usize].request.kind == RequestKind::Read;
        if read && !part.locked {
            self.unlock(id);
            self.lock(id);
        } else {
            self.runnable.push_back(id);
        }
    }

    fn complete_node(&mut self, id: u32, node: u32) {
        let part = &mut self.parts[id as usize];
        part.remaining -= 1;
        let is_read = matches!(part.plan.nodes[node as usize].body, Body::Device { kind: OpKind::Read, .. });
        let mut edge = part.plan.nodes[node as usize].first_edge;
        if is_read {
            part.reads_left -= 1;
            if part.reads_left == 0 {
                for i in 0..self.parts[id as usize].held.len() {
                    let held = self.parts[id as usize].held[i];
                    self.make_ready(id, held);
                }
                self.parts[id as usize].held.clear();
            }
        }
        while edge != NONE {
            let plan = &mut self.parts[id as usize].plan;
            let e = plan.edges[edge as usize];
            edge = e.next;
            plan.nodes[e.to as usize].pending -= 1;
            if plan.nodes[e.to as usize].pending == 0 {
                self.make_ready(id, e.to);
            }
        }
        if self.parts[id as usize].remaining == 0 {
            self.retire(id, None);
        }
    }

    /// The window is over: frees its locks and, if it was the last, reports the request.
    fn retire(&mut self, id: u32, error: Option<RequestError>) {
        self.unlock(id);
        let part = &mut self.parts[id as usize];
        let request = part.request;
        (part.phase, part.next_free) = (Phase::Idle, self.free_part);
        self.free_part = id;
        let r = &mut self.requests[request as usize];
        let node = self.layout.volumes()[r.request.volume as usize].node;
        // Writes that were dropped because a member went are carried by its peers only while the level bears the loss.
        let lost = r.request.kind == RequestKind::Write && self.views.is_lost(node);
        let error = error.or(lost.then_some(RequestError::BeyondTolerance { node, extent: None }));
        r.error = r.error.or(error);
        r.parts -= 1;
        let all_started =
            r.error.is_some() || r.request.kind == RequestKind::Flush || r.next_lba >= r.request.extent.end();
        if !all_started {
            self.start_windows(request);
        } else if r.parts == 0 {
            let (tag, result) = (r.request.tag, r.error.map_or(Ok(()), Err));
            r.next_free = self.free_request;
            self.free_request = request;
            self.events.push_back(Event::RequestDone { tag, result });
        }
    }
}
