//! What the thread does with a row that nobody holds.

use super::pool::{RowPhase, RowWork, TO_HANDLE};
use super::{StripeCache, LOCKED, OVERWRITE, OWN, UNKNOWN, UP_TO_DATE, WANT_READ, WANT_WRITE, WRITING};
use crate::plan::NONE;

/// Rows that the thread takes together (`MAX_STRIPE_BATCH`).
const TAKEN_TOGETHER: usize = 8;

/// What there is in a row.
#[derive(Debug, Default)]
struct RowCounts {
    locked: u32,
    to_read: u32,
    to_write: u32,
    /// Of those, pages that are written in part.
    in_part: u32,
    written: u32,
}

impl StripeCache {
    /// Takes back what was released and looks at the next rows; false where there was nothing to do.
    pub(super) fn run_thread(&mut self) -> bool {
        let has_released = !self.released.is_empty();
        self.has_grown &= !has_released;
        while let Some(id) = self.released.pop_front() {
            self.row_mut(id).is_released = false;
            self.release_at_once(id);
        }
        let (mut taken, mut count) = ([NONE; TAKEN_TOGETHER], 0);
        while count < TAKEN_TOGETHER {
            let Some(id) = self.pool.pop(TO_HANDLE) else { break };
            self.row_mut(id).holders = 1;
            (taken[count], count) = (id, count + 1);
        }
        taken[..count].iter().for_each(|&id| self.handle(id));
        taken[..count].iter().for_each(|&id| self.release_at_once(id));
        if count == 0 && !has_released {
            return self.grow();
        }
        true
    }

    /// Makes the row that was missing, if any.
    fn grow(&mut self) -> bool {
        let grows = std::mem::take(&mut self.wants_row) && self.pool.rows.len() < super::MOST_ROWS;
        if grows {
            self.has_grown = true;
            let id = self.pool.add();
            self.pages.resize(self.pages.len() + self.leaves.len(), UNKNOWN);
            self.pool.active += 1;
            self.row_mut(id).holders = 1;
            self.release(id);
        }
        grows
    }

    fn handle(&mut self, id: u32) {
        self.row_mut(id).to_handle = false;
        if self.rides_in_batch(id) {
            return;
        }
        if self.row(id).work == RowWork::Wanted && self.row(id).batch_head == NONE {
            self.row_mut(id).work = RowWork::Going;
        }
        self.end_reads(id);
        let mut counts = self.counts(id);
        if self.row(id).phase == RowPhase::Computed {
            self.row_mut(id).phase = RowPhase::Idle;
            let lost = self.lost_of(id);
            for position in 0..self.parity.members {
                let is_parity = self.is_parity(id, position);
                let page = self.page_mut(id, position);
                if page.is(LOCKED) && (is_parity || page.written != NONE) {
                    page.flags |= WANT_WRITE;
                    let settles = lost.count_ones() <= 1 && (lost >> position & 1 == 1 || is_parity && lost == 0);
                    if settles && self.row(id).work == RowWork::Going {
                        self.row_mut(id).work = RowWork::Settled;
                    }
                }
            }
        }
        if counts.written > 0 && self.has_parity(id) {
            self.end_writes(id);
        }
        let is_written_degraded = counts.to_write > 0 && self.lost_of(id) != 0;
        let is_filled = counts.to_read + counts.in_part > 0 || is_written_degraded || self.is_worked_on(id);
        if is_filled && self.row(id).phase == RowPhase::Idle {
            self.fill(id, &mut counts);
        }
        if counts.to_write > 0 && self.row(id).phase == RowPhase::Idle {
            self.prepare_write(id, &mut counts);
        }
        self.go_on_with_work(id);
        self.issue(id);
    }

    /// Whether another row of its batch is handled for it.
    fn rides_in_batch(&mut self, id: u32) -> bool {
        let row = self.row_mut(id);
        let head = row.batch_head;
        if std::mem::take(&mut row.batch_ready) && head == id {
            let mut at = id;
            while at != NONE {
                self.row_mut(at).batch_ready = false;
                at = self.row(at).batch_next;
            }
        }
        head != NONE && head != id
    }

