//! Partial stripes in rows, as Linux md's stripe cache writes them: there a row is a page of 4 KiB of each member.
//!
//! A row is the same part of every chunk of a stripe (`Policy::parity_row_bytes`). Each decides by itself between read-modify-write and
//! reconstruct-write; what it reads or writes of a member is all of the row there, also where the request has only a part of it.
//! What neighbouring rows do on one member is not joined here: the host's block layer does that, as far as it does.
//!
//! Rows that follow each other and are written whole are one (md's batches).
//!
//! Invariants: all writes of a row wait for its computation, and so become ready together; a write waits for no other row.
//! Rows come in the order in which md takes them, for that decides what is merged.
//!
//! Reference: `raid5_make_request`, `handle_stripe_dirtying` and `ops_run_io` of Linux 6.12, drivers/md/raid5.c.

use super::{Band, ColumnPart, KnownColumn, ParityLayout, StripePlanner};
use crate::layout::Node;
use crate::plan::{PlanResult, Planner, Space, Transfer, NONE};
use raidlab_types::Extent;

/// What comes first of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begin {
    /// Its first row.
    FirstRow,
    /// The first row of its first stripe.
    FirstOfStripe,
    /// Its second stripe; the first stripe last.
    SecondStripe,
}

impl ParityLayout {
    pub(super) fn write_by_rows(
        &self,
        planner: &mut Planner<'_>,
        node: &Node,
        transfer: &Transfer,
        row_sectors: u64,
    ) -> PlanResult {
        planner.plan.by_rows = true;
        let stripe = self.chunk * u64::from(self.data());
        let extent = transfer.extent();
        let first = ((extent.lba / stripe + 1) * stripe).min(extent.end()) - extent.lba;
        let part = |skip, sectors| transfer.part(skip, transfer.child, Extent::new(extent.lba + skip, sectors));
        let (head, rest) = (part(0, first), part(first.min(extent.sectors - 1), (extent.sectors - first).max(1)));
        let begin = self.begin(extent);
        let start = match begin {
            Begin::FirstOfStripe => 0,
            _ => extent.lba % self.chunk / row_sectors,
        };
        let parts = match begin {
            Begin::SecondStripe => [(rest, 0), (head, start)],
            _ => [(head, start), (rest, 0)],
        };
        let is_empty = |t: &Transfer| first == extent.sectors && t.lba == rest.lba && t.sectors == rest.sectors;
        planner.with_stripe_work(|planner, work| {
            for (k, (part, start)) in parts.iter().enumerate() {
                if k == 1 && is_empty(part) {
                    continue;
                }
                self.for_each_stripe(planner, node, &[*part], work, |stripe| stripe.write_rows(*start, row_sectors))?;
            }
            Ok(())
        })
    }

    /// Where md begins with a request: at the page lowest in the chunks, as far as it finds that page. It takes the next chunk
    /// for one of the same stripe where there is a member behind this one, and for none where there is not.
    fn begin(&self, extent: Extent) -> Begin {
        let (chunk, within) = (extent.lba / self.chunk, extent.lba % self.chunk);
        if extent.sectors <= self.chunk - within {
            return Begin::FirstRow;
        }
        let data = u64::from(self.data());
        let p = self.p_position(chunk / data);
        let column = u32::try_from(chunk % data).expect("a stripe has fewer chunks than 2^32");
        let parity = |position| position == p || (self.parities == 2 && position == self.q_position(p));
        let next = (self.position_of(p, column) + 1..self.members).find(|&position| !parity(position));
        match next {
            None => Begin::FirstRow,
            Some(_) if column + 1 < self.data() => Begin::FirstOfStripe,
            Some(_) => Begin::SecondStripe,
        }
    }
}

impl StripePlanner<'_, '_> {
    /// Plans the rows of a stripe from row `start` on, and then those before.
    fn write_rows(&mut self, start: u64, row_sectors: u64) -> PlanResult {
        let columns = &self.work.columns;
        let first = columns.iter().map(|c| c.lo).min().unwrap_or(0) / row_sectors;
        let last = columns.iter().map(|c| c.hi).max().unwrap_or(0).div_ceil(row_sectors);
        let start = start.clamp(first, last);
        for (from, to) in [(start, last), (first, start)] {
            let mut row = from;
            while row < to {
                let mut band = Band { lo: row * row_sectors, hi: (row + 1) * row_sectors };
                row += 1;
                while row < to && self.is_full(band) && self.is_full(Band { lo: band.hi, hi: band.hi + row_sectors }) {
                    (band.hi, row) = (band.hi + row_sectors, row + 1);
                }
                if self.is_written_in_part(band) {
                    self.write_row(band)?;
                }
            }
        }
        Ok(())
    }

    /// Whether all data of the band is written.
    fn is_full(&self, band: Band) -> bool {
        (0..self.row.layout.data()).all(|column| self.covering(band, column).is_some())
    }

    /// Whether any data of the band is written.
    fn is_written_in_part(&self, band: Band) -> bool {
        self.work.columns.iter().any(|column| column.touches(band))
    }

