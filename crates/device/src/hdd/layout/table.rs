//! The stretches of a whole disk, in order of address, with an index to find one.
//!
//! Invariants: the first address of a run is the end of the one before; the last entry is a sentinel at the capacity.

use super::{Stretch, FRACTION};
use crate::SpecError;
use raidlab_types::number::{u16_from, u32_from, usize_from};

/// Buckets of the index from address to run, about four for each thousand runs of the disks met so far.
const BUCKETS: u64 = 1 << 16;

/// Most runs of one disk: about 1.5 GB of them.
const MAX_RUNS: usize = 1 << 26;

/// A stretch as the table holds it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StretchEntry {
    pub first: u64,
    /// Below a revolution, which is at most a second.
    pub angle_ns: u32,
    pub cylinder: u32,
    pub head: u16,
    /// Index into the lengths of sectors.
    pub length: u16,
}

/// All runs of a disk.
#[derive(Debug)]
pub(crate) struct SectorTable {
    runs: Box<[StretchEntry]>,
    /// Lengths of sectors in 2^-20 ns.
    lengths: Box<[u64]>,
    /// Run of the first address of each bucket of 2^shift addresses.
    index: Box<[u32]>,
    index_shift: u32,
    pub capacity: u64,
    pub cylinders: u32,
}

impl SectorTable {
    /// The run that holds `lba`.
    #[inline]
    pub(crate) fn position(&self, lba: u64) -> usize {
        let bucket = usize_from(lba >> self.index_shift);
        let (low, high) = (self.index[bucket] as usize, self.index[bucket + 1] as usize);
        // Usually a handful: a search by halves only pays off where tracks are cut to pieces.
        if high - low > 16 {
            return low + self.runs[low..=high].partition_point(|run| run.first <= lba) - 1;
        }
        let mut at = low;
        while self.runs[at + 1].first <= lba {
            at += 1;
        }
        at
    }

    /// The same disk, giving out only the addresses below `sectors`.
    pub(crate) fn offering(self, sectors: u64) -> Result<SectorTable, SpecError> {
        if !(1..=self.capacity).contains(&sectors) {
            let message = format!("{sectors} must lie between 1 and the {} that the layout holds", self.capacity);
            return Err(SpecError::new("sectors", message));
        }
        let mut runs = self.runs.into_vec();
        runs.truncate(runs.partition_point(|run| run.first < sectors));
        Ok(SectorTable::indexed(runs, self.lengths, sectors, self.cylinders))
    }

    /// The runs with their sentinel, and an index to find them.
    fn indexed(mut runs: Vec<StretchEntry>, lengths: Box<[u64]>, capacity: u64, cylinders: u32) -> SectorTable {
        runs.push(StretchEntry { first: capacity, angle_ns: 0, cylinder: 0, head: 0, length: 0 });
        let index_shift = capacity.div_ceil(BUCKETS).next_power_of_two().trailing_zeros();
        let buckets = (capacity - 1) >> index_shift;
        let runs = runs.into_boxed_slice();
        let holder = |address: u64| u32_from(runs.partition_point(|run| run.first <= address) - 1);
        let index = (0..=buckets).map(|bucket| holder(bucket << index_shift)).chain([holder(capacity - 1)]).collect();
        SectorTable { runs, lengths, index, index_shift, capacity, cylinders }
    }

    /// The run at a position, which is not the sentinel's.
    #[inline]
    pub(crate) fn stretch(&self, at: usize) -> Stretch {
        let run = &self.runs[at];
        Stretch {
            first: run.first,
            end: self.runs[at + 1].first,
            cylinder: run.cylinder,
            head: u32::from(run.head),
            angle_ns: u64::from(run.angle_ns),
            sector_fixed: self.lengths[run.length as usize],
            at: u32_from(at),
        }
    }

    /// All runs, without the sentinel.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Stretch> + '_ {
        (0..self.runs.len() - 1).map(|at| self.stretch(at))
    }
}

/// Runs, appended in order of address.
#[derive(Debug)]
pub(crate) struct TableBuilder {
    revolution_ns: u64,
    runs: Vec<StretchEntry>,
    lengths: Vec<u64>,
    next: u64,
    cylinders: u32,
}

impl TableBuilder {
    /// For a disk that turns once in `revolution_ns`.
    pub(super) fn new(revolution_ns: u64) -> Self {
        TableBuilder { revolution_ns, runs: Vec::new(), lengths: Vec::new(), next: 0, cylinders: 0 }
    }

    /// The length of a sector where a track has `sectors_per_track`, as a number to be named by [`StretchEntry::length`].
    pub(super) fn length(&mut self, sectors_per_track: u32, usable_ns: u64) -> u16 {
        let fixed = (usable_ns << FRACTION).div_ceil(u64::from(sectors_per_track));
        let found = self.lengths.iter().rposition(|&length| length == fixed);
        u16_from(found.unwrap_or_else(|| {
            self.lengths.push(fixed);
            self.lengths.len() - 1
        }))
    }

    /// A length by its number, in 2^-20 ns.
    pub(super) fn length_fixed(&self, length: u16) -> u64 {
        self.lengths[length as usize]
    }

    /// The next address to be placed.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Places the next `sectors` addresses from `angle_fixed` (2^-20 ns, any multiple of revolutions) on.
    pub(super) fn push(
        &mut self,
        sectors: u64,
        place: (u32, u32),
        angle_fixed: u128,
        length: u16,
    ) -> Result<(), SpecError> {
        if self.runs.len() >= MAX_RUNS {
            return Err(SpecError::new("layout", format!("more than {MAX_RUNS} stretches of sectors")));
        }
        let (cylinder, head) = place;
        let angle_ns = u32_from((angle_fixed >> FRACTION) % u128::from(self.revolution_ns));
        self.runs.push(StretchEntry { first: self.next, angle_ns, cylinder, head: u16_from(head), length });
        self.next += sectors;
        self.cylinders = self.cylinders.max(cylinder + 1);
        Ok(())
    }

    /// The table; `cylinders` where the arm can go further than the data.
    pub(super) fn finish(self, cylinders: Option<u32>) -> Result<SectorTable, SpecError> {
        if self.next == 0 {
            return Err(SpecError::new("zones", "the disk holds no sector"));
        }
        let needed = self.cylinders;
        if cylinders.is_some_and(|given| given < needed) {
            let message = format!("{} are fewer than the {needed} that hold data", cylinders.unwrap_or(0));
            return Err(SpecError::new("cylinders", message));
        }
        Ok(SectorTable::indexed(self.runs, self.lengths.into(), self.next, cylinders.unwrap_or(needed)))
    }
}
