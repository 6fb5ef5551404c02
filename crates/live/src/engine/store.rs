//! Carrying out one operation on one member: in memory at once, on a file or device through the ring, on an emulated one
//! by its disk, which says when, while its bytes move at once.
//!
//! What the system's errors mean is in `io::errno`: unreadable sectors cost an extent, most others the member, and
//! those that say "the run is set up wrongly" end it.

use super::compute::WindowMemory;
use super::faults::FaultDecision;
use super::flight::{Flight, TransferState};
use super::Engine;
use crate::error::{plain, LiveError};
use crate::io::{meaning, verb, Meaning, Ring};
use crate::memory::MemoryMapping;
use crate::result::{FailedMember, TracedOperation};
use crate::target::{OpenContent, Store};
use raidlab_array::{Piece, Space};
use raidlab_types::number::{u32_from, u64_from, usize_from};
use raidlab_types::{LeafId, OpError, OpKind, Operation};
use rustix::fs::{fallocate, FallocateFlags};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use tracing::debug;

/// Length of the memory that what nobody wants is read to.
pub(super) const SINK_BYTES: usize = 1 << 20;

impl Engine {
    /// Starts an operation; one in memory is carried out here and now.
    pub(super) fn start(&mut self, operation: Operation) {
        self.accounts.operations.submitted += 1;
        if self.traced > 0 {
            self.note(&operation);
        }
        match self.faults.judge(&operation) {
            FaultDecision::Serve => {}
            FaultDecision::TakeOut(leaf) => self.take_out(leaf),
            FaultDecision::Fail(error) => {
                self.counts[operation.leaf as usize].failed += 1;
                self.accounts.operations.end(false);
                return self.finish(operation.id, Err(error));
            }
        }
        if self.outages.is_gone(operation.leaf) {
            return self.done(&operation, 0, Err(OpError::MemberGone));
        }
        self.assert_within(&operation);
        let Some(places) = self.places(operation.id, operation.tag) else { return };
        match self.targets[operation.leaf as usize].as_ref().map(|target| &target.store) {
            Some(Store::Fd(_)) => self.launch(operation, places),
            Some(Store::Memory(mapping)) => {
                // SAFETY: the places are the plan's, whose operations wait for each other where they share memory.
                unsafe { copy(&operation, self.array.pieces(operation.id), places, mapping) };
                self.done(&operation, 0, Ok(()));
            }
            Some(Store::Null) => self.done(&operation, 0, Ok(())),
            Some(Store::Emulated(..)) => self.hand_over(operation, places),
            None => self.done(&operation, 0, Err(OpError::MemberGone)),
        }
    }

    /// The layout keeps every operation within its member; what lies beyond may be somebody else's.
    fn assert_within(&self, operation: &Operation) {
        let Some(target) = &self.targets[operation.leaf as usize] else { return };
        let end = operation.extent.end() * self.sector_bytes as u64;
        assert!(
            end <= target.facts.size_bytes,
            "byte {end} of {}, which has {}",
            target.name(),
            target.facts.size_bytes
        );
    }

    /// Gives an operation to its emulated disk, and moves its bytes while that is at work, as a disk would.
    fn hand_over(&mut self, operation: Operation, places: WindowMemory) {
        self.tick();
        let Some(spindles) = &mut self.spindles else { unreachable!("an emulated member has a disk") };
        let number = spindles.hand_over(self.now, operation);
        let Some(Store::Emulated(_, kept)) = self.targets[operation.leaf as usize].as_ref().map(|t| &t.store) else {
            return;
        };
        let pieces = self.array.pieces(operation.id);
        let moved = match kept {
            OpenContent::Nothing => Ok(()),
            OpenContent::Memory(mapping) => {
                // SAFETY: as for a member in memory.
                unsafe { copy(&operation, pieces, places, mapping) };
                Ok(())
            }
            // SAFETY: the same places.
            OpenContent::File(file) => unsafe { transfer(&operation, pieces, places, file) },
        };
        let Err(error) = moved else { return };
        let failed = match error.raw_os_error() {
            None => self.cut_short(&operation),
            Some(errno) => self.blame(&operation, errno),
        };
        if let (Some(error), Some(spindles)) = (failed, &mut self.spindles) {
            spindles.fail(number, error);
        }
    }

