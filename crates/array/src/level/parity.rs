//! RAID 5 and RAID 6 with all their members: reads, and the three ways to write a stripe.
//!
//! A stripe is planned in *bands*: ranges within the chunk between the ends of what is written, so that in a band every
//! data column is either wholly written or not at all. The strategy is chosen once a stripe:
//! full-stripe write (nothing to pre-read), read-modify-write (old data and old parity), reconstruct-write (the rest).
//!
//! Reference for the choice: Chen et al. 1990, section 3 (D + 1 pre-reads against N - (D + 1)); coefficients: Anvin,
//! *The mathematics of RAID-6*.

use crate::layout::{NodeId, ParityLayout, Role};
use crate::plan::{ColumnSeg, ComputeKind, Input, Known, Planned, Planner, Seg, Space, NONE};
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

impl ChunkPart {
    /// The part as a column's seg: of `seg`, `skip` sectors in.
    pub fn column_seg(&self, seg: &Seg, skip: u64) -> ColumnSeg {
        let Seg { space, offset, link, .. } = seg.part(skip, self.sectors, 0, 0);
        ColumnSeg { column: self.column, lo: self.within, hi: self.within + self.sectors, space, offset, link }
    }
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
    /// Which parities (P, Q) are there to be written.
    pub live: [bool; 2],
}

impl Row {
    pub fn new(layout: ParityLayout, row: u64) -> Row {
        Row { layout, row, p: layout.p_position(row), live: [true, layout.parities == 2] }
    }

    /// Position of parity number `k` (0 is P, 1 is Q).
    pub fn parity_position(&self, k: u32) -> u32 {
        if k == 0 {
            self.p
        } else {
            self.layout.q_position(self.p)
        }
    }

    /// Position of data column `column`.
    pub fn position(&self, column: u32) -> u32 {
        self.layout.position_of(self.p, column)
    }

    /// What data column `column` is multiplied by in Q.
    pub fn q_coefficient(&self, column: u32) -> u8 {
        if self.layout.parities == 1 {
            return 1;
        }
        gf::exp(self.layout.q_exponent(self.p, self.position(column)) as usize)
    }

    /// What makes the parities of this stripe.
    pub fn compute_kind(&self) -> ComputeKind {
        if self.layout.parities == 2 {
            ComputeKind::Pq
        } else {
            ComputeKind::Xor
        }
    }

    /// What data column `column` is multiplied by in each parity that is there, in order.
    fn coefficients(&self, column: u32) -> [u8; 2] {
        match self.live {
            [true, _] => [1, self.q_coefficient(column)],
            _ => [self.q_coefficient(column), 0],
        }
    }
}

/// A band of a stripe: sectors `[lo, hi)` of every chunk, with the column segs of the request in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Band {
    pub row: Row,
    /// Where the column segs begin on their stack.
    pub columns: usize,
    pub lo: u64,
    pub hi: u64,
}

impl Band {
    pub fn sectors(&self) -> u64 {
        self.hi - self.lo
    }

    /// The sectors of every child that the band is.
    pub fn extent(&self) -> Extent {
        Extent::new(self.row.row * self.row.layout.chunk + self.lo, self.sectors())
    }

    /// The band on the child at `position`.
    pub fn seg(&self, position: u32, space: Space, offset: u32, link: u32) -> Seg {
        let Extent { lba, sectors } = self.extent();
        Seg { child: position, lba, sectors: sectors as u32, space, offset, link }
    }

    /// Where in memory the band of `seg` lies, which covers it.
    pub fn memory(&self, seg: &ColumnSeg) -> (Space, u32) {
        (seg.space, seg.offset + (self.lo - seg.lo) as u32)
    }
}

