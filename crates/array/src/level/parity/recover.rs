//! Recovery of unreadable columns of RAID 5 and RAID 6: degraded reads, and the algebra that degraded writes share.
//!
//! A band is solved by itself: which columns cannot be read, which parities give them back, and with what coefficients.
//! A column that the request reads anyway serves as input from the request's own memory; the others are read into scratch.
//!
//! Reference: Anvin, *The mathematics of RAID-6*, section 4 (recovery of one and of two data blocks).

use super::{Band, ColumnPart, StripePlanner};
use crate::plan::{narrow, ComputeKind, PlanResult, Space, NONE};
use raidlab_types::{gf, RequestError};

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
    pub(super) fn index_of(&self, column: u32) -> Option<usize> {
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
    pub(super) fn push(&mut self, unknown: usize, memory: (Space, u32)) {
        self.memory[self.count] = Some(memory);
        self.unknown[self.count] = unknown;
        self.count += 1;
    }

    /// What one input is multiplied by in the sum for each unknown block, in order.
    fn coefficients(&self, coefficient_of: impl Fn(usize) -> u8) -> [u8; 2] {
        [0, 1].map(|n| if n < self.count { coefficient_of(self.unknown[n]) } else { 0 })
    }
}

impl StripePlanner<'_, '_> {
    pub(super) fn column_readable(&self, band: Band, column: u32) -> bool {
        self.position_readable(band, self.row.position(column))
    }

    /// The unreadable data columns of the band and the parities that give them back.
    pub(super) fn unknowns(&self, band: Band) -> Result<Unknowns, RequestError> {
        let row = &self.row;
        let beyond = || RequestError::BeyondTolerance { node: self.node.id, extent: Some(row.on_child(band, 0).1) };
        let mut u = Unknowns { columns: [0; 2], count: 0, g: [0; 2], use_p: false, use_q: false };
        for column in (0..row.layout.data()).filter(|&c| !self.column_readable(band, c)) {
            if u.count == 2 {
                return Err(beyond());
            }
            u.columns[u.count] = column;
            u.g[u.count] = row.q_coefficient(column);
            u.count += 1;
        }
        let parity = |k: u32| row.layout.parities > k && self.position_readable(band, row.parity_position(k));
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

    /// Reads the wanted columns of the stripe, rebuilding those that cannot be read.
    pub(super) fn degraded_read(&mut self) -> PlanResult {
        let is_lost = |s: &Self, c: &ColumnPart| !s.column_readable(Band { lo: c.lo, hi: c.hi }, c.column);
        if self.work.columns.iter().any(|c| is_lost(self, c)) {
            let recover = self.planner.compute(ComputeKind::Recover);
            self.collect_ends();
            if !self.planner.bad.is_empty() || self.planner.views.is_partial(self.node.id) {
                self.split_columns();
            }
            for b in 0..self.work.ends.len() - 1 {
                self.recover_band(self.band(b), recover)?;
            }
        }
        for i in 0..self.work.columns.len() {
            let c = self.work.columns[i];
            if !is_lost(self, &c) {
                let position = self.row.position(c.column);
                self.queue_read(Band { lo: c.lo, hi: c.hi }, position, (c.space, c.offset), c.link);
            }
        }
        Ok(())
    }

    /// Cuts the columns' parts at the ends of the bands: a bad sector, or how far a member is rebuilt, makes a column
    /// unreadable in one band and not in another.
    fn split_columns(&mut self) {
        let mut i = 0;
        while i < self.work.columns.len() {
            let c = self.work.columns[i];
            if let Some(&cut) = self.work.ends.iter().find(|&&end| c.lo < end && end < c.hi) {
                self.work.columns[i].hi = cut;
                self.work.columns.push(ColumnPart { lo: cut, offset: c.offset + narrow(cut - c.lo), ..c });
            }
            i += 1;
        }
    }

    /// Gives back the wanted but unreadable columns of one band.
    fn recover_band(&mut self, band: Band, recover: u32) -> PlanResult {
        let wanted = |c: &ColumnPart| c.covers(band) && c.space != Space::Discard;
        let lost = |c: &ColumnPart| wanted(c) && !self.column_readable(band, c.column);
        if !self.work.columns.iter().any(lost) {
            return Ok(());
        }
        let unknowns = self.unknowns(band)?;
        let mut outputs = Outputs::default();
        for c in self.work.columns.iter().filter(|c| wanted(c)) {
            if let Some(k) = unknowns.index_of(c.column) {
                outputs.push(k, c.memory(band));
                if c.link != NONE {
                    self.planner.edge(recover, c.link);
                }
            }
        }
        self.solve_band(band, recover, &unknowns, &outputs, Self::wanted_column);
        Ok(())
    }

    /// Adds to the computation `compute` the segment that gives back `outputs`: from every known column, of which
    /// `memory_of` says where the computation finds it, and the parities in use.
    pub(super) fn solve_band(
        &mut self,
        band: Band,
        compute: u32,
        unknowns: &Unknowns,
        outputs: &Outputs,
        memory_of: impl Fn(&mut Self, Band, u32, u32) -> (Space, u32),
    ) {
        let row = self.row;
        for column in (0..row.layout.data()).filter(|&c| unknowns.index_of(c).is_none()) {
            let memory = memory_of(self, band, column, compute);
            let g = row.q_coefficient(column);
            self.planner.input(memory, outputs.coefficients(|k| unknowns.of_known(k, g)));
        }
        let p = (unknowns.use_p, outputs.coefficients(|k| unknowns.of_p(k)));
        let q = (unknowns.use_q, outputs.coefficients(|_| unknowns.of_q()));
        for (k, (used, coefficients)) in (0..).zip([p, q]) {
            if used {
                let memory = self.read_to_scratch(band, row.parity_position(k), compute);
                self.planner.input(memory, coefficients);
            }
        }
        self.planner.segment(compute, band.sectors(), outputs.memory);
    }

    /// A readable column for the computation `waiting`: in the request's own memory if it reads the column anyway.
    fn wanted_column(&mut self, band: Band, column: u32, waiting: u32) -> (Space, u32) {
        let kept = |&i: &usize| self.work.columns[i].space != Space::Discard;
        let Some(i) = self.covering(band, column).filter(kept) else {
            return self.any_column(band, column, waiting);
        };
        let c = &mut self.work.columns[i];
        // The read now signals `waiting`, which passes the signal on to whoever waited for it before.
        let before = std::mem::replace(&mut c.link, waiting);
        if before != waiting && before != NONE {
            self.planner.edge(waiting, before);
        }
        c.memory(band)
    }

    /// A readable column for the computation `waiting`, read into scratch memory.
    pub(super) fn any_column(&mut self, band: Band, column: u32, waiting: u32) -> (Space, u32) {
        self.read_to_scratch(band, self.row.position(column), waiting)
    }
}