    /// Delivers what emulated disks have completed, the earliest first, and lets the array go on after each.
    pub(super) fn deliver(&mut self) {
        if self.spindles.is_none() {
            return;
        }
        loop {
            self.tick();
            let Some(served) = self.spindles.as_mut().and_then(|spindles| spindles.take_due(self.now)) else { return };
            if let (true, Some(spindles)) = (self.measuring, &mut self.spindles) {
                spindles.record(self.now, &served);
            }
            self.done(&served.operation, served.completion.wait().as_ns(), served.result);
            self.pump();
        }
    }

    /// Lists an operation of one of the first requests.
    fn note(&mut self, operation: &Operation) {
        let &Operation { leaf, kind, extent, .. } = operation;
        let number = self.active(operation.tag).map(|slot| slot.number);
        if let Some(request) = number.filter(|&number| number < self.traced) {
            self.trace.push(TracedOperation { request, leaf, kind, extent });
        }
    }

    /// Sends an operation into the ring.
    fn launch(&mut self, operation: Operation, places: WindowMemory) {
        let id = self.flights.begin(operation, self.now, self.sector_bytes as u64);
        let user = self.active(operation.tag).and_then(|slot| slot.block).and_then(|b| b.registered);
        let (part, _) = self.array.scratch_of(operation.id);
        let scratch = self.scratch[part as usize].and_then(|b| b.registered);
        let (flight, sink) = (self.flights.get(id), self.sink);
        for piece in self.array.pieces(operation.id) {
            let len = piece.sectors as usize * self.sector_bytes;
            match piece.space {
                Space::User => flight.add(places.at(piece.space, piece.offset, piece.sectors), len, user),
                Space::Scratch => flight.add(places.at(piece.space, piece.offset, piece.sectors), len, scratch),
                Space::Discard => add_sink(flight, sink.as_ptr(), len, sink.registered),
            }
        }
        flight.loaded();
        self.push(id);
    }

    fn push(&mut self, id: u32) {
        let Some(ring) = &mut self.ring else { unreachable!("a member with a descriptor has a ring") };
        if ring.is_full() {
            return self.waiting.push_back(id);
        }
        let entry = self.flights.get(id).entry().user_data(u64::from(id));
        // SAFETY: the request's, the window's and the flight's memory are kept until the answer is reaped.
        let result = unsafe { ring.push(&entry) };
        self.check_enter(result);
    }

    /// Takes all answers there are, and lets those into the ring that found it full.
    pub(super) fn reap(&mut self) {
        while let Some((id, result)) = self.ring.as_mut().and_then(Ring::reap) {
            self.answered(u32_from(id), result);
        }
        while self.ring.as_ref().is_some_and(|ring| !ring.is_full()) {
            let Some(id) = self.waiting.pop_front() else { return };
            self.push(id);
        }
    }

    fn answered(&mut self, id: u32, result: i32) {
        let flight = self.flights.get(id);
        let operation = flight.operation;
        if result < 0 {
            return self.refused(id, operation, -result);
        }
        match flight.advance(u64_from(result)) {
            TransferState::Done => {
                let age = flight.age(self.now).as_ns();
                self.flights.end(id);
                self.done(&operation, age, Ok(()));
            }
            TransferState::More => self.go_on(id, &operation),
            TransferState::EndOfTarget => {
                self.flights.end(id);
                self.cut_short(&operation);
            }
        }
    }

    /// The kernel has moved a part: the rest is asked for.
    #[cold]
    fn go_on(&mut self, id: u32, operation: &Operation) {
        debug!(leaf = operation.leaf, kind = ?operation.kind, extent = %operation.extent, "short transfer, asking for the rest");
        self.push(id);
    }

