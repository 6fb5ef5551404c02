//! Service times by situation, as they were measured: by operation, place, distance, size, and how many are there.
//!
//! Purpose: the part of the `empirical` device that a fit of a real device fills. A device that serves several requests at a
//! time gives each a time that grows with them; one that chooses the order serves each the faster, the more it can choose
//! from. Both are times by how many are there, in service and waiting, when a service begins. Between sizes and between such
//! numbers times are interpolated at the same probability; below the least size they are that size's, above the greatest they
//! grow on as between the last two. Distances are classes: a disk that turns is faster where its arm need not go far.
//! A device that does both reads and writes serves each otherwise than alone (in flash a read waits for the write that its
//! die is at), so times are interpolated too by the share of reads among the last operations.
//!
//! Invariants:
//! - A time is a function of (probability, situation) and does not fall with the probability.
//! - With as many as were measured, and that size, draws have the quantiles given. In a closed loop there are always as many
//!   as its depth: when a service ends, the next one begins as if the request that follows were there.
//! - Nothing is allocated for an operation.

use crate::fixed::MAX_US;
use crate::service::Command;
use crate::SpecError;
use raidlab_types::number::{f64_from, saturating_u64};
use raidlab_types::OpKind;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How many of the operations before one are looked at to see what it goes on from.
const REMEMBERED: usize = 32;

/// Times measured in one situation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredSpec {
    /// What was done.
    pub op: MeasuredOp,
    /// Where, beside what was done before.
    #[serde(default)]
    pub place: Neighbourhood,
    /// How far, at most, from where the operation before it ended: of random places, and beyond the next shorter
    /// distance. None: as far as there is.
    #[serde(default)]
    pub within_bytes: Option<u64>,
    /// The share of reads among all that was asked for meanwhile. None: nothing but this operation; of a rewrite, its read.
    #[serde(default)]
    pub read: Option<f64>,
    /// Bytes of an operation.
    pub bytes: u64,
    /// Operations there, in service and waiting, this one too: the depth of the closed loop.
    pub depth: u32,
    /// Quantiles of its time in service, one for each of `probabilities`.
    pub us: Vec<f64>,
}

/// An operation that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasuredOp {
    /// A read.
    Read,
    /// A write; stands for flushes and discards too.
    Write,
}

/// Where an operation is, beside the last ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Neighbourhood {
    /// Anywhere.
    #[default]
    Random,
    /// Where one of the last of its kind ended.
    Sequential,
    /// Where one of the last reads began: a write of what was just read.
    Rewrite,
}

impl MeasuredSpec {
    pub(crate) fn is_write(&self) -> bool {
        self.op == MeasuredOp::Write
    }

    /// The share of operations of the other kind.
    fn others(&self) -> f64 {
        match (self.op, self.read) {
            (_, None) => 0.0,
            (MeasuredOp::Read, Some(read)) => 1.0 - read,
            (MeasuredOp::Write, Some(read)) => read,
        }
    }
}

/// All situations, and what the device did last.
#[derive(Debug, Clone)]
pub(crate) struct SituationTable {
    shared: Arc<MeasuredSituations>,
    /// Start, end and kind of the last operations, from the oldest at `next` round.
    last: [(u64, u64, MeasuredOp); REMEMBERED],
    next: usize,
    /// How many of `last` there are, and how many of them are writes.
    done: usize,
    writes: usize,
}

#[derive(Debug)]
struct MeasuredSituations {
    probabilities: Vec<f64>,
    /// By operation and place; empty where nothing was measured.
    situations: [[Vec<OneDistance>; 3]; 2],
    /// By operation: what was measured among those of the other kind, by their share.
    mixes: [Vec<OneMix>; 2],
}

/// All that was measured among so many of the other kind, by size.
#[derive(Debug)]
struct OneMix {
    others: f64,
    sizes: Vec<OneSize>,
}

/// All that was measured of operations so far from the one before, by size.
#[derive(Debug)]
struct OneDistance {
    /// The farthest, in bytes.
    within: u64,
    sizes: Vec<OneSize>,
}

/// All that was measured of one size, by how many were there.
#[derive(Debug)]
struct OneSize {
    bytes: f64,
    depths: Vec<f64>,
    /// Quantiles in ns, depth by depth.
    rows: Vec<Vec<f64>>,
}

