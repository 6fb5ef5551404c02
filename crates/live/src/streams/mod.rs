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
//! - Files and devices are opened once, by the rules of [`crate::target`]; what one stream writes no other uses.
//! - A stream is never ahead of its pace, a tape never faster than its rate.
//! - What was measured is kept, whatever ends the run.
//!
//! Code map: `config` what is asked, `check` whether it makes sense, `open` files and devices, `ends` sources and sinks, `tape` and `pace` their times,
//! `flow` one stream, `verify` what arrived, `result` what came of it.
//!
//! Reference: the transfers of A. Uselton, raw data rates of RAID chains, 2000 (`dd` on raw devices, one stream a chain),
//! and the acceptance tests of Jefferson Lab, 1998 (streams to and from a tape).

mod check;
mod config;
mod ends;
mod flow;
mod open;
mod pace;
mod result;
mod tape;
mod verify;

pub use config::{EndpointSpec, StreamSpec, StreamsConfig};
pub use result::{EndResult, EndpointFacts, LateResult, StreamResult, StreamVerify, StreamsResult};

use crate::config::{Content, Progress, Stage, PULSE};
use crate::engine::Clock;
use crate::error::{plain, LiveError};
use crate::memory::{fill_random, Mapping};
use crate::workers::run_watched;
use check::{check, check_memory, region_bytes};
use ends::{Blocks, Maker, Region, Sink, Source};
use flow::{Flow, Flown};
use open::{key_of, Opened};
use pace::Time;
use raidlab_types::{Duration, Seed};
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Barrier;
use tape::{Drive, Playing, Recording};

type Observer<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// Runs a cell. `observer` is told of progress about seven times a second, and may end the run with what it has.
///
/// # Errors
/// Before anything is measured: bad input, a refusal of the safety rules, a target that cannot be opened or filled. What
/// fails later is in [`StreamsResult::stopped_by`], beside what was measured.
pub fn run(config: &StreamsConfig, observer: Observer<'_>) -> Result<StreamsResult, LiveError> {
    let blocks = check(config)?;
    check_memory(config)?;
    let mut opened = Opened::new(config, &blocks)?;
    let mut result = StreamsResult::default();
    if opened.fill(config.seed, observer)?.is_break() {
        result.interrupted = true;
        return Ok(result);
    }
    result.endpoints = opened.facts(config)?;
    let flown = fly(config, &blocks, &opened, &mut result, observer)?;
    let sent = settle(config, &opened, flown, &mut result);
    if config.content == Content::Verify && !result.interrupted && result.stopped_by.is_none() {
        compare(config, &opened, &blocks, &sent, &mut result, observer);
    }
    Ok(result)
}

/// Builds all streams and runs them.
fn fly(
    config: &StreamsConfig,
    blocks: &[Blocks],
    opened: &Opened,
    result: &mut StreamsResult,
    observer: Observer<'_>,
) -> Result<Vec<Flown>, LiveError> {
    let (stop, arrived) = (AtomicBool::new(false), AtomicU64::new(0));
    let is_overlapped =
        |spec: &StreamSpec| spec.buffers > 1 && !spec.from.is_passive(true) && !spec.to.is_passive(false);
    let threads = config.streams.iter().map(|spec| 1 + usize::from(is_overlapped(spec))).sum();
    let start = Barrier::new(threads);
    let make = |(i, spec)| {
        let made = ends(config, i, opened, is_overlapped(spec));
        made.map_err(|e| LiveError::io(format!("streams[{i}]"), "memory", "taking buffers", &e))
    };
    let made: Vec<_> = config.streams.iter().enumerate().map(make).collect::<Result<_, LiveError>>()?;
    // Memory is filled: the run's time begins now.
    let time = Time { clock: Clock::start(), stop: &stop };
    let mut flows = Vec::with_capacity(config.streams.len());
    for (i, (spec, (source, sink, buffers))) in config.streams.iter().zip(made).enumerate() {
        flows.push(Flow {
            name: spec.name.clone(),
            blocks: blocks[i],
            source,
            sink,
            buffers,
            overlapped: is_overlapped(spec),
            rate_mb_s: spec.rate_mb_s,
            limit_ns: config.duration_s.map_or(u64::MAX, |s| (s * 1e9) as u64),
            verify: config.content == Content::Verify,
            time,
            start: &start,
            arrived: &arrived,
        });
    }
    let total: u64 = blocks.iter().map(|b| b.bytes).fold(0, u64::saturating_add);
    let progress = || {
        let bytes = arrived.load(Ordering::Relaxed);
        let elapsed = Duration::from_ns(time.now_ns());
        let by_time = config.duration_s.map_or(0.0, |s| elapsed.as_s_f64() / s);
        let fraction = (bytes as f64 / total as f64).max(by_time).min(1.0);
        Progress { stage: Stage::Running, fraction, requests: bytes, elapsed }
    };
    let work = |flow: Flow<'_>| {
        let flown = flow.run();
        if flown.failed.is_some() {
            stop.store(true, Ordering::Relaxed);
        }
        flown
    };
    let works = flows.into_iter().map(|flow| || work(flow)).collect();
    let flown = run_watched(works, &mut || {
        if !result.interrupted && observer(progress()).is_break() {
            result.interrupted = true;
            stop.store(true, Ordering::Relaxed);
        }
    });
    Ok(flown)
}

