//! Rebuilds on the virtual clock: how long they take alone, what they leave clients, what they ask of members.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "numbers here are small"
)]

mod common;

use common::{closed, fixed, random, requests};
use raidlab_array::{
    DataLoss, MemberEventSpec, Policy, RebuildResult, RebuildSpec, RebuildThrottle, Rotation, SatOut, ScrubKind,
    SitOut, Tree,
};
use raidlab_load::{ArrivalSpec, Limit, Limits, LoadSpec};
use raidlab_sim::{run, SimConfig, SimResult};
use raidlab_types::KIB;

const CHUNK: u64 = 64 * KIB;
/// Of the devices below: 1 GiB, 100 us an operation, whatever its length.
const ROWS: u64 = (1 << 30) / CHUNK;
const OPERATION_US: f64 = 100.0;

fn rebuilding(tree: Tree, missing: Vec<u32>, throttle: RebuildThrottle) -> SimConfig {
    let config = closed(tree, fixed(OPERATION_US), random(1.0, 4096), 1);
    SimConfig { missing, rebuild: Some(RebuildSpec::at(throttle)), ..config }
}

/// No clients for so long but one that comes a thousand seconds late.
fn alone(config: SimConfig, seconds: f64) -> SimConfig {
    let limits = Limits { warmup: Limit::default(), measure: Limit { requests: None, duration_s: Some(seconds) } };
    let load = LoadSpec::Open { arrival: ArrivalSpec::Uniform { rate_per_s: 0.001 }, max_in_flight: None };
    SimConfig { limits, load, ..config }
}

fn reads_and_writes(result: &SimResult) -> Vec<(u64, u64)> {
    result.members.iter().map(|member| (member.totals.reads, member.totals.writes)).collect()
}

#[test]
fn alone_it_takes_as_long_as_its_rows() {
    let raid5 = Tree::parity(1, 5, CHUNK, Rotation::LeftSymmetric);
    let raid6 = Tree::parity(2, 6, CHUNK, Rotation::LeftSymmetric);
    for (tree, missing) in [(raid5, vec![2]), (raid6, vec![0, 3])] {
        let result = run(&alone(rebuilding(tree, missing.clone(), RebuildThrottle::Idle), 30.0)).expect("a run");
        let expected_s = ROWS as f64 * OPERATION_US / 1e6;
        for rebuild in &result.rebuilds {
            let took_s = rebuild.elapsed_ns as f64 / 1e9;
            assert!(rebuild.is_over && rebuild.rebuilt_bytes == 1 << 30, "{rebuild:?}");
            assert!((took_s / expected_s - 1.0).abs() < 0.01, "{took_s} s, {expected_s} s expected");
        }
        assert_eq!(result.rebuilds.len(), missing.len());
        for (leaf, counts) in reads_and_writes(&result).into_iter().enumerate() {
            // Of RAID 6 without two, any of the others are needed: all four.
            let expected = if missing.contains(&(leaf as u32)) { (0, ROWS) } else { (ROWS, 0) };
            assert_eq!(counts, expected, "member {leaf}");
        }
    }
}

#[test]
fn of_declustered_stripes_every_survivor_gives_the_same_small_part() {
    for (n, width) in [(5u32, 3u32), (6, 3), (7, 7)] {
        let tree = Tree::Declustered {
            width,
            parities: 1,
            spares: 0,
            chunk_bytes: CHUNK,
            children: vec![Tree::member(); n as usize],
        };
        let result = run(&alone(rebuilding(tree, vec![2], RebuildThrottle::Idle), 30.0)).expect("a run");
        let [rebuild] = result.rebuilds[..] else { panic!("{:?}", result.rebuilds) };
        // Blocks of as many rows as stripes have members; what is left of a member is unused.
        let rows = ROWS / u64::from(width) * u64::from(width);
        assert!(rebuild.is_over, "{rebuild:?}");
        let alpha = f64::from(width - 1) / f64::from(n - 1);
        for (leaf, (reads, writes)) in reads_and_writes(&result).into_iter().enumerate() {
            match leaf {
                2 => assert_eq!((reads, writes), (0, rows)),
                _ => assert!(writes == 0 && (reads as f64 / rows as f64 / alpha - 1.0).abs() < 0.01, "{leaf}: {reads}"),
            }
        }
    }
}

