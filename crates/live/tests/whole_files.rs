//! Whole files: made, known again, removed, read; the page cache really out; what stops a run.

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

mod common;

use common::whole::{self, config, error, run};
use common::Place;
use raidlab_live::files::{
    self, BlockBytes, FileSource, FilesConfig, FilesMeasure, FilesResult, FilesWarmup, IoMode, Numbers, Order,
    SyncRule, CACHE_UNKNOWN,
};
use raidlab_live::{LiveError, RunStage, Verdict, Verify};
use raidlab_load::SizeSpec;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

fn made(directories: Vec<PathBuf>, count: u64) -> FileSource {
    whole::made(directories, SizeSpec::Lognormal { mean_bytes: 60_000.0, sigma: 1.0 }, count)
}

fn keeping(mut spec: FileSource) -> FileSource {
    if let FileSource::Made { keep, .. } = &mut spec {
        *keep = true;
    }
    spec
}

fn directory(place: &Place, name: &str) -> PathBuf {
    let path = place.path(name);
    std::fs::create_dir_all(&path).expect("a directory");
    path
}

/// The files raidlab has made in a directory, with their content.
fn content(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory.join("raidlab-files")).expect("the set");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"));
    let files = names.filter(|name| name.starts_with('f'));
    files.map(|name| (name.clone(), std::fs::read(directory.join("raidlab-files").join(name)).expect("it"))).collect()
}

#[test]
fn every_file_is_written_and_read_once_and_gone_afterwards() {
    let place = Place::new();
    let here = directory(&place, "here");
    let result = run(&config(made(vec![here.clone()], 40)));
    let fill = result.fill.as_ref().expect("they were written");
    let sizes = &result.size_bytes;
    assert_eq!((sizes.len(), fill.records.len(), result.read.records.len()), (40, 40, 40));
    let mut read: Vec<(u32, u64)> = result.read.records.iter().map(|r| (r.file, r.size_bytes)).collect();
    read.sort_unstable();
    let planned: Vec<(u32, u64)> = (0..40).zip(sizes.iter().copied()).collect();
    assert_eq!(read, planned);
    assert_eq!(fill.records.iter().map(|r| (r.file, r.size_bytes)).collect::<Vec<_>>(), planned);
    assert_eq!(result.read.bytes(), sizes.iter().sum::<u64>());
    for r in &result.read.records {
        assert!(0 < r.open_ns && r.open_ns < r.first_byte_ns && r.first_byte_ns <= r.total_ns, "{r:?}");
    }
    for r in &fill.records {
        assert!(r.create_ns + r.write_ns + r.sync_ns <= r.total_ns && r.write_ns > 0, "{r:?}");
    }
    assert_eq!(result.read.total.count(), 40);
    assert!(result.read.elapsed_ns >= result.read.records.iter().map(|r| r.total_ns).sum());
    assert!(std::fs::read_dir(here).expect("the directory").next().is_none(), "nothing is left");
}

#[test]
fn sizes_and_content_are_the_seeds_and_nothing_repeats() {
    let place = Place::new();
    let kept = |name: &str, seed: u64, io| {
        let here = directory(&place, name);
        let spec = keeping(made(vec![here.clone()], 30));
        run(&FilesConfig { seed, readers: 0, io, ..config(spec) });
        content(&here)
    };
    let first = kept("first", 1, IoMode::Buffered);
    assert_eq!(first, kept("again", 1, IoMode::Auto), "whichever way it is written");
    let other = kept("other", 2, IoMode::Buffered);
    assert_ne!(first.values().map(Vec::len).collect::<Vec<_>>(), other.values().map(Vec::len).collect::<Vec<_>>());
    let mut sectors: Vec<&[u8]> = first.values().flat_map(|file| file.chunks(512)).filter(|s| s.len() == 512).collect();
    let n = sectors.len();
    sectors.sort_unstable();
    sectors.dedup();
    assert_eq!(sectors.len(), n, "no sector occurs twice");
}

