//! Plans: the small DAG of member operations and computations that serves one window of a request.
//!
//! Invariants:
//! - A plan holds no bytes: a node names sectors of a leaf and the *pieces* of memory they move to or from.
//! - A [`Piece`] lies in the user's buffer, in the plan's scratch space, or in a sink nobody reads.
//! - A node is ready when its pending count is 0; completing it lowers its successors' counts. Reads have no
//!   predecessors; computations wait for what they combine; writes wait for what they write, and for every read of the
//!   plan (that barrier is kept by the runner, as [`Plan::barrier_reads`]).
//! - The arena is pooled: `clear` keeps its memory.

mod bad_blocks;
mod builder;
mod print;
mod views;

pub use bad_blocks::{BadBlockCounts, BadBlocks};
pub(crate) use builder::{cut, narrow, PlanResult, Transfer, WrongExtent};
pub use builder::{BadExtent, Planner, Scratch};
pub use views::MemberViews;

use crate::layout::NodeId;
use raidlab_types::{Extent, LeafId, OpKind};
use std::ops::Range;

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

/// A place in a list of a plan, a level or the machine, as what is kept of it: each list has an entry or two a child, a
/// sector of a window or a request, so none comes near 2^32, and to ask each time would make planning a tenth slower.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "see above")]
pub(crate) fn place(place: usize) -> u32 {
    debug_assert!(u32::try_from(place).is_ok(), "{place} entries");
    place as u32
}

/// Which memory a piece lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// The request's buffer.
    User,
    /// The plan's scratch space, of [`Plan::scratch_sectors`].
    Scratch,
    /// Read and dropped (parity that a large read passes over).
    Discard,
}

/// A run of sectors of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Which memory.
    pub space: Space,
    /// Sectors from its start; within the user's buffer from the start of the *request*.
    pub offset: u32,
    /// Length in sectors.
    pub sectors: u32,
}

/// What a computation does; every one is a linear combination over GF(2^8), the kind says how it came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComputeKind {
    /// One parity by exclusive or.
    Xor,
    /// P and Q, or one of them, with the coefficients of RAID 6.
    Pq,
    /// A lost block from the others.
    Recover,
    /// What copies or parities differ by from what they should be: all zeroes where they agree.
    Verify,
}

/// Where an input of a [`ComputeKind::Verify`] lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadOrigin {
    pub child: NodeId,
    /// Sectors of the child.
    pub extent: Extent,
    /// It follows from others, and is written anew where nothing says who is wrong: a parity, a copy that is not the first.
    pub follows: bool,
}

/// One input of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input {
    /// Which memory.
    pub space: Space,
    /// Sectors from its start.
    pub offset: u32,
    /// What it is multiplied by for each output; 0 leaves it out.
    pub coefficients: [u8; 2],
}

/// One equally long part of a computation: up to two outputs from a list of inputs.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Length of every input and output in sectors.
    pub sectors: u32,
    /// Outputs; an output may be the very memory of one of the inputs.
    pub outputs: [Option<(Space, u32)>; 2],
    pub(crate) inputs: Range<u32>,
}

/// What a node of the plan is.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    Device { leaf: LeafId, kind: OpKind, extent: Extent, pieces: Range<u32>, pair: u32 },
    Compute { kind: ComputeKind, segments: Range<u32> },
}

/// A node of the DAG.
#[derive(Debug, Clone)]
pub(crate) struct PlanNode {
    pub body: Body,
    pub pending: u32,
    pub first_edge: u32,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge {
    pub to: u32,
    pub next: u32,
}

/// The DAG of one window of a request.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub(crate) nodes: Vec<PlanNode>,
    pub(crate) edges: Vec<Edge>,
    pieces: Vec<Piece>,
    segments: Vec<Segment>,
    inputs: Vec<Input>,
    /// Of the inputs of a computation that verifies, which are the plan's first.
    pub(crate) origins: Vec<ReadOrigin>,
    scratch_sectors: u32,
    reads: u32,
    writes: u32,
    /// Each row of a stripe has reads and writes of its own: a write waits only for what its own row reads.
    pub(crate) by_rows: bool,
}

/// A device operation as a plan shows it, before the leaf's data offset is added.
#[derive(Debug, Clone, Copy)]
pub struct DeviceNode<'a> {
    /// Which member.
    pub leaf: LeafId,
    /// Read, write or flush.
    pub kind: OpKind,
    /// Sectors of the member's data area.
    pub extent: Extent,
    /// Memory it moves to or from, in order.
    pub pieces: &'a [Piece],
    /// The other half of a read-modify-write on the same extent.
    pub pair_with: Option<u32>,
}

