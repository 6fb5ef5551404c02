//! A tree compiled for members of known size: flat nodes, capacities, and where everything lies.
//!
//! Invariants: nodes are in depth-first order, a parent before its children; children of a striping, mirroring or parity
//! node are cut to the smallest, and striping ones rounded down to the chunk; all sizes are in sectors of the array.

mod draw;
mod map;

pub use map::{LayoutMap, MapCell};

use crate::level::{for_level, Level, Member, NodeLayout, Personality, Surroundings};
use crate::plan::place;
use crate::spec::Tree;
use raidlab_types::number::lcm;
use raidlab_types::{LeafId, SpecError, Volume};
use std::ops::Range;

/// Index of a node in a [`Layout`].
pub type NodeId = u32;

/// One node of the compiled tree.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// Its index.
    pub id: NodeId,
    pub level: Level,
    pub capacity: u64,
    pub children: Box<[NodeId]>,
    /// Its distributed spares: leaves behind those of all members, of no device.
    pub spares: Range<LeafId>,
    /// How many children it can lose, whichever they are.
    pub bears: usize,
    /// Some node above bears losses, and so the loss of this one.
    pub is_backed: bool,
    /// Some node strictly below locks stripes.
    pub stripe_locks_below: bool,
    /// It lies on its members the same way from one multiple of its alignment to the next.
    pub repeats: bool,
    /// Requests that begin and end on multiples of this touch whole stripes only.
    pub alignment: u64,
}

impl Node {
    /// The child at `position`.
    #[inline]
    pub(crate) fn child(&self, position: u32) -> NodeId {
        self.children[position as usize]
    }
}

/// A leaf: where its data begins on the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaf {
    pub data_offset: u64,
}

/// A tree compiled for members of known size.
#[derive(Debug, Clone)]
pub struct Layout {
    sector_bytes: u32,
    pub(crate) nodes: Vec<Node>,
    pub(crate) leaves: Vec<Leaf>,
    /// Distributed spares of all nodes.
    spares: u32,
    volumes: Vec<Volume>,
    volume_nodes: Box<[NodeId]>,
    tolerance: usize,
}

impl Layout {
    /// Compiles `tree` for members of `member_sectors` each, data offsets included.
    ///
    /// # Errors
    /// When the tree is malformed, sizes are missing, a chunk is not a multiple of the sector, or a member is too small.
    pub fn new(tree: &Tree, member_sectors: &[u64], sector_bytes: u32) -> Result<Layout, SpecError> {
        tree.validate()?;
        let (leaves, sizes) = (tree.leaves(), member_sectors.len());
        if leaves != sizes {
            let message = format!("the tree has {leaves} members, {sizes} sizes were given");
            return Err(SpecError::new("members", message));
        }
        let mut layout = Layout {
            sector_bytes,
            nodes: Vec::new(),
            leaves: Vec::new(),
            spares: 0,
            volumes: Vec::new(),
            volume_nodes: Box::default(),
            tolerance: tree.tolerance(),
        };
        let root = layout.compile(tree, member_sectors, (0, false))?;
        layout.volume_nodes = match tree {
            Tree::Independent { .. } => layout.node(root).children.clone(),
            _ => Box::new([root]),
        };
        let volume = |&node: &NodeId| Volume { capacity_sectors: layout.node(node).capacity };
        layout.volumes = layout.volume_nodes.iter().map(volume).collect();
        Ok(layout)
    }

    /// Whether any level bears a loss.
    pub fn has_redundancy(&self) -> bool {
        self.nodes.iter().any(|node| node.bears > 0)
    }

    /// The node of a leaf.
    pub(crate) fn node_of(&self, leaf: LeafId) -> NodeId {
        let is_leaf = |node: &&Node| matches!(node.level, Level::Member(Member { leaf: l }) if l == leaf);
        self.nodes.iter().find(is_leaf).map_or(0, |node| node.id)
    }

