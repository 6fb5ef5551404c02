//! Building a plan: the walk down the tree that every level shares.
//!
//! A request comes down as *segs*: runs of a node's sectors, each with the memory it moves to or from. Every level turns
//! its segs into segs of its children (`level/`, one file a level); at a leaf, neighbouring segs become one operation.
//! Segs live on one stack, a level works on a range of it and pushes its children's above.

use super::{Body, ComputeKind, Input, MemberViews, Piece, Plan, Segment, Space, NONE};
use crate::layout::{Layout, Level, NodeId};
use crate::policy::Policy;
use raidlab_types::{Extent, LeafId, OpKind, RequestError};
use std::ops::Range;

/// A run of a node's sectors and the memory it moves to or from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seg {
    /// Position of the child it belongs to, once distributed.
    pub child: u32,
    pub lba: u64,
    pub sectors: u32,
    pub space: Space,
    pub offset: u32,
    /// For a read, the node that waits for these bytes; for a write, the node that makes them; or `NONE`.
    pub link: u32,
}

impl Seg {
    #[inline]
    pub fn end(&self) -> u64 {
        self.lba + self.sectors as u64
    }

    #[inline]
    pub fn extent(&self) -> Extent {
        Extent::new(self.lba, self.sectors as u64)
    }

    #[inline]
    fn piece(&self) -> Piece {
        Piece { space: self.space, offset: self.offset, sectors: self.sectors }
    }

    /// The part of it that begins `skip` sectors in and is `sectors` long, at `lba` of child `child`.
    #[inline]
    pub fn part(&self, skip: u64, sectors: u64, child: u32, lba: u64) -> Seg {
        let offset = if self.space == Space::Discard { 0 } else { self.offset + skip as u32 };
        Seg { child, lba, sectors: sectors as u32, space: self.space, offset, link: self.link }
    }
}

/// Sectors of a leaf that were found unreadable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadExtent {
    /// Which member.
    pub leaf: LeafId,
    /// Sectors of its data area.
    pub extent: Extent,
}

/// A column's part of a stripe while that stripe is planned (see `level/parity`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnSeg {
    pub column: u32,
    pub lo: u64,
    pub hi: u64,
    pub space: Space,
    pub offset: u32,
    pub link: u32,
}

/// A column's old content that a restore has put into scratch memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub column: u32,
    pub lo: u64,
    pub offset: u32,
}

/// Working memory of the planner, kept between plans so that planning allocates nothing.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) segs: Vec<Seg>,
    /// Writes of the parity nodes being planned, until their pre-reads are in the plan.
    pub(crate) writes: Vec<Seg>,
    pub(crate) known: Vec<Known>,
    pub(crate) columns: Vec<ColumnSeg>,
    pub(crate) bands: Vec<u64>,
    pub(crate) inputs: Vec<Input>,
    read_nodes: Vec<u32>,
    turns: Vec<u32>,
    /// Longest operation, so that a media error names little; 0 for any length.
    pub(crate) run_sectors: u32,
}

impl Scratch {
    /// Empties everything but the turns: a plan that failed may have left the stacks half full.
    fn clear(&mut self) {
        self.segs.clear();
        self.writes.clear();
        self.known.clear();
        self.columns.clear();
        self.bands.clear();
        self.inputs.clear();
        self.read_nodes.clear();
    }
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

pub(crate) type Planned = Result<(), RequestError>;

impl Planner<'_> {
    /// Plans a read or write of `extent` of `node`, whose bytes lie `user_offset` sectors into the user's buffer.
    ///
    /// # Errors
    /// [`RequestError::BeyondTolerance`] when more is lost than the levels bear; the plan is then to be dropped.
    pub fn request(&mut self, node: NodeId, write: bool, extent: Extent, user_offset: u32) -> Planned {
        if self.views.is_lost(node) {
            self.plan.clear();
            return Err(RequestError::BeyondTolerance { node, extent: None });
        }
        let run = match self.scratch.run_sectors {
            0 => extent.sectors,
            sectors => sectors as u64,
        };
        match self.request_in_runs(node, write, extent, user_offset, run) {
            // Bad sectors of two members in one stripe, but at different places in the chunk: each alone is borne.
            Err(_) if !self.bad.is_empty() && extent.sectors > 1 => {
                self.request_in_runs(node, write, extent, user_offset, 1)
            }
            result => result,
        }
    }

    /// Plans the request as segs of `run` sectors each.
    fn request_in_runs(&mut self, node: NodeId, write: bool, extent: Extent, user_offset: u32, run: u64) -> Planned {
        self.plan.clear();
        let mut done = 0;
        while done < extent.sectors {
            let sectors = run.min(extent.sectors - done);
            let (lba, offset) = (extent.lba + done, user_offset + done as u32);
            let (sectors, space) = (sectors as u32, Space::User);
            self.scratch.segs.push(Seg { child: 0, lba, sectors, space, offset, link: NONE });
            done += sectors as u64;
        }
        let all = 0..self.scratch.segs.len();
        let result = if write { self.write(node, all) } else { self.read(node, all) };
        self.scratch.segs.clear();
        self.scratch.read_nodes.clear();
        if result.is_err() {
            // Levels leave the other stacks as they found them, unless they fail.
            self.scratch.clear();
        }
        result
    }

