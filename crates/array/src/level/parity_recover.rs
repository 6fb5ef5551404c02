//! Recovery of unreadable columns of RAID 5 and RAID 6: degraded reads, and the algebra that degraded writes share.
//!
//! A band is solved by itself: which columns cannot be read, which parities give them back, and with what coefficients.
//! A column that the request reads anyway serves as input from the request's own memory; the others are read into scratch.
//!
//! Reference: Anvin, *The mathematics of RAID-6*, section 4 (recovery of one and of two data blocks).

use super::parity::{chunks, Band, Row};
use crate::layout::{NodeId, ParityLayout};
use crate::plan::{ColumnSeg, ComputeKind, Input, Planned, Planner, Space, NONE};
use raidlab_types::{gf, RequestError};
use std::ops::Range;

/// The unreadable data columns of a band, and the coefficients that give them back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unknowns {
    pub columns: [u32; 2],
    pub count: usize,
    /// Coefficients in Q of the unknown columns.
    g: [u8; 2],
    use_p: bool,
    use_q: bool,
}

impl Unknowns {
    pub fn index_of(&self, column: u32) -> Option<usize> {
        self.columns[..self.count].iter().position(|&c| c == column)
    }

    /// Divisor of the two-unknown solution.
    fn scale(&self) -> u8 {
        gf::inv(self.g[0] ^ self.g[1])
    }

    /// What a known column with coefficient `g` in Q contributes to unknown number `k`.
    fn of_known(&self, k: usize, g: u8) -> u8 {
        match (self.use_p, self.use_q) {
            (true, true) => gf::mul(g ^ self.g[1 - k], self.scale()),
            (true, false) => 1,
            _ => gf::mul(g, gf::inv(self.g[0])),
        }
    }

    fn of_p(&self, k: usize) -> u8 {
        match (self.use_p, self.use_q) {
            (true, true) => gf::mul(self.g[1 - k], self.scale()),
            (true, false) => 1,
            _ => 0,
        }
    }

    fn of_q(&self) -> u8 {
        match (self.use_p, self.use_q) {
            (true, true) => self.scale(),
            (true, false) => 0,
            _ => gf::inv(self.g[0]),
        }
    }
}

/// Which unknowns a computation gives back, and where to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outputs {
    memory: [Option<(Space, u32)>; 2],
    /// Number of the unknown behind each output.
    unknown: [usize; 2],
    count: usize,
}

impl Outputs {
    pub fn push(&mut self, unknown: usize, memory: (Space, u32)) {
        self.memory[self.count] = Some(memory);
        self.unknown[self.count] = unknown;
        self.count += 1;
    }

    /// The coefficients of one input, for each output in order.
    fn coefficients(&self, of_unknown: impl Fn(usize) -> u8) -> [u8; 2] {
        [0, 1].map(|n| if n < self.count { of_unknown(self.unknown[n]) } else { 0 })
    }
}

