//! Building a plan: the walk down the tree that every level shares.
//!
//! A request comes down as *transfers*: runs of a node's sectors, each with the memory it moves to or from. Every level
//! turns its transfers into transfers of its children (`level/`, one file a level); at a member, neighbouring transfers
//! become one operation.
//!
//! Invariant: working memory is lent for as long as a closure runs ([`Planner::with_transfers`]), so that a level has its
//! own, however levels nest, and gives it back whatever goes wrong.

use super::{place, Body, ComputeKind, Input, MemberViews, Piece, Plan, ReadOrigin, Segment, Space, NONE};
use crate::layout::{Layout, Node, NodeId};
use crate::level::{Level, Member, Personality, StripeWork};
use crate::policy::{ChunkAccesses, Policy, WriteAfter};
use crate::weakness::Weakness;
use raidlab_types::number::usize_from;
use raidlab_types::{Extent, LeafId, OpKind, RequestError};
use std::slice;

/// A run of a node's sectors and the memory it moves to or from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    /// Position of the child it goes to, once a level has said so.
    pub child: u32,
    pub lba: u64,
    pub sectors: u32,
    pub space: Space,
    pub offset: u32,
    /// For a read, the node of the plan that waits for these bytes; for a write, the one that makes them; or `NONE`.
    pub link: u32,
}

impl Transfer {
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.lba + u64::from(self.sectors)
    }

    #[inline]
    pub(crate) fn extent(&self) -> Extent {
        Extent::new(self.lba, u64::from(self.sectors))
    }

    #[inline]
    fn piece(&self) -> Piece {
        Piece { space: self.space, offset: self.offset, sectors: self.sectors }
    }

    /// The part of it that begins `skip` sectors in and is `part` of child `child`.
    #[inline]
    pub(crate) fn part(&self, skip: u64, child: u32, part: Extent) -> Transfer {
        let offset = if self.space == Space::Discard { 0 } else { self.offset + narrow(skip) };
        Transfer { child, lba: part.lba, sectors: narrow(part.sectors), offset, ..*self }
    }
}

/// A number of sectors within one request, which is shorter than 2^32.
#[inline]
pub(crate) fn narrow(sectors: u64) -> u32 {
    u32::try_from(sectors).expect("a request is shorter than 2^32 sectors")
}

/// Sectors of a leaf that were found unreadable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadExtent {
    /// Which member.
    pub leaf: LeafId,
    /// Sectors of its data area.
    pub extent: Extent,
}

/// Sectors of a child that a scrub has found to hold what they should not, or a rebuild could not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrongExtent {
    pub child: NodeId,
    pub extent: Extent,
}

/// Working memory of the planner, kept between plans so that planning allocates nothing.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Lists that are not lent.
    transfers: Vec<Vec<Transfer>>,
    /// Work areas of parity nodes that are not lent.
    stripes: Vec<StripeWork>,
    /// The reads of the plan, for pairing writes with them.
    read_nodes: Vec<u32>,
    /// How often each node has chosen in turn; outlives the plan.
    turns: Vec<u32>,
    /// The node that the plan is of.
    pub(crate) root: NodeId,
    /// It is a unit of a rebuild.
    pub(crate) restores: bool,
    /// Of a unit: how many sectors are to be had from the same siblings, or to be compared at once. What they give is written at once, for what lies
    /// below may not be written in parts.
    pub(crate) restored_run: u64,
    /// Sectors of children that are read and not believed: a scrub has found them wrong.
    pub(crate) wrong: Vec<WrongExtent>,
    /// The unit is a rebuild's that goes on without what cannot be had: that is noted here.
    pub(crate) salvages: bool,
    pub(crate) lost: Vec<WrongExtent>,
    /// The unit is a scrub's: what is restored is all that was verified with it, wherever it lies.
    pub(crate) scrubs: bool,
    /// What each copy of a mirror was last read up to, by node; and operations of this plan by leaf, which no queue knows
    /// yet. For [`MirrorRead::Md`](crate::MirrorRead::Md) alone, and empty for others.
    read_ends: Vec<u64>,
    planned: Vec<u32>,
    /// Longest operation, so that a media error names little; 0 for any length.
    pub(crate) run_sectors: u32,
}

/// Builds one plan.
pub struct Planner<'a> {
    /// The compiled tree.
    pub layout: &'a Layout,
    /// The members.
    pub views: &'a MemberViews,
    /// The choices.
    pub policy: &'a Policy,
    /// Sectors found unreadable while this request ran.
    pub bad: &'a [BadExtent],
    /// Working memory.
    pub scratch: &'a mut Scratch,
    /// Where the plan goes.
    pub plan: &'a mut Plan,
}

