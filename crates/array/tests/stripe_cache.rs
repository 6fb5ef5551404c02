//! Writes that go through a stripe cache: what they read and write, who shares a row, and what happens when a member goes.

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

use raidlab_array::{
    Array, ArrayOp, Event, Layout, MemberState, ParityWrite, Policy, RebuildThrottle, Rotation, ScrubKind, Tree,
};
use raidlab_types::{Extent, Instant, OpError, OpId, OpKind, Request, RequestKind, Seed};
use std::collections::VecDeque;

const PAGE: u64 = 8;
const CHUNK: u64 = 128;

fn array(parities: u32, rows: u32) -> Array {
    array_of(parities, rows, 1 << 20)
}

fn array_of(parities: u32, rows: u32, member_sectors: u64) -> Array {
    let tree = Tree::parity(parities, 4 + parities as usize, CHUNK * 512, Rotation::LeftSymmetric);
    let layout = Layout::new(&tree, &vec![member_sectors; tree.leaves()], 512).expect("compiles");
    let policy = Policy {
        parity_row_bytes: 4096,
        stripe_cache_size: rows,
        parity_write_tie: ParityWrite::ReconstructWrite,
        ..Policy::default()
    };
    let mut array = Array::new(layout, policy);
    array.expect_no_bytes();
    array
}

/// Drives an array: operations complete in the order in which they were handed out, but for those of a member that has gone.
struct Driver {
    array: Array,
    flying: VecDeque<(OpId, Option<u32>)>,
    /// Sectors read and written of members.
    moved: [u64; 2],
    done: Vec<u64>,
    failed: Option<u32>,
}

impl Driver {
    fn new(array: Array) -> Driver {
        Driver { array, flying: VecDeque::new(), moved: [0; 2], done: Vec::new(), failed: None }
    }

    fn write(&mut self, tag: u64, lba: u64, sectors: u64) {
        self.ask(RequestKind::Write, tag, lba, sectors);
    }

    fn ask(&mut self, kind: RequestKind, tag: u64, lba: u64, sectors: u64) {
        let extent = Extent::new(lba, sectors);
        let request = Request { tag, volume: 0, kind, extent, force_unit_access: false };
        self.array.handle_request(Instant::ZERO, request);
        self.poll();
    }

    fn poll(&mut self) {
        while let Some(op) = self.array.poll_op() {
            self.flying.push_back(match op {
                ArrayOp::Device(op) => {
                    assert_eq!(self.array.moves(op.id), Some((op.leaf, op.kind, op.extent)));
                    self.moved[usize::from(op.kind == OpKind::Write)] += op.extent.sectors;
                    (op.id, Some(op.leaf))
                }
                ArrayOp::Compute { id, .. } => (id, None),
            });
        }
        while let Some(event) = self.array.poll_event() {
            if let Event::RequestDone { tag, result } = event {
                assert_eq!(result, Ok(()));
                self.done.push(tag);
            }
        }
    }

    fn complete(&mut self, place: usize) {
        let (id, leaf) = self.flying.remove(place).expect("an operation");
        let gone = leaf.is_some() && leaf == self.failed;
        self.array.handle_op_done(Instant::ZERO, id, if gone { Err(OpError::MemberGone) } else { Ok(()) });
        self.poll();
    }

    /// Goes on until the array has no work of its own any more; time passes where nothing else happens.
    fn work_to_end(&mut self) {
        while self.array.is_at_work() || !self.flying.is_empty() {
            match self.array.poll_timeout() {
                _ if !self.flying.is_empty() => self.complete(0),
                Some(at) => self.array.handle_time(at),
                None => panic!("work that waits for nothing"),
            }
            self.poll();
        }
        assert_eq!(self.array.check_idle(), Ok(()));
    }

    fn finish(&mut self) {
        while !self.flying.is_empty() {
            self.complete(0);
        }
        assert_eq!(self.array.check_idle(), Ok(()));
    }
}

