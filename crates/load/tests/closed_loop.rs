//! Closed and held loops: the depth, the window, the means.

#![allow(clippy::cast_lossless, clippy::cast_precision_loss, reason = "numbers here are small")]

mod common;

use common::*;
use raidlab_load::{AddressSpec, Limit, Limits, Load, LoadSpec, Volume, VolumeSpec, WorkloadSpec};
use raidlab_types::{Instant, Request, RequestKind, Seed};

#[test]
fn never_more_and_always_as_many_as_the_depth() {
    for depth in [1, 2, 7, 64] {
        let mut load = load(&LoadSpec::Closed { depth }, &workload(), &requests(100, 5000));
        drive(&mut load, &mut single_server(1e6, depth.into()), |load, _| {
            let expected = if load.is_finished() { depth - 1 } else { depth };
            assert_eq!(load.in_flight(), expected as usize);
        });
        let recorder = load.recorder();
        assert_eq!(recorder.all().requests, 5000);
        assert!((recorder.mean_in_flight() - f64::from(depth)).abs() < 1e-9, "{}", recorder.mean_in_flight());
    }
}

#[test]
fn littles_law_holds() {
    // Mean in flight x elapsed = requests x mean response, but for those in flight at both ends: 32 of 50,000.
    let mut load = load(&LoadSpec::Closed { depth: 32 }, &workload(), &requests(1000, 50_000));
    drive(&mut load, &mut single_server(1e6, 3), |_, _| {});
    let (recorder, all) = (load.recorder(), load.recorder().all());
    let rate = all.requests as f64 / recorder.elapsed().as_s_f64();
    let law = rate * all.response.mean_ns() / 1e9;
    assert!((law / recorder.mean_in_flight() - 1.0).abs() < 0.002, "{law}");
    // The server is never idle, so the rate is its own: 1000/s, with a standard error of 0.45 %; five of them.
    assert!((rate / 1000.0 - 1.0).abs() < 0.0225, "{rate}");
}

#[test]
fn reads_and_writes_have_their_shares_and_bytes() {
    let mut load = load(&LoadSpec::Closed { depth: 4 }, &workload(), &requests(0, 20_000));
    drive(&mut load, &mut single_server(1e5, 4), |_, _| {});
    let (read, write) = (load.recorder().read(), load.recorder().write());
    // Binomial: five standard deviations of 20,000 at 0.7 are 324.
    assert!((read.requests as f64 - 14_000.0).abs() < 324.0, "{}", read.requests);
    assert_eq!(read.requests + write.requests, 20_000);
    assert_eq!(read.bytes, read.requests * 8192);
    assert_eq!(read.response.count() + write.response.count(), load.recorder().all().response.count());
}

#[test]
fn a_window_by_duration_closes_exactly_then() {
    let second = Limit { requests: None, duration_s: Some(1.0) };
    let mut load = load(&LoadSpec::Closed { depth: 2 }, &workload(), &Limits { warmup: second, measure: second });
    // Each takes 300 ms, two at a time: nothing completes at the limits themselves.
    let driven = drive(&mut load, &mut |now: u64, _: &Request| now + 300 * MS, |_, _| {});
    let recorder = load.recorder();
    // Opens with the first completion after one second, at 1.2 s; that instant's other completion is counted.
    assert_eq!(recorder.opened(), Some(Instant::from_ns(1200 * MS)));
    assert_eq!((recorder.elapsed().as_ns(), recorder.all().requests), (1000 * MS, 7));
    assert_eq!(recorder.mean_in_flight(), 2.0);
    assert_eq!(driven.last().unwrap().issued_ns, 2100 * MS);
    let seconds: Vec<_> = recorder.snapshots().map(|row| (row.time_ns / 1_000_000_000, row.requests)).collect();
    assert_eq!(seconds, [(1, 6), (2, 6), (3, 2)]);
}

#[test]
fn a_run_can_be_interrupted() {
    let mut load = load(&LoadSpec::Closed { depth: 5 }, &workload(), &requests(0, u64::MAX));
    let now = Instant::from_ns;
    let poll_all = |load: &mut Load, ns| std::iter::from_fn(|| load.poll_request(now(ns))).collect::<Vec<_>>();
    let first = poll_all(&mut load, 0);
    load.handle_done(now(20), first[0].tag, true);
    load.handle_done(now(30), first[1].tag, true);
    assert_eq!((first.len(), poll_all(&mut load, 30).len()), (5, 2));
    load.interrupt(now(40));
    assert!(load.is_finished() && load.recorder().is_interrupted());
    assert!(load.poll_request(now(50)).is_none() && load.poll_timeout().is_none());
    // 5 for 20 ns, 4 for 10 ns, 5 for 10 ns.
    assert_eq!((load.recorder().mean_in_flight(), load.recorder().elapsed().as_ns()), (190.0 / 40.0, 40));
    // What was in flight may still complete; it is not counted.
    load.handle_done(now(60), 2, true);
    assert_eq!((load.recorder().all().requests, load.in_flight()), (2, 4));
}

