//! The small write of RAID 5 and RAID 6, without the general machinery: a read-modify-write within one chunk.
//!
//! Purpose: this is the request that studies of parity run by the hundred million, and its plan is always the same: read
//! old data and old parity, compute, write both. Made directly it costs a third of what bands and columns cost.
//!
//! Invariant: the plan is the very one that [`ParityLayout::general_write`] makes, node for node (a test compares them); where
//! anything is out of the ordinary, the general way is taken.

use super::{ParityLayout, Row};
use crate::layout::Node;
use crate::level::{Level, Member};
use crate::plan::{Piece, Planner, Space, Transfer, NONE};
use crate::weakness::Weakness;
use raidlab_types::number::u32_from;
use raidlab_types::{Extent, OpKind};

/// What happens to one member: the one with the data, then P, then Q.
#[derive(Clone, Copy, Default)]
struct Update {
    child: u32,
    /// The chunk's row on the child.
    row: u64,
    leaf: u32,
    /// Where the old content lies in scratch, and the new parity after it.
    scratch: u32,
    read: u32,
}

/// Indices of the first `1 + parities` updates by child.
#[inline]
fn order(updates: &[Update; 3], parities: usize) -> [usize; 3] {
    let at = |k: usize| updates[k].child;
    let (first, second) = if at(0) < at(1) { (0, 1) } else { (1, 0) };
    match parities {
        1 => [first, second, 2],
        _ if at(2) < at(first) => [2, first, second],
        _ if at(2) < at(second) => [first, 2, second],
        _ => [first, second, 2],
    }
}

impl ParityLayout {
    /// Plans `transfer` as one read-modify-write if it is one; `false`, and nothing planned, if it is not.
    pub(super) fn small_write(&self, planner: &mut Planner<'_>, node: &Node, transfer: &Transfer) -> bool {
        let index = transfer.lba / self.chunk;
        let within = transfer.lba - index * self.chunk;
        let (data, parities) = (self.data(), self.parities as usize);
        let in_a_chunk = within + u64::from(transfer.sectors) <= self.chunk;
        let plain = !planner.views.is_degraded(node.id) && planner.bad.is_empty();
        let modify = data > 1 && planner.policy.prefers_modify(1 + self.parities, data - 1);
        if !(in_a_chunk && plain && modify) {
            return false;
        }
        let (row, column) = (index / u64::from(data), u32_from(index % u64::from(data)));
        let row = Row::new(self, row);
        let Some(mut updates) = small_updates(planner, node, &row, column) else { return false };
        let compute = planner.compute(row.compute_kind());
        let sectors = transfer.sectors;
        updates[..=parities].iter_mut().for_each(|update| update.scratch = planner.allocate(u64::from(sectors)));
        small_compute(planner, &row, column, transfer, &updates[..=parities], compute);
        let extent = |update: &Update| Extent::new(update.row * self.chunk + within, u64::from(sectors));
        // Members in order, as the general way visits them.
        let order = order(&updates, parities);
        for &k in &order[..=parities] {
            let piece = Piece { space: Space::Scratch, offset: updates[k].scratch, sectors };
            updates[k].read = planner.leaf_operation(updates[k].leaf, OpKind::Read, extent(&updates[k]), piece, NONE);
            planner.edge(updates[k].read, compute);
        }
        for &k in &order[..=parities] {
            if k == 2 && planner.views.is_weak(Weakness::SmallWriteSkipsQ) {
                continue;
            }
            let update = updates[k];
            let (space, offset, link) = match k {
                0 => (transfer.space, transfer.offset, transfer.link),
                _ => (Space::Scratch, update.scratch, compute),
            };
            let piece = Piece { space, offset, sectors };
            let write = planner.leaf_operation(update.leaf, OpKind::Write, extent(&update), piece, update.read);
            planner.pair_read(update.read, write);
            planner.follow_read(update.read, write);
            if link != NONE {
                planner.edge(link, write);
            }
        }
        true
    }
}

