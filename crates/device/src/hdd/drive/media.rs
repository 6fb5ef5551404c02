//! The arm and the turning platters: when which sectors pass the head.
//!
//! Purpose: passes, stretches of time in which consecutive sectors go by, each with the movement and the wait before it.
//!
//! Invariants:
//! - The angle at time t is `(t + phase) mod revolution`.
//! - A pass begins when its first sector does and never before the movement to it has ended.
//! - What a pass makes visible rises with time; it never takes back a sector.
//!
//! Reference: C. Ruemmler and J. Wilkes, *An introduction to disk drive modeling*, IEEE Computer 27(3), 1994.

use super::model::DiskModel;
use crate::hdd::buffer_spec::ReadAhead;
use crate::hdd::layout::Stretch;

/// Rounding of angles: a sector that begins this many ns ago is not missed by a head that goes on along its track.
const SLACK_NS: u64 = 16;

/// Where the arm is, and when it may move.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Arm {
    pub cylinder: u32,
    pub head: u32,
    pub free_at: u64,
}

impl Arm {
    pub(super) fn track(&self) -> (u32, u32) {
        (self.cylinder, self.head)
    }
}

/// Consecutive sectors going by under the head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pass {
    /// First address that becomes visible, and how many do one after another.
    pub first: u64,
    pub sectors: u64,
    /// Further addresses that were read before the first and become visible at the end.
    pub bonus: u64,
    /// Movement and wait before the start.
    pub seek: u64,
    pub rotation: u64,
    pub start: u64,
    pub end: u64,
    pub cylinder: u32,
    pub head: u32,
    /// The stretch of the first address.
    stretch: Stretch,
}

impl Pass {
    /// One past the last address that this pass makes visible.
    #[inline]
    pub(super) fn visible_end(&self) -> u64 {
        self.first + self.sectors + self.bonus
    }

    /// When `lba`, one of this pass, is complete.
    #[inline]
    pub(super) fn ready(&self, lba: u64) -> u64 {
        let index = lba - self.first;
        if index + 1 >= self.sectors {
            self.end
        } else {
            (self.start + self.stretch.length_ns(index + 1)).min(self.end)
        }
    }

    /// One past the last address visible at `now`; `first` if none is.
    #[inline]
    pub(super) fn visible(&self, now: u64) -> u64 {
        if now >= self.end {
            self.visible_end()
        } else if now <= self.start {
            self.first
        } else {
            self.first + self.stretch.sectors_in(now - self.start).min(self.sectors - 1)
        }
    }

    /// When `lba`, one of this pass, begins to go by.
    pub(super) fn begins(&self, lba: u64) -> u64 {
        if lba < self.first + self.sectors {
            self.start + self.stretch.length_ns(lba - self.first)
        } else {
            self.end
        }
    }

    /// The part of the pass before `lba`.
    pub(super) fn cut(&self, lba: u64) -> Pass {
        Pass { sectors: lba - self.first, bonus: 0, end: self.begins(lba), ..*self }
    }

    /// When the movement before it ends.
    pub(super) fn arrival(&self) -> u64 {
        self.start - self.rotation
    }

    /// The first boundary between sectors at or after `now`; the start, if that is later.
    pub(super) fn boundary(&self, now: u64) -> u64 {
        if now <= self.start {
            return self.start;
        }
        if now >= self.end {
            return now;
        }
        let done = self.stretch.sectors_in(now - self.start);
        let boundary = self.start + self.stretch.length_ns(done);
        if boundary >= now {
            boundary
        } else {
            (self.start + self.stretch.length_ns(done + 1)).min(self.end)
        }
    }

    pub(super) fn track(&self) -> (u32, u32) {
        (self.cylinder, self.head)
    }
}

/// The head on its way to an address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Approach {
    pub stretch: Stretch,
    pub seek: u64,
    pub rotation: u64,
    /// When the address begins to pass.
    pub start: u64,
}

/// The moving parts of one drive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Media<'a> {
    pub model: &'a DiskModel,
    /// Angle at time 0, in ns.
    pub phase: u64,
}

