//! Schedulers on a disk: every order serves everything, the sweeping ones starve nobody, and order saves the arm.

mod common;

use common::*;
use raidlab_device::{Device, DeviceSpec, PairPricing};
use raidlab_types::{Instant, OpKind, Seed};

const ALL: [&str; 6] =
    [r#""fifo""#, r#""sstf""#, r#""look""#, r#""clook""#, r#"{"vscan": {"percent": 20}}"#, r#""sptf""#];

/// In order of arrival where all are reads, so it saves the arm nothing.
const KYBER: &str = r#""kyber_batches""#;

fn disk(scheduler: &str, depth: Option<u32>) -> DeviceSpec {
    let mut spec: serde_json::Value = serde_json::to_value(small_disk()).unwrap();
    spec["scheduler"] = serde_json::from_str(scheduler).unwrap();
    spec["queue_depth"] = depth.into();
    if depth.is_none() {
        spec.as_object_mut().unwrap().remove("queue_depth");
    }
    serde_json::from_value(spec).unwrap()
}

/// A closed loop of `outstanding` random reads, `count` in all; the device afterwards, and the ids in order of service.
fn closed_loop(spec: &DeviceSpec, outstanding: u64, count: u64) -> (Device, Vec<u64>) {
    let mut device = device(spec, PairPricing::Queued);
    let mut random = Seed::new(9).draws();
    let capacity = device.capacity_sectors() - 4;
    let mut next = 0;
    let mut issue = |device: &mut Device, now| {
        if next < count {
            device.handle_op(now, read(next, random.below(capacity), 4));
            next += 1;
        }
    };
    (0..outstanding).for_each(|_| issue(&mut device, Instant::ZERO));
    let mut order = Vec::new();
    while let Some(now) = device.poll_timeout() {
        while let Some(done) = device.poll_done(now) {
            order.push(done.id.0);
            issue(&mut device, now);
        }
    }
    (device, order)
}

#[test]
fn each_serves_everything_once() {
    for scheduler in ALL.into_iter().chain([KYBER]) {
        for depth in [None, Some(1), Some(5)] {
            let (_, mut order) = closed_loop(&disk(scheduler, depth), 16, 400);
            order.sort_unstable();
            assert!(order.into_iter().eq(0..400), "{scheduler} {depth:?}");
        }
    }
}

#[test]
fn with_one_place_every_scheduler_is_first_come_first_served() {
    for scheduler in ALL.into_iter().chain([KYBER]) {
        let (_, order) = closed_loop(&disk(scheduler, Some(1)), 16, 100);
        assert!(order.into_iter().eq(0..100), "{scheduler}");
    }
}

/// The same disk with one place, and a host that orders.
fn disk_behind_a_host(host_scheduler: &str) -> DeviceSpec {
    let mut spec = serde_json::to_value(disk(r#""fifo""#, Some(1))).unwrap();
    spec["host_scheduler"] = serde_json::from_str(host_scheduler).unwrap();
    serde_json::from_value(spec).unwrap()
}

#[test]
fn a_host_before_one_place_orders_as_a_disk_with_room_for_all() {
    // A plain disk does nothing while a command waits in it, so it is the same where that waits.
    for scheduler in &ALL[..5] {
        let (_, inside) = closed_loop(&disk(scheduler, None), 300, 300);
        let (_, outside) = closed_loop(&disk_behind_a_host(scheduler), 300, 300);
        assert_eq!(inside, outside, "{scheduler}");
    }
}

#[test]
fn a_host_hears_of_the_read_of_a_pair_before_it_chooses_and_a_disk_does_not() {
    // While 500 is read, 600 waits; as that ends, 500 is to be written.
    let order = |spec: &DeviceSpec, is_pair: bool| {
        let mut device = device(spec, PairPricing::Queued);
        let (mut first, mut second) = pair(0, 2, 500, 4);
        if !is_pair {
            (first.pair_with, second.pair_with) = (None, None);
        }
        device.handle_op(Instant::ZERO, first);
        device.handle_op(Instant::ZERO, read(1, 600, 4));
        let mut order = Vec::new();
        while let Some(now) = device.poll_timeout() {
            while let Some(done) = device.poll_done(now) {
                if done.id.0 == 0 {
                    device.handle_op(now, second);
                }
                order.push(done.id.0);
            }
        }
        order
    };
    assert_eq!(order(&disk_behind_a_host(r#""clook""#), true), [0, 2, 1]);
    // What a client asks for as it is answered comes when the next is chosen.
    assert_eq!(order(&disk_behind_a_host(r#""clook""#), false), [0, 1, 2]);
    assert_eq!(order(&disk(r#""clook""#, None), true), [0, 1, 2]);
}

#[test]
fn a_host_knows_addresses_only_and_needs_something_to_order() {
    let refused = |spec: &DeviceSpec| {
        Device::new(spec, 512, PairPricing::Queued, Seed::new(1)).map(|_| ()).unwrap_err().to_string()
    };
    for host in [r#""sptf""#, r#"{"aged_sptf": {"percent": 2}}"#, KYBER] {
        assert!(refused(&disk_behind_a_host(host)).contains("accepted: fifo, sstf, look, clook, vscan"));
    }
    assert!(refused(&disk_behind_a_host(r#"{"vscan": {"percent": 101}}"#)).starts_with("host_scheduler.vscan.percent"));
    let mut spec = serde_json::to_value(disk(r#""fifo""#, None)).unwrap();
    spec["host_scheduler"] = "clook".into();
    assert!(refused(&serde_json::from_value(spec).unwrap()).contains("accepted: with queue_depth"));
}

#[test]
fn order_saves_time_and_more_of_it_the_deeper() {
    let busy = |scheduler: &str, depth| closed_loop(&disk(scheduler, depth), 24, 3000).0.totals().busy_ns;
    let fifo = busy(r#""fifo""#, None);
    for scheduler in &ALL[1..] {
        let (shallow, deep) = (busy(scheduler, Some(4)), busy(scheduler, Some(24)));
        assert!(deep < shallow && shallow < fifo, "{scheduler}: {deep} {shallow} {fifo}");
        assert_eq!(deep, busy(scheduler, None), "as deep as the load");
    }
    // Rotation is most of it on this disk, and only one of them looks at rotation.
    let sptf = busy(r#""sptf""#, None);
    assert!(ALL[..5].iter().all(|other| sptf < busy(other, None)));
}

/// A far request among ever new ones at the arm: after how many of those it is served, if before `patience` of them.
fn victim(scheduler: &str, patience: u64) -> Option<u64> {
    let mut device = device(&disk(scheduler, None), PairPricing::Queued);
    device.handle_op(Instant::ZERO, read(0, 1000, 1));
    device.handle_op(Instant::ZERO, read(1, 13_900, 1));
    let mut now = Instant::ZERO;
    for id in 2..patience {
        // Two always lie at the arm, on one cylinder.
        device.handle_op(now, read(id, 1000 + id % 3, 1));
        now = device.poll_timeout().unwrap();
        let done = std::iter::from_fn(|| device.poll_done(now)).last();
        if done.is_some_and(|done| done.id.0 == 1) {
            return Some(id);
        }
    }
    None
}

#[test]
fn sweeps_and_arrival_order_starve_nobody() {
    for scheduler in [r#""fifo""#, r#""look""#, r#""clook""#, KYBER, r#"{"aged_sptf": {"percent": 50}}"#] {
        assert!(victim(scheduler, 100).is_some(), "{scheduler}");
    }
    // The others promise nothing, and the shortest way shows why.
    assert_eq!(victim(r#""sstf""#, 2000), None);
}

#[test]
fn kyber_counts_what_finds_the_device_idle() {
    let spec =
        r#"{"kind": "fixed", "capacity_bytes": 1048576, "read_us": 10, "write_us": 10, "scheduler": "kyber_batches"}"#;
    let mut device = device(&json(spec), PairPricing::Queued);
    let mut order = Vec::new();
    let mut run = |device: &mut Device| {
        let mut last = Instant::ZERO;
        while let Some(now) = device.poll_timeout() {
            order.extend(std::iter::from_fn(|| device.poll_done(now)).map(|done| done.id.0));
            last = now;
        }
        last
    };
    let mut now = Instant::ZERO;
    for id in 0..6 {
        device.handle_op(now, op(id, OpKind::Write, 8 * id, 8));
        now = run(&mut device);
    }
    // Two more fill the batch of eight; the read that comes last is served next.
    (6..10).for_each(|id| device.handle_op(now, op(id, OpKind::Write, 8 * id, 8)));
    device.handle_op(now, read(10, 0, 8));
    assert_eq!((device.queued(), device.in_flight()), (4, 5));
    run(&mut device);
    assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9]);
}

#[test]
fn what_makes_no_sense_is_named() {
    let refused = |spec: &DeviceSpec| Device::new(spec, 512, PairPricing::Queued, Seed::new(1)).unwrap_err().key;
    assert_eq!(refused(&disk(r#"{"vscan": {"percent": 101}}"#, None)), "scheduler.vscan.percent");
    assert_eq!(refused(&disk(r#"{"aged_sptf": {"percent": 0}}"#, None)), "scheduler.aged_sptf.percent");
    assert_eq!(refused(&disk(r#""fifo""#, Some(0))), "queue_depth");
    let fixed = r#"{"kind": "fixed", "capacity_bytes": 1048576, "read_us": 1, "write_us": 1, "scheduler": "sptf"}"#;
    assert_eq!(refused(&json(fixed)), "scheduler");
    assert!(serde_json::from_str::<DeviceSpec>(&fixed.replace("sptf", "stpf")).is_err());
}
