//! Whether what is read is what was written, looked at while a load is measured and after it.
//!
//! Purpose: to find devices that return wrong data, at a cost that no figure shows. Of the requests a few thousand a second
//! are compared, each in one sector, to the last byte; and what was acknowledged is noted for some writes, to be read back
//! once the load is over.
//!
//! What a sector may hold: nothing is known of a sector that raidlab did not write. A stamp of this run is known by its
//! seed, so such a sector must be sound and at its place; after the load, a sector noted must hold that write or a later
//! one. Where raidlab has filled the target, every sector must be sound ([`Knowledge`]).
//!
//! Invariants:
//! - Nothing is allocated for a request; a request that is not looked at costs a comparison of two times, and a write a
//!   line in a small ring.
//! - What was written while it was read may be either, and is never called wrong: nor what another worker may have written.
//! - A write is noted only if no other write to its place was in flight when it began, so whatever it must be is its own or
//!   a later one.

use super::report::{ContentReport, Wrong, WrongKind};
use super::stamp::{SealedSector, Stamp, Stamper};
use raidlab_types::number::usize_from;
use raidlab_types::{Duration, Extent, Instant, Lba};
use serde::{Deserialize, Serialize};

/// How much of what raidlab wrote is compared with what comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// Every sector that is read, and every write that was acknowledged: costs processor time in the window.
    Full,
    /// One sector of a few thousand requests a second, and a sample of the writes after the load.
    #[default]
    Sample,
    /// Nothing.
    Off,
}

/// Time for reading a sample back: this and a share of what the load took.
const LEAST_BUDGET: Duration = Duration::from_ms(1000);
const SHARE_OF_LOAD: f64 = 0.1;
/// In full, a device that answers one in a thousand of its requests is still waited for.
const MOST_IN_FULL: Duration = Duration::from_ms(600_000);

impl Verify {
    /// How long what was written may be read back after a load that took so long.
    pub(crate) fn budget(self, load_took: Duration) -> Duration {
        match self {
            Verify::Full => MOST_IN_FULL,
            Verify::Sample | Verify::Off => LEAST_BUDGET + Duration::from_s_f64(load_took.as_s_f64() * SHARE_OF_LOAD),
        }
    }
}

/// Between two requests that are looked at, in the mean: 4 KiB take less than half a microsecond.
const INTERVAL: Duration = Duration::from_us(100);
/// Requests come in bursts: so many may be looked at in a row where few were before.
const IN_A_ROW: u64 = 64;
/// Writes noted at most; when there are more, every second is forgotten.
const MOST_NOTED: usize = 1 << 14;
const MOST_NOTED_IN_FULL: usize = 1 << 20;
/// Writes that are remembered, to know which of them overlapped in time.
const LEAST_RECENT: usize = 256;
const MOST_RECENT: usize = 1 << 16;
/// The bits of a write's sequence that count one worker's writes; those above them are the worker's number.
const WORKER_SEQUENCE_MASK: u64 = (1 << 48) - 1;
const IN_FLIGHT: u64 = u64::MAX;

/// What is known of a target's sectors beside those written in this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// Nothing.
    Nothing,
    /// Whatever they hold, raidlab wrote it: their stamps and bodies are sound.
    Sound,
    /// As well, and to this very place.
    Placed,
}

/// Who else writes to the same places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writers {
    Alone,
    Several,
}

/// A write that was acknowledged, or one sector of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotedWrite {
    /// Target, or volume of an array.
    pub volume: u32,
    /// What is to be read back.
    pub extent: Extent,
    /// The write.
    pub(crate) sequence: u64,
}

/// Half a line of the processor's cache.
#[derive(Debug, Clone, Copy)]
struct Recent {
    volume: u32,
    sectors: u32,
    lba: Lba,
    number: u64,
    /// [`IN_FLIGHT`], or when it ended.
    ended: u64,
}

