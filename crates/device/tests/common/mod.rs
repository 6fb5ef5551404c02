//! What the tests share: device files, operations, and a driver that runs one device.
#![allow(dead_code)] // Each test file uses its own part.

use raidlab_device::{Completion, Device, DeviceSpec, PairPricing};
use raidlab_types::{Extent, Instant, OpClass, OpId, OpKind, Operation, Seed};

pub const AMDAHL: &str = include_str!("../../../../devices/original/amdahl6380.toml");
pub const HDD_7200: &str = include_str!("../../../../devices/hdd-7200.toml");
pub const FIXED: &str = include_str!("../../../../devices/fixed-100us.toml");

/// The spec in a device file.
pub fn file(text: &str) -> DeviceSpec {
    toml::from_str(text).unwrap()
}

/// The spec in a JSON text.
pub fn json(text: &str) -> DeviceSpec {
    serde_json::from_str(text).unwrap()
}

/// A small zoned disk with skews, switches, settling and overheads that have nothing in common.
pub fn small_disk() -> DeviceSpec {
    json(
        r#"{"kind": "hdd", "revolution_ms": 10.0, "heads": 3, "track_gap_ms": 0.37,
            "zones": [{"cylinders": 40, "sectors_per_track": 70, "track_skew": {"sectors": 7}},
                      {"cylinders": 1, "sectors_per_track": 50}, {"cylinders": 60, "sectors_per_track": 33}],
            "track_skew": {"ms": 0.9}, "cylinder_skew": {"ms": 1.9}, "head_switch_ms": 0.8,
            "read_overhead_ms": 0.21, "write_overhead_ms": 0.33, "write_settle_ms": 0.4,
            "seek": {"kind": "curve", "a_ms": 1.0, "b_ms": 0.5, "c_ms": 0.01}, "pair_turnaround_ms": 0.5}"#,
    )
}

pub fn device(spec: &DeviceSpec, pricing: PairPricing) -> Device {
    Device::new(spec, spec_sector(spec), pricing, Seed::new(11)).unwrap()
}

/// The device's own sector, or 512.
pub fn spec_sector(spec: &DeviceSpec) -> u32 {
    match spec {
        DeviceSpec::Hdd(s) => s.sector_bytes,
        DeviceSpec::Fixed(s) => s.sector_bytes,
        DeviceSpec::Empirical(s) => s.sector_bytes,
    }
}

pub fn op(id: u64, kind: OpKind, lba: u64, sectors: u64) -> Operation {
    Operation {
        id: OpId(id),
        tag: 0,
        leaf: 0,
        kind,
        extent: Extent::new(lba, sectors),
        class: OpClass::Foreground,
        priority: 0,
        force_unit_access: false,
        pair_with: None,
    }
}

pub fn read(id: u64, lba: u64, sectors: u64) -> Operation {
    op(id, OpKind::Read, lba, sectors)
}

/// The read and the write of a read-modify-write pair.
pub fn pair(read_id: u64, write_id: u64, lba: u64, sectors: u64) -> (Operation, Operation) {
    let mut first = read(read_id, lba, sectors);
    let mut second = op(write_id, OpKind::Write, lba, sectors);
    (first.pair_with, second.pair_with) = (Some(OpId(write_id)), Some(OpId(read_id)));
    (first, second)
}

/// Runs the device until it is idle; what completed, in order.
pub fn drain(device: &mut Device) -> Vec<Completion> {
    let mut all = Vec::new();
    while let Some(now) = device.poll_timeout() {
        while let Some(done) = device.poll_done(now) {
            all.push(done);
        }
    }
    all
}

/// One operation alone, from `now`.
pub fn alone(device: &mut Device, now: Instant, op: Operation) -> Completion {
    device.handle_op(now, op);
    let done = drain(device);
    assert_eq!(done.len(), 1);
    done[0]
}

pub fn at(ns: u64) -> Instant {
    Instant::from_ns(ns)
}
