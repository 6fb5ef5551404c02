//! The sans-IO offered load: arrivals, sizes, addresses, tasks, load control, and the recorder.
//!
//! Purpose: one generator of requests for the simulator and the live engine, so that "queue depth 32", "Poisson 300/s"
//! and "hold the 90th percentile at 200 ms" mean the same on both; and the record of what came of them.
//!
//! Code map: [`LoadSpec`], [`WorkloadSpec`] and [`Limits`] are the words of a cell's JSON text; [`Load`] offers requests and
//! is told of completions; [`Recorder`] keeps histograms and counts; [`control`] finds the load at which a response time
//! is held; [`files`] is the load of those who read whole files, [`streams`] that of those who copy, [`trace`] that of
//! requests recorded elsewhere; [`Generator`] is what a clock asks of any of them. Kinds of arrivals, sizes and addresses, and formats of traces, have a file each and a list
//! in their room's `mod.rs`.
//!
//! Invariants:
//! - No clock, file, thread or global random number: time is an argument, randomness a function of a seed.
//! - Request `i` of a stream is a function of (seed, stream, i), whatever completes when, bit for bit on every machine.
//! - Nothing is allocated for a request.

#![cfg_attr(test, allow(clippy::pedantic, reason = "its casts: numbers of tests are small"))]

mod address;
mod arrival;
pub mod control;
mod draw;
mod error;
pub mod files;
mod generator;
mod lanes;
pub mod load;
pub mod recorder;
mod request_log;
mod size;
pub mod spec;
pub mod streams;
pub mod trace;
mod workload;

pub use control::adjust::HoldReport;
pub use control::search::{Answer, DepthSearch, Point};
pub use error::SpecError;
pub use generator::Generator;
pub use load::{Backlog, Load, MOST_IN_FLIGHT};
pub use raidlab_types::Volume;
pub use recorder::{Recorder, Snapshot, Tally, Times, LONGEST_NS, SIGNIFICANT_DIGITS, SNAPSHOT_NS};
pub use request_log::{RecordSink, RecordedLoad, RequestLog, RequestRecord, RequestTimes};
pub use size::Sizes;
pub use spec::{
    AddressSpec, Align, AlignUnit, ArrivalSpec, Limit, Limits, LoadSpec, SizeSpec, StepOp, StepSpec, VolumeSpec,
    WorkloadSpec,
};
