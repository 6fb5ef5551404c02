//! Reads through a cache: what is there, what is awaited, what is fetched ahead.

use super::spec::CacheSpec;
use super::writes::Writes;
use super::CacheOp;
use raidlab_types::lru::Lru;
use raidlab_types::{Extent, RequestTag};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Fetches have even numbers, destages odd ones.
const STEP: u64 = 2;

#[derive(Debug)]
pub(super) struct Reads {
    /// Lines that are there: the one used longest ago is given up when room is needed.
    lines: Lru<u64>,
    /// Lines on their way: never given up.
    fetched: BTreeSet<u64>,
    line_sectors: u64,
    fetch_lines: u64,
    ahead_sectors: u64,
    /// The longest read that has anything fetched ahead.
    ahead_up_to_sectors: u64,
    volume_sectors: u64,
    /// Where the last read ended.
    next: Option<u64>,
    /// By line: who waits for how many of its sectors.
    awaited: BTreeMap<u64, Vec<(RequestTag, u64)>>,
    /// By number: first line, and one past the last.
    fetches: BTreeMap<u64, (u64, u64)>,
    last_id: u64,
}

impl Reads {
    pub(super) fn new(spec: &CacheSpec, sector_bytes: u64, volume_sectors: u64) -> Reads {
        Reads {
            lines: Lru::new((spec.read_room_bytes / spec.line_bytes).max(1)),
            fetched: BTreeSet::new(),
            line_sectors: spec.line_bytes / sector_bytes,
            fetch_lines: spec.fetch_bytes / spec.line_bytes,
            ahead_sectors: spec.read_ahead_bytes / sector_bytes,
            ahead_up_to_sectors: spec.read_ahead_up_to_bytes.map_or(u64::MAX, |bytes| bytes / sector_bytes),
            volume_sectors,
            next: None,
            awaited: BTreeMap::new(),
            fetches: BTreeMap::new(),
            last_id: 0,
        }
    }

    /// A read arrives.
    pub(super) fn request(&mut self, tag: RequestTag, extent: Extent, writes: &Writes, out: &mut VecDeque<CacheOp>) {
        let mut ready = 0;
        for line in self.lines_of(extent) {
            let part = self.part(line, extent);
            if self.lines.contains(line) || writes.holds(part) {
                self.lines.touch(line);
                ready += part.sectors;
            } else {
                self.awaited.entry(line).or_default().push((tag, part.sectors));
            }
        }
        self.fetch(extent, writes, out);
        let is_read_ahead = self.ahead_sectors > 0 && extent.sectors <= self.ahead_up_to_sectors;
        if self.next == Some(extent.lba) && is_read_ahead {
            let sectors = self.ahead_sectors.min(self.volume_sectors.saturating_sub(extent.end()));
            if sectors > 0 {
                self.fetch(Extent::new(extent.end(), sectors), writes, out);
            }
        }
        self.next = Some(extent.end());
        if ready > 0 {
            out.push_back(CacheOp::Ready { tag, sectors: ready });
        }
    }

    /// Fetches those lines of an extent that nobody has asked for, as many neighbours together as may be.
    fn fetch(&mut self, extent: Extent, writes: &Writes, out: &mut VecDeque<CacheOp>) {
        let mut run: Option<(u64, u64)> = None;
        for line in self.lines_of(extent) {
            let wanted = !self.is_known(line) && !writes.holds(self.part(line, extent));
            run = match run {
                Some((from, to)) if wanted && to - from < self.fetch_lines => Some((from, to + 1)),
                Some(whole) => {
                    self.begin(whole, out);
                    wanted.then_some((line, line + 1))
                }
                None => wanted.then_some((line, line + 1)),
            };
        }
        if let Some(whole) = run {
            self.begin(whole, out);
        }
    }

    fn begin(&mut self, (from, to): (u64, u64), out: &mut VecDeque<CacheOp>) {
        self.fetched.extend(from..to);
        self.last_id += STEP;
        self.fetches.insert(self.last_id, (from, to));
        let lba = from * self.line_sectors;
        let end = (to * self.line_sectors).min(self.volume_sectors);
        out.push_back(CacheOp::Fetch { id: self.last_id, extent: Extent::new(lba, end - lba) });
    }

    /// A fetch is done: its lines go to those who wait.
    pub(super) fn done(&mut self, id: u64, out: &mut VecDeque<CacheOp>) {
        let Some((from, to)) = self.fetches.remove(&id) else { return };
        for line in from..to {
            self.fetched.remove(&line);
            self.lines.keep(line);
            for (tag, sectors) in self.awaited.remove(&line).into_iter().flatten() {
                // What one fetch brings to one request goes up together.
                match out.back_mut() {
                    Some(CacheOp::Ready { tag: last, sectors: more }) if *last == tag => *more += sectors,
                    _ => out.push_back(CacheOp::Ready { tag, sectors }),
                }
            }
        }
    }

    /// What was destaged is still there to be read.
    pub(super) fn keep(&mut self, extent: Extent) {
        let first = extent.lba.div_ceil(self.line_sectors);
        for line in first..extent.end() / self.line_sectors {
            if !self.fetched.contains(&line) {
                self.lines.keep(line);
            }
        }
    }

    /// Whether a line is there or on its way.
    fn is_known(&self, line: u64) -> bool {
        self.lines.contains(line) || self.fetched.contains(&line)
    }

    fn lines_of(&self, extent: Extent) -> std::ops::Range<u64> {
        extent.lba / self.line_sectors..extent.end().div_ceil(self.line_sectors)
    }

    /// The part of an extent that lies in a line.
    fn part(&self, line: u64, extent: Extent) -> Extent {
        let from = extent.lba.max(line * self.line_sectors);
        Extent::new(from, extent.end().min((line + 1) * self.line_sectors) - from)
    }

    #[cfg(test)]
    pub(super) fn lines_there(&self) -> usize {
        self.lines.count()
    }
}
