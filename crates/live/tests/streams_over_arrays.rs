//! Streams to and from raidlab's own arrays: every byte, several streams on one array at the same time, lost members.

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

mod common;

use common::loops::Zram;
use common::streaming::{self, error, file, memory, stream, try_run};
use common::{every_level, Place};
use raidlab_array::{Rotation, Tree};
use raidlab_live::streams::{self, ArraySpec, EndpointSpec, LiveStreamSpec, StreamsConfig, StreamsResult};
use raidlab_live::{ContentMode, LiveError, RunProgress, RunStage, TargetSpec};
use raidlab_types::{KIB, MIB};
use std::ops::ControlFlow;

fn array(tree: Tree, members: Vec<TargetSpec>) -> ArraySpec {
    ArraySpec { tree, policy: Default::default(), members, missing: Vec::new(), sector_bytes: None }
}

fn in_memory(tree: Tree) -> ArraySpec {
    array(tree, vec![TargetSpec::Memory { size_bytes: 4 * MIB }])
}

fn at(offset_bytes: u64) -> EndpointSpec {
    EndpointSpec::Array { array: 0, volume: 0, offset_bytes }
}

fn config(array: ArraySpec, streams: Vec<LiveStreamSpec>) -> StreamsConfig {
    let blocks = |spec| LiveStreamSpec { block_bytes: 96 * KIB, ..spec };
    let streams = streams.into_iter().map(blocks).collect();
    StreamsConfig { arrays: vec![array], content: ContentMode::Verify, ..streaming::config(streams) }
}

fn run(config: &StreamsConfig) -> StreamsResult {
    let result = streaming::run(config);
    for one in &result.streams {
        assert_eq!(one.bytes, 2 * MIB, "{}", one.name);
        assert_eq!(one.verify.as_ref().map(|v| v.mismatch_count), Some(0), "{}", one.name);
    }
    result
}

#[test]
fn what_is_streamed_to_an_array_is_what_it_holds() {
    for (name, tree) in every_level(64 * KIB) {
        // Two that write, at places of their own, and one that reads, all at the same time; the last blocks are shorter.
        let mut volumes = [at(0), at(2 * MIB)];
        if name == "independent" {
            volumes[1] = EndpointSpec::Array { array: 0, volume: 1, offset_bytes: MIB };
        }
        let streams = vec![
            stream("one", memory(), volumes[0].clone()),
            stream(
                "other",
                EndpointSpec::Tape { mb_s: 1e6, buffer_bytes: MIB, start_stop_ms: 0.0 },
                volumes[1].clone(),
            ),
        ];
        let result = run(&config(in_memory(tree), streams));
        for one in &result.streams {
            assert_eq!(one.verify.as_ref().map(|v| v.blocks_checked), Some(22), "{name}: {}", one.name);
        }
        assert_eq!([result.streams[0].overlapped, result.streams[1].overlapped], [false, true]);
        let written: u64 = result.arrays[0].members.iter().map(|m| m.write_bytes).sum();
        assert!(written >= 4 * MIB, "{name}: members took {written} bytes");
        assert_eq!(result.arrays[0].interface, "memory");
    }
}

#[test]
fn a_file_goes_through_a_degraded_array_and_back() {
    let place = Place::new();
    let (source, copy) = (place.path("source"), place.path("copy"));
    let bytes: Vec<u8> = (0..2 * MIB).map(|i| (i * 13 / 7) as u8).collect();
    std::fs::write(&source, &bytes).expect("a source");
    let members = place.files(5, 2 * MIB);
    let spec =
        ArraySpec { missing: vec![1], ..array(Tree::parity(1, 5, 64 * KIB, Rotation::LeftSymmetric), members.clone()) };
    let there = run(&config(spec.clone(), vec![stream("there", file(source), at(0))]));
    assert!(there.streams[0].overlapped && there.arrays[0].interface == "io_uring");
    assert!(there.arrays[0].targets[1].is_none() && there.arrays[0].members[1].writes == 0);
    run(&config(spec, vec![stream("back", at(0), file(copy.clone()))]));
    assert!(std::fs::read(copy).expect("the copy")[..bytes.len()] == bytes[..]);
}

