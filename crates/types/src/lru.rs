//! Keys in the order of their last use.
//!
//! Purpose: what a cache holds, whatever it is a cache of: whether something has to be fetched follows from how much there
//! is room for and in which order it was used.
//!
//! Invariants: never more keys than there is room for; the one used longest ago goes first.

use std::collections::BTreeMap;

/// The keys that are there.
#[derive(Debug, Clone)]
pub struct Lru<K> {
    room: usize,
    /// By key, when it was used last; by that, the key.
    used: BTreeMap<K, u64>,
    order: BTreeMap<u64, K>,
    clock: u64,
}

impl<K: Ord + Copy> Lru<K> {
    /// Room for so many keys, and none there.
    pub fn new(room: u64) -> Lru<K> {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        Lru { room, used: BTreeMap::new(), order: BTreeMap::new(), clock: 0 }
    }

    /// Whether a key is there; that is no use of it.
    pub fn contains(&self, key: K) -> bool {
        self.used.contains_key(&key)
    }

    /// How many keys are there.
    pub fn count(&self) -> usize {
        self.used.len()
    }

    /// Uses a key, if it is there; whether it is.
    pub fn touch(&mut self, key: K) -> bool {
        let Some(last) = self.used.get_mut(&key) else { return false };
        self.order.remove(last);
        self.clock += 1;
        *last = self.clock;
        self.order.insert(self.clock, key);
        true
    }

    /// The key is there from now on, and just used.
    pub fn keep(&mut self, key: K) {
        if self.room == 0 || self.touch(key) {
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
        let mut cache = Lru::new(2);
        cache.keep(1);
        cache.keep(2);
        assert!(cache.touch(1));
        cache.keep(3);
        assert!(!cache.contains(2) && cache.touch(1) && cache.contains(3));
        cache.keep(3);
        assert!(cache.contains(1), "a key that is there drops no other");
        let mut none = Lru::new(0);
        none.keep(1);
        assert!(!none.contains(1));
    }
}
