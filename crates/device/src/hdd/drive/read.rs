//! Reads: from the buffer, from the medium, or first the one and then the other.

use super::ahead::Ahead;
use super::buffer::Hit;
use super::bus::{BusTransfer, Contact, SectorArrivals};
use super::media::Media;
use super::{ArmDelay, Command, Drive};
use crate::hdd::buffer_spec::{KeepRequested, Preseek, ReadAhead};
use crate::service::{Service, TimedService};
use raidlab_types::number::usize_from;

/// How a read goes about it.
#[derive(Debug, Clone, Copy)]
struct ReadPlan {
    segment: usize,
    hit: Hit,
    /// It goes on with the reading ahead that is under way.
    joins: bool,
    /// When the arm may begin for it.
    arm_from: u64,
    /// How long it waits for the arm to finish something else.
    waits: u64,
    contact: Contact,
}

impl Drive {
    pub(super) fn read(&mut self, command: Command) -> TimedService {
        self.advance(command.now);
        if self.dirty.covers(command.lba, command.end()) {
            return self.read_dirty(&command);
        }
        let plan = self.plan_read(&command);
        let (lba, end) = (command.lba, command.end());
        let have = match plan.hit {
            Hit::Miss => lba,
            _ => self.buffer.segments[plan.segment].end,
        };
        self.passes.clear();
        if plan.hit == Hit::Miss {
            self.buffer.segments[plan.segment].first = lba;
            self.buffer.segments[plan.segment].end = lba;
        }
        if have < end {
            self.pass_over(have, end, &plan);
        }
        let sent = self.send(&command, have, &plan);
        let done = sent + self.model.timings.read_completion;
        self.bus_free_at = done;
        self.arm_lba = command.end();
        self.reads_rest_until = done + self.model.destage_after_read;
        self.after_read(&command, &plan, have);
        self.buffer.touch(plan.segment);
        self.last = 0;
        self.visit_of_read(&command, &plan, sent, done)
    }

    /// A read of what was written and waits for the medium.
    fn read_dirty(&mut self, command: &Command) -> TimedService {
        let (timings, bus) = (&self.model.timings, command.sectors * self.model.bus.read_sector);
        let from = (command.entered + timings.read_hit[self.last] + timings.preparation).max(command.now);
        let (_, done) =
            self.bus(command.now).hold(from.max(self.bus_free_at), |start| start + bus + timings.read_completion);
        self.bus_free_at = done;
        self.last = 0;
        TimedService { begun: command.now, service: Service::split(done - command.now, 0, 0, bus), release: done }
    }

    /// Decides everything that must be decided before anything moves.
    fn plan_read(&mut self, command: &Command) -> ReadPlan {
        let now = command.now;
        let moment = self.moment(now);
        let rules = &self.model.rules;
        let chosen = self.buffer.for_read(rules, command.lba, command.end(), moment);
        // Every segment is taken: the command waits for the arm, and by then the oldest is on the medium.
        let (segment, hit) = chosen.unwrap_or_else(|| {
            let later = super::Moment { now: self.dirty_until(), reading: None };
            self.buffer
                .for_read(rules, command.lba, command.end(), later)
                .unwrap_or((self.buffer.segments.len() - 1, Hit::Miss))
        });
        let joins = hit != Hit::Miss && self.ahead.is_some_and(|ahead| ahead.segment == segment);
        let way = if joins { ArmDelay::default() } else { self.stop_ahead(now) };
        let timings = &self.model.timings;
        let overhead = timings.read_miss[self.last];
        let disconnect = timings.read_disconnect[self.last];
        let blocked = self.arm.free_at.max(way.blocked_until);
        let prompt = command.now <= command.entered && chosen.is_some() && blocked <= now;
        let held = self.model.bus.never_disconnect || (prompt && self.enough(command, segment, hit));
        let ready = if prompt && !held {
            self.bus(now).hold(command.entered, |start| start + overhead + disconnect).1 - disconnect
        } else {
            command.entered + overhead
        };
        let arm_from = (now.max(ready) + way.stop_delay).max(blocked);
        let contact = if held {
            let own = if hit == Hit::Miss { overhead } else { timings.read_hit[self.last] };
            let at = (command.entered + own + timings.preparation).max(now);
            Contact::Held { at, lead: at.saturating_sub(command.entered.max(now)) }
        } else {
            let away = ready + disconnect;
            // What it needs from the buffer it gets with the arm.
            Contact::Away(if hit == Hit::Miss { away } else { away.max(blocked).max(now) })
        };
        let needs_arm = hit != Hit::Whole || matches!(contact, Contact::Away(_));
        let waits = if needs_arm { blocked.saturating_sub(now.max(ready)) } else { 0 };
        ReadPlan { segment, hit, joins, arm_from, waits, contact }
    }

