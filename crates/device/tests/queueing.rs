//! Queues, parallel servers, pairs, and accounting, which are the same for all kinds of device.

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

mod common;

use common::*;
use proptest::prelude::*;
use raidlab_device::{Completion, Device, DeviceSpec, PairPricing};
use raidlab_types::{Instant, OpId, OpKind, Seed};

fn fixed(servers: u32) -> DeviceSpec {
    json(&format!(
        r#"{{"kind": "fixed", "capacity_bytes": 1048576, "read_us": 100, "write_us": 40, "servers": {servers}}}"#
    ))
}

fn done_at(done: &[Completion]) -> Vec<(u64, u64)> {
    done.iter().map(|c| (c.id.0, c.done.as_ns() / 1000)).collect()
}

#[test]
fn one_server_serves_in_order_and_reports_waits() {
    let mut device = device(&fixed(1), PairPricing::Queued);
    assert!(device.poll_timeout().is_none());
    (0..3).for_each(|id| device.handle_op(at(id * 10_000), read(id, 0, 1)));
    assert_eq!((device.queued(), device.in_flight()), (2, 3));
    assert!(device.poll_done(at(99_999)).is_none());
    let done = drain(&mut device);
    assert_eq!(done_at(&done), [(0, 100), (1, 200), (2, 300)]);
    assert_eq!(done[2].wait().as_ns(), 180_000);
    let totals = *device.totals();
    assert_eq!((totals.reads, totals.bytes(), totals.busy_ns, totals.wait_ns), (3, 1536, 300_000, 270_000));
    device.reset_totals(at(400_000));
    assert_eq!((device.totals().reads, device.in_flight()), (0, 0));
}

#[test]
fn several_servers_serve_at_a_time() {
    let mut device = device(&fixed(2), PairPricing::Queued);
    device.handle_op(Instant::ZERO, read(0, 0, 1));
    device.handle_op(Instant::ZERO, op(1, OpKind::Write, 0, 1));
    (2..4).for_each(|id| device.handle_op(Instant::ZERO, read(id, 0, 1)));
    assert_eq!(done_at(&drain(&mut device)), [(1, 40), (0, 100), (2, 140), (3, 200)]);
}

#[test]
fn a_driver_that_polls_late_loses_nothing() {
    let mut device = device(&fixed(1), PairPricing::Queued);
    (0..3).for_each(|id| device.handle_op(Instant::ZERO, read(id, 0, 1)));
    // Arrives when the server has long been free, but nobody has asked.
    device.handle_op(at(950_000), read(3, 0, 1));
    let late: Vec<_> = std::iter::from_fn(|| device.poll_done(at(2_000_000))).collect();
    assert_eq!(done_at(&late), [(0, 100), (1, 200), (2, 300), (3, 1050)]);
}

#[test]
fn pairs_queued_or_at_the_head() {
    // The write comes when its read has ended, at once or a little later.
    for (pricing, write_us, order) in [
        (PairPricing::Queued, 100, [0, 1, 2, 9]),
        (PairPricing::Head, 120, [0, 1, 9, 2]),
        (PairPricing::Head, 100, [0, 9, 1, 2]),
    ] {
        let mut device = device(&fixed(1), pricing);
        let (first, second) = pair(0, 9, 4, 2);
        device.handle_op(Instant::ZERO, first);
        (1..3).for_each(|id| device.handle_op(Instant::ZERO, read(id, 0, 1)));
        let mut done = vec![device.poll_done(at(100_000)).unwrap()];
        if write_us > 100 {
            assert!(device.poll_done(at(100_000)).is_none());
        }
        device.handle_op(at(write_us * 1000), second);
        done.extend(drain(&mut device));
        let found: Vec<u64> = done.iter().map(|c| c.id.0).collect();
        assert_eq!(found, order, "{pricing:?} {write_us}");
        assert_eq!(device.totals().paired_ns, 0);
    }
}

/// The first pair of the study of Chen 1990 on a free disk, by hand: the arm is there, the write waits for sector 0.
#[test]
fn a_prepaid_pair_waits_a_revolution_and_writes() {
    let mut disk = device(&file(AMDAHL), PairPricing::Prepaid);
    let (first, second) = pair(1, 2, 0, 10);
    disk.handle_op(Instant::ZERO, first);
    disk.handle_op(Instant::ZERO, read(3, 0, 10));
    let read_done = disk.poll_done(disk.poll_timeout().unwrap()).unwrap();
    assert_eq!(read_done.id, OpId(1));
    assert_eq!(read_done.done.since(read_done.started), read_done.overhead + read_done.rotation + read_done.transfer);
    // The write comes in time: 0.5 ms of gap is missed by 1.65 ms of turnaround, so sector 0 comes after 17.2 ms.
    disk.handle_op(read_done.done, second);
    let done = drain(&mut disk);
    assert_eq!(done.iter().map(|c| c.id.0).collect::<Vec<_>>(), [2, 3]);
    let write = done[0];
    assert_eq!(write.done.since(read_done.done).as_ns(), 17_200_000 + 16_200_000);
    assert_eq!((write.seek.as_ns(), write.transfer.as_ns(), write.overhead.as_ns()), (0, 16_200_000, 1_650_000));
    assert_eq!((write.started, done[1].started), (read_done.done, write.done));
    assert_eq!(disk.totals().paired_ns, 33_400_000);
    assert_eq!((disk.totals().reads, disk.totals().writes), (2, 1));
}

