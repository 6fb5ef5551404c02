//! One worker: one thread, one load, one ring, and the targets dealt to it.
//!
//! Purpose: to offer requests to targets and to see them come back, as often and as cheaply as can be. A turn takes what
//! has come back, offers new requests, hands them over in one call, and waits in that call.
//!
//! Invariants:
//! - The clock is read for every request when it is offered and when it is seen to have come back, and never runs
//!   backwards between two events.
//! - Nothing is allocated, locked or asked of the system for a request, but for the ring's own call (threads: for their
//!   queues), once as many requests have been in flight as ever will be.
//! - Each request that is over is told to the load once, with a time of its own.
//! - Memory named by a request in flight is not touched; the transport is dropped before the memory it knows.
//! - A request that fails ends the run, after what is in flight has come back. The first failure is the one that is told.

use super::result::RequestCounts;
use super::shared::{CountOutcome, Shared};
use super::slot::RequestSlot;
use super::transport::Transport;
use crate::content::{ContentCheck, Knowledge, Stamper};
use crate::error::{plain, LiveError};
use crate::io::{meaning, verb, wait_limit, Clock, Meaning, PromptWakes};
use crate::memory::{Block, MemoryMapping, Pool, Use};
use crate::result::MemberCounts;
use crate::usage::Usage;
use raidlab_load::{Generator, Load};
use raidlab_types::number::{i32_from, u16_from, u32_from, u64_from, usize_from};
use raidlab_types::{Extent, Instant, Request, RequestKind};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use tracing::debug;

/// A volume of the worker's load: the part of a target that it is.
#[derive(Debug, Clone)]
pub(super) struct WorkerVolume<'t> {
    /// Number of the target.
    pub target: u32,
    /// First sector of the target that belongs to it, and how many do.
    pub first_lba: u64,
    pub sectors: u64,
    pub backend: IoPath<'t>,
    /// What is known of its content; nothing where it keeps none.
    pub known: Option<Knowledge>,
    /// Key and name of the target, for sentences.
    pub key: String,
    pub name: String,
}

/// What serves the requests of a target.
#[derive(Debug, Clone, Copy)]
pub(super) enum IoPath<'t> {
    /// Completes at once.
    Null,
    /// Memory, of which each worker has its own part.
    Memory(&'t MemoryMapping),
    /// Index among the registered files, and descriptor.
    File(u32, BorrowedFd<'t>),
}

/// How a worker's loop turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoopOptions {
    /// Most requests submitted, and most completions taken, in one turn.
    pub batch: usize,
    /// Watch for completions instead of sleeping until one comes.
    pub busy: bool,
    pub sector_bytes: u32,
    /// Distinguishes the sectors it writes from those of other workers.
    pub number: u32,
    /// Its window is that of several workers.
    pub shares_window: bool,
}

/// Who opens and closes the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    /// The load by itself: it is the only one.
    Own,
    /// All together, and they have not yet said when it opens.
    Shut,
    /// All together, and it is known when it opens.
    Announced,
}

/// A worker at work.
pub(super) struct Worker<'a> {
    load: Load,
    clock: Clock,
    now: Instant,
    shared: &'a Shared,
    options: LoopOptions,
    volumes: &'a [WorkerVolume<'a>],
    /// Before `pool`, so that it is dropped before the memory it knows.
    transport: Option<Transport>,
    pool: Pool,
    /// By tag.
    slots: Vec<RequestSlot>,
    /// Completed synchronously; not yet reported to the load.
    at_once: VecDeque<u32>,
    stamper: Stamper,
    check: Option<ContentCheck>,
    sequence: u64,
    counts: RequestCounts,
    members: Vec<MemberCounts>,
    gate: Gate,
    measuring: bool,
    opened: Usage,
    used: Usage,
    failure: Option<LiveError>,
}

