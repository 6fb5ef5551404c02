//! Open loops: intended times, coordinated omission, admission limits, backlog.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "numbers here are small")]

mod common;

use common::*;
use raidlab_load::{ArrivalSpec, Limit, Limits, LoadSpec};
use raidlab_types::{Instant, Request};

fn open(arrival: ArrivalSpec, max_in_flight: Option<u32>) -> LoadSpec {
    LoadSpec::Open { arrival, max_in_flight }
}

#[test]
fn the_mean_rate_is_the_one_asked_for() {
    for arrival in [
        ArrivalSpec::Uniform { rate_per_s: 3000.0 },
        ArrivalSpec::Poisson { rate_per_s: 3000.0 },
        ArrivalSpec::H2 { rate_per_s: 3000.0, cv2: 4.0 },
    ] {
        let measure = Limit { requests: None, duration_s: Some(100.0) };
        let limits = Limits { warmup: Limit::default(), measure };
        let mut load = load(&open(arrival.clone(), None), &workload(), &limits);
        let driven = drive(&mut load, &mut |now: u64, _: &Request| now + 1000, |_, _| {});
        // Counts over 100 s: exact for uniform; standard deviation sqrt(300,000 c2) else, 0.18 % and 0.37 %; five of them.
        let bound = match arrival {
            ArrivalSpec::Uniform { .. } => 0.00001,
            ArrivalSpec::Poisson { .. } => 0.0092,
            ArrivalSpec::H2 { .. } => 0.0185,
            ArrivalSpec::Trace { .. } => unreachable!("not among those above"),
        };
        assert!((driven.len() as f64 / 300_000.0 - 1.0).abs() < bound, "{arrival:?}: {}", driven.len());
        assert_eq!((load.backlog().max_delay_ns, load.backlog().max_waiting), (0, 0));
    }
}

#[test]
fn a_random_queue_responds_as_theory_says() {
    // M/M/1 at 60 %: mean response 1 / (mu - lambda) = 2.5 ms, exponential, so p90 = 5.76 ms. Over 400,000 requests
    // correlated over about (1 + rho) / (1 - rho)^2 = 10, the standard error of the mean is about 1 %.
    let mut load =
        load(&open(ArrivalSpec::Poisson { rate_per_s: 600.0 }, None), &workload(), &requests(10_000, 400_000));
    drive(&mut load, &mut single_server(1e6, 8), |_, _| {});
    let response = load.recorder().all().response;
    assert!((response.mean_ns() / 2.5e6 - 1.0).abs() < 0.05, "{}", response.mean_ns());
    assert!((response.percentile_ns(90.0) as f64 / 5.756e6 - 1.0).abs() < 0.05, "{}", response.percentile_ns(90.0));
    assert!((load.recorder().mean_in_flight() / 1.5 - 1.0).abs() < 0.05, "{}", load.recorder().mean_in_flight());
}

#[test]
fn a_stall_shows_in_response_and_not_in_service_time() {
    // 1000/s against 0.1 ms, but the array answers nothing between 1 s and 2 s; eight admitted at once. Without counting
    // from the intended arrival only eight requests would seem slow.
    let stall = |now: u64, _: &Request| if (1000 * MS..2000 * MS).contains(&now) { 2000 * MS } else { now + MS / 10 };
    let measure = Limit { requests: None, duration_s: Some(4.0) };
    let limits = Limits { warmup: Limit::default(), measure };
    let mut load = load(&open(ArrivalSpec::Uniform { rate_per_s: 1000.0 }, Some(8)), &workload(), &limits);
    drive(&mut load, &mut { stall }, |load, _| assert!(load.in_flight() <= 8));
    let all = load.recorder().all();
    let slow = |within: f64| ((1.0 - within) * all.requests as f64).round() as i64;
    assert_eq!(slow(all.service.share_within(10 * MS)), 8);
    // All that arrived in the stalled second, and in the two milliseconds after it: the backlog takes 12.5 ms to clear.
    assert_eq!(slow(all.response.share_within(10 * MS)), 1003);
    let backlog = load.backlog();
    // Arrivals of 1000 to 1007 ms are admitted; those of 1008 to 1999 ms are found waiting at 2000 ms.
    assert_eq!(backlog.max_waiting, 992);
    assert_eq!((backlog.final_waiting, backlog.max_in_flight), (0, 8));
    assert!(backlog.max_delay_ns > 980 * MS, "{backlog:?}");
}

#[test]
fn an_overload_is_reported_as_a_backlog() {
    // 2000/s against one server of 1000/s: after 10 s ten thousand are left, in flight or, with a limit, waiting.
    let measure = Limit { requests: None, duration_s: Some(10.0) };
    let limits = Limits { warmup: Limit::default(), measure };
    for limit in [None, Some(32)] {
        let mut load = load(&open(ArrivalSpec::Poisson { rate_per_s: 2000.0 }, limit), &workload(), &limits);
        drive(&mut load, &mut single_server(1e6, 9), |_, _| {});
        let backlog = load.backlog();
        let left = backlog.final_waiting + load.in_flight() as u64;
        assert!((left as f64 / 10_000.0 - 1.0).abs() < 0.1, "{limit:?}: {backlog:?}");
        assert_eq!(backlog.final_waiting == 0, limit.is_none());
    }
}

#[test]
fn far_more_than_is_served_is_reckoned_and_costs_little_to_look_at() {
    // A thousand million a second for a second: counting them all at the first late poll would take a minute.
    let measure = Limit { requests: None, duration_s: Some(1.0) };
    let limits = Limits { warmup: Limit::default(), measure };
    let mut load = load(&open(ArrivalSpec::Poisson { rate_per_s: 1e9 }, Some(8)), &workload(), &limits);
    drive(&mut load, &mut single_server(1e6, 9), |load, _| assert!(load.in_flight() <= 8));
    let (backlog, served) = (load.backlog(), load.recorder().all().requests);
    assert!((900..1100).contains(&served), "{served}");
    assert!((backlog.final_waiting as f64 / 1e9 - 1.0).abs() < 0.01, "{backlog:?}");
    assert!(backlog.max_waiting >= backlog.final_waiting, "{backlog:?}");
}

#[test]
fn a_late_driver_is_charged_for_its_lateness() {
    let mut load = load(&open(ArrivalSpec::Uniform { rate_per_s: 1000.0 }, None), &workload(), &requests(0, 100));
    assert!(load.poll_request(Instant::ZERO).is_none());
    assert_eq!(load.poll_timeout(), Some(Instant::from_ns(MS)));
    // Polled 4.5 ms late: five are due by then, the first of them for 4.5 ms.
    let late = Instant::from_ns(5 * MS + MS / 2);
    let tags: Vec<_> = std::iter::from_fn(|| load.poll_request(late)).map(|r| r.tag).collect();
    assert_eq!(tags, [0, 1, 2, 3, 4]);
    assert_eq!((load.backlog().max_delay_ns, load.backlog().max_waiting), (4 * MS + MS / 2, 5));
    load.handle_done(Instant::from_ns(7 * MS), 0, true);
    let all = load.recorder().all();
    assert_eq!((all.response.sum_ns(), all.service.sum_ns()), (6 * u128::from(MS), u128::from(MS + MS / 2)));
}
