//! The direct engine over each kind of target: every request is counted once, what is written arrives, what goes wrong is
//! said once and keeps what was measured.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "numbers here are small")]

mod common;

use common::{count, direct, run_direct, seconds, try_direct, workload, Place};
use raidlab_live::direct::{DirectConfig, DirectResult, Interface, TargetSpan};
use raidlab_live::{LiveError, RunProgress, TargetSpec};
use raidlab_load::{AddressSpec, ArrivalSpec, LoadSpec, SizeSpec, VolumeSpec, WorkloadSpec};
use raidlab_types::{KIB, MIB};
use std::ops::ControlFlow;

/// Submitted = completed + failed + in flight, and the record agrees with the targets.
fn adds_up(result: &DirectResult) {
    let counts = result.requests;
    assert_eq!(counts.submitted, counts.completed + counts.failed + counts.in_flight, "{counts:?}");
    let all = result.recorder.all();
    let sum = |of: fn(&raidlab_live::MemberCounts) -> u64| result.members.iter().map(of).sum::<u64>();
    assert_eq!(all.requests, sum(|m| m.reads) + sum(|m| m.writes));
    assert_eq!(all.bytes, sum(|m| m.read_bytes) + sum(|m| m.write_bytes));
    assert_eq!(all.failed, sum(|m| m.failed));
    assert!(counts.completed >= all.requests);
}

#[test]
fn every_kind_of_target_serves_and_adds_up() {
    let place = Place::new();
    let kinds = [
        TargetSpec::Null { size_bytes: 4 * MIB },
        TargetSpec::Memory { size_bytes: 4 * MIB },
        TargetSpec::File { path: place.path("file"), size_bytes: 4 * MIB, existing: false },
    ];
    for target in kinds {
        for interface in [Interface::Auto, Interface::Threads] {
            let config = DirectConfig { interface, ..direct(vec![target.clone()]) };
            let result = run_direct(&config);
            adds_up(&result);
            assert_eq!(result.recorder.all().requests, 2000);
            assert!(result.recorder.read().requests > 800 && result.recorder.write().requests > 800);
            assert_eq!(result.stopped_by, None);
            let is_file = matches!(target, TargetSpec::File { .. });
            let threads = result.checks.iter().any(|check| check.name == "threads_instead_of_io_uring");
            assert_eq!(threads, is_file && interface == Interface::Threads, "{:?}", result.checks);
        }
    }
}

#[test]
fn several_targets_are_volumes_of_one_load() {
    let place = Place::new();
    let mut targets = place.files(2, 4 * MIB);
    targets.push(TargetSpec::Memory { size_bytes: 2 * MIB });
    let config = DirectConfig {
        workload: WorkloadSpec {
            volumes: VolumeSpec::Weights(vec![1.0, 0.0, 3.0]),
            ..workload(0.5, SizeSpec::Fixed { bytes: 4 * KIB })
        },
        ..direct(targets)
    };
    let result = run_direct(&config);
    adds_up(&result);
    let served: Vec<u64> = result.members.iter().map(|m| m.reads + m.writes).collect();
    assert_eq!((served[1], served.iter().sum::<u64>()), (0, 2000));
    // 500 of 2000 with chance 1/4: five standard deviations are 97.
    assert!(served[0].abs_diff(500) < 97, "{served:?}");
}

#[test]
fn sizes_of_all_kinds_and_sequences_run() {
    let place = Place::new();
    let size = SizeSpec::Exponential { mean_bytes: 100e3 };
    let address = AddressSpec::Sequential { streams: 3 };
    for target in place.files(1, 8 * MIB).into_iter().chain([TargetSpec::Memory { size_bytes: 8 * MIB }]) {
        let config = DirectConfig {
            workload: WorkloadSpec { address: address.clone(), ..workload(0.5, size.clone()) },
            load: LoadSpec::Closed { depth: 7 },
            batch: Some(2),
            ..direct(vec![target])
        };
        let result = run_direct(&config);
        adds_up(&result);
        assert_eq!((result.recorder.all().requests, result.engine.batch), (2000, Some(2)));
    }
}