/// What a worker leaves.
pub(super) struct Outcome {
    pub load: Load,
    pub counts: RequestCounts,
    /// One a volume, in order.
    pub members: Vec<MemberCounts>,
    pub all_registered: bool,
    /// What times were read from.
    pub clock: &'static str,
    /// While the window was open.
    pub used: Usage,
    pub check: Option<ContentCheck>,
    pub failure: Option<LiveError>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        mut load: Load,
        volumes: &'a [WorkerVolume<'a>],
        transport: Option<Transport>,
        (pool, stamper, check): (Pool, Stamper, Option<ContentCheck>),
        options: LoopOptions,
        shared: &'a Shared,
    ) -> Worker<'a> {
        let room = (load.depth() as usize).min(1 << 16);
        if options.shares_window {
            load.recorder_mut().keep_shut();
        }
        let member = |volume: &WorkerVolume<'_>| MemberCounts { leaf: volume.target, ..MemberCounts::default() };
        Worker {
            load,
            clock: Clock::start(),
            now: Instant::ZERO,
            shared,
            options,
            volumes,
            transport,
            pool,
            slots: vec![RequestSlot::EMPTY; room],
            at_once: VecDeque::with_capacity(room),
            stamper,
            check,
            sequence: u64::from(options.number) << 48,
            counts: RequestCounts::default(),
            members: volumes.iter().map(member).collect(),
            gate: if options.shares_window { Gate::Shut } else { Gate::Own },
            measuring: false,
            opened: Usage::default(),
            used: Usage::default(),
            failure: None,
        }
    }

    /// Takes the memory that `requests` at once of `bytes` need, so that none has to be taken later.
    pub(super) fn prepare(&mut self, bytes: usize, uses: &[Use]) -> Result<(), LiveError> {
        for tag in 0..self.slots.len() {
            for &purpose in uses {
                *self.slots[tag].block(purpose) = Some(self.take(bytes, purpose)?);
            }
        }
        Ok(())
    }

    /// A block from the pool, in memory the ring knows if it can.
    fn take(&mut self, bytes: usize, purpose: Use) -> Result<Block, LiveError> {
        self.pool.take(bytes, purpose, |start, len| self.transport.as_mut()?.register(start, len))
    }

    /// Drives the load to its end, or until something fails or the run is stopped.
    pub(super) fn drive(mut self, clock: Clock) -> Outcome {
        let _prompt = PromptWakes::new();
        self.clock = clock;
        loop {
            self.take_back();
            let more = self.begin_requests();
            if self.shared.is_stopped() {
                self.load.interrupt(self.now);
            }
            self.shared.report(self.options.number, self.counts.completed);
            self.note_window();
            let idle = self.at_once.is_empty() && !self.transport.as_ref().is_some_and(Transport::is_busy);
            if idle && self.load.is_finished() {
                break;
            }
            self.hand_over(idle && !more, more);
        }
        let all_registered = self.transport.as_ref().is_none_or(Transport::all_registered);
        let counts = RequestCounts { in_flight: self.load.in_flight() as u64, ..self.counts };
        let clock = self.clock.source();
        Outcome {
            load: self.load,
            counts,
            members: self.members,
            all_registered,
            clock,
            used: self.used,
            check: self.check,
            failure: self.failure,
        }
    }

    #[inline]
    fn read_clock(&mut self) -> Instant {
        self.now = self.now.max(self.clock.now());
        if self.gate != Gate::Own {
            self.look_at_window();
        }
        self.now
    }

    /// Does what all workers together have said about their window, before anything is done at this time.
    fn look_at_window(&mut self) {
        let window = &self.shared.window;
        if self.gate == Gate::Shut {
            let Some(at) = window.opens_at() else { return };
            self.load.recorder_mut().open_at(at);
            self.gate = Gate::Announced;
        }
        if let Some(at) = window.closes_at() {
            self.load.recorder_mut().close_at(at);
        }
    }

    /// Whether the window has opened or closed within this turn: then is the time to see what the thread has used.
    #[inline]
    fn note_window(&mut self) {
        let measuring = self.load.recorder().is_measuring();
        if measuring != self.measuring {
            self.window_changed(measuring);
        }
    }

    #[cold]
    fn window_changed(&mut self, open: bool) {
        self.measuring = open;
        let used = Usage::of_this_thread();
        if open {
            self.opened = used;
        } else {
            self.used = used.since(&self.opened);
        }
        self.shared.window_is(open);
    }

    /// Takes as many new requests as the load has and the batch allows; true if the load may have more.
    fn begin_requests(&mut self) -> bool {
        for _ in 0..self.options.batch {
            let now = self.read_clock();
            let Some(request) = self.load.poll_request(now) else { return false };
            self.begin(request);
            if self.load.is_full() {
                return false;
            }
        }
        true
    }

    /// Gives a request memory and content, and starts it.
    #[inline]
    fn begin(&mut self, request: Request) {
        let Request { tag, volume, kind, extent, .. } = request;
        let tag = u32_from(tag);
        let (place, writes) = (&self.volumes[volume as usize], kind == RequestKind::Write);
        let sector_bytes = u64::from(self.options.sector_bytes);
        let bytes = extent.sectors * sector_bytes;
        // What lies beyond may be another worker's, or nobody's to write to.
        assert!(extent.end() <= place.sectors, "a request ends at sector {} of {}", extent.end(), place.sectors);
        let lba = place.first_lba + extent.lba;
        self.counts.submitted += 1;
        if tag as usize >= self.slots.len() {
            self.more_slots(tag);
        }
        let slot = &mut self.slots[tag as usize];
        let purpose = if writes { Use::Write } else { Use::Any };
        let block = match *slot.block(purpose) {
            Some(block) if block.len() as u64 >= bytes => block,
            _ => {
                let old = slot.block(purpose).take();
                match self.enlarge(tag, usize_from(bytes), purpose, old) {
                    Some(block) => block,
                    None => return,
                }
            }
        };
        assert!(block.len() as u64 >= bytes, "a request of {bytes} bytes with memory for {}", block.len());
        let slot = &mut self.slots[tag as usize];
        (slot.start, slot.registered) = (block.as_ptr(), block.registered);
        (slot.offset, slot.left, slot.bytes) = (lba * sector_bytes, bytes, bytes);
        (slot.issued, slot.volume, slot.writes) = (self.now, u16_from(volume), writes);
        (slot.lba, slot.mark) = (lba, 0);
        if writes {
            self.sequence += 1;
            slot.sequence = self.sequence;
            // SAFETY: the block is at least that long and this slot's alone.
            let content = unsafe { std::slice::from_raw_parts_mut(block.as_ptr(), usize_from(bytes)) };
            self.stamper.stamp(content, place.target, lba, self.sequence);
        }
        if let (Some(check), Some(_)) = (&mut self.check, place.known) {
            slot.mark = match writes {
                true => {
                    let sectors = Extent::new(lba, extent.sectors);
                    u64::from(check.write_begins(self.now, place.target, sectors, self.sequence))
                }
                false => check.read_begins(self.now),
            };
        }
        match place.backend {
            IoPath::Null => self.at_once.push_back(tag),
            IoPath::Memory(mapping) => {
                let there = mapping.at(lba * sector_bytes, usize_from(bytes));
                // SAFETY: so many bytes are there and in the block, and no block lies in a mapping. The load keeps requests
                // within the volume, which is this worker's part of the mapping.
                unsafe {
                    let (from, to) = if writes { (block.as_ptr(), there) } else { (there, block.as_ptr()) };
                    std::ptr::copy_nonoverlapping(from, to, usize_from(bytes));
                }
                self.at_once.push_back(tag);
            }
            IoPath::File(..) => self.launch(tag),
        }
    }

    #[cold]
    fn more_slots(&mut self, tag: u32) {
        self.slots.resize(tag as usize + 1, RequestSlot::EMPTY);
    }

    /// A larger block for a slot; without one the run ends, and the request with it.
    #[cold]
    fn enlarge(&mut self, tag: u32, bytes: usize, purpose: Use, old: Option<Block>) -> Option<Block> {
        old.into_iter().for_each(|block| self.pool.give_back(block));
        match self.take(bytes, purpose) {
            Ok(block) => {
                *self.slots[tag as usize].block(purpose) = Some(block);
                Some(block)
            }
            Err(error) => {
                self.failure.get_or_insert(error);
                self.stop();
                None
            }
        }
    }

    /// Starts what is left of a request on its file.
    #[inline]
    fn launch(&mut self, tag: u32) {
        let slot = &self.slots[tag as usize];
        let IoPath::File(index, fd) = self.volumes[slot.volume as usize].backend else { return };
        let Some(transport) = &mut self.transport else { return };
        // SAFETY: a slot's block stays its own, and is touched again only when the tag has come back; the targets, whose
        // descriptor it is, outlive all workers.
        let result = unsafe { transport.start(tag, slot, (index, fd.as_raw_fd())) };
        self.check(result);
    }

    /// Hands over what was started; waits if nothing can be done before something comes back or is due.
    #[inline]
    fn hand_over(&mut self, idle: bool, more: bool) {
        if idle {
            return self.sleep();
        }
        let Some(transport) = &mut self.transport else { return };
        // What can be done here and now comes first: batches cut short, and requests that needed no waiting.
        let at_once = more || !self.at_once.is_empty() || self.options.busy;
        let limit = if at_once { None } else { wait_limit(self.load.poll_timeout(), self.now) };
        let result = match limit {
            Some(limit) => transport.submit_and_wait(limit),
            None if transport.is_busy() => transport.submit(),
            None => Ok(()),
        };
        self.check(result);
    }

    /// Nothing is in flight: waits for the next arrival, first asleep, then watching the clock.
    fn sleep(&mut self) {
        self.read_clock();
        match wait_limit(self.load.poll_timeout(), self.now) {
            Some(limit) => std::thread::sleep(std::time::Duration::from_nanos(limit.as_ns())),
            None => std::hint::spin_loop(),
        }
        self.read_clock();
    }

    #[inline]
    fn check(&mut self, result: io::Result<()>) {
        if let Err(e) = result {
            self.broken(&e);
        }
    }

    #[cold]
    fn broken(&mut self, e: &io::Error) {
        self.failure.get_or_insert(LiveError::io("engine", "io_uring", "io_uring_enter failed", e));
        self.stop();
    }

    /// Tells the load of all that has come back, each with a time of its own.
    fn take_back(&mut self) {
        for _ in 0..self.options.batch {
            let Some(tag) = self.at_once.pop_front() else { break };
            self.finish(tag, true);
        }
        for _ in 0..self.options.batch {
            let Some((tag, result)) = self.transport.as_mut().and_then(Transport::reap) else { break };
            self.came_back(tag, result);
        }
        while let Some(tag) = self.transport.as_mut().and_then(Transport::readmit) {
            self.launch(tag);
        }
    }

    #[inline]
    fn came_back(&mut self, tag: u32, result: i64) {
        if result < 0 {
            return self.refused(tag, i32_from(-result));
        }
        if self.slots[tag as usize].advance(u64_from(result)) {
            self.finish(tag, true);
        } else {
            self.short(tag, u64_from(result));
        }
    }

    /// A transfer moved less than was asked: the rest is asked for, unless the target ends there.
    #[cold]
    fn short(&mut self, tag: u32, moved: u64) {
        if moved > 0 {
            debug!(moved, rest = self.bytes_of(tag), "short transfer, asking for the rest");
            return self.launch(tag);
        }
        let what = format!("it ends within {}: was it truncated?", self.bytes_of(tag));
        self.fail(tag, 0, what);
    }

    #[cold]
    fn refused(&mut self, tag: u32, errno: i32) {
        let kind = self.slots[tag as usize].kind();
        if meaning(kind, errno) == Meaning::Again {
            debug!(errno, ?kind, "interrupted, trying again");
            return self.launch(tag);
        }
        let error = io::Error::from_raw_os_error(errno);
        let what = format!("{} {}: {}", verb(kind), self.bytes_of(tag), plain(&error));
        self.fail(tag, errno, what);
    }

    fn bytes_of(&self, tag: u32) -> String {
        let slot = &self.slots[tag as usize];
        format!("{} bytes from byte {} on", slot.left, slot.offset)
    }

    /// A request that cannot be served ends the run. The first cause is the one worth telling.
    fn fail(&mut self, tag: u32, errno: i32, message: String) {
        let volume = &self.volumes[self.slots[tag as usize].volume as usize];
        let error = LiveError::Io { key: volume.key.clone(), target: volume.name.clone(), errno, message };
        debug!(%error, "the run cannot go on");
        self.failure.get_or_insert(error);
        self.finish(tag, false);
        self.stop();
    }

    fn stop(&mut self) {
        self.shared.stop();
        self.load.interrupt(self.now);
    }

    /// A request is over.
    #[inline]
    fn finish(&mut self, tag: u32, ok: bool) {
        let now = self.read_clock();
        let counted = match self.gate {
            Gate::Own => self.load.handle_done(now, u64::from(tag), ok),
            _ => self.finish_together(now, tag, ok),
        };
        if ok {
            self.counts.completed += 1;
        } else {
            self.counts.failed += 1;
        }
        if counted {
            let slot = &self.slots[tag as usize];
            self.members[slot.volume as usize].add(slot.kind(), slot.bytes, now.since(slot.issued).as_ns(), ok);
        }
        self.compare(tag, ok);
    }

    /// Compares what a request brought with what is known to be there, or notes what it wrote; its time has been taken.
    #[inline]
    fn compare(&mut self, tag: u32, ok: bool) {
        let Some(check) = &mut self.check else { return };
        let slot = &mut self.slots[tag as usize];
        let volume = &self.volumes[slot.volume as usize];
        let Some(known) = volume.known else { return };
        let sectors = Extent::new(slot.lba, slot.bytes / u64::from(self.options.sector_bytes));
        if slot.writes {
            check.write_ends(volume.target, sectors, slot.sequence, slot.mark != 0, ok);
        } else if ok {
            let (mark, bytes) = (slot.mark, usize_from(slot.bytes));
            let Some(block) = *slot.block(Use::Any) else { return };
            assert!(bytes <= block.len());
            // SAFETY: the block is this slot's and at least that long, and its request has come back.
            let brought = unsafe { std::slice::from_raw_parts(block.as_ptr(), bytes) };
            check.read_ends(mark, volume.target, sectors, brought, known);
        }
    }

    /// Tells the load of a request that is over, unless all workers together have had enough of them.
    fn finish_together(&mut self, now: Instant, tag: u32, ok: bool) -> bool {
        self.load.recorder_mut().observe(now);
        let window = &self.shared.window;
        let mut last = false;
        if self.load.recorder().is_measuring() {
            match window.count(now) {
                CountOutcome::Yes => {}
                CountOutcome::Last => last = true,
                CountOutcome::No => self.load.recorder_mut().close_at(window.closes_at().unwrap_or(now)),
            }
        } else if self.gate == Gate::Shut {
            window.warmed_up(now);
        }
        let counted = self.load.handle_done(now, u64::from(tag), ok);
        if last {
            self.load.recorder_mut().close_at(now);
        }
        counted
    }
}
