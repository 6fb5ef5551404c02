//! Token buckets before a device: how much passes in any time, in which order, and what the device makes of it.

mod common;

use common::*;
use proptest::prelude::*;
use raidlab_device::{Completion, Device, DeviceSpec, PairPricing};
use raidlab_types::number::f64_from;
use raidlab_types::{Instant, OpKind, Seed};

/// A device that answers each operation in 10 us, as many at once as come, behind a throttle.
fn throttled(throttle: &str) -> DeviceSpec {
    json(&format!(
        r#"{{"kind": "fixed", "capacity_bytes": 1048576, "read_us": 10, "write_us": 10, "servers": 64,
            "throttle": {throttle}}}"#
    ))
}

/// When service of each begins, by the order of arrival; operations are handed in at their times as a driver does.
fn begins(spec: &DeviceSpec, ops: &[(u64, OpKind, u64, u64)]) -> Vec<u64> {
    let mut device = device(spec, PairPricing::Queued);
    let mut all: Vec<Completion> = Vec::new();
    for (id, &(now, kind, lba, sectors)) in (0..).zip(ops) {
        while let Some(next) = device.poll_timeout().filter(|next| next.as_ns() <= now) {
            all.extend(std::iter::from_fn(|| device.poll_done(next)));
        }
        device.handle_op(at(now), op(id, kind, lba, sectors));
    }
    all.extend(drain(&mut device));
    assert_eq!((device.queued(), device.in_flight()), (0, 0));
    all.sort_by_key(|done| done.id);
    all.iter().map(|done| done.started.as_ns()).collect()
}

/// The same bucket said once more: tokens come back drop by drop, up to the burst and one operation.
fn bucket_by_hand(rate: f64, burst: f64, arrivals: &[u64]) -> Vec<f64> {
    // Tokens may become one operation less than nothing: what is there lets something pass.
    let (mut tokens, mut then) = (burst, 0.0);
    let mut passed = Vec::new();
    for &arrival in arrivals {
        let from = f64::max(f64_from(arrival), then);
        tokens = (tokens + (from - then) * rate / 1e9).min(burst);
        let at = if tokens >= 0.0 { from } else { from - tokens * 1e9 / rate };
        tokens = (tokens + (at - from) * rate / 1e9).min(burst) - 1.0;
        then = at;
        passed.push(at);
    }
    passed
}

