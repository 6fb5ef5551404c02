//! Members that cannot be read in places, on the virtual clock: what clients are told, what is written anew, what a scrub finds.

mod common;

use common::{closed, fixed, random, requests};
use raidlab_array::{
    MemberEventSpec, Policy, RebuildSpec, RebuildThrottle, Rotation, ScrubKind, Tree, UnreadableResult,
};
use raidlab_load::{Limit, Limits};
use raidlab_sim::{run, SimConfig, SimResult};
use raidlab_types::KIB;

const CHUNK: u64 = 64 * KIB;

/// 200,000 reads of 4 KiB over 1 GiB a member, of which one cannot be read in 2000 places.
fn read(tree: Tree, read_error_repair: bool) -> (SimResult, Option<UnreadableResult>) {
    let config = closed(tree, fixed(10.0), random(1.0, 4096), 4);
    let events = vec![MemberEventSpec::unreadable(0, 1, 2000)];
    let policy = Policy { read_error_repair, ..Policy::default() };
    let result = run(&SimConfig { events, policy, limits: requests(0, 200_000), ..config }).expect("a run");
    let unreadable = result.unreadable;
    (result, unreadable)
}

fn raid5() -> Tree {
    Tree::parity(1, 5, CHUNK, Rotation::LeftSymmetric)
}

#[test]
fn with_redundancy_nobody_is_told_and_what_was_met_is_written_anew() {
    for tree in [raid5(), Tree::parity(2, 6, CHUNK, Rotation::LeftSymmetric), Tree::raid10(2, CHUNK)] {
        let name = format!("{tree:?}");
        let (result, Some(found)) = read(tree, true) else { panic!("{name}: nothing was unreadable") };
        assert_eq!(result.recorder.all().failed, 0, "{name}");
        // Two thousand places of eight sectors, none on another; of each all is written, and each is met once.
        assert_eq!(found.bytes / 512, 16_000, "{name}: {found:?}");
        assert!(
            found.repaired_bytes > 0 && found.bytes == found.repaired_bytes + found.left_bytes,
            "{name}: {found:?}"
        );
        let written: u64 = result.members.iter().map(|member| member.totals.writes).sum();
        assert_eq!(written * 4096, found.repaired_bytes, "{name}");
    }
}

#[test]
fn without_repairs_the_same_places_stay_unreadable() {
    let (_, Some(repaired)) = read(raid5(), true) else { panic!("nothing was unreadable") };
    let (without, Some(found)) = read(raid5(), false) else { panic!("nothing was unreadable") };
    assert_eq!((found.left_bytes, found.repaired_bytes, without.recorder.all().failed), (found.bytes, 0, 0));
    assert_eq!(found.bytes, repaired.bytes, "the same places of the same seed");
}

#[test]
fn without_redundancy_clients_are_told() {
    let (result, Some(found)) = read(Tree::raid0(4, CHUNK), true) else { panic!("nothing was unreadable") };
    assert!(result.recorder.all().failed > 100 && found.left_bytes == found.bytes, "{found:?}");
}

#[test]
fn a_scrub_finds_them_all() {
    let config = closed(raid5(), fixed(10.0), random(1.0, 4096), 1);
    let scrub = MemberEventSpec::scrub(1_000_000, ScrubKind::Check, RebuildThrottle::Idle);
    let events = vec![MemberEventSpec::unreadable(0, 1, 64), MemberEventSpec { watch: Some(0), ..scrub }];
    let measure = Limit { requests: None, duration_s: Some(60.0) };
    let limits = Limits { warmup: Limit::default(), measure };
    let result = run(&SimConfig { events, limits, ..config }).expect("a run");
    let (Some(found), [scrub]) = (result.unreadable, &result.scrubs[..]) else { panic!("{:?}", result.scrubs) };
    assert!(scrub.is_over && scrub.left_out_bytes == 0, "{scrub:?}");
    assert_eq!(found.left_bytes, 0);
    assert_eq!(scrub.mended * 512 + found.repaired_bytes, found.bytes, "{scrub:?}");
}

