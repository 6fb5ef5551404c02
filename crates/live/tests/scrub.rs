//! Arrays of real members go over what they hold: beside writes nothing is wrong, and what was changed behind an array's back
//! is found and put right.

mod common;

use common::{config, every_level, mixed, requests, run, Place};
use raidlab_array::{MemberEventSpec, RebuildThrottle, Rotation, ScrubKind, ScrubResult, Tree};
use raidlab_live::{ContentMode, LiveConfig, TargetSpec};
use raidlab_types::{KIB, MIB};

const CHUNK: u64 = 64 * KIB;
const MEMBER: u64 = 2 * MIB;
const SECTOR: usize = 4096;

/// The run ends with the scrub: a machine that stalls must not find the load over before.
fn scrubbing(config: LiveConfig, kind: ScrubKind) -> LiveConfig {
    let throttle = RebuildThrottle::Share { fraction: 1.0 };
    let event = MemberEventSpec { watch: Some(0), ..MemberEventSpec::scrub(0, kind, throttle) };
    LiveConfig { events: vec![event], limits: requests(u64::MAX >> 1), ..config }
}

#[test]
fn beside_reads_and_writes_of_every_level_nothing_is_wrong() {
    for (name, tree) in every_level(CHUNK).into_iter().filter(|(_, tree)| tree.leaves() > 1) {
        if tree.tolerance() == 0 {
            continue;
        }
        let result = run(&scrubbing(mixed(tree, vec![TargetSpec::Memory { size_bytes: MEMBER }]), ScrubKind::Check));
        common::assert_verified(&name, &result);
        let [scrub] = result.scrubs[..] else { panic!("{name}: {:?}", result.scrubs) };
        assert!(scrub.is_over && scrub.done_bytes == scrub.all_bytes, "{name}: {scrub:?}");
        assert_eq!((scrub.mismatches, scrub.left_out_bytes), (0, 0), "{name}");
    }
}

/// Goes over the members as they lie there.
fn scrub(tree: &Tree, members: &[TargetSpec], kind: ScrubKind) -> ScrubResult {
    let targets = members.to_vec();
    let plain = LiveConfig { targets, content: ContentMode::Random, sector_bytes: Some(4096), ..config(tree.clone()) };
    let result = run(&scrubbing(plain, kind));
    assert_eq!(result.stopped_by, None);
    let [scrub] = result.scrubs[..] else { panic!("{:?}", result.scrubs) };
    assert!(scrub.is_over, "{scrub:?}");
    scrub
}

#[test]
fn what_was_changed_behind_its_back_is_found_and_put_right() {
    let place = Place::new();
    let members = place.files(6, MEMBER);
    for tree in [Tree::parity(2, 6, CHUNK, Rotation::LeftSymmetric), Tree::raid1(3)] {
        let members = &members[..tree.leaves()];
        scrub(&tree, members, ScrubKind::Repair);
        assert_eq!(scrub(&tree, members, ScrubKind::Check).mismatches, 0);
        for leaf in 0..tree.leaves() {
            let file = place.path(&format!("member{leaf}"));
            let before = std::fs::read(&file).expect("a member");
            let mut after = before.clone();
            // A byte of each of three sectors.
            [3, 40, 41].iter().for_each(|&sector| after[sector * SECTOR + 7] ^= 0x5A);
            std::fs::write(&file, &after).expect("a member");
            assert_eq!(scrub(&tree, members, ScrubKind::Check).mismatches, 3, "member {leaf} of {tree:?}");
            assert_eq!(std::fs::read(&file).expect("a member"), after, "a check writes nothing");
            assert_eq!(scrub(&tree, members, ScrubKind::Repair).mismatches, 3);
            assert!(std::fs::read(&file).expect("a member") == before, "member {leaf} of {tree:?} holds what it did");
        }
    }
}
