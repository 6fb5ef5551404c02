//! Members that fail while the load runs, and new ones that are rebuilt beside it: every byte is verified afterwards.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "small numbers"
)]

mod common;

use common::{every_level, mixed, requests, run, Place};
use raidlab_array::{MemberEventSpec, RebuildSpec, RebuildThrottle, Tree};
use raidlab_device::DeviceSpec;
use raidlab_live::{EmulatedContent, Emulation, LiveConfig, LiveResult, TargetSpec};
use raidlab_types::{CounterRng, Seed, KIB, MIB};

const CHUNK: u64 = 64 * KIB;
const MEMBER: u64 = 2 * MIB;

/// One member fails after so many milliseconds, and another takes its place after some more.
fn failing(config: LiveConfig, leaf: u32, at_ms: f64, after_ms: f64, throttle: RebuildThrottle) -> LiveConfig {
    let ns = |ms: f64| (ms * 1e6) as u64;
    let rebuild = RebuildSpec { throttle, after: ns(after_ms), watch: Some(0), unit: None };
    // A machine that stalls must not find the load over before the member has failed: it ends when all is rebuilt.
    LiveConfig {
        events: vec![MemberEventSpec::failure(ns(at_ms), leaf)],
        rebuild: Some(rebuild),
        limits: requests(u64::MAX >> 1),
        ..config
    }
}

/// Everything that was written is there, and the new member is whole.
fn assert_whole(result: &LiveResult, what: &str) {
    assert!(result.stopped_by.is_none(), "{what}: {:?}", result.stopped_by);
    let verify = result.verify.as_ref().expect("contents were verified");
    assert_eq!(verify.mismatch_count, 0, "{what}: {:?}", verify.mismatches);
    assert!(verify.sectors_checked > 0, "{what}");
    let [rebuild] = &result.rebuilds[..] else { panic!("{what}: {:?}", result.rebuilds) };
    assert!(rebuild.is_over && rebuild.failed_ns.is_some(), "{what}: {rebuild:?}");
    let failed = result.recorder.read().failed + result.recorder.write().failed;
    assert_eq!(failed, 0, "{what}: requests failed");
}

fn redundant() -> Vec<(String, Tree)> {
    every_level(CHUNK).into_iter().filter(|(_, tree)| tree.tolerance() > 0).collect()
}

/// So many random moments for random members of each level in turn.
fn moments(count: usize, seed: u64) {
    let (levels, place) = (redundant(), Place::new());
    let mut draws: CounterRng = Seed::new(seed).named("moments").draws();
    for moment in 0..count {
        let (name, tree) = &levels[moment % levels.len()];
        let leaf = (draws.next_u64() % tree.leaves() as u64) as u32;
        let at_ms = (draws.next_u64() % 20_000) as f64 / 1e3;
        let after_ms = (draws.next_u64() % 10_000) as f64 / 1e3;
        let throttle =
            [RebuildThrottle::Share { fraction: 1.0 }, RebuildThrottle::Rate { kib_s: 20_000.0 }][moment % 2];
        let config = mixed(tree.clone(), place.files(tree.leaves(), MEMBER));
        let mut config = LiveConfig { seed: draws.next_u64(), ..failing(config, leaf, at_ms, after_ms, throttle) };
        // Less than a chunk, more than one, or as it comes.
        let unit = [None, Some(CHUNK / 4), Some(3 * CHUNK)][moment % 3];
        config.rebuild = config.rebuild.map(|rebuild| RebuildSpec { unit, ..rebuild });
        let what = format!("moment {moment}, {name}: member {leaf} at {at_ms} ms, a new one after {after_ms} ms");
        assert_whole(&run(&config), &what);
    }
}

#[test]
fn a_member_vanishes_at_random_moments_of_every_level() {
    moments(redundant().len(), 1);
}

#[test]
#[ignore = "slow"]
fn two_hundred_random_moments() {
    moments(200, 2);
}

#[test]
fn an_emulated_member_is_rebuilt() {
    let device: DeviceSpec = serde_json::from_str(
        r#"{"kind":"fixed","capacity_bytes":2097152,"sector_bytes":4096,"read_us":20.0,"write_us":20.0,"servers":1}"#,
    )
    .expect("a device");
    let member = TargetSpec::Emulated { device: Box::new(device), content: EmulatedContent::Memory };
    let tree = Tree::parity(2, 6, CHUNK, raidlab_array::Rotation::LeftSymmetric);
    let config = failing(mixed(tree, vec![member]), 3, 5.0, 5.0, RebuildThrottle::Share { fraction: 1.0 });
    assert_whole(&run(&LiveConfig { emulation: Emulation::default(), ..config }), "emulated");
}

#[test]
fn the_load_goes_on_where_none_takes_the_place() {
    let tree = Tree::parity(1, 4, CHUNK, raidlab_array::Rotation::LeftSymmetric);
    let config = mixed(tree, vec![TargetSpec::Memory { size_bytes: MEMBER }]);
    let config = LiveConfig { events: vec![MemberEventSpec::failure(0, 1)], limits: requests(3000), ..config };
    let result = run(&config);
    assert!(result.verify.as_ref().is_some_and(|verify| verify.mismatch_count == 0));
    let [rebuild] = &result.rebuilds[..] else { panic!("{:?}", result.rebuilds) };
    assert!(rebuild.failed_ns.is_some() && rebuild.begun_ns.is_none() && !rebuild.is_over, "{rebuild:?}");
}

#[test]
fn a_member_that_fails_before_another_is_rebuilt_loses_data_and_ends_the_load() {
    let tree = Tree::parity(1, 4, CHUNK, raidlab_array::Rotation::LeftSymmetric);
    let config = mixed(tree, vec![TargetSpec::Memory { size_bytes: MEMBER }]);
    let config = failing(config, 1, 5.0, 0.0, RebuildThrottle::Rate { kib_s: 1.0 });
    let second = MemberEventSpec::failure(50_000_000, 2);
    let result = run(&LiveConfig { events: [config.events.clone(), vec![second]].concat(), ..config });
    assert!(result.stopped_by.is_none() && !result.interrupted, "{:?}", result.stopped_by);
    let loss = result.data_loss.expect("data are lost");
    assert!(loss.leaf == 2 && loss.at_ns >= second.at, "{loss:?}");
    assert!(result.rebuilds.iter().all(|place| place.failed_ns.is_some() && !place.is_over), "{:?}", result.rebuilds);
    // It is the failure that ended it, and nothing that a scrub would have found.
    assert!(result.rebuilds.iter().all(|place| place.stopped_ns.is_none()), "{:?}", result.rebuilds);
    assert_eq!(result.verify.map(|verify| verify.mismatch_count), Some(0));
}