    fn counts(&self, id: u32) -> RowCounts {
        let mut counts = RowCounts::default();
        for page in &self.pages[self.pages_of(id)] {
            counts.locked += u32::from(page.is(LOCKED));
            counts.to_read += u32::from(page.to_read != NONE);
            counts.to_write += u32::from(page.to_write != NONE);
            counts.in_part += u32::from(page.to_write != NONE && !page.is(OVERWRITE));
            counts.written += u32::from(page.written != NONE);
        }
        counts
    }

    /// Whether the parities are known and not on their way.
    fn has_parity(&self, id: u32) -> bool {
        let is_known = |position| self.page(id, position).flags & (LOCKED | UP_TO_DATE) == UP_TO_DATE;
        let settled = |position| self.is_lost(id, position) || is_known(position);
        (0..self.parity.members).filter(|&position| self.is_parity(id, position)).all(settled)
    }

    /// Has requests a page less to wait for: those whose list begins with `rider`.
    fn let_off(&mut self, mut rider: u32) {
        while rider != NONE {
            let done = self.riders.remove(rider as usize);
            self.uncount(done.request);
            rider = done.next;
        }
    }

    /// Completes the reads of pages that are known.
    fn end_reads(&mut self, id: u32) {
        for position in (0..self.parity.members).rev() {
            let page = self.page_mut(id, position);
            if page.to_read == NONE || !page.is(UP_TO_DATE) {
                continue;
            }
            page.asked = 0;
            let riders = std::mem::replace(&mut page.to_read, NONE);
            self.let_off(riders);
            if self.row(id).batch_head == NONE {
                self.row_mut(id).is_awaited = false;
            }
        }
    }

    /// Reads pages that are asked for, or without which no parity can be computed; computes those of missing members.
    fn fill(&mut self, id: u32, counts: &mut RowCounts) {
        let is_wanted = |position: &u32| self.is_wanted(id, *position);
        let wanted = (0..self.parity.members).filter(is_wanted).fold(0_u64, |all, position| all | 1 << position);
        let lost = self.lost_of(id);
        let is_known = |position| lost >> position & 1 == 1 || self.page(id, position).is(UP_TO_DATE);
        if wanted & lost != 0 && (0..self.parity.members).all(is_known) {
            let row = self.row_mut(id);
            (row.phase, row.holders) = (RowPhase::Recovering, row.holders + 1);
            return self.make_ready(id, self.parity.members);
        }
        for position in 0..self.parity.members {
            if (wanted & !lost) >> position & 1 == 1 {
                self.page_mut(id, position).flags |= LOCKED | WANT_READ;
                counts.locked += 1;
            }
        }
    }

    /// Whether a page is needed as it is (`need_this_block`).
    fn is_wanted(&self, id: u32, position: u32) -> bool {
        let page = self.page(id, position);
        if page.flags & (LOCKED | UP_TO_DATE) != 0 {
            return false;
        }
        let is_in_part = |page: &super::CachedPage| page.to_write != NONE && !page.is(OVERWRITE);
        if page.to_read != NONE || is_in_part(page) || self.is_worked_on(id) {
            return true;
        }
        // Nobody looks around for what is there.
        let missing = self.lost_of(id);
        if missing == 0 {
            return false;
        }
        let lost = || (0..self.parity.members).filter(|position| missing >> position & 1 == 1);
        let unknown = || lost().filter(|&position| !self.page(id, position).is(UP_TO_DATE));
        let is_asked = |position| self.page(id, position).to_read != NONE;
        if lost().any(is_asked) {
            return true;
        }
        if (0..self.parity.members).all(|position| self.page(id, position).to_write == NONE) {
            return false;
        }
        if unknown().any(|position| is_in_part(self.page(id, position))) {
            return true;
        }
        // Without two, neither the old parity nor the rest of the stripe may be there.
        let rests = |position| self.is_parity(id, position) || self.page(id, position).to_write != NONE;
        let reconstructs = lost().count() > 1 && unknown().any(rests);
        reconstructs
            && unknown().any(|position| !self.is_parity(id, position) && !self.page(id, position).is(OVERWRITE))
    }

