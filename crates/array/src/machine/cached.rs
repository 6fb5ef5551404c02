//! Requests that go through a stripe cache, beside the windows: see `stripe_cache/`.
//!
//! A cache knows which members are missing, and rebuilds those that take their places. Where a member goes, the requests in
//! it are started as windows once its operations on their way are done, and so are all others until the volume is idle,
//! with each member either whole or not there; what is left of a rebuild goes on in units.

use super::stripe_cache::{RowOp, StripeCache};
use super::{join, Array, ArrayOp, Event, OF_ARRAY};
use crate::policy::{MemberState, WriteAfter};
use raidlab_types::number::u32_from;
use raidlab_types::{Extent, LeafId, OpError, OpKind, Operation, RequestKind};

/// Operations of the cache of volume v have the number of a window that there never is: this less v.
const LAST_WINDOW: u32 = u32::MAX;

impl Array {
    /// Heeds what of the policy is for drivers that move no bytes. To be called before the first request.
    ///
    /// Every volume has the stripe cache of the policy, where it can have one: a cache knows which pages it has, not what
    /// is in them, so [`Array::pieces`] and [`Array::compute`] have nothing to say of its operations. And with
    /// [`WriteAfter::OwnRead`] writes do not wait for the reads of others.
    pub fn expect_no_bytes(&mut self) {
        self.writes_early = self.policy.write_after == WriteAfter::OwnRead;
        let volumes = 0..self.layout.volumes().len();
        let cache =
            |volume| StripeCache::new(&self.layout, self.layout.node(self.layout.volume_node(volume)), &self.policy);
        self.caches = volumes.map(cache).collect();
        if self.caches.iter().all(Option::is_none) {
            self.caches.clear();
        }
        self.end_caches();
    }

    /// Whether the request is a cache's business; it has it then.
    pub(super) fn goes_to_cache(&mut self, id: u32) -> bool {
        let state = &self.requests[id as usize];
        let request = state.request;
        let volume = request.volume as usize;
        if self.requests_in_flight == 1 && volume < self.caches.len() {
            self.begin_cache_again(volume);
        }
        let Some(Some(cache)) = self.caches.get_mut(volume) else { return false };
        if cache.is_ending() {
            let waits = cache.is_busy();
            if waits {
                cache.keep(id);
            }
            return waits;
        }
        let kind = match request.kind {
            RequestKind::Write => OpKind::Write,
            RequestKind::Read if cache.lost() != 0 => OpKind::Read,
            _ => return false,
        };
        cache.submit(id, request.extent, kind, request.force_unit_access);
        self.report_cached(volume);
        true
    }

    /// The members of a volume's cache that are not there or are rebuilt, by position, and those of them that are not there;
    /// `None` where it cannot work: one is being rebuilt in units, or too many are gone.
    fn lost_of_cache(&self, volume: usize) -> Option<(u64, u64)> {
        let cache = self.caches[volume].as_ref()?;
        let (mut lost, mut absent) = (0, 0);
        for (position, &leaf) in cache.leaves().iter().enumerate() {
            match self.views.leaf(leaf).state {
                // A cache knows no bad blocks.
                MemberState::Online if self.views.bad_blocks().has(leaf) => return None,
                MemberState::Online => {}
                MemberState::Missing | MemberState::Failed => absent |= 1 << position,
                MemberState::Rebuilding if !self.rebuilds_in_cache(volume) => return None,
                MemberState::Rebuilding => lost |= 1 << position,
            }
        }
        lost |= absent;
        cache.bears(lost).then_some((lost, absent))
    }

    /// Has a cache that has ended and is idle go on with the members that there are, if it can.
    fn begin_cache_again(&mut self, volume: usize) {
        if !self.caches[volume].as_ref().is_some_and(StripeCache::is_ending) {
            return;
        }
        let lost = self.lost_of_cache(volume);
        if let (Some(cache), Some((lost, _))) = (self.caches[volume].as_mut(), lost) {
            cache.begin_again(lost);
        }
    }

    /// The volume to whose cache an operation of this window belongs.
    #[inline]
    pub(super) fn volume_of_cache(&self, window: u32) -> Option<usize> {
        let volume = (LAST_WINDOW - window) as usize;
        (volume < self.caches.len()).then_some(volume)
    }

    fn cache(&self, volume: usize) -> &StripeCache {
        self.caches[volume].as_ref().expect("an operation of a cache")
    }

    /// The next operation of a cache.
    #[inline]
    pub(super) fn poll_caches(&mut self) -> Option<ArrayOp> {
        (0..self.caches.len()).find_map(|volume| self.poll_cache(volume))
    }

