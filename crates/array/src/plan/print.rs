//! A plan in words: one line a node, in an order in which it could run.

use super::{ComputeKind, NodeView, Piece, Plan, Space};
use raidlab_types::OpKind;
use std::fmt;

fn piece(f: &mut fmt::Formatter<'_>, p: &Piece) -> fmt::Result {
    match p.space {
        Space::User => write!(f, "user[{}..{}]", p.offset, p.offset + p.sectors),
        Space::Scratch => write!(f, "scratch[{}..{}]", p.offset, p.offset + p.sectors),
        Space::Discard => write!(f, "dropped({})", p.sectors),
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for i in 0..self.len() {
            write!(f, "{i:>3}  ")?;
            match self.node(i) {
                NodeView::Device(d) => {
                    let verb = match d.kind {
                        OpKind::Read => "read ",
                        OpKind::Write => "write",
                        _ => "flush",
                    };
                    write!(f, "{verb} member {} {}", d.leaf, d.extent)?;
                    for (k, p) in d.pieces.iter().enumerate() {
                        let joint = match (k, d.kind) {
                            (0, OpKind::Write) => " from ",
                            (0, _) => " into ",
                            _ => ", ",
                        };
                        f.write_str(joint)?;
                        piece(f, p)?;
                    }
                    if let Some(pair) = d.pair_with {
                        write!(f, "  (pair with {pair})")?;
                    }
                }
                NodeView::Compute(kind, segments) => {
                    let verb = match kind {
                        ComputeKind::Xor => "xor    ",
                        ComputeKind::Pq => "p+q    ",
                        ComputeKind::Recover => "recover",
                    };
                    let inputs: usize = segments.iter().map(|s| self.inputs(s).len()).sum();
                    write!(f, "{verb} {inputs} inputs into")?;
                    for (k, s) in segments.iter().enumerate() {
                        for (space, offset) in s.outputs.iter().flatten() {
                            f.write_str(if k == 0 { " " } else { ", " })?;
                            piece(f, &Piece { space: *space, offset: *offset, sectors: s.sectors })?;
                        }
                    }
                }
            }
            let mut before = (0..self.len()).filter(|&j| self.successors(j).any(|s| s as usize == i)).peekable();
            if before.peek().is_some() {
                f.write_str("  after")?;
                before.try_for_each(|j| write!(f, " {j}"))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
