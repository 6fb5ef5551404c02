//! The host's block layer above the members, as far as it changes what a member is asked: neighbouring operations become
//! one request.
//!
//! - An operation is merged into one that waits at the member where they lie next to each other (back or front), while the
//!   two are no longer than the longest request, and of no more than 128 pieces of memory: each operation is one at least.
//! - Operations that are *gathered* ("plugged") are held until everything that happens at this moment has happened, and
//!   merged among each other: each into the one gathered last, if that is of the same member, else into the first one of
//!   its member. Who has gathered 64 requests (32 while all are of one member), or 128 KiB in the first of them, hands them
//!   on early.
//!
//! Handing on takes a nanosecond, so that what is handed on one after the other does not end at the same time, and what is
//! handed on together does.
//!
//! Invariants: every operation rides on exactly one request, and completes when that does; nothing is allocated for an
//! operation once the pools have grown.
//!
//! Reference: `blk_mq_submit_bio`, `blk_attempt_plug_merge` and `blk_add_rq_to_plug` of Linux 6.12, block/.

use raidlab_device::Device;
use raidlab_types::number::{u32_from, usize_from};
use raidlab_types::{Duration, Extent, Instant, OpId, OpKind, Operation};
use slab::Slab;
use std::collections::VecDeque;

/// No operation.
const NONE: u32 = u32::MAX;

/// Requests gathered before they are handed on early: of one member, of several.
const MOST_GATHERED: [usize; 2] = [32, 64];

/// The first request gathered is not to become longer than this before another joins it.
const LONGEST_FIRST_BYTES: u64 = 128 << 10;

/// Pieces of memory in one request (Linux's default); each operation merged is one at least.
const MOST_PIECES: u64 = 128;

/// What a member is asked, for one operation or several.
#[derive(Debug, Clone, Copy)]
struct MergedRequest {
    /// The newest of the operations that ride on it.
    newest: u32,
    /// Of memory.
    pieces: u64,
    /// What the member is given: it has the number of the request for its name.
    operation: Operation,
}

/// An operation of the array on its way.
#[derive(Debug, Clone, Copy)]
struct Rider {
    op: OpId,
    /// The one that came before it on the same request.
    older: u32,
}

/// The block layer.
#[derive(Debug)]
pub(crate) struct BlockLayer {
    requests: Slab<MergedRequest>,
    riders: Slab<Rider>,
    /// Requests gathered, in order.
    gathered: Vec<u32>,
    /// They are of several members.
    several: bool,
    /// When something was handed on last.
    handed_on: Instant,
    /// Between what is handed on one after the other.
    step: Duration,
    /// How often it was handed on early since that was asked.
    early: u32,
    /// Sectors.
    longest: u64,
    longest_first: u64,
    /// What members were asked and nobody has been told of yet.
    asked: VecDeque<Operation>,
    /// Operations of the request that completed last, in order.
    completed: Vec<OpId>,
}

impl BlockLayer {
    /// One that merges up to `longest` sectors of `sector_bytes`.
    pub(crate) fn new(longest: u64, sector_bytes: u64) -> BlockLayer {
        BlockLayer {
            requests: Slab::new(),
            riders: Slab::new(),
            gathered: Vec::with_capacity(MOST_GATHERED[1]),
            several: false,
            handed_on: Instant::ZERO,
            step: Duration::from_ns(1),
            early: 0,
            longest,
            longest_first: LONGEST_FIRST_BYTES / sector_bytes,
            asked: VecDeque::new(),
            completed: Vec::new(),
        }
    }

    /// Leaves it to the host's threads when something is handed on.
    pub(crate) fn in_turns(self) -> BlockLayer {
        BlockLayer { step: Duration::ZERO, ..self }
    }

    /// How often something was handed on early since this was called last.
    pub(crate) fn take_early(&mut self) -> u32 {
        std::mem::take(&mut self.early)
    }