    /// The target ends within the operation, which ends the run.
    fn cut_short(&mut self, operation: &Operation) -> Option<OpError> {
        let what = format!("it ends within {}: was it truncated?", self.bytes_of(operation));
        self.fail_on(operation.leaf, 0, &what);
        None
    }

    fn refused(&mut self, id: u32, operation: Operation, errno: i32) {
        if meaning(operation.kind, errno) == Meaning::Again {
            debug!(leaf = operation.leaf, kind = ?operation.kind, errno, "interrupted, trying again");
            return self.push(id);
        }
        let age = self.flights.get(id).age(self.now).as_ns();
        self.flights.end(id);
        if let Some(error) = self.blame(&operation, errno) {
            self.done(&operation, age, Err(error));
        }
    }

    /// What an error number of the system means for an operation; none if it ends the run.
    fn blame(&mut self, operation: &Operation, errno: i32) -> Option<OpError> {
        let error = io::Error::from_raw_os_error(errno);
        match meaning(operation.kind, errno) {
            Meaning::Unreadable => {
                debug!(leaf = operation.leaf, extent = %operation.extent, errno, "unreadable sectors");
                Some(OpError::Media(operation.extent))
            }
            Meaning::Fatal => {
                let what = format!("{} at {}: {}", verb(operation.kind), self.bytes_of(operation), plain(&error));
                self.fail_on(operation.leaf, errno, &what);
                None
            }
            _ => {
                if !self.failed_members.iter().any(|m| m.leaf == operation.leaf) {
                    let reason = format!("{}: {}", verb(operation.kind), plain(&error));
                    debug!(leaf = operation.leaf, reason, "member is gone");
                    self.failed_members.push(FailedMember { leaf: operation.leaf, reason });
                }
                Some(OpError::MemberGone)
            }
        }
    }

    /// A member begins anew. Where all is verified nothing is left of what it held, lest a rebuild that does nothing looks
    /// like one; where it is measured that would stop the load, and nothing of it is read.
    pub(super) fn blank(&mut self, leaf: LeafId) {
        let Some(target) = self.targets[leaf as usize].as_ref().filter(|_| self.verifier.is_some()) else { return };
        let blanked = match &target.store {
            Store::Fd(file) | Store::Emulated(_, OpenContent::File(file)) => {
                // A hole reads as zeroes, whichever way the file was opened.
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                fallocate(file, flags, 0, target.facts.size_bytes).map_err(io::Error::from)
            }
            Store::Memory(mapping) | Store::Emulated(_, OpenContent::Memory(mapping)) => {
                let len = usize_from(target.facts.size_bytes);
                // SAFETY: so many bytes are the member's, and nothing of it is in flight.
                unsafe { mapping.at(0, len).write_bytes(0, len) };
                Ok(())
            }
            Store::Null | Store::Emulated(_, OpenContent::Nothing) => Ok(()),
        };
        if let Err(error) = blanked {
            self.fail_on(leaf, error.raw_os_error().unwrap_or(0), &format!("cannot be blanked: {}", plain(&error)));
        }
    }

    /// Counts an operation that is over and tells the array.
    fn done(&mut self, operation: &Operation, wait_ns: u64, result: Result<(), OpError>) {
        if self.measuring {
            let bytes = operation.extent.sectors * self.sector_bytes as u64;
            self.counts[operation.leaf as usize].add(operation.kind, bytes, wait_ns, result.is_ok());
        }
        let result = result.and_then(|()| self.outages.outcome(&self.array, operation.id, operation.leaf));
        self.accounts.operations.end(result.is_ok());
        self.finish(operation.id, result);
    }

    fn bytes_of(&self, operation: &Operation) -> String {
        let sector = self.sector_bytes as u64;
        format!("{} bytes from byte {} on", operation.extent.sectors * sector, operation.extent.lba * sector)
    }

    fn fail_on(&mut self, leaf: LeafId, errno: i32, message: &str) {
        let target = self.targets[leaf as usize].as_ref();
        let (key, target) = target.map_or(("members".into(), String::new()), |t| (t.key.clone(), t.name()));
        self.fail(LiveError::Io { key, target, errno, message: message.to_string() });
    }
}