#[test]
fn a_set_that_is_kept_is_used_again_and_a_different_one_replaces_it() {
    let place = Place::new();
    let here = directory(&place, "here");
    let cell = config(keeping(made(vec![here.clone()], 20)));
    assert!(run(&cell).fill.is_some());
    let first = content(&here);
    assert!(run(&cell).fill.is_none(), "used as it is");
    assert_eq!(content(&here), first);
    // One is missing, one has been cut: these two are written again.
    std::fs::remove_file(here.join("raidlab-files/f00000003")).expect("to remove one");
    let cut = std::fs::File::options().write(true).open(here.join("raidlab-files/f00000007")).expect("to open one");
    cut.set_len(5).expect("to cut it");
    let mended = run(&cell).fill.expect("two were written");
    assert_eq!(mended.records.iter().map(|r| r.file).collect::<Vec<_>>(), [3, 7]);
    assert_eq!(content(&here), first);
    let fewer = run(&config(keeping(made(vec![here.clone()], 5))));
    assert_eq!(fewer.fill.map(|fill| fill.records.len()), Some(5), "another set: written anew");
    assert_eq!(content(&here).len(), 5);
    run(&config(made(vec![here.clone()], 5)));
    assert!(!here.join("raidlab-files").exists(), "no longer kept");
}

#[test]
fn a_file_that_holds_something_else_is_named() {
    let place = Place::new();
    let here = directory(&place, "here");
    let cell = FilesConfig { verify: Verify::Full, ..config(keeping(made(vec![here.clone()], 40))) };
    let verdict = |result: &FilesResult| result.content.as_ref().map(|check| check.verdict);
    assert_eq!(verdict(&run(&cell)), Some(Verdict::Pass));
    let (name, mut bytes) = content(&here).pop_last().expect("a file");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(here.join("raidlab-files").join(&name), bytes).expect("it is written");
    let wrong = run(&cell).content.expect("files were read");
    assert_eq!(wrong.verdict, Verdict::Invalid);
    assert!(wrong.evidence.contains(&name) && wrong.evidence.contains("1 were wrong"), "{}", wrong.evidence);
    assert_eq!(verdict(&run(&FilesConfig { verify: Verify::Off, ..cell })), Some(Verdict::Unknown));
}

#[test]
fn what_is_not_raidlabs_is_neither_overwritten_nor_removed() {
    let place = Place::new();
    let here = directory(&place, "here");
    let theirs = directory(&place, "here/raidlab-files");
    std::fs::write(theirs.join("f00000001"), "precious").expect("a file of somebody else's");
    let refused = error(&config(made(vec![here.clone()], 5)));
    assert!(matches!(&refused, LiveError::Refused { key, .. } if key == "files.directories[0]"), "{refused}");
    assert!(refused.message().contains("was not made by raidlab"), "{refused}");
    assert_eq!(std::fs::read_to_string(theirs.join("f00000001")).expect("the file"), "precious");
    // Within a set, only what has raidlab's names goes, and the set stays for the sake of what is left.
    let other = directory(&place, "other");
    run(&config(keeping(made(vec![other.clone()], 5))));
    std::fs::write(other.join("raidlab-files/notes"), "precious").expect("a note");
    run(&config(made(vec![other.clone()], 3)));
    assert_eq!(std::fs::read_to_string(other.join("raidlab-files/notes")).expect("the note"), "precious");
    assert!(content(&other).is_empty());
    // A link in the place of the subdirectory leads nowhere.
    let linked = directory(&place, "linked");
    std::os::unix::fs::symlink(&other, linked.join("raidlab-files")).expect("a link");
    assert!(matches!(error(&config(made(vec![linked], 5))), LiveError::Refused { .. }));
    // Nor does one in the place of its marker, nor a second name of somebody else's empty file.
    for (name, link) in [("marker", true), ("second", false)] {
        let prepared = directory(&place, name);
        let inner = directory(&place, &format!("{name}/raidlab-files"));
        std::fs::write(prepared.join("empty"), "").expect("an empty file");
        let (empty, marker) = (prepared.join("empty"), inner.join("made-by-raidlab"));
        if link { std::os::unix::fs::symlink(empty, marker) } else { std::fs::hard_link(empty, marker) }
            .expect("a link");
        assert!(matches!(error(&config(made(vec![prepared.clone()], 5))), LiveError::Refused { .. }));
        assert_eq!(std::fs::metadata(prepared.join("empty")).expect("the file").len(), 0);
    }
}

