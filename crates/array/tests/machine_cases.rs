//! Cases of the state machine worth a name: each is a sentence that the random runs might make only rarely.

#![allow(clippy::cast_lossless, reason = "numbers here are small")]

use raidlab_array::plan::BadBlockCounts;
use raidlab_array::{
    Array, ArrayOp, Event, Layout, MemberState, MirrorRead, ParityWrite, Policy, RebuildThrottle, Rotation, ScrubKind,
    Tree, WriteAfter, OF_ARRAY,
};
use raidlab_types::{Extent, Instant, OpError, OpId, OpKind, Operation, Request, RequestError, RequestKind};

fn array(tree: &Tree, policy: Policy) -> Array {
    Array::new(Layout::new(tree, &vec![64; tree.leaves()], 1).expect("compiles"), policy)
}

fn raid5() -> Array {
    let policy = Policy { parity_write: ParityWrite::ReadModifyWrite, ..Policy::default() };
    array(&Tree::parity(1, 4, 4, Rotation::LeftSymmetric), policy)
}

fn ask(array: &mut Array, tag: u64, kind: RequestKind, lba: u64, sectors: u64) {
    let extent = Extent::new(lba, sectors);
    let request = Request { tag, volume: 0, kind, extent, force_unit_access: false };
    array.handle_request(Instant::ZERO, request);
}

/// Everything that may start now; computations are completed at once.
fn device_ops(array: &mut Array) -> Vec<Operation> {
    let mut ops = Vec::new();
    while let Some(op) = array.poll_op() {
        match op {
            ArrayOp::Device(o) => ops.push(o),
            ArrayOp::Compute { id, .. } => done(array, id),
        }
    }
    ops
}

fn done(array: &mut Array, id: OpId) {
    array.handle_op_done(Instant::ZERO, id, Ok(()));
}

fn gone(array: &mut Array, id: OpId) {
    array.handle_op_done(Instant::ZERO, id, Err(OpError::MemberGone));
}

/// Completes everything; the results of requests in order.
fn finish(array: &mut Array, mut ops: Vec<Operation>) -> Vec<Told> {
    while !ops.is_empty() {
        ops.iter().for_each(|o| done(array, o.id));
        ops = device_ops(array);
    }
    let mut results = Vec::new();
    while let Some(event) = array.poll_event() {
        if let Event::RequestDone { tag, result } = event {
            results.push((tag, result));
        }
    }
    results
}

fn kinds(ops: &[Operation]) -> Vec<OpKind> {
    ops.iter().map(|o| o.kind).collect()
}

#[test]
fn a_small_write_is_two_reads_then_two_writes_that_name_each_other() {
    let mut array = raid5();
    ask(&mut array, 1, RequestKind::Write, 5, 1);
    let reads = device_ops(&mut array);
    assert_eq!(kinds(&reads), [OpKind::Read; 2]);
    done(&mut array, reads[0].id);
    assert!(device_ops(&mut array).is_empty(), "no write before every read is done");
    done(&mut array, reads[1].id);
    let writes = device_ops(&mut array);
    assert_eq!(kinds(&writes), [OpKind::Write; 2]);
    for w in &writes {
        let read = reads.iter().find(|r| r.leaf == w.leaf).expect("the same two members");
        assert_eq!((read.pair_with, w.pair_with), (Some(w.id), Some(read.id)));
        assert_eq!(read.extent, w.extent);
    }
    assert_eq!(finish(&mut array, writes), [(1, Ok(()))]);
    assert_eq!(array.check_idle(), Ok(()));
}

#[test]
fn writes_of_different_ranges_of_a_chunk_run_together() {
    let mut array = raid5();
    ask(&mut array, 1, RequestKind::Write, 0, 1);
    ask(&mut array, 2, RequestKind::Write, 1, 1);
    let both = device_ops(&mut array);
    assert_eq!(both.len(), 4, "whole-stripe locks would serialise sequential small writes");
    ask(&mut array, 3, RequestKind::Write, 5, 1);
    assert!(device_ops(&mut array).is_empty(), "the same parity sector as request 2");
    assert_eq!(finish(&mut array, both).len(), 3);
    assert_eq!(array.check_idle(), Ok(()));
}

#[test]
fn a_degraded_read_waits_for_a_write_and_an_optimal_one_does_not() {
    let mut array = raid5();
    ask(&mut array, 1, RequestKind::Write, 0, 1);
    let write = device_ops(&mut array);
    ask(&mut array, 2, RequestKind::Read, 4, 1);
    let read = device_ops(&mut array);
    assert_eq!(kinds(&read), [OpKind::Read]);
    gone(&mut array, read[0].id);
    assert!(device_ops(&mut array).is_empty(), "the stripe is being written");
    let results = finish(&mut array, write);
    assert_eq!(results, [(1, Ok(())), (2, Ok(()))]);
    assert_eq!(array.member(read[0].leaf).state, MemberState::Failed);
    assert_eq!(array.check_idle(), Ok(()));
}

#[test]
fn a_waiting_read_asks_for_more_locks_when_another_member_goes() {
    // Two parity groups; the read waits, degraded in the first, while the second loses a member and is being written.
    let policy = Policy { parity_write: ParityWrite::ReadModifyWrite, ..Policy::default() };
    let mut array = array(&Tree::striped_parity(1, 2, 3, 2, Rotation::ParityLast), policy);
    array.set_member_state(0, MemberState::Missing);
    ask(&mut array, 1, RequestKind::Write, 0, 1);
    ask(&mut array, 2, RequestKind::Write, 4, 1);
    let writes = device_ops(&mut array);
    ask(&mut array, 3, RequestKind::Read, 0, 8);
    assert!(device_ops(&mut array).is_empty(), "request 1 holds the first group's stripe");
    array.set_member_state(3, MemberState::Failed);
    // Request 1 ends; request 2 still writes the second group.
    let (first, second): (Vec<_>, Vec<_>) = writes.into_iter().partition(|o| o.tag == 1);
    first.iter().for_each(|o| done(&mut array, o.id));
    let mut ops = device_ops(&mut array);
    while ops.iter().any(|o| o.tag == 1) {
        assert!(ops.iter().all(|o| o.tag == 1), "the read must wait for request 2: {ops:?}");
        ops.iter().for_each(|o| done(&mut array, o.id));
        ops = device_ops(&mut array);
    }
    assert!(ops.is_empty(), "the read must wait for request 2: {ops:?}");
    assert_eq!(finish(&mut array, second).len(), 3);
    assert_eq!(array.check_idle(), Ok(()));
}

