//! Emulated members: modelled disks that the real clock drives.
//!
//! Purpose: what `crates/sim/src/run.rs` does with a virtual clock, with one that does not wait. An operation is handed to
//! its disk when the array asks for it; the earliest completion is delivered as soon as the clock has passed it.
//!
//! Being late. The engine is never early, and late by what it was doing meanwhile. The model takes care that a disk does
//! not wait for its host: what was queued starts where the operation before it *ended*, not where the engine noticed
//! ([`Device`]: "service starts at the later of arrival and the moment a server became free, even if the driver polls
//! late"), so a saturated disk is as fast as in the simulator. Only what follows from a completion (the write after the
//! read of a read-modify-write, the next request of a closed loop) comes as late as that completion was delivered, as
//! on a real host. How late completions are delivered is recorded, and judges the run ([`Lateness`]).
//!
//! Invariants:
//! - One completion is taken at a time, the earliest of all disks, and what the array wants done about it is handed over
//!   before the next: under `head` pricing the write of a pair must reach its disk before the disk goes on.
//! - A completion is never delivered before it is due, and each operation handed over is delivered once.
//! - Nothing is allocated for an operation once as many have been on their way before.

use super::steal::Steal;
use crate::config::Emulation;
use crate::error::LiveError;
use crate::lateness::Lateness;
use crate::result::Mechanics;
use crate::target::{Store, Target};
use raidlab_device::{Completion, Device, FlashTotals};
use raidlab_load::Times;
use raidlab_types::number::{saturating_u64, u32_from, usize_from};
use raidlab_types::{Instant, LeafId, OpError, OpId, Operation, Seed};
use slab::Slab;

/// An operation on its way through a disk.
#[derive(Debug, Clone, Copy)]
struct DiskOperation {
    operation: Operation,
    /// What became of its bytes.
    result: Result<(), OpError>,
}

/// An operation that its disk has completed.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServedOperation {
    pub operation: Operation,
    pub result: Result<(), OpError>,
    pub completion: Completion,
}

/// All modelled disks of an array.
#[derive(Debug)]
pub(super) struct Spindles {
    /// By leaf, as they were made; none where the member is something else.
    fresh: Vec<Option<Device>>,
    devices: Vec<Option<Device>>,
    /// When each wants to be polled: never where it is idle.
    due: Vec<Instant>,
    /// The earliest of `due`, and whose it is.
    next: (Instant, LeafId),
    visits: Slab<DiskOperation>,
    mechanics: Vec<Mechanics>,
    /// By leaf, what flash drives did with their flash while it counted.
    flash: Vec<Option<FlashTotals>>,
    late: Times,
    service_ns: u64,
    steal: Steal,
}

impl Spindles {
    /// The disks of these targets for an array with such sectors; none if no target is emulated.
    pub(super) fn new(
        targets: &[Option<Target>],
        emulation: &Emulation,
        sector_bytes: u32,
        seed: u64,
    ) -> Result<Option<Spindles>, LiveError> {
        // The simulator's own seeds: the same disks turn from the same angles.
        let seed = Seed::new(seed).named("device");
        let mut fresh: Vec<Option<Device>> = Vec::with_capacity(targets.len());
        for (leaf, target) in targets.iter().enumerate() {
            let seed = seed.child(leaf as u64);
            let Some(Target { store: Store::Emulated(spec, _), key, .. }) = target else {
                fresh.push(None);
                continue;
            };
            let is_twin = |other: &Option<Target>| match other.as_ref().map(|t| &t.store) {
                Some(Store::Emulated(theirs, _)) => theirs == spec,
                _ => false,
            };
            let twin = targets[..leaf].iter().position(is_twin).and_then(|i| fresh[i].as_ref());
            let device = match twin {
                Some(twin) => twin.twin(seed),
                None => Device::new(spec, sector_bytes, emulation.pair_pricing, seed)
                    .map_err(|e| LiveError::bad(format!("{key}.device.{}", e.key), e.message))?,
            };
            // Not while the clock runs.
            let mut device = device;
            device.prepare();
            fresh.push(Some(device));
        }
        if fresh.iter().all(Option::is_none) {
            return Ok(None);
        }
        Ok(Some(Spindles {
            devices: fresh.clone(),
            due: vec![Instant::MAX; fresh.len()],
            next: (Instant::MAX, 0),
            visits: Slab::new(),
            mechanics: fresh.iter().map(|device| Mechanics::of(device.as_ref().map_or(1, Device::servers))).collect(),
            flash: vec![None; fresh.len()],
            late: Times::new(),
            service_ns: 0,
            steal: Steal::default(),
            fresh,
        }))
    }

    /// Whether every member that is there is a modelled disk.
    pub(super) fn are_all(&self, targets: &[Option<Target>]) -> bool {
        targets.iter().zip(&self.fresh).all(|(target, device)| target.is_none() || device.is_some())
    }

