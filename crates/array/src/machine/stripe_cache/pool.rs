//! The rows of a stripe cache: where each is found, who holds it and in which list it stands while nobody does.
//!
//! Invariants: a row that somebody holds is in no list but that of the submitter; every other is in the list of rows to be
//! handled, or in the list of idle rows of its class. Classes are as many pools: a row is kept in the class of its number
//! only, as Linux md's are by their hash.

use crate::plan::{place, NONE};
use raidlab_types::number::{u32_from, usize_from};

/// Classes of rows (`NR_STRIPE_HASH_LOCKS`).
pub(super) const CLASSES: u32 = 8;

/// Lists of rows: idle ones, a list a class; then these.
pub(super) const TO_HANDLE: u32 = CLASSES;
pub(super) const PLUGGED: u32 = CLASSES + 1;
const LISTS: usize = 10;

/// Heads of the table in which rows are found.
const BUCKETS: usize = 4096;

/// What a row waits for between its reads and its writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowPhase {
    Idle,
    /// The pages of missing members are computed.
    Recovering,
    /// The parities are computed.
    Computing,
    Computed,
    /// The array's own work compares the row.
    Comparing,
    Compared,
}

/// How far the array's own work is with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowWork {
    Nothing,
    Wanted,
    Going,
    /// What is written of it, if anything, is all there is to do.
    Settled,
}

/// A row: a page of each member.
#[derive(Debug, Clone, Copy)]
pub(super) struct CachedRow {
    /// Where it lies on every member, in rows; none before its first use.
    pub number: Option<u64>,
    /// Position of P.
    pub p: u32,
    /// Who holds it: the submitter, operations on their way, a batch.
    pub holders: u32,
    /// It is to be looked at once nobody holds it.
    pub to_handle: bool,
    /// It stands in the list of those that the thread takes back.
    pub is_released: bool,
    /// Nobody has looked at it since it was taken for this number.
    pub batch_ready: bool,
    pub phase: RowPhase,
    pub work: RowWork,
    /// Pages that are to be written whole.
    pub overwritten: u32,
    /// The first row of its batch, and the next one in it.
    pub batch_head: u32,
    pub batch_next: u32,
    /// The submitter waits for its pages to be taken.
    pub is_awaited: bool,
    pub force_unit_access: bool,
    list: u32,
    previous: u32,
    next: u32,
    next_in_bucket: u32,
}

const UNUSED: CachedRow = CachedRow {
    number: None,
    p: 0,
    holders: 0,
    to_handle: false,
    is_released: false,
    batch_ready: false,
    phase: RowPhase::Idle,
    work: RowWork::Nothing,
    overwritten: 0,
    batch_head: NONE,
    batch_next: NONE,
    is_awaited: false,
    force_unit_access: false,
    list: NONE,
    previous: NONE,
    next: NONE,
    next_in_bucket: NONE,
};

#[derive(Debug, Clone, Copy)]
struct ListEnds {
    first: u32,
    last: u32,
}

/// All rows there are.
#[derive(Debug)]
pub(super) struct RowPool {
    pub rows: Vec<CachedRow>,
    lists: [ListEnds; LISTS],
    buckets: Vec<u32>,
    /// Rows that are not idle.
    pub active: u32,
}

impl RowPool {
    pub(super) fn new(rows: u32) -> RowPool {
        let empty = ListEnds { first: NONE, last: NONE };
        let mut pool = RowPool { rows: Vec::new(), lists: [empty; LISTS], buckets: vec![NONE; BUCKETS], active: 0 };
        for _ in 0..rows {
            let id = pool.add();
            pool.push(RowPool::class(id), id);
        }
        pool
    }

    /// One more row, in no list.
    pub(super) fn add(&mut self) -> u32 {
        self.rows.push(UNUSED);
        place(self.rows.len()) - 1
    }

    /// Makes every row unused and idle.
    pub(super) fn reset(&mut self) {
        self.lists.fill(ListEnds { first: NONE, last: NONE });
        self.buckets.fill(NONE);
        self.active = 0;
        for id in 0..place(self.rows.len()) {
            self.rows[id as usize] = UNUSED;
            self.push(RowPool::class(id), id);
        }
    }

    /// The class of a row, which it keeps.
    pub(super) fn class(id: u32) -> u32 {
        id % CLASSES
    }

    /// The class in which a row of this number is kept.
    pub(super) fn class_of_number(number: u64) -> u32 {
        u32_from(number % u64::from(CLASSES))
    }

    pub(super) fn is_empty(&self, list: u32) -> bool {
        self.lists[list as usize].first == NONE
    }

    pub(super) fn push(&mut self, list: u32, id: u32) {
        let ends = &mut self.lists[list as usize];
        let last = std::mem::replace(&mut ends.last, id);
        if last == NONE {
            ends.first = id;
        } else {
            self.rows[last as usize].next = id;
        }
        let row = &mut self.rows[id as usize];
        debug_assert!(row.list == NONE, "a row is in one list at most");
        (row.list, row.previous, row.next) = (list, last, NONE);
    }

    pub(super) fn pop(&mut self, list: u32) -> Option<u32> {
        let first = self.lists[list as usize].first;
        (first != NONE).then(|| {
            self.unlink(first);
            first
        })
    }

    fn unlink(&mut self, id: u32) {
        let CachedRow { list, previous, next, .. } = self.rows[id as usize];
        if list == NONE {
            return;
        }
        match previous {
            NONE => self.lists[list as usize].first = next,
            before => self.rows[before as usize].next = next,
        }
        match next {
            NONE => self.lists[list as usize].last = previous,
            after => self.rows[after as usize].previous = previous,
        }
        self.rows[id as usize].list = NONE;
    }

    /// Whether the submitter has it in its list.
    pub(super) fn is_plugged(&self, id: u32) -> bool {
        self.rows[id as usize].list == PLUGGED
    }

    /// The row of this number, held by one more.
    pub(super) fn hold(&mut self, number: u64) -> Option<u32> {
        let mut at = self.buckets[Self::bucket(number)];
        while at != NONE && self.rows[at as usize].number != Some(number) {
            at = self.rows[at as usize].next_in_bucket;
        }
        if at == NONE {
            return None;
        }
        if self.rows[at as usize].holders == 0 {
            self.active += u32::from(!self.rows[at as usize].to_handle);
            self.unlink(at);
        }
        self.rows[at as usize].holders += 1;
        Some(at)
    }

    /// The row of the class that has been idle longest, for another number, held by one.
    pub(super) fn reuse(&mut self, number: u64, p: u32) -> Option<u32> {
        let id = self.pop(Self::class_of_number(number))?;
        self.active += 1;
        if let Some(before) = self.rows[id as usize].number {
            self.forget(id, before);
        }
        let bucket = Self::bucket(number);
        let next_in_bucket = std::mem::replace(&mut self.buckets[bucket], id);
        let number = Some(number);
        self.rows[id as usize] = CachedRow { number, p, holders: 1, batch_ready: true, next_in_bucket, ..UNUSED };
        Some(id)
    }

    fn forget(&mut self, id: u32, number: u64) {
        let (bucket, next) = (Self::bucket(number), self.rows[id as usize].next_in_bucket);
        let mut at = self.buckets[bucket];
        if at == id {
            self.buckets[bucket] = next;
            return;
        }
        while self.rows[at as usize].next_in_bucket != id {
            at = self.rows[at as usize].next_in_bucket;
        }
        self.rows[at as usize].next_in_bucket = next;
    }

    fn bucket(number: u64) -> usize {
        usize_from(number % u64::from(place(BUCKETS)))
    }
}
