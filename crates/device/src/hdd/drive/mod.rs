//! A disk with everything: exact layout, track buffer, read-ahead, write-back, bus and command overheads.
//!
//! Purpose: price one command after another, each from what the disk knows when it begins. Nothing is simulated between
//! commands: reading ahead is worked out when the next command asks how far it has come, writing back when it is ordered.
//!
//! - `model`: what is true of every drive of one model
//! - `media`: passes of sectors under the head
//! - `buffer`: segments; `ahead`: reading ahead; `bus`: transfers to the host
//! - `read`, `write`: the two kinds of command
//! - `destage`: written data that wait for the medium, where the drive orders them
//!
//! Invariants:
//! - Commands begin in rising order of time. The arm does one thing after another, and so does the bus.
//! - A read sends no sector before it has passed under the head, unless the buffer holds it from before; a write puts no
//!   sector on the medium before it has come over the bus.
//! - No allocation per command once the scratch vectors have grown.
//!
//! A bus that is shared is held from a command's arrival until the disk leaves it, and again from each time it comes back;
//! commands that wait within the disk came over it in no time.
//!
//! Reference: DiskSim 4.0 (G. Ganger, B. Worthington, Y. Patt, J. Bucy, S. Schlosser, Carnegie Mellon University 2008), whose
//! mechanisms these follow, and B. Worthington, G. Ganger, Y. Patt, J. Wilkes, *On-line extraction of SCSI disk drive
//! parameters*, SIGMETRICS 1995.

mod ahead;
mod buffer;
mod bus;
mod destage;
mod media;
mod model;
mod read;
mod write;

use super::shared_bus::{BusAccess, SharedBus};
use super::HddSpec;
use crate::service::{Command, Service, TimedService};
use crate::SpecError;
use ahead::Ahead;
use buffer::{Buffer, Moment};
use destage::Dirty;
use media::{Arm, Media, Pass};
pub(crate) use model::{Bus, CommandTimes, DiskModel, Extra};
use raidlab_types::{OpKind, Seed};
use std::sync::Arc;

/// One disk.
#[derive(Debug, Clone)]
pub(crate) struct Drive {
    model: Arc<DiskModel>,
    /// What to compile a twin from, where speeds differ.
    inexact: Option<Arc<HddSpec>>,
    /// Angle at time 0, in ns.
    phase: u64,
    arm: Arm,
    ahead: Option<Ahead>,
    buffer: Buffer,
    /// Written data that wait for the medium, of a drive that orders them.
    dirty: Dirty,
    /// Until then the arm is kept for reads.
    reads_rest_until: u64,
    /// Where the arm left off, as an address.
    arm_lba: u64,
    bus_free_at: u64,
    /// The bus, where others are on it.
    shared: Option<SharedBus>,
    /// 0 after a read, 1 after a write: indexes the overheads.
    last: usize,
    passes: Vec<Pass>,
    /// When each sector of a command went by, for commands longer than a segment.
    times: Vec<u64>,
}

/// What stands in the way of a command that needs the arm.
#[derive(Debug, Clone, Copy, Default)]
struct ArmDelay {
    /// The arm is given to nobody before.
    blocked_until: u64,
    /// Further delay until what is going on has stopped.
    stop_delay: u64,
}

impl Drive {
    /// A disk of this spec; each of inexact speed is compiled for itself.
    pub(crate) fn new(spec: &HddSpec, seed: Seed) -> Result<Self, SpecError> {
        let model = spec.compile_model(deviation(spec.rpm_error_percent, seed))?;
        let inexact = (spec.rpm_error_percent > 0.0).then(|| Arc::new(spec.clone()));
        Ok(Drive::of(Arc::new(model), inexact, seed))
    }

    fn of(model: Arc<DiskModel>, inexact: Option<Arc<HddSpec>>, seed: Seed) -> Self {
        let phase = seed.named("angle").draws().below(model.revolution_ns());
        let buffer = Buffer::new(model.rules.segments as usize);
        let dirty = Dirty::new(model.rules.write_cache_extents);
        Drive {
            model,
            inexact,
            phase,
            arm: Arm::default(),
            ahead: None,
            buffer,
            dirty,
            reads_rest_until: 0,
            arm_lba: 0,
            bus_free_at: 0,
            shared: None,
            last: 0,
            passes: Vec::with_capacity(8),
            times: Vec::new(),
        }
    }

