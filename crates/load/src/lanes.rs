//! The streams of tasks: whose turn it is.
//!
//! Purpose: each lane (see the compiled workload) numbers its own tasks, so that task `i` of a lane is the same whatever
//! the other lanes do. In open loop lanes take turns, so that even the order of tasks does not depend on completions. In
//! closed loop the lane with the fewest tasks in flight is next: every stream and every volume keeps its share of the depth.
//! Lanes with unequal shares are chosen by the highest averages: the next task goes where, once it is counted, there are the
//! fewest for the lane's share; so a lane may have none where the depth is small.
//!
//! Invariant: in closed loop at constant depth the numbers in flight of two equal lanes differ by at most one after polling;
//! those of unequal ones are what the highest averages of that depth are.
//!
//! Reference: M. Balinski, H. P. Young, *Fair Representation*, 1982 (the method of Jefferson and D'Hondt).

use raidlab_types::number::{f64_from, u32_from};

/// The tasks of each lane: how many have begun, how many are in flight.
#[derive(Debug, Clone)]
pub(crate) struct Lanes {
    begun: Box<[u64]>,
    in_flight: Box<[u32]>,
    total: usize,
    /// The share of each lane; empty where all are alike.
    shares: Box<[f64]>,
    /// Where to look first among equals, so that all have their turn even at a depth below the number of lanes.
    cursor: usize,
    /// The lane that ended a task last.
    ended: usize,
}

impl Lanes {
    pub(crate) fn new(count: u32, shares: &[f64]) -> Self {
        let count = count as usize;
        let (begun, in_flight) = (vec![0; count].into(), vec![0; count].into());
        Lanes { begun, in_flight, shares: shares.into(), total: 0, cursor: 0, ended: 0 }
    }

    /// The lane of the next task and the task's number in it.
    #[inline]
    pub(crate) fn begin(&mut self, take_turns: bool) -> (u32, u64) {
        let lane = if self.begun.len() == 1 { 0 } else { self.choose(take_turns) };
        let index = self.begun[lane];
        self.begun[lane] += 1;
        self.in_flight[lane] += 1;
        self.total += 1;
        (u32_from(lane), index)
    }

    #[inline]
    pub(crate) fn end(&mut self, lane: u32) {
        self.in_flight[lane as usize] -= 1;
        self.total -= 1;
        self.ended = lane as usize;
    }

    fn choose(&mut self, take_turns: bool) -> usize {
        let count = self.begun.len();
        if !self.shares.is_empty() {
            return self.by_share(take_turns);
        }
        // Where every lane has its equal share but the one that has just ended a task, the search can be spared.
        if !take_turns && (self.in_flight[self.ended] as usize + 1) * count == self.total + 1 {
            return self.ended;
        }
        let mut lane = self.cursor;
        if !take_turns {
            let order = (self.cursor..count).chain(0..self.cursor);
            lane = order.min_by_key(|&lane| self.in_flight[lane]).unwrap_or(lane);
        }
        self.cursor = if lane + 1 == count { 0 } else { lane + 1 };
        lane
    }

    /// The lane that has the fewest for its share, the next one counted; in open loop all that ever began count.
    fn by_share(&self, take_turns: bool) -> usize {
        let had = |lane: usize| if take_turns { self.begun[lane] } else { u64::from(self.in_flight[lane]) };
        let average = |lane: usize| f64_from(had(lane) + 1) / self.shares[lane];
        (0..self.begun.len()).min_by(|&a, &b| average(a).total_cmp(&average(b))).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn in_open_loop_lanes_take_turns() {
        let mut lanes = Lanes::new(3, &[]);
        let begun: Vec<_> = (0..5).map(|_| lanes.begin(true)).collect();
        assert_eq!(begun, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]);
    }

    #[test]
    fn all_lanes_have_their_turn_at_depth_one() {
        let mut lanes = Lanes::new(3, &[]);
        let mut next = || {
            let begun = lanes.begin(false);
            lanes.end(begun.0);
            begun
        };
        assert_eq!([next(), next(), next(), next()], [(0, 0), (1, 0), (2, 0), (0, 1)]);
    }

    #[test]
    fn unequal_shares_are_kept_whoever_ends_first() {
        let mut lanes = Lanes::new(2, &[3.0, 1.0]);
        let mut running: Vec<u32> = (0..8).map(|_| lanes.begin(false).0).collect();
        assert_eq!(*lanes.in_flight, [6, 2]);
        for round in 0..100 {
            let ended = running.remove(round * 7 % 8);
            lanes.end(ended);
            running.push(lanes.begin(false).0);
            assert_eq!(*lanes.in_flight, [6, 2]);
        }
        let mut lanes = Lanes::new(2, &[3.0, 1.0]);
        let turns: Vec<_> = (0..8).map(|_| lanes.begin(true).0).collect();
        assert_eq!(turns.iter().filter(|&&lane| lane == 1).count(), 2, "{turns:?}");
    }

    proptest! {
        #[test]
        fn shares_differ_by_at_most_one(
            count in 1u32..9, depth in 1usize..40, order in prop::collection::vec(any::<prop::sample::Index>(), 1..200)
        ) {
            let mut lanes = Lanes::new(count, &[]);
            let mut running: Vec<u32> = (0..depth).map(|_| lanes.begin(false).0).collect();
            for index in order {
                // Any one task ends and the next begins.
                let position = index.index(depth);
                lanes.end(running[position]);
                running[position] = lanes.begin(false).0;
                let (low, high) = (lanes.in_flight.iter().min(), lanes.in_flight.iter().max());
                prop_assert!(high.unwrap() - low.unwrap() <= 1, "{:?}", lanes.in_flight);
            }
        }
    }
}
