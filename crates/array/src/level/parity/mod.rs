//! RAID 5 and RAID 6 with all their members: reads, and the three ways to write a stripe.
//!
//! A stripe is planned in *bands*: ranges within the chunk between the ends of what is written, so that in a band every
//! data column is either wholly written or not at all. The strategy is chosen once a stripe:
//! full-stripe write (nothing to pre-read), read-modify-write (old data and old parity), reconstruct-write (the rest).
//!
//! Reference for the choice: Chen et al. 1990, section 3 (D + 1 pre-reads against N - (D + 1)); coefficients: Anvin,
//! *The mathematics of RAID-6*.

mod degraded;
mod recover;
mod restore;
mod rotation;
mod rows;
mod small;
mod spares;
mod spread;
mod verify;

pub(crate) use rotation::ParityLayout;

use super::{chunks, rows_covering, whole_stripes, ChunkPart, Content, Level, NodeLayout, Personality, Surroundings};
use crate::layout::{MapCell, Node, NodeId};
use crate::machine::{LockMode, LockRange};
use crate::plan::{cut, narrow, place, ComputeKind, PlanResult, Planner, Space, Transfer, NONE};
use crate::policy::ParityRead;
use crate::spec::Rotation;
use raidlab_types::number::lcm;
use raidlab_types::{gf, Extent};
use rotation::Role;
use spread::{Declustering, Held};

pub(super) fn compile(around: &Surroundings<'_>, parities: u32, rotation: Rotation) -> NodeLayout {
    lay_out(around, ParityLayout { chunk: around.chunk, members: around.children(), parities, rotation, spread: None })
}

/// Stripes of `width` members over all children, beside so many spare chunks in every row of these.
pub(super) fn compile_declustered(around: &Surroundings<'_>, parities: u32, width: u32, spares: u32) -> NodeLayout {
    let spread = Some(Declustering::new(around.children(), width, spares));
    let rotation = Rotation::ParityLast;
    lay_out(around, ParityLayout { chunk: around.chunk, members: width, parities, rotation, spread })
}

fn lay_out(around: &Surroundings<'_>, parity: ParityLayout) -> NodeLayout {
    let (of_child, of_node) = parity.block_sectors();
    let capacity = around.smallest() / of_child * of_node;
    let alignment = (lcm(around.alignment, of_child) / of_child).saturating_mul(of_node);
    NodeLayout { level: Level::Parity(parity), capacity, alignment }
}

impl Personality for ParityLayout {
    #[inline]
    fn parts(&self, _: &Node, extent: Extent) -> impl Iterator<Item = (u32, Extent)> {
        self.chunks(extent).map(|part| {
            let position = self.position_of(self.p_position(part.row), part.column);
            let (child, row) = self.place(part.row, position);
            (child, Extent::new(row * self.chunk + part.within, part.sectors))
        })
    }

    fn content(&self, node: &Node, child: u32, lba: u64) -> Content {
        let data = u64::from(self.data());
        let (row, position) = match self.held(child, lba / self.chunk) {
            Held::Member(row, position) => (row, position),
            Held::Spare(number) if self.is_within(node, lba) => return Content::Other(MapCell::Spare { number }),
            Held::Spare(_) => return Content::Unused,
        };
        let used = row * data * self.chunk < node.capacity;
        match self.role_at(self.p_position(row), position) {
            Role::Data(column) => Content::Data((row * data + u64::from(column)) * self.chunk + lba % self.chunk),
            Role::P if used => Content::Other(MapCell::P { node: node.id, row }),
            Role::Q if used => Content::Other(MapCell::Q { node: node.id, row }),
            _ => Content::Unused,
        }
    }

    fn for_each_share(&self, node: &Node, extent: Extent, mut visit: impl FnMut(NodeId, Extent)) {
        let (of_child, of_node) = self.block_sectors();
        let share = whole_stripes(of_child, of_node, extent);
        node.children.iter().for_each(|&child| visit(child, share));
    }

    fn chunk(&self) -> Option<u64> {
        Some(self.chunk)
    }

    fn read(&self, planner: &mut Planner<'_>, node: &Node, transfers: &[Transfer]) -> PlanResult {
        if planner.views.is_degraded(node.id) || !planner.bad.is_empty() {
            return planner.with_stripe_work(|planner, work| {
                self.for_each_stripe(planner, node, transfers, work, |stripe| stripe.degraded_read())?;
                planner.hand_on(node, &mut work.reads, false)
            });
        }
        // After a media error operations are kept short, and read nothing that is not wanted.
        if planner.policy.parity_read == ParityRead::ReadThrough && planner.scratch.run_sectors == 0 {
            return planner.with_transfers(|planner, parts| {
                cut(self, node, transfers, parts);
                self.fill_parity_gaps(parts);
                planner.hand_on(node, parts, false)
            });
        }
        planner.cut_and_hand_on(self, node, transfers, false)
    }

