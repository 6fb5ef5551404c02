//! Writes that their reads have already paid for.
//!
//! A read of a prepaid pair leaves an entry under the name of its write. The write takes it out when it arrives; one
//! that never arrives (its plan was given up) leaves an entry behind, which the next pair of that name replaces or which
//! falls out when [`LIMIT`] younger pairs have been entered.
//!
//! Invariants: at most [`LIMIT`] entries; only a write that names the very read, of the very extent, finds one; an entry
//! that fell out costs its write a visit of its own, never an error.

// Looked up by name only, never walked, and with a hasher that has no seed.
#![allow(clippy::disallowed_types)]

use crate::service::Service;
use raidlab_types::{Instant, OpId};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Pairs remembered by one device: more than any queue a study has put on one disk.
const LIMIT: usize = 16_384;

/// What the device has spent on a write in advance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrepaidWrite {
    pub read: OpId,
    pub lba: u64,
    pub sectors: u64,
    /// When the read ended and the time for the write began.
    pub started: Instant,
    /// When the write is on the medium.
    pub ended: Instant,
    pub service: Service,
    /// Which entry of the order of age belongs to it.
    age: u64,
}

/// The entries, by name of the write, and their order of age.
#[derive(Debug, Clone, Default)]
pub(crate) struct PairLedger {
    by_write: HashMap<u64, PrepaidWrite, BuildHasherDefault<Mix>>,
    by_age: VecDeque<(u64, u64)>,
    entered: u64,
}

impl PairLedger {
    /// Remembers that `read` has paid for `write`.
    pub(crate) fn enter(&mut self, write: OpId, read: OpId, extent: (u64, u64), started: Instant, service: Service) {
        self.forget_oldest();
        self.entered += 1;
        let ended = started + raidlab_types::Duration::from_ns(service.total());
        let (lba, sectors) = extent;
        let entry = PrepaidWrite { read, lba, sectors, started, ended, service, age: self.entered };
        self.by_write.insert(write.0, entry);
        self.by_age.push_back((write.0, self.entered));
    }

    /// Takes out what was paid for this write by this read of this extent.
    pub(crate) fn take(&mut self, write: OpId, read: OpId, extent: (u64, u64)) -> Option<PrepaidWrite> {
        let entry = self.by_write.get(&write.0)?;
        if entry.read != read || (entry.lba, entry.sectors) != extent {
            return None;
        }
        self.by_write.remove(&write.0)
    }

    /// Drops what is spent from the old end, and the oldest live entry once there are too many.
    fn forget_oldest(&mut self) {
        while let Some(&(write, age)) = self.by_age.front() {
            let live = self.by_write.get(&write).is_some_and(|entry| entry.age == age);
            if live && self.by_age.len() < LIMIT {
                break;
            }
            if live {
                self.by_write.remove(&write);
            }
            self.by_age.pop_front();
        }
    }
}

/// A fixed hash, so that runs repeat; names are unique, not adversarial.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        // Fibonacci hashing with the high half folded down: the table takes its index from low bits.
        let product = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ (product >> 32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: (u64, u64) = (8, 2);

    fn enter(ledger: &mut PairLedger, write: u64, read: u64) {
        ledger.enter(OpId(write), OpId(read), EXTENT, Instant::ZERO, Service { transfer: 5, ..Service::default() });
    }

    #[test]
    fn only_the_write_of_that_very_pair_is_paid_for() {
        let mut ledger = PairLedger::default();
        enter(&mut ledger, 2, 1);
        assert!(ledger.take(OpId(3), OpId(1), EXTENT).is_none());
        assert!(ledger.take(OpId(2), OpId(9), EXTENT).is_none());
        assert!(ledger.take(OpId(2), OpId(1), (8, 3)).is_none());
        assert_eq!(ledger.take(OpId(2), OpId(1), EXTENT).unwrap().ended.as_ns(), 5);
        assert!(ledger.take(OpId(2), OpId(1), EXTENT).is_none(), "paid for once");
    }

    #[test]
    fn writes_that_never_come_are_forgotten_and_memory_is_bounded() {
        let mut ledger = PairLedger::default();
        for pair in 0..10 * LIMIT as u64 {
            enter(&mut ledger, 2 * pair + 1, 2 * pair);
        }
        assert!(ledger.by_write.len() <= LIMIT && ledger.by_age.len() <= LIMIT);
        assert!(ledger.take(OpId(1), OpId(0), EXTENT).is_none());
        let last = 10 * LIMIT as u64 - 1;
        assert!(ledger.take(OpId(2 * last + 1), OpId(2 * last), EXTENT).is_some());
    }

    #[test]
    fn one_lost_write_does_not_let_the_order_of_age_grow() {
        let mut ledger = PairLedger::default();
        enter(&mut ledger, 1, 0);
        for _ in 0..3 * LIMIT {
            enter(&mut ledger, 3, 2);
            ledger.take(OpId(3), OpId(2), EXTENT).unwrap();
        }
        assert!(ledger.by_age.len() <= LIMIT && ledger.by_write.len() <= 1);
    }
}
