//! File members: made, filled, known again, refused when somebody else's; and how a run is watched and stopped.

#![allow(
    clippy::cast_lossless,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "numbers here are small"
)]

mod common;

use common::{config, error, requests, run, seconds, try_run, until, workload, Place};
use raidlab_array::{Rotation, Tree};
use raidlab_live::{ContentMode, LiveConfig, LiveError, RunStage, TargetSpec};
use raidlab_load::{ArrivalSpec, LoadSpec, SizeSpec};
use raidlab_types::{OpKind, KIB, MIB};
use std::ffi::CString;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};

const SIZE: u64 = 4 * MIB;

fn over(place: &Place, n: usize, read_fraction: f64) -> LiveConfig {
    LiveConfig {
        targets: place.files(n, SIZE),
        workload: workload(read_fraction, SizeSpec::Fixed { bytes: 4 * KIB }),
        ..config(Tree::raid0(n, 64 * KIB))
    }
}

#[test]
fn a_file_is_made_filled_and_used_again() {
    let place = Place::new();
    let cell = over(&place, 2, 1.0);
    let result = run(&cell);
    assert_eq!(result.recorder.read().requests, 2000);
    let facts = result.targets[1].as_ref().expect("facts of a file");
    assert!(facts.made_by_raidlab && facts.allocated_bytes >= Some(SIZE), "{facts:?}");
    assert!(facts.filesystem.is_some() && facts.st_dev.is_some(), "{facts:?}");
    let path = place.path("member1");
    let first = std::fs::read(&path).expect("the member");
    assert!(first[..SIZE as usize].chunks(4096).all(|page| page.iter().any(|&byte| byte != 0)), "a page of zeroes");
    let made = std::fs::metadata(&path).expect("the member");
    let again = LiveConfig { seed: 2, ..cell };
    run(&again);
    assert_eq!(std::fs::read(&path).expect("the member"), first, "reading changes nothing and fills nothing anew");
    assert_eq!(std::fs::metadata(&path).expect("the member").ino(), made.ino());
}

#[test]
fn a_larger_size_makes_the_file_anew_and_a_smaller_one_uses_it() {
    let place = Place::new();
    run(&over(&place, 1, 1.0));
    let sized = |size_bytes| LiveConfig {
        targets: vec![TargetSpec::File { path: place.path("member0"), size_bytes, existing: false }],
        ..over(&place, 1, 1.0)
    };
    let result = run(&sized(SIZE / 2));
    assert_eq!(result.targets[0].as_ref().map(|t| t.size_bytes), Some(SIZE / 2));
    run(&sized(2 * SIZE));
    assert_eq!(std::fs::metadata(place.path("member0")).expect("the member").len(), 2 * SIZE + 4096);
}

#[test]
fn somebody_elses_file_is_read_but_not_written() {
    let place = Place::new();
    let letters: Vec<u8> = (0..SIZE).map(|i| (i % 251) as u8).collect();
    std::fs::write(place.path("member0"), &letters).expect("a file of somebody else's");
    let refused = error(&over(&place, 1, 0.9));
    assert!(matches!(&refused, LiveError::Refused { key, .. } if key == "members[0].path"), "{refused}");
    assert!(refused.message().contains("was not made by raidlab"), "{refused}");
    let result = run(&over(&place, 1, 1.0));
    assert_eq!(result.recorder.read().requests, 2000);
    assert!(!result.targets[0].as_ref().expect("facts").made_by_raidlab);
    assert_eq!(std::fs::read(place.path("member0")).expect("the file"), letters);
    let verified = error(&LiveConfig { content: ContentMode::Verify, ..over(&place, 1, 1.0) });
    assert!(matches!(verified, LiveError::Refused { .. }), "verifying writes: {verified}");
}

