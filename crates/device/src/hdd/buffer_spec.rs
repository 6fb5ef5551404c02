//! What a device file says of a disk's electronics: its buffer, its bus, and what its commands cost.
//!
//! Reference: G. Ganger, B. Worthington, Y. Patt, *The DiskSim simulation environment, version 4.0: reference manual*
//! (Carnegie Mellon University, 2008); each key names the mechanism that DiskSim gives a parameter.

use raidlab_types::number::{f64_from, saturating_u64};
use serde::{Deserialize, Serialize};

/// A track buffer of equal segments, each a ring of consecutive sectors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BufferSpec {
    /// Number of segments.
    pub segments: u32,
    /// Sectors of a segment.
    pub segment_sectors: u64,
    /// Segments that may hold data not yet on the medium.
    pub write_segments: u32,
    /// One segment serves all writes and no reads.
    pub separate_write_segment: bool,
    /// What was read or written stays for later commands; otherwise the buffer only matches speeds.
    pub caching: bool,
    /// How far the disk reads on after a read.
    pub read_ahead: ReadAhead,
    /// Sectors read ahead before another command may stop it.
    pub minimum_read_ahead_sectors: u64,
    /// Most sectors read ahead; 0: as many as the segment and `keep_requested` leave.
    pub maximum_read_ahead_sectors: u64,
    /// What read-ahead may do with the sectors that were asked for.
    pub keep_requested: KeepRequested,
    /// A read that is found completely starts reading ahead where nothing else goes on.
    pub read_ahead_on_hit: bool,
    /// Sectors before those asked for are kept where the head passes them anyway.
    pub read_free_sectors: bool,
    /// Reads take the sectors in the order in which they come.
    pub zero_latency_read: bool,
    /// Writes do so, too.
    pub zero_latency_write: bool,
    /// Writes are complete once they are in the buffer.
    pub write_back: WriteBack,
    /// A write that goes on where the one in the buffer ends joins it.
    pub combine_writes: bool,
    /// Reads may be served from data that were written.
    pub read_hits_on_written: bool,
    /// A read whose first sector is just being read ahead counts as found in part.
    pub almost_read_hits: bool,
    /// How many sectors beyond what has been read ahead such a read may begin.
    pub almost_read_hit_sectors: u64,
    /// What is found of a read goes out at once; otherwise only if it reaches the read watermark.
    pub transfer_partial_hits: bool,
    /// Read-ahead may stop within a sector; otherwise it ends with it.
    pub stop_within_sector: bool,
    /// Share of the data that must be there before a read reconnects.
    pub read_watermark: f64,
    /// Share of the data that may be left when a write reconnects for more.
    pub write_watermark: f64,
    /// Whether the shares are of the command, or else of the segment.
    pub watermark_of_command: bool,
    /// Writes may fill the buffer while another command has the arm.
    pub write_prebuffering: bool,
    /// How early the arm may go on to the next command.
    pub preseek: Preseek,
    /// With `ordered` write-back: most sectors that wait for the medium.
    pub write_cache_sectors: u64,
    /// With `ordered` write-back: most writes that wait for the medium.
    pub write_cache_extents: u32,
    /// With `ordered` write-back: how long after a read the arm is kept for the next one before it destages, in ms.
    pub destage_after_read_ms: f64,
}

/// No further gift: no reading ahead, no write-back. The numbers of segments and of their sectors must be given: none is right.
impl Default for BufferSpec {
    fn default() -> Self {
        BufferSpec {
            segments: 0,
            segment_sectors: 0,
            write_segments: 1,
            separate_write_segment: false,
            caching: true,
            read_ahead: ReadAhead::None,
            minimum_read_ahead_sectors: 0,
            maximum_read_ahead_sectors: 0,
            keep_requested: KeepRequested::Replace,
            read_ahead_on_hit: false,
            read_free_sectors: false,
            zero_latency_read: false,
            zero_latency_write: false,
            write_back: WriteBack::None,
            combine_writes: false,
            read_hits_on_written: true,
            almost_read_hits: false,
            almost_read_hit_sectors: 0,
            transfer_partial_hits: true,
            stop_within_sector: false,
            read_watermark: 0.0,
            write_watermark: 0.0,
            watermark_of_command: true,
            write_prebuffering: false,
            preseek: Preseek::None,
            write_cache_sectors: 0,
            write_cache_extents: 0,
            destage_after_read_ms: 0.0,
        }
    }
}

impl BufferSpec {
    /// Whether a read that begins at `lba` goes on with what has been read ahead up to `end`.
    pub(crate) fn almost_hits(&self, lba: u64, end: u64) -> bool {
        self.almost_read_hits && (end..=end + self.almost_read_hit_sectors).contains(&lba)
    }

