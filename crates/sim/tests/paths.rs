//! Stations between client and disk: what a request pays, who waits for whom, and what the totals say.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "numbers here are small"
)]

mod common;

use common::{closed, fixed, mean_us, random, rate, requests, station, visit};
use raidlab_array::{Rotation, Tree};
use raidlab_device::DeviceSpec;
use raidlab_load::{ArrivalSpec, LoadSpec};
use raidlab_sim::{run, HostSpec, ParitySpec, PathSpec, Phase, SimConfig, SimResult, VisitKind, VisitSpec};
use raidlab_types::KIB;

/// One fixed disk of 100 us, one request of `bytes` at a time.
fn lone(read_fraction: f64, bytes: u64, path: PathSpec) -> SimConfig {
    let mut config = closed(Tree::member(), fixed(100.0), random(read_fraction, bytes), 1);
    config.limits = requests(0, 500);
    config.path = path;
    config
}

#[test]
fn a_lone_request_pays_each_visit_once() {
    let path = PathSpec {
        stations: vec![station("link", 1), station("bus", 1)],
        request_path: vec![
            visit("link", Phase::Command, 3.0, None),
            visit("link", Phase::Data, 2.0, Some(1000.0)),
            visit("link", Phase::Status, 1.0, None),
        ],
        member_path: vec![
            visit("bus", Phase::Command, 10.0, None),
            visit("bus", Phase::Data, 0.0, Some(100.0)),
            VisitSpec { on: VisitKind::Write, ..visit("bus", Phase::Status, 7.0, None) },
        ],
        ..PathSpec::default()
    };
    // 64 KiB, which no window of the array cuts in two, take 65.536 us at 1000 MB/s and ten times that at 100 MB/s.
    for (read_fraction, status) in [(1.0, 0.0), (0.0, 7.0)] {
        let result = run(&lone(read_fraction, 64 * KIB, path.clone())).unwrap();
        let expected = 3.0 + 2.0 + 65.536 + 1.0 + 10.0 + 655.36 + status + 100.0;
        assert!((mean_us(&result) - expected).abs() < 0.01, "{} us against {expected}", mean_us(&result));
        let busy: Vec<u64> = result.stations.iter().map(|s| s.busy_ns / 500).collect();
        assert_eq!(busy, [71_536, 665_360 + status as u64 * 1000]);
        assert_eq!(result.stations.iter().map(|s| s.wait_ns).sum::<u64>(), 0);
        assert_eq!(
            (result.stations[0].visits, result.stations[1].visits),
            (1500, 1000 + 500 * u64::from(status > 0.0))
        );
    }
}

#[test]
fn quanta_keep_stations_busy_side_by_side() {
    let data = |name| visit(name, Phase::Data, 0.0, Some(100.0));
    let mut path = PathSpec {
        stations: vec![station("a", 1), station("b", 1)],
        member_path: vec![data("a"), data("b")],
        ..PathSpec::default()
    };
    let bytes = 1024 * KIB;
    let whole = bytes as f64 / 100.0;
    assert!((mean_us(&run(&lone(0.0, bytes, path.clone())).unwrap()) - (2.0 * whole + 100.0)).abs() < 0.1);
    path.transfer_quantum_bytes = Some(64 * KIB);
    // The second station starts when the first quantum has left the first one.
    let expected = whole + whole / 16.0 + 100.0;
    for read_fraction in [0.0, 1.0] {
        let result = run(&lone(read_fraction, bytes, path.clone())).unwrap();
        assert!((mean_us(&result) - expected).abs() < 0.1, "{} us against {expected}", mean_us(&result));
    }
}