    fn write(&self, planner: &mut Planner<'_>, node: &Node, transfers: &[Transfer]) -> PlanResult {
        match transfers {
            [transfer] if planner.policy.parity_row_bytes > 0 && self.has_rows(planner, node) => {
                self.write_by_rows(planner, node, transfer, planner.policy.row_sectors(planner.layout.sector_bytes()))
            }
            [transfer] if self.small_write(planner, node, transfer) => Ok(()),
            _ => self.general_write(planner, node, transfers),
        }
    }

    fn is_readable(&self, planner: &Planner<'_>, node: &Node, extent: Extent) -> bool {
        self.chunks(extent).all(|part| {
            let row = Row::new(self, part.row);
            let band = Band { lo: part.within, hi: part.within + part.sectors };
            let readable = |position| {
                row.places((planner.layout, planner.views), node, band, position).any(|place| place.has(planner))
            };
            let lost = || (0..self.members).filter(|&member| !readable(member)).count();
            readable(row.position(part.column)) || lost() <= self.parities as usize
        })
    }

    fn covering(&self, _: &Node, _: u32, part: Extent) -> Extent {
        let (of_child, of_node) = self.block_sectors();
        rows_covering(of_child, of_node, part)
    }

    fn covering_unit(&self, node: &Node, only: Option<u32>, part: Extent) -> Extent {
        let (first, last) = (part.lba / self.chunk, (part.end() - 1) / self.chunk);
        // In a row a child has a member of one stripe, or what is spare may be of any.
        match only.filter(|_| first == last).map(|child| self.held(child, first)) {
            Some(Held::Member(stripe, _)) if node.spares.is_empty() => {
                let data = self.chunk * u64::from(self.data());
                Extent::new(stripe * data, data)
            }
            _ => self.covering(node, 0, part),
        }
    }

    /// In one place more than the alignment says: children take turns.
    fn repeats(&self) -> bool {
        self.spread.is_none()
    }

    fn restore(&self, planner: &mut Planner<'_>, node: &Node, extent: Extent) -> PlanResult {
        self.restore_rows(planner, node, extent)
    }

    fn verify(&self, planner: &mut Planner<'_>, node: &Node, extent: Extent) -> PlanResult {
        self.verify_rows(planner, node, extent)
    }

    /// Every stripe that is touched, by the range within the chunk; reads of a node with all its members lock nothing.
    fn lock(&self, node: &Node, extent: Extent, mode: LockMode<'_>, _: bool, out: &mut Vec<LockRange>) -> bool {
        if matches!(mode, LockMode::SharedIfDegraded(views) if !views.is_degraded(node.id)) {
            return true;
        }
        let (chunk, data) = (self.chunk, u64::from(self.data()));
        let (first, last) = (extent.lba / chunk, (extent.end() - 1) / chunk);
        for stripe in first / data..=last / data {
            let (begin, end) = (first.max(stripe * data), last.min(stripe * data + data - 1));
            let (lo, hi) = if begin == end {
                let start = begin * chunk;
                let (lo, hi) = (extent.lba.max(start) - start, extent.end().min(start + chunk) - start);
                match mode {
                    LockMode::Exclusive { row_sectors: row @ 2.. } => {
                        (lo / row * row, (hi.div_ceil(row) * row).min(chunk))
                    }
                    _ => (lo, hi),
                }
            } else {
                (0, chunk)
            };
            out.push(LockRange { node: node.id, stripe, lo, hi, shared: mode.is_shared() });
        }
        true
    }

    fn locks_stripes(&self) -> bool {
        true
    }
}

/// A column's part of a stripe while that stripe is planned: sectors `[lo, hi)` of the chunk and their memory.
#[derive(Debug, Clone, Copy)]
struct ColumnPart {
    column: u32,
    lo: u64,
    hi: u64,
    space: Space,
    offset: u32,
    /// As in [`Transfer`].
    link: u32,
}

impl ColumnPart {
    /// The part of `transfer` that begins `skip` sectors in.
    fn new(part: &ChunkPart, transfer: &Transfer, skip: u64) -> ColumnPart {
        let Transfer { space, offset, link, .. } = transfer.part(skip, 0, Extent::new(0, part.sectors));
        ColumnPart { column: part.column, lo: part.within, hi: part.within + part.sectors, space, offset, link }
    }

    fn covers(&self, band: Band) -> bool {
        self.lo <= band.lo && band.hi <= self.hi
    }

