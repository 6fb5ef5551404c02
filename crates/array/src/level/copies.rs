//! RAID 10 as Linux md deals it: every chunk on several children, for any number of them.
//!
//! `near`: the copies of a chunk lie side by side, and the chunks follow each other around the children. `far`: every child
//! has a part for each number of copy, in which the chunks lie as on RAID 0, one child further than in the part before.
//! `offset`: every row of chunks is followed by its copies, each row one child further than the one before.
//!
//! Reference: md(4), section RAID10; the maps that md writes are in `tests/golden`.

use super::choice::{choose_copy, Candidates, MdBalance};
use super::{
    chunks, compare_copies, locked_pieces, runs, ChunkPart, Content, Level, NodeLayout, Personality, Surroundings,
};
use crate::layout::{Node, NodeId};
use crate::machine::{LockMode, LockRange};
use crate::plan::{narrow, place, ComputeKind, PlanResult, Planner, Space, Transfer, NONE};
use crate::spec::{CopyKind, CopyLayout};
use raidlab_types::number::{gcd, lcm, usize_from};
use raidlab_types::{Extent, RequestError};

/// RAID 10.
#[derive(Debug, Clone)]
pub(crate) struct Copies {
    /// Sectors of a chunk.
    chunk: u64,
    children: u64,
    layout: CopyLayout,
    /// Chunks of a child that hold copies of one number, where each number has a part of its own (`far`).
    part_rows: u64,
}

impl Copies {
    /// Of each sector.
    pub(crate) fn count(&self) -> usize {
        self.layout.copies as usize
    }
}

pub(super) fn compile(around: &Surroundings<'_>, layout: CopyLayout) -> NodeLayout {
    let (chunk, children, copies) = (around.chunk, around.count(), u64::from(layout.copies));
    let rows = around.smallest() / chunk;
    // Data chunks of the node, and those after which the children are back in step.
    let (data, period) = match layout.kind {
        CopyKind::Near => (rows * children / copies, children / gcd(children, copies)),
        CopyKind::Far | CopyKind::Offset => (rows / copies * children, children),
    };
    let level = Level::Copies(Copies { chunk, children, layout, part_rows: (rows / copies).max(1) });
    NodeLayout { level, capacity: data * chunk, alignment: lcm(around.alignment, chunk).saturating_mul(period) }
}

impl Personality for Copies {
    /// The first copy: what is asked where any will do.
    fn parts(&self, _: &Node, extent: Extent) -> impl Iterator<Item = (u32, Extent)> {
        self.chunks(extent).map(|part| self.on_child(&part, 0))
    }

    fn content(&self, node: &Node, position: u32, lba: u64) -> Content {
        let held = self.held(u64::from(position), lba / self.chunk);
        match held.map(|index| index * self.chunk + lba % self.chunk) {
            Some(up) if up < node.capacity => Content::Data(up),
            _ => Content::Unused,
        }
    }

    /// Whole rows of all children: a little more than is touched, and simple.
    fn for_each_share(&self, node: &Node, extent: Extent, mut visit: impl FnMut(NodeId, Extent)) {
        let (first, last) = (extent.lba / self.chunk, (extent.end() - 1) / self.chunk);
        let (copies, n) = (u64::from(self.layout.copies), self.children);
        let mut rows = |begin: u64, end: u64| {
            let share = Extent::new(begin * self.chunk, (end - begin) * self.chunk);
            node.children.iter().for_each(|&child| visit(child, share));
        };
        match self.layout.kind {
            CopyKind::Near => rows(first * copies / n, ((last + 1) * copies).div_ceil(n)),
            CopyKind::Offset => rows(first / n * copies, (last / n + 1) * copies),
            CopyKind::Far => (0..copies).map(|copy| copy * self.part_rows).for_each(|start| {
                rows(start + first / n, start + last / n + 1);
            }),
        }
    }

    fn covering(&self, _: &Node, _: u32, part: Extent) -> Extent {
        let (first, last) = (part.lba / self.chunk, (part.end() - 1) / self.chunk);
        let (copies, n) = (u64::from(self.layout.copies), self.children);
        let (begin, end) = match self.layout.kind {
            CopyKind::Near => (first * n / copies, ((last + 1) * n).div_ceil(copies)),
            CopyKind::Offset => (first / copies * n, (last / copies + 1) * n),
            CopyKind::Far if first / self.part_rows == last / self.part_rows => {
                (first % self.part_rows * n, (last % self.part_rows + 1) * n)
            }
            CopyKind::Far => (0, self.part_rows * n),
        };
        Extent::new(begin * self.chunk, (end - begin) * self.chunk)
    }

