//! Whether what arrived in files and on devices is what was sent.
//!
//! Invariant: what is compared comes from the medium: it is read past the page cache, or after the cache was emptied.

use super::ends::{digest, Blocks, Part};
use super::result::StreamVerify;
use crate::memory::Mapping;
use crate::page_cache;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

/// Reads back every block of which a digest was kept and compares. `progress` is told the bytes of each, and may stop it.
pub(super) fn read_back(
    part: Part<'_>,
    blocks: Blocks,
    sent: &[u64],
    report: &mut StreamVerify,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> io::Result<ControlFlow<()>> {
    page_cache::evict(part.file)?;
    let mut buffer = Mapping::new(blocks.block_bytes as usize)?;
    for (block, &sent) in blocks.iter().zip(sent) {
        let bytes = &mut buffer.bytes_mut()[..block.len];
        part.file.read_exact_at(bytes, part.offset_bytes + block.offset)?;
        report.note(block.offset, digest(bytes) == sent);
        if progress(block.len as u64).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