    /// Whether enough of a read is in the buffer to begin sending at once.
    fn enough(&self, command: &Command, segment: usize, hit: Hit) -> bool {
        let rules = &self.model.rules;
        match hit {
            Hit::Whole => true,
            Hit::Part => {
                let watermark = rules.watermark(rules.read_watermark, command.sectors).min(command.sectors);
                rules.transfer_partial_hits || self.buffer.segments[segment].end >= command.lba + watermark
            }
            _ => false,
        }
    }

    /// The passes that bring what is missing, from `from` on.
    fn pass_over(&mut self, from: u64, end: u64, plan: &ReadPlan) {
        let media = Media { model: &self.model, phase: self.phase };
        let first = match self.ahead.filter(|_| plan.joins) {
            Some(ahead) => *ahead.pass(),
            None => media.read(self.arm.track(), plan.arm_from, from, end, true),
        };
        let mut last = first;
        self.passes.push(first);
        while last.visible_end() < end {
            match media.read_on(&last, end, ReadAhead::Segment) {
                Some(next) => last = next,
                None => break,
            }
            self.passes.push(last);
        }
    }

    /// Sends the data to the host; when the last sector is there.
    fn send(&mut self, command: &Command, have: u64, plan: &ReadPlan) -> u64 {
        let (model, sectors) = (&*self.model, command.sectors);
        let timings = &model.timings;
        let link = BusTransfer {
            sector: model.bus.read_sector,
            hold: model.bus.hold_for_read || model.bus.never_disconnect,
            disconnect: timings.read_disconnect[self.last],
            first_reselect: timings.first_reselect,
            other_reselect: timings.other_reselect,
            preparation: timings.preparation,
            watermark: model.rules.watermark(model.rules.read_watermark, sectors),
            completion: timings.read_completion,
            bus: self.bus(command.now),
        };
        let contact = match plan.contact {
            Contact::Held { at, lead } => Contact::Held { at: at.max(self.bus_free_at), lead },
            Contact::Away(from) => Contact::Away(from.max(self.bus_free_at)),
        };
        if sectors > model.rules.segment_sectors && self.throttles() {
            return self.send_throttled(command, contact);
        }
        link.deliver(&SectorArrivals { have, passes: &self.passes }, command.lba, command.end(), contact)
    }

    /// Whether the bus is slower than the medium, so that a long read can fill the buffer.
    fn throttles(&self) -> bool {
        self.passes.iter().any(|pass| pass.end - pass.start < pass.sectors * self.model.bus.read_sector)
    }

    /// A read longer than a segment over a bus slower than the medium: a sector that finds the buffer full is missed and
    /// comes round again. Sector by sector; the passes are made anew.
    fn send_throttled(&mut self, command: &Command, contact: Contact) -> u64 {
        let timings = &self.model.timings;
        let (asked, lead) = match contact {
            Contact::Held { at, lead } => (at - lead, lead),
            Contact::Away(from) => (from.max(self.passes[0].start), timings.first_reselect + timings.preparation),
        };
        let sent = self.pass_throttled(command, asked + lead);
        // Where others share the bus, it is moved as a whole until it fits.
        let length = sent + self.model.timings.read_completion - asked;
        self.bus(command.now).hold(asked, |start| start + length).1 - self.model.timings.read_completion
    }

    /// The passes of such a read whose first sector may go out at `free`; when the last one has.
    fn pass_throttled(&mut self, command: &Command, mut free: u64) -> u64 {
        let media = Media { model: &self.model, phase: self.phase };
        let (sector, end) = (self.model.bus.read_sector, command.end());
        let size = usize_from(self.model.rules.segment_sectors);
        let mut pass = self.passes[0];
        self.passes.clear();
        self.times.clear();
        // What was there before the first pass goes out first.
        for _ in command.lba..pass.first {
            free += sector;
            self.times.push(free);
        }
        loop {
            let mut lba = pass.first.max(command.lba + self.times.len() as u64);
            while lba < pass.visible_end().min(end) {
                let room_at = self.times.len().checked_sub(size).map_or(0, |index| self.times[index]);
                if room_at > pass.begins(lba) {
                    break;
                }
                free = free.max(pass.ready(lba)) + sector;
                self.times.push(free);
                lba += 1;
            }
            let full = lba < pass.visible_end().min(end);
            self.passes.push(if full { pass.cut(lba) } else { pass });
            if lba >= end {
                return free;
            }
            let room_at = self.times.len().checked_sub(size).map_or(0, |index| self.times[index]);
            pass = media.read_plainly(pass.track(), if full { room_at } else { pass.end }, lba);
        }
    }

