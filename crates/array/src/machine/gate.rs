//! The gate between clients' requests and the array's own work on copies: the barrier of Linux md (`raise_barrier` and
//! `wait_barrier` of raid1.c and raid10.c in 6.12).
//!
//! Work goes in units of 64 KiB. Each shuts the gate, which keeps requests out, and begins once those within are done; none
//! shuts it while a request waits. So the units in flight and the requests that wait meanwhile take turns. RAID 1 keeps out
//! only what writes in the same 64 MiB, yet waits for what reads there too.
//!
//! What is read is gone on with by the array's thread, which after each step of the work first writes a superblock to each
//! member, and meanwhile nothing else: in drivers that move no bytes, for there is no room for superblocks in an array.
//!
//! A member is taken in while no request is within: who comes meanwhile is held, and is at the gate once the first units
//! have begun.
//!
//! Invariants: a request is within from when it is let in until it is done, or it waits, or it is held; one waits only while
//! units keep it out, so whoever opens the gate for the last of these lets it in, and one is held only while a rebuild is
//! yet to begin, which lets it come to the gate whether any unit could begin or not.

use super::memory::UnitMemory;
use super::rebuild::has_members_only;
use super::scrub::is_within;
use super::{join, split, Array, ArrayOp, Owner, OF_ARRAY};
use crate::layout::{Layout, NodeId};
use crate::level::{for_level, Level, Personality};
use crate::plan::{place, Body, MemberViews};
use raidlab_types::number::usize_from;
use raidlab_types::{Extent, Instant, LeafId, OpError, OpKind, Operation, Request, RequestKind};
use std::collections::VecDeque;

/// A unit of work.
const UNIT_BYTES: u64 = 64 << 10;

/// What RAID 1 keeps apart, and how many of these it tells apart.
const REGION_BYTES: u64 = 64 << 20;
const REGIONS: usize = 1024;

/// Units that may hold the gate shut at once, the one that waits to begin among them: of a region of RAID 1, of RAID 10.
const MOST_UNITS: [u32; 2] = [32, 512];

/// Writes of superblocks have the number of a window that there never is, and their member's for that of a node.
pub(super) const SUPERBLOCKS: u32 = 1 << 31;

/// Who is at the gate of one region.
#[derive(Debug, Clone, Copy, Default)]
struct GateRegion {
    /// Requests within, and those kept out.
    within: u32,
    waiting: u32,
    /// Units that hold it shut.
    units: u32,
}

/// What the array's own work is about to do: it has one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GateWorker {
    Free,
    /// This work is to begin a unit, not before this time where requests were waiting.
    Asks {
        work: u32,
        not_before: Instant,
    },
    /// It has shut the gate for it.
    Shut {
        work: u32,
    },
}

/// Whether a unit begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It begins, and holds the gate shut until [`ResyncGate::open`].
    Now,
    At(Instant),
    /// Once a request or a unit is done.
    Later,
}

/// What the array's other thread is at, which goes on with what the work has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    Free,
    /// It is to write the superblocks of the members once it wakes.
    IsToWrite,
    /// It writes them and does nothing else; so many are left.
    Writes(u32),
}

/// The gate of a volume.
#[derive(Debug)]
pub(super) struct ResyncGate {
    /// The volume's node.
    node: NodeId,
    /// It is a mirror.
    is_mirror: bool,
    /// Sectors of a unit, and of a region.
    unit: u64,
    region: u64,
    most_units: u32,
    regions: Box<[GateRegion]>,
    waiting: VecDeque<(u32, Extent)>,
    /// Nobody is let in while a member is taken in; who comes meanwhile is held, and does not wait for its turn yet.
    is_suspended: bool,
    held: Vec<(u32, Request)>,
    worker: GateWorker,
    thread: Thread,
    /// Of units; none of RAID 1, whose pages never lie in order: they are few, and of what others have left over.
    memory: Option<UnitMemory>,
    /// Reads of the array's own work that are done and that the thread has not taken up.
    late: VecDeque<(u32, u32, Result<(), OpError>)>,
}

