//! Limits on the rate at which a device takes operations: token buckets, as those in front of volumes of clouds.
//!
//! Purpose: what a bucket holds is spent by operations (or their bytes) and comes back at a constant rate. What finds too
//! little waits, in order of arrival, before the device and whatever its model is.
//!
//! Invariants:
//! - In any time t no more than `burst + 1 + rate t` operations (with bytes: `burst + rate t` and one operation) pass a bucket.
//! - An operation passes as soon as every bucket lets it, and none overtakes another.
//! - A bucket is kept as one time, at which it would be full again: what is long past needs no counting.
//! - Nothing is allocated for an operation once the queue has grown.
//!
//! References: J. Turner, *New directions in communications*, IEEE Communications Magazine 24(10), 1986 (leaky bucket);
//! ITU-T I.371, annex A (the same as a virtual schedule).

use crate::error::within;
use crate::scheduler::PendingOperation;
use crate::SpecError;
use raidlab_types::number::{f64_from, saturating_u64};
use raidlab_types::{Instant, OpKind};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Parts of a nanosecond that a bucket counts in: a byte of a fast device is a fraction of one.
const FRACTION_BITS: u32 = 20;
const GIB: f64 = 1_073_741_824.0;

/// A limit on operations, on bytes, or on both.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThrottleSpec {
    /// Operations that come back to the bucket in a second.
    pub ops_s: Option<f64>,
    /// The same for each GiB of the device's capacity, where that is more.
    pub ops_s_per_gib: Option<f64>,
    /// Operations that a full bucket lets pass at once.
    pub burst_ops: u64,
    /// Most bytes that count as one operation: a longer one counts as several, and those that go on where the last one of
    /// their kind ended are counted together. Without it each counts as one.
    pub op_bytes: Option<u64>,
    /// Megabytes that come back in a second.
    pub mb_s: Option<f64>,
    /// Bytes that a full bucket lets pass at once.
    pub burst_bytes: u64,
    /// How full the buckets are at the start.
    pub initial: BucketLevel,
    /// What it limits; the others pay nothing, and pass nobody either.
    pub only: LimitedKind,
}

/// Which operations a limit is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedKind {
    /// All that move data.
    #[default]
    All,
    /// Those that read.
    Reads,
    /// Those that write.
    Writes,
}

impl LimitedKind {
    fn is_of(self, kind: OpKind) -> bool {
        match self {
            LimitedKind::All => true,
            LimitedKind::Reads => kind == OpKind::Read,
            LimitedKind::Writes => kind != OpKind::Read,
        }
    }
}

/// How full a bucket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BucketLevel {
    /// Bursts are there to be used.
    #[default]
    Full,
    /// Bursts are used up.
    Empty,
}

impl ThrottleSpec {
    /// Operations that pass in a second for good; of a device of so many bytes.
    fn ops_s(&self, capacity_bytes: u64) -> Option<f64> {
        let by_size = self.ops_s_per_gib.map(|each| each * f64_from(capacity_bytes) / GIB);
        match (self.ops_s, by_size) {
            (Some(least), Some(by_size)) => Some(least.max(by_size)),
            (least, by_size) => least.or(by_size),
        }
    }
}

/// One bucket.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Time in which a token comes back, and the whole burst.
    token: u128,
    burst: u128,
    /// When it will be full, and a burst more: later than now by what has been spent.
    full_at: u128,
}

impl Bucket {
    /// `per_s` tokens come back in a second; `burst` is what it holds.
    fn new(key: &str, per_s: f64, burst: u64, initial: BucketLevel) -> Result<Self, SpecError> {
        let per_s = within(key, per_s, 1e-3..=1e13, "")?;
        let token = u128::from(saturating_u64((1e9 * f64_from(1u64 << FRACTION_BITS) / per_s).round()).max(1));
        let burst = token * u128::from(burst);
        Ok(Bucket { token, burst, full_at: if initial == BucketLevel::Full { 0 } else { burst } })
    }

    /// The first whole nanosecond at which it lets something pass.
    fn ready(&self) -> u64 {
        let at = self.full_at.saturating_sub(self.burst);
        u64::try_from((at + (1 << FRACTION_BITS) - 1) >> FRACTION_BITS).unwrap_or(u64::MAX)
    }

