//! All streams of a run, on a clock that is told.
//!
//! Purpose: the load of an array whose clients copy. A program takes a block from one end and gives it to the other; how many
//! blocks are under way between them says whether it does one after the other or both at once.
//!
//! The driver's order at each event: [`Generator::handle_done`] and [`Generator::handle_work_done`] for what has ended, then
//! [`Generator::poll_request`], [`Generator::poll_work`] and [`Generator::poll_carry`] until they give none, then wait for
//! the next of these or for [`Generator::poll_timeout`], until [`Generator::is_finished`].
//!
//! Invariants:
//! - All streams start together; the run ends when the last of them has.
//! - A stream has ended when its sink has everything for good.

use super::record::StreamRecord;
use super::side::{End, Side, SideStage};
use super::spec::{check, StreamSpec};
use crate::recorder::{CompletedRequest, Recorder};
use crate::{Generator, Limits, SpecError, Volume};
use raidlab_types::number::{u32_from, usize_from};
use raidlab_types::{Duration, Instant, Request, RequestKind, RequestTag};
use slab::Slab;
use std::collections::VecDeque;

/// A block that goes along one of the path's ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carry {
    /// Whose, as in [`Generator::poll_work`].
    pub who: u32,
    /// Which way.
    pub way: u32,
    /// How much.
    pub bytes: u64,
    /// Whether it leaves the array, rather than going there.
    pub outward: bool,
}

/// A request on its way: of which side, and which of its requests.
#[derive(Debug, Clone, Copy)]
struct StreamRequest {
    who: u32,
    number: u64,
    kind: RequestKind,
    bytes: u64,
    asked: Instant,
}

#[derive(Debug, Clone)]
struct StreamState {
    spec: StreamSpec,
    blocks: u64,
    /// Blocks that the source has handed over, and the sink has taken.
    taken: u64,
    given: u64,
    sides: [Side; 2],
    /// When the sink had taken the last block.
    through: Option<Instant>,
    ended: Option<Instant>,
}

const SOURCE: usize = 0;
const SINK: usize = 1;

impl StreamState {
    fn block(&self, index: u64) -> u64 {
        self.spec.block_bytes.min(self.spec.bytes - index * self.spec.block_bytes)
    }
}

/// The offered load of one run. The head of this file gives the order of calls.
#[derive(Debug, Clone)]
pub struct StreamLoad {
    streams: Vec<StreamState>,
    sector_bytes: u64,
    pending: Slab<StreamRequest>,
    requests: VecDeque<Request>,
    work: VecDeque<(u32, Duration)>,
    carries: VecDeque<Carry>,
    begun: bool,
    left: usize,
    now: Instant,
    recorder: Recorder,
}

impl StreamLoad {
    /// The streams that a cell describes, over these volumes; `ways` are there.
    pub fn new(
        specs: &[StreamSpec],
        limits: &Limits,
        volumes: &[Volume],
        sector_bytes: u32,
        ways: usize,
    ) -> Result<StreamLoad, SpecError> {
        if specs.is_empty() {
            return Err(SpecError::new("streams", "there is none; accepted: at least one"));
        }
        let sector = u64::from(sector_bytes);
        for (i, spec) in specs.iter().enumerate() {
            check(&format!("streams[{i}]"), spec, volumes, sector, ways)?;
        }
        let running = |spec: &StreamSpec| StreamState {
            spec: spec.clone(),
            blocks: spec.bytes.div_ceil(spec.block_bytes),
            taken: 0,
            given: 0,
            sides: [Side::new(spec, true, sector), Side::new(spec, false, sector)],
            through: None,
            ended: None,
        };
        Ok(StreamLoad {
            streams: specs.iter().map(running).collect(),
            sector_bytes: sector,
            pending: Slab::new(),
            requests: VecDeque::new(),
            work: VecDeque::new(),
            carries: VecDeque::new(),
            begun: false,
            left: specs.len(),
            now: Instant::ZERO,
            recorder: Recorder::new(limits, 1, false)?,
        })
    }

    fn observe(&mut self, now: Instant) {
        self.now = now;
        self.recorder.observe(now);
    }

