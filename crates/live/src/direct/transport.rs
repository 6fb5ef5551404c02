//! How requests reach files and devices: the ring, or threads where there is none.
//!
//! Invariant: every request started comes back from `reap` exactly once for each start.

use super::slot::RequestSlot;
use super::threads::Threads;
use crate::io::{transfer, Ring};
use io_uring::types;
use raidlab_types::number::u32_from;
use raidlab_types::Duration;
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;

/// One of the two, and what did not fit in.
pub(super) struct Transport {
    way: IoMethod,
    /// Requests that found the ring full.
    waiting: VecDeque<u32>,
}

// One a worker, and the larger variant is the one in use: a box would cost a step on every path.
#[allow(clippy::large_enum_variant)]
enum IoMethod {
    Ring(Ring),
    Threads(Threads),
}

impl Transport {
    pub(super) fn ring(ring: Ring) -> Transport {
        Transport { way: IoMethod::Ring(ring), waiting: VecDeque::new() }
    }

    pub(super) fn threads(threads: Threads) -> Transport {
        Transport { way: IoMethod::Threads(threads), waiting: VecDeque::new() }
    }

    /// Makes memory known to the kernel, where that is possible. The memory must outlive this.
    pub(super) fn register(&mut self, start: *mut u8, len: usize) -> Option<u16> {
        match &mut self.way {
            IoMethod::Ring(ring) => ring.register(start, len),
            IoMethod::Threads(_) => None,
        }
    }

    /// Whether all memory is known to the kernel.
    pub(super) fn all_registered(&self) -> bool {
        matches!(&self.way, IoMethod::Ring(ring) if ring.all_registered())
    }

    /// Starts what is left of a request on the file of this index and descriptor.
    ///
    /// # Safety
    /// The slot's memory stays valid and untouched until the tag comes back from [`Self::reap`], and the descriptor open.
    #[inline]
    pub(super) unsafe fn start(&mut self, tag: u32, slot: &RequestSlot, (index, fd): (u32, RawFd)) -> io::Result<()> {
        match &mut self.way {
            IoMethod::Ring(ring) => {
                if ring.is_full() {
                    self.waiting.push_back(tag);
                    return Ok(());
                }
                let memory = (slot.start, slot.left);
                let file = types::Fixed(index);
                let entry = transfer(slot.writes, file, memory, slot.registered, slot.offset, 0);
                // SAFETY: the caller's promise.
                unsafe { ring.push(&entry.user_data(u64::from(tag))) }
            }
            IoMethod::Threads(threads) => {
                // SAFETY: the caller's promise.
                unsafe { threads.start(tag, slot, fd) };
                Ok(())
            }
        }
    }

    /// The next request that came back: its tag, and bytes moved or minus an error number.
    #[inline]
    pub(super) fn reap(&mut self) -> Option<(u32, i64)> {
        match &mut self.way {
            IoMethod::Ring(ring) => ring.reap().map(|(tag, result)| (u32_from(tag), i64::from(result))),
            IoMethod::Threads(threads) => threads.reap(),
        }
    }

    /// A request that found no room and does now. It is to be started again.
    #[inline]
    pub(super) fn readmit(&mut self) -> Option<u32> {
        match &self.way {
            IoMethod::Ring(ring) if !ring.is_full() => self.waiting.pop_front(),
            _ => None,
        }
    }

    /// Whether anything has not come back.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        match &self.way {
            IoMethod::Ring(ring) => ring.in_flight() > 0,
            IoMethod::Threads(threads) => threads.in_flight() > 0,
        }
    }

    /// Hands over what was started, without waiting.
    #[inline]
    pub(super) fn submit(&mut self) -> io::Result<()> {
        match &mut self.way {
            IoMethod::Ring(ring) => ring.submit(),
            IoMethod::Threads(_) => Ok(()),
        }
    }

    /// Hands over what was started, and waits until something comes back, at most `limit` long.
    #[inline]
    pub(super) fn submit_and_wait(&mut self, limit: Duration) -> io::Result<()> {
        match &mut self.way {
            IoMethod::Ring(ring) => ring.submit_and_wait(limit),
            IoMethod::Threads(threads) => {
                threads.wait(limit);
                Ok(())
            }
        }
    }
}
