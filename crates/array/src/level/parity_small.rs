//! The small write of RAID 5 and RAID 6, without the general machinery: a read-modify-write within one chunk.
//!
//! Purpose: this is the request that studies of parity run by the hundred million, and its plan is always the same: read
//! old data and old parity, compute, write both. Made directly it costs a third of what bands and columns cost.
//!
//! Invariant: the plan is the very one that [`Planner::general_write`] makes, node for node (a test compares them); where
//! anything is out of the ordinary, the general way is taken.

use super::parity::Row;
use crate::layout::{Level, NodeId, ParityLayout};
use crate::plan::{Input, Piece, Planner, Seg, Space, NONE};
use raidlab_types::{Extent, OpKind};

/// The member with the data, then P, then Q.
#[derive(Clone, Copy, Default)]
struct Part {
    position: u32,
    leaf: u32,
    /// Where the old content lies in scratch, and the new parity after it.
    scratch: u32,
    read: u32,
}

/// Indices of the first `1 + parities` parts by position.
#[inline]
fn order(parts: &[Part; 3], parities: usize) -> [usize; 3] {
    let at = |k: usize| parts[k].position;
    let (first, second) = if at(0) < at(1) { (0, 1) } else { (1, 0) };
    match parities {
        1 => [first, second, 2],
        _ if at(2) < at(first) => [2, first, second],
        _ if at(2) < at(second) => [first, 2, second],
        _ => [first, second, 2],
    }
}

impl Planner<'_> {
    /// Plans `seg` as one read-modify-write if it is one; `false`, and nothing planned, if it is not.
    pub(super) fn small_write(&mut self, node: NodeId, p: &ParityLayout, seg: Seg) -> bool {
        let index = seg.lba / p.chunk;
        let within = seg.lba - index * p.chunk;
        let (data, parities) = (p.data(), p.parities as usize);
        let in_a_chunk = within + seg.sectors as u64 <= p.chunk;
        let plain = !self.views.is_degraded(node) && self.bad.is_empty();
        let modify = data > 1 && self.policy.prefers_modify(1 + p.parities, data - 1);
        if !(in_a_chunk && plain && modify) {
            return false;
        }
        let (row, column) = (index / data as u64, (index % data as u64) as u32);
        let row = Row::new(*p, row);
        let Some(mut parts) = self.small_parts(node, &row, column) else { return false };
        let compute = self.compute(row.compute_kind());
        let sectors = seg.sectors;
        parts[..=parities].iter_mut().for_each(|part| part.scratch = self.allocate(sectors as u64));
        self.small_compute(&row, column, &seg, &parts[..=parities], compute);
        let extent = Extent::new(row.row * p.chunk + within, sectors as u64);
        // Members in order, as the general way visits them.
        let order = order(&parts, parities);
        for &k in &order[..=parities] {
            let piece = Piece { space: Space::Scratch, offset: parts[k].scratch, sectors };
            parts[k].read = self.leaf_operation(parts[k].leaf, OpKind::Read, extent, piece, NONE);
            self.edge(parts[k].read, compute);
        }
        for &k in &order[..=parities] {
            let part = parts[k];
            let (space, offset, link) = match k {
                0 => (seg.space, seg.offset, seg.link),
                _ => (Space::Scratch, part.scratch, compute),
            };
            let piece = Piece { space, offset, sectors };
            let write = self.leaf_operation(part.leaf, OpKind::Write, extent, piece, part.read);
            self.pair_read(part.read, write);
            if link != NONE {
                self.edge(link, write);
            }
        }
        true
    }

    /// The members concerned, if all are leaves.
    fn small_parts(&self, node: NodeId, row: &Row, column: u32) -> Option<[Part; 3]> {
        let children = &self.layout.node(node).children;
        let positions = [row.position(column), row.p, row.parity_position(1)];
        let mut parts = [Part::default(); 3];
        for (part, position) in parts.iter_mut().zip(positions).take(1 + row.layout.parities as usize) {
            let Level::Leaf { leaf } = self.layout.node(children[position as usize]).level else { return None };
            (part.position, part.leaf) = (position, leaf);
        }
        Some(parts)
    }

    /// Old data, new data and old parities in; new parities out, in the memory of the old.
    fn small_compute(&mut self, row: &Row, column: u32, seg: &Seg, parts: &[Part], compute: u32) {
        let coefficients = [1, row.q_coefficient(column)];
        let scratch = |offset, coefficients| Input { space: Space::Scratch, offset, coefficients };
        self.scratch.inputs.push(scratch(parts[0].scratch, coefficients));
        self.scratch.inputs.push(Input { space: seg.space, offset: seg.offset, coefficients });
        let mut outputs = [None; 2];
        for (k, part) in parts[1..].iter().enumerate() {
            self.scratch.inputs.push(scratch(part.scratch, if k == 0 { [1, 0] } else { [0, 1] }));
            outputs[k] = Some((Space::Scratch, part.scratch));
        }
        self.segment(compute, seg.sectors as u64, outputs);
        if seg.link != NONE {
            self.edge(seg.link, compute);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::layout::Layout;
    use crate::plan::{MemberViews, Plan, Planner, Scratch, Seg, Space, NONE};
    use crate::{ParityWrite, Policy, Rotation, Tree};

    /// The plan of a write of `seg`, made the one way or the other; `None` where the small way declines.
    fn plan(layout: &Layout, policy: &Policy, seg: Seg, small: bool) -> Option<Plan> {
        let (views, mut scratch, mut plan) = (MemberViews::new(layout), Scratch::default(), Plan::default());
        let mut planner = Planner { layout, views: &views, policy, bad: &[], scratch: &mut scratch, plan: &mut plan };
        let crate::layout::Level::Parity(p) = layout.node(0).level else { panic!("a parity tree") };
        planner.scratch.segs.push(seg);
        let planned = match small {
            true => planner.small_write(0, &p, seg),
            false => planner.general_write(0, p, 0..1).is_ok(),
        };
        planned.then_some(plan)
    }

    #[test]
    fn the_same_plan_either_way() {
        let mut compared = 0;
        for rotation in Rotation::ALL {
            for (parities, members) in [(1, 3), (1, 5), (2, 5), (2, 7)] {
                let tree = Tree::parity(parities, members, 4, rotation);
                let layout = Layout::new(&tree, &vec![4 * 2 * members as u64; members], 1).unwrap();
                for tie in [ParityWrite::ReadModifyWrite, ParityWrite::ReconstructWrite] {
                    let policy = Policy { parity_write_tie: tie, ..Policy::default() };
                    for lba in 0..layout.user_sectors() - 4 {
                        for sectors in 1..=4 {
                            let seg = Seg { child: 0, lba, sectors, space: Space::User, offset: 3, link: NONE };
                            let Some(small) = plan(&layout, &policy, seg, true) else { continue };
                            let general = plan(&layout, &policy, seg, false).unwrap();
                            // Debug output shows every field but the order in which edges were added.
                            assert_eq!(small.to_string(), general.to_string(), "{tree:?} {seg:?}");
                            assert_eq!((small.reads(), small.writes()), (general.reads(), general.writes()));
                            assert_eq!(small.scratch_sectors(), general.scratch_sectors());
                            for i in 0..small.len() {
                                assert_eq!(small.pending(i), general.pending(i));
                                assert_eq!(format!("{:?}", small.node(i)), format!("{:?}", general.node(i)));
                            }
                            compared += 1;
                        }
                    }
                }
            }
        }
        assert!(compared > 1000, "{compared}");
    }
}
