//! Children one after another.

use super::{Content, Level, NodeLayout, Personality, Surroundings};
use crate::layout::{Node, NodeId};
use crate::plan::place;
use raidlab_types::{Extent, Lba};

/// Children one after another.
#[derive(Debug, Clone)]
pub(crate) struct Concat {
    /// Where each child begins, and the end of the last.
    starts: Box<[Lba]>,
}

pub(super) fn compile(around: &Surroundings<'_>) -> NodeLayout {
    let ends = around.capacities.iter().scan(0, |end, sectors| {
        *end += sectors;
        Some(*end)
    });
    let starts: Box<[Lba]> = std::iter::once(0).chain(ends).collect();
    let capacity = around.capacities.iter().sum();
    NodeLayout { level: Level::Concat(Concat { starts }), capacity, alignment: around.alignment }
}

impl Personality for Concat {
    fn parts(&self, _: &Node, extent: Extent) -> impl Iterator<Item = (u32, Extent)> {
        let first = self.starts.partition_point(|&start| start <= extent.lba).saturating_sub(1);
        (place(first)..)
            .zip(self.starts[first..].windows(2))
            .map_while(move |(position, child)| {
                let (begin, end) = (extent.lba.max(child[0]), extent.end().min(child[1]));
                (child[0] < extent.end()).then(|| (position, Extent::new(begin - child[0], end.saturating_sub(begin))))
            })
            .filter(|(_, part)| part.sectors > 0)
    }

    fn content(&self, _: &Node, position: u32, lba: u64) -> Content {
        Content::Data(self.starts[position as usize] + lba)
    }

    fn covering(&self, _: &Node, position: u32, part: Extent) -> Extent {
        Extent::new(self.starts[position as usize] + part.lba, part.sectors)
    }

    fn repeats(&self) -> bool {
        false
    }

    fn for_each_share(&self, node: &Node, extent: Extent, mut visit: impl FnMut(NodeId, Extent)) {
        self.parts(node, extent).for_each(|(position, part)| visit(node.child(position), part));
    }
}