#[test]
fn a_media_error_costs_the_sector_and_not_the_member() {
    let mut array = raid5();
    ask(&mut array, 1, RequestKind::Read, 0, 4);
    let read = device_ops(&mut array);
    let bad = Extent::new(read[0].extent.lba + 2, 1);
    array.handle_op_done(Instant::ZERO, read[0].id, Err(OpError::Media(bad)));
    let again = device_ops(&mut array);
    assert_eq!(again.len(), 3, "the part of the chunk from the three others: {again:?}");
    assert!(again.iter().all(|o| o.leaf != read[0].leaf || !o.extent.overlaps(bad)), "{again:?}");
    assert_eq!(finish(&mut array, again), [(1, Ok(()))]);
    assert_eq!(array.member(read[0].leaf).state, MemberState::Online);
}

#[test]
fn a_media_error_without_redundancy_is_a_local_error() {
    let mut array = array(&Tree::raid0(2, 4), Policy::default());
    ask(&mut array, 1, RequestKind::Read, 0, 4);
    let read = device_ops(&mut array);
    array.handle_op_done(Instant::ZERO, read[0].id, Err(OpError::Media(Extent::new(1, 1))));
    assert!(device_ops(&mut array).is_empty(), "nothing was written that might have repaired it");
    let results: Vec<_> = std::iter::from_fn(|| array.poll_event()).collect();
    let error = RequestError::BeyondTolerance { node: 1, extent: Some(Extent::new(1, 1)) };
    assert_eq!(results, [Event::RequestDone { tag: 1, result: Err(error) }]);
    assert_eq!(array.check_idle(), Ok(()));
}

#[test]
fn two_members_with_a_bad_sector_each_are_read_in_shorter_operations() {
    // Both members name all of a long operation unreadable, and mean one sector, each another.
    let mut array = array(&Tree::raid1(2), Policy { read_error_repair: false, ..Policy::default() });
    ask(&mut array, 1, RequestKind::Read, 0, 64);
    let mut longest = Vec::new();
    let mut ops = device_ops(&mut array);
    while !ops.is_empty() {
        longest.extend(ops.iter().map(|o| o.extent.sectors).max());
        for o in &ops {
            let bad = Extent::new(10 + 20 * o.leaf as u64, 1).overlaps(o.extent);
            let result = if bad { Err(OpError::Media(o.extent)) } else { Ok(()) };
            array.handle_op_done(Instant::ZERO, o.id, result);
        }
        ops = device_ops(&mut array);
    }
    assert_eq!(longest, [64, 64, 1, 1]);
    assert_eq!(finish(&mut array, ops), [(1, Ok(()))]);
    assert_eq!(array.check_idle(), Ok(()));
}

/// What was asked of a member.
type Asked = (u32, OpKind, Extent);

/// What a client was told of a request.
type Told = (u64, Result<(), RequestError>);

/// Serves all that is asked of members, of which sectors cannot be read until they are written; what was asked.
fn serve(array: &mut Array, bad: &mut Vec<(u32, u64)>) -> Vec<Asked> {
    let mut asked = Vec::new();
    let mut ops = device_ops(array);
    while !ops.is_empty() {
        for o in &ops {
            asked.push((o.leaf, o.kind, o.extent));
            let met = |&&(leaf, sector): &&(u32, u64)| leaf == o.leaf && o.extent.overlaps(Extent::new(sector, 1));
            let found = bad.iter().find(met).map(|&(_, sector)| sector);
            let result = match (o.kind, found) {
                (OpKind::Read, Some(sector)) => Err(OpError::Media(Extent::new(sector, 1))),
                _ => Ok(()),
            };
            if o.kind == OpKind::Write {
                bad.retain(|&(leaf, sector)| leaf != o.leaf || !o.extent.overlaps(Extent::new(sector, 1)));
            }
            array.handle_op_done(Instant::ZERO, o.id, result);
        }
        ops = device_ops(array);
    }
    asked
}

/// Reads `sectors` from `lba` so; what was asked of members, by kind and length, and what the client was told.
fn read_with_bad_sectors(
    array: &mut Array,
    (lba, sectors): (u64, u64),
    bad: &mut Vec<(u32, u64)>,
) -> (Vec<Asked>, Vec<Told>) {
    ask(array, 1, RequestKind::Read, lba, sectors);
    let asked = serve(array, bad);
    (asked, finish(array, vec![]))
}

/// Has members that are missing rebuilt, as far as that goes; what was asked of members for it, and what the array tells.
fn rebuilt(array: &mut Array, leaves: &[u32], bad: &mut Vec<(u32, u64)>) -> (Vec<Asked>, Vec<Event>) {
    leaves.iter().for_each(|&leaf| array.set_member_state(leaf, MemberState::Missing));
    for &leaf in leaves {
        array.replace_member(Instant::ZERO, leaf, RebuildThrottle::Idle).expect("there is enough");
    }
    array.handle_time(Instant::ZERO);
    let asked = serve(array, bad);
    assert_eq!(array.check_idle().err(), Some("queued work or events"));
    (asked, std::iter::from_fn(|| array.poll_event()).collect())
}

#[test]
fn a_rebuild_goes_on_without_what_cannot_be_had_and_nothing_else_fails_until_that_is_written() {
    let trees = [
        (Tree::raid1(2), 1..2),
        (Tree::raid10(2, 4), 1..2),
        (Tree::parse("raid10(3, layout=near3, chunk=4)").expect("a tree"), 1..3),
        (Tree::parity(1, 4, 4, Rotation::LeftSymmetric), 1..2),
        (Tree::parity(2, 5, 4, Rotation::LeftSymmetric), 1..3),
    ];
    for (tree, new) in trees {
        let new: Vec<u32> = new.collect();
        let mut array = array(&tree, Policy { bad_blocks: true, read_error_repair: false, ..Policy::default() });
        let mut bad = vec![(0, 5)];
        let (_, told) = rebuilt(&mut array, &new, &mut bad);
        assert!(told.iter().all(|event| matches!(event, Event::MemberRebuilt { .. })), "{tree:?}: {told:?}");
        let counts = BadBlockCounts { entries: 1, sectors: 1 };
        assert!(told.len() == new.len() && new.iter().all(|&leaf| array.bad_blocks(leaf) == counts), "{tree:?}");
        let all = array.layout().user_sectors();
        let mut failed = |array: &mut Array| {
            let fails = |&lba: &u64| read_with_bad_sectors(array, (lba, 1), &mut bad).1[0].1.is_err();
            (0..all).filter(fails).count()
        };
        assert!((1..=new.len() + 1).contains(&failed(&mut array)), "{tree:?}: {}", failed(&mut array));
        ask(&mut array, 1, RequestKind::Write, 0, all);
        serve(&mut array, &mut vec![]);
        assert_eq!(finish(&mut array, vec![]), [(1, Ok(()))], "{tree:?}");
        assert!(new.iter().all(|&leaf| array.bad_blocks(leaf).entries == 0), "{tree:?}");
        assert!(read_with_bad_sectors(&mut array, (0, all), &mut vec![]).1[0].1.is_ok(), "{tree:?}");
    }
}

