//! A tree compiled for members of known size: flat nodes, capacities, and where everything lies.
//!
//! Invariants: nodes are in depth-first order, a parent before its children; children of a striping, mirroring or parity
//! node are cut to the smallest, and striping ones rounded down to the chunk; all sizes are in sectors of the array.

mod draw;
mod map;
mod rotation;

pub use map::{LayoutMap, MapCell};
pub(crate) use rotation::Role;

use crate::spec::{Rotation, Tree};
use raidlab_types::{Lba, LeafId};

/// Index of a node in a [`Layout`].
pub type NodeId = u32;

/// One node of the compiled tree.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub level: Level,
    pub capacity: u64,
    pub children: Box<[NodeId]>,
    /// Some parity node lies strictly below.
    pub parity_below: bool,
    /// Requests that begin and end on multiples of this touch whole stripes only.
    pub alignment: u64,
}

/// A level with its compiled parameters.
#[derive(Debug, Clone)]
pub(crate) enum Level {
    Leaf {
        leaf: LeafId,
    },
    Independent,
    /// Start of each child, and the end.
    Concat {
        starts: Box<[Lba]>,
    },
    Stripe {
        chunk: u64,
    },
    /// Locks on written ranges are kept by pieces of this many sectors.
    Mirror {
        lock_granule: u64,
    },
    Parity(ParityLayout),
}

/// Parameters of a parity node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParityLayout {
    pub chunk: u64,
    pub members: u32,
    pub parities: u32,
    pub rotation: Rotation,
}

/// A leaf: which node it is and where its data begins on the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaf {
    pub data_offset: u64,
}

/// A volume of the array: the root, or a child of an `independent` root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Volume {
    /// Its node.
    pub node: NodeId,
    /// User capacity in sectors.
    pub capacity_sectors: u64,
}

/// A tree compiled for members of known size.
#[derive(Debug, Clone)]
pub struct Layout {
    sector_bytes: u32,
    pub(crate) nodes: Vec<Node>,
    pub(crate) leaves: Vec<Leaf>,
    volumes: Vec<Volume>,
}

/// Why a tree does not fit its members.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The tree itself is malformed.
    #[error(transparent)]
    Tree(#[from] crate::TreeError),
    /// As many sizes as leaves are needed.
    #[error("the tree has {leaves} members, {sizes} sizes were given")]
    MemberCount {
        /// Leaves of the tree.
        leaves: usize,
        /// Sizes given.
        sizes: usize,
    },
    /// A chunk or offset is no multiple of the sector.
    #[error("{what} = {bytes} bytes is not a multiple of the sector ({sector_bytes} bytes)")]
    NotSectors {
        /// Which parameter.
        what: &'static str,
        /// Its value.
        bytes: u64,
        /// The array's sector.
        sector_bytes: u32,
    },
    /// A member holds less than one chunk.
    #[error("a member of node {node} holds {sectors} sectors, less than one chunk of {chunk}")]
    TooSmall {
        /// The striping node.
        node: NodeId,
        /// What its smallest child holds.
        sectors: u64,
        /// Its chunk in sectors.
        chunk: u64,
    },
}

impl Layout {
    /// Compiles `tree` for members of `member_sectors` each, data offsets included.
    ///
    /// # Errors
    /// When the tree is malformed, sizes are missing, a chunk is not a multiple of the sector, or a member is too small.
    pub fn new(tree: &Tree, member_sectors: &[u64], sector_bytes: u32) -> Result<Layout, LayoutError> {
        tree.validate()?;
        if tree.leaves() != member_sectors.len() {
            return Err(LayoutError::MemberCount { leaves: tree.leaves(), sizes: member_sectors.len() });
        }
        let mut layout = Layout { sector_bytes, nodes: Vec::new(), leaves: Vec::new(), volumes: Vec::new() };
        let root = layout.compile(tree, member_sectors, 0)?;
        let volume = |node: NodeId| Volume { node, capacity_sectors: layout.nodes[node as usize].capacity };
        layout.volumes = match &layout.nodes[root as usize].level {
            Level::Independent => layout.nodes[root as usize].children.iter().map(|&c| volume(c)).collect(),
            _ => vec![volume(root)],
        };
        Ok(layout)
    }