#[test]
#[should_panic(expected = "is not in flight")]
fn completing_a_request_twice_panics() {
    let mut load = load(&LoadSpec::Closed { depth: 1 }, &workload(), &requests(0, 10));
    let request = load.poll_request(Instant::ZERO).unwrap();
    load.handle_done(Instant::from_ns(1), request.tag, true);
    load.handle_done(Instant::from_ns(2), request.tag, true);
}

#[test]
fn failures_are_counted_apart_and_end_the_run() {
    struct Broken;
    impl Array for Broken {
        fn serve(&mut self, now_ns: u64, request: &Request) -> (u64, bool) {
            (now_ns + 10, request.kind == RequestKind::Read)
        }
    }
    let mut load = load(&LoadSpec::Closed { depth: 4 }, &workload(), &requests(0, 1000));
    drive(&mut load, &mut Broken, |_, _| {});
    let (read, write) = (load.recorder().read(), load.recorder().write());
    assert_eq!((write.requests, write.bytes, write.response.count()), (0, 0, 0));
    assert_eq!(read.requests + write.failed, 1000);
    assert!(write.failed > 0 && read.failed == 0);
}

#[test]
fn even_volumes_share_the_depth_equally() {
    let volumes = [VOLUME, Volume { capacity_sectors: 1 << 20 }, VOLUME];
    let spec = WorkloadSpec { volumes: VolumeSpec::Even, ..workload() };
    let new =
        |depth| Load::new(&LoadSpec::Closed { depth }, &spec, &requests(0, 3000), &volumes, 512, Seed::new(1)).unwrap();
    // The second volume is ten times slower; each keeps two in flight all the same.
    let mut load = new(6);
    let driven =
        drive(&mut load, &mut |now: u64, r: &Request| now + if r.volume == 1 { 10 * MS } else { MS }, |_, _| {});
    let mut counts = [0; 3];
    driven.iter().for_each(|d| counts[d.request.volume as usize] += 1);
    assert!(counts[0] == counts[2] && (counts[0] as i64 - 10 * counts[1] as i64).abs() <= 20, "{counts:?}");
}

#[test]
fn sequential_streams_each_keep_one_in_flight() {
    let address = AddressSpec::Sequential { streams: 2 };
    let spec = WorkloadSpec { address, ..workload() };
    let volumes = [VOLUME, VOLUME];
    let mut load =
        Load::new(&LoadSpec::Closed { depth: 4 }, &spec, &requests(0, 2000), &volumes, 512, Seed::new(1)).unwrap();
    let mut rng = Seed::new(5).draws();
    let driven = drive(&mut load, &mut |now: u64, _: &Request| now + 1 + rng.below(MS), |_, _| {});
    // Whatever the order of completions: each stream of each volume runs through its half without a gap.
    for volume in 0..2 {
        for half in 0..2 {
            let of_stream = driven.iter().map(|d| d.request).filter(|r| r.volume == volume);
            let starts: Vec<u64> = of_stream.map(|r| r.extent.lba).filter(|lba| lba >> 23 == half).collect();
            assert!(starts.len() > 300, "{}", starts.len());
            assert!(starts.iter().enumerate().all(|(k, &lba)| lba == (half << 23) + 16 * k as u64));
        }
    }
}

#[test]
fn a_held_load_measures_only_once_settled_and_holds_the_share() {
    // One exponential server of 1 ms: at depth N the response is the sum of N services, Erlang-N. The 90th percentile of
    // Erlang-40 with mean 40 ms is 48.3 ms. While the depth moves the responses spread wider, so that the mean depth
    // that holds the share is a little lower; the bound of 5 % leaves room for that and for a queue that forgets slowly.
    let spec = LoadSpec::Hold { percentile: 90.0, target_ms: 48.3, initial_depth: 1, max_depth: 1000 };
    let mut load = load(&spec, &workload(), &requests(1000, 200_000));
    drive(&mut load, &mut single_server(1e6, 6), |load, _| {
        assert!(load.hold().unwrap().settled || !load.recorder().is_measuring());
        assert!(load.depth() <= 1000);
    });
    let hold = load.hold().unwrap();
    assert!((hold.depth_mean - 40.0).abs() < 2.0, "{hold:?}");
    assert!((hold.share_within_target - 0.9).abs() < 0.005, "{hold:?}");
    assert!((load.recorder().mean_in_flight() - hold.depth_mean).abs() < 0.3, "{}", load.recorder().mean_in_flight());
}