    /// Another disk of the same model, with an angle of its own and nothing in its buffer.
    pub(crate) fn twin(&self, seed: Seed) -> Self {
        let of_its_own = self.inexact.as_ref().and_then(|spec| {
            let model = spec.compile_model(deviation(spec.rpm_error_percent, seed)).ok()?;
            Some(Arc::new(model))
        });
        Drive::of(of_its_own.unwrap_or_else(|| Arc::clone(&self.model)), self.inexact.clone(), seed)
    }

    /// Puts the disk on a bus that others are on, too.
    pub(crate) fn share_bus(&mut self, bus: &SharedBus) -> Result<(), SpecError> {
        if self.model.bus.never_disconnect {
            let message = "true: a disk that never leaves its bus cannot share it; accepted: false";
            return Err(SpecError::new("bus.never_disconnect", message));
        }
        if (self.model.bus.read_sector, self.model.bus.write_sector) == (0, 0) {
            let message =
                "a disk whose transfers take no time cannot share its bus; accepted: a [bus] with sector times";
            return Err(SpecError::new("bus", message));
        }
        self.shared = Some(bus.clone());
        Ok(())
    }

    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.model.capacity
    }

    /// The visit of a command.
    pub(crate) fn serve(&mut self, command: Command) -> TimedService {
        let command = Command { entered: command.entered + self.model.timings.every, ..command };
        match command.kind {
            OpKind::Read => self.read(command),
            OpKind::Write | OpKind::WriteZeroes => self.write(command),
            OpKind::Flush | OpKind::Discard => self.flush(command),
        }
    }

    /// The write of a pair directly after its read ended at `now`: the turnaround, then the same extent again, with the data
    /// in the buffer.
    pub(crate) fn serve_pair_write(&mut self, now: u64, lba: u64, sectors: u64) -> Service {
        let turnaround = self.model.turnaround;
        self.settle_ahead(now);
        self.dirty.supersede(lba, lba + sectors);
        let media = Media { model: &self.model, phase: self.phase };
        let extent = (lba, lba + sectors);
        let written = write::write_media(media, &mut self.arm, extent, now + turnaround, 0, &write::Data::Buffered);
        self.buffer.forget(lba, lba + sectors, usize::MAX);
        self.last = 1;
        Service {
            overhead: turnaround,
            seek: written.seek,
            rotation: written.rotation,
            transfer: written.end - now - turnaround - written.seek - written.rotation,
        }
    }

    /// Movement and wait of a command that the disk turns to at `command.now`, as far as it can tell: none where the buffer
    /// has, or takes, its data; what ends of reading ahead cost is left out.
    pub(crate) fn positioning_ns(&self, command: &Command) -> u64 {
        let &Command { now, lba, kind, .. } = command;
        if self.served_by_buffer(command) {
            return 0;
        }
        let timings = &self.model.timings;
        let (overhead, write) = match kind {
            OpKind::Read => (timings.read_miss[self.last], false),
            OpKind::Write | OpKind::WriteZeroes => (timings.write_miss[self.last], true),
            OpKind::Flush | OpKind::Discard => return 0,
        };
        let track = self.ahead.as_ref().map_or(self.arm.track(), |ahead| ahead.pass().track());
        let from = (now + overhead).max(self.arm.free_at);
        let approach = self.media().approach(track, from, lba, write);
        approach.start - now - overhead
    }

    /// Whether a command can begin without the arm, or with it where it is: the first sector that it reads is in the buffer or
    /// about to be read ahead, or there is room for what it writes.
    fn served_by_buffer(&self, command: &Command) -> bool {
        let rules = &self.model.rules;
        match command.kind {
            OpKind::Read => {
                (rules.caching && self.buffer.holds(rules, command.lba, self.ahead.map(|ahead| ahead.segment)))
                    || self.dirty.covers(command.lba, command.end())
            }
            OpKind::Write | OpKind::WriteZeroes => {
                self.takes(command.sectors, command.durable) && self.dirty.has_room(command.sectors, self.write_cache())
            }
            OpKind::Flush | OpKind::Discard => true,
        }
    }

    /// The bus at `now`.
    fn bus(&self, now: u64) -> BusAccess<'_> {
        BusAccess { now, shared: self.shared.as_ref() }
    }

    fn media(&self) -> Media<'_> {
        Media { model: &self.model, phase: self.phase }
    }

    /// Everything that was reported complete goes to the medium first.
    fn flush(&mut self, command: Command) -> TimedService {
        if command.kind == OpKind::Flush && self.model.rules.orders_writes() {
            return self.flush_in_order(&command);
        }
        let overhead = match command.kind {
            OpKind::Flush => self.model.timings.write_miss[self.last],
            _ => self.model.timings.write_hit[self.last],
        };
        let begun = if command.kind == OpKind::Flush { command.now.max(self.dirty_until()) } else { command.now };
        let done = begun.max(command.entered) + overhead;
        TimedService { begun, release: done, service: Service { overhead: done - begun, ..Service::default() } }
    }

    /// The same for a drive that orders its writes.
    fn flush_in_order(&mut self, command: &Command) -> TimedService {
        self.advance(command.now);
        let ready = command.now.max(command.entered) + self.model.timings.write_miss[self.last];
        let written = self.destage_until(ready.max(self.arm.free_at), |_| false);
        let service = Service::split(written.end - command.now, written.seek, written.rotation, 0);
        TimedService { begun: command.now, release: written.end, service }
    }

    /// When all written data are on the medium.
    fn dirty_until(&self) -> u64 {
        self.buffer.segments.iter().map(|segment| segment.written_at).max().unwrap_or(0)
    }

    /// Brings the segment that is read ahead into up to date; an end of reading ahead frees the arm.
    fn catch_up(&mut self, now: u64) {
        let Some(mut ahead) = self.ahead.take() else { return };
        let media = Media { model: &self.model, phase: self.phase };
        let visible = ahead.visible(media, now);
        let segment = &mut self.buffer.segments[ahead.segment];
        segment.end = segment.end.max(visible);
        segment.first = segment.first.max(segment.end.saturating_sub(self.model.rules.segment_sectors));
        match ahead.ended(media, now) {
            Some(end) => self.arm = ahead.arm(end),
            None => self.ahead = Some(ahead),
        }
    }

    /// Whether reading ahead, if it goes on, has read what it must.
    fn reading(&mut self, now: u64) -> Option<(usize, bool)> {
        let mut ahead = self.ahead?;
        let read = ahead.visible(self.media(), now);
        Some((ahead.segment, read >= ahead.minimum.min(ahead.limit)))
    }

    /// Ends reading ahead for a command that begins at `now`, and says how long that takes.
    fn stop_ahead(&mut self, now: u64) -> ArmDelay {
        let Some(mut ahead) = self.ahead.take() else { return ArmDelay::default() };
        let media = Media { model: &self.model, phase: self.phase };
        let minimum = ahead.minimum.min(ahead.limit);
        if ahead.visible(media, now) < minimum {
            // It must first read what it must; then it is over.
            let until = ahead.reached(media, minimum);
            let segment = &mut self.buffer.segments[ahead.segment];
            segment.end = segment.end.max(minimum);
            segment.first = segment.first.max(segment.end.saturating_sub(self.model.rules.segment_sectors));
            self.arm = ahead.arm(until);
            return ArmDelay { blocked_until: until, stop_delay: 0 };
        }
        let stopped = ahead.stop(media, now, self.model.rules.stop_within_sector);
        self.arm = ahead.arm(now);
        ArmDelay { blocked_until: 0, stop_delay: stopped - now }
    }

    /// Ends reading ahead at `now` without further delay.
    fn settle_ahead(&mut self, now: u64) {
        self.catch_up(now);
        if let Some(ahead) = self.ahead.take() {
            self.arm = ahead.arm(now);
        }
    }

    fn moment(&mut self, now: u64) -> Moment {
        Moment { now, reading: self.reading(now) }
    }
}

/// By which share the speed of the disk with this seed deviates.
fn deviation(error_percent: f64, seed: Seed) -> f64 {
    (2.0 * seed.named("speed").draws().unit() - 1.0) * error_percent / 100.0
}
