//! RAID 1: a read goes to one copy, a write to all.

use crate::layout::{Level, NodeId};
use crate::plan::{Planned, Planner};
use crate::policy::{MemberView, MirrorRead};
use raidlab_types::{Extent, RequestError};
use std::ops::Range;

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
        let choice = match self.policy.mirror_read {
            MirrorRead::Primary => first,
            MirrorRead::RoundRobin => {
                let turn = self.next_turn(node);
                (0..n).map(|k| turn.wrapping_add(k) % n).find(|&i| usable(self, i)).unwrap_or(first)
            }
            MirrorRead::ShortestQueue => {
                let queue = |i: u32| self.first_member(children[i as usize], extent.lba).0.in_flight;
                (first..n).filter(|&i| usable(self, i)).min_by_key(|&i| queue(i)).unwrap_or(first)
            }
            MirrorRead::Nearest { queue_override } => {
                let member = |i: u32| self.first_member(children[i as usize], extent.lba);
                let candidates = || (first..n).filter(|&i| usable(self, i));
                let queue = |i: u32| member(i).0.in_flight;
                let shortest = candidates().min_by_key(|&i| queue(i)).unwrap_or(first);
                let longest = candidates().map(queue).max().unwrap_or(0);
                match queue_override {
                    Some(limit) if longest - queue(shortest) > limit => shortest,
                    _ => {
                        let distance = |i: u32| {
                            let (view, lba) = member(i);
                            view.end_lba.abs_diff(lba)
                        };
                        candidates().min_by_key(|&i| (distance(i), queue(i))).unwrap_or(first)
                    }
                }
            }
        };
        Ok(choice)
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
