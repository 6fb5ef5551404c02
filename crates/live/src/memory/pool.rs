//! Blocks of memory by size class, never given back to the system while a run lasts.
//!
//! Invariants:
//! - A block is page-aligned and at least as long as asked for (the next power of two of pages).
//! - Blocks for writes hold random bytes from the start and never receive what a read brings, so that what is written
//!   stays incompressible; blocks for reads and scratch are shared, and hold anything.
//! - Once as many blocks exist as are ever used together, nothing is mapped or allocated. What can be foreseen is taken
//!   before the load runs: filling 4 MiB takes milliseconds, in which no completion would be looked at.

use super::{LentMemory, MemoryMapping, PAGE_BYTES};
use crate::content::seal;
use crate::error::LiveError;
use raidlab_types::number::u8_from;
use raidlab_types::{CounterRng, Seed};
use std::io;

/// Smallest piece of memory asked of the system: a huge page.
const SLAB_BYTES: usize = 2 << 20;
const CLASSES: usize = 36;

/// What a block is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// What a client writes: random bytes.
    Write,
    /// What a client reads, and scratch.
    Any,
}

/// A block of memory in use. Copies name the same memory; whoever took it gives it back once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    start: *mut u8,
    class: u8,
    purpose: Use,
    /// It is not the pool's own.
    is_lent: bool,
    /// Index of the registered buffer it lies in.
    pub registered: Option<u16>,
}

impl Block {
    /// Memory of somebody else's, aligned as members need it, that no pool ever takes back.
    pub(crate) fn lent(lent: LentMemory) -> Block {
        Block { start: lent.as_ptr(), class: 0, purpose: Use::Any, is_lent: true, registered: None }
    }

    /// First byte.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    /// Length in bytes.
    ///
    /// # Panics
    /// If it is lent: it has no class, and may be shorter than a page. Who lent it knows its length.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        assert!(!self.is_lent, "the length of lent memory is not that of a block");
        PAGE_BYTES << self.class
    }
}

/// All blocks of a run.
#[derive(Debug)]
pub(crate) struct Pool {
    slabs: Vec<MemoryMapping>,
    free: [Vec<Vec<Block>>; 2],
    /// Blocks that exist of each purpose and class.
    made: [Vec<usize>; 2],
    random: CounterRng,
    /// Sector of what is written, each with the sum of its bytes; none: it is not summed.
    sector: Option<usize>,
    /// Of every sector written, so many bytes at the end are zeroes.
    zeroes: usize,
    /// Bytes that may still be taken from the system.
    left: u64,
}

impl Pool {
    /// An empty pool that will never take more than `most` bytes.
    pub(crate) fn new(seed: Seed, most: u64) -> Pool {
        let lists = || vec![Vec::new(); CLASSES];
        let made = || vec![0; CLASSES];
        Pool {
            slabs: Vec::new(),
            free: [lists(), lists()],
            made: [made(), made()],
            random: seed.draws(),
            sector: None,
            zeroes: 0,
            left: most,
        }
    }

    /// What is written consists of sectors that can be told whole from torn ([`seal`]), of which so many hundredths compress
    /// away: their ends are zeroes.
    pub(crate) fn of_sectors(mut self, sector_bytes: u32, compressible_percent: u32) -> Pool {
        assert!(compressible_percent <= 100);
        self.sector = Some(sector_bytes as usize);
        self.zeroes = (u64::from(sector_bytes) * u64::from(compressible_percent) / 100) as usize;
        self
    }

    /// A block of at least `bytes`. `register` is called with new memory, and says under which index the kernel knows it.
    pub(crate) fn take(
        &mut self,
        bytes: usize,
        purpose: Use,
        register: impl FnOnce(*mut u8, usize) -> Option<u16>,
    ) -> Result<Block, LiveError> {
        let class = class_of(bytes);
        assert!(class < CLASSES, "{bytes} bytes at once are more than any block has");
        if self.free[purpose as usize][class].is_empty() {
            let doing = || format!("taking {bytes} bytes for a request");
            self.grow(class, purpose, register).map_err(|e| LiveError::io("workload.size", "memory", &doing(), &e))?;
        }
        let block = self.free[purpose as usize][class].pop().expect("a list that has grown is not empty");
        assert!(block.len() >= bytes && block.purpose == purpose && !block.start.is_null());
        Ok(block)
    }