/// A node as a plan shows it.
#[derive(Debug, Clone, Copy)]
pub enum NodeView<'a> {
    /// An operation on a member.
    Device(DeviceNode<'a>),
    /// A computation.
    Compute(ComputeKind, &'a [Segment]),
}

impl Plan {
    /// Forgets everything, keeping the memory.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.edges.clear();
        self.pieces.clear();
        self.segments.clear();
        self.inputs.clear();
        self.origins.clear();
        (self.scratch_sectors, self.reads, self.writes) = (0, 0, 0);
        self.by_rows = false;
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Member reads in the plan: no write may be issued before all are complete.
    pub fn reads(&self) -> u32 {
        self.reads
    }

    /// Member reads that every write of the plan waits for: all, or none where rows are planned one by one, whose writes
    /// wait for their own computation.
    pub fn barrier_reads(&self) -> u32 {
        if self.by_rows {
            0
        } else {
            self.reads
        }
    }

    /// Member writes in the plan.
    pub fn writes(&self) -> u32 {
        self.writes
    }

    /// Sectors of scratch memory the plan needs.
    pub fn scratch_sectors(&self) -> u32 {
        self.scratch_sectors
    }

    /// Node number `i`.
    pub fn node(&self, i: usize) -> NodeView<'_> {
        match &self.nodes[i].body {
            Body::Device { leaf, kind, extent, pieces, pair } => NodeView::Device(DeviceNode {
                leaf: *leaf,
                kind: *kind,
                extent: *extent,
                pieces: &self.pieces[pieces.start as usize..pieces.end as usize],
                pair_with: (*pair != NONE).then_some(*pair),
            }),
            Body::Compute { kind, segments } => NodeView::Compute(*kind, self.segments_of(segments)),
        }
    }

    /// Predecessors node `i` waits for, by number of edges.
    pub fn pending(&self, i: usize) -> u32 {
        self.nodes[i].pending
    }

    /// Nodes that wait for node `i`, an edge each.
    pub fn successors(&self, i: usize) -> impl Iterator<Item = u32> + '_ {
        let mut edge = self.nodes[i].first_edge;
        std::iter::from_fn(move || {
            let e = self.edges.get(edge as usize)?;
            edge = e.next;
            Some(e.to)
        })
    }

    /// Inputs of a segment.
    pub fn inputs(&self, segment: &Segment) -> &[Input] {
        &self.inputs[segment.inputs.start as usize..segment.inputs.end as usize]
    }

    /// Sectors a computation reads and writes, for pricing it.
    pub fn compute_sectors(&self, segments: &[Segment]) -> (u64, u64) {
        segments.iter().fold((0, 0), |(read, written), s| {
            let outputs = s.outputs.iter().flatten().count() as u64;
            let inputs = s.inputs.len() as u64;
            (read + inputs * u64::from(s.sectors), written + outputs * u64::from(s.sectors))
        })
    }

    /// The numbers of a segment's inputs, and the segment: number `segment` of the plan's, which are those of the computation
    /// that verifies.
    pub(crate) fn verified(&self, segment: u32) -> (&Segment, Range<u32>) {
        let segment = &self.segments[segment as usize];
        (segment, segment.inputs.clone())
    }

    pub(crate) fn segments_of(&self, segments: &Range<u32>) -> &[Segment] {
        &self.segments[segments.start as usize..segments.end as usize]
    }

    #[inline]
    fn add_node(&mut self, body: Body) -> u32 {
        self.nodes.push(PlanNode { body, pending: 0, first_edge: NONE });
        place(self.nodes.len()) - 1
    }

    #[inline]
    fn add_edge(&mut self, from: u32, to: u32) {
        let next = self.nodes[from as usize].first_edge;
        self.nodes[from as usize].first_edge = place(self.edges.len());
        self.edges.push(Edge { to, next });
        self.nodes[to as usize].pending += 1;
    }

    /// Adds a piece behind another of the same node, or lengthens that one where the two lie together in memory.
    fn push_piece(&mut self, piece: Piece) {
        if let Some(last) = self.pieces.last_mut() {
            let together = piece.space == Space::Discard || last.offset + last.sectors == piece.offset;
            if last.space == piece.space && together {
                last.sectors += piece.sectors;
                return;
            }
        }
        self.pieces.push(piece);
    }

    #[inline]
    fn allocate(&mut self, sectors: u32) -> u32 {
        let offset = self.scratch_sectors;
        self.scratch_sectors += sectors;
        offset
    }
}