impl Recent {
    fn overlaps(&self, volume: u32, extent: Extent) -> bool {
        self.volume == volume && self.lba < extent.end() && extent.lba < self.lba + u64::from(self.sectors)
    }
}

/// The comparison of one worker.
#[derive(Debug)]
pub(crate) struct ContentCheck {
    stamper: Stamper,
    full: bool,
    several: bool,
    /// A ring that is searched must not cost more than what is compared.
    interval: Duration,
    next: Instant,
    /// Counts beginnings and ends of writes: what is before what.
    tick: u64,
    recent: Box<[Recent]>,
    /// Writes in flight that had to make room in `recent`.
    lost: u64,
    /// The last end of a write that had to make room.
    forgotten: u64,
    noted: Vec<NotedWrite>,
    /// Every so many of the writes looked at are noted.
    stride: u64,
    looked_at: u64,
    report: ContentReport,
}

impl ContentCheck {
    /// For requests of which at most `depth` are in flight; nothing if nothing is to be compared.
    pub(crate) fn new(stamper: Stamper, verify: Verify, writers: Writers, depth: u32) -> Option<ContentCheck> {
        if verify == Verify::Off {
            return None;
        }
        let full = verify == Verify::Full;
        let room = (4 * depth as usize).next_power_of_two().clamp(LEAST_RECENT, MOST_RECENT);
        let none = Recent { volume: 0, sectors: 0, lba: 0, number: IN_FLIGHT, ended: 0 };
        Some(ContentCheck {
            stamper,
            full,
            several: writers == Writers::Several,
            interval: INTERVAL.max(Duration::from_ns(100 * room as u64)),
            next: Instant::ZERO,
            tick: 1,
            recent: vec![none; room].into_boxed_slice(),
            lost: 0,
            forgotten: 0,
            noted: Vec::with_capacity(if full { MOST_NOTED_IN_FULL } else { MOST_NOTED }),
            stride: 1,
            looked_at: 0,
            report: ContentReport::of_sectors(stamper.sector_bytes()),
        })
    }

    /// Whether a request that begins now is looked at.
    #[inline]
    fn is_due(&mut self, now: Instant) -> bool {
        if now < self.next && !self.full {
            return false;
        }
        // `next` lags behind by what was saved up.
        let saved = Duration::from_ns(IN_A_ROW * self.interval.as_ns());
        let least = Instant::from_ns(now.as_ns().saturating_sub(saved.as_ns()));
        self.next = self.next.max(least) + self.interval;
        true
    }

    /// A read begins. Its mark, for [`Self::read_ends`]: 0 if it is not looked at.
    #[inline]
    pub(crate) fn read_begins(&mut self, now: Instant) -> u64 {
        if self.is_due(now) && self.lost == 0 {
            self.tick
        } else {
            0
        }
    }

    /// A read has ended well and brought `bytes`.
    #[inline]
    pub(crate) fn read_ends(&mut self, mark: u64, volume: u32, extent: Extent, bytes: &[u8], known: Knowledge) {
        self.report.reads += 1;
        if mark != 0 {
            self.compare_read(mark, volume, extent, bytes, known);
        }
    }

    fn compare_read(&mut self, mark: u64, volume: u32, extent: Extent, bytes: &[u8], known: Knowledge) {
        let sector_bytes = self.stamper.sector_bytes();
        assert_eq!(bytes.len() as u64, extent.sectors * sector_bytes as u64);
        for i in self.chosen(extent.sectors, mark) {
            let at = usize_from(i) * sector_bytes;
            let lba = extent.lba + i;
            let found = self.stamper.read_sealed(&bytes[at..at + sector_bytes]);
            match self.judge(found, volume, lba, known) {
                None => self.report.reads_unknown += 1,
                Some(None) => self.report.reads_checked += 1,
                Some(Some(wrong)) if self.may_have_been_written(mark, volume, lba, wrong.kind) => {
                    self.report.undecided += 1;
                }
                Some(Some(wrong)) => {
                    self.report.reads_checked += 1;
                    self.report.note(wrong);
                }
            }
        }
    }