proptest! {
    #[test]
    fn operations_pass_as_the_bucket_says(
        rate in 100u32..5000, burst in 0u32..40, gaps in prop::collection::vec(0u64..3_000_000, 1..120),
    ) {
        let mut now = 0;
        let arrivals: Vec<u64> = gaps.iter().map(|gap| { now += gap; now }).collect();
        let ops: Vec<_> = arrivals.iter().map(|&now| (now, OpKind::Read, (now * 7) % 2000, 1)).collect();
        let spec = throttled(&format!(r#"[{{"ops_s": {rate}, "burst_ops": {burst}}}]"#));
        let found = begins(&spec, &ops);
        for (found, wanted) in found.iter().zip(bucket_by_hand(rate.into(), burst.into(), &arrivals)) {
            prop_assert!((f64_from(*found) - wanted).abs() < 100.0, "{found} {wanted}");
        }
    }

    #[test]
    fn no_window_holds_more_than_its_share(
        limits in (200u32..3000, 0u64..30, 1u32..40), seed: u64, gaps in prop::collection::vec(0u64..1_000_000, 2..150),
    ) {
        let (rate, burst, mb_s) = limits;
        let mut rng = Seed::new(seed).draws();
        let mut now = 0;
        let ops: Vec<_> = gaps.iter().map(|gap| {
            now += gap;
            (now, if rng.below(2) == 0 { OpKind::Read } else { OpKind::Write }, rng.below(1900), 1 + rng.below(64))
        }).collect();
        let spec = throttled(&format!(r#"[{{"ops_s": {rate}, "burst_ops": {burst}, "op_bytes": 16384}}, {{"mb_s": {mb_s}}}]"#));
        let found = begins(&spec, &ops);
        prop_assert!(found.windows(2).all(|pair| pair[0] <= pair[1]), "in order of arrival");
        prop_assert!(found.iter().zip(&ops).all(|(&begun, op)| begun >= op.0), "not before it is there");
        for first in 0..ops.len() {
            let mut bytes = 0;
            for last in first..ops.len() {
                // What the first and the last of a window count may be owed or paid beyond it.
                let window = f64_from(found[last] - found[first]) / 1e9 + 1e-6;
                let passed: u64 = (first + 1..last).map(|i| ops[i].3.div_ceil(32)).sum();
                let merged = (first + 1..last).filter(|&i| ops[i].2 == ops[i - 1].2 + ops[i - 1].3).count();
                prop_assert!(f64_from(passed) - 2.0 * f64_from(merged) <= f64_from(burst) + 3.0 + window * f64::from(rate));
                bytes += if last > first + 1 { ops[last - 1].3 * 512 } else { 0 };
                prop_assert!(f64_from(bytes) <= 1.0 + window * f64::from(mb_s) * 1e6);
            }
        }
    }
}

#[test]
fn waiting_at_the_throttle_is_waiting() {
    let mut device = device(&throttled(r#"[{"ops_s": 1000}]"#), PairPricing::Queued);
    (0..3).for_each(|id| device.handle_op(Instant::ZERO, read(id, 500 * id, 1)));
    assert_eq!((device.queued(), device.in_flight()), (2, 3));
    let done = drain(&mut device);
    assert_eq!(done.iter().map(|one| one.done.as_ns()).collect::<Vec<_>>(), [10_000, 1_010_000, 2_010_000]);
    assert_eq!(device.totals().wait_ns, 3_000_000);
    assert_eq!(device.totals().busy_ns, 30_000);
}

#[test]
fn a_driver_that_polls_late_loses_nothing_at_the_throttle() {
    let mut device = device(&throttled(r#"[{"ops_s": 1000}]"#), PairPricing::Queued);
    (0..4).for_each(|id| device.handle_op(Instant::ZERO, read(id, 500 * id, 1)));
    let late: Vec<_> = std::iter::from_fn(|| device.poll_done(at(9_000_000))).map(|one| one.done.as_ns()).collect();
    assert_eq!(late, [10_000, 1_010_000, 2_010_000, 3_010_000]);
}

#[test]
fn a_throttle_wider_than_the_device_changes_nothing() {
    for spec in [small_disk(), busy_disk("full", "segment", 0b1111_1011), file(HDD_7200)] {
        let mut wide = serde_json::to_value(&spec).unwrap();
        wide["throttle"] = serde_json::json!([{"ops_s": 1e9}, {"mb_s": 1e6}]);
        let wide: DeviceSpec = serde_json::from_value(wide).unwrap();
        let mut rng = Seed::new(3).draws();
        let mut now = 0;
        let ops: Vec<_> = (0..2000)
            .map(|_| {
                now += 1_000 + rng.below(20_000_000);
                (now, if rng.below(3) == 0 { OpKind::Write } else { OpKind::Read }, rng.below(150), 1 + rng.below(9))
            })
            .collect();
        assert_eq!(begins(&spec, &ops), begins(&wide, &ops));
    }
}

#[test]
fn twins_begin_with_the_buckets_of_the_start() {
    let mut first = device(&throttled(r#"[{"ops_s": 1000, "burst_ops": 3}]"#), PairPricing::Queued);
    (0..9).for_each(|id| first.handle_op(Instant::ZERO, read(id, 100 * id, 1)));
    let mut twin = first.twin(Seed::new(5));
    (0..9).for_each(|id| twin.handle_op(Instant::ZERO, read(id, 100 * id, 1)));
    assert_eq!(drain(&mut first), drain(&mut twin));
}

#[test]
fn prepaid_pairs_pass_no_throttle() {
    let spec = throttled(r#"[{"ops_s": 1000}]"#);
    let error = Device::new(&spec, 512, PairPricing::Prepaid, Seed::new(1)).unwrap_err();
    assert_eq!(error.key, "pair_pricing");
}
