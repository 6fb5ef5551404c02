//! Which copy serves a read, by the policy: for every level that keeps copies.

use super::{Level, Member};
use crate::layout::{Node, NodeId};
use crate::plan::Planner;
use crate::policy::MirrorRead;
use crate::weakness::Weakness;
use raidlab_types::{Extent, LeafId, RequestError};

/// What md goes by between copies that are as good as each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MdBalance {
    /// RAID 1: a disk that goes on where it read last comes first.
    Mirror,
    /// RAID 10, copies side by side: each chunk by itself.
    Near,
    /// RAID 10, copies far or offset: of members that rotate always the lowest address, where the disk is fastest.
    Far,
}

/// The copies of what is to be read.
#[derive(Clone, Copy)]
pub(super) struct Candidates<At> {
    pub count: u32,
    /// The child that holds copy number so and so, and the sectors there.
    pub at: At,
    pub balance: MdBalance,
}

/// How the copies stand for a read.
struct Ranking {
    /// Fewest operations in flight, and whose.
    shortest: (u32, u32),
    longest: u32,
    /// Shortest distance and then fewest operations in flight, and whose.
    nearest: ((u64, u32), u32),
}

/// The copy that serves the read of `extent` of `node`.
pub(super) fn choose_copy(
    planner: &mut Planner<'_>,
    node: &Node,
    extent: Extent,
    copies: Candidates<impl Fn(u32) -> (NodeId, Extent)>,
) -> Result<u32, RequestError> {
    let clean = planner.bad.is_empty() && !planner.views.is_degraded(node.id);
    let stale = planner.views.is_weak(Weakness::MirrorReadsStaleCopy);
    let usable = |p: &Planner<'_>, copy: u32| {
        clean || {
            let (child, part) = (copies.at)(copy);
            (stale && !p.views.is_lost(child)) || p.is_readable(child, part)
        }
    };
    let n = copies.count;
    let Some(first) = (0..n).find(|&i| usable(planner, i)) else {
        return Err(RequestError::BeyondTolerance { node: node.id, extent: Some(extent) });
    };
    Ok(match planner.policy.mirror_read {
        MirrorRead::Primary => first,
        MirrorRead::RoundRobin => in_turn(planner, node, n, usable).unwrap_or(first),
        MirrorRead::RoundRobinSequential => match rank(planner, &copies, first, usable).nearest {
            ((0, _), copy) => copy,
            _ => in_turn(planner, node, n, usable).unwrap_or(first),
        },
        MirrorRead::ShortestQueue => rank(planner, &copies, first, usable).shortest.1,
        MirrorRead::Nearest { queue_override } => {
            let found = rank(planner, &copies, first, usable);
            match queue_override {
                Some(limit) if found.longest - found.shortest.0 > limit => found.shortest.1,
                _ => found.nearest.1,
            }
        }
        MirrorRead::Md { rotating } => {
            let copy = as_md(planner, &copies, rotating, usable).unwrap_or(first);
            let (child, part) = (copies.at)(copy);
            let (leaf, _) = first_member(planner, child, part.lba);
            planner.note_read(child, part.end(), leaf);
            copy
        }
    })
}

/// The copy that md reads (`choose_best_rdev` of its raid1.c, `read_balance` of its raid10.c, Linux 6.12).
#[inline(never)]
fn as_md(
    planner: &Planner<'_>,
    copies: &Candidates<impl Fn(u32) -> (NodeId, Extent)>,
    rotating: bool,
    usable: impl Fn(&Planner<'_>, u32) -> bool,
) -> Option<u32> {
    let (mut fewest, mut nearest) = (None, None);
    let far = copies.balance == MdBalance::Far;
    for copy in (0..copies.count).filter(|&i| usable(planner, i)) {
        let (child, part) = (copies.at)(copy);
        if copies.balance == MdBalance::Mirror && planner.read_end(child) == part.lba {
            return Some(copy);
        }
        let (leaf, lba) = first_member(planner, child, part.lba);
        let pending = planner.pending(leaf);
        let distance = match pending {
            _ if far => lba,
            // An idle disk is as near as can be on RAID 10, and decides all on RAID 1.
            0 => 0,
            _ => planner.views.leaf(leaf).end_lba.abs_diff(lba),
        };
        if fewest.is_none_or(|(least, _)| pending < least) {
            fewest = Some((pending, copy));
        }
        if nearest.is_none_or(|(least, _)| distance < least) {
            nearest = Some((distance, copy));
        }
    }
    match (fewest, nearest) {
        (Some((pending, copy)), _) if !rotating || (pending == 0 && !far) => Some(copy),
        (_, nearest) => nearest.map(|(_, copy)| copy),
    }
}

/// The next copy in turn that is usable.
fn in_turn(planner: &mut Planner<'_>, node: &Node, n: u32, usable: impl Fn(&Planner<'_>, u32) -> bool) -> Option<u32> {
    let turn = planner.next_turn(node.id) % n;
    (turn..n).chain(0..turn).find(|&i| usable(planner, i))
}

/// Compares the usable copies from `first` on; of equals the first is taken.
fn rank(
    planner: &Planner<'_>,
    copies: &Candidates<impl Fn(u32) -> (NodeId, Extent)>,
    first: u32,
    usable: impl Fn(&Planner<'_>, u32) -> bool,
) -> Ranking {
    let mut r = Ranking { shortest: (u32::MAX, first), longest: 0, nearest: ((u64::MAX, u32::MAX), first) };
    for i in (first..copies.count).filter(|&i| usable(planner, i)) {
        let (child, part) = (copies.at)(i);
        let (leaf, lba) = first_member(planner, child, part.lba);
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
