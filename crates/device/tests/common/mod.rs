//! What the tests share: device files, operations, and a driver that runs one device.
#![allow(dead_code)] // Each test file uses its own part.

use raidlab_device::{Completion, Device, DeviceSpec, PairPricing};
use raidlab_types::{Extent, Instant, OpId, OpKind, Operation, Seed};

pub(crate) const AMDAHL: &str = include_str!("../../../../devices/original/amdahl6380.toml");
pub(crate) const HDD_7200: &str = include_str!("../../../../devices/hdd-7200.toml");
pub(crate) const HDD_7200_BARE: &str = include_str!("../../../../devices/hdd-7200-bare.toml");
pub(crate) const NEARLINE_4TB: &str = include_str!("../../../../devices/hdd-nearline-4tb.toml");
pub(crate) const NEARLINE_20TB: &str = include_str!("../../../../devices/hdd-nearline-20tb.toml");
pub(crate) const SAS_10K: &str = include_str!("../../../../devices/hdd-sas-10k.toml");
pub(crate) const LOW_LATENCY: &str = include_str!("../../../../devices/nvme-low-latency.toml");
pub(crate) const SSD_SATA: &str = include_str!("../../../../devices/ssd-sata.toml");
pub(crate) const SSD_NVME: &str = include_str!("../../../../devices/ssd-nvme.toml");
pub(crate) const CLOUD_GP3: &str = include_str!("../../../../devices/cloud-gp3.toml");
pub(crate) const CLOUD_GP2: &str = include_str!("../../../../devices/cloud-gp2.toml");
pub(crate) const FIXED: &str = include_str!("../../../../devices/fixed-100us.toml");

/// The spec in a device file, without its published figures and its watts: those are not the engine's.
pub(crate) fn file(text: &str) -> DeviceSpec {
    let mut table: toml::Table = toml::from_str(text).unwrap();
    table.remove("published");
    table.remove("power");
    table.try_into().unwrap()
}

/// The spec in a JSON text.
pub(crate) fn json(text: &str) -> DeviceSpec {
    serde_json::from_str(text).unwrap()
}

/// A small zoned disk with skews, switches, settling and overheads that have nothing in common.
pub(crate) fn small_disk() -> DeviceSpec {
    json(
        r#"{"kind": "hdd", "revolution_ms": 10.0, "heads": 3, "track_gap_ms": 0.37,
            "zones": [{"cylinders": 40, "sectors_per_track": 70, "track_skew": {"sectors": 7}},
                      {"cylinders": 1, "sectors_per_track": 50}, {"cylinders": 60, "sectors_per_track": 33}],
            "track_skew": {"ms": 0.9}, "cylinder_skew": {"ms": 1.9}, "head_switch_ms": 0.8,
            "read_overhead_ms": 0.21, "write_overhead_ms": 0.33, "write_settle_ms": 0.4,
            "seek": {"kind": "curve", "a_ms": 1.0, "b_ms": 0.5, "c_ms": 0.01}, "pair_turnaround_ms": 0.5}"#,
    )
}

/// A disk with all its electronics, small enough that everything meets everything; the bits of `flags` switch rules on.
pub(crate) fn busy_disk(write_back: &str, read_ahead: &str, flags: u8) -> DeviceSpec {
    let flag = |bit: u8| flags & (1 << bit) != 0;
    json(&format!(
        r#"{{"kind": "hdd", "rpm": 6000, "heads": 2, "head_switch_ms": 0.6, "write_settle_ms": -0.1,
            "zones": [{{"cylinders": 12, "sectors_per_track": 20, "track_skew": {{"sectors": 3}}, "spares": 3, "slips": [7, 8, 300]}},
                      {{"cylinders": 9, "sectors_per_track": 13, "cylinder_skew": {{"sectors": 5}}}}],
            "sparing": "sectors_per_zone",
            "seek": {{"kind": "curve", "a_ms": 0.5, "b_ms": 0.3, "c_ms": 0.0}},
            "commands": {{"every_ms": 0.01, "read_hit_after_read_ms": 0.2, "read_miss_after_read_ms": 0.5,
                "read_miss_after_write_ms": 0.7, "write_hit_after_read_ms": 0.3, "write_miss_after_write_ms": 0.6,
                "read_completion_ms": 0.1, "write_completion_ms": 0.15, "first_reselect_ms": 0.12, "other_reselect_ms": 0.09,
                "data_preparation_ms": 0.05, "read_disconnect_after_read_ms": 0.11, "write_disconnect_ms": 0.1}},
            "bus": {{"read_sector_ms": {bus}, "write_sector_ms": {bus}, "hold_for_read": {f0}, "hold_for_write": {f1},
                "never_disconnect": {f2}}},
            "buffer": {{"segments": 3, "segment_sectors": 11, "write_segments": 2, "write_back": "{write_back}",
                "read_ahead": "{read_ahead}", "minimum_read_ahead_sectors": 2, "combine_writes": {f3},
                "zero_latency_read": {f4}, "read_free_sectors": {f5}, "stop_within_sector": {f6}, "read_watermark": 0.4,
                "read_ahead_on_hit": {f7}, "preseek": "before_completion"}},
            "queue_depth": 4, "scheduler": "look"}}"#,
        bus = if flag(2) { 0.3 } else { 0.9 },
        f0 = flag(0),
        f1 = flag(1),
        f2 = flag(2),
        f3 = flag(3),
        f4 = flag(4),
        f5 = flag(5),
        f6 = flag(6),
        f7 = flag(7),
    ))
}

pub(crate) fn device(spec: &DeviceSpec, pricing: PairPricing) -> Device {
    Device::new(spec, spec_sector(spec), pricing, Seed::new(11)).unwrap()
}

/// The device's own sector.
pub(crate) fn spec_sector(spec: &DeviceSpec) -> u32 {
    spec.sector_bytes()
}

pub(crate) fn op(id: u64, kind: OpKind, lba: u64, sectors: u64) -> Operation {
    Operation {
        id: OpId(id),
        tag: 0,
        leaf: 0,
        kind,
        extent: Extent::new(lba, sectors),
        force_unit_access: false,
        pair_with: None,
    }
}

pub(crate) fn read(id: u64, lba: u64, sectors: u64) -> Operation {
    op(id, OpKind::Read, lba, sectors)
}

/// The read and the write of a read-modify-write pair.
pub(crate) fn pair(read_id: u64, write_id: u64, lba: u64, sectors: u64) -> (Operation, Operation) {
    let mut first = read(read_id, lba, sectors);
    let mut second = op(write_id, OpKind::Write, lba, sectors);
    (first.pair_with, second.pair_with) = (Some(OpId(write_id)), Some(OpId(read_id)));
    (first, second)
}

/// Runs the device until it is idle; what completed, in order.
pub(crate) fn drain(device: &mut Device) -> Vec<Completion> {
    let mut all = Vec::new();
    while let Some(now) = device.poll_timeout() {
        while let Some(done) = device.poll_done(now) {
            all.push(done);
        }
    }
    all
}

/// One operation alone, from `now`.
pub(crate) fn alone(device: &mut Device, now: Instant, op: Operation) -> Completion {
    device.handle_op(now, op);
    let done = drain(device);
    assert_eq!(done.len(), 1);
    done[0]
}

pub(crate) fn at(ns: u64) -> Instant {
    Instant::from_ns(ns)
}
