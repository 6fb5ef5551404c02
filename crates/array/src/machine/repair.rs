//! What a read could not read, and the others gave back, is written anew.
//!
//! The client has its answer already. A repair is a unit of a scrub by itself, of the lowest node that has redundancy: a
//! window with the locks of a write, planned with the bad sectors known. Where its write fails, the member goes, as with any
//! write.
//!
//! Invariants: a repair writes nothing but what the rest of its node gives back under its locks; one that cannot be planned is
//! dropped, and whoever reads there again tries again.

use super::rebuild::{ancestors, collect_own, locked_above, measures};
use super::{Array, LockRange, Owner};
use crate::layout::{Layout, NodeId};
use crate::level::{for_level, Personality};
use crate::plan::BadExtent;
use raidlab_types::number::lcm;
use raidlab_types::Extent;

/// Repairs in flight; what is found meanwhile is left to who reads it next.
const MOST_REPAIRS: u32 = 8;

/// The lowest node above a member that has redundancy, and what the sectors of the member are of its children.
fn protected_by(layout: &Layout, bad: BadExtent) -> Option<(NodeId, Extent)> {
    let mut part = bad.extent;
    for (id, position) in ancestors(layout, bad.leaf) {
        let node = layout.node(id);
        if node.bears > 0 {
            return Some((id, part));
        }
        part = for_level!(node, level => level.covering(node, position, part));
    }
    None
}

impl Array {
    /// Begins to write anew what the window of a read found unreadable. While members are rebuilt nothing is: what the new
    /// ones hold is not sure yet.
    #[cold]
    pub(super) fn repair(&mut self, id: u32) {
        if !self.policy.read_error_repair || self.is_rebuilding() {
            return;
        }
        for number in 0..self.windows[id as usize].bad.len() {
            let bad = self.windows[id as usize].bad[number];
            if !self.views.leaf(bad.leaf).writes() {
                continue;
            }
            let Some((node, part)) = protected_by(&self.layout, bad) else { continue };
            let (end, unit) = measures(&self.layout, self.layout.node(node), None);
            let step = self.whole_of(node);
            let (mut next, last) = (part.lba / step * step, part.end().next_multiple_of(step).min(end));
            // A unit lies within a stripe.
            while next < last && self.repairs_in_flight < MOST_REPAIRS {
                let extent = Extent::new(next, (next / unit * unit + unit).min(last) - next);
                next = extent.end();
                self.begin_repair(node, extent, bad);
            }
        }
    }

    /// Sectors of a node's children that are written as one: rows, and whole stripes where parity lies below.
    fn whole_of(&self, node: NodeId) -> u64 {
        let node = self.layout.node(node);
        let below = if node.stripe_locks_below { &node.children[..] } else { &[] };
        below.iter().map(|&child| self.layout.node(child).alignment).fold(self.row_sectors, lcm)
    }

    fn begin_repair(&mut self, node: NodeId, extent: Extent, bad: BadExtent) {
        self.repairs_in_flight += 1;
        let window = self.new_window(Owner::Repair(node), extent);
        let repair = &mut self.windows[window as usize];
        repair.wrong.clear();
        repair.mends = false;
        repair.bad.push(bad);
        self.lock(window);
    }

    /// The locks of a repair.
    pub(super) fn collect_repair(&self, node: NodeId, extent: Extent, out: &mut Vec<LockRange>) {
        let above = locked_above(&self.layout, node);
        collect_own(&self.layout, (node, &above), (None, extent), self.row_sectors, out);
    }

    /// A repair is over, or could not be.
    pub(super) fn end_repair(&mut self) {
        self.repairs_in_flight -= 1;
    }

    /// Sectors that could not be read, and were written anew because a client had read them.
    pub fn repaired_sectors(&self) -> u64 {
        self.repaired_sectors
    }
}
