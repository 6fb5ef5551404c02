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
    /// The stripes that have members in `extent` of the children, each once, in bands of at most `longest` sectors; members
    /// elsewhere in the same blocks may be among them. Of those that are taken `whole`, all of their members together, every
    /// extent has its part: the first member of one stripe counts, the second of the next.
    pub(super) fn bands(&self, extent: Extent, longest: u64, whole: bool) -> impl Iterator<Item = (Row<'_>, Band)> {
        let (chunk, (stripes, rows), (of_child, _)) = (self.chunk, self.block(), self.block_sectors());
        (extent.lba / of_child..=(extent.end() - 1) / of_child).flat_map(move |block| {
            // Where the first row begins and the last ends: between these a member is wanted throughout or not at all.
            let first = extent.lba.max(block * of_child) % chunk;
            let last = (extent.end().min((block + 1) * of_child) - 1) % chunk + 1;
            let ends = [0, first.min(last), first.max(last), chunk];
            (0..stripes).flat_map(move |stripe| {
                let row = Row::new(self, block * stripes + stripe);
                let counts = move |band: &Band| {
                    let member = u32_from(stripe % rows);
                    !whole || extent.contains(row.on_child(*band, member).1)
                };
                let bands = (0..3).map(move |k| Band { lo: ends[k], hi: ends[k + 1] });
                bands.filter(|band| band.lo < band.hi).filter(counts).flat_map(move |band| {
                    let parts = runs(Extent::new(band.lo, band.sectors()), longest);
                    parts.map(move |part| (row, Band { lo: part.lba, hi: part.end() }))
                })
            })
        })
    }

    /// Plans what gives `extent` of every child back that can be written and not read.
    pub(super) fn restore_rows(&self, planner: &mut Planner<'_>, node: &Node, extent: Extent) -> PlanResult {
        planner.with_stripe_work(|planner, work| {
            let (longest, scrubs) = (planner.scratch.restored_run, planner.scratch.scrubs);
            // A scrub mends all members of what it has compared.
            let wanted = (!scrubs).then_some(extent);
            for (row, band) in self.bands(extent, longest, scrubs) {
                let restored =
                    StripePlanner { planner: &mut *planner, node, row, work: &mut *work }.restore(band, wanted);
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
    /// Plans what the stripe's members lack in the band, those that lie in `wanted` if it says where.
    fn restore(&mut self, band: Band, wanted: Option<Extent>) -> PlanResult {
        let row = self.row;
        let (data, parities) = (row.layout.data(), row.layout.parities);
        for position in 0..row.layout.members {
            if wanted.is_none_or(|extent| extent.contains(row.on_child(band, position).1)) {
                self.copy_to_places(band, position);
            }
        }
        let live = [0, 1].map(|k| k < parities && self.is_wanted(band, row.parity_position(k), wanted));
        let wants_data = (0..data).any(|column| self.is_wanted(band, row.position(column), wanted));
        if !wants_data && live == [false, false] {
            return Ok(());
        }
        if self.planner.scratch.salvages && self.unknowns(band).is_err() {
            for position in 0..row.layout.members {
                if self.is_wanted(band, position, wanted) {
                    self.go_without(band, position);
                }
            }
            return Ok(());
        }
        let (mut recover, begun) = (NONE, self.work.reads.len());
        if (0..data).any(|column| !self.column_readable(band, column)) {
            recover = self.planner.compute(ComputeKind::Recover);
            self.restore_band(band, recover)?;
        }
        for column in 0..data {
            if !self.is_wanted(band, row.position(column), wanted) {
                continue;
            }
            let known = self.work.known.iter().find(|known| known.column == column);
            let memory = (Space::Scratch, known.expect("what cannot be read has been worked out").offset);
            self.queue_write(band, row.position(column), memory, recover);
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
            let Some(source) = self.source(band, position) else { continue };
            if !self.work.reads[begun..].iter().any(|read| read.child == source.position) {
                self.queue_read(band, position, (Space::Discard, 0), NONE);
            }
        }
    }

    /// Whether the member at `position` lies where it is wanted, is written, and does not hold yet what it should.
    fn is_wanted(&self, band: Band, position: u32, wanted: Option<Extent>) -> bool {
        wanted.is_none_or(|extent| extent.contains(self.row.on_child(band, position).1))
            && self.is_written_at(position)
            && !self.position_readable(band, position)
    }
}
