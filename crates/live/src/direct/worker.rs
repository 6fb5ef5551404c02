//! One worker: one thread, one load, one ring, and the targets dealt to it.
//!
//! Purpose: to offer requests to targets and to see them come back, as often and as cheaply as can be. A turn takes what
//! has come back, offers new requests, hands them over in one call, and waits in that call.
//!
//! Invariants:
//! - The clock is read for every request when it is offered and when it is seen to have come back, and never runs
//!   backwards between two events.
//! - Nothing is allocated, locked or asked of the system for a request, but for the ring's own call (threads: for their
//!   desk), once as many requests have been in flight as ever will be.
//! - Memory named by a request in flight is not touched; the transport is dropped before the memory it knows.
//! - A request that fails ends the run, after what is in flight has come back.

mod completions;

use super::result::RequestCounts;
use super::shared::Shared;
use super::slots::Slots;
use super::transport::Transport;
use crate::content::{ContentCheck, Known, Stamper};
use crate::error::{plain, LiveError};
use crate::io::{wait_limit, Clock, PromptWakes};
use crate::memory::{Block, Mapping, Pool, Use};
use crate::result::MemberCounts;
use crate::usage::Usage;
use raidlab_load::{Generator, Load};
use raidlab_types::number::{u16_from, u32_from, usize_from};
use raidlab_types::{Extent, Instant, Request, RequestKind};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Where a volume of the worker's load is.
#[derive(Debug, Clone)]
pub(super) struct Site<'t> {
    /// Number of the target.
    pub target: u32,
    /// First sector of the target that belongs to it, and how many do.
    pub first_lba: u64,
    pub sectors: u64,
    pub reach: Reach<'t>,
    /// What is known of its content; nothing where it keeps none.
    pub known: Option<Known>,
    /// Key and name of the target, for sentences.
    pub key: String,
    pub name: String,
}