    fn touches(&self, band: Band) -> bool {
        self.lo < band.hi && band.lo < self.hi
    }

    /// Where in memory the band lies, which it covers.
    fn memory(&self, band: Band) -> (Space, u32) {
        (self.space, self.offset + narrow(band.lo - self.lo))
    }
}

/// A column's old content that a restore has put into scratch memory.
#[derive(Debug, Clone, Copy)]
struct KnownColumn {
    column: u32,
    /// First sector of the band.
    lo: u64,
    offset: u32,
}

/// Working memory of one parity node while it is planned.
#[derive(Debug, Default)]
pub(crate) struct StripeWork {
    /// What is asked of the stripe that is being planned.
    columns: Vec<ColumnPart>,
    /// Ends of its bands, in order.
    ends: Vec<u64>,
    /// What a restore has found of it.
    known: Vec<KnownColumn>,
    /// Reads of the children, for all stripes.
    reads: Vec<Transfer>,
    /// Writes of the children, kept back until all reads are in the plan.
    writes: Vec<Transfer>,
}

impl StripeWork {
    pub(crate) fn clear(&mut self) {
        self.clear_stripe();
        self.reads.clear();
        self.writes.clear();
    }

    fn clear_stripe(&mut self) {
        self.columns.clear();
        self.ends.clear();
        self.known.clear();
    }
}

impl ParityLayout {
    /// Whether sector `lba` of a child lies in a block that is used.
    fn is_within(&self, node: &Node, lba: u64) -> bool {
        let (of_child, of_node) = self.block_sectors();
        lba < node.capacity / of_node * of_child
    }

    /// The parts of `extent` within one chunk of data each, in order.
    fn chunks(&self, extent: Extent) -> impl Iterator<Item = ChunkPart> {
        chunks(self.chunk, u64::from(self.data()), extent)
    }

    /// Between two runs of one member that only parity separates, reads the parity too.
    fn fill_parity_gaps(&self, parts: &mut Vec<Transfer>) {
        parts.sort_unstable_by_key(|t| (t.child, t.lba));
        for i in 1..parts.len() {
            let (a, b) = (parts[i - 1], parts[i]);
            if a.child != b.child || a.end() >= b.lba || a.end() % self.chunk != 0 || b.lba % self.chunk != 0 {
                continue;
            }
            let is_parity = |row| match self.held(a.child, row) {
                Held::Member(stripe, position) => {
                    !matches!(self.role_at(self.p_position(stripe), position), Role::Data(_))
                }
                Held::Spare(_) => false,
            };
            if (a.end() / self.chunk..b.lba / self.chunk).all(is_parity) {
                let sectors = narrow(b.lba - a.end());
                parts.push(Transfer { lba: a.end(), sectors, space: Space::Discard, offset: 0, link: NONE, ..a });
            }
        }
    }

    /// Whether a write can go by rows: of a volume's own parity with nothing missing, and where chunks are whole rows. All else
    /// is written stripe by stripe: a plan is by rows as a whole, or not at all.
    fn has_rows(&self, planner: &Planner<'_>, node: &Node) -> bool {
        let row = planner.policy.row_sectors(planner.layout.sector_bytes());
        let alone = planner.scratch.root == node.id && !node.stripe_locks_below && self.spread.is_none();
        // After a media error operations are kept short, and read nothing that is not wanted.
        let whole = planner.bad.is_empty() && planner.scratch.run_sectors == 0;
        alone && self.chunk.is_multiple_of(row) && !planner.views.is_degraded(node.id) && whole
    }

    /// Any write: stripe by stripe, band by band.
    fn general_write(&self, planner: &mut Planner<'_>, node: &Node, transfers: &[Transfer]) -> PlanResult {
        planner.with_stripe_work(|planner, work| {
            self.for_each_stripe(planner, node, transfers, work, |stripe| stripe.write())?;
            planner.hand_on(node, &mut work.reads, false)?;
            planner.hand_on(node, &mut work.writes, true)
        })
    }

    /// Collects what `transfers` ask of each stripe, and plans it.
    fn for_each_stripe(
        &self,
        planner: &mut Planner<'_>,
        node: &Node,
        transfers: &[Transfer],
        work: &mut StripeWork,
        plan: impl Fn(&mut StripePlanner<'_, '_>) -> PlanResult,
    ) -> PlanResult {
        let mut finish = |row: u64, work: &mut StripeWork| {
            let planned =
                plan(&mut StripePlanner { planner: &mut *planner, node, row: Row::new(self, row), work: &mut *work });
            work.clear_stripe();
            planned
        };
        let mut current = None;
        for transfer in transfers {
            let mut skip = 0;
            for part in self.chunks(transfer.extent()) {
                if let Some(row) = current.replace(part.row).filter(|&row| row != part.row) {
                    finish(row, work)?;
                }
                work.columns.push(ColumnPart::new(&part, transfer, skip));
                skip += part.sectors;
            }
        }
        current.map_or(Ok(()), |row| finish(row, work))
    }
}