    /// Reads of every chunk the first copy that can be read, and writes those that cannot.
    fn restore(&self, planner: &mut Planner<'_>, node: &Node, extent: Extent) -> PlanResult {
        // Children that are no members may have more to do than to read and to write.
        let is_member = |&child: &NodeId| matches!(planner.layout.node(child).level, Level::Member(_));
        let plain = node.children.iter().all(is_member);
        let link = if plain { NONE } else { planner.compute(ComputeKind::Recover) };
        planner.with_transfers(|planner, reads| {
            planner.with_transfers(|planner, writes| {
                if planner.scratch.scrubs {
                    self.restore_all_copies(planner, node, extent, link, (reads, writes))?;
                } else {
                    for position in 0..place(node.children.len()) {
                        self.restore_child(planner, node, (position, extent, None), link, (reads, writes))?;
                    }
                }
                planner.hand_on(node, reads, false)?;
                planner.hand_on(node, writes, true)
            })
        })
    }

    /// Of every chunk whose first copy lies there, all copies.
    fn verify(&self, planner: &mut Planner<'_>, node: &Node, extent: Extent) -> PlanResult {
        let compute = planner.compute(ComputeKind::Verify);
        planner.with_transfers(|planner, reads| {
            for position in 0..place(node.children.len()) {
                for piece in chunks(self.chunk, 1, extent) {
                    let Content::Data(up) = self.content(node, position, piece.child_lba) else { continue };
                    for wanted in runs(Extent::new(up, piece.sectors), planner.scratch.restored_run) {
                        let Some(part) = self.chunks(wanted).next() else { continue };
                        if self.on_child(&part, 0).0 == position {
                            let copies = (0..self.layout.copies).map(|copy| self.on_child(&part, copy));
                            compare_copies(planner, node, compute, copies, reads);
                        }
                    }
                }
            }
            planner.hand_on(node, reads, false)
        })
    }

    fn chunk(&self) -> Option<u64> {
        Some(self.chunk)
    }

    fn read(&self, planner: &mut Planner<'_>, node: &Node, transfers: &[Transfer]) -> PlanResult {
        planner.with_transfers(|planner, parts| {
            for transfer in transfers {
                let mut skip = 0;
                for part in self.chunks(transfer.extent()) {
                    let copy = self.choose(planner, node, &part)?;
                    let (child, extent) = self.on_child(&part, copy);
                    parts.push(transfer.part(skip, child, extent));
                    skip += part.sectors;
                }
            }
            planner.hand_on_chunks(node, parts, false)
        })
    }

    fn write(&self, planner: &mut Planner<'_>, node: &Node, transfers: &[Transfer]) -> PlanResult {
        planner.with_transfers(|planner, parts| {
            for transfer in transfers {
                let mut skip = 0;
                for part in self.chunks(transfer.extent()) {
                    parts.extend((0..self.layout.copies).map(|copy| {
                        let (child, extent) = self.on_child(&part, copy);
                        transfer.part(skip, child, extent)
                    }));
                    skip += part.sectors;
                }
            }
            planner.hand_on_chunks(node, parts, true)
        })
    }

    fn is_readable(&self, planner: &Planner<'_>, node: &Node, extent: Extent) -> bool {
        self.chunks(extent).all(|part| {
            (0..self.layout.copies).any(|copy| {
                let (position, extent) = self.on_child(&part, copy);
                planner.is_readable(node.child(position), extent)
            })
        })
    }

    /// As a mirror does, for the copies of a chunk are written with it.
    fn lock(&self, node: &Node, extent: Extent, mode: LockMode<'_>, covered: bool, out: &mut Vec<LockRange>) -> bool {
        if covered || matches!(mode, LockMode::SharedIfDegraded(_)) {
            return covered;
        }
        out.extend(locked_pieces(node.id, extent, self.chunk, mode.is_shared()));
        true
    }

    fn is_lost_without(&self, node: &Node, is_gone: impl Fn(NodeId) -> bool) -> bool {
        self.layout.holders(node.children.len()).any(|mut holders| holders.all(|i| is_gone(node.children[i])))
    }
}

