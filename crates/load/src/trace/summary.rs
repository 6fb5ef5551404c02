//! What a trace holds, in one pass.
//!
//! Purpose: counts, shares, sizes, rates and the working set, of the whole and of each volume, before anything is replayed.
//!
//! Invariant: memory grows with the addresses that are touched (a bit a page of 4 KiB, in pieces that cover 128 MiB), not with
//! the length of the trace.

use super::Record;
use raidlab_types::RequestKind;
use std::collections::BTreeMap;

/// The unit in which touched addresses are counted.
pub const PAGE_BYTES: u64 = 4096;
/// Pages that one piece of the set covers.
const PIECE_PAGES: u64 = 1 << 15;
const PIECE_WORDS: usize = (PIECE_PAGES / 64) as usize;
/// Sizes that are counted each by itself; the rest share what is left.
const MOST_SIZES: usize = 4096;
const NS_PER_S: u64 = 1_000_000_000;

/// Pages touched.
#[derive(Debug, Clone, Default)]
struct Pages {
    pieces: BTreeMap<u64, Box<[u64; PIECE_WORDS]>>,
    count: u64,
}

impl Pages {
    fn touch(&mut self, first: u64, last: u64) {
        let mut page = first;
        while page <= last {
            let piece = self.pieces.entry(page / PIECE_PAGES).or_insert_with(|| Box::new([0; PIECE_WORDS]));
            let end = last.min(page - page % PIECE_PAGES + PIECE_PAGES - 1);
            while page <= end {
                let until = end.min(page | 63);
                let bits = u64::MAX >> (63 - (until - page)) << (page % 64);
                let word = &mut piece[(page % PIECE_PAGES / 64) as usize];
                self.count += u64::from((bits & !*word).count_ones());
                *word |= bits;
                page = until + 1;
            }
        }
    }
}

/// What is counted of one volume, or of all.
#[derive(Debug, Clone, Default)]
pub struct VolumeSummary {
    /// Requests that read, and their bytes.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Requests that write.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// One past the last byte touched: the least a volume must have.
    pub end_bytes: u64,
    /// Requests that begin where the one before them on this volume ended.
    pub sequential: u64,
    /// Where the last one ended.
    last_end: Option<u64>,
    pages: Pages,
}

impl VolumeSummary {
    /// Bytes of all pages touched.
    pub fn working_set_bytes(&self) -> u64 {
        self.pages.count * PAGE_BYTES
    }

    fn add(&mut self, record: &Record) {
        let end = record.offset_bytes + record.bytes;
        match record.kind {
            RequestKind::Read => (self.reads, self.read_bytes) = (self.reads + 1, self.read_bytes + record.bytes),
            _ => (self.writes, self.write_bytes) = (self.writes + 1, self.write_bytes + record.bytes),
        }
        self.sequential += u64::from(self.last_end == Some(record.offset_bytes));
        self.last_end = Some(end);
        self.end_bytes = self.end_bytes.max(end);
        self.pages.touch(record.offset_bytes / PAGE_BYTES, (end - 1) / PAGE_BYTES);
    }
}

/// What a trace holds. Feed it with [`Self::add`].
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// One a volume, by its number.
    pub volumes: Vec<VolumeSummary>,
    /// Requests of each size in bytes; those of sizes met after the first thousands of different ones are in `other_sizes`.
    pub sizes: BTreeMap<u64, u64>,
    /// Requests of sizes that are not listed.
    pub other_sizes: u64,
    /// Least and greatest time stamp.
    pub first_ns: u64,
    /// See `first_ns`.
    pub last_ns: u64,
    /// Most requests within one second of the trace's clock.
    pub most_in_a_second: u64,
    /// Requests whose time lies before that of the one before.
    pub out_of_order: u64,
    /// Sum of the response times, and the number of requests that have one.
    pub response_sum_ns: u128,
    /// See `response_sum_ns`.
    pub responses: u64,
    second: u64,
    in_second: u64,
    latest_ns: u64,
    requests: u64,
}