impl ResyncGate {
    /// That of a volume which is a mirror, a stripe of mirrors or copies in chunks, of members; no other has one.
    fn of(layout: &Layout, id: NodeId) -> Option<ResyncGate> {
        let node = layout.node(id);
        let of_members = |id: NodeId| has_members_only(layout, id);
        let is_pair = |&child: &NodeId| matches!(layout.node(child).level, Level::Mirror(_)) && of_members(child);
        let copies = match &node.level {
            Level::Mirror(_) if of_members(id) => None,
            Level::Copies(copies) if of_members(id) => Some((copies.count(), node.children.len())),
            Level::Stripe(_) if node.children.iter().all(is_pair) => {
                let copies = layout.node(node.children[0]).children.len();
                Some((copies, copies * node.children.len()))
            }
            _ => return None,
        };
        let is_mirror = copies.is_none();
        let sectors = |bytes: u64| (bytes / u64::from(layout.sector_bytes())).max(1);
        let chunk = for_level!(node, level => level.chunk()).unwrap_or(u64::MAX);
        let (region, regions) = if is_mirror { (sectors(REGION_BYTES), REGIONS) } else { (u64::MAX, 1) };
        Some(ResyncGate {
            node: id,
            is_mirror,
            unit: sectors(UNIT_BYTES).min(chunk),
            region,
            most_units: MOST_UNITS[usize::from(!is_mirror)],
            regions: vec![GateRegion::default(); regions].into(),
            waiting: VecDeque::new(),
            is_suspended: false,
            held: Vec::new(),
            worker: GateWorker::Free,
            thread: Thread::Free,
            memory: copies.map(|(copies, members)| UnitMemory::new(copies, members)),
            late: VecDeque::new(),
        })
    }

    /// The volume's node.
    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    /// Sectors of a unit.
    pub(super) fn unit(&self) -> u64 {
        self.unit
    }

    fn region_of(&self, lba: u64) -> usize {
        usize_from(lba / self.region) % self.regions.len()
    }

    fn regions_of(&self, extent: Extent) -> impl Iterator<Item = usize> {
        let (first, last, count) = (extent.lba / self.region, (extent.end() - 1) / self.region, self.regions.len());
        (first..=last).map(move |region| usize_from(region) % count)
    }

    /// Whether a request may go on; else it waits.
    fn lets_in(&mut self, id: u32, request: &Request) -> bool {
        if self.is_suspended {
            self.held.push((id, *request));
            return false;
        }
        let passes = self.is_mirror && request.kind == RequestKind::Read;
        let is_kept_out = !passes && self.regions_of(request.extent).any(|region| self.regions[region].units > 0);
        for region in self.regions_of(request.extent) {
            let region = &mut self.regions[region];
            let count = if is_kept_out { &mut region.waiting } else { &mut region.within };
            *count += 1;
        }
        if is_kept_out {
            self.waiting.push_back((id, request.extent));
        }
        !is_kept_out
    }

    /// A request that was let in is done.
    fn leave(&mut self, extent: Extent) {
        for region in self.regions_of(extent) {
            self.regions[region].within -= 1;
        }
    }

    /// Lets nobody in any more; whether somebody is still within or waits.
    pub(super) fn suspend(&mut self) -> bool {
        self.is_suspended = true;
        !self.waiting.is_empty() || self.regions.iter().any(|region| region.within > 0)
    }

    /// Who has been held comes to the gate.
    pub(super) fn resume(&mut self, let_in: &mut VecDeque<u32>) {
        self.is_suspended = false;
        for place in 0..self.held.len() {
            let (id, request) = self.held[place];
            if self.lets_in(id, &request) {
                let_in.push_back(id);
            }
        }
        self.held.clear();
    }

    /// Whether a unit has shut the gate, and begins once nobody is within.
    pub(super) fn is_shut(&self) -> bool {
        matches!(self.worker, GateWorker::Shut { .. })
    }

