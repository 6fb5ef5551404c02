//! The translation layer: where each logical unit lies, and how room is made for the next.
//!
//! A page of what the host writes goes to the die that has the least to do when the page is begun, and to the next in turn
//! of those that have as little ([`Placement::Dynamic`]); or each unit goes to the die that its address belongs to. Every
//! die has one open block, which host writes and moved units fill page by page in the order in which they come. When
//! little is left, a full block is chosen ([`Victim`]), what it still holds is moved within the die, and it is erased.
//! Moving goes on bit by bit with the writes that need the room, so that no write pays for a whole block; or the write that
//! finds too little of it has all of a block moved first ([`Cleaning`]).
//!
//! The layer knows no time: what it makes the flash do goes to [`Orders`].
//!
//! Invariants:
//! - `map` and `back` are inverse to each other: a logical unit has at most one physical one and back.
//! - A block's count of valid units is the number of its entries in `back`, and a die's that of its blocks. No die holds
//!   more than it can clean ([`FlashGeometry::most_held`]).
//! - A victim is chosen while at least a block's worth of erased units is left; moving keeps such a pace that it ends
//!   before they do: when the host (with what is padded) has written a block's worth less what the victim held and less
//!   a page, all of it has been moved. So room never runs out, and cleaning a block never leaves less than before.
//!
//! References: P. Desnoyers, *Analytic Modeling of SSD Write Performance*, SYSTOR 2012, whose setting this is; A. Tavakkol,
//! P. Mehrvarzy, M. Arjomand, H. Sarbazi-Azad, *Performance Evaluation of Dynamic Page Allocation Strategies in SSDs*, ACM
//! TOMPECS 1(2), 2016, and Y. Jun and others, *We Ain't Afraid of No File Fragmentation*, FAST 2024, of placing by turns.

use super::blocks::{FlashBlocks, Victim};
use super::geometry::{FlashGeometry, NONE};
use raidlab_types::number::{u32_from, usize_from};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Which die takes what the host writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// In turn, as pages are written; one that has more to do than another is passed over.
    #[default]
    Dynamic,
    /// The one that the address belongs to, for good.
    ByAddress,
}

/// When what is still valid in a block to be cleaned is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cleaning {
    /// Behind the writes that need the room, at their pace.
    #[default]
    Paced,
    /// All of it, and the erasure, before the write that finds too little room (N. Agrawal and others, USENIX ATC 2008).
    Whole,
}

/// What the translation layer makes the flash do.
pub(crate) trait Orders {
    /// A page of which `units` units are to be moved is read.
    fn read(&mut self, die: u32, units: u32);
    /// A page is programmed that carries `host_units` units of the host's.
    fn program(&mut self, die: u32, host_units: u32);
    /// A block is erased.
    fn erase(&mut self, die: u32);
    /// When a die would be done with all that it has to do.
    fn done_at(&self, die: u32) -> u64;
}

/// For filling a drive in no time.
impl Orders for () {
    fn read(&mut self, _: u32, _: u32) {}
    fn program(&mut self, _: u32, _: u32) {}
    fn erase(&mut self, _: u32) {}
    fn done_at(&self, _: u32) -> u64 {
        0
    }
}

/// What has been written to the flash, in units, and blocks erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub host: u64,
    pub moved: u64,
    /// Left empty, because a page had to be programmed before it was full.
    pub padded: u64,
    pub erased: u64,
}

impl Counts {
    /// What came on top of `before`.
    pub(super) fn since(&self, before: &Counts) -> Counts {
        Counts {
            host: self.host - before.host,
            moved: self.moved - before.moved,
            padded: self.padded - before.padded,
            erased: self.erased - before.erased,
        }
    }
}

/// One die's work.
#[derive(Debug, Clone)]
struct DieBlocks {
    /// The block that is being filled, and how far it is.
    open: u32,
    fill: u32,
    /// Units of the host's in the page that is not full yet.
    waiting: u32,
    /// Valid units.
    held: u32,
    /// Erased blocks.
    free: VecDeque<u32>,
    /// The block that is being cleaned, or none; its next page.
    victim: u32,
    page: u32,
    /// The pace: for each unit written, `load / gain` are moved; `owed` is what is owed, in units times `gain`.
    load: i64,
    gain: i64,
    owed: i64,
}

/// The translation layer of one drive.
#[derive(Debug, Clone)]
pub(crate) struct Ftl {
    geometry: FlashGeometry,
    /// Physical unit of a logical one.
    map: Vec<u32>,
    /// Logical unit of a physical one.
    back: Vec<u32>,
    blocks: FlashBlocks,
    dies: Vec<DieBlocks>,
    placement: Placement,
    cleaning: Cleaning,
    /// The die that the host's last unit went to, and whether the page it went to is full.
    turn: u32,
    turn_is_over: bool,
    pub counts: Counts,
}

