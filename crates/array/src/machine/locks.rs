//! Locks on stripes and mirrored ranges: all of a window's at once, first come first served per key.
//!
//! A key is (node, stripe); a lock covers a range within the chunk, shared or exclusive. A window queues for all its locks
//! in one step and starts when nothing older conflicts with any of them. Since the order of arrival is one order for all
//! keys, waiting cannot form a circle.
//!
//! Invariants: entries of a bucket are in order of arrival; `blockers` of a window is the number of older conflicting
//! entries over all its keys; the table allocates only while it grows, and grows with the most locks there ever were.

use crate::layout::{Layout, NodeId};
use crate::level::{for_level, Personality};
use crate::plan::{place, MemberViews, NONE};
use raidlab_types::number::usize_from;
use raidlab_types::Extent;
use slab::Slab;

const FIRST_BUCKETS: usize = 1024;

/// One range to lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockRange {
    pub node: NodeId,
    pub stripe: u64,
    pub lo: u64,
    pub hi: u64,
    pub shared: bool,
}

impl LockRange {
    fn conflicts(&self, other: &LockRange) -> bool {
        self.node == other.node
            && self.stripe == other.stripe
            && self.lo < other.hi
            && other.lo < self.hi
            && !(self.shared && other.shared)
    }

    fn hash(&self) -> u64 {
        self.stripe.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(self.node).wrapping_mul(0xD1B5_4A32_D192_ED03)
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    range: LockRange,
    owner: u32,
    next_in_bucket: u32,
    next_of_owner: u32,
}

/// The locks held and waited for.
#[derive(Debug)]
pub(crate) struct LockTable {
    heads: Vec<u32>,
    entries: Slab<Entry>,
}

impl LockTable {
    pub(super) fn new() -> Self {
        LockTable { heads: vec![NONE; FIRST_BUCKETS], entries: Slab::new() }
    }

    /// Whether nothing is locked or waited for.
    pub(super) fn is_empty(&self) -> bool {
        self.heads.iter().all(|&head| head == NONE)
    }

    /// Queues for `ranges`; returns the chain of entries and how many older ones stand in the way.
    pub(super) fn acquire(&mut self, owner: u32, ranges: &[LockRange]) -> (u32, u32) {
        let (mut chain, mut blockers) = (NONE, 0);
        for range in ranges {
            let entry = Entry { range: *range, owner, next_in_bucket: NONE, next_of_owner: chain };
            chain = self.insert(entry);
            let bucket = self.bucket(range);
            let (mut at, mut last) = (self.heads[bucket], NONE);
            while at != NONE {
                let other = &self.entries[at as usize];
                // Two ranges of one window never stand in each other's way.
                blockers += u32::from(other.owner != owner && other.range.conflicts(range));
                (last, at) = (at, other.next_in_bucket);
            }
            match last {
                NONE => self.heads[bucket] = chain,
                last => self.entries[last as usize].next_in_bucket = chain,
            }
        }
        (chain, blockers)
    }

    /// Drops a chain; calls `freed` with the owner of every entry that one of these stood in the way of.
    #[inline]
    pub(super) fn release(&mut self, chain: u32, mut freed: impl FnMut(u32)) {
        let mut at = chain;
        while at != NONE {
            let Entry { range, owner, next_in_bucket, next_of_owner } = self.entries.remove(at as usize);
            let bucket = self.bucket(&range);
            if self.heads[bucket] == at {
                self.heads[bucket] = next_in_bucket;
            } else {
                let mut before = self.heads[bucket];
                while self.entries[before as usize].next_in_bucket != at {
                    before = self.entries[before as usize].next_in_bucket;
                }
                self.entries[before as usize].next_in_bucket = next_in_bucket;
            }
            let mut later = next_in_bucket;
            while later != NONE {
                let other = &self.entries[later as usize];
                if other.owner != owner && other.range.conflicts(&range) {
                    freed(other.owner);
                }
                later = other.next_in_bucket;
            }
            at = next_of_owner;
        }
    }

    fn bucket(&self, range: &LockRange) -> usize {
        // The upper half of the product is the well mixed one.
        usize_from(range.hash() >> 32) & (self.heads.len() - 1)
    }

