//! The cache against a plain account of what it was asked, under random requests and an array that answers in any order.

use super::*;
use raidlab_types::{CounterRng, Seed};
use std::collections::BTreeMap;

const SECTOR: u64 = 512;
const VOLUME: u64 = 4096;

fn spec(rng: &mut CounterRng) -> CacheSpec {
    let line = SECTOR << rng.below(4);
    CacheSpec {
        only: None,
        line_bytes: line,
        fetch_bytes: line * (1 + rng.below(8)),
        read_room_bytes: line * (1 + rng.below(64)),
        read_ahead_bytes: line * rng.below(16),
        read_ahead_up_to_bytes: (rng.below(2) == 0).then(|| SECTOR * rng.below(64)),
        write_back_up_to_bytes: SECTOR * rng.below(32),
        dirty_room_bytes: SECTOR * (1 + rng.below(256)),
        destages: 1 + rng.below(3) as u32,
        destage_when: if rng.below(2) == 0 { DestageWhen::StripeIsWhole } else { DestageWhen::RoomIsNeeded },
        copy_path: Vec::new(),
    }
}

struct World {
    cache: Cache,
    /// At the array: number and extent, whether it writes.
    running: Vec<(u64, Extent, bool)>,
    /// Sectors that reads still wait for, and writes that wait for their answer.
    reads: BTreeMap<RequestTag, u64>,
    writes: BTreeMap<RequestTag, Extent>,
    fetched: u64,
    destaged: u64,
}

impl World {
    fn new(spec: &CacheSpec, stripe_sectors: u64) -> World {
        let cache = Cache::new(spec, SECTOR, VOLUME, stripe_sectors);
        World { cache, running: vec![], reads: BTreeMap::new(), writes: BTreeMap::new(), fetched: 0, destaged: 0 }
    }

    fn ask(&mut self, tag: RequestTag, kind: RequestKind, extent: Extent) {
        match kind {
            RequestKind::Read => drop(self.reads.insert(tag, extent.sectors)),
            _ => drop(self.writes.insert(tag, extent)),
        }
        self.cache.handle_request(&Request { tag, volume: 0, kind, extent, force_unit_access: false });
        self.drain();
    }

    fn finish(&mut self, index: usize) {
        let (id, ..) = self.running.swap_remove(index);
        self.cache.handle_done(id);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(op) = self.cache.poll() {
            match op {
                CacheOp::Fetch { id, extent } => {
                    assert!(extent.end() <= VOLUME);
                    self.fetched += extent.sectors;
                    self.running.push((id, extent, false));
                }
                CacheOp::Destage { id, extent } => {
                    let twice = self.running.iter().any(|r| r.2 && r.1.overlaps(extent));
                    assert!(!twice, "{extent} is destaged twice at a time");
                    self.destaged += extent.sectors;
                    self.running.push((id, extent, true));
                }
                CacheOp::Ready { tag, sectors } => {
                    let left = self.reads.get_mut(&tag).expect("a read that waits");
                    *left = left.checked_sub(sectors).expect("no more than was asked for");
                    if *left == 0 {
                        self.reads.remove(&tag);
                    }
                }
                CacheOp::Stored { tag, .. } | CacheOp::Written { tag } => {
                    assert!(self.writes.remove(&tag).is_some(), "a write is answered once");
                }
            }
        }
    }
}

#[test]
fn every_request_is_answered_once_whatever_comes_when() {
    for seed in 0..300 {
        let mut rng = Seed::new(seed).draws();
        let spec = spec(&mut rng);
        let mut world = World::new(&spec, 1 + rng.below(64));
        let (mut next, mut largest) = (0, 0);
        for tag in 0..400 {
            let sectors = 1 + rng.below(40);
            // Half of them go on where the last one ended.
            let lba = if rng.below(2) == 0 && next + sectors <= VOLUME { next } else { rng.below(VOLUME - sectors) };
            let kind = if rng.below(2) == 0 { RequestKind::Read } else { RequestKind::Write };
            next = lba + sectors;
            largest = largest.max(sectors);
            world.ask(tag, kind, Extent::new(lba, sectors));
            let room = (spec.dirty_room_bytes / SECTOR).max(largest);
            assert!(world.cache.writes.held() <= room, "{} sectors in {room}", world.cache.writes.held());
            assert!(world.cache.reads.lines_there() as u64 <= spec.read_room_bytes / spec.line_bytes);
            for _ in 0..rng.below(4) {
                if !world.running.is_empty() {
                    world.finish(rng.below(world.running.len() as u64) as usize);
                }
            }
        }
        while !world.running.is_empty() {
            world.finish(rng.below(world.running.len() as u64) as usize);
        }
        assert!(world.reads.is_empty() && world.writes.is_empty(), "seed {seed}: {:?} {:?}", world.reads, world.writes);
    }
}

fn plain(read_ahead_lines: u64, write_back_up_to_bytes: u64) -> CacheSpec {
    CacheSpec {
        only: None,
        line_bytes: 8 * SECTOR,
        fetch_bytes: 32 * SECTOR,
        read_room_bytes: 1024 * SECTOR,
        read_ahead_bytes: read_ahead_lines * 8 * SECTOR,
        read_ahead_up_to_bytes: None,
        write_back_up_to_bytes,
        dirty_room_bytes: 256 * SECTOR,
        destages: 1,
        destage_when: DestageWhen::StripeIsWhole,
        copy_path: Vec::new(),
    }
}

