//! The members as plans see them: state and queue of each, and what follows for the nodes above them.
//!
//! Invariants: a node is *lost* exactly when those of its children are that its level does not bear the loss of: it is neither read nor
//! written then. It is *degraded* when any member below it is not whole, and *partial* when one is being rebuilt, or
//! has bad blocks, so that what can be read depends on where. All three are worked out when a member's state changes,
//! so that plans only look them up.
//!
//! A distributed spare has a view as a member has, behind those of all members. A member that is gone and stands in a spare
//! does not count as lost.

use super::{place, BadBlocks};
use crate::layout::{Layout, Node, NodeId};
use crate::level::{Level, Member};
use crate::policy::{MemberState, MemberView};
use crate::weakness::Weakness;
use raidlab_types::{Extent, Lba, LeafId};

/// A distributed spare that nobody uses.
const FREE_SPARE: MemberView =
    MemberView { state: MemberState::Missing, valid: 0, rebuilt: 0, in_flight: 0, end_lba: 0, spare: None };

/// The members as plans see them, with what follows for every node.
#[derive(Debug, Clone)]
pub struct MemberViews {
    pub(crate) leaves: Vec<MemberView>,
    /// Node has lost more than it bears: it is missing to its parent.
    lost: Vec<bool>,
    /// Some leaf below (or the node itself) is not whole.
    degraded: Vec<bool>,
    /// Some leaf below (or the node itself) is being rebuilt.
    partial: Vec<bool>,
    /// Children whose loss it does not bear are not whole, or may not give back all they should: nor may it.
    unsure: Vec<bool>,
    /// What members lack for good, until it is written.
    bad_blocks: BadBlocks,
    /// The deliberate fault of the array, if it has one.
    #[cfg(feature = "weakened")]
    pub(crate) weakness: Option<Weakness>,
}

impl MemberViews {
    /// All members online and idle.
    pub fn new(layout: &Layout) -> Self {
        let mut leaves = vec![MemberView::default(); layout.leaves()];
        leaves.resize(leaves.len() + layout.spares(), FREE_SPARE);
        MemberViews {
            leaves,
            lost: vec![false; layout.nodes.len()],
            degraded: vec![false; layout.nodes.len()],
            partial: vec![false; layout.nodes.len()],
            unsure: vec![false; layout.nodes.len()],
            bad_blocks: BadBlocks::default(),
            #[cfg(feature = "weakened")]
            weakness: None,
        }
    }

    /// Whether the array has this deliberate fault.
    #[cfg(feature = "weakened")]
    #[inline]
    pub(crate) fn is_weak(&self, weakness: Weakness) -> bool {
        self.weakness == Some(weakness)
    }

    /// Whether the array has this deliberate fault: never, where faults are not built in.
    #[cfg(not(feature = "weakened"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    #[inline(always)]
    pub(crate) const fn is_weak(&self, _: Weakness) -> bool {
        false
    }

    /// One member's view.
    pub fn leaf(&self, leaf: LeafId) -> &MemberView {
        &self.leaves[leaf as usize]
    }

    /// Changes a member's state and works out what follows for the nodes above it. One that is online is believed to hold
    /// what it should, one that begins to be rebuilt to hold nothing. Where that brings back a node that was lost, the
    /// others below it have missed what was written meanwhile: they are to be rebuilt with it.
    pub fn set_state(&mut self, layout: &Layout, leaf: LeafId, state: MemberState) {
        let view = &mut self.leaves[leaf as usize];
        (view.state, view.rebuilt) = (state, 0);
        view.valid = if state == MemberState::Online { Lba::MAX } else { 0 };
        if state != MemberState::Online {
            self.bad_blocks.forget(leaf);
        } else if let Some(spare) = view.spare.take() {
            self.leaves[spare as usize] = FREE_SPARE;
        }
        // Children come after their parent, so backwards every child is known before its parent.
        for id in (0..layout.nodes.len()).rev() {
            let was_lost = self.lost[id];
            self.work_out(layout, id);
            let trusted = self.is_weak(Weakness::LostNodeIsTrusted);
            if was_lost && !self.lost[id] && state == MemberState::Rebuilding && !trusted {
                self.distrust(layout, id);
            }
        }
    }

