//! Cells to run and places to run them in.
#![allow(dead_code)] // Each test binary uses its own part.

pub(crate) mod loops;

use raidlab_array::{Policy, Rotation, Tree};
use raidlab_live::direct::{DirectConfig, DirectResult, Interface};
use raidlab_live::{Content, LiveConfig, LiveResult, TargetSpec};
use raidlab_load::{AddressSpec, Align, Limit, Limits, LoadSpec, SizeSpec, VolumeSpec, WorkloadSpec};
use raidlab_types::{Duration, KIB, MIB};
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
        tree,
        policy: Policy::default(),
        targets: vec![TargetSpec::Memory { size_bytes: 4 * MIB }],
        missing: Vec::new(),
        load: LoadSpec::Closed { depth: 16 },
        workload: workload(1.0, SizeSpec::Fixed { bytes: 4 * KIB }),
        files: None,
        limits: requests(2000),
        seed: 1,
        sector_bytes: None,
        content: Content::Random,
        destroy: Vec::new(),
        faults: Vec::new(),
        trace_requests: 0,
        emulation: Default::default(),
        verify: Default::default(),
    }
}

pub(crate) fn workload(read_fraction: f64, size: SizeSpec) -> WorkloadSpec {
    let address = AddressSpec::Uniform {};
    WorkloadSpec {
        read_fraction,
        size,
        address,
        align: Some(Align::SECTOR),
        span: None,
        volumes: VolumeSpec::Uniform,
        task: None,
    }
}

pub(crate) fn requests(n: u64) -> Limits {
    Limits { warmup: Limit::default(), measure: Limit { requests: Some(n), duration_s: None } }
}

/// Runs without watching.
pub(crate) fn run(config: &LiveConfig) -> LiveResult {
    raidlab_live::run(config, None, &mut |_| ControlFlow::Continue(())).unwrap_or_else(|e| panic!("{e}"))
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
    DirectConfig {
        spans: Vec::new(),
        targets,
        workers: 1,
        cpus: Vec::new(),
        interface: Interface::Auto,
        buffered: false,
        busy: false,
        poll_completions: false,
        batch: None,
        compressible_percent: 0,
        sector_bytes: None,
        destroy: Vec::new(),
        load: LoadSpec::Closed { depth: 16 },
        workload: workload(0.5, SizeSpec::Fixed { bytes: 4 * KIB }),
        limits: requests(2000),
        seed: 1,
        verify: Default::default(),
    }
}

/// Runs it; it must start.
pub(crate) fn run_direct(config: &DirectConfig) -> DirectResult {
    raidlab_live::direct::run(config, &mut |_| ControlFlow::Continue(())).expect("the cell runs")
}
