//! The levels, one file each. All that there is to know of a level stands in its file: how the sectors of a node lie on its
//! children, how it is read and written while members are missing or sectors unreadable, and what it locks.
//!
//! Invariant: a level knows addresses and the state of members; no bytes, no time. This file is the only place where
//! levels are told apart; whoever walks a tree asks by [`for_level`].

mod choice;
mod concat;
mod copies;
mod member;
mod mirror;
mod parity;
mod stripe;

pub(crate) use member::Member;
pub(crate) use parity::{ParityLayout, StripeWork};

use crate::layout::{MapCell, Node, NodeId};
use crate::machine::{LockMode, LockRange};
use crate::plan::{narrow, place, PlanResult, Planner, ReadOrigin, Space, Transfer};
use crate::spec::Tree;
use raidlab_types::number::{lcm, usize_from};
use raidlab_types::Extent;

/// What a level knows. A level without redundancy says where its sectors lie; the rest follows from that.
pub(crate) trait Personality: Sized {
    /// The parts of `extent` that lie on one child each, in order of address: (position of the child, its sectors).
    fn parts(&self, node: &Node, extent: Extent) -> impl Iterator<Item = (u32, Extent)>;

    /// What sector `lba` of the child at `position` holds.
    fn content(&self, node: &Node, position: u32, lba: u64) -> Content;

    /// Calls `visit` with every child that `extent` touches, and one run of its sectors that covers its share. (Chunks that
    /// follow each other on a striping node follow each other on the child, so its share is one run.)
    fn for_each_share(&self, node: &Node, extent: Extent, visit: impl FnMut(NodeId, Extent));

    /// The run of the node's sectors whose stripes `part` of the child at `position` belongs to.
    fn covering(&self, node: &Node, position: u32, part: Extent) -> Extent;

    /// The same for what a unit of a rebuild or a scrub does: of every child, or of the `only` one that lacks anything.
    fn covering_unit(&self, node: &Node, _only: Option<u32>, part: Extent) -> Extent {
        self.covering(node, 0, part)
    }

    /// Plans what gives `extent` of every child back that is written there and cannot be read, from its siblings.
    fn restore(&self, _: &mut Planner<'_>, _: &Node, _: Extent) -> PlanResult {
        unreachable!("a level that bears no loss has nothing to restore from")
    }

    /// Plans what tells whether `extent` of every child is what its siblings say it is. What several children hold together
    /// is compared once, with the first of them.
    fn verify(&self, _: &mut Planner<'_>, _: &Node, _: Extent) -> PlanResult {
        unreachable!("a level that bears no loss has nothing to compare")
    }

    /// One child's contiguous part of a stripe, if the level stripes, in sectors.
    fn chunk(&self) -> Option<u64> {
        None
    }

    /// Plans reads of `transfers`, which are in order of address.
    fn read(&self, planner: &mut Planner<'_>, node: &Node, transfers: &[Transfer]) -> PlanResult {
        planner.cut_and_hand_on(self, node, transfers, false)
    }

    /// Plans writes of `transfers`, which are in order of address.
    fn write(&self, planner: &mut Planner<'_>, node: &Node, transfers: &[Transfer]) -> PlanResult {
        planner.cut_and_hand_on(self, node, transfers, true)
    }

    /// Whether `extent` can be read or rebuilt from what is there. The slow path, taken only after a media error and where
    /// members are being rebuilt.
    fn is_readable(&self, planner: &Planner<'_>, node: &Node, extent: Extent) -> bool {
        self.parts(node, extent).all(|(position, part)| planner.is_readable(node.child(position), part))
    }

    /// Adds the locks that a request for `extent` takes on the node itself. `covered`: a node above already locks these
    /// very addresses. Returns whether they are covered for the nodes below.
    fn lock(&self, _: &Node, _: Extent, _: LockMode<'_>, covered: bool, _: &mut Vec<LockRange>) -> bool {
        covered
    }

    /// Whether the node is lost when the children that `is_gone` names are.
    fn is_lost_without(&self, node: &Node, is_gone: impl Fn(NodeId) -> bool) -> bool {
        node.children.iter().filter(|&&child| is_gone(child)).count() > node.bears
    }

    /// Whether the node lies on its children the same way from one multiple of its alignment to the next.
    fn repeats(&self) -> bool {
        true
    }

    /// Whether it locks stripes even where the addresses are covered, since a stripe ties other addresses together.
    fn locks_stripes(&self) -> bool {
        false
    }
}

/// What a sector of a child holds, seen from the node above it.
pub(crate) enum Content {
    /// This sector of the node.
    Data(u64),
    /// Parity, or spare space.
    Other(MapCell),
    /// Nothing.
    Unused,
}