#[test]
fn two_runs_never_share_a_set() {
    let place = Place::new();
    let here = directory(&place, "here");
    let cell = config(made(vec![here], 50));
    let mut second = None;
    let slow = FilesConfig {
        order: Order::Random,
        measure: FilesMeasure { files: None, duration_s: Some(600.0) },
        ..cell.clone()
    };
    files::run(&slow, &mut |progress| {
        if progress.stage != RunStage::Running {
            return ControlFlow::Continue(());
        }
        second.get_or_insert_with(|| error(&cell));
        ControlFlow::Break(())
    })
    .expect("the first runs");
    assert!(second.expect("it was tried").message().contains("in use by another run"));
}

#[test]
fn given_files_are_read_and_left_alone() {
    let place = Place::new();
    let paths: Vec<PathBuf> = (0..6).map(|i| place.path(&format!("their{i}"))).collect();
    for (i, path) in paths.iter().enumerate() {
        std::fs::write(path, vec![i as u8; i * 5000]).expect("a file");
    }
    let cell = config(FileSource::List { paths: paths.clone() });
    let result = run(&FilesConfig { block_bytes: BlockBytes::Whole, ..cell.clone() });
    assert_eq!(result.size_bytes, [0, 5000, 10_000, 15_000, 20_000, 25_000]);
    assert_eq!((result.read.records.len(), result.read.bytes()), (6, 75_000));
    assert!(result.fill.is_none() && !result.directories[0].made_by_raidlab && result.directories.len() == 1);
    assert_eq!(std::fs::read(&paths[3]).expect("their file"), vec![3; 15_000]);
    for (path, part) in [(place.path("none"), "No such file"), (place.path(""), "not a regular file")] {
        let bad = error(&config(FileSource::List { paths: vec![paths[0].clone(), path] }));
        assert!(matches!(&bad, LiveError::BadInput { key, .. } if key == "files.paths[1]"), "{bad}");
        assert!(bad.message().contains(part), "{bad}");
    }
}

/// Whether this place gives pages up at all: a file system in memory does not.
fn gives_up_pages(place: &Place) -> bool {
    run(&config(made(vec![directory(place, "probe")], 5))).read.cached().0 == 0
}

#[test]
fn nothing_of_a_file_is_cached_before_it_is_read() {
    let place = Place::new();
    if !gives_up_pages(&place) {
        println!("skipped: {} lies in memory", place.path("").display());
        return;
    }
    let here = directory(&place, "here");
    // Read again and again: every reading leaves the file in the cache, unless it is put out.
    let cell = FilesConfig {
        order: Order::Random,
        measure: FilesMeasure { files: Some(300), duration_s: None },
        warmup: FilesWarmup { files: 17 },
        ..config(keeping(made(vec![here.clone()], 10)))
    };
    let result = run(&cell);
    assert_eq!((result.read.records.len(), result.read.warmup_files), (300, 17));
    assert_eq!((result.read.cached(), result.read.unknown()), ((0, 0), 0), "on a quiet file system all of it goes");
    // What somebody else holds in the cache is told.
    let path = here.join("raidlab-files/f00000004");
    let size = result.size_bytes[4];
    let lock = Locked::over(&path, size as usize);
    let held = run(&cell);
    let of_file = |r: &&raidlab_live::files::ReadRecord| r.file == 4;
    assert!(held.read.records.iter().filter(of_file).all(|r| r.cached_bytes == size), "the whole file was held");
    assert!(held.read.records.iter().filter(of_file).count() > 0);
    assert!(held.read.records.iter().filter(|r| !of_file(r)).all(|r| r.cached_bytes == 0));
    assert_eq!(held.read.cached().0, held.read.records.iter().filter(of_file).count() as u64);
    drop(lock);
    assert_eq!(run(&cell).read.cached(), (0, 0), "let go again");
}

/// Pages of a file that stay in the cache, whatever is advised.
struct Locked {
    start: *mut libc::c_void,
    len: usize,
}

