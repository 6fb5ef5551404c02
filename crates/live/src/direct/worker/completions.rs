//! What has come back to a worker: counted, asked for again where it was short, or the end of the run.
//!
//! Invariants:
//! - Each request that is over is told to the load once, with a time of its own.
//! - The first failure is the one that is told; what comes back after it is counted and nothing more is offered.

use super::{Gate, Transport, Worker};
use crate::direct::shared::Counted;
use crate::error::{plain, LiveError};
use crate::io::{meaning, verb, Meaning};
use crate::memory::Use;
use raidlab_load::Generator;
use raidlab_types::number::{i32_from, u64_from, usize_from};
use raidlab_types::{Extent, Instant};
use std::io;
use tracing::debug;

impl Worker<'_> {
    /// Tells the load of all that has come back, each with a time of its own.
    pub(super) fn take_back(&mut self) {
        for _ in 0..self.manner.batch {
            let Some(tag) = self.at_once.pop_front() else { break };
            self.finish(tag, true);
        }
        for _ in 0..self.manner.batch {
            let Some((tag, result)) = self.transport.as_mut().and_then(Transport::reap) else { break };
            self.came_back(tag, result);
        }
        while let Some(tag) = self.transport.as_mut().and_then(Transport::readmit) {
            self.launch(tag);
        }
    }

    #[inline]
    fn came_back(&mut self, tag: u32, result: i64) {
        if result < 0 {
            return self.refused(tag, i32_from(-result));
        }
        if self.slots.get(tag).advance(u64_from(result)) {
            self.finish(tag, true);
        } else {
            self.short(tag, u64_from(result));
        }
    }

    /// A transfer moved less than was asked: the rest is asked for, unless the target ends there.
    #[cold]
    fn short(&mut self, tag: u32, moved: u64) {
        if moved > 0 {
            debug!(moved, rest = self.bytes_of(tag), "short transfer, asking for the rest");
            return self.launch(tag);
        }
        let what = format!("it ends within {}: was it truncated?", self.bytes_of(tag));
        self.fail(tag, 0, what);
    }

    #[cold]
    fn refused(&mut self, tag: u32, errno: i32) {
        let kind = self.slots.get(tag).kind();
        if meaning(kind, errno) == Meaning::Again {
            debug!(errno, ?kind, "interrupted, trying again");
            return self.launch(tag);
        }
        let error = io::Error::from_raw_os_error(errno);
        let what = format!("{} {}: {}", verb(kind), self.bytes_of(tag), plain(&error));
        self.fail(tag, errno, what);
    }

    fn bytes_of(&mut self, tag: u32) -> String {
        let slot = self.slots.get(tag);
        format!("{} bytes from byte {} on", slot.left, slot.offset)
    }

    /// A request that cannot be served ends the run. The first cause is the one worth telling.
    fn fail(&mut self, tag: u32, errno: i32, message: String) {
        let site = &self.sites[self.slots.get(tag).site as usize];
        let error = LiveError::Io { key: site.key.clone(), target: site.name.clone(), errno, message };
        debug!(%error, "the run cannot go on");
        self.failure.get_or_insert(error);
        self.finish(tag, false);
        self.stop();
    }

    pub(super) fn stop(&mut self) {
        self.shared.stop();
        self.load.interrupt(self.now);
    }

    /// A request is over.
    #[inline]
    fn finish(&mut self, tag: u32, ok: bool) {
        let now = self.read_clock();
        let counted = match self.gate {
            Gate::Own => self.load.handle_done(now, u64::from(tag), ok),
            _ => self.finish_together(now, tag, ok),
        };
        if ok {
            self.counts.completed += 1;
        } else {
            self.counts.failed += 1;
        }
        if counted {
            let slot = self.slots.get(tag);
            self.members[slot.site as usize].add(slot.kind(), slot.bytes, now.since(slot.issued).as_ns(), ok);
        }
        self.compare(tag, ok);
    }

    /// Compares what a request brought with what is known to be there, or notes what it wrote; its time has been taken.
    #[inline]
    fn compare(&mut self, tag: u32, ok: bool) {
        let Some(check) = &mut self.check else { return };
        let slot = self.slots.get(tag);
        let site = &self.sites[slot.site as usize];
        let Some(known) = site.known else { return };
        let sectors = Extent::new(slot.lba, slot.bytes / u64::from(self.manner.sector_bytes));
        if slot.writes {
            check.write_ends(site.target, sectors, slot.sequence, slot.mark != 0, ok);
        } else if ok {
            let (mark, bytes) = (slot.mark, usize_from(slot.bytes));
            let Some(block) = *slot.block(Use::Any) else { return };
            assert!(bytes <= block.len());
            // SAFETY: the block is this slot's and at least that long, and its request has come back.
            let brought = unsafe { std::slice::from_raw_parts(block.as_ptr(), bytes) };
            check.read_ends(mark, site.target, sectors, brought, known);
        }
    }

    /// Tells the load of a request that is over, unless all workers together have had enough of them.
    fn finish_together(&mut self, now: Instant, tag: u32, ok: bool) -> bool {
        self.load.recorder_mut().observe(now);
        let window = self.shared.window();
        let mut last = false;
        if self.load.recorder().is_measuring() {
            match window.count(now) {
                Counted::Yes => {}
                Counted::Last => last = true,
                Counted::No => self.load.recorder_mut().close_at(window.closes_at().unwrap_or(now)),
            }
        } else if self.gate == Gate::Shut {
            window.warmed_up(now);
        }
        let counted = self.load.handle_done(now, u64::from(tag), ok);
        if last {
            self.load.recorder_mut().close_at(now);
        }
        counted
    }
}
