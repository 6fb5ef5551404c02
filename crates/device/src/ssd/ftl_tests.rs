use super::*;
use proptest::prelude::*;
use raidlab_types::Seed;

/// Counts what the flash is told, by die.
#[derive(Default, Clone)]
struct FlashCounts {
    /// Who is done first: 0 all at once, 1 the lowest die, 2 the one that has programmed least, 3 another each time.
    first: u8,
    programs: Vec<u64>,
    erases: Vec<u64>,
    host_units: u64,
    moved_units: u64,
}

impl FlashCounts {
    fn new(dies: u32) -> Self {
        let none = vec![0; dies as usize];
        FlashCounts { programs: none.clone(), erases: none, ..FlashCounts::default() }
    }
}

impl Orders for FlashCounts {
    fn read(&mut self, _: u32, units: u32) {
        self.moved_units += u64::from(units);
    }

    fn program(&mut self, die: u32, host_units: u32) {
        self.programs[die as usize] += 1;
        self.host_units += u64::from(host_units);
    }

    fn erase(&mut self, die: u32) {
        self.erases[die as usize] += 1;
    }

    fn done_at(&self, die: u32) -> u64 {
        match self.first {
            0 => 0,
            1 => u64::from(die),
            2 => self.programs[die as usize],
            _ => (self.host_units + u64::from(die)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32,
        }
    }
}

/// Everything the header promises, looked up one by one.
fn check(ftl: &Ftl, told: &FlashCounts, present: &[bool]) {
    let g = &ftl.geometry;
    let mut held = vec![0u32; (g.dies * g.blocks_per_die) as usize];
    for (unit, &present) in present.iter().enumerate() {
        let physical = ftl.map[unit];
        assert_eq!(physical != NONE, present, "unit {unit} is there if it was written and not discarded");
        if present {
            assert_eq!(ftl.back[physical as usize], unit as u32, "unit {unit} is where it is said to be");
            assert_eq!(ftl.holder(unit as u32), Some(g.die_of(physical)), "unit {unit} lies on the die that is said");
            held[(physical / g.units_per_block) as usize] += 1;
        }
    }
    let mapped = ftl.back.iter().filter(|&&unit| unit != NONE).count();
    assert_eq!(mapped, present.iter().filter(|&&p| p).count(), "no physical unit belongs to two");
    held.iter().enumerate().for_each(|(block, &held)| assert_eq!(ftl.blocks.valid(block as u32), held));
    for (d, die) in ftl.dies.iter().enumerate() {
        let blocks = d * g.blocks_per_die as usize..(d + 1) * g.blocks_per_die as usize;
        assert_eq!(held[blocks].iter().sum::<u32>(), die.held);
        assert!(die.held <= g.most_held(), "die {d} can be cleaned");
        let left = die.free.len() as u32 * g.units_per_block + g.units_per_block - die.fill;
        assert!(left > 0, "die {d} has room");
        // The unit written last made the die clean: at least a block's worth is left, or is on its way.
        assert!(die.victim != NONE || left > g.units_per_block, "die {d} cleans in time");
        assert!(die.free.iter().all(|&block| ftl.blocks.valid(block) == 0 && block != die.open));
        let pages = u64::from(g.units_per_block / g.units_per_page);
        let used = u64::from(g.blocks_per_die) - die.free.len() as u64 - 1;
        let open = u64::from(die.fill / g.units_per_page);
        assert_eq!(
            told.programs[d],
            told.erases[d] * pages + used * pages + open,
            "a page is programmed once an erase"
        );
    }
    assert_eq!(told.moved_units, ftl.counts.moved);
    let waiting: u64 = ftl.dies.iter().map(|die| u64::from(die.waiting)).sum();
    assert_eq!(told.host_units + waiting, ftl.counts.host);
}

fn geometry() -> impl Strategy<Value = FlashGeometry> {
    (1u32..4, 1u32..5, 2u32..7, 1u32..40, 1u32..5).prop_map(|(dies, page, pages, rows, spare)| {
        let (units_per_block, units_per_die) = (page * pages, rows * page);
        let blocks_per_die = units_per_die.div_ceil(units_per_block) + spare + 1;
        FlashGeometry { dies, units_per_page: page, units_per_block, blocks_per_die, units_per_die }
    })
}

/// Where writes go: anywhere, one unit, one die, in order, or mostly to a few.
fn place(pattern: u8, i: u32, units: u32, g: &FlashGeometry, rng: &mut raidlab_types::CounterRng) -> u32 {
    match pattern {
        0 => rng.below(u64::from(units)) as u32,
        1 => 0,
        2 => {
            let row = rng.below(u64::from(g.units_per_die / g.units_per_page)) as u32;
            row * g.dies * g.units_per_page + rng.below(u64::from(g.units_per_page)) as u32
        }
        3 => i % units,
        _ if rng.below(10) > 0 => rng.below(u64::from(units.div_ceil(10))) as u32,
        _ => rng.below(u64::from(units)) as u32,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn nothing_is_lost_and_room_never_runs_out(
        geometry in geometry(), fifo in any::<bool>(), by_address in any::<bool>(), whole in any::<bool>(), first in 0u8..4,
        patterns in proptest::collection::vec(0u8..5, 1..5),
        pads in 0u64..12, discards in 0u64..4, seed in any::<u64>(),
    ) {
        let victim = if fifo { Victim::Fifo } else { Victim::Greedy };
        let placement = if by_address { Placement::ByAddress } else { Placement::Dynamic };
        let (mut ftl, mut told) = (Ftl::new(geometry, victim, placement), FlashCounts::new(geometry.dies));
        told.first = first;
        if whole {
            ftl.set_cleaning(Cleaning::Whole);
        }
        let units = geometry.logical_units();
        let mut present = vec![false; units as usize];
        let mut rng = Seed::new(seed).draws();
        for i in 0..units {
            ftl.write(i, &mut told);
            present[i as usize] = true;
        }
        check(&ftl, &told, &present);
        for pattern in patterns {
            for i in 0..400 {
                let unit = place(pattern, i, units, &geometry, &mut rng);
                if rng.below(24) < pads {
                    ftl.pad(ftl.holder(unit).unwrap_or(0), &mut told);
                }
                let discard = rng.below(12) < discards;
                if discard {
                    ftl.discard(unit);
                } else {
                    ftl.write(unit, &mut told);
                }
                present[unit as usize] = !discard;
                if by_address && !discard {
                    prop_assert_eq!(ftl.holder(unit), Some(geometry.die_of_address(unit)));
                }
                if i % 37 == 0 {
                    check(&ftl, &told, &present);
                }
            }
            check(&ftl, &told, &present);
        }
    }
}

/// Small enough to follow: one die, four units a block, two of them a page.
fn small(victim: Victim) -> (Ftl, FlashCounts) {
    let geometry =
        FlashGeometry { dies: 1, units_per_page: 2, units_per_block: 4, blocks_per_die: 4, units_per_die: 8 };
    let mut made = (Ftl::new(geometry, victim, Placement::Dynamic), FlashCounts::new(1));
    (0..8).for_each(|unit| made.0.write(unit, &mut made.1));
    made
}

#[test]
fn writes_fill_pages_and_blocks_in_order() {
    let (ftl, told) = small(Victim::Greedy);
    assert_eq!(ftl.map, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!((told.programs[0], told.erases[0]), (4, 0));
    assert_eq!((ftl.page_of(0), ftl.page_of(7)), (Some((0, 0)), Some((0, 3))));
}

/// Three dies of pages of two units, on which so many units were written in order.
fn three_dies(placement: Placement, blocks_per_die: u32, units: u32, told: &mut FlashCounts) -> Ftl {
    let geometry = FlashGeometry { dies: 3, units_per_page: 2, units_per_block: 4, blocks_per_die, units_per_die: 8 };
    let mut ftl = Ftl::new(geometry, Victim::Greedy, placement);
    (0..units).for_each(|unit| ftl.write(unit, told));
    ftl
}

#[test]
fn what_is_written_in_order_goes_round_the_dies_page_by_page() {
    for placement in [Placement::Dynamic, Placement::ByAddress] {
        let ftl = three_dies(placement, 4, 14, &mut FlashCounts::new(3));
        let dies: Vec<u32> = (0..14).filter_map(|unit| ftl.holder(unit)).collect();
        assert_eq!(dies, [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2, 0, 0]);
    }
}

#[test]
fn what_is_written_together_lies_together_whatever_its_addresses() {
    let scattered = [0, 6, 12, 18];
    let holders = |placement| {
        let mut told = FlashCounts::new(3);
        let mut ftl = three_dies(placement, 5, 24, &mut told);
        scattered.iter().for_each(|&unit| ftl.write(unit, &mut told));
        scattered.map(|unit| ftl.holder(unit).unwrap())
    };
    assert_eq!(holders(Placement::ByAddress), [0, 0, 0, 0]);
    assert_eq!(holders(Placement::Dynamic), [0, 0, 1, 1]);
}

#[test]
fn a_die_that_has_more_to_do_is_passed_over_and_a_full_one_too() {
    let mut told = FlashCounts { first: 1, ..FlashCounts::new(3) };
    let mut ftl = three_dies(Placement::Dynamic, 4, 0, &mut told);
    // The lowest is always done first, until it holds two blocks, as much as can be cleaned.
    (0..20).for_each(|unit| ftl.write(unit, &mut told));
    let held: Vec<u32> = ftl.dies.iter().map(|die| die.held).collect();
    assert_eq!(held, [8, 8, 4]);
    // What is overwritten makes room where it was: for one unit, though the page has room for two.
    for (unit, die) in [(9, 1), (3, 0), (10, 1), (17, 2)] {
        ftl.write(unit, &mut told);
        assert_eq!(ftl.holder(unit), Some(die), "unit {unit}");
    }
}

#[test]
fn what_waits_for_its_page_to_fill_is_in_memory() {
    let (mut ftl, mut told) = small(Victim::Greedy);
    ftl.write(0, &mut told);
    assert_eq!(ftl.page_of(0), None);
    ftl.pad(0, &mut told);
    assert_eq!((ftl.page_of(0), ftl.counts.padded), (Some((0, 4)), 1));
    ftl.discard(0);
    assert_eq!(ftl.page_of(0), None);
    ftl.pad(0, &mut told);
    assert_eq!(ftl.counts.padded, 1, "nothing waits");
}

#[test]
fn a_block_without_anything_valid_is_erased_for_nothing() {
    let (mut ftl, mut told) = small(Victim::Greedy);
    (0..4).for_each(|unit| ftl.discard(unit));
    ftl.write(4, &mut told);
    assert_eq!(ftl.counts.erased, 0, "a block and more than a page are left");
    ftl.write(5, &mut told);
    assert_eq!((ftl.counts.erased, ftl.counts.moved), (1, 0));
    assert_eq!(ftl.map[4..], [8, 9, 6, 7]);
}

#[test]
fn greedy_moves_less_than_fifo() {
    // Block 1 has lost half, block 0 nothing. Greedy cleans block 1. Fifo cleans block 0, which gains nothing, and then
    // block 1 as well.
    let cleaned = |victim| {
        let (mut ftl, mut told) = small(victim);
        (4..6).for_each(|unit| ftl.write(unit, &mut told));
        (ftl.counts.moved, ftl.counts.erased)
    };
    assert_eq!(cleaned(Victim::Greedy), (2, 1));
    assert_eq!(cleaned(Victim::Fifo), (6, 2));
}

#[test]
fn moving_keeps_pace_with_writing() {
    // A block of 64 units of which 31 are valid: with a page of 1 the gain is 32, so nearly one is moved for each written.
    let geometry =
        FlashGeometry { dies: 1, units_per_page: 1, units_per_block: 64, blocks_per_die: 4, units_per_die: 128 };
    let (mut ftl, mut told) = (Ftl::new(geometry, Victim::Greedy, Placement::Dynamic), FlashCounts::new(1));
    (0..128).for_each(|unit| ftl.write(unit, &mut told));
    (0..33).for_each(|unit| ftl.discard(unit));
    (64..127).for_each(|unit| ftl.write(unit, &mut told));
    assert_eq!(ftl.counts.moved, 0);
    let moved: Vec<u64> = (0..33)
        .map(|unit| {
            ftl.write(unit, &mut told);
            ftl.counts.moved
        })
        .collect();
    let steps = moved.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(steps.max() <= Some(1) && ftl.counts.moved <= 31, "{moved:?}");
}