    fn spend(&mut self, at: u64, tokens: u64) {
        self.full_at = self.full_at.max(u128::from(at) << FRACTION_BITS) + self.token * u128::from(tokens);
    }
}

/// A bucket of operations, and the one that is being counted.
#[derive(Debug, Clone, Copy)]
struct OpsBucket {
    bucket: Bucket,
    only: LimitedKind,
    /// Most sectors that count as one.
    most: Option<u64>,
    /// Where the last one ended, whether it wrote, and how many sectors more would count with it.
    end: u64,
    is_write: bool,
    room: u64,
}

impl OpsBucket {
    /// What an operation counts, and the room that it leaves.
    fn count(&self, op: &PendingOperation) -> (u64, u64) {
        if !self.only.is_of(op.kind) {
            return (0, 0);
        }
        let Some(most) = self.most else { return (1, 0) };
        let goes_on = op.lba == self.end && self.is_write == (op.kind != OpKind::Read);
        let room = if goes_on { self.room } else { 0 };
        let beyond = op.sectors.saturating_sub(room);
        let count = beyond.div_ceil(most);
        (count, room + count * most - op.sectors)
    }
}

/// The limits of one device, and what waits for them.
#[derive(Debug, Clone)]
pub(crate) struct Throttle {
    ops: Vec<OpsBucket>,
    bytes: Vec<(LimitedKind, Bucket)>,
    sector_bytes: u64,
    waiting: VecDeque<PendingOperation>,
    /// When the last one passed: none that came after it passes before.
    last: Instant,
}

impl Throttle {
    /// The limits of a device; none where it has no throttle.
    pub(crate) fn new(
        specs: &[ThrottleSpec],
        capacity_bytes: u64,
        sector_bytes: u32,
    ) -> Result<Option<Box<Self>>, SpecError> {
        let mut throttle = Throttle {
            ops: Vec::new(),
            bytes: Vec::new(),
            sector_bytes: u64::from(sector_bytes),
            waiting: VecDeque::new(),
            last: Instant::ZERO,
        };
        for (i, spec) in specs.iter().enumerate() {
            throttle.add(spec, capacity_bytes, &|name| format!("throttle[{i}].{name}"))?;
        }
        Ok((!specs.is_empty()).then(|| Box::new(throttle)))
    }

    fn add(&mut self, spec: &ThrottleSpec, capacity_bytes: u64, key: &dyn Fn(&str) -> String) -> Result<(), SpecError> {
        let per_s = spec.ops_s(capacity_bytes);
        if per_s.is_none() && spec.mb_s.is_none() {
            return Err(SpecError::new(key("ops_s"), "limits nothing; accepted: ops_s, ops_s_per_gib or mb_s"));
        }
        let without = |said: bool, name: &str, of: &str| match said {
            true => Err(SpecError::new(key(name), format!("goes with {of}"))),
            false => Ok(()),
        };
        without(per_s.is_none() && spec.burst_ops > 0, "burst_ops", "ops_s or ops_s_per_gib")?;
        without(per_s.is_none() && spec.op_bytes.is_some(), "op_bytes", "ops_s or ops_s_per_gib")?;
        without(spec.mb_s.is_none() && spec.burst_bytes > 0, "burst_bytes", "mb_s")?;
        if let Some(per_s) = per_s {
            let most = match spec.op_bytes {
                Some(bytes) if bytes < self.sector_bytes => {
                    let message = format!("{bytes} must be at least a sector of {} bytes", self.sector_bytes);
                    return Err(SpecError::new(key("op_bytes"), message));
                }
                most => most.map(|bytes| bytes / self.sector_bytes),
            };
            let name = if spec.ops_s.is_some() { "ops_s" } else { "ops_s_per_gib" };
            let bucket = Bucket::new(&key(name), per_s, spec.burst_ops, spec.initial)?;
            self.ops.push(OpsBucket { bucket, only: spec.only, most, end: 0, is_write: false, room: 0 });
        }
        if let Some(mb_s) = spec.mb_s {
            let mb_s = within(&key("mb_s"), mb_s, 1e-3..=1e6, " MB/s")?;
            let bucket = Bucket::new(&key("mb_s"), mb_s * 1e6, spec.burst_bytes, spec.initial)?;
            self.bytes.push((spec.only, bucket));
        }
        Ok(())
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Takes in an operation; gives it back where it may pass at once.
    pub(crate) fn push(&mut self, now: Instant, op: PendingOperation) -> Option<PendingOperation> {
        if self.waiting.is_empty() && self.ready(&op) <= now {
            self.spend(now, &op);
            return Some(op);
        }
        self.waiting.push_back(op);
        None
    }

    /// When the next of what waits may pass.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.waiting.front().map(|op| self.ready(op))
    }

