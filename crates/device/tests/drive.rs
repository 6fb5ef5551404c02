//! The disk with everything, one mechanism at a time, against times worked out by hand.
//!
//! The disk turns in 10 ms, has two heads and ten sectors a track, so that a sector takes 1 ms; a movement takes 2 ms, a
//! switch of heads 0.6 ms. Times below are in ms after the index mark of track 0 has passed, in sector 0.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "numbers here are small"
)]

mod common;

use common::*;
use proptest::prelude::*;
use raidlab_device::{Completion, Device, DeviceSpec, PairPricing};
use raidlab_types::{Instant, OpKind, Operation, Seed};

const REV: u64 = 10_000_000;
const PLAIN: &str = r#""kind": "hdd", "revolution_ms": 10.0, "heads": 2,
    "zones": [{"cylinders": 20, "sectors_per_track": 10}], "head_switch_ms": 0.6, "seek": {"kind": "constant", "ms": 2.0}"#;

/// A disk with further keys, and when time 0 of the tests is.
struct Bench {
    disk: Device,
    origin: u64,
}

fn bench(more: &str) -> Bench {
    let origin = alone(&mut device(&spec(""), PairPricing::Queued), Instant::ZERO, read(0, 0, 1)).rotation.as_ns();
    Bench { disk: device(&spec(more), PairPricing::Queued), origin: origin + 1000 * REV }
}

fn spec(more: &str) -> DeviceSpec {
    let comma = if more.is_empty() { "" } else { ", " };
    json(&format!("{{{PLAIN}{comma}{more}}}"))
}

fn buffer(more: &str) -> String {
    let comma = if more.is_empty() { "" } else { ", " };
    format!(r#""buffer": {{"segments": 4, "segment_sectors": 10{comma}{more}}}"#)
}

impl Bench {
    /// One operation alone; when it was complete, in ms.
    fn go(&mut self, ms: f64, op: Operation) -> f64 {
        let done = self.completion(ms, op);
        self.ms(done.done)
    }

    fn completion(&mut self, ms: f64, op: Operation) -> Completion {
        let at = self.at(ms);
        alone(&mut self.disk, at, op)
    }

    fn at(&self, ms: f64) -> Instant {
        at(self.origin + (ms * 1e6).round() as u64)
    }

    fn ms(&self, at: Instant) -> f64 {
        (at.as_ns() - self.origin) as f64 / 1e6
    }
}

fn write(id: u64, lba: u64, sectors: u64) -> Operation {
    op(id, OpKind::Write, lba, sectors)
}

/// Equal to the few nanoseconds that angles are rounded to.
#[track_caller]
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-4, "{found} ms, expected {expected}");
}

#[test]
fn a_disk_without_electronics_is_the_plain_one() {
    // Naming the cylinders makes it one with everything; nothing else differs.
    let mut value = serde_json::to_value(small_disk()).unwrap();
    value["cylinders"] = 101.into();
    let spec: DeviceSpec = serde_json::from_value(value).unwrap();
    let mut random = Seed::new(3).draws();
    for seed in 0..20 {
        let of = |spec| Device::new(spec, 512, PairPricing::Queued, Seed::new(seed)).unwrap();
        let (mut plain, mut full) = (of(&small_disk()), of(&spec));
        assert_eq!(plain.capacity_sectors(), full.capacity_sectors());
        let mut now = 0;
        for id in 0..50 {
            now += random.below(40_000_000);
            let (lba, sectors) = (random.below(14_000), 1 + random.below(300));
            let kind = if random.below(2) == 0 { OpKind::Read } else { OpKind::Write };
            let done = [&mut plain, &mut full].map(|disk| alone(disk, at(now), op(id, kind, lba, sectors)));
            let off = done[0].done.as_ns().abs_diff(done[1].done.as_ns());
            assert!(off <= 16, "{kind:?} {lba}+{sectors}: {done:?}");
            let parts = |c: &Completion| [c.seek, c.rotation, c.transfer, c.overhead].map(|part| part.as_ns());
            assert!(std::iter::zip(parts(&done[0]), parts(&done[1])).all(|(a, b)| a.abs_diff(b) <= 16), "{done:?}");
            now = now.max(done[0].done.as_ns());
        }
    }
}