    fn poll_cache(&mut self, volume: usize) -> Option<ArrayOp> {
        loop {
            let cache = self.caches[volume].as_mut()?;
            let polled = cache.poll_op();
            self.report_cached(volume);
            let slot = polled?;
            let op = self.cached_op(volume, slot);
            let serves = |leaf| self.views.leaf(leaf).writes();
            let is_done = match op {
                ArrayOp::Device(op) if op.kind == OpKind::Write => !serves(op.leaf),
                _ => self.cache(volume).is_ending(),
            };
            if let ArrayOp::Device(Operation { leaf, extent, .. }) = op {
                let view = &mut self.views.leaves[leaf as usize];
                (view.in_flight, view.end_lba) = (view.in_flight + 1, extent.end());
                if self.cache(volume).is_own(slot) {
                    self.traffic[leaf as usize].own += extent.sectors;
                }
            }
            if !is_done {
                return Some(op);
            }
            self.cache_op_done(volume, slot, Ok(()));
        }
    }

    fn cached_op(&self, volume: usize, slot: u32) -> ArrayOp {
        let cache = self.cache(volume);
        let id = join(LAST_WINDOW - u32_from(volume), slot);
        let tag = cache.request_of(slot).map_or(OF_ARRAY, |request| self.requests[request as usize].request.tag);
        let sector = u64::from(self.layout.sector_bytes());
        match cache.op(slot) {
            RowOp::Device { leaf, kind, extent, force_unit_access } => {
                let lba = extent.lba + self.layout.data_offset(leaf);
                let extent = Extent::new(lba, extent.sectors);
                ArrayOp::Device(Operation { id, tag, leaf, kind, extent, force_unit_access, pair_with: None })
            }
            RowOp::Compute { read_sectors, written_sectors } => {
                let (read_bytes, write_bytes) = (read_sectors * sector, written_sectors * sector);
                ArrayOp::Compute { id, tag, read_bytes, write_bytes }
            }
        }
    }

    /// See [`Array::moves`].
    pub(super) fn cached_moves(&self, volume: usize, slot: u32) -> Option<(LeafId, OpKind, Extent)> {
        match self.cache(volume).op(slot) {
            RowOp::Device { leaf, kind, extent, .. } => Some((leaf, kind, extent)),
            RowOp::Compute { .. } => None,
        }
    }

    pub(super) fn cache_op_done(&mut self, volume: usize, slot: u32, result: Result<(), OpError>) {
        if let RowOp::Device { leaf, kind, extent, .. } = self.cache(volume).op(slot) {
            self.views.leaves[leaf as usize].in_flight -= 1;
            let is_own = self.cache(volume).is_own(slot);
            if let Some(traffic) = self.traffic.get_mut(leaf as usize) {
                match is_own {
                    true => traffic.own -= extent.sectors,
                    false => traffic.others += extent.sectors,
                }
            }
            self.writes_done = self.writes_done.wrapping_add(u32::from(kind == OpKind::Write));
            match result {
                Err(OpError::Media(_)) if kind == OpKind::Read => {
                    // Whoever plans it anew meets the bad sector again, and knows what to do about it.
                    self.end_cache(volume);
                }
                Err(_) if self.views.leaf(leaf).writes() => {
                    self.fail_member(leaf);
                }
                // What is begun no more has not been read.
                Ok(()) if kind == OpKind::Read && !self.cache(volume).is_ending() => self.note_read(leaf),
                _ => {}
            }
        }
        self.caches[volume].as_mut().expect("the operation's cache").handle_op_done(slot);
        self.start_given_up(volume);
    }

    /// Ends the caches of volumes of which members are missing that they believe are there, and tells the others how their
    /// members are; where nothing is on its way, those that have ended go on with these at once.
    pub(super) fn end_caches(&mut self) {
        for volume in 0..self.caches.len() {
            let members = self.lost_of_cache(volume);
            let Some(cache) = self.caches[volume].as_mut() else { continue };
            match members {
                Some((lost, absent)) if lost & !cache.lost() == 0 && !cache.is_ending() => {
                    cache.set_members(lost, absent);
                    continue;
                }
                _ => self.end_cache(volume),
            }
            self.start_given_up(volume);
            if self.requests_in_flight == 0 {
                self.begin_cache_again(volume);
            }
        }
    }

    /// Nothing more is begun in the cache.
    fn end_cache(&mut self, volume: usize) {
        self.caches[volume].as_mut().expect("a cache").end();
        self.leave_cache(volume);
    }

    /// Starts what was in a cache that has ended.
    fn start_given_up(&mut self, volume: usize) {
        while let Some(id) = self.caches[volume].as_mut().and_then(StripeCache::next_given_up) {
            self.start_windows(id);
        }
        self.run_unblocked();
    }

    /// Reports the requests that a cache has completed.
    fn report_cached(&mut self, volume: usize) {
        while let Some(id) = self.caches[volume].as_mut().and_then(StripeCache::poll_done) {
            let tag = self.requests.remove(id as usize).request.tag;
            self.events.push_back(Event::RequestDone { tag, result: Ok(()) });
        }
    }
}