/// A rebuild of one of `n` members with nobody else there, beside so many distributed spares: how long it took, and what was
/// read of members and written to them.
fn rebuilt_beside_spares(n: u32, width: u32, spares: u32) -> (f64, Vec<(u64, u64)>) {
    let children = vec![Tree::member(); n as usize];
    let tree = Tree::Declustered { width, parities: 1, spares, chunk_bytes: CHUNK, children };
    let result = run(&alone(rebuilding(tree, vec![2], RebuildThrottle::Idle), 30.0)).expect("a run");
    assert!(result.rebuilds[0].is_over && result.rebuilds[0].rebuilt_bytes > 0, "{:?}", result.rebuilds);
    let counts = reads_and_writes(&result);
    if spares > 0 {
        let written = counts.iter().map(|(_, writes)| writes * CHUNK).sum::<u64>();
        let RebuildResult { rebuilt_bytes, member_bytes, .. } = result.rebuilds[0];
        assert_eq!((rebuilt_bytes, member_bytes), (written, written), "{n} {width} {spares}");
    }
    (result.rebuilds[0].elapsed_ns as f64 / 1e9, counts)
}

/// Rows in which a member has a spare chunk that is free need no rebuild, and neither its throttle nor who asks how far it
/// has come counts them.
#[test]
fn a_rate_is_of_what_is_rebuilt() {
    let throttle = RebuildThrottle::Rate { kib_s: 8192.0 };
    let rebuilt = |tree: &str, missing: Vec<u32>, seconds: f64| {
        let config = rebuilding(Tree::parse(tree).expect("a tree"), missing, throttle);
        let result = run(&alone(config, seconds)).expect("a run");
        let written: u64 = result.members.iter().map(|member| member.totals.write_bytes).sum();
        let of_rate = |place: &RebuildResult| place.rebuilt_bytes as f64 / seconds / (8192.0 * 1024.0);
        let told: Vec<f64> = result.rebuilds.iter().map(of_rate).collect();
        (told, written as f64 / seconds / (8192.0 * 1024.0))
    };
    for seconds in [5.0, 10.0] {
        let (told, written) = rebuilt("declustered(7, width=3, spares=1)", vec![2], seconds);
        assert!((told[0] - 1.0).abs() < 0.01 && (written - 1.0).abs() < 0.01, "{told:?} {written}");
        // Of two some rows are of one alone. What the first lacks where the second had the spare chunk for it, which is in
        // less than one row of ten, is told of both.
        let (told, written) = rebuilt("declustered(10, width=4, parities=2, spares=2)", vec![2, 5], seconds);
        assert!(told.iter().all(|told| (0.75..=1.01).contains(told)), "{told:?}");
        assert!((0.0..0.12).contains(&(told.iter().sum::<f64>() - written)), "{told:?} {written}");
    }
}

/// The law by which OpenZFS's dRAID is told of: the rate grows as there are more members to a stripe's.
#[test]
fn into_a_distributed_spare_it_is_as_many_times_as_fast_as_there_are_members_to_one_of_a_stripe() {
    for (n, width) in [(11, 5), (11, 10), (21, 5)] {
        let (onto_one_s, _) = rebuilt_beside_spares(n, width, 0);
        let (spread_s, counts) = rebuilt_beside_spares(n, width, 1);
        // In all rows but one of n a read of each peer and a write, over the n - 1 that are left.
        let (n, width) = (f64::from(n), f64::from(width));
        let of_each = ROWS as f64 / n;
        let expected_s = of_each * width * OPERATION_US / 1e6;
        assert!((0.999..1.01).contains(&(spread_s / expected_s)), "{n} {width}: {spread_s}, {expected_s} expected");
        assert!((onto_one_s / spread_s * width / n - 1.0).abs() < 0.01, "{n} {width}: {onto_one_s}, {spread_s}");
        for (leaf, (reads, writes)) in (0..).zip(counts) {
            let is_even = |count: u64, per_row: f64| (count as f64 / (of_each * per_row) - 1.0).abs() < 0.01;
            let is_so =
                if leaf == 2 { reads + writes == 0 } else { is_even(reads, width - 1.0) && is_even(writes, 1.0) };
            assert!(is_so, "{leaf}: {reads} and {writes}");
        }
    }
    // With more than one spare writes are less even, and the busiest member is what takes the time.
    let (took_s, counts) = rebuilt_beside_spares(17, 5, 2);
    let busiest_s = counts.iter().map(|(reads, writes)| reads + writes).max().unwrap_or(0) as f64 * OPERATION_US / 1e6;
    assert!((0.999..1.01).contains(&(took_s / busiest_s)), "{took_s}, {busiest_s}");
}

