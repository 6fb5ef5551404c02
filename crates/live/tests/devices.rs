//! Block devices: read by default, written only as the safety rules allow. Needs root; skips with a reason elsewhere.

mod common;

use common::loops::{Loop, Zram};
use common::{assert_verified, config, error, requests, run, try_run, workload, Place};
use raidlab_array::Tree;
use raidlab_live::{ContentMode, LiveConfig, LiveError, TargetSpec};
use raidlab_load::SizeSpec;
use raidlab_types::{KIB, MIB};
use std::path::PathBuf;

const SIZE: u64 = 16 * MIB;

fn over(loops: &[&Loop], read_fraction: f64) -> LiveConfig {
    let target = |l: &&Loop| TargetSpec::Block { path: l.device().to_path_buf(), destroy: false };
    let tree = match loops.len() {
        1 => Tree::member(),
        n => Tree::raid0(n, 64 * KIB),
    };
    LiveConfig {
        targets: loops.iter().map(target).collect(),
        workload: workload(read_fraction, SizeSpec::Fixed { bytes: 4 * KIB }),
        limits: requests(500),
        ..config(tree)
    }
}

fn naming(config: LiveConfig, loops: &[&Loop]) -> LiveConfig {
    LiveConfig { destroy: loops.iter().map(|l| l.device().to_path_buf()).collect(), ..config }
}