    /// The next of what waits, which passes at `at`.
    pub(crate) fn take(&mut self, at: Instant) -> Option<PendingOperation> {
        let op = self.waiting.pop_front()?;
        self.spend(at, &op);
        Some(op)
    }

    /// When an operation may pass: not before it is there.
    fn ready(&self, op: &PendingOperation) -> Instant {
        if !moves_data(op.kind) {
            return op.arrived.max(self.last);
        }
        // What is counted with the one before has been paid for.
        let ops = self.ops.iter().filter(|one| one.count(op).0 > 0).map(|one| one.bucket.ready());
        let bytes = self.bytes.iter().filter(|(only, _)| only.is_of(op.kind)).map(|(_, bucket)| bucket.ready());
        let at = ops.chain(bytes).max().unwrap_or(0);
        Instant::from_ns(at).max(op.arrived).max(self.last)
    }

    fn spend(&mut self, at: Instant, op: &PendingOperation) {
        self.last = at;
        if !moves_data(op.kind) {
            return;
        }
        for one in self.ops.iter_mut().filter(|one| one.only.is_of(op.kind)) {
            let (count, room) = one.count(op);
            if count > 0 {
                one.bucket.spend(at.as_ns(), count);
            }
            (one.end, one.is_write, one.room) = (op.lba + op.sectors, op.kind != OpKind::Read, room);
        }
        let bytes = op.sectors * self.sector_bytes;
        for (_, bucket) in self.bytes.iter_mut().filter(|(only, _)| only.is_of(op.kind)) {
            bucket.spend(at.as_ns(), bytes);
        }
    }
}

