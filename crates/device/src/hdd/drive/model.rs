//! What is true of every drive of one model, in nanoseconds and sectors.

use crate::hdd::buffer_spec::BufferSpec;
use crate::hdd::layout::DiskLayout;
use crate::hdd::reciprocal::Reciprocal;
use crate::hdd::seek::SeekTable;

/// A time that depends on whether the command before was a read (index 0) or a write (1).
pub(crate) type AfterReadOrWrite = [u64; 2];

/// What the electronics take, in ns.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandTimes {
    pub every: u64,
    pub read_hit: AfterReadOrWrite,
    pub read_miss: AfterReadOrWrite,
    pub write_hit: AfterReadOrWrite,
    pub write_miss: AfterReadOrWrite,
    pub read_completion: u64,
    pub write_completion: u64,
    pub preparation: u64,
    pub first_reselect: u64,
    pub other_reselect: u64,
    pub read_disconnect: AfterReadOrWrite,
    pub write_disconnect: u64,
    pub extra: Option<Extra>,
    pub minimum_write_seek: u64,
}

/// A write's leave of the bus before it takes any data, in ns and sectors.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extra {
    pub command: u64,
    pub disconnect: u64,
    pub away: u64,
    pub second_disconnect: u64,
    pub seek_delay: u64,
    pub gather: u64,
    pub gather_long: u64,
    pub long_from: u64,
}

/// The bus, in ns a sector.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bus {
    pub read_sector: u64,
    pub write_sector: u64,
    pub hold_for_read: bool,
    pub hold_for_write: bool,
    pub never_disconnect: bool,
}

/// Everything that does not change.
#[derive(Debug)]
pub(crate) struct DiskModel {
    pub layout: DiskLayout,
    pub capacity: u64,
    pub seek: SeekTable,
    pub head_switch: u64,
    /// Added to each movement before a write; may be negative, never below what it is added to.
    pub write_settle: i64,
    pub revolution: Reciprocal,
    pub turnaround: u64,
    pub timings: CommandTimes,
    pub bus: Bus,
    /// How long after a read the arm is kept for the next one.
    pub destage_after_read: u64,
    /// The rules of the buffer.
    pub rules: BufferSpec,
}

impl DiskModel {
    /// Movement from one track to another, in ns.
    #[inline]
    pub(crate) fn movement(&self, from: (u32, u32), to: (u32, u32), write: bool) -> u64 {
        if from == to {
            return 0;
        }
        let seek = u64::from(self.seek.ns(from.0.abs_diff(to.0)));
        let moved = if from.1 == to.1 { seek } else { seek.max(self.head_switch) };
        if write {
            moved.saturating_add_signed(self.write_settle)
        } else {
            moved
        }
    }

    /// Length of a revolution in ns.
    #[inline]
    pub(crate) fn revolution_ns(&self) -> u64 {
        self.revolution.divisor()
    }
}