    /// Gives a block back; one that was lent goes nowhere.
    pub(crate) fn give_back(&mut self, block: Block) {
        if block.is_lent {
            return;
        }
        let (purpose, class) = (block.purpose as usize, usize::from(block.class));
        debug_assert!(self.owns(&block), "a block goes back to the pool that it is from");
        assert!(self.free[purpose][class].len() < self.made[purpose][class], "a block was given back twice");
        self.free[purpose][class].push(block);
    }

    /// Whether the block lies in memory of this pool.
    fn owns(&self, block: &Block) -> bool {
        let start = block.start.addr();
        self.slabs.iter().any(|slab| {
            let first = slab.as_ptr().addr();
            first <= start && start + block.len() <= first + slab.len()
        })
    }

    /// Takes as many blocks as were in use together at the peak, and an eighth more, from the system now; no more than a
    /// quarter of what may be taken, lest what only seems to be needed displaces what is.
    pub(crate) fn foresee(
        &mut self,
        peak: &InUse,
        mut register: impl FnMut(*mut u8, usize) -> Option<u16>,
    ) -> io::Result<()> {
        let least_left = self.left - self.left / 4;
        for purpose in [Use::Write, Use::Any] {
            for class in 0..CLASSES {
                let blocks = peak.most[purpose as usize][class];
                let wanted = if blocks == 0 { 0 } else { blocks + blocks / 8 + 1 };
                while self.made[purpose as usize][class] < wanted && self.left > least_left {
                    self.grow(class, purpose, &mut register)?;
                }
            }
        }
        Ok(())
    }

    fn grow(
        &mut self,
        class: usize,
        purpose: Use,
        register: impl FnOnce(*mut u8, usize) -> Option<u16>,
    ) -> io::Result<()> {
        let size = PAGE_BYTES << class;
        let len = size.max(SLAB_BYTES);
        let left = self.left.checked_sub(len as u64);
        self.left = left.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let mut slab = MemoryMapping::new(len)?;
        match purpose {
            Use::Write => {
                fill_random(slab.bytes_mut(), &mut self.random);
                if let Some(sector) = self.sector {
                    let kept = sector - self.zeroes;
                    slab.bytes_mut().chunks_exact_mut(sector).for_each(|bytes| bytes[kept..].fill(0));
                    seal(slab.bytes_mut(), sector);
                }
            }
            // Touched here, so that no page fault falls into a measurement.
            Use::Any => slab.bytes_mut().chunks_mut(PAGE_BYTES).for_each(|page| page[0] = 1),
        }
        assert!(slab.len().is_multiple_of(size), "a slab is cut into blocks without a rest");
        let registered = register(slab.as_ptr(), slab.len());
        let list = &mut self.free[purpose as usize][class];
        let blocks = slab.len() / size;
        let made = &mut self.made[purpose as usize][class];
        *made += blocks;
        // Room for those that are out as well: giving back must not allocate.
        list.reserve(*made - list.len());
        for i in (0..blocks).rev() {
            let start = slab.at((i * size) as u64, size);
            list.push(Block { start, class: u8_from(class), purpose, is_lent: false, registered });
        }
        self.slabs.push(slab);
        Ok(())
    }
}

/// How many blocks of each purpose and class are in use together: now, and at most.
#[derive(Debug, Clone)]
pub(crate) struct InUse {
    now: [[usize; CLASSES]; 2],
    most: [[usize; CLASSES]; 2],
}

impl InUse {
    pub(crate) fn none() -> InUse {
        InUse { now: [[0; CLASSES]; 2], most: [[0; CLASSES]; 2] }
    }

    /// A block of at least so many bytes is taken.
    pub(crate) fn take(&mut self, bytes: usize, purpose: Use) {
        let (at, class) = (purpose as usize, class_of(bytes));
        self.now[at][class] += 1;
        self.most[at][class] = self.most[at][class].max(self.now[at][class]);
    }

    /// It is given back.
    pub(crate) fn give_back(&mut self, bytes: usize, purpose: Use) {
        let now = &mut self.now[purpose as usize][class_of(bytes)];
        assert!(*now > 0, "a block of {bytes} bytes is given back that was not taken");
        *now -= 1;
    }
}

fn class_of(bytes: usize) -> usize {
    bytes.div_ceil(PAGE_BYTES).max(1).next_power_of_two().trailing_zeros() as usize
}

