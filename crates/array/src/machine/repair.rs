//! What a read could not read, and the others gave back, is written anew.
//!
//! The client has its answer already. A repair is a unit of a scrub by itself, of the lowest node that has redundancy: a
//! window with the locks of a write, planned with the bad sectors known. Where its write fails, the member goes, as with any
//! write.
//!
//! A member that has more read errors than the policy bears is taken out before that, where its level bears it, so that
//! nobody waits for ever for a disk that is dying. Reference: `check_decay_read_errors` and `exceed_read_errors` of
//! Linux 6.12, drivers/md/raid1-10.c, and `raid5_end_read_request` of raid5.c.
//!
//! Invariants: a repair writes nothing but what the rest of its node gives back under its locks; one that cannot be planned is
//! dropped, and whoever reads there again tries again.

use super::rebuild::{ancestors, collect_own, locked_above, measures};
use super::{Array, LockRange, Owner};
use crate::layout::{Layout, NodeId};
use crate::level::{for_level, Personality};
use crate::plan::{BadExtent, Body};
use crate::policy::Policy;
use crate::weakness::Weakness;
use raidlab_types::number::lcm;
use raidlab_types::{Duration, Extent, Instant, LeafId, OpKind};

/// Repairs in flight; what is found meanwhile is left to who reads it next.
const MOST_REPAIRS: u32 = 8;

/// For each of these without a read error, half of those before are forgotten.
const HALF_LIFE: Duration = Duration::from_ns(3_600_000_000_000);

/// How often a member could not be read.
#[derive(Debug)]
pub(super) struct ReadErrors {
    /// The lowest node above it that has redundancy.
    node: Option<NodeId>,
    /// Rows since a read that succeeded are counted, and not requests.
    by_rows: bool,
    /// How many are borne.
    most: u32,
    count: u32,
    last_at: Instant,
}

impl ReadErrors {
    /// Those of every member, where the policy limits them.
    pub(super) fn of_members(layout: &Layout, policy: &Policy) -> Vec<ReadErrors> {
        let Some(of_copies) = policy.max_read_errors else { return Vec::new() };
        let of = |leaf: LeafId| {
            let bears = |&(id, _): &(NodeId, u32)| layout.node(id).bears > 0;
            let node = ancestors(layout, leaf).into_iter().find(bears).map(|(id, _)| id);
            let has_parity = |id| for_level!(layout.node(id), level => level.locks_stripes());
            let by_rows = policy.keeps_rows() && node.is_some_and(has_parity);
            let most = if by_rows { policy.stripe_cache_size } else { of_copies };
            ReadErrors { node, by_rows, most, count: 0, last_at: Instant::ZERO }
        };
        (0..).take(layout.leaves()).map(of).collect()
    }

    /// One more, or so many rows.
    fn add(&mut self, now: Instant, rows: u64) {
        if self.by_rows {
            self.count = self.count.saturating_add(u32::try_from(rows).unwrap_or(u32::MAX));
            return;
        }
        let hours = now.since(self.last_at).as_ns() / HALF_LIFE.as_ns();
        let kept = u32::try_from(hours).ok().and_then(|hours| self.count.checked_shr(hours)).unwrap_or(0);
        (self.count, self.last_at) = (kept.saturating_add(1), now);
    }

    fn is_too_many(&self) -> bool {
        self.count > self.most
    }
}

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

    /// Counts a read of a window that a member could not serve; whether it is one too many, and the member is to go. Of
    /// copies only what clients meet counts, and what a window meets first of a member: it is read around what is bad
    /// then, and whatever else is found there md finds as it mends.
    pub(super) fn is_one_too_many(&mut self, id: u32, leaf: LeafId, extent: Extent) -> bool {
        let rows = extent.sectors.div_ceil(self.row_sectors);
        let is_first = {
            let window = &self.windows[id as usize];
            let of_leaf = |bad: &BadExtent| bad.leaf == leaf;
            matches!(window.owner, Owner::Client(_))
                && (window.run_sectors, window.second_looks) == (0, 0)
                && !window.bad.iter().any(of_leaf)
        };
        let Some(errors) = self.read_errors.get_mut(leaf as usize).filter(|errors| errors.by_rows || is_first) else {
            return false;
        };
        errors.add(self.now, rows);
        let node = errors.node.filter(|_| errors.is_too_many());
        node.is_some_and(|node| self.views.leaf(leaf).writes() && self.does_without(leaf, node))
    }

    /// Whether the node gives back all it should also without the member.
    fn does_without(&self, leaf: LeafId, node: NodeId) -> bool {
        !self.is_unsure_without(leaf, node) || self.views.is_weak(Weakness::ErrorsFailTheLast)
    }

    /// Whether it matters which operations members have served.
    #[inline]
    pub(super) fn heeds_what_is_served(&self) -> bool {
        !self.read_errors.is_empty() || !self.views.bad_blocks().is_empty()
    }

    /// A member has served an operation of a window.
    pub(super) fn note_served(&mut self, window: u32, node: u32) {
        let Body::Device { leaf, kind, extent, .. } = self.windows[window as usize].plan.nodes[node as usize].body
        else {
            return;
        };
        match kind {
            OpKind::Read => self.note_read(leaf),
            OpKind::Write if self.has_bad_block(leaf, extent) => {
                self.views.clear_bad_blocks(&self.layout, leaf, extent);
            }
            _ => {}
        }
    }

    /// A member has been read.
    #[inline]
    pub(super) fn note_read(&mut self, leaf: LeafId) {
        if let Some(errors) = self.read_errors.get_mut(leaf as usize).filter(|errors| errors.by_rows) {
            errors.count = 0;
        }
    }

    /// A repair has written what it was to. Md reads it back.
    pub(super) fn count_repaired(&mut self, id: u32) {
        self.repaired_sectors += self.windows[id as usize].bad_sectors();
        for number in 0..self.windows[id as usize].bad.len() {
            self.note_read(self.windows[id as usize].bad[number].leaf);
        }
    }

    /// Another member is in this place.
    pub(super) fn forget_read_errors(&mut self, leaf: LeafId) {
        if let Some(errors) = self.read_errors.get_mut(leaf as usize) {
            errors.count = 0;
        }
    }

    /// Whether a member has had more read errors than the policy bears.
    pub fn has_too_many_read_errors(&self, leaf: LeafId) -> bool {
        self.read_errors.get(leaf as usize).is_some_and(ReadErrors::is_too_many)
    }

    /// Whether a member may fail for its read errors.
    pub fn limits_read_errors(&self) -> bool {
        !self.read_errors.is_empty()
    }

    /// Sectors that could not be read, and were written anew because a client had read them.
    pub fn repaired_sectors(&self) -> u64 {
        self.repaired_sectors
    }
}