impl Summary {
    /// Counts a record.
    pub fn add(&mut self, record: &Record) {
        let volume = record.volume as usize;
        if volume >= self.volumes.len() {
            self.volumes.resize_with(volume + 1, VolumeSummary::default);
        }
        self.volumes[volume].add(record);
        self.count_size(record.bytes);
        self.count_time(record.time_ns);
        if let Some(response_ns) = record.response_ns {
            self.response_sum_ns += u128::from(response_ns);
            self.responses += 1;
        }
        self.requests += 1;
    }

    fn count_size(&mut self, bytes: u64) {
        if let Some(count) = self.sizes.get_mut(&bytes) {
            *count += 1;
        } else if self.sizes.len() < MOST_SIZES {
            self.sizes.insert(bytes, 1);
        } else {
            self.other_sizes += 1;
        }
    }

    fn count_time(&mut self, time_ns: u64) {
        if self.requests == 0 {
            (self.first_ns, self.last_ns, self.latest_ns) = (time_ns, time_ns, time_ns);
            self.second = time_ns / NS_PER_S;
        }
        self.out_of_order += u64::from(time_ns < self.latest_ns);
        self.latest_ns = time_ns;
        self.first_ns = self.first_ns.min(time_ns);
        self.last_ns = self.last_ns.max(time_ns);
        // Those that are a little out of order count with the second that is running.
        if time_ns / NS_PER_S > self.second {
            (self.second, self.in_second) = (time_ns / NS_PER_S, 0);
        }
        self.in_second += 1;
        self.most_in_a_second = self.most_in_a_second.max(self.in_second);
    }

    /// Requests counted.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// From the first time stamp to the last.
    pub fn span_ns(&self) -> u64 {
        self.last_ns - self.first_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time_ns: u64, volume: u32, kind: RequestKind, offset_bytes: u64, bytes: u64) -> Record {
        Record { line: 1, time_ns, volume, kind, offset_bytes, bytes, response_ns: Some(1000) }
    }

    #[test]
    fn counts_by_hand() {
        use RequestKind::{Read, Write};
        let mut summary = Summary::default();
        for one in [
            record(5 * NS_PER_S, 0, Read, 0, 4096),
            record(5 * NS_PER_S + 1, 0, Write, 4096, 8192),
            record(5 * NS_PER_S, 1, Read, 100, 4096),
            record(9 * NS_PER_S, 0, Read, 0, 512),
        ] {
            summary.add(&one);
        }
        assert_eq!((summary.requests(), summary.span_ns()), (4, 4 * NS_PER_S));
        assert_eq!((summary.most_in_a_second, summary.out_of_order), (3, 1));
        assert_eq!((summary.responses, summary.response_sum_ns), (4, 4000));
        assert_eq!(
            summary.sizes.iter().map(|(&size, &n)| (size, n)).collect::<Vec<_>>(),
            [(512, 1), (4096, 2), (8192, 1)]
        );
        let first = &summary.volumes[0];
        assert_eq!((first.reads, first.writes, first.read_bytes, first.write_bytes), (2, 1, 4608, 8192));
        assert_eq!((first.sequential, first.end_bytes, first.working_set_bytes()), (1, 12_288, 3 * PAGE_BYTES));
        // Two pages for what begins in the midst of one.
        assert_eq!(summary.volumes[1].working_set_bytes(), 2 * PAGE_BYTES);
    }

    #[test]
    fn the_working_set_is_that_of_a_plain_set() {
        let mut rng = raidlab_types::Seed::new(7).draws();
        let (mut pages, mut plain) = (Pages::default(), std::collections::BTreeSet::new());
        for _ in 0..2000 {
            // Around the borders of pieces and words, and far out.
            let first = rng.below(4) * PIECE_PAGES + rng.below(200) + (rng.below(2) << 40);
            let last = first + rng.below(300);
            pages.touch(first, last);
            plain.extend(first..=last);
        }
        pages.touch(PIECE_PAGES - 1, PIECE_PAGES);
        plain.extend([PIECE_PAGES - 1, PIECE_PAGES]);
        assert_eq!(pages.count, plain.len() as u64);
    }
}
