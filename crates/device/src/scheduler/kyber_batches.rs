//! Linux's Kyber above a device that takes one command at a time: kinds apart, and each in batches.
//!
//! Reads, writes, discards and flushes wait in lines of their own, each in order of arrival. The scheduler stays with one
//! kind for 16 reads, 8 writes or one of the others, then goes on to the next kind that waits, sooner when its kind has run
//! out. One operation beyond the one in service is chosen at once and for good: Linux takes the next request from the
//! scheduler as soon as it can, finds the device's only slot taken and keeps it at hand.
//!
//! What waits in a line can grow: a neighbour that comes may be merged into one of the last eight operations that came since
//! the line was last taken over for service ([`Schedule::merge`]). Linux takes a whole line over when it has served what it
//! took over before; what is in it then stays as it is.
//!
//! Promise: no kind waits longer than a batch of each of the others, so nobody starves.
//!
//! Absent on purpose: Kyber's limits on how many of a kind are at the device, which it moves with the latencies it sees. Below
//! a single slot they decide at most which kind is at hand, and they are far from that wherever operations wait.
//!
//! Reference: O. Sandoval, *blk-mq: introduce Kyber multiqueue I/O scheduler*, Linux 4.12 (batches as of 4.20 and later).

use super::{merge_into, ArmAddress, PendingOperation, Schedule};
use raidlab_types::{OpId, OpKind};
use std::collections::VecDeque;

/// How many of a kind are served in a row: reads, writes, discards, all else.
const BATCH: [u32; 4] = [16, 8, 1, 1];

/// The line an operation waits in.
fn line_of(kind: OpKind) -> usize {
    match kind {
        OpKind::Read => 0,
        OpKind::Write => 1,
        OpKind::Discard => 2,
        OpKind::WriteZeroes | OpKind::Flush => 3,
    }
}

#[derive(Debug, Clone)]
pub(crate) struct KyberBatches {
    lines: [VecDeque<PendingOperation>; 4],
    /// How many at the head of each line were taken over for service, and are merged with no more.
    taken_over: [usize; 4],
    /// Chosen, and next whatever comes.
    at_hand: Option<PendingOperation>,
    /// The line served now, and how many of it in a row.
    line: usize,
    served: u32,
    waiting: usize,
    /// What comes comes together.
    is_held: bool,
}

impl Default for KyberBatches {
    fn default() -> Self {
        // Room for common depths, so that growing is a matter of the first moments of a run.
        let line = || VecDeque::with_capacity(64);
        KyberBatches {
            lines: [line(), line(), line(), line()],
            taken_over: [0; 4],
            at_hand: None,
            line: 0,
            served: 0,
            waiting: 0,
            is_held: false,
        }
    }
}

impl KyberBatches {
    fn choose(&mut self) -> Option<PendingOperation> {
        if self.served < BATCH[self.line] {
            if let Some(next) = self.pop(self.line) {
                self.served += 1;
                return Some(next);
            }
        }
        // The line served last comes last, and begins a new batch when no other waits.
        let mut turns = (1..=BATCH.len()).map(|step| (self.line + step) % BATCH.len());
        let line = turns.find(|&line| !self.lines[line].is_empty())?;
        (self.line, self.served) = (line, 1);
        self.pop(line)
    }

    /// Takes the first of a line, which is taken over whole where nothing was left of it.
    fn pop(&mut self, line: usize) -> Option<PendingOperation> {
        if self.taken_over[line] == 0 {
            self.taken_over[line] = self.lines[line].len();
        }
        self.taken_over[line] = self.taken_over[line].saturating_sub(1);
        self.lines[line].pop_front()
    }
}

impl Schedule for KyberBatches {
    fn push(&mut self, waiting: PendingOperation) {
        self.lines[line_of(waiting.kind)].push_back(waiting);
        self.waiting += 1;
        if self.at_hand.is_none() && !self.is_held {
            self.at_hand = self.choose();
        }
    }

    fn take(
        &mut self,
        _arm: ArmAddress,
        _positioning_ns: impl Fn(&PendingOperation) -> u64,
    ) -> Option<PendingOperation> {
        let taken = self.at_hand.take()?;
        self.waiting -= 1;
        self.at_hand = self.choose();
        Some(taken)
    }

    fn len(&self) -> usize {
        self.waiting
    }

    fn merge(&mut self, kind: OpKind, lba: u64, sectors: u64, fits: impl Fn(OpId, u64) -> bool) -> Option<OpId> {
        let line = line_of(kind);
        merge_into(self.lines[line].range_mut(self.taken_over[line]..), kind, lba, sectors, fits)
    }

    fn hold(&mut self) {
        self.is_held = true;
    }

