//! Warm-ups that wait for write caches.

#![allow(clippy::cast_precision_loss, reason = "numbers here are small")]

mod common;

use common::{closed, device, random, rate, requests};
use raidlab_array::Tree;
use raidlab_sim::{run, SimConfig};

fn mirrors(read_fraction: f64, warmup: u64) -> SimConfig {
    let config = closed(Tree::raid10(6, 64 << 10), device("hdd-nearline-20tb"), random(read_fraction, 8192), 32);
    SimConfig { limits: requests(warmup, 6000), ..config }
}

#[test]
fn a_short_warm_up_that_waits_measures_what_a_long_one_does() {
    for read_fraction in [0.0, 0.7] {
        let long = rate(&run(&mirrors(read_fraction, 40_000)).expect("a run"));
        let burst = rate(&run(&mirrors(read_fraction, 500)).expect("a run"));
        let filled = rate(&run(&SimConfig { fill_caches: true, ..mirrors(read_fraction, 500) }).expect("a run"));
        assert!(burst / long > 1.15, "{read_fraction}: empty caches give {burst}, full ones {long} a second");
        assert!((filled / long - 1.0).abs() < 0.06, "{read_fraction}: {filled} a second for {long}");
    }
}

#[test]
fn where_nothing_fills_nothing_is_waited_for() {
    let elapsed = |config: &SimConfig| {
        let result = run(config).expect("a run");
        (result.recorder.all().requests, result.recorder.elapsed())
    };
    let with_warm_up = SimConfig { fill_caches: true, ..mirrors(1.0, 500) };
    let without = SimConfig { fill_caches: true, ..mirrors(0.7, 0) };
    let bare = SimConfig { devices: vec![device("hdd-7200-bare")], fill_caches: true, ..mirrors(0.7, 500) };
    for config in [with_warm_up, without, bare] {
        assert_eq!(elapsed(&config), elapsed(&SimConfig { fill_caches: false, ..config.clone() }));
    }
}

#[test]
fn a_wait_ends_where_hardly_anything_is_written_or_a_member_lacks() {
    let seldom = SimConfig { fill_caches: true, ..mirrors(0.999, 500) };
    let degraded = SimConfig { fill_caches: true, missing: vec![0], ..mirrors(0.7, 500) };
    for config in [seldom, degraded] {
        assert_eq!(run(&config).expect("a run").recorder.all().requests, 6000);
    }
}
