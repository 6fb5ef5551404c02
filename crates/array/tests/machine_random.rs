//! The array as a state machine under random orders of everything: thousands of small runs, each from one seed.
//!
//! A failing case prints a line that begins with `replay:`; call the function it names with the seed it names.

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

use raidlab_hazard as harness;

use harness::fault::FaultRates;
use harness::schedule::{ran, FaultSchedule};

/// One run; says how many requests succeeded and failed.
fn run(seed: u64, trouble: FaultRates) -> (u64, u64) {
    ran(seed, trouble).map_or((0, 0), |machine| (machine.succeeded, machine.failed))
}

/// One run; says how many members were rebuilt.
fn rebuilds(seed: u64, trouble: FaultRates) -> u64 {
    ran(seed, trouble).map_or(0, |machine| machine.rebuilt)
}

fn runs(name: u64, count: u64, trouble: FaultRates) -> (u64, u64) {
    let mut sum = (0, 0);
    for i in 0..count {
        let (succeeded, failed) = run(name << 32 | i, trouble);
        sum = (sum.0 + succeeded, sum.1 + failed);
    }
    sum
}

#[test]
fn overlapping_requests_in_any_order() {
    let (succeeded, failed) = runs(1, 1500, FaultRates::default());
    assert!(succeeded > 50_000 && failed == 0);
}

#[test]
fn members_die_within_tolerance() {
    let trouble = FaultRates { deaths: 30, write_errors: 10, ..FaultRates::default() };
    let (succeeded, failed) = runs(2, 1500, trouble);
    assert!(succeeded > 50_000 && failed == 0);
}

#[test]
fn sectors_go_bad_within_tolerance() {
    let trouble = FaultRates { bad_sectors: 100, ..FaultRates::default() };
    let (succeeded, failed) = runs(3, 1500, trouble);
    assert!(succeeded > 50_000 && failed == 0);
}

#[test]
fn everything_goes_wrong_within_tolerance() {
    let trouble = FaultRates { deaths: 10, bad_sectors: 50, write_errors: 5, beyond: false, ..FaultRates::default() };
    let (succeeded, failed) = runs(4, 1500, trouble);
    assert!(succeeded > 50_000 && failed == 0);
}

#[test]
fn members_are_rebuilt_beside_whatever_happens() {
    let quiet = FaultRates { deaths: 40, replacements: 150, ..FaultRates::default() };
    let trouble = FaultRates { bad_sectors: 20, write_errors: 5, ..quiet };
    for (name, trouble) in [(7, quiet), (8, trouble)] {
        let (succeeded, failed) = runs(name, 1500, trouble);
        assert!(succeeded > 50_000 && failed == 0);
    }
    let rebuilt: u64 = (0..200).map(|i| rebuilds(7 << 32 | i, quiet)).sum();
    assert!(rebuilt > 200, "{rebuilt} members rebuilt");
}

#[test]
fn members_are_taken_out_for_their_read_errors_where_that_is_borne() {
    let trouble = FaultRates { bad_sectors: 100, replacements: 100, scrubs: 5, ..FaultRates::default() };
    let worn_out: u64 = (0..3000).filter_map(|i| ran(9 << 32 | i, trouble)).map(|machine| machine.worn_out).sum();
    assert!(worn_out > 200, "{worn_out} members taken out");
}

#[test]
fn beyond_tolerance_is_an_error_and_never_a_hang_or_a_wrong_answer() {
    let trouble = FaultRates { deaths: 20, bad_sectors: 50, write_errors: 10, beyond: true, ..FaultRates::default() };
    let (succeeded, failed) = runs(5, 1500, trouble);
    assert!(succeeded > 10_000 && failed > 10_000, "{succeeded} succeeded, {failed} failed");
}

#[test]
fn bad_sectors_beyond_tolerance_harm_nothing_else() {
    let trouble = FaultRates { bad_sectors: 200, beyond: true, ..FaultRates::default() };
    let (succeeded, failed) = runs(6, 1500, trouble);
    assert!(succeeded > 30_000 && failed > 1_000, "{succeeded} succeeded, {failed} failed");
}

/// A unit of a mirror of RAID 5 was done before the one before it, and a write that came between was left out as one that a
/// later unit would restore: as it was found among 350,000 schedules, made short.
#[test]
fn what_is_written_between_units_of_a_nested_level_is_not_lost() {
    let rates = FaultRates { deaths: 40, replacements: 150, bad_sectors: 20, write_errors: 5, ..FaultRates::default() };
    let faults = ["lost:3@82", "found-lost:8@143", "found-lost:6@163", "new:6@214"];
    let schedule = FaultSchedule {
        requests: vec![5, 6, 15, 31, 32, 33, 34],
        faults: Some(faults.iter().map(|fault| fault.parse().expect("a fault")).collect()),
        order: 22_392_132,
        ..FaultSchedule::with(73_014_467_809, rates)
    };
    assert!(schedule.tree().starts_with("mirror(parity("), "another tree: {}", schedule.tree());
    let rebuilt = schedule.run().map(|machine| machine.map_or(0, |machine| machine.rebuilt));
    assert_eq!(rebuilt.map_err(|broken| broken.what), Ok(4));
}

#[test]
#[ignore = "slow"]
fn everything_for_long() {
    for (name, trouble) in [
        (11, FaultRates::default()),
        (12, FaultRates { deaths: 30, write_errors: 10, ..FaultRates::default() }),
        (13, FaultRates { bad_sectors: 100, ..FaultRates::default() }),
        (14, FaultRates { deaths: 10, bad_sectors: 50, write_errors: 5, beyond: false, ..FaultRates::default() }),
        (15, FaultRates { deaths: 20, bad_sectors: 50, write_errors: 10, beyond: true, ..FaultRates::default() }),
        (17, FaultRates { deaths: 40, replacements: 150, bad_sectors: 20, write_errors: 5, ..FaultRates::default() }),
        (16, FaultRates { bad_sectors: 200, beyond: true, ..FaultRates::default() }),
    ] {
        runs(name, 50_000, trouble);
    }
}