    /// Which sectors of a request are compared: all, or one that changes from request to request.
    fn chosen(&mut self, sectors: u64, salt: u64) -> std::ops::Range<u64> {
        if self.full {
            return 0..sectors;
        }
        self.looked_at += 1;
        let mixed = (self.looked_at ^ salt.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let one = (mixed * sectors) >> 32;
        debug_assert!(one < sectors);
        one..one + 1
    }

    /// None where it is not known what must be there; else what is wrong, if anything.
    fn judge(&self, found: SealedSector, volume: u32, lba: Lba, known: Knowledge) -> Option<Option<Wrong>> {
        let wrong = |kind, holds| Some(Some(Wrong { kind, volume, lba, holds }));
        let ours = |stamp: &Stamp| stamp.seed == self.stamper.seed();
        match found {
            SealedSector::Sound(stamp) | SealedSector::Torn(stamp)
                if ours(&stamp) && (stamp.volume, stamp.lba) != (volume, lba) =>
            {
                wrong(WrongKind::Elsewhere, Some((stamp.volume, stamp.lba)))
            }
            SealedSector::Torn(stamp) if ours(&stamp) => wrong(WrongKind::Torn, None),
            SealedSector::Sound(stamp) if ours(&stamp) => Some(None),
            _ if known == Knowledge::Nothing => None,
            SealedSector::Sound(stamp) if known == Knowledge::Placed && stamp.lba != lba => {
                wrong(WrongKind::Elsewhere, Some((volume, stamp.lba)))
            }
            SealedSector::Sound(_) => Some(None),
            SealedSector::Torn(_) => wrong(WrongKind::Torn, None),
            SealedSector::Zeros => wrong(WrongKind::Zeros, None),
            SealedSector::Foreign => wrong(WrongKind::Foreign, None),
        }
    }

    /// Whether a sector was, or may have been, written while a read was under way: then a part of it may be new.
    #[cold]
    fn may_have_been_written(&self, mark: u64, volume: u32, lba: Lba, kind: WrongKind) -> bool {
        if !matches!(kind, WrongKind::Torn | WrongKind::Foreign) {
            return false;
        }
        let overlaps = |r: &Recent| r.ended > mark && r.overlaps(volume, Extent::new(lba, 1));
        self.several || self.lost > 0 || self.forgotten > mark || self.recent.iter().any(overlaps)
    }

    /// A write begins; sequences must ascend. Whether it is to be noted if it ends well.
    #[inline]
    pub(crate) fn write_begins(&mut self, now: Instant, volume: u32, extent: Extent, sequence: u64) -> bool {
        let noted = self.is_due(now) && self.is_alone(volume, extent);
        self.tick += 1;
        let number = sequence & WORKER_SEQUENCE_MASK;
        let room = self.recent.len() as u64;
        let place = &mut self.recent[(number & (room - 1)) as usize];
        match place.ended {
            IN_FLIGHT => self.lost += 1,
            ended => self.forgotten = self.forgotten.max(ended),
        }
        let sectors = u32::try_from(extent.sectors).expect("a request is at most 1 GiB");
        *place = Recent { volume, sectors, lba: extent.lba, number, ended: IN_FLIGHT };
        noted
    }

    /// Whether no write to these sectors is in flight.
    fn is_alone(&self, volume: u32, extent: Extent) -> bool {
        let overlaps = |r: &Recent| r.ended == IN_FLIGHT && r.overlaps(volume, extent);
        self.lost == 0 && !self.recent.iter().any(overlaps)
    }

    /// A write ends, well or not.
    #[inline]
    pub(crate) fn write_ends(&mut self, volume: u32, extent: Extent, sequence: u64, noted: bool, ok: bool) {
        self.tick += 1;
        let number = sequence & WORKER_SEQUENCE_MASK;
        let room = self.recent.len() as u64;
        let place = &mut self.recent[(number & (room - 1)) as usize];
        if place.number == number {
            place.ended = self.tick;
        } else {
            self.lost -= 1;
            self.forgotten = self.tick;
        }
        if ok {
            self.report.writes += 1;
            if noted {
                self.note(volume, extent, sequence);
            }
        }
    }

    fn note(&mut self, volume: u32, extent: Extent, sequence: u64) {
        let chosen = self.chosen(extent.sectors, sequence);
        if !self.looked_at.is_multiple_of(self.stride) {
            return;
        }
        if self.noted.len() == self.noted.capacity() {
            let mut number = 0;
            self.noted.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.stride *= 2;
        }
        let extent = Extent::new(extent.lba + chosen.start, chosen.end - chosen.start);
        self.noted.push(NotedWrite { volume, extent, sequence });
    }

    /// The writes to be read back now that the load is over.
    pub(crate) fn take_noted(&mut self) -> Vec<NotedWrite> {
        std::mem::take(&mut self.noted)
    }

    /// Compares what was read back of a write that was noted; `bytes` is none where it could not be read.
    pub(crate) fn read_back(&mut self, written: &NotedWrite, bytes: Option<&[u8]>) {
        let sector_bytes = self.stamper.sector_bytes();
        let NotedWrite { volume, extent, sequence } = *written;
        for i in 0..extent.sectors {
            let lba = extent.lba + i;
            let at = usize_from(i) * sector_bytes;
            let found = bytes.map(|bytes| self.stamper.read_sealed(&bytes[at..at + sector_bytes]));
            let is_ours = |stamp: &Stamp| stamp.seed == self.stamper.seed();
            let (kind, holds) = match found {
                None => (WrongKind::Unreadable, None),
                Some(SealedSector::Sound(stamp)) if is_ours(&stamp) && (stamp.volume, stamp.lba) == (volume, lba) => {
                    // Of two workers' writes nobody knows which was the later one.
                    if stamp.sequence & !WORKER_SEQUENCE_MASK != sequence & !WORKER_SEQUENCE_MASK {
                        self.report.undecided += 1;
                        continue;
                    }
                    if stamp.sequence >= sequence {
                        self.report.writes_checked += 1;
                        continue;
                    }
                    (WrongKind::Older, None)
                }
                Some(SealedSector::Sound(stamp)) if is_ours(&stamp) => {
                    (WrongKind::Elsewhere, Some((stamp.volume, stamp.lba)))
                }
                Some(SealedSector::Sound(stamp)) if stamp.lba == lba => (WrongKind::Older, None),
                Some(SealedSector::Sound(_) | SealedSector::Foreign) => (WrongKind::Foreign, None),
                Some(SealedSector::Torn(_)) => (WrongKind::Torn, None),
                Some(SealedSector::Zeros) => (WrongKind::Zeros, None),
            };
            self.report.writes_checked += 1;
            self.report.note(Wrong { kind, volume, lba, holds });
        }
    }

    pub(crate) fn report(&self) -> &ContentReport {
        &self.report
    }
}

#[cfg(test)]
mod tests {
    use super::super::stamp::seal;
    use super::*;
    use raidlab_types::{CounterRng, Seed};

