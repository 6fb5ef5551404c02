//! Our `xor` and `pq` against ISA-L's `xor_gen` and `pq_gen`, paired.
//!
//! Purpose: a number with a bound. For 8+1 and 8+2 stripes, blocks of 4 KiB, 64 KiB and 1 MiB, from cache and from
//! memory: the ratio of throughputs ours / ISA-L, its median over 30 pairs and the lower end of the 95 % interval.
//! The program fails if a lower end is under 0.95.
//!
//! How noise is kept out:
//! - A pair is measured as short batches in the order ours, ISA-L, ISA-L, ours, ... (every other pair the other way
//!   round), so that drift of the clock rate or of a neighbour falls on both. Each side's time is the least of its
//!   batches: disturbances only ever add time.
//! - The interval of the median is the distribution-free one from order statistics (the 10th of 30 is the lower end
//!   at 95 %, two-sided), since ratios on a shared machine have no normal tails.
//! - "From cache" repeats one stripe. "From memory" visits the stripes of an arena far larger than the last-level cache
//!   (2 GiB, or `ARENA_MIB`) in a shuffled order, both sides going on from where the last batch ended, so that every
//!   visit finds a stripe that gigabytes of others have pushed out.
//! - Both sides get page-aligned blocks and make their list of them from one address before each call; ours goes
//!   through its safe public functions.
//!
//! Run: `cargo bench -p raidlab-parity --features isal --bench against_isal [-- FILTER]`.

use std::hint::black_box;
use std::time::Instant;

const DATA: usize = 8;
const SIZES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
const PAIRS: usize = 30;
/// Batches of each side in a pair: even, so that the two sides' mean positions in time agree, and many, each of a
/// millisecond or less, so that some escape a busy neighbour.
const BATCHES: usize = 16;
/// Which of the sorted ratios is the lower end of the 95 % interval of the median of 30.
const LOWER_END: usize = 9;
const REQUIRED: f64 = 0.95;

#[allow(non_camel_case_types)]
type int = core::ffi::c_int;

extern "C" {
    fn xor_gen(vects: int, len: int, array: *mut *mut u8) -> int;
    fn pq_gen(vects: int, len: int, array: *mut *mut u8) -> int;
}

#[derive(Clone, Copy, PartialEq)]
enum Kernel {
    Xor,
    Pq,
}

/// One stripe: eight data blocks, then P, then Q, one after another.
#[derive(Clone, Copy)]
struct Stripe {
    base: *mut u8,
    size: usize,
}

impl Stripe {
    fn block(self, index: usize) -> *mut u8 {
        // SAFETY: a stripe has `DATA + 2` blocks.
        unsafe { self.base.add(index * self.size) }
    }

    fn ours(self, kernel: Kernel) {
        // SAFETY: the blocks lie apart in an arena that is never freed; one thread runs, and holds no other slice.
        unsafe {
            let data: [&[u8]; DATA] = core::array::from_fn(|i| core::slice::from_raw_parts(self.block(i), self.size));
            let p = core::slice::from_raw_parts_mut(self.block(DATA), self.size);
            match kernel {
                Kernel::Xor => raidlab_parity::backend().xor(p, black_box(&data)),
                Kernel::Pq => {
                    let q = core::slice::from_raw_parts_mut(self.block(DATA + 1), self.size);
                    raidlab_parity::backend().pq(p, q, black_box(&data));
                }
            }
        }
    }

    fn isal(self, kernel: Kernel) {
        let mut blocks: [*mut u8; DATA + 2] = core::array::from_fn(|i| self.block(i));
        let array = black_box(&mut blocks).as_mut_ptr();
        let len = self.size as int;
        // SAFETY: the array names blocks of `size` bytes, apart from each other.
        let status = unsafe {
            match kernel {
                Kernel::Xor => xor_gen(DATA as int + 1, len, array),
                Kernel::Pq => pq_gen(DATA as int + 2, len, array),
            }
        };
        assert_eq!(status, 0, "ISA-L refused its arguments");
    }

    /// What P and Q hold.
    fn parity(self) -> [Vec<u8>; 2] {
        // SAFETY: as in `ours`.
        [DATA, DATA + 1].map(|i| unsafe { core::slice::from_raw_parts(self.block(i), self.size).to_vec() })
    }
}

/// The stripes of an arena in shuffled order, visited round and round.
struct Stripes {
    all: Vec<Stripe>,
    next: usize,
}