#[test]
fn what_is_no_file_or_no_place_is_bad_input() {
    let place = Place::new();
    let at = |path| LiveConfig {
        targets: vec![TargetSpec::File { path, size_bytes: SIZE, existing: false }],
        ..over(&place, 1, 1.0)
    };
    for (path, part) in [("", "is a directory"), ("no/such/place", "No such file or directory")] {
        let bad = error(&at(place.path(path)));
        assert!(matches!(&bad, LiveError::BadInput { key, .. } if key == "members[0].path"), "{bad}");
        assert!(bad.message().contains(part), "{bad}");
    }
    let device = error(&at("/dev/null".into()));
    assert!(device.message().contains("not a regular file"), "{device}");
    let twice = LiveConfig { targets: vec![over(&place, 1, 1.0).targets[0].clone(); 2], ..over(&place, 2, 1.0) };
    assert!(error(&twice).message().contains("every one must be named once"));
}

#[test]
fn bad_numbers_name_their_key() {
    let place = Place::new();
    let cell = over(&place, 2, 1.0);
    let cases: Vec<(&str, LiveConfig)> = vec![
        ("members", LiveConfig { targets: place.files(3, SIZE), ..cell.clone() }),
        ("missing[0]", LiveConfig { missing: vec![7], ..cell.clone() }),
        ("missing", LiveConfig { missing: vec![1], ..cell.clone() }),
        ("sector_bytes", LiveConfig { sector_bytes: Some(3000), ..cell.clone() }),
        ("members", LiveConfig { targets: vec![TargetSpec::Memory { size_bytes: 1 << 50 }], ..cell.clone() }),
        ("members[0].size_bytes", LiveConfig { targets: place.files(2, 100), ..cell.clone() }),
        ("tree", LiveConfig { tree: Tree::raid0(2, 1000), ..cell.clone() }),
        ("workload.size.bytes", LiveConfig { workload: workload(1.0, SizeSpec::Fixed { bytes: 100 }), ..cell.clone() }),
        ("load.depth", LiveConfig { load: LoadSpec::Closed { depth: 0 }, ..cell.clone() }),
    ];
    for (key, cell) in cases {
        let bad = error(&cell);
        assert_eq!(bad.key(), key, "{bad}");
    }
}