    const SECTOR: usize = 512;
    const SECTORS: u64 = 64;

    /// What lies.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Lie {
        None,
        Zeros,
        WrongByte,
        Dropped,
        Wraps,
        Torn,
    }

    /// A device of [`SECTORS`] that lies once in `every` requests, and a load with requests in flight on it.
    struct Rig {
        check: ContentCheck,
        stamper: Stamper,
        store: Vec<u8>,
        known: Knowledge,
        lie: Lie,
        every: u64,
        random: CounterRng,
        sequence: u64,
        now: u64,
    }

    impl Rig {
        fn new(verify: Verify, filled: bool, lie: Lie, every: u64, seed: u64) -> Rig {
            let stamper = Stamper::new(seed, SECTOR as u32);
            let mut random = Seed::new(seed).named("rig").draws();
            let mut store = sealed(SECTORS as usize, &mut random);
            if filled {
                Stamper::new(seed + 1, SECTOR as u32).stamp(&mut store, 0, 0, 0);
            }
            let known = if filled { Knowledge::Placed } else { Knowledge::Nothing };
            let check = ContentCheck::new(stamper, verify, Writers::Alone, 4).expect("it compares");
            Rig { check, stamper, store, known, lie, every, random, sequence: 0, now: 0 }
        }

        fn lies(&mut self) -> bool {
            self.random.next_u64().is_multiple_of(self.every)
        }

