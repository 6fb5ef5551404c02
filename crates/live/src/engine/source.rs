//! Where requests come from: the offered load, drawn or recorded, readers of whole files, or a sweep over all volumes.

use crate::config::fraction;
use crate::memory::Lent;
use raidlab_load::{Generator, Limits};
use raidlab_types::number::{f64_from, u32_from};
use raidlab_types::{Duration, Extent, Instant, Request, RequestKind, RequestTag};

/// What the engine drives. The order of calls is that of [`raidlab_load::Load`].
pub(crate) trait Source {
    /// The next request to issue now.
    fn poll_request(&mut self, now: Instant) -> Option<Request>;
    /// Memory of the request just polled, where that is not the engine's: then the engine makes no content either. It stays
    /// valid and nobody else's until the request has ended, or the engine is gone.
    fn lent(&self, _tag: RequestTag) -> Option<Lent> {
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
    /// Whether what members do counts now.
    fn is_measuring(&self) -> bool;
    /// Share that is done, 0 to 1, after `requests` at `now`.
    fn fraction(&self, now: Instant, requests: u64) -> f64;
}

/// The offered load, with the limits that tell how far it is.
pub(crate) struct Offered<'a, L> {
    pub load: &'a mut L,
    pub limits: Limits,
}

impl<L: Generator> Source for Offered<'_, L> {
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

    #[inline]
    fn is_measuring(&self) -> bool {
        self.load.recorder().is_measuring()
    }

    fn fraction(&self, now: Instant, requests: u64) -> f64 {
        fraction(&self.limits, now, requests)
    }
}

/// Every sector of every volume once, in order.
pub(crate) struct Sweep {
    volumes: Vec<u64>,
    kind: RequestKind,
    step_sectors: u64,
    volume: usize,
    lba: u64,
    done: u64,
    total: u64,
    free: Vec<RequestTag>,
    stopped: bool,
}

impl Sweep {
    /// Over volumes of so many sectors, in requests of `step_sectors`, `depth` at a time.
    pub(crate) fn new(volumes: Vec<u64>, kind: RequestKind, step_sectors: u64, depth: u64) -> Sweep {
        let total = volumes.iter().map(|&sectors| sectors.div_ceil(step_sectors)).sum();
        let free = (0..depth).rev().collect();
        Sweep { volumes, kind, step_sectors, volume: 0, lba: 0, done: 0, total, free, stopped: false }
    }
}

/// Reads of a list of places, as long as there is time for them.
pub(crate) struct Listed {
    extents: Vec<(u32, Extent)>,
    next: usize,
    done: usize,
    free: Vec<RequestTag>,
    until: Instant,
}

impl Listed {
    /// `depth` at a time, for `budget` at most.
    pub(super) fn new(extents: Vec<(u32, Extent)>, depth: u64, budget: Duration) -> Listed {
        Listed { extents, next: 0, done: 0, free: (0..depth).rev().collect(), until: Instant::ZERO + budget }
    }
}

impl Source for Listed {
    fn poll_request(&mut self, now: Instant) -> Option<Request> {
        if now > self.until {
            self.interrupt(now);
        }
        let &(volume, extent) = self.extents.get(self.next)?;
        let tag = self.free.pop()?;
        self.next += 1;
        Some(Request { tag, volume, kind: RequestKind::Read, extent, force_unit_access: false })
    }

    fn handle_done(&mut self, _now: Instant, tag: RequestTag, _ok: bool) {
        self.free.push(tag);
        self.done += 1;
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn is_finished(&self) -> bool {
        self.done == self.extents.len()
    }

    fn interrupt(&mut self, _now: Instant) {
        self.extents.truncate(self.next);
    }

    fn is_measuring(&self) -> bool {
        false
    }

    fn fraction(&self, _now: Instant, requests: u64) -> f64 {
        f64_from(requests) / f64_from(self.extents.len().max(1))
    }
}

impl Source for Sweep {
    fn poll_request(&mut self, _now: Instant) -> Option<Request> {
        if self.stopped {
            return None;
        }
        while self.volumes.get(self.volume).is_some_and(|&sectors| self.lba >= sectors) {
            (self.volume, self.lba) = (self.volume + 1, 0);
        }
        let &sectors = self.volumes.get(self.volume)?;
        let tag = self.free.pop()?;
        let extent = Extent::new(self.lba, self.step_sectors.min(sectors - self.lba));
        self.lba = extent.end();
        Some(Request { tag, volume: u32_from(self.volume), kind: self.kind, extent, force_unit_access: false })
    }

    fn handle_done(&mut self, _now: Instant, tag: RequestTag, _ok: bool) {
        self.free.push(tag);
        self.done += 1;
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn is_finished(&self) -> bool {
        self.stopped || self.done == self.total
    }

    fn interrupt(&mut self, _now: Instant) {
        self.stopped = true;
    }

    fn is_measuring(&self) -> bool {
        false
    }

    fn fraction(&self, _now: Instant, requests: u64) -> f64 {
        f64_from(requests) / f64_from(self.total.max(1))
    }
}