#[test]
fn stopping_keeps_what_was_measured() {
    let place = Place::new();
    let mut told = 0;
    let cell = LiveConfig { limits: until(seconds(600.0)), ..over(&place, 2, 0.5) };
    let result = raidlab_live::run(&cell, None, &mut |progress| {
        // On a disk that is kept busy by others the first may take long.
        told += (progress.stage == RunStage::Running && progress.requests > 0) as u32;
        assert!((0.0..=1.0).contains(&progress.fraction));
        if told >= 3 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    let result = result.expect("it ran");
    assert!(result.interrupted && result.stopped_by.is_none());
    assert_eq!(told, 3);
    assert!(result.recorder.all().requests > 0);
    assert!(result.elapsed.as_s_f64() > 0.3 && result.elapsed.as_s_f64() < 60.0, "{:?}", result.elapsed);
}

#[test]
fn a_file_cut_short_ends_the_run_with_one_sentence() {
    let place = Place::new();
    let path = place.path("member1");
    let result = raidlab_live::run(
        &LiveConfig { limits: until(seconds(600.0)), ..over(&place, 2, 1.0) },
        None,
        &mut |progress| {
            // On a disk that is kept busy by others the first may take long.
            if progress.stage == RunStage::Running && progress.requests > 0 {
                let file = std::fs::OpenOptions::new().write(true).open(&path).expect("the member");
                file.set_len(0).expect("to cut it");
            }
            ControlFlow::Continue(())
        },
    );
    let result = result.expect("it ran");
    let error = result.stopped_by.expect("it cannot go on");
    assert!(matches!(&error, LiveError::Io { key, .. } if key == "members[1]"), "{error}");
    assert!(error.message().contains("truncated"), "{error}");
    assert!(result.recorder.all().requests > 0, "what was measured is kept");
}

#[test]
fn the_open_loop_keeps_its_rate_and_members_add_up() {
    let place = Place::new();
    let load = LoadSpec::Open { arrival: ArrivalSpec::Poisson { rate_per_s: 2000.0 }, max_in_flight: None };
    let tree = Tree::parity(1, 3, 64 * KIB, Rotation::LeftSymmetric);
    let cell = LiveConfig { load, limits: requests(2000), tree, ..over(&place, 3, 0.7) };
    let result = run(&cell);
    let all = result.recorder.all();
    // None is admitted before its time: so many take a second, and 5 standard deviations of their gaps are 0.11 of it.
    let opened = result.recorder.opened().expect("it opened at the first poll");
    let closed_s = (opened + result.recorder.elapsed()).as_ns() as f64 / 1e9;
    assert!(all.requests == 2000 && closed_s > 0.88, "{} requests in {closed_s} s at 2000/s", all.requests);
    // A machine that is busy with other things falls behind, and perhaps only sees at last what has arrived in the last
    // half second; what it has in flight has arrived too.
    let open = result.backlog.max_in_flight;
    let arrived = all.requests + open;
    assert!(arrived as f64 > 1600.0 * (closed_s - 0.5), "{arrived} arrived in {closed_s} s at 2000/s");
    let (reads, writes) = result.members.iter().fold((0, 0), |(r, w), m| (r + m.reads, w + m.writes));
    // Of three members a small write reads the other data chunk, and writes data and parity; those in flight when the
    // window closes may have done all but the last of it.
    let (read, written) = (result.recorder.read().requests, result.recorder.write().requests);
    assert!(writes.abs_diff(2 * written) <= 64 + 2 * open, "{writes} member writes for {written} writes");
    assert!(reads.abs_diff(read + written) <= 64 + open, "{reads} member reads for {read} reads and {written} writes");
    assert_eq!(result.members[0].read_bytes, result.members[0].reads * 4 * KIB);
    assert!(result.members.iter().all(|m| m.wait_ns > 0));
}

#[test]
fn operations_of_the_first_requests_are_listed() {
    let place = Place::new();
    let tree = Tree::parity(1, 5, 64 * KIB, Rotation::LeftSymmetric);
    let cell = |seed| LiveConfig { seed, tree: tree.clone(), trace_requests: 100, ..over(&place, 5, 0.0) };
    let traced = |cell: &LiveConfig| {
        let mut trace = run(cell).trace;
        trace.sort_by_key(|t| (t.request, t.kind == OpKind::Write, t.leaf));
        trace
    };
    let (first, again, other) = (traced(&cell(1)), traced(&cell(1)), traced(&cell(2)));
    assert_eq!(first, again, "the same requests make the same operations, whatever completes when");
    assert_ne!(first, other);
    assert_eq!(first.len(), 400, "old data and parity in, new data and parity out");
    assert_eq!(first.iter().map(|t| t.request).max(), Some(99));
}

#[test]
fn flawed_content_is_found() {
    let place = Place::new();
    let limits = requests(20_000);
    let cell = LiveConfig { content: ContentMode::Verify, limits, ..over(&place, 2, 0.5) };
    let path = place.path("member1");
    let result = raidlab_live::run(&cell, None, &mut |progress| {
        if progress.stage == RunStage::Running {
            let file = std::fs::OpenOptions::new().write(true).open(&path).expect("the member");
            std::os::unix::fs::FileExt::write_all_at(&file, &vec![7; SIZE as usize], 0).expect("to spoil it");
        }
        ControlFlow::Continue(())
    });
    let report = result.expect("it ran").verify.expect("a report");
    assert!(report.mismatch_count > 0);
    assert!(report.mismatches[0].message.contains("nothing that this run has written"), "{report:?}");
}

#[test]
fn more_operations_than_the_ring_holds_are_all_served() {
    let place = Place::new();
    let cell = LiveConfig {
        load: LoadSpec::Closed { depth: 6000 },
        content: ContentMode::Verify,
        limits: requests(20_000),
        ..over(&place, 2, 0.5)
    };
    let result = run(&cell);
    common::assert_verified("depth 6000", &result);
    assert_eq!(result.recorder.all().requests, 20_000);
}

#[test]
fn an_array_accounts_for_its_time_and_for_what_moved_below_its_members() {
    let place = Place::new();
    let config = LiveConfig {
        targets: place.files(3, 8 * MIB),
        workload: workload(0.0, SizeSpec::Fixed { bytes: 64 * KIB }),
        limits: requests(500),
        ..config(Tree::parse("raid5(3, chunk=64KiB)").expect("a tree"))
    };
    let result = run(&config);
    let used = result.accounting.total;
    assert_eq!(result.accounting.workers, [used]);
    assert!(used.user_ns + used.system_ns > 0, "{used:?}");
    let Some(device) = result.accounting.devices.first() else {
        assert!(result.targets.iter().flatten().all(|t| t.device.is_none()), "a device without counters");
        return;
    };
    // All three lie on one device; redundancy is asked of it as well as data.
    assert_eq!(device.targets, [0, 1, 2]);
    assert_eq!(device.asked_write_bytes, result.members.iter().map(|m| m.write_bytes).sum::<u64>());
    assert!(device.asked_write_bytes > result.recorder.all().bytes);
    if result.targets.iter().flatten().all(|t| t.io == "direct") {
        assert!(device.write_bytes * 10 > device.asked_write_bytes * 9, "{device:?}");
    }
}

#[test]
fn what_a_link_or_a_second_name_leads_to_is_not_written() {
    let (place, theirs) = (Place::new(), Place::new());
    run(&over(&theirs, 1, 0.0));
    let victim = std::fs::read(theirs.path("member0")).expect("a member of another run");
    std::os::unix::fs::symlink(theirs.path("member0"), place.path("member0")).expect("a link");
    let refused = error(&over(&place, 1, 0.5));
    assert!(matches!(&refused, LiveError::Refused { key, .. } if key == "members[0].path"), "{refused}");
    assert!(refused.message().contains("is a symbolic link"), "{refused}");
    run(&over(&place, 1, 1.0));
    std::fs::remove_file(place.path("member0")).expect("the link");
    std::fs::hard_link(theirs.path("member0"), place.path("member0")).expect("a second name");
    let refused = error(&over(&place, 1, 0.5));
    assert!(refused.message().contains("has a second name"), "{refused}");
    std::fs::remove_file(place.path("member0")).expect("the second name");
    std::os::unix::fs::symlink(theirs.path("new"), place.path("member0")).expect("a link that leads nowhere");
    error(&over(&place, 1, 0.5));
    assert!(!theirs.path("new").exists());
    assert_eq!(std::fs::read(theirs.path("member0")).expect("the member"), victim);
}

#[test]
fn a_member_swapped_for_a_link_while_it_is_opened_leads_nowhere() {
    let (place, theirs) = (Place::new(), Place::new());
    let small =
        |place: &Place| LiveConfig { targets: place.files(1, 64 * KIB), limits: requests(1), ..over(place, 1, 0.0) };
    run(&small(&theirs));
    run(&small(&place));
    let victim = std::fs::read(theirs.path("member0")).expect("a member of another run");
    std::os::unix::fs::symlink(theirs.path("member0"), place.path("link")).expect("a link");
    let ended = AtomicBool::new(false);
    let [one, other] =
        ["member0", "link"].map(|name| CString::new(place.path(name).into_os_string().into_encoded_bytes()).unwrap());
    let tried = std::thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            let mut swaps = 0;
            while !ended.load(Ordering::Relaxed) {
                let (at, how) = (libc::AT_FDCWD, libc::RENAME_EXCHANGE);
                // SAFETY: both names end with a zero.
                swaps += (unsafe { libc::renameat2(at, one.as_ptr(), at, other.as_ptr(), how) } == 0) as u32;
            }
            swaps
        });
        let cell = small(&place);
        let written = (0..300).filter(|_| try_run(&cell).is_ok()).count();
        ended.store(true, Ordering::Relaxed);
        (written, swapping.join().expect("no panic"))
    });
    assert!(tried.1 > 0, "{tried:?}");
    assert_eq!(std::fs::read(theirs.path("member0")).expect("the member"), victim);
}