/// Over several workers: every request of the limit is counted once, and the depth is what was asked for.
#[test]
fn several_workers_are_one_load() {
    let place = Place::new();
    let null = || TargetSpec::Null { size_bytes: 4 * MIB };
    let memory = || TargetSpec::Memory { size_bytes: 4 * MIB };
    let files = place.files(2, 4 * MIB);
    // Targets, workers, and the depth each worker then has of 7.
    let cases: [(Vec<TargetSpec>, u32, &[u32]); 5] = [
        (vec![null()], 2, &[4, 3]),
        (vec![null(), null(), memory()], 2, &[5, 2]),
        (vec![memory()], 3, &[3, 2, 2]),
        (files.clone(), 2, &[4, 3]),
        (files, 3, &[2, 3, 2]),
    ];
    for (targets, workers, depths) in cases {
        for interface in [Interface::Auto, Interface::Threads] {
            let config = DirectConfig {
                workers,
                interface,
                load: LoadSpec::Closed { depth: 7 },
                warmup: count(500),
                measure: count(3000),
                ..direct(targets.clone())
            };
            let result = run_direct(&config);
            adds_up(&result);
            assert_eq!(result.recorder.all().requests, 3000, "{targets:?}");
            assert_eq!(result.engine.depths, depths);
            assert_eq!(result.accounting.workers.len(), workers as usize);
            assert!(result.recorder.mean_in_flight() <= 7.0 + 1e-9);
            let seconds: u64 = result.recorder.second_histograms().iter().map(|(_, _, count)| count).sum();
            assert_eq!(seconds, result.recorder.snapshots().map(|row| row.requests).sum::<u64>());
        }
    }
}

#[test]
fn windows_of_several_workers_open_and_close_together() {
    let (warmup, measure) = (seconds(0.05), seconds(0.1));
    let null = TargetSpec::Null { size_bytes: 4 * MIB };
    let result = run_direct(&DirectConfig { workers: 3, warmup, measure, ..direct(vec![null]) });
    adds_up(&result);
    assert_eq!(result.recorder.opened().map(|at| at.as_ns()), Some(50_000_000));
    assert_eq!(result.recorder.elapsed().as_ns(), 100_000_000);
}

#[test]
fn workers_that_share_a_target_divide_its_sequence() {
    let place = Place::new();
    let address = AddressSpec::Sequential { streams: 1 };
    let config = DirectConfig {
        workers: 2,
        workload: WorkloadSpec { address, ..workload(0.0, SizeSpec::Fixed { bytes: 64 * KIB }) },
        load: LoadSpec::Closed { depth: 4 },
        // Twice the file, half of it by each: were both to begin at its beginning, half would stay as it was.
        measure: count(2 * 64),
        ..direct(place.files(1, 4 * MIB))
    };
    run_direct(&DirectConfig { measure: count(1), ..config.clone() });
    let before = std::fs::read(place.path("member0")).expect("the file");
    run_direct(&config);
    let after = std::fs::read(place.path("member0")).expect("the file");
    let sectors = |bytes: &[u8]| bytes[..4 << 20].chunks(4096).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (before, after) = (sectors(&before), sectors(&after));
    let kept = |half: std::ops::Range<usize>| half.filter(|&i| before[i] == after[i]).count();
    assert!(kept(0..512) < 512 && kept(512..1024) < 512, "{} and {}", kept(0..512), kept(512..1024));
    let distinct: std::collections::HashSet<_> = after.iter().collect();
    assert_eq!(distinct.len(), after.len(), "no two sectors are alike");
}

#[test]
fn a_share_of_every_sector_compresses_away_and_the_rest_never_repeats() {
    let place = Place::new();
    for (percent, zeroes) in [(0, 0), (60, 2457), (100, 4096 - 40)] {
        let name = format!("file{percent}");
        let address = AddressSpec::Sequential { streams: 1 };
        let config = DirectConfig {
            compressible_percent: percent,
            workload: WorkloadSpec { address, ..workload(0.0, SizeSpec::Fixed { bytes: 32 * KIB }) },
            measure: count(64),
            ..direct(vec![TargetSpec::File { path: place.path(&name), size_bytes: MIB, existing: false }])
        };
        run_direct(&config);
        let bytes = std::fs::read(place.path(&name)).expect("the file");
        let sectors: Vec<&[u8]> = bytes[..MIB as usize].chunks(4096).collect();
        for sector in &sectors {
            let tail = sector.iter().rev().take_while(|&&b| b == 0).count();
            // What precedes may end in a zero by chance, but not in many.
            assert!((zeroes..zeroes + 8).contains(&tail), "{tail} of {zeroes} at {percent} %");
        }
        assert_eq!(sectors.iter().collect::<std::collections::HashSet<_>>().len(), sectors.len());
    }
}

