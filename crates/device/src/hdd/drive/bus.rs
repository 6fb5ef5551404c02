//! The bus: how data that come from the medium piece by piece reach the host.
//!
//! While a transfer runs, the sectors that are there follow one another. When none is left, the disk keeps the bus until the
//! next one comes, or leaves it and takes it again when enough are there.
//!
//! Invariant: no sector is sent before it is in the buffer, and none before those in front of it.

use super::media::Pass;
use crate::hdd::shared_bus::BusAccess;
use std::cell::Cell;

/// When each sector of a read is in the buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SectorArrivals<'a> {
    /// One past the last address that is there already.
    pub have: u64,
    /// The passes that bring the rest, in order.
    pub passes: &'a [Pass],
}

impl SectorArrivals<'_> {
    /// One past the last address there at `now`.
    fn visible(&self, now: u64) -> u64 {
        let mut visible = self.have;
        for pass in self.passes {
            let here = pass.visible(now);
            // A pass that begins before what is there (a free sector, a hit) counts once it gets beyond it.
            visible = visible.max(here);
            if now < pass.end {
                break;
            }
        }
        visible
    }

    /// When everything before `to` is there.
    fn ready(&self, to: u64) -> u64 {
        if to <= self.have {
            return 0;
        }
        let pass = self.passes.iter().find(|pass| pass.visible_end() >= to);
        pass.map_or(0, |pass| pass.ready((to - 1).max(pass.first)))
    }
}

/// What governs a transfer to the host.
#[derive(Debug, Clone, Copy)]
pub(super) struct BusTransfer<'a> {
    pub sector: u64,
    pub hold: bool,
    pub disconnect: u64,
    pub first_reselect: u64,
    pub other_reselect: u64,
    pub preparation: u64,
    pub watermark: u64,
    /// Reporting that it is complete, with the bus still in hand.
    pub completion: u64,
    pub bus: BusAccess<'a>,
}

/// How a transfer finds the bus.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Contact {
    /// It has it, and may begin at `at`; for `lead` it has had it by then.
    Held { at: u64, lead: u64 },
    /// It has left it, and may ask for it from this time on.
    Away(u64),
}

impl BusTransfer<'_> {
    /// When the last sector of `lba..end` has been sent.
    pub(super) fn deliver(&self, arrivals: &SectorArrivals, lba: u64, end: u64, contact: Contact) -> u64 {
        let (mut asked, mut lead) = match contact {
            Contact::Held { at, lead } => (at - lead, lead),
            Contact::Away(from) => (self.enough(arrivals, from, lba, end), self.first_reselect + self.preparation),
        };
        let free_to_leave = self.disconnect == 0 && self.other_reselect == 0 && self.preparation == 0;
        let one_stream = self.hold || (free_to_leave && self.watermark <= 1);
        if one_stream && (self.hold || self.bus.shared.is_none()) {
            let sent = |start| self.stream(arrivals, lba, end, start + lead);
            return self.bus.hold(asked, |start| sent(start) + self.completion).1 - self.completion;
        }
        let mut sent = lba;
        loop {
            let reached = Cell::new(sent);
            let leaves = |start| {
                let (now, to) = self.run(arrivals, sent, end, start + lead);
                reached.set(to);
                now + if to >= end { self.completion } else { self.disconnect }
            };
            let (_, left) = self.bus.hold(asked, leaves);
            sent = reached.get();
            if sent >= end {
                return left - self.completion;
            }
            (asked, lead) = (self.enough(arrivals, left, sent, end), self.other_reselect + self.preparation);
        }
    }

    /// When the bus is asked for again, from `from` on: with as much there as is worth it.
    fn enough(&self, arrivals: &SectorArrivals, from: u64, sent: u64, end: u64) -> u64 {
        from.max(arrivals.ready((sent + self.watermark.max(1)).min(end)))
    }

    /// Sector after sector from `now` on as long as any is there; when none is, and one past the last that was sent.
    fn run(&self, arrivals: &SectorArrivals, from: u64, end: u64, now: u64) -> (u64, u64) {
        let (mut now, mut sent) = (now, from);
        loop {
            let visible = arrivals.visible(now).min(end);
            if visible <= sent {
                return (now, sent);
            }
            (now, sent) = (now + (visible - sent) * self.sector, visible);
        }
    }

    /// Sector after sector, each as soon as it and the bus are there.
    ///
    /// Within a pass sectors come at equal distances, so that either the first or the last one decides.
    fn stream(&self, arrivals: &SectorArrivals, lba: u64, end: u64, from: u64) -> u64 {
        let mut sent = arrivals.have.min(end).max(lba);
        let mut now = from + (sent - lba) * self.sector;
        for pass in arrivals.passes {
            let in_order = (pass.first + pass.sectors).min(end);
            if in_order > sent && in_order > pass.first {
                let first = sent.max(pass.first);
                let count = in_order - first;
                now = (now + count * self.sector)
                    .max(pass.ready(first) + count * self.sector)
                    .max(pass.ready(in_order - 1) + self.sector);
                sent = in_order;
            }
            let all = pass.visible_end().min(end);
            if all > sent {
                now = now.max(pass.end) + (all - sent) * self.sector;
                sent = all;
            }
        }
        now
    }
}
