//! Arrays of real members of which places cannot be read: clients notice nothing, and what was met is written anew.

mod common;

use common::{assert_verified, every_level, mixed, run};
use raidlab_array::{MemberEventSpec, Policy, RebuildSpec, RebuildThrottle};
use raidlab_live::{LiveConfig, TargetSpec};
use raidlab_types::{KIB, MIB};

#[test]
fn of_every_level_all_is_read_and_what_was_met_is_written_anew() {
    for (name, tree) in every_level(64 * KIB) {
        if tree.tolerance() == 0 {
            continue;
        }
        let config = mixed(tree, vec![TargetSpec::Memory { size_bytes: 2 * MIB }]);
        let result = run(&LiveConfig { events: vec![MemberEventSpec::unreadable(0, 1, 64)], ..config });
        assert_verified(&name, &result);
        let unreadable = result.unreadable.expect("something was to be so");
        assert!(unreadable.bytes > 50 * 4096 && unreadable.left_bytes < unreadable.bytes, "{name}: {unreadable:?}");
        assert!(unreadable.repaired_bytes > 0, "{name}: {unreadable:?}");
    }
}

#[test]
fn of_every_level_a_member_with_too_many_read_errors_is_replaced_and_every_byte_is_right() {
    let policy = Policy { max_read_errors: Some(2), ..Policy::default() };
    let rebuild = Some(RebuildSpec::at(RebuildThrottle::Share { fraction: 1.0 }));
    for (name, tree) in every_level(64 * KIB) {
        if tree.tolerance() == 0 {
            continue;
        }
        let config = mixed(tree, vec![TargetSpec::Memory { size_bytes: 2 * MIB }]);
        let events = vec![MemberEventSpec::unreadable(0, 1, 200)];
        let result = run(&LiveConfig { events, policy, rebuild, ..config });
        assert_verified(&name, &result);
        let reasons: Vec<_> = result.failed_members.iter().map(|one| (one.leaf, one.reason.as_str())).collect();
        assert_eq!((reasons, result.recorder.all().failed), (vec![(1, "too many read errors")], 0), "{name}");
        let [place] = result.rebuilds[..] else { panic!("{name}: {:?}", result.rebuilds) };
        assert!(place.leaf == 1 && place.has_worn_out && place.begun_ns.is_some(), "{name}: {place:?}");
        assert_eq!(result.unreadable.expect("something was to be so").left_bytes, 0, "{name}");
    }
}