impl Copies {
    /// The parts of `extent` within one chunk each, in order.
    fn chunks(&self, extent: Extent) -> impl Iterator<Item = ChunkPart> {
        chunks(self.chunk, self.children, extent)
    }

    /// The child that holds copy number `copy` of a part, and its sectors there.
    fn on_child(&self, part: &ChunkPart, copy: u32) -> (u32, Extent) {
        let (n, row, column, copy) = (self.children, part.row, u64::from(part.column), u64::from(copy));
        let copies = u64::from(self.layout.copies);
        let (position, row) = match self.layout.kind {
            CopyKind::Near => {
                let place = (row * n + column) * copies + copy;
                (place % n, place / n)
            }
            CopyKind::Far => ((column + copy) % n, copy * self.part_rows + row),
            CopyKind::Offset => ((column + copy) % n, row * copies + copy),
        };
        (place(usize_from(position)), Extent::new(row * self.chunk + part.within, part.sectors))
    }

    /// The chunk that the child at `position` holds in row `row`, if there is such a chunk.
    fn held(&self, position: u64, row: u64) -> Option<u64> {
        let (n, copies) = (self.children, u64::from(self.layout.copies));
        let (copy, data_row) = match self.layout.kind {
            CopyKind::Near => return Some((row * n + position) / copies),
            CopyKind::Far => (row / self.part_rows, row % self.part_rows),
            CopyKind::Offset => (row % copies, row / copies),
        };
        (copy < copies).then(|| data_row * n + (position + n - copy) % n)
    }

    fn choose(&self, planner: &mut Planner<'_>, node: &Node, part: &ChunkPart) -> Result<u32, RequestError> {
        let at = |copy| {
            let (position, extent) = self.on_child(part, copy);
            (node.child(position), extent)
        };
        let balance = if self.layout.kind == CopyKind::Near { MdBalance::Near } else { MdBalance::Far };
        let extent = self.extent_of(part);
        choose_copy(planner, node, extent, Candidates { count: self.layout.copies, at, balance })
    }

    /// The first copy of sectors of one chunk that can be read: the position of its child, and where it lies there.
    fn readable_copy(&self, planner: &Planner<'_>, node: &Node, wanted: Extent) -> Option<(u32, Extent)> {
        let part = self.chunks(wanted).next()?;
        let mut copies = (0..self.layout.copies).map(|copy| self.on_child(&part, copy));
        copies.find(|&(source, extent)| planner.is_readable(node.child(source), extent))
    }

    /// The sectors of the node that a part is.
    fn extent_of(&self, part: &ChunkPart) -> Extent {
        let index = part.row * self.children + u64::from(part.column);
        Extent::new(index * self.chunk + part.within, part.sectors)
    }

    /// The same of every copy of what lies in `extent` of the children, wherever the copies are.
    fn restore_all_copies(
        &self,
        planner: &mut Planner<'_>,
        node: &Node,
        extent: Extent,
        link: u32,
        (reads, writes): (&mut Vec<Transfer>, &mut Vec<Transfer>),
    ) -> PlanResult {
        let data = self.covering(node, 0, extent);
        let mut result = Ok(());
        self.for_each_share(node, data, |child, share| {
            let position = node.children.iter().position(|&one| one == child).map_or(0, place);
            if result.is_ok() {
                let part = (position, share, Some(data));
                result = self.restore_child(planner, node, part, link, (reads, writes));
            }
        });
        result
    }

