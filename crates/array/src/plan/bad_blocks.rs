//! Sectors of members that hold nothing: what a rebuild could not have of the others.
//!
//! Invariants: extents of a member neither overlap nor touch, and lie in order; no member has more than 512 entries of at most
//! 512 sectors each, as in Linux md (`drivers/md/md.c`, `MAX_BADBLOCKS`).

use super::BadExtent;
use raidlab_types::{Extent, LeafId};

/// Entries that the list of a member has room for.
const MOST_ENTRIES: u64 = 512;
/// Sectors of the longest entry.
const ENTRY_SECTORS: u64 = 512;

/// The lists of all members.
#[derive(Debug, Clone, Default)]
pub struct BadBlocks {
    /// By member, then by sector.
    extents: Vec<BadExtent>,
}

/// Entries and sectors of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BadBlockCounts {
    /// Entries.
    pub entries: u64,
    /// Sectors that these are.
    pub sectors: u64,
}

impl BadBlocks {
    /// Whether no member has any.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// The extents of a member from the one on that ends behind `lba`.
    fn after(&self, leaf: LeafId, lba: u64) -> usize {
        self.extents.partition_point(|bad| (bad.leaf, bad.extent.end()) <= (leaf, lba))
    }

    /// Whether some of these sectors are in the member's list.
    pub fn overlap(&self, leaf: LeafId, extent: Extent) -> bool {
        let next = self.extents.get(self.after(leaf, extent.lba));
        next.is_some_and(|bad| bad.leaf == leaf && bad.extent.overlaps(extent))
    }

    /// Whether a member has any.
    pub fn has(&self, leaf: LeafId) -> bool {
        self.extents.get(self.after(leaf, 0)).is_some_and(|bad| bad.leaf == leaf)
    }

    /// How many a member has.
    pub fn counts(&self, leaf: LeafId) -> BadBlockCounts {
        let of_leaf = self.extents.iter().filter(|bad| bad.leaf == leaf).map(|bad| bad.extent.sectors);
        of_leaf.fold(BadBlockCounts::default(), |sum, sectors| BadBlockCounts {
            entries: sum.entries + sectors.div_ceil(ENTRY_SECTORS),
            sectors: sum.sectors + sectors,
        })
    }

    /// Puts sectors into the member's list; false where that has no room, and they are not in it then.
    pub(crate) fn add(&mut self, leaf: LeafId, extent: Extent) -> bool {
        let entries = self.counts(leaf).entries + extent.sectors.div_ceil(ENTRY_SECTORS);
        let (mut lo, mut hi) = (extent.lba, extent.end());
        // Those that it touches become one with it.
        let first = self.after(leaf, lo.saturating_sub(1));
        let touching = |bad: &&BadExtent| bad.leaf == leaf && bad.extent.lba <= hi;
        let last = first + self.extents[first..].iter().take_while(touching).count();
        if first == last && entries > MOST_ENTRIES {
            return false;
        }
        for bad in &self.extents[first..last] {
            (lo, hi) = (lo.min(bad.extent.lba), hi.max(bad.extent.end()));
        }
        self.extents.splice(first..last, [BadExtent { leaf, extent: Extent::new(lo, hi - lo) }]);
        true
    }

    /// Sectors of a member have been written: they hold something.
    pub(crate) fn remove(&mut self, leaf: LeafId, extent: Extent) {
        let first = self.after(leaf, extent.lba);
        let overlapping = |bad: &&BadExtent| bad.leaf == leaf && bad.extent.lba < extent.end();
        let last = first + self.extents[first..].iter().take_while(overlapping).count();
        if first == last {
            return;
        }
        let (lo, hi) = (self.extents[first].extent.lba, self.extents[last - 1].extent.end());
        let rest = [(lo, extent.lba), (extent.end(), hi)].into_iter().filter(|(lo, hi)| lo < hi);
        let rest = rest.map(|(lo, hi)| BadExtent { leaf, extent: Extent::new(lo, hi - lo) });
        self.extents.splice(first..last, rest);
    }

    /// The member is gone, and its list with it.
    pub(crate) fn forget(&mut self, leaf: LeafId) {
        self.extents.retain(|bad| bad.leaf != leaf);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_types::Seed;
    use std::collections::BTreeSet;

    #[test]
    fn a_list_holds_what_a_set_of_sectors_would() {
        let mut draws = Seed::new(1).draws();
        let (mut list, mut set) = (BadBlocks::default(), BTreeSet::new());
        for _ in 0..20_000 {
            let (leaf, lba) = (u32::try_from(draws.below(3)).unwrap(), draws.below(60));
            let extent = Extent::new(lba, 1 + draws.below(6));
            let all = (extent.lba..extent.end()).map(|lba| (leaf, lba));
            match draws.below(20) {
                0 => {
                    list.forget(leaf);
                    set.retain(|&(of, _)| of != leaf);
                }
                1..=9 => {
                    assert!(list.add(leaf, extent));
                    set.extend(all);
                }
                _ => {
                    list.remove(leaf, extent);
                    all.for_each(|one| {
                        set.remove(&one);
                    });
                }
            }
            for leaf in 0..3 {
                for lba in 0..70 {
                    assert_eq!(list.overlap(leaf, Extent::new(lba, 1)), set.contains(&(leaf, lba)), "{list:?}");
                }
                let of_leaf = set.iter().filter(|(of, _)| *of == leaf).count() as u64;
                assert_eq!(list.counts(leaf).sectors, of_leaf);
            }
            let touch = |pair: &[BadExtent]| pair[0].leaf == pair[1].leaf && pair[0].extent.end() >= pair[1].extent.lba;
            assert!(!list.extents.windows(2).any(touch), "{list:?}");
        }
    }

    #[test]
    fn a_full_list_takes_what_touches_and_nothing_else() {
        let mut list = BadBlocks::default();
        for number in 0..512 {
            assert!(list.add(0, Extent::new(2 * number, 1)));
        }
        assert!(!list.add(0, Extent::new(5000, 1)) && !list.overlap(0, Extent::new(5000, 1)));
        assert!(list.add(0, Extent::new(1, 1)) && list.add(1, Extent::new(5000, 1)));
        assert_eq!(list.counts(0), BadBlockCounts { entries: 511, sectors: 513 });
    }
}
