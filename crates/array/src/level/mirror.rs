//! RAID 1: a read goes to one copy, a write to all.

use crate::layout::{Level, NodeId};
use crate::plan::{Planned, Planner};
use crate::policy::{MemberView, MirrorRead};
use raidlab_types::{Extent, RequestError};
use std::ops::Range;

/// How the copies of a mirror stand for a read.
struct Ranking {
    /// Fewest operations in flight, and whose.
    shortest: (u32, u32),
    longest: u32,
    /// Shortest distance and then fewest operations in flight, and whose.
    nearest: ((u64, u32), u32),
}

impl Planner<'_> {
    pub(crate) fn mirror_read(&mut self, node: NodeId, range: Range<usize>) -> Planned {
        let layout = self.layout;
        let children = &layout.node(node).children;
        let base = self.scratch.segs.len();
        // One copy for all that lies together; after a media error, each seg finds its own.
        let together = self.bad.is_empty();
        let first = self.scratch.segs[range.start];
        let mut choice = self.choose_copy(node, children, first.extent())?;
        for i in range {
            let seg = self.scratch.segs[i];
            if !together {
                choice = self.choose_copy(node, children, seg.extent())?;
            }
            self.scratch.segs.push(seg.part(0, seg.sectors as u64, choice, seg.lba));
        }
        self.distribute(node, base, false)
    }

    pub(crate) fn mirror_write(&mut self, node: NodeId, range: Range<usize>) -> Planned {
        let layout = self.layout;
        for &child in layout.node(node).children.iter() {
            if !self.views.is_lost(child) {
                self.write(child, range.clone())?;
            }
        }
        Ok(())
    }

    fn choose_copy(&mut self, node: NodeId, children: &[NodeId], extent: Extent) -> Result<u32, RequestError> {
        let clean = self.bad.is_empty() && !self.views.is_degraded(node);
        let usable = |p: &Self, i: u32| clean || p.readable(children[i as usize], extent);
        let n = children.len() as u32;
        let Some(first) = (0..n).find(|&i| usable(self, i)) else {
            return Err(RequestError::BeyondTolerance { node, extent: Some(extent) });
        };
        Ok(match self.policy.mirror_read {
            MirrorRead::Primary => first,
            MirrorRead::RoundRobin => self.in_turn(node, n, usable).unwrap_or(first),
            MirrorRead::RoundRobinSequential => match self.rank(children, extent, first, usable).nearest {
                ((0, _), copy) => copy,
                _ => self.in_turn(node, n, usable).unwrap_or(first),
            },
            MirrorRead::ShortestQueue => self.rank(children, extent, first, usable).shortest.1,
            MirrorRead::Nearest { queue_override } => {
                let found = self.rank(children, extent, first, usable);
                match queue_override {
                    Some(limit) if found.longest - found.shortest.0 > limit => found.shortest.1,
                    _ => found.nearest.1,
                }
            }
        })
    }

    /// The next of `n` copies that is usable.
    fn in_turn(&mut self, node: NodeId, n: u32, usable: impl Fn(&Self, u32) -> bool) -> Option<u32> {
        let turn = self.next_turn(node) % n;
        (turn..n).chain(0..turn).find(|&i| usable(self, i))
    }

    /// Compares the usable copies from `first` on; of equals the first is taken.
    fn rank(&self, children: &[NodeId], extent: Extent, first: u32, usable: impl Fn(&Self, u32) -> bool) -> Ranking {
        let mut r = Ranking { shortest: (u32::MAX, first), longest: 0, nearest: ((u64::MAX, u32::MAX), first) };
        for i in (first..children.len() as u32).filter(|&i| usable(self, i)) {
            let (view, lba) = self.first_member(children[i as usize], extent.lba);
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

    /// The member on which an access to `lba` of `node` begins, and the sector there.
    fn first_member(&self, mut node: NodeId, mut lba: u64) -> (&MemberView, u64) {
        loop {
            let n = self.layout.node(node);
            let position = match &n.level {
                Level::Leaf { leaf } => {
                    let offset = self.layout.leaves[*leaf as usize].data_offset;
                    return (self.views.leaf(*leaf), lba + offset);
                }
                Level::Independent | Level::Mirror { .. } => 0,
                Level::Concat { starts } => {
                    let child = starts.partition_point(|&s| s <= lba) - 1;
                    lba -= starts[child];
                    child as u32
                }
                Level::Stripe { chunk } => {
                    let children = n.children.len() as u64;
                    let index = lba / chunk;
                    lba = index / children * chunk + lba % chunk;
                    (index % children) as u32
                }
                Level::Parity(p) => {
                    let (row, column) = (lba / p.chunk / p.data() as u64, (lba / p.chunk % p.data() as u64) as u32);
                    lba = row * p.chunk + lba % p.chunk;
                    p.position_of(p.p_position(row), column)
                }
            };
            node = n.children[position as usize];
        }
    }
}
