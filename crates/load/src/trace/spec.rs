//! The words of a replay, as they stand in a cell's JSON text under `trace`.
//!
//! Invariant: unknown keys are refused; whether the words make sense for an array is decided by [`super::TraceLoad::new`].
//!
//! Reference: `docs/internals/cell-contract.md`.

use super::Format;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A trace in place of a workload that is drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// Where it is. Whoever drives the load opens it; nothing here does.
    pub file: String,
    /// Its format; guessed from its first lines if absent.
    pub format: Option<Format>,
    /// The array's volume of each of the trace's, by name. Empty: they are taken in order of first appearance.
    #[serde(default)]
    pub volumes: BTreeMap<String, u32>,
    /// What becomes of volumes that have none.
    #[serde(default)]
    pub others: OtherVolumes,
    /// What becomes of requests beyond the end of their volume.
    #[serde(default)]
    pub beyond: BeyondEnd,
    /// Which requests are offered.
    #[serde(default)]
    pub only: KindFilter,
}

/// What becomes of requests to volumes of the trace that have no volume of the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OtherVolumes {
    /// The first one is an error.
    #[default]
    Refuse,
    /// They are left out, and counted.
    LeaveOut,
}

/// What becomes of requests beyond the end of their volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BeyondEnd {
    /// The first one is an error.
    #[default]
    Refuse,
    /// Their address is taken modulo the volume's length, and they are counted; one that would then cross the end is moved to
    /// end there.
    Wrap,
}

/// Which requests are offered; the others are left out, and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KindFilter {
    /// All.
    #[default]
    All,
    /// Reads: nothing is ever written.
    Reads,
    /// Writes.
    Writes,
}
