//! The pages that md's work on copies reads into, in the order in which the kernel hands them out.
//!
//! A page that is given back is the next one taken: what lay in order lies against it the next time, and in order again. But
//! each unit also takes small objects, several of which share a page (what it knows of itself, of its pages and of each of
//! its accesses), and such a page comes and goes between those of the data, whenever its last object is given back. So
//! units that end out of turn break what lay in order into more and more pieces.
//!
//! Reference: `r10buf_pool_alloc` and `r10buf_pool_free` of Linux 6.12, drivers/md/raid10.c; mm/page_alloc.c (the processor's
//! list of free pages), and `CONFIG_SLUB_TINY` in mm/slub.c.

use raidlab_types::number::{u32_from, usize_from};
use slab::Slab;
use std::collections::VecDeque;

const PAGE_BYTES: u64 = 4096;

/// Pages of a unit for each copy, however many of them it uses.
const PAGES: usize = 16;

/// Objects to a page of those that are there for each copy of a unit, and once more: of up to 512 bytes.
const OBJECTS: u32 = 8;

/// Bytes of what a unit knows of itself, and of each member.
const UNIT_BYTES: [usize; 2] = [80, 32];

/// Small objects of one size.
#[derive(Debug)]
struct Objects {
    /// To a page.
    most: u32,
    /// Page and objects in use.
    pages: Slab<(u32, u32)>,
    /// Those with room, the one that the next object is taken of first.
    partial: VecDeque<u32>,
}

impl Objects {
    fn new(most: u32) -> Objects {
        Objects { most, pages: Slab::new(), partial: VecDeque::new() }
    }

    fn take(&mut self, free: &mut FreePages) -> u32 {
        let id = match self.partial.front() {
            Some(&id) => id,
            None => {
                let id = u32_from(self.pages.insert((free.take(), 0)));
                self.partial.push_front(id);
                id
            }
        };
        let (_, used) = &mut self.pages[id as usize];
        *used += 1;
        if *used == self.most {
            self.partial.pop_front();
        }
        id
    }

    fn give_back(&mut self, id: u32, free: &mut FreePages) {
        let (page, used) = &mut self.pages[id as usize];
        let (page, was_full) = (*page, *used == self.most);
        *used -= 1;
        if *used == 0 {
            self.partial.retain(|&other| other != id);
            self.pages.remove(id as usize);
            free.give_back(page);
        } else if was_full {
            self.partial.push_back(id);
        }
    }
}

/// Free pages, the one that is taken next last; then those that nobody has had, in order.
#[derive(Debug, Default)]
struct FreePages {
    given_back: Vec<u32>,
    fresh: u32,
}

impl FreePages {
    fn take(&mut self) -> u32 {
        self.given_back.pop().unwrap_or_else(|| {
            self.fresh += 1;
            self.fresh
        })
    }

    fn give_back(&mut self, page: u32) {
        self.given_back.push(page);
    }
}

/// Memory of units.
#[derive(Debug)]
pub(super) struct UnitMemory {
    copies: usize,
    free: FreePages,
    /// What there is for each copy and once more, and what each unit knows of itself if that is of another size.
    small: [Objects; 2],
    own: usize,
    /// By place: the pages of each copy, and the small objects.
    pages: Vec<[u32; PAGES]>,
    objects: Vec<u32>,
    vacant: Vec<u32>,
}

impl UnitMemory {
    /// For units of so many copies, over so many members.
    pub(super) fn new(copies: usize, members: usize) -> UnitMemory {
        let bytes = (UNIT_BYTES[0] + UNIT_BYTES[1] * members).next_power_of_two();
        let most = u32_from(usize_from(PAGE_BYTES) / bytes.min(usize_from(PAGE_BYTES)));
        UnitMemory {
            copies,
            free: FreePages::default(),
            small: [Objects::new(OBJECTS), Objects::new(most)],
            own: usize::from(most != OBJECTS),
            pages: Vec::new(),
            objects: Vec::new(),
            vacant: Vec::new(),
        }
    }

    /// Takes that of a unit, and names it; `shared`: all its accesses are to the same pages.
    pub(super) fn take(&mut self, shared: bool) -> u32 {
        let UnitMemory { copies, free, small, own, pages, objects, vacant } = self;
        let unit = vacant.pop().unwrap_or_else(|| {
            pages.resize(pages.len() + *copies, [0; PAGES]);
            objects.resize(objects.len() + *copies + 2, 0);
            u32_from(pages.len() / *copies - 1)
        });
        let (pages_at, objects_at) = (unit as usize * *copies, unit as usize * (*copies + 2));
        objects[objects_at] = small[*own].take(free);
        objects[objects_at + 1..objects_at + *copies + 2].iter_mut().for_each(|object| *object = small[0].take(free));
        for copy in 0..*copies {
            pages[pages_at + copy] = match copy {
                0 => std::array::from_fn(|_| free.take()),
                _ if shared => [0; PAGES],
                _ => std::array::from_fn(|_| free.take()),
            };
        }
        unit
    }

