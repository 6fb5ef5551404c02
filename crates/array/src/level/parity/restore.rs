//! Writing anew what members of RAID 5 and RAID 6 should hold, from the others: a rebuild.
//!
//! Of a band first the data that cannot be read is worked out, then the parities that are to be written; either only where
//! a member wants it.

use super::{Band, ParityLayout, Row, StripePlanner};
use crate::layout::Node;
use crate::level::runs;
use crate::plan::{ComputeKind, PlanResult, Planner, Space, NONE};
use raidlab_types::number::u32_from;
use raidlab_types::Extent;

impl ParityLayout {
    /// `extent` of every child, row by row, in bands of at most `longest` sectors: the stripes that have members there, each
    /// with the only member that has where there is one. `whole` stripes are taken once for all of their members, in a row
    /// of each block as many as in another.
    pub(super) fn bands(
        &self,
        extent: Extent,
        longest: u64,
        whole: bool,
    ) -> impl Iterator<Item = (Row<'_>, Band, Option<u32>)> {
        let (chunk, (stripes, rows)) = (self.chunk, self.block());
        (extent.lba / chunk..=(extent.end() - 1) / chunk).flat_map(move |row| {
            let start = row * chunk;
            let (lo, hi) = (extent.lba.max(start) - start, extent.end().min(start + chunk) - start);
            let (block, position) = (row / rows, row % rows);
            let only = (rows > 1 && !whole).then(|| u32_from(position));
            let of_row = (0..stripes).filter(move |stripe| !whole || stripe % rows == position);
            of_row.flat_map(move |stripe| {
                let row = Row::new(self, block * stripes + stripe);
                let band = move |part: Extent| (row, Band { lo: part.lba, hi: part.end() }, only);
                runs(Extent::new(lo, hi - lo), longest).map(band)
            })
        })
    }

    /// Plans what gives `extent` of every child back that can be written and not read.
    pub(super) fn restore_rows(&self, planner: &mut Planner<'_>, node: &Node, extent: Extent) -> PlanResult {
        planner.with_stripe_work(|planner, work| {
            for (row, band, only) in self.bands(extent, planner.scratch.restored_run, planner.scratch.scrubs) {
                let restored =
                    StripePlanner { planner: &mut *planner, node, row, work: &mut *work }.restore(band, only);
                work.clear_stripe();
                restored?;
            }
            let (of_child, of_node) = self.block_sectors();
            if extent.end() == node.capacity / of_node * of_child {
                for child in (0..).take(node.children.len()) {
                    if work.writes.iter().any(|write| write.child == child) {
                        work.writes.extend(planner.completion(node, child, extent.end()));
                    }
                }
            }
            planner.hand_on(node, &mut work.reads, false)?;
            planner.hand_on(node, &mut work.writes, true)
        })
    }
}

impl StripePlanner<'_, '_> {
    /// Plans what the stripe's members lack in the band, or `only` the one at that position.
    fn restore(&mut self, band: Band, only: Option<u32>) -> PlanResult {
        let row = self.row;
        let (data, parities) = (row.layout.data(), row.layout.parities);
        if only.is_some_and(|position| !self.is_wanted(band, position, only)) {
            return Ok(());
        }
        let live = [0, 1].map(|k| k < parities && self.is_wanted(band, row.parity_position(k), only));
        let wants_data = (0..data).any(|column| self.is_wanted(band, row.position(column), only));
        if !wants_data && live == [false, false] {
            return Ok(());
        }
        let (mut recover, begun) = (NONE, self.work.reads.len());
        if (0..data).any(|column| !self.column_readable(band, column)) {
            recover = self.planner.compute(ComputeKind::Recover);
            self.restore_band(band, recover)?;
        }
        for column in 0..data {
            if !self.is_wanted(band, row.position(column), only) {
                continue;
            }
            let known = self.work.known.iter().find(|known| known.column == column);
            let memory = (Space::Scratch, known.expect("what cannot be read has been worked out").offset);
            self.work.writes.push(row.transfer(band, row.position(column), memory, recover));
        }
        if live != [false, false] {
            self.row.live = live;
            let compute = self.planner.compute(row.compute_kind());
            if recover != NONE {
                self.planner.edge(recover, compute);
            }
            self.reconstruct_band(band, compute);
        }
        if self.planner.policy.keeps_rows() && !self.planner.scratch.scrubs {
            self.read_rest(band, begun);
        }
        Ok(())
    }

    /// Reads what is there of the band and nobody needs: a host that keeps rows fills them before it works anything out, of
    /// RAID 6 with both parities. `begun`: reads before those of the band.
    fn read_rest(&mut self, band: Band, begun: usize) {
        for position in 0..self.row.layout.members {
            let is_read = self.work.reads[begun..].iter().any(|read| read.child == self.row.child(position));
            if !is_read && self.position_readable(band, position) {
                self.work.reads.push(self.row.transfer(band, position, (Space::Discard, 0), NONE));
            }
        }
    }

    /// Whether the member at `position` is written, and does not hold yet what it should.
    fn is_wanted(&self, band: Band, position: u32, only: Option<u32>) -> bool {
        only.is_none_or(|only| only == position)
            && !self.planner.views.is_lost(self.child(position))
            && !self.position_readable(band, position)
    }
}