    /// Doubles the buckets. Entries of one key stay in order, since all of them move from one bucket to one other.
    fn grow(&mut self) {
        let heads = std::mem::take(&mut self.heads);
        self.heads = vec![NONE; 2 * heads.len()];
        let mut last = vec![NONE; self.heads.len()];
        for mut at in heads {
            while at != NONE {
                let next = std::mem::replace(&mut self.entries[at as usize].next_in_bucket, NONE);
                let bucket = self.bucket(&self.entries[at as usize].range);
                match std::mem::replace(&mut last[bucket], at) {
                    NONE => self.heads[bucket] = at,
                    before => self.entries[before as usize].next_in_bucket = at,
                }
                at = next;
            }
        }
    }

    fn insert(&mut self, entry: Entry) -> u32 {
        if self.entries.len() >= 2 * self.heads.len() {
            self.grow();
        }
        place(self.entries.insert(entry))
    }
}

/// Which locks a window takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LockMode<'a> {
    /// A write: every parity stripe and mirrored range it touches, of stripes whole rows.
    Exclusive {
        /// Sectors of a row.
        row_sectors: u64,
    },
    /// A read after a media error: all that a write of the same sectors would take, since any stripe may have to be rebuilt
    /// and a write on its way to a mirror may be repairing the very sector.
    Shared,
    /// A read: the parity stripes of the nodes that have lost members.
    SharedIfDegraded(&'a MemberViews),
}

impl LockMode<'_> {
    pub(crate) fn is_shared(self) -> bool {
        !matches!(self, LockMode::Exclusive { .. })
    }
}

/// Collects the locks for `extent` of `node`. `covered`: a node above already locks these very addresses, so that a mirror
/// needs no lock of its own; a parity node does, since its stripes tie other addresses together.
pub(crate) fn collect(
    layout: &Layout,
    node: NodeId,
    extent: Extent,
    mode: LockMode<'_>,
    covered: bool,
    out: &mut Vec<LockRange>,
) {
    let node = layout.node(node);
    let covered = for_level!(node, level => level.lock(node, extent, mode, covered, out));
    let only_stripes = covered || matches!(mode, LockMode::SharedIfDegraded(_));
    if only_stripes && !node.stripe_locks_below {
        return;
    }
    let visit = |child, part| collect(layout, child, part, mode, covered, out);
    for_level!(node, level => level.for_each_share(node, extent, visit));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(stripe: u64, lo: u64, hi: u64, shared: bool) -> LockRange {
        LockRange { node: 0, stripe, lo, hi, shared }
    }

    #[test]
    fn first_come_first_served_and_shared_together() {
        let mut table = LockTable::new();
        let (a, blocked) = table.acquire(1, &[range(7, 0, 4, false)]);
        assert_eq!(blocked, 0);
        let (b, blocked) = table.acquire(2, &[range(7, 2, 6, true), range(9, 0, 1, true)]);
        assert_eq!(blocked, 1);
        // A disjoint range passes; a conflicting one waits for both older ones.
        let (c, blocked) = table.acquire(3, &[range(7, 6, 8, false)]);
        assert_eq!(blocked, 0);
        let (_, blocked) = table.acquire(4, &[range(7, 3, 4, false)]);
        assert_eq!(blocked, 2);
        let mut freed = Vec::new();
        table.release(a, |owner| freed.push(owner));
        assert_eq!(freed, [2, 4]);
        table.release(c, |owner| freed.push(owner));
        table.release(b, |owner| freed.push(owner));
        assert_eq!(freed, [2, 4, 4]);
    }

    #[test]
    fn growing_keeps_the_order_of_arrival() {
        let mut table = LockTable::new();
        let n = 5 * FIRST_BUCKETS as u64;
        let keys: Vec<_> = (0..n).map(|i| range(i / 4, 0, 1, false)).collect();
        let chains: Vec<_> = keys.iter().enumerate().map(|(i, key)| table.acquire(i as u32, &[*key])).collect();
        assert!(table.heads.len() > FIRST_BUCKETS);
        for (i, (chain, blockers)) in chains.into_iter().enumerate() {
            assert_eq!(blockers, i as u32 % 4, "those before it on its key");
            let mut freed = Vec::new();
            table.release(chain, |owner| freed.push(owner));
            let last = i as u32 / 4 * 4 + 3;
            assert_eq!(freed, (i as u32 + 1..=last).collect::<Vec<_>>());
        }
        assert!(table.is_empty());
    }
}
