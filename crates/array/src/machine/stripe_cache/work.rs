//! The array's own work on rows: `raid5_sync_request`, and what `handle_stripe` does of it.
//!
//! There is one worker. It takes row after row and waits where there is none, as the submitter does; who had to wait lets
//! others go first once it has its row, for as long as whoever has a clock says.

use super::pool::{RowPhase, RowPool, RowWork};
use super::{StripeCache, LOCKED, OWN, UP_TO_DATE, WANT_WRITE};

/// The row that the array's own work is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::machine) enum OwnRow {
    Free,
    /// It waits for the row of this number.
    Waits(u64),
    /// It has waited for this row, and holds it.
    Has(u32),
}

impl StripeCache {
    /// Has the worker begin with the row of this number; false where there is none, and it waits.
    pub(crate) fn work_on(&mut self, number: u64) -> bool {
        debug_assert!(self.worker == OwnRow::Free, "one row after the other");
        match self.hold(number, self.p_of(number)) {
            Some(id) => self.begin_work(id),
            None => {
                self.is_full = true;
                self.worker = OwnRow::Waits(number);
            }
        }
        self.worker == OwnRow::Free
    }

    /// Has it begin with the row for which it has waited.
    pub(crate) fn work_on_held(&mut self) {
        if let OwnRow::Has(id) = std::mem::replace(&mut self.worker, OwnRow::Free) {
            self.begin_work(id);
        }
    }

    /// The thread writes so many superblocks, and looks at no row before all are written.
    pub(crate) fn wait_for_superblocks(&mut self, count: u32) {
        self.superblocks += count;
    }

    pub(crate) fn superblock_done(&mut self) {
        self.superblocks -= 1;
    }

    /// It is to begin with no further row.
    pub(crate) fn stop_worker(&mut self) {
        if let OwnRow::Has(id) = std::mem::replace(&mut self.worker, OwnRow::Free) {
            self.release(id);
        }
    }

    pub(crate) fn worker(&self) -> OwnRow {
        self.worker
    }

    /// Whether a row is done.
    pub(crate) fn has_worked(&self) -> bool {
        !self.worked.is_empty()
    }

    /// The next row that is done.
    pub(crate) fn poll_worked(&mut self) -> Option<u64> {
        self.worked.pop_front()
    }

    /// Members are others than they were, of which none is missing that was not.
    pub(crate) fn set_members(&mut self, lost: u64, absent: u64) {
        (self.lost, self.absent) = (lost, absent);
    }

    /// Members that are rebuilt hold the rows below this one.
    pub(crate) fn set_valid(&mut self, rows: u64) {
        self.valid_rows = rows;
    }

    /// Whether the operation is for the array's own work.
    pub(crate) fn is_own(&self, slot: u32) -> bool {
        let (id, position) = self.split(slot);
        position < self.parity.members && self.page(id, position).is(OWN)
    }

    fn begin_work(&mut self, id: u32) {
        let row = self.row_mut(id);
        debug_assert!(row.work == RowWork::Nothing, "one after the other");
        (row.work, row.to_handle) = (RowWork::Wanted, true);
        self.release(id);
    }

    /// Gives the worker its row, if there is one now.
    pub(super) fn resume_worker(&mut self) -> bool {
        let OwnRow::Waits(number) = self.worker else { return false };
        if !self.gives_row(RowPool::class_of_number(number)) {
            return false;
        }
        self.is_full = false;
        let held = self.hold(number, self.p_of(number));
        self.is_full = held.is_none();
        if let Some(id) = held {
            self.worker = OwnRow::Has(id);
        }
        held.is_some()
    }

    pub(super) fn is_worked_on(&self, id: u32) -> bool {
        matches!(self.row(id).work, RowWork::Going | RowWork::Settled)
    }

    /// Compares a row of which all is known, or writes what members lack; once nothing of it is on its way it is done.
    pub(super) fn go_on_with_work(&mut self, id: u32) {
        let is_on_its_way = |cache: &Self| cache.pages[cache.pages_of(id)].iter().any(|page| page.is(LOCKED));
        if self.row(id).phase == RowPhase::Compared {
            let row = self.row_mut(id);
            (row.phase, row.work, row.to_handle) = (RowPhase::Idle, RowWork::Settled, true);
        }
        if !self.is_worked_on(id) || self.row(id).phase != RowPhase::Idle || is_on_its_way(self) {
            return;
        }
        if self.row(id).work == RowWork::Settled {
            self.row_mut(id).work = RowWork::Nothing;
            let number = self.row(id).number;
            self.worked.extend(number);
            return;
        }
        self.row_mut(id).to_handle = true;
        let lost = self.lost_of(id);
        if lost == 0 {
            let row = self.row_mut(id);
            (row.phase, row.holders) = (RowPhase::Comparing, row.holders + 1);
            let p = row.p;
            if self.parity.parities == 1 {
                // A comparison may spoil it.
                self.page_mut(id, p).flags &= !UP_TO_DATE;
            }
            return self.make_ready(id, self.parity.members);
        }
        self.row_mut(id).work = RowWork::Settled;
        for position in 0..self.parity.members {
            if (lost & !self.absent) >> position & 1 == 1 {
                debug_assert!(self.page(id, position).is(UP_TO_DATE), "what is written has been computed");
                self.page_mut(id, position).flags |= LOCKED | WANT_WRITE;
            }
        }
    }
}
