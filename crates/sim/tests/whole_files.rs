//! Whole files on the virtual clock: what they ask for, how long they take, and what follows from queues alone.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "numbers here are small"
)]

use raidlab_array::{Policy, Tree};
use raidlab_device::DeviceSpec;
use raidlab_load::files::{AccessName, FileSystemSpec, FilesSpec};
use raidlab_load::{Limit, Limits, LoadSpec, SizeSpec};
use raidlab_sim::{run, HostSpec, SimConfig, SimResult};

mod common;

/// Every access takes 10 ms, whatever its place and length.
fn disk() -> DeviceSpec {
    let text = r#"{"kind": "fixed", "capacity_bytes": 1000000000, "read_us": 10000.0, "write_us": 10000.0}"#;
    serde_json::from_str(text).expect("a device")
}

fn independent(n: usize) -> Tree {
    Tree::Independent { children: vec![Tree::member(); n] }
}

fn files(text: &str) -> FilesSpec {
    serde_json::from_str(text).expect("files")
}

fn config(tree: Tree, bytes: u64, readers: u32, files: FilesSpec) -> SimConfig {
    let workload = format!(r#"{{"size": {{"kind": "fixed", "bytes": {bytes}}}, "address": {{"kind": "uniform"}}}}"#);
    let amount = |n| Limit { requests: Some(n), duration_s: None };
    SimConfig {
        tree,
        // No request is planned in two windows, which would be two accesses.
        policy: Policy { window_bytes: 1 << 40, ..Policy::default() },
        load: LoadSpec::Closed { depth: readers },
        limits: Limits { warmup: amount(20), measure: amount(400) },
        files: Some(files),
        ..common::closed(Tree::raid0(2, 4096), disk(), serde_json::from_str(&workload).expect("a workload"), 1)
    }
}

fn mean_ms(result: &SimResult) -> f64 {
    result.recorder.all().response.mean_ns() / 1e6
}

#[test]
fn one_reader_waits_for_what_cannot_be_asked_for_ahead() {
    // Two clusters before the indirect block. The second is asked for with the first and follows it on the same disk.
    let alone = independent(1);
    let spec = files(r#"{"count": 500, "order": "shuffled"}"#);
    let result = run(&config(alone.clone(), 98_304, 1, spec.clone())).expect("a run");
    // Inode, then two clusters one after another.
    assert!((mean_ms(&result) - 30.0).abs() < 1e-6, "{}", mean_ms(&result));
    // With more blocks: the indirect block queues behind the second cluster, which the third then has behind it.
    let result = run(&config(alone.clone(), 98_304 + 57_344, 1, spec.clone())).expect("a run");
    assert!((mean_ms(&result) - 50.0).abs() < 1e-6, "{}", mean_ms(&result));
    let record = result.files.expect("files");
    let counts = AccessName::ALL.map(|name| record.accesses(name).count as f64 / record.files as f64);
    assert!(counts.iter().zip([1.0, 1.0, 3.0, 0.0]).all(|(found, wanted)| (found - wanted).abs() < 0.02), "{counts:?}");
    // Work of the host on a cluster overlaps with the reading of the next.
    let host = HostSpec { file_us: 3000.0, file_us_per_kib: 100.0, ..HostSpec::default() };
    let result = run(&SimConfig { host, ..config(alone, 98_304, 1, spec) }).expect("a run");
    assert!((mean_ms(&result) - (3.0 + 30.0 + 4.0)).abs() < 1e-6, "{}", mean_ms(&result));
}

#[test]
fn blocks_in_memory_are_not_read() {
    let file_system = FileSystemSpec { inode_cache_bytes: 8 << 30, ..FileSystemSpec::default() };
    let spec = FilesSpec { file_system, ..files(r#"{"count": 20, "order": "shuffled"}"#) };
    let result = run(&config(independent(1), 200_000, 1, spec)).expect("a run");
    let record = result.files.expect("files");
    assert_eq!((record.accesses(AccessName::Inode).count, record.accesses(AccessName::Indirect).count), (0, 400));
    assert!(record.accesses(AccessName::Inode).found >= 400);
    assert!((record.open_ns, record.files) == (0, 400));
}

#[test]
fn changed_inodes_are_written_at_their_times_once_a_block() {
    let file_system = FileSystemSpec { inode_update_s: Some(1.0), ..FileSystemSpec::default() };
    let spec = FilesSpec { file_system, ..files(r#"{"count": 1, "order": "shuffled"}"#) };
    let mut cell = config(Tree::raid1(2), 8192, 1, spec);
    cell.limits.measure.requests = Some(4000);
    let result = run(&cell).expect("a run");
    let updates = result.files.expect("files").accesses(AccessName::InodeUpdate).count as f64;
    // One file, so one block, every second.
    let seconds = result.recorder.elapsed().as_s_f64();
    assert!((updates - seconds).abs() <= 1.0, "{updates} in {seconds} s");
    let writes: Vec<u64> = result.members.iter().map(|m| m.totals.writes).collect();
    assert!(writes.iter().all(|&w| w.abs_diff(updates as u64) <= 1), "both copies: {writes:?}");
}

#[test]
fn throughput_ends_where_a_queue_does() {
    // One file is three accesses of 10 ms: so many files a second does a disk give, and two disks twice as many.
    for (tree, most) in [(independent(1), 100.0 / 3.0), (independent(2), 200.0 / 3.0)] {
        let spec = files(r#"{"count": 960, "order": "shuffled", "lists": 12}"#);
        let rates: Vec<f64> = [1, 2, 12]
            .map(|readers| common::rate(&run(&config(tree.clone(), 90_000, readers, spec.clone())).expect("a run")))
            .into();
        // A window of 400 files may open and close anywhere among the 12 that are being read.
        assert!(rates.windows(2).all(|two| two[0] <= two[1] * 1.03), "{rates:?}");
        assert!(rates[2] <= most * 1.03 && rates[2] > 0.9 * most, "{rates:?}");
    }
    // The same for the host's one processor.
    let host = HostSpec { file_us: 100_000.0, ..HostSpec::default() };
    let spec = files(r#"{"count": 960, "order": "shuffled"}"#);
    let result = run(&SimConfig { host, ..config(independent(6), 8192, 8, spec) }).expect("a run");
    assert!((common::rate(&result) - 10.0).abs() < 0.05, "{}", common::rate(&result));
    assert!((mean_ms(&result) - 800.0).abs() < 10.0);
}

#[test]
fn every_list_is_read_once_and_then_it_is_over() {
    let mut cell = config(independent(3), 50_000, 2, files(r#"{"count": 120, "lists": 2, "numbers": "drawn"}"#));
    cell.limits = Limits { warmup: Limit::default(), measure: Limit { requests: Some(1000), duration_s: None } };
    let result = run(&cell).expect("a run");
    assert_eq!(result.recorder.all().requests, 120);
}

#[test]
fn a_run_repeats_and_a_seed_matters() {
    let spec = FilesSpec {
        file_system: FileSystemSpec {
            run_bytes: Some(20_000.0),
            inode_update_s: Some(2.0),
            ..FileSystemSpec::default()
        },
        ..files(r#"{"count": 600, "order": "random"}"#)
    };
    let table = SizeSpec::Table { bytes: (2..12).map(|i| i * 25_000).collect(), weights: vec![1.0; 10] };
    let ended = |seed| {
        let mut cell = config(Tree::raid0(3, 16 << 10), 8192, 3, spec.clone());
        cell.workload.size = table.clone();
        let result = run(&SimConfig { seed, ..cell }).expect("a run");
        let sizes: Vec<u64> = result.files.expect("files").by_size.keys().copied().collect();
        (result.recorder.elapsed(), result.events, sizes)
    };
    assert_eq!(ended(1), ended(1));
    assert_ne!(ended(1).0, ended(2).0);
    assert_eq!(ended(1).2.len(), 10);
}

#[test]
fn what_makes_no_sense_is_named() {
    let key = |change: fn(&mut SimConfig)| {
        let mut cell = config(independent(1), 8192, 1, files(r#"{"count": 10, "order": "shuffled"}"#));
        change(&mut cell);
        run(&cell).expect_err("makes no sense").key
    };
    fn spec(cell: &mut SimConfig) -> &mut FilesSpec {
        cell.files.as_mut().expect("files")
    }
    assert_eq!(key(|c| spec(c).lists = 0), "files.lists");
    assert_eq!(key(|c| spec(c).count = None), "files");
    assert_eq!(key(|c| spec(c).count = Some(1_000_000)), "files.count");
    assert_eq!(key(|c| spec(c).file_system.cluster_bytes = 1000), "files.file_system.cluster");
    assert_eq!(key(|c| spec(c).file_system.inode_update_s = Some(-1.0)), "files.file_system.inode_update");
    assert_eq!(key(|c| c.host.file_us_per_kib = f64::NAN), "host.file_per_kib");
    assert_eq!(key(|c| c.missing = vec![0]), "missing");
    let open = r#"{"kind": "open", "arrival": {"kind": "uniform", "rate_per_s": 1.0}}"#;
    let mut cell = config(independent(1), 8192, 1, files(r#"{"count": 10}"#));
    cell.load = serde_json::from_str(open).expect("a load");
    assert_eq!(run(&cell).expect_err("no readers").key, "load.kind");
}
