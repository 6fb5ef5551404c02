//! Cells to run and places to run them in.
#![allow(dead_code)] // Each test binary uses its own part.
#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

pub(crate) mod loops;
pub(crate) mod streaming;
pub(crate) mod whole;

use raidlab_array::{Rotation, Tree};
use raidlab_live::direct::{DirectConfig, DirectResult};
use raidlab_live::{ContentMode, LiveConfig, LiveError, LiveResult, TargetSpec};
use raidlab_load::{Limit, Limits, LoadSpec, SizeSpec, WorkloadSpec};
use raidlab_types::{Duration, LeafId, KIB, MIB};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed at the end, panic or not.
pub(crate) struct Place(PathBuf);

impl Place {
    /// In the build's own directory, which lies on a disk as a rule (a tmpfs has no O_DIRECT of its own).
    pub(crate) fn new() -> Place {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("live-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a place for files");
        Place(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// `n` file members.
    pub(crate) fn files(&self, n: usize, size_bytes: u64) -> Vec<TargetSpec> {
        (0..n)
            .map(|i| TargetSpec::File { path: self.path(&format!("member{i}")), size_bytes, existing: false })
            .collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// 4 KiB random reads at depth 16 over memory, briefly.
pub(crate) fn config(tree: Tree) -> LiveConfig {
    LiveConfig {
        load: LoadSpec::Closed { depth: 16 },
        workload: workload(1.0, SizeSpec::Fixed { bytes: 4 * KIB }),
        limits: requests(2000),
        ..LiveConfig::new(tree, vec![TargetSpec::Memory { size_bytes: 4 * MIB }])
    }
}

pub(crate) fn workload(read_fraction: f64, size: SizeSpec) -> WorkloadSpec {
    WorkloadSpec { read_fraction, size, ..WorkloadSpec::default() }
}

pub(crate) fn count(n: u64) -> Limit {
    Limit { requests: Some(n), duration_s: None }
}

pub(crate) fn seconds(duration_s: f64) -> Limit {
    Limit { requests: None, duration_s: Some(duration_s) }
}

pub(crate) fn until(measure: Limit) -> Limits {
    Limits { warmup: Limit::default(), measure }
}

pub(crate) fn requests(n: u64) -> Limits {
    until(count(n))
}

/// Runs without watching, if it may.
pub(crate) fn try_run(config: &LiveConfig) -> Result<LiveResult, LiveError> {
    raidlab_live::run(config, None, &mut |_| ControlFlow::Continue(()))
}

/// Runs without watching.
pub(crate) fn run(config: &LiveConfig) -> LiveResult {
    try_run(config).unwrap_or_else(|e| panic!("{e}"))
}

/// Why it does not run.
pub(crate) fn error(config: &LiveConfig) -> LiveError {
    try_run(config).expect_err("must not run")
}

/// Depth 16, 60 % writes, sizes from a sector to several stripes, unaligned to chunks; every byte checked.
pub(crate) fn mixed(tree: Tree, targets: Vec<TargetSpec>) -> LiveConfig {
    let bytes = [1, 2, 3, 5, 8, 13, 33, 61].map(|sectors| sectors * 4 * KIB).to_vec();
    let weights = vec![8.0, 4.0, 4.0, 4.0, 2.0, 2.0, 1.0, 1.0];
    LiveConfig {
        targets,
        content: ContentMode::Verify,
        workload: workload(0.4, SizeSpec::Table { bytes, weights }),
        sector_bytes: Some(4096),
        ..config(tree)
    }
}

/// As many members as the level bears whichever they are, spread out.
pub(crate) fn bearable(tree: &Tree) -> Vec<LeafId> {
    let leaves = tree.leaves() as LeafId;
    (0..tree.tolerance() as LeafId).map(|i| (1 + i * 2) % leaves).collect()
}

/// Every level, with a name; parity in all six rotations.
pub(crate) fn every_level(chunk: u64) -> Vec<(String, Tree)> {
    let mut all = vec![
        ("raid0".to_string(), Tree::raid0(4, chunk)),
        ("raid1".to_string(), Tree::raid1(3)),
        ("raid10".to_string(), Tree::raid10(2, chunk)),
        ("raid01".to_string(), Tree::raid01(2, chunk)),
        ("concat".to_string(), Tree::Concat { children: vec![Tree::raid1(2), Tree::raid1(2)] }),
        ("independent".to_string(), Tree::Independent { children: vec![Tree::raid1(2), Tree::raid1(2)] }),
    ];
    for rotation in Rotation::ALL {
        all.push((format!("raid5 {}", rotation.name()), Tree::parity(1, 5, chunk, rotation)));
        all.push((format!("raid6 {}", rotation.name()), Tree::parity(2, 6, chunk, rotation)));
    }
    for layout in ["near2", "far2", "offset3"] {
        let tree = Tree::parse(&format!("raid10(5, chunk={chunk}, layout={layout})")).expect("a tree");
        all.push((format!("raid10 {layout}"), tree));
    }
    for (parities, width, spares) in [(1, 3, 0), (2, 4, 0), (1, 5, 1), (2, 4, 2)] {
        let tree = format!("declustered(6, width={width}, parities={parities}, spares={spares}, chunk={chunk})");
        all.push((tree.clone(), Tree::parse(&tree).expect("a tree")));
    }
    all.push(("raid50".to_string(), Tree::striped_parity(1, 2, 3, chunk, Rotation::LeftSymmetric)));
    all.push(("raid60".to_string(), Tree::striped_parity(2, 2, 4, chunk, Rotation::LeftSymmetric)));
    all
}

/// Asserts that a verifying run found every sector as it should be.
pub(crate) fn assert_verified(name: &str, result: &LiveResult) {
    let report = result.verify.as_ref().expect("a verifying run reports");
    assert_eq!(result.stopped_by, None, "{name}");
    assert_eq!(report.mismatch_count, 0, "{name}: {:#?}", report.mismatches);
    assert!(report.sectors_checked > 0 && report.sectors_written > 0, "{name}");
    assert!(result.elapsed > Duration::ZERO, "{name}");
}

/// 4 KiB random requests, half of them reads, at depth 16 straight to these targets, briefly.
pub(crate) fn direct(targets: Vec<TargetSpec>) -> DirectConfig {
    let text = r#"{"engine": "direct", "seed": 1, "targets": [], "load": {"kind": "closed", "depth": 16},
        "workload": {"size": {"kind": "fixed", "bytes": 4096}, "address": {"kind": "uniform"}},
        "measure": {"requests": 2000}}"#;
    let workload = workload(0.5, SizeSpec::Fixed { bytes: 4 * KIB });
    DirectConfig { targets, workload, ..serde_json::from_str(text).expect("a cell") }
}

/// Runs it without watching, if it may.
pub(crate) fn try_direct(config: &DirectConfig) -> Result<DirectResult, LiveError> {
    raidlab_live::direct::run(config, &mut |_| ControlFlow::Continue(()))
}

/// Runs it; it must start.
pub(crate) fn run_direct(config: &DirectConfig) -> DirectResult {
    try_direct(config).expect("the cell runs")
}