    /// What a node is, from what its children are.
    fn work_out(&mut self, layout: &Layout, id: usize) {
        let node = &layout.nodes[id];
        if let Level::Member(Member { leaf }) = node.level {
            let view = &self.leaves[leaf as usize];
            let (whole, rebuilding) = (view.is_whole(), view.state == MemberState::Rebuilding);
            let lacks = self.bad_blocks.has(leaf);
            (self.lost[id], self.degraded[id], self.unsure[id]) = (!view.writes(), !whole || lacks, !whole);
            self.partial[id] = rebuilding || lacks;
            return;
        }
        let count = |of: &[bool]| node.children.iter().filter(|&&c| of[c as usize]).count();
        let stands = |child, so: fn(&MemberView) -> bool| self.spare_below(layout, node, child).is_some_and(so);
        let lost_without = |gone: &[bool], so| node.is_lost_without(|child| gone[child as usize] && !stands(child, so));
        let lost = lost_without(&self.lost, MemberView::writes);
        let unsure = lost_without(&self.unsure, MemberView::is_whole);
        let partial = count(&self.partial) > 0 || self.fills_spares(node);
        (self.degraded[id], self.partial[id]) = (count(&self.degraded) > 0, partial);
        (self.lost[id], self.unsure[id]) = (lost, unsure);
    }

    /// The distributed spare in which a child of the node stands, if it does.
    fn spare_below(&self, layout: &Layout, node: &Node, child: NodeId) -> Option<&MemberView> {
        let leaf = if node.spares.is_empty() { None } else { layout.leaf(child) };
        self.leaf(self.leaf(leaf?).spare?).into()
    }

    /// What a member that is gone held comes to stand in the distributed spare of this number of its node, which is free.
    ///
    /// # Panics
    /// Where the node has no such spare.
    pub fn take_spare(&mut self, layout: &Layout, leaf: LeafId, number: u32) {
        let mut spares = layout.parent(layout.node_of(leaf)).map_or(0..0, |node| node.spares.clone());
        let spare = spares.nth(number as usize).expect("a spare of the node");
        self.leaves[leaf as usize].spare = Some(spare);
        self.set_state(layout, spare, MemberState::Rebuilding);
    }

    /// What has been brought there: the sectors below `valid`, `Lba::MAX` for all.
    pub fn fill_spare(&mut self, layout: &Layout, leaf: LeafId, valid: Lba) {
        match self.leaf(leaf).spare {
            Some(spare) if valid == Lba::MAX => self.set_state(layout, spare, MemberState::Online),
            Some(spare) => self.set_valid(spare, valid),
            None => {}
        }
    }

    /// The number among its node's of the distributed spare in which a member stands, and up to which sector it does.
    pub fn spare_of(&self, layout: &Layout, leaf: LeafId) -> Option<(u32, Lba)> {
        let spare = self.leaf(leaf).spare?;
        let node = layout.parent(layout.node_of(leaf))?;
        Some((spare - node.spares.start, self.leaf(spare).valid))
    }

    /// How many of so many first sectors of a member hold anything: spare chunks do not in which nobody stood when it was
    /// lost. Distributed spares are taken in their order, so that was before its own.
    pub(crate) fn used_sectors(&self, layout: &Layout, leaf: LeafId, sectors: u64) -> u64 {
        let id = layout.node_of(leaf);
        let Some(node) = layout.parent(id).filter(|node| !node.spares.is_empty()) else { return sectors };
        let position = node.children.iter().position(|&child| child == id).map_or(0, place);
        let is_free = |number: u32| {
            let spare = node.spares.start + number;
            !self.leaf(spare).writes() || self.leaf(leaf).spare.is_some_and(|own| own <= spare)
        };
        match &node.level {
            Level::Parity(parity) => parity.used_sectors(position, sectors, is_free),
            _ => sectors,
        }
    }

    /// The member that stands in a distributed spare; a member itself.
    pub(crate) fn stands_for(&self, layout: &Layout, leaf: LeafId) -> Option<LeafId> {
        let in_spare = || self.leaves.iter().position(|view| view.spare == Some(leaf)).map(place);
        if (leaf as usize) < layout.leaves() {
            Some(leaf)
        } else {
            in_spare()
        }
    }

