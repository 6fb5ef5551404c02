//! Writes to RAID 5 and RAID 6 with members missing or sectors unreadable.
//!
//! Three ways a band of a stripe can be written when something cannot be read:
//! - all written columns readable: read-modify-write of them and of the parities that are there;
//! - all other columns readable: reconstruct-write;
//! - neither: *restore* the unreadable rest from the parities first, then reconstruct-write with it.
//!
//! A parity that is missing is not written; with none left, only data is. One that is there but unreadable (a bad sector)
//! is written, which mends it.

use super::parity::{Band, Row};
use super::parity_recover::{Outputs, Unknowns};
use crate::layout::NodeId;
use crate::plan::{ComputeKind, Known, Planned, Planner, Space, NONE};
use raidlab_types::RequestError;

impl Planner<'_> {
    pub(super) fn degraded_write_row(&mut self, node: NodeId, row: Row, columns: usize) -> Planned {
        let children = &self.layout.node(node).children;
        let live = |k: u32| k < row.layout.parities && !self.views.is_lost(children[row.parity_position(k) as usize]);
        let row = Row { live: [live(0), live(1)], ..row };
        if row.live == [false, false] {
            self.queue_data_writes(&row, columns, NONE);
            return Ok(());
        }
        let bands = self.collect_bands(columns);
        let known = self.scratch.known.len();
        let restored = self.restore_bands(node, row, columns, bands)?;
        let compute = self.compute(row.compute_kind());
        if restored != NONE {
            self.edge(restored, compute);
        }
        for b in bands..self.scratch.bands.len() - 1 {
            let band = self.band(row, columns, b);
            if !self.is_written(&band) {
                continue;
            }
            if self.modify_preferred(node, &band) {
                self.modify_band(&band, compute);
            } else {
                self.reconstruct_band(&band, compute, known);
            }
        }
        self.scratch.bands.truncate(bands);
        self.scratch.known.truncate(known);
        self.queue_data_writes(&row, columns, compute);
        Ok(())
    }

    /// Whether the band can, and should, be written by read-modify-write.
    fn modify_preferred(&self, node: NodeId, band: &Band) -> bool {
        let row = &band.row;
        let readable = |column| self.column_readable(node, band, column);
        let written = |column| self.covering(band, column).is_some();
        let parity_readable = |k: u32| self.position_readable(node, band, row.parity_position(k));
        let data = 0..row.layout.data();
        let can_modify = data.clone().filter(|&c| written(c)).all(readable)
            && (0..2).all(|k| !row.live[k as usize] || parity_readable(k));
        let can_reconstruct = data.clone().filter(|&c| !written(c)).all(readable);
        if !(can_modify && can_reconstruct) {
            return can_modify;
        }
        let d = data.clone().filter(|&c| written(c)).count();
        let modify = d + row.live.iter().filter(|&&p| p).count();
        let reconstruct = data.count() - d;
        reconstruct > 0 && self.policy.prefers_modify(modify as u32, reconstruct as u32)
    }

    /// Whether a reconstruct-write of the band needs the column's old content and cannot read it.
    fn rest_lost(&self, node: NodeId, band: &Band, column: u32) -> bool {
        self.covering(band, column).is_none() && !self.column_readable(node, band, column)
    }

    /// Rebuilds, into scratch, what a reconstruct-write needs and cannot read; returns the computation, or `NONE`.
    fn restore_bands(&mut self, node: NodeId, row: Row, columns: usize, bands: usize) -> Result<u32, RequestError> {
        let mut restore = NONE;
        for b in bands..self.scratch.bands.len() - 1 {
            let band = self.band(row, columns, b);
            let needs = self.is_written(&band)
                && (0..row.layout.data()).any(|c| self.rest_lost(node, &band, c))
                && !self.modify_preferred(node, &band);
            if !needs {
                continue;
            }
            if restore == NONE {
                restore = self.compute(ComputeKind::Recover);
            }
            self.restore_band(node, &band, restore)?;
        }
        Ok(restore)
    }

    fn restore_band(&mut self, node: NodeId, band: &Band, restore: u32) -> Planned {
        let unknowns = self.unknowns(node, band)?;
        let mut outputs = Outputs::default();
        for k in 0..unknowns.count {
            let column = unknowns.columns[k];
            if self.rest_lost(node, band, column) {
                let offset = self.allocate(band.sectors());
                outputs.push(k, (Space::Scratch, offset));
                self.scratch.known.push(Known { column, lo: band.lo, offset });
            }
        }
        // Old content is wanted here, so what the request writes does not serve as input: read it all.
        let uncovered = Band { columns: self.scratch.columns.len(), ..*band };
        let reads = self.scratch.segs.len();
        self.solve_band(&uncovered, restore, &unknowns, &outputs);
        self.remember_known(band, &unknowns, reads);
        Ok(())
    }

    /// Notes where the columns read for a restore lie, so that the reconstruct-write after it reads them no second time.
    fn remember_known(&mut self, band: &Band, unknowns: &Unknowns, reads: usize) {
        let known = (0..band.row.layout.data()).filter(|&c| unknowns.index_of(c).is_none());
        for (column, read) in known.zip(reads..) {
            let offset = self.scratch.segs[read].offset;
            self.scratch.known.push(Known { column, lo: band.lo, offset });
        }
    }
}