    /// Plans a flush of every usable member below `node`.
    pub fn flush(&mut self, node: NodeId) -> Planned {
        self.plan.clear();
        if self.views.is_lost(node) {
            return Err(RequestError::BeyondTolerance { node, extent: None });
        }
        self.flush_below(node);
        Ok(())
    }

    fn flush_below(&mut self, node: NodeId) {
        let layout = self.layout;
        if let Level::Leaf { leaf } = layout.node(node).level {
            if self.views.leaf(leaf).usable() {
                let (kind, extent) = (OpKind::Flush, Extent::new(0, 0));
                self.plan.add_node(Body::Device { leaf, kind, extent, pieces: 0..0, pair: NONE });
            }
            return;
        }
        layout.node(node).children.iter().for_each(|&c| self.flush_below(c));
    }

    /// Plans reads of the segs in `range` of the stack.
    pub(crate) fn read(&mut self, node: NodeId, range: Range<usize>) -> Planned {
        match &self.layout.node(node).level {
            Level::Leaf { leaf } => self.leaf_read(node, *leaf, range),
            Level::Independent => unreachable!("a request names a volume below the root"),
            Level::Concat { .. } => self.concat(node, range, false),
            Level::Stripe { chunk } => self.stripe(node, *chunk, range, false),
            Level::Mirror { .. } => self.mirror_read(node, range),
            Level::Parity(p) => self.parity_read(node, *p, range),
        }
    }

    /// Plans writes of the segs in `range` of the stack.
    pub(crate) fn write(&mut self, node: NodeId, range: Range<usize>) -> Planned {
        match &self.layout.node(node).level {
            Level::Leaf { leaf } => self.leaf_write(*leaf, range),
            Level::Independent => unreachable!("a request names a volume below the root"),
            Level::Concat { .. } => self.concat(node, range, true),
            Level::Stripe { chunk } => self.stripe(node, *chunk, range, true),
            Level::Mirror { .. } => self.mirror_write(node, range),
            Level::Parity(p) => self.parity_write(node, *p, range),
        }
    }

    /// Hands the segs above `base` on the stack to the children they name, each child's in order of address, and drops
    /// them from the stack.
    pub(crate) fn distribute(&mut self, node: NodeId, base: usize, write: bool) -> Planned {
        let end = self.scratch.segs.len();
        let key = |s: &Seg| (s.child, s.lba);
        if !self.scratch.segs[base..].is_sorted_by_key(key) {
            self.scratch.segs[base..].sort_unstable_by_key(key);
        }
        let mut start = base;
        while start < end {
            let child = self.scratch.segs[start].child;
            let mut stop = start + 1;
            while stop < end && self.scratch.segs[stop].child == child {
                stop += 1;
            }
            self.child(node, child, start..stop, write)?;
            start = stop;
        }
        self.scratch.segs.truncate(base);
        Ok(())
    }

    /// The same for a single seg: the common case of a small request.
    #[inline]
    pub(crate) fn distribute_one(&mut self, node: NodeId, seg: Seg, write: bool) -> Planned {
        let base = self.scratch.segs.len();
        self.scratch.segs.push(seg);
        self.child(node, seg.child, base..base + 1, write)?;
        self.scratch.segs.truncate(base);
        Ok(())
    }

    #[inline]
    fn child(&mut self, node: NodeId, position: u32, range: Range<usize>, write: bool) -> Planned {
        let id = self.layout.node(node).children[position as usize];
        if !write {
            return self.read(id, range);
        }
        // A child that has lost more than it bears is not written: its peers carry its content.
        if self.views.is_lost(id) {
            return Ok(());
        }
        self.write(id, range)
    }

    fn leaf_read(&mut self, node: NodeId, leaf: LeafId, range: Range<usize>) -> Planned {
        let usable = self.views.leaf(leaf).usable();
        if !usable || !self.bad.is_empty() {
            for i in range.clone() {
                let extent = self.scratch.segs[i].extent();
                let bad = self.bad.iter().any(|b| b.leaf == leaf && b.extent.overlaps(extent));
                if bad || !usable {
                    return Err(RequestError::BeyondTolerance { node, extent: Some(extent) });
                }
            }
        }
        self.runs(leaf, OpKind::Read, range);
        Ok(())
    }

    fn leaf_write(&mut self, leaf: LeafId, range: Range<usize>) -> Planned {
        // A missing leaf is simply not written: the levels above carry its content.
        if self.views.leaf(leaf).usable() {
            self.runs(leaf, OpKind::Write, range);
        }
        Ok(())
    }

