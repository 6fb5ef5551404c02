//! Emulated members: modelled disks on the real clock. Nothing here depends on how fast the machine is: what is asserted
//! of time holds however late the engine is, namely that it is never early and loses nothing.

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

mod common;

use common::{assert_verified, bearable, config, error, every_level, mixed, requests, run, workload, Place};
use raidlab_array::{MirrorRead, ParityWrite, Policy, SitOut, Tree};
use raidlab_device::{DeviceSpec, PairPricing};
use raidlab_live::{
    Accounts, ContentMode, EmulatedContent, Emulation, Fault, FaultKind, LiveConfig, LiveError, TargetSpec,
};
use raidlab_load::{Limit, Limits, LoadSpec, SizeSpec};
use raidlab_types::{Duration, KIB, MIB};
use std::ops::ControlFlow;

const CHUNK: u64 = 16 * KIB;
const CAPACITY: u64 = MIB;

fn device(text: &str) -> Box<DeviceSpec> {
    Box::new(serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}")))
}

/// A constant time an operation.
fn fixed(us: u32) -> Box<DeviceSpec> {
    device(&format!(r#"{{"kind":"fixed","capacity_bytes":{CAPACITY},"read_us":{us},"write_us":{us}}}"#))
}

/// A small disk of three tracks a cylinder with all of a disk's mechanics, 7200 revolutions a minute.
fn disk() -> Box<DeviceSpec> {
    device(
        r#"{"kind":"hdd","rpm":7200.0,"heads":3,"zones":[{"cylinders":20,"sectors_per_track":40}],
            "track_gap_ms":0.0,"track_skew":{"ms":1.0},"cylinder_skew":{"ms":1.2},"head_switch_ms":0.9,
            "read_overhead_ms":0.1,"write_overhead_ms":0.1,"write_settle_ms":0.5,
            "seek":{"kind":"lee","min_ms":1.0,"avg_ms":2.0,"max_ms":4.0}}"#,
    )
}

fn over(device: Box<DeviceSpec>, content: EmulatedContent) -> Vec<TargetSpec> {
    vec![TargetSpec::Emulated { device, content }]
}

fn at_speed(speed: f64) -> Emulation {
    Emulation { speed, ..Emulation::default() }
}

/// Fast enough that tests take no time, whatever the machine makes of it.
const FAST: f64 = 1000.0;

#[test]
fn no_completion_comes_before_it_is_due() {
    // One operation at a time: a request takes its service, and the host on top, in the run's time.
    for (device, least_ns) in [(fixed(100), 100_000), (disk(), 100_000)] {
        let targets = over(device, EmulatedContent::None);
        let load = LoadSpec::Closed { depth: 1 };
        let config = LiveConfig { targets, load, limits: requests(200), ..config(Tree::member()) };
        for speed in [1.0, 20.0] {
            let result = run(&LiveConfig { emulation: at_speed(speed), ..config.clone() });
            assert_eq!(result.stopped_by, None);
            let all = result.recorder.all();
            assert_eq!((all.requests, result.engine.interface), (200, "emulated"));
            assert!(all.response.percentile_ns(0.0) >= least_ns, "{}", all.response.percentile_ns(0.0));
            let mechanics = result.members[0].mechanics.expect("a modelled disk says what it did");
            assert!(result.elapsed.as_ns() >= mechanics.busy_ns, "a disk was busy longer than there was time");
            assert!(all.response.sum_ns() >= u128::from(mechanics.busy_ns), "a request took less than its disk");
            let sum = mechanics.seek_ns + mechanics.rotation_ns + mechanics.transfer_ns + mechanics.overhead_ns;
            assert_eq!(mechanics.busy_ns, sum);
            let lateness = result.engine.lateness.expect("lateness goes with every result");
            assert_eq!(lateness.count, 200);
            assert_eq!(lateness.mean_service_ns, mechanics.busy_ns / 200);
            assert!(lateness.p50_ns <= lateness.p99_ns && lateness.p99_ns <= lateness.max_ns);
            assert_eq!(result.checks.len(), 1);
        }
    }
}

#[test]
fn a_queue_does_not_wait_for_the_host() {
    // 64 requests at once to one device: each starts where the one before it ended, however late the engine noticed. So the
    // wait of the i-th is i services, or less where the engine was late to hand it over; and never more.
    let targets = over(fixed(100), EmulatedContent::None);
    let load = LoadSpec::Closed { depth: 64 };
    let config =
        LiveConfig { targets, load, limits: requests(64), emulation: at_speed(50.0), ..config(Tree::member()) };
    let result = run(&config);
    let lateness = result.engine.lateness.expect("lateness goes with every result");
    let most_wait: u64 = (0..64).map(|i| i * 100_000).sum();
    assert!(result.members[0].wait_ns <= most_wait, "{} of at most {most_wait}", result.members[0].wait_ns);
    assert_eq!(lateness.mean_service_ns, 100_000);
}

#[test]
fn counts_are_conserved() {
    let tree = Tree::parse("raid5:5:16KiB").expect("a tree");
    let policy = Policy { parity_write: ParityWrite::ReadModifyWrite, ..Policy::default() };
    let config = LiveConfig {
        policy,
        targets: over(disk(), EmulatedContent::None),
        workload: workload(0.0, SizeSpec::Fixed { bytes: 4 * KIB }),
        limits: requests(3000),
        sector_bytes: Some(4096),
        emulation: at_speed(FAST),
        trace_requests: u64::MAX,
        ..config(tree)
    };
    for pair_pricing in [PairPricing::Queued, PairPricing::Head] {
        let result = run(&LiveConfig { emulation: Emulation { pair_pricing, ..config.emulation }, ..config.clone() });
        let all = result.recorder.all();
        assert_eq!((all.requests, all.failed, all.bytes), (3000, 0, 3000 * 4096));
        let sum = |f: fn(&raidlab_live::MemberCounts) -> u64| result.members.iter().map(f).sum::<u64>();
        let counted = sum(|m| m.reads + m.writes);
        // Those that were not over when the last request that counts was are not counted, and no more than those.
        let begun = result.trace.len() as u64;
        assert_eq!(begun % 4, 0, "a read-modify-write is two reads and two writes");
        assert!(counted <= begun && begun <= counted + 4 * 16, "{counted} counted, {begun} begun");
        assert_eq!(result.engine.lateness.map(|l| l.count), Some(counted));
        assert_eq!(sum(|m| m.others + m.failed), 0);
        let Accounts { requests, operations, unknown } = result.engine.accounts;
        assert_eq!((requests.failed, operations.failed, unknown), (0, 0, 0));
        assert_eq!((requests.submitted, operations.submitted), (requests.completed, operations.completed));
        assert_eq!((operations.submitted, requests.submitted * 4), (begun, begun));
    }
}

/// As [`mixed`], in the time of tests.
fn checked(tree: Tree, targets: Vec<TargetSpec>) -> LiveConfig {
    LiveConfig { limits: requests(1000), emulation: at_speed(FAST), ..mixed(tree, targets) }
}

#[test]
fn content_in_memory_is_kept_at_every_level_with_members_missing_or_going() {
    for (name, tree) in every_level(CHUNK) {
        let memory = over(fixed(100), EmulatedContent::Memory);
        let result = run(&checked(tree.clone(), memory.clone()));
        assert_verified(&name, &result);
        let missing = bearable(&tree);
        if missing.is_empty() {
            continue;
        }
        let result = run(&LiveConfig { missing: missing.clone(), ..checked(tree.clone(), memory.clone()) });
        assert_verified(&format!("{name} with members missing"), &result);
        let gone = result.members[missing[0] as usize];
        assert_eq!((gone.reads, gone.writes), (0, 0), "{name}: a missing member worked");
        for kind in [FaultKind::Gone, FaultKind::TakenOut, FaultKind::Media { every: 7 }] {
            let fault = |&leaf| Fault { leaf, after_operations: 150, kind };
            let faults = missing.iter().take(1).map(fault).collect();
            let result = run(&LiveConfig { faults, ..checked(tree.clone(), memory.clone()) });
            assert_verified(&format!("{name}, {kind:?}"), &result);
            assert_eq!(result.recorder.all().failed, 0, "{name}, {kind:?}");
        }
    }
}

#[test]
fn content_in_files_is_kept_and_only_raidlabs_files_are_written() {
    let place = Place::new();
    let tree = Tree::parse("raid6:6:16KiB").expect("a tree");
    let target = |leaf| TargetSpec::Emulated {
        device: disk(),
        content: EmulatedContent::File(place.path(&format!("content{leaf}"))),
    };
    let targets: Vec<TargetSpec> = (0..6).map(target).collect();
    for missing in [vec![], vec![1, 4]] {
        let result = run(&LiveConfig { missing, ..checked(tree.clone(), targets.clone()) });
        assert_verified("raid6 over files", &result);
        assert_eq!(result.engine.interface, "emulated", "no ring where the model says when");
    }
    let foreign = place.path("precious");
    std::fs::write(&foreign, [7; 4096]).expect("a file");
    let mut others = targets.clone();
    others[3] = TargetSpec::Emulated { device: disk(), content: EmulatedContent::File(foreign.clone()) };
    let refused = error(&checked(tree.clone(), others.clone()));
    let is_refusal = matches!(refused, LiveError::Refused { .. });
    assert_eq!((refused.key(), is_refusal), ("members[3].content.file", true), "{refused}");
    assert_eq!(std::fs::read(&foreign).expect("still there"), [7; 4096]);
    others[3] = others[2].clone();
    assert!(error(&checked(tree, others)).message().contains("already stands at members[2]"));
}

#[test]
fn members_that_sit_out_are_read_around_and_every_byte_is_right() {
    // One is always a little slower for a moment.
    let policy = Policy { sit_out: Some(SitOut { times: 1.01, hold: 300_000, rest: 5_000_000 }), ..Policy::default() };
    let mut times = 0;
    for (name, tree) in every_level(CHUNK) {
        let bears = tree.tolerance();
        let result = run(&LiveConfig { policy, ..checked(tree, over(fixed(100), EmulatedContent::Memory)) });
        assert_verified(&name, &result);
        assert_eq!(result.recorder.all().failed, 0, "{name}");
        assert!(bears > 0 || result.sat_out.is_empty(), "{name}: {:?}", result.sat_out);
        times += result.sat_out.len();
    }
    assert!(times > 0, "nobody ever sat out");
}

#[test]
fn emulated_members_beside_real_ones() {
    let place = Place::new();
    let mut targets = place.files(4, CAPACITY);
    targets[1] = over(fixed(50), EmulatedContent::Memory).remove(0);
    targets[2] = TargetSpec::Memory { size_bytes: CAPACITY };
    let config = checked(Tree::raid10(2, CHUNK), targets);
    let result = run(&LiveConfig { emulation: at_speed(1.0), limits: requests(300), ..config.clone() });
    assert_verified("raid10 over a file, a model and memory", &result);
    assert_eq!(result.engine.interface, "io_uring");
    assert!(result.members[1].mechanics.is_some() && result.members[0].mechanics.is_none());
    let refused = error(&config);
    assert_eq!(refused.key(), "speed", "{refused}");
}

#[test]
fn what_makes_no_sense_is_refused_with_its_key() {
    let tree = Tree::raid1(2);
    let none = || LiveConfig { targets: over(fixed(100), EmulatedContent::None), ..config(tree.clone()) };
    let emulation = |speed, pair_pricing| LiveConfig { emulation: Emulation { speed, pair_pricing }, ..none() };
    for speed in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        assert_eq!(error(&emulation(speed, PairPricing::Queued)).key(), "speed");
    }
    assert_eq!(error(&LiveConfig { emulation: at_speed(5.0), ..config(tree.clone()) }).key(), "speed");
    let prepaid = error(&emulation(1.0, PairPricing::Prepaid));
    assert_eq!(prepaid.key(), "pair_pricing");
    assert!(prepaid.message().contains("accepted: queued, head"), "{prepaid}");
    let verify = error(&LiveConfig { content: ContentMode::Verify, ..none() });
    assert_eq!(verify.key(), "content");
    let huge = device(r#"{"kind":"fixed","capacity_bytes":1000000000000000,"read_us":1,"write_us":1}"#);
    let too_large = LiveConfig { targets: over(huge.clone(), EmulatedContent::Memory), ..none() };
    assert_eq!(error(&too_large).key(), "members");
    let fine = LiveConfig { targets: over(huge, EmulatedContent::None), emulation: at_speed(FAST), ..none() };
    assert_eq!(run(&fine).recorder.all().requests, 2000, "what is not kept may be as large as it likes");
    let bad = device(r#"{"kind":"fixed","capacity_bytes":1000000,"read_us":-1,"write_us":1}"#);
    let refused = error(&LiveConfig { targets: over(bad, EmulatedContent::None), ..none() });
    assert_eq!(refused.key(), "members[0].device.read_us");
}

#[test]
fn time_limits_and_interruption_are_in_the_runs_time() {
    let limit = |duration_s| Limit { requests: None, duration_s: Some(duration_s) };
    let config = LiveConfig {
        targets: over(fixed(1000), EmulatedContent::None),
        policy: Policy { mirror_read: MirrorRead::ShortestQueue, ..Policy::default() },
        limits: Limits { warmup: limit(1.0), measure: limit(4.0) },
        emulation: at_speed(100.0),
        ..config(Tree::raid1(2))
    };
    let result = run(&config);
    // Five seconds of the disks' time; two disks serve a thousand a second each, and no more, but for those of before
    // that the engine sees together when it is late to open the window: all 16 in flight at most.
    assert!(result.elapsed >= Duration::from_ms(4000), "{:?}", result.elapsed);
    let most = 2 * (result.elapsed.as_ns() / 1_000_000 + 1) + 16;
    assert!(result.recorder.all().requests <= most, "{} of at most {most}", result.recorder.all().requests);
    assert_eq!(result.engine.speed, 100.0);
    let mut calls = 0;
    let long = LiveConfig { limits: Limits { warmup: limit(0.0), measure: limit(1e6) }, ..config };
    let stopped = raidlab_live::run(&long, None, &mut |_| {
        calls += 1;
        if calls > 1 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert!(stopped.expect("it ran").interrupted);
}