/// One stripe while it is planned.
#[derive(Debug, Clone, Copy)]
struct Row<'l> {
    layout: &'l ParityLayout,
    row: u64,
    /// Position of P.
    p: u32,
    /// Which parities (P, Q) are there to be written.
    live: [bool; 2],
}

impl<'l> Row<'l> {
    fn new(layout: &'l ParityLayout, row: u64) -> Row<'l> {
        Row { layout, row, p: layout.p_position(row), live: [true, layout.parities == 2] }
    }

    /// Position of parity number `k` (0 is P, 1 is Q).
    fn parity_position(&self, k: u32) -> u32 {
        if k == 0 {
            self.p
        } else {
            self.layout.q_position(self.p)
        }
    }

    /// Position of data column `column`.
    fn position(&self, column: u32) -> u32 {
        self.layout.position_of(self.p, column)
    }

    /// What data column `column` is multiplied by in Q.
    fn q_coefficient(&self, column: u32) -> u8 {
        if self.layout.parities == 1 {
            return 1;
        }
        gf::exp(self.layout.q_exponent(self.p, self.position(column)) as usize)
    }

    /// What makes the parities of this stripe.
    fn compute_kind(&self) -> ComputeKind {
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

    /// The child that holds the member at `position`, and the sectors of it that the band is.
    #[inline]
    fn on_child(&self, band: Band, position: u32) -> (u32, Extent) {
        let (child, row) = self.layout.place(self.row, position);
        (child, Extent::new(row * self.layout.chunk + band.lo, band.sectors()))
    }

    /// The band of the member at `position`, on the child of its own.
    #[inline]
    fn transfer(&self, band: Band, position: u32, (space, offset): (Space, u32), link: u32) -> Transfer {
        let (child, Extent { lba, sectors }) = self.on_child(band, position);
        Transfer { child, lba, sectors: narrow(sectors), space, offset, link }
    }
}

/// A band of a stripe: sectors `[lo, hi)` of every chunk.
#[derive(Debug, Clone, Copy)]
struct Band {
    lo: u64,
    hi: u64,
}

impl Band {
    fn sectors(self) -> u64 {
        self.hi - self.lo
    }
}

/// How a stripe gets its new parity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    Modify,
    Reconstruct,
}

/// Plans one stripe of a parity node.
struct StripePlanner<'s, 'p> {
    planner: &'s mut Planner<'p>,
    node: &'s Node,
    row: Row<'s>,
    work: &'s mut StripeWork,
}

impl StripePlanner<'_, '_> {
    fn write(&mut self) -> PlanResult {
        if self.planner.views.is_degraded(self.node.id) || !self.planner.bad.is_empty() {
            return self.degraded_write();
        }
        self.collect_ends();
        let strategy = self.choose_strategy();
        let compute = self.planner.compute(self.row.compute_kind());
        for b in 0..self.work.ends.len() - 1 {
            let band = self.band(b);
            if !self.is_written(band) {
                continue;
            }
            match strategy {
                Strategy::Modify => self.modify_band(band, compute),
                Strategy::Reconstruct => self.reconstruct_band(band, compute),
            }
        }
        self.queue_data_writes(compute);
        Ok(())
    }

    /// The band that begins with number `b` of the collected ends.
    fn band(&self, b: usize) -> Band {
        Band { lo: self.work.ends[b], hi: self.work.ends[b + 1] }
    }

    /// Collects the ends of the bands, in order.
    fn collect_ends(&mut self) {
        let StripeWork { columns, ends, .. } = &mut *self.work;
        if columns.iter().all(|c| (c.lo, c.hi) == (columns[0].lo, columns[0].hi)) {
            // A full stripe, or a single column: one band.
            ends.extend_from_slice(&[columns[0].lo, columns[0].hi]);
            return;
        }
        ends.extend(columns.iter().flat_map(|c| [c.lo, c.hi]));
        ends.sort_unstable();
        ends.dedup();
    }

    /// Whether the request writes (or reads) the band on any column.
    fn is_written(&self, band: Band) -> bool {
        self.work.columns.iter().any(|c| c.covers(band))
    }