    /// Whether the worker is free for a further unit; `false` while it is about to begin one.
    pub(super) fn is_free(&self) -> bool {
        self.worker == GateWorker::Free
    }

    /// Whether it is about to begin a unit of this work.
    pub(super) fn is_asked_by(&self, id: u32) -> bool {
        matches!(self.worker, GateWorker::Asks { work, .. } | GateWorker::Shut { work } if work == id)
    }

    /// Work is to begin a unit there; where requests wait already, it sleeps until `later` first.
    pub(super) fn ask(&mut self, work: u32, lba: u64, (now, later): (Instant, Instant)) {
        let waits = self.regions[self.region_of(lba)].waiting > 0;
        self.worker = GateWorker::Asks { work, not_before: if waits { later } else { now } };
    }

    /// Whether the unit that was asked for begins.
    pub(super) fn turn(&mut self, now: Instant, lba: u64) -> Turn {
        let region = self.region_of(lba);
        let region = &mut self.regions[region];
        match self.worker {
            GateWorker::Asks { not_before, .. } if now < not_before => return Turn::At(not_before),
            GateWorker::Asks { .. } if region.waiting > 0 => return Turn::Later,
            GateWorker::Asks { work, .. } => {
                region.units += 1;
                self.worker = GateWorker::Shut { work };
            }
            GateWorker::Shut { .. } | GateWorker::Free => {}
        }
        if region.within > 0 || region.units >= self.most_units {
            return Turn::Later;
        }
        self.worker = GateWorker::Free;
        Turn::Now
    }

    /// Work will not begin the unit it has asked for.
    pub(super) fn forget(&mut self, id: u32, lba: u64, let_in: &mut VecDeque<u32>) {
        match std::mem::replace(&mut self.worker, GateWorker::Free) {
            GateWorker::Shut { work } if work == id => self.open(lba, let_in),
            GateWorker::Asks { work, .. } if work == id => {}
            another => self.worker = another,
        }
    }

    /// A unit is done; who is kept out no more is let in.
    pub(super) fn open(&mut self, lba: u64, let_in: &mut VecDeque<u32>) {
        let region = self.region_of(lba);
        self.regions[region].units -= 1;
        if self.regions[region].units > 0 {
            return;
        }
        for _ in 0..self.waiting.len() {
            let Some((id, extent)) = self.waiting.pop_front() else { return };
            if self.regions_of(extent).any(|region| self.regions[region].units > 0) {
                self.waiting.push_back((id, extent));
                continue;
            }
            for region in self.regions_of(extent) {
                let region = &mut self.regions[region];
                (region.waiting, region.within) = (region.waiting - 1, region.within + 1);
            }
            let_in.push_back(id);
        }
    }

    /// Takes memory for a unit; `shared`: it reads what it writes.
    pub(super) fn take_memory(&mut self, shared: bool) -> Option<u32> {
        self.memory.as_mut().map(|memory| memory.take(shared))
    }

    pub(super) fn give_back_memory(&mut self, unit: Option<u32>) {
        if let (Some(memory), Some(unit)) = (&mut self.memory, unit) {
            memory.give_back(unit);
        }
    }

    /// Superblocks are to be written.
    pub(super) fn is_to_write(&mut self) {
        if self.thread == Thread::Free {
            self.thread = Thread::IsToWrite;
        }
    }

    /// Whether nobody is within and nobody waits.
    pub(super) fn is_idle(&self) -> bool {
        let is_idle = |region: &GateRegion| region.within == 0 && region.waiting == 0 && region.units == 0;
        let writes = matches!(self.thread, Thread::Writes(_)) || !self.late.is_empty();
        self.waiting.is_empty()
            && self.held.is_empty()
            && self.worker == GateWorker::Free
            && !writes
            && self.regions.iter().all(is_idle)
    }
}

