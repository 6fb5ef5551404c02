//! Writes: over the bus into the buffer, and from there to the medium, as soon as each sector is there.

use super::buffer::{Hit, Moment};
use super::media::{Arm, Media};
use super::{Command, Drive};
use crate::hdd::buffer_spec::{Preseek, WriteBack};
use crate::hdd::layout::Stretch;
use crate::service::{Service, TimedService};
use raidlab_types::number::usize_from;

/// When the sectors of a write are in the buffer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Data {
    /// From the beginning.
    Buffered,
    /// Sector i (from 0) `(i + 1) sector` after `from`; none may be written before `gather` are there.
    Coming { from: u64, sector: u64, gather: u64 },
}

impl Data {
    /// When sector `index` may begin to be written.
    fn ready(&self, index: u64) -> u64 {
        match *self {
            Data::Buffered => 0,
            Data::Coming { from, sector, gather } => from + (index + 1).max(gather) * sector,
        }
    }

    /// Time between sectors.
    fn sector(&self) -> u64 {
        match *self {
            Data::Buffered => 0,
            Data::Coming { sector, .. } => sector,
        }
    }
}

/// How a write got to the medium.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MediaWrite {
    pub seek: u64,
    pub rotation: u64,
    /// When its last sector was on the medium.
    pub end: u64,
}

/// What is decided before anything moves.
#[derive(Debug, Clone, Copy)]
struct WritePlan {
    segment: usize,
    hit: Hit,
    /// It leaves the bus before it takes any data.
    leaves_first: bool,
    /// When the arm may begin for it, and how long it waits for the arm to finish something else.
    arm_from: u64,
    waits: u64,
    /// When its first sector may begin to come.
    bus_from: u64,
}

impl Drive {
    pub(super) fn write(&mut self, command: Command) -> TimedService {
        self.advance(command.now);
        if self.takes(command.sectors, command.durable) {
            return self.write_to_cache(&command);
        }
        self.dirty.supersede(command.lba, command.end());
        let plan = self.plan_write(&command);
        let model = &*self.model;
        let (timings, sectors) = (&model.timings, command.sectors);
        let bus_from = plan.bus_from;
        let gather = timings.extra.map_or(0, |extra| {
            if extra.long_from == 0 || sectors < extra.long_from {
                extra.gather.min(sectors)
            } else {
                extra.gather_long
            }
        });
        let least = if plan.hit == Hit::Append { 0 } else { timings.minimum_write_seek };
        let (bus_sector, long) = (model.bus.write_sector, sectors > model.rules.segment_sectors);
        let (written, taken) = if long && bus_sector > 0 {
            self.write_long(&command, &plan, bus_from, least)
        } else {
            let data = Data::Coming { from: bus_from, sector: bus_sector, gather };
            let media = Media { model, phase: self.phase };
            let written = write_media(media, &mut self.arm, (command.lba, command.end()), plan.arm_from, least, &data);
            (written, bus_from + sectors * bus_sector)
        };
        let done = self.completion_of_write(&command, &plan, &written, taken);
        self.after_write(&command, &plan, &written);
        self.bus_free_at = done;
        self.visit_of_write(&command, &plan, &written, taken, done)
    }

    /// A write that is complete once the buffer has it; where that is full, others are destaged first until it fits.
    fn write_to_cache(&mut self, command: &Command) -> TimedService {
        let bounds = self.write_cache();
        self.dirty.note_room(command.sectors, bounds);
        let room = self.destage_until(command.now, |dirty| dirty.has_room(command.sectors, bounds));
        let timings = &self.model.timings;
        let ready = command.entered + timings.write_hit[self.last] + timings.preparation;
        let bus = command.sectors * self.model.bus.write_sector;
        let from = ready.max(room.end).max(self.bus_free_at);
        let (_, done) = self.bus(command.now).hold(from, |start| start + bus + timings.write_completion);
        let taken = done - timings.write_completion;
        self.dirty.write(command.lba, command.end(), taken);
        self.buffer.forget(command.lba, command.end(), usize::MAX);
        self.bus_free_at = done;
        self.last = 1;
        let service = Service::split(done - command.now, room.seek, room.rotation, bus);
        TimedService { begun: command.now, service, release: done }
    }

