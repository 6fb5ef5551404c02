//! What waits, in order of address; of one address, in order of arrival.
//!
//! Invariant: taking and giving back allocates nothing once there has been room for as many. Keys are small and lie close
//! together: inserting one shifts a few cache lines at the depths that disks see.

use super::PendingOperation;
use raidlab_types::number::u32_from;
use slab::Slab;

/// An address, and where the rest of the operation lies.
#[derive(Debug, Clone, Copy)]
struct SortKey {
    lba: u64,
    slot: u32,
}

/// The operations that wait.
#[derive(Debug, Clone)]
pub(super) struct AddressOrder {
    keys: Vec<SortKey>,
    waiting: Slab<PendingOperation>,
}

impl Default for AddressOrder {
    fn default() -> Self {
        const ROOM: usize = 64;
        AddressOrder { keys: Vec::with_capacity(ROOM), waiting: Slab::with_capacity(ROOM) }
    }
}

impl AddressOrder {
    pub(super) fn push(&mut self, waiting: PendingOperation) {
        let lba = waiting.lba;
        let at = self.keys.partition_point(|other| other.lba <= lba);
        let slot = u32_from(self.waiting.insert(waiting));
        self.keys.insert(at, SortKey { lba, slot });
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The one at this place in the order.
    pub(super) fn get(&self, index: usize) -> &PendingOperation {
        &self.waiting[self.keys[index].slot as usize]
    }

    /// Takes out the one at this place in the order.
    pub(super) fn remove(&mut self, index: usize) -> PendingOperation {
        self.waiting.remove(self.keys.remove(index).slot as usize)
    }

    /// The place of the first whose address is `lba` or higher.
    pub(super) fn from(&self, lba: u64) -> Option<usize> {
        let index = self.keys.partition_point(|key| key.lba < lba);
        (index < self.keys.len()).then_some(index)
    }

    /// The place of the earliest of those with the highest address below `lba`.
    pub(super) fn below(&self, lba: u64) -> Option<usize> {
        let last = self.keys.partition_point(|key| key.lba < lba).checked_sub(1)?;
        let highest = self.keys[last].lba;
        Some(self.keys.partition_point(|key| key.lba < highest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::waiting_at;

    #[test]
    fn neighbours_and_order_of_arrival_at_one_address() {
        let mut sorted = AddressOrder::default();
        [(0, 50), (1, 20), (2, 50), (3, 20), (4, 80)]
            .into_iter()
            .for_each(|(id, lba)| sorted.push(waiting_at(id, lba)));
        let id = |sorted: &AddressOrder, index: Option<usize>| index.map(|index| sorted.get(index).id.0);
        assert_eq!(id(&sorted, sorted.from(21)), Some(0));
        assert_eq!(id(&sorted, sorted.from(20)), Some(1));
        assert_eq!(id(&sorted, sorted.below(80)), Some(0));
        assert_eq!(id(&sorted, sorted.below(50)), Some(1));
        assert_eq!((sorted.from(81), sorted.below(20)), (None, None));
        assert_eq!(sorted.remove(0).id.0, 1);
        assert_eq!(id(&sorted, sorted.below(50)), Some(3));
        sorted.push(waiting_at(5, 20));
        assert_eq!((sorted.len(), id(&sorted, sorted.from(0))), (5, Some(3)));
    }
}
