//! The map of the first stripes, as the textbooks draw it: one column a member, one row a chunk.

use super::rotation::Role;
use super::{Layout, Level, NodeId};

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

/// Where a sector of a node comes from, seen from above.
enum Owner {
    Data(u64),
    Parity(MapCell),
    Unused,
}

impl Layout {
    /// What the first `rows` cells of each member hold.
    pub fn map(&self, rows: u64) -> LayoutMap {
        let chunk_of = |level: &Level| match level {
            Level::Stripe { chunk } => Some(*chunk),
            Level::Parity(p) => Some(p.chunk),
            _ => None,
        };
        let cell_sectors = self.nodes.iter().filter_map(|n| chunk_of(&n.level)).min().unwrap_or(1);
        let mut cells = vec![vec![MapCell::Unused; rows as usize]; self.leaves()];
        for (volume, v) in self.volumes().iter().enumerate() {
            let mut path = Vec::new();
            self.fill(v.node, &mut path, volume as u32, cell_sectors, &mut cells);
        }
        LayoutMap { cell_sectors, cells }
    }

    fn fill(&self, id: NodeId, path: &mut Vec<(NodeId, u32)>, volume: u32, step: u64, cells: &mut [Vec<MapCell>]) {
        if let Level::Leaf { leaf } = self.node(id).level {
            for (row, cell) in cells[leaf as usize].iter_mut().enumerate() {
                *cell = self.cell(row as u64 * step, self.node(id).capacity, path, volume);
            }
            return;
        }
        for (position, &child) in self.node(id).children.iter().enumerate() {
            path.push((id, position as u32));
            self.fill(child, path, volume, step, cells);
            path.pop();
        }
    }

    /// Walks from a leaf's sector up to the volume.
    fn cell(&self, lba: u64, capacity: u64, path: &[(NodeId, u32)], volume: u32) -> MapCell {
        if lba >= capacity {
            return MapCell::Unused;
        }
        let mut at = lba;
        for &(node, position) in path.iter().rev() {
            match self.owner(node, position, at) {
                Owner::Data(up) => at = up,
                Owner::Parity(cell) => return cell,
                Owner::Unused => return MapCell::Unused,
            }
        }
        MapCell::Data { volume, lba: at }
    }

    /// The address on `node` of sector `lba` of its child at `position`.
    fn owner(&self, node: NodeId, position: u32, lba: u64) -> Owner {
        let n = self.node(node);
        let owner = match &n.level {
            Level::Leaf { .. } | Level::Independent | Level::Mirror { .. } => Owner::Data(lba),
            Level::Concat { starts } => Owner::Data(starts[position as usize] + lba),
            Level::Stripe { chunk } => {
                Owner::Data((lba / chunk * n.children.len() as u64 + position as u64) * chunk + lba % chunk)
            }
            Level::Parity(p) => {
                let row = lba / p.chunk;
                match p.role_at(p.p_position(row), position) {
                    Role::Data(column) => {
                        Owner::Data((row * p.data() as u64 + column as u64) * p.chunk + lba % p.chunk)
                    }
                    Role::P if row * p.data() as u64 * p.chunk < n.capacity => Owner::Parity(MapCell::P { node, row }),
                    Role::Q if row * p.data() as u64 * p.chunk < n.capacity => Owner::Parity(MapCell::Q { node, row }),
                    _ => Owner::Unused,
                }
            }
        };
        match owner {
            Owner::Data(at) if at >= n.capacity => Owner::Unused,
            other => other,
        }
    }
}
