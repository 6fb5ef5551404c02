//! `null`: completes at once and moves nothing. What is measured is the meter: load, record, clock and content.

use super::{Store, Target, TargetFacts};
use crate::error::LiveError;

/// Least sector: that of memory, so that any workload fits.
const SECTOR_BYTES: u32 = 512;

pub(super) fn open(size_bytes: u64, key: &str) -> Result<Target, LiveError> {
    if size_bytes < u64::from(SECTOR_BYTES) {
        let message = format!("{size_bytes} must be at least {SECTOR_BYTES}");
        return Err(LiveError::bad(format!("{key}.size_bytes"), message));
    }
    let facts = TargetFacts { kind: "null", io: "null", ..TargetFacts::of_memory(size_bytes, SECTOR_BYTES) };
    Ok(Target::new(key, facts, Store::Null))
}
