//! One stream from end to end.
//!
//! Purpose: to move blocks as fast as the two ends allow, and to tell which of them it waited for. Where both ends take
//! time and there are several buffers, a thread reads ahead while this one writes; else one thread does both in turn, as
//! `dd` does, and there is nothing to hand over.
//!
//! Invariants:
//! - Blocks arrive in order, each once; what is counted has arrived.
//! - The pace stands between the ends: reading ahead is not paced, handing over is.
//! - Whatever ends a stream, its threads are gone when `run` returns, and what it has done is in the result.

use super::ends::{digest, Block, Blocks, Sink, Source};
use super::pace::{Pace, Time};
use super::result::{EndResult, LateResult, StreamResult, StreamVerify};
use crate::io::PromptWakes;
use crate::memory::Mapping;
use raidlab_types::number::usize_from;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Barrier;

/// A stream ready to run.
pub(super) struct Flow<'a> {
    pub name: String,
    pub blocks: Blocks,
    pub source: Source<'a>,
    pub sink: Sink<'a>,
    /// One for each block under way.
    pub buffers: Vec<Mapping>,
    pub overlapped: bool,
    pub rate_mb_s: Option<f64>,
    /// No block is begun later.
    pub limit_ns: u64,
    /// Keep a digest of every block, to compare with what arrives.
    pub verify: bool,
    pub time: Time<'a>,
    /// All threads of all streams start together.
    pub start: &'a Barrier,
    /// Bytes that have arrived, for whoever watches.
    pub arrived: &'a AtomicU64,
}

/// Which end failed, at which place of the stream, and how.
#[derive(Debug)]
pub(super) struct Failed {
    pub is_source: bool,
    pub offset: u64,
    pub doing: &'static str,
    pub error: io::Error,
}

/// What came of it.
pub(super) struct Flown {
    pub result: StreamResult,
    /// Digest of every block sent; empty unless it is to be compared.
    pub sent: Vec<u64>,
    pub failed: Option<Failed>,
}

/// The side of the source, on whichever thread it runs.
struct Giver<'a> {
    source: Source<'a>,
    time: Time<'a>,
    limit_ns: u64,
    start_ns: u64,
    record: EndResult,
}

impl Giver<'_> {
    fn may_begin(&self) -> bool {
        !self.time.stopped() && self.time.now_ns().saturating_sub(self.start_ns) < self.limit_ns
    }

    fn get<'b>(&'b mut self, block: Block, buffer: &'b mut Mapping) -> Result<&'b mut [u8], Failed> {
        let before = self.time.now_ns();
        let got = self.source.get(block, buffer, self.time);
        self.record.record(self.time.now_ns() - before);
        got.map_err(|error| Failed { is_source: true, offset: block.offset, doing: "reading", error })
    }

    fn into_record(mut self) -> EndResult {
        self.record.stops = self.source.stops();
        self.record
    }
}

/// The side of the sink, with the pace before it and the result of the whole.
struct Taker<'a> {
    sink: Sink<'a>,
    pace: Option<Pace>,
    time: Time<'a>,
    result: StreamResult,
    verify: bool,
    sent: Vec<u64>,
    arrived: &'a AtomicU64,
}

impl Taker<'_> {
    /// Takes a block when it is due. Whether the stream goes on: not if it was stopped while it waited.
    fn put(&mut self, block: Block, bytes: &[u8]) -> Result<bool, Failed> {
        let ready = self.time.now_ns();
        let begun = self.wait_for_pace(ready, block.offset + block.len as u64);
        if self.time.stopped() {
            return Ok(false);
        }
        if self.verify {
            self.sent.push(digest(bytes));
        }
        let put = self.sink.put(block, bytes, self.time);
        let now = self.time.now_ns();
        // A sink that gave up because the run was stopped has not failed.
        if put.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) && self.time.stopped() {
            return Ok(false);
        }
        put.map_err(|error| Failed { is_source: false, offset: block.offset, doing: "writing", error })?;
        self.result.sink.record(now - begun);
        self.result.arrived(now, block.len as u64);
        self.arrived.fetch_add(block.len as u64, Ordering::Relaxed);
        if let (Some(&sent), Some(arrived)) = (self.sent.last(), self.sink.arrived(block)) {
            let is_right = digest(arrived) == sent;
            self.result.verify.get_or_insert_default().note(block.offset, is_right);
        }
        Ok(true)
    }

    fn wait_for_pace(&mut self, ready_ns: u64, bytes: u64) -> u64 {
        let (Some(pace), Some(late)) = (self.pace, &mut self.result.late) else { return ready_ns };
        let due = pace.due_ns(bytes);
        let now = self.time.wait_until(due);
        self.result.paced_ns += now - ready_ns;
        let late_ns = now.saturating_sub(due);
        late.time.record(late_ns);
        late.max_ns = late.max_ns.max(late_ns);
        now
    }

    /// After the last block: has all of it for good, unless the stream failed or was stopped.
    fn finish(mut self, start_ns: u64, source: EndResult, mut failed: Option<Failed>) -> Flown {
        let written = self.time.now_ns();
        if failed.is_none() && !self.time.stopped() {
            let doing = "synchronising";
            let finished = self.sink.finish(self.time);
            let gave_up = |error: &io::Error| error.kind() == io::ErrorKind::Interrupted && self.time.stopped();
            failed = finished.err().filter(|error| !gave_up(error)).map(|error| Failed {
                is_source: false,
                offset: self.result.bytes,
                doing,
                error,
            });
        }
        let now = self.time.now_ns();
        self.result.start_ns = start_ns;
        self.result.sync_ns = now - written;
        self.result.elapsed_ns = now - start_ns;
        self.result.source = source;
        self.result.sink.stops = self.sink.stops();
        Flown { result: self.result, sent: self.sent, failed }
    }
}

