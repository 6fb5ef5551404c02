//! All streams at once: built, started together, watched, and their results put in one place.
//!
//! Invariants:
//! - Nothing runs before everything that can fail has been taken: buffers, engines, threads' places at the start.
//! - Of several failures the one worth telling is kept: that of an array before those of the streams that used it.

use super::array::{Hub, Port};
use super::check::region_bytes;
use super::config::{EndOfStream, EndpointSpec, LiveStreamSpec, StreamsConfig};
use super::ends::{self, FileRegion, Maker, Region, StreamBlocks, StreamSink, StreamSource};
use super::far::Connection;
use super::flow::{Flow, StreamOutcome, StreamReader, StreamWriter};
use super::open::OpenTargets;
use super::pace::Time;
use super::result::{LateResult, StreamResult, StreamVerify, StreamsResult};
use super::sample::{self, Sample};
use super::verify::compare;
use crate::begin;
use crate::config::{ContentMode, OnProgress, RunProgress, RunStage};
use crate::error::{plain, LiveError};
use crate::io::Clock;
use crate::memory::{fill_random, MemoryMapping};
use crate::workers::run_watched;
use raidlab_load::streams::tape::{TapeDrive, TapeReader, TapeWriter};
use raidlab_types::number::{f64_from, saturating_u64, u32_from, usize_from};
use raidlab_types::{Duration, Seed};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::Barrier;

/// Where what a stream has written can be read again.
pub(super) enum ReadTarget<'a> {
    Part(FileRegion<'a>),
    Array(Port),
}

/// A stream with its ends, not yet started.
struct StreamEnds<'a> {
    source: StreamSource<'a>,
    sink: StreamSink<'a>,
    buffers: Vec<MemoryMapping>,
    /// What it has written, if that is to be compared.
    written: Option<ReadTarget<'a>>,
}

fn is_overlapped(spec: &LiveStreamSpec) -> bool {
    spec.buffers > 1 && !spec.source.is_passive(true) && !spec.sink.is_passive(false)
}

/// Runs all streams, and compares what arrived if so asked.
pub(super) fn launch(
    config: &StreamsConfig,
    blocks: &[StreamBlocks],
    opened: &mut OpenTargets,
    sample: Option<&Sample>,
    result: &mut StreamsResult,
    observer: OnProgress<'_>,
) -> Result<(), LiveError> {
    let mut hubs: Vec<Hub> = std::mem::take(&mut opened.arrays).into_iter().map(Hub::new).collect();
    let make = |i| {
        let made = make(config, i, opened, sample, &mut hubs);
        made.map_err(|e| LiveError::io(format!("streams[{i}]"), "its ends", "taking what they need", &e))
    };
    let made = (0..config.streams.len()).map(make).collect::<Result<Vec<StreamEnds<'_>>, LiveError>>()?;
    std::thread::scope(|scope| {
        let serve = |hub: Hub| {
            let (ready, is_ready) = channel();
            (scope.spawn(move || hub.serve(ready)), is_ready)
        };
        let serving: Vec<_> = hubs.into_iter().map(serve).collect();
        let begun = serving.iter().enumerate().try_for_each(|(i, (_, is_ready))| {
            // A hub that cannot answer has panicked, which joining it passes on.
            is_ready.recv().unwrap_or(Ok(())).map_err(|e| e.below(&format!("arrays[{i}]")))
        });
        match begun {
            Ok(()) => run_all(config, blocks, made, result, observer),
            Err(_) => drop(made),
        }
        // The last port is gone, so the hubs come to their end.
        for (i, (hub, _)) in serving.into_iter().enumerate() {
            let mut array = hub.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if let Some(failure) = array.failure.take() {
                result.stopped_by = Some(failure.below(&format!("arrays[{i}]")));
            }
            result.arrays.push(array);
        }
        begun
    })
}

fn run_all(
    config: &StreamsConfig,
    blocks: &[StreamBlocks],
    made: Vec<StreamEnds<'_>>,
    result: &mut StreamsResult,
    observer: OnProgress<'_>,
) {
    if begin::wait(config.begin_at_unix_ns, observer).is_break() {
        result.interrupted = true;
        return;
    }
    let (stop, arrived) = (AtomicBool::new(false), AtomicU64::new(0));
    let threads = config.streams.iter().map(|spec| 1 + usize::from(is_overlapped(spec))).sum();
    let start = Barrier::new(threads);
    let time = Time { clock: Clock::start(), stop: &stop };
    let limit_ns = config.duration_s.map_or(u64::MAX, |s| saturating_u64(s * 1e9));
    let (mut flows, mut written) = (Vec::with_capacity(made.len()), Vec::with_capacity(made.len()));
    for ((spec, one), &blocks) in config.streams.iter().zip(made).zip(blocks) {
        let result = StreamResult {
            name: spec.name.clone(),
            overlapped: is_overlapped(spec),
            late: spec.rate_mb_s.map(|_| LateResult::default()),
            verify: (config.content == ContentMode::Verify).then(StreamVerify::default),
            ..StreamResult::default()
        };
        let reader = StreamReader::new(one.source, time, limit_ns);
        let writer = StreamWriter::new(one.sink, time, result, blocks.count(), &arrived);
        flows.push(Flow { blocks, reader, writer, buffers: one.buffers, rate_mb_s: spec.rate_mb_s, start: &start });
        written.push(one.written);
    }
    let total: u64 = blocks.iter().map(|b| b.bytes).fold(0, u64::saturating_add);
    let progress = || {
        let bytes = arrived.load(Ordering::Relaxed);
        let elapsed = Duration::from_ns(time.now_ns());
        let by_time = config.duration_s.map_or(0.0, |s| elapsed.as_s_f64() / s);
        let fraction = (f64_from(bytes) / f64_from(total)).max(by_time).min(1.0);
        RunProgress { stage: RunStage::Running, fraction, requests: bytes, elapsed }
    };
    let work = |flow: Flow<'_>| {
        let outcome = flow.run();
        if outcome.failed.is_some() {
            stop.store(true, Ordering::Relaxed);
        }
        outcome
    };
    let works = flows.into_iter().map(|flow| || work(flow)).collect();
    let outcomes = run_watched(works, &mut || {
        if !result.interrupted && observer(progress()).is_break() {
            result.interrupted = true;
            stop.store(true, Ordering::Relaxed);
        }
    });
    result.began_unix_ns = begin::began_unix_ns_of(time.clock);
    let sent = settle(config, outcomes, result);
    if !result.interrupted && result.stopped_by.is_none() {
        compare(config, &written, blocks, &sent, result, observer);
    }
}

