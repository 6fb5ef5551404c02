//! RAID 0: chunks dealt to the children in turn.

use super::{chunks, rows_covering, Content, Level, NodeLayout, Personality, Surroundings};
use crate::layout::{Node, NodeId};
use raidlab_types::number::usize_from;
use raidlab_types::Extent;

/// RAID 0.
#[derive(Debug, Clone)]
pub(crate) struct Stripe {
    /// Sectors of a chunk.
    chunk: u64,
}

pub(super) fn compile(around: &Surroundings<'_>) -> NodeLayout {
    around.striping(Level::Stripe(Stripe { chunk: around.chunk }), around.count())
}

impl Personality for Stripe {
    #[inline]
    fn parts(&self, node: &Node, extent: Extent) -> impl Iterator<Item = (u32, Extent)> {
        chunks(self.chunk, node.children.len() as u64, extent).map(|part| (part.column, part.on_child()))
    }

    fn content(&self, node: &Node, position: u32, lba: u64) -> Content {
        let (row, children) = (lba / self.chunk, node.children.len() as u64);
        Content::Data((row * children + u64::from(position)) * self.chunk + lba % self.chunk)
    }

    fn covering(&self, node: &Node, _: u32, part: Extent) -> Extent {
        rows_covering(self.chunk, self.chunk * node.children.len() as u64, part)
    }

    fn for_each_share(&self, node: &Node, extent: Extent, mut visit: impl FnMut(NodeId, Extent)) {
        let (chunk, children) = (self.chunk, node.children.len() as u64);
        let (first, last) = (extent.lba / chunk, (extent.end() - 1) / chunk);
        for begin in first..=last.min(first + children - 1) {
            let end = begin + (last - begin) / children * children;
            let lo = begin / children * chunk + if begin == first { extent.lba % chunk } else { 0 };
            let tail = if end == last { (extent.end() - 1) % chunk + 1 } else { chunk };
            let hi = end / children * chunk + tail;
            visit(node.children[usize_from(begin % children)], Extent::new(lo, hi - lo));
        }
    }

    fn chunk(&self) -> Option<u64> {
        Some(self.chunk)
    }
}
