//! RAID 0: chunks dealt to the children in turn.

use crate::layout::NodeId;
use crate::plan::{Planned, Planner, Seg};
use raidlab_types::Extent;
use std::ops::Range;

/// The parts of `extent`, each within one chunk: (child, its sectors).
pub(super) fn parts(chunk: u64, children: u64, extent: Extent) -> impl Iterator<Item = (u32, Extent)> {
    let mut lba = extent.lba;
    let (index, mut within) = (lba / chunk, lba % chunk);
    let (mut row, mut position) = (index / children, index % children);
    std::iter::from_fn(move || {
        if lba >= extent.end() {
            return None;
        }
        let sectors = (chunk - within).min(extent.end() - lba);
        let part = (position as u32, Extent::new(row * chunk + within, sectors));
        (lba, within, position) = (lba + sectors, 0, position + 1);
        if position == children {
            (row, position) = (row + 1, 0);
        }
        Some(part)
    })
}

impl Planner<'_> {
    pub(crate) fn stripe(&mut self, node: NodeId, chunk: u64, range: Range<usize>, write: bool) -> Planned {
        let children = self.layout.node(node).children.len() as u64;
        if range.len() == 1 {
            let seg = self.scratch.segs[range.start];
            let (index, within) = (seg.lba / chunk, seg.lba % chunk);
            if within + seg.sectors as u64 <= chunk {
                let (row, position) = (index / children, (index % children) as u32);
                let part = Seg { child: position, lba: row * chunk + within, ..seg };
                return self.distribute_one(node, part, write);
            }
        }
        self.stripe_chunks(node, chunk, range, write)
    }

    // Kept out of the short path, which would else save and restore all that this needs.
    #[inline(never)]
    fn stripe_chunks(&mut self, node: NodeId, chunk: u64, range: Range<usize>, write: bool) -> Planned {
        let base = self.scratch.segs.len();
        let children = self.layout.node(node).children.len() as u64;
        for i in range {
            let seg = self.scratch.segs[i];
            let mut skip = 0;
            for (child, part) in parts(chunk, children, seg.extent()) {
                self.scratch.segs.push(seg.part(skip, part.sectors, child, part.lba));
                skip += part.sectors;
            }
        }
        self.distribute(node, base, write)
    }
}