/// Queues the write of a superblock to each member below a node; how many there are.
fn queue_superblocks(layout: &Layout, views: &MemberViews, node: NodeId, ready: &mut VecDeque<(u32, u32)>) -> u32 {
    let members = (0..).zip(&views.leaves).filter(|(_, view)| view.writes()).map(|(leaf, _)| leaf);
    let below = members.filter(|&leaf| is_within(layout, node, layout.node_of(leaf)));
    let before = ready.len();
    ready.extend(below.map(|leaf| (SUPERBLOCKS, leaf)));
    place(ready.len() - before)
}

impl Array {
    /// Gives every volume the gate of the policy, where it can have one.
    pub(super) fn set_up_gates(&mut self) {
        let volumes = 0..if self.policy.resync_barrier { self.layout.volumes().len() } else { 0 };
        self.gates = volumes.map(|volume| ResyncGate::of(&self.layout, self.layout.volume_node(volume))).collect();
        if self.gates.iter().all(Option::is_none) {
            self.gates.clear();
        }
    }

    /// The volume whose gate the work on a node raises.
    pub(super) fn gate_above(&self, node: NodeId) -> Option<usize> {
        let is_above = |gate: &ResyncGate| is_within(&self.layout, gate.node, node);
        self.gates.iter().position(|gate| gate.as_ref().is_some_and(is_above))
    }

    /// The gate that a request is subject to.
    fn gate_of(&mut self, request: &Request) -> Option<&mut ResyncGate> {
        let has_place = request.kind != RequestKind::Flush;
        self.gates.get_mut(request.volume as usize)?.as_mut().filter(|_| has_place)
    }

    /// Whether a request waits at a gate.
    pub(super) fn is_kept_out(&mut self, id: u32) -> bool {
        let request = self.requests[id as usize].request;
        self.gate_of(&request).is_some_and(|gate| !gate.lets_in(id, &request))
    }

    /// A request that a gate has let in is done.
    pub(super) fn leave_gate(&mut self, id: u32) {
        let request = self.requests[id as usize].request;
        if let Some(gate) = self.gate_of(&request) {
            gate.leave(request.extent);
        }
    }

    /// Whether a window is of work behind a gate.
    pub(super) fn is_own(&self, window: u32) -> bool {
        let Owner::Rebuild(work) = self.windows[window as usize].owner else { return false };
        self.rebuilds[work as usize].gate.is_some()
    }

    /// Has the array write its superblocks after each step of work behind a gate, each a sector at the beginning of a member.
    /// For drivers that move no bytes. To be called before the first request.
    pub fn write_superblocks(&mut self) {
        self.writes_superblocks = true;
    }

    /// In how many pieces of memory lies what an operation moves; of clients in one.
    pub fn memory_pieces(&self, op: &Operation) -> u64 {
        if self.gates.is_empty() {
            return 1;
        }
        let (window, _) = split(op.id);
        let Some(window) = self.windows.get(window as usize) else { return 1 };
        let Owner::Rebuild(work) = window.owner else { return 1 };
        let work = &self.rebuilds[work as usize];
        let Some(gate) = work.gate.and_then(|volume| self.gates[volume].as_ref()) else { return 1 };
        let bytes = op.extent.sectors * u64::from(self.layout.sector_bytes());
        match (&gate.memory, work.memory_of(window.extent)) {
            (Some(memory), Some(unit)) => memory.pieces(unit, op.leaf as usize, bytes),
            _ => op.extent.sectors.div_ceil(u64::from(self.block_sectors)),
        }
    }

    /// Whether an operation that is done is gone on with later, once the thread is there.
    pub(super) fn is_late(&mut self, window: u32, node: u32, result: Result<(), OpError>) -> bool {
        let Owner::Rebuild(work) = self.windows[window as usize].owner else { return false };
        let body = &self.windows[window as usize].plan.nodes[node as usize].body;
        let volume = self.rebuilds[work as usize].gate;
        let Some(gate) = volume.and_then(|volume| self.gates[volume].as_mut()) else { return false };
        if gate.thread == Thread::Free || !matches!(body, Body::Device { kind: OpKind::Read, .. }) {
            return false;
        }
        gate.late.push_back((window, node, result));
        if gate.thread == Thread::IsToWrite {
            gate.thread = Thread::Writes(queue_superblocks(&self.layout, &self.views, gate.node, &mut self.ready));
        }
        true
    }

