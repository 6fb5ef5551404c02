//! Operations on their way: what memory they move, how far they are, and the ring's entry for the rest of them.
//!
//! Invariants:
//! - A flight's vectors do not move while an entry that names them is in the ring (their heap memory is the flight's own
//!   and is touched only between completion and resubmission).
//! - Neighbouring pieces are one vector; a transfer takes at most [`MOST_VECTORS`] of them and `ring::MOST_BYTES` at once, and
//!   what is left of it, or of a short one, goes in the next entry.

use super::ring::transfer;
use io_uring::{opcode, squeue, types};
use raidlab_types::{Duration, Instant, OpKind, Operation};

/// IOV_MAX of Linux.
const MOST_VECTORS: usize = 1024;

const NONE: u32 = u32::MAX;

/// One operation on its way.
#[derive(Debug)]
pub(crate) struct Flight {
    pub operation: Operation,
    pub submitted: Instant,
    /// Where on the target the rest begins.
    offset: u64,
    /// Bytes still to move.
    left: u64,
    vectors: Vec<libc::iovec>,
    /// First vector not wholly moved.
    first: usize,
    /// The registered buffer that all vectors lie in, if they do.
    registered: Option<u16>,
    next_free: u32,
}

/// What an answer of the ring means for a flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Done,
    /// Short: another entry is needed.
    More,
    /// The target ends within the operation.
    EndOfTarget,
}

/// All flights, by the number that the ring gives back.
#[derive(Debug)]
pub(crate) struct Flights {
    slots: Vec<Flight>,
    free: u32,
}

impl Flights {
    pub fn new() -> Flights {
        Flights { slots: Vec::new(), free: NONE }
    }

    /// Starts a flight without vectors; returns its number.
    pub fn begin(&mut self, operation: Operation, submitted: Instant, sector_bytes: u64) -> u32 {
        let (offset, left) = (operation.extent.lba * sector_bytes, operation.extent.sectors * sector_bytes);
        if self.free == NONE {
            let vectors = Vec::with_capacity(8);
            let empty =
                Flight { operation, submitted, offset, left, vectors, first: 0, registered: None, next_free: NONE };
            self.slots.push(empty);
            return self.slots.len() as u32 - 1;
        }
        let id = self.free;
        let flight = &mut self.slots[id as usize];
        self.free = flight.next_free;
        flight.vectors.clear();
        (flight.operation, flight.submitted, flight.offset, flight.left) = (operation, submitted, offset, left);
        (flight.first, flight.registered) = (0, None);
        id
    }

    pub fn get(&mut self, id: u32) -> &mut Flight {
        &mut self.slots[id as usize]
    }

    /// The flight is over; its number may be used again.
    pub fn end(&mut self, id: u32) {
        self.slots[id as usize].next_free = self.free;
        self.free = id;
    }
}

impl Flight {
    /// Adds memory at the end, in the registered buffer of this index if any.
    pub fn add(&mut self, start: *mut u8, len: usize, registered: Option<u16>) {
        if self.vectors.is_empty() {
            self.registered = registered;
        } else if self.registered != registered {
            self.registered = None;
        }
        if let Some(last) = self.vectors.last_mut() {
            if last.iov_base as usize + last.iov_len == start as usize {
                last.iov_len += len;
                return;
            }
        }
        self.vectors.push(libc::iovec { iov_base: start.cast(), iov_len: len });
    }

    /// The ring's entry for the rest of the operation.
    pub fn entry(&self) -> squeue::Entry {
        let file = types::Fixed(self.operation.leaf);
        match self.operation.kind {
            OpKind::Read => self.read(file),
            OpKind::Write => self.write(file),
            OpKind::Flush => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
            OpKind::Discard => self.allocate(file, libc::FALLOC_FL_PUNCH_HOLE),
            OpKind::WriteZeroes => self.allocate(file, libc::FALLOC_FL_ZERO_RANGE),
        }
    }

