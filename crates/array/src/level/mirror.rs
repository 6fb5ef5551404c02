//! RAID 1: a read goes to one copy, a write to all.

use super::{runs, Content, Level, Member, NodeLayout, Personality, Surroundings};
use crate::layout::{Node, NodeId};
use crate::machine::{LockMode, LockRange};
use crate::plan::{narrow, place, ComputeKind, PlanResult, Planner, Space, Transfer, NONE};
use crate::policy::MirrorRead;
use crate::weakness::Weakness;
use raidlab_types::{Extent, LeafId, RequestError};

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

    fn for_each_share(&self, node: &Node, extent: Extent, mut visit: impl FnMut(NodeId, Extent)) {
        node.children.iter().for_each(|&copy| visit(copy, extent));
    }

    fn read(&self, planner: &mut Planner<'_>, node: &Node, transfers: &[Transfer]) -> PlanResult {
        if planner.bad.is_empty() && !planner.views.is_partial(node.id) {
            // One copy for all that lies together.
            let copy = choose_copy(planner, node, transfers[0].extent(), self.striped)?;
            return planner.plan_node(node.child(copy), transfers, false);
        }
        planner.with_transfers(|planner, chosen| {
            for transfer in transfers {
                let child = choose_copy(planner, node, transfer.extent(), self.striped)?;
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
        for stripe in extent.lba / self.lock_sectors..=(extent.end() - 1) / self.lock_sectors {
            let start = stripe * self.lock_sectors;
            let lo = extent.lba.max(start) - start;
            let hi = extent.end().min(start + self.lock_sectors) - start;
            out.push(LockRange { node: node.id, stripe, lo, hi, shared: mode.is_shared() });
        }
        true
    }
}

/// How the copies of a mirror stand for a read.
struct Ranking {
    /// Fewest operations in flight, and whose.
    shortest: (u32, u32),
    longest: u32,
    /// Shortest distance and then fewest operations in flight, and whose.
    nearest: ((u64, u32), u32),
}

fn choose_copy(planner: &mut Planner<'_>, node: &Node, extent: Extent, striped: bool) -> Result<u32, RequestError> {
    let clean = planner.bad.is_empty() && !planner.views.is_degraded(node.id);
    let stale = planner.views.is_weak(Weakness::MirrorReadsStaleCopy);
    let written = |p: &Planner<'_>, i: u32| stale && !p.views.is_lost(node.child(i));
    let usable = |p: &Planner<'_>, i: u32| clean || written(p, i) || p.is_readable(node.child(i), extent);
    let n = place(node.children.len());
    let Some(first) = (0..n).find(|&i| usable(planner, i)) else {
        return Err(RequestError::BeyondTolerance { node: node.id, extent: Some(extent) });
    };
    Ok(match planner.policy.mirror_read {
        MirrorRead::Primary => first,
        MirrorRead::RoundRobin => in_turn(planner, node, usable).unwrap_or(first),
        MirrorRead::RoundRobinSequential => match rank(planner, node, extent, first, usable).nearest {
            ((0, _), copy) => copy,
            _ => in_turn(planner, node, usable).unwrap_or(first),
        },
        MirrorRead::ShortestQueue => rank(planner, node, extent, first, usable).shortest.1,
        MirrorRead::Nearest { queue_override } => {
            let found = rank(planner, node, extent, first, usable);
            match queue_override {
                Some(limit) if found.longest - found.shortest.0 > limit => found.shortest.1,
                _ => found.nearest.1,
            }
        }
        MirrorRead::Md { rotating } => {
            let copy = as_md(planner, node, extent, (striped, rotating), usable).unwrap_or(first);
            let (leaf, _) = first_member(planner, node.child(copy), extent.lba);
            planner.note_read(node.child(copy), extent.end(), leaf);
            copy
        }
    })
}

/// The copy that md reads (`choose_best_rdev` of its raid1.c, `read_balance` of its raid10.c, Linux 6.12).
#[inline(never)]
fn as_md(
    planner: &Planner<'_>,
    node: &Node,
    extent: Extent,
    (striped, rotating): (bool, bool),
    usable: impl Fn(&Planner<'_>, u32) -> bool,
) -> Option<u32> {
    let (mut fewest, mut nearest) = (None, None);
    for copy in (0..place(node.children.len())).filter(|&i| usable(planner, i)) {
        if !striped && planner.read_end(node.child(copy)) == extent.lba {
            return Some(copy);
        }
        let (leaf, lba) = first_member(planner, node.child(copy), extent.lba);
        let pending = planner.pending(leaf);
        // An idle disk is as near as can be on RAID 10, and decides all on RAID 1.
        let distance = if pending == 0 { 0 } else { planner.views.leaf(leaf).end_lba.abs_diff(lba) };
        if fewest.is_none_or(|(least, _)| pending < least) {
            fewest = Some((pending, copy));
        }
        if nearest.is_none_or(|(least, _)| distance < least) {
            nearest = Some((distance, copy));
        }
    }
    match (fewest, nearest) {
        (Some((pending, copy)), _) if !rotating || pending == 0 => Some(copy),
        (_, nearest) => nearest.map(|(_, copy)| copy),
    }
}

/// The next copy in turn that is usable.
fn in_turn(planner: &mut Planner<'_>, node: &Node, usable: impl Fn(&Planner<'_>, u32) -> bool) -> Option<u32> {
    let n = place(node.children.len());
    let turn = planner.next_turn(node.id) % n;
    (turn..n).chain(0..turn).find(|&i| usable(planner, i))
}

/// Compares the usable copies from `first` on; of equals the first is taken.
fn rank(
    planner: &Planner<'_>,
    node: &Node,
    extent: Extent,
    first: u32,
    usable: impl Fn(&Planner<'_>, u32) -> bool,
) -> Ranking {
    let mut r = Ranking { shortest: (u32::MAX, first), longest: 0, nearest: ((u64::MAX, u32::MAX), first) };
    for i in (first..place(node.children.len())).filter(|&i| usable(planner, i)) {
        let (leaf, lba) = first_member(planner, node.child(i), extent.lba);
        let view = planner.views.leaf(leaf);
        let (queue, distance) = (view.in_flight, view.end_lba.abs_diff(lba));
        r.longest = r.longest.max(queue);
        if queue < r.shortest.0 {
            r.shortest = (queue, i);
        }
        if (distance, queue) < r.nearest.0 {
            r.nearest = ((distance, queue), i);
        }
    }
    r
}

/// The member on which an access to `lba` of `id` begins, and the sector there.
fn first_member(planner: &Planner<'_>, mut id: NodeId, mut lba: u64) -> (LeafId, u64) {
    loop {
        let node = planner.layout.node(id);
        if let Level::Member(Member { leaf }) = node.level {
            return (leaf, lba + planner.layout.data_offset(leaf));
        }
        (id, lba) = node.locate(lba).expect("every sector of a node lies on a child");
    }
}