#[test]
fn a_rebuild_that_meets_one_stops_and_says_so() {
    let config = closed(raid5(), fixed(10.0), random(1.0, 4096), 1);
    let events = vec![MemberEventSpec::unreadable(0, 1, 64), MemberEventSpec::failure(1_000_000, 3)];
    let rebuild = Some(RebuildSpec { watch: Some(0), ..RebuildSpec::at(RebuildThrottle::Idle) });
    let limits = requests(0, 100_000);
    let result = run(&SimConfig { events, rebuild, limits, ..config }).expect("a run");
    let [rebuild] = result.rebuilds[..] else { panic!("{:?}", result.rebuilds) };
    assert!(!rebuild.is_over && rebuild.rebuilt_bytes < rebuild.member_bytes, "{rebuild:?}");
    let (Some(began), Some(stopped)) = (rebuild.begun_ns, rebuild.stopped_ns) else { panic!("{rebuild:?}") };
    assert_eq!(rebuild.elapsed_ns, stopped - began);
}

#[test]
fn with_bad_blocks_it_goes_on_and_says_how_much_is_lost() {
    let cached = Policy { parity_row_bytes: 4096, stripe_cache_size: 256, ..Policy::default() };
    for policy in [Policy::default(), cached] {
        let config = closed(raid5(), fixed(10.0), random(1.0, 4096), 1);
        let events = vec![MemberEventSpec::unreadable(0, 1, 64), MemberEventSpec::failure(1_000_000, 3)];
        let throttle = RebuildThrottle::Share { fraction: 1.0 };
        let rebuild = Some(RebuildSpec { watch: Some(0), ..RebuildSpec::at(throttle) });
        let (policy, limits) = (Policy { bad_blocks: true, ..policy }, requests(0, 10_000_000));
        let result = run(&SimConfig { events, rebuild, policy, limits, ..config }).expect("a run");
        let (Some(found), [place]) = (result.unreadable, &result.rebuilds[..]) else { panic!("{:?}", result.rebuilds) };
        assert!(place.is_over && place.stopped_ns.is_none(), "{place:?}");
        assert!((55..=64).contains(&place.lost_places) && place.lost_bytes == found.left_bytes, "{place:?} {found:?}");
    }
}

#[test]
fn a_member_with_one_read_error_too_many_fails_and_a_new_one_takes_its_place() {
    let config = closed(Tree::raid10(2, CHUNK), fixed(10.0), random(1.0, 4096), 4);
    let events = vec![MemberEventSpec::unreadable(0, 1, 2000)];
    let throttle = RebuildThrottle::Share { fraction: 1.0 };
    let rebuild = Some(RebuildSpec { watch: Some(0), ..RebuildSpec::at(throttle) });
    let with = |max_read_errors| {
        let policy = Policy { max_read_errors, ..Policy::default() };
        run(&SimConfig { events: events.clone(), policy, rebuild, limits: requests(0, 10_000_000), ..config.clone() })
    };
    let result = with(Some(20)).expect("a run");
    let (Some(found), [place]) = (result.unreadable, &result.rebuilds[..]) else { panic!("{:?}", result.rebuilds) };
    assert!(place.leaf == 1 && place.has_worn_out && place.is_over, "{place:?}");
    // At once, or when what is under way at the one that failed has ended, for which is looked every millisecond.
    let (Some(failed), Some(begun)) = (place.failed_ns, place.begun_ns) else { panic!("{place:?}") };
    assert!((0..=1_000_000).contains(&(begun - failed)), "{place:?}");
    assert_eq!((found.repaired_bytes, found.left_bytes, result.recorder.all().failed), (20 * 4096, 0, 0));
    let refused = with(None).expect_err("nobody fails").to_string();
    assert!(refused.starts_with("rebuild: no member is missing") && refused.contains("max_read_errors"), "{refused}");
}

#[test]
fn what_says_too_little_or_nonsense_is_refused() {
    let refused = |event: MemberEventSpec| {
        let config = closed(Tree::raid1(2), fixed(10.0), random(1.0, 4096), 1);
        run(&SimConfig { events: vec![event], ..config }).expect_err("refused").to_string()
    };
    let event = MemberEventSpec::unreadable(0, 1, 64);
    for event in [MemberEventSpec { places: None, ..event }, MemberEventSpec { slow: Some(1), ..event }] {
        assert!(refused(event).starts_with("events[0]: does not say what befalls which member"));
    }
    assert!(refused(MemberEventSpec::unreadable(0, 7, 1)).starts_with("events[0].unreadable: there is no such member"));
    let many = refused(MemberEventSpec::unreadable(0, 1, 0));
    assert_eq!(many, "events[0].places: member 1 has 262144 places of 4 KiB; accepted: 1 to 100000");
}
