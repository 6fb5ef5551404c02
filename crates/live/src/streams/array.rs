//! Arrays as ends of streams: an engine a thread, and ports to it.
//!
//! Purpose: several streams may read and write one array at the same time, and the array is one state machine on one
//! thread. So each array has a thread of its own (a hub), and each stream's end a port: a call at a port goes to the hub
//! as a request on the stream's own memory, and waits for its answer.
//!
//! Invariants:
//! - A port has one request outstanding, and its memory is not touched meanwhile: the call returns when the request has
//!   ended, or when the engine is gone.
//! - An idle hub watches for requests for a moment (handing over takes less than waking up), then sleeps until one comes.
//!   One with emulated members only watches: their disks must not be started anew.

use super::config::{ArraySpec, StreamsConfig};
use super::ends::StreamBlock;
use super::result::ArrayResult;
use crate::config::{LiveConfig, RunStage};
use crate::content::Verify;
use crate::engine::{Engine, Source};
use crate::error::LiveError;
use crate::memory::LentMemory;
use crate::run::open_array;
use crate::target::{facts_of, Target, TargetSpec};
use raidlab_array::{Array, Layout, MemberState};
use raidlab_types::number::{u32_from, usize_from};
use raidlab_types::{Duration, Extent, Instant, Request, RequestKind, RequestTag};
use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{channel, Receiver, Sender, TryRecvError};

/// How long an idle hub watches before it sleeps.
const WATCH: Duration = Duration::from_us(200);
/// How often a hub looks for new requests while others are under way.
const LOOK: Duration = Duration::from_us(100);

/// An array whose members are open.
#[derive(Debug)]
pub(super) struct OpenArray {
    config: LiveConfig,
    pub layout: Layout,
    /// Whether streams write to it.
    pub writes: bool,
    pub targets: Vec<Option<Target>>,
}

impl OpenArray {
    /// Opens array `number` of the cell.
    pub(super) fn new(cell: &StreamsConfig, number: usize, writes: bool) -> Result<OpenArray, LiveError> {
        let config = config_of(cell, &cell.arrays[number]);
        let (targets, layout) = open_array(&config, writes).map_err(|e| e.below(&format!("arrays[{number}]")))?;
        Ok(OpenArray { config, layout, writes, targets })
    }

    /// Bytes of a volume; none if there is no such volume.
    pub(super) fn volume_bytes(&self, volume: u32) -> Option<u64> {
        let volume = self.layout.volumes().get(volume as usize)?;
        Some(volume.capacity_sectors * u64::from(self.layout.sector_bytes()))
    }
}

/// The array with a load that is never offered: requests come from the ports.
fn config_of(cell: &StreamsConfig, spec: &ArraySpec) -> LiveConfig {
    LiveConfig {
        policy: spec.policy,
        missing: spec.missing.clone(),
        seed: cell.seed,
        sector_bytes: spec.sector_bytes,
        destroy: cell.destroy.clone(),
        verify: Verify::Off,
        ..LiveConfig::new(spec.tree.clone(), spec.members.clone())
    }
}

/// What a port asks.
#[derive(Debug, Clone, Copy)]
struct BlockRequest {
    port: u32,
    kind: RequestKind,
    volume: u32,
    extent: Extent,
    lent: LentMemory,
}

/// A stream's end at an array.
#[derive(Debug)]
pub(super) struct Port {
    number: u32,
    volume: u32,
    offset_bytes: u64,
    sector_bytes: u64,
    jobs: Sender<BlockRequest>,
    answers: Receiver<bool>,
}

impl Port {
    pub(super) fn read(&self, block: StreamBlock, bytes: &mut [u8]) -> io::Result<()> {
        // SAFETY: the caller's own for as long as this call lasts.
        self.call(RequestKind::Read, block.offset, unsafe { LentMemory::new(bytes.as_mut_ptr(), bytes.len()) })
    }

    pub(super) fn write(&self, block: StreamBlock, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: borrowed by the caller for as long as this call lasts; a write reads it, and never writes to it.
        self.call(RequestKind::Write, block.offset, unsafe { LentMemory::new(bytes.as_ptr().cast_mut(), bytes.len()) })
    }

    pub(super) fn flush(&self) -> io::Result<()> {
        self.call(RequestKind::Flush, 0, LentMemory::NONE)
    }

    /// Sends a request and waits for its end, or for that of the engine, which has then let go of all memory.
    fn call(&self, kind: RequestKind, offset: u64, lent: LentMemory) -> io::Result<()> {
        let gone = || io::Error::other("the array has stopped");
        let (first, bytes) = (self.offset_bytes + offset, lent.len() as u64);
        let whole = first.is_multiple_of(self.sector_bytes) && bytes.is_multiple_of(self.sector_bytes);
        assert!(whole, "{bytes} bytes at byte {first} are no whole sectors of {} bytes", self.sector_bytes);
        let extent = Extent::new(first / self.sector_bytes, bytes / self.sector_bytes);
        let Port { number: port, volume, .. } = *self;
        self.jobs.send(BlockRequest { port, kind, volume, extent, lent }).map_err(|_| gone())?;
        match self.answers.recv() {
            Ok(true) => Ok(()),
            Ok(false) => Err(io::Error::other("the array has lost what was there")),
            Err(_) => Err(gone()),
        }
    }
}

