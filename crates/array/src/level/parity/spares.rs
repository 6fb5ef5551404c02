//! Distributed spares: where members of stripes are whose child is gone.
//!
//! What a child held may stand in a distributed spare ([`MemberView::spare`](crate::MemberView)), or come to: that is in the
//! spare chunks of the same rows, each on another child. That one may be gone too, and stand in another spare. So a member of
//! a stripe has a chain of places: it is read from the first that has it, and written to all that are there.
//!
//! Invariant: the places of all members of a row are on distinct children but for the members' own, so a child that is lost
//! costs a stripe one member at most, its own or one that stands there for another.

use super::{Band, ParityLayout, Row, StripePlanner};
use crate::layout::{Layout, Node, NodeId};
use crate::plan::{narrow, MemberViews, Planner, Space, Transfer, NONE};
use crate::weakness::Weakness;
use raidlab_types::Extent;
use std::iter::successors;

/// Where a band of a member is, or comes to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The child's position, and the child.
    pub position: u32,
    pub child: NodeId,
    pub extent: Extent,
    /// What the member held was brought there, if it is not its own child.
    is_filled: bool,
}

impl Place {
    /// Whether it can be read there.
    pub(super) fn has(&self, planner: &Planner<'_>) -> bool {
        self.is_filled && planner.is_readable(self.child, self.extent)
    }

    fn transfer(&self, (space, offset): (Space, u32), link: u32) -> Transfer {
        let Extent { lba, sectors } = self.extent;
        Transfer { child: self.position, lba, sectors: narrow(sectors), space, offset, link }
    }
}

impl<'l> Row<'l> {
    /// Where a band of the member at `position` is: on its own child, and for each that stands in a spare on the one that has
    /// the spare chunk.
    pub(super) fn places(
        self,
        (layout, views): (&'l Layout, &'l MemberViews),
        node: &'l Node,
        band: Band,
        position: u32,
    ) -> impl Iterator<Item = Place> + 'l {
        let (position, extent) = self.on_child(band, position);
        let own = Place { position, child: node.child(position), extent, is_filled: true };
        successors(Some(own), move |place| {
            let spread = self.layout.spread.as_ref().filter(|spread| spread.spares > 0)?;
            let spare = views.leaf(layout.leaf(place.child)?).spare?;
            let position = spread.spare(extent.lba / self.layout.chunk, spare - node.spares.start);
            let is_filled = place.is_filled && views.leaf(spare).reads(extent);
            Some(Place { position, child: node.child(position), extent, is_filled })
        })
    }
}

impl ParityLayout {
    /// How many of so many first sectors of the child at `position` hold anything: spare chunks do not, of which `is_free` says
    /// so by their number.
    pub(crate) fn used_sectors(&self, position: u32, sectors: u64, is_free: impl Fn(u32) -> bool) -> u64 {
        let Some(spread) = self.spread.as_ref().filter(|spread| spread.spares > 0) else { return sectors };
        let (children, free) =
            (u64::from(spread.children), (0..spread.spares).filter(|&number| is_free(number)).count());
        let rows = sectors / self.chunk;
        // In as many rows as there are children each of these is once at every place.
        let in_blocks = rows / children * free as u64;
        let is_free_in = |&row: &u64| (0..spread.spares).any(|n| is_free(n) && spread.spare(row, n) == position);
        let in_rest = (rows / children * children..rows).filter(is_free_in).count() as u64;
        let of_last = if is_free_in(&rows) { sectors % self.chunk } else { 0 };
        sectors - (in_blocks + in_rest) * self.chunk - of_last
    }
}

impl<'s> StripePlanner<'s, '_> {
    fn places(&self, band: Band, position: u32) -> impl Iterator<Item = Place> + 's {
        self.row.places((self.planner.layout, self.planner.views), self.node, band, position)
    }

    #[inline]
    pub(super) fn position_readable(&self, band: Band, position: u32) -> bool {
        // Asked of every member of degraded stripes: a chain of one place is not walked.
        if self.node.spares.is_empty() {
            let (child, extent) = self.row.on_child(band, position);
            return self.planner.is_readable(self.node.child(child), extent);
        }
        self.source(band, position).is_some()
    }

    /// The first place that has the member at `position`.
    #[inline(never)]
    pub(super) fn source(&self, band: Band, position: u32) -> Option<Place> {
        self.places(band, position).find(|place| place.has(self.planner))
    }

    /// Whether the member at `position` is written anywhere.
    pub(super) fn is_written_at(&self, position: u32) -> bool {
        self.places(Band { lo: 0, hi: 1 }, position).any(|place| !self.planner.views.is_lost(place.child))
    }

    /// Has the band of the member at `position` read, which can be.
    #[inline]
    pub(super) fn queue_read(&mut self, band: Band, position: u32, memory: (Space, u32), link: u32) {
        let mut read = self.row.transfer(band, position, memory, link);
        if !self.node.spares.is_empty() {
            read = self.source(band, position).map_or(read, |place| place.transfer(memory, link));
        }
        self.work.reads.push(read);
    }

    /// Has the band of the member at `position` written, wherever it is: what is lost is left out when its turn comes.
    #[inline]
    pub(super) fn queue_write(&mut self, band: Band, position: u32, memory: (Space, u32), link: u32) {
        self.work.writes.push(self.row.transfer(band, position, memory, link));
        if !self.node.spares.is_empty() {
            self.queue_spare_writes(band, position, memory, link);
        }
    }

    // Kept out of the short path.
    #[inline(never)]
    fn queue_spare_writes(&mut self, band: Band, position: u32, memory: (Space, u32), link: u32) {
        if !self.planner.views.is_weak(Weakness::SparesMissWrites) || self.planner.scratch.restores {
            let in_spares = self.places(band, position).skip(1);
            self.work.writes.extend(in_spares.map(|place| place.transfer(memory, link)));
        }
    }

    /// Notes that the band of the member at `position` cannot be had, wherever it is to be.
    pub(super) fn go_without(&mut self, band: Band, position: u32) {
        for place in self.places(band, position) {
            self.planner.goes_without(place.child, place.extent);
        }
    }

    /// Plans what brings the band of the member at `position` from where it is to wherever else it should be, if anything.
    pub(super) fn copy_to_places(&mut self, band: Band, position: u32) {
        if self.node.spares.is_empty() {
            return;
        }
        let Some(source) = self.source(band, position) else { return };
        let mut memory = None;
        for place in self.places(band, position) {
            if place.has(self.planner) || self.planner.views.is_lost(place.child) {
                continue;
            }
            let offset = *memory.get_or_insert_with(|| self.planner.allocate(band.sectors()));
            self.work.writes.push(place.transfer((Space::Scratch, offset), NONE));
        }
        self.work.reads.extend(memory.map(|offset| source.transfer((Space::Scratch, offset), NONE)));
    }
}
