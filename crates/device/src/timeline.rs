//! When something that serves one transfer at a time is taken.
//!
//! Purpose: transfers are booked when they are known, and what is known first is not always what comes first: a page
//! that a busy die will send later must not keep the channel from one that is there now. So a transfer takes the free time
//! from when it is ready, in pieces where others were booked before; or, where it cannot be taken apart, the first stretch
//! that is long enough.
//!
//! Invariants: what is taken is apart, in order of time, and never touches; no time is free from when a transfer is ready
//! until it ends; what has ended before the floor is forgotten; busy time is exact up to any time from the floor on.

use std::collections::VecDeque;

/// The bookings of one channel, link or bus.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timeline {
    taken: VecDeque<(u64, u64)>,
    /// All that was ever booked, and how much of it was over when the totals were started.
    booked: u64,
    before: u64,
}

impl Timeline {
    /// Books `length` ns, not before `from`; returns the end. Nobody will ask for a time before `floor` any more.
    #[inline]
    pub(crate) fn book(&mut self, floor: u64, from: u64, length: u64) -> u64 {
        while self.taken.front().is_some_and(|&(_, end)| end <= floor) {
            self.taken.pop_front();
        }
        self.booked += length;
        match self.taken.back_mut() {
            // Mostly behind everything, or joined to the last.
            None => self.taken.push_back((from, from + length)),
            Some((_, end)) if *end < from => self.taken.push_back((from, from + length)),
            Some((_, end)) if *end == from => *end = from + length,
            Some(_) => return self.fill_up(from, length),
        }
        from + length
    }

    /// Books in one piece, from the first time not before `from` at which it is free as long as that takes: a transfer that
    /// begins then ends at `end_of`, which must not fall as that rises, and is asked last for what is booked. Returns both.
    pub(crate) fn hold(&mut self, floor: u64, from: u64, end_of: impl Fn(u64) -> u64) -> (u64, u64) {
        let mut start = from;
        loop {
            let end = end_of(start);
            let place = self.taken.partition_point(|&(_, taken_to)| taken_to <= start);
            match self.taken.get(place).filter(|&&(begin, _)| begin < end) {
                Some(&(_, taken_to)) => start = taken_to,
                None => {
                    if end > start {
                        self.book(floor, start, end - start);
                    }
                    return (start, end);
                }
            }
        }
    }

    /// How long it was busy since the totals were started, up to `now`, which lies not before the floor.
    pub(crate) fn busy(&self, now: u64) -> u64 {
        self.worked(now) - self.before
    }

    /// Starts the totals anew.
    pub(crate) fn reset(&mut self, now: u64) {
        self.before = self.worked(now);
    }

    /// All that was booked and is over by `now`.
    fn worked(&self, now: u64) -> u64 {
        let ahead = self.taken.iter().rev().take_while(|&&(_, end)| end > now);
        self.booked - ahead.map(|&(start, end)| end - start.max(now)).sum::<u64>()
    }

    /// Takes the first `length` ns that are free from `from` on: with what lies between they become one stretch.
    fn fill_up(&mut self, from: u64, length: u64) -> u64 {
        let place = self.taken.partition_point(|&(_, end)| end < from);
        let (mut start, mut at, mut left, mut behind) = (from, from, length, place);
        if self.taken[place].0 <= from {
            (start, at) = self.taken[place];
            behind += 1;
        }
        while let Some(&(next, end)) = self.taken.get(behind).filter(|(next, _)| *next < at + left) {
            left -= next - at;
            at = end;
            behind += 1;
        }
        let end = at + left;
        let mut stretch = (start, end);
        if let Some(&(_, end_of_next)) = self.taken.get(behind).filter(|(next, _)| *next == end) {
            stretch.1 = end_of_next;
            behind += 1;
        }
        if behind == place {
            self.taken.insert(place, stretch);
        } else {
            self.taken[place] = stretch;
            self.taken.drain(place + 1..behind);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_types::Seed;

    #[test]
    fn a_transfer_takes_what_is_free() {
        let mut line = Timeline::default();
        assert_eq!(line.book(0, 100, 20), 120);
        assert_eq!(line.book(0, 10, 50), 60, "before it");
        assert_eq!(line.book(0, 20, 30), 90, "between");
        assert_eq!(line.taken, [(10, 90), (100, 120)]);
        assert_eq!(line.book(0, 20, 11), 121, "what is left between, and the rest behind");
        assert_eq!(line.taken, [(10, 121)]);
        assert_eq!(line.book(0, 0, 10), 10, "up to it");
        assert_eq!(line.book(0, 121, 9), 130);
        assert_eq!(line.taken, [(0, 130)]);
        assert_eq!(line.book(130, 140, 1), 141);
        assert_eq!(line.taken, [(140, 141)]);
    }

    #[test]
    fn a_hold_takes_the_first_stretch_that_is_long_enough() {
        let mut line = Timeline::default();
        line.book(0, 100, 20);
        line.book(0, 150, 30);
        assert_eq!(line.hold(0, 80, |start| start + 20), (80, 100), "just fits");
        assert_eq!(line.hold(0, 110, |start| start + 40), (180, 220), "the gap of 30 is too short");
        assert_eq!(line.hold(0, 110, |start| start + 30), (120, 150));
        // One that waits for the medium is the shorter the later it begins.
        assert_eq!(line.hold(0, 200, |start| (start + 5).max(240)), (220, 240));
        assert_eq!(line.hold(0, 90, |start| start), (240, 240), "nothing to send, but it must be free");
        assert_eq!(line.taken, [(80, 240)]);
    }

    #[test]
    fn busy_time_is_what_is_over_by_now() {
        let mut line = Timeline::default();
        for (from, length) in [(100, 20), (140, 20)] {
            line.book(0, from, length);
        }
        assert_eq!([90, 110, 120, 130, 150, 200].map(|now| line.busy(now)), [0, 10, 20, 20, 30, 40]);
        // In pieces around the second, of which ten have passed when the totals are started.
        assert_eq!(line.book(110, 130, 20), 170);
        line.reset(150);
        assert_eq!([150, 160, 165, 500].map(|now| line.busy(now)), [0, 10, 15, 20]);
        // What is over long since is forgotten, but stays counted.
        line.book(400, 450, 5);
        assert_eq!((line.taken.len(), line.busy(500)), (1, 25));
    }

    #[test]
    fn no_time_is_taken_twice_and_none_is_left_free() {
        let mut rng = Seed::new(3).draws();
        for _ in 0..200 {
            let mut line = Timeline::default();
            let mut free = vec![true; 4000];
            for _ in 0..60 {
                let (from, length) = (rng.below(1000), 1 + rng.below(40));
                let end = line.book(0, from, length);
                let taken: Vec<usize> = (from as usize..4000).filter(|&at| free[at]).take(length as usize).collect();
                assert_eq!(taken.last(), Some(&(end as usize - 1)));
                taken.into_iter().for_each(|at| free[at] = false);
            }
            assert!(line.taken.iter().zip(line.taken.iter().skip(1)).all(|(a, b)| a.1 < b.0));
            assert!(line.taken.iter().all(|&(start, end)| !free[start as usize..end as usize].contains(&true)));
        }
    }
}