/// Where a probability, a size or a depth lies: after the first of two points, and how far on.
#[derive(Debug, Clone, Copy)]
struct Between {
    first: usize,
    share: f64,
}

impl Between {
    /// Among rising points: at the first one before it, beyond the last one at that.
    fn of(value: f64, points: impl Fn(usize) -> f64, count: usize) -> Between {
        let above = (0..count).find(|&i| points(i) > value).unwrap_or(count);
        match above {
            0 => Between { first: 0, share: 0.0 },
            above if above == count => Between { first: count - 1, share: 0.0 },
            above => {
                let (low, high) = (points(above - 1), points(above));
                Between { first: above - 1, share: (value - low) / (high - low) }
            }
        }
    }

    fn mix(self, at: impl Fn(usize) -> f64) -> f64 {
        let low = at(self.first);
        if self.share == 0.0 {
            low
        } else {
            low + (at(self.first + 1) - low) * self.share
        }
    }
}

impl OneSize {
    /// The time at a probability with so many there, in ns.
    fn time_ns(&self, depth: f64, probability: Between) -> f64 {
        let between = Between::of(depth, |i| self.depths[i], self.depths.len());
        between.mix(|row| probability.mix(|i| self.rows[row][i]))
    }
}

impl SituationTable {
    pub(crate) fn new(probabilities: &[f64], rows: &[MeasuredSpec]) -> Result<SituationTable, SpecError> {
        let ends = probabilities.first() == Some(&0.0) && probabilities.last() == Some(&1.0);
        if !ends || probabilities.windows(2).any(|pair| pair[0].partial_cmp(&pair[1]) != Some(std::cmp::Ordering::Less))
        {
            return Err(SpecError::new("probabilities", "must rise from 0 to 1"));
        }
        let mut situations: [[Vec<OneDistance>; 3]; 2] = Default::default();
        let mut mixes: [Vec<OneMix>; 2] = Default::default();
        for (index, row) in rows.iter().enumerate() {
            check(row, probabilities.len())
                .map_err(|(key, message)| SpecError::new(format!("measured[{index}].{key}"), message))?;
            let sizes = if row.read.is_none() {
                sizes_within(&mut situations[row.op as usize][row.place as usize], row)
            } else {
                sizes_among(&mut mixes[row.op as usize], row)
            };
            enter(sizes, row).map_err(|message| SpecError::new(format!("measured[{index}].depth"), message))?;
        }
        for (op, name) in [(MeasuredOp::Read, "reads"), (MeasuredOp::Write, "writes")] {
            let of = &situations[op as usize];
            let is_there = !mixes[op as usize].is_empty() || of.iter().any(|distances| !distances.is_empty());
            if of[0].is_empty() && (op == MeasuredOp::Read || is_there) {
                return Err(SpecError::new(
                    "measured",
                    format!("has no {name} at random places, which stand for all others"),
                ));
            }
        }
        let probabilities = probabilities.to_vec();
        Ok(SituationTable::fresh(Arc::new(MeasuredSituations { probabilities, situations, mixes })))
    }

    fn fresh(shared: Arc<MeasuredSituations>) -> SituationTable {
        let last = [(u64::MAX, u64::MAX, MeasuredOp::Read); REMEMBERED];
        SituationTable { shared, last, next: 0, done: 0, writes: 0 }
    }

    /// The same times, with nothing done before.
    pub(crate) fn twin(&self) -> SituationTable {
        SituationTable::fresh(self.shared.clone())
    }

