//! The disk against what can be worked out: exact revolutions, bounds, means, transfers over every boundary.

#![allow(clippy::cast_lossless, clippy::cast_precision_loss, reason = "numbers here are small")]

mod common;

use common::*;
use proptest::prelude::*;
use raidlab_device::{DeviceSpec, PairPricing};
use raidlab_types::{Instant, OpKind, Seed};

const REV: u64 = 10_000_000;

#[test]
fn reading_a_sector_again_takes_exactly_one_revolution() {
    let mut disk = device(&small_disk(), PairPricing::Queued);
    for lba in [0, 69, 70, 8399, 8400, 8549, 8550, disk.capacity_sectors() - 1] {
        let first = alone(&mut disk, at(77_777_777), read(1, lba, 1));
        let again = alone(&mut disk, first.done, read(2, lba, 1));
        assert_eq!(again.done.since(first.done).as_ns(), REV, "sector {lba}");
        let much_later = at(first.done.as_ns() + 1_000_003 * REV);
        assert_eq!(alone(&mut disk, much_later, read(3, lba, 1)).done.since(much_later).as_ns(), REV, "no drift");
    }
}

#[test]
fn what_follows_under_the_head_follows_without_a_wait() {
    // Without overhead, sector after sector costs no more than all of them at once.
    let DeviceSpec::Hdd(mut spec) = small_disk() else { unreachable!() };
    spec.read_overhead_ms = 0.0;
    let spec = DeviceSpec::Hdd(spec);
    let (mut one_by_one, mut at_once) = (device(&spec, PairPricing::Queued), device(&spec, PairPricing::Queued));
    let count = at_once.capacity_sectors() - 100;
    let whole = alone(&mut at_once, Instant::ZERO, read(1, 100, count));
    (0..count).for_each(|i| one_by_one.handle_op(Instant::ZERO, read(i, 100 + i, 1)));
    let last = *drain(&mut one_by_one).last().unwrap();
    assert_eq!(last.done, whole.done, "closed form over tracks, cylinders and zones against sector by sector");
    let totals = one_by_one.totals();
    assert_eq!(
        (totals.seek_ns, totals.rotation_ns, totals.transfer_ns),
        (whole.seek.as_ns(), whole.rotation.as_ns(), whole.transfer.as_ns())
    );
}

#[test]
fn a_head_switch_hidden_by_the_skew_costs_the_skew() {
    // Two tracks of one cylinder: skew of 7 sectors of 9.63 ms / 70, gap of 0.37 ms, switch of 0.8 ms.
    let mut disk = device(&small_disk(), PairPricing::Queued);
    let done = alone(&mut disk, Instant::ZERO, read(1, 0, 140));
    assert_eq!(done.transfer.as_ns(), 2 * 9_630_000);
    assert_eq!(done.seek.as_ns(), 800_000);
    let to_sector_0 = alone(&mut device(&small_disk(), PairPricing::Queued), Instant::ZERO, read(1, 0, 1)).rotation;
    assert_eq!((done.rotation - to_sector_0).as_ns(), 370_000 + 963_000 - 800_000);
}

#[test]
fn writes_settle_after_each_movement_and_only_then() {
    let disk = || device(&small_disk(), PairPricing::Queued);
    let moved = |kind, lba, sectors| alone(&mut disk(), Instant::ZERO, op(1, kind, lba, sectors)).seek.as_ns();
    assert_eq!(moved(OpKind::Write, 0, 70), 0);
    assert_eq!(moved(OpKind::Read, 70, 1), 800_000);
    assert_eq!(moved(OpKind::Write, 70, 1), 1_200_000);
    assert_eq!(moved(OpKind::WriteZeroes, 0, 211), 2 * 1_200_000 + 1_510_000 + 400_000);
    assert_eq!(moved(OpKind::Flush, 0, 0), 0);
}

#[test]
fn a_flush_costs_its_overhead_in_its_turn() {
    let mut disk = device(&small_disk(), PairPricing::Queued);
    disk.handle_op(Instant::ZERO, op(1, OpKind::Write, 500, 4));
    disk.handle_op(Instant::ZERO, op(2, OpKind::Flush, 0, 0));
    let done = drain(&mut disk);
    assert_eq!(done[1].done.since(done[0].done).as_ns(), 330_000);
    assert_eq!((disk.totals().writes, disk.totals().others, disk.totals().write_bytes), (1, 1, 2048));
}