#[test]
fn what_lies_between_places_that_a_rebuild_goes_without_is_one_operation() {
    for tree in ["raid1(2)", "raid10(4, layout=near2, chunk=64KiB)", "raid5(4, chunk=64KiB)"] {
        let tree = Tree::parse(tree).expect("a tree");
        let layout = Layout::new(&tree, &vec![4096; tree.leaves()], 512).expect("compiles");
        let asked_with = |mut bad: Vec<(u32, u64)>| {
            let mut array = Array::new(layout.clone(), Policy { bad_blocks: true, ..Policy::default() });
            let (asked, told) = rebuilt(&mut array, &[1], &mut bad);
            assert_eq!((told, array.bad_blocks(1).sectors), (vec![Event::MemberRebuilt { leaf: 1 }], bad.len() as u64));
            asked.len()
        };
        // Each is met by an operation that fails, and then its unit is planned anew, in one part more of every member.
        let (plain, spoiled) = (asked_with(vec![]), asked_with(vec![(0, 10), (0, 40), (0, 2000)]));
        assert!(spoiled <= plain + 3 * 3 * tree.leaves(), "{tree:?}: {plain}, {spoiled}");
    }
}

#[test]
fn a_rebuild_stops_where_the_list_is_full_or_nothing_of_the_kind_is_kept() {
    let with = |bad_blocks, count: u64| {
        let layout = Layout::new(&Tree::raid1(2), &[16384; 2], 512).expect("compiles");
        let mut array = Array::new(layout, Policy { bad_blocks, ..Policy::default() });
        let (_, told) = rebuilt(&mut array, &[1], &mut (0..count).map(|number| (0, 16 * number)).collect());
        (told, array.bad_blocks(1).entries)
    };
    assert_eq!(with(true, 512), (vec![Event::MemberRebuilt { leaf: 1 }], 512));
    assert_eq!(with(true, 513).0, [Event::RebuildStopped { leaf: 1 }]);
    assert_eq!(with(false, 1), (vec![Event::RebuildStopped { leaf: 1 }], 0));
}

#[test]
fn what_a_read_cannot_read_and_the_others_give_back_is_written_anew() {
    let trees = [
        (Tree::raid1(3), 0, 0..=0),
        (Tree::parity(1, 4, 4, Rotation::LeftSymmetric), 0, 0..=0),
        (Tree::parity(2, 6, 4, Rotation::LeftSymmetric), 1, 1..=1),
        (Tree::raid10(2, 4), 0, 0..=0),
        // A row of the side's stripe.
        (Tree::raid01(2, 4), 0, 0..=1),
    ];
    for (tree, leaf, side) in trees {
        let mut array = array(&tree, Policy::default());
        let mut bad = vec![(leaf, 2)];
        let (first, told) = read_with_bad_sectors(&mut array, (0, 32), &mut bad);
        assert_eq!((told, bad), (vec![(1, Ok(()))], vec![]), "{tree:?}: {first:?}");
        let written: Vec<_> = first.iter().filter(|(_, kind, _)| *kind == OpKind::Write).collect();
        let is_short = |&&(of, _, extent): &&Asked| side.contains(&of) && extent.sectors <= 4;
        assert!(written.len() == side.clone().count() && written.iter().all(is_short), "{tree:?}: {written:?}");
        assert!(array.repaired_sectors() == 1 && array.check_idle().is_ok(), "{tree:?}");
        let (again, _) = read_with_bad_sectors(&mut array, (0, 32), &mut vec![]);
        assert!(again.len() < first.len(), "{tree:?}: {again:?}");
    }
}

#[test]
fn a_repair_waits_for_a_write_of_its_stripe_and_a_write_for_it() {
    let mut array = raid5();
    ask(&mut array, 1, RequestKind::Read, 0, 1);
    let read = device_ops(&mut array);
    array.handle_op_done(Instant::ZERO, read[0].id, Err(OpError::Media(read[0].extent)));
    let others = device_ops(&mut array);
    ask(&mut array, 2, RequestKind::Write, 0, 1);
    others.iter().for_each(|o| done(&mut array, o.id));
    // The client's read is over; the write was first in the queue.
    let old = device_ops(&mut array);
    assert!(old.iter().all(|o| o.tag == 2), "{old:?}");
    old.iter().for_each(|o| done(&mut array, o.id));
    let new = device_ops(&mut array);
    assert!(new.iter().all(|o| o.tag == 2 && o.kind == OpKind::Write), "{new:?}");
    ask(&mut array, 3, RequestKind::Write, 0, 1);
    new.iter().for_each(|o| done(&mut array, o.id));
    let repair = device_ops(&mut array);
    assert!(!repair.is_empty() && repair.iter().all(|o| o.tag == OF_ARRAY), "{repair:?}");
    assert_eq!(finish(&mut array, repair), [(1, Ok(())), (2, Ok(())), (3, Ok(()))]);
    assert_eq!((array.repaired_sectors(), array.check_idle()), (1, Ok(())));
}

#[test]
fn nothing_is_repaired_without_redundancy_or_where_the_policy_says_so() {
    let mut bad = vec![(0, 2)];
    let mut plain = array(&Tree::raid1(2), Policy { read_error_repair: false, ..Policy::default() });
    let (asked, told) = read_with_bad_sectors(&mut plain, (0, 4), &mut bad);
    assert_eq!((told, plain.repaired_sectors(), bad.len()), (vec![(1, Ok(()))], 0, 1), "{asked:?}");
    let mut striped = array(&Tree::raid0(2, 4), Policy::default());
    let (asked, told) = read_with_bad_sectors(&mut striped, (0, 4), &mut bad);
    assert!(asked.iter().all(|(_, kind, _)| *kind == OpKind::Read) && told[0].1.is_err(), "{asked:?}");
    assert_eq!(striped.check_idle(), Ok(()));
}