/// Fills `bytes` with what no compressor can shorten.
pub(crate) fn fill_random(bytes: &mut [u8], random: &mut CounterRng) {
    let mut words = bytes.chunks_exact_mut(8);
    words.by_ref().for_each(|word| word.copy_from_slice(&random.next_u64().to_le_bytes()));
    let rest = words.into_remainder();
    let last = random.next_u64().to_le_bytes();
    rest.copy_from_slice(&last[..rest.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_two_of_pages() {
        assert_eq!([1, 4096, 4097, 8192, 12288, 1 << 20].map(class_of), [0, 0, 1, 1, 2, 8]);
    }

    #[test]
    fn what_was_foreseen_is_there_and_nothing_else() {
        let mut in_use = InUse::none();
        for bytes in [3 << 20, 4 << 20, 8192] {
            in_use.take(bytes, Use::Any);
        }
        in_use.give_back(3 << 20, Use::Any);
        in_use.take(4 << 20, Use::Any);
        let mut pool = Pool::new(Seed::new(1), 1 << 30);
        let mut mapped = 0;
        pool.foresee(&in_use, |_, len| {
            mapped += len;
            None
        })
        .expect("memory");
        assert_eq!(mapped, 3 * (4 << 20) + (2 << 20), "two of 4 MiB at once and one more; a slab of 8 KiB");
        for bytes in [4 << 20, 4 << 20, 4 << 20, 8192] {
            pool.take(bytes, Use::Any, |_, _| panic!("it was foreseen")).expect("memory");
        }
        let mut grown = false;
        pool.take(4096, Use::Write, |_, _| {
            grown = true;
            None
        })
        .expect("memory");
        assert!(grown, "nobody said that anything would be written");
        let mut small = Pool::new(Seed::new(1), 16 << 20);
        small.foresee(&in_use, |_, _| None).expect("memory");
        assert!(small.left >= 8 << 20, "a quarter, and the slab that reaches it: {} left", small.left);
    }

    #[test]
    fn blocks_are_aligned_disjoint_and_used_again() {
        let mut pool = Pool::new(Seed::new(1), 12 << 20);
        let mut registered = 0;
        let mut take = |pool: &mut Pool, bytes, purpose| {
            let register = |_: *mut u8, _: usize| {
                registered += 1;
                Some(registered - 1)
            };
            pool.take(bytes, purpose, register).expect("memory")
        };
        let blocks: Vec<Block> = (0..600).map(|_| take(&mut pool, 4096, Use::Write)).collect();
        let mut starts: Vec<usize> = blocks.iter().map(|b| b.as_ptr() as usize).collect();
        starts.sort_unstable();
        assert!(starts.iter().all(|s| s % PAGE_BYTES == 0) && starts.windows(2).all(|w| w[1] - w[0] >= 4096));
        blocks.iter().for_each(|&b| pool.give_back(b));
        let again: Vec<Block> = (0..600).map(|_| take(&mut pool, 4096, Use::Write)).collect();
        assert_eq!(again.len(), 600);
        assert_eq!(registered, 2, "600 blocks of 4 KiB lie in two slabs of 2 MiB");
        let large = pool.take(5 << 20, Use::Any, |_, len| (len == 8 << 20).then_some(9)).expect("memory");
        assert_eq!((large.len(), large.registered), (8 << 20, Some(9)));
        assert!(pool.take(4096, Use::Any, |_, _| None).is_err(), "no more than it may");
        let mut theirs = MemoryMapping::new(3 * PAGE_BYTES).expect("memory");
        // SAFETY: it is there until the end of this test, and nobody touches it.
        let lent = Block::lent(unsafe { LentMemory::new(theirs.bytes_mut().as_mut_ptr(), theirs.len()) });
        assert!(std::panic::catch_unwind(|| lent.len()).is_err(), "only who lent it knows how long it is");
        pool.give_back(lent);
        assert!(pool.take(4096, Use::Any, |_, _| None).is_err(), "and never the pool's");
    }

    #[test]
    #[should_panic(expected = "given back twice")]
    fn a_block_is_given_back_once() {
        let mut pool = Pool::new(Seed::new(1), 2 << 20);
        let block = pool.take(1 << 20, Use::Any, |_, _| None).expect("memory");
        pool.give_back(block);
        pool.give_back(block);
    }
}
