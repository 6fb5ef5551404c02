//! The segments of a track buffer: what they hold, which one a command gets.
//!
//! Invariants:
//! - A segment holds one range of consecutive addresses, at most as long as the segment.
//! - A segment with data that are not yet on the medium is given to nobody but a write that goes on from them.
//! - Among equals the segment used longest ago is taken.
//!
//! Reference: DiskSim 4.0, whose order of preference is kept: data being written before data being read before clean data,
//! whole hits before partial ones; without a hit an empty segment, then a clean one, then the one being read ahead into.

use crate::hdd::BufferSpec;

/// One segment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BufferSegment {
    /// The addresses it holds: first, and one past the last; none if equal.
    pub first: u64,
    pub end: u64,
    /// When all of it is on the medium.
    pub written_at: u64,
    /// Used last by a write.
    pub by_write: bool,
    /// Order of use.
    stamp: u64,
}

/// How a command meets the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hit {
    /// All of it is there.
    Whole,
    /// The first sectors are there.
    Part,
    /// A write goes on from data that are still being written.
    Append,
    /// A segment for it is there.
    Miss,
}

/// All segments.
#[derive(Debug, Clone)]
pub(crate) struct Buffer {
    pub segments: Box<[BufferSegment]>,
    used: u64,
}

/// What the choice depends on besides the segments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub now: u64,
    /// The segment that is being read ahead into, and whether that may be stopped now.
    pub reading: Option<(usize, bool)>,
}

impl Buffer {
    pub(super) fn new(segments: usize) -> Self {
        Buffer { segments: vec![BufferSegment::default(); segments].into(), used: 0 }
    }

    /// Marks a segment as used last.
    pub(super) fn touch(&mut self, segment: usize) {
        self.used += 1;
        self.segments[segment].stamp = self.used;
    }

    /// Whether the segment was used by the last command.
    pub(super) fn used_last(&self, segment: usize) -> bool {
        self.segments[segment].stamp == self.used && self.used > 0
    }

    /// Whether a read that begins at `lba` would find its first sector, or go on with what is read ahead.
    pub(super) fn holds(&self, rules: &BufferSpec, lba: u64, reading: Option<usize>) -> bool {
        self.segments.iter().enumerate().any(|(i, segment)| {
            let found = segment.first <= lba && lba < segment.end && (rules.read_hits_on_written || !segment.by_write);
            found || (reading == Some(i) && rules.almost_hits(lba, segment.end))
        })
    }

    /// Segments with data that are not on the medium at `now`.
    fn dirty(&self, now: u64) -> usize {
        self.segments.iter().filter(|segment| segment.written_at > now).count()
    }

    /// The segment for a read of `lba..end`; `None` while every one is taken.
    pub(super) fn for_read(&self, rules: &BufferSpec, lba: u64, end: u64, at: Moment) -> Option<(usize, Hit)> {
        self.best(usize::from(rules.separate_write_segment), |i, segment| {
            let dirty = segment.written_at > at.now;
            let reading = at.reading.filter(|reading| reading.0 == i);
            let holds = segment.first <= lba && lba < segment.end;
            let allowed = rules.caching && (rules.read_hits_on_written || !segment.by_write);
            if holds && allowed {
                let value = if dirty {
                    10
                } else if reading.is_some() {
                    9
                } else {
                    8
                };
                return if end <= segment.end { Some((value, Hit::Whole)) } else { Some((value - 4, Hit::Part)) };
            }
            match reading {
                Some(_) if rules.almost_hits(lba, segment.end) => Some((5, Hit::Part)),
                Some((_, stoppable)) => stoppable.then_some((1, Hit::Miss)),
                None if dirty => None,
                None => Some((if segment.first == segment.end { 3 } else { 2 }, Hit::Miss)),
            }
        })
    }

    /// The segment for a write of `lba..end`; `None` while every one is taken.
    pub(super) fn for_write(&self, rules: &BufferSpec, lba: u64, end: u64, at: Moment) -> Option<(usize, Hit)> {
        let room = self.dirty(at.now) < rules.write_segments as usize;
        let first = 0;
        self.best(first, |i, segment| {
            if rules.separate_write_segment && i != 0 {
                return None;
            }
            if segment.written_at > at.now {
                let goes_on =
                    rules.combine_writes && segment.end == lba && segment.end - segment.first < rules.segment_sectors;
                return goes_on.then_some((7, Hit::Append));
            }
            if !room {
                return None;
            }
            if let Some((_, stoppable)) = at.reading.filter(|reading| reading.0 == i) {
                return stoppable.then_some((1, Hit::Miss));
            }
            let empty = segment.first == segment.end;
            let overlaps = segment.first < end && lba < segment.end;
            Some((
                if overlaps {
                    4
                } else if empty {
                    3
                } else {
                    2
                },
                Hit::Miss,
            ))
        })
    }

    /// The segment of the highest value, of equal ones the one used longest ago.
    fn best(&self, from: usize, value: impl Fn(usize, &BufferSegment) -> Option<(u32, Hit)>) -> Option<(usize, Hit)> {
        let mut best: Option<(u32, u64, usize, Hit)> = None;
        for (i, segment) in self.segments.iter().enumerate().skip(from) {
            let Some((value, hit)) = value(i, segment) else { continue };
            if best.is_none_or(|(high, stamp, ..)| value > high || (value == high && segment.stamp < stamp)) {
                best = Some((value, segment.stamp, i, hit));
            }
        }
        best.map(|(_, _, segment, hit)| (segment, hit))
    }

    /// Forgets what overlaps `lba..end` in all segments but `except`, for a write makes it stale.
    pub(super) fn forget(&mut self, lba: u64, end: u64, except: usize) {
        for (i, segment) in self.segments.iter_mut().enumerate() {
            if i != except && segment.first < end && lba < segment.end {
                segment.end = segment.first;
            }
        }
    }
}