#[test]
fn overheads_depend_on_kind_hit_and_what_came_before() {
    let commands = r#""commands": {"every_ms": 0.05, "read_miss_after_read_ms": 1.2, "read_miss_after_write_ms": 1.7,
        "write_miss_after_read_ms": 2.2, "write_miss_after_write_ms": 2.7, "read_hit_after_read_ms": 0.4,
        "read_hit_after_write_ms": 0.7, "read_completion_ms": 0.3, "write_completion_ms": 0.6}"#;
    let mut bench = bench(&format!("{commands}, {}", buffer("")));
    let mut next = |at: f64, op: Operation, overhead: f64, done: f64| {
        let completion = bench.completion(at, op);
        close(completion.overhead.as_ns() as f64 / 1e6, overhead);
        close(bench.ms(completion.done), done);
    };
    next(0.0, read(1, 5, 1), 0.05 + 1.2 + 0.3, 6.3);
    next(20.0, read(2, 5, 1), 0.05 + 0.4 + 0.3, 20.75);
    next(30.0, write(3, 5, 1), 0.05 + 2.2 + 0.6, 36.6);
    next(40.0, read(4, 5, 1), 0.05 + 0.7 + 0.3, 41.05);
    next(50.0, write(5, 5, 1), 0.05 + 2.2 + 0.6, 56.6);
    next(60.0, write(6, 5, 1), 0.05 + 2.7 + 0.6, 66.6);
    next(70.0, read(7, 15, 1), 0.05 + 1.7 + 0.3, 76.3);
}

