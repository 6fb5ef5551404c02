//! The life of a request: its memory, its content, its place in the table of what is expected, and its end.
//!
//! Invariants:
//! - A request has one block from its beginning to its end; a window keeps its scratch for the next window of its number.
//! - Blocks are taken before the array hears of the request, so no operation ever lacks its memory.

use super::compute::{MemorySpan, WindowMemory};
use super::{ActiveRequest, Engine};
use crate::error::LiveError;
use crate::memory::{Block, InUse, LentMemory, Use};
use crate::result::{ArrayInput, FailedMember};
use crate::target::Target;
use raidlab_load::{Generator, Load};
use raidlab_types::number::usize_from;
use raidlab_types::{Instant, OpId, Request, RequestError, RequestKind, RequestTag};
use std::collections::VecDeque;

/// How many of a load's requests are looked at beforehand, or twice its depth where that is more.
const FORESEEN: usize = 4096;

impl Engine {
    /// Takes the memory that a closed loop will use before it runs. Its first requests are known: they are rehearsed as if
    /// each ended in its turn. What a search or an open loop keeps in flight is not known beforehand.
    pub(crate) fn foresee(&mut self, mut load: Load) -> Result<(), LiveError> {
        let (mut in_flight, mut in_use) = (VecDeque::new(), InUse::none());
        for _ in 0..FORESEEN.max(2 * load.depth() as usize) {
            while let Some(Request { tag, kind, extent, .. }) = load.poll_request(Instant::ZERO) {
                let bytes = usize_from(extent.sectors) * self.sector_bytes;
                in_use.take(bytes, purpose_of(kind));
                in_flight.push_back((tag, bytes, purpose_of(kind)));
            }
            let Some((tag, bytes, purpose)) = in_flight.pop_front() else { break };
            in_use.give_back(bytes, purpose);
            load.handle_done(Instant::ZERO, tag, true);
        }
        let Engine { pool, ring, .. } = self;
        let register = |start, len| ring.as_mut().and_then(|ring| ring.register(start, len));
        pool.foresee(&in_use, register)
            .map_err(|e| LiveError::io("workload.size", "memory", "taking what the load's requests need", &e))
    }

    /// A block from the pool, in memory the ring knows if it can.
    fn take(&mut self, bytes: usize, purpose: Use) -> Result<Block, LiveError> {
        self.pool.take(bytes, purpose, |start, len| self.ring.as_mut()?.register(start, len))
    }

    /// Takes a request: its memory, its content, its place in the table of what is expected. Memory that is `lent` holds
    /// its content already, and nothing is expected of it.
    pub(super) fn begin(&mut self, request: Request, lent: Option<LentMemory>) {
        let Request { tag, volume, kind, extent, .. } = request;
        let bytes = usize_from(extent.sectors) * self.sector_bytes;
        let purpose = purpose_of(kind);
        let mut mark = 0;
        let block = match kind {
            RequestKind::Flush => None,
            _ if lent.is_some() => lent.map(Block::lent),
            _ => match self.take(bytes, purpose) {
                Ok(block) => Some(block),
                Err(error) => return self.fail(error),
            },
        };
        let there = lent.map(|lent| lent.len()).or_else(|| block.map(|block| block.len()));
        assert!(there.is_none_or(|there| bytes <= there), "a request of {bytes} bytes with memory for {there:?}");
        if lent.is_some() {
            assert!(self.verifier.is_none() && self.check.is_none(), "what is lent is compared by whoever lends it");
        } else if let (RequestKind::Write, Some(block)) = (kind, block) {
            self.sequence += 1;
            if let Some(check) = &mut self.check {
                mark = u64::from(check.write_begins(self.now, volume, extent, self.sequence));
            }
            // SAFETY: the block is at least that long and was just taken.
            let bytes = unsafe { std::slice::from_raw_parts_mut(block.as_ptr(), bytes) };
            match &mut self.verifier {
                None => self.stamper.stamp(bytes, volume, extent.lba, self.sequence),
                Some(verifier) => {
                    self.stamper.stamp_whole(bytes, volume, extent.lba, self.sequence);
                    verifier.write_begins(volume, extent, self.sequence);
                }
            }
        } else if let (RequestKind::Read, Some(verifier)) = (kind, &mut self.verifier) {
            verifier.read_begins(tag, volume, extent);
        } else if let (RequestKind::Read, Some(check)) = (kind, &mut self.check) {
            mark = check.read_begins(self.now);
        }
        if usize_from(tag) >= self.slots.len() {
            self.slots.resize(usize_from(tag) + 1, None);
        }
        self.accounts.requests.submitted += 1;
        assert!(self.slots[usize_from(tag)].is_none(), "request {tag} begins before the one of its name has ended");
        self.slots[usize_from(tag)] =
            Some(ActiveRequest { request, block, sequence: self.sequence, number: self.begun, mark });
        self.begun += 1;
        if self.traced > 0 {
            self.inputs.push(ArrayInput::Request(request));
        }
        self.array.handle_request(self.now, request);
    }