#[test]
fn a_short_transfer_gets_between_the_quanta_of_a_long_one() {
    // Two disks behind one bus; long writes to one, short ones to the other, both always outstanding.
    let response = |quantum: Option<u64>| {
        let mut config =
            closed(Tree::Independent { children: vec![Tree::member(); 2] }, fixed(1.0), random(0.0, KIB), 2);
        config.workload.size =
            raidlab_load::SizeSpec::Table { bytes: vec![4 * KIB, 4096 * KIB], weights: vec![0.5, 0.5] };
        config.path = PathSpec {
            stations: vec![station("bus", 1)],
            member_path: vec![visit("bus", Phase::Data, 0.0, Some(100.0))],
            transfer_quantum_bytes: quantum,
            ..PathSpec::default()
        };
        let result = run(&config).unwrap();
        assert!(result.stations[0].busy_ns as f64 / result.recorder.elapsed().as_ns() as f64 > 0.99);
        result.recorder.all().response.percentile_ns(25.0)
    };
    let (whole, quanta) = (response(None), response(Some(16 * KIB)));
    assert!(quanta * 20 < whole, "a short one waits {quanta} ns with quanta, {whole} ns without");
}

/// A disk that reads ahead into its buffer and has a bus of 0.1 ms a sector.
fn disk_with_a_bus() -> DeviceSpec {
    let mut spec = serde_json::to_value(common::zoned_disk()).unwrap();
    spec["bus"] = serde_json::json!({"read_sector_ms": 0.1, "write_sector_ms": 0.1});
    spec["buffer"] = serde_json::json!({"segments": 2, "segment_sectors": 512, "read_ahead": "segment"});
    serde_json::from_value(spec).unwrap()
}

#[test]
fn members_on_one_bus_share_what_it_carries() {
    // Reads of 64 KiB, 12.8 ms on the bus, which is about as long as the arm takes to get there: four disks want twice of it.
    let mut config =
        closed(Tree::Independent { children: vec![Tree::member(); 4] }, disk_with_a_bus(), random(1.0, 64 * KIB), 32);
    config.limits = requests(100, 2000);
    let bus = |name: &str, only: Vec<u32>| VisitSpec { only: Some(only), ..visit(name, Phase::Bus, 0.0, None) };
    let rates =
        [vec![bus("a", vec![0, 1, 2, 3])], vec![bus("a", vec![0, 1]), bus("b", vec![2, 3])]].map(|member_path| {
            config.path =
                PathSpec { stations: vec![station("a", 1), station("b", 1)], member_path, ..PathSpec::default() };
            let result = run(&config).unwrap();
            let used: Vec<f64> =
                result.stations.iter().map(|s| s.busy_ns as f64 / result.recorder.elapsed().as_ns() as f64).collect();
            (rate(&result), used, result.stations[0].wait_ns)
        });
    let [(one, used_one, waited), (two, used_two, _)] = rates;
    assert!(one <= 1e3 / 12.8 * 1.001, "{one} a second is more than the bus carries");
    assert!(used_one[0] > 0.97 && used_one[0] <= 1.0 && used_one[1] == 0.0, "{used_one:?}");
    assert!(waited > 0);
    assert!(two > 1.2 * one && used_two.iter().all(|&used| used > 0.5), "{two} against {one}, {used_two:?}");
}

#[test]
fn a_bus_is_of_members_and_says_nothing_else() {
    let refused = |change: &dyn Fn(&mut PathSpec)| {
        let mut config = closed(Tree::raid0(2, 64 * KIB), disk_with_a_bus(), random(1.0, 4096), 1);
        config.path = PathSpec {
            stations: vec![station("a", 1), station("b", 1), station("c", 2)],
            member_path: vec![visit("a", Phase::Bus, 0.0, None)],
            ..PathSpec::default()
        };
        change(&mut config.path);
        run(&config).map(|_| ()).unwrap_err().to_string()
    };
    let begins = |change: &dyn Fn(&mut PathSpec), key: &str| {
        let error = refused(change);
        assert!(error.starts_with(key), "{error} is not about {key}");
    };
    begins(&|path| path.request_path.push(visit("b", Phase::Bus, 0.0, None)), "path.request_path[0].phase");
    begins(&|path| path.member_path[0].cost_us = 1.0, "path.member_path[0].phase");
    begins(&|path| path.member_path[0].mb_s = Some(10.0), "path.member_path[0].phase");
    begins(&|path| path.member_path[0].station = "c".into(), "path.member_path[0].station");
    begins(&|path| path.member_path.push(visit("a", Phase::Data, 0.0, Some(1.0))), "path.member_path[0].station");
    begins(&|path| path.member_path.push(visit("b", Phase::Bus, 0.0, None)), "path.member_path[1].phase");
    let mut config = closed(Tree::member(), fixed(10.0), random(1.0, 4096), 1);
    config.path = PathSpec {
        stations: vec![station("a", 1)],
        member_path: vec![visit("a", Phase::Bus, 0.0, None)],
        ..PathSpec::default()
    };
    assert!(run(&config).unwrap_err().to_string().starts_with("members[0].bus"));
}

