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

use super::ends::{digest, StreamBlock, StreamBlocks, StreamSink, StreamSource};
use super::pace::{Pacer, Time};
use super::result::{EndResult, StreamResult};
use crate::io::PromptWakes;
use crate::memory::MemoryMapping;
use raidlab_types::number::usize_from;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Barrier;

/// A stream ready to run.
pub(super) struct Flow<'a> {
    pub blocks: StreamBlocks,
    pub reader: StreamReader<'a>,
    pub writer: StreamWriter<'a>,
    /// One for each block under way.
    pub buffers: Vec<MemoryMapping>,
    pub rate_mb_s: Option<f64>,
    /// All threads of all streams start together.
    pub start: &'a Barrier,
}

/// Which end failed, at which place of the stream, and how.
#[derive(Debug)]
pub(super) struct EndFailure {
    pub is_source: bool,
    pub offset: u64,
    pub doing: &'static str,
    pub error: io::Error,
}

/// What came of it.
pub(super) struct StreamOutcome {
    pub result: StreamResult,
    /// Digest of every block sent; empty unless it is to be compared.
    pub sent: Vec<u64>,
    pub failed: Option<EndFailure>,
}

/// The side of the source, on whichever thread it runs.
pub(super) struct StreamReader<'a> {
    source: StreamSource<'a>,
    time: Time<'a>,
    /// No block is begun later than this after the start.
    limit_ns: u64,
    start_ns: u64,
    record: EndResult,
}

impl<'a> StreamReader<'a> {
    pub(super) fn new(source: StreamSource<'a>, time: Time<'a>, limit_ns: u64) -> StreamReader<'a> {
        StreamReader { source, time, limit_ns, start_ns: 0, record: EndResult::default() }
    }

    fn may_begin(&self) -> bool {
        !self.time.stopped() && self.time.now_ns().saturating_sub(self.start_ns) < self.limit_ns
    }

    fn get<'b>(&'b mut self, block: StreamBlock, buffer: &'b mut MemoryMapping) -> Result<&'b mut [u8], EndFailure> {
        let before = self.time.now_ns();
        let got = self.source.get(block, buffer, self.time);
        self.record.record(self.time.now_ns() - before);
        got.map_err(|error| EndFailure { is_source: true, offset: block.offset, doing: "reading", error })
    }

    fn get_all(
        &mut self,
        blocks: StreamBlocks,
        free: Receiver<MemoryMapping>,
        filled: Sender<(StreamBlock, MemoryMapping)>,
    ) -> Option<EndFailure> {
        for block in blocks.iter() {
            let before = self.time.now_ns();
            // Its partner has ended early if no buffer comes back.
            let Ok(mut buffer) = free.recv() else { break };
            self.record.waited_ns += self.time.now_ns() - before;
            if !self.may_begin() {
                break;
            }
            if let Err(failed) = self.get(block, &mut buffer) {
                return Some(failed);
            }
            if filled.send((block, buffer)).is_err() {
                break;
            }
        }
        None
    }

    fn into_record(mut self) -> EndResult {
        self.record.stops = self.source.stops();
        self.record
    }
}

/// The side of the sink, with the pace before it and the result of the whole.
pub(super) struct StreamWriter<'a> {
    sink: StreamSink<'a>,
    pace: Option<Pacer>,
    time: Time<'a>,
    result: StreamResult,
    /// Keep a digest of every block, to compare with what arrives.
    verify: bool,
    sent: Vec<u64>,
    /// Bytes that have arrived, for whoever watches.
    arrived: &'a AtomicU64,
}