proptest! {
    #[test]
    fn service_lies_within_its_bounds(
        now in 0u64..1 << 50, seed: u64, first in 0u64..14_000, lba in 0u64..14_000, sectors in 1u64..400, write: bool,
    ) {
        let spec = small_disk();
        let mut disk = raidlab_device::Device::new(&spec, 512, PairPricing::Queued, Seed::new(seed)).unwrap();
        let before = alone(&mut disk, at(now), read(1, first, 1));
        let kind = if write { OpKind::Write } else { OpKind::Read };
        let done = alone(&mut disk, before.done, op(2, kind, lba, sectors));
        let tracks_crossed = sectors / 33 + 1;
        let longest_seek = 1_000_000 + 5_100_000 + 1_010_000 + 400_000;
        let rotation = done.rotation.as_ns();
        prop_assert!(done.transfer.as_ns() >= sectors * (9_630_000 / 70));
        prop_assert!(done.transfer.as_ns() <= sectors * (9_630_000 / 33 + 1));
        prop_assert!(rotation < REV * (1 + tracks_crossed));
        prop_assert!(done.seek.as_ns() <= longest_seek + tracks_crossed * 1_910_000);
        prop_assert_eq!(done.overhead.as_ns(), if write { 330_000 } else { 210_000 });
        let parts = done.seek + done.rotation + done.transfer + done.overhead;
        prop_assert_eq!(done.done.since(done.started), parts);
    }
}

#[test]
fn means_over_random_requests_are_those_worked_out() {
    for (text, sectors, count) in [(AMDAHL, 10u64, 60_000u64), (HDD_7200_BARE, 8, 60_000)] {
        let spec = file(text);
        let mut disk = device(&spec, PairPricing::Queued);
        let mut rng = Seed::new(5).draws();
        for i in 0..count {
            let lba = rng.below(disk.capacity_sectors() / sectors) * sectors;
            // Each waits a random while, so that the angle at the start is independent of the last end.
            let last = disk.totals().busy_ns * 2;
            alone(&mut disk, at(last + rng.below(REV) + i * 2 * REV), read(i, lba, sectors));
        }
        let bytes = sectors * spec_sector(&spec) as u64;
        let (mean, totals) = (spec.idle_mean(OpKind::Read, bytes).unwrap(), *disk.totals());
        let close = |name: &str, total: u64, expected: u64, within: f64| {
            let found = total as f64 / count as f64;
            let off = (found / expected as f64 - 1.0).abs();
            assert!(off < within, "{:?} {name}: {found} against {expected}", spec.name());
        };
        close("seek", totals.seek_ns, mean.seek.as_ns(), 0.006);
        close("rotation", totals.rotation_ns, mean.rotation.as_ns(), 0.01);
        // Crossing a track now and then comes on top for requests that do not fill one.
        close("transfer", totals.transfer_ns, mean.transfer.as_ns(), 0.01);
        close("all", totals.busy_ns, mean.total().as_ns(), 0.01);
    }
}

#[test]
fn the_typical_disk_streams_at_the_printed_rates() {
    let spec = file(HDD_7200_BARE);
    let mut disk = device(&spec, PairPricing::Queued);
    let sectors = 400_000;
    let mut rate = |lba| {
        let done = alone(&mut disk, Instant::ZERO, read(1, lba, sectors));
        sectors as f64 * 512.0 / ((done.seek + done.rotation + done.transfer).as_s_f64() - 0.02) / 1e6
    };
    let outer = rate(0);
    let inner = rate(spec_capacity(&spec) - sectors);
    assert!((173.0..178.0).contains(&outer) && (81.0..85.0).contains(&inner), "{outer} {inner}");
    assert!((1.0e12..1.001e12).contains(&(spec_capacity(&spec) as f64 * 512.0)));
}

fn spec_capacity(spec: &DeviceSpec) -> u64 {
    device(spec, PairPricing::Queued).capacity_sectors()
}

#[test]
fn disks_of_one_model_differ_in_angle_alone() {
    let spec = small_disk();
    let first = |seed| {
        let mut disk = raidlab_device::Device::new(&spec, 512, PairPricing::Queued, Seed::new(seed)).unwrap();
        alone(&mut disk, Instant::ZERO, read(1, 5000, 3))
    };
    assert_eq!(first(1), first(1));
    assert_ne!(first(1).rotation, first(2).rotation);
    assert_eq!((first(1).seek, first(1).transfer), (first(2).seek, first(2).transfer));
    let twin = device(&spec, PairPricing::Queued).twin(Seed::new(2));
    assert_eq!(alone(&mut { twin }, Instant::ZERO, read(1, 5000, 3)), first(2));
}

#[test]
fn an_array_of_larger_sectors_sees_the_same_disk() {
    let spec = small_disk();
    let mut own = device(&spec, PairPricing::Queued);
    let mut four = raidlab_device::Device::new(&spec, 2048, PairPricing::Queued, Seed::new(11)).unwrap();
    assert_eq!(four.capacity_sectors(), own.capacity_sectors() / 4);
    assert_eq!((four.logical_block_bytes(), own.logical_block_bytes()), (512, 512));
    assert_eq!(alone(&mut four, at(5), read(1, 30, 2)), alone(&mut own, at(5), read(1, 120, 8)));
    assert_eq!(four.totals().read_bytes, 4096);
    let refused = raidlab_device::Device::new(&spec, 1000, PairPricing::Queued, Seed::new(1)).unwrap_err();
    assert_eq!(refused.key, "sector_bytes");
}
