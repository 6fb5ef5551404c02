//! RAID 5 and RAID 6 with all their members: reads, and the three ways to write a stripe.
//!
//! A stripe is planned in *bands*: ranges within the chunk between the ends of what is written, so that in a band every
//! data column is either wholly written or not at all. The strategy is chosen once a stripe:
//! full-stripe write (nothing to pre-read), read-modify-write (old data and old parity), reconstruct-write (the rest).
//!
//! Reference for the choice: Chen et al. 1990, section 3 (D + 1 pre-reads against N - (D + 1)); coefficients: Anvin,
//! *The mathematics of RAID-6*.

use crate::layout::{NodeId, ParityLayout, Role};
use crate::plan::{ColumnSeg, ComputeKind, Input, Planned, Planner, Seg, Space, NONE};
use crate::policy::ParityRead;
use raidlab_types::{gf, Extent};
use std::ops::Range;

/// A part of a request within one chunk of data.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkPart {
    pub row: u64,
    pub column: u32,
    /// First sector within the chunk.
    pub within: u64,
    pub child_lba: u64,
    pub sectors: u64,
}

/// The parts of `extent` (sectors of a parity node's data), each within one chunk, in order.
pub(super) fn chunks(p: &ParityLayout, extent: Extent) -> impl Iterator<Item = ChunkPart> {
    let (chunk, data) = (p.chunk, p.data() as u64);
    let mut lba = extent.lba;
    let mut index = lba / chunk;
    let (mut row, mut column) = (index / data, index % data);
    std::iter::from_fn(move || {
        if lba >= extent.end() {
            return None;
        }
        let within = lba - index * chunk;
        let sectors = (chunk - within).min(extent.end() - lba);
        let part = ChunkPart { row, column: column as u32, within, child_lba: row * chunk + within, sectors };
        lba += sectors;
        index += 1;
        column += 1;
        if column == data {
            (row, column) = (row + 1, 0);
        }
        Some(part)
    })
}

/// One stripe while it is planned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub layout: ParityLayout,
    pub row: u64,
    /// Position of P.
    pub p: u32,
}

impl Row {
    pub fn new(layout: ParityLayout, row: u64) -> Row {
        Row { layout, row, p: layout.p_position(row) }
    }

    /// Position of parity number `k` (0 is P, 1 is Q).
    pub fn parity_position(&self, k: u32) -> u32 {
        if k == 0 {
            self.p
        } else {
            self.layout.q_position(self.p)
        }
    }

    /// What data column `column` is multiplied by in Q.
    pub fn q_coefficient(&self, column: u32) -> u8 {
        if self.layout.parities == 1 {
            return 1;
        }
        gf::exp(self.layout.q_exponent(self.p, self.layout.position_of(self.p, column)))
    }

    /// The run of child sectors that band `[lo, hi)` of the chunk is.
    pub fn seg(&self, position: u32, lo: u64, hi: u64, space: Space, offset: u32, link: u32) -> Seg {
        let lba = self.row * self.layout.chunk + lo;
        Seg { child: position, lba, sectors: (hi - lo) as u32, space, offset, link }
    }

    /// The child sectors of the band.
    pub fn extent(&self, lo: u64, hi: u64) -> Extent {
        Extent::new(self.row * self.layout.chunk + lo, hi - lo)
    }
}

/// How a stripe gets its new parity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    Modify,
    Reconstruct,
}

