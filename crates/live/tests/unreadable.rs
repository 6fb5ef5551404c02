//! Arrays of real members of which places cannot be read: clients notice nothing, and what was met is written anew.

mod common;

use common::{assert_verified, every_level, mixed, run};
use raidlab_array::MemberEventSpec;
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