    /// Makes one operation of each run of neighbouring segs.
    fn runs(&mut self, leaf: LeafId, kind: OpKind, range: Range<usize>) {
        let Range { mut start, end } = range;
        if end - start == 1 {
            return self.run_of_one(leaf, kind, start);
        }
        while start < end {
            let segs = &self.scratch.segs[start..end];
            let first = segs[0];
            let pieces_start = self.plan.pieces.len() as u32;
            self.plan.pieces.push(first.piece());
            let (mut stop, mut lba) = (start + 1, first.end());
            let most = if self.scratch.run_sectors == 0 { segs.len() } else { 1 };
            for seg in segs[1..most].iter().take_while(|seg| std::mem::replace(&mut lba, seg.end()) == seg.lba) {
                self.plan.push_piece(seg.piece());
                stop += 1;
            }
            let extent = Extent::new(first.lba, self.scratch.segs[stop - 1].end() - first.lba);
            let pieces = pieces_start..self.plan.pieces.len() as u32;
            let pair = self.note_run(leaf, kind, extent);
            let id = self.plan.add_node(Body::Device { leaf, kind, extent, pieces, pair });
            self.link_run(id, kind, start..stop);
            start = stop;
        }
    }

    /// The same for a single seg: the common case of a small request.
    #[inline]
    fn run_of_one(&mut self, leaf: LeafId, kind: OpKind, seg: usize) {
        let seg = self.scratch.segs[seg];
        let pieces = self.plan.pieces.len() as u32;
        self.plan.pieces.push(seg.piece());
        let (extent, pieces) = (seg.extent(), pieces..pieces + 1);
        let pair = self.note_run(leaf, kind, extent);
        let id = self.plan.add_node(Body::Device { leaf, kind, extent, pieces, pair });
        if seg.link != NONE {
            let (from, to) = if kind == OpKind::Read { (id, seg.link) } else { (seg.link, id) };
            self.plan.add_edge(from, to);
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
        let pieces = self.plan.pieces.len() as u32;
        self.plan.pieces.push(piece);
        match kind {
            OpKind::Read => self.plan.reads += 1,
            _ => self.plan.writes += 1,
        }
        self.plan.add_node(Body::Device { leaf, kind, extent, pieces: pieces..pieces + 1, pair })
    }

    /// Names the other half of a read's pair.
    #[inline]
    pub(crate) fn pair_read(&mut self, read: u32, write: u32) {
        if let Body::Device { pair, .. } = &mut self.plan.nodes[read as usize].body {
            *pair = write;
        }
    }

    /// Ties a run to the computations that wait for its segs, or make them.
    #[inline]
    fn link_run(&mut self, id: u32, kind: OpKind, segs: Range<usize>) {
        let mut last = NONE;
        for i in segs {
            let link = self.scratch.segs[i].link;
            if link != NONE && link != last {
                let (from, to) = if kind == OpKind::Read { (id, link) } else { (link, id) };
                self.plan.add_edge(from, to);
                last = link;
            }
        }
    }

    /// Counts the run, which will be the next node, and finds the read that a write of the very same sectors follows.
    #[inline]
    fn note_run(&mut self, leaf: LeafId, kind: OpKind, extent: Extent) -> u32 {
        let id = self.plan.nodes.len() as u32;
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

    /// Whether `extent` of `node` can be read or rebuilt from what is there.
    pub(crate) fn readable(&self, node: NodeId, extent: Extent) -> bool {
        if self.views.is_lost(node) {
            return false;
        }
        if self.bad.is_empty() {
            return true;
        }
        crate::level::readable(self, node, extent)
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

    /// Adds a computation without segments; [`Planner::segment`] adds those, all before the next computation.
    pub(crate) fn compute(&mut self, kind: ComputeKind) -> u32 {
        let at = self.plan.segments.len() as u32;
        self.plan.add_node(Body::Compute { kind, segments: at..at })
    }

    /// Adds a segment to the newest computation, from the inputs collected in the scratch list, which it empties.
    pub(crate) fn segment(&mut self, compute: u32, sectors: u64, outputs: [Option<(Space, u32)>; 2]) {
        let start = self.plan.inputs.len() as u32;
        self.plan.inputs.extend_from_slice(&self.scratch.inputs);
        self.scratch.inputs.clear();
        let inputs = start..self.plan.inputs.len() as u32;
        self.plan.segments.push(Segment { sectors: sectors as u32, outputs, inputs });
        if let Body::Compute { segments, .. } = &mut self.plan.nodes[compute as usize].body {
            segments.end = self.plan.segments.len() as u32;
            debug_assert!(segments.start <= segments.end);
        }
    }

    pub(crate) fn allocate(&mut self, sectors: u64) -> u32 {
        self.plan.allocate(sectors as u32)
    }

    pub(crate) fn edge(&mut self, from: u32, to: u32) {
        self.plan.add_edge(from, to);
    }
}
