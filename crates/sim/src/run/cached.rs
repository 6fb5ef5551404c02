//! What goes through a cache above the array: reads come to their client in pieces, writes are copied before they are
//! answered, and the cache's own requests to the array are told from those of clients by their tag.

use super::{Observer, Sim};
use crate::cache::{Cache, CacheOp};
use crate::path::{Leg, Paths, StepRange};
use crate::walks::Continuation;
use raidlab_load::Generator;
use raidlab_types::number::usize_from;
use raidlab_types::{Request, RequestKind, RequestTag};

/// Marks requests that caches make of the array; the volume stands above the cache's own number.
pub(super) const OF_CACHE: u64 = 1 << 63;
const VOLUME_SHIFT: u32 = 40;

impl<L: Generator, O: Observer> Sim<'_, L, O> {
    /// The array has done what a cache asked of it.
    pub(super) fn cache_served(&mut self, tag: RequestTag) {
        let (volume, id) = (((tag & !OF_CACHE) >> VOLUME_SHIFT) as u32, tag & ((1 << VOLUME_SHIFT) - 1));
        if let Some(Some(cache)) = self.caches.get_mut(volume as usize) {
            cache.handle_done(id);
        }
        self.serve_cache(volume);
    }

    /// Does what the cache of a volume wants.
    pub(super) fn serve_cache(&mut self, volume: u32) {
        let own = |id: u64, kind, extent| Request {
            tag: OF_CACHE | u64::from(volume) << VOLUME_SHIFT | id,
            volume,
            kind,
            extent,
            force_unit_access: false,
        };
        while let Some(op) = self.caches[volume as usize].as_mut().and_then(Cache::poll) {
            match op {
                CacheOp::Fetch { id, extent } => {
                    self.array.handle_request(self.now, own(id, RequestKind::Read, extent));
                }
                CacheOp::Destage { id, extent } => {
                    self.array.handle_request(self.now, own(id, RequestKind::Write, extent));
                }
                CacheOp::Ready { tag, sectors } => self.bring(volume, tag, sectors),
                CacheOp::Stored { tag, sectors } => self.copy(volume, tag, sectors),
                CacheOp::Written { tag } => self.leave(tag, true),
            }
        }
    }

    /// Sectors of a read set out for the client.
    fn bring(&mut self, volume: u32, tag: RequestTag, sectors: u64) {
        let is_first = !std::mem::replace(&mut self.arriving[usize_from(tag)].1, true);
        // The status follows when all is there.
        let leg = |paths: &Paths| Leg { after: StepRange::default(), ..paths.request(volume, false).up };
        self.walk(leg, sectors * self.sector_bytes, is_first, Continuation::Arrived(tag, sectors));
    }

    /// Sectors of a read have reached the client; after the last of them comes the status.
    pub(super) fn arrived(&mut self, tag: RequestTag, sectors: u64) {
        let left = &mut self.arriving[usize_from(tag)].0;
        *left -= sectors;
        if *left > 0 {
            return;
        }
        if self.walks.is_none() {
            return self.answer(tag, true);
        }
        let volume = self.requests[usize_from(tag)].volume;
        let leg = |paths: &Paths| Leg { after: paths.request(volume, false).up.after, ..Leg::default() };
        self.walk(leg, 0, true, Continuation::Answer(tag, true));
    }

    /// A write is in its cache: what that costs beyond the request's own way, before it is answered.
    fn copy(&mut self, volume: u32, tag: RequestTag, sectors: u64) {
        self.walk(|paths| paths.copy(volume), sectors * self.sector_bytes, true, Continuation::Leave(tag));
    }
}