impl Stripes {
    fn lay_out(arena: &'static mut [u8], size: usize, most: usize) -> Self {
        let base = arena.as_mut_ptr();
        let count = (arena.len() / ((DATA + 2) * size)).min(most);
        let mut order: Vec<usize> = (0..count).collect();
        let mut state = 88172645463325252u64;
        for i in (1..count).rev() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            order.swap(i, state as usize % (i + 1));
        }
        // SAFETY: `count` stripes fit the arena.
        let stripe = |at: usize| Stripe { base: unsafe { base.add(at * (DATA + 2) * size) }, size };
        Stripes { all: order.into_iter().map(stripe).collect(), next: 0 }
    }

    /// Seconds that `calls` calls take on the next stripes.
    fn time(&mut self, calls: usize, run: impl Fn(Stripe)) -> f64 {
        let start = Instant::now();
        for _ in 0..calls {
            run(self.all[self.next]);
            self.next = if self.next + 1 == self.all.len() { 0 } else { self.next + 1 };
        }
        start.elapsed().as_secs_f64()
    }

    /// The least times (ours, ISA-L) of a pair.
    fn pair(&mut self, kernel: Kernel, calls: usize, ours_first: bool) -> (f64, f64) {
        let (mut ours, mut isal) = (f64::MAX, f64::MAX);
        for batch in 0..BATCHES {
            for turn in [true, false] {
                if turn == (ours_first == (batch % 2 == 0)) {
                    ours = ours.min(self.time(calls, |stripe| stripe.ours(kernel)));
                } else {
                    isal = isal.min(self.time(calls, |stripe| stripe.isal(kernel)));
                }
            }
        }
        (ours, isal)
    }
}

/// Both must give the same bytes, or there is nothing to compare.
fn assert_equal_results(stripes: &Stripes) {
    let stripe = stripes.all[0];
    for kernel in [Kernel::Pq, Kernel::Xor] {
        stripe.isal(kernel);
        let theirs = stripe.parity();
        stripe.ours(kernel);
        assert!(stripe.parity() == theirs, "the results differ from ISA-L's");
    }
}

/// Measures one cell, prints its line, and says whether the bound holds.
fn measure(name: &str, stripes: &mut Stripes, kernel: Kernel, batch_bytes: usize) -> bool {
    let size = stripes.all[0].size;
    let calls = (batch_bytes / (DATA * size)).max(1);
    stripes.pair(kernel, calls, true);
    let pairs: Vec<(f64, f64)> = (0..PAIRS).map(|i| stripes.pair(kernel, calls, i % 2 == 0)).collect();
    let sorted = |values: Vec<f64>| {
        let mut values = values;
        values.sort_by(f64::total_cmp);
        values
    };
    let rate = |seconds: f64| (calls * DATA * size) as f64 / seconds / 1e9;
    let ratios = sorted(pairs.iter().map(|(ours, isal)| isal / ours).collect());
    let ours = sorted(pairs.iter().map(|pair| rate(pair.0)).collect())[PAIRS / 2];
    let isal = sorted(pairs.iter().map(|pair| rate(pair.1)).collect())[PAIRS / 2];
    let median = (ratios[PAIRS / 2 - 1] + ratios[PAIRS / 2]) / 2.0;
    let holds = ratios[LOWER_END] >= REQUIRED;
    let verdict = if holds { "" } else { "  UNDER" };
    println!("{name:<22} {ours:>8.2} {isal:>8.2} {median:>8.3} {:>8.3}{verdict}", ratios[LOWER_END]);
    holds
}

fn arena() -> &'static mut [u8] {
    let mib: usize = std::env::var("ARENA_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(2048);
    let layout = std::alloc::Layout::from_size_align(mib << 20, 2 << 20).expect("an arena that fits the address space");
    // SAFETY: the layout is not empty; the memory is written in full before it is read, and never freed.
    unsafe {
        let base = std::alloc::alloc(layout);
        assert!(!base.is_null(), "no memory for an arena of {mib} MiB");
        for at in 0..layout.size() {
            base.add(at).write((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]);
        }
        core::slice::from_raw_parts_mut(base, layout.size())
    }
}

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    let arena = arena();
    let (base, len) = (arena.as_mut_ptr(), arena.len());
    println!("backend {:?}, arena {} MiB, {PAIRS} pairs of {BATCHES} batches", raidlab_parity::backend(), len >> 20);
    println!("{:<22} {:>8} {:>8} {:>8} {:>8}", "cell (data GB/s)", "ours", "ISA-L", "ratio", "lower");
    let mut all_hold = true;
    for (place, most, batch_bytes) in [("cached", 1, 4 << 20), ("memory", usize::MAX, 16 << 20)] {
        for (kernel, kernel_name) in [(Kernel::Xor, "xor 8+1"), (Kernel::Pq, "pq 8+2")] {
            for size in SIZES {
                let name = format!("{kernel_name} {} KiB {place}", size >> 10);
                if !name.contains(&filter) {
                    continue;
                }
                // SAFETY: the arena is never freed, and the stripes of the cell before are gone.
                let arena = unsafe { core::slice::from_raw_parts_mut(base, len) };
                let mut stripes = Stripes::lay_out(arena, size, most);
                assert_equal_results(&stripes);
                all_hold &= measure(&name, &mut stripes, kernel, batch_bytes);
            }
        }
    }
    assert!(all_hold, "the lower end of at least one cell is under {REQUIRED}");
}
