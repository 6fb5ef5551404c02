//! Streams: what is read is what arrives; never faster than the pace or the tape; what is refused; what stops a run.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "numbers here are small"
)]

mod common;

use common::streaming::{config, error, file, memory, run, stream};
use common::Place;
use raidlab_live::streams::{self, EndpointSpec, LiveStreamSpec, StreamsConfig, StreamsResult};
use raidlab_live::{ContentMode, LiveError, RunStage};
use raidlab_types::{KIB, MIB};
use std::ops::ControlFlow;

fn tape(mb_s: f64, start_stop_ms: f64) -> EndpointSpec {
    EndpointSpec::Tape { mb_s, buffer_bytes: 256 * KIB, start_stop_ms }
}

fn verified(streams: Vec<LiveStreamSpec>) -> StreamsResult {
    run(&StreamsConfig { content: ContentMode::Verify, ..config(streams) })
}

#[test]
fn every_pair_of_ends_moves_every_byte_once() {
    let place = Place::new();
    let source = place.path("source");
    std::fs::write(&source, (0..2 * MIB).map(|i| (i * 7 / 5) as u8).collect::<Vec<u8>>()).expect("a source");
    let fast = || tape(1e6, 0.0);
    let froms = [EndpointSpec::Null, memory(), file(source), fast()];
    let mut number = 0;
    for from in &froms {
        for to in 0..4 {
            for buffers in [1, 2, 5] {
                number += 1;
                let to = [EndpointSpec::Null, memory(), file(place.path(&format!("sink{number}"))), fast()][to].clone();
                let what = format!("{} to {} with {buffers} buffers", from.kind(), to.kind());
                let (is_file, in_memory) = (to.kind() == "file", to.kind() == "memory");
                // The last block is shorter.
                let spec = LiveStreamSpec { buffers, block_bytes: 96 * KIB, ..stream("one", from.clone(), to) };
                let result = verified(vec![spec]);
                let one = &result.streams[0];
                assert_eq!((one.bytes, one.blocks), (2 * MIB, 22), "{what}");
                assert_eq!(one.series.iter().sum::<u64>(), one.bytes, "{what}");
                assert_eq!((one.source.time.count(), one.sink.time.count()), (22, 22), "{what}");
                let verify = one.verify.as_ref().expect("it was compared");
                assert_eq!(verify.mismatch_count, 0, "{what}");
                assert_eq!(verify.blocks_checked, if is_file || in_memory { 22 } else { 0 }, "{what}");
                assert!(one.sync_ns <= one.elapsed_ns && one.elapsed_ns <= result.elapsed_ns, "{what}");
                let takes_time = |kind: &str, passive: &[&str]| !passive.contains(&kind);
                let both =
                    takes_time(from.kind(), &["null", "memory"]) && takes_time(result.endpoints[1].kind, &["null"]);
                assert_eq!(one.overlapped, both && buffers > 1, "{what}");
            }
        }
    }
}

#[test]
fn a_copy_of_a_file_is_that_file_and_content_never_repeats() {
    let place = Place::new();
    let (source, copy, made) = (place.path("source"), place.path("copy"), place.path("made"));
    let bytes: Vec<u8> = (0..2 * MIB).map(|i| (i * i / 11) as u8).collect();
    std::fs::write(&source, &bytes).expect("a source");
    run(&config(vec![
        stream("copy", file(source.clone()), file(copy.clone())),
        stream("make", memory(), file(made.clone())),
    ]));
    assert!(std::fs::read(&copy).expect("the copy")[..bytes.len()] == bytes[..]);
    assert_eq!(std::fs::read(&source).expect("the source"), bytes, "left alone");
    let made = std::fs::read(&made).expect("what was made");
    let mut sectors: Vec<&[u8]> = made[..2 * MIB as usize].chunks(4096).collect();
    sectors.sort_unstable();
    sectors.dedup();
    assert_eq!(sectors.len(), 512, "memory of 1 MiB was sent twice, no sector was");
}