    /// The node above, if there is one.
    pub(crate) fn parent(&self, id: NodeId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.children.contains(&id))
    }

    /// The leaf that a node is, if it is one.
    pub(crate) fn leaf(&self, id: NodeId) -> Option<LeafId> {
        match self.node(id).level {
            Level::Member(Member { leaf }) => Some(leaf),
            _ => None,
        }
    }

    fn sectors(&self, what: &str, bytes: u64) -> Result<u64, SpecError> {
        let sector_bytes = u64::from(self.sector_bytes);
        if !bytes.is_multiple_of(sector_bytes) {
            let message = format!("{what} = {bytes} bytes is not a multiple of the sector ({sector_bytes} bytes)");
            return Err(SpecError::new("tree", message));
        }
        Ok(bytes / sector_bytes)
    }

    /// Compiles the subtree; `outer_chunk` is the chunk of the nearest striping ancestor, 0 where there is none, and
    /// `is_backed` whether any ancestor bears losses.
    fn compile(
        &mut self,
        tree: &Tree,
        sizes: &[u64],
        (outer_chunk, is_backed): (u64, bool),
    ) -> Result<NodeId, SpecError> {
        let id = NodeId::try_from(self.nodes.len()).expect("node ids are 32 bits wide");
        let leaf = LeafId::try_from(self.leaves.len()).expect("there are no more members than nodes");
        // A member; what has children becomes its level when these are compiled, which follow it in the list.
        let level = Level::Member(Member { leaf });
        let bears = tree.losses_borne();
        let (children, stripe_locks_below, repeats) = (Box::default(), false, true);
        let (capacity, alignment) = (0, 1);
        let first_spare = place(sizes.len()) + self.spares;
        let spares = first_spare..first_spare + tree.spares();
        self.spares += tree.spares();
        self.nodes.push(Node {
            id,
            level,
            capacity,
            children,
            spares: spares.clone(),
            bears,
            is_backed,
            stripe_locks_below,
            repeats,
            alignment,
        });
        if let Tree::Member { data_offset_bytes } = tree {
            let data_offset = self.sectors("data_offset", *data_offset_bytes)?;
            self.leaves.push(Leaf { data_offset });
            self.nodes[id as usize].capacity = sizes[leaf as usize].saturating_sub(data_offset);
            return Ok(id);
        }
        let chunk = tree.chunk_bytes().map_or(Ok(0), |bytes| self.sectors("chunk", bytes))?;
        let inner = if chunk > 0 { chunk } else { outer_chunk };
        let inner = (inner, is_backed || bears > 0);
        let children =
            tree.children().iter().map(|c| self.compile(c, sizes, inner)).collect::<Result<Box<[NodeId]>, _>>()?;
        let below: Vec<&Node> = children.iter().map(|&c| self.node(c)).collect();
        let capacities: Vec<u64> = below.iter().map(|child| child.capacity).collect();
        let alignment = below.iter().map(|child| child.alignment).fold(1, lcm);
        let stripe_locks_below =
            below.iter().any(|child| child.stripe_locks_below || for_level!(child, level => level.locks_stripes()));
        let below_repeat = below.iter().all(|child| child.repeats);
        let around = Surroundings { capacities: &capacities, alignment, chunk, outer_chunk };
        let NodeLayout { level, capacity, alignment } = Level::compile(tree, &around);
        if chunk > 0 && capacity == 0 {
            let (sectors, name) = (around.smallest(), tree.level());
            let message =
                format!("a member of node {id}, '{name}', holds {sectors} sectors, too few for a chunk of {chunk}");
            return Err(SpecError::new("tree", message));
        }
        let repeats = false;
        let mut node =
            Node { id, level, capacity, children, spares, bears, is_backed, stripe_locks_below, repeats, alignment };
        node.repeats = below_repeat && for_level!(node, level => level.repeats());
        self.nodes[id as usize] = node;
        Ok(id)
    }

    /// Bytes in a sector.
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// How many members may be lost, whichever they are.
    pub fn tolerance(&self) -> usize {
        self.tolerance
    }

    /// The volumes: the root, or the children of an `independent` one.
    pub fn volumes(&self) -> &[Volume] {
        &self.volumes
    }

    /// The node of a volume of [`Self::volumes`].
    pub fn volume_node(&self, volume: usize) -> NodeId {
        self.volume_nodes[volume]
    }

    /// Number of distributed spares.
    pub(crate) fn spares(&self) -> usize {
        self.spares as usize
    }

    /// Number of members.
    pub fn leaves(&self) -> usize {
        self.leaves.len()
    }

    /// Sectors at the start of a member's device that hold no data.
    pub fn data_offset(&self, leaf: LeafId) -> u64 {
        self.leaves[leaf as usize].data_offset
    }

    /// User capacity of all volumes together, in sectors.
    pub fn user_sectors(&self) -> u64 {
        self.volumes.iter().map(|v| v.capacity_sectors).sum()
    }

    /// Sectors of user data after which a volume's pattern of whole stripes repeats its alignment.
    pub fn full_stripe_sectors(&self, volume: usize) -> u64 {
        self.nodes[self.volume_node(volume) as usize].alignment
    }

    /// Whether any level below keeps parity.
    pub(crate) fn has_parity(&self) -> bool {
        self.nodes.iter().any(|node| for_level!(node, level => level.locks_stripes()))
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_too_small_for_a_chunk_are_refused_by_the_level_that_has_them() {
        let tree = Tree::Mirror { children: vec![Tree::raid0(2, 4), Tree::raid0(2, 4)] };
        let error = Layout::new(&tree, &[4, 4, 8, 3], 1).unwrap_err();
        assert_eq!(error.message, "a member of node 4, 'stripe', holds 3 sectors, too few for a chunk of 4");
        assert!(Layout::new(&tree, &[4; 4], 1).is_ok());
    }
}