    /// Takes an operation of the array, which lies in so many pieces of memory; `gathers`: it may wait for others of this
    /// moment.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        op: &Operation,
        (gathers, pieces): (bool, u64),
        devices: &mut [Device],
    ) {
        let &Operation { leaf, kind, extent, .. } = op;
        let merges = matches!(kind, OpKind::Read | OpKind::Write) && !op.force_unit_access;
        if merges && gathers && self.merge_gathered(op, pieces) {
            return;
        }
        if merges {
            let fits = |OpId(request), both| self.fits(u32_from(request), both, pieces);
            if let Some(OpId(request)) = devices[leaf as usize].merge(kind, extent, fits) {
                return self.join(u32_from(request), op, pieces);
            }
        }
        let request = self.new_request(op, pieces);
        if gathers {
            return self.gather(now, request, devices);
        }
        let (now, operation) = (self.next_moment(now), *self.operation(request));
        devices[leaf as usize].handle_op(now, operation);
        self.asked.push_back(operation);
    }

    /// Hands on what was gathered at this moment, each member's together.
    pub(crate) fn hand_on(&mut self, now: Instant, devices: &mut [Device]) {
        self.flush(now, devices);
        self.several = false;
    }

    /// Hands on what was gathered so far; whoever gathers goes on.
    fn flush(&mut self, now: Instant, devices: &mut [Device]) {
        if self.gathered.is_empty() {
            return;
        }
        let now = self.next_moment(now);
        let BlockLayer { requests, gathered, asked, .. } = self;
        let operation = |&request: &u32| requests[request as usize].operation;
        for (i, first) in gathered.iter().enumerate() {
            let leaf = operation(first).leaf;
            if gathered[..i].iter().any(|earlier| operation(earlier).leaf == leaf) {
                continue;
            }
            let of_member = gathered[i..].iter().map(operation).filter(|op| op.leaf == leaf);
            devices[leaf as usize].handle_together(now, of_member.inspect(|op| asked.push_back(*op)));
        }
        gathered.clear();
    }

    /// What a member was asked since this was called last.
    pub(crate) fn next_asked(&mut self) -> Option<Operation> {
        self.asked.pop_front()
    }

    /// A request is complete; how many operations are done with it, see [`BlockLayer::completed`].
    pub(crate) fn complete(&mut self, OpId(request): OpId) -> usize {
        let MergedRequest { newest, .. } = self.requests.remove(usize_from(request));
        self.completed.clear();
        let mut at = newest;
        while at != NONE {
            let Rider { op, older } = self.riders.remove(at as usize);
            self.completed.push(op);
            at = older;
        }
        self.completed.reverse();
        self.completed.len()
    }

    /// Of the operations that were done with the last request, the one that came as number `i`.
    pub(crate) fn completed(&self, i: usize) -> OpId {
        self.completed[i]
    }

    /// The moment of handing on, a nanosecond after the one before at least.
    fn next_moment(&mut self, now: Instant) -> Instant {
        self.handed_on = now.max(self.handed_on + self.step);
        self.handed_on
    }

    fn operation(&self, request: u32) -> &Operation {
        &self.requests[request as usize].operation
    }

    fn merge_gathered(&mut self, op: &Operation, pieces: u64) -> bool {
        let Some(&last) = self.gathered.last() else { return false };
        let of_member = |request: &&u32| self.operation(**request).leaf == op.leaf;
        let found = match self.operation(last).leaf == op.leaf {
            true => Some(last),
            false if self.several => self.gathered.iter().find(of_member).copied(),
            false => None,
        };
        let Some(request) = found else { return false };
        let Operation { kind, extent, force_unit_access, .. } = *self.operation(request);
        let is_next = extent.end() == op.extent.lba || op.extent.end() == extent.lba;
        let fits = self.fits(request, extent.sectors + op.extent.sectors, pieces);
        let merges = kind == op.kind && !force_unit_access && is_next && fits;
        if merges {
            self.join(request, op, pieces);
        }
        merges
    }

    /// Whether a request may grow to so many sectors, by so many pieces of memory.
    fn fits(&self, request: u32, sectors: u64, pieces: u64) -> bool {
        sectors <= self.longest && self.requests[request as usize].pieces + pieces <= MOST_PIECES
    }

    /// The operation rides on a request that is longer for it.
    fn join(&mut self, request: u32, op: &Operation, pieces: u64) {
        let merged = &mut self.requests[request as usize];
        merged.pieces += pieces;
        merged.newest = u32_from(self.riders.insert(Rider { op: op.id, older: merged.newest }));
        let extent = &mut merged.operation.extent;
        *extent = Extent::new(extent.lba.min(op.extent.lba), extent.sectors + op.extent.sectors);
    }

    fn new_request(&mut self, op: &Operation, pieces: u64) -> u32 {
        let newest = u32_from(self.riders.insert(Rider { op: op.id, older: NONE }));
        let entry = self.requests.vacant_entry();
        let request = u32_from(entry.key());
        // Pairs are of operations; requests may carry several.
        let operation = Operation { id: OpId(u64::from(request)), pair_with: None, ..*op };
        entry.insert(MergedRequest { newest, pieces, operation });
        request
    }

    fn gather(&mut self, now: Instant, request: u32, devices: &mut [Device]) {
        if let Some(&first) = self.gathered.first() {
            let many = self.gathered.len() >= MOST_GATHERED[usize::from(self.several)];
            if many || self.operation(first).extent.sectors >= self.longest_first {
                self.flush(now, devices);
                self.early += 1;
            }
        }
        if let Some(&first) = self.gathered.first() {
            self.several |= self.operation(first).leaf != self.operation(request).leaf;
        }
        self.gathered.push(request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_device::{DeviceSpec, PairPricing};
    use raidlab_types::Seed;

    fn devices(count: usize) -> Vec<Device> {
        let text = r#"{"kind": "fixed", "capacity_bytes": 1048576, "read_us": 1, "write_us": 1,
            "scheduler": "kyber_batches"}"#;
        let spec: DeviceSpec = serde_json::from_str(text).unwrap();
        (0..count).map(|_| Device::new(&spec, 512, PairPricing::Queued, Seed::new(1)).unwrap()).collect()
    }

    fn op(id: u64, leaf: u32, lba: u64, kind: OpKind) -> Operation {
        let extent = Extent::new(lba, 8);
        Operation { id: OpId(id), tag: 0, leaf, kind, extent, force_unit_access: false, pair_with: None }
    }

    /// The operations done with each request, in order of completion.
    fn finish(blocks: &mut BlockLayer, devices: &mut [Device]) -> Vec<Vec<u64>> {
        let mut done = Vec::new();
        for device in devices {
            while let Some(now) = device.poll_timeout() {
                while let Some(completion) = device.poll_done(now) {
                    let count = blocks.complete(completion.id);
                    done.push((0..count).map(|i| blocks.completed(i).0).collect());
                }
            }
        }
        assert!(blocks.requests.is_empty() && blocks.riders.is_empty());
        done
    }

    #[test]
    fn what_waits_at_a_member_grows() {
        let (mut blocks, mut devices) = (BlockLayer::new(64, 512), devices(1));
        (0..8).for_each(|i| blocks.take(Instant::ZERO, &op(i, 0, 8 * i, OpKind::Read), (false, 1), &mut devices));
        // The first is served and the second at hand; the others wait.
        assert_eq!(finish(&mut blocks, &mut devices), [vec![0], vec![1], (2..8).collect()]);
        assert_eq!(devices[0].totals().reads, 3);
        assert_eq!(devices[0].totals().read_bytes, 64 * 512);
    }

    #[test]
    fn a_request_has_so_many_pieces_of_memory_at_most() {
        let (mut blocks, mut devices) = (BlockLayer::new(4096, 512), devices(1));
        // Two are with the device; of the others 8 sectors lie in eight pieces each.
        (0..40).for_each(|i| blocks.take(Instant::ZERO, &op(i, 0, 8 * i, OpKind::Read), (false, 8), &mut devices));
        let done = finish(&mut blocks, &mut devices);
        assert_eq!(done.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 16, 16, 6]);
    }

    #[test]
    fn what_is_gathered_grows_where_it_is_last_or_first_of_its_member() {
        let (mut blocks, mut devices) = (BlockLayer::new(64, 512), devices(2));
        let writes = [(0, 0), (1, 0), (0, 8), (0, 100), (1, 200), (0, 108), (1, 208)];
        for (id, (leaf, lba)) in (0..).zip(writes) {
            blocks.take(Instant::ZERO, &op(id, leaf, lba, OpKind::Write), (true, 1), &mut devices);
        }
        assert!(devices.iter().all(|device| device.in_flight() == 0), "nothing is handed on yet");
        blocks.hand_on(Instant::ZERO, &mut devices);
        // Of a member's second run each is alone: others have come between, and then only the first of it is looked at.
        let expected = [vec![0, 2], vec![3], vec![5], vec![1], vec![4], vec![6]];
        assert_eq!(finish(&mut blocks, &mut devices), expected);
    }

    #[test]
    fn the_longest_request_is_kept_and_kinds_apart() {
        let (mut blocks, mut devices) = (BlockLayer::new(16, 512), devices(1));
        let kinds = [OpKind::Write, OpKind::Write, OpKind::Write, OpKind::Read];
        for (id, kind) in (0..).zip(kinds) {
            blocks.take(Instant::ZERO, &op(id, 0, 8 * id, kind), (true, 1), &mut devices);
        }
        blocks.hand_on(Instant::ZERO, &mut devices);
        let done = finish(&mut blocks, &mut devices);
        // The scheduler chooses among all that was gathered, and begins with reads.
        assert_eq!(done, [vec![3], vec![0, 1], vec![2]]);
    }
}
