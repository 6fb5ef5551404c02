//! Configurations the simulator's tests and benches share.

#![allow(clippy::cast_precision_loss, reason = "numbers here are small")]
#![allow(dead_code)] // Each test binary uses its own part.

use raidlab_array::{Policy, Tree};
use raidlab_device::{DeviceSpec, PairPricing};
use raidlab_load::{Limit, Limits, LoadSpec, WorkloadSpec};
use raidlab_sim::{Distribution, HostSpec, PathSpec, Phase, SimConfig, SimResult, StationSpec, VisitKind, VisitSpec};

/// A device file of the project. (Tests may read files; the simulator may not.)
#[allow(clippy::disallowed_methods)]
pub(crate) fn device(name: &str) -> DeviceSpec {
    let path = format!("{}/../../devices/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("the device file is there");
    let mut table: toml::Table = toml::from_str(&text).expect("TOML");
    // What is held to it, and nothing that it does.
    table.remove("published");
    table.try_into().expect("a device")
}

/// A serial device with a constant service time.
pub(crate) fn fixed(us: f64) -> DeviceSpec {
    let text = format!(r#"{{"kind": "fixed", "capacity_bytes": 1073741824, "read_us": {us}, "write_us": {us}}}"#);
    serde_json::from_str(&text).expect("a device")
}

/// A disk of four zones whose seeks are given by three times.
pub(crate) fn zoned_disk() -> DeviceSpec {
    let text = r#"{"kind": "hdd", "revolution_ms": 8.333, "heads": 4, "sector_bytes": 512,
        "zones": [{"cylinders": 20000, "sectors_per_track": 1600}, {"cylinders": 20000, "sectors_per_track": 1400},
                  {"cylinders": 20000, "sectors_per_track": 1200}, {"cylinders": 20000, "sectors_per_track": 900}],
        "seek": {"kind": "lee", "min_ms": 0.8, "avg_ms": 8.5, "max_ms": 18.0}, "read_overhead_ms": 0.1,
        "write_overhead_ms": 0.1}"#;
    serde_json::from_str(text).expect("a disk")
}

/// A workload from its JSON text.
pub(crate) fn workload(text: &str) -> WorkloadSpec {
    serde_json::from_str(text).expect("a workload")
}

/// Uniform aligned requests of a fixed size.
pub(crate) fn random(read_fraction: f64, bytes: u64) -> WorkloadSpec {
    workload(&format!(
        r#"{{"read": {read_fraction}, "size": {{"kind": "fixed", "bytes": {bytes}}},
            "address": {{"kind": "uniform"}}}}"#
    ))
}

/// So many requests after so many of warm-up.
pub(crate) fn requests(warmup: u64, measure: u64) -> Limits {
    let limit = |n| Limit { requests: Some(n), duration_s: None };
    Limits { warmup: limit(warmup), measure: limit(measure) }
}

/// A closed loop over one kind of device, everything else at its default.
pub(crate) fn closed(tree: Tree, device: DeviceSpec, workload: WorkloadSpec, depth: u32) -> SimConfig {
    SimConfig {
        tree,
        policy: Policy::default(),
        devices: vec![device],
        area_bytes: None,
        pair_pricing: PairPricing::Queued,
        missing: vec![],
        events: vec![],
        rebuild: None,
        host: HostSpec::default(),
        path: PathSpec::default(),
        load: LoadSpec::Closed { depth },
        workload,
        files: None,
        streams: None,
        limits: requests(1000, 20_000),
        fill_caches: false,
        sector_bytes: None,
        seed: 1,
    }
}

/// Requests a second.
pub(crate) fn rate(result: &SimResult) -> f64 {
    result.recorder.all().requests as f64 / result.recorder.elapsed().as_s_f64()
}

/// Mean response time.
pub(crate) fn mean_us(result: &SimResult) -> f64 {
    result.recorder.all().response.mean_ns() / 1e3
}

pub(crate) fn station(name: &str, servers: u32) -> StationSpec {
    StationSpec { name: name.into(), servers }
}

/// A visit of every request, which takes `us` and what the bytes take at `mb_s`.
pub(crate) fn visit(station: &str, phase: Phase, us: f64, mb_s: Option<f64>) -> VisitSpec {
    let (on, times) = (VisitKind::Both, Distribution::Constant);
    VisitSpec { station: station.into(), phase, cost_us: us, mb_s, on, only: None, times }
}
