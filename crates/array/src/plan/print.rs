//! A plan in words: one line a node, in an order in which it could run.
//!
//! Numbers are those of the nodes. `after every read` is the barrier: no write before all of the plan's reads.

use super::{ComputeKind, DeviceNode, NodeView, Piece, Plan, Segment, Space};
use raidlab_types::OpKind;
use std::fmt;

fn piece(f: &mut fmt::Formatter<'_>, p: &Piece) -> fmt::Result {
    match p.space {
        Space::User => write!(f, "user[{}..{}]", p.offset, p.offset + p.sectors),
        Space::Scratch => write!(f, "scratch[{}..{}]", p.offset, p.offset + p.sectors),
        Space::Discard => write!(f, "dropped({})", p.sectors),
    }
}

fn device(f: &mut fmt::Formatter<'_>, d: &DeviceNode<'_>) -> fmt::Result {
    let verb = match d.kind {
        OpKind::Read => "read ",
        OpKind::Write => "write",
        _ => return write!(f, "flush member {}", d.leaf),
    };
    write!(f, "{verb} member {} {}", d.leaf, d.extent)?;
    for (k, p) in d.pieces.iter().enumerate() {
        f.write_str(match (k, d.kind) {
            (0, OpKind::Write) => " from ",
            (0, _) => " into ",
            _ => ", ",
        })?;
        piece(f, p)?;
    }
    d.pair_with.map_or(Ok(()), |pair| write!(f, "  (pair with {pair})"))
}

impl Plan {
    fn print_compute(&self, f: &mut fmt::Formatter<'_>, kind: ComputeKind, segments: &[Segment]) -> fmt::Result {
        let verb = match kind {
            ComputeKind::Xor => "xor    ",
            ComputeKind::Pq => "p+q    ",
            ComputeKind::Recover => "recover",
            ComputeKind::Verify => "verify ",
        };
        let inputs: usize = segments.iter().map(|s| self.inputs(s).len()).sum();
        write!(f, "{verb} {inputs} inputs into")?;
        let outputs = segments.iter().flat_map(|s| s.outputs.iter().flatten().map(|o| (s.sectors, *o)));
        for (k, (sectors, (space, offset))) in outputs.enumerate() {
            f.write_str(if k == 0 { " " } else { ", " })?;
            piece(f, &Piece { space, offset, sectors })?;
        }
        Ok(())
    }

    fn is_write(&self, node: usize) -> bool {
        matches!(self.node(node), NodeView::Device(d) if d.kind == OpKind::Write)
    }

    /// The nodes in an order in which they could run, and the predecessors of each.
    fn runnable_order(&self) -> (Vec<usize>, Vec<Vec<usize>>) {
        let mut before = vec![Vec::new(); self.len()];
        (0..self.len()).for_each(|i| self.successors(i).for_each(|s| before[s as usize].push(i)));
        let mut pending: Vec<usize> = before.iter().map(Vec::len).collect();
        let free = (0..self.len()).filter(|&i| pending[i] == 0);
        let (held, mut order): (Vec<usize>, Vec<usize>) = free.partition(|&i| self.is_write(i));
        let mut done = 0;
        while done < order.len() {
            for s in self.successors(order[done]) {
                pending[s as usize] -= 1;
                if pending[s as usize] == 0 {
                    order.push(s as usize);
                }
            }
            done += 1;
        }
        order.extend(held);
        // Computations may follow each other, but no write comes before a read: writes last, otherwise as found.
        order.sort_by_key(|&i| if self.is_write(i) { (1, i) } else { (0, 0) });
        (order, before)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (order, before) = self.runnable_order();
        for i in order {
            write!(f, "{i:>3}  ")?;
            match self.node(i) {
                NodeView::Device(d) => device(f, &d)?,
                NodeView::Compute(kind, segments) => self.print_compute(f, kind, segments)?,
            }
            let barrier = self.is_write(i) && self.barrier_reads() > 0;
            if barrier || !before[i].is_empty() {
                f.write_str("  after")?;
                before[i].iter().try_for_each(|j| write!(f, " {j}"))?;
            }
            match (barrier, before[i].is_empty()) {
                (true, true) => writeln!(f, " every read")?,
                (true, false) => writeln!(f, " and every read")?,
                _ => writeln!(f)?,
            }
        }
        Ok(())
    }
}
