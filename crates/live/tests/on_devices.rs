//! Whole files and streams on real file systems and block devices: the device's own counters, disks that fill up or
//! break, devices that must not be written.

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

mod common;

use common::loops::{Loop, Zram};
use common::streaming::{self, file, memory, try_run};
use common::whole::{self, made};
use common::Place;
use raidlab_live::files::{self, BlockBytes, FilesConfig, FilesMeasure, IoMode, Order};
use raidlab_live::streams::{EndpointSpec, LiveStreamSpec, StreamsConfig};
use raidlab_live::{ContentMode, LiveError, RunStage};
use raidlab_load::SizeSpec;
use raidlab_types::{KIB, MIB};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

fn over(directories: Vec<PathBuf>, bytes: u64, count: u64) -> FilesConfig {
    let files = made(directories, SizeSpec::Fixed { bytes }, count);
    FilesConfig { block_bytes: BlockBytes::Bytes(64 * KIB), io: IoMode::Auto, ..whole::config(files) }
}

/// Bytes the kernel has read from a device since it was made.
fn bytes_read(device: &Path) -> u64 {
    let name = device.file_name().expect("a device has a name").to_string_lossy().into_owned();
    let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).expect("its counters");
    512 * text.split_whitespace().nth(2).and_then(|sectors| sectors.parse::<u64>().ok()).expect("sectors read")
}

fn mounted(place: &Place, name: &str) -> (Loop, PathBuf) {
    let mut disk = Loop::new(place, &format!("{name}.img"), 96 * MIB, 512);
    disk.make_ext4();
    let at = place.path(name);
    disk.mount(at.clone());
    (disk, at)
}

#[test]
fn every_byte_comes_from_the_device() {
    need_loops!();
    let place = Place::new();
    let ((one, at_one), (other, at_other)) = (mounted(&place, "one"), mounted(&place, "other"));
    for io in [IoMode::Direct, IoMode::Buffered] {
        for drop_caches in [false, true] {
            let cell = FilesConfig { io, drop_caches, ..over(vec![at_one.clone(), at_other.clone()], 150_000, 40) };
            let before = bytes_read(one.device()) + bytes_read(other.device());
            let result = whole::run(&cell);
            let read = bytes_read(one.device()) + bytes_read(other.device()) - before;
            let what = format!("{io:?}, caches dropped: {drop_caches}");
            assert_eq!((result.read.cached(), result.read.unknown()), ((0, 0), 0), "{what}");
            assert_eq!(result.read.bytes(), 6_000_000, "{what}");
            assert!(read >= 6_000_000, "{what}: the devices have read {read} bytes");
            let kinds: Vec<_> =
                result.directories.iter().map(|d| d.filesystem.as_ref().map(|f| f.kind.clone())).collect();
            assert_eq!(kinds, [Some("ext4".to_string()), Some("ext4".to_string())], "{what}");
            let disks: Vec<_> = result.directories.iter().filter_map(|d| d.device.as_ref()).map(|d| &d.disk).collect();
            assert!(disks.len() == 2 && disks[0] != disks[1], "{what}: {disks:?}");
            let wanted = if io == IoMode::Direct { "direct" } else { "buffered" };
            assert!(result.directories.iter().all(|d| d.io == wanted), "{what}");
        }
    }
}

#[test]
fn a_file_read_again_comes_from_the_device_again() {
    need_loops!();
    let place = Place::new();
    let (disk, at) = mounted(&place, "disk");
    let cell = FilesConfig {
        io: IoMode::Buffered,
        order: Order::Shuffled,
        measure: FilesMeasure { files: Some(100), duration_s: None },
        ..over(vec![at], 200_000, 5)
    };
    let before = bytes_read(disk.device());
    let result = whole::run(&cell);
    assert_eq!(result.read.cached(), (0, 0));
    assert!(bytes_read(disk.device()) - before >= 20_000_000, "five files, twenty times over");
}

#[test]
fn a_disk_that_is_too_small_is_refused_and_one_that_fills_up_ends_the_run() {
    need_loops!();
    let place = Place::new();
    let (_disk, at) = mounted(&place, "disk");
    let cell = over(vec![at.clone()], MIB, 200);
    let bad = whole::error(&cell);
    assert_eq!(bad.key(), "files.directories[0]");
    assert!(bad.message().contains("are needed"), "{bad}");
    let many = whole::error(&over(vec![at.clone()], 10, 100_000));
    assert!(many.message().contains("files more, and 100000 are needed"), "more files than inodes");
    // Somebody else takes all the room meanwhile.
    let mut taken = false;
    let result = files::run(&over(vec![at.clone()], 4096, 5000), &mut |progress| {
        // Once the second file is being written, however long the first took.
        if progress.stage == RunStage::Filling && progress.fraction > 1.5 / 5000.0 && !taken {
            taken = true;
            let mut greedy = std::fs::File::create(at.join("greedy")).expect("a file of somebody else's");
            let block = vec![1; MIB as usize];
            while std::io::Write::write_all(&mut greedy, &block).and_then(|()| greedy.sync_data()).is_ok() {}
        }
        ControlFlow::Continue(())
    })
    .expect("it began");
    assert!(taken, "5000 synchronised files take longer than a pulse");
    let error = result.stopped_by.expect("it cannot go on");
    assert!(matches!(&error, LiveError::Io { errno: libc::ENOSPC, .. }), "{error}");
    assert!(error.message().contains("No space left on device"), "{error}");
    let fill = result.fill.expect("what was measured is kept");
    assert!(!fill.records.is_empty() && fill.records.len() < 5000);
    assert!(!at.join("raidlab-files").exists(), "what was written makes room again");
}