impl Planner<'_> {
    pub(crate) fn parity_read(&mut self, node: NodeId, p: ParityLayout, range: Range<usize>) -> Planned {
        if self.views.is_degraded(node) || !self.bad.is_empty() {
            return self.degraded_read(node, p, range);
        }
        let base = self.scratch.segs.len();
        for i in range {
            let seg = self.scratch.segs[i];
            let mut skip = 0;
            for part in chunks(&p, seg.extent()) {
                let position = p.position_of(p.p_position(part.row), part.column);
                self.scratch.segs.push(seg.part(skip, part.sectors, position, part.child_lba));
                skip += part.sectors;
            }
        }
        if self.policy.parity_read == ParityRead::ReadThrough {
            self.fill_parity_gaps(&p, base);
        }
        self.distribute(node, base, false)
    }

    /// Between two runs of one member that only parity separates, reads the parity too.
    fn fill_parity_gaps(&mut self, p: &ParityLayout, base: usize) {
        self.scratch.segs[base..].sort_unstable_by_key(|s| (s.child, s.lba));
        for i in base + 1..self.scratch.segs.len() {
            let (a, b) = (self.scratch.segs[i - 1], self.scratch.segs[i]);
            if a.child != b.child || a.end() >= b.lba || a.end() % p.chunk != 0 || b.lba % p.chunk != 0 {
                continue;
            }
            let is_parity = |row| !matches!(p.role_at(p.p_position(row), a.child), Role::Data(_));
            if (a.end() / p.chunk..b.lba / p.chunk).all(is_parity) {
                let sectors = (b.lba - a.end()) as u32;
                let gap = Seg { lba: a.end(), sectors, space: Space::Discard, offset: 0, link: NONE, ..a };
                self.scratch.segs.push(gap);
            }
        }
    }

    pub(crate) fn parity_write(&mut self, node: NodeId, p: ParityLayout, range: Range<usize>) -> Planned {
        let (base, writes) = (self.scratch.segs.len(), self.scratch.writes.len());
        let columns = self.scratch.columns.len();
        let mut current = u64::MAX;
        for i in range {
            let seg = self.scratch.segs[i];
            let mut skip = 0;
            for part in chunks(&p, seg.extent()) {
                if part.row != current {
                    self.finish_row(node, p, current, columns)?;
                    current = part.row;
                }
                let source = seg.part(skip, part.sectors, 0, 0);
                self.scratch.columns.push(ColumnSeg {
                    column: part.column,
                    lo: part.within,
                    hi: part.within + part.sectors,
                    space: source.space,
                    offset: source.offset,
                    link: seg.link,
                });
                skip += part.sectors;
            }
        }
        self.finish_row(node, p, current, columns)?;
        self.distribute(node, base, false)?;
        // The pre-reads are in the plan; now the writes, moved onto the stack that `distribute` takes from.
        let (segs, queued) = (&mut self.scratch.segs, &mut self.scratch.writes);
        segs.extend_from_slice(&queued[writes..]);
        queued.truncate(writes);
        self.distribute(node, base, true)
    }

    /// Plans the stripe whose column segs were collected since `columns`, and drops them.
    fn finish_row(&mut self, node: NodeId, p: ParityLayout, row: u64, columns: usize) -> Planned {
        if self.scratch.columns.len() == columns {
            return Ok(());
        }
        let row = Row::new(p, row);
        let result = if self.views.is_degraded(node) || !self.bad.is_empty() {
            self.degraded_write_row(node, row, columns)
        } else {
            self.write_row(row, columns);
            Ok(())
        };
        self.scratch.columns.truncate(columns);
        result
    }

    fn write_row(&mut self, row: Row, columns: usize) {
        let bands = self.collect_bands(columns);
        let strategy = self.choose_strategy(&row, columns, bands);
        let kind = if row.layout.parities == 2 { ComputeKind::Pq } else { ComputeKind::Xor };
        let compute = self.compute(kind);
        for b in bands..self.scratch.bands.len() - 1 {
            let (lo, hi) = (self.scratch.bands[b], self.scratch.bands[b + 1]);
            if !self.band_is_written(columns, lo, hi) {
                continue;
            }
            match strategy {
                Strategy::Modify => self.modify_band(&row, columns, lo, hi, compute),
                Strategy::Reconstruct => self.reconstruct_band(&row, columns, lo, hi, compute),
            }
        }
        self.scratch.bands.truncate(bands);
        self.queue_data_writes(&row, columns, compute);
    }

    /// Collects the sorted ends of the row's column segs above the present bands; returns where they begin.
    pub(super) fn collect_bands(&mut self, columns: usize) -> usize {
        let start = self.scratch.bands.len();
        for i in columns..self.scratch.columns.len() {
            let seg = self.scratch.columns[i];
            self.scratch.bands.push(seg.lo);
            self.scratch.bands.push(seg.hi);
        }
        if self.scratch.bands.len() - start > 2 {
            self.scratch.bands[start..].sort_unstable();
            let mut kept = start;
            for i in start + 1..self.scratch.bands.len() {
                if self.scratch.bands[i] != self.scratch.bands[kept] {
                    kept += 1;
                    self.scratch.bands[kept] = self.scratch.bands[i];
                }
            }
            self.scratch.bands.truncate(kept + 1);
        }
        start
    }

    pub(super) fn band_is_written(&self, columns: usize, lo: u64, hi: u64) -> bool {
        self.scratch.columns[columns..].iter().any(|s| s.lo <= lo && hi <= s.hi)
    }

    /// The seg of `column` that covers the band, if any.
    pub(super) fn covering(&self, columns: usize, column: u32, lo: u64, hi: u64) -> Option<usize> {
        let found = |s: &ColumnSeg| s.column == column && s.lo <= lo && hi <= s.hi;
        self.scratch.columns[columns..].iter().position(found).map(|i| columns + i)
    }

    fn choose_strategy(&self, row: &Row, columns: usize, bands: usize) -> Strategy {
        let (modify, reconstruct) = self.count_accesses(row, columns, bands);
        // A full stripe needs no pre-read, whatever the policy prefers for partial ones.
        if reconstruct > 0 && self.policy.prefers_modify(modify, reconstruct) {
            Strategy::Modify
        } else {
            Strategy::Reconstruct
        }
    }

    /// Pre-reads of the two strategies, neighbouring bands of one member counted as one access.
    fn count_accesses(&self, row: &Row, columns: usize, bands: usize) -> (u32, u32) {
        let ends = &self.scratch.bands[bands..];
        let written = |w: &[u64]| self.band_is_written(columns, w[0], w[1]);
        let runs = |wanted: &dyn Fn(&[u64]) -> bool| {
            ends.windows(2).fold((0, false), |(n, inside), w| {
                let now = wanted(w);
                (n + (now && !inside) as u32, now)
            })
        };
        let parity_runs = runs(&written).0;
        let (mut modify, mut reconstruct) = (row.layout.parities * parity_runs, 0);
        if ends.len() == 2 {
            // One band, the common case: every column is either written or not.
            let d = (self.scratch.columns.len() - columns) as u32;
            return (modify + d, row.layout.data() - d);
        }
        for column in 0..row.layout.data() {
            let covered = |w: &[u64]| self.covering(columns, column, w[0], w[1]).is_some();
            modify += runs(&covered).0;
            reconstruct += runs(&|w: &[u64]| written(w) && !covered(w)).0;
        }
        (modify, reconstruct)
    }

    /// Old data and old parity in, new parity out, over one band.
    pub(super) fn modify_band(&mut self, row: &Row, columns: usize, lo: u64, hi: u64, compute: u32) {
        for i in columns..self.scratch.columns.len() {
            let seg = self.scratch.columns[i];
            if !(seg.lo <= lo && hi <= seg.hi) {
                continue;
            }
            let old = self.allocate(hi - lo);
            let position = row.layout.position_of(row.p, seg.column);
            self.scratch.segs.push(row.seg(position, lo, hi, Space::Scratch, old, compute));
            let coefficients = [1, row.q_coefficient(seg.column)];
            self.scratch.inputs.push(Input { space: Space::Scratch, offset: old, coefficients });
            let offset = seg.offset + (lo - seg.lo) as u32;
            self.scratch.inputs.push(Input { space: seg.space, offset, coefficients });
        }
        let mut outputs = [None; 2];
        for k in 0..row.layout.parities {
            // New parity replaces the old in the same memory.
            let parity = self.allocate(hi - lo);
            let position = row.parity_position(k);
            self.scratch.segs.push(row.seg(position, lo, hi, Space::Scratch, parity, compute));
            let coefficients = if k == 0 { [1, 0] } else { [0, 1] };
            self.scratch.inputs.push(Input { space: Space::Scratch, offset: parity, coefficients });
            outputs[k as usize] = Some((Space::Scratch, parity));
            self.scratch.writes.push(row.seg(position, lo, hi, Space::Scratch, parity, compute));
        }
        self.segment(compute, hi - lo, outputs);
    }

    /// The whole stripe's data in (read where it is not written), new parity out, over one band.
    fn reconstruct_band(&mut self, row: &Row, columns: usize, lo: u64, hi: u64, compute: u32) {
        for column in 0..row.layout.data() {
            let coefficients = [1, row.q_coefficient(column)];
            let (space, offset) = match self.covering(columns, column, lo, hi) {
                Some(i) => {
                    let seg = self.scratch.columns[i];
                    (seg.space, seg.offset + (lo - seg.lo) as u32)
                }
                None => {
                    let rest = self.allocate(hi - lo);
                    let position = row.layout.position_of(row.p, column);
                    self.scratch.segs.push(row.seg(position, lo, hi, Space::Scratch, rest, compute));
                    (Space::Scratch, rest)
                }
            };
            self.scratch.inputs.push(Input { space, offset, coefficients });
        }
        let mut outputs = [None; 2];
        for k in 0..row.layout.parities {
            let parity = self.allocate(hi - lo);
            outputs[k as usize] = Some((Space::Scratch, parity));
            let position = row.parity_position(k);
            self.scratch.writes.push(row.seg(position, lo, hi, Space::Scratch, parity, compute));
        }
        self.segment(compute, hi - lo, outputs);
    }

    /// Queues the writes of the row's own data; `compute` waits for whoever makes that data.
    pub(super) fn queue_data_writes(&mut self, row: &Row, columns: usize, compute: u32) {
        for i in columns..self.scratch.columns.len() {
            let seg = self.scratch.columns[i];
            if seg.link != NONE && compute != NONE {
                self.edge(seg.link, compute);
            }
            let position = row.layout.position_of(row.p, seg.column);
            self.scratch.writes.push(row.seg(position, seg.lo, seg.hi, seg.space, seg.offset, seg.link));
        }
    }
}