    /// Begins whatever either side may begin.
    fn proceed(&mut self, stream: usize) {
        loop {
            let StreamState { spec, taken, given, blocks, sides, .. } = &self.streams[stream];
            let is_idle = |side: usize| sides[side].stage == SideStage::Idle;
            // What is being given still fills its buffer.
            if is_idle(SOURCE) && taken < blocks && taken - given < u64::from(spec.buffers) {
                self.begin(stream, SOURCE);
            } else if is_idle(SINK) && given < taken {
                self.begin(stream, SINK);
            } else {
                return;
            }
            // Memory is through at once: then there is more to begin.
        }
    }

    fn begin(&mut self, stream: usize, side: usize) {
        let (now, who) = (self.now, u32_from(stream * 2 + side));
        let running = &mut self.streams[stream];
        let index = if side == SOURCE { running.taken } else { running.given };
        let bytes = running.block(index);
        running.sides[side].begin(now);
        match &mut running.sides[side].end {
            End::Memory => self.count_block(stream, side),
            End::Player(tape) => {
                let at = Instant::from_ns(tape.give(now.as_ns(), bytes));
                self.wait_until(stream, side, at);
            }
            End::Recorder(tape) => {
                let at = Instant::from_ns(tape.take(now.as_ns(), bytes));
                self.wait_until(stream, side, at);
            }
            End::Way(way) => {
                let carry = Carry { who, way: *way, bytes, outward: side == SINK };
                running.sides[side].stage = SideStage::Carried;
                self.carries.push_back(carry);
            }
            End::File(_) if side == SOURCE => {
                running.sides[side].stage = SideStage::Array;
                self.ask(stream, side);
                self.array_moved(stream, side);
            }
            End::File(file) => {
                let cost = file.work(bytes);
                running.sides[side].stage = SideStage::Host;
                self.work.push_back((who, cost));
            }
        }
    }

    fn wait_until(&mut self, stream: usize, side: usize, at: Instant) {
        if at <= self.now {
            return self.count_block(stream, side);
        }
        self.streams[stream].sides[side].stage = SideStage::Until(at);
    }

    /// Issues what the file system of a side is to ask for by now.
    fn ask(&mut self, stream: usize, side: usize) {
        let running = &mut self.streams[stream];
        let end = (running.taken + 1) * running.spec.block_bytes;
        loop {
            let End::File(file) = &mut self.streams[stream].sides[side].end else { return };
            let next = if side == SOURCE { file.ask_before(end) } else { file.ask_whole() };
            let Some((number, extent)) = next else { return };
            let (volume, kind) = (file.volume, file.kind);
            let bytes = extent.sectors * self.sector_bytes;
            let who = u32_from(stream * 2 + side);
            let tag = self.pending.insert(StreamRequest { who, number, kind, bytes, asked: self.now }) as RequestTag;
            self.recorder.issued(self.now);
            self.requests.push_back(Request { tag, volume, kind, extent, force_unit_access: false });
        }
    }

    /// Whether what a side waits for at the array has come.
    fn array_moved(&mut self, stream: usize, side: usize) {
        let running = &mut self.streams[stream];
        let index = running.taken.min(running.blocks - 1);
        let bytes = running.block(index);
        let end = index * running.spec.block_bytes + bytes;
        let End::File(file) = &running.sides[side].end else { return };
        match running.sides[side].stage {
            SideStage::Array if side == SOURCE && file.has(end) => {
                let cost = file.work(bytes);
                running.sides[side].stage = SideStage::Host;
                self.work.push_back((u32_from(stream * 2 + side), cost));
            }
            SideStage::Array if side == SINK && file.has_room() => self.block_done(stream, side),
            _ => self.end_if_through(stream),
        }
    }

    /// A side has done with its block, and both may go on.
    fn block_done(&mut self, stream: usize, side: usize) {
        self.count_block(stream, side);
        self.proceed(stream);
    }

    fn count_block(&mut self, stream: usize, side: usize) {
        let now = self.now;
        let running = &mut self.streams[stream];
        running.sides[side].end(now);
        if running.through.is_some() {
            // It was the tape that ran to its end.
            return self.end_if_through(stream);
        }
        match side {
            SOURCE => running.taken += 1,
            _ => running.given += 1,
        }
        if running.given < running.blocks {
            return;
        }
        running.through = Some(now);
        let drained = running.sides[SINK].drained(now);
        if drained > now {
            running.sides[SINK].begin(now);
            running.sides[SINK].stage = SideStage::Until(drained);
        }
        self.end_if_through(stream);
    }