    /// The part of `column` that covers the band, if any.
    fn covering(&self, band: Band, column: u32) -> Option<usize> {
        let found = |c: &ColumnPart| c.column == column && c.covers(band);
        // Requests come in order, so that in a full stripe every column is found at its own number.
        if self.work.columns.get(column as usize).is_some_and(found) {
            return Some(column as usize);
        }
        self.work.columns.iter().position(found)
    }

    fn choose_strategy(&self) -> Strategy {
        let (modify, reconstruct) = self.count_accesses();
        // A full stripe needs no pre-read, whatever the policy prefers for partial ones.
        if reconstruct > 0 && self.planner.policy.prefers_modify(modify, reconstruct) {
            Strategy::Modify
        } else {
            Strategy::Reconstruct
        }
    }

    /// Pre-reads of the two strategies, neighbouring bands of one member counted as one access.
    fn count_accesses(&self) -> (u32, u32) {
        let (ends, layout) = (&self.work.ends, &self.row.layout);
        if ends.len() == 2 {
            // One band, the common case: every column is either written or not.
            let written = place(self.work.columns.len());
            return (layout.parities + written, layout.data() - written);
        }
        let runs = |wanted: &dyn Fn(Band) -> bool| {
            (0..ends.len() - 1).fold((0, false), |(n, inside), b| {
                let now = wanted(self.band(b));
                (n + u32::from(now && !inside), now)
            })
        };
        let parity_runs = runs(&|band| self.is_written(band)).0;
        let (mut modify, mut reconstruct) = (layout.parities * parity_runs, 0);
        for column in 0..layout.data() {
            let covered = |band| self.covering(band, column).is_some();
            modify += runs(&covered).0;
            reconstruct += runs(&|band| self.is_written(band) && !covered(band)).0;
        }
        (modify, reconstruct)
    }

    /// Old data and old parity in, new parity out, over one band.
    fn modify_band(&mut self, band: Band, compute: u32) {
        let row = self.row;
        for i in 0..self.work.columns.len() {
            let part = self.work.columns[i];
            if !part.covers(band) {
                continue;
            }
            let coefficients = row.coefficients(part.column);
            let old = self.read_to_scratch(band, row.position(part.column), compute);
            self.planner.input(old, coefficients);
            self.planner.input(part.memory(band), coefficients);
        }
        let mut outputs = [None; 2];
        for (n, k) in (0..2).filter(|&k| row.live[k as usize]).enumerate() {
            // New parity replaces the old in the same memory.
            let position = row.parity_position(k);
            let parity = self.read_to_scratch(band, position, compute);
            self.planner.input(parity, if n == 0 { [1, 0] } else { [0, 1] });
            outputs[n] = Some(parity);
            self.queue_write(band, position, parity, compute);
        }
        self.planner.segment(compute, band.sectors(), outputs);
    }

    /// The whole stripe's data in (read where it is neither written nor known), new parity out, over one band.
    fn reconstruct_band(&mut self, band: Band, compute: u32) {
        let row = self.row;
        for column in 0..row.layout.data() {
            let is_it = |k: &&KnownColumn| k.column == column && k.lo == band.lo;
            let memory = if let Some(i) = self.covering(band, column) {
                self.work.columns[i].memory(band)
            } else if let Some(known) = self.work.known.iter().find(is_it) {
                (Space::Scratch, known.offset)
            } else {
                self.read_to_scratch(band, row.position(column), compute)
            };
            self.planner.input(memory, row.coefficients(column));
        }
        let mut outputs = [None; 2];
        for (n, k) in (0..2).filter(|&k| row.live[k as usize]).enumerate() {
            let parity = (Space::Scratch, self.planner.allocate(band.sectors()));
            outputs[n] = Some(parity);
            self.queue_write(band, row.parity_position(k), parity, compute);
        }
        self.planner.segment(compute, band.sectors(), outputs);
    }

    /// Reads the band of the member at `position` into new scratch memory, for `link` to use.
    fn read_to_scratch(&mut self, band: Band, position: u32, link: u32) -> (Space, u32) {
        let memory = (Space::Scratch, self.planner.allocate(band.sectors()));
        self.queue_read(band, position, memory, link);
        memory
    }

    /// Queues the writes of the request's own data; `compute` waits for whoever makes that data.
    fn queue_data_writes(&mut self, compute: u32) {
        for i in 0..self.work.columns.len() {
            let part = &self.work.columns[i];
            if part.link != NONE && compute != NONE {
                self.planner.edge(part.link, compute);
            }
            let band = Band { lo: part.lo, hi: part.hi };
            let position = self.row.position(part.column);
            let (memory, link) = ((part.space, part.offset), part.link);
            self.queue_write(band, position, memory, link);
        }
    }
}
