//! The event list: what happens next, with ties broken the same way on every machine.

use raidlab_types::Instant;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// The device of this leaf wants to be polled.
    Device(u32),
    /// A server of this station has finished this job.
    Station(u32, u32),
}

impl What {
    /// Order among events at the same time: devices by leaf, then stations.
    fn rank(self) -> u64 {
        match self {
            What::Device(leaf) => leaf as u64,
            What::Station(station, _) => (1 << 22) + station as u64,
        }
    }
}

/// An event: when, its place among ties, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub at: Instant,
    order: u64,
    pub what: What,
}

impl Ord for Event {
    /// The heap's greatest is the earliest.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Event {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The pending events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Event>,
    sequence: u64,
}

impl Events {
    #[inline]
    pub fn push(&mut self, at: Instant, what: What) {
        // 23 bits of rank, 41 of sequence: two trillion events before order among ties could wrap.
        let order = what.rank() << 41 | (self.sequence & ((1 << 41) - 1));
        self.sequence += 1;
        self.heap.push(Event { at, order, what });
    }

    #[inline]
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|e| e.at)
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Event> {
        self.heap.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_by_rank_then_sequence() {
        let mut events = Events::default();
        let at = Instant::from_ns(5);
        events.push(at, What::Station(0, 9));
        events.push(at, What::Device(3));
        events.push(at, What::Device(1));
        events.push(at, What::Station(0, 2));
        events.push(Instant::from_ns(4), What::Device(7));
        let order: Vec<What> = std::iter::from_fn(|| events.pop()).map(|e| e.what).collect();
        let expected = [What::Device(7), What::Device(1), What::Device(3), What::Station(0, 9), What::Station(0, 2)];
        assert_eq!(order, expected);
    }
}
