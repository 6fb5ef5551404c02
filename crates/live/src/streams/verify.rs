//! Whether what arrived in files, on devices and in arrays is what was sent.
//!
//! Invariant: what is compared comes from the medium: it is read past the page cache, or after the cache was emptied.

use super::config::StreamsConfig;
use super::ends::{digest, Block, Blocks};
use super::launch::Readable;
use super::open::{name, place_of};
use super::result::{StreamVerify, StreamsResult};
use super::Observer;
use crate::config::{Progress, Stage, PULSE};
use crate::error::LiveError;
use crate::io::Clock;
use crate::memory::Mapping;
use crate::page_cache;
use raidlab_types::number::{f64_from, usize_from};
use raidlab_types::Duration;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

impl Readable<'_> {
    fn prepare(&self) -> io::Result<()> {
        match self {
            Readable::Part(part) => page_cache::evict(part.file),
            Readable::Array(_) => Ok(()),
        }
    }

    fn read(&self, block: Block, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Readable::Part(part) => part.file.read_exact_at(bytes, part.offset_bytes + block.offset),
            Readable::Array(port) => port.read(block, bytes),
        }
    }
}

/// Reads back every block of which a digest was kept and compares. `progress` is told the bytes of each, and may stop it.
fn read_back(
    written: &Readable<'_>,
    blocks: Blocks,
    sent: &[u64],
    report: &mut StreamVerify,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> io::Result<ControlFlow<()>> {
    written.prepare()?;
    let mut buffer = Mapping::new(usize_from(blocks.block_bytes))?;
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
    written: &[Option<Readable<'_>>],
    blocks: &[Blocks],
    sent: &[Vec<u64>],
    result: &mut StreamsResult,
    observer: Observer<'_>,
) {
    let total = result.streams.iter().map(|s| s.bytes).sum::<u64>().max(1);
    let clock = Clock::start();
    let (mut done, mut told) = (0, 0);
    let mut progress = |bytes: u64| {
        done += bytes;
        let now = clock.now().as_ns();
        if now < told + PULSE.as_ns() {
            return ControlFlow::Continue(());
        }
        told = now;
        let fraction = (f64_from(done) / f64_from(total)).min(1.0);
        observer(Progress { stage: Stage::Checking, fraction, requests: done, elapsed: Duration::from_ns(now) })
    };
    for (i, written) in written.iter().enumerate() {
        let Some(written) = written else { continue };
        let report = result.streams[i].verify.get_or_insert_default();
        match read_back(written, blocks[i], &sent[i], report, &mut progress) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => {
                result.interrupted = true;
                return;
            }
            Err(e) => {
                let (key, name) = (place_of(config, i, false), name(config, i, false));
                result.stopped_by = Some(LiveError::io(key, name, "reading it back", &e));
                return;
            }
        }
    }
}