/// The ends of a stream and its buffers.
fn ends<'a>(
    config: &StreamsConfig,
    stream: usize,
    opened: &'a Opened,
    overlapped: bool,
) -> io::Result<(Source<'a>, Sink<'a>, Vec<Mapping>)> {
    let spec = &config.streams[stream];
    let block_bytes = spec.block_bytes;
    let mut random = Seed::new(config.seed).named("content").child(stream as u64).draws();
    let mut filled = |bytes: u64| -> io::Result<Mapping> {
        let mut memory = Mapping::new(bytes as usize)?;
        fill_random(memory.bytes_mut(), &mut random);
        Ok(memory)
    };
    let maker = Maker::new(config.seed, stream as u32, block_bytes);
    let drive = |rate_mb_s: f64, buffer_bytes, start_stop_ms: f64| Drive {
        ns_per_byte: 1000.0 / rate_mb_s,
        buffer_bytes,
        start_stop_ns: (start_stop_ms * 1e6) as u64,
    };
    let missing = || io::Error::other("it is not open");
    let source = match &spec.from {
        EndpointSpec::Null => Source::Null,
        EndpointSpec::Memory { size_bytes } => {
            let memory = filled(region_bytes(*size_bytes, block_bytes))?;
            Source::Memory(Region { memory, block_bytes }, maker)
        }
        EndpointSpec::Tape { rate_mb_s, buffer_bytes, start_stop_ms } => {
            Source::Tape(Playing::new(drive(*rate_mb_s, *buffer_bytes, *start_stop_ms)), maker)
        }
        _ => Source::Part(opened.part(stream, true).ok_or_else(missing)?),
    };
    let sink = match &spec.to {
        EndpointSpec::Null => Sink::Null,
        EndpointSpec::Memory { size_bytes } => {
            let memory = filled(region_bytes(*size_bytes, block_bytes))?;
            Sink::Memory(Region { memory, block_bytes })
        }
        EndpointSpec::Tape { rate_mb_s, buffer_bytes, start_stop_ms } => {
            Sink::Tape(Recording::new(drive(*rate_mb_s, *buffer_bytes, *start_stop_ms)))
        }
        _ => Sink::Part(opened.part(stream, false).ok_or_else(missing)?),
    };
    let number = if overlapped { spec.buffers } else { 1 };
    let buffers = (0..number).map(|_| filled(block_bytes)).collect::<io::Result<Vec<Mapping>>>()?;
    Ok((source, sink, buffers))
}

/// Puts the results of all streams in, with the first failure; gives the digests of what was sent.
fn settle(config: &StreamsConfig, opened: &Opened, flown: Vec<Flown>, result: &mut StreamsResult) -> Vec<Vec<u64>> {
    // Streams count from the first start of any.
    let first = flown.iter().map(|f| f.result.start_ns).min().unwrap_or(0);
    let mut sent = Vec::with_capacity(flown.len());
    for (i, mut one) in flown.into_iter().enumerate() {
        if let (Some(failed), None) = (&one.failed, &result.stopped_by) {
            let key = format!("{}.path", key_of(i, failed.is_source));
            let target = opened.name(i, failed.is_source, config);
            let cut = failed.error.kind() == io::ErrorKind::UnexpectedEof;
            let why = if cut { "it ends there".to_string() } else { plain(&failed.error) };
            let message = format!("{} at byte {} of the stream: {why}", failed.doing, failed.offset);
            let errno = failed.error.raw_os_error().unwrap_or(0);
            result.stopped_by = Some(LiveError::Io { key, target, errno, message });
        }
        one.result.start_ns -= first;
        result.elapsed_ns = result.elapsed_ns.max(one.result.start_ns + one.result.elapsed_ns);
        result.streams.push(one.result);
        sent.push(one.sent);
    }
    sent
}

/// Reads back what was written to files and devices.
fn compare(
    config: &StreamsConfig,
    opened: &Opened,
    blocks: &[Blocks],
    sent: &[Vec<u64>],
    result: &mut StreamsResult,
    observer: Observer<'_>,
) {
    let total = result.streams.iter().map(|s| s.bytes).sum::<u64>().max(1);
    let clock = Clock::start();
    let (mut done, mut told) = (0, 0);
    let mut progress = |bytes: u64| {
        done += bytes;
        let now = clock.now().as_ns();
        if now < told + PULSE.as_ns() {
            return ControlFlow::Continue(());
        }
        told = now;
        let fraction = (done as f64 / total as f64).min(1.0);
        observer(Progress { stage: Stage::Checking, fraction, requests: done, elapsed: Duration::from_ns(now) })
    };
    for i in 0..config.streams.len() {
        let Some(part) = opened.part(i, false) else { continue };
        let report = result.streams[i].verify.get_or_insert_default();
        match verify::read_back(part, blocks[i], &sent[i], report, &mut progress) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => {
                result.interrupted = true;
                return;
            }
            Err(e) => {
                let (key, name) = (format!("{}.path", key_of(i, false)), opened.name(i, false, config));
                result.stopped_by = Some(LiveError::io(key, name, "reading it back", &e));
                return;
            }
        }
    }
}