#[test]
fn what_a_row_knows_is_not_read_again() {
    let mut driver = Driver::new(array(1, 256));
    driver.write(1, 0, PAGE);
    driver.finish();
    assert_eq!(driver.moved, [2 * PAGE, 2 * PAGE], "old data and old parity");
    driver.write(2, 0, PAGE);
    driver.finish();
    assert_eq!(driver.moved, [2 * PAGE, 4 * PAGE], "both are known");
    driver.write(3, CHUNK, PAGE);
    driver.finish();
    assert_eq!(driver.moved, [3 * PAGE, 6 * PAGE], "the parity is known");
    driver.write(4, 2 * CHUNK, PAGE / 2);
    driver.finish();
    assert_eq!(driver.moved, [4 * PAGE, 8 * PAGE], "half a page is read and written whole");
}

#[test]
fn requests_that_meet_in_a_row_are_written_together() {
    let mut driver = Driver::new(array(1, 256));
    // Four chunks that are a stripe, while a write of the same row still reads.
    driver.write(1, 0, PAGE);
    assert_eq!(driver.flying.len(), 2);
    (1..4).for_each(|column| driver.write(1 + column, column * CHUNK, PAGE));
    assert_eq!(driver.flying.len(), 2, "they wait for what is being read");
    driver.finish();
    assert_eq!(driver.moved, [2 * PAGE, 5 * PAGE], "one write of four pages and their parity");
    driver.done.sort_unstable();
    assert_eq!(driver.done, [1, 2, 3, 4]);
}

#[test]
fn a_page_that_waits_to_be_written_is_waited_for() {
    let mut driver = Driver::new(array(1, 256));
    driver.write(1, 0, PAGE);
    driver.write(2, 0, PAGE);
    // Behind the second, though it could go on.
    driver.write(3, 64 * CHUNK, PAGE);
    assert_eq!(driver.flying.len(), 2);
    driver.finish();
    assert_eq!(driver.moved, [4 * PAGE, 6 * PAGE]);
    assert_eq!(driver.done[0], 1);
}

#[test]
fn full_rows_are_a_batch_that_reads_nothing() {
    for parities in 1..=2 {
        let mut driver = Driver::new(array(parities, 256));
        driver.write(1, 8 * CHUNK * 4, 4 * CHUNK);
        assert_eq!(driver.flying.len(), 1, "one computation for the stripe");
        driver.finish();
        assert_eq!(driver.moved, [0, (4 + u64::from(parities)) * CHUNK]);
    }
}

#[test]
fn more_than_the_cache_holds_waits_for_rows() {
    let mut driver = Driver::new(array(1, 32));
    (0..8).for_each(|tag| driver.write(tag, 3000 * tag, 2500));
    driver.finish();
    driver.done.sort_unstable();
    assert_eq!(driver.done, [0, 1, 2, 3, 4, 5, 6, 7]);
    let written: u64 = driver.moved[1];
    assert!(written > 8 * 2500, "data and parity: {written}");
}

