//! Layouts that are not zones: a map of extents, or an index of repeated patterns.

use super::zone_spec::Skew;
use serde::{Deserialize, Serialize};

/// Where the sectors lie, in place of `zones`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LayoutSpec {
    /// Every extent of consecutive sectors on a track, as read from a disk (DiskSim's layout `g2`).
    Extents {
        /// Sectors a track and skews, by cylinder.
        bands: Vec<BandSpec>,
        /// `[first address, cylinder, head, first sector, sectors]`, by rising address and without gaps.
        extents: Vec<(u64, u32, u32, u32, u64)>,
    },
    /// Patterns of tracks within patterns of cylinders (DiskSim's layout `g4`).
    Index {
        /// Addresses of the disk.
        sectors: u64,
        /// `[first sector, last sector, sectors per track]` of each pattern of a track.
        tracks: Vec<(u32, u32, u32)>,
        /// Nodes; the last one is the whole disk.
        nodes: Vec<Vec<NodeSpec>>,
        /// `[position, sectors]` left out of the count of the index, by rising position; negative sectors give some back.
        #[serde(default)]
        slips: Vec<(u64, i64)>,
        /// `[address, sectors, cylinder, head, sector, sectors per track]` that lie elsewhere.
        #[serde(default)]
        remaps: Vec<(u64, u64, u32, u32, u32, u32)>,
    },
}

/// Cylinders with the same number of sectors a track, of a layout of extents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BandSpec {
    /// The first cylinder.
    pub first_cylinder: u32,
    /// The last cylinder.
    pub last_cylinder: u32,
    /// Sectors on each track.
    pub sectors_per_track: u32,
    /// Angle of sector 0 of the band's first track.
    #[serde(default)]
    pub start_angle: Skew,
    /// How far sector 0 of a track lies behind that of the track before it in the same cylinder.
    #[serde(default)]
    pub track_skew: Skew,
    /// The same from cylinder to cylinder.
    #[serde(default)]
    pub cylinder_skew: Skew,
}

/// One entry of a node of an index: a pattern, laid down again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// First address, counted from that of the node.
    pub lba: u64,
    /// First cylinder, counted from that of the node.
    pub cylinder: i64,
    /// Angle of the first sector, counted from that of the node, in revolutions.
    pub angle: f64,
    /// Addresses in one repetition.
    pub sectors: u64,
    /// Cylinders from one repetition to the next.
    pub cylinders: i64,
    /// Angle from one repetition to the next, in revolutions.
    pub turn: f64,
    /// Addresses in all repetitions.
    pub run_sectors: u64,
    /// Cylinders of all repetitions; negative where they go outwards.
    pub run_cylinders: i64,
    /// What is repeated.
    pub child: ChildSpec,
}

/// What an entry repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ChildSpec {
    /// Another node, by its position in `nodes`.
    Node(u32),
    /// A pattern of a track under a head.
    Track {
        /// Position in `tracks`.
        track: u32,
        /// The head.
        head: u32,
    },
}
