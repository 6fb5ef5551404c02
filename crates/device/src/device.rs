//! A device: a model, what waits for it, and what it will do next.
//!
//! Purpose: queueing, parallel servers, pairs and accounting, once for all kinds of model.
//!
//! Invariants:
//! - Service starts at the later of arrival and the moment a server became free, even if the driver polls late: an
//!   emulated spindle on a real clock is no slower for it.
//! - Of operations that complete at the same time, those started first are handed out first.
//! - A read of a prepaid pair holds its server until the write is on the medium; the write holds none.

use crate::calendar::{Calendar, OperationInService};
use crate::empirical::Empirical;
use crate::fixed::Fixed;
use crate::hdd::{Drive, Hdd, SharedBus};
use crate::pair::{PairLedger, PrepaidWrite};
use crate::random::Random;
use crate::scheduler::{ArmAddress, PendingOperation, Queue, SchedulerSpec};
use crate::service::{Command, Completion, FlashTotals, Service, TimedService, Totals};
use crate::ssd::Ssd;
use crate::throttle::Throttle;
use crate::{DeviceSpec, PairPricing, SpecError};
use raidlab_types::number::saturating_u32;
use raidlab_types::{Duration, Extent, Instant, OpId, OpKind, Operation, Seed};

/// One kind of device; an enum, for the call is on the hot path.
#[derive(Debug, Clone)]
enum Model {
    Hdd(Hdd),
    /// In a box: it is large, and devices lie side by side.
    Drive(Box<Drive>),
    Ssd(Box<Ssd>),
    Fixed(Fixed),
    Empirical(Empirical),
    /// In a box: no device is to be larger for it.
    Random(Box<Random>),
}

impl Model {
    /// What arm and rotation would take for an operation that began at `at`.
    #[inline]
    fn positioning_ns(&self, at: Instant, op: &PendingOperation) -> u64 {
        match self {
            Model::Hdd(hdd) => hdd.positioning_ns(at, op.kind, op.lba),
            Model::Drive(drive) => drive.positioning_ns(&command(op, at)),
            Model::Fixed(_) | Model::Empirical(_) | Model::Random(_) | Model::Ssd(_) => 0,
        }
    }
}

/// A modelled device that takes operations and says when they are done.
///
/// ```
/// use raidlab_device::{Device, DeviceSpec, PairPricing};
/// use raidlab_types::{Extent, Instant, OpId, OpKind, Operation, Seed};
///
/// let text = r#"{"kind": "fixed", "capacity_bytes": 1048576, "read_us": 100, "write_us": 50}"#;
/// let spec: DeviceSpec = serde_json::from_str(text).unwrap();
/// let mut device = Device::new(&spec, 512, PairPricing::Queued, Seed::new(1)).unwrap();
/// let read = Operation {
///     id: OpId(7), tag: 0, leaf: 0, kind: OpKind::Read, extent: Extent::new(0, 8),
///     force_unit_access: false, pair_with: None,
/// };
/// device.handle_op(Instant::ZERO, read);
/// while let Some(now) = device.poll_timeout() {
///     while let Some(done) = device.poll_done(now) {
///         assert_eq!((done.id, done.done.as_ns()), (OpId(7), 100_000));
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Device {
    model: Model,
    /// What may limit the rate of operations before they reach the queue; in a box, for few devices have one.
    throttle: Option<Box<Throttle>>,
    /// That at the start.
    fresh_throttle: Option<Box<Throttle>>,
    queue: Queue,
    arm: ArmAddress,
    calendar: Calendar,
    ledger: PairLedger,
    pricing: PairPricing,
    scheduler: SchedulerSpec,
    host_scheduler: SchedulerSpec,
    depth: Option<u32>,
    servers: usize,
    /// Servers at work.
    busy: usize,
    /// Below so many at work an operation starts without passing through the scheduler: all servers, or none.
    direct: usize,
    /// The host hears of the read of a pair before it chooses what the device is given next.
    host_chooses: bool,
    /// Nothing is served before.
    not_before: Instant,
    /// Operations taken so far.
    taken: u64,
    /// Device sectors in an array sector, capacity in those, and bytes of a device sector.
    sectors_each: u64,
    capacity: u64,
    logical_block_bytes: u32,
    /// What everything takes beyond what the model says, in thousandths of that.
    extra_thousandths: u32,
    totals: Totals,
}