impl Flow<'_> {
    /// Runs it to its end.
    pub(super) fn run(self) -> Flown {
        let result = StreamResult {
            name: self.name,
            overlapped: self.overlapped,
            late: self.rate_mb_s.map(|_| LateResult::default()),
            verify: self.verify.then(StreamVerify::default),
            ..StreamResult::default()
        };
        let sent = if self.verify { Vec::with_capacity(usize_from(self.blocks.count())) } else { Vec::new() };
        let time = self.time;
        let giver =
            Giver { source: self.source, time, limit_ns: self.limit_ns, start_ns: 0, record: EndResult::default() };
        let (verify, arrived) = (self.verify, self.arrived);
        let taker = Taker { sink: self.sink, pace: None, time, result, verify, sent, arrived };
        let _prompt = PromptWakes::new();
        let run = Run { blocks: self.blocks, rate_mb_s: self.rate_mb_s, start: self.start };
        if self.overlapped {
            run.overlapped(giver, taker, self.buffers)
        } else {
            run.alternating(giver, taker, self.buffers)
        }
    }
}

/// What both ways of running need.
struct Run<'a> {
    blocks: Blocks,
    rate_mb_s: Option<f64>,
    start: &'a Barrier,
}

impl Run<'_> {
    /// Waits for all others; the time at which this stream starts.
    fn begin(&self, taker: &mut Taker<'_>) -> u64 {
        self.start.wait();
        let start_ns = taker.time.now_ns();
        taker.pace = self.rate_mb_s.map(|rate| Pace::new(start_ns, rate));
        start_ns
    }

    /// One thread, one block: get it, put it.
    fn alternating(&self, mut giver: Giver<'_>, mut taker: Taker<'_>, buffers: Vec<Mapping>) -> Flown {
        let start_ns = self.begin(&mut taker);
        giver.start_ns = start_ns;
        let mut failed = None;
        if let Some(mut buffer) = buffers.into_iter().next() {
            for block in self.blocks.iter() {
                if !giver.may_begin() {
                    break;
                }
                let moved = giver.get(block, &mut buffer).and_then(|bytes| taker.put(block, bytes));
                match moved {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
        }
        taker.finish(start_ns, giver.into_record(), failed)
    }

    /// A second thread gets blocks while this one puts them; buffers go round between the two.
    fn overlapped(&self, mut giver: Giver<'_>, mut taker: Taker<'_>, buffers: Vec<Mapping>) -> Flown {
        let (to_fill, free) = channel::<Mapping>();
        let (filled, to_put) = channel::<(Block, Mapping)>();
        buffers.into_iter().for_each(|buffer| to_fill.send(buffer).expect("the receiver is here"));
        std::thread::scope(|scope| {
            let ahead = scope.spawn(|| {
                let _prompt = PromptWakes::new();
                self.start.wait();
                giver.start_ns = giver.time.now_ns();
                // Dropped at the end, so that this thread's partner sees the last block for the last.
                let failed = self.get_all(&mut giver, free, filled);
                (giver.into_record(), failed)
            });
            let start_ns = self.begin(&mut taker);
            let of_sink = put_all(&mut taker, to_put, to_fill);
            let (source, of_source) = ahead.join().unwrap_or_else(|p| std::panic::resume_unwind(p));
            taker.finish(start_ns, source, of_source.or(of_sink))
        })
    }

    fn get_all(
        &self,
        giver: &mut Giver<'_>,
        free: Receiver<Mapping>,
        filled: Sender<(Block, Mapping)>,
    ) -> Option<Failed> {
        for block in self.blocks.iter() {
            let before = giver.time.now_ns();
            // Its partner has ended early if no buffer comes back.
            let Ok(mut buffer) = free.recv() else { break };
            giver.record.waited_ns += giver.time.now_ns() - before;
            if !giver.may_begin() {
                break;
            }
            if let Err(failed) = giver.get(block, &mut buffer) {
                return Some(failed);
            }
            if filled.send((block, buffer)).is_err() {
                break;
            }
        }
        None
    }
}

fn put_all(taker: &mut Taker<'_>, to_put: Receiver<(Block, Mapping)>, to_fill: Sender<Mapping>) -> Option<Failed> {
    loop {
        let before = taker.time.now_ns();
        let Ok((block, mut buffer)) = to_put.recv() else { return None };
        taker.result.sink.waited_ns += taker.time.now_ns() - before;
        match taker.put(block, &buffer.bytes_mut()[..block.len]) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(failed) => return Some(failed),
        }
        // After the last block nobody takes it.
        let _ = to_fill.send(buffer);
    }
}
