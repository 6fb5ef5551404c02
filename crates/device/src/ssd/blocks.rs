//! Full blocks, what they still hold, and which of them is to be cleaned next.
//!
//! - `greedy`: the block that holds least; lists by what is held, so that a unit lost moves a block in constant time.
//! - `fifo`: the block that was filled first.
//!
//! Invariants: a full block is listed once, under exactly what it holds, until it is taken as a victim; the open block
//! and victims are not listed. Counts never leave 0 to the units of a block.

use super::geometry::{FlashGeometry, NONE};
use raidlab_types::number::u32_from;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Which full block is cleaned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Victim {
    /// The one that holds the least that is still valid.
    #[default]
    Greedy,
    /// The one that was filled first.
    Fifo,
}

/// In `ListLink::before`: the block is in no list.
const UNLISTED: u32 = u32::MAX - 1;

#[derive(Debug, Clone, Copy)]
struct ListLink {
    before: u32,
    after: u32,
}

#[derive(Debug, Clone)]
enum BlockLists {
    Greedy {
        /// By die and what is held, the first block of that list.
        heads: Vec<u32>,
        links: Vec<ListLink>,
        /// By die: no block holds less than this.
        least: Vec<u32>,
    },
    /// By die, the oldest in front.
    Fifo(Vec<VecDeque<u32>>),
}

/// All blocks of a drive.
#[derive(Debug, Clone)]
pub(crate) struct FlashBlocks {
    /// Valid units a block holds.
    valid: Vec<u32>,
    listed: BlockLists,
    /// Lists of a die: one for each number of units held.
    lists: usize,
}

impl FlashBlocks {
    pub(super) fn new(geometry: &FlashGeometry, victim: Victim) -> Self {
        let blocks = (geometry.dies * geometry.blocks_per_die) as usize;
        let (dies, lists) = (geometry.dies as usize, geometry.units_per_block as usize + 1);
        let listed = match victim {
            Victim::Greedy => BlockLists::Greedy {
                heads: vec![NONE; dies * lists],
                links: vec![ListLink { before: UNLISTED, after: NONE }; blocks],
                least: vec![geometry.units_per_block; dies],
            },
            Victim::Fifo => BlockLists::Fifo(vec![VecDeque::with_capacity(geometry.blocks_per_die as usize); dies]),
        };
        FlashBlocks { valid: vec![0; blocks], listed, lists }
    }

    #[inline]
    pub(super) fn valid(&self, block: u32) -> u32 {
        self.valid[block as usize]
    }

    /// A unit of the open block has become valid.
    #[inline]
    pub(super) fn gain(&mut self, block: u32) {
        self.valid[block as usize] += 1;
    }

    /// A unit is no longer valid, wherever its block stands.
    #[inline]
    pub(super) fn lose(&mut self, die: u32, block: u32) {
        let held = self.valid[block as usize];
        debug_assert!(held > 0, "block {block} holds nothing");
        self.valid[block as usize] = held - 1;
        if let BlockLists::Greedy { heads, links, least } = &mut self.listed {
            if links[block as usize].before == UNLISTED {
                return;
            }
            let heads = &mut heads[die as usize * self.lists..][..self.lists];
            unlink(heads, links, held, block);
            push(heads, links, held - 1, block);
            let least = &mut least[die as usize];
            *least = (*least).min(held - 1);
        }
    }

    /// A block is full: from now on it may be a victim.
    pub(super) fn list(&mut self, die: u32, block: u32) {
        match &mut self.listed {
            BlockLists::Greedy { heads, links, least } => {
                let held = self.valid[block as usize];
                push(&mut heads[die as usize * self.lists..][..self.lists], links, held, block);
                least[die as usize] = least[die as usize].min(held);
            }
            BlockLists::Fifo(queues) => queues[die as usize].push_back(block),
        }
    }

    /// Takes the next victim of a die out of the lists; none where no block is full.
    pub(super) fn take_victim(&mut self, die: u32) -> Option<u32> {
        match &mut self.listed {
            BlockLists::Greedy { heads, links, least } => {
                let heads = &mut heads[die as usize * self.lists..][..self.lists];
                let held = (least[die as usize] as usize..self.lists).find(|&held| heads[held] != NONE)?;
                least[die as usize] = u32_from(held);
                let block = heads[held];
                unlink(heads, links, u32_from(held), block);
                Some(block)
            }
            BlockLists::Fifo(queues) => queues[die as usize].pop_front(),
        }
    }
}

#[inline]
fn push(heads: &mut [u32], links: &mut [ListLink], held: u32, block: u32) {
    let after = std::mem::replace(&mut heads[held as usize], block);
    if after != NONE {
        links[after as usize].before = block;
    }
    links[block as usize] = ListLink { before: NONE, after };
}

#[inline]
fn unlink(heads: &mut [u32], links: &mut [ListLink], held: u32, block: u32) {
    let ListLink { before, after } = links[block as usize];
    match before {
        NONE => heads[held as usize] = after,
        _ => links[before as usize].after = after,
    }
    if after != NONE {
        links[after as usize].before = before;
    }
    links[block as usize].before = UNLISTED;
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: FlashGeometry =
        FlashGeometry { dies: 2, units_per_page: 1, units_per_block: 4, blocks_per_die: 5, units_per_die: 8 };

    /// Blocks 5 to 7 of the second die, full, of which they lose 1, 3 and 3 units.
    fn three(victim: Victim) -> FlashBlocks {
        let mut blocks = FlashBlocks::new(&GEOMETRY, victim);
        for (block, lost) in [(5, 1), (6, 3), (7, 3)] {
            (0..4).for_each(|_| blocks.gain(block));
            blocks.list(1, block);
            (0..lost).for_each(|_| blocks.lose(1, block));
        }
        blocks
    }

    #[test]
    fn greedy_takes_what_holds_least() {
        let mut blocks = three(Victim::Greedy);
        blocks.lose(1, 6);
        assert_eq!(std::iter::from_fn(|| blocks.take_victim(1)).collect::<Vec<_>>(), [6, 7, 5]);
        assert_eq!(blocks.take_victim(0), None, "the other die has lists of its own");
        // A victim that loses more is in no list, and listed anew only when it is full again.
        blocks.lose(1, 7);
        assert_eq!((blocks.valid(7), blocks.take_victim(1)), (0, None));
    }

    #[test]
    fn fifo_takes_what_was_filled_first() {
        let mut blocks = three(Victim::Fifo);
        assert_eq!(std::iter::from_fn(|| blocks.take_victim(1)).collect::<Vec<_>>(), [5, 6, 7]);
        assert_eq!(blocks.valid(5), 3);
    }
}
