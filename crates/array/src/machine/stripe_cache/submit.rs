//! How requests hang their pages into rows.

use super::pool::{RowPool, PLUGGED};
use super::{Queued, RequestPage, StripeCache, LOCKED, OVERWRITE, UNKNOWN};
use crate::plan::NONE;
use raidlab_types::number::u32_from;
use raidlab_types::{Extent, OpKind};

/// Pages of a request that are submitted together (`RAID5_MAX_REQ_STRIPES`); a longer one is several.
const MOST_PAGES: u64 = 256;

/// What the submitter waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    No,
    /// A row for another number, of this class.
    Row(u32),
    /// That the pages of this row are taken.
    Pages(u32),
}

/// A request, or the part of it, that is being submitted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Submission {
    request: u32,
    kind: OpKind,
    force_unit_access: bool,
    /// Sectors that are left when this part is done.
    rest: Extent,
    /// First sector of the first page, the first sector that is wanted, and one past the last.
    first: u64,
    begin: u64,
    end: u64,
    /// Pages that hang in no row yet, a bit each: one more than [`MOST_PAGES`] where it begins within a page.
    todo: [u64; 5],
    /// The page that is next.
    next: u32,
    /// The row before, if it may begin a batch; held.
    batch_last: u32,
}

impl Submission {
    fn todo_from(&self, page: u32) -> Option<u32> {
        (page..320).find(|&p| self.todo[p as usize / 64] >> (p % 64) & 1 == 1)
    }

    /// The next page after those before the one looked at last, around the end.
    fn next_page(&self) -> Option<u32> {
        self.todo_from(self.next).or_else(|| self.todo_from(0))
    }

    fn clear(&mut self, page: u32) {
        self.todo[page as usize / 64] &= !(1 << (page % 64));
    }
}

impl StripeCache {
    /// Takes a request.
    pub(crate) fn submit(&mut self, request: u32, extent: Extent, kind: OpKind, force_unit_access: bool) {
        self.count(request);
        self.queue.push_back(Queued { request, extent, kind, force_unit_access });
        if self.waiting == Waiting::No {
            self.run_submitter();
        }
    }

    /// Lets the submitter go on, if what it waited for has come.
    pub(super) fn resume(&mut self) -> bool {
        let comes = match self.waiting {
            Waiting::No => false,
            Waiting::Row(class) => self.gives_row(class),
            Waiting::Pages(row) => !self.row(row).is_awaited,
        };
        if comes {
            (self.waiting, self.is_full) = (Waiting::No, false);
            self.run_submitter();
        }
        self.resume_worker() || comes
    }

    /// Whether one who waits for a row of this class gets one: once all were taken, not before a quarter are idle.
    pub(super) fn gives_row(&self, class: u32) -> bool {
        let enough = u64::from(self.pool.active) * 4 < 3 * self.pool.rows.len() as u64;
        !self.pool.is_empty(class) && (enough || !self.is_full)
    }

    fn run_submitter(&mut self) {
        loop {
            let Some(mut submission) = self.submission.take().or_else(|| self.next_submission()) else { return };
            while let Some(page) = submission.next_page() {
                submission.next = page;
                self.waiting = self.hang_in(&mut submission);
                if self.waiting != Waiting::No {
                    self.drop_batch_last(&mut submission);
                    self.submission = Some(submission);
                    return self.unplug();
                }
            }
            self.drop_batch_last(&mut submission);
            self.unplug();
            if submission.rest.sectors > 0 {
                let Submission { request, kind, force_unit_access, rest: extent, .. } = submission;
                self.queue.push_front(Queued { request, extent, kind, force_unit_access });
            } else {
                self.uncount(submission.request);
            }
        }
    }

    fn next_submission(&mut self) -> Option<Submission> {
        let Queued { request, extent, kind, force_unit_access } = self.queue.pop_front()?;
        let sectors = extent.sectors.min(MOST_PAGES * self.row_sectors);
        let (begin, end) = (extent.lba, extent.lba + sectors);
        let first = begin / self.row_sectors * self.row_sectors;
        let pages = u32_from((end - first).div_ceil(self.row_sectors));
        let mut todo = [0; 5];
        for (i, word) in (0..).zip(&mut todo) {
            let bits = pages.saturating_sub(64 * i).min(64);
            *word = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
        }
        let rest = Extent::new(end, extent.sectors - sectors);
        let next = u32_from((self.lowest(first, begin, sectors) - first) / self.row_sectors);
        let batch_last = NONE;
        Some(Submission { request, kind, force_unit_access, rest, first, begin, end, todo, next, batch_last })
    }

    /// Where a request begins: at the page lowest in the chunks, as far as md finds it. It takes the next chunk for one of
    /// the same stripe where there is a member behind this one, and for none where there is not.
    fn lowest(&self, first: u64, begin: u64, sectors: u64) -> u64 {
        let (chunk, within) = (begin / self.parity.chunk, first % self.parity.chunk);
        if self.parity.chunk - within >= sectors {
            return first;
        }
        let data = u64::from(self.parity.data());
        let p = self.parity.p_position(chunk / data);
        let parity = |position| position == p || (self.parity.parities == 2 && position == self.parity.q_position(p));
        let behind = self.parity.position_of(p, u32_from(chunk % data)) + 1..self.parity.members;
        match behind.into_iter().any(|position| !parity(position)) {
            true => first + self.parity.chunk - within,
            false => first,
        }
    }

