//! A request on its way: where it stands, and the memory it moves.
//!
//! Purpose: it is found by its tag, which the load gives out again, the last freed first; so memory that was just used is
//! used next. A slot keeps its memory between requests: one block for what is read, one of random bytes for what is written.
//!
//! Invariants:
//! - A slot's block is not given away or taken back while its request is in flight.
//! - Blocks for writes never receive what a read brings, so what is written stays incompressible.

use crate::memory::{Block, Use};
use raidlab_types::number::usize_from;
use raidlab_types::{Instant, OpKind};

/// A request on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestSlot {
    /// Where the memory of the rest begins.
    pub start: *mut u8,
    /// Where on the target the rest begins.
    pub offset: u64,
    /// Bytes still to move.
    pub left: u64,
    /// Of the whole request.
    pub bytes: u64,
    pub issued: Instant,
    /// Index of the registered buffer that holds its memory.
    pub registered: Option<u16>,
    /// Index of its volume.
    pub volume: u16,
    pub writes: bool,
    /// First sector of the whole request on its target.
    pub lba: u64,
    /// Number of a write.
    pub sequence: u64,
    /// What the comparison of contents wants to know when it is over.
    pub mark: u64,
    reading: Option<Block>,
    writing: Option<Block>,
}

impl RequestSlot {
    pub(super) const EMPTY: RequestSlot = RequestSlot {
        start: std::ptr::null_mut(),
        offset: 0,
        left: 0,
        bytes: 0,
        issued: Instant::ZERO,
        registered: None,
        volume: 0,
        writes: false,
        lba: 0,
        sequence: 0,
        mark: 0,
        reading: None,
        writing: None,
    };

    pub(super) fn kind(&self) -> OpKind {
        if self.writes {
            OpKind::Write
        } else {
            OpKind::Read
        }
    }

    /// Its block for this purpose.
    #[inline]
    pub(super) fn block(&mut self, purpose: Use) -> &mut Option<Block> {
        match purpose {
            Use::Write => &mut self.writing,
            Use::Any => &mut self.reading,
        }
    }

    /// Takes note that so many bytes have moved; true once all have.
    #[inline]
    pub(super) fn advance(&mut self, moved: u64) -> bool {
        assert!(moved <= self.left, "the kernel has moved {moved} bytes of {}", self.left);
        self.left -= moved;
        if self.left == 0 {
            return true;
        }
        self.offset += moved;
        self.start = self.start.wrapping_add(usize_from(moved));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_transfer_goes_on_where_it_ended() {
        let mut slot = RequestSlot::EMPTY;
        (slot.start, slot.offset, slot.left) = (0x1000 as *mut u8, 8192, 4096);
        assert!(!slot.advance(1024));
        assert_eq!((slot.start as usize, slot.offset, slot.left), (0x1400, 9216, 3072));
        assert!(slot.advance(3072));
    }

    #[test]
    #[should_panic(expected = "the kernel has moved 513 bytes of 512")]
    fn no_more_can_have_moved_than_was_asked() {
        RequestSlot { left: 512, ..RequestSlot::EMPTY }.advance(513);
    }
}
