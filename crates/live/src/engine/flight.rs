//! Operations on their way: what memory they move, how far they are, and the ring's entry for the rest of them.
//!
//! Invariants:
//! - A flight's vectors do not move while an entry that names them is in the ring (their heap memory is the flight's own
//!   and is touched only between completion and resubmission).
//! - Neighbouring pieces are one vector; a transfer takes at most [`MOST_VECTORS`] of them and `io::MOST_BYTES` at once, and
//!   what is left of it, or of a short one, goes in the next entry.

use crate::io::transfer;
use io_uring::{opcode, squeue, types};
use raidlab_types::number::{u32_from, usize_from};
use raidlab_types::{Duration, Instant, OpKind, Operation};
use slab::Slab;

/// IOV_MAX of Linux.
const MOST_VECTORS: usize = 1024;

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
}

/// What an answer of the ring means for a flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransferState {
    Done,
    /// Short: another entry is needed.
    More,
    /// The target ends within the operation.
    EndOfTarget,
}

/// All flights, by the number that the ring gives back.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    under_way: Slab<Flight>,
    /// Lists of vectors of flights that are over.
    spare: Vec<Vec<libc::iovec>>,
}

impl Flights {
    /// Starts a flight without vectors; returns its number.
    pub(super) fn begin(&mut self, operation: Operation, submitted: Instant, sector_bytes: u64) -> u32 {
        let vectors = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(8));
        let (offset, left) = (operation.extent.lba * sector_bytes, operation.extent.sectors * sector_bytes);
        u32_from(self.under_way.insert(Flight {
            operation,
            submitted,
            offset,
            left,
            vectors,
            first: 0,
            registered: None,
        }))
    }

    /// The flight of this number.
    ///
    /// # Panics
    /// When it is not under way: an answer of the kernel names no other.
    pub(super) fn get(&mut self, id: u32) -> &mut Flight {
        &mut self.under_way[id as usize]
    }

    /// The flight is over; its number may be used again.
    ///
    /// # Panics
    /// When it was over.
    pub(super) fn end(&mut self, id: u32) {
        let mut vectors = self.under_way.remove(id as usize).vectors;
        vectors.clear();
        self.spare.push(vectors);
    }
}

impl Flight {
    /// Adds memory at the end, in the registered buffer of this index if any.
    pub(super) fn add(&mut self, start: *mut u8, len: usize, registered: Option<u16>) {
        assert!(!start.is_null(), "{len} bytes at no address");
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
    pub(super) fn entry(&self) -> squeue::Entry {
        debug_assert!(!self.moves() || self.bytes_named() == self.left, "memory for all of the rest, and no more");
        let file = types::Fixed(self.operation.leaf);
        match self.operation.kind {
            OpKind::Read => self.read(file),
            OpKind::Write => self.write(file),
            OpKind::Flush => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
            OpKind::Discard => self.allocate(file, libc::FALLOC_FL_PUNCH_HOLE),
            OpKind::WriteZeroes => self.allocate(file, libc::FALLOC_FL_ZERO_RANGE),
        }
    }

    /// Whether it moves bytes between a member and memory.
    fn moves(&self) -> bool {
        matches!(self.operation.kind, OpKind::Read | OpKind::Write)
    }

    /// Bytes of memory that are still to move.
    fn bytes_named(&self) -> u64 {
        self.vectors[self.first..].iter().map(|vector| vector.iov_len as u64).sum()
    }

    /// All memory has been added.
    ///
    /// # Panics
    /// When it is not as long as the operation: the kernel would move other bytes than the plan says.
    pub(super) fn loaded(&self) {
        let named = self.bytes_named();
        assert!(!self.moves() || named == self.left, "{named} bytes of memory for an operation of {}", self.left);
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
        opcode::Readv::new(file, rest.as_ptr(), u32_from(rest.len().min(MOST_VECTORS))).offset(self.offset).build()
    }

    fn write(&self, file: types::Fixed) -> squeue::Entry {
        let flags = if self.operation.force_unit_access { libc::RWF_DSYNC } else { 0 };
        let rest = &self.vectors[self.first..];
        if let [only] = rest {
            let memory = (only.iov_base.cast(), only.iov_len as u64);
            return transfer(true, file, memory, self.registered, self.offset, flags);
        }
        let count = u32_from(rest.len().min(MOST_VECTORS));
        opcode::Writev::new(file, rest.as_ptr(), count).offset(self.offset).rw_flags(flags).build()
    }

    /// Takes note of an answer without error.
    pub(super) fn advance(&mut self, moved: u64) -> TransferState {
        if !self.moves() {
            return TransferState::Done;
        }
        assert!(moved <= self.left, "the kernel has moved {moved} bytes of {}", self.left);
        if moved == 0 && self.left > 0 {
            return TransferState::EndOfTarget;
        }
        (self.offset, self.left) = (self.offset + moved, self.left - moved);
        if self.left == 0 {
            return TransferState::Done;
        }
        let mut moved = usize_from(moved);
        while moved > 0 {
            let vector = &mut self.vectors[self.first];
            if moved < vector.iov_len {
                vector.iov_base = vector.iov_base.cast::<u8>().wrapping_add(moved).cast();
                vector.iov_len -= moved;
                return TransferState::More;
            }
            moved -= vector.iov_len;
            self.first += 1;
        }
        TransferState::More
    }

    /// Time since it was submitted.
    pub(super) fn age(&self, now: Instant) -> Duration {
        now.since(self.submitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_types::{Extent, OpId};

    fn flight(flights: &mut Flights, sectors: u64) -> u32 {
        let operation = Operation {
            id: OpId(1),
            tag: 0,
            leaf: 0,
            kind: OpKind::Read,
            extent: Extent::new(10, sectors),
            force_unit_access: false,
            pair_with: None,
        };
        flights.begin(operation, Instant::ZERO, 512)
    }

    #[test]
    fn neighbours_merge_and_short_transfers_go_on() {
        let mut flights = Flights::default();
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
        assert_eq!(f.advance(1500), TransferState::More);
        assert_eq!((f.first, f.vectors[1].iov_base as usize, f.vectors[1].iov_len), (1, 0x10_0000 + 8192 + 476, 1572));
        assert_eq!(f.offset, 10 * 512 + 1500);
        assert_eq!(f.advance(0), TransferState::EndOfTarget);
        assert_eq!(f.advance(1572), TransferState::Done);
        flights.end(id);
        assert_eq!(flight(&mut flights, 1), id);
    }

    #[test]
    fn what_cannot_be_stops_the_run_before_memory_is_touched() {
        let panics = |what: &dyn Fn(&mut Flights, u32)| {
            let mut flights = Flights::default();
            let id = flight(&mut flights, 2);
            flights.get(id).add(0x10_0000 as *mut u8, 512, None);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| what(&mut flights, id))).is_err()
        };
        assert!(panics(&|flights, id| flights.get(id).loaded()), "512 bytes of memory for 1024");
        assert!(
            panics(&|flights, id| assert_eq!(flights.get(id).advance(1025), TransferState::Done)),
            "more than was asked"
        );
        assert!(panics(&|flights, id| flights.get(id).add(std::ptr::null_mut(), 512, None)), "no address");
        assert!(panics(&|flights, id| [id, id].into_iter().for_each(|id| flights.end(id))), "ended twice");
        assert!(!panics(&|flights, id| {
            flights.get(id).add(0x20_0000 as *mut u8, 512, None);
            flights.get(id).loaded();
            assert_eq!(flights.get(id).advance(1024), TransferState::Done);
        }));
    }
}