    /// The time of a command that begins with `present` there, in ns.
    pub(crate) fn quantile_ns(
        &mut self,
        command: &Command,
        sector_bytes: u32,
        present: usize,
        probability: f64,
    ) -> u64 {
        let op = if command.kind == OpKind::Read { MeasuredOp::Read } else { MeasuredOp::Write };
        let place = self.place_of(command, op);
        let (_, before, _) = self.last[(self.next + REMEMBERED - 1) % REMEMBERED];
        let far = command.lba.abs_diff(before).saturating_mul(u64::from(sector_bytes));
        let others = self.others(op);
        self.remember(command, op);
        let bytes = f64_from(command.sectors) * f64::from(sector_bytes);
        let time_ns = |sizes| self.shared.time_ns(sizes, bytes, f64_from(present as u64), probability);
        let alone = self.shared.sizes(op, place, far);
        let mixes = &self.shared.mixes[op as usize];
        // Rewrites are measured among their reads.
        if mixes.is_empty() || others == 0.0 || place == Neighbourhood::Rewrite {
            return saturating_u64(time_ns(alone) + 0.5);
        }
        let share = |i: usize| if i == 0 { 0.0 } else { mixes[i - 1].others };
        let between = Between::of(others, share, mixes.len() + 1);
        let time_ns = between.mix(|i| time_ns(if i == 0 { alone } else { &mixes[i - 1].sizes }));
        saturating_u64(time_ns + 0.5)
    }

    /// The share of the other kind among the last operations.
    fn others(&self, op: MeasuredOp) -> f64 {
        let others = if op == MeasuredOp::Read { self.writes } else { self.done - self.writes };
        if others == 0 {
            0.0
        } else {
            f64_from(others as u64) / f64_from(self.done as u64)
        }
    }

    fn remember(&mut self, command: &Command, op: MeasuredOp) {
        if self.done == REMEMBERED {
            self.writes -= usize::from(self.last[self.next].2 == MeasuredOp::Write);
        } else {
            self.done += 1;
        }
        self.writes += usize::from(op == MeasuredOp::Write);
        self.last[self.next] = (command.lba, command.end(), op);
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// The latest of the operations before a command that it goes on from, or rewrites, says where it is.
    fn place_of(&self, command: &Command, op: MeasuredOp) -> Neighbourhood {
        for back in 1..=REMEMBERED {
            let (start, end, kind) = self.last[(self.next + REMEMBERED - back) % REMEMBERED];
            if kind == op && end == command.lba {
                return Neighbourhood::Sequential;
            }
            if kind == MeasuredOp::Read && op == MeasuredOp::Write && start == command.lba {
                return Neighbourhood::Rewrite;
            }
        }
        Neighbourhood::Random
    }

    /// The mean of an operation at a random place of a device that holds so many bytes, when nothing else is there.
    pub(crate) fn idle_mean_ns(&self, kind: OpKind, bytes: u64, capacity_bytes: u64) -> u64 {
        let op = if kind == OpKind::Read { MeasuredOp::Read } else { MeasuredOp::Write };
        let distances = self.shared.distances(op, Neighbourhood::Random);
        // Two random places of a device of length 1 are no more than x apart with 2 x - x^2.
        let below = |index: usize| {
            if index + 1 == distances.len() {
                return 1.0;
            }
            let x = (f64_from(distances[index].within) / f64_from(capacity_bytes)).min(1.0);
            x * (2.0 - x)
        };
        let mean = |sizes: &[OneSize]| {
            let time = |p: f64| self.shared.time_ns(sizes, f64_from(bytes), 1.0, p);
            let area = |pair: &[f64]| (pair[1] - pair[0]) * (time(pair[0]) + time(pair[1])) / 2.0;
            self.shared.probabilities.windows(2).map(area).sum::<f64>()
        };
        let share = |index: usize| below(index) - if index == 0 { 0.0 } else { below(index - 1) };
        let all = distances.iter().enumerate().map(|(index, one)| share(index) * mean(&one.sizes));
        saturating_u64(all.sum::<f64>().round())
    }
}

impl MeasuredSituations {
    /// What was measured of an operation at such a place, or of what stands for it, from the shortest distance.
    fn distances(&self, op: MeasuredOp, place: Neighbourhood) -> &[OneDistance] {
        // What only reads were measured of is never written: whoever makes the device asks `takes_writes` first.
        let of = match &self.situations[op as usize] {
            of if of[0].is_empty() => &self.situations[MeasuredOp::Read as usize],
            of => of,
        };
        match &of[place as usize] {
            distances if distances.is_empty() => &of[0],
            distances => distances,
        }
    }

    /// What was measured so far from the operation before; beyond the farthest, at that.
    #[inline]
    fn sizes(&self, op: MeasuredOp, place: Neighbourhood, far: u64) -> &[OneSize] {
        let distances = self.distances(op, place);
        let last = distances.len() - 1;
        let at = distances[..last].iter().position(|one| far <= one.within).unwrap_or(last);
        &distances[at].sizes
    }