impl Planner<'_> {
    pub(super) fn column_readable(&self, node: NodeId, band: &Band, column: u32) -> bool {
        self.position_readable(node, band, band.row.position(column))
    }

    pub(super) fn position_readable(&self, node: NodeId, band: &Band, position: u32) -> bool {
        self.readable(self.layout.node(node).children[position as usize], band.extent())
    }

    /// The unreadable data columns of the band and the parities that give them back.
    pub(super) fn unknowns(&self, node: NodeId, band: &Band) -> Result<Unknowns, RequestError> {
        let beyond = || RequestError::BeyondTolerance { node, extent: Some(band.extent()) };
        let row = &band.row;
        let mut u = Unknowns { columns: [0; 2], count: 0, g: [0; 2], use_p: false, use_q: false };
        for column in (0..row.layout.data()).filter(|&c| !self.column_readable(node, band, c)) {
            if u.count == 2 {
                return Err(beyond());
            }
            u.columns[u.count] = column;
            u.g[u.count] = row.q_coefficient(column);
            u.count += 1;
        }
        let parity = |k: u32| row.layout.parities > k && self.position_readable(node, band, row.parity_position(k));
        let (p, q) = (parity(0), parity(1));
        (u.use_p, u.use_q) = match u.count {
            2 if p && q => (true, true),
            1 if p => (true, false),
            1 if q => (false, true),
            0 => (false, false),
            _ => return Err(beyond()),
        };
        Ok(u)
    }

    pub(super) fn degraded_read(&mut self, node: NodeId, p: ParityLayout, range: Range<usize>) -> Planned {
        let base = self.scratch.segs.len();
        let columns = self.scratch.columns.len();
        let mut current = u64::MAX;
        for i in range {
            let seg = self.scratch.segs[i];
            let mut skip = 0;
            for part in chunks(&p, seg.extent()) {
                if part.row != current {
                    self.read_row(node, p, current, columns)?;
                    current = part.row;
                }
                self.scratch.columns.push(part.column_seg(&seg, skip));
                skip += part.sectors;
            }
        }
        self.read_row(node, p, current, columns)?;
        self.distribute(node, base, false)
    }

    /// Reads the wanted columns of one stripe, rebuilding those that cannot be read.
    fn read_row(&mut self, node: NodeId, p: ParityLayout, row: u64, columns: usize) -> Planned {
        if self.scratch.columns.len() == columns {
            return Ok(());
        }
        let row = Row::new(p, row);
        let whole = |s: &ColumnSeg| Band { row, columns, lo: s.lo, hi: s.hi };
        let is_lost = |planner: &Self, s: &ColumnSeg| !planner.column_readable(node, &whole(s), s.column);
        if self.scratch.columns[columns..].iter().any(|s| is_lost(self, s)) {
            let recover = self.compute(ComputeKind::Recover);
            let bands = self.collect_bands(columns);
            if !self.bad.is_empty() {
                self.split_columns(columns, bands);
            }
            for b in bands..self.scratch.bands.len() - 1 {
                self.recover_band(node, &self.band(row, columns, b), recover)?;
            }
            self.scratch.bands.truncate(bands);
        }
        for i in columns..self.scratch.columns.len() {
            let s = self.scratch.columns[i];
            if !is_lost(self, &s) {
                let seg = whole(&s).seg(row.position(s.column), s.space, s.offset, s.link);
                self.scratch.segs.push(seg);
            }
        }
        self.scratch.columns.truncate(columns);
        Ok(())
    }

    /// Cuts the column segs at the ends of the bands: a bad sector makes a column unreadable in one band and not in another.
    fn split_columns(&mut self, columns: usize, bands: usize) {
        let mut i = columns;
        while i < self.scratch.columns.len() {
            let s = self.scratch.columns[i];
            if let Some(&cut) = self.scratch.bands[bands..].iter().find(|&&b| s.lo < b && b < s.hi) {
                let offset = s.offset + (cut - s.lo) as u32;
                self.scratch.columns[i].hi = cut;
                self.scratch.columns.push(ColumnSeg { lo: cut, offset, ..s });
            }
            i += 1;
        }
    }

    /// Gives back the wanted but unreadable columns of one band.
    fn recover_band(&mut self, node: NodeId, band: &Band, recover: u32) -> Planned {
        let wanted = |s: &ColumnSeg| s.covers(band.lo, band.hi) && s.space != Space::Discard;
        let lost = |s: &ColumnSeg| wanted(s) && !self.column_readable(node, band, s.column);
        if !self.scratch.columns[band.columns..].iter().any(lost) {
            return Ok(());
        }
        let unknowns = self.unknowns(node, band)?;
        let mut outputs = Outputs::default();
        for i in band.columns..self.scratch.columns.len() {
            let s = self.scratch.columns[i];
            if let (true, Some(k)) = (wanted(&s), unknowns.index_of(s.column)) {
                outputs.push(k, band.memory(&s));
                if s.link != NONE {
                    self.edge(recover, s.link);
                }
            }
        }
        self.solve_band(band, recover, &unknowns, &outputs);
        Ok(())
    }

    /// Adds to the computation `compute` the segment that gives back `outputs`: from every known column and the parities
    /// in use.
    pub(super) fn solve_band(&mut self, band: &Band, compute: u32, unknowns: &Unknowns, outputs: &Outputs) {
        let row = &band.row;
        for column in (0..row.layout.data()).filter(|&c| unknowns.index_of(c).is_none()) {
            let (space, offset) = self.known_column(band, column, compute);
            let g = row.q_coefficient(column);
            let coefficients = outputs.coefficients(|k| unknowns.of_known(k, g));
            self.scratch.inputs.push(Input { space, offset, coefficients });
        }
        let p = (unknowns.use_p, outputs.coefficients(|k| unknowns.of_p(k)));
        let q = (unknowns.use_q, outputs.coefficients(|_| unknowns.of_q()));
        for (k, (used, coefficients)) in [p, q].into_iter().enumerate() {
            if used {
                let offset = self.read_to_scratch(band, row.parity_position(k as u32), compute);
                self.scratch.inputs.push(Input { space: Space::Scratch, offset, coefficients });
            }
        }
        self.segment(compute, band.sectors(), outputs.memory);
    }

    /// Where the computation `waiting` finds a readable column: in the request's own memory if it reads it anyway.
    fn known_column(&mut self, band: &Band, column: u32, waiting: u32) -> (Space, u32) {
        let kept = |&i: &usize| self.scratch.columns[i].space != Space::Discard;
        let Some(i) = self.covering(band, column).filter(kept) else {
            return (Space::Scratch, self.read_to_scratch(band, band.row.position(column), waiting));
        };
        let s = self.scratch.columns[i];
        // The read now signals `waiting`, which passes the signal on to whoever waited for it before.
        if s.link != waiting {
            if s.link != NONE {
                self.edge(waiting, s.link);
            }
            self.scratch.columns[i].link = waiting;
        }
        band.memory(&s)
    }
}
