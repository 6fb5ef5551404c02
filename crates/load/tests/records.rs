//! Rows of single requests say what the recorder has counted, and nothing else.

mod common;

use common::*;
use raidlab_load::{
    ArrivalSpec, Load, LoadSpec, RecordSink, RecordedLoad, RequestLog, RequestRecord, StepOp, StepSpec, Times,
    WorkloadSpec,
};
use raidlab_types::RequestKind;
use std::sync::{Arc, Mutex};

/// Keeps all rows, batch by batch.
#[derive(Default, Clone)]
struct Kept(Arc<Mutex<Vec<Vec<RequestRecord>>>>);

impl RecordSink for Kept {
    fn take(&mut self, rows: &mut Vec<RequestRecord>) {
        self.0.lock().unwrap().push(rows.clone());
        rows.clear();
    }
}

/// One request in seven fails; all others take a time that depends on their address.
struct Unreliable(u64);

impl Array for Unreliable {
    fn serve(&mut self, now_ns: u64, request: &raidlab_types::Request) -> (u64, bool) {
        self.0 += 1;
        (now_ns + MS + request.extent.lba % 977 * 1000, !self.0.is_multiple_of(7))
    }
}

/// Longest time and count of each bucket.
type Columns = Vec<(u64, u64)>;

/// Response and service times of those that were counted.
fn histograms(rows: &[RequestRecord], kind: RequestKind) -> (Columns, Columns) {
    let (mut response, mut service) = (Times::new(), Times::new());
    for row in rows.iter().filter(|row| row.kind == kind && row.measured && !row.failed) {
        response.record(row.end_ns - row.arrival_ns);
        service.record(row.end_ns - row.start_ns);
    }
    (response.columns().collect(), service.columns().collect())
}

#[test]
fn rows_make_the_recorders_own_histograms() {
    let open = LoadSpec::Open { arrival: ArrivalSpec::H2 { rate_per_s: 4_000.0, cv2: 3.0 }, max_in_flight: Some(8) };
    let hold = LoadSpec::Hold { percentile: 90.0, target_ms: 1.5, initial_depth: 4, max_depth: 64 };
    let step = |op, same_extent_as| StepSpec { op, size: None, address: None, same_extent_as };
    let steps = vec![step(StepOp::Read, None), step(StepOp::Write, Some(0))];
    let task = WorkloadSpec { task: Some(steps), ..workload() };
    for spec in [LoadSpec::Closed { depth: 16 }, open, hold] {
        for workload in [workload(), task.clone()] {
            let kept = Kept::default();
            let plain: Load = load(&spec, &workload, &requests(500, 5_000));
            let mut recorded = RecordedLoad::new(plain, RequestLog::new(1_000, Box::new(kept.clone())), 512);
            let driven = drive(&mut recorded, &mut Unreliable(0), |_, _| {});
            let recorder = recorded.recorder().clone();
            drop(recorded);
            let batches = kept.0.lock().unwrap();
            assert!(batches.iter().rev().skip(1).all(|batch| batch.len() == 1_000), "full batches, but for the last");
            let rows = batches.concat();
            for (kind, tally) in [(RequestKind::Read, recorder.read()), (RequestKind::Write, recorder.write())] {
                let counted = (tally.response.columns().collect(), tally.service.columns().collect());
                assert_eq!(histograms(&rows, kind), counted, "{spec:?} {kind:?}");
                let of_kind = rows.iter().filter(|row| row.kind == kind && row.measured);
                let (failed, done): (Vec<&RequestRecord>, Vec<_>) = of_kind.partition(|row| row.failed);
                assert_eq!(failed.len() as u64, tally.failed);
                assert_eq!(done.iter().map(|row| row.bytes).sum::<u64>(), tally.bytes);
            }
            assert!(rows.iter().any(|row| !row.measured), "warm-up is kept, and marked");
            assert!(rows.is_sorted_by_key(|row| row.end_ns));
            let asked = |row: &RequestRecord| {
                let at = |one: &&IssuedRequest| {
                    let extent = one.request.extent;
                    one.issued_ns == row.start_ns
                        && extent.lba * 512 == row.offset_bytes
                        && one.request.kind == row.kind
                };
                driven.iter().any(|one| at(&one) && one.request.extent.sectors * 512 == row.bytes)
            };
            assert!(rows.iter().step_by(97).all(asked), "a row's place is that of its request");
        }
    }
}