    fn plan_write(&mut self, command: &Command) -> WritePlan {
        let (now, lba, end) = (command.now, command.lba, command.end());
        let moment = self.moment(now);
        let rules = &self.model.rules;
        let chosen = self.buffer.for_write(rules, lba, end, moment);
        // Every segment is taken: the command waits for the arm, and by then the oldest is on the medium.
        let (segment, hit) = chosen.unwrap_or_else(|| {
            let later = Moment { now: self.dirty_until(), reading: None };
            self.buffer.for_write(rules, lba, end, later).unwrap_or((0, Hit::Miss))
        });
        let way = self.stop_ahead(now);
        let (model, held) = (&*self.model, &self.buffer.segments[segment]);
        let timings = &model.timings;
        let leaves_first =
            hit == Hit::Miss && chosen.is_some() && self.buffer.used_last(segment) && held.by_write && lba != held.end;
        let overhead = if self.reports_early(command) { timings.write_hit } else { timings.write_miss }[self.last];
        let blocked = self.arm.free_at.max(way.blocked_until);
        let idle = blocked <= now || hit == Hit::Append || model.rules.write_prebuffering;
        let prompt = model.bus.never_disconnect || (now <= command.entered && chosen.is_some() && idle);
        let extra = timings.extra.filter(|_| leaves_first && prompt && !model.bus.never_disconnect);
        let contact = timings.first_reselect + timings.preparation;
        // Where others share the bus, the command comes later.
        let late = extra.map_or(0, |extra| {
            let left = self.bus(now).hold(command.entered, |start| start + extra.command + extra.disconnect).1;
            left - command.entered - extra.command - extra.disconnect
        });
        let ready = command.entered + late + extra.map_or(overhead, |extra| extra.command + extra.seek_delay);
        let (asked, lead) = match extra {
            Some(extra) => (command.entered + late + extra.command + extra.disconnect + extra.away, contact),
            None if prompt => {
                let at = (ready + timings.preparation).max(now);
                (command.entered.max(now).min(at), at.saturating_sub(command.entered.max(now)))
            }
            None => ((ready + timings.write_disconnect).max(blocked).max(now), contact),
        };
        let asked = asked.max(self.bus_free_at.saturating_sub(lead));
        let leaves = if self.reports_early(command) { timings.write_completion } else { timings.write_disconnect };
        let held = lead + command.sectors * model.bus.write_sector + leaves;
        let taken = self.bus(now).hold(asked, |start| start + held).0;
        let ready = if prompt && extra.is_none() { ready + (taken - asked) } else { ready };
        let arm_from = (now.max(ready) + way.stop_delay).max(blocked);
        let bus_from = taken + lead;
        let waits = if prompt && self.reports_early(command) { 0 } else { blocked.saturating_sub(now.max(ready)) };
        WritePlan { segment, hit, leaves_first: extra.is_some(), arm_from, waits, bus_from }
    }

    /// Whether the command is complete once the buffer has it.
    fn reports_early(&self, command: &Command) -> bool {
        self.model.rules.write_back != WriteBack::None && !command.durable
    }

    /// When the host learns that the write is complete, whose last byte the disk has `received`.
    fn completion_of_write(&self, command: &Command, plan: &WritePlan, written: &MediaWrite, received: u64) -> u64 {
        let timings = &self.model.timings;
        if self.reports_early(command) {
            return received + timings.write_completion;
        }
        let extra = timings.extra.filter(|_| plan.leaves_first);
        let (disconnect, reselect) = match extra {
            Some(extra) => (extra.second_disconnect, timings.other_reselect),
            None => (timings.write_disconnect, timings.first_reselect),
        };
        let asked = (received + disconnect).max(written.end);
        self.bus(command.now).hold(asked, |start| start + reselect + timings.write_completion).1
    }

    /// What the buffer holds afterwards, and where the arm is.
    fn after_write(&mut self, command: &Command, plan: &WritePlan, written: &MediaWrite) {
        let (lba, end) = (command.lba, command.end());
        let size = self.model.rules.segment_sectors;
        let segment = &mut self.buffer.segments[plan.segment];
        if plan.hit != Hit::Append {
            segment.first = lba;
        }
        segment.end = end;
        segment.first = segment.first.max(end.saturating_sub(size));
        segment.written_at = written.end;
        segment.by_write = true;
        self.arm_lba = end;
        self.buffer.forget(lba, end, plan.segment);
        self.buffer.touch(plan.segment);
        self.last = 1;
    }

