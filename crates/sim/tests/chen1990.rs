//! The Berkeley study's hardware at saturation and idle: the printed figures that the model was not, or was, fitted to.

#![allow(clippy::cast_precision_loss, reason = "numbers here are small")]

mod common;

use common::{closed, device, rate, requests, workload};
use raidlab_array::{ParityRead, Rotation, Tree};
use raidlab_device::PairPricing;
use raidlab_sim::{run, HostSpec, SimConfig};

const TRACK: u64 = 40 << 10;

fn config(tree: Tree, bytes: u64, read_fraction: f64, depth: u32) -> SimConfig {
    let text = format!(
        r#"{{"read": {read_fraction}, "size": {{"kind": "fixed", "bytes": {bytes}}},
            "address": {{"kind": "aligned_stripe", "stripe": {}, "chunk": {TRACK}}}}}"#,
        10 * TRACK
    );
    let mut config = closed(tree, device("original/amdahl6380"), workload(&text), depth);
    config.host = HostSpec { cpus: 2, request_us: 700.0, issue_us: 1400.0, ..HostSpec::default() };
    config.pair_pricing = PairPricing::Prepaid;
    config.policy.parity_read = ParityRead::ReadThrough;
    config
}

fn raid5() -> Tree {
    Tree::parity(1, 11, TRACK, Rotation::RightAsymmetric)
}

/// Section 7.1 and 7.3: a quarter of the printed targets of 200 and 268 ms.
#[test]
fn idle_p90() {
    for (bytes, printed_ms) in [(TRACK, 50.0), (10 * TRACK, 67.0)] {
        // Relative angles of the disks are fixed for a run, so an average over runs is needed.
        let p90 = |seed| {
            let mut config = config(Tree::raid0(10, TRACK), bytes, 1.0, 1);
            (config.seed, config.limits) = (seed, requests(100, 2000));
            run(&config).unwrap().recorder.all().response.percentile_ns(90.0) as f64 / 1e6
        };
        let mean = (0..12).map(p90).sum::<f64>() / 12.0;
        assert!((mean / printed_ms - 1.0).abs() < 0.05, "{bytes} bytes: {mean} ms, printed {printed_ms}");
    }
}

/// Throughput per disk relative to RAID 0 at saturation: 91 % for full-stripe writes, 26 to 29 % for individual ones.
#[test]
fn relative_throughput_at_saturation() {
    let per_disk = |tree: Tree, bytes: u64, depth| {
        let disks = tree.leaves() as f64;
        let mut config = config(tree, bytes, 0.0, depth);
        config.limits = requests(4000, 40_000);
        rate(&run(&config).unwrap()) / disks
    };
    let relative = |bytes, depth| per_disk(raid5(), bytes, depth) / per_disk(Tree::raid0(10, TRACK), bytes, depth);
    let full = relative(10 * TRACK, 60);
    assert!((0.89..=0.93).contains(&full), "full-stripe writes: {full}");
    let individual = relative(TRACK, 400);
    assert!((0.26..=0.29).contains(&individual), "individual writes: {individual}");
}

/// The other two prices of a read-modify-write pair.
#[test]
fn prices_of_a_pair() {
    let rate_with = |pricing| {
        let mut config = config(raid5(), TRACK, 0.0, 400);
        (config.pair_pricing, config.limits) = (pricing, requests(4000, 40_000));
        rate(&run(&config).unwrap()) / 11.0
    };
    let mut base = config(Tree::raid0(10, TRACK), TRACK, 0.0, 400);
    base.limits = requests(4000, 40_000);
    let base = rate(&run(&base).unwrap()) / 10.0;
    let percent = |pricing| 100.0 * rate_with(pricing) / base;
    let (queued, head, prepaid) =
        (percent(PairPricing::Queued), percent(PairPricing::Head), percent(PairPricing::Prepaid));
    println!("queued {queued:.1}, head {head:.1}, prepaid {prepaid:.1} percent of RAID 0 per disk");
    assert!((24.0..=26.0).contains(&queued), "queued {queued}");
    assert!((24.5..=27.5).contains(&head), "head {head}");
    assert!(prepaid > head, "prepaid {prepaid} against head {head}");
}
