//! Which part of each target is its volume.
//!
//! Purpose: to measure a part of a file or device (a zone of a disk, a region as other tools take it) without touching the
//! rest. Invariant: a span lies within its target and begins and ends on sectors; outside of it nothing is read or
//! written, except that a file made by raidlab is filled whole.

use crate::error::LiveError;
use crate::target::Target;
use serde::{Deserialize, Serialize};

/// A part of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetSpan {
    /// Where it begins.
    #[serde(default)]
    pub offset_bytes: u64,
    /// How long it is; to the end of the target if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
}

/// A span in sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sectors {
    pub first: u64,
    pub count: u64,
}

/// The volume of each target: its span, or the whole of it.
pub(super) fn volumes(spans: &[TargetSpan], targets: &[Target], sector_bytes: u32) -> Result<Vec<Sectors>, LiveError> {
    if !spans.is_empty() && spans.len() != targets.len() {
        let message =
            format!("{} spans for {} targets: there must be one for each, or none", spans.len(), targets.len());
        return Err(LiveError::bad("spans", message));
    }
    let whole = TargetSpan { offset_bytes: 0, size_bytes: None };
    let volume = |(i, target): (usize, &Target)| sectors(spans.get(i).unwrap_or(&whole), i, target, sector_bytes);
    targets.iter().enumerate().map(volume).collect()
}

fn sectors(span: &TargetSpan, i: usize, target: &Target, sector_bytes: u32) -> Result<Sectors, LiveError> {
    let sector = u64::from(sector_bytes);
    let there = target.facts.size_bytes / sector * sector;
    let bad = |name: &str, message: String| Err(LiveError::bad(format!("spans[{i}].{name}"), message));
    if !span.offset_bytes.is_multiple_of(sector) || span.offset_bytes >= there {
        let message = format!("{} must be a multiple of the sector of {sector} below {there}", span.offset_bytes);
        return bad("offset_bytes", message);
    }
    let left = there - span.offset_bytes;
    let size = span.size_bytes.unwrap_or(left) / sector * sector;
    if size == 0 || size > left {
        let given = span.size_bytes.unwrap_or(left);
        return bad("size_bytes", format!("{given} must lie between the sector of {sector} and {left} bytes"));
    }
    Ok(Sectors { first: span.offset_bytes / sector, count: size / sector })
}