    /// Hangs all pages of one row in; says what has to be waited for first.
    fn hang_in(&mut self, submission: &mut Submission) -> Waiting {
        let (number, p) = self.locate(submission.first + u64::from(submission.next) * self.row_sectors);
        let Some(id) = self.hold(number, p) else {
            self.is_full = true;
            return Waiting::Row(RowPool::class_of_number(number));
        };
        let wanted = |lba: u64| (submission.first..submission.end).contains(&lba);
        let parts = |page: u64| {
            let (lo, hi) = (submission.begin.max(page), submission.end.min(page + self.row_sectors));
            StripeCache::bits(lo - page, hi - page)
        };
        let overlaps = self.row(id).batch_head != NONE
            || (0..self.parity.data()).any(|column| {
                let (lba, position) = (self.page_lba(number, column), self.parity.position_of(p, column));
                let page = self.page(id, position);
                let taken = if submission.kind == OpKind::Write { page.covered } else { page.asked };
                wanted(lba) && taken & parts(lba) != 0
            });
        if overlaps {
            self.row_mut(id).is_awaited = true;
            self.release(id);
            return Waiting::Pages(id);
        }
        for column in 0..self.parity.data() {
            let lba = self.page_lba(number, column);
            if !(submission.first..submission.end).contains(&lba) {
                continue;
            }
            let (lo, hi) = (submission.begin.max(lba) - lba, submission.end.min(lba + self.row_sectors) - lba);
            self.add_rider(id, self.parity.position_of(p, column), submission, StripeCache::bits(lo, hi));
            submission.clear(u32_from((lba - submission.first) / self.row_sectors));
        }
        if self.can_batch(id) {
            self.join_batch(id, number, submission.batch_last);
            self.drop_batch_last(submission);
            self.row_mut(id).holders += 1;
            submission.batch_last = id;
        }
        let row = self.row_mut(id);
        row.to_handle = true;
        row.force_unit_access |= submission.force_unit_access;
        match self.pool.is_plugged(id) {
            true => self.release(id),
            false => self.pool.push(PLUGGED, id),
        }
        Waiting::No
    }

    /// The row of this number, held.
    pub(super) fn hold(&mut self, number: u64, p: u32) -> Option<u32> {
        if let Some(id) = self.pool.hold(number) {
            return Some(id);
        }
        if self.is_full {
            return None;
        }
        let id = self.pool.reuse(number, p);
        match id {
            Some(id) => {
                let pages = self.pages_of(id);
                self.pages[pages].fill(UNKNOWN);
            }
            None => self.wants_row |= !self.has_grown,
        }
        id
    }

    fn add_rider(&mut self, id: u32, position: u32, submission: &Submission, bits: u64) {
        let (request, writes) = (submission.request, submission.kind == OpKind::Write);
        self.count(request);
        let page = self.page(id, position);
        let next = if writes { page.to_write } else { page.to_read };
        let rider = u32_from(self.riders.insert(RequestPage { request, next }));
        let whole = StripeCache::bits(0, self.row_sectors);
        let page = self.page_mut(id, position);
        if !writes {
            (page.to_read, page.asked) = (rider, page.asked | bits);
            // Who is handled with others is not asked for his own pages.
            self.row_mut(id).batch_ready = false;
            return;
        }
        (page.to_write, page.covered) = (rider, page.covered | bits);
        let becomes_whole = page.covered == whole && !page.is(OVERWRITE);
        if becomes_whole {
            page.flags |= OVERWRITE;
            self.row_mut(id).overwritten += 1;
        }
    }

    /// Whether the row is written whole and nobody has looked at it yet.
    fn can_batch(&self, id: u32) -> bool {
        let row = self.row(id);
        row.batch_ready && row.overwritten == self.parity.data()
    }

    /// Adds a row to the batch of the row before it in the chunk, if that is to be written whole as well.
    fn join_batch(&mut self, id: u32, number: u64, last: u32) {
        if (number * self.row_sectors).is_multiple_of(self.parity.chunk) {
            return;
        }
        let before = match last != NONE && self.row(last).number == Some(number - 1) {
            true => {
                self.row_mut(last).holders += 1;
                Some(last)
            }
            false => self.pool.hold(number - 1),
        };
        let Some(before) = before else { return };
        if self.can_batch(before) && self.row(id).batch_head == NONE {
            let head = match self.row(before).batch_head {
                NONE => before,
                head => head,
            };
            self.row_mut(before).batch_head = head;
            let after = std::mem::replace(&mut self.row_mut(before).batch_next, id);
            let row = self.row_mut(id);
            (row.batch_head, row.batch_next) = (head, after);
            row.holders += 1;
        }
        self.release(before);
    }

    fn drop_batch_last(&mut self, submission: &mut Submission) {
        let last = std::mem::replace(&mut submission.batch_last, NONE);
        if last != NONE {
            self.release(last);
        }
    }

    /// Hands what the submitter has gathered to the thread.
    fn unplug(&mut self) {
        while let Some(id) = self.pool.pop(PLUGGED) {
            debug_assert!(self.row(id).to_handle || self.page(id, 0).is(LOCKED), "what was hung in is looked at");
            self.release_at_once(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_from_the_lowest_on_and_around_the_end() {
        let mut submission = Submission {
            request: 0,
            kind: OpKind::Write,
            force_unit_access: false,
            rest: Extent::new(0, 0),
            first: 0,
            begin: 0,
            end: 0,
            todo: [0b1_0011, 0, 0, 0, 1],
            next: 4,
            batch_last: NONE,
        };
        let mut seen = Vec::new();
        while let Some(page) = submission.next_page() {
            submission.next = page;
            submission.clear(page);
            seen.push(page);
        }
        assert_eq!(seen, [4, 256, 0, 1]);
        assert_eq!(StripeCache::bits(2, 5), 0b1_1100);
        assert_eq!(StripeCache::bits(0, 64), u64::MAX);
    }
}
