//! Whether a description of streams makes sense.
//!
//! Invariant: validation happens when a load is built; the error names the key.

use super::spec::{EndSpec, StreamSpec};
use crate::{SpecError, Volume};

/// Checks one stream against the volumes and ways that there are.
pub(super) fn check(
    key: &str,
    spec: &StreamSpec,
    volumes: &[Volume],
    sector: u64,
    ways: usize,
) -> Result<(), SpecError> {
    let wrong = |name: &str, message: String| Err(SpecError::new(format!("{key}.{name}"), message));
    if spec.block_bytes == 0 || spec.block_bytes > 1 << 30 {
        return wrong("block_bytes", format!("{}; accepted: 1 byte to 1 GiB", spec.block_bytes));
    }
    if spec.bytes == 0 || spec.bytes / spec.block_bytes > 1 << 32 {
        return wrong("bytes", format!("{}; accepted: 1 to 2^32 blocks of {}", spec.bytes, spec.block_bytes));
    }
    if spec.buffers == 0 || spec.buffers > 1 << 16 {
        return wrong("buffers", format!("{}; accepted: 1 to 65536", spec.buffers));
    }
    if [&spec.source, &spec.sink].iter().all(|end| matches!(end, EndSpec::Memory)) {
        return wrong("sink", "from memory to memory takes no time here; accepted: one end that is not memory".into());
    }
    for (name, end) in [("source", &spec.source), ("sink", &spec.sink)] {
        let key = format!("{key}.{name}");
        match end {
            EndSpec::Memory => {}
            EndSpec::Way { way } if *way as usize >= ways => {
                let message = format!("{way}; accepted: the number of one of {ways} ways");
                return Err(SpecError::new(format!("{key}.way"), message));
            }
            EndSpec::Way { .. } => {}
            EndSpec::Tape { mb_s, start_stop_ms, .. } => {
                crate::error::positive(&key, "mb_s", *mb_s)?;
                time(&key, "start_stop", *start_stop_ms)?;
            }
            EndSpec::Array { .. } => check_file(&key, end, spec, volumes, sector)?,
        }
    }
    Ok(())
}

fn check_file(key: &str, end: &EndSpec, spec: &StreamSpec, volumes: &[Volume], sector: u64) -> Result<(), SpecError> {
    let EndSpec::Array { volume, offset_bytes, request_bytes, file_us_per_kib, .. } = end else { return Ok(()) };
    let wrong = |name: &str, message: String| Err(SpecError::new(format!("{key}.{name}"), message));
    let Some(of) = volumes.get(*volume as usize) else {
        return wrong("volume", format!("{volume}; accepted: 0 to {}", volumes.len() - 1));
    };
    let request = request_bytes.unwrap_or(spec.block_bytes);
    if request == 0 || request > 1 << 30 || !request.is_multiple_of(sector) {
        let message = format!("{request}; accepted: a multiple of the sector's {sector} bytes up to 1 GiB");
        return wrong("request", message);
    }
    if !offset_bytes.is_multiple_of(sector) {
        return wrong("offset_bytes", format!("{offset_bytes}; accepted: whole sectors"));
    }
    let room = of.capacity_sectors * sector;
    if offset_bytes.saturating_add(spec.bytes.next_multiple_of(sector)) > room {
        let message = format!("{offset_bytes}; accepted: so that {} bytes fit in {room}", spec.bytes);
        return wrong("offset_bytes", message);
    }
    time(key, "file_per_kib", *file_us_per_kib)
}

fn time(key: &str, name: &str, value: f64) -> Result<(), SpecError> {
    match value.is_finite() && value >= 0.0 {
        true => Ok(()),
        false => Err(SpecError::new(format!("{key}.{name}"), format!("{value}; accepted: a time of at least 0"))),
    }
}