    fn write_row(&mut self, band: Band) -> PlanResult {
        self.collect_row_ends(band);
        let (parities, data) = (self.row.layout.parities, self.row.layout.data());
        let count = |wanted: &dyn Fn(&ColumnPart) -> bool| self.work.columns.iter().filter(|c| wanted(c)).count();
        let touched = crate::plan::place(count(&|c| c.touches(band)));
        let full = crate::plan::place(count(&|c| c.covers(band)));
        let modify = full < data && self.planner.policy.prefers_modify(parities + touched, data - full);
        let compute = self.planner.compute(self.row.compute_kind());
        self.read_old(band, modify, compute);
        let outputs = self.parity_memory(band, modify, compute);
        for b in 0..self.work.ends.len() - 1 {
            self.compute_part(band, self.band(b), modify, compute, outputs);
        }
        self.queue_row_writes(band, compute, outputs);
        self.work.ends.clear();
        self.work.known.clear();
        self.emit_row()
    }

    /// Where the row's parts begin and end that have the same columns.
    fn collect_row_ends(&mut self, band: Band) {
        let ends = &mut self.work.ends;
        ends.extend([band.lo, band.hi]);
        let inside = |end: &u64| band.lo < *end && *end < band.hi;
        ends.extend(self.work.columns.iter().flat_map(|c| [c.lo, c.hi]).filter(inside));
        ends.sort_unstable();
        ends.dedup();
    }

    /// Reads the old pages of data that the computation needs, or of which only a part is written.
    fn read_old(&mut self, band: Band, modify: bool, compute: u32) {
        for column in 0..self.row.layout.data() {
            let is_it = |c: &&ColumnPart| c.column == column;
            let part = self.work.columns.iter().find(is_it).filter(|c| c.touches(band));
            let needed = if modify { part.is_some() } else { !part.is_some_and(|c| c.covers(band)) };
            if needed {
                let (_, offset) = self.read_to_scratch(band, self.row.position(column), compute);
                self.work.known.push(KnownColumn { column, lo: band.lo, offset });
            }
        }
    }

    /// Memory for the new parities, and the old ones read into it where they are needed.
    fn parity_memory(&mut self, band: Band, modify: bool, compute: u32) -> [Option<u32>; 2] {
        let mut outputs = [None; 2];
        for k in 0..self.row.layout.parities {
            outputs[k as usize] = Some(match modify {
                true => self.read_to_scratch(band, self.row.parity_position(k), compute).1,
                false => self.planner.allocate(band.sectors()),
            });
        }
        outputs
    }

    /// Where the old content of a column's `part` lies, if it is read.
    fn old(&self, column: u32, band: Band, part: Band) -> Option<(Space, u32)> {
        let known = self.work.known.iter().find(|known| known.column == column)?;
        Some((Space::Scratch, known.offset + crate::plan::narrow(part.lo - band.lo)))
    }

    /// Computes the parities of one part of the row.
    fn compute_part(&mut self, band: Band, part: Band, modify: bool, compute: u32, parities: [Option<u32>; 2]) {
        let skip = crate::plan::narrow(part.lo - band.lo);
        let outputs = parities.map(|offset| offset.map(|offset| (Space::Scratch, offset + skip)));
        let mut inputs = 0;
        for column in 0..self.row.layout.data() {
            let coefficients = self.row.coefficients(column);
            let new = self.covering(part, column).map(|i| self.work.columns[i].memory(part));
            let old = self.old(column, band, part);
            let wanted = if modify { [new.and(old), new] } else { [new.or(old), None] };
            for memory in wanted.into_iter().flatten() {
                self.planner.input(memory, coefficients);
                inputs += 1;
            }
        }
        if modify && inputs == 0 {
            // No column is written here, so the parities stay what they are.
            return;
        }
        if modify {
            for (k, parity) in outputs.iter().flatten().enumerate() {
                self.planner.input(*parity, if k == 0 { [1, 0] } else { [0, 1] });
            }
        }
        self.planner.segment(compute, part.sectors(), outputs);
    }

    /// Queues the writes of the row's pages: what the request has of them, and what was read around it.
    fn queue_row_writes(&mut self, band: Band, compute: u32, parities: [Option<u32>; 2]) {
        for i in 0..self.work.columns.len() {
            let column = self.work.columns[i];
            if !column.touches(band) {
                continue;
            }
            if column.link != NONE {
                self.planner.edge(column.link, compute);
            }
            let position = self.row.position(column.column);
            for b in 0..self.work.ends.len() - 1 {
                let part = self.band(b);
                let memory = match column.covers(part) {
                    true => column.memory(part),
                    false => self.old(column.column, band, part).expect("a page written in part is read"),
                };
                self.work.writes.push(self.row.transfer(part, position, memory, compute));
            }
        }
        for (k, offset) in (0..).zip(parities).filter_map(|(k, offset)| Some((k, offset?))) {
            let position = self.row.parity_position(k);
            self.work.writes.push(self.row.transfer(band, position, (Space::Scratch, offset), compute));
        }
    }

    /// Puts the row's operations into the plan, members from the last to the first: so md goes through them, and what waits
    /// for a computation is found in the reverse of the order in which it was added.
    fn emit_row(&mut self) -> PlanResult {
        let (node, work) = (self.node, &mut *self.work);
        work.reads.sort_by_key(|t| std::cmp::Reverse(t.child));
        for read in work.reads.chunk_by(|a, b| a.child == b.child) {
            self.planner.plan_node(node.child(read[0].child), read, false)?;
        }
        work.writes.sort_by_key(|t| (t.child, t.lba));
        for write in work.writes.chunk_by(|a, b| a.child == b.child) {
            self.planner.plan_node(node.child(write[0].child), write, true)?;
        }
        work.reads.clear();
        work.writes.clear();
        self.planner.end_pairs();
        Ok(())
    }
}