#[test]
fn what_memory_and_tapes_hand_over_is_the_users_own_where_it_is_given() {
    let place = Place::new();
    let (sample, one, other) = (place.path("sample"), place.path("one"), place.path("other"));
    let bytes: Vec<u8> = (0..200 * KIB).map(|i| (i * i / 11) as u8).collect();
    std::fs::write(&sample, &bytes).expect("a sample");
    let streams =
        vec![stream("memory", memory(), file(one.clone())), stream("tape", tape(1e6, 0.0), file(other.clone()))];
    let own = StreamsConfig { data: Some(sample.clone()), ..config(streams) };
    let result = run(&own);
    assert_eq!(result.data.as_ref().map(|data| (&data.path, data.used_bytes)), Some((&sample, 200 * KIB)));
    // Whole blocks of it, round and round.
    for written in [one, other] {
        let found = std::fs::read(written).expect("what was written");
        assert!(found[..2 * MIB as usize].chunks(64 * KIB as usize).enumerate().all(|(i, block)| {
            let start = i % 3 * 64 * KIB as usize;
            block == &bytes[start..start + 64 * KIB as usize]
        }));
    }
    std::fs::write(&sample, [1; 1000]).expect("a short one");
    let refused = error(&own);
    assert!(matches!(&refused, LiveError::BadInput { key, .. } if key == "data"), "{refused}");
}

#[test]
fn a_source_that_is_not_there_is_made_and_filled() {
    let place = Place::new();
    let result = run(&config(vec![stream("read", file(place.path("made")), EndpointSpec::Null)]));
    assert_eq!(result.streams[0].bytes, 2 * MIB);
    let facts = result.endpoints[0].target.as_ref().expect("facts of a file");
    assert!(facts.made_by_raidlab, "{facts:?}");
    let bytes = std::fs::read(place.path("made")).expect("the file");
    assert!(bytes[..2 * MIB as usize].chunks(4096).all(|page| page.iter().any(|&b| b != 0)));
}

#[test]
fn nothing_is_faster_than_its_pace() {
    // Bounds that hold however slow the machine is: at most the pace, and block by block.
    let paced = |from, to| LiveStreamSpec { rate_mb_s: Some(20.0), bytes: Some(3 * MIB), ..stream("paced", from, to) };
    let result = run(&config(vec![paced(memory(), EndpointSpec::Null), paced(tape(1e6, 0.0), memory())]));
    for one in &result.streams {
        assert!(one.bytes as f64 * 1000.0 / one.elapsed_ns as f64 <= 20.0, "{} ns", one.elapsed_ns);
        let late = one.late.as_ref().expect("a paced stream says how late it was");
        assert_eq!(late.time.count(), one.blocks);
        assert!(late.max_ns >= (late.time.mean_ns() as u64) && one.paced_ns <= one.elapsed_ns);
    }
    assert_eq!([result.streams[0].overlapped, result.streams[1].overlapped], [false, true]);
    // A machine that is idle for a moment keeps a pace of 3 MB/s; one that never is would still pass all but this.
    let slow =
        LiveStreamSpec { rate_mb_s: Some(3.0), bytes: Some(MIB), ..stream("slow", memory(), EndpointSpec::Null) };
    assert_eq!(run(&config(vec![slow])).streams[0].bound_by(), "pace");
}

#[test]
fn nothing_is_faster_than_a_tape() {
    let to = stream("to", memory(), tape(25.0, 0.0));
    let from = stream("from", tape(25.0, 0.0), EndpointSpec::Null);
    let result = run(&config(vec![to, from]));
    for one in &result.streams {
        assert!(one.bytes as f64 * 1000.0 / one.elapsed_ns as f64 <= 25.0, "{}: {} ns", one.name, one.elapsed_ns);
    }
    assert!(result.streams[0].sync_ns > 0, "the tape runs to its end");
    assert_eq!(result.streams[0].bound_by(), "sink");
    assert_eq!(result.streams[1].bound_by(), "source");
    // Brought at a tenth of its rate, every block finds the tape standing, and the time of starting is lost each time.
    // A machine that is busy brings some of them late and together, but for most of a second not all.
    let starved = LiveStreamSpec { rate_mb_s: Some(2.5), ..stream("starved", memory(), tape(25.0, 5.0)) };
    let result = run(&config(vec![starved]));
    let one = &result.streams[0];
    assert!(one.sink.stops >= 1 && one.sink.stops <= 31, "{} stops", one.sink.stops);
}