    fn time_ns(&self, sizes: &[OneSize], bytes: f64, depth: f64, probability: f64) -> f64 {
        let at = Between::of(probability, |i| self.probabilities[i], self.probabilities.len());
        let time = |i: usize| sizes[i].time_ns(depth, at);
        let last = sizes.len() - 1;
        if last > 0 && bytes > sizes[last].bytes {
            let (before, most) = (time(last - 1), time(last));
            let beyond = (bytes - sizes[last].bytes) / (sizes[last].bytes - sizes[last - 1].bytes);
            return most + (most - before).max(0.0) * beyond;
        }
        Between::of(bytes, |i| sizes[i].bytes, sizes.len()).mix(time)
    }
}

fn check(row: &MeasuredSpec, count: usize) -> Result<(), (&'static str, String)> {
    if row.bytes == 0 || row.bytes > 1 << 30 {
        return Err(("bytes", format!("{} must lie between 1 and {}", row.bytes, 1 << 30)));
    }
    if row.depth == 0 || row.depth > 4096 {
        return Err(("depth", format!("{} must lie between 1 and 4096", row.depth)));
    }
    if row.us.len() != count {
        return Err(("us", format!("has {} times for {count} probabilities", row.us.len())));
    }
    let in_order = row.us.windows(2).all(|pair| pair[0] <= pair[1]);
    if !in_order || !row.us.iter().all(|us| (0.0..=MAX_US).contains(us)) || row.us[count - 1] < 0.001 {
        return Err(("us", format!("must not fall, lie between 0 and {MAX_US} us, and end with 0.001 us at least")));
    }
    if row.place == Neighbourhood::Rewrite && !row.is_write() {
        return Err(("place", "rewrite is of writes; accepted: random, sequential".into()));
    }
    if row.within_bytes.is_some() && row.place != Neighbourhood::Random {
        return Err(("within_bytes", "is of random places; accepted: nothing with another place".into()));
    }
    if row.read.is_some_and(|_| !(row.others() > 0.0 && row.others() < 1.0)) {
        return Err(("read", format!("{} must lie between 0 and 1", row.read.unwrap_or_default())));
    }
    if row.read.is_some() && (row.place != Neighbourhood::Random || row.within_bytes.is_some()) {
        return Err(("read", "is of random places anywhere; accepted: nothing with a place or a distance".into()));
    }
    if row.within_bytes == Some(0) {
        return Err(("within_bytes", "0 must be at least 1".into()));
    }
    Ok(())
}

/// Where the sizes of a row's distance are.
fn sizes_within<'a>(distances: &'a mut Vec<OneDistance>, row: &MeasuredSpec) -> &'a mut Vec<OneSize> {
    let within = row.within_bytes.unwrap_or(u64::MAX);
    let at = distances.partition_point(|one| one.within < within);
    if distances.get(at).is_none_or(|one| one.within > within) {
        distances.insert(at, OneDistance { within, sizes: vec![] });
    }
    &mut distances[at].sizes
}

/// Where the sizes of a row's share of the other kind are.
fn sizes_among<'a>(mixes: &'a mut Vec<OneMix>, row: &MeasuredSpec) -> &'a mut Vec<OneSize> {
    let others = row.others();
    let at = mixes.partition_point(|one| one.others < others);
    if mixes.get(at).is_none_or(|one| one.others > others) {
        mixes.insert(at, OneMix { others, sizes: vec![] });
    }
    &mut mixes[at].sizes
}