#[test]
fn a_unit_is_as_long_as_asked() {
    let raid5 = || Tree::parity(1, 5, CHUNK, Rotation::LeftSymmetric);
    for (unit, steps) in [(CHUNK / 4, 4 * ROWS), (4 * CHUNK, ROWS / 4), (3 * CHUNK, ROWS.div_ceil(3))] {
        let rebuild = Some(RebuildSpec { unit: Some(unit), ..RebuildSpec::at(RebuildThrottle::Idle) });
        let config = SimConfig { rebuild, ..rebuilding(raid5(), vec![2], RebuildThrottle::Idle) };
        let result = run(&alone(config, 30.0)).expect("a run");
        assert!(result.rebuilds[0].is_over && result.rebuilds[0].rebuilt_bytes == 1 << 30);
        for (leaf, counts) in reads_and_writes(&result).into_iter().enumerate() {
            assert_eq!(counts, if leaf == 2 { (0, steps) } else { (steps, 0) }, "{unit}: member {leaf}");
        }
    }
    for bytes in [0, CHUNK + 1, 32 << 20] {
        let rebuild = Some(RebuildSpec { unit: Some(bytes), ..RebuildSpec::at(RebuildThrottle::Idle) });
        let error =
            run(&SimConfig { rebuild, ..rebuilding(raid5(), vec![2], RebuildThrottle::Idle) }).expect_err("refused");
        assert!(error.to_string().starts_with(&format!("rebuild.unit: {bytes} bytes; accepted")), "{error}");
    }
}

#[test]
fn a_mirror_is_copied_and_a_lost_stripe_of_mirrored_ones_whole() {
    let units = (1 << 30) / (512 * KIB);
    let result = run(&alone(rebuilding(Tree::raid10(2, CHUNK), vec![3], RebuildThrottle::Idle), 30.0)).expect("a run");
    assert_eq!(reads_and_writes(&result), [(0, 0), (0, 0), (units, 0), (0, units)]);
    // One member of a stripe is lost, and with it the stripe: its other member has missed what was written.
    let result = run(&alone(rebuilding(Tree::raid01(2, CHUNK), vec![1], RebuildThrottle::Idle), 30.0)).expect("a run");
    let bytes: Vec<(u64, u64)> = result.members.iter().map(|m| (m.totals.read_bytes, m.totals.write_bytes)).collect();
    assert_eq!(bytes, [(0, 1 << 30), (0, 1 << 30), (1 << 30, 0), (1 << 30, 0)]);
}

#[test]
fn a_rate_is_kept_and_an_idle_rebuild_lets_clients_go_first() {
    let raid5 = || Tree::parity(1, 5, CHUNK, Rotation::LeftSymmetric);
    let rate = RebuildThrottle::Rate { kib_s: 102_400.0 };
    let result = run(&alone(rebuilding(raid5(), vec![2], rate), 30.0)).expect("a run");
    let took_s = result.rebuilds[0].elapsed_ns as f64 / 1e9;
    assert!((took_s / 10.24 - 1.0).abs() < 0.01, "1 GiB at 100 MiB/s: {took_s} s");
    // Clients of whom one always has a request in flight leave it nothing; half of the time is more than that. (A single
    // one leaves a gap between its requests, in which nothing is in flight.)
    let beside = |throttle| {
        let (limits, load) = (requests(0, 20_000), LoadSpec::Closed { depth: 4 });
        let config = SimConfig { limits, load, ..rebuilding(raid5(), vec![2], throttle) };
        let result = run(&config).expect("a run");
        (result.rebuilds[0].rebuilt_bytes, common::mean_us(&result))
    };
    let (idle_bytes, idle_us) = beside(RebuildThrottle::Idle);
    let (half_bytes, half_us) = beside(RebuildThrottle::Share { fraction: 0.5 });
    let (whole_bytes, whole_us) = beside(RebuildThrottle::Share { fraction: 1.0 });
    assert!(idle_bytes < half_bytes && half_bytes < whole_bytes, "{idle_bytes}, {half_bytes}, {whole_bytes} bytes");
    assert!(idle_us < half_us && half_us < whole_us, "{idle_us}, {half_us}, {whole_us} us");
}

#[test]
fn what_cannot_be_rebuilt_is_refused() {
    let refused = |config: SimConfig| run(&config).expect_err("refused").to_string();
    let raid5 = || Tree::parity(1, 5, CHUNK, Rotation::LeftSymmetric);
    let none = refused(rebuilding(raid5(), vec![], RebuildThrottle::Idle));
    assert!(none.starts_with("rebuild: no member is missing"), "{none}");
    let rate = refused(rebuilding(raid5(), vec![1], RebuildThrottle::Rate { kib_s: 0.0 }));
    assert!(rate.starts_with("rebuild.throttle.kib_s: must be above 0; accepted"), "{rate}");
}