/// Reads of sector `lba` at `hour`, of which each member's first read of the named ones fails; the members that are
/// taken out for it.
fn taken_out(array: &mut Array, hour: u64, lba: u64, bad: &[u32]) -> Vec<u32> {
    let now = Instant::from_ns(hour * 3_600_000_000_000);
    let extent = Extent::new(lba, 1);
    let request = Request { tag: 1, volume: 0, kind: RequestKind::Read, extent, force_unit_access: false };
    array.handle_request(now, request);
    let mut left = bad.to_vec();
    let mut ops = device_ops(array);
    while !ops.is_empty() {
        for o in &ops {
            let is_bad = o.kind == OpKind::Read && left.contains(&o.leaf);
            left.retain(|&leaf| !is_bad || leaf != o.leaf);
            array.handle_op_done(now, o.id, if is_bad { Err(OpError::Media(o.extent)) } else { Ok(()) });
        }
        ops = device_ops(array);
    }
    let events: Vec<Event> = std::iter::from_fn(|| array.poll_event()).collect();
    assert!(events.contains(&Event::RequestDone { tag: 1, result: Ok(()) }), "{events:?}");
    assert_eq!(array.check_idle(), Ok(()));
    events
        .iter()
        .filter_map(|event| if let Event::MemberFailed { leaf } = event { Some(*leaf) } else { None })
        .collect()
}

fn with_limit(tree: &Tree, most: u32) -> Array {
    array(tree, Policy { mirror_read: MirrorRead::Primary, max_read_errors: Some(most), ..Policy::default() })
}

#[test]
fn a_member_with_one_read_error_too_many_is_taken_out_and_its_place_begins_anew() {
    for tree in [Tree::raid1(2), Tree::raid10(2, 4), Tree::parity(1, 4, 4, Rotation::LeftSymmetric)] {
        let mut array = with_limit(&tree, 2);
        for lba in 0..2 {
            assert_eq!(taken_out(&mut array, 0, lba, &[0]), [], "{tree:?}");
        }
        assert_eq!(taken_out(&mut array, 0, 2, &[0]), [0], "{tree:?}");
        assert!(array.has_too_many_read_errors(0) && array.repaired_sectors() == 2, "{tree:?}: it is not mended");
        array.replace_member(Instant::ZERO, 0, RebuildThrottle::Idle).expect("there is enough");
        array.handle_time(Instant::ZERO);
        let rebuild = device_ops(&mut array);
        assert_eq!(finish(&mut array, rebuild), []);
        assert_eq!(taken_out(&mut array, 0, 3, &[0]), [], "{tree:?}");
    }
}

#[test]
fn half_of_the_read_errors_are_forgotten_every_whole_hour() {
    let mut array = with_limit(&Tree::raid1(2), 2);
    for (hour, lba) in [(0, 0), (0, 1), (1, 2), (2, 3), (3, 4)] {
        assert_eq!(taken_out(&mut array, hour, lba, &[0]), [], "at hour {hour}");
    }
    assert_eq!(taken_out(&mut array, 3, 5, &[0]), [0]);
    let mut array = with_limit(&Tree::raid1(2), 2);
    for hour in [0, 0, 100] {
        assert_eq!(taken_out(&mut array, hour, 0, &[0]), [], "at hour {hour}");
    }
}

#[test]
fn the_last_that_gives_a_node_back_is_never_taken_out_for_read_errors() {
    let mut lone = with_limit(&Tree::raid1(2), 0);
    assert_eq!(taken_out(&mut lone, 0, 0, &[0]), [0]);
    ask(&mut lone, 1, RequestKind::Read, 1, 1);
    let read = device_ops(&mut lone);
    lone.handle_op_done(Instant::ZERO, read[0].id, Err(OpError::Media(read[0].extent)));
    assert!(matches!(finish(&mut lone, vec![])[..], [(1, Err(RequestError::BeyondTolerance { .. }))]));
    assert_eq!(lone.member(1).state, MemberState::Online);
    // As md has it, each array for itself: what stands above may bear the loss of the whole mirror, and is not asked.
    let mut above = with_limit(&Tree::raid01(2, 4), 0);
    assert_eq!(taken_out(&mut above, 0, 0, &[0]), [0]);
    let mut without = with_limit(&Tree::raid0(2, 4), 0);
    ask(&mut without, 1, RequestKind::Read, 0, 1);
    let read = device_ops(&mut without);
    without.handle_op_done(Instant::ZERO, read[0].id, Err(OpError::Media(read[0].extent)));
    assert!(finish(&mut without, vec![])[0].1.is_err() && without.member(0).state == MemberState::Online);
}

#[test]
fn with_rows_that_are_kept_it_takes_as_many_bad_rows_without_a_good_one_between() {
    let tree = Tree::parity(1, 4, 4, Rotation::LeftSymmetric);
    let policy = Policy { parity_row_bytes: 1, stripe_cache_size: 2, max_read_errors: Some(0), ..Policy::default() };
    let mut array = array(&tree, policy);
    for lba in 0..3 {
        // What was repaired can be read.
        assert_eq!(taken_out(&mut array, 0, lba, &[0]), []);
    }
    ask(&mut array, 1, RequestKind::Read, 0, 4);
    let read = device_ops(&mut array);
    array.handle_op_done(Instant::ZERO, read[0].id, Err(OpError::Media(Extent::new(0, 3))));
    assert_eq!(array.poll_event(), Some(Event::MemberFailed { leaf: 0 }));
    let rest = device_ops(&mut array);
    assert_eq!(finish(&mut array, rest), [(1, Ok(()))]);
}

#[test]
fn a_media_error_of_a_write_costs_the_member() {
    let mut array = array(&Tree::raid1(2), Policy::default());
    ask(&mut array, 1, RequestKind::Write, 0, 4);
    let writes = device_ops(&mut array);
    array.handle_op_done(Instant::ZERO, writes[1].id, Err(OpError::Media(writes[1].extent)));
    assert_eq!(array.poll_event(), Some(Event::MemberFailed { leaf: 1 }));
    assert_eq!(finish(&mut array, vec![writes[0]]), [(1, Ok(()))]);
}