#[test]
fn the_slowest_station_is_the_limit_and_is_always_busy() {
    // Four disks of 100 us behind a bus that takes 50 us an operation: 20,000 a second, not 40,000.
    let mut config = closed(Tree::raid0(4, 64 * KIB), fixed(100.0), random(1.0, 4096), 64);
    let bus = |servers| PathSpec {
        stations: vec![station("bus", servers)],
        member_path: vec![visit("bus", Phase::Status, 50.0, None)],
        ..PathSpec::default()
    };
    config.path = bus(1);
    let result = run(&config).unwrap();
    assert!((rate(&result) / 20_000.0 - 1.0).abs() < 0.001, "{}", rate(&result));
    let share = result.stations[0].busy_ns as f64 / result.recorder.elapsed().as_ns() as f64;
    assert!((0.999..=1.0).contains(&share), "{share}");
    config.path = bus(4);
    assert!((rate(&run(&config).unwrap()) / 40_000.0 - 1.0).abs() < 0.02, "two servers' worth is enough");
}

/// Erlang's C: the mean wait in M/M/c needs exponential costs; with c servers of equal cost and Poisson arrivals the wait
/// lies between half of that and all of it, and is exact for one server (Pollaczek and Khinchine).
#[test]
fn a_station_waits_as_theory_says() {
    for rho in [0.3, 0.7, 0.9] {
        let mut config = lone(1.0, 4096, PathSpec::default());
        config.devices = vec![fixed(0.001)];
        config.path = PathSpec {
            stations: vec![station("link", 1)],
            request_path: vec![visit("link", Phase::Command, 100.0, None)],
            ..PathSpec::default()
        };
        let arrival = ArrivalSpec::Poisson { rate_per_s: rho * 10_000.0 };
        config.load = LoadSpec::Open { arrival, max_in_flight: None };
        config.limits = requests(20_000, 1_000_000);
        let expected = 100.0 + 100.0 * rho / (2.0 * (1.0 - rho));
        let found = mean_us(&run(&config).unwrap());
        assert!((found / expected - 1.0).abs() < 0.03, "rho {rho}: {found} us against {expected}");
    }
}

#[test]
fn visits_can_be_for_some_members_only_and_parity_can_have_a_station_of_its_own() {
    let mut config =
        closed(Tree::parity(1, 4, 64 * KIB, Rotation::LeftSymmetric), fixed(100.0), random(0.0, 4 * KIB), 1);
    config.limits = requests(0, 400);
    config.host = HostSpec { cpus: 1, access_us: 1.0, ..HostSpec::default() };
    config.path = PathSpec {
        stations: vec![station("bus 0", 1), station("bus 1", 1), station("xor", 1)],
        member_path: vec![
            VisitSpec { only: Some(vec![0, 1]), ..visit("bus 0", Phase::Command, 5.0, None) },
            VisitSpec { only: Some(vec![2, 3]), ..visit("bus 1", Phase::Command, 5.0, None) },
        ],
        parity: Some(ParitySpec { station: "xor".into(), us_per_kib: 2.0 }),
        ..PathSpec::default()
    };
    let result = run(&config).unwrap();
    let of = |name: &str| result.stations.iter().find(|s| s.name == name).unwrap();
    let operations: u64 = result.members.iter().map(|m| m.totals.reads + m.totals.writes).sum();
    assert_eq!(operations, 1600, "a read and a write each of data and parity");
    assert_eq!(of("host cpu").visits, operations);
    assert_eq!(of("bus 0").visits + of("bus 1").visits, operations);
    let first: u64 = result.members[..2].iter().map(|m| m.totals.reads + m.totals.writes).sum();
    assert_eq!(of("bus 0").visits, first);
    // Old data, old parity and new data: 12 KiB read by each computation.
    assert_eq!((of("xor").visits, of("xor").busy_ns), (400, 400 * 24_000));
}