/// The ends of a stream and its buffers.
fn make<'a>(
    config: &StreamsConfig,
    stream: usize,
    opened: &'a OpenTargets,
    sample: Option<&Sample>,
    hubs: &mut [Hub],
) -> io::Result<StreamEnds<'a>> {
    let spec = &config.streams[stream];
    let part = |is_source| opened.part(EndOfStream { stream, is_source });
    let block_bytes = spec.block_bytes;
    let mut random = Seed::new(config.seed).named("content").child(stream as u64).draws();
    let mut filled = |bytes: u64| -> io::Result<MemoryMapping> {
        let mut memory = MemoryMapping::new(usize_from(bytes))?;
        fill_random(memory.bytes_mut(), &mut random);
        Ok(memory)
    };
    let maker = Maker::new(config.seed, u32_from(stream), block_bytes);
    let missing = || io::Error::other("it is not open");
    let source = match &spec.source {
        EndpointSpec::Null => StreamSource::Null,
        EndpointSpec::Memory { size_bytes } => {
            let (memory, maker) = match sample {
                Some(sample) => (sample.region(*size_bytes, block_bytes)?, None),
                None => (filled(region_bytes(*size_bytes, block_bytes))?, Some(maker)),
            };
            StreamSource::Memory(Region { memory, block_bytes }, maker)
        }
        EndpointSpec::Tape { mb_s, buffer_bytes, start_stop_ms } => {
            let content = match sample {
                Some(sample) => ends::Payload::Sample(Region {
                    memory: sample.region(sample::MOST_BYTES, block_bytes)?,
                    block_bytes,
                }),
                None => ends::Payload::Generated(maker),
            };
            StreamSource::Tape(TapeReader::new(TapeDrive::new(*mb_s, *buffer_bytes, *start_stop_ms)), content)
        }
        EndpointSpec::Array { array, volume, offset_bytes } => {
            StreamSource::Array(hubs[*array].port(*volume, *offset_bytes))
        }
        _ => StreamSource::Part(part(true).ok_or_else(missing)?),
    };
    let sink = match &spec.sink {
        EndpointSpec::Null => StreamSink::Null,
        EndpointSpec::Memory { size_bytes } => {
            let memory = filled(region_bytes(*size_bytes, block_bytes))?;
            StreamSink::Memory(Region { memory, block_bytes })
        }
        EndpointSpec::Tape { mb_s, buffer_bytes, start_stop_ms } => {
            StreamSink::Tape(TapeWriter::new(TapeDrive::new(*mb_s, *buffer_bytes, *start_stop_ms)))
        }
        EndpointSpec::Array { array, volume, offset_bytes } => {
            StreamSink::Array(hubs[*array].port(*volume, *offset_bytes))
        }
        EndpointSpec::Connection { descriptor } => StreamSink::Far(Connection::new(*descriptor)?),
        _ => StreamSink::Part(part(false).ok_or_else(missing)?),
    };
    let written = match (&spec.sink, config.content) {
        (_, ContentMode::Random) => None,
        (EndpointSpec::Array { array, volume, offset_bytes }, _) => {
            Some(ReadTarget::Array(hubs[*array].port(*volume, *offset_bytes)))
        }
        _ => part(false).map(ReadTarget::Part),
    };
    let number = if is_overlapped(spec) { spec.buffers } else { 1 };
    let buffers = (0..number).map(|_| filled(block_bytes)).collect::<io::Result<Vec<MemoryMapping>>>()?;
    Ok(StreamEnds { source, sink, buffers, written })
}

/// Puts the results of all streams in, with the first failure; gives the digests of what was sent.
fn settle(config: &StreamsConfig, outcomes: Vec<StreamOutcome>, result: &mut StreamsResult) -> Vec<Vec<u64>> {
    // Streams count from the first start of any.
    let first = outcomes.iter().map(|one| one.result.start_ns).min().unwrap_or(0);
    result.began_unix_ns += first;
    let mut sent = Vec::with_capacity(outcomes.len());
    for (i, mut one) in outcomes.into_iter().enumerate() {
        if let (Some(failed), None) = (&one.failed, &result.stopped_by) {
            let end = EndOfStream { stream: i, is_source: failed.is_source };
            let (key, target) = (end.place(config), end.spec(config).name());
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