    /// A request has ended: checks what it brought, frees its memory.
    pub(super) fn end(&mut self, tag: RequestTag, result: Result<(), RequestError>) {
        let Some(ActiveRequest { request, block, sequence, number, mark }) = self.slots[usize_from(tag)].take() else {
            self.accounts.unknown += 1;
            return;
        };
        self.accounts.requests.end(result.is_ok());
        let Request { volume, kind, extent, .. } = request;
        if let (Some(block), true) = (block, self.verifier.is_some() || self.check.is_some()) {
            let len = usize_from(extent.sectors) * self.sector_bytes;
            assert!(len <= block.len());
            // SAFETY: the block is at least that long, and no operation of this request is left.
            let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr(), len) };
            let (writes, ok) = (kind == RequestKind::Write, result.is_ok());
            match &mut self.verifier {
                Some(verifier) if writes => verifier.write_ends(volume, extent, sequence, ok),
                Some(verifier) if ok => verifier.check(tag, volume, extent, bytes),
                _ => {}
            }
            if let Some(check) = &mut self.check {
                if writes {
                    check.write_ends(volume, extent, sequence, mark != 0, ok);
                } else if let Some(written) = self.noted.get(usize_from(number)) {
                    check.read_back(written, ok.then_some(bytes));
                } else if ok && self.failed_members.is_empty() {
                    check.read_ends(mark, volume, extent, bytes, self.known);
                }
            }
        }
        if let Some(block) = block {
            self.pool.give_back(block);
        }
        if let Err(error @ RequestError::BeyondTolerance { extent: None, .. }) = result {
            self.fail_beyond(&error);
        }
        self.ended.push((tag, result.is_ok()));
    }

    /// The request of this tag; none of what the array does for itself, which has scratch only.
    pub(super) fn active(&self, tag: RequestTag) -> Option<ActiveRequest> {
        self.slots.get(usize_from(tag)).copied().flatten()
    }

    /// The memory of an operation's request and window; takes scratch where the window has too little. None if there is no
    /// more, which ends the run.
    pub(super) fn places(&mut self, id: OpId, tag: RequestTag) -> Option<WindowMemory> {
        let (part, sectors) = self.array.scratch_of(id);
        let (part, bytes) = (part as usize, sectors as usize * self.sector_bytes);
        if part >= self.scratch.len() {
            self.scratch.resize(part + 1, None);
        }
        if bytes > self.scratch[part].map_or(0, |block| block.len()) {
            // No operation of the window's plan has begun, or its scratch would have been there.
            if let Some(old) = self.scratch[part].take() {
                self.pool.give_back(old);
            }
            match self.take(bytes, Use::Any) {
                Ok(block) => self.scratch[part] = Some(block),
                Err(error) => {
                    self.fail(error);
                    return None;
                }
            }
        }
        // A request's block was found long enough for it when it began, the window's scratch just now.
        let place = |block: Block, sectors| MemorySpan { start: block.as_ptr(), sectors };
        let user = self.active(tag).and_then(|slot| Some(place(slot.block?, slot.request.extent.sectors)));
        let scratch = self.scratch[part].map(|block| place(block, u64::from(sectors)));
        Some(WindowMemory {
            user: user.unwrap_or(MemorySpan::NONE),
            scratch: scratch.unwrap_or(MemorySpan::NONE),
            sector_bytes: self.sector_bytes,
        })
    }

    #[cold]
    fn fail_beyond(&mut self, error: &RequestError) {
        let lost = |m: &FailedMember| {
            let target = self.targets[m.leaf as usize].as_ref();
            format!("member {} ({}: {})", m.leaf, target.map_or("missing".to_string(), Target::name), m.reason)
        };
        let members: Vec<String> = self.failed_members.iter().map(lost).collect();
        let message = format!("{error}; lost: {}", members.join(", "));
        self.fail(LiveError::Io { key: "members".into(), target: "the array".into(), errno: 0, message });
    }
}

fn purpose_of(kind: RequestKind) -> Use {
    if kind == RequestKind::Write {
        Use::Write
    } else {
        Use::Any
    }
}
