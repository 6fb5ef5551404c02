//! What a device file says of zones: sizes, skews, reserves, and sectors that are not where they would be.

use serde::{Deserialize, Serialize};

/// Consecutive cylinders with the same number of sectors a track.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneSpec {
    /// The first cylinder, where it is not the one after the zone before; cylinders between zones hold no data.
    pub first_cylinder: Option<u32>,
    /// Number of cylinders.
    pub cylinders: u32,
    /// Sectors on each of their tracks.
    pub sectors_per_track: u32,
    /// Angle of the zone's first sector after the index mark, where it does not follow from the zone before.
    pub start_angle: Option<Skew>,
    /// Track skew, where it is not the disk's.
    pub track_skew: Option<Skew>,
    /// Cylinder skew, where it is not the disk's; holds from each cylinder of this zone to the one after it.
    pub cylinder_skew: Option<Skew>,
    /// Sectors at the front that the disk keeps for itself.
    #[serde(default)]
    pub reserved_sectors: u64,
    /// Spare sectors of each region of `sparing` (spare tracks, where that says tracks).
    #[serde(default)]
    pub spares: u64,
    /// Sectors left out when addresses were given, by their physical number in the zone (tracks, where `sparing` says tracks).
    #[serde(default)]
    pub slips: Vec<u64>,
    /// Sectors that lie elsewhere, `[from, to]`, by their physical number in the zone (tracks, where `sparing` says tracks).
    #[serde(default)]
    pub remaps: Vec<(u64, u64)>,
}

/// An angle between tracks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skew {
    /// In sectors of the zone.
    Sectors(u32),
    /// In ms of rotation.
    Ms(f64),
    /// In revolutions.
    Revolutions(f64),
}

impl Default for Skew {
    fn default() -> Self {
        Skew::Sectors(0)
    }
}

/// The order in which addresses take the heads of a cylinder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mapping {
    /// From head 0 up, in every cylinder.
    #[default]
    Normal,
    /// Up and down in turn, so that going to the next cylinder keeps the head; each zone begins upwards.
    SerpentineByZone,
    /// The same, upwards in even cylinders of the disk.
    Serpentine,
}

/// Where a disk keeps spare sectors, and what a slipped sector moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Sparing {
    /// Nowhere; `spares` counts for nothing.
    #[default]
    None,
    /// Whole tracks at the end of each zone; slips and remaps name tracks.
    TracksPerZone,
    /// At the end of each cylinder.
    SectorsPerCylinder,
    /// At the end of each track.
    SectorsPerTrack,
    /// At the end of each cylinder, but slips move everything to the end of the zone.
    SectorsPerCylinderSlipToEnd,
    /// At the front of each cylinder.
    SectorsAtCylinderFront,
    /// At the front of each cylinder, but slips move everything to the end of the zone.
    SectorsAtCylinderFrontSlipToEnd,
    /// At the end of the disk; `spares` counts for nothing, each slip shortens its zone.
    EndOfDisk,
    /// At the end of each range of this many cylinders.
    SectorsPerRange {
        /// Cylinders of a range, counted from the start of each zone.
        cylinders: u32,
    },
    /// At the end of each zone.
    SectorsPerZone,
    /// At the end of each zone, but slips shorten the zone further.
    SectorsPerZoneSlipToEnd,
}