    /// The distributed spares of a node that are not yet filled.
    pub(crate) fn spares_to_fill<'v>(&'v self, node: &Node) -> impl Iterator<Item = LeafId> + 'v {
        node.spares.clone().filter(|&spare| self.leaf(spare).state == MemberState::Rebuilding)
    }

    /// Whether there are any.
    pub(crate) fn fills_spares(&self, node: &Node) -> bool {
        self.spares_to_fill(node).next().is_some()
    }

    /// Every member below that is there is to be rebuilt from its beginning; what stands above is not worked out.
    fn distrust(&mut self, layout: &Layout, id: usize) {
        let node = &layout.nodes[id];
        node.children.iter().for_each(|&child| self.distrust(layout, child as usize));
        if let Level::Member(Member { leaf }) = node.level {
            let view = &mut self.leaves[leaf as usize];
            if view.writes() {
                (view.state, view.valid, view.rebuilt) = (MemberState::Rebuilding, 0, 0);
                self.bad_blocks.forget(leaf);
            }
        }
        self.work_out(layout, id);
    }

    /// The same, with what follows for the nodes above.
    pub(crate) fn distrust_all(&mut self, layout: &Layout, id: NodeId) {
        self.distrust(layout, id as usize);
        (0..layout.nodes.len()).rev().for_each(|id| self.work_out(layout, id));
    }

    /// What members lack for good.
    pub fn bad_blocks(&self) -> &BadBlocks {
        &self.bad_blocks
    }

    /// Whether some of these sectors of a member are in its list of bad blocks.
    #[inline]
    pub(crate) fn has_bad_block(&self, leaf: LeafId, extent: Extent) -> bool {
        !self.bad_blocks.is_empty()
            && self.bad_blocks.overlap(leaf, extent)
            && !self.is_weak(Weakness::BadBlocksAreRead)
    }

    /// A member will never be given these sectors back; false where its list is full.
    pub(crate) fn add_bad_block(&mut self, layout: &Layout, leaf: LeafId, extent: Extent) -> bool {
        let has_room = self.bad_blocks.add(leaf, extent);
        (0..layout.nodes.len()).rev().for_each(|id| self.work_out(layout, id));
        has_room
    }

    /// Sectors of a member have been written.
    #[cold]
    pub(crate) fn clear_bad_blocks(&mut self, layout: &Layout, leaf: LeafId, extent: Extent) {
        self.bad_blocks.remove(leaf, extent);
        (0..layout.nodes.len()).rev().for_each(|id| self.work_out(layout, id));
    }

    /// What has been rebuilt of a member: the sectors of its data area below `valid`, which never falls.
    pub fn set_valid(&mut self, leaf: LeafId, valid: Lba) {
        let view = &mut self.leaves[leaf as usize];
        debug_assert!(view.state == MemberState::Rebuilding, "only a member that is being rebuilt is valid in part");
        view.valid = view.valid.max(valid);
    }

    /// How many sectors of it a rebuild has written by now; one that began anew does not take from what there was.
    pub(crate) fn set_rebuilt(&mut self, leaf: LeafId, sectors: u64) {
        let view = &mut self.leaves[leaf as usize];
        view.rebuilt = view.rebuilt.max(sectors);
    }

    /// Whether the node has lost more members than it bears.
    #[inline]
    pub fn is_lost(&self, node: NodeId) -> bool {
        self.lost[node as usize]
    }

    /// Whether some member below the node is not whole.
    #[inline]
    pub fn is_degraded(&self, node: NodeId) -> bool {
        self.degraded[node as usize]
    }

    /// Whether not everything of the node can be given back, or that depends on where it lies.
    pub(crate) fn is_unsure(&self, node: NodeId) -> bool {
        self.unsure[node as usize]
    }

    /// The only child that can lack anything while the node is rebuilt, where there is only one: a second would be lost with
    /// the node, and nothing above it gives both back.
    pub(crate) fn only_partial(&self, node: &Node) -> Option<u32> {
        let mut partial = (0..).zip(&node.children).filter(|&(_, &child)| self.is_partial(child));
        let (only, _) = partial.next().filter(|_| node.bears == 1 && !node.is_backed)?;
        partial.next().is_none().then_some(only)
    }

    /// Whether some member below the node is being rebuilt or has bad blocks, so that what can be read depends on where
    /// it lies.
    #[inline]
    pub fn is_partial(&self, node: NodeId) -> bool {
        self.partial[node as usize]
    }
}
