//! `memory`: anonymous memory of this process. The engine copies; no system call is made. And `null`, which completes at
//! once and moves nothing: what is measured is the meter (load, record, clock and content).

use super::{emulated, EmulatedContent, Store, Target, TargetFacts, TargetSpec};
use crate::error::LiveError;
use crate::memory::{available_bytes, MemoryMapping};
use raidlab_types::number::usize_from;

/// What the smallest sector of memory is; that of `null` too, so that any workload fits.
const SECTOR_BYTES: u32 = 512;

fn check_size(size_bytes: u64, size_key: &str) -> Result<(), LiveError> {
    if size_bytes < u64::from(SECTOR_BYTES) {
        return Err(LiveError::bad(size_key, format!("{size_bytes} must be at least {SECTOR_BYTES}")));
    }
    Ok(())
}

pub(super) fn open_null(size_bytes: u64, key: &str) -> Result<Target, LiveError> {
    check_size(size_bytes, &format!("{key}.size_bytes"))?;
    let facts = TargetFacts { kind: "null", io: "null", ..TargetFacts::of_memory(size_bytes, SECTOR_BYTES) };
    Ok(Target::new(key, facts, Store::Null))
}

pub(super) fn open(size_bytes: u64, key: &str) -> Result<Target, LiveError> {
    let size_key = format!("{key}.size_bytes");
    check_size(size_bytes, &size_key)?;
    let mapping = MemoryMapping::new(usize_from(size_bytes))
        .map_err(|e| LiveError::io(size_key, "memory", &format!("taking {size_bytes} bytes"), &e))?;
    let mut target = Target::new(key, TargetFacts::of_memory(size_bytes, SECTOR_BYTES), Store::Memory(mapping));
    target.needs_fill = true;
    Ok(target)
}

/// Checks that all members in memory together leave some for the rest.
pub(crate) fn check_total(specs: &[TargetSpec]) -> Result<(), LiveError> {
    let size = |spec: &TargetSpec| match spec {
        TargetSpec::Memory { size_bytes } => *size_bytes,
        // A model that makes no sense is refused when it is opened.
        TargetSpec::Emulated { device, content: EmulatedContent::Memory } => {
            emulated::capacity_bytes(device).unwrap_or(0)
        }
        _ => 0,
    };
    let total: u64 = specs.iter().map(size).fold(0, u64::saturating_add);
    match available_bytes() {
        Some(available) if total > available => {
            let message = format!("{total} bytes of members in memory exceed what is available, {available} bytes");
            Err(LiveError::bad("members", message))
        }
        _ => Ok(()),
    }
}
