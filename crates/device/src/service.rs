//! The times of one operation, and their totals over many.
//!
//! Invariant: the busy time of a device is `overhead + seek + rotation + transfer + paired`, each nanosecond counted
//! once.

use raidlab_types::{Duration, Instant, OpId, OpKind};
use serde::Serialize;

/// An operation that is complete, with its times.
///
/// `done - started` is the sum of the four parts, with one exception: a write that was prepaid by its read
/// ([`PairPricing::Prepaid`](crate::PairPricing::Prepaid)) carries the parts the device spent on it directly after that
/// read, `started` is the end of the read, which may lie before `arrived`, and `done` is the later of the end of
/// that time and `arrived`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The operation's name.
    pub id: OpId,
    /// When the device took it.
    pub arrived: Instant,
    /// When its service began.
    pub started: Instant,
    /// When it was complete.
    pub done: Instant,
    /// Movement of the arm and switches of head, settling included.
    pub seek: Duration,
    /// Waiting for sectors to come round.
    pub rotation: Duration,
    /// Moving bytes.
    pub transfer: Duration,
    /// Work of the controller before anything moves, or the turnaround within a prepaid pair.
    pub overhead: Duration,
}

impl Completion {
    /// Time from arrival to the start of service.
    #[inline]
    pub fn wait(&self) -> Duration {
        self.started.since(self.arrived)
    }
}

/// A command as a disk or flash drive sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Command {
    pub kind: OpKind,
    pub lba: u64,
    pub sectors: u64,
    /// Must be on the medium when it is complete.
    pub durable: bool,
    /// When it reached the device, and when the device turns to it.
    pub entered: u64,
    pub now: u64,
}

impl Command {
    /// The address behind its last sector.
    pub(crate) fn end(&self) -> u64 {
        self.lba + self.sectors
    }
}

/// What one visit costs, in ns; the models' answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Service {
    pub overhead: u64,
    pub seek: u64,
    pub rotation: u64,
    pub transfer: u64,
}

/// A service with its place in time, for models that do several things at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimedService {
    /// When the device turned to the operation: later than when it was given, where it had its own work to finish first.
    pub begun: u64,
    pub service: Service,
    /// When the device may turn to the next operation; not after this one is complete.
    pub release: u64,
}

impl TimedService {
    /// One that begins at once and holds the device until it is over.
    #[inline]
    pub(crate) fn at(begun: u64, service: Service) -> Self {
        TimedService { begun, service, release: begun + service.total() }
    }
}

impl Service {
    /// A visit of `total` ns whose parts are, as far as they fit, these; the rest is overhead.
    pub(crate) fn split(total: u64, seek: u64, rotation: u64, transfer: u64) -> Self {
        let seek = seek.min(total);
        let rotation = rotation.min(total - seek);
        let transfer = transfer.min(total - seek - rotation);
        Service { overhead: total - seek - rotation - transfer, seek, rotation, transfer }
    }

    #[inline]
    pub(crate) fn total(&self) -> u64 {
        self.overhead + self.seek + self.rotation + self.transfer
    }

    /// The completion of an operation with these times that took this service.
    #[inline]
    pub(crate) fn completion(&self, id: OpId, arrived: Instant, started: Instant, done: Instant) -> Completion {
        Completion {
            id,
            arrived,
            started,
            done,
            seek: Duration::from_ns(self.seek),
            rotation: Duration::from_ns(self.rotation),
            transfer: Duration::from_ns(self.transfer),
            overhead: Duration::from_ns(self.overhead),
        }
    }
}

/// Sums over the operations handed out by `poll_done` since the last reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Totals {
    /// Reads completed.
    pub reads: u64,
    /// Writes completed, writes of zeroes included.
    pub writes: u64,
    /// Flushes and discards completed.
    pub others: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Time in service, summed over the servers of a parallel device.
    pub busy_ns: u64,
    /// Part of the busy time: moving the arm and switching heads.
    pub seek_ns: u64,
    /// Part of the busy time: waiting for sectors to come round.
    pub rotation_ns: u64,
    /// Part of the busy time: moving bytes.
    pub transfer_ns: u64,
    /// Part of the busy time: work of the controller.
    pub overhead_ns: u64,
    /// Part of the busy time: spent on writes prepaid by their reads (turnaround, wait and transfer together). Counted
    /// with the read, so the other parts never include it.
    pub paired_ns: u64,
    /// Time from arrival to the start of service.
    pub wait_ns: u64,
}

impl Totals {
    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.read_bytes + self.write_bytes
    }

    /// Counts one operation of `bytes` bytes.
    #[inline]
    pub(crate) fn count(&mut self, kind: OpKind, bytes: u64) {
        match kind {
            OpKind::Read => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            OpKind::Write | OpKind::WriteZeroes => {
                self.writes += 1;
                self.write_bytes += bytes;
            }
            OpKind::Flush | OpKind::Discard => self.others += 1,
        }
    }

    /// Adds the time of one visit to the device, and what it prepaid for its write.
    #[inline]
    pub(crate) fn spend(&mut self, done: &Completion, paired_ns: u64) {
        self.seek_ns += done.seek.as_ns();
        self.rotation_ns += done.rotation.as_ns();
        self.transfer_ns += done.transfer.as_ns();
        self.overhead_ns += done.overhead.as_ns();
        self.paired_ns += paired_ns;
        self.busy_ns += done.done.since(done.started).as_ns() + paired_ns;
        self.wait_ns += done.wait().as_ns();
    }
}

/// What a flash drive did with its flash since the last reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct FlashTotals {
    /// What the host wrote, in whole mapping units.
    pub flash_host_bytes: u64,
    /// What was moved out of blocks before they were erased.
    pub flash_moved_bytes: u64,
    /// What was left empty, because a page had to be programmed before it was full.
    pub flash_padded_bytes: u64,
    /// Blocks erased, those of all planes of a die as one.
    pub flash_erased_blocks: u64,
    /// How long the busiest die sensed, programmed, erased or sent.
    pub flash_die_busy_ns: u64,
    /// How long the busiest channel sent.
    pub flash_channel_busy_ns: u64,
    /// How long the interface to the host was taken, in the direction that was busier.
    pub flash_link_busy_ns: u64,
}

/// Expected times of one operation on an idle device, independent of the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleMean {
    /// Work of the controller; the whole fixed cost for devices without mechanics.
    pub overhead: Duration,
    /// Mean seek between two independent sectors, each sector equally likely.
    pub seek: Duration,
    /// Mean wait for rotation.
    pub rotation: Duration,
    /// Mean transfer, track boundaries not counted.
    pub transfer: Duration,
}

impl IdleMean {
    /// That of a device without mechanics.
    pub(crate) fn still(overhead: Duration, transfer: Duration) -> Self {
        IdleMean { overhead, seek: Duration::ZERO, rotation: Duration::ZERO, transfer }
    }

    /// The mean service time.
    pub fn total(&self) -> Duration {
        self.overhead + self.seek + self.rotation + self.transfer
    }
}