fn refusal(config: &LiveConfig) -> String {
    match try_run(config) {
        Err(LiveError::Refused { key, message }) => {
            assert_eq!(key, "members[0].path");
            message
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn reading_needs_no_naming_and_changes_nothing() {
    need_loops!();
    let place = Place::new();
    let disk = Loop::new(&place, "disk", SIZE, 512);
    disk.make_ext4();
    let before = disk.head();
    let result = run(&over(&[&disk], 1.0));
    assert_eq!(result.recorder.all().requests, 500);
    assert_eq!(disk.head(), before);
    let facts = result.targets[0].as_ref().expect("facts of the device");
    assert_eq!((facts.kind, facts.size_bytes, facts.sector_bytes), ("block", SIZE, 512));
    let device = facts.device.as_ref().expect("the device itself");
    assert!(device.backing.as_ref().is_some_and(|file| file.ends_with("/disk")), "{device:?}");
}

#[test]
fn mounted_is_never_written() {
    need_loops!();
    let place = Place::new();
    let mut disk = Loop::new(&place, "disk", SIZE, 512);
    disk.make_ext4();
    disk.mount(place.path("mounted"));
    for config in [over(&[&disk], 0.5), naming(over(&[&disk], 0.5), &[&disk])] {
        let message = refusal(&config);
        assert!(message.contains("is mounted on") && message.contains("never written"), "{message}");
    }
    assert_eq!(run(&over(&[&disk], 1.0)).recorder.all().requests, 500, "reading is still allowed");
}

#[test]
fn a_file_system_is_overwritten_only_when_named() {
    need_loops!();
    let place = Place::new();
    let disk = Loop::new(&place, "disk", SIZE, 512);
    disk.make_ext4();
    let before = disk.head();
    let message = refusal(&over(&[&disk], 0.5));
    assert!(message.contains("holds ext4 \"precious\"") && message.contains("--destroy"), "{message}");
    let other = LiveConfig { destroy: vec![PathBuf::from("/dev/null")], ..over(&[&disk], 0.5) };
    refusal(&other);
    assert_eq!(disk.head(), before);
    let result = run(&naming(over(&[&disk], 0.5), &[&disk]));
    let facts = result.targets[0].as_ref().expect("facts of the device");
    assert_eq!(facts.overwritten_signature.as_deref(), Some("holds ext4 \"precious\""));
    assert_ne!(disk.head(), before);
}

#[test]
fn blank_is_refused_too_unless_named() {
    need_loops!();
    let place = Place::new();
    let disk = Loop::new(&place, "disk", SIZE, 512);
    let message = refusal(&over(&[&disk], 0.5));
    assert!(message.contains("no signature was found") && message.contains("--destroy"), "{message}");
    assert!(disk.head().iter().all(|&byte| byte == 0));
    let by_spec = LiveConfig {
        targets: vec![TargetSpec::Block { path: disk.device().to_path_buf(), destroy: true }],
        ..over(&[&disk], 0.5)
    };
    assert_eq!(run(&by_spec).recorder.all().requests, 500);
    assert_eq!(run(&naming(over(&[&disk], 0.0), &[&disk])).recorder.write().requests, 500, "again, at once");
}

#[test]
fn a_disk_is_not_written_while_a_partition_is_mounted_and_the_other_partition_is() {
    need_loops!();
    let place = Place::new();
    let mut disk = Loop::new(&place, "disk", 2 * SIZE, 512);
    let Some([first, second]) = disk.partition() else {
        println!("skipped: addpart cannot make partitions here");
        return;
    };
    disk.mount_partition(&first, place.path("mounted"));
    for whole in [disk.device().to_path_buf(), first] {
        let target = TargetSpec::Block { path: whole, destroy: true };
        let message = refusal(&LiveConfig { targets: vec![target], ..over(&[&disk], 0.5) });
        assert!(message.contains("is mounted on") && message.contains("never written"), "{message}");
    }
    let other = |destroy| LiveConfig {
        targets: vec![TargetSpec::Block { path: second.clone(), destroy }],
        ..over(&[&disk], 0.5)
    };
    assert!(refusal(&other(false)).contains("--destroy"));
    let result = run(&other(true));
    let device = result.targets[0].as_ref().and_then(|t| t.device.clone()).expect("facts of the partition");
    assert_ne!(device.name, device.disk);
}

#[test]
fn swap_is_never_written() {
    need_loops!();
    let place = Place::new();
    let mut disk = Loop::new(&place, "disk", SIZE, 512);
    if !disk.swap_on() {
        println!("skipped: this kernel takes no swap on loop devices");
        return;
    }
    let message = refusal(&naming(over(&[&disk], 0.5), &[&disk]));
    assert!(message.contains("in use as swap") && message.contains("never written"), "{message}");
}

#[test]
fn what_somebody_has_claimed_is_never_written() {
    need_loops!();
    let place = Place::new();
    let disk = Loop::new(&place, "disk", SIZE, 512);
    let mut options = std::fs::OpenOptions::new();
    let claim = std::os::unix::fs::OpenOptionsExt::custom_flags(options.read(true), libc::O_EXCL);
    let claimed = claim.open(disk.device()).expect("nobody else has it");
    let message = refusal(&naming(over(&[&disk], 0.5), &[&disk]));
    assert!(message.contains("held by another driver") && message.contains("never written"), "{message}");
    drop(claimed);
    run(&naming(over(&[&disk], 0.5), &[&disk]));
}

#[test]
fn a_device_behind_another_is_never_written() {
    need_loops!();
    let place = Place::new();
    let below = Loop::new(&place, "below", SIZE, 512);
    let above = std::process::Command::new("losetup").args(["-f", "--show"]).arg(below.device()).output();
    let above = String::from_utf8(above.expect("losetup").stdout).expect("a name").trim().to_string();
    let message = refusal(&naming(over(&[&below], 0.5), &[&below]));
    let _ = std::process::Command::new("losetup").args(["-d", &above]).status();
    assert!(message.contains("behind the loop device") && message.contains("never written"), "{message}");
}

#[test]
fn a_full_file_system_gives_one_sentence_and_leaves_no_stump() {
    need_loops!();
    let place = Place::new();
    let mut disk = Loop::new(&place, "disk", SIZE, 512);
    disk.make_ext4();
    disk.mount(place.path("mounted"));
    let path = place.path("mounted").join("member");
    let target = TargetSpec::File { path: path.clone(), size_bytes: 4 * SIZE, existing: false };
    let error = error(&LiveConfig { targets: vec![target], ..over(&[&disk], 1.0) });
    assert!(matches!(&error, LiveError::Io { errno: 28, .. }), "{error:?}");
    assert!(error.message().contains("No space left"), "{error}");
    assert!(!path.exists());
}

#[test]
fn a_file_that_serves_as_a_disk_is_not_written() {
    need_loops!();
    let place = Place::new();
    let target = TargetSpec::File { path: place.path("disk"), size_bytes: 4 * MIB, existing: false };
    let cell = |read| LiveConfig {
        targets: vec![target.clone()],
        workload: workload(read, SizeSpec::Fixed { bytes: 4 * KIB }),
        ..config(Tree::member())
    };
    run(&cell(0.5));
    let _disk = Loop::over(place.path("disk"), 512);
    let message = refusal(&cell(0.5));
    assert!(message.contains("is behind the loop device"), "{message}");
}

#[test]
fn the_largest_logical_block_is_the_sector_and_content_is_right() {
    need_loops!();
    let place = Place::new();
    let disks: Vec<Loop> = [512, 4096, 512, 512, 512]
        .iter()
        .enumerate()
        .map(|(i, &block)| Loop::new(&place, &format!("disk{i}"), SIZE, block))
        .collect();
    let disks: Vec<&Loop> = disks.iter().collect();
    let raid5 = Tree::parse("raid5:5:16KiB").expect("a tree");
    let cell = LiveConfig {
        tree: raid5,
        content: ContentMode::Verify,
        workload: workload(0.4, SizeSpec::Table { bytes: vec![4 * KIB, 20 * KIB], weights: vec![1.0, 1.0] }),
        ..naming(over(&disks, 0.0), &disks)
    };
    let result = run(&cell);
    assert_verified("raid5 over loop devices", &result);
    assert_eq!(result.engine.sector_bytes, 4096);
    let result = run(&LiveConfig { missing: vec![2], ..cell });
    assert_verified("raid5 over loop devices, one missing", &result);
}

#[test]
fn a_disk_that_fails_writes_is_given_up_and_the_array_goes_on() {
    need_loops!();
    let Some(disk) = Zram::new(SIZE, 6 * MIB) else {
        println!("skipped: no zram devices here");
        return;
    };
    let mut targets = vec![TargetSpec::Memory { size_bytes: SIZE }; 4];
    targets.insert(2, TargetSpec::Block { path: disk.device(), destroy: true });
    let cell = LiveConfig {
        targets,
        content: ContentMode::Verify,
        workload: workload(0.4, SizeSpec::Table { bytes: vec![4 * KIB, 20 * KIB], weights: vec![1.0, 1.0] }),
        limits: requests(3000),
        ..config(Tree::parse("raid5:5:16KiB").expect("a tree"))
    };
    let result = run(&cell);
    assert_verified("raid5 with a full disk", &result);
    assert_eq!(result.recorder.all().failed, 0);
    let failed: Vec<_> = result.failed_members.iter().map(|m| (m.leaf, m.reason.as_str())).collect();
    assert_eq!(failed, [(2, "writing: Input/output error")]);
}

#[test]
fn one_device_cannot_be_two_members() {
    need_loops!();
    let place = Place::new();
    let disk = Loop::new(&place, "disk", SIZE, 512);
    let error = error(&over(&[&disk, &disk], 1.0));
    assert!(matches!(&error, LiveError::BadInput { key, .. } if key == "members[1].path"), "{error}");
}
