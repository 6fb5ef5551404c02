//! What happens next, with ties broken the same way on every machine.
//!
//! A device has at most one pending event, so devices are kept in a tournament: changing one costs a walk of log2(n)
//! comparisons, and nothing stale is ever left behind. Those at stations are many and never change: a binary
//! heap.
//!
//! Invariant: at the same time, devices go before stations, a lower leaf before a higher one (or, if asked for, the one set
//! first, as timers of one clock fire), and jobs in the order in which they were pushed.

use raidlab_types::number::u32_from;
use raidlab_types::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When each device wants to be polled, with the earliest at the root of a tournament.
#[derive(Debug)]
pub(crate) struct Timers {
    /// Padded with `Instant::MAX` to a power of two.
    due: Vec<Instant>,
    /// Which of equals goes first: all 0, or the order in which they were set.
    turns: Vec<u64>,
    /// The turn of what is set next; none where turns are of no account.
    next_turn: Option<u64>,
    /// `winners[1]` is the root; the children of `k` are `2k` and `2k + 1`; leaves stand behind, as `due`.
    winners: Vec<u32>,
}

impl Timers {
    /// `in_turn`: of devices that are due together, the one set first goes first.
    pub(crate) fn new(devices: usize, in_turn: bool) -> Self {
        let width = devices.next_power_of_two().max(2);
        let (due, turns, winners) = (vec![Instant::MAX; width], vec![0; width], vec![0; width]);
        let mut timers = Timers { due, turns, next_turn: in_turn.then_some(1), winners };
        (1..width).rev().for_each(|k| timers.winners[k] = timers.play(k));
        timers
    }

    #[inline]
    fn player(&self, k: usize) -> u32 {
        let width = self.due.len();
        if k >= width {
            u32_from(k - width)
        } else {
            self.winners[k]
        }
    }

    /// The earlier of the two below `k`; the left, which is the lower leaf, of equals.
    #[inline]
    fn play(&self, k: usize) -> u32 {
        let (left, right) = (self.player(2 * k), self.player(2 * k + 1));
        let rank = |leaf: u32| (self.due[leaf as usize], self.turns[leaf as usize]);
        if rank(right) < rank(left) {
            right
        } else {
            left
        }
    }

    /// Sets when a device wants to be polled; `Instant::MAX` for never.
    #[inline]
    pub(crate) fn set(&mut self, leaf: u32, at: Instant) {
        if self.due[leaf as usize] == at {
            return;
        }
        self.due[leaf as usize] = at;
        if let Some(turn) = &mut self.next_turn {
            self.turns[leaf as usize] = *turn;
            *turn += 1;
        }
        let mut k = (leaf as usize + self.due.len()) / 2;
        while k > 0 {
            self.winners[k] = self.play(k);
            k /= 2;
        }
    }

    /// The earliest, and which device it is.
    #[inline]
    pub(crate) fn first(&self) -> (Instant, u32) {
        let leaf = self.winners[1];
        (self.due[leaf as usize], leaf)
    }
}

/// The jobs in service at stations.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    heap: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    sequence: u64,
}

impl Jobs {
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, job: u32) {
        self.heap.push(Reverse((at, self.sequence, job)));
        self.sequence += 1;
    }

    #[inline]
    pub(crate) fn next_at(&self) -> Instant {
        self.heap.peek().map_or(Instant::MAX, |Reverse((at, ..))| *at)
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        self.heap.pop().map(|Reverse((.., job))| job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_types::Seed;

    #[test]
    fn the_tournament_agrees_with_a_search() {
        for devices in 1..=17 {
            let mut timers = Timers::new(devices, false);
            let mut due = vec![Instant::MAX; devices];
            let mut rng = Seed::new(devices as u64).draws();
            for _ in 0..500 {
                let leaf = rng.below(devices as u64) as usize;
                let at = if rng.below(4) == 0 { Instant::MAX } else { Instant::from_ns(rng.below(20)) };
                due[leaf] = at;
                timers.set(leaf as u32, at);
                let expected = (0..devices).min_by_key(|&l| (due[l], l)).unwrap();
                assert_eq!(timers.first().0, due[expected]);
                if due[expected] < Instant::MAX {
                    assert_eq!(timers.first().1, expected as u32);
                }
            }
        }
    }

    #[test]
    fn devices_that_are_due_together_go_in_turn() {
        let mut timers = Timers::new(5, true);
        let at = Instant::from_ns(7);
        [3, 0, 4].into_iter().for_each(|leaf| timers.set(leaf, at));
        let order: Vec<u32> = std::iter::from_fn(|| {
            let (due, leaf) = timers.first();
            timers.set(leaf, Instant::MAX);
            (due == at).then_some(leaf)
        })
        .collect();
        assert_eq!(order, [3, 0, 4]);
    }

    #[test]
    fn jobs_that_end_together_keep_their_order() {
        let mut jobs = Jobs::default();
        [(5, 9), (5, 2), (4, 7)].into_iter().for_each(|(at, job)| jobs.push(Instant::from_ns(at), job));
        let order: Vec<u32> = std::iter::from_fn(|| jobs.pop()).collect();
        assert_eq!(order, [7, 9, 2]);
        assert_eq!(jobs.next_at(), Instant::MAX);
    }
}