pub(crate) type PlanResult = Result<(), RequestError>;

impl Planner<'_> {
    /// Plans a read or write of `extent` of `node`, whose bytes lie `user_offset` sectors into the user's buffer.
    ///
    /// # Errors
    /// [`RequestError::BeyondTolerance`] when more is lost than the levels bear; the plan is then to be dropped.
    pub fn request(&mut self, node: NodeId, write: bool, extent: Extent, user_offset: u32) -> Result<(), RequestError> {
        if self.views.is_lost(node) {
            self.plan.clear();
            return Err(RequestError::BeyondTolerance { node, extent: None });
        }
        let run = match self.scratch.run_sectors {
            0 => extent.sectors,
            sectors => u64::from(sectors),
        };
        match self.request_in_runs(node, write, extent, user_offset, run) {
            // Bad sectors of two members in one stripe, but at different places in the chunk: each alone is borne.
            // The same of members that are rebuilt up to different places.
            Err(_) if (!self.bad.is_empty() || self.views.is_partial(node)) && extent.sectors > 1 => {
                self.request_in_runs(node, write, extent, user_offset, 1)
            }
            result => result,
        }
    }

    /// Plans a unit of a rebuild: `extent` of every child of `node` that is written there and cannot be read yet, from its
    /// siblings.
    ///
    /// # Errors
    /// [`RequestError::BeyondTolerance`] when too little of the siblings can be read; the plan is then to be dropped.
    pub fn restore(&mut self, node: NodeId, extent: Extent) -> Result<(), RequestError> {
        let run = match self.scratch.run_sectors {
            _ if self.scratch.salvages => 1,
            0 => extent.sectors,
            sectors => u64::from(sectors),
        };
        match self.restore_in_runs(node, extent, run) {
            // As for requests: each place may be borne by itself.
            Err(_) if run > 1 && !self.views.is_weak(Weakness::UnitsAreAllOrNothing) => {
                self.restore_in_runs(node, extent, 1)
            }
            result => result,
        }
    }

    /// Plans a unit of a scrub: reads all of `extent` of every child of `node` that can be read, and works out what it differs
    /// by from what it should be. What has no redundancy left is passed over.
    ///
    /// # Errors
    /// [`RequestError::BeyondTolerance`] when something below cannot be read.
    pub fn verify(&mut self, node: NodeId, extent: Extent) -> Result<(), RequestError> {
        self.begin(node);
        self.scratch.restored_run = match self.scratch.run_sectors {
            0 => extent.sectors,
            sectors => u64::from(sectors),
        };
        self.layout.node(node).verify(self, extent)?;
        if self.plan.reads == 0 {
            self.plan.clear();
        }
        Ok(())
    }

    /// What `extent` of a child lacks cannot be had: whether its rebuild goes on without.
    pub(crate) fn goes_without(&mut self, child: NodeId, extent: Extent) -> bool {
        if self.scratch.salvages {
            self.scratch.lost.push(WrongExtent { child, extent });
        }
        self.scratch.salvages
    }

    fn restore_in_runs(&mut self, node: NodeId, extent: Extent, run: u64) -> PlanResult {
        self.scratch.lost.clear();
        self.begin(node);
        (self.scratch.restores, self.scratch.restored_run) = (true, run);
        self.layout.node(node).restore(self, extent)
    }

    /// An empty plan of `node`.
    fn begin(&mut self, node: NodeId) {
        self.plan.clear();
        self.scratch.read_nodes.clear();
        self.scratch.planned.fill(0);
        (self.scratch.root, self.scratch.restores) = (node, false);
    }

    /// What completes the last stripe of a child of which the sectors from `end` on hold nothing: whatever lies in memory,
    /// so that the stripe is written whole.
    pub(crate) fn completion(&mut self, node: &Node, position: u32, end: u64) -> Option<Transfer> {
        let child = self.layout.node(node.child(position));
        let stripes_end = end.next_multiple_of(child.alignment).min(child.capacity);
        let sectors = narrow(stripes_end.checked_sub(end).filter(|&sectors| sectors > 0)?);
        let offset = self.allocate(u64::from(sectors));
        Some(Transfer { child: position, lba: end, sectors, space: Space::Scratch, offset, link: NONE })
    }

    /// Plans the request as transfers of `run` sectors each.
    fn request_in_runs(&mut self, node: NodeId, write: bool, extent: Extent, user_offset: u32, run: u64) -> PlanResult {
        self.begin(node);
        let whole = Transfer {
            child: 0,
            lba: extent.lba,
            sectors: narrow(extent.sectors),
            space: Space::User,
            offset: user_offset,
            link: NONE,
        };
        if run >= extent.sectors {
            return self.plan_node(node, &[whole], write);
        }
        self.with_transfers(|planner, transfers| {
            let starts = (0..extent.sectors).step_by(usize_from(run));
            transfers.extend(
                starts.map(|done| whole.part(done, 0, Extent::new(extent.lba + done, run.min(extent.sectors - done)))),
            );
            planner.plan_node(node, transfers, write)
        })
    }

    /// Plans a flush of every member below `node` that is written.
    ///
    /// # Errors
    /// [`RequestError::BeyondTolerance`] when more is lost than the levels bear.
    pub fn flush(&mut self, node: NodeId) -> Result<(), RequestError> {
        self.plan.clear();
        if self.views.is_lost(node) {
            return Err(RequestError::BeyondTolerance { node, extent: None });
        }
        self.flush_below(node);
        Ok(())
    }

    fn flush_below(&mut self, id: NodeId) {
        let node = self.layout.node(id);
        if let Level::Member(Member { leaf }) = node.level {
            if self.views.leaf(leaf).writes() {
                let (kind, extent) = (OpKind::Flush, Extent::new(0, 0));
                self.plan.add_node(Body::Device { leaf, kind, extent, pieces: 0..0, pair: NONE });
            }
        }
        node.children.iter().for_each(|&child| self.flush_below(child));
    }

    /// Plans reads or writes of `transfers` of a node, which are in order of address.
    #[inline]
    pub(crate) fn plan_node(&mut self, id: NodeId, transfers: &[Transfer], write: bool) -> PlanResult {
        let node = self.layout.node(id);
        if !write {
            return node.read(self, transfers);
        }
        // A node that has lost more than it bears is not written: its peers carry its content.
        if self.views.is_lost(id) {
            return Ok(());
        }
        node.write(self, transfers)
    }

    /// Cuts transfers into the children's parts, and plans these.
    #[inline]
    pub(crate) fn cut_and_hand_on(
        &mut self,
        level: &impl Personality,
        node: &Node,
        transfers: &[Transfer],
        write: bool,
    ) -> PlanResult {
        // The common case of a small request.
        if let [transfer] = transfers {
            if let Some((child, part)) = level.parts(node, transfer.extent()).next() {
                if part.sectors == u64::from(transfer.sectors) {
                    return self.plan_node(node.child(child), &[transfer.part(0, child, part)], write);
                }
            }
        }
        self.cut_many(level, node, transfers, write)
    }

    // Kept out of the short path, which would else save and restore all that this needs.
    #[inline(never)]
    fn cut_many(&mut self, level: &impl Personality, node: &Node, transfers: &[Transfer], write: bool) -> PlanResult {
        self.with_transfers(|planner, parts| {
            cut(level, node, transfers, parts);
            planner.hand_on_chunks(node, parts, write)
        })
    }

    /// Hands parts of a chunk to the children they name: all of a child's together, or each by itself where the policy
    /// has chunks apart.
    pub(crate) fn hand_on_chunks(&mut self, node: &Node, parts: &mut [Transfer], write: bool) -> PlanResult {
        // Parity below ties chunks together, which are then planned together.
        if self.policy.chunk_accesses == ChunkAccesses::Apart && !node.stripe_locks_below {
            let each = |part: &Transfer| self.plan_node(node.child(part.child), slice::from_ref(part), write);
            return parts.iter().try_for_each(each);
        }
        self.hand_on(node, parts, write)
    }

    /// Hands transfers to the children they name, each child's in order of address.
    pub(crate) fn hand_on(&mut self, node: &Node, transfers: &mut [Transfer], write: bool) -> PlanResult {
        let key = |t: &Transfer| (t.child, t.lba);
        if !transfers.is_sorted_by_key(key) {
            transfers.sort_unstable_by_key(key);
        }
        for share in transfers.chunk_by(|a, b| a.child == b.child) {
            self.plan_node(node.child(share[0].child), share, write)?;
        }
        Ok(())
    }

    /// Lends an empty list of transfers for as long as `work` runs.
    #[inline]
    pub(crate) fn with_transfers(
        &mut self,
        work: impl FnOnce(&mut Self, &mut Vec<Transfer>) -> PlanResult,
    ) -> PlanResult {
        let mut transfers = self.scratch.transfers.pop().unwrap_or_default();
        let result = work(self, &mut transfers);
        transfers.clear();
        self.scratch.transfers.push(transfers);
        result
    }

    /// Lends an empty work area of a parity node for as long as `work` runs.
    #[inline]
    pub(crate) fn with_stripe_work(
        &mut self,
        work: impl FnOnce(&mut Self, &mut StripeWork) -> PlanResult,
    ) -> PlanResult {
        let mut area = self.scratch.stripes.pop().unwrap_or_default();
        let result = work(self, &mut area);
        area.clear();
        self.scratch.stripes.push(area);
        result
    }

    /// Makes one operation of each run of neighbouring transfers.
    #[inline]
    pub(crate) fn operations(&mut self, leaf: LeafId, kind: OpKind, transfers: &[Transfer]) {
        let mut rest = transfers;
        while !rest.is_empty() {
            let joined = match self.scratch.run_sectors {
                0 => rest.windows(2).take_while(|pair| pair[0].end() == pair[1].lba).count() + 1,
                _ => 1,
            };
            let (run, behind) = rest.split_at(joined);
            let extent = Extent::new(run[0].lba, run[joined - 1].end() - run[0].lba);
            let id = self.operation_of(leaf, kind, extent, run);
            self.link_operation(id, kind, run);
            rest = behind;
        }
    }

    /// Adds the operation on `extent` that moves `run`, paired with the read of the very same sectors that it follows.
    #[inline]
    fn operation_of(&mut self, leaf: LeafId, kind: OpKind, extent: Extent, run: &[Transfer]) -> u32 {
        let first_piece = place(self.plan.pieces.len());
        self.plan.pieces.push(run[0].piece());
        run[1..].iter().for_each(|transfer| self.plan.push_piece(transfer.piece()));
        let pieces = first_piece..place(self.plan.pieces.len());
        let pair = self.count_operation(leaf, kind, extent);
        let id = self.plan.add_node(Body::Device { leaf, kind, extent, pieces, pair });
        if pair != NONE {
            self.follow_read(pair, id);
        }
        id
    }

    /// Has a write wait for the read that it is a pair with, where it waits for no other.
    #[inline]
    pub(crate) fn follow_read(&mut self, read: u32, write: u32) {
        if self.policy.write_after == WriteAfter::OwnRead {
            self.plan.add_edge(read, write);
        }
    }

    /// Adds an operation on a leaf with a single piece of memory, and nothing more: no pairing, no edges.
    #[inline]
    pub(crate) fn leaf_operation(
        &mut self,
        leaf: LeafId,
        kind: OpKind,
        extent: Extent,
        piece: Piece,
        pair: u32,
    ) -> u32 {
        let pieces = place(self.plan.pieces.len());
        self.plan.pieces.push(piece);
        match kind {
            OpKind::Read => self.plan.reads += 1,
            _ => self.plan.writes += 1,
        }
        self.plan.add_node(Body::Device { leaf, kind, extent, pieces: pieces..pieces + 1, pair })
    }

    /// Tells a read which write it is a pair with. The write names its read when it is added; a read comes before its write,
    /// and can name it only now.
    #[inline]
    pub(crate) fn pair_read(&mut self, read: u32, write: u32) {
        if let Body::Device { pair, .. } = &mut self.plan.nodes[read as usize].body {
            *pair = write;
        }
    }

    /// Ties an operation to the computations that wait for its transfers, or make them.
    #[inline]
    fn link_operation(&mut self, id: u32, kind: OpKind, run: &[Transfer]) {
        let mut last = NONE;
        for &Transfer { link, .. } in run {
            let loose =
                self.scratch.restores && kind == OpKind::Write && self.views.is_weak(Weakness::RebuildCopiesStale);
            if link != NONE && link != last && !loose {
                let (from, to) = if kind == OpKind::Read { (id, link) } else { (link, id) };
                self.plan.add_edge(from, to);
                last = link;
            }
        }
    }

    /// Counts the operation, which will be the next node, and finds the read that a write of the very same sectors follows.
    #[inline]
    fn count_operation(&mut self, leaf: LeafId, kind: OpKind, extent: Extent) -> u32 {
        let id = place(self.plan.nodes.len());
        if kind == OpKind::Read {
            self.plan.reads += 1;
            self.scratch.read_nodes.push(id);
            return NONE;
        }
        self.plan.writes += 1;
        for &read in &self.scratch.read_nodes {
            if let Body::Device { leaf: l, extent: e, pair, .. } = &mut self.plan.nodes[read as usize].body {
                if *l == leaf && *e == extent && *pair == NONE {
                    *pair = id;
                    return read;
                }
            }
        }
        NONE
    }

    /// Whether `extent` of a node can be read or rebuilt from what is there.
    pub(crate) fn is_readable(&self, id: NodeId, extent: Extent) -> bool {
        if self.views.is_lost(id) {
            return false;
        }
        let anywhere = self.bad.is_empty() && self.scratch.wrong.is_empty() && !self.views.is_partial(id);
        anywhere || self.is_readable_there(id, extent)
    }

    /// The same where something cannot be read, or a scrub has found it wrong.
    fn is_readable_there(&self, id: NodeId, extent: Extent) -> bool {
        let is_wrong = |wrong: &WrongExtent| wrong.child == id && wrong.extent.overlaps(extent);
        if self.scratch.wrong.iter().any(is_wrong) {
            return false;
        }
        let anywhere = self.bad.is_empty() && !self.views.is_partial(id);
        anywhere || self.layout.node(id).is_readable(self, extent)
    }

    /// The next turn of the node's round-robin choices. A turn of its own for each node: with one for all, requests that
    /// fall on two mirrors alternately would always find the same copy of each.
    pub(crate) fn next_turn(&mut self, node: NodeId) -> u32 {
        let turns = &mut self.scratch.turns;
        if turns.is_empty() {
            turns.resize(self.layout.nodes.len(), 0);
        }
        turns[node as usize] = turns[node as usize].wrapping_add(1);
        turns[node as usize]
    }

    /// Where the last read of a copy ended that was chosen as md chooses: 0 before the first.
    pub(crate) fn read_end(&self, copy: NodeId) -> u64 {
        self.scratch.read_ends.get(copy as usize).copied().unwrap_or(0)
    }

    /// Operations pending at a leaf, those of this plan included where [`Planner::note_read`] was told of them.
    pub(crate) fn pending(&self, leaf: LeafId) -> u32 {
        self.views.leaf(leaf).in_flight + self.scratch.planned.get(leaf as usize).copied().unwrap_or(0)
    }

    /// Remembers that `copy` is read up to `end`, beginning on `leaf`.
    pub(crate) fn note_read(&mut self, copy: NodeId, end: u64, leaf: LeafId) {
        let Scratch { read_ends, planned, .. } = self.scratch;
        if read_ends.is_empty() {
            read_ends.resize(self.layout.nodes.len(), 0);
            planned.resize(self.layout.leaves(), 0);
        }
        read_ends[copy as usize] = end;
        planned[leaf as usize] += 1;
    }

    /// Forgets the reads that later writes could be paired with.
    pub(crate) fn end_pairs(&mut self) {
        self.scratch.read_nodes.clear();
    }

    /// Adds a computation without segments; [`Planner::segment`] adds those, all before the next computation.
    pub(crate) fn compute(&mut self, kind: ComputeKind) -> u32 {
        let at = place(self.plan.segments.len());
        self.plan.add_node(Body::Compute { kind, segments: at..at })
    }

    /// Adds an input of the next segment.
    #[inline]
    pub(crate) fn input(&mut self, (space, offset): (Space, u32), coefficients: [u8; 2]) {
        self.plan.inputs.push(Input { space, offset, coefficients });
    }

    /// Adds an input of the next segment of a computation that verifies: `origin`, read into scratch.
    pub(crate) fn verified_input(&mut self, offset: u32, coefficients: [u8; 2], origin: ReadOrigin) {
        self.input((Space::Scratch, offset), coefficients);
        self.plan.origins.push(origin);
    }

    /// Adds a segment to the newest computation, from the inputs added since the last segment.
    pub(crate) fn segment(&mut self, compute: u32, sectors: u64, outputs: [Option<(Space, u32)>; 2]) {
        let first = self.plan.segments.last().map_or(0, |s| s.inputs.end);
        let inputs = first..place(self.plan.inputs.len());
        self.plan.segments.push(Segment { sectors: narrow(sectors), outputs, inputs });
        if let Body::Compute { segments, .. } = &mut self.plan.nodes[compute as usize].body {
            segments.end = place(self.plan.segments.len());
            debug_assert!(segments.start <= segments.end);
        }
    }

    pub(crate) fn allocate(&mut self, sectors: u64) -> u32 {
        self.plan.allocate(narrow(sectors))
    }

    pub(crate) fn edge(&mut self, from: u32, to: u32) {
        self.plan.add_edge(from, to);
    }
}

/// Cuts transfers of a node into parts of its children.
#[inline]
pub(crate) fn cut(level: &impl Personality, node: &Node, transfers: &[Transfer], parts: &mut Vec<Transfer>) {
    for transfer in transfers {
        let mut skip = 0;
        for (child, part) in level.parts(node, transfer.extent()) {
            parts.push(transfer.part(skip, child, part));
            skip += part.sectors;
        }
    }
}