impl Media<'_> {
    /// Angle at a time, in ns.
    #[inline]
    fn angle(&self, at: u64) -> u64 {
        self.model.revolution.rem(at + self.phase)
    }

    /// From when the head is over its track to when `lba` begins to pass.
    #[inline]
    fn wait(&self, stretch: &Stretch, lba: u64, at: u64) -> u64 {
        let revolution = self.model.revolution_ns();
        let (angle, here) = (self.model.revolution.rem(stretch.angle_ns(lba)), self.angle(at));
        if angle >= here {
            angle - here
        } else {
            angle + revolution - here
        }
    }

    /// Moves the arm from `track`, not before `from`, and waits for `lba`.
    #[inline]
    pub(super) fn approach(&self, track: (u32, u32), from: u64, lba: u64, write: bool) -> Approach {
        self.approach_slowly(track, from, lba, write, 0)
    }

    /// The same with a least time for the movement.
    #[inline]
    pub(super) fn approach_slowly(&self, track: (u32, u32), from: u64, lba: u64, write: bool, least: u64) -> Approach {
        let stretch = self.model.layout.stretch(lba);
        let seek = self.model.movement(track, (stretch.cylinder, stretch.head), write).max(least);
        let arrived = from + seek;
        let mut rotation = self.wait(&stretch, lba, arrived);
        if seek == 0 && rotation + SLACK_NS >= self.model.revolution_ns() {
            rotation = 0;
        }
        Approach { stretch, seek, rotation, start: arrived + rotation }
    }

    /// The pass that reads `lba` and what follows on its stretch; `wanted` is one past the last address of use.
    #[inline]
    pub(super) fn read(&self, track: (u32, u32), from: u64, lba: u64, wanted: u64, first_of_command: bool) -> Pass {
        let approach = self.approach(track, from, lba, false);
        let rules = &self.model.rules;
        let out_of_order = rules.zero_latency_read || (rules.read_free_sectors && first_of_command);
        if out_of_order && approach.rotation > 0 {
            if let Some(pass) = self.read_from_the_middle(&approach, lba, wanted, first_of_command) {
                return pass;
            }
        }
        plain(&approach, lba)
    }

    /// The same in order of address, whatever the rules say.
    pub(super) fn read_plainly(&self, track: (u32, u32), from: u64, lba: u64) -> Pass {
        plain(&self.approach(track, from, lba, false), lba)
    }

    /// A read whose head comes down on the track between the first address asked for and the end of the track: sectors are
    /// taken from there on, and the rest when it comes round. `None` where that changes nothing.
    fn read_from_the_middle(&self, approach: &Approach, lba: u64, wanted: u64, first_of_command: bool) -> Option<Pass> {
        let (landed, track_end) = self.landing(approach, lba)?;
        let model = self.model;
        let tail_end = wanted.min(track_end);
        let collects = model.rules.zero_latency_read && landed < tail_end;
        let free = model.rules.read_free_sectors && first_of_command;
        if !collects && !free {
            return None;
        }
        let first = if free { model.layout.track_first(&approach.stretch) } else { lba };
        let stretch = model.layout.stretch(first);
        let landed_at = approach.start - approach.rotation;
        let rotation = self.wait(&stretch, first, landed_at);
        let start = landed_at + rotation;
        let (visible_to, bonus) = if collects { (landed, tail_end - landed) } else { (track_end, 0) };
        let last = model.layout.stretch(visible_to - 1);
        let end = start + self.between(&stretch, first, &last, visible_to - 1) + last.length_ns(1);
        let (cylinder, head) = (stretch.cylinder, stretch.head);
        let seek = approach.seek;
        Some(Pass { first, sectors: visible_to - first, bonus, seek, rotation, start, end, cylinder, head, stretch })
    }

    /// When sectors `lba..stop` of one stretch are on the medium, if they are written in the order in which they come and the
    /// head lands among them.
    pub(super) fn written_from_the_middle(&self, approach: &Approach, lba: u64, stop: u64) -> Option<u64> {
        let landed = self.landing(approach, lba)?.0;
        let stretch = &approach.stretch;
        // A whole turn from there to there.
        (approach.rotation > 0 && landed < stop).then(|| {
            approach.start + stretch.length_ns(landed - stretch.first) - stretch.length_ns(lba - stretch.first)
        })
    }

    /// The first address from `lba` on whose beginning is still to come when the head lands, if any on this track is; and
    /// one past the last address of the track.
    fn landing(&self, approach: &Approach, lba: u64) -> Option<(u64, u64)> {
        let layout = &self.model.layout;
        // How far the track has turned past the first address when the head comes down.
        let past = self.model.revolution_ns() - approach.rotation;
        let (mut landed, mut stretch, mut from) = (None, approach.stretch, lba);
        loop {
            let offset = self.between(&approach.stretch, lba, &stretch, from);
            let last_begins = offset + stretch.length_ns(stretch.end - 1 - from);
            if landed.is_none() && past <= last_begins {
                let passed = if past <= offset { 0 } else { stretch.sectors_in(past - offset - 1) + 1 };
                landed = Some(from + passed.min(stretch.end - 1 - from));
            }
            match layout.after(&stretch).filter(|next| next.same_track(&stretch)) {
                Some(next) => (stretch, from) = (next, next.first),
                None => return landed.map(|landed| (landed, stretch.end)),
            }
        }
    }

    /// How far the platters turn from the beginning of `a` to that of `b`, which lie on one track.
    fn between(&self, of_a: &Stretch, a: u64, of_b: &Stretch, b: u64) -> u64 {
        let revolution = &self.model.revolution;
        let (from, to) = (revolution.rem(of_a.angle_ns(a)), revolution.rem(of_b.angle_ns(b)));
        if to >= from {
            to - from
        } else {
            to + revolution.divisor() - from
        }
    }

    /// The pass that goes on after `pass`, if reading ahead in this way may go there.
    pub(super) fn read_on(&self, pass: &Pass, wanted: u64, within: ReadAhead) -> Option<Pass> {
        let lba = pass.visible_end();
        if lba >= self.model.capacity {
            return None;
        }
        let next = self.read(pass.track(), pass.end, lba, wanted, false);
        let allowed = match within {
            ReadAhead::Track => next.track() == pass.track(),
            ReadAhead::Cylinder => next.cylinder == pass.cylinder,
            _ => true,
        };
        allowed.then_some(next)
    }
}

/// A pass of the rest of a stretch.
#[inline]
fn plain(approach: &Approach, lba: u64) -> Pass {
    let stretch = approach.stretch;
    let offset = lba - stretch.first;
    let length = stretch.length_ns(stretch.end - stretch.first) - stretch.length_ns(offset);
    Pass {
        first: lba,
        sectors: stretch.end - lba,
        bonus: 0,
        seek: approach.seek,
        rotation: approach.rotation,
        start: approach.start,
        end: approach.start + length,
        cylinder: stretch.cylinder,
        head: stretch.head,
        stretch,
    }
}