impl<'a> StreamWriter<'a> {
    /// A stream of so many blocks, of which nothing has arrived.
    pub(super) fn new(
        sink: StreamSink<'a>,
        time: Time<'a>,
        result: StreamResult,
        blocks: u64,
        arrived: &'a AtomicU64,
    ) -> StreamWriter<'a> {
        let verify = result.verify.is_some();
        let sent = Vec::with_capacity(if verify { usize_from(blocks) } else { 0 });
        StreamWriter { sink, pace: None, time, result, verify, sent, arrived }
    }

    /// Whether an end gave up because the run was stopped, which is no failure.
    fn gave_up(&self, error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::Interrupted && self.time.stopped()
    }

    /// Waits for all others; the time at which this stream starts.
    fn begin(&mut self, start: &Barrier, rate_mb_s: Option<f64>) -> u64 {
        start.wait();
        let start_ns = self.time.now_ns();
        self.pace = rate_mb_s.map(|rate| Pacer::new(start_ns, rate));
        start_ns
    }

    fn put_all(
        &mut self,
        to_put: Receiver<(StreamBlock, MemoryMapping)>,
        to_fill: Sender<MemoryMapping>,
    ) -> Option<EndFailure> {
        loop {
            let before = self.time.now_ns();
            let Ok((block, mut buffer)) = to_put.recv() else { return None };
            self.result.sink.waited_ns += self.time.now_ns() - before;
            match self.put(block, &buffer.bytes_mut()[..block.len]) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(failed) => return Some(failed),
            }
            // After the last block nobody takes it.
            let _ = to_fill.send(buffer);
        }
    }

    /// Takes a block when it is due. Whether the stream goes on: not if it was stopped while it waited.
    fn put(&mut self, block: StreamBlock, bytes: &[u8]) -> Result<bool, EndFailure> {
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
        match put {
            Err(error) if self.gave_up(&error) => return Ok(false),
            Err(error) => return Err(EndFailure { is_source: false, offset: block.offset, doing: "writing", error }),
            Ok(()) => {}
        }
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
    fn finish(mut self, start_ns: u64, source: EndResult, mut failed: Option<EndFailure>) -> StreamOutcome {
        let written = self.time.now_ns();
        if failed.is_none() && !self.time.stopped() {
            let finished = self.sink.finish(self.time);
            let offset = self.result.bytes;
            failed = finished.err().filter(|error| !self.gave_up(error)).map(|error| EndFailure {
                is_source: false,
                offset,
                doing: "synchronising",
                error,
            });
        }
        let now = self.time.now_ns();
        self.result.start_ns = start_ns;
        self.result.sync_ns = now - written;
        self.result.elapsed_ns = now - start_ns;
        self.result.source = source;
        self.result.sink.stops = self.sink.stops();
        StreamOutcome { result: self.result, sent: self.sent, failed }
    }
}

impl Flow<'_> {
    /// Runs it to its end.
    pub(super) fn run(self) -> StreamOutcome {
        let _prompt = PromptWakes::new();
        if self.writer.result.overlapped {
            self.overlapped()
        } else {
            self.alternating()
        }
    }

    /// One thread, one block: get it, put it.
    fn alternating(self) -> StreamOutcome {
        let Flow { blocks, mut reader, mut writer, buffers, rate_mb_s, start } = self;
        let start_ns = writer.begin(start, rate_mb_s);
        reader.start_ns = start_ns;
        let mut failed = None;
        if let Some(mut buffer) = buffers.into_iter().next() {
            for block in blocks.iter() {
                if !reader.may_begin() {
                    break;
                }
                let moved = reader.get(block, &mut buffer).and_then(|bytes| writer.put(block, bytes));
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
        writer.finish(start_ns, reader.into_record(), failed)
    }

    /// A second thread gets blocks while this one puts them; buffers go round between the two.
    fn overlapped(self) -> StreamOutcome {
        let Flow { blocks, mut reader, mut writer, buffers, rate_mb_s, start } = self;
        let (to_fill, free) = channel::<MemoryMapping>();
        let (filled, to_put) = channel::<(StreamBlock, MemoryMapping)>();
        buffers.into_iter().for_each(|buffer| to_fill.send(buffer).expect("the receiver is here"));
        std::thread::scope(|scope| {
            let ahead = scope.spawn(|| {
                let _prompt = PromptWakes::new();
                start.wait();
                reader.start_ns = reader.time.now_ns();
                // Dropped at the end, so that this thread's partner sees the last block for the last.
                let failed = reader.get_all(blocks, free, filled);
                (reader.into_record(), failed)
            });
            let start_ns = writer.begin(start, rate_mb_s);
            let of_sink = writer.put_all(to_put, to_fill);
            let (source, of_source) = ahead.join().unwrap_or_else(|p| std::panic::resume_unwind(p));
            writer.finish(start_ns, source, of_source.or(of_sink))
        })
    }
}