        /// Where the device puts these sectors.
        fn place(&self, extent: Extent) -> std::ops::Range<usize> {
            let lba = if self.lie == Lie::Wraps { extent.lba % (SECTORS / 8) } else { extent.lba };
            lba as usize * SECTOR..(lba + extent.sectors) as usize * SECTOR
        }

        fn put(&mut self, extent: Extent, bytes: &[u8]) {
            let whole = bytes.len();
            let lies = self.lies();
            let len = match self.lie {
                Lie::Dropped if lies => 0,
                Lie::Torn if lies => whole - SECTOR / 2,
                _ => whole,
            };
            let place = self.place(extent);
            self.store[place][..len].copy_from_slice(&bytes[..len]);
        }

        fn get(&mut self, extent: Extent) -> Vec<u8> {
            let mut bytes = self.store[self.place(extent)].to_vec();
            if self.lie == Lie::Zeros && self.lies() {
                bytes.fill(0);
            }
            if self.lie == Lie::WrongByte && self.lies() {
                let at = self.random.next_u64() as usize % bytes.len();
                bytes[at] ^= 1 << (self.random.next_u64() % 8);
            }
            bytes
        }

        /// Begins `depth` requests, then ends them in another order; of those that overlap any may come last.
        fn round(&mut self, depth: usize, reads: bool) {
            let mut begun = Vec::new();
            for _ in 0..depth {
                self.now += INTERVAL.as_ns() / 2;
                let now = Instant::from_ns(self.now);
                let sectors = 1 + self.random.next_u64() % 4;
                let mut extent = Extent::new(self.random.next_u64() % (SECTORS - sectors), sectors);
                if self.lie == Lie::Wraps {
                    extent = Extent::new(extent.lba, 1);
                }
                if reads && self.random.next_u64().is_multiple_of(2) {
                    let mark = self.check.read_begins(now);
                    begun.push((extent, None, mark, self.get(extent)));
                } else {
                    self.sequence += 1;
                    let noted = self.check.write_begins(now, 0, extent, self.sequence);
                    let mut bytes = sealed(extent.sectors as usize, &mut self.random);
                    self.stamper.stamp(&mut bytes, 0, extent.lba, self.sequence);
                    begun.push((extent, Some(self.sequence), u64::from(noted), bytes));
                }
            }
            while !begun.is_empty() {
                let number = self.random.next_u64() as usize % begun.len();
                let (extent, sequence, mark, mut bytes) = begun.swap_remove(number);
                match sequence {
                    Some(sequence) => {
                        self.put(extent, &bytes);
                        self.check.write_ends(0, extent, sequence, mark != 0, true);
                    }
                    None => {
                        // A part of it was read when the request began, the rest now.
                        let now = self.get(extent);
                        let half = bytes.len() / 2 + SECTOR / 4;
                        bytes[half..].copy_from_slice(&now[half..]);
                        self.check.read_ends(mark, 0, extent, &bytes, self.known);
                    }
                }
            }
        }