impl ColumnSeg {
    pub(super) fn covers(&self, lo: u64, hi: u64) -> bool {
        self.lo <= lo && hi <= self.hi
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
        // After a media error operations are kept short, and read nothing that is not wanted.
        if self.policy.parity_read == ParityRead::ReadThrough && self.scratch.run_sectors == 0 {
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
        if range.len() == 1 && self.small_write(node, &p, self.scratch.segs[range.start]) {
            return Ok(());
        }
        self.general_write(node, p, range)
    }

    /// Any write: stripe by stripe, band by band.
    pub(super) fn general_write(&mut self, node: NodeId, p: ParityLayout, range: Range<usize>) -> Planned {
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
                self.scratch.columns.push(part.column_seg(&seg, skip));
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
        let (bands, known) = (self.collect_bands(columns), self.scratch.known.len());
        let strategy = self.choose_strategy(&row, columns, bands);
        let compute = self.compute(row.compute_kind());
        for b in bands..self.scratch.bands.len() - 1 {
            let band = self.band(row, columns, b);
            if !self.is_written(&band) {
                continue;
            }
            match strategy {
                Strategy::Modify => self.modify_band(&band, compute),
                Strategy::Reconstruct => self.reconstruct_band(&band, compute, known),
            }
        }
        self.scratch.bands.truncate(bands);
        self.queue_data_writes(&row, columns, compute);
    }

    /// The band that begins with number `b` of the collected ends.
    pub(super) fn band(&self, row: Row, columns: usize, b: usize) -> Band {
        Band { row, columns, lo: self.scratch.bands[b], hi: self.scratch.bands[b + 1] }
    }

    /// Collects the sorted ends of the row's column segs above the present bands; returns where they begin.
    pub(super) fn collect_bands(&mut self, columns: usize) -> usize {
        let start = self.scratch.bands.len();
        let segs = &self.scratch.columns[columns..];
        if segs.iter().all(|s| (s.lo, s.hi) == (segs[0].lo, segs[0].hi)) {
            // A full stripe, or a single column: one band.
            self.scratch.bands.extend_from_slice(&[segs[0].lo, segs[0].hi]);
            return start;
        }
        self.scratch.bands.extend(segs.iter().flat_map(|s| [s.lo, s.hi]));
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

    /// Whether the request writes (or reads) the band on any column.
    pub(super) fn is_written(&self, band: &Band) -> bool {
        self.scratch.columns[band.columns..].iter().any(|s| s.covers(band.lo, band.hi))
    }

    /// The seg of `column` that covers the band, if any.
    pub(super) fn covering(&self, band: &Band, column: u32) -> Option<usize> {
        let found = |s: &ColumnSeg| s.column == column && s.covers(band.lo, band.hi);
        let segs = &self.scratch.columns[band.columns..];
        // Requests come in order, so that in a full stripe every column is found at its own number.
        if segs.get(column as usize).is_some_and(found) {
            return Some(band.columns + column as usize);
        }
        segs.iter().position(found).map(|i| band.columns + i)
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
        if ends.len() == 2 {
            // One band, the common case: every column is either written or not.
            let d = (self.scratch.columns.len() - columns) as u32;
            return (row.layout.parities + d, row.layout.data() - d);
        }
        let band = |w: &[u64]| Band { row: *row, columns, lo: w[0], hi: w[1] };
        let written = |w: &[u64]| self.is_written(&band(w));
        let runs = |wanted: &dyn Fn(&[u64]) -> bool| {
            ends.windows(2).fold((0, false), |(n, inside), w| {
                let now = wanted(w);
                (n + (now && !inside) as u32, now)
            })
        };
        let parity_runs = runs(&written).0;
        let (mut modify, mut reconstruct) = (row.layout.parities * parity_runs, 0);
        for column in 0..row.layout.data() {
            let covered = |w: &[u64]| self.covering(&band(w), column).is_some();
            modify += runs(&covered).0;
            reconstruct += runs(&|w: &[u64]| written(w) && !covered(w)).0;
        }
        (modify, reconstruct)
    }

    /// Old data and old parity in, new parity out, over one band.
    pub(super) fn modify_band(&mut self, band: &Band, compute: u32) {
        let row = &band.row;
        for i in band.columns..self.scratch.columns.len() {
            let seg = self.scratch.columns[i];
            if !seg.covers(band.lo, band.hi) {
                continue;
            }
            let coefficients = row.coefficients(seg.column);
            let old = self.read_to_scratch(band, row.position(seg.column), compute);
            self.scratch.inputs.push(Input { space: Space::Scratch, offset: old, coefficients });
            let (space, offset) = band.memory(&seg);
            self.scratch.inputs.push(Input { space, offset, coefficients });
        }
        let mut outputs = [None; 2];
        for (n, k) in (0..2).filter(|&k| row.live[k]).enumerate() {
            // New parity replaces the old in the same memory.
            let position = row.parity_position(k as u32);
            let parity = self.read_to_scratch(band, position, compute);
            let coefficients = if n == 0 { [1, 0] } else { [0, 1] };
            self.scratch.inputs.push(Input { space: Space::Scratch, offset: parity, coefficients });
            outputs[n] = Some((Space::Scratch, parity));
            self.scratch.writes.push(band.seg(position, Space::Scratch, parity, compute));
        }
        self.segment(compute, band.sectors(), outputs);
    }

    /// The whole stripe's data in (read where it is neither written nor known since `known`), new parity out, over one band.
    pub(super) fn reconstruct_band(&mut self, band: &Band, compute: u32, known: usize) {
        let row = &band.row;
        for column in 0..row.layout.data() {
            let found = |k: &&Known| k.column == column && k.lo == band.lo;
            let (space, offset) = if let Some(i) = self.covering(band, column) {
                band.memory(&self.scratch.columns[i])
            } else if let Some(known) = self.scratch.known[known..].iter().find(found) {
                (Space::Scratch, known.offset)
            } else {
                (Space::Scratch, self.read_to_scratch(band, row.position(column), compute))
            };
            self.scratch.inputs.push(Input { space, offset, coefficients: row.coefficients(column) });
        }
        let mut outputs = [None; 2];
        for (n, k) in (0..2).filter(|&k| row.live[k]).enumerate() {
            let parity = self.allocate(band.sectors());
            outputs[n] = Some((Space::Scratch, parity));
            self.scratch.writes.push(band.seg(row.parity_position(k as u32), Space::Scratch, parity, compute));
        }
        self.segment(compute, band.sectors(), outputs);
    }

    /// Reads the band of the child at `position` into new scratch memory, for `link` to use.
    pub(super) fn read_to_scratch(&mut self, band: &Band, position: u32, link: u32) -> u32 {
        let offset = self.allocate(band.sectors());
        self.scratch.segs.push(band.seg(position, Space::Scratch, offset, link));
        offset
    }

    /// Queues the writes of the row's own data; `compute` waits for whoever makes that data.
    pub(super) fn queue_data_writes(&mut self, row: &Row, columns: usize, compute: u32) {
        for i in columns..self.scratch.columns.len() {
            let seg = self.scratch.columns[i];
            if seg.link != NONE && compute != NONE {
                self.edge(seg.link, compute);
            }
            let band = Band { row: *row, columns, lo: seg.lo, hi: seg.hi };
            self.scratch.writes.push(band.seg(row.position(seg.column), seg.space, seg.offset, seg.link));
        }
    }
}