fn stream(from: EndpointSpec, to: EndpointSpec) -> LiveStreamSpec {
    LiveStreamSpec { bytes: Some(4 * MIB), ..streaming::stream("one", from, to) }
}

fn block(device: &Path, offset_bytes: u64, destroy: bool) -> EndpointSpec {
    EndpointSpec::Block { path: device.to_path_buf(), offset_bytes, buffered: false, destroy }
}

fn streams_of(streams: Vec<LiveStreamSpec>) -> StreamsConfig {
    StreamsConfig { content: ContentMode::Verify, ..streaming::config(streams) }
}

#[test]
fn a_device_is_streamed_to_only_when_it_is_named() {
    need_loops!();
    let place = Place::new();
    let disk = Loop::new(&place, "disk.img", 16 * MIB, 4096);
    let before = disk.head();
    let refused = try_run(&streams_of(vec![stream(memory(), block(disk.device(), 0, false))]));
    let refused = refused.expect_err("it is not named");
    assert!(matches!(&refused, LiveError::Refused { key, .. } if key == "streams[0].sink.path"), "{refused}");
    // Reading needs no leave, and changes nothing.
    let read = try_run(&streams_of(vec![stream(block(disk.device(), 0, false), EndpointSpec::Null)])).expect("read");
    assert_eq!((read.stopped_by, read.streams[0].bytes), (None, 4 * MIB));
    assert_eq!(disk.head(), before);
    // Two write, one reads a third part, all on the device opened once.
    let cell = streams_of(vec![
        stream(memory(), block(disk.device(), 0, true)),
        stream(block(disk.device(), 8 * MIB, false), block(disk.device(), 4 * MIB, false)),
    ]);
    let result = try_run(&cell).expect("named");
    assert_eq!(result.stopped_by, None);
    for one in &result.streams {
        let verify = one.verify.as_ref().expect("it was compared");
        assert_eq!((verify.blocks_checked, verify.mismatch_count), (64, 0));
    }
    assert_ne!(disk.head(), before);
    let facts = result.endpoints[1].target.as_ref().expect("facts of a device");
    assert_eq!((facts.kind, facts.io, facts.size_bytes), ("block", "direct", 16 * MIB));
    for (spec, key, part) in [
        (stream(block(disk.device(), 512, true), memory()), "streams[0].source.offset_bytes", "multiple of 4096"),
        (stream(block(disk.device(), 14 * MIB, true), memory()), "streams[0].bytes", "which has 16777216"),
        (
            LiveStreamSpec { block_bytes: 512, ..stream(block(disk.device(), 0, true), memory()) },
            "streams[0].block_bytes",
            "4096",
        ),
    ] {
        let bad = try_run(&streams_of(vec![spec])).expect_err("it does not fit");
        assert_eq!(bad.key(), key, "{bad}");
        assert!(bad.message().contains(part), "{bad}");
    }
}

#[test]
fn a_mounted_device_is_never_streamed_to() {
    need_loops!();
    let place = Place::new();
    let (disk, _at) = mounted(&place, "disk");
    let refused = try_run(&streams_of(vec![stream(memory(), block(disk.device(), 0, true))])).expect_err("mounted");
    assert!(matches!(refused, LiveError::Refused { .. }) && refused.message().contains("mounted on"), "{refused}");
}

#[test]
fn small_blocks_are_moved_past_the_cache_where_sectors_are_small() {
    need_loops!();
    let place = Place::new();
    let (_disk, at) = mounted(&place, "disk");
    let path = at.join("sink");
    let small = LiveStreamSpec { block_bytes: 512, bytes: Some(MIB), ..stream(memory(), file(path)) };
    let result = try_run(&streams_of(vec![small])).expect("sectors of 512 bytes");
    assert_eq!((result.stopped_by, result.streams[0].blocks), (None, 2048));
    assert_eq!(result.endpoints[1].target.as_ref().map(|t| t.io), Some("direct"));
    assert_eq!(result.streams[0].verify.as_ref().map(|v| (v.blocks_checked, v.mismatch_count)), Some((2048, 0)));
}

#[test]
fn a_device_that_breaks_ends_the_run_with_one_sentence() {
    need_loops!();
    let Some(zram) = Zram::new(64 * MIB, 8 * MIB) else {
        println!("skipped: no zram here");
        return;
    };
    let device = zram.device();
    let spec = LiveStreamSpec { bytes: Some(64 * MIB), ..stream(memory(), block(&device, 0, true)) };
    let other = LiveStreamSpec {
        bytes: None,
        count: Some(1 << 40),
        ..stream(EndpointSpec::Tape { mb_s: 40.0, buffer_bytes: MIB, start_stop_ms: 0.0 }, EndpointSpec::Null)
    };
    let config = StreamsConfig { content: ContentMode::Random, ..streams_of(vec![spec, other]) };
    let result = try_run(&config).expect("it began");
    let error = result.stopped_by.expect("it cannot go on");
    assert!(matches!(&error, LiveError::Io { key, .. } if key == "streams[0].sink.path"), "{error}");
    assert!(error.message().contains("Input/output error"), "{error}");
    let written = result.streams[0].bytes;
    assert!(written > 0 && written < 64 * MIB, "{written}: what was measured is kept");
}
