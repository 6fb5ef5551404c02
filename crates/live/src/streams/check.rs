//! Whether the numbers of a cell make sense, before anything is opened.

use super::config::{EndpointSpec, LiveStreamSpec, StreamsConfig};
use super::ends::StreamBlocks;
use crate::config::ContentMode;
use crate::error::LiveError;
use crate::memory::available_bytes;

/// Most streams: each is one or two threads.
const MOST_STREAMS: usize = 1024;
/// Most blocks under way in a stream.
const MOST_BUFFERS: u32 = 1024;
/// Least block: a sector.
const LEAST_BLOCK: u64 = 512;
/// Longest block: what the system moves in one piece.
const LONGEST_BLOCK: u64 = 1 << 30;
/// Most bytes of a stream: times of it stay exact.
const MOST_BYTES: u64 = 1 << 60;
/// Most blocks of a stream that can be compared: each costs eight bytes.
const MOST_COMPARED: u64 = 1 << 27;

/// The blocks of every stream, if the numbers make sense.
pub(super) fn check(config: &StreamsConfig) -> Result<Vec<StreamBlocks>, LiveError> {
    if config.streams.is_empty() || config.streams.len() > MOST_STREAMS {
        let message = format!("{} must be 1 to {MOST_STREAMS}", config.streams.len());
        return Err(LiveError::bad("streams", message));
    }
    if config.duration_s.is_some_and(|s| !(s.is_finite() && s > 0.0)) {
        return Err(LiveError::bad("duration", "must be a finite number above 0"));
    }
    let key = |i: usize| format!("streams[{i}]");
    config.streams.iter().enumerate().map(|(i, spec)| check_stream(spec, &key(i), config.content)).collect()
}

fn check_stream(spec: &LiveStreamSpec, key: &str, content: ContentMode) -> Result<StreamBlocks, LiveError> {
    let bad = |name: &str, message: String| Err(LiveError::bad(format!("{key}.{name}"), message));
    if !(LEAST_BLOCK..=LONGEST_BLOCK).contains(&spec.block_bytes) {
        return bad("block_bytes", format!("{} must be {LEAST_BLOCK} to {LONGEST_BLOCK}", spec.block_bytes));
    }
    if spec.buffers == 0 || spec.buffers > MOST_BUFFERS {
        return bad("buffers", format!("{} must be 1 to {MOST_BUFFERS}", spec.buffers));
    }
    if let Some(rate) = spec.rate_mb_s {
        positive(rate, &format!("{key}.rate_mb_s"))?;
    }
    for (end, side) in [(&spec.source, "source"), (&spec.sink, "sink")] {
        if matches!((end, side), (EndpointSpec::Connection { .. }, "source")) {
            return bad(side, "a connection takes bytes and gives none".into());
        }
        if let EndpointSpec::Tape { mb_s, start_stop_ms, .. } = end {
            positive(*mb_s, &format!("{key}.{side}.mb_s"))?;
            if !(start_stop_ms.is_finite() && *start_stop_ms >= 0.0) {
                return bad(&format!("{side}.start_stop"), format!("{start_stop_ms} must be a number of at least 0"));
            }
        }
    }
    let (name, bytes) = match (spec.bytes, spec.count) {
        (Some(bytes), None) => ("bytes", bytes),
        (None, Some(count)) => ("count", count.saturating_mul(spec.block_bytes)),
        _ => return bad("bytes", "give either bytes or count".into()),
    };
    if bytes == 0 || bytes > MOST_BYTES {
        return bad(name, format!("{bytes} bytes must be at least one and at most 2^60"));
    }
    let blocks = StreamBlocks { bytes, block_bytes: spec.block_bytes };
    if content == ContentMode::Verify && blocks.count() > MOST_COMPARED {
        return bad(name, format!("{} blocks: at most {MOST_COMPARED} can be compared", blocks.count()));
    }
    Ok(blocks)
}

fn positive(rate: f64, key: &str) -> Result<(), LiveError> {
    if rate.is_finite() && rate > 0.0 {
        return Ok(());
    }
    Err(LiveError::bad(key, format!("{rate} must be a finite number above 0")))
}

/// Memory of an end: whole blocks.
pub(super) fn region_bytes(size_bytes: u64, block_bytes: u64) -> u64 {
    (size_bytes / block_bytes).max(1).saturating_mul(block_bytes)
}

/// Whether buffers and memory leave some for the rest.
pub(super) fn check_memory(config: &StreamsConfig) -> Result<(), LiveError> {
    let of_end = |end: &EndpointSpec, block: u64| match end {
        EndpointSpec::Memory { size_bytes } => region_bytes(*size_bytes, block),
        _ => 0,
    };
    let of_stream = |spec: &LiveStreamSpec| {
        let buffers = spec.block_bytes.saturating_mul(u64::from(spec.buffers));
        buffers + of_end(&spec.source, spec.block_bytes) + of_end(&spec.sink, spec.block_bytes)
    };
    let total = config.streams.iter().map(of_stream).fold(0, u64::saturating_add);
    match available_bytes() {
        Some(available) if total > available / 10 * 9 => {
            let message = format!("{total} bytes of buffers and memory exceed what is available, {available} bytes");
            Err(LiveError::bad("streams", message))
        }
        _ => Ok(()),
    }
}
