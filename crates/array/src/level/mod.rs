//! The levels, one file each: how a node turns the segs of a request into segs of its children.
//!
//! Adding a level: a file here with its `read` and `write` walks, a variant of `layout::Level` and `spec::Tree`, a line in
//! `Planner::{read, write}`, in `readable` below and in the lock walk, a golden map, and a line of the reference.

mod concat;
mod mirror;
mod parity;
mod parity_degraded;
mod parity_recover;
mod parity_small;
mod stripe;

use crate::layout::{Level, NodeId};
use crate::plan::Planner;
use raidlab_types::Extent;

/// Whether `extent` of `node` can be read or rebuilt; the slow path, taken only after a media error.
pub(crate) fn readable(planner: &Planner<'_>, node: NodeId, extent: Extent) -> bool {
    let n = planner.layout.node(node);
    let child = |position: u32, extent| planner.readable(n.children[position as usize], extent);
    match &n.level {
        Level::Leaf { leaf } => !planner.bad.iter().any(|b| b.leaf == *leaf && b.extent.overlaps(extent)),
        Level::Independent => false,
        Level::Concat { starts } => concat::parts(starts, extent).all(|(position, part)| child(position, part)),
        Level::Stripe { chunk } => {
            stripe::parts(*chunk, n.children.len() as u64, extent).all(|(position, part)| child(position, part))
        }
        Level::Mirror { .. } => (0..n.children.len() as u32).any(|position| child(position, extent)),
        Level::Parity(p) => parity::chunks(p, extent).all(|c| {
            let part = Extent::new(c.child_lba, c.sectors);
            child(p.position_of(p.p_position(c.row), c.column), part)
                || (0..p.members).filter(|&m| !child(m, part)).count() <= p.parities as usize
        }),
    }
}