    fn allocate(&self, file: types::Fixed, mode: i32) -> squeue::Entry {
        let mode = mode | libc::FALLOC_FL_KEEP_SIZE;
        opcode::Fallocate::new(file, self.left).offset(self.offset).mode(mode).build()
    }

    fn read(&self, file: types::Fixed) -> squeue::Entry {
        let rest = &self.vectors[self.first..];
        if let [only] = rest {
            let memory = (only.iov_base.cast(), only.iov_len as u64);
            return transfer(false, file, memory, self.registered, self.offset, 0);
        }
        opcode::Readv::new(file, rest.as_ptr(), rest.len().min(MOST_VECTORS) as u32).offset(self.offset).build()
    }

    fn write(&self, file: types::Fixed) -> squeue::Entry {
        let flags = if self.operation.force_unit_access { libc::RWF_DSYNC } else { 0 };
        let rest = &self.vectors[self.first..];
        if let [only] = rest {
            let memory = (only.iov_base.cast(), only.iov_len as u64);
            return transfer(true, file, memory, self.registered, self.offset, flags);
        }
        let count = rest.len().min(MOST_VECTORS) as u32;
        opcode::Writev::new(file, rest.as_ptr(), count).offset(self.offset).rw_flags(flags).build()
    }

    /// Takes note of an answer without error.
    pub fn advance(&mut self, moved: u64) -> Progress {
        if !matches!(self.operation.kind, OpKind::Read | OpKind::Write) {
            return Progress::Done;
        }
        if moved == 0 && self.left > 0 {
            return Progress::EndOfTarget;
        }
        (self.offset, self.left) = (self.offset + moved, self.left - moved);
        if self.left == 0 {
            return Progress::Done;
        }
        let mut moved = moved as usize;
        while moved > 0 {
            let vector = &mut self.vectors[self.first];
            if moved < vector.iov_len {
                vector.iov_base = vector.iov_base.cast::<u8>().wrapping_add(moved).cast();
                vector.iov_len -= moved;
                return Progress::More;
            }
            moved -= vector.iov_len;
            self.first += 1;
        }
        Progress::More
    }

    /// Time since it was submitted.
    pub fn age(&self, now: Instant) -> Duration {
        now.since(self.submitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_types::{Extent, OpClass, OpId};

    fn flight(flights: &mut Flights, sectors: u64) -> u32 {
        let operation = Operation {
            id: OpId(1),
            tag: 0,
            leaf: 0,
            kind: OpKind::Read,
            extent: Extent::new(10, sectors),
            class: OpClass::Foreground,
            priority: 0,
            force_unit_access: false,
            pair_with: None,
        };
        flights.begin(operation, Instant::ZERO, 512)
    }

    #[test]
    fn neighbours_merge_and_short_transfers_go_on() {
        let mut flights = Flights::new();
        let id = flight(&mut flights, 6);
        let f = flights.get(id);
        let base = 0x10_0000 as *mut u8;
        f.add(base, 512, Some(3));
        f.add(base.wrapping_add(512), 512, Some(3));
        assert_eq!((f.vectors.len(), f.registered), (1, Some(3)));
        f.add(base.wrapping_add(8192), 2048, Some(3));
        assert_eq!((f.vectors.len(), f.registered), (2, Some(3)));
        f.add(base.wrapping_add(8192 + 2048), 0, None);
        assert_eq!((f.vectors.len(), f.registered), (2, None));
        assert_eq!(f.advance(1500), Progress::More);
        assert_eq!((f.first, f.vectors[1].iov_base as usize, f.vectors[1].iov_len), (1, 0x10_0000 + 8192 + 476, 1572));
        assert_eq!(f.offset, 10 * 512 + 1500);
        assert_eq!(f.advance(0), Progress::EndOfTarget);
        assert_eq!(f.advance(1572), Progress::Done);
        flights.end(id);
        assert_eq!(flight(&mut flights, 1), id);
    }
}