const S: u64 = 1_000_000_000;

/// Members 1 and 3 fail at these seconds, and each has a new one half a second later.
fn two_failures(tree: Tree, at_s: [u64; 2], throttle: RebuildThrottle) -> SimConfig {
    let rebuild = RebuildSpec { throttle, after: S / 2, watch: Some(S), unit: None };
    let events = vec![MemberEventSpec::failure(at_s[0] * S, 1), MemberEventSpec::failure(at_s[1] * S, 3)];
    let config = closed(tree, fixed(OPERATION_US), random(0.5, 4096), 8);
    SimConfig { limits: requests(0, 100_000_000), events, rebuild: Some(rebuild), ..config }
}

#[test]
fn a_second_member_fails_after_the_first_is_rebuilt() {
    let raid5 = Tree::parity(1, 5, CHUNK, Rotation::LeftSymmetric);
    // In a distributed spare; the other in another, or on a new member where there is none left.
    let spared = ["declustered(6, width=5, spares=1)", "declustered(8, width=3, spares=2)"];
    let spared = spared.map(|tree| Tree::parse(tree).expect("a tree"));
    for tree in std::iter::once(raid5).chain(spared) {
        let config = two_failures(tree, [1, 20], RebuildThrottle::Share { fraction: 1.0 });
        let result = run(&config).expect("a run");
        assert_eq!(result.data_loss, None);
        assert!(result.rebuilds.iter().all(|place| place.is_over), "{:?}", result.rebuilds);
        assert_eq!((result.recorder.read().failed, result.recorder.write().failed), (0, 0));
        let last = result.rebuilds[1];
        let whole_ns = last.begun_ns.expect("a new member") + last.elapsed_ns;
        assert_eq!(result.recorder.elapsed().as_ns(), whole_ns + S);
    }
}

#[test]
fn a_second_member_that_fails_before_loses_data_and_ends_the_run() {
    let slow = RebuildThrottle::Rate { kib_s: 1000.0 };
    let raid5 = || Tree::parity(1, 5, CHUNK, Rotation::LeftSymmetric);
    let result = run(&two_failures(raid5(), [1, 3], slow)).expect("a run");
    assert_eq!(result.data_loss, Some(DataLoss { at_ns: 3 * S, leaf: 3 }));
    assert_eq!(result.recorder.elapsed().as_ns(), 3 * S);
    let first = result.rebuilds[0];
    assert!(!first.is_over && first.rebuilt_bytes > 0 && first.rebuilt_bytes < 1 << 30, "{first:?}");
    // Pairs of mirrors bear it, and so do two parities.
    for tree in [Tree::raid10(3, CHUNK), Tree::parity(2, 6, CHUNK, Rotation::LeftSymmetric)] {
        let config = SimConfig { limits: requests(0, 20_000), ..two_failures(tree, [1, 3], slow) };
        assert_eq!(run(&config).expect("a run").data_loss, None);
    }
    // Nothing is counted of a run that is over while it warms up.
    let limits = Limits { warmup: Limit { requests: None, duration_s: Some(60.0) }, measure: Limit::default() };
    let limits = Limits { measure: Limit { requests: Some(1000), duration_s: None }, ..limits };
    let result = run(&SimConfig { limits, ..two_failures(raid5(), [1, 3], slow) }).expect("a run");
    assert_eq!(result.data_loss.map(|loss| loss.at_ns), Some(3 * S));
    assert_eq!((result.recorder.all().requests, result.recorder.elapsed().as_ns()), (0, 0));
}

#[test]
fn a_failure_that_is_certain_to_lose_data_is_refused() {
    let idle = RebuildThrottle::Idle;
    let refused = |config: SimConfig| run(&config).expect_err("refused").to_string();
    let raid5 = || two_failures(Tree::parity(1, 5, CHUNK, Rotation::LeftSymmetric), [1, 1], idle);
    let early = refused(raid5());
    assert!(early.starts_with("events[1].fail: data would be lost: member 1 would still be gone then"), "{early}");
    assert!(early.ends_with("accepted: at later than 1.5 s, when a new one is in the place of member 1"), "{early}");
    let without = refused(SimConfig { rebuild: None, ..raid5() });
    assert!(without.ends_with("accepted: fewer failures, or a rebuild and this one after it"), "{without}");
    let none = refused(two_failures(Tree::raid0(4, CHUNK), [1, 9], idle));
    assert!(none.starts_with("events[0].fail: this array bears no failure; accepted"), "{none}");
    // Of three that fail, the first has to be back; of a pair of mirrors, the partner.
    let raid6 = two_failures(Tree::parity(2, 6, CHUNK, Rotation::LeftSymmetric), [1, 1], idle);
    let third = MemberEventSpec::failure(S, 0);
    let three = refused(SimConfig { events: [raid6.events.clone(), vec![third]].concat(), ..raid6 });
    assert!(three.starts_with("events[2].fail: data would be lost: members 1, 3 would still be gone"), "{three}");
}