#[test]
fn all_start_together_and_the_whole_ends_with_the_last() {
    let streams = (1..=6)
        .map(|i| LiveStreamSpec { bytes: Some(i * MIB), ..stream(&format!("s{i}"), memory(), EndpointSpec::Null) })
        .collect();
    let result = run(&config(streams));
    let last = result.streams.iter().map(|s| s.start_ns + s.elapsed_ns).max();
    assert_eq!(Some(result.elapsed_ns), last);
    assert_eq!(result.streams.iter().map(|s| s.start_ns).min(), Some(0));
    assert_eq!(result.streams.iter().map(|s| s.bytes).sum::<u64>(), 21 * MIB);
}

#[test]
fn parts_of_one_file_are_shared_but_never_overlap() {
    let place = Place::new();
    let part = |offset_bytes| EndpointSpec::File { path: place.path("shared"), offset_bytes, buffered: false };
    let result = verified(vec![
        stream("low", memory(), part(0)),
        stream("high", memory(), part(2 * MIB)),
        stream("read", part(4 * MIB), EndpointSpec::Null),
        stream("read too", part(4 * MIB), EndpointSpec::Null),
    ]);
    assert!(result.streams[..2].iter().all(|s| s.verify.as_ref().is_some_and(|v| v.blocks_checked == 32)));
    assert!(result.endpoints.iter().filter_map(|e| e.target.as_ref()).all(|t| t.size_bytes == 6 * MIB));
    for (streams, key) in [
        (vec![stream("a", memory(), part(0)), stream("b", memory(), part(MIB))], "streams[1].sink.offset_bytes"),
        (vec![stream("a", memory(), part(0)), stream("b", part(MIB), memory())], "streams[1].source.offset_bytes"),
        (vec![stream("a", part(0), part(0))], "streams[0].sink.offset_bytes"),
    ] {
        let bad = error(&config(streams));
        assert_eq!(bad.key(), key, "{bad}");
        assert!(bad.message().contains("overlap"), "{bad}");
    }
}

#[test]
fn somebody_elses_file_is_read_and_never_written() {
    let place = Place::new();
    let theirs = place.path("theirs");
    std::fs::write(&theirs, vec![9; 2 * MIB as usize]).expect("a file of somebody else's");
    let refused = error(&config(vec![stream("over", memory(), file(theirs.clone()))]));
    assert!(matches!(&refused, LiveError::Refused { key, .. } if key == "streams[0].sink.path"), "{refused}");
    assert!(refused.message().contains("was not made by raidlab"), "{refused}");
    run(&config(vec![stream("read", file(theirs.clone()), memory())]));
    assert_eq!(std::fs::read(&theirs).expect("the file"), vec![9; 2 * MIB as usize]);
    let long = LiveStreamSpec { bytes: Some(4 * MIB), ..stream("long", file(theirs), memory()) };
    assert!(error(&config(vec![long])).message().contains("4194304"));
}

#[test]
fn a_wrong_byte_in_what_arrived_is_found() {
    let place = Place::new();
    let path = place.path("sink");
    let cell = StreamsConfig {
        content: ContentMode::Verify,
        // Paced, so that the run lasts long enough to be looked at, also by a thread that has to wait for a processor.
        ..config(vec![LiveStreamSpec {
            rate_mb_s: Some(4.0),
            bytes: Some(8 * MIB),
            ..stream("spoiled", memory(), file(path.clone()))
        }])
    };
    let mut spoiled = false;
    let result = streams::run(&cell, &mut |progress| {
        // Once the third block has arrived, and never again.
        if !spoiled && progress.stage == RunStage::Running && progress.requests > 4 * 64 * KIB {
            spoiled = true;
            let sink = std::fs::File::options().write(true).open(&path).expect("the sink");
            std::os::unix::fs::FileExt::write_all_at(&sink, b"x", 3 * 64 * KIB + 777).expect("to spoil a byte");
            sink.sync_all().expect("to have it there");
        }
        ControlFlow::Continue(())
    })
    .expect("it ran");
    assert!(spoiled, "two seconds are time enough to be told");
    let verify = result.streams[0].verify.as_ref().expect("it was compared");
    assert_eq!((verify.blocks_checked, verify.mismatch_count), (128, 1));
    assert_eq!(verify.mismatches, [3 * 64 * KIB]);
}