#[test]
fn a_prepaid_write_that_comes_late_completes_on_arrival() {
    let mut device = device(&fixed(1), PairPricing::Prepaid);
    let (first, second) = pair(1, 2, 0, 1);
    device.handle_op(Instant::ZERO, first);
    device.handle_op(Instant::ZERO, read(3, 0, 1));
    let mut done = drain(&mut device);
    assert_eq!(done_at(&done), [(1, 100), (3, 240)]);
    device.handle_op(at(500_000), second);
    done = drain(&mut device);
    assert_eq!(done_at(&done), [(2, 500)]);
    assert_eq!((device.totals().busy_ns, device.totals().paired_ns), (240_000, 40_000));
    // The same write again is no longer paid for.
    device.handle_op(at(600_000), second);
    assert_eq!(done_at(&drain(&mut device)), [(2, 640)]);
}

#[test]
fn a_prepaid_write_that_never_comes_holds_nothing_up() {
    let mut device = device(&small_disk(), PairPricing::Prepaid);
    let mut now = Instant::ZERO;
    for i in 0..100_000u64 {
        device.handle_op(now, pair(2 * i, 2 * i + 1, i % 14_000, 1).0);
        now = drain(&mut device)[0].done;
    }
    assert_eq!(device.in_flight(), 0);
    // A later pair of the name of a lost one is paid for by its own read.
    let (first, second) = pair(1_000_000, 199_999, 70, 2);
    let read_done = alone(&mut device, now, first);
    let write = alone(&mut device, read_done.done, second);
    assert_eq!(write.started, read_done.done);
}

#[test]
#[should_panic(expected = "leaves the device")]
fn what_lies_outside_is_refused_loudly() {
    let mut device = device(&fixed(1), PairPricing::Queued);
    device.handle_op(Instant::ZERO, read(1, 2047, 2));
}

fn kinds() -> [DeviceSpec; 5] {
    let empirical = json(
        r#"{"kind": "empirical", "capacity_bytes": 1048576, "servers": 3,
            "read": [[0, 50], [0.9, 200], [1, 9000]], "write": [[0, 20], [1, 80]]}"#,
    );
    let random = json(
        r#"{"kind": "random", "capacity_bytes": 1048576, "servers": 2, "read": {"kind": "exponential", "mean_us": 100},
            "write": {"kind": "erlang", "mean_us": 40, "stages": 3}}"#,
    );
    [small_disk(), fixed(1), fixed(4), empirical, random]
}

proptest! {
    /// No server idles while anything waits, everything taken comes out once, and the times add up.
    #[test]
    fn work_is_conserved(
        kind in 0usize..5, seed: u64, arrivals in prop::collection::vec((0u64..3_000_000, 0u64..2000, 1u64..40, 0u8..5), 1..60),
    ) {
        let spec = &kinds()[kind];
        let mut device = Device::new(spec, 512, PairPricing::Queued, Seed::new(seed)).unwrap();
        let (mut now, mut done) = (0, Vec::new());
        for (id, &(gap, lba, sectors, write)) in arrivals.iter().enumerate() {
            now += gap;
            while let Some(due) = device.poll_timeout().filter(|due| due.as_ns() <= now) {
                done.extend(std::iter::from_fn(|| device.poll_done(due)));
            }
            let kind = if write == 0 { OpKind::Write } else { OpKind::Read };
            device.handle_op(at(now), op(id as u64, kind, lba, sectors));
        }
        done.extend(drain(&mut device));
        prop_assert!(done.windows(2).all(|pair| pair[0].done <= pair[1].done));
        let mut ids: Vec<u64> = done.iter().map(|c| c.id.0).collect();
        ids.sort_unstable();
        prop_assert!(ids.iter().copied().eq(0..arrivals.len() as u64));
        let servers = match spec {
            DeviceSpec::Fixed(s) => s.servers,
            DeviceSpec::Empirical(s) => s.servers,
            DeviceSpec::Random(s) => s.servers,
            _ => 1,
        };
        for c in &done {
            prop_assert!(c.arrived <= c.started);
            prop_assert_eq!(c.done.since(c.started), c.overhead + c.seek + c.rotation + c.transfer);
            // One that waited started when another completed, with all servers at work until then.
            if c.started > c.arrived {
                prop_assert!(done.iter().any(|other| other.done == c.started));
                let at_work = done.iter().filter(|o| o.started < c.started && o.done >= c.started).count();
                prop_assert_eq!(at_work as u32, servers);
            }
        }
        let t = device.totals();
        prop_assert_eq!(t.busy_ns, t.seek_ns + t.rotation_ns + t.transfer_ns + t.overhead_ns + t.paired_ns);
        prop_assert_eq!(t.busy_ns, done.iter().map(|c| c.done.since(c.started).as_ns()).sum::<u64>());
        prop_assert_eq!(t.wait_ns, done.iter().map(|c| c.wait().as_ns()).sum::<u64>());
    }

    /// Two devices given the same give the same, whatever the pricing.
    #[test]
    fn runs_repeat(kind in 0usize..5, pricing in 0usize..3, seed: u64, lbas in prop::collection::vec(0u64..2000, 1..40)) {
        let pricing = [PairPricing::Queued, PairPricing::Head, PairPricing::Prepaid][pricing];
        let run = || {
            let mut device = Device::new(&kinds()[kind], 512, pricing, Seed::new(seed)).unwrap();
            for (i, &lba) in lbas.iter().enumerate() {
                let (first, second) = pair(2 * i as u64, 2 * i as u64 + 1, lba, 4);
                device.handle_op(at(i as u64 * 1_000_000), first);
                device.handle_op(at(i as u64 * 1_000_000), second);
            }
            drain(&mut device)
        };
        prop_assert_eq!(run(), run());
    }
}
