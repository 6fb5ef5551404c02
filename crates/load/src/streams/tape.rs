//! A tape drive: constant rate, a buffer, and a penalty for every stop.
//!
//! Purpose: what a real drive does to a stream, without one, on either clock. A drive runs at one rate only. It has a
//! buffer; when the host is too slow and the buffer runs dry (recording) or full (playing), the tape stops, and must be
//! positioned before it runs again; recording, it also waits until half of its buffer is full. So a stream slightly too
//! slow loses far more than the difference.
//!
//! Invariants: pure state machines, times are arguments in nanoseconds. Bytes never pass the head faster than the rate.
//! The first start is no stop.

use raidlab_types::number::{f64_from, saturating_u64};

/// What a drive is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TapeDrive {
    /// While it runs.
    pub ns_per_byte: f64,
    /// What it holds between the stream and the tape.
    pub buffer_bytes: u64,
    /// From the arrival of data (or of room) to running again.
    pub start_stop_ns: u64,
}

impl TapeDrive {
    /// From the words of a cell.
    pub fn new(mb_s: f64, buffer_bytes: u64, start_stop_ms: f64) -> TapeDrive {
        TapeDrive { ns_per_byte: 1000.0 / mb_s, buffer_bytes, start_stop_ns: saturating_u64(start_stop_ms * 1e6) }
    }

    fn time_of(&self, bytes: u64) -> u64 {
        // Rounded up: never faster than the rate.
        saturating_u64((f64_from(bytes) * self.ns_per_byte).ceil())
    }
}

/// A drive that records.
#[derive(Debug, Clone)]
pub struct TapeWriter {
    drive: TapeDrive,
    tape: Tape,
    /// When it was last given a block.
    last_ns: u64,
    /// How often it ran dry.
    pub stops: u64,
}

/// What the tape itself is doing.
#[derive(Debug, Clone, Copy)]
enum Tape {
    /// It stands while the buffer fills, and is in position from a time on.
    Standing { held_bytes: u64, ready_ns: u64 },
    /// It runs, or will from a time on, until all that was taken is on it.
    Running { from_ns: u64, until_ns: u64 },
}

impl TapeWriter {
    /// A drive with a tape in position.
    pub fn new(drive: TapeDrive) -> TapeWriter {
        TapeWriter { drive, tape: Tape::Standing { held_bytes: 0, ready_ns: 0 }, last_ns: 0, stops: 0 }
    }

    /// A block arrives; the answer is when it is taken: when what is not yet on tape fits the buffer.
    pub fn take(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.last_ns = now_ns;
        if let Tape::Running { until_ns, .. } = self.tape {
            if now_ns > until_ns {
                self.stops += 1;
                self.tape = Tape::Standing { held_bytes: 0, ready_ns: now_ns + self.drive.start_stop_ns };
            }
        }
        self.tape = match self.tape {
            Tape::Standing { held_bytes, ready_ns } if held_bytes + bytes < self.drive.buffer_bytes / 2 => {
                Tape::Standing { held_bytes: held_bytes + bytes, ready_ns }
            }
            Tape::Standing { held_bytes, ready_ns } => self.started(held_bytes + bytes, ready_ns),
            Tape::Running { from_ns, until_ns } => {
                Tape::Running { from_ns, until_ns: until_ns + self.drive.time_of(bytes) }
            }
        };
        let room_ns = self.drive.time_of(self.drive.buffer_bytes);
        match self.tape {
            // While it stands, its buffer fills.
            Tape::Running { until_ns, .. } if self.held_ns(now_ns) > room_ns => {
                until_ns.saturating_sub(room_ns).max(now_ns)
            }
            _ => now_ns,
        }
    }

    fn started(&self, bytes: u64, ready_ns: u64) -> Tape {
        let from_ns = ready_ns.max(self.last_ns);
        Tape::Running { from_ns, until_ns: from_ns + self.drive.time_of(bytes) }
    }

    /// What it holds at a time, as the time that it will take on tape.
    fn held_ns(&self, now_ns: u64) -> u64 {
        match self.tape {
            Tape::Standing { held_bytes, .. } => self.drive.time_of(held_bytes),
            Tape::Running { from_ns, until_ns } => until_ns.saturating_sub(now_ns.max(from_ns)),
        }
    }

    /// When everything will be on tape, if nothing more comes.
    pub fn drained_ns(&self) -> u64 {
        match self.tape {
            Tape::Standing { held_bytes: 0, .. } => self.last_ns,
            Tape::Standing { held_bytes, ready_ns } => ready_ns.max(self.last_ns) + self.drive.time_of(held_bytes),
            Tape::Running { until_ns, .. } => until_ns,
        }
    }
}