    fn let_go(&mut self) {
        self.is_held = false;
        if self.at_hand.is_none() {
            self.at_hand = self.choose();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::{waiting_at, NOWHERE};

    fn push(kyber: &mut KyberBatches, kind: OpKind, ids: std::ops::Range<u64>) {
        ids.for_each(|id| kyber.push(PendingOperation { kind, ..waiting_at(id, id) }));
    }

    fn take(kyber: &mut KyberBatches) -> Option<u64> {
        kyber.take(ArmAddress::default(), NOWHERE).map(|next| next.id.0)
    }

    fn rest(kyber: &mut KyberBatches) -> Vec<u64> {
        std::iter::from_fn(|| take(kyber)).collect()
    }

    #[test]
    fn sixteen_reads_and_eight_writes_in_turn() {
        let mut kyber = KyberBatches::default();
        push(&mut kyber, OpKind::Read, 0..40);
        push(&mut kyber, OpKind::Write, 100..120);
        assert_eq!(kyber.len(), 60);
        let turns = [0..16, 100..108, 16..32, 108..116, 32..40, 116..120];
        assert_eq!(rest(&mut kyber), turns.into_iter().flatten().collect::<Vec<_>>());
        assert_eq!(kyber.len(), 0);
    }

    #[test]
    fn what_is_at_hand_is_next_whatever_comes() {
        let mut kyber = KyberBatches::default();
        push(&mut kyber, OpKind::Write, 0..3);
        // The first write is chosen when it comes; the reads wait for the batch that it began.
        push(&mut kyber, OpKind::Read, 10..12);
        assert_eq!(rest(&mut kyber), [0, 1, 2, 10, 11]);
        push(&mut kyber, OpKind::Read, 20..21);
        push(&mut kyber, OpKind::Write, 30..31);
        assert_eq!(take(&mut kyber), Some(20));
        // The write is at hand by now.
        push(&mut kyber, OpKind::Read, 21..22);
        assert_eq!(rest(&mut kyber), [30, 21]);
    }

    #[test]
    fn a_batch_goes_on_over_a_pause_and_a_lone_kind_begins_anew() {
        let mut kyber = KyberBatches::default();
        for id in 0..20 {
            push(&mut kyber, OpKind::Write, id..id + 1);
            assert_eq!(take(&mut kyber), Some(id));
        }
        // 20 writes: a batch of eight, another, and four of a third, which has room for four more before the reads.
        push(&mut kyber, OpKind::Write, 20..26);
        push(&mut kyber, OpKind::Read, 50..51);
        assert_eq!(rest(&mut kyber), [20, 21, 22, 23, 50, 24, 25]);
    }

    #[test]
    fn the_rare_kinds_have_their_turn_one_by_one() {
        let mut kyber = KyberBatches::default();
        push(&mut kyber, OpKind::Read, 0..17);
        push(&mut kyber, OpKind::Flush, 30..32);
        push(&mut kyber, OpKind::Discard, 20..22);
        let order: Vec<u64> = (0..16).chain([20, 30, 16, 21, 31]).collect();
        assert_eq!(rest(&mut kyber), order);
    }

    #[test]
    fn a_neighbour_is_merged_into_what_waits_and_was_not_taken_over() {
        let mut kyber = KyberBatches::default();
        // 0 is at hand; 10 and 20 wait.
        [0, 10, 20].into_iter().for_each(|id| push(&mut kyber, OpKind::Read, id..id + 1));
        let merge = |kyber: &mut KyberBatches, lba, sectors| {
            kyber.merge(OpKind::Read, lba, sectors, |_, both| both <= 4).map(|id| id.0)
        };
        assert_eq!(merge(&mut kyber, 1, 1), None, "what is at hand stays as it is");
        assert_eq!(merge(&mut kyber, 11, 2), Some(10), "behind");
        assert_eq!(merge(&mut kyber, 9, 1), Some(10), "before");
        assert_eq!(merge(&mut kyber, 13, 1), None, "no longer than 4 sectors");
        assert_eq!(kyber.merge(OpKind::Write, 21, 1, |_, both| both <= 4), None, "another kind");
        assert_eq!(take(&mut kyber), Some(0));
        // The line was taken over when 10 was chosen.
        assert_eq!(merge(&mut kyber, 21, 1), None);
        let ten = kyber.take(ArmAddress::default(), NOWHERE).unwrap();
        assert_eq!((ten.lba, ten.sectors), (9, 4));
        assert_eq!(rest(&mut kyber), [20]);
    }

    #[test]
    fn what_came_together_is_chosen_from_together() {
        let mut kyber = KyberBatches::default();
        push(&mut kyber, OpKind::Write, 0..1);
        assert_eq!(take(&mut kyber), Some(0));
        kyber.hold();
        push(&mut kyber, OpKind::Read, 20..22);
        push(&mut kyber, OpKind::Write, 1..3);
        kyber.let_go();
        // The line of writes was being served, and is taken over whole when one of it is chosen; that of reads is not yet.
        assert_eq!(kyber.merge(OpKind::Write, 3, 1, |_, both| both <= 8), None);
        assert_eq!(kyber.merge(OpKind::Read, 22, 1, |_, both| both <= 8).map(|id| id.0), Some(21));
        assert_eq!(rest(&mut kyber), [1, 2, 20, 21]);
    }
}
