//! Tasks of several dependent requests.

#![allow(clippy::cast_possible_wrap, reason = "numbers here are small")]

mod common;

use common::*;
use raidlab_load::{AddressSpec, Load, LoadSpec, SizeSpec, StepOp, StepSpec, WorkloadSpec};
use raidlab_types::{Instant, Request, RequestKind, Seed};

/// Read an inode, read the data, write the inode back.
fn spec() -> WorkloadSpec {
    let step = |op, bytes, same_extent_as| StepSpec {
        op,
        size: Some(SizeSpec::Fixed { bytes }),
        address: None,
        same_extent_as,
    };
    let mut write_back = step(StepOp::Write, 512, Some(0));
    write_back.size = None;
    let address = Some(AddressSpec::Uniform {});
    let data = StepSpec { address, ..step(StepOp::Read, 65_536, None) };
    WorkloadSpec { task: Some(vec![step(StepOp::Read, 512, None), data, write_back]), ..workload() }
}

#[test]
fn steps_follow_one_another_and_both_are_recorded() {
    let mut load = load(&LoadSpec::Closed { depth: 1 }, &spec(), &requests(0, 300));
    let driven = drive(&mut load, &mut |now: u64, _: &Request| now + 100, |load, _| assert!(load.in_flight() <= 1));
    for (k, task) in driven.chunks_exact(3).enumerate() {
        let [inode, data, back] = task else { unreachable!() };
        assert_eq!([inode.request.extent.sectors, data.request.extent.sectors], [1, 128]);
        assert_eq!((back.request.extent, back.request.kind), (inode.request.extent, RequestKind::Write));
        assert_eq!([inode.issued_ns, data.issued_ns, back.issued_ns], [0, 100, 200].map(|t| t + k as u64 * 300));
    }
    let (all, tasks) = (load.recorder().all(), load.recorder().tasks().expect("of several requests"));
    assert_eq!((all.requests, all.response.mean_ns()), (300, 100.0));
    assert_eq!((tasks.requests, tasks.response.mean_ns(), tasks.service.mean_ns()), (100, 300.0, 300.0));
    assert_eq!(tasks.bytes, all.bytes);
}

#[test]
fn the_depth_counts_tasks_and_no_step_begins_before_the_last_has_ended() {
    let mut load = load(&LoadSpec::Closed { depth: 8 }, &spec(), &requests(0, 3000));
    let mut rng = Seed::new(3).draws();
    drive(&mut load, &mut |now: u64, _: &Request| now + 1 + rng.below(1000), |load, _| {
        // Between steps nothing is in flight, but every ready step has been polled: all eight tasks have one request.
        assert!(load.is_finished() || load.in_flight() == 8);
    });
    let (all, tasks) = (load.recorder().all(), load.recorder().tasks().expect("of several requests"));
    assert!((all.requests as i64 - 3 * tasks.requests as i64).abs() <= 16, "{} {}", all.requests, tasks.requests);
    assert!((tasks.response.mean_ns() / (3.0 * all.response.mean_ns()) - 1.0).abs() < 0.02);
}

#[test]
fn a_later_step_is_intended_when_the_one_before_ends() {
    let mut load = load(&LoadSpec::Closed { depth: 1 }, &spec(), &requests(0, 3));
    let at = Instant::from_ns;
    let first = load.poll_request(at(0)).unwrap();
    load.handle_done(at(30), first.tag, true);
    // The driver polls 5 ns late, which counts as response time of the step.
    let second = load.poll_request(at(35)).unwrap();
    load.handle_done(at(60), second.tag, true);
    let third = load.poll_request(at(60)).unwrap();
    load.handle_done(at(100), third.tag, true);
    let (all, tasks) = (load.recorder().all(), load.recorder().tasks().expect("of several requests"));
    assert_eq!((all.response.sum_ns(), all.service.sum_ns()), (30 + 30 + 40, 30 + 25 + 40));
    assert_eq!((tasks.response.sum_ns(), tasks.service.sum_ns()), (100, 100));
}

#[test]
#[should_panic(expected = "is not in flight")]
fn a_step_that_was_not_polled_cannot_complete() {
    let mut load = load(&LoadSpec::Closed { depth: 1 }, &spec(), &requests(0, 3));
    let first = load.poll_request(Instant::ZERO).unwrap();
    load.handle_done(Instant::from_ns(1), first.tag, true);
    load.handle_done(Instant::from_ns(2), first.tag, true);
}

#[test]
fn a_failed_step_ends_its_task() {
    let mut load = load(&LoadSpec::Closed { depth: 1 }, &spec(), &requests(0, 10));
    let at = Instant::from_ns;
    let first = load.poll_request(at(0)).unwrap();
    load.handle_done(at(10), first.tag, false);
    let next = load.poll_request(at(10)).unwrap();
    assert_eq!((next.extent.sectors, next.kind), (1, RequestKind::Read));
    let tasks = load.recorder().tasks().expect("of several requests");
    assert_eq!((tasks.requests, tasks.failed), (0, 1));
}

#[test]
fn bad_tasks_are_named() {
    let key = |change: &dyn Fn(&mut Vec<StepSpec>)| {
        let mut spec = spec();
        change(spec.task.as_mut().unwrap());
        let load = LoadSpec::Closed { depth: 1 };
        Load::new(&load, &spec, &requests(0, 1), &[VOLUME], 512, Seed::new(1)).unwrap_err().key
    };
    assert_eq!(key(&|task| task.clear()), "workload.task");
    assert_eq!(key(&|task| task[1].same_extent_as = Some(1)), "workload.task[1].same_extent_as");
    assert_eq!(key(&|task| task[1].size = Some(SizeSpec::Fixed { bytes: 100 })), "workload.task[1].size.bytes");
    let stride = AddressSpec::Strided { stride_bytes: 1 };
    assert_eq!(key(&|task| task[0].address = Some(stride.clone())), "workload.task[0].address.stride");
}
