//! Content, to the last byte: random writes and reads over every level, with members missing from the start, going in
//! mid-run, and with unreadable sectors.

mod common;

use common::{assert_verified, bearable, every_level, mixed, requests, run, Place};
use raidlab_array::{MirrorRead, ParityRead, ParityWrite, Policy, Tree};
use raidlab_live::{Fault, FaultKind, LiveConfig, TargetSpec};
use raidlab_types::{KIB, MIB};

const CHUNK: u64 = 16 * KIB;

fn memory() -> Vec<TargetSpec> {
    vec![TargetSpec::Memory { size_bytes: MIB }]
}

#[test]
fn every_level_over_files() {
    for (name, tree) in every_level(CHUNK) {
        let place = Place::new();
        let files = place.files(tree.leaves(), MIB);
        let result = run(&mixed(tree.clone(), files.clone()));
        assert_verified(&name, &result);
        assert_eq!(result.recorder.all().requests, 2000, "{name}");
        let missing = bearable(&tree);
        if !missing.is_empty() {
            let result = run(&LiveConfig { missing, ..mixed(tree, files) });
            assert_verified(&format!("{name} with members missing"), &result);
        }
    }
}

#[test]
fn every_level_over_memory_and_other_policies() {
    let policies = [
        Policy { parity_write: ParityWrite::ReadModifyWrite, mirror_read: MirrorRead::RoundRobin, ..Policy::default() },
        Policy { parity_write: ParityWrite::ReconstructWrite, mirror_read: MirrorRead::Primary, ..Policy::default() },
        Policy { parity_read: ParityRead::ReadThrough, window_bytes: 128 * KIB, ..Policy::default() },
    ];
    for (name, tree) in every_level(CHUNK) {
        for policy in policies {
            let result = run(&LiveConfig { policy, ..mixed(tree.clone(), memory()) });
            assert_verified(&format!("{name} under {policy:?}"), &result);
        }
    }
}

#[test]
#[ignore = "slow"]
fn any_two_members_of_raid6_may_be_missing() {
    for (name, tree) in every_level(CHUNK).into_iter().filter(|(name, _)| name.starts_with("raid6")) {
        for pair in (0..6).flat_map(|a| (0..a).map(move |b| vec![b, a])) {
            let name = format!("{name} without {pair:?}");
            let result = run(&LiveConfig { missing: pair, limits: requests(500), ..mixed(tree.clone(), memory()) });
            assert_verified(&name, &result);
        }
    }
}

#[test]
#[ignore = "slow"]
fn members_that_go_in_mid_run() {
    for (name, tree) in every_level(CHUNK) {
        for kind in [FaultKind::Gone, FaultKind::TakenOut] {
            let fault = |(i, leaf)| Fault { leaf, after_operations: 200 + 300 * i as u64, kind };
            let faults: Vec<Fault> = bearable(&tree).into_iter().enumerate().map(fault).collect();
            let place = Place::new();
            let files = place.files(tree.leaves(), MIB);
            let gone = faults.len();
            for targets in [files, memory()] {
                let result = run(&LiveConfig { faults: faults.clone(), ..mixed(tree.clone(), targets) });
                assert_verified(&format!("{name}, {kind:?}"), &result);
                assert_eq!(result.failed_members.len(), gone, "{name}, {kind:?}");
                assert_eq!(result.recorder.all().failed, 0, "{name}, {kind:?}");
            }
        }
    }
}

#[test]
fn unreadable_sectors_are_made_again() {
    for (name, tree) in every_level(CHUNK).into_iter().filter(|(_, tree)| tree.tolerance() > 0) {
        let faults = vec![Fault { leaf: 1, after_operations: 0, kind: FaultKind::Media { every: 7 } }];
        let place = Place::new();
        for targets in [place.files(tree.leaves(), MIB), memory()] {
            let result = run(&LiveConfig { faults: faults.clone(), ..mixed(tree.clone(), targets) });
            assert_verified(&name, &result);
            assert_eq!(result.recorder.all().failed, 0, "{name}");
            assert!(result.members[1].failed > 0, "{name}: no read of member 1 failed");
        }
    }
}

#[test]
fn beyond_what_it_bears_the_run_stops_and_keeps_its_results() {
    let tree = Tree::parse("raid5:5:16KiB").expect("a tree");
    let fault = |leaf, after_operations| Fault { leaf, after_operations, kind: FaultKind::Gone };
    let result = run(&LiveConfig { faults: vec![fault(0, 100), fault(3, 500)], ..mixed(tree, memory()) });
    let error = result.stopped_by.expect("two members of a RAID 5 are too many");
    assert!(error.message().contains("lost more members than it bears"), "{error}");
    assert!(result.recorder.all().requests > 0);
    assert_eq!(result.failed_members.len(), 2);
}
