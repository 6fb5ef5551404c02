//! Written data that wait in the buffer for the medium, and the order in which they get there.
//!
//! Invariants:
//! - Extents rise by address and overlap nowhere: what is written again replaces what waited.
//! - Nothing is put on the medium before it has come over the bus.
//! - Nothing is destaged later than `now` unless a command asks for it: what happens behind commands is worked out when the
//!   next one comes.
//! - No allocation: a command adds two extents at most, and room for so many is kept.

use super::media::Media;
use super::write::{write_media, Data, MediaWrite};
use super::Drive;

/// A run of sectors that were written by one command and are not yet on the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DirtyExtent {
    first: u64,
    end: u64,
    /// When they had come over the bus.
    there_at: u64,
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dirty {
    extents: Vec<DirtyExtent>,
    sectors: u64,
    /// Something had to wait for room.
    was_full: bool,
    /// Extents and sectors taken so far.
    taken: (u64, u64),
}

impl Dirty {
    /// Room for so many extents.
    pub(super) fn new(extents: u32) -> Self {
        let extents = Vec::with_capacity(if extents == 0 { 0 } else { extents as usize + 2 });
        Dirty { extents, ..Dirty::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// Whether `sectors` more, in one extent, stay within these bounds.
    pub(super) fn has_room(&self, sectors: u64, bounds: (u64, u32)) -> bool {
        self.sectors + sectors <= bounds.0 && self.extents.len() < bounds.1 as usize
    }

    /// A write of so many sectors comes.
    pub(super) fn note_room(&mut self, sectors: u64, bounds: (u64, u32)) {
        self.was_full |= !self.has_room(sectors, bounds);
    }

    /// Whether all of `lba..end` waits here.
    pub(super) fn covers(&self, lba: u64, end: u64) -> bool {
        let mut next = lba;
        let from = self.extents.partition_point(|extent| extent.end <= lba);
        for extent in &self.extents[from..] {
            if next >= end || extent.first > next {
                break;
            }
            next = extent.end;
        }
        next >= end
    }

    /// Takes `lba..end` in.
    pub(super) fn write(&mut self, lba: u64, end: u64, there_at: u64) {
        self.supersede(lba, end);
        let at = self.extents.partition_point(|extent| extent.first < lba);
        self.extents.insert(at, DirtyExtent { first: lba, end, there_at });
        self.sectors += end - lba;
        self.taken = (self.taken.0 + 1, self.taken.1 + end - lba);
    }

    /// Forgets what is written anew.
    pub(super) fn supersede(&mut self, lba: u64, end: u64) {
        let mut at = self.extents.partition_point(|extent| extent.end <= lba);
        while let Some(&old) = self.extents.get(at).filter(|extent| extent.first < end) {
            self.sectors -= old.end.min(end) - old.first.max(lba);
            let (before, behind) = (old.first < lba, end < old.end);
            if before {
                self.extents[at].end = lba;
                at += 1;
                if behind {
                    self.extents.insert(at, DirtyExtent { first: end, ..old });
                }
            } else if behind {
                self.extents[at].first = end;
            } else {
                self.extents.remove(at);
            }
            if behind {
                break;
            }
        }
    }

    /// When the first of them can be destaged.
    fn there_from(&self) -> u64 {
        self.extents.iter().map(|extent| extent.there_at).min().unwrap_or(u64::MAX)
    }

    /// The extent that movement and rotation reach first for an arm at `track` that is free at `from`, of those that are
    /// there by then. Looks both ways from `lba`, where the arm stands, as far as movement alone is no longer.
    fn nearest(&self, media: Media, track: (u32, u32), lba: u64, from: u64) -> Option<usize> {
        let mut best: Option<(u64, usize)> = None;
        let mut look = |at: usize| {
            let extent = &self.extents[at];
            let approach = media.approach(track, from, extent.first, true);
            if extent.there_at <= from && best.is_none_or(|(start, _)| approach.start < start) {
                best = Some((approach.start, at));
            }
            best.is_some_and(|(start, _)| from + approach.seek > start)
        };
        let middle = self.extents.partition_point(|extent| extent.first < lba);
        let (mut up, mut down) = (middle..self.extents.len(), (0..middle).rev());
        let (mut above, mut below) = (true, true);
        while above || below {
            above = above && up.next().is_some_and(|at| !look(at));
            below = below && down.next().is_some_and(|at| !look(at));
        }
        best.map(|(_, at)| at)
    }
}

impl Drive {
    /// Brings what goes on behind commands up to `now`: destaging where the arm has nothing else to do, else reading ahead.
    pub(crate) fn advance(&mut self, now: u64) {
        while !self.dirty.is_empty() {
            let from = self.arm.free_at.max(self.reads_rest_until).max(self.dirty.there_from());
            if from >= now {
                break;
            }
            self.destage(from);
        }
        self.catch_up(now);
    }

    /// Puts the nearest of the waiting extents on the medium, not before `from`; reading ahead ends for it.
    pub(super) fn destage(&mut self, from: u64) -> MediaWrite {
        self.catch_up(from);
        let way = self.stop_ahead(from);
        let from = (from + way.stop_delay).max(way.blocked_until).max(self.arm.free_at).max(self.dirty.there_from());
        let media = Media { model: &self.model, phase: self.phase };
        let Some(at) = self.dirty.nearest(media, self.arm.track(), self.arm_lba, from) else {
            return MediaWrite { end: from, ..MediaWrite::default() };
        };
        let extent = self.dirty.extents.remove(at);
        self.dirty.sectors -= extent.end - extent.first;
        let written = write_media(media, &mut self.arm, (extent.first, extent.end), from, 0, &Data::Buffered);
        self.arm_lba = extent.end;
        written
    }

    /// Destages until `enough`; what that took of the arm, and when it was done.
    pub(super) fn destage_until(&mut self, from: u64, enough: impl Fn(&Dirty) -> bool) -> MediaWrite {
        let mut all = MediaWrite { end: from, ..MediaWrite::default() };
        while !self.dirty.is_empty() && !enough(&self.dirty) {
            let written = self.destage(all.end);
            all.seek += written.seek;
            all.rotation += written.rotation;
            all.end = written.end;
        }
        all
    }

    /// How many writes there is room for; none where the drive does not order its writes.
    pub(crate) fn write_cache_extents(&self) -> u64 {
        u64::from(self.model.rules.write_cache_extents)
    }

    /// Whether the write cache has once been full, or has taken so many times what it holds; true where there is none.
    pub(crate) fn has_filled_cache(&self, times: u64) -> bool {
        let ((sectors, extents), (writes, written)) = (self.write_cache(), self.dirty.taken);
        self.dirty.was_full || writes >= times * u64::from(extents) || written >= times * sectors
    }

    /// The bounds of what may wait: sectors and extents.
    pub(super) fn write_cache(&self) -> (u64, u32) {
        (self.model.rules.write_cache_sectors, self.model.rules.write_cache_extents)
    }

    /// Whether this many sectors would be taken into the buffer and go to the medium in an order of the drive's own.
    pub(super) fn takes(&self, sectors: u64, durable: bool) -> bool {
        self.model.rules.orders_writes() && !durable && sectors <= self.model.rules.write_cache_sectors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_types::number::usize_from;

    /// What waits, sector by sector: the time of each.
    fn sectors(dirty: &Dirty) -> Vec<Option<u64>> {
        let mut all = vec![None; 12];
        for extent in &dirty.extents {
            for lba in extent.first..extent.end {
                assert!(all[usize_from(lba)].replace(extent.there_at).is_none(), "{extent:?} overlaps another");
            }
        }
        all
    }

    /// Every sequence of three writes within nine sectors, against one cell a sector.
    #[test]
    fn what_is_written_again_replaces_what_waited() {
        let ranges: Vec<(u64, u64)> = (0..9).flat_map(|a| (a + 1..=9).map(move |b| (a, b))).collect();
        for &a in &ranges {
            for &b in &ranges {
                for &c in &ranges {
                    let (mut dirty, mut cells) = (Dirty::new(3), vec![None; 12]);
                    for (time, (lba, end)) in [a, b, c].into_iter().enumerate() {
                        dirty.write(lba, end, time as u64);
                        cells[usize_from(lba)..usize_from(end)].fill(Some(time as u64));
                    }
                    assert_eq!(sectors(&dirty), cells);
                    assert!(dirty.extents.is_sorted_by_key(|extent| extent.first));
                    assert_eq!(dirty.sectors, cells.iter().flatten().count() as u64);
                    assert_eq!(dirty.extents.capacity(), 5, "grew");
                    for &(lba, end) in &ranges {
                        let all = cells[usize_from(lba)..usize_from(end)].iter().all(Option::is_some);
                        assert_eq!(dirty.covers(lba, end), all);
                    }
                }
            }
        }
    }
}