#[test]
fn a_member_fails_under_load_and_the_run_ends_when_another_is_whole() {
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    for tree in [Tree::parity(1, 5, CHUNK, Rotation::LeftSymmetric), Tree::raid10(2, CHUNK)] {
        let throttle = RebuildThrottle::Share { fraction: 1.0 };
        let rebuild = RebuildSpec { throttle, after: ns(0.5), watch: Some(ns(1.0)), unit: None };
        let config = closed(tree, fixed(OPERATION_US), random(0.5, 4096), 8);
        let limits = requests(0, 100_000_000);
        let events = vec![MemberEventSpec::failure(ns(1.25), 1)];
        let result = run(&SimConfig { limits, events, rebuild: Some(rebuild), ..config }).expect("a run");
        let [place] = result.rebuilds[..] else { panic!("{:?}", result.rebuilds) };
        assert_eq!(place.failed_ns, Some(ns(1.25)));
        // Put in once what the old one was asked is over, which is looked at each millisecond.
        let begun_ns = place.begun_ns.expect("a new member");
        assert!((ns(1.75)..ns(1.76)).contains(&begun_ns), "{begun_ns}");
        assert!(place.is_over && place.rebuilt_bytes == 1 << 30);
        assert_eq!(result.recorder.elapsed().as_ns(), begun_ns + place.elapsed_ns + ns(1.0));
        assert_eq!((result.recorder.read().failed, result.recorder.write().failed), (0, 0));
    }
}

#[test]
fn a_slow_member_takes_as_many_times_as_long_until_it_recovers_or_is_replaced() {
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    // One request at a time on a single member, of 100 us each: 30 s at that, 10 s at a quarter of the rate.
    let config = closed(Tree::raid0(1, CHUNK), fixed(OPERATION_US), random(1.0, 4096), 1);
    let limits = Limits { warmup: Limit::default(), measure: Limit { requests: None, duration_s: Some(40.0) } };
    let events = vec![MemberEventSpec::slowness(ns(10.0), 0, 4.0), MemberEventSpec::slowness(ns(20.0), 0, 1.0)];
    let result = run(&SimConfig { limits, events: events.clone(), ..config }).expect("a run");
    let expected = (30.0 + 10.0 / 4.0) * 1e6 / OPERATION_US;
    let done = result.members[0].totals.reads as f64;
    assert!((done / expected - 1.0).abs() < 0.001, "{done} of {expected}");
    let parts = &result.members[0].totals;
    assert_eq!(parts.busy_ns, parts.overhead_ns + parts.seek_ns + parts.rotation_ns + parts.transfer_ns);
    // The new member in the place of a slow one is not slow: the rebuild takes as long as without.
    let raid5 = || Tree::parity(1, 5, CHUNK, Rotation::LeftSymmetric);
    let took_s = |events: Vec<MemberEventSpec>| {
        let config = alone(rebuilding(raid5(), vec![], RebuildThrottle::Idle), 30.0);
        let failing = [events, vec![MemberEventSpec::failure(ns(2.0), 1)]].concat();
        run(&SimConfig { events: failing, ..config }).expect("a run").rebuilds[0].elapsed_ns as f64 / 1e9
    };
    let (plain_s, slow_s) = (took_s(vec![]), took_s(vec![MemberEventSpec::slowness(ns(1.0), 1, 8.0)]));
    assert_eq!(plain_s.to_bits(), slow_s.to_bits());
    // One that has to be read for it is waited for.
    let waited_s = took_s(vec![MemberEventSpec::slowness(ns(1.0), 2, 8.0)]);
    assert!((waited_s / plain_s / 8.0 - 1.0).abs() < 0.01, "{waited_s} s after {plain_s} s");
}