/// Flushes and discards move none, and are not counted.
fn moves_data(kind: OpKind) -> bool {
    !matches!(kind, OpKind::Flush | OpKind::Discard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::waiting_at;

    fn throttle(text: &str) -> Throttle {
        let specs: Vec<ThrottleSpec> = serde_json::from_str(text).unwrap();
        *Throttle::new(&specs, 1 << 30, 512).unwrap().unwrap()
    }

    fn of(kind: OpKind, id: u64, lba: u64, sectors: u64) -> PendingOperation {
        let mut op = waiting_at(id, lba);
        (op.kind, op.sectors) = (kind, sectors);
        op
    }

    /// When each of these operations passes, in us; all are there from the start.
    fn passes(text: &str, ops: &[(u64, u64)]) -> Vec<u64> {
        let mut throttle = throttle(text);
        let mut all = Vec::new();
        for (id, &(lba, sectors)) in (0..).zip(ops) {
            let op = of(OpKind::Read, id, lba, sectors);
            all.extend(throttle.push(Instant::ZERO, op).map(|_| 0));
        }
        while let Some(at) = throttle.next_at() {
            throttle.take(at);
            all.push(at.as_ns() / 1000);
        }
        all
    }

    #[test]
    fn a_burst_passes_at_once_and_then_the_rate() {
        let random = [(0, 1), (90, 1), (20, 1), (70, 1), (10, 1)];
        assert_eq!(passes(r#"[{"ops_s": 1000}]"#, &random), [0, 1000, 2000, 3000, 4000]);
        assert_eq!(passes(r#"[{"ops_s": 1000, "burst_ops": 2}]"#, &random), [0, 0, 0, 1000, 2000]);
        let empty = r#"[{"ops_s": 1000, "burst_ops": 2, "initial": "empty"}]"#;
        assert_eq!(passes(empty, &random), [0, 1000, 2000, 3000, 4000]);
        // 3 for each GiB of one GiB, but 1000 at least; the smaller of two limits counts.
        assert_eq!(passes(r#"[{"ops_s": 1000, "ops_s_per_gib": 3}, {"mb_s": 1e3}]"#, &random)[1], 1000);
        assert_eq!(passes(r#"[{"ops_s_per_gib": 500}, {"ops_s": 1000}]"#, &random)[1], 2000);
    }

    #[test]
    fn bytes_are_counted_too() {
        // 512 bytes at 0.512 MB/s take a millisecond.
        assert_eq!(passes(r#"[{"mb_s": 0.512}]"#, &[(0, 1), (9, 4), (50, 1)]), [0, 1000, 5000]);
        assert_eq!(passes(r#"[{"mb_s": 0.512, "burst_bytes": 1024}]"#, &[(0, 1), (9, 4), (50, 1)]), [0, 0, 3000]);
    }

    #[test]
    fn a_long_operation_counts_as_several_and_short_ones_in_order_as_one() {
        let by_four = r#"[{"ops_s": 1000, "op_bytes": 2048}]"#;
        assert_eq!(passes(by_four, &[(0, 16), (50, 1), (90, 1)]), [0, 4000, 5000]);
        assert_eq!(passes(by_four, &[(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]), [0, 0, 0, 0, 1000, 1000]);
        assert_eq!(passes(by_four, &[(0, 1), (50, 1), (1, 1)]), [0, 1000, 2000], "not where another came between");
    }

    #[test]
    fn a_limit_of_reads_holds_no_writes_but_those_behind_one() {
        let mut throttle = throttle(r#"[{"ops_s": 1000, "only": "reads"}, {"mb_s": 0.512, "only": "writes"}]"#);
        let ops = [OpKind::Read, OpKind::Write, OpKind::Read, OpKind::Write];
        let at_once = (0..).zip(ops).filter_map(|(id, kind)| throttle.push(Instant::ZERO, of(kind, id, 100 * id, 1)));
        assert_eq!(at_once.count(), 2);
        assert_eq!(throttle.next_at(), Some(Instant::from_ns(1_000_000)));
        throttle.take(Instant::from_ns(1_000_000));
        assert_eq!((throttle.next_at(), throttle.len()), (Some(Instant::from_ns(1_000_000)), 1));
    }

    #[test]
    fn what_moves_no_data_is_free_but_passes_nobody() {
        let mut throttle = throttle(r#"[{"ops_s": 1000}]"#);
        assert!(throttle.push(Instant::ZERO, waiting_at(0, 0)).is_some());
        assert!(throttle.push(Instant::ZERO, waiting_at(1, 9)).is_none());
        assert!(throttle.push(Instant::ZERO, of(OpKind::Flush, 2, 0, 1)).is_none());
        assert_eq!(throttle.next_at(), Some(Instant::from_ns(1_000_000)));
        throttle.take(Instant::from_ns(1_000_000));
        assert_eq!((throttle.next_at(), throttle.len()), (Some(Instant::from_ns(1_000_000)), 1));
    }

    #[test]
    fn bad_parameters_are_named() {
        let key = |text: &str| {
            let specs: Vec<ThrottleSpec> = serde_json::from_str(text).unwrap();
            Throttle::new(&specs, 1 << 30, 512).unwrap_err().key
        };
        assert_eq!(key("[{}]"), "throttle[0].ops_s");
        assert_eq!(key(r#"[{"ops_s": 1}, {"ops_s": 0}]"#), "throttle[1].ops_s");
        assert_eq!(key(r#"[{"mb_s": -1}]"#), "throttle[0].mb_s");
        assert_eq!(key(r#"[{"mb_s": 1, "burst_ops": 3}]"#), "throttle[0].burst_ops");
        assert_eq!(key(r#"[{"ops_s": 1, "burst_bytes": 3}]"#), "throttle[0].burst_bytes");
        assert_eq!(key(r#"[{"ops_s": 1, "op_bytes": 3}]"#), "throttle[0].op_bytes");
        assert!(Throttle::new(&[], 1 << 30, 512).unwrap().is_none());
    }
}
