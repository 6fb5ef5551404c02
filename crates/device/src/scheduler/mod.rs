//! The order in which a device serves what waits.
//!
//! One file a scheduler. Adding one: a file with a type that implements [`Schedule`], a variant of [`SchedulerSpec`] and of
//! [`Scheduler`] below, a line in each `match`, a test. The list:
//!
//! - `fifo`: in order of arrival
//! - `look`: up and down like a lift
//! - `clook`: up only, then again from the bottom
//! - `vscan`: the shortest way of the arm first (`sstf`), or between that and `look`
//! - `sptf`: the shortest time of arm and rotation first, plain or with what each has waited taken off
//! - `kyber_batches`: reads and writes in batches, as Linux's Kyber above one command slot
//!
//! Invariant: what is pushed is taken exactly once, and `take` gives something whenever anything waits (a device never
//! idles while work waits). Writes of pairs that go to the head ([`PairPricing::Head`](crate::PairPricing::Head)) pass
//! before any scheduler and are none of its business. A scheduler sees no more than the device holds; the rest waits
//! with the host, whose own scheduler says which of it the device is given next.

mod clook;
mod fifo;
mod kyber_batches;
mod look;
mod sorted;
mod sptf;
mod vscan;

use crate::SpecError;
use clook::Clook;
use fifo::Fifo;
use kyber_batches::KyberBatches;
use look::Look;
use raidlab_types::{Instant, OpId, OpKind, Operation};
use serde::{Deserialize, Serialize};
use sptf::Sptf;
use std::collections::VecDeque;
use vscan::Vscan;

/// Which scheduler a device has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SchedulerSpec {
    /// In order of arrival.
    #[default]
    Fifo,
    /// The shortest way of the arm first, by address.
    Sstf,
    /// On in one direction while anything lies there, then back.
    Look,
    /// Upwards only; after the highest address again from the lowest.
    Clook,
    /// The shortest way, where turning round counts as this share of the disk more.
    Vscan {
        /// 0 (as `sstf`) to 100 (as `look`).
        percent: u8,
    },
    /// The shortest time of arm and rotation first; only for disks.
    Sptf,
    /// The same, where each is served the earlier the longer it has waited; only for disks.
    AgedSptf {
        /// Share of the time it has waited that counts against an operation's movement and rotation: 1 to 100.
        percent: u8,
    },
    /// Linux's Kyber above a device with one command slot: 16 reads, then 8 writes, the next one always chosen already.
    KyberBatches,
}

impl SchedulerSpec {
    /// Whether what finds the device idle must pass through the scheduler too, because that counts what it has served.
    pub(crate) fn sees_all(self) -> bool {
        self == SchedulerSpec::KyberBatches
    }

    /// Whether it reckons with arm and rotation.
    pub(crate) fn needs_mechanics(self) -> bool {
        matches!(self, SchedulerSpec::Sptf | SchedulerSpec::AgedSptf { .. })
    }

    /// Checks its own parameters; `key` is where it stands.
    pub(crate) fn check(self, key: &str) -> Result<(), SpecError> {
        let wrong = |name: &str, message: &str| Err(SpecError::new(format!("{key}.{name}.percent"), message));
        match self {
            SchedulerSpec::Vscan { percent: 101.. } => wrong("vscan", "must lie between 0 and 100"),
            SchedulerSpec::AgedSptf { percent: 0 | 101.. } => {
                wrong("aged_sptf", "must lie between 1 and 100; without age: sptf")
            }
            _ => Ok(()),
        }
    }

    /// Checks that a host can order by it, which knows addresses and nothing of the disk's angle.
    pub(crate) fn check_host(self, key: &str) -> Result<(), SpecError> {
        if self.needs_mechanics() || self.sees_all() {
            let message = "a host knows addresses only; accepted: fifo, sstf, look, clook, vscan";
            return Err(SpecError::new(key, message));
        }
        self.check(key)
    }
}

/// Where the arm stands: behind the operation that was served last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ArmAddress {
    /// That operation's first sector, and one past its last.
    pub lba: u64,
    pub end: u64,
}

impl ArmAddress {
    /// Behind an operation.
    #[inline]
    pub(crate) fn of(op: &PendingOperation) -> Self {
        ArmAddress { lba: op.lba, end: op.lba + op.sectors }
    }
}