/// Puts a row where its size and its depth belong.
fn enter(sizes: &mut Vec<OneSize>, row: &MeasuredSpec) -> Result<(), String> {
    let bytes = f64_from(row.bytes);
    let at = sizes.partition_point(|size| size.bytes < bytes);
    if sizes.get(at).is_none_or(|size| size.bytes > bytes) {
        sizes.insert(at, OneSize { bytes, depths: vec![], rows: vec![] });
    }
    let size = &mut sizes[at];
    let depth = f64::from(row.depth);
    let at = size.depths.partition_point(|&other| other < depth);
    if size.depths.get(at) == Some(&depth) {
        return Err(format!("{} stands twice for this operation, place, distance, share of reads and size", row.depth));
    }
    size.depths.insert(at, depth);
    size.rows.insert(at, row.us.iter().map(|us| us * 1e3).collect());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(op: MeasuredOp, place: Neighbourhood, bytes: u64, depth: u32, us: [f64; 3]) -> MeasuredSpec {
        MeasuredSpec { op, place, within_bytes: None, read: None, bytes, depth, us: us.to_vec() }
    }

    fn rows() -> Vec<MeasuredSpec> {
        use MeasuredOp::{Read, Write};
        use Neighbourhood::{Random, Rewrite, Sequential};
        vec![
            row(Read, Random, 8192, 1, [100.0, 200.0, 400.0]),
            row(Read, Random, 4096, 4, [80.0, 160.0, 320.0]),
            row(Read, Random, 4096, 1, [50.0, 100.0, 200.0]),
            row(Read, Sequential, 4096, 1, [10.0, 10.0, 10.0]),
            row(Write, Random, 4096, 1, [1.0, 2.0, 3.0]),
            row(Write, Rewrite, 4096, 1, [7.0, 7.0, 7.0]),
        ]
    }

    fn table() -> SituationTable {
        SituationTable::new(&[0.0, 0.5, 1.0], &rows()).unwrap()
    }

    fn of(kind: OpKind, lba: u64, sectors: u64) -> Command {
        Command { kind, lba, sectors, durable: false, entered: 0, now: 0 }
    }

    #[test]
    fn times_follow_the_situation() {
        let read = |sectors, busy, p| table().quantile_ns(&of(OpKind::Read, 800, sectors), 512, busy, p);
        assert_eq!(read(8, 1, 0.0), 50_000);
        assert_eq!(read(8, 1, 0.25), 75_000, "between two quantiles");
        assert_eq!(read(8, 2, 0.5), 120_000, "a third of the way from 1 to 4");
        assert_eq!(read(8, 9, 0.5), 160_000, "as with the most that was measured");
        assert_eq!(read(12, 1, 0.5), 150_000, "between two sizes");
        assert_eq!(read(1, 1, 0.5), 100_000, "as the least size");
        assert_eq!(read(24, 1, 0.5), 300_000, "grows on as between the last two");
        assert_eq!(table().idle_mean_ns(OpKind::Read, 4096, 1 << 30), 112_500);
    }

    #[test]
    fn what_goes_on_and_what_is_written_back_is_noticed() {
        let mut table = table();
        let mut time = |kind, lba| table.quantile_ns(&of(kind, lba, 8), 512, 1, 0.0);
        assert_eq!(time(OpKind::Read, 800), 50_000);
        assert_eq!(time(OpKind::Read, 808), 10_000);
        assert_eq!(time(OpKind::Write, 808), 7_000, "what was just read");
        assert_eq!(time(OpKind::Write, 816), 1_000, "no sequential writes were measured: as any others");
        assert_eq!(time(OpKind::Read, 824), 50_000, "only writes ended here");
        for other in 0..32 {
            time(OpKind::Read, 10_000 + 100 * other);
        }
        assert_eq!(time(OpKind::Write, 808), 1_000, "long ago");
        assert_eq!(
            table.twin().quantile_ns(&of(OpKind::Read, 13_108, 8), 512, 1, 0.0),
            50_000,
            "knows nothing of its twin"
        );
    }

    #[test]
    fn near_is_told_from_far() {
        let near = |within, us: f64| MeasuredSpec {
            within_bytes: Some(within),
            ..row(MeasuredOp::Read, Neighbourhood::Random, 4096, 1, [us; 3])
        };
        let rows: Vec<_> = rows().into_iter().chain([near(1 << 20, 30.0), near(1 << 12, 20.0)]).collect();
        let mut table = SituationTable::new(&[0.0, 0.5, 1.0], &rows).unwrap();
        let mut time = |lba| table.quantile_ns(&of(OpKind::Read, lba, 8), 512, 1, 0.0);
        assert_eq!(time(80_000), 50_000, "nothing before it");
        assert_eq!(time(80_016), 20_000, "8 sectors beyond");
        assert_eq!(time(80_016), 20_000, "8 sectors back");
        assert_eq!(time(80_033), 30_000, "9 sectors");
        assert_eq!(time(80_041 + 2048), 30_000, "a MiB");
        assert_eq!(time(80_041 + 2048 + 8 + 2049), 50_000, "a sector more");
        assert_eq!(time(80_041 + 2048 + 16 + 2049), 10_000, "where it ended");
        // Half of the device: 0.75 of all pairs of places.
        let mean = |capacity| table.idle_mean_ns(OpKind::Read, 4096, capacity);
        let (tiny, half) = (2.0 / 512.0 - 1.0 / 512.0_f64.powi(2), 0.75);
        assert_eq!(mean(1 << 21), (tiny * 20e3 + (half - tiny) * 30e3 + (1.0 - half) * 112.5e3_f64).round() as u64);
        assert_eq!(mean(1 << 12), 20_000, "never farther");
    }

    #[test]
    fn reads_among_writes_take_longer_the_more_there_are() {
        let among =
            |op, read, us: f64| MeasuredSpec { read: Some(read), ..row(op, Neighbourhood::Random, 4096, 1, [us; 3]) };
        let mixed = [
            among(MeasuredOp::Read, 0.25, 450.0),
            among(MeasuredOp::Read, 0.75, 250.0),
            among(MeasuredOp::Write, 0.25, 9.0),
        ];
        let rows: Vec<_> = rows().into_iter().chain(mixed).collect();
        let mut table = SituationTable::new(&[0.0, 0.5, 1.0], &rows).unwrap();
        let mut place = 0;
        let mut time = |kind| {
            place += 100_000;
            table.quantile_ns(&of(kind, place, 8), 512, 1, 0.0)
        };
        assert_eq!([time(OpKind::Read), time(OpKind::Read)], [50_000; 2], "alone");
        assert_eq!(time(OpKind::Write), 9_000, "nothing but reads before it: as among the most that were measured");
        assert_eq!(time(OpKind::Read), 250_000 + 200_000 / 6, "a third of writes: a sixth of the way from 1/4 to 3/4");
        for _ in 0..31 {
            time(OpKind::Write);
        }
        assert_eq!(time(OpKind::Write), 2_000, "one read of 32: an eighth of the way to a quarter");
        assert_eq!(time(OpKind::Write), 1_000, "alone again");
        assert_eq!(time(OpKind::Read), 450_000, "among writes only");
    }

    #[test]
    fn bad_rows_are_named() {
        let key = |change: &dyn Fn(&mut Vec<MeasuredSpec>)| {
            let mut rows = rows();
            change(&mut rows);
            SituationTable::new(&[0.0, 0.5, 1.0], &rows).unwrap_err().key
        };
        assert_eq!(key(&|rows| rows[1].us[2] = 1.0), "measured[1].us");
        assert_eq!(key(&|rows| rows[2].us[1] = f64::NAN), "measured[2].us");
        assert_eq!(key(&|rows| rows[2].us.truncate(2)), "measured[2].us");
        assert_eq!(key(&|rows| rows[3].bytes = 0), "measured[3].bytes");
        assert_eq!(key(&|rows| rows[3].depth = 0), "measured[3].depth");
        assert_eq!(key(&|rows| rows[1].depth = 1), "measured[2].depth", "stands twice");
        assert_eq!(key(&|rows| rows[3].place = Neighbourhood::Rewrite), "measured[3].place");
        assert_eq!(key(&|rows| rows[3].within_bytes = Some(4096)), "measured[3].within_bytes");
        assert_eq!(key(&|rows| rows[0].within_bytes = Some(0)), "measured[0].within_bytes");
        assert_eq!(key(&|rows| rows[0].read = Some(1.0)), "measured[0].read");
        assert_eq!(key(&|rows| rows[3].read = Some(0.5)), "measured[3].read");
        assert_eq!(key(&|rows| rows[4].read = Some(0.5)), "measured", "no writes alone");
        assert_eq!(key(&|rows| rows.retain(|row| row.place != Neighbourhood::Random)), "measured");
        assert_eq!(SituationTable::new(&[0.0, 0.9], &rows()).unwrap_err().key, "probabilities");
        assert_eq!(SituationTable::new(&[0.0, f64::NAN, 1.0], &rows()).unwrap_err().key, "probabilities");
    }
}