#[test]
fn a_flush_asks_every_member_that_is_there_and_moves_no_arm() {
    let mut array = raid5();
    array.set_member_state(1, MemberState::Missing);
    ask(&mut array, 1, RequestKind::Read, 40, 1);
    let read = device_ops(&mut array);
    let leaf = read[0].leaf;
    finish(&mut array, read);
    let arm = array.member(leaf).end_lba;
    // What a client leaves in the extent of a flush does not matter.
    ask(&mut array, 2, RequestKind::Flush, u64::MAX, u64::MAX);
    let flushes = device_ops(&mut array);
    assert_eq!(flushes.iter().map(|o| (o.kind, o.leaf)).collect::<Vec<_>>(), [0, 2, 3].map(|l| (OpKind::Flush, l)));
    assert_eq!(array.member(leaf).end_lba, arm);
    assert_eq!(finish(&mut array, flushes), [(2, Ok(()))]);
}

#[test]
fn a_flush_that_loses_the_array_is_no_success() {
    let mut array = raid5();
    ask(&mut array, 1, RequestKind::Flush, 0, 0);
    let flushes = device_ops(&mut array);
    gone(&mut array, flushes[0].id);
    gone(&mut array, flushes[1].id);
    let results = finish(&mut array, flushes[2..].to_vec());
    assert!(matches!(results[..], [(1, Err(RequestError::BeyondTolerance { .. }))]), "{results:?}");
}

#[test]
fn a_write_that_loses_the_array_is_no_success() {
    for tree in [Tree::raid1(2), Tree::raid0(2, 4), Tree::parity(1, 3, 4, Rotation::LeftSymmetric)] {
        let mut array = array(&tree, Policy::default());
        ask(&mut array, 1, RequestKind::Write, 0, 8);
        let writes = device_ops(&mut array);
        assert!(writes.iter().all(|o| o.kind == OpKind::Write));
        writes.iter().for_each(|o| gone(&mut array, o.id));
        let rest = device_ops(&mut array);
        let results = finish(&mut array, rest);
        assert!(matches!(results[..], [(1, Err(RequestError::BeyondTolerance { .. }))]), "{results:?}");
        assert_eq!(array.check_idle(), Ok(()));
    }
}

#[test]
fn what_lies_outside_is_refused() {
    let mut array = raid5();
    let capacity = array.layout().volumes()[0].capacity_sectors;
    let refused = [(0, capacity + 1), (capacity, 1), (0, 0), (u64::MAX, 2), (0, 1 << 33)];
    for (tag, (lba, sectors)) in refused.into_iter().enumerate() {
        ask(&mut array, tag as u64, RequestKind::Write, lba, sectors);
        assert!(device_ops(&mut array).is_empty());
    }
    let results = finish(&mut array, Vec::new());
    assert_eq!(results.len(), refused.len());
    assert!(results.iter().all(|(_, r)| matches!(r, Err(RequestError::OutOfRange { .. }))), "{results:?}");
    assert_eq!(array.check_idle(), Ok(()));
}

#[test]
fn windows_of_a_request_are_limited_and_all_run() {
    let policy = Policy { window_bytes: 1, windows_in_flight: 2, ..Policy::default() };
    let mut array = array(&Tree::raid0(4, 1), policy);
    ask(&mut array, 1, RequestKind::Read, 0, 256);
    let (mut windows, mut ops) = (0, device_ops(&mut array));
    while !ops.is_empty() {
        assert!(ops.len() <= 8, "two windows of four chunks");
        windows += ops.len() / 4;
        ops.iter().for_each(|o| done(&mut array, o.id));
        ops = device_ops(&mut array);
    }
    assert_eq!(windows, 64);
    assert_eq!(finish(&mut array, ops), [(1, Ok(()))]);
}

#[test]
fn a_request_no_longer_than_a_window_is_one_wherever_it_lies() {
    let policy = Policy { window_bytes: 16, mirror_read: MirrorRead::Primary, ..Policy::default() };
    let mut array = array(&Tree::raid1(2), policy);
    for lba in 0..=48 {
        for (kind, members) in [(RequestKind::Read, 1), (RequestKind::Write, 2)] {
            ask(&mut array, lba, kind, lba, 16);
            let ops = device_ops(&mut array);
            assert_eq!(ops.len(), members, "{kind:?} of 16 sectors from {lba}");
            assert!(ops.iter().all(|o| o.extent == Extent::new(lba, 16)));
            finish(&mut array, ops);
        }
    }
}

#[test]
fn a_longer_request_is_cut_where_stripes_end() {
    // Stripes of 3 sectors and windows of 4 of them.
    let policy = Policy { window_bytes: 14, windows_in_flight: 1, ..Policy::default() };
    for lba in 0..30 {
        for sectors in 1..60 {
            let mut array = array(&Tree::raid0(3, 1), policy);
            ask(&mut array, 1, RequestKind::Read, lba, sectors);
            let (mut at, mut ops) = (lba, device_ops(&mut array));
            while !ops.is_empty() {
                let window: u64 = ops.iter().map(|o| o.extent.sectors).sum();
                at += window;
                assert!(window <= 12, "{window} sectors of {sectors} from {lba}");
                assert!(at == lba + sectors || (at % 3 == 0 && window > 9), "cut at {at}: {sectors} from {lba}");
                ops.iter().for_each(|o| done(&mut array, o.id));
                ops = device_ops(&mut array);
            }
            assert_eq!(at, lba + sectors);
        }
    }
}

#[test]
fn round_robin_takes_turns_on_each_mirror() {
    let policy = Policy { mirror_read: MirrorRead::RoundRobin, ..Policy::default() };
    let mut array = array(&Tree::raid10(2, 1), policy);
    let mut reads = [0; 4];
    // Requests that fall on the two mirrors alternately.
    for tag in 0..40 {
        ask(&mut array, tag, RequestKind::Read, tag % 2, 1);
        let ops = device_ops(&mut array);
        ops.iter().for_each(|o| reads[o.leaf as usize] += 1);
        finish(&mut array, ops);
    }
    assert_eq!(reads, [10; 4]);
}

#[test]
fn a_sequential_read_stays_with_its_copy_and_others_take_turns() {
    let policy = Policy { mirror_read: MirrorRead::RoundRobinSequential, ..Policy::default() };
    let mut array = array(&Tree::raid1(2), policy);
    let mut reads = |tag, lba| {
        ask(&mut array, tag, RequestKind::Read, lba, 1);
        let ops = device_ops(&mut array);
        let leaf = ops[0].leaf;
        finish(&mut array, ops);
        leaf
    };
    let first = reads(0, 10);
    assert!((11..15).all(|lba| reads(lba, lba) == first), "goes on where it ended");
    let elsewhere: Vec<u32> = (0..4).map(|i| reads(20 + i, 40 + 2 * i)).collect();
    assert!(elsewhere.windows(2).all(|two| two[0] != two[1]), "{elsewhere:?}");
}