    fn sectors(&self, what: &'static str, bytes: u64) -> Result<u64, LayoutError> {
        match bytes % self.sector_bytes as u64 {
            0 => Ok(bytes / self.sector_bytes as u64),
            _ => Err(LayoutError::NotSectors { what, bytes, sector_bytes: self.sector_bytes }),
        }
    }

    /// Compiles the subtree; `outer_chunk` is the chunk of the nearest striping ancestor, 0 where there is none.
    fn compile(&mut self, tree: &Tree, sizes: &[u64], outer_chunk: u64) -> Result<NodeId, LayoutError> {
        let id = self.nodes.len() as NodeId;
        let empty =
            Node { level: Level::Independent, capacity: 0, children: Box::new([]), parity_below: false, alignment: 1 };
        self.nodes.push(empty);
        if let Tree::Member { data_offset_bytes } = tree {
            let data_offset = self.sectors("data_offset", *data_offset_bytes)?;
            let leaf = self.leaves.len() as LeafId;
            self.leaves.push(Leaf { data_offset });
            let node = &mut self.nodes[id as usize];
            node.level = Level::Leaf { leaf };
            node.capacity = sizes[leaf as usize].saturating_sub(data_offset);
            return Ok(id);
        }
        let chunk = match tree {
            Tree::Stripe { chunk_bytes, .. } | Tree::Parity { chunk_bytes, .. } => {
                self.sectors("chunk", *chunk_bytes)?
            }
            _ => 0,
        };
        let inner = if chunk > 0 { chunk } else { outer_chunk };
        let children =
            tree.children().iter().map(|c| self.compile(c, sizes, inner)).collect::<Result<Box<[NodeId]>, _>>()?;
        self.finish(id, tree, children, chunk, outer_chunk)
    }

    fn finish(
        &mut self,
        id: NodeId,
        tree: &Tree,
        children: Box<[NodeId]>,
        chunk: u64,
        outer_chunk: u64,
    ) -> Result<NodeId, LayoutError> {
        let capacity_of = |c: &NodeId| self.nodes[*c as usize].capacity;
        let smallest = children.iter().map(capacity_of).min().unwrap_or(0);
        if chunk > smallest {
            return Err(LayoutError::TooSmall { node: id, sectors: smallest, chunk });
        }
        let n = children.len() as u64;
        let rows = smallest.checked_div(chunk).unwrap_or(0);
        let below = children.iter().map(|&c| self.nodes[c as usize].alignment).fold(1, lcm);
        let (level, capacity, alignment) = match tree {
            Tree::Member { .. } => unreachable!("members are compiled above"),
            Tree::Independent { .. } => (Level::Independent, smallest, below),
            Tree::Concat { .. } => {
                let mut starts = vec![0];
                children.iter().for_each(|c| starts.push(starts.last().unwrap_or(&0) + capacity_of(c)));
                let end = *starts.last().unwrap_or(&0);
                (Level::Concat { starts: starts.into() }, end, below)
            }
            Tree::Stripe { .. } => (Level::Stripe { chunk }, rows * chunk * n, lcm(below, chunk).saturating_mul(n)),
            Tree::Mirror { .. } => {
                let lock_granule = if outer_chunk > 0 { outer_chunk } else { MIRROR_LOCK_SECTORS };
                (Level::Mirror { lock_granule }, smallest, below)
            }
            Tree::Parity { parities, rotation, .. } => {
                let parity = ParityLayout { chunk, members: n as u32, parities: *parities, rotation: *rotation };
                let data = parity.data() as u64;
                (Level::Parity(parity), rows * chunk * data, lcm(below, chunk).saturating_mul(data))
            }
        };
        let parity_below = children.iter().any(|&c| {
            let child = &self.nodes[c as usize];
            child.parity_below || matches!(child.level, Level::Parity(_))
        });
        self.nodes[id as usize] = Node { level, capacity, children, parity_below, alignment };
        Ok(id)
    }

    /// Bytes in a sector.
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// The volumes: one, or the children of an `independent` root.
    pub fn volumes(&self) -> &[Volume] {
        &self.volumes
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
        self.nodes[self.volumes[volume].node as usize].alignment
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }
}

/// Granule of locks on a mirror that no striping node stands above: 1 MiB of 512-byte sectors.
const MIRROR_LOCK_SECTORS: u64 = 2048;

fn lcm(a: u64, b: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    (a / gcd(a, b)).saturating_mul(b)
}
