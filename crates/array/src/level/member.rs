//! A member: the leaf of the tree, where neighbouring transfers become one operation.

use super::{Content, Personality};
use crate::layout::{Node, NodeId};
use crate::plan::{PlanResult, Planner, Transfer};
use crate::policy::MemberState;
use crate::weakness::Weakness;
use raidlab_types::{Extent, LeafId, OpKind, RequestError};

/// A device.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub leaf: LeafId,
}

impl Member {
    /// Whether a deliberate fault keeps a write from a member that is being rebuilt.
    #[inline]
    fn skips(&self, planner: &Planner<'_>, transfers: &[Transfer]) -> bool {
        let view = planner.views.leaf(self.leaf);
        let is_new = view.state == MemberState::Rebuilding && !planner.scratch.restores;
        let behind = transfers.iter().all(|transfer| transfer.end() <= view.valid);
        is_new
            && (behind && planner.views.is_weak(Weakness::WritesSkipBehind)
                || !behind && planner.views.is_weak(Weakness::WritesSkipInFront))
    }

    fn has_bad_sector(&self, planner: &Planner<'_>, extent: Extent) -> bool {
        planner.bad.iter().any(|b| b.leaf == self.leaf && b.extent.overlaps(extent))
            || planner.views.has_bad_block(self.leaf, extent)
    }
}

impl Personality for Member {
    fn parts(&self, _: &Node, _: Extent) -> impl Iterator<Item = (u32, Extent)> {
        std::iter::empty()
    }

    fn content(&self, _: &Node, _: u32, _: u64) -> Content {
        unreachable!("a member has no children")
    }

    fn covering(&self, _: &Node, _: u32, _: Extent) -> Extent {
        unreachable!("a member has no children")
    }

    fn for_each_share(&self, _: &Node, _: Extent, _: impl FnMut(NodeId, Extent)) {}

    #[inline]
    fn read(&self, planner: &mut Planner<'_>, node: &Node, transfers: &[Transfer]) -> PlanResult {
        let view = planner.views.leaf(self.leaf);
        let stale = planner.views.is_weak(Weakness::MirrorReadsStaleCopy);
        if (planner.views.is_degraded(node.id) || !planner.bad.is_empty()) && !stale {
            for extent in transfers.iter().map(Transfer::extent) {
                if !view.reads(extent) || self.has_bad_sector(planner, extent) {
                    return Err(RequestError::BeyondTolerance { node: node.id, extent: Some(extent) });
                }
            }
        }
        planner.operations(self.leaf, OpKind::Read, transfers);
        Ok(())
    }

    #[inline]
    fn write(&self, planner: &mut Planner<'_>, _: &Node, transfers: &[Transfer]) -> PlanResult {
        if self.skips(planner, transfers) {
            return Ok(());
        }
        planner.operations(self.leaf, OpKind::Write, transfers);
        Ok(())
    }

    fn is_readable(&self, planner: &Planner<'_>, _: &Node, extent: Extent) -> bool {
        planner.views.leaf(self.leaf).reads(extent) && !self.has_bad_sector(planner, extent)
    }
}