#[test]
fn a_member_that_is_slow_is_read_last_and_tried_again_after_a_rest() {
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    let reading = |tree: Tree, sit_out, events| {
        let config = closed(tree, fixed(OPERATION_US), random(1.0, 4096), 8);
        let limits = Limits { warmup: Limit::default(), measure: Limit { requests: None, duration_s: Some(20.0) } };
        run(&SimConfig { limits, events, policy: Policy { sit_out, ..Policy::default() }, ..config }).expect("a run")
    };
    let sit_out = Some(SitOut { times: 2.0, hold: ns(1.0), rest: ns(10.0) });
    let slow = |leaf| MemberEventSpec::slowness(ns(2.0), leaf, 10.0);
    for tree in [Tree::parity(1, 5, CHUNK, Rotation::LeftSymmetric), Tree::raid10(2, CHUNK), Tree::raid1(2)] {
        let done = |result: &SimResult| result.recorder.all().requests as f64;
        let (plain, around) =
            (reading(tree.clone(), None, vec![slow(1)]), reading(tree.clone(), sit_out, vec![slow(1)]));
        // The slow copy of a lone mirror delays nobody who reads the other, and helps a little.
        let gain = if tree == Tree::raid1(2) { 0.9 } else { 1.1 };
        let (with, without) = (done(&around), done(&plain));
        assert!(plain.sat_out.is_empty() && with > gain * without, "{tree:?}: {with} reads, {without} without");
        // Slow from 2 s on, out from 3 s to 13 s, and again from 14 s: it is read for 4 s and some, and slowly for 2 s.
        let [first, again] = around.sat_out[..] else { panic!("{tree:?}: {:?}", around.sat_out) };
        assert!(first.leaf == 1 && again.leaf == 1 && again.ended_ns.is_none(), "{tree:?}: {:?}", around.sat_out);
        let (begun, ended) = (first.begun_ns as f64 / 1e9, first.ended_ns.expect("it was tried again") as f64 / 1e9);
        assert!(
            (begun - 3.0).abs() < 0.2 && (ended - begun - 10.0).abs() < 0.1,
            "{tree:?}: from {begun} s to {ended} s"
        );
        let slower = first.mean_ns / first.peers_ns;
        assert!((slower / 10.0 - 1.0).abs() < 0.1, "{tree:?}: {slower} times as slow");
        // One that recovers stays; without a peer, or a level that bears it, nobody sits out.
        let brief = vec![slow(1), MemberEventSpec::slowness(ns(2.8), 1, 1.0)];
        assert!(reading(tree.clone(), sit_out, brief).sat_out.is_empty(), "{tree:?}");
        let both = reading(tree.clone(), sit_out, vec![slow(0), slow(1)]);
        assert!(both.sat_out.iter().filter(|out| out.ended_ns.is_none()).count() <= 1, "{tree:?}: {:?}", both.sat_out);
    }
    assert!(reading(Tree::raid0(4, CHUNK), sit_out, vec![slow(1)]).sat_out.is_empty());
}

/// An operation that takes longer than a member is watched is told as no longer than it was seen to take.
#[test]
fn how_slow_a_member_was_is_what_was_seen() {
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    for (times, expected_s) in [(2e5, 3.0), (2e4, 2.0)] {
        let load = LoadSpec::Open { arrival: ArrivalSpec::Uniform { rate_per_s: 1000.0 }, max_in_flight: None };
        let limits = Limits { warmup: Limit::default(), measure: Limit { requests: None, duration_s: Some(8.0) } };
        let policy =
            Policy { sit_out: Some(SitOut { times: 2.0, hold: ns(3.0), rest: ns(10.0) }), ..Policy::default() };
        let events = vec![MemberEventSpec::slowness(ns(2.0), 1, times)];
        let tree = Tree::parity(1, 5, CHUNK, Rotation::LeftSymmetric);
        let config = closed(tree, fixed(OPERATION_US), random(1.0, 4096), 1);
        let result = run(&SimConfig { load, limits, events, policy, ..config }).expect("a run");
        let [SatOut { mean_ns, peers_ns, .. }] = result.sat_out[..] else { panic!("{:?}", result.sat_out) };
        let mean_s = mean_ns / 1e9;
        assert!((0.85..=1.05).contains(&(mean_s / expected_s)), "{mean_s} s of an operation of {expected_s} s");
        assert!((peers_ns / 1e3 / OPERATION_US - 1.0).abs() < 0.01, "{peers_ns} ns");
    }
}

