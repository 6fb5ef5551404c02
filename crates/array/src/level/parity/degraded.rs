//! Writes to RAID 5 and RAID 6 with members missing or sectors unreadable.
//!
//! Three ways a band of a stripe can be written when something cannot be read:
//! - all written columns readable: read-modify-write of them and of the parities that are there;
//! - all other columns readable: reconstruct-write;
//! - neither: *restore* the unreadable rest from the parities first, then reconstruct-write with it.
//!
//! A parity that is missing is not written; with none left, only data is. One that is there but unreadable (a bad sector)
//! is written, which mends it.

use super::recover::{Outputs, Unknowns};
use super::{Band, KnownColumn, StripePlanner};
use crate::plan::{place, ComputeKind, PlanResult, Space, NONE};
use crate::weakness::Weakness;
use raidlab_types::RequestError;

impl StripePlanner<'_, '_> {
    pub(super) fn degraded_write(&mut self) -> PlanResult {
        let row = self.row;
        let is_live = |k: u32| k < row.layout.parities && self.is_written_at(row.parity_position(k));
        self.row.live = [is_live(0), is_live(1)];
        let unwritten = self.planner.views.is_weak(Weakness::DegradedWriteSkipsParity);
        if self.row.live == [false, false] || unwritten {
            self.queue_data_writes(NONE);
            return Ok(());
        }
        self.collect_ends();
        let restored = match self.restore_bands() {
            Err(_) if self.is_yet_to_come() => return Ok(()),
            restored => restored?,
        };
        let compute = self.planner.compute(row.compute_kind());
        if restored != NONE {
            self.planner.edge(restored, compute);
        }
        for b in 0..self.work.ends.len() - 1 {
            let band = self.band(b);
            if !self.is_written(band) {
                continue;
            }
            if self.modify_preferred(band) {
                self.modify_band(band, compute);
            } else {
                self.reconstruct_band(band, compute);
            }
        }
        self.queue_data_writes(compute);
        Ok(())
    }

    /// Whether the node is rebuilt as a whole and has nothing yet of this stripe: its siblings carry what is written, and
    /// the stripe is written whole when its turn comes.
    fn is_yet_to_come(&mut self) -> bool {
        let bad = std::mem::take(&mut self.planner.bad);
        let lo = self.work.columns.iter().map(|column| column.lo).min().unwrap_or(0);
        let first = Band { lo, hi: lo + 1 };
        let has_any = (0..self.row.layout.members).any(|position| self.position_readable(first, position));
        self.planner.bad = bad;
        !self.planner.scratch.restores && self.node.is_backed && !has_any
    }

    /// Whether the band can, and should, be written by read-modify-write.
    fn modify_preferred(&self, band: Band) -> bool {
        let row = &self.row;
        let readable = |column| self.column_readable(band, column);
        let written = |column| self.covering(band, column).is_some();
        let parity_readable = |k: u32| self.position_readable(band, row.parity_position(k));
        let data = 0..row.layout.data();
        let can_modify = data.clone().filter(|&c| written(c)).all(readable)
            && (0..2).all(|k| !row.live[k as usize] || parity_readable(k));
        let can_reconstruct = data.clone().filter(|&c| !written(c)).all(readable);
        let is_open = can_modify && can_reconstruct || self.planner.views.is_weak(Weakness::ModifyPrefersBlindly);
        if !is_open {
            return can_modify;
        }
        let d = data.clone().filter(|&c| written(c)).count();
        let modify = d + row.live.iter().filter(|&&p| p).count();
        let reconstruct = data.count() - d;
        reconstruct > 0 && self.planner.policy.prefers_modify(place(modify), place(reconstruct))
    }

    /// Whether a reconstruct-write of the band needs the column's old content and cannot read it.
    fn rest_lost(&self, band: Band, column: u32) -> bool {
        self.covering(band, column).is_none() && !self.column_readable(band, column)
    }

    /// Rebuilds, into scratch, what a reconstruct-write needs and cannot read; returns the computation, or `NONE`.
    fn restore_bands(&mut self) -> Result<u32, RequestError> {
        let mut restore = NONE;
        for b in 0..self.work.ends.len() - 1 {
            let band = self.band(b);
            let needs = self.is_written(band)
                && (0..self.row.layout.data()).any(|c| self.rest_lost(band, c))
                && !self.modify_preferred(band);
            if !needs {
                continue;
            }
            if restore == NONE {
                restore = self.planner.compute(ComputeKind::Recover);
            }
            self.restore_band(band, restore)?;
        }
        Ok(restore)
    }

    pub(super) fn restore_band(&mut self, band: Band, restore: u32) -> PlanResult {
        let unknowns = self.unknowns(band)?;
        let mut outputs = Outputs::default();
        for (k, &column) in unknowns.columns[..unknowns.count].iter().enumerate() {
            if self.rest_lost(band, column) {
                let offset = self.planner.allocate(band.sectors());
                outputs.push(k, (Space::Scratch, offset));
                self.work.known.push(KnownColumn { column, lo: band.lo, offset });
            }
        }
        // Old content is wanted here, so what the request writes does not serve as input: read it all.
        let reads = self.work.reads.len();
        match self.planner.views.is_weak(Weakness::RestoreTakesNewData) {
            true => self.solve_band(band, restore, &unknowns, &outputs, Self::new_column),
            false => self.solve_band(band, restore, &unknowns, &outputs, Self::any_column),
        }
        self.remember_known(band, &unknowns, reads);
        Ok(())
    }

    /// What the request writes of the column, if anything: right for nobody.
    fn new_column(&mut self, band: Band, column: u32, waiting: u32) -> (Space, u32) {
        let written = self.covering(band, column).map(|i| self.work.columns[i].memory(band));
        written.unwrap_or_else(|| self.any_column(band, column, waiting))
    }

    /// Notes where the columns read for a restore lie, so that the reconstruct-write after it reads them no second time.
    fn remember_known(&mut self, band: Band, unknowns: &Unknowns, reads: usize) {
        let known = (0..self.row.layout.data()).filter(|&c| unknowns.index_of(c).is_none());
        let found = known.zip(&self.work.reads[reads..]);
        self.work.known.extend(found.map(|(column, read)| KnownColumn { column, lo: band.lo, offset: read.offset }));
    }
}
