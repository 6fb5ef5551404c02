//! Memory that operations move to and from.
//!
//! Purpose: page-aligned blocks for requests and scratch, taken once and used again for ever, in memory that io_uring
//! knows beforehand (registered) where the limit on locked memory allows.

mod map;
mod pool;

pub(crate) use map::Mapping;
pub(crate) use pool::{fill_random, Block, Pool, Use};

/// Alignment of every block, and the unit of their sizes.
pub(crate) const PAGE_BYTES: usize = 4096;
