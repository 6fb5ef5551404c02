//! A controller's cache above an array: read-ahead, write-back with early acknowledgement, gathering, write-through.
//!
//! Purpose: between a client and an array of disks stands a controller that fetches what a sequential reader will want next,
//! and that answers a write before it is on the disks. The cache is a state machine like the array: requests and what the
//! array has done go in, fetches, destages and answers come out. It holds no bytes and knows no time.
//!
//! Reads: a request waits for those of its lines that are not there; each piece goes to the client as it arrives. A read
//! that begins where the last one ended is sequential, and has what follows fetched ahead, unless it is too long for that.
//!
//! Writes: at most `write_back_up_to_bytes` long, a write is answered when the cache has it (a second copy elsewhere is
//! walked to by the simulator). A longer one is answered when its stripes are on the members; of a sequential one only
//! those that are whole, since the rest waits in the cache for what follows. Whole stripes are destaged at once, parts only
//! when room is needed; or all of it only then (demand flush), in rising order of address.
//!
//! Invariants:
//! - Every request is answered once: a read by as many sectors as it asked for, a write by one answer.
//! - What can be read from writes that are not destaged is not fetched for it. A sector is destaged once for each time it
//!   became dirty, and never twice at a time.
//! - Dirty sectors never exceed `dirty_room`, but for a single write that is larger and finds no other.
//! - Lines that hold no awaited data are given up, the least recently used first.
//!
//! Reference: S. Akyürek, K. Salem, *Management of partially safe buffers*, IEEE Trans. Computers 44 (1995) (destage);
//! J. Menon, *Performance of RAID5 disk arrays with read and write caching*, Distributed and Parallel Databases 2 (1994).

mod dirty;
mod reads;
mod spec;
mod writes;

pub use spec::{CacheSpec, DestageWhen};

use raidlab_types::{Extent, Request, RequestKind, RequestTag};
use reads::Reads;
use std::collections::VecDeque;
use writes::Writes;

/// What the cache asks of its surroundings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheOp {
    /// The array is to read.
    Fetch { id: u64, extent: Extent },
    /// The array is to write.
    Destage { id: u64, extent: Extent },
    /// So many sectors of a read are there, and may go to the client.
    Ready { tag: RequestTag, sectors: u64 },
    /// A write is in the cache and may be answered, once whatever a copy of it costs is paid.
    Stored { tag: RequestTag, sectors: u64 },
    /// A write is on the members, as far as it has to be.
    Written { tag: RequestTag },
}

/// The cache of one volume.
#[derive(Debug)]
pub(crate) struct Cache {
    reads: Reads,
    writes: Writes,
    out: VecDeque<CacheOp>,
}

impl Cache {
    /// An empty cache over a volume of so many sectors, whose full stripes have so many.
    pub(crate) fn new(spec: &CacheSpec, sector_bytes: u64, volume_sectors: u64, stripe_sectors: u64) -> Cache {
        Cache {
            reads: Reads::new(spec, sector_bytes, volume_sectors),
            writes: Writes::new(spec, sector_bytes, stripe_sectors),
            out: VecDeque::new(),
        }
    }

    /// A read or a write of the volume.
    pub(crate) fn handle_request(&mut self, request: &Request) {
        match request.kind {
            RequestKind::Write => self.writes.request(request.tag, request.extent, &mut self.out),
            _ => self.reads.request(request.tag, request.extent, &self.writes, &mut self.out),
        }
    }

    /// The array has done a fetch or a destage.
    pub(crate) fn handle_done(&mut self, id: u64) {
        if let Some(extent) = self.writes.done(id, &mut self.out) {
            self.reads.keep(extent);
        } else {
            self.reads.done(id, &mut self.out);
        }
    }

    /// What the cache wants next.
    pub(crate) fn poll(&mut self) -> Option<CacheOp> {
        self.out.pop_front()
    }
}

#[cfg(test)]
mod tests;
