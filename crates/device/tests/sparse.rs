//! A sparse flash drive beside the whole one: steady states are the same, within stated bounds.

mod common;

use common::*;
use raidlab_device::{Device, DeviceSpec, PairPricing};
use raidlab_types::number::f64_from;
use raidlab_types::{Instant, OpKind, Seed};
use std::collections::BTreeMap;

/// 16 dies behind 8 channels, of a block for each 4 MiB of the drive (and an eighth more); the sparse one has that of its part,
/// a whole number, so that rounding to blocks gives neither of them more to spare.
fn drive(capacity_mib: u64, sparse: u32, initial: &str) -> DeviceSpec {
    json(&format!(
        r#"{{"kind": "ssd", "capacity_bytes": {}, "sparse": {sparse}, "channels": 8, "dies_per_channel": 2,
            "pages_per_block": 8, "page_bytes": 16384, "planes_per_die": 2, "read_us": 60, "program_us": 800,
            "erase_ms": 2, "channel_mb_s": 400, "link_mb_s": 1000, "link_command_us": 3, "spare_percent": 12.5,
            "cache_bytes": 4194304, "read_overhead_us": 10, "write_overhead_us": 20, "power_loss_protection": true,
            "initial": "{initial}"}}"#,
        capacity_mib << 20
    ))
}

/// Where the next request goes, as a share of the drive.
#[derive(Debug, Clone, Copy)]
enum Place {
    Anywhere,
    /// Nine of ten within the first fifth.
    Hot,
}

/// Mean response of reads and of writes in us, and write amplification, of a closed loop.
fn steady(spec: &DeviceSpec, read_percent: u64, sectors: u64, place: Place, requests: u64) -> [f64; 3] {
    let mut device = Device::new(spec, 512, PairPricing::Queued, Seed::new(7)).unwrap();
    let mut rng = Seed::new(9).draws();
    let slots = device.capacity_sectors() / sectors;
    let (mut sums, mut counts, mut now) = ([0u64; 2], [0u64; 2], Instant::ZERO);
    let mut kinds = BTreeMap::new();
    for id in 0..requests {
        // Half is warm-up.
        if id == requests / 2 {
            device.reset_totals(now);
            (sums, counts) = ([0; 2], [0; 2]);
        }
        while device.in_flight() >= 16 {
            now = device.poll_timeout().unwrap().max(now);
            while let Some(done) = device.poll_done(now) {
                let kind: usize = kinds.remove(&done.id).unwrap();
                sums[kind] += done.done.since(done.arrived).as_ns();
                counts[kind] += 1;
            }
        }
        let is_read = rng.below(100) < read_percent;
        let slot = match place {
            Place::Hot if rng.below(10) < 9 => rng.below(slots / 5),
            _ => rng.below(slots),
        };
        let kind = if is_read { OpKind::Read } else { OpKind::Write };
        let request = op(id, kind, slot * sectors, sectors);
        kinds.insert(request.id, usize::from(!is_read));
        device.handle_op(now, request);
    }
    let mean = |kind: usize| f64_from(sums[kind]) / f64_from(counts[kind].max(1)) / 1e3;
    let flash = device.flash(now).unwrap();
    let written = flash.flash_host_bytes + flash.flash_moved_bytes + flash.flash_padded_bytes;
    [mean(0), mean(1), f64_from(written) / f64_from(flash.flash_host_bytes.max(1))]
}

/// Within so many percent of each other.
fn assert_close(whole: [f64; 3], sparse: [f64; 3], percent: f64, what: &str) {
    for (name, (whole, sparse)) in ["read us", "write us", "amplification"].iter().zip(whole.iter().zip(sparse)) {
        let error = if *whole == 0.0 { sparse } else { 100.0 * (sparse / whole - 1.0) };
        println!("{what}: {name} {whole:.3} {sparse:.3} {error:+.2} %");
        assert!(error.abs() <= percent, "{what}: {name} {whole} of the whole drive, {sparse} of the sparse one");
    }
}

#[test]
#[ignore = "slow"]
fn random_loads_settle_where_the_whole_drive_does() {
    // 128 blocks of data a die, of 1024: the one that is being filled is more of the spare, which costs writes 2 to 3 %.
    let (whole, sparse) = (drive(4096, 1, "steady"), drive(4096, 8, "steady"));
    for (read_percent, sectors) in [(100, 8), (0, 8), (70, 8)] {
        let [a, b] = [&whole, &sparse].map(|spec| steady(spec, read_percent, sectors, Place::Anywhere, 200_000));
        assert_close(a, b, 3.0, &format!("{read_percent} % reads of {sectors} sectors"));
    }
}

#[test]
#[ignore = "slow"]
fn loads_with_a_steady_state_of_their_own_come_to_the_same() {
    // Long enough for either to settle: it takes the whole one four times as long.
    for (read_percent, sectors, place, requests) in
        [(50, 8, Place::Hot, 3_000_000), (70, 128, Place::Anywhere, 400_000)]
    {
        let drives = [1, 4].map(|sparse| drive(1024, sparse, "steady"));
        let [a, b] = drives.map(|spec| steady(&spec, read_percent, sectors, place, requests));
        assert_close(a, b, 5.0, &format!("{read_percent} % reads of {sectors} sectors, {place:?}"));
    }
}

#[test]
fn a_sparse_drive_has_its_whole_capacity_and_reads_in_order_as_the_whole_one() {
    let [whole, sparse] = [1, 8].map(|sparse| device(&drive(1024, sparse, "filled"), PairPricing::Queued));
    assert_eq!(whole.capacity_sectors() * 512 / (16 << 15), 1024 << 20 >> 19);
    assert!(sparse.capacity_sectors() <= whole.capacity_sectors());
    assert!(whole.capacity_sectors() - sparse.capacity_sectors() < 8 * 16 * 64);
    let stream = |mut device: Device| {
        let mut now = Instant::ZERO;
        for id in 0..2000 {
            device.handle_op(now, read(id, id * 256, 256));
            while device.in_flight() >= 8 {
                now = device.poll_timeout().unwrap();
                while device.poll_done(now).is_some() {}
            }
        }
        now.as_ns()
    };
    let (whole, sparse) = (stream(whole), stream(sparse));
    assert!(whole.abs_diff(sparse) < whole / 100, "{whole} {sparse}");
}

#[test]
fn rows_that_share_a_place_are_written_and_forgotten_together() {
    // Two rows of 16 dies x 2 planes x 4 units share a place: 128 units, 1024 sectors a row.
    let mut device = device(&drive(64, 2, "fresh"), PairPricing::Queued);
    let spent = |device: &mut Device, id: u64, at: Instant, kind: OpKind, lba: u64| {
        device.handle_op(at, op(id, kind, lba, 8));
        let done = drain(device)[0];
        done.done.since(done.started).as_ns()
    };
    let late = |ms: u64| Instant::from_ns(ms * 1_000_000);
    for i in 0..512 {
        spent(&mut device, i, late(i + 1), OpKind::Write, i * 8 % 1024);
    }
    let nothing = spent(&mut device, 600, late(2000), OpKind::Read, 2 * 1024);
    assert!(spent(&mut device, 601, late(2001), OpKind::Read, 0) > nothing, "was written");
    assert!(spent(&mut device, 602, late(2002), OpKind::Read, 1024) > nothing, "shares its place");
    spent(&mut device, 603, late(2003), OpKind::Discard, 1024);
    assert_eq!(spent(&mut device, 604, late(2004), OpKind::Read, 0), nothing);
}
