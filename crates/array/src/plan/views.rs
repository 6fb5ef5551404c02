//! The members as plans see them: state and queue of each, and what follows for the nodes above them.
//!
//! Invariants: a node is *lost* exactly when more of its children are lost than its level bears, and *degraded* when any
//! member below it is not usable; both are worked out when a member's state changes, so that plans only look them up.

use crate::layout::{Layout, NodeId};
use crate::level::{Level, Member};
use crate::policy::MemberView;
use raidlab_types::LeafId;

/// The members as plans see them, with what follows for every node.
#[derive(Debug, Clone)]
pub struct MemberViews {
    pub(crate) leaves: Vec<MemberView>,
    /// Node has lost more than it bears: it is missing to its parent.
    lost: Vec<bool>,
    /// Some leaf below (or the node itself) is not usable.
    degraded: Vec<bool>,
}

impl MemberViews {
    /// All members online and idle.
    pub fn new(layout: &Layout) -> Self {
        MemberViews {
            leaves: vec![MemberView::default(); layout.leaves()],
            lost: vec![false; layout.nodes.len()],
            degraded: vec![false; layout.nodes.len()],
        }
    }

    /// One member's view.
    pub fn leaf(&self, leaf: LeafId) -> &MemberView {
        &self.leaves[leaf as usize]
    }

    /// Changes a member's state and works out what follows for the nodes above it.
    pub fn set_state(&mut self, layout: &Layout, leaf: LeafId, state: crate::MemberState) {
        self.leaves[leaf as usize].state = state;
        // Children come after their parent, so backwards every child is known before its parent.
        for id in (0..layout.nodes.len()).rev() {
            let node = &layout.nodes[id];
            (self.lost[id], self.degraded[id]) = if let Level::Member(Member { leaf }) = node.level {
                let usable = self.leaves[leaf as usize].usable();
                (!usable, !usable)
            } else {
                let gone = node.children.iter().filter(|&&c| self.lost[c as usize]).count();
                (gone > node.bears, node.children.iter().any(|&c| self.degraded[c as usize]))
            };
        }
    }

    /// Whether the node has lost more members than it bears.
    #[inline]
    pub fn is_lost(&self, node: NodeId) -> bool {
        self.lost[node as usize]
    }

    /// Whether some member below the node is not usable.
    #[inline]
    pub fn is_degraded(&self, node: NodeId) -> bool {
        self.degraded[node as usize]
    }
}