    /// The clock starts anew: so do the disks, which must be idle.
    pub(super) fn restart(&mut self) {
        assert!(self.visits.is_empty(), "disks are idle when their clock starts anew");
        self.devices.clone_from(&self.fresh);
    }

    /// Gives an operation to its disk at `now`; returns its number.
    pub(super) fn hand_over(&mut self, now: Instant, operation: Operation) -> usize {
        let number = self.visits.insert(DiskOperation { operation, result: Ok(()) });
        let leaf = operation.leaf;
        let Some(device) = &mut self.devices[leaf as usize] else { unreachable!("an emulated member has a device") };
        // A disk knows operations by number: what names them to the array is used again and says nothing to a disk.
        device.handle_op(now, Operation { id: OpId(number as u64), ..operation });
        self.schedule(leaf);
        number
    }

    /// The operation will fail when its time has come.
    pub(super) fn fail(&mut self, number: usize, error: OpError) {
        self.visits[number].result = Err(error);
    }

    /// When the next completion is due; never if nothing is on its way.
    #[inline]
    pub(super) fn next_due(&self) -> Instant {
        self.next.0
    }

    /// Operations on their way.
    pub(super) fn in_flight(&self) -> usize {
        self.visits.len()
    }

    /// The earliest completion that is due at `now`.
    #[inline]
    pub(super) fn take_due(&mut self, now: Instant) -> Option<ServedOperation> {
        while self.next.0 <= now {
            let leaf = self.next.1;
            // A disk may have nothing to hand out: then it has only gone on to its next operation.
            let completion = self.devices[leaf as usize].as_mut().and_then(|device| device.poll_done(now));
            self.schedule(leaf);
            if let Some(completion) = completion {
                return Some(self.served(completion));
            }
        }
        None
    }

    fn served(&mut self, completion: Completion) -> ServedOperation {
        // Stops the program where a disk completes an operation twice.
        let DiskOperation { operation, result } = self.visits.remove(usize_from(completion.id.0));
        ServedOperation { operation, result, completion }
    }

    /// Records what was delivered at `now`.
    #[inline]
    pub(super) fn record(&mut self, now: Instant, served: &ServedOperation) {
        let done = &served.completion;
        let busy_ns = done.done.since(done.started).as_ns();
        self.late.record(now.since(done.done).as_ns());
        self.service_ns += busy_ns;
        let sum = &mut self.mechanics[served.operation.leaf as usize];
        sum.busy_ns += busy_ns;
        sum.seek_ns += done.seek.as_ns();
        sum.rotation_ns += done.rotation.as_ns();
        sum.transfer_ns += done.transfer.as_ns();
        sum.overhead_ns += done.overhead.as_ns();
    }

    /// It counts from `now` on, or until now.
    pub(super) fn count(&mut self, now: Instant, on: bool) {
        for (device, flash) in self.devices.iter_mut().zip(&mut self.flash) {
            match device {
                Some(device) if on => device.reset_totals(now),
                Some(device) => *flash = device.flash(now),
                None => (),
            }
        }
    }

    /// Begins (`on`) or ends counting the processor time that the hypervisor gives to other machines (steal).
    pub(super) fn watch_steal(&mut self, on: bool) {
        self.steal.watch(on);
    }

    /// What a member's disk did while it counted; none if it is no modelled disk.
    pub(super) fn mechanics(&self, leaf: LeafId) -> Option<Mechanics> {
        let flash = self.flash[leaf as usize];
        self.fresh[leaf as usize].as_ref().map(|_| Mechanics { flash, ..self.mechanics[leaf as usize] })
    }

    /// How late completions were delivered while it counted.
    pub(super) fn lateness(&self) -> Lateness {
        let count = self.late.count();
        Lateness {
            count,
            mean_ns: saturating_u64(self.late.mean_ns()),
            p50_ns: self.late.percentile_ns(50.0),
            p99_ns: self.late.percentile_ns(99.0),
            max_ns: self.late.percentile_ns(100.0),
            mean_service_ns: self.service_ns.checked_div(count).unwrap_or(0),
            steal_share: self.steal.share(),
        }
    }

