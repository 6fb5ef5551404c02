//! The blocks of inodes that a host keeps in memory.
//!
//! Purpose: whether an inode has to be read follows from how many blocks there is room for and in which order they were used,
//! not from a chance somebody has chosen. Indirect blocks are not among them: each leads to the blocks of one file, so that
//! nobody would find it again before it is dropped.
//!
//! Invariants: never more blocks than there is room for; the one used longest ago goes first.

use std::collections::BTreeMap;

/// A block: volume and sector.
pub(super) type BlockKey = (u32, u64);

/// Blocks in the order of their last use.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockCache {
    room: usize,
    /// By block, when it was used last; by that, the block.
    used: BTreeMap<BlockKey, u64>,
    order: BTreeMap<u64, BlockKey>,
    clock: u64,
}

impl BlockCache {
    pub(super) fn new(room: u64) -> BlockCache {
        BlockCache { room: usize::try_from(room).unwrap_or(usize::MAX), ..BlockCache::default() }
    }

    /// Whether the block is there; if so, it is used now.
    pub(super) fn find(&mut self, key: BlockKey) -> bool {
        let Some(last) = self.used.get_mut(&key) else { return false };
        self.order.remove(last);
        self.clock += 1;
        *last = self.clock;
        self.order.insert(self.clock, key);
        true
    }

    /// The block is there from now on.
    pub(super) fn keep(&mut self, key: BlockKey) {
        if self.room == 0 || self.find(key) {
            return;
        }
        if self.used.len() == self.room {
            if let Some((_, oldest)) = self.order.pop_first() {
                self.used.remove(&oldest);
            }
        }
        self.clock += 1;
        self.used.insert(key, self.clock);
        self.order.insert(self.clock, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let mut cache = BlockCache::new(2);
        cache.keep((0, 1));
        cache.keep((0, 2));
        assert!(cache.find((0, 1)));
        cache.keep((1, 1));
        assert!(!cache.find((0, 2)) && cache.find((0, 1)) && cache.find((1, 1)));
        cache.keep((1, 1));
        assert!(cache.find((0, 1)), "a block that is there drops no other");
        let mut none = BlockCache::new(0);
        none.keep((0, 1));
        assert!(!none.find((0, 1)));
    }
}
