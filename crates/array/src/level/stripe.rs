//! RAID 0: chunks dealt to the children in turn.

use crate::layout::NodeId;
use crate::plan::{Planned, Planner};
use raidlab_types::Extent;
use std::ops::Range;

/// The parts of `extent`, each within one chunk: (child, its sectors).
pub(super) fn parts(chunk: u64, children: u64, extent: Extent) -> impl Iterator<Item = (u32, Extent)> {
    let mut lba = extent.lba;
    std::iter::from_fn(move || {
        if lba >= extent.end() {
            return None;
        }
        let (index, within) = (lba / chunk, lba % chunk);
        let sectors = (chunk - within).min(extent.end() - lba);
        lba += sectors;
        Some(((index % children) as u32, Extent::new(index / children * chunk + within, sectors)))
    })
}

impl Planner<'_> {
    pub(crate) fn stripe(&mut self, node: NodeId, chunk: u64, range: Range<usize>, write: bool) -> Planned {
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