impl Device {
    /// A device of this spec in an array whose sectors have `sector_bytes` bytes, a multiple of the device's own.
    ///
    /// The seed gives a disk its angle at the start and a device with drawn times its draws; give each member its own.
    pub fn new(spec: &DeviceSpec, sector_bytes: u32, pricing: PairPricing, seed: Seed) -> Result<Device, SpecError> {
        let (model, own_bytes, scheduler) = match spec {
            DeviceSpec::Hdd(s) if s.is_plain() => {
                (Model::Hdd(Hdd::new(s.compile()?, seed)), s.sector_bytes, s.scheduler)
            }
            DeviceSpec::Hdd(s) => (Model::Drive(Box::new(Drive::new(s, seed)?)), s.sector_bytes, s.scheduler),
            DeviceSpec::Fixed(s) => (Model::Fixed(Fixed::new(s)?), s.sector_bytes, s.scheduler),
            DeviceSpec::Empirical(s) => (Model::Empirical(Empirical::new(s, seed)?), s.sector_bytes, s.scheduler),
            DeviceSpec::Random(s) => (Model::Random(Box::new(Random::new(s, seed)?)), s.sector_bytes, s.scheduler),
            DeviceSpec::Ssd(s) => (Model::Ssd(Box::new(Ssd::new(s, seed)?)), s.sector_bytes, s.scheduler),
        };
        if sector_bytes == 0 || !sector_bytes.is_multiple_of(own_bytes) {
            let message = format!("the array's sectors of {sector_bytes} bytes are no multiple of {own_bytes}");
            return Err(SpecError::new("sector_bytes", message));
        }
        if pricing == PairPricing::Prepaid && !spec.throttle().is_empty() {
            let message = "a write that is prepaid passes no throttle; accepted with prepaid pairs: other devices";
            return Err(SpecError::new("pair_pricing", message));
        }
        let depth = match spec {
            DeviceSpec::Hdd(s) => s.queue_depth,
            _ if scheduler.needs_mechanics() => {
                return Err(SpecError::new("scheduler", "sptf needs a disk, whose arm and rotation it reckons with"));
            }
            DeviceSpec::Ssd(_) if pricing == PairPricing::Prepaid => {
                let message = "a flash drive has no revolution to wait for; accepted with prepaid pairs: other devices";
                return Err(SpecError::new("pair_pricing", message));
            }
            _ => None,
        };
        scheduler.check("scheduler")?;
        let host_scheduler = match spec {
            DeviceSpec::Hdd(s) => s.host_scheduler,
            _ => SchedulerSpec::Fifo,
        };
        host_scheduler.check_host("host_scheduler")?;
        if host_scheduler != SchedulerSpec::Fifo && depth.is_none() {
            let message = "a host orders what the disk has no room for; accepted: with queue_depth";
            return Err(SpecError::new("host_scheduler", message));
        }
        let sectors_each = u64::from(sector_bytes / own_bytes);
        let (sectors, servers) = match &model {
            Model::Hdd(hdd) => (hdd.capacity_sectors(), 1),
            Model::Drive(drive) => (drive.capacity_sectors(), 1),
            Model::Fixed(fixed) => (fixed.capacity_sectors, fixed.servers),
            Model::Empirical(empirical) => (empirical.capacity_sectors, empirical.servers),
            Model::Random(random) => (random.capacity_sectors, random.servers),
            Model::Ssd(ssd) => (ssd.capacity_sectors(), ssd.queue_depth()),
        };
        if sectors < sectors_each {
            let message = format!("the device holds less than one of the array's sectors of {sector_bytes} bytes");
            return Err(SpecError::new("sector_bytes", message));
        }
        let throttle = Throttle::new(spec.throttle(), sectors * u64::from(own_bytes), own_bytes)?;
        Ok(Device {
            model,
            fresh_throttle: throttle.clone(),
            throttle,
            queue: Queue::new(scheduler, host_scheduler, sectors, depth, servers),
            arm: ArmAddress::default(),
            calendar: Calendar::with_capacity(2 * servers + 2),
            ledger: PairLedger::default(),
            pricing,
            host_chooses: host_scheduler != SchedulerSpec::Fifo && depth == Some(1),
            scheduler,
            host_scheduler,
            depth,
            servers,
            busy: 0,
            // A host that orders must know what it gave the device, too.
            direct: if scheduler.sees_all() || host_scheduler != SchedulerSpec::Fifo { 0 } else { servers },
            not_before: Instant::ZERO,
            taken: 0,
            sectors_each,
            capacity: sectors / sectors_each,
            logical_block_bytes: own_bytes,
            extra_thousandths: 0,
            totals: Totals::default(),
        })
    }

