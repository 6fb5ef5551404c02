//! What a run of streams answers.

use super::sample::SampleFacts;
use crate::error::LiveError;
use crate::lateness::Lateness;
use crate::result::{Check, FailedMember, MemberCounts};
use crate::target::TargetFacts;
use raidlab_load::Times;
use serde::Serialize;

/// The record of a run.
#[derive(Debug, Clone, Default)]
pub struct StreamsResult {
    /// One a stream.
    pub streams: Vec<StreamResult>,
    /// When the first of them started, by the machine's clock; 0 if none has.
    pub began_unix_ns: u64,
    /// Until the last stream has ended.
    pub elapsed_ns: u64,
    /// What the ends are.
    pub endpoints: Vec<EndpointFacts>,
    /// What the arrays are, and what they did.
    pub arrays: Vec<ArrayResult>,
    /// The user's own data, where these were handed over.
    pub data: Option<SampleFacts>,
    /// Whether the observer stopped it.
    pub interrupted: bool,
    /// What stopped it before its end, if something did; what was measured till then is here.
    pub stopped_by: Option<LiveError>,
}

impl StreamsResult {
    /// What the engines found of themselves.
    pub fn checks(&self) -> Vec<Check> {
        self.arrays.iter().filter_map(|array| array.lateness.and_then(|lateness| lateness.check())).collect()
    }
}

/// What an end of a stream is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndpointFacts {
    /// Number of the stream.
    pub stream: u32,
    /// `from` or `to`.
    pub side: &'static str,
    /// Kind of the endpoint.
    pub kind: &'static str,
    /// The file or device, where it is one.
    pub target: Option<TargetFacts>,
    /// Which array, where it is one.
    pub array: Option<usize>,
    /// What of a source was in the page cache at the start; none where it cannot be known or there is none.
    pub cached_bytes: Option<u64>,
}

/// What an array is, and what it did for all streams together.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ArrayResult {
    /// Its members; a missing one has none.
    pub targets: Vec<Option<TargetFacts>>,
    /// What they did.
    pub members: Vec<MemberCounts>,
    /// Those that were found gone.
    pub failed_members: Vec<FailedMember>,
    /// `io_uring`, `memory` or `emulated`.
    pub interface: &'static str,
    /// The parity kernels that ran.
    pub parity_backend: &'static str,
    /// How late completions of emulated members were; none without such members.
    pub lateness: Option<Lateness>,
    /// Why it stopped, if it did.
    #[serde(skip)]
    pub(super) failure: Option<LiveError>,
}

/// What one stream did.
#[derive(Debug, Clone, Default)]
pub struct StreamResult {
    /// What it is called.
    pub name: String,
    /// Bytes that have arrived.
    pub bytes: u64,
    /// Blocks that have arrived.
    pub blocks: u64,
    /// When it started, counted from the start of all.
    pub start_ns: u64,
    /// From its start to its end, synchronising included.
    pub elapsed_ns: u64,
    /// Time of that for the sink to have everything for good: synchronising, running the tape to its end.
    pub sync_ns: u64,
    /// Whether reading and writing overlapped.
    pub overlapped: bool,
    /// Time spent waiting for the pace.
    pub paced_ns: u64,
    /// The end that bytes come from.
    pub source: EndResult,
    /// The end that they go to.
    pub sink: EndResult,
    /// How late blocks were handed over, if the stream is paced.
    pub late: Option<LateResult>,
    /// Bytes that arrived in each second of the run.
    pub series: Vec<u64>,
    /// What was compared, if it was.
    pub verify: Option<StreamVerify>,
}

/// What one end of a stream did.
#[derive(Debug, Clone, Default)]
pub struct EndResult {
    /// Time in its calls.
    pub busy_ns: u64,
    /// Time in which it stood ready and the other end was not: no free buffer, or none filled.
    pub waited_ns: u64,
    /// Times of its calls.
    pub time: Times,
    /// How often the tape stopped.
    pub stops: u64,
}

impl EndResult {
    pub(super) fn record(&mut self, ns: u64) {
        self.busy_ns += ns;
        self.time.record(ns);
    }
}

/// How late blocks were.
#[derive(Debug, Clone, Default)]
pub struct LateResult {
    /// Times after they were due.
    pub time: Times,
    /// The longest.
    pub max_ns: u64,
}

/// What was compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamVerify {
    /// Blocks that were looked at where they had arrived.
    pub blocks_checked: u64,
    /// Those that were not what had been sent.
    pub mismatch_count: u64,
    /// The first of them: where in the stream.
    pub mismatches: Vec<u64>,
}

/// Mismatches kept by place; beyond that they are only counted.
const KEPT: usize = 16;

impl StreamVerify {
    pub(super) fn note(&mut self, offset_bytes: u64, is_right: bool) {
        self.blocks_checked += 1;
        if is_right {
            return;
        }
        self.mismatch_count += 1;
        if self.mismatches.len() < KEPT {
            self.mismatches.push(offset_bytes);
        }
    }
}

impl StreamResult {
    /// What took most of the time: the source, the sink, or the pace.
    pub fn bound_by(&self) -> &'static str {
        let sides = [("source", self.source.busy_ns), ("sink", self.sink.busy_ns), ("pace", self.paced_ns)];
        // Of equals the first, so that nothing but numbers decides.
        sides.iter().rev().max_by_key(|side| side.1).map_or("source", |side| side.0)
    }

    pub(super) fn arrived(&mut self, now_ns: u64, bytes: u64) {
        self.bytes += bytes;
        self.blocks += 1;
        let second = (now_ns / 1_000_000_000) as usize;
        if second >= self.series.len() {
            self.series.resize(second + 1, 0);
        }
        self.series[second] += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_part_bounds_and_seconds_without_bytes_count() {
        let mut stream = StreamResult { paced_ns: 5, ..StreamResult::default() };
        assert_eq!(stream.bound_by(), "pace");
        stream.sink.busy_ns = 6;
        assert_eq!(stream.bound_by(), "sink");
        stream.source.busy_ns = 6;
        assert_eq!(stream.bound_by(), "source");
        stream.arrived(100, 7);
        stream.arrived(3_000_000_000, 8);
        assert_eq!((stream.series.clone(), stream.bytes, stream.blocks), (vec![7, 0, 0, 8], 15, 2));
    }
}