    fn end_if_through(&mut self, stream: usize) {
        let now = self.now;
        let running = &mut self.streams[stream];
        let is_quiet = match &running.sides[SINK].end {
            End::File(file) => file.is_quiet(),
            _ => running.sides[SINK].stage == SideStage::Idle,
        };
        if running.through.is_none() || running.ended.is_some() || !is_quiet {
            return;
        }
        running.ended = Some(now);
        self.left -= 1;
        if self.left == 0 {
            self.recorder.close_at(now);
        }
    }
}

impl Generator for StreamLoad {
    const WORKS: bool = true;

    fn poll_request(&mut self, now: Instant) -> Option<Request> {
        self.observe(now);
        if self.is_finished() {
            return None;
        }
        if !self.begun {
            self.begun = true;
            (0..self.streams.len()).for_each(|stream| self.proceed(stream));
        }
        for stream in 0..self.streams.len() {
            for side in [SOURCE, SINK] {
                if matches!(self.streams[stream].sides[side].stage, SideStage::Until(at) if at <= now) {
                    self.block_done(stream, side);
                }
            }
        }
        self.requests.pop_front()
    }

    fn poll_work(&mut self) -> Option<(u32, Duration)> {
        self.work.pop_front()
    }

    fn poll_carry(&mut self) -> Option<Carry> {
        self.carries.pop_front()
    }

    /// When a tape is ready, or the measurement ends.
    fn poll_timeout(&self) -> Option<Instant> {
        let until = |side: &Side| if let SideStage::Until(at) = side.stage { at } else { Instant::MAX };
        let tapes = self.streams.iter().flat_map(|stream| &stream.sides).map(until).min();
        Some(tapes.unwrap_or(Instant::MAX).min(self.recorder.deadline())).filter(|&at| at != Instant::MAX)
    }

    fn handle_done(&mut self, now: Instant, tag: RequestTag, ok: bool) {
        self.observe(now);
        let StreamRequest { who, number, kind, bytes, asked } = self.pending.remove(usize_from(tag));
        self.recorder.left(now);
        self.recorder.request_done(now, &CompletedRequest { kind, bytes, intended: asked, issued: asked, ok });
        self.recorder.advance(now, true);
        let (stream, side) = (who as usize / 2, who as usize % 2);
        if let End::File(file) = &mut self.streams[stream].sides[side].end {
            file.done(number);
        }
        self.array_moved(stream, side);
    }

    fn handle_work_done(&mut self, now: Instant, who: u32) {
        self.observe(now);
        let (stream, side) = (who as usize / 2, who as usize % 2);
        let is_written = side == SINK && self.streams[stream].sides[side].stage == SideStage::Host;
        if is_written {
            let bytes = self.streams[stream].block(self.streams[stream].given);
            if let End::File(file) = &mut self.streams[stream].sides[side].end {
                file.written += bytes;
            }
            self.streams[stream].sides[side].stage = SideStage::Array;
            self.ask(stream, side);
            self.array_moved(stream, side);
        } else {
            self.block_done(stream, side);
        }
    }

    fn interrupt(&mut self, now: Instant) {
        self.observe(now);
        self.recorder.interrupt(now);
    }

    /// The times of the file system's requests.
    fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    fn recorder_mut(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    fn streams(&self) -> Vec<StreamRecord> {
        let one = |stream: &StreamState| {
            let end = stream.ended.unwrap_or(self.now);
            let [source, sink] = [stream.sides[SOURCE].record, stream.sides[SINK].record];
            StreamRecord {
                name: stream.spec.name.clone(),
                from: stream.spec.source.kind(),
                to: stream.spec.sink.kind(),
                bytes: (stream.given * stream.spec.block_bytes).min(stream.spec.bytes),
                elapsed_ns: end.as_ns(),
                sync_ns: stream.through.map_or(0, |through| end.since(through).as_ns()),
                source,
                sink,
                bound_by: if sink.busy_ns > source.busy_ns { "sink" } else { "source" },
            }
        };
        self.streams.iter().map(one).collect()
    }
}
