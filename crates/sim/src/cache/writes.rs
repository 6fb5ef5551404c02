//! Writes into a cache: room, stripes that are whole, destages, and who waits for them.

use super::dirty::Runs;
use super::spec::{CacheSpec, DestageWhen};
use super::CacheOp;
use raidlab_types::{Extent, RequestTag};
use std::collections::{BTreeMap, VecDeque};

/// Fetches have even numbers, destages odd ones.
const STEP: u64 = 2;

#[derive(Debug)]
struct Destage {
    extent: Extent,
    waiting: Vec<RequestTag>,
}

#[derive(Debug)]
pub(super) struct Writes {
    write_back_sectors: u64,
    most_dirty: u64,
    stripe_sectors: u64,
    most_destages: usize,
    /// Whether whole stripes wait until room is needed.
    on_demand: bool,
    dirty: Runs,
    /// Dirty or under destage: what can be read here.
    here: Runs,
    /// What takes room: what is dirty, and what is under destage, which may be dirty again.
    held: u64,
    /// Writes for which there is no room yet.
    queue: VecDeque<(RequestTag, Extent)>,
    /// Stripes to destage, and who waits for each.
    ready: VecDeque<u64>,
    waiting: BTreeMap<u64, Vec<RequestTag>>,
    /// How many destages a write still waits for.
    left: BTreeMap<RequestTag, u32>,
    destages: BTreeMap<u64, Destage>,
    last_id: u64,
    /// Where the last write ended.
    next: Option<u64>,
    /// Where the last destage ended.
    swept_to: u64,
}

impl Writes {
    pub(super) fn new(spec: &CacheSpec, sector_bytes: u64, stripe_sectors: u64) -> Writes {
        Writes {
            write_back_sectors: spec.write_back_up_to_bytes / sector_bytes,
            most_dirty: (spec.dirty_room_bytes / sector_bytes).max(1),
            stripe_sectors: stripe_sectors.max(1),
            most_destages: spec.destages as usize,
            on_demand: spec.destage_when == DestageWhen::RoomIsNeeded,
            dirty: Runs::default(),
            here: Runs::default(),
            held: 0,
            queue: VecDeque::new(),
            ready: VecDeque::new(),
            waiting: BTreeMap::new(),
            left: BTreeMap::new(),
            destages: BTreeMap::new(),
            last_id: 1,
            next: None,
            swept_to: 0,
        }
    }

    /// Whether all of an extent is here.
    pub(super) fn holds(&self, extent: Extent) -> bool {
        self.here.covers(extent)
    }

    /// A write arrives.
    pub(super) fn request(&mut self, tag: RequestTag, extent: Extent, out: &mut VecDeque<CacheOp>) {
        self.queue.push_back((tag, extent));
        self.proceed(out);
    }

    /// A destage is done; what it wrote. None if it is no destage.
    pub(super) fn done(&mut self, id: u64, out: &mut VecDeque<CacheOp>) -> Option<Extent> {
        let Destage { extent, waiting } = self.destages.remove(&id)?;
        self.held -= extent.sectors;
        self.here.remove(extent);
        // What became dirty again meanwhile stays.
        let mut from = extent.lba;
        while let Some(again) = self.dirty.first_in(Extent::new(from, extent.end() - from)) {
            self.here.add(again);
            from = again.end();
            if from == extent.end() {
                break;
            }
        }
        for tag in waiting {
            self.one_less(tag, out);
        }
        self.proceed(out);
        Some(extent)
    }

    /// Takes in what there is room for, then destages what is ready.
    fn proceed(&mut self, out: &mut VecDeque<CacheOp>) {
        while let Some(&(tag, extent)) = self.queue.front() {
            if self.held > 0 && self.held + extent.sectors > self.most_dirty {
                break;
            }
            self.queue.pop_front();
            self.take_in(tag, extent, out);
        }
        self.destage(out);
    }

    fn take_in(&mut self, tag: RequestTag, extent: Extent, out: &mut VecDeque<CacheOp>) {
        let goes_on = self.next == Some(extent.lba);
        self.next = Some(extent.end());
        self.held += self.dirty.add(extent);
        self.here.add(extent);
        let waits = extent.sectors > self.write_back_sectors;
        let mut stripes = 0;
        for stripe in extent.lba / self.stripe_sectors..=(extent.end() - 1) / self.stripe_sectors {
            let is_whole = self.dirty.covers(self.extent_of(stripe));
            let may_stay = if waits { !is_whole && goes_on } else { !is_whole || self.on_demand };
            if may_stay {
                continue;
            }
            self.queue_stripe(stripe);
            if waits {
                stripes += 1;
                self.waiting.entry(stripe).or_default().push(tag);
            }
        }
        if stripes > 0 {
            self.left.insert(tag, stripes);
        } else if waits {
            out.push_back(CacheOp::Written { tag });
        } else {
            out.push_back(CacheOp::Stored { tag, sectors: extent.sectors });
        }
    }

    fn queue_stripe(&mut self, stripe: u64) {
        if !self.ready.contains(&stripe) {
            self.ready.push_back(stripe);
        }
    }

    fn destage(&mut self, out: &mut VecDeque<CacheOp>) {
        while self.destages.len() < self.most_destages {
            let Some(stripe) = self.next_stripe() else { return };
            let waiting = self.waiting.remove(&stripe).unwrap_or_default();
            let within = self.extent_of(stripe);
            let Some(extent) = self.dirty.first_in(within) else {
                // Destaged meanwhile, by an earlier pass over the same stripe.
                waiting.into_iter().for_each(|tag| self.one_less(tag, out));
                continue;
            };
            self.dirty.remove(extent);
            self.swept_to = extent.end();
            // A stripe of several runs is destaged run by run; who waits for it waits for the last.
            let waiting = if self.dirty.first_in(within).is_some() {
                self.ready.push_front(stripe);
                self.waiting.insert(stripe, waiting);
                Vec::new()
            } else {
                waiting
            };
            self.last_id += STEP;
            self.destages.insert(self.last_id, Destage { extent, waiting });
            out.push_back(CacheOp::Destage { id: self.last_id, extent });
        }
    }

    /// The stripe to destage: the first that is ready, else a part of one where somebody waits for room. One stripe is
    /// destaged once at a time, so that what was written last is written last.
    fn next_stripe(&mut self) -> Option<u64> {
        let is_free = |stripe: u64| !self.destages.values().any(|d| d.extent.overlaps(self.extent_of(stripe)));
        if let Some(position) = self.ready.iter().position(|&stripe| is_free(stripe)) {
            return self.ready.remove(position);
        }
        if self.queue.is_empty() {
            return None;
        }
        let stripe = self.dirty.next_from(self.swept_to)?.lba / self.stripe_sectors;
        is_free(stripe).then_some(stripe)
    }

    fn one_less(&mut self, tag: RequestTag, out: &mut VecDeque<CacheOp>) {
        let Some(left) = self.left.get_mut(&tag) else { return };
        *left -= 1;
        if *left == 0 {
            self.left.remove(&tag);
            out.push_back(CacheOp::Written { tag });
        }
    }

    fn extent_of(&self, stripe: u64) -> Extent {
        Extent::new(stripe * self.stripe_sectors, self.stripe_sectors)
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> u64 {
        self.held
    }
}