#[test]
fn what_of_the_hosts_work_is_parity_is_told_apart() {
    let tree = || Tree::parity(1, 4, 64 * KIB, Rotation::LeftSymmetric);
    let mut config = closed(tree(), fixed(100.0), random(0.0, 4 * KIB), 1);
    config.limits = requests(0, 400);
    config.host = HostSpec { cpus: 2, request_us: 3.0, parity_us_per_kib: 2.0, ..HostSpec::default() };
    let result = run(&config).unwrap();
    let busy: Vec<(&str, u64)> = result.stations.iter().map(|s| (s.name.as_str(), s.busy_ns)).collect();
    assert_eq!(busy, [("host cpu", 400 * 27_000), ("host cpu: parity", 400 * 24_000)]);
    // Reads compute nothing, so there is nothing to tell apart.
    config.workload = random(1.0, 4 * KIB);
    assert_eq!(run(&config).unwrap().stations.len(), 1);
}

#[test]
fn mistakes_name_their_key() {
    let good = || PathSpec { stations: vec![station("bus", 1)], ..PathSpec::default() };
    let cases: Vec<(&str, PathSpec)> = vec![
        ("path.station[0].servers", PathSpec { stations: vec![station("bus", 0)], ..good() }),
        ("path.station[1].name", PathSpec { stations: vec![station("bus", 1), station("bus", 1)], ..good() }),
        ("path.station[0].name", PathSpec { stations: vec![station("host cpu", 1)], ..good() }),
        (
            "path.member_path[0].station",
            PathSpec { member_path: vec![visit("boat", Phase::Data, 1.0, None)], ..good() },
        ),
        ("path.request_path[0].cost", PathSpec { request_path: vec![visit("bus", Phase::Data, -1.0, None)], ..good() }),
        (
            "path.request_path[0].mb_s",
            PathSpec { request_path: vec![visit("bus", Phase::Data, 1.0, Some(0.0))], ..good() },
        ),
        (
            "path.request_path[0].mb_s",
            PathSpec { request_path: vec![visit("bus", Phase::Status, 1.0, Some(5.0))], ..good() },
        ),
        (
            "path.member_path[0].only",
            PathSpec {
                member_path: vec![VisitSpec { only: Some(vec![1]), ..visit("bus", Phase::Data, 1.0, None) }],
                ..good()
            },
        ),
        ("path.transfer_quantum", PathSpec { transfer_quantum_bytes: Some(0), ..good() }),
        (
            "path.parity.station",
            PathSpec { parity: Some(ParitySpec { station: "x".into(), us_per_kib: 1.0 }), ..good() },
        ),
    ];
    for (key, path) in cases {
        assert_eq!(run(&lone(1.0, 4096, path)).unwrap_err().key, key);
    }
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let mut config = closed(Tree::raid10(3, 64 * KIB), fixed(100.0), random(0.5, 8 * KIB), 16);
    config.path = PathSpec {
        stations: vec![station("bus", 2)],
        member_path: vec![visit("bus", Phase::Data, 1.0, Some(50.0))],
        transfer_quantum_bytes: Some(KIB),
        ..PathSpec::default()
    };
    let figures = |result: SimResult| (result.events, result.recorder.elapsed(), result.stations[0].busy_ns);
    assert_eq!(figures(run(&config).unwrap()), figures(run(&config).unwrap()));
}

#[test]
fn looks_at_the_clock_are_for_hosts_that_merge() {
    let with = |merge_bytes, look_us| {
        let mut config = lone(1.0, 4096, PathSpec::default());
        config.policy.merge_bytes = merge_bytes;
        config.host.look_us = look_us;
        run(&config).map(|result| mean_us(&result))
    };
    for (merge_bytes, look_us) in [(0, 0.256), (1 << 20, -1.0)] {
        assert_eq!(with(merge_bytes, look_us).unwrap_err().key, "host.look");
    }
    // Of a disk of 100 us: what the interrupt is late and the request begins behind.
    let (without, looking) = (with(1 << 20, 0.0).unwrap(), with(1 << 20, 0.256).unwrap());
    assert!((100.0..100.1).contains(&without) && (100.1..101.5).contains(&looking), "{without}, {looking}");
}