impl Locked {
    fn over(path: &Path, len: usize) -> Locked {
        let file = std::fs::File::open(path).expect("the file");
        // SAFETY: a new mapping touches no memory that exists; locking its pages moves nothing.
        let (start, locked) = unsafe {
            let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
            let start = libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, fd, 0);
            (start, libc::mlock(start, len))
        };
        assert_eq!(locked, 0, "a few pages may be mapped and locked");
        Locked { start, len }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: mapped by `over`, unmapped once.
        unsafe { libc::munmap(self.start, self.len) };
    }
}

#[test]
fn a_file_system_in_memory_is_said_to_be_cached() {
    let shm = Path::new("/dev/shm");
    let here = shm.join(format!("raidlab-whole-files-{}", std::process::id()));
    if std::fs::create_dir(&here).is_err() {
        println!("skipped: no /dev/shm to write to");
        return;
    }
    for io in [IoMode::Buffered, IoMode::Auto] {
        let result = run(&FilesConfig { io, ..config(made(vec![here.clone()], 10)) });
        assert_eq!(result.directories[0].filesystem.as_ref().map(|f| f.kind.as_str()), Some("tmpfs"));
        assert_eq!(result.read.cached(), (10, result.read.bytes()), "{io:?}: every byte lies in memory");
    }
    std::fs::remove_dir(&here).expect("nothing is left in it");
}

#[test]
fn many_readers_have_lists_of_their_own() {
    let place = Place::new();
    let directories = vec![directory(&place, "a"), directory(&place, "b"), directory(&place, "c")];
    let sizes = SizeSpec::Table { bytes: vec![10_000, 20_000, 30_000, 40_000], weights: vec![1.0; 4] };
    let files = FileSource::Made {
        directories,
        sizes,
        numbers: Numbers::Even,
        count: Some(96),
        total_bytes: None,
        sync: SyncRule::End,
        keep: false,
    };
    let result = run(&FilesConfig { readers: 4, lists: 8, ..config(files) });
    assert_eq!(result.read.records.len(), 48, "four lists of eight");
    let mut seen: Vec<u32> = result.read.records.iter().map(|r| r.file).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 48, "no file twice");
    for reader in 0..4 {
        let of_reader: Vec<u64> =
            result.read.records.iter().filter(|r| r.reader == reader).map(|r| r.size_bytes).collect();
        assert_eq!((of_reader.len(), of_reader.iter().sum::<u64>()), (12, 300_000), "three of each size");
    }
    for at in 0..3 {
        assert_eq!(result.directory.iter().filter(|&&d| d == at).count(), 32);
    }
    let fill = result.fill.expect("they were written");
    assert!(fill.sync_ns > 0 && fill.records.iter().all(|r| r.sync_ns < fill.sync_ns + fill.elapsed_ns));
}

#[test]
fn limits_hold_over_all_readers_together() {
    let place = Place::new();
    let cell = FilesConfig {
        readers: 3,
        order: Order::Shuffled,
        warmup: FilesWarmup { files: 10 },
        measure: FilesMeasure { files: Some(101), duration_s: None },
        ..config(made(vec![directory(&place, "here")], 12))
    };
    let result = run(&cell);
    assert_eq!((result.read.records.len(), result.read.warmup_files), (101, 10));
    let timed = FilesConfig { measure: FilesMeasure { files: None, duration_s: Some(0.2) }, ..cell };
    let result = run(&timed);
    let first = result.read.records.first().expect("some were read").start_ns;
    // A reader that has to wait for a processor between leave and beginning begins one file late, and no more.
    for reader in 0..3 {
        let late = result.read.records.iter().filter(|r| r.reader == reader && r.start_ns - first > 200_000_000);
        assert!(late.count() <= 1, "reader {reader} went on after the end");
    }
}