#[test]
fn a_member_that_fails_with_thousands_in_flight_is_dealt_with_once() {
    let mut array = array(&Tree::raid1(2), Policy { mirror_read: MirrorRead::Primary, ..Policy::default() });
    let n = 20_000;
    (0..n).for_each(|tag| ask(&mut array, tag, RequestKind::Read, tag % 64, 1));
    let first = device_ops(&mut array);
    assert!(first.iter().all(|o| o.leaf == 0));
    first.iter().for_each(|o| gone(&mut array, o.id));
    assert_eq!(array.poll_event(), Some(Event::MemberFailed { leaf: 0 }));
    let second = device_ops(&mut array);
    assert!(second.iter().all(|o| o.leaf == 1) && second.len() as u64 == n);
    let results = finish(&mut array, second);
    assert!(results.len() as u64 == n && results.iter().all(|(_, r)| r.is_ok()));
    assert_eq!(array.check_idle(), Ok(()));
}

/// Has all that is to be done done, and tells who was rebuilt.
fn all_rebuilt(array: &mut Array) -> (Vec<Operation>, Vec<u32>) {
    array.handle_time(Instant::ZERO);
    let (mut all, mut ops) = (Vec::new(), device_ops(array));
    while !ops.is_empty() {
        ops.iter().for_each(|o| done(array, o.id));
        all.append(&mut ops);
        ops = device_ops(array);
    }
    let mut rebuilt = Vec::new();
    while let Some(event) = array.poll_event() {
        rebuilt.extend(if let Event::MemberRebuilt { leaf } = event { Some(leaf) } else { None });
    }
    (all, rebuilt)
}

#[test]
fn a_lost_member_stands_in_a_distributed_spare_until_a_new_one_is_whole() {
    let tree = Tree::parse("declustered(7, width=3, spares=1, chunk=4B)").expect("a tree");
    let mut array = array(&tree, Policy::default());
    assert!(!array.has_spare_for(2), "it is not lost");
    array.set_member_state(2, MemberState::Failed);
    array.spare_member(Instant::ZERO, 2, RebuildThrottle::Idle).expect("a spare");
    let (ops, rebuilt) = all_rebuilt(&mut array);
    assert_eq!((rebuilt, array.spare_of(2)), (vec![2], Some((0, u64::MAX))));
    // Of 14 of its 16 rows each of the six others has the spare chunk of two or three.
    let written = |leaf| ops.iter().filter(|o| o.kind == OpKind::Write && o.leaf == leaf).count();
    assert!([0, 1, 3, 4, 5, 6].iter().all(|&leaf| (2..=3).contains(&written(leaf))) && written(2) == 0, "{ops:?}");

    // Another loss is borne, and what stood there is rebuilt with the new member.
    array.set_member_state(5, MemberState::Failed);
    assert!(array.bears_its_losses() && !array.has_lost_data() && !array.has_spare_for(5));
    array.replace_member(Instant::ZERO, 5, RebuildThrottle::Idle).expect("a new member");
    assert_eq!(all_rebuilt(&mut array).1, [5]);

    // A new member is filled from the spare: no row takes more than a read and a write.
    array.replace_member(Instant::ZERO, 2, RebuildThrottle::Idle).expect("a new member");
    let (ops, rebuilt) = all_rebuilt(&mut array);
    assert_eq!((rebuilt, array.spare_of(2)), (vec![2], None));
    let (reads, writes): (Vec<_>, Vec<_>) = ops.into_iter().partition(|o| o.kind == OpKind::Read);
    assert!(reads.len() == writes.len() && writes.iter().all(|o| o.leaf == 2), "{reads:?}");
    array.set_member_state(5, MemberState::Failed);
    assert!(array.has_spare_for(5), "it is free again");
    assert_eq!(array.check_idle(), Ok(()));
}

#[test]
fn a_spare_that_was_given_back_is_free_once_all_is_done_that_may_use_it() {
    let tree = Tree::parse("declustered(7, width=3, spares=1, chunk=4B)").expect("a tree");
    let mut array = array(&tree, Policy::default());
    array.set_member_state(2, MemberState::Failed);
    array.spare_member(Instant::ZERO, 2, RebuildThrottle::Idle).expect("a spare");
    all_rebuilt(&mut array);
    array.replace_member(Instant::ZERO, 2, RebuildThrottle::Share { fraction: 1.0 }).expect("a new member");
    array.handle_time(Instant::ZERO);
    // A write begins where the new member is filled, and is there still when that is whole.
    let (mut kept, mut ops) = (Vec::new(), device_ops(&mut array));
    while !ops.is_empty() {
        ops.iter().for_each(|o| done(&mut array, o.id));
        if kept.is_empty() && array.member(2).valid >= 4 {
            ask(&mut array, 1, RequestKind::Write, 0, 1);
        }
        array.handle_time(Instant::ZERO);
        let (of_client, own): (Vec<_>, Vec<_>) = device_ops(&mut array).into_iter().partition(|o| o.tag == 1);
        kept.extend(of_client);
        ops = own;
    }
    assert_eq!(array.spare_of(2), None, "the new member is whole");
    array.set_member_state(5, MemberState::Failed);
    assert!(!array.has_spare_for(5), "the write may still go to it");
    finish(&mut array, kept);
    assert!(array.has_spare_for(5));
}

#[test]
fn a_rebuild_goes_on_where_the_last_of_a_unit_is_never_handed_out() {
    // Two members are rebuilt; one goes while its write of a unit is queued, and the other's is done.
    let mut array = array(&Tree::parity(2, 5, 4, Rotation::LeftSymmetric), Policy::default());
    for leaf in [0, 1] {
        array.set_member_state(leaf, MemberState::Missing);
    }
    for leaf in [0, 1] {
        let throttle = RebuildThrottle::Share { fraction: 1.0 };
        array.replace_member(Instant::ZERO, leaf, throttle).expect("three are left");
    }
    array.handle_time(Instant::ZERO);
    let reads = device_ops(&mut array);
    assert_eq!(kinds(&reads), [OpKind::Read; 3]);
    reads.iter().for_each(|o| done(&mut array, o.id));
    let write = loop {
        match array.poll_op().expect("a unit is written") {
            ArrayOp::Device(o) => break o,
            ArrayOp::Compute { id, .. } => done(&mut array, id),
        }
    };
    array.set_member_state(1 - write.leaf, MemberState::Failed);
    done(&mut array, write.id);
    let next = device_ops(&mut array);
    assert!(!next.is_empty(), "the next unit");
    finish(&mut array, next);
    assert_eq!(array.check_idle(), Ok(()));
    assert_eq!(array.member(write.leaf).state, MemberState::Online);
}