#[test]
fn emulated_members_serve_streams_too() {
    let device = r#"{"kind": "fixed", "name": "quick", "capacity_bytes": 16777216, "sector_bytes": 4096,
        "read_us": 50, "write_us": 80, "servers": 1}"#;
    let Ok(device) = serde_json::from_str::<serde_json::Value>(device) else { panic!("plain JSON") };
    let text = serde_json::json!({"kind": "emulated", "device": device, "content": "memory"});
    let member: TargetSpec = match serde_json::from_value(text) {
        Ok(member) => member,
        Err(e) => panic!("an emulated member: {e}"),
    };
    let result = run(&config(array(Tree::raid0(4, 64 * KIB), vec![member]), vec![stream("one", memory(), at(0))]));
    assert_eq!(result.arrays[0].interface, "emulated");
    // How late they were is told and judged, as it is of requests.
    let lateness = result.arrays[0].lateness.expect("of emulated members");
    assert!(lateness.count >= 22 && (50_000..=80_000).contains(&lateness.mean_service_ns), "{lateness:?}");
    assert_eq!(result.checks().iter().map(|check| check.name).collect::<Vec<_>>(), ["lateness"]);
}

#[test]
fn what_one_writes_no_other_uses_and_all_fit() {
    let two = || Tree::raid0(2, 64 * KIB);
    let overlapping = vec![stream("a", memory(), at(0)), stream("b", at(MIB), EndpointSpec::Null)];
    let copy_onto_itself = vec![stream("a", at(0), at(MIB))];
    let cases = vec![
        (config(in_memory(two()), overlapping), "streams[1].source.offset_bytes"),
        (config(in_memory(two()), copy_onto_itself), "streams[0].sink.offset_bytes"),
        (config(in_memory(two()), vec![stream("a", memory(), at(7 * MIB))]), "streams[0].bytes"),
        (config(in_memory(two()), vec![stream("a", memory(), at(100))]), "streams[0].sink.offset_bytes"),
        (
            config(
                in_memory(two()),
                vec![stream("a", memory(), EndpointSpec::Array { array: 3, volume: 0, offset_bytes: 0 })],
            ),
            "streams[0].sink.array",
        ),
        (
            config(
                in_memory(two()),
                vec![stream("a", memory(), EndpointSpec::Array { array: 0, volume: 9, offset_bytes: 0 })],
            ),
            "streams[0].sink.volume",
        ),
        (config(array(two(), vec![]), vec![stream("a", memory(), at(0))]), "arrays[0].members"),
        (
            config(ArraySpec { missing: vec![0], ..in_memory(two()) }, vec![stream("a", memory(), at(0))]),
            "arrays[0].missing",
        ),
    ];
    for (cell, key) in cases {
        let bad = error(&cell);
        assert_eq!(bad.key(), key, "{bad}");
    }
}

#[test]
fn stopping_ends_hubs_and_ports() {
    let tape = || EndpointSpec::Tape { mb_s: 200.0, buffer_bytes: MIB, start_stop_ms: 0.0 };
    let slow = LiveStreamSpec { rate_mb_s: Some(1.0), ..stream("slow", tape(), at(0)) };
    let cell = config(in_memory(Tree::raid0(2, 64 * KIB)), vec![slow]);
    // Filling members may take long enough on a busy machine to be told of.
    let mut stop =
        |p: RunProgress| if p.stage == RunStage::Running { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let result = streams::run(&cell, &mut stop).expect("it ran");
    assert!(result.interrupted && result.streams[0].bytes < 2 * MIB && result.arrays.len() == 1);
}

#[test]
fn an_array_that_loses_too_much_ends_the_run_with_one_sentence() {
    need_loops!();
    let Some(zram) = Zram::new(64 * MIB, 8 * MIB) else {
        println!("skipped: no zram here");
        return;
    };
    let broken = TargetSpec::Block { path: zram.device(), destroy: true };
    let sound = || TargetSpec::Memory { size_bytes: 64 * MIB };
    let long = |name: &str| LiveStreamSpec { bytes: Some(60 * MIB), ..stream(name, memory(), at(0)) };
    let cell = |tree, members| StreamsConfig {
        content: ContentMode::Random,
        ..config(array(tree, members), vec![long("long")])
    };
    let striped = cell(Tree::raid0(2, 64 * KIB), vec![broken.clone(), sound()]);
    let result = try_run(&striped).expect("it began");
    let error = result.stopped_by.expect("a stripe bears no loss");
    assert!(matches!(&error, LiveError::Io { key, .. } if key.starts_with("arrays[0].members")), "{error}");
    assert!(result.streams[0].bytes > 0 && result.streams[0].bytes < 60 * MIB, "what was measured is kept");
    let mirrored = cell(Tree::raid1(2), vec![broken, sound()]);
    let result = try_run(&mirrored).expect("it ran");
    assert_eq!((result.stopped_by, result.streams[0].bytes), (None, 60 * MIB), "a mirror does");
    assert_eq!(result.arrays[0].failed_members.len(), 1);
}