#[test]
fn a_sequential_reader_finds_what_was_fetched_ahead() {
    let mut world = World::new(&plain(16, 0), 64);
    world.ask(0, RequestKind::Read, Extent::new(0, 8));
    assert_eq!(world.fetched, 8, "the first read is not known to be sequential");
    world.finish(0);
    world.ask(1, RequestKind::Read, Extent::new(8, 8));
    assert_eq!(world.fetched, 16 + 128);
    (0..world.running.len()).for_each(|_| world.finish(0));
    for tag in 2..18 {
        world.ask(tag, RequestKind::Read, Extent::new(tag * 8, 8));
        assert!(world.reads.is_empty(), "read {tag} is there");
    }
    // Without read-ahead each new line is waited for, and the rest of it is there.
    let mut world = World::new(&plain(0, 0), 64);
    for tag in 0..64 {
        world.ask(tag, RequestKind::Read, Extent::new(tag, 1));
        assert_eq!(world.reads.is_empty(), tag % 8 != 0);
        (0..world.running.len()).for_each(|_| world.finish(0));
    }
    assert_eq!(world.fetched, 64);
}

#[test]
fn nothing_is_fetched_ahead_of_reads_beyond_a_length() {
    let mut spec = plain(16, 0);
    spec.read_ahead_up_to_bytes = Some(8 * SECTOR);
    let fetched_after_two_of = |sectors: u64| {
        let mut world = World::new(&spec, 64);
        for tag in 0..2 {
            world.ask(tag, RequestKind::Read, Extent::new(tag * sectors, sectors));
        }
        world.fetched
    };
    assert_eq!(fetched_after_two_of(8), 16 + 128);
    assert_eq!(fetched_after_two_of(16), 32);
}

#[test]
fn small_sequential_writes_are_gathered_into_whole_stripes() {
    let mut world = World::new(&plain(0, 4 * SECTOR), 64);
    for tag in 0..64 {
        world.ask(tag, RequestKind::Write, Extent::new(tag * 4, 4));
        assert!(world.writes.is_empty(), "answered at once");
        while !world.running.is_empty() {
            assert_eq!(world.running[0].1.sectors, 64, "a stripe");
            world.finish(0);
        }
    }
    assert_eq!(world.destaged, 256);
}

#[test]
fn a_long_write_waits_for_its_whole_stripes_alone() {
    let mut world = World::new(&plain(0, 4 * SECTOR), 64);
    // The first is not known to be sequential: all of it is waited for. The second goes on and leaves a part behind.
    world.ask(0, RequestKind::Write, Extent::new(0, 64));
    assert_eq!((world.writes.len(), world.running.len()), (1, 1));
    world.finish(0);
    assert!(world.writes.is_empty());
    world.ask(1, RequestKind::Write, Extent::new(64, 96));
    assert_eq!(world.running.iter().map(|r| r.1).collect::<Vec<_>>(), [Extent::new(64, 64)]);
    world.finish(0);
    assert!(world.writes.is_empty() && world.running.is_empty());
    world.ask(2, RequestKind::Write, Extent::new(160, 32));
    assert_eq!(world.running.iter().map(|r| r.1).collect::<Vec<_>>(), [Extent::new(128, 64)]);
}

#[test]
fn a_demand_flush_keeps_whole_stripes_until_room_is_needed() {
    let demand = CacheSpec { destage_when: DestageWhen::RoomIsNeeded, ..plain(0, 64 * SECTOR) };
    let mut world = World::new(&demand, 64);
    for tag in 0..4 {
        world.ask(tag, RequestKind::Write, Extent::new(tag * 64, 64));
        assert!(world.writes.is_empty() && world.running.is_empty(), "answered, and nothing is destaged");
    }
    // What is written again while it waits is destaged once.
    world.ask(4, RequestKind::Write, Extent::new(64, 32));
    assert_eq!(world.writes.len(), 1, "room is needed: it is not known to be written over before it is taken in");
    assert_eq!(world.running.iter().map(|r| r.1).collect::<Vec<_>>(), [Extent::new(0, 64)]);
    world.finish(0);
    assert!(world.writes.is_empty() && world.running.is_empty(), "one stripe is room enough");
    assert_eq!(world.destaged, 64);
    // A write that is longer than what is answered early goes through to the members all the same.
    world.ask(5, RequestKind::Write, Extent::new(1024, 65));
    assert_eq!((world.writes.len(), world.running.len()), (1, 1));
    while !world.running.is_empty() {
        world.finish(0);
    }
    assert!(world.writes.is_empty());
}

#[test]
fn a_write_waits_for_room() {
    let mut world = World::new(&plain(0, 512 * SECTOR), 64);
    for tag in 0..5 {
        world.ask(tag, RequestKind::Write, Extent::new(tag * 64, 64));
    }
    assert_eq!(world.writes.len(), 1, "four stripes fill the room");
    world.finish(0);
    assert!(world.writes.is_empty());
}