    /// Adds what gives `extent` of the child at `position` back where it can be written and not be read.
    fn restore_child(
        &self,
        planner: &mut Planner<'_>,
        node: &Node,
        (position, extent, data): (u32, Extent, Option<Extent>),
        link: u32,
        (reads, writes): (&mut Vec<Transfer>, &mut Vec<Transfer>),
    ) -> PlanResult {
        let child = node.child(position);
        if planner.views.is_lost(child) {
            return Ok(());
        }
        // Behind the last chunk that the child holds nothing is kept.
        let (mut end, mut written) = (0, false);
        for piece in chunks(self.chunk, 1, extent) {
            let Content::Data(up) = self.content(node, position, piece.child_lba) else { continue };
            // Of what else lies in the same rows nothing is locked.
            if data.is_some_and(|data| !data.contains(Extent::new(up, piece.sectors))) {
                continue;
            }
            end = piece.on_child().end();
            if planner.is_readable(child, piece.on_child()) {
                continue;
            }
            written = true;
            let whole = Extent::new(up, piece.sectors);
            // As for requests: each place may be borne by itself.
            let run = piece.sectors.min(planner.scratch.restored_run);
            for wanted in runs(whole, run) {
                let at = piece.child_lba + (wanted.lba - up);
                let Some((source, from)) = self.readable_copy(planner, node, wanted) else {
                    if planner.goes_without(child, Extent::new(at, wanted.sectors)) {
                        continue;
                    }
                    return Err(RequestError::BeyondTolerance { node: node.id, extent: Some(wanted) });
                };
                let to = Transfer {
                    child: position,
                    lba: at,
                    sectors: narrow(wanted.sectors),
                    space: Space::Scratch,
                    offset: 0,
                    link,
                };
                copy_once(planner, (source, from), to, reads, writes);
            }
        }
        if written && matches!(self.content(node, position, end), Content::Unused) {
            writes.extend(planner.completion(node, position, end));
        }
        Ok(())
    }
}

/// Adds the read of `from` of the child at `source` and the write of it as `to`; what is read already for another child is
/// written from where it lies.
fn copy_once(
    planner: &mut Planner<'_>,
    (source, from): (u32, Extent),
    to: Transfer,
    reads: &mut Vec<Transfer>,
    writes: &mut Vec<Transfer>,
) {
    let mut at = from.lba;
    while at < from.end() {
        let of_source = || reads.iter().filter(|read| read.child == source);
        let known = of_source().find(|read| (read.lba..read.end()).contains(&at));
        let (end, offset) = match known {
            Some(read) => (read.end().min(from.end()), read.offset + narrow(at - read.lba)),
            None => {
                let next = of_source().map(|read| read.lba).filter(|&lba| lba > at).min();
                let end = next.map_or(from.end(), |next| next.min(from.end()));
                let read = Transfer { child: source, lba: at, sectors: narrow(end - at), ..to };
                let offset = planner.allocate(end - at);
                reads.push(Transfer { offset, ..read });
                (end, offset)
            }
        };
        let write = Transfer { lba: to.lba + (at - from.lba), sectors: narrow(end - at), offset, ..to };
        // What is read in parts is written at once where it can be: what lies below may not be written in parts.
        let goes_on = |last: &&mut Transfer| {
            (last.child, last.end(), last.offset + last.sectors) == (write.child, write.lba, write.offset)
        };
        match writes.last_mut().filter(goes_on) {
            Some(last) => last.sectors += write.sectors,
            None => writes.push(write),
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use crate::{Layout, Tree};

    fn drawn(tree: &str, rows: u64) -> Vec<String> {
        let tree = Tree::parse(tree).expect("a tree");
        let layout = Layout::new(&tree, &vec![rows * 2; tree.leaves()], 2).expect("compiles");
        let drawing = layout.map(rows).to_string();
        drawing.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn copies_lie_where_md_puts_them() {
        assert_eq!(drawn("raid10(3, chunk=4)", 3), ["0 0 1", "1 2 2", "3 3 -"]);
        assert_eq!(drawn("raid10(4, layout=near3, chunk=4)", 3), ["0 0 0 1", "1 1 2 2", "2 3 3 3"]);
        assert_eq!(drawn("raid10(3, layout=far2, chunk=4)", 5), ["0 1 2", "3 4 5", "2 0 1", "5 3 4", "- - -"]);
        assert_eq!(drawn("raid10(3, layout=offset2, chunk=4)", 5), ["0 1 2", "2 0 1", "3 4 5", "5 3 4", "- - -"]);
        assert_eq!(drawn("raid10(3, layout=offset3, chunk=4)", 3), ["0 1 2", "2 0 1", "1 2 0"]);
    }

    #[test]
    fn a_member_must_have_room_for_each_copy() {
        let tree = Tree::parse("raid10(3, layout=far3, chunk=4)").expect("a tree");
        let error = Layout::new(&tree, &[4; 3], 2).expect_err("two chunks for three copies").to_string();
        assert!(error.contains("holds 4 sectors, too few for a chunk of 2"), "{error}");
    }
}