        fn read_back(&mut self) {
            for written in self.check.take_noted() {
                let bytes = self.get(written.extent);
                self.check.read_back(&written, Some(&bytes));
            }
        }
    }

    fn sealed(sectors: usize, random: &mut CounterRng) -> Vec<u8> {
        let mut bytes = vec![0; sectors * SECTOR];
        crate::memory::fill_random(&mut bytes, random);
        seal(&mut bytes, SECTOR);
        bytes
    }

    fn report_of(lie: Lie, every: u64, filled: bool, verify: Verify, seed: u64) -> ContentReport {
        let mut rig = Rig::new(verify, filled, lie, every, seed);
        for _ in 0..400 {
            rig.round(4, true);
        }
        rig.read_back();
        rig.check.report().clone()
    }

    #[test]
    fn an_honest_device_is_never_called_wrong() {
        for seed in 1..40 {
            for (filled, verify) in [(true, Verify::Full), (false, Verify::Full), (true, Verify::Sample)] {
                let report = report_of(Lie::None, 1, filled, verify, seed);
                assert_eq!(report.wrong_count(), 0, "seed {seed}: {report:?}");
                assert!(report.reads_checked > 100 && report.writes_checked > 100, "seed {seed}: {report:?}");
            }
        }
    }

    #[test]
    fn every_lie_is_found_and_named() {
        use WrongKind::{Elsewhere, Older, Torn, Zeros};
        // Which of them are certain; a write that is dropped over foreign bytes is no older one.
        let lies = [
            (Lie::Zeros, 50, Zeros),
            (Lie::WrongByte, 50, Torn),
            (Lie::Dropped, 20, Older),
            (Lie::Wraps, 1, Elsewhere),
            (Lie::Torn, 20, Torn),
        ];
        for (lie, every, kind) in lies {
            for verify in [Verify::Full, Verify::Sample] {
                let report = report_of(lie, every, true, verify, 3);
                assert!(report.wrong[kind as usize] > 0, "{lie:?} {verify:?}: {report:?}");
            }
        }
        let wrapped = report_of(Lie::Wraps, 1, true, Verify::Full, 3);
        assert_eq!(wrapped.distance_sectors, SECTORS / 8);
    }

    #[test]
    fn a_device_that_takes_no_write_is_found_without_a_fill() {
        let report = report_of(Lie::Dropped, 1, false, Verify::Sample, 5);
        assert!(report.writes_checked > 100 && report.wrong_count() == report.writes_checked, "{report:?}");
        assert_eq!(report.reads_checked, 0, "what it holds is nobody's: {report:?}");
    }

    #[test]
    fn what_is_noted_is_thinned_and_never_grows() {
        let mut rig = Rig::new(Verify::Sample, true, Lie::None, 1, 9);
        for _ in 0..3 * MOST_NOTED {
            rig.round(1, false);
        }
        assert!(rig.check.noted.len() <= MOST_NOTED && rig.check.noted.len() > MOST_NOTED / 4);
        assert_eq!(rig.check.noted.capacity(), MOST_NOTED);
        rig.read_back();
        assert_eq!(rig.check.report().wrong_count(), 0);
    }

    #[test]
    fn what_another_worker_wrote_is_not_called_older() {
        let mut rig = Rig::new(Verify::Full, true, Lie::None, 1, 11);
        rig.round(1, false);
        let [written] = rig.check.take_noted()[..] else { panic!("one write, one note") };
        let mut theirs = sealed(written.extent.sectors as usize, &mut rig.random);
        rig.stamper.stamp(&mut theirs, 0, written.extent.lba, 1 << 48 | 1);
        rig.check.read_back(&written, Some(&theirs));
        let report = rig.check.report();
        assert_eq!((report.wrong_count(), report.undecided), (0, written.extent.sectors));
        rig.check.read_back(&written, None);
        assert_eq!(rig.check.report().wrong[WrongKind::Unreadable as usize], written.extent.sectors);
    }
}
