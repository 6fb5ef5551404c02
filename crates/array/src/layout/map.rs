//! The map of the first stripes, as the textbooks draw it: one column a member, one row a chunk.

use super::{Layout, Node, NodeId};
use crate::level::{for_level, Content, Level, Member, Personality};
use raidlab_types::number::usize_from;

/// What one chunk-sized cell of a member holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapCell {
    /// Sectors of a volume, beginning with this one.
    Data {
        /// Which volume.
        volume: u32,
        /// First sector on the volume.
        lba: u64,
    },
    /// Parity of the parity node `node`, stripe `row`.
    P {
        /// The parity node.
        node: NodeId,
        /// Its stripe.
        row: u64,
    },
    /// Second parity.
    Q {
        /// The parity node.
        node: NodeId,
        /// Its stripe.
        row: u64,
    },
    /// A spare chunk of the row.
    Spare {
        /// Of which distributed spare of the node.
        number: u32,
    },
    /// Beyond what the array uses.
    Unused,
}

/// The first cells of every member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutMap {
    /// Sectors a cell covers: the smallest chunk in the tree.
    pub cell_sectors: u64,
    /// `cells[leaf][row]`.
    pub cells: Vec<Vec<MapCell>>,
}

impl Layout {
    /// What the first `rows` cells of each member hold.
    pub fn map(&self, rows: u64) -> LayoutMap {
        let cell_sectors =
            self.nodes.iter().filter_map(|node| for_level!(node, level => level.chunk())).min().unwrap_or(1);
        let mut cells = vec![vec![MapCell::Unused; usize_from(rows)]; self.leaves()];
        for (volume, &node) in (0..).zip(&self.volume_nodes) {
            self.fill(node, &mut Vec::new(), volume, cell_sectors, &mut cells);
        }
        LayoutMap { cell_sectors, cells }
    }

    fn fill<'a>(
        &'a self,
        id: NodeId,
        path: &mut Vec<(&'a Node, u32)>,
        volume: u32,
        step: u64,
        cells: &mut [Vec<MapCell>],
    ) {
        let node = self.node(id);
        if let Level::Member(Member { leaf }) = node.level {
            for (lba, cell) in (0..).step_by(usize_from(step)).zip(&mut cells[leaf as usize]) {
                *cell = cell_at(lba, node.capacity, path, volume);
            }
        }
        for (position, &child) in (0..).zip(&node.children) {
            path.push((node, position));
            self.fill(child, path, volume, step, cells);
            path.pop();
        }
    }
}

/// Walks from a leaf's sector up to the volume.
fn cell_at(lba: u64, capacity: u64, path: &[(&Node, u32)], volume: u32) -> MapCell {
    if lba >= capacity {
        return MapCell::Unused;
    }
    let mut at = lba;
    for &(node, position) in path.iter().rev() {
        match for_level!(node, level => level.content(node, position, at)) {
            Content::Data(up) if up < node.capacity => at = up,
            Content::Other(cell) => return cell,
            Content::Data(_) | Content::Unused => return MapCell::Unused,
        }
    }
    MapCell::Data { volume, lba: at }
}
