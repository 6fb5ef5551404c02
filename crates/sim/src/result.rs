//! What a simulation found.

use raidlab_array::{DataLoss, RebuildResult, SatOut, ScrubResult, UnreadableResult};
use raidlab_device::{FlashTotals, Totals};
use raidlab_load::files::FilesRecord;
use raidlab_load::streams::StreamRecord;
use raidlab_load::trace::ReplayCounts;
use raidlab_load::{Backlog, HoldReport, Recorder};
use raidlab_types::LeafId;
use serde::Serialize;

/// What one member did while measuring.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct MemberResult {
    /// Which.
    pub leaf: LeafId,
    /// Its operations and the times they took.
    #[serde(flatten)]
    pub totals: Totals,
    /// Operations it serves at the same time.
    pub servers: usize,
    /// What it did with its flash, if it is a flash drive.
    #[serde(flatten)]
    pub flash: Option<FlashTotals>,
}

/// What one station did while measuring.
#[derive(Debug, Clone, Serialize)]
pub struct StationResult {
    /// Its name.
    pub name: String,
    /// Visits that began to wait or to be served.
    pub visits: u64,
    /// Time its servers worked.
    pub busy_ns: u64,
    /// Time visits waited for a server.
    pub wait_ns: u64,
    /// Servers it has.
    pub servers: u32,
}

/// Result of a simulation.
#[derive(Debug, Clone)]
pub struct SimResult {
    /// Histograms, counts, the measuring window.
    pub recorder: Recorder,
    /// Every member.
    pub members: Vec<MemberResult>,
    /// Every member that was rebuilt.
    pub rebuilds: Vec<RebuildResult>,
    /// Every time that the array went over what it holds.
    pub scrubs: Vec<ScrubResult>,
    /// Members that were read last for being slow.
    pub sat_out: Vec<SatOut>,
    /// The failure with which data were lost and the run ended, if one was too many.
    pub data_loss: Option<DataLoss>,
    /// What could not be read of members, where something was to be so.
    pub unreadable: Option<UnreadableResult>,
    /// Every station, none where the host is free.
    pub stations: Vec<StationResult>,
    /// How the depth was held, where it was.
    pub hold: Option<HoldReport>,
    /// How far an open loop fell behind.
    pub backlog: Backlog,
    /// What whole files asked for, where they were read.
    pub files: Option<FilesRecord>,
    /// What became of a trace's requests, where one was replayed.
    pub replayed: Option<ReplayCounts>,
    /// What each stream did; none where requests were offered.
    pub streams: Vec<StreamRecord>,
    /// The array's sector in bytes.
    pub sector_bytes: u32,
    /// User capacity of all volumes, in bytes.
    pub user_bytes: u64,
    /// Events handled.
    pub events: u64,
    /// Whether the observer stopped the run.
    pub interrupted: bool,
}