    /// A further, idle device of the same spec, array and pricing with a seed of its own. Cheaper than
    /// [`new`](Device::new) and easier on the processor's caches: what is compiled from the spec is shared.
    pub fn twin(&self, seed: Seed) -> Device {
        let model = match &self.model {
            Model::Hdd(hdd) => Model::Hdd(hdd.twin(seed)),
            Model::Drive(drive) => Model::Drive(Box::new(drive.twin(seed))),
            Model::Fixed(fixed) => Model::Fixed(fixed.clone()),
            Model::Empirical(empirical) => Model::Empirical(empirical.twin(seed)),
            Model::Random(random) => Model::Random(Box::new(random.twin(seed))),
            Model::Ssd(ssd) => Model::Ssd(Box::new(ssd.twin(seed))),
        };
        Device {
            model,
            throttle: self.fresh_throttle.clone(),
            fresh_throttle: self.fresh_throttle.clone(),
            queue: Queue::new(
                self.scheduler,
                self.host_scheduler,
                self.capacity * self.sectors_each,
                self.depth,
                self.servers,
            ),
            arm: ArmAddress::default(),
            calendar: Calendar::with_capacity(2 * self.servers + 2),
            ledger: PairLedger::default(),
            busy: 0,
            not_before: Instant::ZERO,
            taken: 0,
            extra_thousandths: 0,
            totals: Totals::default(),
            ..*self
        }
    }

    /// Puts a disk on a bus that others are on, too; its `[bus]` says how long it keeps it.
    ///
    /// # Errors
    /// Where the device has no bus of its own, or one that it cannot share.
    pub fn share_bus(&mut self, bus: &SharedBus) -> Result<(), SpecError> {
        match &mut self.model {
            Model::Drive(drive) => drive.share_bus(bus),
            _ => Err(SpecError::new("bus", "the device has none to share; accepted: a disk with a [bus]")),
        }
    }

    /// Capacity in sectors of the array.
    pub fn capacity_sectors(&self) -> u64 {
        self.capacity
    }

    /// The device's own logical block, in bytes.
    pub fn logical_block_bytes(&self) -> u32 {
        self.logical_block_bytes
    }

    /// Takes an operation at `now`, which must not lie before an earlier call's.
    ///
    /// # Panics
    /// If a read or write leaves the device: the array is to refuse that.
    #[inline]
    pub fn handle_op(&mut self, now: Instant, op: Operation) {
        if op.extent.end() > self.capacity && op.kind != OpKind::Flush {
            leaves_the_device(op.extent, self.capacity);
        }
        // Made anew in each branch: one that is passed by reference would be copied into the queue from memory just
        // written field by field, and each such copy stalls the processor.
        let (sectors_each, sequence) = (self.sectors_each, self.taken);
        self.taken += 1;
        if self.throttle.is_some() {
            return self.handle_throttled(now, PendingOperation::new(&op, sectors_each, now, sequence));
        }
        if op.kind == OpKind::Write
            && op.pair_with.is_some()
            && self.take_pair_write(&PendingOperation::new(&op, sectors_each, now, sequence))
        {
            return;
        }
        if self.busy < self.direct {
            self.start(now, &PendingOperation::new(&op, sectors_each, now, sequence), 0);
        } else {
            self.queue.push(PendingOperation::new(&op, sectors_each, now, sequence));
            if self.busy < self.servers {
                self.start_next(now, 0);
            }
        }
    }

