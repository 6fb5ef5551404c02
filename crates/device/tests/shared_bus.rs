//! Disks on one bus: each holds it as its own electronics say, and one at a time has it.

#![allow(clippy::cast_precision_loss, reason = "numbers here are small")]

mod common;

use common::*;
use raidlab_device::{Device, DeviceSpec, PairPricing, SharedBus};
use raidlab_types::{Instant, OpKind, Seed};

/// `busy_disk` that takes the next command when the last is complete.
fn disk(write_back: &str, read_ahead: &str, flags: u8) -> DeviceSpec {
    let mut spec = serde_json::to_value(busy_disk(write_back, read_ahead, flags)).unwrap();
    spec["buffer"]["preseek"] = "none".into();
    serde_json::from_value(spec).unwrap()
}

/// When each operation of a closed loop over several devices is complete, by the order of completion.
fn closed_loop(devices: &mut [Device], outstanding: u64, count: u64) -> Vec<(u64, Instant)> {
    let mut random = Seed::new(4).draws();
    let mut next = 0;
    let mut issue = |devices: &mut [Device], to: usize, now| {
        if next < count {
            let kind = if random.below(3) == 0 { OpKind::Write } else { OpKind::Read };
            // Near one another, so that the buffer has some of them.
            let lba = random.below(60);
            devices[to].handle_op(now, op(next, kind, lba, 1 + random.below(25)));
            next += 1;
        }
    };
    for to in 0..devices.len() {
        (0..outstanding).for_each(|_| issue(devices, to, Instant::ZERO));
    }
    let mut all = Vec::new();
    while let Some((now, which)) =
        devices.iter().enumerate().filter_map(|(which, device)| Some((device.poll_timeout()?, which))).min()
    {
        while let Some(done) = devices[which].poll_done(now) {
            all.push((done.id.0, done.done));
            issue(devices, which, now);
        }
    }
    all
}

fn on_a_bus(spec: &DeviceSpec, count: u64) -> (Vec<Device>, SharedBus) {
    let bus = SharedBus::default();
    let mut devices: Vec<Device> =
        (0..count).map(|i| Device::new(spec, 512, PairPricing::Queued, Seed::new(11).child(i)).unwrap()).collect();
    devices.iter_mut().for_each(|device| device.share_bus(&bus).unwrap());
    (devices, bus)
}

#[test]
fn a_disk_that_has_the_bus_to_itself_is_none_the_slower() {
    for write_back in ["none", "sequential", "full"] {
        for read_ahead in ["none", "segment"] {
            for flags in (0..=u8::MAX).filter(|flags| flags & 4 == 0).step_by(7) {
                let spec = disk(write_back, read_ahead, flags);
                let (mut shared, bus) = on_a_bus(&spec, 1);
                let mut own = [Device::new(&spec, 512, PairPricing::Queued, Seed::new(11).child(0)).unwrap()];
                let (ours, theirs) = (closed_loop(&mut shared, 1, 300), closed_loop(&mut own, 1, 300));
                assert_eq!(ours, theirs, "{write_back} {read_ahead} {flags:#b}");
                assert!(bus.totals(ours[299].1.as_ns()).0 >= 300);
            }
        }
    }
}

#[test]
fn the_second_of_two_hits_waits_for_the_first() {
    let spec = disk("none", "none", 0b10);
    let (mut devices, bus) = on_a_bus(&spec, 2);
    let far = Instant::from_ns(1_000_000_000);
    for device in &mut devices {
        alone(device, Instant::ZERO, read(0, 3, 4));
    }
    bus.reset_totals(far.as_ns());
    let [first, second] = [0, 1].map(|i: usize| alone(&mut devices[i], far, read(1, 3, 4)).done.since(far).as_ns());
    // Overhead of every command and of a hit, preparation, four sectors, completion: all of it with the bus in hand but for
    // the first, which passes before the command is looked at.
    let held = 200_000 + 50_000 + 4 * 900_000 + 100_000;
    assert_eq!((first, second), (10_000 + held, 10_000 + 2 * held));
    assert_eq!(bus.totals(far.as_ns() + 10 * held), (2, 2 * held, held));
}

#[test]
fn the_bus_is_the_limit_where_disks_together_want_more_of_it() {
    // Everything out of the buffer: 4 disks, each able to keep the bus busy all the time.
    let spec = disk("none", "none", 0b10);
    let (mut devices, bus) = on_a_bus(&spec, 4);
    for device in &mut devices {
        alone(device, Instant::ZERO, read(0, 3, 8));
    }
    let from = Instant::from_ns(1_000_000_000);
    bus.reset_totals(from.as_ns());
    let mut left = [50_u64; 4];
    devices.iter_mut().for_each(|device| device.handle_op(from, read(1, 3, 8)));
    let mut last = from;
    while let Some((now, which)) =
        devices.iter().enumerate().filter_map(|(which, device)| Some((device.poll_timeout()?, which))).min()
    {
        while devices[which].poll_done(now).is_some() {
            last = now;
            left[which] -= 1;
            if left[which] > 0 {
                devices[which].handle_op(now, read(1, 3, 8));
            }
        }
    }
    let (holds, busy_ns, wait_ns) = bus.totals(last.as_ns());
    assert_eq!(holds, 200);
    let elapsed_ns = last.since(from).as_ns();
    assert!(busy_ns <= elapsed_ns && busy_ns as f64 > 0.99 * elapsed_ns as f64, "{busy_ns} of {elapsed_ns}");
    // Three others wait while one has it.
    assert!((wait_ns as f64 / busy_ns as f64 - 3.0).abs() < 0.1, "{wait_ns} of {busy_ns}");
}

#[test]
fn everything_completes_once_whatever_the_disks_are() {
    for write_back in ["none", "sequential", "full", "ordered"] {
        for flags in (0..=u8::MAX).filter(|flags| flags & 4 == 0).step_by(11) {
            let mut spec = serde_json::to_value(busy_disk(write_back, "next_track", flags)).unwrap();
            if write_back == "ordered" {
                (spec["buffer"]["write_cache_sectors"], spec["buffer"]["write_cache_extents"]) = (40.into(), 6.into());
            }
            let spec: DeviceSpec = serde_json::from_value(spec).unwrap();
            let (mut devices, bus) = on_a_bus(&spec, 3);
            let all = closed_loop(&mut devices, 5, 600);
            let mut ids: Vec<u64> = all.iter().map(|&(id, _)| id).collect();
            ids.sort_unstable();
            assert!(ids.into_iter().eq(0..600), "{write_back} {flags:#b}");
            let end = all[599].1.as_ns();
            assert!(bus.totals(end).1 <= end);
        }
    }
}

#[test]
fn what_cannot_share_says_why() {
    let refused = |spec: &DeviceSpec| {
        let error = device(spec, PairPricing::Queued).share_bus(&SharedBus::default()).unwrap_err();
        format!("{}: {}", error.key, error.message)
    };
    assert!(refused(&small_disk()).starts_with("bus: the device has none to share"));
    assert!(refused(&busy_disk("none", "none", 0b100)).starts_with("bus.never_disconnect: true"));
    let mut spec = serde_json::to_value(busy_disk("none", "none", 0)).unwrap();
    spec["bus"]["read_sector_ms"] = 0.into();
    spec["bus"]["write_sector_ms"] = 0.into();
    assert!(refused(&serde_json::from_value(spec).unwrap()).starts_with("bus: a disk whose transfers take no time"));
}