#[test]
fn counters_of_the_device_below_stand_beside_what_was_asked() {
    let place = Place::new();
    // Paced, so that it lasts a second: the counters are read by a thread that may have to wait for a processor.
    let arrival = ArrivalSpec::Uniform { rate_per_s: 500.0 };
    let config = DirectConfig {
        load: LoadSpec::Open { arrival, max_in_flight: None },
        workload: workload(0.0, SizeSpec::Fixed { bytes: 64 * KIB }),
        measure: count(500),
        ..direct(place.files(1, 16 * MIB))
    };
    let result = run_direct(&config);
    let Some(device) = result.accounting.devices.first() else {
        assert!(result.targets[0].device.is_none(), "a device without counters");
        return;
    };
    assert_eq!((device.targets.clone(), device.asked_write_bytes), (vec![0], result.recorder.all().bytes));
    // Past the page cache every byte passes the device; the window's edges and others' work make the difference. In
    // sectors, or of another device, they would be a small part of it.
    if result.targets[0].io == "direct" {
        assert!(device.write_bytes * 4 > device.asked_write_bytes, "{device:?}");
    }
    let total = result.accounting.total;
    assert_eq!(total, result.accounting.workers[0]);
    assert!(total.user_ns + total.system_ns > 0);
}

#[test]
fn an_open_loop_admits_nothing_before_its_time() {
    for (target, rate_per_s) in
        [(TargetSpec::Null { size_bytes: MIB }, 20_000.0), (TargetSpec::Memory { size_bytes: MIB }, 5_000.0)]
    {
        let config = DirectConfig {
            load: LoadSpec::Open { arrival: ArrivalSpec::Uniform { rate_per_s }, max_in_flight: None },
            measure: count(4001),
            ..direct(vec![target])
        };
        let result = run_direct(&config);
        adds_up(&result);
        // The last of 4001 arrivals stands at 4001 gaps after the start of the clock, and none is admitted early.
        let opened = result.recorder.opened().expect("it opened at the first poll");
        let closed_ns = (opened + result.recorder.elapsed()).as_ns();
        assert!(closed_ns as f64 >= 4001e9 / rate_per_s - 1.0, "closed at {closed_ns} ns");
        assert!(result.backlog.max_in_flight >= 1);
    }
}

#[test]
fn a_file_cut_short_ends_the_run_with_one_sentence_and_keeps_what_was_measured() {
    let place = Place::new();
    for interface in [Interface::IoUring, Interface::Threads] {
        let path = place.path(if interface == Interface::Threads { "threads" } else { "ring" });
        let config = DirectConfig {
            interface,
            workload: workload(1.0, SizeSpec::Fixed { bytes: 4 * KIB }),
            measure: seconds(60.0),
            ..direct(vec![TargetSpec::File { path: path.clone(), size_bytes: 4 * MIB, existing: false }])
        };
        run_direct(&DirectConfig { measure: count(10), ..config.clone() });
        let mut cut = false;
        let result = raidlab_live::direct::run(&config, &mut |progress| {
            if progress.requests > 100 && !cut {
                std::fs::OpenOptions::new().write(true).open(&path).and_then(|f| f.set_len(8192)).expect("cut");
                cut = true;
            }
            ControlFlow::Continue(())
        })
        .expect("it starts");
        adds_up(&result);
        let error = result.stopped_by.clone().expect("it stops");
        assert!(error.message().contains("truncated"), "{error}");
        assert_eq!(error.key(), "targets[0]");
        assert!(result.recorder.all().requests > 100 && result.requests.failed > 0);
        assert!(!result.interrupted);
    }
}

#[test]
fn stopping_keeps_what_was_measured() {
    let config = DirectConfig { measure: seconds(60.0), ..direct(vec![TargetSpec::Null { size_bytes: MIB }]) };
    // Once the worker has had a processor.
    let mut stop = |p: RunProgress| if p.requests > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let result = raidlab_live::direct::run(&config, &mut stop).expect("it runs");
    adds_up(&result);
    assert!(result.interrupted && result.recorder.all().requests > 0);
}