/// The members concerned, if all are leaves.
#[inline]
fn small_updates(planner: &Planner<'_>, node: &Node, row: &Row, column: u32) -> Option<[Update; 3]> {
    let positions = [row.position(column), row.p, row.parity_position(1)];
    let mut updates = [Update::default(); 3];
    for (update, position) in updates.iter_mut().zip(positions).take(1 + row.layout.parities as usize) {
        let (child, row) = row.layout.place(row.row, position);
        let Level::Member(Member { leaf }) = planner.layout.node(node.child(child)).level else { return None };
        (update.child, update.row, update.leaf) = (child, row, leaf);
    }
    Some(updates)
}

/// Old data, new data and old parities in; new parities out, in the memory of the old.
#[inline]
fn small_compute(
    planner: &mut Planner<'_>,
    row: &Row,
    column: u32,
    transfer: &Transfer,
    updates: &[Update],
    compute: u32,
) {
    let coefficients = [1, row.q_coefficient(column)];
    planner.input((Space::Scratch, updates[0].scratch), coefficients);
    planner.input((transfer.space, transfer.offset), coefficients);
    let mut outputs = [None; 2];
    for (k, update) in updates[1..].iter().enumerate() {
        let parity = (Space::Scratch, update.scratch);
        planner.input(parity, if k == 0 { [1, 0] } else { [0, 1] });
        outputs[k] = Some(parity);
    }
    planner.segment(compute, u64::from(transfer.sectors), outputs);
    if transfer.link != NONE {
        planner.edge(transfer.link, compute);
    }
}

#[cfg(test)]
mod tests {
    use crate::layout::Layout;
    use crate::level::Level;
    use crate::plan::{MemberViews, Plan, Planner, Scratch, Space, Transfer, NONE};
    use crate::{ParityWrite, Policy, Rotation, Tree, WriteAfter};

    /// The plan of a write, made the one way or the other; `None` where the small way declines.
    fn plan(layout: &Layout, policy: &Policy, transfer: Transfer, small: bool) -> Option<Plan> {
        let (views, mut scratch, mut plan) = (MemberViews::new(layout), Scratch::default(), Plan::default());
        let mut planner = Planner { layout, views: &views, policy, bad: &[], scratch: &mut scratch, plan: &mut plan };
        let node = layout.node(0);
        let Level::Parity(parity) = &node.level else { panic!("a parity tree") };
        let planned = match small {
            true => parity.small_write(&mut planner, node, &transfer),
            false => parity.general_write(&mut planner, node, &[transfer]).is_ok(),
        };
        planned.then_some(plan)
    }

    #[test]
    fn the_same_plan_either_way() {
        let mut compared = 0;
        let mut trees: Vec<Tree> = Rotation::ALL
            .into_iter()
            .flat_map(|rotation| {
                [(1, 3), (1, 5), (2, 5), (2, 7)].map(|(parities, n)| Tree::parity(parities, n, 4, rotation))
            })
            .collect();
        let spread = [(1, 3, 0), (1, 4, 0), (2, 4, 0), (1, 5, 1), (2, 4, 2)];
        trees.extend(spread.map(|(parities, width, spares)| Tree::Declustered {
            width,
            parities,
            spares,
            chunk_bytes: 4,
            children: vec![Tree::member(); 6],
        }));
        for tree in trees {
            let members = tree.leaves();
            let layout = Layout::new(&tree, &vec![4 * 2 * members as u64; members], 1).unwrap();
            for tie in [ParityWrite::ReadModifyWrite, ParityWrite::ReconstructWrite] {
                // With edges from reads to writes in one of the two.
                let write_after = match tie {
                    ParityWrite::ReadModifyWrite => WriteAfter::OwnRead,
                    _ => WriteAfter::AllReads,
                };
                let policy = Policy { parity_write_tie: tie, write_after, ..Policy::default() };
                for lba in 0..layout.user_sectors() - 4 {
                    for sectors in 1..=4 {
                        let transfer = Transfer { child: 0, lba, sectors, space: Space::User, offset: 3, link: NONE };
                        let Some(small) = plan(&layout, &policy, transfer, true) else { continue };
                        let general = plan(&layout, &policy, transfer, false).unwrap();
                        // Debug output shows every field but the order in which edges were added.
                        assert_eq!(small.to_string(), general.to_string(), "{tree:?} {transfer:?}");
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
        assert!(compared > 1000, "{compared}");
    }
}