    /// Completes what was written, of the whole batch.
    fn end_writes(&mut self, id: u32) {
        for position in (0..self.parity.members).rev() {
            if self.page(id, position).flags & (LOCKED | UP_TO_DATE) != UP_TO_DATE {
                continue;
            }
            let mut at = id;
            while at != NONE {
                let riders = std::mem::replace(&mut self.page_mut(at, position).written, NONE);
                self.let_off(riders);
                at = self.row(at).batch_next;
            }
        }
        if self.row(id).batch_head != NONE {
            self.end_batch(id);
        }
    }

    /// The rows of a batch are for themselves again, and know what its first knows.
    fn end_batch(&mut self, head: u32) {
        let mut at = self.row(head).batch_next;
        while at != NONE {
            for position in 0..self.parity.members {
                self.page_mut(at, position).flags = self.page(head, position).flags;
            }
            let phase = self.row(head).phase;
            let row = self.row_mut(at);
            (row.phase, row.to_handle, row.batch_head, row.is_awaited) = (phase, false, NONE, false);
            let next = std::mem::replace(&mut row.batch_next, NONE);
            self.release(at);
            at = next;
        }
        let row = self.row_mut(head);
        (row.batch_head, row.batch_next, row.is_awaited) = (NONE, NONE, false);
    }

    /// Reads what the new parity needs, or begins to compute it.
    fn prepare_write(&mut self, id: u32, counts: &mut RowCounts) {
        let (modify, reconstruct) = (self.pages_to_modify(id), self.pages_to_reconstruct(id));
        self.row_mut(id).to_handle = true;
        if modify > 0 && reconstruct > 0 {
            let modifies = self.policy.prefers_modify(modify, reconstruct);
            for position in 0..self.parity.members {
                let reads = if modifies { self.is_modified(id, position) } else { self.is_rest(id, position) };
                if reads && !self.is_lost(id, position) {
                    self.page_mut(id, position).flags |= LOCKED | WANT_READ;
                    counts.locked += 1;
                }
            }
        } else if counts.locked == 0 {
            self.compute(id, reconstruct == 0);
        }
    }

    /// Whether the old page is needed for read-modify-write and not known.
    fn is_modified(&self, id: u32, position: u32) -> bool {
        let page = self.page(id, position);
        (page.to_write != NONE || self.is_parity(id, position)) && page.flags & (LOCKED | UP_TO_DATE) == 0
    }

    /// Whether the page is of the rest of the stripe, for reconstruct-write, and not known.
    fn is_rest(&self, id: u32, position: u32) -> bool {
        !self.is_parity(id, position) && self.page(id, position).flags & (OVERWRITE | LOCKED | UP_TO_DATE) == 0
    }

    fn pages_to_modify(&self, id: u32) -> u32 {
        (0..self.parity.members).filter(|&position| self.is_modified(id, position)).map(|p| self.reads_of(id, p)).sum()
    }

    fn pages_to_reconstruct(&self, id: u32) -> u32 {
        (0..self.parity.members).filter(|&position| self.is_rest(id, position)).map(|p| self.reads_of(id, p)).sum()
    }

    /// How many reads a page is counted for: of one that cannot be read more than there ever are.
    fn reads_of(&self, id: u32, position: u32) -> u32 {
        if self.is_lost(id, position) {
            2 * self.parity.members
        } else {
            1
        }
    }