    #[inline]
    fn schedule(&mut self, leaf: LeafId) {
        let at = self.devices[leaf as usize].as_ref().and_then(Device::poll_timeout).unwrap_or(Instant::MAX);
        self.due[leaf as usize] = at;
        if (at, leaf) < self.next {
            self.next = (at, leaf);
        } else if leaf == self.next.1 {
            // The earliest was put off: dozens of disks at most, and a lower one goes first.
            let all = self.due.iter().enumerate();
            self.next = all.map(|(leaf, &at)| (at, u32_from(leaf))).min().unwrap_or((Instant::MAX, 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{self, EmulatedContent, Intent, TargetSpec};
    use raidlab_device::PairPricing;
    use raidlab_types::{Extent, OpKind};

    /// Disks that take so many microseconds for everything.
    fn spindles(us: &[u32], pair_pricing: PairPricing) -> Spindles {
        let open = |us: &u32| {
            let text = format!(r#"{{"kind":"fixed","capacity_bytes":1048576,"read_us":{us},"write_us":{us}}}"#);
            let device = Box::new(serde_json::from_str(&text).expect("a device"));
            let spec = TargetSpec::Emulated { device, content: EmulatedContent::None };
            let intent = Intent { writes: true, destroy: &[], buffered: false };
            Some(target::open(&spec, "members[0]", intent).expect("a member"))
        };
        let targets: Vec<Option<Target>> = us.iter().map(open).collect();
        let emulation = Emulation { pair_pricing, ..Emulation::default() };
        Spindles::new(&targets, &emulation, 512, 1).expect("disks").expect("emulated ones")
    }

    fn operation(id: u64, leaf: LeafId, kind: OpKind, pair_with: Option<u64>) -> Operation {
        Operation {
            id: OpId(id),
            tag: 0,
            leaf,
            kind,
            extent: Extent::new(id, 1),
            force_unit_access: false,
            pair_with: pair_with.map(OpId),
        }
    }

    fn at_us(us: u64) -> Instant {
        Instant::from_ns(us * 1000)
    }

    /// The name of the next operation that is due, and when it was.
    fn next(spindles: &mut Spindles, now: Instant) -> Option<(u64, u64)> {
        spindles.take_due(now).map(|served| (served.operation.id.0, served.completion.done.as_ns() / 1000))
    }

    #[test]
    fn the_earliest_of_all_disks_goes_first_and_none_waits_for_the_host() {
        let mut spindles = spindles(&[100, 40], PairPricing::Queued);
        for (id, leaf) in [(1, 0), (2, 0), (3, 1), (4, 1), (5, 1), (6, 1), (7, 1)] {
            spindles.hand_over(Instant::ZERO, operation(id, leaf, OpKind::Read, None));
        }
        assert_eq!(next(&mut spindles, Instant::from_ns(39_999)), None, "nothing comes early");
        assert_eq!(next(&mut spindles, at_us(40)), Some((3, 40)));
        assert_eq!(next(&mut spindles, at_us(40)), None);
        // The host looks away; the disks do not. Of those that end together the lower leaf goes first.
        let late = at_us(5000);
        let order: Vec<_> = std::iter::from_fn(|| next(&mut spindles, late)).collect();
        assert_eq!(order, [(4, 80), (1, 100), (5, 120), (6, 160), (2, 200), (7, 200)]);
        assert_eq!((spindles.in_flight(), spindles.next_due()), (0, Instant::MAX));
        // What comes to an idle disk starts when it comes.
        spindles.hand_over(late, operation(8, 0, OpKind::Write, None));
        assert_eq!(spindles.next_due(), at_us(5100));
    }

    #[test]
    fn at_the_head_a_pairs_write_goes_before_what_waits() {
        for (pricing, expected) in [(PairPricing::Queued, [9, 2]), (PairPricing::Head, [2, 9])] {
            let mut spindles = spindles(&[100], pricing);
            spindles.hand_over(Instant::ZERO, operation(1, 0, OpKind::Read, Some(2)));
            spindles.hand_over(Instant::ZERO, operation(9, 0, OpKind::Read, None));
            // Late by 7 us: the write is handed over before the disk is asked again, and has the head.
            assert_eq!(next(&mut spindles, at_us(107)), Some((1, 100)));
            spindles.hand_over(at_us(107), operation(2, 0, OpKind::Write, Some(1)));
            let order: Vec<_> = std::iter::from_fn(|| next(&mut spindles, at_us(1000))).collect();
            assert_eq!(order.iter().map(|(id, _)| *id).collect::<Vec<_>>(), expected, "{pricing:?}");
            // Under `head` the disk has waited for its host; otherwise it has not.
            let first_done = if pricing == PairPricing::Head { 207 } else { 200 };
            assert_eq!(order[0].1, first_done, "{pricing:?}");
        }
    }

    #[test]
    fn numbers_are_used_again_and_failures_come_in_their_time() {
        let mut spindles = spindles(&[100], PairPricing::Queued);
        let first = spindles.hand_over(Instant::ZERO, operation(70, 0, OpKind::Read, None));
        spindles.fail(first, OpError::MemberGone);
        assert!(spindles.take_due(at_us(99)).is_none());
        let served = spindles.take_due(at_us(130)).expect("it is due");
        assert_eq!((served.operation.id, served.result), (OpId(70), Err(OpError::MemberGone)));
        spindles.record(at_us(130), &served);
        let lateness = spindles.lateness();
        assert_eq!((lateness.count, lateness.mean_ns, lateness.mean_service_ns), (1, 30_000, 100_000));
        let again = spindles.hand_over(at_us(130), operation(71, 0, OpKind::Read, None));
        assert_eq!(again, first);
        assert_eq!(spindles.take_due(at_us(230)).map(|s| s.result), Some(Ok(())));
    }
}