#[test]
fn a_member_that_goes_ends_the_cache_and_no_request() {
    for seed in 0..60 {
        let mut driver = Driver::new(array(1 + seed as u32 % 2, 32));
        let mut rng = Seed::new(seed).draws();
        let mut next = 0;
        while next < 40 || !driver.flying.is_empty() {
            if next < 40 && driver.flying.len() < 30 {
                driver.write(next, rng.below(4000), 1 + rng.below(900));
                next += 1;
            } else {
                driver.complete(rng.below(driver.flying.len() as u64) as usize);
            }
            if next == 20 && driver.failed.is_none() {
                let leaf = rng.below(5) as u32;
                driver.failed = Some(leaf);
                if seed % 3 == 0 {
                    driver.array.set_member_state(leaf, MemberState::Failed);
                    driver.poll();
                }
            }
        }
        driver.done.sort_unstable();
        assert_eq!(driver.done, (0..40).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(driver.array.check_idle(), Ok(()), "seed {seed}");
    }
}

/// An array without some members.
fn without(parities: u32, missing: &[u32]) -> Driver {
    let mut driver = Driver::new(array(parities, 256));
    missing.iter().for_each(|&leaf| driver.array.set_member_state(leaf, MemberState::Missing));
    driver
}

#[test]
fn a_page_of_a_missing_member_is_computed_from_all_others() {
    for (parities, most) in [(1, 4), (2, 5)] {
        let read = |leaf| {
            let mut driver = without(parities, &[leaf]);
            for column in 0..4 {
                driver.ask(RequestKind::Read, column, column * CHUNK, PAGE);
                driver.finish();
            }
            assert_eq!((driver.done.len(), driver.moved[1]), (4, 0));
            driver.moved[0] / PAGE
        };
        let mut pages: Vec<u64> = (0..4 + parities).map(read).collect();
        pages.sort_unstable();
        // Where a parity is missing four pages are read, else all that there are; none twice.
        let expected: Vec<u64> = (0..4 + parities).map(|k| if k < parities { 4 } else { most }).collect();
        assert_eq!(pages.iter().sum::<u64>(), expected.iter().sum::<u64>(), "{pages:?}");
    }
}

#[test]
fn a_write_without_members_reads_what_its_parity_needs() {
    let write = |parities, missing: &[u32]| {
        let mut driver = without(parities, missing);
        driver.write(1, 0, PAGE);
        driver.finish();
        driver.moved.map(|sectors| sectors / PAGE)
    };
    let sorted = |mut found: Vec<[u64; 2]>| {
        found.sort_unstable();
        found
    };
    // The page's own member or the parity: the rest is read, and one is written. Another: old data and old parity.
    let one = sorted((0..5).map(|leaf| write(1, &[leaf])).collect());
    assert_eq!(one, [[2, 2], [2, 2], [2, 2], [3, 1], [3, 1]]);
    // Of six: its own and a parity, or both parities: the rest. Two others: the old of it. Else all that there are.
    let pairs = (0..6).flat_map(|a| (a + 1..6).map(move |b| [a, b]));
    let two = sorted(pairs.map(|pair| write(2, &pair)).collect());
    let count = |what: [u64; 2]| two.iter().filter(|&&found| found == what).count();
    assert_eq!([count([3, 1]), count([3, 3]), count([4, 2])], [3, 3, 9], "{two:?}");
}

#[test]
fn requests_without_members_all_come_to_an_end() {
    for seed in 0..60 {
        let parities = 1 + seed as u32 % 2;
        let mut rng = Seed::new(seed).draws();
        let missing: Vec<u32> =
            (0..=rng.below(u64::from(parities)) as u32).map(|k| 2 * k).take(parities as usize).collect();
        let mut driver = without(parities, &missing);
        let mut next = 0;
        while next < 60 || !driver.flying.is_empty() {
            if next < 60 && driver.flying.len() < 30 {
                let kind = if rng.below(2) == 0 { RequestKind::Read } else { RequestKind::Write };
                driver.ask(kind, next, rng.below(4000), 1 + rng.below(900));
                next += 1;
            } else {
                driver.complete(rng.below(driver.flying.len() as u64) as usize);
            }
            if next == 30 && driver.failed.is_none() && missing.len() < parities as usize {
                driver.failed = Some(5);
            }
        }
        driver.done.sort_unstable();
        assert_eq!(driver.done, (0..60).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(driver.array.check_idle(), Ok(()), "seed {seed}");
    }
}

#[test]
fn a_member_that_is_rebuilt_is_written() {
    let mut driver = without(1, &[0]);
    driver.write(1, 0, 4 * CHUNK);
    driver.finish();
    assert_eq!(driver.moved[1], 4 * CHUNK, "four of five members are there");
    driver.array.replace_member(Instant::ZERO, 0, raidlab_array::RebuildThrottle::Idle).expect("enough is left");
    let mut written = 0;
    driver.write(2, 64 * CHUNK, 4 * CHUNK);
    while let Some((id, _)) = driver.flying.pop_front() {
        if let Some((_, OpKind::Write, Extent { sectors, .. })) = driver.array.moves(id) {
            written += sectors;
        }
        driver.array.handle_op_done(Instant::ZERO, id, Ok(()));
        driver.poll();
        if driver.done.len() == 2 {
            break;
        }
    }
    assert!(written >= 5 * CHUNK, "the new member too: {written}");
}

#[test]
fn a_volume_that_is_whole_again_knows_what_it_knew() {
    let mut driver = Driver::new(array(1, 256));
    driver.array.set_member_state(2, MemberState::Missing);
    driver.write(1, 0, PAGE);
    driver.finish();
    driver.array.set_member_state(2, MemberState::Online);
    let before = driver.moved;
    driver.write(2, 0, PAGE);
    driver.finish();
    driver.write(3, 0, PAGE);
    driver.finish();
    assert_eq!(driver.moved, [before[0], before[1] + 4 * PAGE], "nothing is read again");
}

#[test]
fn the_array_works_in_the_rows_of_its_cache() {
    const SECTORS: u64 = 64 * CHUNK;
    for parities in 1..=2 {
        let members = 4 + u64::from(parities);
        let mut driver = Driver::new(array_of(parities, 32, SECTORS));
        driver.array.set_member_state(1, MemberState::Missing);
        driver.array.replace_member(Instant::ZERO, 1, RebuildThrottle::MD).expect("within tolerance");
        driver.array.handle_time(Instant::ZERO);
        driver.poll();
        assert!(driver.flying.len() as u64 >= 32 * (members - 1), "all rows are begun: {}", driver.flying.len());
        driver.work_to_end();
        assert_eq!(driver.moved, [SECTORS * (members - 1), SECTORS], "every row once, with both parities");
        assert_eq!(driver.array.member(1).state, MemberState::Online);
        driver.moved = [0; 2];
        driver.array.scrub(Instant::ZERO, ScrubKind::Check, RebuildThrottle::MD).expect("nothing else is under way");
        driver.array.handle_time(Instant::ZERO);
        driver.poll();
        driver.work_to_end();
        // What the rows of the cache know already is not read again.
        let known = 32 * PAGE * members;
        assert!((SECTORS * members - known..=SECTORS * members).contains(&driver.moved[0]), "{:?}", driver.moved);
        assert_eq!(driver.moved[1], 0);
        let counts = driver.array.scrub_counts();
        assert_eq!(counts.done, counts.all);
    }
}

#[test]
fn work_in_the_cache_goes_on_in_units_where_a_member_goes() {
    for seed in 0..40 {
        let parities = 1 + seed as u32 % 2;
        let rebuilds = parities == 2 && seed % 4 < 2;
        let mut driver = Driver::new(array_of(parities, 32, 64 * CHUNK));
        let mut rng = Seed::new(seed).draws();
        if rebuilds {
            driver.array.set_member_state(1, MemberState::Missing);
            driver.array.replace_member(Instant::ZERO, 1, RebuildThrottle::MD).expect("within tolerance");
        } else {
            driver.array.scrub(Instant::ZERO, ScrubKind::Check, RebuildThrottle::MD).expect("none is under way");
        }
        driver.array.handle_time(Instant::ZERO);
        driver.poll();
        let goes = 20 + rng.below(60);
        for next in 0..100 {
            let kind = if rng.below(2) == 0 { RequestKind::Read } else { RequestKind::Write };
            driver.ask(kind, next, rng.below(20_000), 1 + rng.below(100));
            for _ in 0..rng.below(40).min(driver.flying.len() as u64) {
                driver.complete(rng.below(driver.flying.len() as u64) as usize);
            }
            if next == goes {
                // The one that is rebuilt, or another.
                let leaf = if seed % 3 == 0 { 1 } else { 3 };
                driver.failed = Some(leaf);
                driver.array.set_member_state(leaf, MemberState::Failed);
                driver.poll();
            }
        }
        driver.work_to_end();
        driver.done.sort_unstable();
        assert_eq!(driver.done, (0..100).collect::<Vec<_>>(), "seed {seed}");
        let state = driver.array.member(1).state;
        let expected = if driver.failed == Some(1) { MemberState::Failed } else { MemberState::Online };
        assert_eq!(state, expected, "seed {seed}");
    }
}

#[test]
fn a_rebuild_that_leaves_clients_alone_goes_on_when_they_are_gone() {
    let mut driver = Driver::new(array_of(1, 32, 8 * CHUNK));
    driver.array.set_member_state(1, MemberState::Missing);
    driver.write(1, 0, PAGE);
    driver.array.replace_member(Instant::ZERO, 1, RebuildThrottle::Idle).expect("within tolerance");
    driver.array.handle_time(Instant::ZERO);
    driver.poll();
    driver.work_to_end();
    assert_eq!((driver.array.member(1).state, driver.done.len()), (MemberState::Online, 1));
}