/// A level with its parameters, in sectors.
#[derive(Debug, Clone)]
pub(crate) enum Level {
    Member(Member),
    Concat(concat::Concat),
    Stripe(stripe::Stripe),
    Mirror(mirror::Mirror),
    Copies(copies::Copies),
    Parity(parity::ParityLayout),
}

/// Asks whichever level a node has (see [`Personality`]), without a table of functions.
macro_rules! for_level {
    ($node:expr, $level:ident => $work:expr) => {
        match &$node.level {
            $crate::level::Level::Member($level) => $work,
            $crate::level::Level::Concat($level) => $work,
            $crate::level::Level::Stripe($level) => $work,
            $crate::level::Level::Mirror($level) => $work,
            $crate::level::Level::Copies($level) => $work,
            $crate::level::Level::Parity($level) => $work,
        }
    };
}
pub(crate) use for_level;

/// The children of a node that is compiled, and what stands around it.
pub(crate) struct Surroundings<'a> {
    /// Sectors of each child, in order.
    pub capacities: &'a [u64],
    /// The least common multiple of their alignments.
    pub alignment: u64,
    /// The node's own chunk, 0 where it has none.
    pub chunk: u64,
    /// The chunk of the nearest striping node above, 0 where there is none.
    pub outer_chunk: u64,
}

impl Surroundings<'_> {
    pub(crate) fn count(&self) -> u64 {
        self.capacities.len() as u64
    }

    fn children(&self) -> u32 {
        place(self.capacities.len())
    }

    /// Sectors of the smallest child, to which the others are cut.
    pub(crate) fn smallest(&self) -> u64 {
        self.capacities.iter().copied().min().unwrap_or(0)
    }

    /// A level that deals chunks, `data` of them a stripe: whole chunks of the smallest child are used.
    fn striping(&self, level: Level, data: u64) -> NodeLayout {
        let capacity = self.smallest() / self.chunk * self.chunk * data;
        NodeLayout { level, capacity, alignment: lcm(self.alignment, self.chunk).saturating_mul(data) }
    }
}

/// A level with what follows for its node.
pub(crate) struct NodeLayout {
    pub level: Level,
    /// Sectors of the node.
    pub capacity: u64,
    /// Requests that begin and end on multiples of this touch whole stripes only.
    pub alignment: u64,
}

impl Level {
    /// The level of a node over children that are compiled already. Of one that stripes, a capacity of 0 says that they are
    /// too small.
    pub(crate) fn compile(tree: &Tree, around: &Surroundings<'_>) -> NodeLayout {
        match tree {
            Tree::Member { .. } => unreachable!("a member has no children"),
            // Volumes side by side, as it were; a request names its volume, so that nothing is ever asked of the root.
            Tree::Independent { .. } | Tree::Concat { .. } => concat::compile(around),
            Tree::Stripe { .. } => stripe::compile(around),
            Tree::Mirror { .. } => mirror::compile(around),
            Tree::Copies { layout, .. } => copies::compile(around, *layout),
            Tree::Parity { parities, rotation, .. } => parity::compile(around, *parities, *rotation),
            Tree::Declustered { parities, width, spares, .. } => {
                parity::compile_declustered(around, *parities, *width, *spares)
            }
        }
    }
}

/// What planning asks so often that it is faster through a function.
impl Node {
    #[inline]
    pub(crate) fn read(&self, planner: &mut Planner<'_>, transfers: &[Transfer]) -> PlanResult {
        for_level!(self, level => level.read(planner, self, transfers))
    }

    #[inline]
    pub(crate) fn write(&self, planner: &mut Planner<'_>, transfers: &[Transfer]) -> PlanResult {
        for_level!(self, level => level.write(planner, self, transfers))
    }

    pub(crate) fn is_readable(&self, planner: &Planner<'_>, extent: Extent) -> bool {
        for_level!(self, level => level.is_readable(planner, self, extent))
    }

    pub(crate) fn restore(&self, planner: &mut Planner<'_>, extent: Extent) -> PlanResult {
        for_level!(self, level => level.restore(planner, self, extent))
    }

    pub(crate) fn verify(&self, planner: &mut Planner<'_>, extent: Extent) -> PlanResult {
        for_level!(self, level => level.verify(planner, self, extent))
    }

    pub(crate) fn is_lost_without(&self, is_gone: impl Fn(NodeId) -> bool) -> bool {
        for_level!(self, level => level.is_lost_without(self, is_gone))
    }

    /// The child that holds sector `lba`, or the first that does, and the sector there; none for a member.
    pub(crate) fn locate(&self, lba: u64) -> Option<(NodeId, u64)> {
        let part = for_level!(self, level => level.parts(self, Extent::new(lba, 1)).next());
        part.map(|(position, part)| (self.child(position), part.lba))
    }
}

