//! Dies and channels: when the flash does what it is told.
//!
//! A die does one thing at a time. What the host waits for (reads) goes before what it does not wait for: programs of
//! cached data, moving and erasing wait in the die's backlog, in order, and one that has begun is not interrupted. A die
//! is taken until its page has left over the channel.
//!
//! Nothing is simulated between commands: the backlogs are brought up to date when somebody asks.
//!
//! Invariants:
//! - Work of the backlogs begins in order of time over all dies, and of equal times the lower die goes first.
//! - No die idles while its backlog holds work that is ready, once time has come that far.
//! - A die is busy while it senses, programs, erases or sends; not while it waits for its channel, which then is.
//! - Nothing is allocated for a command once the queues have grown.

use super::ftl::Orders;
use super::meter::Meter;
use crate::timeline::Timeline;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What things take, in ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FlashTimes {
    pub read: u64,
    pub program: u64,
    pub erase: u64,
    /// Of a unit, and of the page of all planes, over a channel.
    pub unit_transfer: u64,
    pub page_transfer: u64,
    /// What is moved stays in the die's own register.
    pub copy_back: bool,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Reading what is to be moved: as many units.
    Read(u32),
    /// Programming a page with as many units of the host's.
    Program(u32),
    Erase,
}

impl FlashTimes {
    /// What a die takes for something that waits for nothing.
    fn of(&self, kind: Kind) -> u64 {
        self.transfer(kind) + self.on_die(kind)
    }