#[test]
fn bad_input_names_its_key() {
    let key = |config: DirectConfig| match try_direct(&config) {
        Err(LiveError::BadInput { key, .. }) => key,
        other => panic!("{other:?}"),
    };
    let null = || direct(vec![TargetSpec::Null { size_bytes: MIB }]);
    assert_eq!(key(direct(vec![])), "targets");
    let device = serde_json::from_str(r#"{"kind":"fixed","read_us":100,"write_us":100,"capacity_bytes":1048576}"#);
    let disk = TargetSpec::Emulated { device: device.expect("a device"), content: Default::default() };
    assert_eq!(key(direct(vec![disk])), "targets[0].kind");
    assert_eq!(key(DirectConfig { workers: 0, ..null() }), "workers");
    assert_eq!(key(DirectConfig { batch: Some(0), ..null() }), "batch");
    assert_eq!(key(DirectConfig { compressible_percent: 101, ..null() }), "compressible_percent");
    assert_eq!(key(DirectConfig { cpus: vec![100_000], ..null() }), "cpus");
    // Where one worker cannot be set up, none runs.
    assert_eq!(key(DirectConfig { workers: 3, cpus: vec![0, 0, 100_000], ..null() }), "cpus");
    assert_eq!(key(DirectConfig { sector_bytes: Some(1000), ..null() }), "sector_bytes");
    assert_eq!(key(DirectConfig { workers: 17, ..null() }), "load.depth");
    let weights = VolumeSpec::Weights(vec![1.0]);
    let workload = WorkloadSpec { volumes: weights, ..null().workload };
    assert_eq!(key(DirectConfig { workers: 2, workload, ..null() }), "workload.volumes");
    assert_eq!(key(DirectConfig { load: LoadSpec::Closed { depth: 0 }, ..null() }), "load.depth");
    assert_eq!(key(direct(vec![TargetSpec::Null { size_bytes: 100 }])), "targets[0].size_bytes");
}

#[test]
fn a_span_is_all_that_is_touched() {
    let place = Place::new();
    let path = place.path("file");
    let target = TargetSpec::File { path: path.clone(), size_bytes: 4 * MIB, existing: false };
    run_direct(&direct(vec![target.clone()]));
    let before = std::fs::read(&path).unwrap();
    let span = TargetSpan { offset_bytes: MIB, size_bytes: Some(MIB) };
    let config = DirectConfig {
        spans: vec![span],
        workload: workload(0.0, SizeSpec::Fixed { bytes: 64 * KIB }),
        ..direct(vec![target.clone()])
    };
    adds_up(&run_direct(&config));
    let after = std::fs::read(&path).unwrap();
    let differs = |from: u64, to: u64| before[from as usize..to as usize] != after[from as usize..to as usize];
    assert!(!differs(0, MIB) && differs(MIB, 2 * MIB) && !differs(2 * MIB, before.len() as u64));
    for (span, key) in [
        (TargetSpan { offset_bytes: 100, size_bytes: None }, "spans[0].offset_bytes"),
        (TargetSpan { offset_bytes: 4 * MIB, size_bytes: None }, "spans[0].offset_bytes"),
        (TargetSpan { offset_bytes: 3 * MIB, size_bytes: Some(2 * MIB) }, "spans[0].size_bytes"),
        (TargetSpan { offset_bytes: 0, size_bytes: Some(100) }, "spans[0].size_bytes"),
    ] {
        let error = try_direct(&DirectConfig { spans: vec![span], ..direct(vec![target.clone()]) });
        assert_eq!(error.unwrap_err().key(), key);
    }
    let two = DirectConfig { spans: vec![span; 2], ..direct(vec![target]) };
    assert_eq!(try_direct(&two).unwrap_err().key(), "spans");
}

#[test]
fn requests_smaller_than_a_page_are_made_where_they_are_asked_for() {
    let place = Place::new();
    for buffered in [true, false] {
        let config = DirectConfig {
            sector_bytes: Some(512),
            buffered,
            workload: workload(0.5, SizeSpec::Fixed { bytes: 512 }),
            ..direct(place.files(1, MIB))
        };
        match try_direct(&config) {
            Ok(result) => {
                adds_up(&result);
                assert_eq!((result.stopped_by, result.engine.sector_bytes), (None, 512));
            }
            // Past the page cache of a disk whose sectors are larger it cannot be.
            Err(error) => assert!(!buffered && error.key().starts_with("workload"), "{error:?}"),
        }
    }
}