#[test]
fn the_bus_works_while_the_medium_does() {
    // Faster than the medium: the last sector comes at 4, and goes out in half a ms.
    let mut fast = bench(&format!(r#""bus": {{"read_sector_ms": 0.5, "hold_for_read": true}}, {}"#, buffer("")));
    close(fast.go(0.0, read(1, 0, 4)), 4.5);
    // Slower: the first comes at 1, and four take 8 ms.
    let mut slow = bench(&format!(r#""bus": {{"read_sector_ms": 2.0, "hold_for_read": true}}, {}"#, buffer("")));
    close(slow.go(0.0, read(1, 0, 4)), 9.0);
    // From the buffer nothing is waited for.
    close(slow.go(20.0, read(2, 1, 3)), 26.0);
}

#[test]
fn a_read_that_leaves_the_bus_comes_back_for_its_watermark() {
    let commands = r#""commands": {"read_disconnect_after_read_ms": 0.3, "first_reselect_ms": 0.2,
        "other_reselect_ms": 0.15, "data_preparation_ms": 0.1}"#;
    let mut bench =
        bench(&format!(r#"{commands}, "bus": {{"read_sector_ms": 0.5}}, {}"#, buffer(r#""read_watermark": 0.5"#)));
    // Two sectors are there at 2.0; taking the bus takes 0.3; both are out at 3.3. The third is there by then: out at 3.8.
    // Leaving takes until 4.1, when the fourth is there; 0.25 to come back, 0.5 to send.
    close(bench.go(0.0, read(1, 0, 4)), 4.85);
}

#[test]
fn what_is_in_the_buffer_needs_no_arm() {
    let mut bench = bench(&buffer(""));
    close(bench.go(0.0, read(1, 0, 4)), 4.0);
    close(bench.go(20.3, read(2, 1, 2)), 20.3);
    // The first half is there, the rest comes by at 24 and 25.
    close(bench.go(22.0, read(3, 2, 4)), 26.0);
    // A write is not: it overwrites, and what it wrote may be read.
    close(bench.go(31.5, write(4, 2, 1)), 33.0);
    close(bench.go(33.1, read(5, 2, 1)), 33.1);
    // Sectors 0 and 1 went with the segment that the write took.
    close(bench.go(43.5, read(6, 0, 1)), 51.0);
    let mut without = self::bench(&buffer(r#""caching": false"#));
    close(without.go(0.0, read(1, 0, 4)), 4.0);
    close(without.go(20.3, read(2, 1, 2)), 23.0);
    let mut reads_only = self::bench(&buffer(r#""read_hits_on_written": false"#));
    close(reads_only.go(0.0, write(1, 2, 1)), 3.0);
    close(reads_only.go(3.1, read(2, 2, 1)), 13.0);
}

#[test]
fn the_oldest_segment_goes_first() {
    let mut bench = bench(r#""buffer": {"segments": 2, "segment_sectors": 10}"#);
    close(bench.go(0.0, read(1, 0, 1)), 1.0);
    close(bench.go(1.5, read(2, 2, 1)), 3.0);
    close(bench.go(3.5, read(3, 0, 1)), 3.5);
    // Takes the place of 2, which has been used longest ago.
    close(bench.go(3.5, read(4, 4, 1)), 5.0);
    close(bench.go(20.7, read(5, 0, 1)), 20.7);
    close(bench.go(20.7, read(6, 2, 1)), 23.0);
}

#[test]
fn reading_ahead_goes_on_behind_the_command() {
    let ahead = |more: &str| bench(&buffer(&format!(r#""read_ahead": {more}"#)));
    let mut track = ahead(r#""track""#);
    close(track.go(0.0, read(1, 0, 2)), 2.0);
    // At 4.5 sector 3 is there and 4 on its way.
    close(track.go(4.5, read(2, 3, 2)), 5.0);
    close(track.go(8.0, read(3, 6, 2)), 8.0);
    // The track ends at 10, and so does reading ahead.
    close(track.go(25.0, read(4, 9, 1)), 25.0);
    close(track.go(25.0, read(5, 10, 1)), 31.0);
    // To the end of the cylinder: a switch of heads makes it miss sector 10, which comes round at 20.
    let mut cylinder = ahead(r#""cylinder""#);
    close(cylinder.go(0.0, read(1, 0, 2)), 2.0);
    close(cylinder.go(22.5, read(2, 10, 2)), 22.5);
    // It read as many as a segment holds, up to sector 11; 12 went by at 22.
    close(cylinder.go(22.6, read(3, 11, 2)), 33.0);
    let mut segment = ahead(r#""segment""#);
    close(segment.go(0.0, read(1, 18, 2)), 10.0);
    // The arm needs 2 ms to the next cylinder, and misses sector 20 until 20.
    close(segment.go(22.5, read(2, 20, 2)), 22.5);
}

#[test]
fn reading_ahead_has_its_least_and_its_most() {
    let mut most = bench(&buffer(r#""read_ahead": "segment", "maximum_read_ahead_sectors": 2"#));
    close(most.go(0.0, read(1, 0, 2)), 2.0);
    close(most.go(20.9, read(2, 2, 2)), 20.9);
    // The second read brought its own allowance: the arm has read on to sector 5, but no further.
    close(most.go(29.5, read(3, 8, 1)), 39.0);
    let mut least = bench(&buffer(r#""read_ahead": "segment", "minimum_read_ahead_sectors": 5"#));
    close(least.go(0.0, read(1, 0, 2)), 2.0);
    // Sector 6 is the last that must be read, at 7; then 2 ms of movement, and sector 60 comes by at 10.
    let far = least.completion(2.5, read(2, 60, 1));
    close(least.ms(far.started), 7.0);
    close(least.ms(far.done), 11.0);
    let mut keeps = bench(&buffer(r#""read_ahead": "segment", "keep_requested": "keep""#));
    close(keeps.go(0.0, read(1, 0, 4)), 4.0);
    // Ten sectors hold 0 to 9; the first of them are still there.
    close(keeps.go(30.7, read(2, 0, 10)), 30.7);
    let mut drops = bench(&buffer(r#""keep_requested": "drop""#));
    close(drops.go(0.0, read(1, 0, 4)), 4.0);
    close(drops.go(20.5, read(2, 2, 1)), 23.0);
}

#[test]
fn reading_ahead_stops_at_a_sector_or_within() {
    for (within, leaves) in [(true, 4.3), (false, 5.0)] {
        let more = format!(r#""read_ahead": "track", "stop_within_sector": {within}"#);
        let mut bench = bench(&buffer(&more));
        close(bench.go(0.0, read(1, 0, 2)), 2.0);
        // Over sector 4 when it is called away.
        let away = bench.completion(4.3, read(2, 40, 1));
        close(away.overhead.as_ns() as f64 / 1e6, leaves - 4.3);
        close(bench.ms(away.done), 11.0);
    }
}

#[test]
fn a_hit_may_set_the_arm_to_what_follows() {
    for (on_hit, done) in [(true, 47.2), (false, 58.0)] {
        let more = format!(r#""read_ahead": "track", "maximum_read_ahead_sectors": 3, "read_ahead_on_hit": {on_hit}"#);
        let mut bench = bench(&buffer(&more));
        close(bench.go(0.0, read(1, 0, 2)), 2.0);
        // Sectors 0 to 4 are there; the hit allows 5, 6 and 7 to follow, which the arm meets at 35.
        close(bench.go(32.5, read(2, 3, 2)), 32.5);
        close(bench.go(47.2, read(3, 7, 1)), done);
    }
}

#[test]
fn zero_latency_takes_sectors_as_they_come() {
    for (kind, key) in [(OpKind::Read, "zero_latency_read"), (OpKind::Write, "zero_latency_write")] {
        let mut plain = bench(&buffer(""));
        close(plain.go(4.0, op(1, kind, 0, 10)), 20.0);
        let mut bench = bench(&buffer(&format!(r#""caching": false, "{key}": true"#)));
        close(bench.go(4.0, op(1, kind, 0, 10)), 14.0);
        // The other head is there at 24.6: sector 15 first, then 12, 13 and 14.
        close(bench.go(24.0, op(2, kind, 12, 4)), 35.0);
        // Before its first sector nothing changes.
        close(bench.go(51.0, op(3, kind, 12, 4)), 56.0);
    }
}

#[test]
fn free_sectors_are_kept() {
    let mut bench = bench(&buffer(r#""read_free_sectors": true"#));
    // It comes down behind sector 6, and reads the track from its beginning until 6 is there.
    close(bench.go(8.0, read(1, 6, 1)), 17.0);
    close(bench.go(33.3, read(2, 1, 3)), 33.3);
}

#[test]
fn a_write_waits_for_its_data_or_misses_its_turn() {
    let commands = r#""commands": {"write_miss_after_read_ms": 0.9, "write_miss_after_write_ms": 0.9}"#;
    let mut bench = bench(&format!(r#"{commands}, "bus": {{"write_sector_ms": 0.5}}, {}"#, buffer("")));
    // Data at 1.4: in time for sector 5, too late for sector 1 at 11.
    close(bench.go(0.0, write(1, 5, 1)), 6.0);
    close(bench.go(10.0, write(2, 1, 1)), 22.0);
    // A bus slower than the medium: data at 1.5, 3, 4.5 and 6; sector 4 would have to be there at 4.
    let mut slow = self::bench(&format!(r#""bus": {{"write_sector_ms": 1.5}}, {}"#, buffer("")));
    close(slow.go(0.0, write(1, 2, 4)), 16.0);
}

#[test]
fn a_write_longer_than_the_buffer_waits_for_room() {
    // Two sectors of room, a bus of 0.1 ms a sector: the medium paces it, so nothing is lost.
    let small = r#""buffer": {"segments": 1, "segment_sectors": 2}"#;
    let mut bench = bench(&format!(r#""bus": {{"write_sector_ms": 0.1, "hold_for_write": true}}, {small}"#));
    close(bench.go(0.0, write(1, 2, 6)), 8.0);
    // Reading over a bus that takes 2 ms a sector: 0 and 1 fill the buffer at 2, 2 finds no room and comes round again.
    let mut slow = self::bench(&format!(r#""bus": {{"read_sector_ms": 2.0, "hold_for_read": true}}, {small}"#));
    close(slow.go(0.0, read(1, 0, 3)), 15.0);
}

#[test]
fn settling_may_shorten_the_movement_of_writes() {
    for (settle, expected) in [(0.5, 2.5), (-0.5, 1.5)] {
        let mut bench = bench(&format!(r#""write_settle_ms": {settle}"#));
        let moved = bench.completion(0.0, write(1, 25, 1));
        close(moved.seek.as_ns() as f64 / 1e6, expected);
        close(bench.completion(20.0, write(2, 26, 1)).seek.as_ns() as f64, 0.0);
    }
    let spec = spec(r#""write_settle_ms": -0.7"#);
    let refused = Device::new(&spec, 512, PairPricing::Queued, Seed::new(1)).unwrap_err();
    assert_eq!(refused.key, "write_settle_ms");
}

#[test]
fn writes_may_be_complete_before_they_are_written() {
    let bus = r#""bus": {"write_sector_ms": 0.5}"#;
    let mut full = bench(&format!("{bus}, {}", buffer(r#""write_back": "full", "combine_writes": true"#)));
    close(full.go(0.0, write(1, 5, 1)), 0.5);
    // Goes on from it: joined, and written as the next sector without a turn in between.
    close(full.go(1.0, write(2, 6, 1)), 1.5);
    // A read waits for the arm until 7, moves, and finds its sector at 15.
    let read_at = full.completion(2.0, read(3, 45, 1));
    close(full.ms(read_at.started), 7.0);
    close(full.ms(read_at.done), 16.0);
    // One that must be on the medium says so when it is.
    let mut durable = write(4, 46, 1);
    durable.force_unit_access = true;
    close(full.go(25.0, durable), 27.0);
    close(full.go(35.0, write(5, 46, 1)), 35.5);
    close(full.go(35.6, op(6, OpKind::Flush, 0, 0)), 37.0);
}

#[test]
fn the_next_write_waits_for_the_arm_unless_it_may_fill_the_buffer() {
    for (prebuffers, done) in [(false, 6.5), (true, 1.5)] {
        let more = format!(r#""write_back": "full", "write_segments": 2, "write_prebuffering": {prebuffers}"#);
        let mut bench = bench(&format!(r#""bus": {{"write_sector_ms": 0.5}}, {}"#, buffer(&more)));
        close(bench.go(0.0, write(1, 5, 1)), 0.5);
        close(bench.go(1.0, write(2, 45, 1)), done);
    }
}

#[test]
fn the_arm_may_go_on_before_the_completion() {
    let commands = r#""commands": {"read_completion_ms": 1.5}"#;
    for (preseek, second) in [("none", 6.5), ("during_completion", 5.5), ("before_completion", 5.0)] {
        let more = buffer(&format!(r#""preseek": "{preseek}""#));
        let bus = r#""bus": {"read_sector_ms": 0.5, "hold_for_read": true}"#;
        let mut bench = bench(&format!("{commands}, {bus}, {more}"));
        for id in 0..2 {
            let now = bench.at(0.0);
            bench.disk.handle_op(now, read(id, 4 + 3 * id, 1));
        }
        let done = drain(&mut bench.disk);
        close(bench.ms(done[0].done), 5.0 + 0.5 + 1.5);
        // What it did before the other's completion shows in when it began.
        close(bench.ms(done[1].started), if preseek == "none" { 7.0 } else { second });
    }
}

#[test]
fn an_extra_disconnect_takes_the_data_later() {
    let commands = r#""commands": {"first_reselect_ms": 0.1, "data_preparation_ms": 0.05, "other_reselect_ms": 0.15,
        "write_completion_ms": 0.2, "extra_write_disconnect": {"command_ms": 0.4, "disconnect_ms": 0.3, "away_ms": 1.0,
        "second_disconnect_ms": 0.25, "seek_delay_ms": 0.1, "gather_sectors": 2, "gather_long_sectors": 3,
        "long_from_sectors": 4}}"#;
    let bus = r#""bus": {"write_sector_ms": 0.5, "hold_for_write": true}"#;
    let one = r#""buffer": {"segments": 1, "segment_sectors": 10}"#;
    let mut bench = bench(&format!("{commands}, {bus}, {one}"));
    bench.go(0.0, write(1, 0, 1));
    // Data from 1.85 on: at 2.35, 2.85, 3.35. The arm moves from 0.5 to 2.5; sector 25 passes at 5.
    close(bench.go(100.0, write(2, 25, 3)), 108.0 + 0.15 + 0.2);
    // Sector 43 would pass at 3, but of four sectors three must be there first, at 3.35.
    close(bench.go(200.0, write(3, 43, 4)), 217.0 + 0.15 + 0.2);
}

#[test]
fn disks_of_inexact_speed_differ() {
    let spec = spec(r#""rpm_error_percent": 1.0"#);
    let turn = |seed| {
        let mut disk = Device::new(&spec, 512, PairPricing::Queued, Seed::new(seed)).unwrap();
        let first = alone(&mut disk, Instant::ZERO, read(0, 3, 1));
        let again = alone(&mut disk, first.done, read(1, 3, 1));
        let twin = alone(&mut disk.twin(Seed::new(seed)), Instant::ZERO, read(0, 3, 1));
        assert_eq!(twin, first, "a twin of the same seed is the same disk");
        again.done.since(first.done).as_ns()
    };
    let turns: Vec<u64> = (0..40).map(turn).collect();
    assert!(turns.iter().all(|turn| (9_900_000..=10_102_000).contains(turn)), "{turns:?}");
    let (least, most) = (turns.iter().min().unwrap(), turns.iter().max().unwrap());
    assert!(most - least > 100_000, "{turns:?}");
}

#[test]
fn means_over_random_reads_are_those_worked_out() {
    let spec = busy_disk("none", "none", 0b0000_0111);
    let mut disk = device(&spec, PairPricing::Queued);
    let (mut random, count) = (Seed::new(4).draws(), 30_000);
    for id in 0..count {
        // Long after the last, at any angle, and never in the buffer: each looks for one of 400 sectors.
        let now = at(id * 100 * REV + random.below(REV));
        let lba = random.below(disk.capacity_sectors());
        alone(&mut disk, now, read(id, lba, 1));
    }
    let (mean, totals) = (spec.idle_mean(OpKind::Read, 512).unwrap(), *disk.totals());
    let close = |name: &str, total: u64, expected: u64, within: f64| {
        let found = total as f64 / count as f64;
        assert!((found / expected as f64 - 1.0).abs() < within, "{name}: {found} against {expected}");
    };
    close("seek", totals.seek_ns, mean.seek.as_ns(), 0.02);
    close("rotation", totals.rotation_ns, mean.rotation.as_ns(), 0.02);
    close("all", totals.busy_ns, mean.total().as_ns(), 0.03);
}

proptest! {
    /// Everything taken comes out once and in order of time, no command begins before it is there or while another has the
    /// disk to itself, and the parts of its time are its time.
    #[test]
    fn commands_are_served_one_after_another(
        back in 0usize..3, ahead in 0usize..5, flags: u8, seed: u64, pricing in 0usize..3,
        arrivals in prop::collection::vec((0u64..12_000_000, 0u64..640, 1u64..40, 0u8..8), 1..80),
    ) {
        let spec = busy_disk(
            ["none", "sequential", "full"][back],
            ["none", "track", "cylinder", "segment", "next_track"][ahead],
            flags,
        );
        let pricing = [PairPricing::Queued, PairPricing::Head, PairPricing::Prepaid][pricing];
        let mut device = Device::new(&spec, 512, pricing, Seed::new(seed)).unwrap();
        let (mut now, mut done) = (0, Vec::new());
        for (id, &(gap, lba, sectors, kind)) in arrivals.iter().enumerate() {
            now += if gap % 3 == 0 { 0 } else { gap };
            while let Some(due) = device.poll_timeout().filter(|due| due.as_ns() <= now) {
                done.extend(std::iter::from_fn(|| device.poll_done(due)));
            }
            let lba = lba % (device.capacity_sectors() - sectors);
            let kind = match kind { 0..=2 => OpKind::Write, 3 => OpKind::WriteZeroes, 4 => OpKind::Flush, _ => OpKind::Read };
            let mut op = op(id as u64, kind, lba, sectors);
            op.force_unit_access = gap % 5 == 0;
            device.handle_op(at(now), op);
        }
        done.extend(drain(&mut device));
        prop_assert!(done.windows(2).all(|pair| pair[0].done <= pair[1].done));
        let mut ids: Vec<u64> = done.iter().map(|c| c.id.0).collect();
        ids.sort_unstable();
        prop_assert!(ids.iter().copied().eq(0..arrivals.len() as u64));
        for c in &done {
            prop_assert!(c.arrived <= c.started && c.started <= c.done);
            prop_assert_eq!(c.done.since(c.started), c.overhead + c.seek + c.rotation + c.transfer);
        }
        let t = device.totals();
        prop_assert_eq!(t.busy_ns, t.seek_ns + t.rotation_ns + t.transfer_ns + t.overhead_ns + t.paired_ns);
        // The same again gives the same.
        let mut again = device.twin(Seed::new(seed));
        for (id, &(_, lba, sectors, _)) in arrivals.iter().enumerate() {
            again.handle_op(Instant::ZERO, read(id as u64, lba % (device.capacity_sectors() - sectors), sectors));
        }
        let mut once_more = device.twin(Seed::new(seed));
        for (id, &(_, lba, sectors, _)) in arrivals.iter().enumerate() {
            once_more.handle_op(Instant::ZERO, read(id as u64, lba % (device.capacity_sectors() - sectors), sectors));
        }
        prop_assert_eq!(drain(&mut again), drain(&mut once_more));
    }

    /// A command that is given later is not done earlier, as long as nothing else goes on.
    #[test]
    fn waiting_never_makes_a_first_read_earlier(seed: u64, lba in 0u64..600, sectors in 1u64..30, first in 0u64..30_000_000, later in 1u64..5_000_000) {
        let spec = busy_disk("none", "track", 0b0100_0101);
        let done = |now| {
            let mut device = Device::new(&spec, 512, PairPricing::Queued, Seed::new(seed)).unwrap();
            alone(&mut device, at(now), read(0, lba, sectors)).done
        };
        // Zero-latency reading takes what comes: an earlier landing may begin with a later sector, but never end later.
        prop_assert!(done(first) <= done(first + later));
    }
}

/// A cache of two writes in front of the disk above.
const CACHE: &str = r#""write_back": "ordered", "write_cache_sectors": 10, "write_cache_extents": 2"#;

#[test]
fn an_ordered_cache_completes_writes_at_once_and_destages_the_nearest_when_it_is_full() {
    let mut bench = bench(&buffer(CACHE));
    // Both come at 0, when sector 0 of the first track passes. The arm reaches sector 25 (two cylinders on) before 8.
    for (id, lba) in [(1, 8), (2, 45)] {
        close(bench.go(0.0, write(id, lba, 1)), 0.0);
    }
    // The third needs room: what is nearest goes. 2 ms of movement, then the fifth sector begins at 5 and ends at 6.
    let third = bench.completion(0.0, write(3, 100, 1));
    close(bench.ms(third.done), 6.0);
    close(third.seek.as_ns() as f64 / 1e6, 2.0);
    close(third.rotation.as_ns() as f64 / 1e6, 3.0);
    // What waits is read without the arm.
    close(bench.go(6.0, read(4, 8, 1)), 6.0);
}

#[test]
fn what_waits_is_destaged_while_nobody_wants_the_arm() {
    let mut bench = bench(&buffer(CACHE));
    close(bench.go(0.0, write(1, 8, 1)), 0.0);
    // From 0 on: sector 8 ends at 9, on the track where the arm is. A flush has nothing more to do.
    close(bench.go(9.5, op(2, OpKind::Flush, 0, 0)), 9.5);
    close(bench.go(20.0, write(3, 8, 1)), 20.0);
    // At 22 the arm is on its way to it, and the read of the sector before waits until it is done, then a revolution less one.
    close(bench.go(22.0, read(4, 7, 1)), 38.0);
}

#[test]
fn a_durable_write_and_a_flush_wait_for_the_medium() {
    let mut bench = bench(&buffer(CACHE));
    let mut durable = write(1, 5, 1);
    durable.force_unit_access = true;
    close(bench.go(0.0, durable), 6.0);
    close(bench.go(20.0, write(2, 3, 1)), 20.0);
    close(bench.go(20.0, op(3, OpKind::Flush, 0, 0)), 24.0);
    // A durable write replaces what waited of the same sectors: nothing is left to be written.
    close(bench.go(40.0, write(4, 9, 1)), 40.0);
    let mut again = write(5, 9, 1);
    again.force_unit_access = true;
    close(bench.go(40.0, again), 50.0);
    close(bench.go(50.0, op(6, OpKind::Flush, 0, 0)), 50.0);
}

#[test]
fn reads_in_a_row_are_not_held_up_by_what_waits() {
    let rest = |ms: f64| {
        let mut bench = bench(&buffer(&format!(r#"{CACHE}, "destage_after_read_ms": {ms:?}"#)));
        bench.go(0.0, read(1, 0, 1));
        bench.go(1.0, write(2, 45, 1));
        // Sector 2 passes from 2 to 3, if the arm is still there.
        bench.go(1.5, read(3, 2, 1))
    };
    close(rest(5.0), 3.0);
    // Else it has gone two cylinders on, writes until 6, and comes back at 8.
    close(rest(0.0), 13.0);
}

#[test]
fn a_queue_serves_what_the_buffer_has_first() {
    let spec =
        spec(&format!(r#"{}, "scheduler": "sptf""#, buffer(r#""read_ahead": "segment", "almost_read_hits": true"#)));
    let mut disk = device(&spec, PairPricing::Queued);
    disk.handle_op(Instant::ZERO, read(0, 0, 2));
    // Going on with the stream costs nothing; sector 5 has the shorter way for an arm that must wait for 2 to come round.
    [(1, 5, 1), (2, 2, 2)]
        .into_iter()
        .for_each(|(id, lba, sectors)| disk.handle_op(Instant::ZERO, read(id, lba, sectors)));
    let order: Vec<u64> = drain(&mut disk).iter().map(|done| done.id.0).collect();
    assert_eq!(order, [0, 2, 1]);
}

#[test]
fn a_read_a_little_beyond_what_is_read_ahead_goes_on_with_it() {
    let after_a_gap = |sectors: u64| {
        let more = r#""read_ahead": "segment", "almost_read_hits": true, "almost_read_hit_sectors": "#;
        let overhead = r#""commands": {"read_miss_after_read_ms": 0.6}"#;
        let mut bench = bench(&format!("{overhead}, {}", buffer(&format!("{more}{sectors}"))));
        // Sector 0 is found after its command's time, at 10, and has passed at 11.
        close(bench.go(0.0, read(1, 0, 1)), 11.0);
        // Sector 2 begins to pass at 12, a little too early for a command that comes at 11.5 and begins anew.
        bench.go(11.5, read(2, 2, 1))
    };
    close(after_a_gap(2), 13.0);
    close(after_a_gap(0), 23.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is asked for: what was begun ends, time goes on, the parts add up, and once flushed nothing waits.
    #[test]
    fn an_ordered_cache_never_loses_its_way(seed in 0u64..1 << 32, flags in 0u8..=255, depth in 1usize..12) {
        let mut value = serde_json::to_value(busy_disk("ordered", "segment", flags)).unwrap();
        value["buffer"]["write_cache_sectors"] = 40.into();
        value["buffer"]["write_cache_extents"] = 5.into();
        let spec: DeviceSpec = serde_json::from_value(value).unwrap();
        let mut disk = device(&spec, PairPricing::Queued);
        let (mut random, mut now, mut last) = (Seed::new(seed).draws(), Instant::ZERO, Instant::ZERO);
        for id in 0..120 {
            while disk.in_flight() >= depth {
                now = disk.poll_timeout().unwrap().max(now);
                while let Some(done) = disk.poll_done(now) {
                    let parts = done.seek + done.rotation + done.transfer + done.overhead;
                    prop_assert_eq!(done.done.since(done.started), parts);
                    prop_assert!(done.started >= done.arrived && done.done >= last);
                    last = done.done;
                }
            }
            let kind = [OpKind::Read, OpKind::Write, OpKind::Write, OpKind::Flush][random.below(4) as usize];
            let mut one = op(id, kind, random.below(300), 1 + random.below(30));
            one.force_unit_access = random.below(9) == 0;
            disk.handle_op(now, one);
        }
        drain(&mut disk);
        let later = at(last.as_ns() + 1_000_000_000);
        let first = alone(&mut disk, later, op(1000, OpKind::Flush, 0, 0));
        let second = alone(&mut disk, first.done, op(1001, OpKind::Flush, 0, 0));
        prop_assert_eq!((second.seek.as_ns(), second.rotation.as_ns()), (0, 0));
    }
}
