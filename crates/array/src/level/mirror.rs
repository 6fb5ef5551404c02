//! RAID 1: a read goes to one copy, a write to all.

use super::choice::{choose_copy, Candidates, MdBalance};
use super::{compare_copies, locked_pieces, runs, Content, Level, NodeLayout, Personality, Surroundings};
use crate::layout::{Node, NodeId};
use crate::machine::{LockMode, LockRange};
use crate::plan::{narrow, place, ComputeKind, PlanResult, Planner, Space, Transfer, NONE};
use crate::weakness::Weakness;
use raidlab_types::{Extent, RequestError};

/// Pieces by which ranges are locked on a mirror that no striping node stands above: 1 MiB of 512-byte sectors.
const LOCK_SECTORS: u64 = 2048;

/// RAID 1.
#[derive(Debug, Clone)]
pub(crate) struct Mirror {
    /// Locks on written ranges are kept by pieces of this many sectors.
    lock_sectors: u64,
    /// A striping node stands above it.
    striped: bool,
}

pub(super) fn compile(around: &Surroundings<'_>) -> NodeLayout {
    let lock_sectors = if around.outer_chunk > 0 { around.outer_chunk } else { LOCK_SECTORS };
    NodeLayout {
        level: Level::Mirror(Mirror { lock_sectors, striped: around.outer_chunk > 0 }),
        capacity: around.smallest(),
        alignment: around.alignment,
    }
}

impl Personality for Mirror {
    /// The first copy: what is asked where any will do.
    fn parts(&self, _: &Node, extent: Extent) -> impl Iterator<Item = (u32, Extent)> {
        std::iter::once((0, extent))
    }

    fn content(&self, _: &Node, _: u32, lba: u64) -> Content {
        Content::Data(lba)
    }

    fn covering(&self, _: &Node, _: u32, part: Extent) -> Extent {
        part
    }

    /// Reads of each run the first copy that can be read, and writes those that cannot be read throughout.
    fn restore(&self, planner: &mut Planner<'_>, node: &Node, extent: Extent) -> PlanResult {
        // Copies that are no members may have more to do than to read and to write.
        let is_member = |&copy: &NodeId| matches!(planner.layout.node(copy).level, Level::Member(_));
        let plain = node.children.iter().all(is_member);
        let link = if plain { NONE } else { planner.compute(ComputeKind::Recover) };
        let (sectors, offset) = (narrow(extent.sectors), planner.allocate(extent.sectors));
        let whole = Transfer { child: 0, lba: extent.lba, sectors, space: Space::Scratch, offset, link };
        if planner.scratch.salvages {
            return self.salvage(planner, node, extent, whole);
        }
        planner.with_transfers(|planner, reads| {
            for part in runs(extent, planner.scratch.restored_run) {
                let source = node.children.iter().position(|&copy| planner.is_readable(copy, part));
                let Some(source) = source else {
                    return Err(RequestError::BeyondTolerance { node: node.id, extent: Some(part) });
                };
                reads.push(whole.part(part.lba - extent.lba, place(source), part));
            }
            planner.hand_on(node, reads, false)
        })?;
        for (position, &copy) in (0..).zip(&node.children) {
            if planner.is_readable(copy, extent) {
                continue;
            }
            match (extent.end() == node.capacity).then(|| planner.completion(node, position, extent.end())).flatten() {
                Some(rest) => planner.plan_node(copy, &[whole, rest], true)?,
                None => planner.plan_node(copy, &[whole], true)?,
            }
        }
        Ok(())
    }

    fn verify(&self, planner: &mut Planner<'_>, node: &Node, extent: Extent) -> PlanResult {
        let compute = planner.compute(ComputeKind::Verify);
        planner.with_transfers(|planner, reads| {
            for part in runs(extent, planner.scratch.restored_run) {
                let copies = (0..place(node.children.len())).map(|position| (position, part));
                compare_copies(planner, node, compute, copies, reads);
            }
            planner.hand_on(node, reads, false)
        })
    }

    fn for_each_share(&self, node: &Node, extent: Extent, mut visit: impl FnMut(NodeId, Extent)) {
        node.children.iter().for_each(|&copy| visit(copy, extent));
    }

    fn read(&self, planner: &mut Planner<'_>, node: &Node, transfers: &[Transfer]) -> PlanResult {
        if planner.bad.is_empty() && !planner.views.is_partial(node.id) {
            // One copy for all that lies together.
            let copy = self.choose(planner, node, transfers[0].extent())?;
            return planner.plan_node(node.child(copy), transfers, false);
        }
        planner.with_transfers(|planner, chosen| {
            for transfer in transfers {
                let child = self.choose(planner, node, transfer.extent())?;
                chosen.push(Transfer { child, ..*transfer });
            }
            planner.hand_on(node, chosen, false)
        })
    }

    fn write(&self, planner: &mut Planner<'_>, node: &Node, transfers: &[Transfer]) -> PlanResult {
        let copies = if planner.views.is_weak(Weakness::MirrorWritesOneCopy) { 1 } else { node.children.len() };
        node.children[..copies].iter().try_for_each(|&child| planner.plan_node(child, transfers, true))
    }

    fn is_readable(&self, planner: &Planner<'_>, node: &Node, extent: Extent) -> bool {
        node.children.iter().any(|&copy| planner.is_readable(copy, extent))
    }

    /// A write locks its range, so that all copies take overlapping writes in the same order. A read after a media error
    /// does, too: a write on its way may be repairing the very sector.
    fn lock(&self, node: &Node, extent: Extent, mode: LockMode<'_>, covered: bool, out: &mut Vec<LockRange>) -> bool {
        if covered || matches!(mode, LockMode::SharedIfDegraded(_)) {
            return covered;
        }
        out.extend(locked_pieces(node.id, extent, self.lock_sectors, mode.is_shared()));
        true
    }
}

impl Mirror {
    /// The same, sector by sector, without what no copy gives.
    fn salvage(&self, planner: &mut Planner<'_>, node: &Node, extent: Extent, whole: Transfer) -> PlanResult {
        planner.with_transfers(|planner, reads| {
            planner.with_transfers(|planner, writes| {
                for part in runs(extent, 1) {
                    let source = node.children.iter().position(|&copy| planner.is_readable(copy, part));
                    for (position, &copy) in (0..).zip(&node.children) {
                        if planner.views.is_lost(copy) || planner.is_readable(copy, part) {
                            continue;
                        }
                        match source {
                            Some(_) => writes.push(whole.part(part.lba - extent.lba, position, part)),
                            None => {
                                planner.goes_without(copy, part);
                            }
                        }
                    }
                    reads.extend(source.map(|source| whole.part(part.lba - extent.lba, place(source), part)));
                }
                planner.hand_on(node, reads, false)?;
                planner.hand_on(node, writes, true)
            })
        })
    }

    fn choose(&self, planner: &mut Planner<'_>, node: &Node, extent: Extent) -> Result<u32, RequestError> {
        let balance = if self.striped { MdBalance::Near } else { MdBalance::Mirror };
        let (count, at) = (place(node.children.len()), |copy| (node.child(copy), extent));
        choose_copy(planner, node, extent, Candidates { count, at, balance })
    }
}