/// An operation that waits, in sectors of the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingOperation {
    pub id: OpId,
    pub kind: OpKind,
    /// Must be on the medium when it completes.
    pub durable: bool,
    /// The other half of a pair, or [`NO_PAIR`]: an `Option` would be two words to copy from where they were just written.
    pair: u64,
    pub lba: u64,
    pub sectors: u64,
    pub arrived: Instant,
    /// When the device had room for it.
    pub entered: Instant,
    /// How many operations the device took before it; what random service times are a function of.
    pub sequence: u64,
}

/// Stands for no pair; no operation has this name, for windows and nodes are numbered from 0.
const NO_PAIR: u64 = u64::MAX;

impl PendingOperation {
    /// The operation as the device counts it: in its own sectors, arrived at `now` after `sequence` others.
    #[inline]
    pub(crate) fn new(op: &Operation, sectors_each: u64, now: Instant, sequence: u64) -> Self {
        PendingOperation {
            id: op.id,
            kind: op.kind,
            durable: op.force_unit_access,
            pair: op.pair_with.map_or(NO_PAIR, |other| other.0),
            lba: op.extent.lba * sectors_each,
            sectors: op.extent.sectors * sectors_each,
            arrived: now,
            entered: now,
            sequence,
        }
    }

    /// The other half of its pair.
    #[inline]
    pub(crate) fn pair_with(&self) -> Option<OpId> {
        (self.pair != NO_PAIR).then_some(OpId(self.pair))
    }
}

/// What a scheduler can do.
pub(crate) trait Schedule {
    /// Takes in an operation.
    fn push(&mut self, waiting: PendingOperation);
    /// The one to serve next; `positioning_ns` is what arm and rotation would take for one.
    fn take(&mut self, arm: ArmAddress, positioning_ns: impl Fn(&PendingOperation) -> u64) -> Option<PendingOperation>;
    /// How many wait.
    fn len(&self) -> usize;
    /// Lengthens one that waits by its neighbour of `sectors` from `lba` on, where `fits` of its name and of the sectors of
    /// both, and names it; `None` where none is found, or the scheduler merges none.
    fn merge(&mut self, _kind: OpKind, _lba: u64, _sectors: u64, _fits: impl Fn(OpId, u64) -> bool) -> Option<OpId> {
        None
    }
    /// What comes until [`Schedule::let_go`] comes together: nothing is chosen before.
    fn hold(&mut self) {}
    /// What came together is all there.
    fn let_go(&mut self) {}
}

/// Merges `sectors` from `lba` on into one of the last eight of `waiting` that they lie next to, the newest first. One that
/// it does not fit into ends the search, as in Linux (`blk_bio_list_merge`).
fn merge_into<'a>(
    waiting: impl DoubleEndedIterator<Item = &'a mut PendingOperation>,
    kind: OpKind,
    lba: u64,
    sectors: u64,
    fits: impl Fn(OpId, u64) -> bool,
) -> Option<OpId> {
    let is_next =
        |op: &&mut PendingOperation| op.kind == kind && (op.lba + op.sectors == lba || lba + sectors == op.lba);
    let found = waiting.rev().take(8).find(is_next)?;
    if !fits(found.id, found.sectors + sectors) {
        return None;
    }
    (found.lba, found.sectors) = (found.lba.min(lba), found.sectors + sectors);
    Some(found.id)
}

/// One of the schedulers; an enum, for the call is on the hot path.
#[derive(Debug, Clone)]
enum Scheduler {
    Fifo(Fifo),
    Look(Look),
    Clook(Clook),
    Vscan(Vscan),
    Sptf(Sptf),
    /// In a box: it is large, and devices lie side by side.
    KyberBatches(Box<KyberBatches>),
}

/// Does the same with whichever scheduler it is.
macro_rules! each {
    ($scheduler:expr, $one:ident => $what:expr) => {
        match $scheduler {
            Scheduler::Fifo($one) => $what,
            Scheduler::Look($one) => $what,
            Scheduler::Clook($one) => $what,
            Scheduler::Vscan($one) => $what,
            Scheduler::Sptf($one) => $what,
            Scheduler::KyberBatches($one) => $what,
        }
    };
}

impl Scheduler {
    fn new(spec: SchedulerSpec, capacity: u64) -> Scheduler {
        match spec {
            SchedulerSpec::Fifo => Scheduler::Fifo(Fifo::default()),
            SchedulerSpec::Sstf => Scheduler::Vscan(Vscan::new(0, capacity)),
            SchedulerSpec::Look => Scheduler::Look(Look::default()),
            SchedulerSpec::Clook => Scheduler::Clook(Clook::default()),
            SchedulerSpec::Vscan { percent } => Scheduler::Vscan(Vscan::new(percent, capacity)),
            SchedulerSpec::Sptf => Scheduler::Sptf(Sptf::new(0)),
            SchedulerSpec::AgedSptf { percent } => Scheduler::Sptf(Sptf::new(percent)),
            SchedulerSpec::KyberBatches => Scheduler::KyberBatches(Box::default()),
        }
    }
}

