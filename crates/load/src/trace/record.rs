//! One request of a trace.

use raidlab_types::RequestKind;

/// A request as it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The line of the file it stands in, from 1.
    pub line: u64,
    /// When it was issued, in nanoseconds since the trace's own zero.
    pub time_ns: u64,
    /// Which volume: its number in [`super::Names`], in order of first appearance.
    pub volume: u32,
    /// Read or write.
    pub kind: RequestKind,
    /// Where it begins.
    pub offset_bytes: u64,
    /// How long it is; never 0, and its end is within 64 bits.
    pub bytes: u64,
    /// How long it took where it was recorded, if the trace says so.
    pub response_ns: Option<u64>,
}
