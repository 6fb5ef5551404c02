//! How locks follow the levels: the rows of a parity node that an extent touches, and the children's share of an extent.
//!
//! A contiguous extent of a striping or parity node touches one contiguous extent of each child (chunks that follow each
//! other on the node follow each other on the child), so a lock walk needs one extent a child.

use crate::layout::{Layout, Level, NodeId, ParityLayout};
use crate::machine::LockRange;
use raidlab_types::Extent;

/// The stripes of a parity node that `extent` touches, each with the range within the chunk.
pub(crate) fn push_rows(node: NodeId, p: &ParityLayout, extent: Extent, shared: bool, out: &mut Vec<LockRange>) {
    let data = p.data() as u64;
    let (first, last) = (extent.lba / p.chunk, (extent.end() - 1) / p.chunk);
    for stripe in first / data..=last / data {
        let (begin, end) = (first.max(stripe * data), last.min(stripe * data + data - 1));
        let (lo, hi) = if begin == end {
            let start = begin * p.chunk;
            (extent.lba.max(start) - start, extent.end().min(start + p.chunk) - start)
        } else {
            (0, p.chunk)
        };
        out.push(LockRange { node, stripe, lo, hi, shared });
    }
}

/// Calls `visit` with every child that `extent` of `node` touches, and the child's extent that holds its share.
pub(crate) fn for_each_child(layout: &Layout, node: NodeId, extent: Extent, mut visit: impl FnMut(NodeId, Extent)) {
    let n = layout.node(node);
    let count = n.children.len() as u64;
    match &n.level {
        Level::Leaf { .. } | Level::Independent => {}
        Level::Mirror { .. } => n.children.iter().for_each(|&c| visit(c, extent)),
        Level::Concat { starts } => {
            for (child, pair) in n.children.iter().zip(starts.windows(2)) {
                let (lo, hi) = (extent.lba.max(pair[0]), extent.end().min(pair[1]));
                if lo < hi {
                    visit(*child, Extent::new(lo - pair[0], hi - lo));
                }
            }
        }
        Level::Stripe { chunk } => {
            let (first, last) = (extent.lba / chunk, (extent.end() - 1) / chunk);
            for position in 0..count.min(last - first + 1) {
                let begin = first + position;
                let end = begin + (last - begin) / count * count;
                let lo = begin / count * chunk + if begin == first { extent.lba % chunk } else { 0 };
                let tail = if end == last { (extent.end() - 1) % chunk + 1 } else { *chunk };
                let hi = end / count * chunk + tail;
                visit(n.children[(begin % count) as usize], Extent::new(lo, hi - lo));
            }
        }
        Level::Parity(p) => {
            let stripe = p.chunk * p.data() as u64;
            let (first, last) = (extent.lba / stripe, (extent.end() - 1) / stripe);
            let rows = Extent::new(first * p.chunk, (last - first + 1) * p.chunk);
            n.children.iter().for_each(|&c| visit(c, rows));
        }
    }
}
