//! Whether what arrived in files, on devices and in arrays is what was sent.
//!
//! Invariant: what is compared comes from the medium: it is read past the page cache, or after the cache was emptied.

use super::config::{EndOfStream, StreamsConfig};
use super::ends::{digest, StreamBlock, StreamBlocks};
use super::launch::ReadTarget;
use super::result::{StreamVerify, StreamsResult};
use crate::config::{ByteProgress, OnProgress, RunStage};
use crate::error::LiveError;
use crate::memory::MemoryMapping;
use crate::page_cache;
use raidlab_types::number::usize_from;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

impl ReadTarget<'_> {
    fn prepare(&self) -> io::Result<()> {
        match self {
            ReadTarget::Part(part) => page_cache::evict(part.file),
            ReadTarget::Array(_) => Ok(()),
        }
    }

    fn read(&self, block: StreamBlock, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            ReadTarget::Part(part) => part.file.read_exact_at(bytes, part.offset_bytes + block.offset),
            ReadTarget::Array(port) => port.read(block, bytes),
        }
    }
}

/// Reads back every block of which a digest was kept and compares. `progress` is told the bytes of each, and may stop it.
fn read_back(
    written: &ReadTarget<'_>,
    blocks: StreamBlocks,
    sent: &[u64],
    report: &mut StreamVerify,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> io::Result<ControlFlow<()>> {
    written.prepare()?;
    let mut buffer = MemoryMapping::new(usize_from(blocks.block_bytes))?;
    for (block, &sent) in blocks.iter().zip(sent) {
        let bytes = &mut buffer.bytes_mut()[..block.len];
        written.read(block, bytes)?;
        report.note(block.offset, digest(bytes) == sent);
        if progress(block.len as u64).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Compares what every stream has written with what it sent.
pub(super) fn compare(
    config: &StreamsConfig,
    written: &[Option<ReadTarget<'_>>],
    blocks: &[StreamBlocks],
    sent: &[Vec<u64>],
    result: &mut StreamsResult,
    observer: OnProgress<'_>,
) {
    let total = result.streams.iter().map(|s| s.bytes).sum();
    let mut progress = ByteProgress::new(RunStage::Checking, total, observer);
    for (i, written) in written.iter().enumerate() {
        let Some(written) = written else { continue };
        let report = result.streams[i].verify.get_or_insert_default();
        match read_back(written, blocks[i], &sent[i], report, &mut |bytes| progress.add(bytes)) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => {
                result.interrupted = true;
                return;
            }
            Err(e) => {
                let sink = EndOfStream { stream: i, is_source: false };
                let (key, name) = (sink.place(config), sink.spec(config).name());
                result.stopped_by = Some(LiveError::io(key, name, "reading it back", &e));
                return;
            }
        }
    }
}