#[test]
fn a_file_that_vanishes_ends_the_run_with_one_sentence() {
    let place = Place::new();
    let here = directory(&place, "here");
    let cell = FilesConfig {
        readers: 2,
        order: Order::Shuffled,
        measure: FilesMeasure { files: None, duration_s: Some(600.0) },
        ..config(made(vec![here.clone()], 20))
    };
    for (what, sentence) in [("remove", "No such file or directory"), ("cut", "it ends after")] {
        let result = files::run(&cell, &mut |progress| {
            let path = here.join("raidlab-files/f00000005");
            // Where two readers have begun more than two files, one has been read.
            let has_read = progress.stage == RunStage::Running && progress.requests > 2;
            if has_read && what == "remove" {
                let _ = std::fs::remove_file(&path);
            } else if has_read {
                let _ = std::fs::File::options().write(true).open(&path).and_then(|file| file.set_len(10));
            }
            ControlFlow::Continue(())
        });
        let result = result.expect("it ran");
        let error = result.stopped_by.expect("it cannot go on");
        assert!(matches!(&error, LiveError::Io { key, .. } if key == "files.directories[0]"), "{error}");
        assert!(error.message().contains(sentence) && error.message().contains("f00000005"), "{error}");
        assert!(!result.read.records.is_empty() && !result.interrupted, "what was measured is kept");
    }
}

#[test]
fn stopping_keeps_what_was_measured() {
    let place = Place::new();
    let here = directory(&place, "here");
    let cell = FilesConfig {
        order: Order::Random,
        measure: FilesMeasure { files: None, duration_s: Some(600.0) },
        ..config(made(vec![here.clone()], 20))
    };
    let result = files::run(&cell, &mut |progress| {
        assert!((0.0..=1.0).contains(&progress.fraction));
        if progress.stage == RunStage::Running && progress.requests > 10 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    let result = result.expect("it ran");
    assert!(result.interrupted && result.stopped_by.is_none() && result.read.records.len() >= 10);
    assert!(!here.join("raidlab-files").exists(), "cleaned up all the same");
    // Once a thousandth is written, which is many files, however long the first took.
    let stopped = files::run(&FilesConfig { files: made(vec![here], 20_000), ..cell }, &mut |progress| {
        if progress.fraction > 0.001 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    let fill = stopped.expect("it ran").fill.expect("it had begun to write");
    assert!(!fill.records.is_empty() && fill.records.len() < 20_000);
}

#[test]
fn bad_numbers_name_their_key() {
    let place = Place::new();
    let here = directory(&place, "here");
    let good = config(made(vec![here.clone()], 5));
    let spec = |change: &dyn Fn(&mut FileSource)| {
        let mut files = good.files.clone();
        change(&mut files);
        FilesConfig { files, ..good.clone() }
    };
    let with = |count, total_bytes| {
        spec(&move |files| {
            if let FileSource::Made { count: c, total_bytes: t, .. } = files {
                (*c, *t) = (count, total_bytes);
            }
        })
    };
    let too_large = spec(&|files| {
        if let FileSource::Made { sizes, count, .. } = files {
            (*sizes, *count) = (SizeSpec::Fixed { bytes: 1 << 40 }, Some(1000));
        }
    });
    let cases = vec![
        ("readers", FilesConfig { readers: 1 << 20, ..good.clone() }),
        ("lists", FilesConfig { lists: 0, ..good.clone() }),
        ("lists", FilesConfig { lists: 2, readers: 3, ..good.clone() }),
        ("block_bytes", FilesConfig { block_bytes: BlockBytes::Bytes(0), ..good.clone() }),
        ("block_bytes", FilesConfig { block_bytes: BlockBytes::Bytes(1000), io: IoMode::Auto, ..good.clone() }),
        ("measure", FilesConfig { order: Order::Random, ..good.clone() }),
        ("measure.files", FilesConfig { measure: FilesMeasure { files: Some(0), duration_s: None }, ..good.clone() }),
        ("files", with(None, None)),
        ("files", with(Some(1), Some(1))),
        ("files.count", with(Some(0), None)),
        ("files.total_bytes", with(None, Some(0))),
        ("files.directories[0]", too_large),
        ("files.directories", config(made(vec![], 5))),
        ("files.directories[0]", config(made(vec![place.path("none")], 5))),
        ("files.directories[1]", config(made(vec![here.clone(), here.join(".")], 5))),
        ("files.paths", config(FileSource::List { paths: vec![] })),
    ];
    for (key, cell) in cases {
        let bad = error(&cell);
        assert_eq!(bad.key(), key, "{bad}");
    }
    assert!(std::fs::read_dir(here).expect("the directory").next().is_none(), "and nothing is left");
    assert_ne!(CACHE_UNKNOWN, 0);
}