    /// Has the thread of a volume's stripe cache write superblocks before it looks at rows again.
    pub(super) fn write_superblocks_of_cache(&mut self, volume: usize) {
        let node = self.layout.volume_node(volume);
        let count = queue_superblocks(&self.layout, &self.views, node, &mut self.ready);
        if let Some(cache) = self.caches[volume].as_mut() {
            cache.wait_for_superblocks(count);
        }
    }

    /// The write of a member's superblock.
    pub(super) fn superblock_op(&mut self, leaf: LeafId) -> ArrayOp {
        let extent = Extent::new(0, 1);
        let view = &mut self.views.leaves[leaf as usize];
        (view.in_flight, view.end_lba) = (view.in_flight + 1, extent.end());
        let (id, kind) = (join(SUPERBLOCKS, leaf), OpKind::Write);
        ArrayOp::Device(Operation { id, tag: OF_ARRAY, leaf, kind, extent, force_unit_access: true, pair_with: None })
    }

    /// A member's superblock is written; after the last the thread goes on with what has been read meanwhile.
    pub(super) fn superblock_done(&mut self, leaf: LeafId, result: Result<(), OpError>) {
        self.views.leaves[leaf as usize].in_flight -= 1;
        self.traffic[leaf as usize].others += 1;
        if result.is_err() && self.views.leaf(leaf).writes() {
            self.fail_member(leaf);
        }
        if let Some(cache) = self.caches.iter_mut().flatten().find(|cache| cache.leaves().contains(&leaf)) {
            return cache.superblock_done();
        }
        let Some(volume) = self.gate_above(self.layout.node_of(leaf)) else { return };
        let Some(gate) = self.gates[volume].as_mut() else { return };
        gate.thread = match gate.thread {
            Thread::Writes(left) if left > 1 => Thread::Writes(left - 1),
            _ => Thread::Free,
        };
        while let Some((window, node, result)) = self.next_late(volume) {
            self.note_own(window, node, false);
            self.op_done(window, node, result);
        }
    }

    fn next_late(&mut self, volume: usize) -> Option<(u32, u32, Result<(), OpError>)> {
        self.gates[volume].as_mut().filter(|gate| gate.thread == Thread::Free)?.late.pop_front()
    }