/// A drive that plays.
#[derive(Debug, Clone)]
pub struct TapeReader {
    drive: TapeDrive,
    /// Since when it has been running, and how much had come off the tape before.
    running: Option<(u64, u64)>,
    taken_bytes: u64,
    /// How often it ran full.
    pub stops: u64,
}

impl TapeReader {
    /// A drive with a tape at its beginning.
    pub fn new(drive: TapeDrive) -> TapeReader {
        TapeReader { drive, running: None, taken_bytes: 0, stops: 0 }
    }

    /// A block is asked for; the answer is when it is there.
    pub fn give(&mut self, now_ns: u64, bytes: u64) -> u64 {
        let (since_ns, before) = *self.running.get_or_insert((now_ns, 0));
        // A buffer smaller than the block is helped out by the block's own memory.
        let most = self.taken_bytes + self.drive.buffer_bytes.max(bytes);
        let reaches = |total: u64| since_ns + self.drive.time_of(total.saturating_sub(before));
        let wanted = self.taken_bytes + bytes;
        let there_ns = if wanted > before { reaches(wanted).max(now_ns) } else { now_ns };
        let full_ns = reaches(most.max(before));
        if full_ns < there_ns {
            // It has stood still since; now there is room.
            self.stops += 1;
            self.running = Some((there_ns + self.drive.start_stop_ns, most.max(before)));
        }
        self.taken_bytes = wanted;
        there_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 byte a microsecond, a buffer of 1000, 50 ms to start again.
    const DRIVE: TapeDrive = TapeDrive { ns_per_byte: 1000.0, buffer_bytes: 1000, start_stop_ns: 50_000_000 };

    #[test]
    fn a_host_in_time_keeps_the_tape_running() {
        let mut tape = TapeWriter::new(DRIVE);
        let mut now = 0;
        for _ in 0..1000 {
            now = tape.take(now, 500);
        }
        assert_eq!(tape.stops, 0);
        assert_eq!(tape.drained_ns(), 500_000 * 1000, "exactly the rate");
        assert_eq!(now, tape.drained_ns() - 1000 * 1000, "a buffer ahead");
        let (mut tape, mut now) = (TapeReader::new(DRIVE), 0);
        for _ in 0..1000 {
            now = tape.give(now, 500);
        }
        assert_eq!((tape.stops, now), (0, 500_000 * 1000));
    }

    #[test]
    fn a_host_too_late_pays_for_every_stop() {
        // Blocks of 500 us of tape, brought every 2 ms: each finds the tape standing.
        let mut tape = TapeWriter::new(DRIVE);
        let mut now = 0;
        for _ in 0..10 {
            now = tape.take(now, 500) + 2_000_000;
        }
        // While the tape is being started the buffer fills, so that not every block finds it standing.
        assert!(tape.stops >= 1 && tape.stops < 10, "{}", tape.stops);
        assert!(tape.drained_ns() >= 10 * 500_000 + tape.stops * DRIVE.start_stop_ns);
        // Fetched every 2 ms, the buffer of 1 ms is full each time but the first.
        let (mut tape, mut now, mut taken) = (TapeReader::new(DRIVE), 0, 0);
        for _ in 0..10 {
            let there = tape.give(now, 500);
            taken += 500;
            assert!(there >= taken * 1000, "never faster than the rate");
            now = there + 2_000_000;
        }
        assert!(tape.stops >= 1, "{}", tape.stops);
        assert!(now >= 10 * 2_000_000 + tape.stops.saturating_sub(1) * DRIVE.start_stop_ns);
    }

    #[test]
    fn no_pattern_of_asking_goes_faster_than_the_tape() {
        let mut random = raidlab_types::Seed::new(11).draws();
        for _ in 0..200 {
            let drive = TapeDrive {
                ns_per_byte: 0.5 + random.unit() * 20.0,
                buffer_bytes: random.below(5000),
                start_stop_ns: random.below(3) * 100_000,
            };
            let (mut recording, mut playing) = (TapeWriter::new(drive), TapeReader::new(drive));
            let (mut now, mut at, mut total) = (0, 0, 0);
            for _ in 0..100 {
                let bytes = 1 + random.below(3000);
                total += bytes;
                now = recording.take(now + random.below(30_000), bytes);
                assert!(recording.drained_ns() as f64 >= total as f64 * drive.ns_per_byte);
                let held = recording.held_ns(now);
                assert!(held as f64 <= drive.buffer_bytes as f64 * drive.ns_per_byte + 2.0, "beyond its buffer");
                at = playing.give(at + random.below(30_000), bytes);
                assert!(at as f64 >= total as f64 * drive.ns_per_byte - 1.0);
            }
        }
    }
}