#[test]
fn a_source_that_is_cut_ends_the_run_with_one_sentence() {
    let place = Place::new();
    let path = place.path("source");
    std::fs::write(&path, vec![1; 16 * MIB as usize]).expect("a source");
    for buffers in [1, 3] {
        std::fs::File::options().write(true).open(&path).and_then(|f| f.set_len(16 * MIB)).expect("whole again");
        let slow = LiveStreamSpec {
            rate_mb_s: Some(8.0),
            bytes: Some(16 * MIB),
            buffers,
            ..stream("slow", file(path.clone()), memory())
        };
        let other = LiveStreamSpec { bytes: Some(1 << 50), ..stream("other", memory(), tape(50.0, 0.0)) };
        let result = streams::run(&config(vec![other, slow]), &mut |progress| {
            // So much the slow one never has, so the other has begun; and the slow one may still read its first MiB.
            if progress.stage == RunStage::Running && progress.requests > 16 * MIB {
                let source = std::fs::File::options().write(true).open(&path).expect("the source");
                source.set_len(MIB).expect("to cut it");
            }
            ControlFlow::Continue(())
        })
        .expect("it ran");
        let error = result.stopped_by.expect("it cannot go on");
        assert!(matches!(&error, LiveError::Io { key, .. } if key == "streams[1].source.path"), "{error}");
        assert!(error.message().contains("it ends there"), "{error}");
        assert!(result.streams.iter().all(|s| s.bytes > 0), "what was measured is kept, also of the other");
    }
}

#[test]
fn stopping_and_a_time_limit_keep_what_was_measured() {
    let place = Place::new();
    let endless = |to| LiveStreamSpec { bytes: None, count: Some(1 << 40), ..stream("endless", tape(40.0, 0.0), to) };
    let cell = config(vec![endless(EndpointSpec::Null), endless(memory())]);
    let mut told = 0;
    let result = streams::run(&cell, &mut |progress| {
        assert!((0.0..=1.0).contains(&progress.fraction));
        told = progress.requests;
        if told > MIB {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })
    .expect("it ran");
    assert!(result.interrupted && result.stopped_by.is_none());
    // One of them may have had to wait for a processor; what was told is there.
    assert!(result.streams.iter().map(|s| s.bytes).sum::<u64>() >= told);
    assert!(result.streams.iter().all(|s| s.bytes < 1 << 40));
    // Long enough for both to begin on a machine that is busy with other things.
    let result = run(&StreamsConfig { duration_s: Some(1.0), ..cell });
    // What was begun is finished: no more than the tape gives until then, and the blocks under way.
    for one in &result.streams {
        assert!(one.bytes > 0 && one.bytes * 25 <= one.elapsed_ns + 25 * 64 * KIB, "{one:?}");
    }
    drop(place);
}

#[test]
fn bad_numbers_name_their_key() {
    let place = Place::new();
    let good = || stream("good", memory(), EndpointSpec::Null);
    let one = |spec| config(vec![spec]);
    let cases = vec![
        ("streams", config(vec![])),
        ("duration", StreamsConfig { duration_s: Some(0.0), ..one(good()) }),
        ("streams[0].block_bytes", one(LiveStreamSpec { block_bytes: 100, ..good() })),
        ("streams[0].buffers", one(LiveStreamSpec { buffers: 0, ..good() })),
        ("streams[0].rate_mb_s", one(LiveStreamSpec { rate_mb_s: Some(-1.0), ..good() })),
        ("streams[0].bytes", one(LiveStreamSpec { count: Some(1), ..good() })),
        ("streams[0].bytes", one(LiveStreamSpec { bytes: None, ..good() })),
        ("streams[0].count", one(LiveStreamSpec { bytes: None, count: Some(0), ..good() })),
        ("streams[0].sink.mb_s", one(LiveStreamSpec { sink: tape(f64::NAN, 0.0), ..good() })),
        ("streams[0].source.start_stop", one(LiveStreamSpec { source: tape(1.0, -1.0), ..good() })),
        ("streams", one(LiveStreamSpec { source: EndpointSpec::Memory { size_bytes: 1 << 50 }, ..good() })),
        ("streams[0].sink.path", one(LiveStreamSpec { sink: file(place.path("no/such")), ..good() })),
        ("streams[1].sink.path", config(vec![good(), LiveStreamSpec { sink: file("/dev/null".into()), ..good() }])),
    ];
    for (key, cell) in cases {
        let bad = error(&cell);
        assert_eq!(bad.key(), key, "{bad}");
    }
}
