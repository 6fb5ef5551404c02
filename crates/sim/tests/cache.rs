//! Caches above the array: what a lone stream pays, what limits it, and that nothing is lost.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "numbers here are small")]

mod common;

use common::{closed, fixed, mean_us, rate, requests, station, visit, workload};
use raidlab_array::{Rotation, Tree};
use raidlab_load::{Limit, Limits};
use raidlab_sim::{run, CacheSpec, DestageWhen, Distribution, PathSpec, Phase, SimConfig, VisitSpec};
use raidlab_types::KIB;

fn chain(data: usize) -> Tree {
    Tree::Parity {
        parities: 1,
        rotation: Rotation::LeftSymmetric,
        chunk_bytes: 16 * KIB,
        children: vec![Tree::member(); data + 1],
    }
}

fn cache(read_ahead_bytes: u64, write_back_up_to_bytes: u64) -> CacheSpec {
    CacheSpec {
        only: None,
        line_bytes: 16 * KIB,
        fetch_bytes: 64 * KIB,
        read_room_bytes: 4096 * KIB,
        read_ahead_bytes,
        read_ahead_up_to_bytes: None,
        write_back_up_to_bytes,
        dirty_room_bytes: 1024 * KIB,
        destages: 1,
        destage_when: DestageWhen::StripeIsWhole,
        copy_path: vec![],
    }
}

/// One sequential stream over four data disks of 500 us, behind a controller of 100 us an I/O and 100 MB/s.
fn stream(read_fraction: f64, bytes: u64, cache: CacheSpec) -> SimConfig {
    let text = format!(
        r#"{{"read": {read_fraction}, "size": {{"kind": "fixed", "bytes": {bytes}}},
            "address": {{"kind": "sequential", "streams": 1}}}}"#
    );
    let mut config = closed(chain(4), fixed(500.0), workload(&text), 1);
    config.limits = requests(200, 2000);
    config.path = PathSpec {
        stations: vec![station("controller", 1)],
        request_path: vec![
            visit("controller", Phase::Command, 100.0, None),
            visit("controller", Phase::Data, 0.0, Some(100.0)),
        ],
        caches: vec![cache],
        ..PathSpec::default()
    };
    config
}

#[test]
fn reads_that_were_fetched_ahead_pay_the_controller_alone() {
    // 8 KiB take 100 us and 81.92 us; the disks, at 16 KiB in 500 us each, are much faster than that together.
    let result = run(&stream(1.0, 8 * KIB, cache(1024 * KIB, 0))).unwrap();
    assert!((mean_us(&result) - 181.92).abs() < 0.5, "{} us", mean_us(&result));
    // Without read-ahead every second one waits for a fetch of a line.
    let result = run(&stream(1.0, 8 * KIB, cache(0, 0))).unwrap();
    assert!((mean_us(&result) - (181.92 + 250.0)).abs() < 0.5, "{} us", mean_us(&result));
}

#[test]
fn a_stream_that_outruns_its_disks_is_held_to_their_rate() {
    // 256 KiB: the controller would need 2.7 ms; a device side of 50 MB/s needs 5.2 ms for them, and is the limit.
    let mut config = stream(1.0, 256 * KIB, cache(1024 * KIB, 0));
    config.path.stations.push(station("device side", 1));
    config.path.member_path = vec![visit("device side", Phase::Data, 0.0, Some(50.0))];
    let result = run(&config).unwrap();
    assert!((rate(&result) * 256.0 * KIB as f64 / 50e6 - 1.0).abs() < 0.01, "{}", rate(&result));
    let station = &result.stations[1];
    assert!(station.busy_ns as f64 / result.recorder.elapsed().as_ns() as f64 > 0.99, "the cap is a queue");
}

#[test]
fn a_read_goes_up_while_the_rest_of_it_is_fetched() {
    // 256 KiB without read-ahead: sixteen chunks, at least three and at most four on each of five disks. One after the other
    // these would take 2 ms and then the controller 2.6 ms; as they arrive, the controller starts after 0.5 ms.
    let result = run(&stream(1.0, 256 * KIB, cache(0, 0))).unwrap();
    let controller = 256.0 * KIB as f64 / 100.0;
    assert!(mean_us(&result) < 100.0 + 500.0 * 2.0 + controller, "{} us", mean_us(&result));
    assert!(mean_us(&result) > 99.0 + 500.0 + controller, "{} us", mean_us(&result));
}

#[test]
fn writes_are_answered_from_the_cache_until_it_is_full() {
    // 16 KiB: 100 us and 163.84 us. A stripe of 64 KiB is destaged in 500 us, while four such writes take 1055 us.
    let mut config = stream(0.0, 16 * KIB, cache(0, 64 * KIB));
    let result = run(&config).unwrap();
    assert!((mean_us(&result) - 263.84).abs() < 0.5, "{} us", mean_us(&result));
    // All of it reaches the disks, whole stripes at a time: five accesses for every four writes.
    let writes: u64 = result.members.iter().map(|m| m.totals.writes).sum();
    assert!((writes as f64 / 2000.0 - 5.0 / 4.0).abs() < 0.01);
    assert_eq!(result.members.iter().map(|m| m.totals.reads).sum::<u64>(), 0);
    // Slower disks become the limit as soon as the cache is full: one stripe in 5 ms.
    config.devices = vec![fixed(5000.0)];
    config.limits = requests(1000, 2000);
    let result = run(&config).unwrap();
    assert!((rate(&result) / (4.0 / 5e-3) - 1.0).abs() < 0.01, "{}", rate(&result));
}