    /// Gives it back.
    pub(super) fn give_back(&mut self, unit: u32) {
        let UnitMemory { copies, free, small, own, pages, objects, vacant } = self;
        let (pages_at, objects_at) = (unit as usize * *copies, unit as usize * (*copies + 2));
        for copy in (0..*copies).rev() {
            let of_copy = pages[pages_at + copy];
            of_copy.iter().filter(|&&page| page != 0).for_each(|&page| free.give_back(page));
            // What was taken first is that of the last copy.
            small[0].give_back(objects[objects_at + 1 + *copies - copy], free);
        }
        small[0].give_back(objects[objects_at + 1], free);
        small[*own].give_back(objects[objects_at], free);
        vacant.push(unit);
    }

    /// In how many pieces so many bytes of a copy lie.
    pub(super) fn pieces(&self, unit: u32, copy: usize, bytes: u64) -> u64 {
        let at = unit as usize * self.copies;
        let of_copy = Some(&self.pages[at + copy % self.copies]).filter(|pages| pages[0] != 0);
        let used = usize_from(bytes.div_ceil(PAGE_BYTES)).clamp(1, PAGES);
        let pages = &of_copy.unwrap_or(&self.pages[at])[..used];
        1 + pages.windows(2).map(|two| u64::from(two[1] != two[0] + 1)).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_types::Seed;

    const UNIT: u64 = 64 << 10;

    /// Takes memory for 512 units and gives it back in that order; the mean number of pieces of their data.
    fn turn(memory: &mut UnitMemory) -> f64 {
        let units: Vec<u32> = (0..512).map(|_| memory.take(false)).collect();
        let pieces: u64 = units.iter().map(|&unit| memory.pieces(unit, 0, UNIT)).sum();
        units.iter().for_each(|&unit| memory.give_back(unit));
        pieces as f64 / 512.0
    }

    #[test]
    fn what_lay_in_order_lies_against_it_and_then_in_order_again() {
        let mut memory = UnitMemory::new(2, 4);
        let turns: Vec<f64> = (0..8).map(|_| turn(&mut memory)).collect();
        assert_eq!(turns, [1.0, 16.0, 1.0, 16.0, 1.0, 16.0, 1.0, 16.0]);
    }

    #[test]
    fn units_that_end_out_of_turn_break_what_lay_in_order() {
        let mut memory = UnitMemory::new(2, 4);
        let mut draws = Seed::new(1).draws();
        let mut units: Vec<u32> = (0..64).map(|_| memory.take(false)).collect();
        let in_pieces = |memory: &UnitMemory, units: &[u32]| {
            units.iter().map(|&unit| memory.pieces(unit, 0, UNIT)).sum::<u64>() as f64 / units.len() as f64
        };
        assert_eq!(in_pieces(&memory, &units), 1.0);
        let mut means = Vec::new();
        for _ in 0..200 {
            for _ in 0..draws.below(64) {
                let at = usize_from(draws.below(units.len() as u64));
                memory.give_back(units.swap_remove(at));
            }
            units.resize_with(64, || memory.take(false));
            means.push(in_pieces(&memory, &units));
        }
        assert!(means[..10].iter().any(|mean| (2.0..14.0).contains(mean)), "{means:?}");
        assert!(means[190..].iter().all(|mean| *mean > 15.0), "{means:?}");
    }

    #[test]
    fn no_page_is_handed_out_twice() {
        let mut memory = UnitMemory::new(3, 5);
        let (mut units, mut draws) = (Vec::new(), Seed::new(1).draws());
        for _ in 0..2000 {
            if units.is_empty() || (draws.below(2) == 0 && units.len() < 64) {
                units.push(memory.take(draws.below(3) == 0));
            } else {
                memory.give_back(units.swap_remove(usize_from(draws.below(units.len() as u64))));
            }
            let of_units = units.iter().flat_map(|&unit| &memory.pages[unit as usize * 3..][..3]).flatten().copied();
            let of_objects = memory.small.iter().flat_map(|objects| objects.pages.iter().map(|(_, &(page, _))| page));
            let mut pages: Vec<u32> = of_units.filter(|&page| page != 0).chain(of_objects).collect();
            pages.extend(&memory.free.given_back);
            pages.sort_unstable();
            assert!(pages.iter().copied().eq(1..=memory.free.fresh), "each page is in one place");
        }
    }

    #[test]
    fn accesses_of_a_unit_may_share_their_pages() {
        let mut memory = UnitMemory::new(2, 4);
        let unit = memory.take(true);
        assert_eq!((memory.free.fresh, memory.pieces(unit, 1, UNIT)), (2 + 16, 1));
        memory.give_back(unit);
        assert_eq!(memory.free.given_back.len(), 18);
        assert_eq!((memory.take(false), memory.free.fresh), (unit, 2 + 32));
    }
}