    /// What the buffer holds afterwards, and what the arm goes on with.
    fn after_read(&mut self, command: &Command, plan: &ReadPlan, have: u64) {
        let (lba, end) = (command.lba, command.end());
        let rules = &self.model.rules;
        let size = rules.segment_sectors;
        let segment = &mut self.buffer.segments[plan.segment];
        if let Some(first) = self.passes.first().filter(|pass| have == lba && pass.first < lba) {
            segment.first = first.first;
        }
        segment.end = segment.end.max(end);
        segment.first = segment.first.max(segment.end.saturating_sub(size));
        if plan.hit == Hit::Miss {
            segment.by_write = false;
        }
        if rules.keep_requested == KeepRequested::Drop {
            segment.first = segment.first.max(end).min(segment.end);
        }
        let (first, holds_to) = (segment.first, segment.end);
        let limit = self.read_ahead_limit(first.min(lba), lba, end);
        let minimum = (end + rules.minimum_read_ahead_sectors).min(self.model.capacity);
        let within = rules.read_ahead;
        if let Some(ahead) = self.ahead.as_mut().filter(|_| plan.joins) {
            // Also where the command was found completely: it may read on further than it would have.
            let pass = self.passes.last().copied().unwrap_or(*ahead.pass());
            let (limit, minimum) = (ahead.limit.max(limit), ahead.minimum.max(minimum));
            *ahead = Ahead::new(plan.segment, pass, limit, minimum, within);
        } else if let Some(&pass) = self.passes.last() {
            self.ahead = Some(Ahead::new(plan.segment, pass, limit, minimum, within));
        } else if rules.read_ahead_on_hit && holds_to < limit && holds_to < self.model.capacity {
            self.read_on_after_hit(plan, holds_to, limit, minimum);
        }
        if !self.model.rules.caching {
            let segment = &mut self.buffer.segments[plan.segment];
            segment.end = segment.first;
            self.settle_uncached();
        }
    }

    /// A read that was found completely sets the arm to what follows in its segment.
    fn read_on_after_hit(&mut self, plan: &ReadPlan, from: u64, limit: u64, minimum: u64) {
        let media = Media { model: &self.model, phase: self.phase };
        let within = self.model.rules.read_ahead;
        let pass = media.read(self.arm.track(), plan.arm_from, from, limit, true);
        let allowed = match within {
            ReadAhead::None => false,
            ReadAhead::Track => pass.track() == self.arm.track(),
            ReadAhead::Cylinder => pass.cylinder == self.arm.cylinder,
            _ => true,
        };
        if allowed {
            self.ahead = Some(Ahead::new(plan.segment, pass, limit, minimum, within));
        }
    }

    /// Without caching nothing is read ahead: the arm stays behind the last sector.
    fn settle_uncached(&mut self) {
        if let Some(mut ahead) = self.ahead.take() {
            let media = Media { model: &self.model, phase: self.phase };
            let end = ahead.reached(media, ahead.limit);
            self.arm = ahead.arm(end);
        }
    }

    /// One past the last address that may be read ahead after a read of `lba..end` into a segment that begins at `first`.
    fn read_ahead_limit(&self, first: u64, lba: u64, end: u64) -> u64 {
        let (rules, layout) = (&self.model.rules, &self.model.layout);
        let (size, sectors) = (rules.segment_sectors, end - lba);
        let limit = match rules.read_ahead {
            ReadAhead::None => end,
            ReadAhead::NextTrack if end < self.model.capacity => {
                let stretch = layout.stretch(end);
                let further = if first < layout.track_first(&stretch) {
                    layout.sectors_per_track(&layout.stretch(lba), self.model.revolution_ns())
                } else {
                    0
                };
                layout.track_end(&stretch) + further
            }
            ReadAhead::NextTrack => end,
            _ if rules.maximum_read_ahead_sectors > 0 => end + rules.maximum_read_ahead_sectors,
            _ if rules.keep_requested != KeepRequested::Keep => end + size,
            _ if sectors >= size || size - sectors < rules.minimum_read_ahead_sectors => {
                end + rules.minimum_read_ahead_sectors
            }
            _ => lba + size,
        };
        limit.max(end + rules.minimum_read_ahead_sectors).min(self.model.capacity)
    }

    /// The parts of the time, and when the arm may go on.
    fn visit_of_read(&self, command: &Command, plan: &ReadPlan, sent: u64, done: u64) -> TimedService {
        let begun = command.now + plan.waits.min(done - command.now);
        let (mut seek, mut rotation, mut medium) = (0, 0, 0);
        let mut last = command.now;
        for (i, pass) in self.passes.iter().enumerate() {
            if i > 0 || !plan.joins {
                seek += pass.seek;
                rotation += pass.rotation;
            }
            // One that found the buffer full at its first sector has read nothing.
            let end = command.end().min(pass.visible_end());
            last = if end > pass.first { pass.ready(end - 1) } else { pass.start };
            medium += last.saturating_sub(pass.start.max(command.now));
        }
        let waited =
            self.passes.first().map_or(command.sectors * self.model.bus.read_sector, |_| sent.saturating_sub(last));
        let service = Service::split(done - begun, seek, rotation, medium + waited);
        let release = match self.model.rules.preseek {
            Preseek::None => done,
            Preseek::DuringCompletion => sent,
            Preseek::BeforeCompletion => last,
        };
        TimedService { begun, release: release.clamp(begun, done), service }
    }
}