#[test]
fn an_event_that_says_too_little_or_nonsense_is_refused() {
    let refused = |event: MemberEventSpec| {
        let config = closed(Tree::raid1(2), fixed(OPERATION_US), random(1.0, 4096), 1);
        run(&SimConfig { events: vec![event], ..config }).expect_err("refused").to_string()
    };
    let slow = MemberEventSpec::slowness(0, 1, 4.0);
    for event in [MemberEventSpec { times: None, ..slow }, MemberEventSpec { fail: Some(0), ..slow }] {
        assert!(refused(event).starts_with("events[0]: does not say what befalls which member"));
    }
    assert!(refused(MemberEventSpec::slowness(0, 7, 4.0)).starts_with("events[0].slow: there is no such member"));
    assert!(refused(MemberEventSpec::slowness(0, 1, f64::NAN)).starts_with("events[0].times: NaN"));
    assert!(refused(MemberEventSpec::slowness(0, 1, 0.5)).starts_with("events[0].times: 0.5"));
}

#[test]
fn a_scrub_takes_as_long_as_its_rows_and_keeps_its_throttle() {
    let raid6 = || Tree::parity(2, 6, CHUNK, Rotation::LeftSymmetric);
    let scrubbed = |tree: Tree, kind, throttle| {
        let config = closed(tree, fixed(OPERATION_US), random(1.0, 4096), 1);
        let events = vec![MemberEventSpec { watch: Some(0), ..MemberEventSpec::scrub(S, kind, throttle) }];
        run(&alone(SimConfig { events, ..config }, 60.0)).expect("a run")
    };
    for (kind, reads, writes) in [(ScrubKind::Check, ROWS, 0), (ScrubKind::Repair, ROWS, 0), (ScrubKind::Resync, 0, 0)]
    {
        let result = scrubbed(raid6(), kind, RebuildThrottle::Idle);
        let [scrub] = result.scrubs[..] else { panic!("{:?}", result.scrubs) };
        assert!(scrub.is_over && scrub.begun_ns == S && scrub.mismatches == 0, "{scrub:?}");
        assert_eq!((scrub.done_bytes, scrub.all_bytes), (6 << 30, 6 << 30));
        assert_eq!(result.recorder.elapsed().as_ns(), S + scrub.elapsed_ns, "the run ends with it");
        let counts = reads_and_writes(&result);
        if kind == ScrubKind::Resync {
            // Of each row four members are read and two written.
            let sums = counts.iter().fold((0, 0), |(r, w), count| (r + count.0, w + count.1));
            assert_eq!(sums, (4 * ROWS, 2 * ROWS));
            continue;
        }
        let took = scrub.elapsed_ns as f64 / (ROWS as f64 * OPERATION_US * 1e3);
        assert!((took - 1.0).abs() < 0.01, "{took} times its rows");
        assert_eq!(counts, [(reads, writes); 6]);
    }
    let rate = scrubbed(Tree::raid10(2, CHUNK), ScrubKind::Check, RebuildThrottle::Rate { kib_s: 102_400.0 });
    let took_s = rate.scrubs[0].elapsed_ns as f64 / 1e9;
    assert!((took_s / 10.24 - 1.0).abs() < 0.01, "both mirrors at once, 1 GiB at 100 MiB/s: {took_s} s");
}

#[test]
fn a_scrub_waits_until_members_are_rebuilt() {
    let raid6 = Tree::parity(2, 6, CHUNK, Rotation::LeftSymmetric);
    let throttle = RebuildThrottle::Share { fraction: 1.0 };
    let scrub = MemberEventSpec { watch: Some(0), ..MemberEventSpec::scrub(0, ScrubKind::Check, throttle) };
    let config = rebuilding(raid6, vec![2], throttle);
    let result = run(&alone(SimConfig { events: vec![scrub], ..config }, 60.0)).expect("a run");
    let (rebuild, scrub) = (result.rebuilds[0], result.scrubs[0]);
    assert!(rebuild.is_over && scrub.is_over);
    assert!(scrub.elapsed_ns > rebuild.elapsed_ns + ROWS * 100_000 * 99 / 100, "{scrub:?} beside {rebuild:?}");
}

#[test]
fn behind_mds_barrier_units_and_requests_take_turns() {
    let checked = |tree: Tree, read, resync_barrier| {
        let policy = Policy { resync_barrier, merge_bytes: 1280 * KIB, plug: true, ..Policy::default() };
        let check = MemberEventSpec::scrub(0, ScrubKind::Check, RebuildThrottle::MD);
        let measure = Limit { requests: None, duration_s: Some(60.0) };
        let limits = Limits { warmup: Limit::default(), measure };
        let config = closed(tree, fixed(5000.0), random(read, 4096), 8);
        run(&SimConfig { policy, limits, events: vec![check], ..config }).expect("a run")
    };
    // Of each unit both copies are read.
    let units = |result: &SimResult| result.scrubs[0].done_bytes as f64 / (128.0 * 1024.0);
    for read in [0.0, 1.0] {
        let result = checked(Tree::raid10(2, CHUNK), read, true);
        let a_turn = result.recorder.all().response.count() as f64 / units(&result);
        assert!((a_turn / 8.0 - 1.0).abs() < 0.01, "{a_turn} requests a unit, of a loop of eight");
        let without = checked(Tree::raid10(2, CHUNK), read, false);
        assert!(units(&without) > 5.0 * units(&result), "{} units, {}", units(&without), units(&result));
    }
}

