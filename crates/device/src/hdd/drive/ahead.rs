//! Reading ahead: what the arm does behind commands that are complete, worked out when somebody asks.
//!
//! Invariants:
//! - Nothing is worked out beyond the moment asked for, so that a command may stop it at any time.
//! - Asked twice for one moment, it gives the same answer; asked for a later one, it has read no less.

use super::media::{Arm, Media, Pass};
use crate::hdd::buffer_spec::ReadAhead;

/// A read that goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ahead {
    /// The segment it fills.
    pub segment: usize,
    /// One past the last address to be read, and one past the last that must be.
    pub limit: u64,
    pub minimum: u64,
    within: ReadAhead,
    pass: Pass,
    /// The next pass is not allowed: it stays where it is.
    stuck: bool,
}

impl Ahead {
    /// Goes on with the last pass of a command.
    pub(super) fn new(segment: usize, pass: Pass, limit: u64, minimum: u64, within: ReadAhead) -> Self {
        Ahead { segment, limit, minimum, within, pass, stuck: false }
    }

    /// One past the last address read at `now`.
    pub(super) fn visible(&mut self, media: Media, now: u64) -> u64 {
        self.walk(media, now);
        self.pass.visible(now).min(self.limit)
    }

    /// When it has read up to `to` (or as far as it goes).
    pub(super) fn reached(&mut self, media: Media, to: u64) -> u64 {
        let to = to.min(self.limit);
        while self.pass.visible_end() < to && self.step(media) {}
        if to <= self.pass.first {
            self.pass.start
        } else {
            self.pass.ready(to.min(self.pass.visible_end()) - 1)
        }
    }

    /// When it comes to its end, if that is no later than `now`.
    pub(super) fn ended(&mut self, media: Media, now: u64) -> Option<u64> {
        self.walk(media, now);
        if self.pass.visible_end() >= self.limit {
            let end = self.pass.ready(self.limit.max(self.pass.first + 1) - 1);
            (end <= now).then_some(end)
        } else {
            (self.stuck && self.pass.end <= now).then_some(self.pass.end)
        }
    }

    /// Where the arm is, at the end or when it is stopped.
    pub(super) fn arm(&self, free_at: u64) -> Arm {
        Arm { cylinder: self.pass.cylinder, head: self.pass.head, free_at }
    }

    /// When the arm can leave, told to stop at `now`: a movement is finished first, and a sector, unless it may be dropped.
    pub(super) fn stop(&mut self, media: Media, now: u64, within_sector: bool) -> u64 {
        self.walk(media, now);
        if now < self.pass.arrival() {
            self.pass.arrival()
        } else if within_sector {
            now
        } else {
            self.pass.boundary(now)
        }
    }

    /// The pass that is going on at the last moment asked for.
    pub(super) fn pass(&self) -> &Pass {
        &self.pass
    }

    fn walk(&mut self, media: Media, now: u64) {
        while now >= self.pass.end && self.pass.visible_end() < self.limit && self.step(media) {}
    }

    /// Goes on to the next pass; `false` where it may not.
    fn step(&mut self, media: Media) -> bool {
        if self.stuck {
            return false;
        }
        match media.read_on(&self.pass, self.limit, self.within) {
            Some(next) => self.pass = next,
            None => self.stuck = true,
        }
        !self.stuck
    }
}