/// A part of a run of sectors within one chunk of a striping node.
#[derive(Debug, Clone, Copy)]
struct ChunkPart {
    /// The stripe.
    row: u64,
    /// Which of the stripe's data chunks.
    column: u32,
    /// First sector within the chunk.
    within: u64,
    /// First sector on the child.
    child_lba: u64,
    sectors: u64,
}

impl ChunkPart {
    fn on_child(&self) -> Extent {
        Extent::new(self.child_lba, self.sectors)
    }
}

/// The parts of `extent` within one chunk each, in order, where a stripe has `columns` chunks of data.
#[inline]
fn chunks(chunk: u64, columns: u64, extent: Extent) -> impl Iterator<Item = ChunkPart> {
    let mut lba = extent.lba;
    let (index, mut within) = (lba / chunk, lba % chunk);
    let (mut row, mut column) = (index / columns, index % columns);
    std::iter::from_fn(move || {
        if lba >= extent.end() {
            return None;
        }
        let sectors = (chunk - within).min(extent.end() - lba);
        let part =
            ChunkPart { row, column: place(usize_from(column)), within, child_lba: row * chunk + within, sectors };
        (lba, within, column) = (lba + sectors, 0, column + 1);
        if column == columns {
            (row, column) = (row + 1, 0);
        }
        Some(part)
    })
}

/// Reads what several children hold alike, the copies that can be read, and compares them: two with the first at a time, so
/// that of three the one that differs is known.
fn compare_copies(
    planner: &mut Planner<'_>,
    node: &Node,
    compute: u32,
    copies: impl Iterator<Item = (u32, Extent)>,
    reads: &mut Vec<Transfer>,
) {
    let (mut first, mut second, begun) = (None, None, reads.len());
    for (position, extent) in copies {
        let child = node.child(position);
        if !planner.is_readable(child, extent) {
            continue;
        }
        let (sectors, offset) = (narrow(extent.sectors), planner.allocate(extent.sectors));
        let read = Transfer { child: position, lba: extent.lba, sectors, space: Space::Scratch, offset, link: compute };
        reads.push(read);
        match (first, second) {
            (None, _) => first = Some(read),
            (_, None) => second = Some(read),
            (Some(of), Some(one)) => {
                compare(planner, node, compute, &[of, one, read]);
                second = None;
            }
        }
    }
    match (first, second) {
        (Some(of), Some(one)) => compare(planner, node, compute, &[of, one]),
        // There is nothing to compare it with.
        (Some(_), None) if reads.len() == begun + 1 => reads.truncate(begun),
        _ => {}
    }
}

/// Adds the segment that is zero where these copies are equal.
fn compare(planner: &mut Planner<'_>, node: &Node, compute: u32, copies: &[Transfer]) {
    let mut outputs = [None; 2];
    for (n, copy) in copies.iter().enumerate() {
        let coefficients = [[1, 1], [1, 0], [0, 1]][n];
        let origin = ReadOrigin { child: node.child(copy.child), extent: copy.extent(), follows: n > 0 };
        planner.verified_input(copy.offset, coefficients, origin);
    }
    for output in &mut outputs[..copies.len() - 1] {
        *output = Some((Space::Scratch, planner.allocate(u64::from(copies[0].sectors))));
    }
    planner.segment(compute, u64::from(copies[0].sectors), outputs);
}

/// The locks on `extent` of a node that are kept by pieces of so many sectors.
fn locked_pieces(node: NodeId, extent: Extent, sectors: u64, shared: bool) -> impl Iterator<Item = LockRange> {
    (extent.lba / sectors..=(extent.end() - 1) / sectors).map(move |stripe| {
        let start = stripe * sectors;
        let (lo, hi) = (extent.lba.max(start) - start, extent.end().min(start + sectors) - start);
        LockRange { node, stripe, lo, hi, shared }
    })
}

/// The parts of `extent` of so many sectors each, in order.
fn runs(extent: Extent, sectors: u64) -> impl Iterator<Item = Extent> {
    let starts = (extent.lba..extent.end()).step_by(usize_from(sectors));
    starts.map(move |lba| Extent::new(lba, sectors.min(extent.end() - lba)))
}

/// The sectors of a node in the stripes that `part` of a child belongs to; a stripe is so many sectors of each child, and of
/// the node.
fn rows_covering(of_child: u64, of_node: u64, part: Extent) -> Extent {
    let (first, last) = (part.lba / of_child, (part.end() - 1) / of_child);
    Extent::new(first * of_node, (last - first + 1) * of_node)
}

/// The sectors of every child that whole stripes have, for the stripes that `extent` touches.
fn whole_stripes(of_child: u64, of_node: u64, extent: Extent) -> Extent {
    let (first, last) = (extent.lba / of_node, (extent.end() - 1) / of_node);
    Extent::new(first * of_child, (last - first + 1) * of_child)
}
