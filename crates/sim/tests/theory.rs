//! What theory says of simple systems, and what must hold of every system.
//!
//! Statistical bounds: fixed seeds; each tolerance is at least four standard errors of the quantity at the stated number
//! of requests, so a change of seed fails by chance less than once in ten thousand.

#![allow(clippy::cast_precision_loss, reason = "numbers here are small")]

mod common;

use common::{closed, device, fixed, random, rate, requests, workload};
use raidlab_array::{MirrorRead, Rotation, Tree};
use raidlab_load::{ArrivalSpec, LoadSpec};
use raidlab_sim::{run, HostSpec, SimConfig};

const CHUNK: u64 = 64 << 10;

#[test]
fn one_outstanding_request_takes_the_service_time() {
    let result = run(&closed(Tree::member(), fixed(100.0), random(1.0, 4096), 1)).unwrap();
    let all = result.recorder.all();
    assert_eq!((all.requests, all.response.mean_ns()), (20_000, 100_000.0));
    assert_eq!(rate(&result), 10_000.0);
}

/// Pollaczek and Khinchine: the mean wait of M/D/1 is rho s / (2 (1 - rho)).
#[test]
fn m_d_1_waits_as_pollaczek_and_khinchine_say() {
    for rho in [0.3, 0.6, 0.8] {
        let mut config = closed(Tree::member(), fixed(1000.0), random(1.0, 4096), 1);
        let arrival = ArrivalSpec::Poisson { rate_per_s: rho * 1000.0 };
        config.load = LoadSpec::Open { arrival, max_in_flight: None };
        config.limits = requests(20_000, 600_000);
        let mean_ms = run(&config).unwrap().recorder.all().response.mean_ns() / 1e6;
        let expected = 1.0 + rho / (2.0 * (1.0 - rho));
        assert!((mean_ms / expected - 1.0).abs() < 0.02, "rho {rho}: {mean_ms} ms against {expected}");
    }
}

/// Little's law: what is in flight on average is the rate times the mean response time.
#[test]
fn littles_law_holds() {
    for tree in [Tree::raid0(4, CHUNK), Tree::raid10(3, CHUNK), Tree::parity(2, 6, CHUNK, Rotation::LeftSymmetric)] {
        let result = run(&closed(tree, device("hdd-7200-bare"), random(0.5, 8192), 16)).unwrap();
        let predicted = rate(&result) * result.recorder.all().response.mean_ns() / 1e9;
        // Requests that straddle the ends of the window: at most 2 x 16 of 20,000.
        assert!((result.recorder.mean_in_flight() / predicted - 1.0).abs() < 0.005);
    }
}

#[test]
fn members_do_what_counting_says() {
    // Accesses per request: one read and one write a copy; RAID 5 two and two, RAID 6 three and three.
    let parity = |n, members| Tree::parity(n, members, CHUNK, Rotation::LeftSymmetric);
    for (tree, reads, writes) in
        [(Tree::raid0(4, CHUNK), 0, 1), (Tree::raid10(2, CHUNK), 0, 2), (parity(1, 5), 2, 2), (parity(2, 7), 3, 3)]
    {
        let mut config = closed(tree, fixed(10.0), random(0.0, 4096), 1);
        config.limits = requests(0, 5000);
        let result = run(&config).unwrap();
        let sum = |f: fn(&raidlab_device::Totals) -> u64| result.members.iter().map(|m| f(&m.totals)).sum::<u64>();
        assert_eq!((sum(|t| t.reads), sum(|t| t.writes)), (reads * 5000, writes * 5000));
    }
}

/// Small random requests at saturation, per disk, relative to RAID 0: the simple access-count model (Chen et al. 1990).
#[test]
fn saturated_levels_relate_as_accesses_do() {
    let per_disk = |tree: Tree, reads: f64| {
        let disks = tree.leaves() as f64;
        let mut config = closed(tree, device("hdd-7200-bare"), random(reads, 8192), 256);
        // The nearest copy would gain by shorter seeks, which the simple model does not know.
        config.policy.mirror_read = MirrorRead::ShortestQueue;
        rate(&run(&config).unwrap()) / disks
    };
    let raid5 = || Tree::parity(1, 5, CHUNK, Rotation::LeftSymmetric);
    let (reads, writes) = (per_disk(Tree::raid0(4, CHUNK), 1.0), per_disk(Tree::raid0(4, CHUNK), 0.0));
    let relative = |tree, read: f64| per_disk(tree, read) / if read == 1.0 { reads } else { writes };
    for (what, found, low, high) in [
        ("RAID 5 small writes", relative(raid5(), 0.0), 0.18, 0.30),
        ("RAID 10 small writes", relative(Tree::raid10(4, CHUNK), 0.0), 0.45, 0.55),
        ("RAID 5 small reads", relative(raid5(), 1.0), 0.95, 1.10),
        ("RAID 10 small reads", relative(Tree::raid10(4, CHUNK), 1.0), 0.95, 1.15),
    ] {
        assert!((low..=high).contains(&found), "{what}: {found}");
    }
}

