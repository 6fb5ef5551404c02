//! Sequential streams between any two endpoints, all started together.
//!
//! Purpose: the rates at which data move along a path: memory to array, array to tape, both at once. Each stream moves
//! blocks one after another and says which of its ends it waited for; several at once say what they take from each
//! other.
//!
//! Order: check what can be checked, open all ends (the safety rules speak here), fill what raidlab has made, run, compare
//! if so asked. So bad input costs nothing.
//!
//! Invariants:
//! - Files and devices are opened once, by the rules of `crate::target`; what one stream writes no other uses.
//! - A stream is never ahead of its pace, a tape never faster than its rate.
//! - What was measured is kept, whatever ends the run.
//!
//! Code map: `config` what is asked, `check` whether it makes sense, `open` files and devices, `ends` sources and sinks, `far` a sink on another
//! machine, `sample` the user's own data, `pace` when blocks are due, `array` arrays with several ports, `flow` one stream, `launch` all of them, `verify` what arrived, `result` what came
//! of it.
//!
//! Reference: the transfers of A. Uselton, raw data rates of RAID chains, 2000 (`dd` on raw devices, one stream a chain),
//! and the acceptance tests of Jefferson Lab, 1998 (streams to and from a tape).

mod array;
mod check;
mod config;
mod ends;
mod far;
mod flow;
mod launch;
mod open;
mod pace;
mod result;
mod sample;
mod verify;

pub use config::{ArraySpec, EndpointSpec, LiveStreamSpec, StreamsConfig};
pub use result::{ArrayResult, EndResult, EndpointFacts, LateResult, StreamResult, StreamVerify, StreamsResult};
pub use sample::SampleFacts;

use crate::begin;
use crate::config::OnProgress;
use crate::error::LiveError;
use check::{check, check_memory};
use launch::launch;
use open::OpenTargets;
use sample::Sample;

/// Runs a cell. `observer` is told of progress about seven times a second, and may end the run with what it has.
///
/// # Errors
/// Before anything is measured: bad input, a refusal of the safety rules, a target that cannot be opened or filled. What
/// fails later is in [`StreamsResult::stopped_by`], beside what was measured.
pub fn run(config: &StreamsConfig, observer: OnProgress<'_>) -> Result<StreamsResult, LiveError> {
    let blocks = check(config)?;
    begin::check(config.begin_at_unix_ns)?;
    check_memory(config)?;
    let sample = Sample::of(config)?;
    let mut opened = OpenTargets::new(config, &blocks)?;
    let mut result = StreamsResult { data: sample.as_ref().map(Sample::facts), ..StreamsResult::default() };
    if opened.fill(config.seed, observer)?.is_break() {
        result.interrupted = true;
        return Ok(result);
    }
    result.endpoints = opened.facts(config)?;
    launch(config, &blocks, &mut opened, sample.as_ref(), &mut result, observer)?;
    Ok(result)
}