    /// A write longer than a segment: the bus waits for room, the medium for data, sector by sector.
    fn write_long(&mut self, command: &Command, plan: &WritePlan, bus_from: u64, least: u64) -> (MediaWrite, u64) {
        let model = &*self.model;
        let media = Media { model, phase: self.phase };
        let (rules, timings, revolution) = (&model.rules, &model.timings, model.revolution_ns());
        let size = usize_from(rules.segment_sectors);
        let keeps_bus = model.bus.hold_for_write || model.bus.never_disconnect;
        let low = usize_from(rules.watermark(rules.write_watermark, command.sectors).min(rules.segment_sectors));
        let away = timings.write_disconnect + timings.other_reselect + timings.preparation;
        let mut written = MediaWrite { end: plan.arm_from, ..MediaWrite::default() };
        let (mut taken, mut least) = (bus_from, least);
        self.times.clear();
        for lba in command.lba..command.end() {
            let index = self.times.len();
            if index >= size && self.times[index - size] > taken {
                // The buffer is full: for one sector if the bus is kept, else until it has emptied to the watermark.
                let emptied = if keeps_bus { index - size } else { (index - 1).saturating_sub(low).max(index - size) };
                taken = taken.max(self.times[emptied]) + if keeps_bus { 0 } else { away };
            }
            taken += model.bus.write_sector;
            let approach = media.approach_slowly(self.arm.track(), written.end, lba, true, least);
            written.seek += approach.seek;
            let turns = taken.saturating_sub(approach.start).div_ceil(revolution) * revolution;
            written.rotation += approach.rotation + turns;
            written.end = approach.start + turns + approach.stretch.length_ns(1);
            (self.arm.cylinder, self.arm.head, least) = (approach.stretch.cylinder, approach.stretch.head, 0);
            self.times.push(written.end);
        }
        self.arm.free_at = written.end;
        (written, taken)
    }

    /// The parts of the time, and when the arm may go on.
    fn visit_of_write(
        &self,
        command: &Command,
        plan: &WritePlan,
        written: &MediaWrite,
        taken: u64,
        done: u64,
    ) -> TimedService {
        let begun = command.now + plan.waits.min(done - command.now);
        let bus = command.sectors * self.model.bus.write_sector;
        let service = if self.reports_early(command) {
            // The arm works behind the command's back.
            Service::split(done - begun, 0, 0, bus)
        } else {
            let medium = written.end.saturating_sub(plan.arm_from + written.seek + written.rotation);
            Service::split(done - begun, written.seek, written.rotation, medium)
        };
        let release = match self.model.rules.preseek {
            Preseek::None => done,
            Preseek::DuringCompletion => done - self.model.timings.write_completion,
            Preseek::BeforeCompletion => taken.max(written.end),
        };
        TimedService { begun, release: release.clamp(begun, done), service }
    }
}

/// Writes `lba..end`, the arm not moving before `from`: each sector when its data are there, or a revolution later. Leaves
/// the arm where it ends.
pub(super) fn write_media(
    media: Media,
    arm: &mut Arm,
    (lba, end): (u64, u64),
    from: u64,
    least: u64,
    data: &Data,
) -> MediaWrite {
    let revolution = media.model.revolution_ns();
    let mut written = MediaWrite { end: from, ..MediaWrite::default() };
    let (mut next, mut least) = (lba, least);
    while next < end {
        let approach = media.approach_slowly(arm.track(), written.end, next, true, least);
        let stretch = approach.stretch;
        written.seek += approach.seek;
        (arm.cylinder, arm.head, least) = (stretch.cylinder, stretch.head, 0);
        let stop = stretch.end.min(end);
        if media.model.rules.zero_latency_write && data.ready(stop - 1 - lba) <= approach.start - approach.rotation {
            if let Some(at) = media.written_from_the_middle(&approach, next, stop) {
                (written.end, next) = (at, stop);
                continue;
            }
        }
        written.rotation += approach.rotation;
        let mut start = approach.start;
        loop {
            let late = first_late(data, lba, next, stop, start, &stretch);
            let until = late.unwrap_or(stop);
            written.end = start + stretch.length_ns(until - stretch.first) - stretch.length_ns(next - stretch.first);
            next = until;
            let Some(late) = late else { break };
            // It goes by without its data, and comes round again.
            let turns = (data.ready(late - lba) - written.end).div_ceil(revolution) * revolution;
            written.rotation += turns;
            start = written.end + turns;
        }
    }
    arm.free_at = written.end;
    written
}

/// The first of `next..stop` whose data are not there when it begins to go by, `next` beginning at `start`.
///
/// Both the data and the sectors come at equal distances, so that the first late one is found by arithmetic.
fn first_late(data: &Data, lba: u64, next: u64, stop: u64, start: u64, stretch: &Stretch) -> Option<u64> {
    let begins = |at: u64| start + stretch.length_ns(at - stretch.first) - stretch.length_ns(next - stretch.first);
    let late = |at: u64| data.ready(at - lba) > begins(at);
    if late(next) {
        return Some(next);
    }
    // If the bus is no slower than the medium, what was in time stays in time; else the last one is late if any is.
    if data.sector() <= stretch.length_ns(1) || !late(stop - 1) {
        return None;
    }
    let (mut in_time, mut too_late) = (next, stop - 1);
    while too_late - in_time > 1 {
        let middle = in_time + (too_late - in_time) / 2;
        if late(middle) {
            too_late = middle;
        } else {
            in_time = middle;
        }
    }
    Some(too_late)
}