#[test]
fn a_copy_delays_what_is_answered_from_the_cache_and_nothing_else() {
    let copying = |up_to| {
        let mut config = stream(0.0, 16 * KIB, cache(0, up_to));
        config.path.stations.push(station("copy", 1));
        config.path.caches[0].copy_path = vec![visit("copy", Phase::Data, 0.0, Some(100.0))];
        mean_us(&run(&config).unwrap())
    };
    assert!((copying(64 * KIB) - (263.84 + 163.84)).abs() < 0.5);
    // Written through: every fourth write completes a stripe and waits for it.
    assert!((copying(0) - (263.84 + 500.0 / 4.0)).abs() < 1.0, "{}", copying(0));
}

#[test]
fn without_stripes_a_fetch_is_gathered_before_it_is_destaged() {
    let mut config = stream(0.0, 16 * KIB, cache(0, 64 * KIB));
    config.tree = Tree::raid1(2);
    let result = run(&config).unwrap();
    let (writes, bytes) =
        result.members.iter().fold((0, 0), |(w, b), m| (w + m.totals.writes, b + m.totals.write_bytes));
    assert_eq!(bytes / writes, config.path.caches[0].fetch_bytes.max(16 * KIB));
}

#[test]
fn several_volumes_have_caches_of_their_own() {
    let mut config = stream(1.0, 64 * KIB, CacheSpec { only: Some(vec![1]), ..cache(1024 * KIB, 0) });
    config.tree = Tree::Independent { children: vec![chain(4), chain(4)] };
    config.load = raidlab_load::LoadSpec::Closed { depth: 2 };
    config.workload.volumes = serde_json::from_str(r#""even""#).unwrap();
    config.path.stations[0].servers = 2;
    let result = run(&config).unwrap();
    let reads = |leaves: std::ops::Range<usize>| -> u64 { leaves.map(|i| result.members[i].totals.reads).sum() };
    assert!(reads(5..10) > reads(0..5), "the one with read-ahead is faster: {} {}", reads(0..5), reads(5..10));
}

#[test]
fn random_mixes_lose_nothing_and_repeat() {
    for seed in 0..20 {
        let text = r#"{"read": 0.5, "size": {"kind": "table", "bytes": [512, 4096, 65536, 300032], "weights": [1, 2, 2, 1]},
            "address": {"kind": "uniform"}, "align": 512}"#;
        let mut config = closed(chain(4), fixed(500.0), workload(text), 1 + seed as u32 % 7);
        config.limits = requests(0, 3000);
        config.seed = seed;
        config.path.caches = vec![cache(64 * KIB * (seed % 3), 16 * KIB * (seed % 4))];
        let (first, again) = (run(&config).unwrap(), run(&config).unwrap());
        assert_eq!(first.recorder.all().requests, 3000, "seed {seed}");
        assert_eq!(first.recorder.elapsed(), again.recorder.elapsed());
        assert_eq!(first.events, again.events);
    }
}

#[test]
fn exponential_visits_keep_their_mean() {
    let mut config = closed(Tree::member(), fixed(100.0), workload(common_random()), 1);
    config.limits = Limits {
        warmup: Limit { requests: Some(0), duration_s: None },
        measure: Limit { requests: Some(40_000), duration_s: None },
    };
    config.path = PathSpec {
        stations: vec![station("bus", 1)],
        request_path: vec![VisitSpec { times: Distribution::Exponential, ..visit("bus", Phase::Command, 300.0, None) }],
        ..PathSpec::default()
    };
    let result = run(&config).unwrap();
    // The mean of 40,000 exponentials of 300 us lies within 1 % in all but one of 20,000 runs.
    assert!((mean_us(&result) / 400.0 - 1.0).abs() < 0.015, "{} us", mean_us(&result));
    let median = result.recorder.all().response.percentile_ns(50.0) as f64 / 1e3;
    assert!((median - (100.0 + 300.0 * std::f64::consts::LN_2)).abs() < 6.0, "{median} us");
}

fn common_random() -> &'static str {
    r#"{"read": 1.0, "size": {"kind": "fixed", "bytes": 4096}, "address": {"kind": "uniform"}}"#
}

#[test]
fn what_makes_no_sense_is_refused_with_its_key() {
    let refused = |change: &dyn Fn(&mut SimConfig)| {
        let mut config = stream(1.0, 8 * KIB, cache(0, 0));
        change(&mut config);
        run(&config).unwrap_err().key
    };
    assert_eq!(refused(&|c| c.path.caches[0].line_bytes = 700), "path.cache[0].line");
    assert_eq!(refused(&|c| c.path.caches[0].fetch_bytes = 24 * KIB), "path.cache[0].fetch");
    assert_eq!(refused(&|c| c.path.caches[0].dirty_room_bytes = 0), "path.cache[0].dirty_room");
    assert_eq!(refused(&|c| c.path.caches[0].destages = 0), "path.cache[0].destages");
    assert_eq!(refused(&|c| c.path.caches[0].only = Some(vec![1])), "path.cache[0].only");
    assert_eq!(refused(&|c| c.host.issue_us = 1.0), "host.issue");
    let copy = vec![visit("nobody", Phase::Data, 1.0, None)];
    assert_eq!(refused(&|c| c.path.caches[0].copy_path = copy.clone()), "path.cache[0].copy_path[0].station");
}
