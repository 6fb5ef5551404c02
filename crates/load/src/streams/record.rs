//! What one stream did.

use serde::Serialize;

/// One end of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SideRecord {
    /// Time in which it handed over, or took.
    pub busy_ns: u64,
    /// Time in which it stood ready and the other end was not.
    pub waited_ns: u64,
    /// How often its tape stopped.
    pub stops: u64,
}

/// One stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct StreamRecord {
    /// What it is called.
    pub name: String,
    /// Words for its two ends.
    pub from: &'static str,
    /// Where its bytes go.
    pub to: &'static str,
    /// Bytes that have arrived.
    pub bytes: u64,
    /// From the start of all to its end, or to the last event seen.
    pub elapsed_ns: u64,
    /// Time of that for the sink to have everything for good: what was written behind, the tape run to its end.
    pub sync_ns: u64,
    /// The end that bytes come from.
    pub source: SideRecord,
    /// The end that they go to.
    pub sink: SideRecord,
    /// The end that took most of the time: `source` or `sink`.
    pub bound_by: &'static str,
}
