//! Children one after another.

use crate::layout::{Level, NodeId};
use crate::plan::{Planned, Planner};
use raidlab_types::Extent;
use std::ops::Range;

/// The parts of `extent`, each within one child: (child, its sectors). `starts` ends with the capacity.
pub(super) fn parts(starts: &[u64], extent: Extent) -> impl Iterator<Item = (u32, Extent)> + '_ {
    let first = starts.partition_point(|&s| s <= extent.lba).saturating_sub(1);
    (first..starts.len() - 1).map_while(move |child| {
        let (lo, hi) = (extent.lba.max(starts[child]), extent.end().min(starts[child + 1]));
        (starts[child] < extent.end()).then(|| (child as u32, Extent::new(lo - starts[child], hi.saturating_sub(lo))))
    })
}

impl Planner<'_> {
    pub(crate) fn concat(&mut self, node: NodeId, range: Range<usize>, write: bool) -> Planned {
        let layout = self.layout;
        let Level::Concat { starts } = &layout.node(node).level else { unreachable!("called for a concat") };
        let base = self.scratch.segs.len();
        for i in range {
            let seg = self.scratch.segs[i];
            let mut skip = 0;
            for (child, part) in parts(starts, seg.extent()).filter(|(_, part)| part.sectors > 0) {
                self.scratch.segs.push(seg.part(skip, part.sectors, child, part.lba));
                skip += part.sectors;
            }
        }
        self.distribute(node, base, write)
    }
}