    /// The same where operations must pass a throttle first.
    #[cold]
    fn handle_throttled(&mut self, now: Instant, op: PendingOperation) {
        if let Some(passing) = self.throttle.as_mut().and_then(|throttle| throttle.push(now, op)) {
            self.let_pass(now, passing);
        }
    }

    /// Lets what has passed the throttle reach the device at `at`.
    fn let_pass(&mut self, at: Instant, mut op: PendingOperation) {
        op.entered = at;
        if op.kind == OpKind::Write && op.pair_with().is_some() && self.take_pair_write(&op) {
            return;
        }
        if self.busy < self.direct {
            return self.start(at, &op, 0);
        }
        self.queue.push(op);
        if self.busy < self.servers {
            self.start_next(at, 0);
        }
    }

    /// When the next of what waits at the throttle passes, if nothing else happens before.
    #[inline]
    fn throttle_at(&self) -> Option<Instant> {
        let at = self.throttle.as_ref()?.next_at()?;
        match self.calendar.next_at() {
            // A server that becomes free then is free for it.
            Some(other) if other <= at => None,
            _ => Some(at),
        }
    }

    /// Lengthens an operation that waits by a neighbour, where `fits` of its name and of the array's sectors of both, and names
    /// it; `None` where there is none, or the device's scheduler merges none. The neighbour is then part of it, and completes
    /// with it.
    pub fn merge(&mut self, kind: OpKind, extent: Extent, fits: impl Fn(OpId, u64) -> bool) -> Option<OpId> {
        let each = self.sectors_each;
        self.queue.merge(kind, extent.lba * each, extent.sectors * each, |id, both| fits(id, both / each))
    }

    /// Takes operations that came together: a scheduler chooses among all of them.
    ///
    /// # Panics
    /// As [`handle_op`](Device::handle_op).
    pub fn handle_together(&mut self, now: Instant, ops: impl Iterator<Item = Operation>) {
        if self.direct > 0 || self.throttle.is_some() {
            return ops.for_each(|op| self.handle_op(now, op));
        }
        self.queue.hold();
        for op in ops {
            if op.extent.end() > self.capacity && op.kind != OpKind::Flush {
                leaves_the_device(op.extent, self.capacity);
            }
            debug_assert!(op.pair_with.is_none(), "what is gathered has lost its pair");
            self.queue.push(PendingOperation::new(&op, self.sectors_each, now, self.taken));
            self.taken += 1;
        }
        self.queue.let_go();
        for _ in self.busy..self.servers {
            if self.queue.len() > 0 {
                self.start_next(now, 0);
            }
        }
    }

