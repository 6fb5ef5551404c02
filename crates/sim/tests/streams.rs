//! Streams on the virtual clock: how fast they go follows from their ends, and from queues where they meet.

#![allow(clippy::cast_precision_loss, reason = "numbers here are small")]

use raidlab_array::Tree;
use raidlab_load::streams::StreamSpec;
use raidlab_load::{Limit, Limits};
use raidlab_sim::{run, PathSpec, SimConfig, SimResult};

mod common;

const BLOCK: u64 = 262_144;

/// Streams over one disk that takes 10 ms for any request.
fn config(streams: &str, path: &str) -> SimConfig {
    let streams: Vec<StreamSpec> = serde_json::from_str(streams).expect("streams");
    let path: PathSpec = serde_json::from_str(path).expect("a path");
    let limits = Limits { warmup: Limit::default(), measure: Limit { requests: None, duration_s: Some(1e6) } };
    SimConfig {
        path,
        limits,
        streams: Some(streams),
        ..common::closed(Tree::member(), common::fixed(10_000.0), common::random(1.0, 4096), 1)
    }
}

fn stream(name: &str, from: &str, to: &str, blocks: u64, more: &str) -> String {
    let bytes = blocks * BLOCK;
    format!(r#"{{"name": "{name}", "source": {from}, "sink": {to}, "block_bytes": {BLOCK}, "bytes": {bytes}{more}}}"#)
}

fn ran(streams: &[String], path: &str) -> SimResult {
    run(&config(&format!("[{}]", streams.join(", ")), path)).expect("a run")
}

fn ms(result: &SimResult, stream: usize) -> f64 {
    result.streams[stream].elapsed_ns as f64 / 1e6
}

const MEMORY: &str = r#"{"kind": "memory"}"#;

#[test]
fn a_file_without_read_ahead_costs_a_request_a_block_and_work_comes_on_top() {
    let file = r#"{"kind": "array", "file_per_kib": 10000}"#;
    // 10 ms of the disk and 2.56 ms of the host, one after the other.
    let result = ran(&[stream("read", file, MEMORY, 100, "")], "{}");
    assert!((ms(&result, 0) - 1256.0).abs() < 1e-6, "{}", ms(&result, 0));
    let tally = result.recorder.read();
    assert_eq!((tally.requests, tally.bytes), (100, 100 * BLOCK));
    // Asking one block ahead hides the work behind the disk.
    let ahead = r#"{"kind": "array", "file_per_kib": 10000, "ahead_bytes": 262144}"#;
    let result = ran(&[stream("read", ahead, MEMORY, 100, "")], "{}");
    assert!((ms(&result, 0) - 1002.56).abs() < 1e-6, "{}", ms(&result, 0));
    assert_eq!(result.streams[0].bound_by, "source");
}

#[test]
fn what_is_written_behind_is_waited_for_at_the_end() {
    let file = r#"{"kind": "array", "file_per_kib": 10000, "ahead_bytes": 1048576, "request": 131072}"#;
    let result = ran(&[stream("write", MEMORY, file, 50, "")], "{}");
    // Two requests a block, 10 ms each, the first after the work for its block.
    assert!((ms(&result, 0) - 1002.56).abs() < 1e-6, "{}", ms(&result, 0));
    assert_eq!(result.recorder.write().requests, 100);
    // Eight requests may be on their way when the program is through.
    assert_eq!(result.streams[0].sync_ns, 80_000_000);
}

#[test]
fn ends_that_take_turns_add_up_and_buffers_let_them_overlap() {
    let path = r#"{"station": [{"name": "link"}], "ways": [[{"station": "link", "phase": "data", "mb_s": 26.2144}]]}"#;
    let (file, way) = (r#"{"kind": "array"}"#, r#"{"kind": "way", "way": 0}"#);
    let in_turns = ran(&[stream("copy", file, way, 100, "")], path);
    assert!((ms(&in_turns, 0) - 2000.0).abs() < 1e-3, "{}", ms(&in_turns, 0));
    let overlapping = ran(&[stream("copy", file, way, 100, r#", "buffers": 2"#)], path);
    assert!((ms(&overlapping, 0) - 1010.0).abs() < 1e-3, "{}", ms(&overlapping, 0));
    // The other direction is the same for one link.
    let back = ran(&[stream("copy", way, file, 100, r#", "buffers": 2"#)], path);
    assert!((ms(&back, 0) - 1010.0).abs() < 1e-3, "{}", ms(&back, 0));
    assert_eq!(back.stations.iter().map(|s| s.visits).sum::<u64>(), 100);
}

#[test]
fn streams_that_share_a_link_share_its_rate() {
    let path = r#"{"station": [{"name": "link"}], "ways": [[{"station": "link", "phase": "data", "mb_s": 26.2144}]]}"#;
    let (memory, way) = (r#"{"kind": "tape", "mb_s": 1000, "buffer": 1048576}"#, r#"{"kind": "way", "way": 0}"#);
    let all: Vec<String> = (0..4).map(|i| stream(&format!("{i}"), memory, way, 50, r#", "buffers": 2"#)).collect();
    let result = ran(&all, path);
    let last = (0..4).map(|i| ms(&result, i)).fold(0.0, f64::max);
    assert!((last - 2000.0).abs() < 15.0, "{last}");
    assert!((0..4).all(|i| ms(&result, i) > 1900.0), "in turn");
}

#[test]
fn a_tape_keeps_its_rate_or_stops_and_starts() {
    let file = r#"{"kind": "array", "ahead_bytes": 262144}"#;
    let tape = |rate: f64, stop: f64| {
        format!(r#"{{"kind": "tape", "mb_s": {rate}, "buffer": 524288, "start_stop": {}}}"#, stop * 1e6)
    };
    // The disk brings 26.2 MB/s: a tape of 20 runs through, one of 30 starves and pays for it.
    let slow = ran(&[stream("out", file, &tape(20.0, 500.0), 200, "")], "{}");
    assert_eq!(slow.streams[0].sink.stops, 0);
    let rate = slow.streams[0].bytes as f64 / 1e3 / slow.streams[0].elapsed_ns as f64 * 1e6;
    assert!((rate - 20.0).abs() < 0.2, "{rate}");
    let fast = ran(&[stream("out", file, &tape(30.0, 500.0), 200, "")], "{}");
    let stops = fast.streams[0].sink.stops;
    assert!(stops > 5, "{stops}");
    assert!(ms(&fast, 0) > 2000.0, "slower than the disk alone: {}", ms(&fast, 0));
}

#[test]
fn what_makes_no_sense_is_said_with_its_key() {
    let file = r#"{"kind": "array"}"#;
    let asked = |streams: &str| {
        let error = run(&config(streams, "{}")).expect_err("no run");
        (error.key.clone(), error.message.clone())
    };
    assert_eq!(asked("[]").0, "streams");
    assert_eq!(asked(&format!("[{}]", stream("x", MEMORY, MEMORY, 1, ""))).0, "streams[0].sink");
    let way = r#"{"kind": "way", "way": 0}"#;
    assert_eq!(asked(&format!("[{}]", stream("x", file, way, 1, ""))).0, "streams[0].sink.way");
    let beyond = r#"{"kind": "array", "offset_bytes": 1073741824}"#;
    assert_eq!(asked(&format!("[{}]", stream("x", beyond, MEMORY, 1, ""))).0, "streams[0].source.offset_bytes");
    let odd = r#"{"kind": "array", "request": 1000}"#;
    let (key, message) = asked(&format!("[{}]", stream("x", odd, MEMORY, 1, "")));
    assert_eq!(key, "streams[0].source.request");
    assert!(message.contains("accepted"), "{message}");
}
