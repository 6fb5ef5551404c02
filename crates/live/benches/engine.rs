//! Requests a second of the engine: 4 KiB random reads at depth 32 over one member in memory (the meter's own cost: array,
//! load, record, clock and a copy) and over one file; and small writes of RAID 5 in memory, parity computed.
//!
//! `cargo bench -p raidlab-live` prints a line a case: the median of the rounds and their spread. The file lies in the
//! build's own directory, or in `RAIDLAB_BENCH_DIR`.

#![allow(clippy::cast_precision_loss, reason = "numbers here are small")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{config, run, seconds, workload};
use raidlab_array::Tree;
use raidlab_live::{LiveConfig, LiveResult, TargetSpec};
use raidlab_load::{Align, Limits, LoadSpec, SizeSpec, WorkloadSpec};
use raidlab_types::{KIB, MIB};
use std::path::PathBuf;

const ROUNDS: usize = 5;
const MEMBER_BYTES: u64 = 256 * MIB;

fn cell(tree: Tree, targets: Vec<TargetSpec>, read_fraction: f64, align_bytes: u64) -> LiveConfig {
    let align = Some(Align::Bytes(align_bytes));
    LiveConfig {
        targets,
        load: LoadSpec::Closed { depth: 32 },
        workload: WorkloadSpec { align, ..workload(read_fraction, SizeSpec::Fixed { bytes: 4 * KIB }) },
        limits: Limits { warmup: seconds(0.2), measure: seconds(1.0) },
        ..config(tree)
    }
}

fn requests_per_s(result: &LiveResult) -> f64 {
    result.recorder.all().requests as f64 / result.elapsed.as_s_f64()
}

fn main() {
    let folder =
        std::env::var("RAIDLAB_BENCH_DIR").map_or_else(|_| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    let path = folder.join("raidlab-bench-member");
    let memory = |size_bytes| vec![TargetSpec::Memory { size_bytes }];
    let file = vec![TargetSpec::File { path: path.clone(), size_bytes: MEMBER_BYTES, existing: false }];
    let raid5 = Tree::parse("raid5:5:64KiB").expect("a tree");
    let cases = [
        ("memory: one member, 4 KiB random reads, depth 32", cell(Tree::member(), memory(MEMBER_BYTES), 1.0, 4 * KIB)),
        ("memory: RAID 5 of five, 4 KiB random writes, depth 32", cell(raid5, memory(64 * MIB), 0.0, 4 * KIB)),
        ("file: one member, 4 KiB random reads, depth 32", cell(Tree::member(), file, 1.0, 4 * KIB)),
    ];
    // Rounds are interleaved, so that a slow minute of the machine falls on all cases.
    let mut rates = vec![Vec::new(); cases.len()];
    let mut facts = vec![String::new(); cases.len()];
    for _ in 0..ROUNDS {
        for (i, (_, cell)) in cases.iter().enumerate() {
            let result = run(cell);
            rates[i].push(requests_per_s(&result));
            let io = result.targets[0].as_ref().map_or("", |t| t.io);
            let registered = if result.engine.registered_buffers { "registered" } else { "unregistered" };
            facts[i] = format!("{}, {io}, {registered} buffers", result.engine.interface);
        }
    }
    for ((name, _), (rates, facts)) in cases.iter().zip(rates.iter_mut().zip(facts)) {
        rates.sort_by(f64::total_cmp);
        let (least, median, most) = (rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]);
        println!("{name}: {median:.0} requests/s ({least:.0} to {most:.0}; {facts})");
    }
    let _ = std::fs::remove_file(path);
}