    /// When to call [`poll_done`](Device::poll_done) next; `None` when idle.
    ///
    /// Mostly a completion. After a prepaid pair's read it may be the end of the time paid for the write: then
    /// `poll_done` starts the next operation and may have nothing to hand out.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.throttle_at().or_else(|| self.calendar.next_at())
    }

    /// The next operation that is complete at `now`, with its times; call until it gives `None`. Starts what waits on each
    /// server that has become free.
    #[inline]
    pub fn poll_done(&mut self, now: Instant) -> Option<Completion> {
        loop {
            if let Some(at) = self.throttle_at().filter(|&at| at <= now) {
                self.take_from_throttle(at);
                continue;
            }
            let due = self.calendar.pop(now)?;
            let completion = self.calendar.take(due.slot).map(|running| self.account(&running));
            if due.releases {
                self.release(due.at);
            }
            if completion.is_some() {
                return completion;
            }
        }
    }

    #[cold]
    fn take_from_throttle(&mut self, at: Instant) {
        if let Some(passing) = self.throttle.as_mut().and_then(|throttle| throttle.take(at)) {
            self.let_pass(at, passing);
        }
    }

    /// How many writes its write cache has room for; none without one.
    pub fn write_cache_extents(&self) -> u64 {
        match &self.model {
            Model::Drive(drive) => drive.write_cache_extents(),
            _ => 0,
        }
    }

    /// Whether its write cache has once been full, or has taken so many times what it holds; true where there is none.
    pub fn has_filled_cache(&self, times: u64) -> bool {
        match &self.model {
            Model::Drive(drive) => drive.has_filled_cache(times),
            _ => true,
        }
    }

    /// Has what waits served from then on only, for its host gives it the next as soon as it has a hand free.
    pub fn serve_not_before(&mut self, at: Instant) {
        self.not_before = at;
    }

    /// Operations that wait for service.
    #[inline]
    pub fn queued(&self) -> usize {
        self.queue.len() + self.throttle.as_ref().map_or(0, |throttle| throttle.len())
    }

    /// Operations taken and not yet handed out: waiting, in service, or complete.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.queued() + self.calendar.operations()
    }

    /// Sums over the operations handed out since the last reset.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Operations it serves at the same time: its servers, or the commands at work in a flash drive.
    pub fn servers(&self) -> usize {
        self.servers
    }

    /// Starts the totals anew at `now`, as at the end of a warm-up; touches nothing else.
    pub fn reset_totals(&mut self, now: Instant) {
        self.totals = Totals::default();
        if let Model::Ssd(ssd) = &mut self.model {
            ssd.reset_totals(now.as_ns());
        }
    }

    /// What a flash drive did with its flash since the last reset, up to `now`; none of other devices.
    pub fn flash(&mut self, now: Instant) -> Option<FlashTotals> {
        match &mut self.model {
            Model::Ssd(ssd) => Some(ssd.totals(now.as_ns())),
            _ => None,
        }
    }

    /// Does now what the first operation would have to wait for: tables of flash drives, which may take seconds. For
    /// whoever drives devices by a real clock; a virtual one does not notice.
    pub fn prepare(&mut self) {
        if let Model::Ssd(ssd) = &mut self.model {
            ssd.prepare();
        }
    }

    /// From now on whatever begins takes so many times as long as the model says, to a thousandth, and at least once: the rest
    /// counts as the controller's. So does a disk that is failing slowly, which tries again and again what it answers in the
    /// end.
    pub fn slow_down(&mut self, times: f64) {
        self.extra_thousandths = saturating_u32(((times - 1.0) * 1000.0).round());
    }

    /// The service with what a slow device adds to it.
    #[cold]
    fn slowed(&self, service: Service) -> Service {
        let extra = service.total().saturating_mul(u64::from(self.extra_thousandths)) / 1000;
        Service { overhead: service.overhead.saturating_add(extra), ..service }
    }

    /// Deals with the write of a pair where the pricing treats it specially; `false` leaves it to be queued.
    fn take_pair_write(&mut self, write: &PendingOperation) -> bool {
        match self.pricing {
            PairPricing::Queued => false,
            PairPricing::Head if self.busy == self.servers => {
                self.queue.push_head(*write);
                true
            }
            PairPricing::Head => false,
            PairPricing::Prepaid => {
                let read = write.pair_with().unwrap_or(write.id);
                match self.ledger.take(write.id, read, (write.lba, write.sectors)) {
                    Some(paid) => {
                        self.finish_prepaid(write, &paid);
                        true
                    }
                    None => false,
                }
            }
        }
    }

    /// Enters the completion of a write whose read has paid for it.
    fn finish_prepaid(&mut self, write: &PendingOperation, paid: &PrepaidWrite) {
        let done = paid.ended.max(write.arrived);
        let completion = paid.service.completion(write.id, write.arrived, paid.started, done);
        let &PendingOperation { sectors, kind, .. } = write;
        self.calendar.finish(OperationInService { completion, sectors, paired_ns: 0, kind, prepaid: true }, false);
    }

    /// Puts an operation on a free server at `at`; `to_come` follow at once, as far as can be known.
    #[inline]
    fn start(&mut self, at: Instant, op: &PendingOperation, to_come: usize) {
        self.busy += 1;
        let &PendingOperation { kind, lba, sectors, .. } = op;
        self.arm = ArmAddress::of(op);
        let (now, command) = (at.as_ns(), command(op, at));
        let TimedService { begun, mut service, mut release } = match &mut self.model {
            Model::Hdd(hdd) => TimedService::at(now, hdd.serve(at, kind, lba, sectors)),
            Model::Fixed(fixed) => TimedService::at(now, fixed.serve(kind, sectors)),
            Model::Empirical(empirical) => {
                let present = self.busy + self.queue.len() + to_come;
                TimedService::at(now, empirical.serve(&command, op.sequence, present))
            }
            Model::Random(random) => TimedService::at(now, random.serve(kind, op.sequence)),
            Model::Drive(drive) => drive.serve(command),
            Model::Ssd(ssd) => ssd.serve(command),
        };
        if self.extra_thousandths > 0 {
            let slowed = self.slowed(service);
            release += slowed.total() - service.total();
            service = slowed;
        }
        let started = Instant::from_ns(begun);
        let done = started + Duration::from_ns(service.total());
        let pair_read = kind == OpKind::Read && op.pair_with().is_some();
        let prepays = self.pricing == PairPricing::Prepaid && pair_read;
        let pauses = pair_read && (self.host_chooses || self.pricing == PairPricing::Head);
        let paired_ns = if prepays { self.prepay(done, op) } else { 0 };
        let completion = service.completion(op.id, op.arrived, started, done);
        let running = OperationInService { completion, sectors, paired_ns, kind, prepaid: false };
        let release = if pauses { done } else { Instant::from_ns(release) };
        let releases = !prepays && !pauses && release == done;
        self.calendar.finish(running, releases);
        if !prepays && !releases {
            // With a pause at the same time but one poll later, so that the write has a chance to be there.
            self.calendar.release(release);
        }
    }

    /// Goes on with the write of the pair whose read ends at `at`; returns how long that holds the server.
    #[cold]
    fn prepay(&mut self, at: Instant, read: &PendingOperation) -> u64 {
        let service = match &mut self.model {
            Model::Hdd(hdd) => hdd.serve_pair_write(at, read.lba, read.sectors),
            Model::Drive(drive) => drive.serve_pair_write(at.as_ns(), read.lba, read.sectors),
            Model::Fixed(fixed) => fixed.serve(OpKind::Write, read.sectors),
            Model::Empirical(empirical) => {
                let present = self.busy + self.queue.len();
                empirical.serve_pair_write(&command(read, at), read.sequence, present)
            }
            Model::Random(random) => random.serve_pair_write(read.sequence),
            Model::Ssd(_) => unreachable!("refused when it was made"),
        };
        let service = self.slowed(service);
        if let Some(write) = read.pair_with() {
            self.ledger.enter(write, read.id, (read.lba, read.sectors), at, service);
        }
        self.calendar.release(at + Duration::from_ns(service.total()));
        service.total()
    }

    /// A server became free at `at`: gives it the next operation.
    #[inline]
    fn release(&mut self, at: Instant) {
        self.busy -= 1;
        if self.queue.len() > 0 {
            // Whoever waited for what has just ended may send the next at this very moment.
            self.start_next(at, 1);
        }
    }

    /// Adds an operation to the totals on its way out.
    #[inline]
    fn account(&mut self, running: &OperationInService) -> Completion {
        self.totals.count(running.kind, running.sectors * u64::from(self.logical_block_bytes));
        if !running.prepaid {
            self.totals.spend(&running.completion, running.paired_ns);
        }
        running.completion
    }

    fn start_next(&mut self, at: Instant, to_come: usize) {
        if let Model::Drive(drive) = &mut self.model {
            // What it does behind commands decides which of them it can serve without moving.
            drive.advance(at.as_ns());
        }
        let model = &self.model;
        let Some(next) = self.queue.take(at, self.arm, |op| model.positioning_ns(at, op)) else { return };
        // A driver that polls late may have brought operations after the server became free.
        let at = at.max(next.arrived).max(self.not_before);
        self.start(at, &next, to_come);
    }
}

/// The operation as a disk or flash drive sees it that turns to it at `at`.
#[inline]
fn command(op: &PendingOperation, at: Instant) -> Command {
    let &PendingOperation { kind, lba, sectors, durable, entered, .. } = op;
    Command { kind, lba, sectors, durable, entered: entered.as_ns(), now: at.as_ns() }
}

#[cold]
#[inline(never)]
fn leaves_the_device(extent: Extent, capacity: u64) -> ! {
    panic!("{extent} leaves the device of {capacity}")
}
