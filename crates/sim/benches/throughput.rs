//! How many requests a second the simulator handles: closed loop over 10 zoned disks, with full recording; and over 9
//! with the load of DiskSim's own validation set.
//!
//! Each iteration is a whole run of `REQUESTS` requests, set-up included.

#![allow(missing_docs)] // criterion_group! makes a public function without any.

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use raidlab_array::{Rotation, Tree};
use raidlab_load::{Limit, Limits};
use raidlab_sim::{run, PathSpec, SimConfig};

#[path = "../tests/common/mod.rs"]
mod common;

const REQUESTS: u64 = 2_000_000;

fn config(tree: Tree, read_fraction: f64) -> SimConfig {
    let measure = Limit { requests: Some(REQUESTS), duration_s: None };
    let limits = Limits { measure, ..Limits::default() };
    SimConfig { limits, ..common::closed(tree, common::zoned_disk(), common::random(read_fraction, 4096), 40) }
}

/// The 9 disks of RAID 5 that DiskSim 4.0 is validated with: chunks of 64 sectors, 66 % reads, sizes drawn exponentially
/// with a mean of 8 sectors and rounded up to blocks of 8, 20 % sequential, 30 % local. The array's sector is the block.
fn disksim_raid5() -> SimConfig {
    // Exponential of a mean of one block, rounded up: 1 / (1 - 1/e) blocks on average.
    let mean_bytes = 4096.0 / (1.0 - 1.0 / std::f64::consts::E);
    let workload = common::workload(&format!(
        r#"{{"read": 0.66, "size": {{"kind": "exponential", "mean": {mean_bytes}}},
            "address": {{"kind": "mixed", "sequential": 0.2, "local": 0.3, "local_sd": 20480000}}}}"#
    ));
    let tree = Tree::parity(1, 9, 64 * 512, Rotation::LeftSymmetric);
    SimConfig { workload, sector_bytes: Some(4096), ..config(tree, 0.66) }
}

fn four_stations() -> PathSpec {
    let text = r#"{"station": [{"name": "host", "servers": 2}, {"name": "interface"}, {"name": "controller"},
        {"name": "bus", "servers": 2}],
        "member_path": [{"station": "host", "phase": "command", "cost": 10000}, {"station": "interface", "phase": "data", "mb_s": 400},
        {"station": "controller", "phase": "command", "cost": 5000}, {"station": "bus", "phase": "data", "cost": 2000, "mb_s": 160}]}"#;
    serde_json::from_str(text).expect("a path")
}

fn throughput(c: &mut Criterion) {
    let mut group = c.benchmark_group("sim");
    group.throughput(Throughput::Elements(REQUESTS)).sample_size(10);
    let raid5 = || Tree::parity(1, 10, 64 << 10, Rotation::LeftSymmetric);
    for (name, tree, reads) in [
        ("raid0 read", Tree::raid0(10, 64 << 10), 1.0),
        ("raid10 70/30", Tree::raid10(5, 64 << 10), 0.7),
        ("raid5 read-modify-write", raid5(), 0.0),
    ] {
        let config = config(tree, reads);
        group.bench_function(name, |b| b.iter(|| run(&config).expect("runs").events));
    }
    let validation = disksim_raid5();
    group.bench_function("raid5 of 9 disks, DiskSim's validation load", |b| {
        b.iter(|| run(&validation).expect("runs").events)
    });
    // An access a request, with four stations on its way: host, interface, controller, bus.
    let config = SimConfig { path: four_stations(), ..config(Tree::raid0(10, 64 << 10), 1.0) };
    group.bench_function("raid0 read, four stations an access", |b| b.iter(|| run(&config).expect("runs").events));
    group.finish();
}

criterion_group!(benches, throughput);
criterion_main!(benches);
