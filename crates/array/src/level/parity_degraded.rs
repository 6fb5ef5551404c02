//! RAID 5 and RAID 6 with members missing or sectors unreadable: rebuilding what a request needs.
//!
//! Three ways a band of a stripe can be written when something cannot be read:
//! - all written columns readable: read-modify-write of them and of the parities that are there;
//! - all other columns readable: reconstruct-write;
//! - neither: *restore* the unreadable rest from the parities first, then reconstruct-write with it.
//!
//! Reference: Anvin, *The mathematics of RAID-6*, section 4 (recovery of one and of two data blocks).

use super::parity::{chunks, Row};
use crate::layout::{NodeId, ParityLayout};
use crate::plan::{ColumnSeg, ComputeKind, Input, Known, Planned, Planner, Space, NONE};
use raidlab_types::{gf, RequestError};
use std::ops::Range;

/// The unreadable data columns of a band, and the coefficients that give them back.
#[derive(Debug, Clone, Copy)]
struct Unknowns {
    columns: [u32; 2],
    count: usize,
    /// Coefficients in Q of the unknown columns.
    g: [u8; 2],
    use_p: bool,
    use_q: bool,
}

impl Unknowns {
    fn index_of(&self, column: u32) -> Option<usize> {
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

impl Planner<'_> {
    fn column_readable(&self, node: NodeId, row: &Row, column: u32, lo: u64, hi: u64) -> bool {
        self.position_readable(node, row, row.layout.position_of(row.p, column), lo, hi)
    }

    fn position_readable(&self, node: NodeId, row: &Row, position: u32, lo: u64, hi: u64) -> bool {
        let child = self.layout.node(node).children[position as usize];
        self.readable(child, row.extent(lo, hi))
    }

    /// The unreadable data columns of the band and the parities that give them back.
    fn unknowns(&self, node: NodeId, row: &Row, lo: u64, hi: u64) -> Result<Unknowns, RequestError> {
        let beyond = || RequestError::BeyondTolerance { node, extent: Some(row.extent(lo, hi)) };
        let mut u = Unknowns { columns: [0; 2], count: 0, g: [0; 2], use_p: false, use_q: false };
        for column in 0..row.layout.data() {
            if !self.column_readable(node, row, column, lo, hi) {
                if u.count == 2 {
                    return Err(beyond());
                }
                u.columns[u.count] = column;
                u.g[u.count] = row.q_coefficient(column);
                u.count += 1;
            }
        }
        let parity =
            |k: u32| row.layout.parities > k && self.position_readable(node, row, row.parity_position(k), lo, hi);
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
                let (lo, hi) = (part.within, part.within + part.sectors);
                let to = seg.part(skip, part.sectors, 0, 0);
                let (space, offset, link) = (to.space, to.offset, to.link);
                self.scratch.columns.push(ColumnSeg { column: part.column, lo, hi, space, offset, link });
                skip += part.sectors;
            }
        }
        self.read_row(node, p, current, columns)?;
        self.distribute(node, base, false)
    }

    /// Reads the wanted columns of one stripe, rebuilding those that cannot be read.
    fn read_row(&mut self, node: NodeId, p: ParityLayout, row: u64, columns: usize) -> Planned {
        let end = self.scratch.columns.len();
        if end == columns {
            return Ok(());
        }
        let row = Row::new(p, row);
        let is_lost = |planner: &Self, s: &ColumnSeg| !planner.column_readable(node, &row, s.column, s.lo, s.hi);
        let any_lost = (columns..end).any(|i| is_lost(self, &self.scratch.columns[i]));
        if any_lost {
            let recover = self.compute(ComputeKind::Recover);
            let bands = self.collect_bands(columns);
            if !self.bad.is_empty() {
                self.split_columns(columns, bands);
            }
            for b in bands..self.scratch.bands.len() - 1 {
                let (lo, hi) = (self.scratch.bands[b], self.scratch.bands[b + 1]);
                self.recover_band(node, &row, columns, lo, hi, recover)?;
            }
            self.scratch.bands.truncate(bands);
        }
        for i in columns..self.scratch.columns.len() {
            let s = self.scratch.columns[i];
            if !is_lost(self, &s) {
                let position = p.position_of(row.p, s.column);
                self.scratch.segs.push(row.seg(position, s.lo, s.hi, s.space, s.offset, s.link));
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
    fn recover_band(&mut self, node: NodeId, row: &Row, columns: usize, lo: u64, hi: u64, recover: u32) -> Planned {
        let end = self.scratch.columns.len();
        let unknowns = match self.lost_in_band(node, row, columns, lo, hi) {
            false => return Ok(()),
            true => self.unknowns(node, row, lo, hi)?,
        };
        let mut outputs = [None; 2];
        let mut unknown_of_output = [0; 2];
        let mut n = 0;
        for i in columns..end {
            let s = self.scratch.columns[i];
            let within = s.lo <= lo && hi <= s.hi;
            if let (true, Some(k)) = (within && s.space != Space::Discard, unknowns.index_of(s.column)) {
                outputs[n] = Some((s.space, s.offset + (lo - s.lo) as u32));
                unknown_of_output[n] = k;
                n += 1;
                if s.link != NONE {
                    self.edge(recover, s.link);
                }
            }
        }
        self.known_inputs(row, columns, lo, hi, recover, &unknowns, unknown_of_output, n);
        self.segment(recover, hi - lo, outputs);
        Ok(())
    }

    fn lost_in_band(&self, node: NodeId, row: &Row, columns: usize, lo: u64, hi: u64) -> bool {
        self.scratch.columns[columns..].iter().any(|s| {
            s.lo <= lo && hi <= s.hi && s.space != Space::Discard && !self.column_readable(node, row, s.column, lo, hi)
        })
    }

    /// Collects as inputs every known column and the parities in use: from the request's own memory where it reads them
    /// anyway, else read into scratch.
    #[allow(clippy::too_many_arguments)] // One band of one stripe, described; a struct would be made for this call only.
    fn known_inputs(
        &mut self,
        row: &Row,
        columns: usize,
        lo: u64,
        hi: u64,
        waiting: u32,
        unknowns: &Unknowns,
        unknown_of_output: [usize; 2],
        outputs: usize,
    ) {
        let pick =
            |f: &dyn Fn(usize) -> u8| [f(unknown_of_output[0]), if outputs > 1 { f(unknown_of_output[1]) } else { 0 }];
        for column in (0..row.layout.data()).filter(|&c| unknowns.index_of(c).is_none()) {
            let g = row.q_coefficient(column);
            let coefficients = pick(&|k| unknowns.of_known(k, g));
            let covering = self.covering(columns, column, lo, hi);
            let covering = covering.filter(|&i| self.scratch.columns[i].space != Space::Discard);
            let (space, offset) = match covering {
                Some(i) => {
                    let s = self.scratch.columns[i];
                    // The read now signals `waiting`, which passes the signal on to whoever waited for it before.
                    if s.link != waiting {
                        if s.link != NONE {
                            self.edge(waiting, s.link);
                        }
                        self.scratch.columns[i].link = waiting;
                    }
                    (s.space, s.offset + (lo - s.lo) as u32)
                }
                None => {
                    let position = row.layout.position_of(row.p, column);
                    (Space::Scratch, self.read_to_scratch(row, position, lo, hi, waiting))
                }
            };
            self.scratch.inputs.push(Input { space, offset, coefficients });
        }
        let parities = [(unknowns.use_p, pick(&|k| unknowns.of_p(k))), (unknowns.use_q, pick(&|_| unknowns.of_q()))];
        for (k, (used, coefficients)) in parities.into_iter().enumerate() {
            if used {
                let offset = self.read_to_scratch(row, row.parity_position(k as u32), lo, hi, waiting);
                self.scratch.inputs.push(Input { space: Space::Scratch, offset, coefficients });
            }
        }
    }

    fn read_to_scratch(&mut self, row: &Row, position: u32, lo: u64, hi: u64, link: u32) -> u32 {
        let offset = self.allocate(hi - lo);
        self.scratch.segs.push(row.seg(position, lo, hi, Space::Scratch, offset, link));
        offset
    }

    pub(super) fn degraded_write_row(&mut self, node: NodeId, row: Row, columns: usize) -> Planned {
        let writable = |planner: &Self, k: u32| {
            k < row.layout.parities
                && !planner.views.is_lost(planner.layout.node(node).children[row.parity_position(k) as usize])
        };
        let parities = [writable(self, 0), writable(self, 1)];
        if parities == [false, false] {
            self.queue_data_writes(&row, columns, NONE);
            return Ok(());
        }
        let bands = self.collect_bands(columns);
        let known = self.scratch.known.len();
        let restored = self.restore_bands(node, &row, columns, bands, known)?;
        let kind = if row.layout.parities == 2 { ComputeKind::Pq } else { ComputeKind::Xor };
        let compute = self.compute(kind);
        if restored != NONE {
            self.edge(restored, compute);
        }
        for b in bands..self.scratch.bands.len() - 1 {
            let (lo, hi) = (self.scratch.bands[b], self.scratch.bands[b + 1]);
            if !self.band_is_written(columns, lo, hi) {
                continue;
            }
            if self.modify_preferred(node, &row, columns, lo, hi, parities) {
                self.degraded_modify_band(&row, columns, lo, hi, compute, parities);
            } else {
                self.degraded_reconstruct_band(&row, columns, lo, hi, compute, parities, known);
            }
        }
        self.scratch.bands.truncate(bands);
        self.scratch.known.truncate(known);
        self.queue_data_writes(&row, columns, compute);
        Ok(())
    }

    /// Whether the band can, and should, be written by read-modify-write.
    fn modify_preferred(&self, node: NodeId, row: &Row, columns: usize, lo: u64, hi: u64, parities: [bool; 2]) -> bool {
        let readable = |column| self.column_readable(node, row, column, lo, hi);
        let written = |column| self.covering(columns, column, lo, hi).is_some();
        let data = 0..row.layout.data();
        let can_modify = data.clone().filter(|&c| written(c)).all(readable)
            && (0..2)
                .all(|k| !parities[k as usize] || self.position_readable(node, row, row.parity_position(k), lo, hi));
        let can_reconstruct = data.clone().filter(|&c| !written(c)).all(readable);
        if !(can_modify && can_reconstruct) {
            return can_modify;
        }
        let d = data.clone().filter(|&c| written(c)).count();
        let modify = d + parities.iter().filter(|&&p| p).count();
        let reconstruct = data.count() - d;
        reconstruct > 0 && self.policy.prefers_modify(modify as u32, reconstruct as u32)
    }

    /// Rebuilds, into scratch, what a reconstruct-write needs and cannot read; returns the computation, or `NONE`.
    fn restore_bands(
        &mut self,
        node: NodeId,
        row: &Row,
        columns: usize,
        bands: usize,
        known: usize,
    ) -> Result<u32, RequestError> {
        let mut restore = NONE;
        let parities = [0, 1].map(|k| {
            k < row.layout.parities
                && !self.views.is_lost(self.layout.node(node).children[row.parity_position(k) as usize])
        });
        for b in bands..self.scratch.bands.len() - 1 {
            let (lo, hi) = (self.scratch.bands[b], self.scratch.bands[b + 1]);
            let rest_lost = |planner: &Self, c: u32| {
                planner.covering(columns, c, lo, hi).is_none() && !planner.column_readable(node, row, c, lo, hi)
            };
            let needs = self.band_is_written(columns, lo, hi)
                && (0..row.layout.data()).any(|c| rest_lost(self, c))
                && !self.modify_preferred(node, row, columns, lo, hi, parities);
            if !needs {
                continue;
            }
            if restore == NONE {
                restore = self.compute(ComputeKind::Recover);
            }
            let unknowns = self.unknowns(node, row, lo, hi)?;
            let mut outputs = [None; 2];
            let mut unknown_of_output = [0; 2];
            let mut n = 0;
            for k in 0..unknowns.count {
                if !rest_lost(self, unknowns.columns[k]) {
                    continue;
                }
                let offset = self.allocate(hi - lo);
                outputs[n] = Some((Space::Scratch, offset));
                unknown_of_output[n] = k;
                n += 1;
                self.scratch.known.push(Known { column: unknowns.columns[k], lo, offset });
            }
            // Old content is wanted here, so what the request writes does not serve as input: read it all.
            let none_covered = self.scratch.columns.len();
            let first_input = self.scratch.inputs.len();
            self.known_inputs(row, none_covered, lo, hi, restore, &unknowns, unknown_of_output, n);
            self.remember_known(row, &unknowns, lo, known, first_input);
            self.segment(restore, hi - lo, outputs);
        }
        debug_assert!(known <= self.scratch.known.len());
        Ok(restore)
    }

    /// Notes where the columns read for a restore lie, so that the reconstruct-write after it reads them no second time.
    fn remember_known(&mut self, row: &Row, unknowns: &Unknowns, lo: u64, known: usize, first_input: usize) {
        debug_assert!(known <= self.scratch.known.len());
        let mut at = first_input;
        for column in (0..row.layout.data()).filter(|&c| unknowns.index_of(c).is_none()) {
            let offset = self.scratch.inputs[at].offset;
            self.scratch.known.push(Known { column, lo, offset });
            at += 1;
        }
    }

    fn degraded_modify_band(&mut self, row: &Row, columns: usize, lo: u64, hi: u64, compute: u32, parities: [bool; 2]) {
        for i in columns..self.scratch.columns.len() {
            let seg = self.scratch.columns[i];
            if !(seg.lo <= lo && hi <= seg.hi) {
                continue;
            }
            let position = row.layout.position_of(row.p, seg.column);
            let old = self.read_to_scratch(row, position, lo, hi, compute);
            let coefficients = column_coefficients(row, seg.column, parities);
            self.scratch.inputs.push(Input { space: Space::Scratch, offset: old, coefficients });
            let offset = seg.offset + (lo - seg.lo) as u32;
            self.scratch.inputs.push(Input { space: seg.space, offset, coefficients });
        }
        let mut outputs = [None; 2];
        let mut n = 0;
        for k in (0..2).filter(|&k| parities[k]) {
            let position = row.parity_position(k as u32);
            let parity = self.read_to_scratch(row, position, lo, hi, compute);
            let coefficients = if n == 0 { [1, 0] } else { [0, 1] };
            self.scratch.inputs.push(Input { space: Space::Scratch, offset: parity, coefficients });
            outputs[n] = Some((Space::Scratch, parity));
            n += 1;
            self.scratch.writes.push(row.seg(position, lo, hi, Space::Scratch, parity, compute));
        }
        self.segment(compute, hi - lo, outputs);
    }

    #[allow(clippy::too_many_arguments)] // As `known_inputs`.
    fn degraded_reconstruct_band(
        &mut self,
        row: &Row,
        columns: usize,
        lo: u64,
        hi: u64,
        compute: u32,
        parities: [bool; 2],
        known: usize,
    ) {
        for column in 0..row.layout.data() {
            let (space, offset) = match self.covering(columns, column, lo, hi) {
                Some(i) => {
                    let seg = self.scratch.columns[i];
                    (seg.space, seg.offset + (lo - seg.lo) as u32)
                }
                None => {
                    let found = self.scratch.known[known..].iter().find(|k| k.column == column && k.lo == lo);
                    match found.map(|k| k.offset) {
                        Some(offset) => (Space::Scratch, offset),
                        None => {
                            let position = row.layout.position_of(row.p, column);
                            (Space::Scratch, self.read_to_scratch(row, position, lo, hi, compute))
                        }
                    }
                }
            };
            let coefficients = column_coefficients(row, column, parities);
            self.scratch.inputs.push(Input { space, offset, coefficients });
        }
        let mut outputs = [None; 2];
        let mut n = 0;
        for k in (0..2).filter(|&k| parities[k]) {
            let parity = self.allocate(hi - lo);
            outputs[n] = Some((Space::Scratch, parity));
            n += 1;
            let position = row.parity_position(k as u32);
            self.scratch.writes.push(row.seg(position, lo, hi, Space::Scratch, parity, compute));
        }
        self.segment(compute, hi - lo, outputs);
    }
}

/// What a data column is multiplied by for each parity that is there, in order.
fn column_coefficients(row: &Row, column: u32, parities: [bool; 2]) -> [u8; 2] {
    match parities {
        [true, _] => [1, row.q_coefficient(column)],
        _ => [row.q_coefficient(column), 0],
    }
}
