//! Memory that operations move to and from.
//!
//! Purpose: page-aligned blocks for requests and scratch, taken once and used again for ever, in memory that io_uring
//! knows beforehand (registered) where the limit on locked memory allows.

mod lent;
mod map;
mod pool;

pub(crate) use lent::LentMemory;
pub(crate) use map::MemoryMapping;
pub(crate) use pool::{fill_random, Block, InUse, Pool, Use};

/// Alignment of every block, and the unit of their sizes.
pub(crate) const PAGE_BYTES: usize = 4096;

/// What the system says could be taken without swapping; none where it does not say.
pub(crate) fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}
