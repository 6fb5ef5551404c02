//! Where requests come from: the offered load, drawn or recorded, readers of whole files, or a sweep over places.

use crate::config::fraction;
use crate::memory::LentMemory;
use raidlab_load::{Generator, Limits, Volume};
use raidlab_types::number::f64_from;
use raidlab_types::{Duration, Extent, Instant, Request, RequestKind, RequestTag};

/// What the engine drives. The order of calls is that of [`raidlab_load::Load`].
pub(crate) trait Source {
    /// The next request to issue now.
    fn poll_request(&mut self, now: Instant) -> Option<Request>;
    /// Memory of the request just polled, where that is not the engine's: then the engine makes no content either. It stays
    /// valid and nobody else's until the request has ended, or the engine is gone.
    fn lent(&self, _tag: RequestTag) -> Option<LentMemory> {
        None
    }
    /// A request has ended.
    fn handle_done(&mut self, now: Instant, tag: RequestTag, ok: bool);
    /// When to poll again if nothing ends before.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Nothing more will be issued.
    fn is_finished(&self) -> bool;
    /// To be ended before its end.
    fn interrupt(&mut self, now: Instant);
    /// It has come to its end, as if a limit were reached.
    fn finish(&mut self, now: Instant) {
        self.interrupt(now);
    }
    /// Whether what members do counts now.
    fn is_measuring(&self) -> bool;
    /// Share that is done, 0 to 1, after `requests` at `now`.
    fn fraction(&self, now: Instant, requests: u64) -> f64;
}

/// The offered load, with the limits that tell how far it is.
pub(crate) struct OfferedLoad<'a, L> {
    pub load: &'a mut L,
    pub limits: Limits,
}

impl<L: Generator> Source for OfferedLoad<'_, L> {
    #[inline]
    fn poll_request(&mut self, now: Instant) -> Option<Request> {
        if L::WORKS {
            // The host is this machine: what it has to do for a file it does, and nothing stands for it.
            while let Some((who, _)) = self.load.poll_work() {
                self.load.handle_work_done(now, who);
            }
        }
        self.load.poll_request(now)
    }

    #[inline]
    fn handle_done(&mut self, now: Instant, tag: RequestTag, ok: bool) {
        self.load.handle_done(now, tag, ok);
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        self.load.poll_timeout()
    }

    #[inline]
    fn is_finished(&self) -> bool {
        self.load.is_finished()
    }

    fn interrupt(&mut self, now: Instant) {
        self.load.interrupt(now);
    }

    fn finish(&mut self, now: Instant) {
        self.load.recorder_mut().close_at(now);
    }

    #[inline]
    fn is_measuring(&self) -> bool {
        self.load.recorder().is_measuring()
    }

    fn fraction(&self, now: Instant, requests: u64) -> f64 {
        fraction(&self.limits, now, requests)
    }
}

/// Places of volumes, in order, in requests of a kind, some of them at a time.
pub(crate) struct Sweep<I> {
    places: I,
    kind: RequestKind,
    total: usize,
    depth: usize,
    free: Vec<RequestTag>,
    until: Instant,
    /// Nothing more is begun.
    is_through: bool,
}

/// Every sector of every volume once, in order, in pieces of `step_sectors`.
pub(crate) fn every_sector(
    volumes: &[Volume],
    step_sectors: usize,
) -> impl Iterator<Item = (u32, Extent)> + Clone + '_ {
    volumes.iter().zip(0..).flat_map(move |(&Volume { capacity_sectors }, volume)| {
        let piece = move |lba| (volume, Extent::new(lba, (capacity_sectors - lba).min(step_sectors as u64)));
        (0..capacity_sectors).step_by(step_sectors).map(piece)
    })
}

impl<I: Iterator<Item = (u32, Extent)> + Clone> Sweep<I> {
    /// `depth` at a time.
    pub(crate) fn new(places: I, kind: RequestKind, depth: usize) -> Sweep<I> {
        let (total, free) = (places.clone().count(), (0..depth as RequestTag).rev().collect());
        Sweep { places, kind, total, depth, free, until: Instant::MAX, is_through: false }
    }

    /// As many as there is time for.
    pub(super) fn within(self, budget: Duration) -> Sweep<I> {
        Sweep { until: Instant::ZERO + budget, ..self }
    }
}

impl<I: Iterator<Item = (u32, Extent)>> Source for Sweep<I> {
    fn poll_request(&mut self, now: Instant) -> Option<Request> {
        self.is_through |= now > self.until;
        if self.is_through {
            return None;
        }
        let tag = self.free.pop()?;
        let Some((volume, extent)) = self.places.next() else {
            self.free.push(tag);
            self.is_through = true;
            return None;
        };
        Some(Request { tag, volume, kind: self.kind, extent, force_unit_access: false })
    }

    fn handle_done(&mut self, _now: Instant, tag: RequestTag, _ok: bool) {
        self.free.push(tag);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn is_finished(&self) -> bool {
        self.is_through && self.free.len() == self.depth
    }

    fn interrupt(&mut self, _now: Instant) {
        self.is_through = true;
    }

    fn is_measuring(&self) -> bool {
        false
    }

    fn fraction(&self, _now: Instant, requests: u64) -> f64 {
        f64_from(requests) / f64_from(self.total.max(1))
    }
}
