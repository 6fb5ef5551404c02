//! One end of a stream while it runs.
//!
//! Purpose: what a program waits for when it asks an end for a block, or gives it one. A file is read ahead of the program and
//! written behind it: the file system asks the array for requests of its own size, and the program waits only for what has
//! not come, or for room.
//!
//! Invariants:
//! - One block at a time: a side that is at work is not begun again.
//! - At most `ahead_bytes` beyond the program's block are asked for, and at most as many are written and not yet done.

use super::record::SideRecord;
use super::spec::{EndSpec, StreamSpec};
use super::tape::{TapeDrive, TapeReader, TapeWriter};
use raidlab_types::number::f64_from;
use raidlab_types::{Duration, Extent, Instant, RequestKind};
use std::collections::BTreeSet;

/// What an end is.
#[derive(Debug, Clone)]
pub(super) enum End {
    Memory,
    File(FileEnd),
    Player(TapeReader),
    Recorder(TapeWriter),
    Way(u32),
}

/// A file, as the host's file system keeps it.
#[derive(Debug, Clone)]
pub(super) struct FileEnd {
    pub volume: u32,
    pub kind: RequestKind,
    first_sector: u64,
    sector_bytes: u64,
    bytes: u64,
    request_bytes: u64,
    ahead_bytes: u64,
    us_per_kib: f64,
    /// Requests issued, of them those done without a gap from the first, and the others that are done.
    issued: u64,
    landed: u64,
    beyond: BTreeSet<u64>,
    /// Bytes that the program has given.
    pub written: u64,
}

impl FileEnd {
    /// The host's work for so many bytes.
    pub(super) fn work(&self, bytes: u64) -> Duration {
        Duration::from_s_f64(f64_from(bytes) / 1024.0 * self.us_per_kib / 1e6)
    }

    /// The next request to issue so that all up to `end`, and what is read ahead of it, has been asked for.
    pub(super) fn ask_before(&mut self, end: u64) -> Option<(u64, Extent)> {
        let until = (end + self.ahead_bytes).min(self.bytes);
        (self.issued * self.request_bytes < until).then(|| self.next())
    }

    /// The next request that is whole, or the last of the file.
    pub(super) fn ask_whole(&mut self) -> Option<(u64, Extent)> {
        let begin = self.issued * self.request_bytes;
        let is_due = begin + self.request_bytes <= self.written || self.written == self.bytes;
        (begin < self.written && is_due).then(|| self.next())
    }

    fn next(&mut self) -> (u64, Extent) {
        let begin = self.issued * self.request_bytes;
        let bytes = self.request_bytes.min(self.bytes - begin);
        let number = self.issued;
        self.issued += 1;
        let extent =
            Extent::new(self.first_sector + begin / self.sector_bytes, bytes.div_ceil(self.sector_bytes).max(1));
        (number, extent)
    }

    /// A request is done.
    pub(super) fn done(&mut self, number: u64) {
        self.beyond.insert(number);
        while self.beyond.remove(&self.landed) {
            self.landed += 1;
        }
    }

    /// Whether all before `end` is there.
    pub(super) fn has(&self, end: u64) -> bool {
        self.landed * self.request_bytes >= end
    }

    /// Whether what is on its way is little enough for the program to go on.
    pub(super) fn has_room(&self) -> bool {
        let under_way = self.issued - self.landed - self.beyond.len() as u64;
        under_way * self.request_bytes <= self.ahead_bytes
    }

    /// Whether nothing is on its way.
    pub(super) fn is_quiet(&self) -> bool {
        self.issued == self.landed
    }
}

/// What a side is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SideStage {
    /// Nothing: it waits for the other end, or has done all.
    Idle,
    /// Waits for requests.
    Array,
    /// The host works for it.
    Host,
    /// A tape, until then.
    Until(Instant),
    /// A block is on its way through stations.
    Carried,
}

/// One end of a stream.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub end: End,
    pub stage: SideStage,
    since: Instant,
    pub record: SideRecord,
}

impl Side {
    /// The source of a stream, or its sink, at rest.
    pub(super) fn new(stream: &StreamSpec, is_source: bool, sector_bytes: u64) -> Side {
        let end = match *(if is_source { &stream.source } else { &stream.sink }) {
            EndSpec::Memory => End::Memory,
            EndSpec::Way { way } => End::Way(way),
            EndSpec::Tape { mb_s, buffer_bytes, start_stop_ms } => {
                let drive = TapeDrive::new(mb_s, buffer_bytes, start_stop_ms);
                match is_source {
                    true => End::Player(TapeReader::new(drive)),
                    false => End::Recorder(TapeWriter::new(drive)),
                }
            }
            EndSpec::Array { volume, offset_bytes, request_bytes, ahead_bytes, file_us_per_kib } => {
                End::File(FileEnd {
                    volume,
                    kind: if is_source { RequestKind::Read } else { RequestKind::Write },
                    first_sector: offset_bytes / sector_bytes,
                    sector_bytes,
                    bytes: stream.bytes,
                    request_bytes: request_bytes.unwrap_or(stream.block_bytes),
                    ahead_bytes,
                    us_per_kib: file_us_per_kib,
                    issued: 0,
                    landed: 0,
                    beyond: BTreeSet::new(),
                    written: 0,
                })
            }
        };
        Side { end, stage: SideStage::Idle, since: Instant::ZERO, record: SideRecord::default() }
    }

    /// It begins a block.
    pub(super) fn begin(&mut self, now: Instant) {
        self.record.waited_ns += now.since(self.since).as_ns();
        self.since = now;
    }

    /// It has done with it.
    pub(super) fn end(&mut self, now: Instant) {
        self.record.busy_ns += now.since(self.since).as_ns();
        self.since = now;
        self.stage = SideStage::Idle;
        self.record.stops = match &self.end {
            End::Player(tape) => tape.stops,
            End::Recorder(tape) => tape.stops,
            _ => 0,
        };
    }

    /// When its tape is through; now, where it has none.
    pub(super) fn drained(&self, now: Instant) -> Instant {
        match &self.end {
            End::Recorder(tape) => now.max(Instant::from_ns(tape.drained_ns())),
            _ => now,
        }
    }
}