    /// Whether written data wait for the medium in a cache of their own, and leave it in the drive's order.
    pub(crate) fn orders_writes(&self) -> bool {
        self.write_back == WriteBack::Ordered
    }

    /// The watermark of a command of `sectors` sectors, in sectors.
    pub(crate) fn watermark(&self, share: f64, sectors: u64) -> u64 {
        if self.watermark_of_command {
            saturating_u64(f64_from(self.segment_sectors.min(sectors)) * share).max(1)
        } else {
            saturating_u64(libm::ceil(f64_from(self.segment_sectors) * share))
        }
    }
}

/// How far a disk reads on after a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadAhead {
    /// Not at all.
    #[default]
    None,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full.
    Segment,
    /// To the end of the track, and of the next one when the read came from the track before.
    NextTrack,
}

/// What read-ahead may do with the sectors that were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepRequested {
    /// Write over them.
    #[default]
    Replace,
    /// Stop before them.
    Keep,
    /// They are gone once they are delivered.
    Drop,
}

/// When a write is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteBack {
    /// On the medium.
    #[default]
    None,
    /// In the buffer; while it is being written, only writes that go on from it are taken.
    Sequential,
    /// In the buffer.
    Full,
    /// In the buffer; what waits there goes to the medium in the order in which arm and rotation reach it, while no read wants
    /// the arm and where a write needs room.
    Ordered,
}

/// How early the arm may go on to the next command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preseek {
    /// When the last one is complete.
    #[default]
    None,
    /// When its completion is being reported.
    DuringCompletion,
    /// When its last sector has been read or written.
    BeforeCompletion,
}

/// The bus between disk and host, which the disk has to itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BusSpec {
    /// Time of a sector on its way to the host, in ms.
    pub read_sector_ms: f64,
    /// Time of a sector on its way to the disk, in ms.
    pub write_sector_ms: f64,
    /// A read keeps the bus while it waits for the medium.
    pub hold_for_read: bool,
    /// A write keeps the bus while it waits for room in the buffer.
    pub hold_for_write: bool,
    /// The disk keeps the bus from a command's arrival to its completion.
    pub never_disconnect: bool,
}

/// What the electronics take for a command, in ms.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommandSpec {
    /// Before anything else, for every command.
    pub every_ms: f64,
    /// A read that is found in the buffer, after a read.
    pub read_hit_after_read_ms: f64,
    /// The same after a write.
    pub read_hit_after_write_ms: f64,
    /// A read that is not found, after a read.
    pub read_miss_after_read_ms: f64,
    /// The same after a write.
    pub read_miss_after_write_ms: f64,
    /// A write that is complete in the buffer, after a read.
    pub write_hit_after_read_ms: f64,
    /// The same after a write.
    pub write_hit_after_write_ms: f64,
    /// A write that is complete on the medium, after a read.
    pub write_miss_after_read_ms: f64,
    /// The same after a write.
    pub write_miss_after_write_ms: f64,
    /// Reporting a read.
    pub read_completion_ms: f64,
    /// Reporting a write.
    pub write_completion_ms: f64,
    /// Getting ready for a transfer over the bus.
    pub data_preparation_ms: f64,
    /// Taking the bus again, the first time in a command.
    pub first_reselect_ms: f64,
    /// The same, later.
    pub other_reselect_ms: f64,
    /// Leaving the bus in a read after a read.
    pub read_disconnect_after_read_ms: f64,
    /// Leaving the bus in a read after a write.
    pub read_disconnect_after_write_ms: f64,
    /// Leaving the bus in a write.
    pub write_disconnect_ms: f64,
    /// A write that does not go on from the last command, a write, leaves the bus before it takes any data.
    pub extra_write_disconnect: Option<ExtraDisconnect>,
    /// Least time of a movement before a write, sequential ones apart.
    pub minimum_write_seek_ms: f64,
}

/// The times of a write that leaves the bus before it takes any data, in ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExtraDisconnect {
    /// In place of the command's own time.
    pub command_ms: f64,
    /// Leaving the bus.
    pub disconnect_ms: f64,
    /// Until it comes back.
    pub away_ms: f64,
    /// Leaving the bus the second time, with the data.
    pub second_disconnect_ms: f64,
    /// Further wait of the arm after the command's time.
    pub seek_delay_ms: f64,
    /// Sectors that must be in the buffer before writing begins: all of a command up to this many.
    pub gather_sectors: u64,
    /// The same for long commands.
    pub gather_long_sectors: u64,
    /// Sectors from which a command is long.
    pub long_from_sectors: u64,
}