    /// What of it is on the channel.
    fn transfer(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Read(_) | Kind::Program(0) if self.copy_back => 0,
            Kind::Read(units) => u64::from(units) * self.unit_transfer,
            Kind::Program(_) => self.page_transfer,
            Kind::Erase => 0,
        }
    }

    fn on_die(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Read(_) => self.read,
            Kind::Program(_) => self.program,
            Kind::Erase => self.erase,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Work {
    ready: u64,
    kind: Kind,
}

#[derive(Debug, Clone, Default)]
struct DieQueue {
    free_at: u64,
    backlog: VecDeque<Work>,
    /// What the backlog takes, waits for the channel not counted.
    backlog_ns: u64,
    /// Units of the host's in the backlog, and when the last ones were programmed.
    host_units: u32,
    host_end: u64,
}

/// The flash of one drive.
#[derive(Debug, Clone)]
pub(crate) struct Medium {
    timings: FlashTimes,
    dies: Vec<DieQueue>,
    /// By die, when it worked.
    meters: Vec<Meter>,
    /// By die: when the next work of its backlog would begin; never where there is none.
    starts: Vec<u64>,
    /// The least of them, and whose it is.
    next: (u64, usize),
    channels: Vec<Timeline>,
    /// Nobody will ask for a time before this any more.
    floor: u64,
    /// When what is ordered now may begin.
    ready: u64,
    cache: WriteBuffer,
}

/// Room for what the host has written and the flash has not.
#[derive(Debug, Clone)]
struct WriteBuffer {
    /// In units; without limit where the host waits for the flash itself.
    capacity: u32,
    /// Units taken, those included that `releases` says are given back.
    taken: u32,
    /// When how many units are given back.
    releases: BinaryHeap<Reverse<(u64, u32)>>,
}

const NEVER: (u64, usize) = (u64::MAX, 0);

impl Medium {
    /// Idle flash with a cache of so many units, or none.
    pub(super) fn new(timings: FlashTimes, dies: u32, channels: u32, cache_units: Option<u32>) -> Self {
        Medium {
            timings,
            dies: vec![DieQueue::default(); dies as usize],
            meters: vec![Meter::default(); dies as usize],
            starts: vec![u64::MAX; dies as usize],
            next: NEVER,
            channels: vec![Timeline::default(); channels as usize],
            floor: 0,
            ready: 0,
            cache: WriteBuffer { capacity: cache_units.unwrap_or(u32::MAX), taken: 0, releases: BinaryHeap::new() },
        }
    }

    /// Work that begins before `now` is under way. Nobody will ask for a time before `floor` any more.
    #[inline]
    pub(super) fn advance(&mut self, floor: u64, now: u64) {
        self.floor = floor;
        while self.next.0 < now {
            self.begin_next();
        }
    }

    /// Reads `units` of a page for the host, who asks at `from`; returns when they have left the channel.
    #[inline]
    pub(super) fn read(&mut self, die: u32, from: u64, units: u32) -> u64 {
        let at = die as usize;
        let start = from.max(self.dies[at].free_at);
        let sent = self.sense(at, start, units);
        self.dies[at].free_at = sent;
        if self.starts[at] != u64::MAX {
            self.reschedule(at);
        }
        sent
    }

    /// When the cache takes a unit that is there at `at`, which it does then. What is ordered next may begin from then on.
    #[inline]
    pub(super) fn admit(&mut self, at: u64) -> u64 {
        let mut at = at;
        while self.cache.taken >= self.cache.capacity {
            match self.cache.releases.peek() {
                // Nothing that has not begun can end before this.
                Some(&Reverse((end, units))) if end <= self.next.0 => {
                    self.cache.releases.pop();
                    self.cache.taken -= units;
                    at = at.max(end);
                }
                _ if self.next != NEVER => self.begin_next(),
                _ => unreachable!("a cache has room for more than the pages that are being filled"),
            }
        }
        if self.cache.capacity != u32::MAX {
            self.cache.taken += 1;
        }
        self.ready = at;
        at
    }

    /// When everything of the host's that was ordered of a die is on the flash.
    pub(super) fn finish(&mut self, die: u32) -> u64 {
        while self.dies[die as usize].host_units > 0 {
            self.begin_next();
        }
        self.dies[die as usize].host_end
    }

    /// What is ordered next may begin at `at`.
    pub(super) fn set_ready(&mut self, at: u64) {
        self.ready = at;
    }

    /// How long the busiest die and the busiest channel worked since the totals were started, up to `now`.
    pub(super) fn busiest(&self, now: u64) -> (u64, u64) {
        let dies = self.meters.iter().map(|meter| meter.busy(now)).max();
        let channels = self.channels.iter().map(|channel| channel.busy(now)).max();
        (dies.unwrap_or(0), channels.unwrap_or(0))
    }

    /// Starts the totals anew.
    pub(super) fn reset_busy(&mut self, now: u64) {
        self.meters.iter_mut().for_each(|meter| meter.reset(now));
        self.channels.iter_mut().for_each(|channel| channel.reset(now));
    }

    /// Senses a page from `start` on and sends `units` of it; returns when they have left.
    #[inline]
    fn sense(&mut self, at: usize, start: u64, units: u32) -> u64 {
        let FlashTimes { read, unit_transfer, .. } = self.timings;
        let length = u64::from(units) * unit_transfer;
        let sent = self.send(at, start + read, length);
        self.meters[at].works(start, start + read);
        self.meters[at].works(sent - length, sent);
        sent
    }

    #[inline]
    fn send(&mut self, die: usize, from: u64, length: u64) -> u64 {
        let channel = die % self.channels.len();
        self.channels[channel].book(self.floor, from, length)
    }

    /// Begins the work that can begin the soonest of all backlogs.
    fn begin_next(&mut self) {
        let (start, at) = self.next;
        let timings = self.timings;
        let Some(work) = self.dies[at].backlog.pop_front() else { unreachable!("a start stands for work") };
        let end = match (work.kind, timings.transfer(work.kind)) {
            (kind, 0) => {
                let end = start + timings.on_die(kind);
                self.meters[at].works(start, end);
                end
            }
            (Kind::Read(units), _) => self.sense(at, start, units),
            (kind, transfer) => {
                let sent = self.send(at, start, transfer);
                let end = sent + timings.on_die(kind);
                self.meters[at].works(sent - transfer, end);
                end
            }
        };
        let die = &mut self.dies[at];
        die.free_at = end;
        die.backlog_ns -= timings.of(work.kind);
        if let Kind::Program(units @ 1..) = work.kind {
            die.host_units -= units;
            die.host_end = end;
            if self.cache.capacity != u32::MAX {
                self.cache.releases.push(Reverse((end, units)));
            }
        }
        self.reschedule(at);
    }

    /// The backlog of a die, or when it is free, has changed.
    fn reschedule(&mut self, at: usize) {
        let die = &self.dies[at];
        self.starts[at] = die.backlog.front().map_or(u64::MAX, |work| work.ready.max(die.free_at));
        if (self.starts[at], at) < self.next {
            self.next = (self.starts[at], at);
        } else if self.next.1 == at {
            let least = self.starts.iter().copied().min().unwrap_or(u64::MAX);
            let whose = self.starts.iter().position(|&start| start == least).unwrap_or(0);
            self.next = if least == u64::MAX { NEVER } else { (least, whose) };
        }
    }

    #[inline]
    fn order(&mut self, die: u32, kind: Kind) {
        let at = die as usize;
        self.dies[at].backlog.push_back(Work { ready: self.ready, kind });
        self.dies[at].backlog_ns += self.timings.of(kind);
        if self.starts[at] == u64::MAX {
            self.reschedule(at);
        }
    }
}

impl Orders for Medium {
    fn read(&mut self, die: u32, units: u32) {
        self.order(die, Kind::Read(units));
    }

    fn program(&mut self, die: u32, host_units: u32) {
        self.dies[die as usize].host_units += host_units;
        self.order(die, Kind::Program(host_units));
    }

    fn erase(&mut self, die: u32) {
        self.order(die, Kind::Erase);
    }

    fn done_at(&self, die: u32) -> u64 {
        let die = &self.dies[die as usize];
        die.free_at.max(self.ready) + die.backlog_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMINGS: FlashTimes =
        FlashTimes { read: 50, program: 600, erase: 3000, unit_transfer: 5, page_transfer: 20, copy_back: false };

    fn medium(dies: u32, channels: u32, cache: Option<u32>) -> Medium {
        Medium::new(TIMINGS, dies, channels, cache)
    }

    #[test]
    fn reads_of_one_die_take_turns_and_those_of_others_share_the_channel() {
        let mut m = medium(2, 1, None);
        assert_eq!(m.read(0, 0, 4), 70);
        assert_eq!(m.read(0, 0, 4), 140, "the die is taken until its page has left");
        assert_eq!(m.read(1, 0, 4), 90, "the channel sends one page after another");
        assert_eq!(m.read(1, 200, 1), 255);
    }

    #[test]
    fn a_read_goes_before_what_has_not_begun_and_waits_for_what_has() {
        let mut m = medium(1, 1, Some(100));
        for _ in 0..3 {
            Orders::program(&mut m, 0, 1);
        }
        m.advance(10, 10);
        assert_eq!(m.read(0, 10, 1), 620 + 55);
        // The second program begins when the read is over, the third has still not begun.
        m.advance(700, 700);
        assert_eq!(m.read(0, 700, 1), 675 + 620 + 55);
        assert_eq!(m.finish(0), 1350 + 620);
    }

    #[test]
    fn a_full_cache_takes_more_when_a_page_is_on_the_flash() {
        let mut m = medium(2, 2, Some(4));
        for die in [0, 0, 1] {
            assert_eq!(m.admit(7), 7);
            Orders::program(&mut m, die, 1);
        }
        assert_eq!(m.admit(7), 7, "the fourth and last");
        assert_eq!(m.admit(8), 627, "die 0 or die 1, whichever is first");
        assert_eq!(m.admit(9), 627, "the other");
        assert_eq!(m.admit(9), 627 + 620, "the second page of die 0");
    }

    #[test]
    fn a_die_that_waits_for_its_channel_is_not_busy() {
        let mut m = medium(2, 1, None);
        m.read(0, 0, 4);
        assert_eq!(m.read(1, 0, 4), 90);
        // Both dies sense until 50 and send for 20; the second waits from 50 to 70.
        assert_eq!((m.busiest(50), m.busiest(70)), ((50, 0), (70, 20)));
        assert_eq!(m.meters[1].busy(70), 50);
        m.reset_busy(80);
        assert_eq!(m.busiest(100), (10, 10), "die 1 sends from 70 to 90");
    }

    #[test]
    fn moving_takes_the_channel_twice_and_erasing_not_at_all() {
        let mut m = medium(1, 1, Some(9));
        Orders::read(&mut m, 0, 3);
        Orders::program(&mut m, 0, 1);
        Orders::erase(&mut m, 0);
        assert_eq!(m.finish(0), 50 + 15 + 20 + 600);
        assert_eq!(m.busiest(600), (600, 35));
        m.advance(700, 700);
        assert_eq!(m.busiest(700), (700, 35), "erasing from 685 on");
        assert_eq!(m.read(0, 700, 1), 685 + 3000 + 55);
    }

    #[test]
    fn what_is_copied_back_takes_no_channel() {
        let mut m = Medium::new(FlashTimes { copy_back: true, ..TIMINGS }, 1, 1, Some(9));
        Orders::read(&mut m, 0, 3);
        Orders::program(&mut m, 0, 0);
        Orders::program(&mut m, 0, 1);
        assert_eq!(m.done_at(0), 50 + 600 + 620, "a page that carries what the host wrote came over the channel");
        assert_eq!(m.finish(0), 50 + 600 + 620);
        assert_eq!(m.busiest(2000), (50 + 600 + 620, 20));
    }
}