/// How a target is reached.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reach<'t> {
    /// Completes at once.
    Null,
    /// Memory, of which each worker has its own part.
    Memory(&'t Mapping),
    /// Index among the registered files, and descriptor.
    File(u32, BorrowedFd<'t>),
}

/// How it goes about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    pub batch: usize,
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
    manner: Manner,
    sites: &'a [Site<'a>],
    /// Before `pool`, so that it is dropped before the memory it knows.
    transport: Option<Transport>,
    pool: Pool,
    slots: Slots,
    /// What needed no waiting and has not been told to the load yet.
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
    /// One a site, in order.
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
        sites: &'a [Site<'a>],
        transport: Option<Transport>,
        (pool, stamper, check): (Pool, Stamper, Option<ContentCheck>),
        manner: Manner,
        shared: &'a Shared,
    ) -> Worker<'a> {
        let room = (load.depth() as usize).min(1 << 16);
        if manner.shares_window {
            load.recorder_mut().keep_shut();
        }
        let member = |site: &Site<'_>| MemberCounts { leaf: site.target, ..MemberCounts::default() };
        Worker {
            load,
            clock: Clock::start(),
            now: Instant::ZERO,
            shared,
            manner,
            sites,
            transport,
            pool,
            slots: Slots::with_room(room),
            at_once: VecDeque::with_capacity(room),
            stamper,
            check,
            sequence: u64::from(manner.number) << 48,
            counts: RequestCounts::default(),
            members: sites.iter().map(member).collect(),
            gate: if manner.shares_window { Gate::Shut } else { Gate::Own },
            measuring: false,
            opened: Usage::default(),
            used: Usage::default(),
            failure: None,
        }
    }

    /// Takes the memory that `requests` at once of `bytes` need, so that none has to be taken later.
    pub(super) fn prepare(&mut self, bytes: usize, uses: &[Use]) -> Result<(), LiveError> {
        for slot in self.slots.iter_mut() {
            for &purpose in uses {
                *slot.block(purpose) = Some(take(&mut self.pool, &mut self.transport, bytes, purpose)?);
            }
        }
        Ok(())
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
            self.shared.report(self.manner.number, self.counts.completed);
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
        let window = self.shared.window();
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
        for _ in 0..self.manner.batch {
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
        let (site, writes) = (&self.sites[volume as usize], kind == RequestKind::Write);
        let sector_bytes = u64::from(self.manner.sector_bytes);
        let bytes = extent.sectors * sector_bytes;
        // What lies beyond may be another worker's, or nobody's to write to.
        assert!(extent.end() <= site.sectors, "a request ends at sector {} of {}", extent.end(), site.sectors);
        let lba = site.first_lba + extent.lba;
        self.counts.submitted += 1;
        let slot = self.slots.begin(tag);
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
        let slot = self.slots.get(tag);
        (slot.start, slot.registered) = (block.as_ptr(), block.registered);
        (slot.offset, slot.left, slot.bytes) = (lba * sector_bytes, bytes, bytes);
        (slot.issued, slot.site, slot.writes) = (self.now, u16_from(volume), writes);
        (slot.lba, slot.mark) = (lba, 0);
        if writes {
            self.sequence += 1;
            slot.sequence = self.sequence;
            // SAFETY: the block is at least that long and this slot's alone.
            let content = unsafe { std::slice::from_raw_parts_mut(block.as_ptr(), usize_from(bytes)) };
            self.stamper.stamp(content, site.target, lba, self.sequence);
        }
        if let (Some(check), Some(_)) = (&mut self.check, site.known) {
            slot.mark = match writes {
                true => {
                    let sectors = Extent::new(lba, extent.sectors);
                    u64::from(check.write_begins(self.now, site.target, sectors, self.sequence))
                }
                false => check.read_begins(self.now),
            };
        }
        match site.reach {
            Reach::Null => self.at_once.push_back(tag),
            Reach::Memory(mapping) => {
                let there = mapping.at(lba * sector_bytes, usize_from(bytes));
                // SAFETY: so many bytes are there and in the block, and no block lies in a mapping. The load keeps requests
                // within the volume, which is this worker's part of the mapping.
                unsafe {
                    let (from, to) = if writes { (block.as_ptr(), there) } else { (there, block.as_ptr()) };
                    std::ptr::copy_nonoverlapping(from, to, usize_from(bytes));
                }
                self.at_once.push_back(tag);
            }
            Reach::File(..) => self.launch(tag),
        }
    }

    /// A larger block for a slot; without one the run ends, and the request with it.
    #[cold]
    fn enlarge(&mut self, tag: u32, bytes: usize, purpose: Use, old: Option<Block>) -> Option<Block> {
        old.into_iter().for_each(|block| self.pool.give_back(block));
        match take(&mut self.pool, &mut self.transport, bytes, purpose) {
            Ok(block) => {
                *self.slots.get(tag).block(purpose) = Some(block);
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
        let slot = self.slots.get(tag);
        let Reach::File(index, fd) = self.sites[slot.site as usize].reach else { return };
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
        let at_once = more || !self.at_once.is_empty() || self.manner.busy;
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
        let message = format!("io_uring_enter failed: {}", plain(e));
        let errno = e.raw_os_error().unwrap_or(0);
        let error = LiveError::Io { key: "engine".into(), target: "io_uring".into(), errno, message };
        self.failure.get_or_insert(error);
        self.stop();
    }
}

/// A block from the pool, in memory the ring knows if it can.
fn take(pool: &mut Pool, transport: &mut Option<Transport>, bytes: usize, purpose: Use) -> Result<Block, LiveError> {
    let register = |start, len| transport.as_mut().and_then(|transport| transport.register(start, len));
    pool.take(bytes, purpose, register)
        .map_err(|e| LiveError::io("workload.size", "memory", &format!("taking {bytes} bytes for a request"), &e))
}