/// Reads into the sink as often as it takes.
fn add_sink(flight: &mut Flight, sink: *mut u8, mut len: usize, registered: Option<u16>) {
    while len > 0 {
        let step = len.min(SINK_BYTES);
        flight.add(sink, step, registered);
        len -= step;
    }
}

/// Carries out an operation on a member in memory.
///
/// # Safety
/// Nothing else touches the memory that `places` name, nor the operation's sectors of the member.
unsafe fn copy(operation: &Operation, pieces: &[Piece], places: WindowMemory, member: &MemoryMapping) {
    let (at, len) = bytes_of_member(operation, places);
    let there = member.at(at, len);
    match operation.kind {
        OpKind::Flush => {}
        // SAFETY: `len` bytes of the member begin there.
        OpKind::Discard | OpKind::WriteZeroes => unsafe { there.write_bytes(0, len) },
        OpKind::Read | OpKind::Write => for_each_piece(operation, pieces, places, |memory, from, len| {
            let there = there.wrapping_add(from);
            let (from, to) = if operation.kind == OpKind::Read { (there, memory) } else { (memory, there) };
            // SAFETY: the piece lies within the operation, and as many bytes are there in memory; a member never overlaps
            // a buffer.
            unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
            Ok(())
        })
        .expect("copying cannot fail"),
    }
}

/// As [`copy`], between memory and a file.
///
/// # Safety
/// As for [`copy`].
unsafe fn transfer(operation: &Operation, pieces: &[Piece], places: WindowMemory, file: &File) -> io::Result<()> {
    let (at, len) = bytes_of_member(operation, places);
    match operation.kind {
        // The model has said what it costs; the file outlives nothing.
        OpKind::Flush => Ok(()),
        OpKind::Discard | OpKind::WriteZeroes => write_zeroes(file, at, len as u64),
        OpKind::Read | OpKind::Write => for_each_piece(operation, pieces, places, |memory, from, len| {
            // SAFETY: so many bytes are there, and nothing else touches them.
            let memory = unsafe { std::slice::from_raw_parts_mut(memory, len) };
            match operation.kind {
                OpKind::Read => file.read_exact_at(memory, at + from as u64),
                _ => file.write_all_at(memory, at + from as u64),
            }
        }),
    }
}

/// Where on its member an operation begins, and how long it is.
fn bytes_of_member(operation: &Operation, places: WindowMemory) -> (u64, usize) {
    (operation.extent.lba * places.sector_bytes as u64, usize_from(operation.extent.sectors) * places.sector_bytes)
}

/// Calls `moves` with the memory of every piece that is wanted, where in the operation it begins, and its length.
///
/// # Panics
/// When the pieces are not as long as the operation.
fn for_each_piece(
    operation: &Operation,
    pieces: &[Piece],
    places: WindowMemory,
    mut moves: impl FnMut(*mut u8, usize, usize) -> io::Result<()>,
) -> io::Result<()> {
    let (_, whole) = bytes_of_member(operation, places);
    let mut from = 0;
    for piece in pieces {
        let (len, left) = (piece.sectors as usize * places.sector_bytes, whole - from);
        assert!(len <= left, "the pieces of an operation are longer than it: {len} bytes where {left} are left");
        if piece.space != Space::Discard {
            moves(places.at(piece.space, piece.offset, piece.sectors), from, len)?;
        }
        from += len;
    }
    assert_eq!(from, whole, "the pieces of an operation are shorter than it");
    Ok(())
}

fn write_zeroes(file: &File, mut at: u64, len: u64) -> io::Result<()> {
    const ZEROES: [u8; 4096] = [0; 4096];
    let end = at + len;
    while at < end {
        let step = ZEROES.len().min(usize_from(end - at));
        file.write_all_at(&ZEROES[..step], at)?;
        at += step as u64;
    }
    Ok(())
}