/// An array ready to serve its ports.
#[derive(Debug)]
pub(super) struct Hub {
    array: OpenArray,
    sender: Sender<BlockRequest>,
    jobs: Receiver<BlockRequest>,
    answers: Vec<Sender<bool>>,
}

impl Hub {
    pub(super) fn new(array: OpenArray) -> Hub {
        let (sender, jobs) = channel();
        Hub { array, sender, jobs, answers: Vec::new() }
    }

    /// One more port, at this place of a volume.
    pub(super) fn port(&mut self, volume: u32, offset_bytes: u64) -> Port {
        let (answer, answers) = channel();
        let number = u32_from(self.answers.len());
        self.answers.push(answer);
        let sector_bytes = u64::from(self.array.layout.sector_bytes());
        Port { number, volume, offset_bytes, sector_bytes, jobs: self.sender.clone(), answers }
    }

    /// Serves until the last port is gone. `ready` is told when it can, or why not.
    pub(super) fn serve(self, ready: Sender<Result<(), LiveError>>) -> ArrayResult {
        let Hub { array: OpenArray { config, layout, targets, .. }, sender, jobs, answers } = self;
        // Ports have senders of their own; when the last is gone, there is nothing more to do.
        drop(sender);
        let watches = config.targets.iter().any(|spec| matches!(spec, TargetSpec::Emulated { .. }));
        // Before the engine, so that it goes after it: ports take their memory back when it is gone.
        let mut exchange = Exchange::new(jobs, answers, watches);
        let mut array = Array::new(layout, config.policy);
        config.missing.iter().for_each(|&leaf| array.set_member_state(leaf, MemberState::Missing));
        let mut engine = match Engine::new(array, targets, &config) {
            Ok(engine) => engine,
            Err(error) => {
                let _ = ready.send(Err(error));
                return ArrayResult::default();
            }
        };
        let _ = ready.send(Ok(()));
        let mut failure = None;
        while exchange.wait() {
            if let Err(error) = engine.drive(&mut exchange, RunStage::Writing, &mut |_| ControlFlow::Continue(())) {
                failure = Some(error);
                break;
            }
        }
        ArrayResult {
            targets: facts_of(&engine.targets),
            members: engine.counts(),
            failed_members: engine.failed_members.clone(),
            interface: engine.interface().0,
            parity_backend: raidlab_parity::backend().name(),
            lateness: engine.lateness(),
            failure,
        }
    }
}

/// Where an engine's requests come from: its ports.
struct Exchange {
    jobs: Receiver<BlockRequest>,
    answers: Vec<Sender<bool>>,
    /// By port: what it waits for.
    outstanding: Vec<Option<LentMemory>>,
    under_way: usize,
    /// Taken from the channel while the engine did not run.
    next: Option<BlockRequest>,
    /// All ports are gone, or the engine is to end.
    closed: bool,
    /// Does not leave the engine while it is idle.
    watches: bool,
    now: Instant,
    active: Instant,
}

impl Exchange {
    fn new(jobs: Receiver<BlockRequest>, answers: Vec<Sender<bool>>, watches: bool) -> Exchange {
        let outstanding = vec![None; answers.len()];
        let (now, active) = (Instant::ZERO, Instant::ZERO);
        Exchange { jobs, answers, outstanding, under_way: 0, next: None, closed: false, watches, now, active }
    }

    /// Sleeps until there is something to do; false if there never will be.
    fn wait(&mut self) -> bool {
        if self.closed {
            return false;
        }
        self.next = self.jobs.recv().ok();
        (self.now, self.active) = (Instant::ZERO, Instant::ZERO);
        self.next.is_some()
    }

    fn is_idle(&self) -> bool {
        self.under_way == 0 && self.next.is_none()
    }
}

impl Source for Exchange {
    fn poll_request(&mut self, now: Instant) -> Option<Request> {
        self.now = now;
        let job = match self.next.take().map_or_else(|| self.jobs.try_recv(), Ok) {
            Ok(job) => job,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => {
                self.closed = true;
                return None;
            }
        };
        let BlockRequest { port, kind, volume, extent, lent } = job;
        let before = self.outstanding[port as usize].replace(lent);
        assert!(before.is_none(), "port {port} asks while it waits for an answer");
        self.under_way += 1;
        self.active = now;
        Some(Request { tag: u64::from(port), volume, kind, extent, force_unit_access: false })
    }

    fn lent(&self, tag: RequestTag) -> Option<LentMemory> {
        self.outstanding[usize_from(tag)].filter(|lent| lent.len() > 0)
    }

    fn handle_done(&mut self, now: Instant, tag: RequestTag, ok: bool) {
        self.outstanding[usize_from(tag)] = None;
        self.under_way -= 1;
        self.active = now;
        // A port that is gone waits for nothing.
        let _ = self.answers[usize_from(tag)].send(ok);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.closed || self.under_way == self.answers.len() {
            return None;
        }
        // Idle, it watches without sleeping, for the moment that it is.
        let pause = if self.under_way == 0 && self.now.since(self.active) < WATCH { Duration::ZERO } else { LOOK };
        Some(self.now + pause)
    }

    fn is_finished(&self) -> bool {
        self.is_idle() && (self.closed || (!self.watches && self.now.since(self.active) >= WATCH))
    }

    fn interrupt(&mut self, _now: Instant) {
        self.closed = true;
    }

    fn is_measuring(&self) -> bool {
        true
    }

    fn fraction(&self, _now: Instant, _requests: u64) -> f64 {
        0.0
    }
}