    /// Takes the pages that are to be written and computes the parities.
    fn compute(&mut self, id: u32, reconstructs: bool) {
        let mut taken = 0;
        for position in 0..self.parity.members {
            let page = self.page_mut(id, position);
            if page.to_write == NONE || !(reconstructs || page.is(UP_TO_DATE)) {
                continue;
            }
            taken += 1;
            page.flags = (page.flags | LOCKED) & !UP_TO_DATE;
            let mut at = id;
            while at != NONE {
                let page = self.page_mut(at, position);
                (page.written, page.to_write, page.covered) = (page.to_write, NONE, 0);
                self.row_mut(at).overwritten = 0;
                at = self.row(at).batch_next;
            }
        }
        if taken == 0 {
            return;
        }
        for position in 0..self.parity.members {
            if self.is_parity(id, position) {
                let page = self.page_mut(id, position);
                page.flags = (page.flags | LOCKED) & !UP_TO_DATE;
            }
        }
        let row = self.row_mut(id);
        (row.phase, row.holders) = (RowPhase::Computing, row.holders + 1);
        if row.batch_head == NONE {
            row.is_awaited = false;
        }
        self.make_ready(id, self.parity.members);
    }

    /// Sectors that the computation of a row, with its batch, reads and writes.
    pub(super) fn computed_sectors(&self, id: u32) -> (u64, u64) {
        let mut rows = 0;
        let mut at = id;
        while at != NONE {
            (rows, at) = (rows + 1, self.row(at).batch_next);
        }
        if self.row(id).phase == RowPhase::Recovering {
            let lost = u64::from(self.lost_of(id).count_ones());
            return ((u64::from(self.parity.members) - lost) * self.row_sectors, lost * self.row_sectors);
        }
        if self.row(id).phase == RowPhase::Comparing {
            return (u64::from(self.parity.members) * self.row_sectors, 0);
        }
        let known = self.pages[self.pages_of(id)].iter().filter(|page| page.flags & (LOCKED | UP_TO_DATE) != 0);
        let inputs = u64::from(crate::plan::place(known.count())) - u64::from(self.parity.parities);
        (rows * inputs * self.row_sectors, rows * u64::from(self.parity.parities) * self.row_sectors)
    }

    pub(super) fn end_computation(&mut self, id: u32) {
        if self.row(id).phase == RowPhase::Comparing {
            self.row_mut(id).phase = RowPhase::Compared;
            return;
        }
        if self.row(id).phase == RowPhase::Recovering {
            for position in 0..self.parity.members {
                if self.is_lost(id, position) {
                    self.page_mut(id, position).flags |= UP_TO_DATE;
                }
            }
            self.row_mut(id).phase = RowPhase::Idle;
            return;
        }
        for position in 0..self.parity.members {
            if self.is_parity(id, position) || self.page(id, position).written != NONE {
                self.page_mut(id, position).flags |= UP_TO_DATE;
            }
        }
        self.row_mut(id).phase = RowPhase::Computed;
    }

    /// Makes what the row wants ready, members from the last to the first and each for the whole batch: so md goes through
    /// them.
    fn issue(&mut self, id: u32) {
        let own = if self.is_worked_on(id) { OWN } else { 0 };
        for position in (0..self.parity.members).rev() {
            let page = self.page_mut(id, position);
            let wanted = page.flags & (WANT_READ | WANT_WRITE);
            if wanted == 0 {
                continue;
            }
            page.flags &= !wanted;
            if self.absent >> position & 1 == 1 {
                // Nobody is there to write it: it is done.
                self.page_mut(id, position).flags &= !LOCKED;
                self.row_mut(id).to_handle = true;
                continue;
            }
            let mut at = id;
            while at != NONE {
                let page = self.page_mut(at, position);
                page.flags |= LOCKED | own | if wanted == WANT_WRITE { WRITING } else { 0 };
                self.row_mut(at).holders += 1;
                self.row_mut(id).holders += u32::from(at != id);
                self.make_ready(at, position);
                at = self.row(at).batch_next;
            }
        }
    }

    pub(super) fn make_ready(&mut self, id: u32, position: u32) {
        self.outstanding += 1;
        self.ready.push_back(self.slot(id, position));
    }
}