/// RAID 6 of four of RAID 6, with chunks of the outer shorter than those of the inner.
fn raid6_of_raid6() -> Tree {
    let inner = Tree::parity(2, 4, 4, Rotation::LeftSymmetric);
    let (rotation, chunk_bytes) = (Rotation::RightAsymmetric, 2);
    Tree::Parity { parities: 2, rotation, chunk_bytes, children: vec![inner; 4] }
}

#[test]
fn a_write_that_a_nested_node_cannot_take_costs_that_node() {
    // Two members of the first inner node are gone, and a third cannot be read: the outer node bears its loss.
    let (mut members_lost, sectors) = (0, 60);
    for lba in 0..sectors {
        let mut array = array(&raid6_of_raid6(), Policy::default());
        (0..2).for_each(|leaf| array.set_member_state(leaf, MemberState::Missing));
        ask(&mut array, 1, RequestKind::Write, lba, 1);
        let mut ops = device_ops(&mut array);
        while !ops.is_empty() {
            for o in &ops {
                let unreadable = o.leaf == 2 && o.kind == OpKind::Read;
                let result = if unreadable { Err(OpError::Media(o.extent)) } else { Ok(()) };
                array.handle_op_done(Instant::ZERO, o.id, result);
            }
            ops = device_ops(&mut array);
        }
        assert_eq!(finish(&mut array, ops), [(1, Ok(()))], "sector {lba}");
        assert_eq!(array.check_idle(), Ok(()));
        members_lost += u32::from(array.member(2).state == MemberState::Failed);
    }
    assert!(members_lost > 0, "no write had to read what cannot be read");
}

#[test]
fn a_node_is_given_up_for_a_member_that_is_still_there() {
    // One member is gone, another goes after it could not be read, and a third cannot be read.
    let mut members_lost = 0;
    for lba in 0..60 {
        let mut array = array(&raid6_of_raid6(), Policy::default());
        array.set_member_state(0, MemberState::Missing);
        ask(&mut array, 1, RequestKind::Write, lba, 1);
        let mut ops = device_ops(&mut array);
        while !ops.is_empty() {
            for o in &ops {
                let unreadable = (1..3).contains(&o.leaf) && o.kind == OpKind::Read;
                let result = if unreadable { Err(OpError::Media(o.extent)) } else { Ok(()) };
                array.handle_op_done(Instant::ZERO, o.id, result);
            }
            if ops.iter().any(|o| o.leaf == 1 && o.kind == OpKind::Read) {
                array.set_member_state(1, MemberState::Failed);
            }
            ops = device_ops(&mut array);
        }
        assert_eq!(finish(&mut array, ops), [(1, Ok(()))], "sector {lba}");
        assert_eq!(array.check_idle(), Ok(()));
        members_lost += u32::from(array.member(2).state == MemberState::Failed);
    }
    assert!(members_lost > 0, "no write had to read what cannot be read");
}

#[test]
fn a_lost_node_within_a_degraded_one_is_rebuilt() {
    // The first inner node has lost three members, more than it bears; another child of the outer node is lost as well.
    let mut array = array(&raid6_of_raid6(), Policy::default());
    (0..8).filter(|leaf| leaf % 4 < 3).for_each(|leaf| array.set_member_state(leaf, MemberState::Missing));
    let throttle = RebuildThrottle::Share { fraction: 1.0 };
    (0..3).for_each(|leaf| array.replace_member(Instant::ZERO, leaf, throttle).expect("the outer node gives it back"));
    array.handle_time(Instant::ZERO);
    let mut ops = device_ops(&mut array);
    let mut rebuilt = Vec::new();
    while !ops.is_empty() {
        for o in &ops {
            assert!(o.leaf < 4 || o.leaf >= 8, "the other lost node is neither read nor written: {o:?}");
            assert!(o.leaf >= 4 || o.kind == OpKind::Write, "what is rebuilt is not read: {o:?}");
            done(&mut array, o.id);
        }
        ops = device_ops(&mut array);
        while let Some(event) = array.poll_event() {
            rebuilt.extend(match event {
                Event::MemberRebuilt { leaf } => Some(leaf),
                other => panic!("{other:?}"),
            });
        }
    }
    // The fourth has missed what was written while its node was lost.
    rebuilt.sort_unstable();
    assert_eq!(rebuilt, [0, 1, 2, 3]);
    assert_eq!(array.check_idle(), Ok(()));
}

/// Goes over the array; the answers of reads are up to `result_of`. All operations, in order.
fn scrubbed(
    array: &mut Array,
    kind: ScrubKind,
    result_of: impl Fn(&Operation) -> Result<(), OpError>,
) -> Vec<Operation> {
    array.scrub(Instant::ZERO, kind, RebuildThrottle::Share { fraction: 1.0 }).expect("it begins");
    array.handle_time(Instant::ZERO);
    let (mut all, mut ops) = (Vec::new(), device_ops(array));
    while !ops.is_empty() {
        ops.iter().for_each(|o| array.handle_op_done(Instant::ZERO, o.id, result_of(o)));
        all.append(&mut ops);
        ops = device_ops(array);
    }
    assert_eq!(array.poll_event(), Some(Event::ScrubDone));
    assert_eq!(array.check_idle(), Ok(()));
    all
}

#[test]
fn a_check_reads_all_that_has_redundancy_once_and_writes_nothing() {
    let trees = [
        Tree::raid1(3),
        Tree::raid10(2, 4),
        Tree::parity(1, 5, 4, Rotation::LeftSymmetric),
        Tree::parity(2, 6, 4, Rotation::ParityLast),
    ];
    for tree in trees.into_iter().chain([copies("far2", 3), copies("near3", 4), copies("offset2", 4)]) {
        let mut array = array(&tree, Policy::default());
        let ops = scrubbed(&mut array, ScrubKind::Check, |_| Ok(()));
        let map = array.layout().map(64).to_string();
        let unused = map.matches('-').count() as u64;
        let read: u64 = ops.iter().map(|o| o.extent.sectors).sum();
        assert!(ops.iter().all(|o| o.kind == OpKind::Read), "{tree:?}");
        let most = 64 * tree.leaves() as u64;
        assert!(read <= most && read + 4 * unused >= most, "{read} sectors of {most}, {unused} unused: {tree:?}");
    }
}