impl Ftl {
    /// A drive on which nothing was ever written.
    pub(super) fn new(geometry: FlashGeometry, victim: Victim, placement: Placement) -> Self {
        let die = |d: u32| {
            let first = d * geometry.blocks_per_die;
            DieBlocks {
                open: first,
                fill: 0,
                waiting: 0,
                held: 0,
                free: (first + 1..first + geometry.blocks_per_die).collect(),
                victim: NONE,
                page: 0,
                load: 0,
                gain: 0,
                owed: 0,
            }
        };
        Ftl {
            map: vec![NONE; geometry.logical_units() as usize],
            back: vec![NONE; usize_from(geometry.physical_units())],
            blocks: FlashBlocks::new(&geometry, victim),
            dies: (0..geometry.dies).map(die).collect(),
            placement,
            cleaning: Cleaning::Paced,
            turn: geometry.dies - 1,
            turn_is_over: true,
            counts: Counts::default(),
            geometry,
        }
    }

    pub(super) fn geometry(&self) -> &FlashGeometry {
        &self.geometry
    }

    /// What its tables take of memory, but for those of blocks, which are a hundredth of it.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.map) + size_of_val(&*self.back)
    }

    /// Has what writing these units will look at brought near.
    pub(super) fn fetch(&self, units: &[u32]) {
        let mut places = 0;
        for &unit in units {
            places ^= self.map[unit as usize];
        }
        for &unit in units {
            let physical = self.map[unit as usize];
            places ^= if physical == NONE { 0 } else { self.back[physical as usize] };
        }
        std::hint::black_box(places);
    }

    /// From here on it cleans so. What a drive has behind it is the same either way.
    pub(super) fn set_cleaning(&mut self, cleaning: Cleaning) {
        self.cleaning = cleaning;
    }

    /// From here on it counts: nobody waits for what was written before.
    pub(super) fn begin(&mut self) {
        self.counts = Counts::default();
        self.dies.iter_mut().for_each(|die| die.waiting = 0);
    }

    /// The die and the flash page a logical unit is read from; none where it was never written or is still in the drive's
    /// memory.
    #[inline]
    pub(super) fn page_of(&self, unit: u32) -> Option<(u32, u32)> {
        let physical = self.map[unit as usize];
        if physical == NONE {
            return None;
        }
        let holder = self.die_of(unit, physical);
        let die = &self.dies[holder as usize];
        let end = die.open * self.geometry.units_per_block + die.fill;
        let in_memory = end - die.fill % self.geometry.units_per_page..end;
        (!in_memory.contains(&physical)).then_some((holder, physical / self.geometry.units_per_page))
    }

    /// The die that holds a unit; none where it was never written.
    pub(super) fn holder(&self, unit: u32) -> Option<u32> {
        let physical = self.map[unit as usize];
        (physical != NONE).then(|| self.die_of(unit, physical))
    }

    /// The die of a unit that lies there. An address tells before its place is known, where it may.
    #[inline]
    fn die_of(&self, unit: u32, physical: u32) -> u32 {
        match self.placement {
            Placement::Dynamic => self.geometry.die_of(physical),
            Placement::ByAddress => self.geometry.die_of_address(unit),
        }
    }

    /// The host writes a unit.
    #[inline]
    pub(super) fn write(&mut self, unit: u32, orders: &mut impl Orders) {
        self.forget(unit);
        let die = match self.placement {
            Placement::Dynamic => self.die_in_turn(orders),
            Placement::ByAddress => self.geometry.die_of_address(unit),
        };
        self.counts.host += 1;
        if self.cleaning == Cleaning::Whole {
            self.collect(die, 0, orders);
        }
        self.dies[die as usize].held += 1;
        self.append(die, unit, 1, orders);
        if self.cleaning == Cleaning::Paced {
            self.collect(die, 1, orders);
        }
    }

    /// The host needs a unit no longer.
    pub(super) fn discard(&mut self, unit: u32) {
        self.forget(unit);
        self.map[unit as usize] = NONE;
    }

    /// Programs a page that is not full, if the host waits for it.
    pub(super) fn pad(&mut self, die: u32, orders: &mut impl Orders) {
        let state = &mut self.dies[die as usize];
        if state.waiting == 0 {
            return;
        }
        let padded = self.geometry.units_per_page - state.fill % self.geometry.units_per_page;
        state.fill += padded;
        self.counts.padded += u64::from(padded);
        self.turn_page(die, orders);
        self.collect(die, padded, orders);
    }

    #[inline]
    fn forget(&mut self, unit: u32) {
        let physical = self.map[unit as usize];
        if physical != NONE {
            let die = self.die_of(unit, physical);
            self.dies[die as usize].held -= 1;
            self.back[physical as usize] = NONE;
            self.blocks.lose(die, physical / self.geometry.units_per_block);
        }
    }

    /// The die for the host's next unit: the last one's while its page is not full, then another.
    #[inline]
    fn die_in_turn(&mut self, orders: &impl Orders) -> u32 {
        if self.turn_is_over || self.dies[self.turn as usize].held >= self.geometry.most_held() {
            (self.turn, self.turn_is_over) = (self.next_in_turn(orders), false);
        }
        self.turn
    }

    /// Of the dies that may hold more the one that is done first; of several the next in turn.
    fn next_in_turn(&self, orders: &impl Orders) -> u32 {
        let (most, after) = (self.geometry.most_held(), self.turn + 1);
        let in_turn = (after..self.geometry.dies).chain(0..after);
        let open = in_turn.filter(|&die| self.dies[die as usize].held < most);
        let Some(next) = open.min_by_key(|&die| orders.done_at(die)) else {
            unreachable!("all dies together hold more than the host can write")
        };
        next
    }

    /// Puts a unit behind what was written last; `host` is 1 for one of the host's, 0 for one that is moved.
    #[inline]
    fn append(&mut self, die: u32, unit: u32, host: u32, orders: &mut impl Orders) {
        let state = &mut self.dies[die as usize];
        if state.fill == self.geometry.units_per_block {
            let Some(next) = state.free.pop_front() else { unreachable!("cleaning keeps pace with writing") };
            (state.open, state.fill) = (next, 0);
        }
        let physical = state.open * self.geometry.units_per_block + state.fill;
        state.fill += 1;
        state.waiting += host;
        let (open, page_is_full) = (state.open, state.fill.is_multiple_of(self.geometry.units_per_page));
        self.map[unit as usize] = physical;
        self.back[physical as usize] = unit;
        self.blocks.gain(open);
        if page_is_full {
            self.turn_page(die, orders);
        }
    }

    /// The open page is full, or as full as it will be.
    fn turn_page(&mut self, die: u32, orders: &mut impl Orders) {
        let state = &mut self.dies[die as usize];
        self.turn_is_over |= die == self.turn;
        orders.program(die, std::mem::take(&mut state.waiting));
        if state.fill == self.geometry.units_per_block {
            self.blocks.list(die, state.open);
        }
    }

    /// Makes room after `written` units were written for the host.
    #[inline]
    fn collect(&mut self, die: u32, written: u32, orders: &mut impl Orders) {
        let geometry = &self.geometry;
        let state = &mut self.dies[die as usize];
        if state.victim == NONE {
            let left = u32_from(state.free.len()) * geometry.units_per_block + geometry.units_per_block - state.fill;
            if left > geometry.units_per_block + geometry.units_per_page {
                return;
            }
        } else {
            state.owed += i64::from(written) * state.load;
        }
        self.clean(die, orders);
    }

    /// Cleans until nothing is owed and enough is left.
    fn clean(&mut self, die: u32, orders: &mut impl Orders) {
        let FlashGeometry { units_per_block, units_per_page, .. } = self.geometry;
        loop {
            let state = &mut self.dies[die as usize];
            if state.victim == NONE {
                let left = u32_from(state.free.len()) * units_per_block + units_per_block - state.fill;
                if left > units_per_block + units_per_page {
                    return;
                }
                let Some(victim) = self.blocks.take_victim(die) else { return };
                let load = self.blocks.valid(victim);
                state.victim = victim;
                state.page = 0;
                state.load = i64::from(load);
                state.gain = i64::from(units_per_block) - i64::from(load) - i64::from(units_per_page);
                state.owed = 0;
            }
            let (victim, gain) = (state.victim, state.gain);
            let at_once = gain <= 0 || self.cleaning == Cleaning::Whole;
            while self.blocks.valid(victim) > 0 && (at_once || self.dies[die as usize].owed >= gain) {
                let moved = self.move_page(die, orders);
                self.dies[die as usize].owed -= i64::from(moved) * gain;
            }
            if self.blocks.valid(victim) > 0 {
                return;
            }
            orders.erase(die);
            self.counts.erased += 1;
            let state = &mut self.dies[die as usize];
            state.victim = NONE;
            state.free.push_back(victim);
        }
    }

    /// Moves what the next page of the victim holds; returns how many units that was.
    fn move_page(&mut self, die: u32, orders: &mut impl Orders) -> u32 {
        let state = &mut self.dies[die as usize];
        let victim = state.victim;
        let units = self.geometry.units_per_page;
        let first = victim * self.geometry.units_per_block + state.page * units;
        state.page += 1;
        let held = u32_from((first..first + units).filter(|&at| self.back[at as usize] != NONE).count());
        if held > 0 {
            orders.read(die, held);
        }
        for at in first..first + units {
            let unit = std::mem::replace(&mut self.back[at as usize], NONE);
            if unit != NONE {
                self.blocks.lose(die, victim);
                self.append(die, unit, 0, orders);
            }
        }
        self.counts.moved += u64::from(held);
        held
    }
}

#[cfg(test)]
#[path = "ftl_tests.rs"]
mod tests;
