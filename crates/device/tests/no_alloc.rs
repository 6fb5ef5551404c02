//! Once its queues have grown, a device allocates nothing, whatever its kind and pricing.

mod common;
#[path = "../../../tests/counting_allocator.rs"]
mod counting_allocator;

use common::*;
use counting_allocator::allocations;
use raidlab_device::{Device, DeviceSpec, PairPricing};
use raidlab_types::{CounterRng, Seed};

/// Pairs in a closed loop: the write goes out when the read is done; every seventh never comes.
fn work(device: &mut Device, rng: &mut CounterRng, pairs: u64, depth: u64, next: &mut u64) {
    let mut now = at(0);
    for i in 0..pairs {
        while device.in_flight() as u64 >= depth {
            now = device.poll_timeout().unwrap().max(now);
            while let Some(done) = device.poll_done(now) {
                let read_id = done.id.0;
                if read_id % 2 == 0 && read_id % 7 != 0 {
                    // The extent is a function of the name, so that nothing need be kept here.
                    device.handle_op(now, pair(read_id, read_id + 1, read_id % 1900, 3).1);
                }
            }
        }
        *next += 2;
        device.handle_op(now, pair(*next, *next + 1, *next % 1900, 3).0);
        if i % 5 == 0 {
            device.handle_op(now, read(u64::MAX - 1 - 2 * i, rng.below(1900), 9));
        }
    }
}

#[test]
#[ignore = "slow"]
fn nothing_is_allocated_in_the_steady_state() {
    let empirical = r#"{"kind": "empirical", "capacity_bytes": 1048576, "servers": 3, "read": [[0, 50], [1, 90]], "write": [[0, 20], [1, 80]]}"#;
    let table = r#"{"kind": "empirical", "capacity_bytes": 1048576, "servers": 3, "probabilities": [0, 1], "measured": [
        {"op": "read", "bytes": 4096, "depth": 1, "us": [50, 90]}, {"op": "write", "bytes": 4096, "depth": 1, "us": [20, 80]},
        {"op": "read", "within_bytes": 65536, "bytes": 4096, "depth": 1, "us": [10, 40]}]}"#;
    let random = r#"{"kind": "random", "capacity_bytes": 1048576, "read": {"kind": "h2", "mean_us": 90, "cv2": 3}, "write": {"kind": "exponential", "mean_us": 80}}"#;
    let mut specs: Vec<DeviceSpec> = vec![small_disk(), file(FIXED), json(empirical), json(table), json(random)];
    for scheduler in
        [r#""sstf""#, r#""look""#, r#""clook""#, r#"{"vscan": {"percent": 20}}"#, r#""sptf""#, r#""kyber_batches""#]
    {
        let mut spec = serde_json::to_value(small_disk()).unwrap();
        spec["scheduler"] = serde_json::from_str(scheduler).unwrap();
        spec["queue_depth"] = 32.into();
        specs.push(serde_json::from_value(spec).unwrap());
    }
    for flags in [0b0000_0000, 0b1111_1011] {
        let mut spec = serde_json::to_value(busy_disk("full", "segment", flags)).unwrap();
        spec["zones"][0]["cylinders"] = 60.into();
        specs.push(serde_json::from_value(spec).unwrap());
    }
    let mut ordered = serde_json::to_value(busy_disk("ordered", "segment", 0b1111_1011)).unwrap();
    ordered["zones"][0]["cylinders"] = 60.into();
    ordered["buffer"]["write_cache_sectors"] = 40.into();
    ordered["buffer"]["write_cache_extents"] = 9.into();
    specs.push(serde_json::from_value(ordered).unwrap());
    for (cache_bytes, placement) in [(0, "by_address"), (0, "dynamic"), (1 << 17, "by_address"), (1 << 17, "dynamic")] {
        // Small enough to be cleaned all the time, and read, written and padded by the same requests.
        specs.push(json(&format!(
            r#"{{"kind": "ssd", "capacity_bytes": 1048576, "channels": 2, "dies_per_channel": 2, "pages_per_block": 4,
                "page_bytes": 8192, "read_us": 50, "program_us": 500, "erase_ms": 3, "channel_mb_s": 200, "link_mb_s": 500,
                "spare_percent": 30, "cache_bytes": {cache_bytes}, "placement": "{placement}", "initial": "steady"}}"#
        )));
    }
    // Hardly anything finds its bucket full.
    specs.push(json(
        r#"{"kind": "fixed", "capacity_bytes": 1048576, "read_us": 100, "write_us": 50, "servers": 4,
            "throttle": [{"ops_s": 9000, "burst_ops": 50, "op_bytes": 4096}, {"mb_s": 20}]}"#,
    ));
    for spec in &specs {
        for pricing in [PairPricing::Queued, PairPricing::Head, PairPricing::Prepaid] {
            let takes_no_prepaid = matches!(spec, DeviceSpec::Ssd(_)) || !spec.throttle().is_empty();
            if pricing == PairPricing::Prepaid && takes_no_prepaid {
                continue;
            }
            let mut device = device(spec, pricing);
            let (mut rng, mut next) = (Seed::new(1).draws(), 0);
            // Long enough for the ledger to have met its bound with writes that never come.
            work(&mut device, &mut rng, 300_000, 100, &mut next);
            let allocated = allocations(|| work(&mut device, &mut rng, 100_000, 100, &mut next));
            assert_eq!(allocated, 0, "{spec:?} {pricing:?}");
        }
    }
}