    /// An operation of such work is handed out, or is back.
    #[inline]
    pub(super) fn note_own(&mut self, window: u32, node: u32, is_handed_out: bool) {
        if self.traffic.is_empty() || !self.is_own(window) {
            return;
        }
        if let Body::Device { leaf, extent, .. } = self.windows[window as usize].plan.nodes[node as usize].body {
            let own = &mut self.traffic[leaf as usize].own;
            *own = if is_handed_out { *own + extent.sectors } else { *own - extent.sectors };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Tree;

    fn gate(tree: &str, members: usize) -> Option<ResyncGate> {
        let layout = Layout::new(&Tree::parse(tree).unwrap(), &vec![1 << 20; members], 512).unwrap();
        ResyncGate::of(&layout, 0)
    }

    fn request(kind: RequestKind, lba: u64) -> Request {
        Request { tag: 0, volume: 0, kind, extent: Extent::new(lba, 8), force_unit_access: false }
    }

    #[test]
    fn copies_of_members_have_one() {
        assert_eq!(gate("raid1(3)", 3).unwrap().unit, 128);
        assert_eq!(gate("raid10(4, chunk=16KiB)", 4).unwrap().unit, 32);
        assert!(!gate("raid10(5)", 5).unwrap().is_mirror);
        for (tree, members) in [("raid0(4)", 4), ("raid5(4)", 4), ("mirror(2*stripe(2))", 4), ("stripe(2*raid5(3))", 6)]
        {
            assert!(gate(tree, members).is_none(), "{tree}");
        }
    }

    #[test]
    fn a_unit_and_the_requests_that_wait_take_turns() {
        let now = Instant::ZERO;
        let soon = Instant::from_ns(5);
        let mut gate = gate("raid10(4)", 4).unwrap();
        let mut let_in = VecDeque::new();
        assert!(gate.lets_in(1, &request(RequestKind::Read, 0)));
        gate.ask(0, 0, (now, soon));
        assert_eq!(gate.turn(now, 0), Turn::Later, "a request is within");
        assert!(!gate.lets_in(2, &request(RequestKind::Read, 1 << 17)), "and no other comes in");
        gate.leave(Extent::new(0, 8));
        assert_eq!(gate.turn(now, 0), Turn::Now);
        gate.ask(0, 128, (now, soon));
        assert_eq!(gate.turn(now, 128), Turn::At(soon));
        assert_eq!(gate.turn(soon, 128), Turn::Later, "the request that waits goes first");
        gate.open(0, &mut let_in);
        assert_eq!((let_in.pop_front(), gate.turn(soon, 128)), (Some(2), Turn::Later));
        gate.forget(0, 128, &mut let_in);
        gate.leave(Extent::new(1 << 17, 8));
        assert!(gate.is_idle() && let_in.is_empty());
    }

    #[test]
    fn who_comes_while_a_member_is_taken_in_is_held_and_comes_after_the_first_units() {
        let now = Instant::ZERO;
        let mut gate = gate("raid1(2)", 2).unwrap();
        let mut let_in = VecDeque::new();
        assert!(gate.lets_in(1, &request(RequestKind::Read, 0)));
        assert!(gate.suspend(), "a request is within");
        assert!(!gate.lets_in(2, &request(RequestKind::Read, 0)) && !gate.lets_in(3, &request(RequestKind::Write, 0)));
        gate.leave(Extent::new(0, 8));
        assert!(!gate.suspend() && !gate.is_idle(), "two are held");
        for lba in [0, 128] {
            gate.ask(0, lba, (now, Instant::from_ns(5)));
            assert_eq!(gate.turn(now, lba), Turn::Now, "nobody waits for a turn");
        }
        gate.resume(&mut let_in);
        assert_eq!(let_in, [2], "a mirror is read beside its units, and not written");
        gate.open(0, &mut let_in);
        gate.open(128, &mut let_in);
        assert_eq!(let_in, [2, 3]);
    }

    #[test]
    fn a_mirror_keeps_out_what_writes_near_by() {
        let now = Instant::ZERO;
        let mut gate = gate("raid1(2)", 2).unwrap();
        gate.ask(0, 0, (now, now));
        assert_eq!(gate.turn(now, 0), Turn::Now);
        assert!(gate.lets_in(1, &request(RequestKind::Read, 0)));
        assert!(gate.lets_in(2, &request(RequestKind::Write, 1 << 17)), "64 MiB further");
        assert!(!gate.lets_in(3, &request(RequestKind::Write, (1 << 17) - 4)), "partly there");
        gate.ask(0, 128, (now, now));
        assert_eq!(gate.turn(now, 128), Turn::Later, "what reads is waited for, and what waits goes first");
    }

    #[test]
    fn so_many_units_keep_it_shut_at_most() {
        let now = Instant::ZERO;
        for (tree, members, most) in [("raid1(2)", 2, 31), ("raid10(4)", 4, 511)] {
            let mut gate = gate(tree, members).unwrap();
            let mut begun = 0;
            loop {
                gate.ask(0, begun * 128, (now, now));
                if gate.turn(now, begun * 128) != Turn::Now {
                    break;
                }
                begun += 1;
            }
            assert_eq!(begun, most, "{tree}");
        }
    }
}