/// Everything that waits at one device: the scheduler, before it what goes to the head, behind it what the device has no
/// room for.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    head: VecDeque<PendingOperation>,
    scheduler: Scheduler,
    /// How many may wait within the device.
    room: usize,
    /// What waits with the host, in its own order; in a box, for few devices refuse anything.
    outside: Box<Scheduler>,
    /// What the host gave the device last, as far as it must know.
    handed_over: ArmAddress,
    /// How many wait, wherever.
    waiting: usize,
}

impl Queue {
    /// An empty queue of a device of `capacity` sectors that holds `depth` operations, those in service on its `servers`
    /// included; `host` orders the others.
    pub(crate) fn new(
        spec: SchedulerSpec,
        host: SchedulerSpec,
        capacity: u64,
        depth: Option<u32>,
        servers: usize,
    ) -> Self {
        let room = depth.map_or(usize::MAX, |depth| (depth as usize).saturating_sub(servers));
        Queue {
            head: VecDeque::new(),
            scheduler: Scheduler::new(spec, capacity),
            room,
            outside: Box::new(Scheduler::new(host, capacity)),
            handed_over: ArmAddress::default(),
            waiting: 0,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, waiting: PendingOperation) {
        self.waiting += 1;
        if self.room != usize::MAX {
            if self.is_full() {
                return self.push_outside(waiting);
            }
            self.handed_over = ArmAddress::of(&waiting);
        }
        each!(&mut self.scheduler, one => one.push(waiting));
    }

    #[cold]
    fn push_outside(&mut self, waiting: PendingOperation) {
        each!(&mut *self.outside, one => one.push(waiting));
    }

    /// Puts `waiting` before everything but what was put there earlier.
    #[inline]
    pub(crate) fn push_head(&mut self, waiting: PendingOperation) {
        self.waiting += 1;
        self.head.push_back(waiting);
    }

    /// The operation to serve from `now` on.
    #[inline]
    pub(crate) fn take(
        &mut self,
        now: Instant,
        arm: ArmAddress,
        positioning_ns: impl Fn(&PendingOperation) -> u64,
    ) -> Option<PendingOperation> {
        self.waiting = self.waiting.saturating_sub(1);
        if !self.head.is_empty() {
            return self.take_head();
        }
        let taken = each!(&mut self.scheduler, one => one.take(arm, positioning_ns));
        if self.room == usize::MAX {
            taken
        } else {
            self.let_in(now, taken)
        }
    }

    #[cold]
    fn take_head(&mut self) -> Option<PendingOperation> {
        self.head.pop_front()
    }

    /// A place within the device has become free: what the host gives next gets it at `now`, and is served at once where
    /// the device has no other.
    #[inline(never)]
    fn let_in(&mut self, now: Instant, taken: Option<PendingOperation>) -> Option<PendingOperation> {
        let mut enter = || {
            let mut waiting = each!(&mut *self.outside, one => one.take(self.handed_over, |_| 0))?;
            self.handed_over = ArmAddress::of(&waiting);
            waiting.entered = now.max(waiting.arrived);
            Some(waiting)
        };
        let taken = taken.or_else(&mut enter);
        if let Some(waiting) = if self.room > 0 { enter() } else { None } {
            each!(&mut self.scheduler, one => one.push(waiting));
        }
        taken
    }

    fn is_full(&self) -> bool {
        each!(&self.scheduler, one => one.len()) >= self.room
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// See [`Schedule::merge`]; what the device has no room for waits with the host, which merges it where it keeps it in
    /// order of arrival.
    pub(crate) fn merge(
        &mut self,
        kind: OpKind,
        lba: u64,
        sectors: u64,
        fits: impl Fn(OpId, u64) -> bool,
    ) -> Option<OpId> {
        if self.room != usize::MAX {
            return match &mut *self.outside {
                Scheduler::Fifo(fifo) => merge_into(fifo.iter_mut(), kind, lba, sectors, fits),
                _ => None,
            };
        }
        each!(&mut self.scheduler, one => one.merge(kind, lba, sectors, fits))
    }

    /// See [`Schedule::hold`].
    pub(crate) fn hold(&mut self) {
        each!(&mut self.scheduler, one => one.hold());
    }

    /// See [`Schedule::let_go`].
    pub(crate) fn let_go(&mut self) {
        each!(&mut self.scheduler, one => one.let_go());
    }
}

#[cfg(test)]
pub(crate) fn waiting_at(id: u64, lba: u64) -> PendingOperation {
    PendingOperation {
        id: OpId(id),
        kind: OpKind::Read,
        durable: false,
        pair: NO_PAIR,
        lba,
        sectors: 1,
        arrived: Instant::ZERO,
        entered: Instant::ZERO,
        sequence: id,
    }
}

/// For schedulers that do not ask.
#[cfg(test)]
const NOWHERE: fn(&PendingOperation) -> u64 = |_| 0;

/// The addresses in the order in which a scheduler gives them, with the arm behind sector `from`.
#[cfg(test)]
pub(crate) fn order(mut scheduler: impl Schedule, from: u64, addresses: &[u64]) -> Vec<u64> {
    addresses.iter().enumerate().for_each(|(id, &lba)| scheduler.push(waiting_at(id as u64, lba)));
    assert_eq!(scheduler.len(), addresses.len());
    let mut arm = ArmAddress { lba: from, end: from + 1 };
    std::iter::from_fn(|| {
        let next = scheduler.take(arm, NOWHERE)?;
        arm = ArmAddress { lba: next.lba, end: next.lba + next.sectors };
        Some(next.lba)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(queue: &mut Queue, now: u64) -> Vec<(u64, u64)> {
        let mut arm = ArmAddress::default();
        std::iter::from_fn(|| {
            let next = queue.take(Instant::from_ns(now), arm, NOWHERE)?;
            arm = ArmAddress { lba: next.lba, end: next.lba + 1 };
            Some((next.id.0, next.entered.as_ns()))
        })
        .collect()
    }

    #[test]
    fn the_head_passes_first_and_keeps_its_own_order() {
        let mut queue = Queue::new(SchedulerSpec::Fifo, SchedulerSpec::Fifo, 100, None, 1);
        [1, 2].into_iter().for_each(|id| queue.push(waiting_at(id, id)));
        [8, 9].into_iter().for_each(|id| queue.push_head(waiting_at(id, id)));
        assert_eq!(queue.len(), 4);
        assert_eq!(ids(&mut queue, 0), [(8, 0), (9, 0), (1, 0), (2, 0)]);
    }

    #[test]
    fn a_scheduler_orders_only_what_the_device_holds() {
        // One in service and two within: 7 has arrived first of those outside, but the device takes 30 before 10.
        let mut queue = Queue::new(SchedulerSpec::Clook, SchedulerSpec::Fifo, 100, Some(3), 1);
        [(1, 50), (2, 30), (7, 10), (8, 20)].into_iter().for_each(|(id, lba)| queue.push(waiting_at(id, lba)));
        assert_eq!(queue.len(), 4);
        assert_eq!(ids(&mut queue, 5), [(2, 0), (1, 0), (7, 5), (8, 5)]);
        // None within: arrival decides, whatever the scheduler.
        let mut queue = Queue::new(SchedulerSpec::Sstf, SchedulerSpec::Fifo, 100, Some(1), 1);
        [(1, 50), (2, 30), (7, 0)].into_iter().for_each(|(id, lba)| queue.push(waiting_at(id, lba)));
        assert_eq!(ids(&mut queue, 9), [(1, 9), (2, 9), (7, 9)]);
    }

    #[test]
    fn the_host_orders_what_the_device_has_no_room_for() {
        let pushed = |host, depth, all: &[(u64, u64)]| {
            let mut queue = Queue::new(SchedulerSpec::Fifo, host, 100, Some(depth), 1);
            all.iter().for_each(|&(id, lba)| queue.push(waiting_at(id, lba)));
            ids(&mut queue, 9)
        };
        // One command at a time: upwards from 0, an equal address before a higher one, then again from the bottom.
        let all = [(1, 50), (2, 30), (3, 50), (4, 40)];
        assert_eq!(pushed(SchedulerSpec::Clook, 1, &all), [(2, 9), (4, 9), (1, 9), (3, 9)]);
        // Two within, in order of arrival: the host goes on from what it gave last (30), not from what is in service.
        let all = [(1, 50), (2, 30), (3, 90), (4, 35), (5, 10)];
        assert_eq!(pushed(SchedulerSpec::Clook, 3, &all), [(1, 0), (2, 0), (4, 9), (3, 9), (5, 9)]);
        assert_eq!(pushed(SchedulerSpec::Sstf, 3, &all), [(1, 0), (2, 0), (4, 9), (5, 9), (3, 9)]);
    }
}