#[test]
fn alone_md_lets_all_end_after_each_sixteenth_and_writes_superblocks() {
    let policy = Policy { resync_barrier: true, merge_bytes: 1280 * KIB, plug: true, ..Policy::default() };
    let config = rebuilding(Tree::raid1(2), vec![0], RebuildThrottle::MD);
    let disk = r#"{"kind": "fixed", "capacity_bytes": 1073741824, "read_us": 5000, "write_us": 5000,
        "scheduler": "kyber_batches"}"#;
    let devices = vec![serde_json::from_str(disk).expect("a device")];
    let result = run(&SimConfig { policy, devices, ..alone(config, 600.0) }).expect("a run");
    let [(0, writes), (reads, superblocks)] = reads_and_writes(&result)[..] else { panic!("{:?}", result.members) };
    // The first says that it begins; the steps are a unit longer than a sixteenth.
    assert_eq!(superblocks, 16);
    // Of 31 units three requests are of eight, and one of seven.
    let expected = ROWS as f64 / 7.75;
    for (what, count) in [("reads", reads), ("writes", writes - superblocks)] {
        assert!((count as f64 / expected - 1.0).abs() < 0.02, "{count} {what}, {expected} expected");
    }
}

/// Whatever superblocks say of it, which is nothing before the first sixteenth, and wherever its copies lie.
#[test]
fn what_is_told_as_rebuilt_is_what_was_written() {
    let with_barrier = Policy { resync_barrier: true, ..Policy::default() };
    let trees = ["raid1(2)", "raid10(4, chunk=64KiB)", "raid10(5, chunk=64KiB)", "raid10(4, chunk=64KiB, layout=f2)"];
    let nested = ["mirror(2*raid10(4, chunk=64KiB, layout=f2))", "raid5(4, chunk=64KiB)"];
    for (trees, policy) in [(&trees[..], with_barrier), (&nested[..], Policy::default())] {
        for tree in trees {
            let config =
                rebuilding(Tree::parse(tree).expect("a tree"), vec![1], RebuildThrottle::Rate { kib_s: 8192.0 });
            let result = run(&alone(SimConfig { policy, ..config }, 5.0)).expect("a run");
            let place = result.rebuilds[0];
            let written = result.members[1].totals.write_bytes;
            // Units in flight are written, and count once all before them are.
            let of_written = place.rebuilt_bytes as f64 / written as f64;
            assert!((0.95..=1.0).contains(&of_written) && written > 30 << 20, "{tree}: {place:?} of {written} bytes");
        }
    }
}

#[test]
fn a_check_in_the_stripe_cache_rests_for_superblocks_after_each_sixteenth() {
    let policy = Policy {
        parity_row_bytes: 4 * KIB,
        stripe_cache_size: 256,
        merge_bytes: 1280 * KIB,
        plug: true,
        ..Policy::default()
    };
    let config = closed(Tree::parity(1, 5, CHUNK, Rotation::LeftSymmetric), fixed(5000.0), random(1.0, 4096), 1);
    let disk = r#"{"kind": "fixed", "capacity_bytes": 67108864, "read_us": 5000, "write_us": 5000,
        "scheduler": "kyber_batches"}"#;
    let devices = vec![serde_json::from_str(disk).expect("a device")];
    let check = MemberEventSpec::scrub(0, ScrubKind::Check, RebuildThrottle::MD);
    let events = vec![MemberEventSpec { watch: Some(0), ..check }];
    let result = run(&alone(SimConfig { policy, devices, events, ..config }, 600.0)).expect("a run");
    // The steps are a row longer than a sixteenth, and what is left after the last is noted by its end.
    assert!(reads_and_writes(&result).iter().all(|&(_, superblocks)| superblocks == 15), "{:?}", result.members);
    // Each takes a write's time, in which nothing is read.
    let busy = result.members.iter().map(|member| member.totals.busy_ns).max().expect("members");
    let reads = result.members.iter().map(|member| member.totals.reads).max().expect("members");
    assert_eq!(busy, (reads + 15) * 5_000_000);
    assert!(result.scrubs[0].elapsed_ns >= busy, "{:?}", result.scrubs);
}