#[test]
fn a_seed_gives_one_result() {
    let config = |seed| {
        let mut config = closed(Tree::raid10(3, CHUNK), device("hdd-7200-bare"), random(0.7, 8192), 24);
        config.seed = seed;
        config
    };
    let digest = |seed| {
        let result = run(&config(seed)).unwrap();
        let columns: Vec<(u64, u64)> = result.recorder.all().response.columns().collect();
        (result.recorder.elapsed(), result.events, columns)
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}

#[test]
fn a_request_issues_its_operations_in_turn() {
    // Eight accesses of 1 ms, each issued 3 ms after the one before: the last ends at 7 x 3 + 1 ms.
    let mut config = closed(Tree::raid0(8, CHUNK), fixed(1000.0), random(1.0, 8 * CHUNK), 1);
    config.host = HostSpec { cpus: 2, issue_us: 3000.0, ..HostSpec::default() };
    config.limits = requests(0, 100);
    // The work after the last access delays nothing of that request, but the next one's start.
    let result = run(&config).unwrap();
    let mean_ms = result.recorder.all().response.mean_ns() / 1e6;
    assert!((mean_ms - 22.0).abs() < 0.01, "{mean_ms}");
    assert_eq!(result.stations[0].servers, 2);
}

#[test]
fn the_host_limits_when_it_is_the_bottleneck() {
    let mut config = closed(Tree::raid0(4, CHUNK), fixed(10.0), random(1.0, 4096), 64);
    config.host = HostSpec { cpus: 2, access_us: 50.0, ..HostSpec::default() };
    let found = rate(&run(&config).unwrap());
    assert!((found / 40_000.0 - 1.0).abs() < 0.01, "two processors at 50 us an access: {found}");
}

#[test]
fn mistakes_name_the_key() {
    let base = || closed(Tree::raid0(4, CHUNK), fixed(10.0), random(1.0, 4096), 4);
    let key = |config| run(&config).unwrap_err().key;
    let mut config = base();
    config.missing = vec![9];
    assert_eq!(key(config), "missing[0]");
    let mut config = base();
    config.devices = vec![fixed(1.0), fixed(1.0)];
    assert_eq!(key(config), "members");
    let mut config = base();
    config.host.access_us = f64::NAN;
    assert_eq!(key(config), "host.access");
    let mut config = base();
    config.workload = workload(r#"{"size": {"kind": "exponential", "mean": 1e15}, "address": {"kind": "uniform"}}"#);
    assert_eq!(key(config), "workload.size.mean");
}

#[test]
fn members_on_one_device_share_its_time() {
    let on_one = |tree, read_fraction, depth| {
        let config = closed(tree, fixed(100.0), random(read_fraction, 4096), depth);
        let result = run(&SimConfig { area_bytes: Some(1 << 26), ..config }).unwrap();
        assert_eq!(result.members.len(), 1, "there is one device");
        let busy = result.members[0].totals.busy_ns as f64 / result.recorder.elapsed().as_ns() as f64;
        assert!((busy - 1.0).abs() < 1e-3, "it is busy {busy} of the time");
        rate(&result)
    };
    let raid5 = || Tree::parity(1, 4, CHUNK, Rotation::LeftSymmetric);
    // Of four members a small write reads two and writes two, whichever way its parity is had.
    let cases = [
        (Tree::raid0(4, CHUNK), 1.0, 1.0),
        (Tree::raid10(2, CHUNK), 1.0, 1.0),
        (Tree::raid10(2, CHUNK), 0.0, 2.0),
        (raid5(), 1.0, 1.0),
        (raid5(), 0.0, 4.0),
    ];
    for (tree, read_fraction, operations) in cases {
        let found = on_one(tree, read_fraction, 16);
        assert!((found * operations / 10_000.0 - 1.0).abs() < 1e-3, "{found} a second, {operations} operations each");
    }
}

/// The copies of a mirror on one disk lie half a disk apart, so a stream of writes moves the arm for each.
#[test]
fn members_on_one_disk_lie_apart() {
    let text = r#"{"read": 0, "size": {"kind": "fixed", "bytes": 65536}, "address": {"kind": "sequential"}}"#;
    let mirror = closed(Tree::raid1(2), device("hdd-7200-bare"), workload(text), 1);
    let apart = run(&mirror).unwrap();
    let half = apart.user_bytes / 2;
    let area_bytes = half - half % (1 << 20);
    let on_one = run(&SimConfig { area_bytes: Some(area_bytes), ..mirror }).unwrap();
    assert!(rate(&on_one) < 0.5 * rate(&apart), "{} and {} a second", rate(&on_one), rate(&apart));
    assert_eq!(on_one.user_bytes, area_bytes);
    let seeks = |result: &raidlab_sim::SimResult| result.members.iter().map(|one| one.totals.seek_ns).sum::<u64>();
    assert!(seeks(&on_one) > 10 * seeks(&apart));
}

#[test]
fn members_on_one_device_do_not_fail_alone() {
    let mut config = closed(Tree::raid0(2, CHUNK), fixed(100.0), random(1.0, 4096), 1);
    config.area_bytes = Some(1 << 20);
    config.policy.merge_bytes = 1 << 20;
    assert_eq!(run(&config).unwrap_err().key, "policy");
    config.policy.merge_bytes = 0;
    config.devices = vec![fixed(100.0), fixed(100.0)];
    assert_eq!(run(&config).unwrap_err().key, "members");
    config.devices.truncate(1);
    for bytes in [0, 513, u64::MAX] {
        config.area_bytes = Some(bytes);
        assert_eq!(run(&config).unwrap_err().key, "area_bytes");
    }
}
