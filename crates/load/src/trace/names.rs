//! The volumes of a trace: names become numbers, in order of first appearance.
//!
//! Purpose: a trace calls its volumes by name, a replay needs a number for each of millions of records. Names are few, and
//! most records are of a volume seen lately, so the last one is looked at first; the rest lie in an open-addressed table.
//!
//! Invariants: a name has one number for ever; numbers are dense from 0. The order is that of the trace, so nothing depends
//! on the table's own.

use raidlab_types::number::{u32_from, usize_from};

const EMPTY: u32 = u32::MAX;

/// The names met so far.
#[derive(Debug, Clone)]
pub struct Names {
    shown: Vec<String>,
    keys: Vec<Box<[u8]>>,
    /// Numbers by hash, at most half full.
    slots: Vec<u32>,
    last: u32,
}

impl Default for Names {
    fn default() -> Names {
        Names { shown: Vec::new(), keys: Vec::new(), slots: vec![EMPTY; 64], last: 0 }
    }
}

impl Names {
    /// The number of the volume that is called `key` in the trace; commas are shown as dots.
    #[inline]
    pub fn number(&mut self, key: &[u8]) -> u32 {
        if self.keys.get(self.last as usize).is_some_and(|last| **last == *key) {
            return self.last;
        }
        self.last = self.find(key);
        self.last
    }

    fn find(&mut self, key: &[u8]) -> u32 {
        let mut slot = self.slot_of(key);
        while self.slots[slot] != EMPTY {
            let number = self.slots[slot];
            if *self.keys[number as usize] == *key {
                return number;
            }
            slot = (slot + 1) % self.slots.len();
        }
        let number = u32_from(self.keys.len());
        self.slots[slot] = number;
        self.keys.push(key.into());
        self.shown.push(String::from_utf8_lossy(key).replace(',', "."));
        if self.keys.len() * 2 > self.slots.len() {
            self.grow();
        }
        number
    }

    #[cold]
    fn grow(&mut self) {
        self.slots = vec![EMPTY; self.slots.len() * 2];
        for number in 0..self.keys.len() {
            let mut slot = self.slot_of(&self.keys[number]);
            while self.slots[slot] != EMPTY {
                slot = (slot + 1) % self.slots.len();
            }
            self.slots[slot] = u32_from(number);
        }
    }

    /// Where a key is looked for first (FNV-1a, folded because its low bits are the weak ones).
    fn slot_of(&self, key: &[u8]) -> usize {
        let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = key.iter().fold(0xcbf2_9ce4_8422_2325, step);
        usize_from(hash ^ (hash >> 32)) % self.slots.len()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none yet.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The name of a number.
    ///
    /// # Panics
    /// Where no volume has that number.
    pub fn name(&self, number: u32) -> &str {
        &self.shown[number as usize]
    }

    /// All names, in order of first appearance.
    pub fn all(&self) -> &[String] {
        &self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_dense_and_stay() {
        let mut names = Names::default();
        for round in 0..2 {
            for volume in 0..1000u32 {
                assert_eq!(names.number(format!("host,{volume}").as_bytes()), volume, "round {round}");
            }
        }
        assert_eq!((names.len(), names.name(17)), (1000, "host.17"));
    }
}