fn copies(layout: &str, members: usize) -> Tree {
    Tree::parse(&format!("raid10({members}, layout={layout}, chunk=4)")).expect("a tree")
}

#[test]
fn what_a_check_cannot_read_is_written_anew_and_read_again() {
    for tree in [Tree::raid1(2), copies("far2", 3), Tree::parity(1, 5, 4, Rotation::LeftSymmetric), raid6_of_raid6()] {
        let mut array = array(&tree, Policy::default());
        // Unreadable until it has been written.
        let written = std::cell::Cell::new(false);
        let bad = Extent::new(5, 1);
        let ops = scrubbed(&mut array, ScrubKind::Check, |o| {
            let is_there = o.leaf == 1 && o.extent.overlaps(bad);
            written.set(written.get() || is_there && o.kind == OpKind::Write);
            let unreadable = is_there && o.kind == OpKind::Read && !written.get();
            if unreadable {
                Err(OpError::Media(bad))
            } else {
                Ok(())
            }
        });
        let writes: Vec<_> = ops.iter().filter(|o| o.kind == OpKind::Write).collect();
        assert!(
            !writes.is_empty() && writes.iter().all(|o| o.leaf == 1 && o.extent.contains(bad)),
            "{tree:?}: {writes:?}"
        );
        let last = ops.iter().rposition(|o| o.leaf == 1 && o.extent.contains(bad)).expect("it was read");
        assert_eq!(ops[last].kind, OpKind::Read, "it is looked at once more");
        let counts = array.scrub_counts();
        assert_eq!((counts.mended, counts.left_out, counts.done), (1, 0, counts.all), "{tree:?}");
    }
}

#[test]
fn a_resync_writes_parities_and_second_copies_and_no_scrub_runs_beside_a_rebuild() {
    let mut array = array(&Tree::raid1(2), Policy::default());
    let ops = scrubbed(&mut array, ScrubKind::Resync, |_| Ok(()));
    let of =
        |ops: &[Operation], kind| ops.iter().filter(|o| o.kind == kind).map(|o| (o.leaf, o.extent)).collect::<Vec<_>>();
    assert_eq!(of(&ops, OpKind::Read), [(0, Extent::new(0, 64))]);
    assert_eq!(of(&ops, OpKind::Write), [(1, Extent::new(0, 64))]);
    array.set_member_state(1, MemberState::Missing);
    let throttle = RebuildThrottle::Share { fraction: 1.0 };
    array.scrub(Instant::ZERO, ScrubKind::Check, throttle).expect("it begins");
    array.replace_member(Instant::ZERO, 1, throttle).expect("one is left");
    array.handle_time(Instant::ZERO);
    let rebuild = device_ops(&mut array);
    assert_eq!(kinds(&rebuild), [OpKind::Read], "the scrub waits");
    finish(&mut array, rebuild);
    assert_eq!(array.member(1).state, MemberState::Online);
    assert_eq!((array.check_idle(), array.scrub_counts().done), (Ok(()), 128));
}

#[test]
fn where_no_bytes_move_new_data_may_be_written_before_the_old_parity_is_read() {
    // A small write, and one over two chunks of a stripe, whose plans are made in two ways.
    for (sectors, reads) in [(1, 2), (5, 3)] {
        for moves_bytes in [false, true] {
            let policy = Policy {
                parity_write: ParityWrite::ReadModifyWrite,
                write_after: WriteAfter::OwnRead,
                ..Policy::default()
            };
            let mut array = array(&Tree::parity(1, 4, 4, Rotation::LeftSymmetric), policy);
            if !moves_bytes {
                array.expect_no_bytes();
            }
            ask(&mut array, 1, RequestKind::Write, 3, sectors);
            let ops = device_ops(&mut array);
            assert_eq!(kinds(&ops), vec![OpKind::Read; reads]);
            // Member 3 has the parity of the first stripe.
            let (parity, data): (Vec<Operation>, Vec<Operation>) = ops.into_iter().partition(|o| o.leaf == 3);
            let mut early = Vec::new();
            for read in data {
                done(&mut array, read.id);
                let writes = device_ops(&mut array);
                assert!(writes.iter().all(|w| (w.kind, w.leaf) == (OpKind::Write, read.leaf)));
                early.extend(writes);
            }
            assert_eq!(early.len(), if moves_bytes { 0 } else { reads - 1 });
            assert_eq!(finish(&mut array, [parity, early].concat()), [(1, Ok(()))]);
            assert_eq!(array.check_idle(), Ok(()));
        }
    }
}

#[test]
fn without_redundancy_there_is_nothing_to_go_over_and_one_scrub_waits_for_another() {
    let throttle = RebuildThrottle::Idle;
    let mut plain = array(&Tree::raid0(2, 4), Policy::default());
    let error = plain.scrub(Instant::ZERO, ScrubKind::Check, throttle).expect_err("refused");
    assert!(error.message.contains("no redundancy"), "{error}");
    let mut array = raid5();
    assert_eq!(array.scrub(Instant::ZERO, ScrubKind::Check, throttle), Ok(()));
    assert!(array.scrub(Instant::ZERO, ScrubKind::Check, throttle).is_err());
    array.stop_scrub();
    assert_eq!((array.poll_event(), array.check_idle()), (Some(Event::ScrubDone), Ok(())));
}

#[test]
fn a_scrub_ends_where_a_nested_node_holds_nothing() {
    // One row of chunks: two copies of one, and nothing on the third mirror.
    let tree = Tree::parse(
        "copies(mirror(member, member), mirror(member, member), mirror(member, member), layout=near2, chunk=4)",
    );
    let tree = tree.expect("a tree");
    let mut array = Array::new(Layout::new(&tree, &[6; 6], 1).expect("compiles"), Policy::default());
    let ops = scrubbed(&mut array, ScrubKind::Check, |_| Ok(()));
    assert!(ops.iter().all(|o| o.leaf < 4) && ops.len() >= 6, "{ops:?}");
}
