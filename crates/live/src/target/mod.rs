//! What members are made of: one file a kind.
//!
//! Purpose: from a specification to something the engine can read and write, with its facts for the record. Opening
//! obeys the safety rules ([`crate::safety`]); filling makes sure that reads meet real blocks of random bytes.
//!
//! Invariants:
//! - Nothing of others is opened for writing unless the run writes.
//! - A file is filled or resized only if raidlab made it; a block device is filled only by a verifying run, which may
//!   overwrite it.
//! - What `open` returns is locked for the run: files by `flock`, block devices that are written by `O_EXCL`.

mod block;
pub(crate) mod direct;
mod emulated;
pub(crate) mod facts;
mod file;
mod fill;
pub(crate) mod memory;
mod trailer;

pub use emulated::EmulatedContent;
pub(crate) use emulated::{capacity_bytes, OpenContent};
pub use facts::{DeviceFacts, EmulatedFacts, FilesystemFacts, TargetFacts};
pub(crate) use fill::{fill_all, Filling};
use trailer::StampedSectors;

use crate::error::LiveError;
use crate::memory::MemoryMapping;
use raidlab_device::DeviceSpec;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use tracing::debug;

/// The kinds there are, as a cell names them.
pub const TARGETS: [&str; 5] = ["file", "block", "memory", "null", "emulated"];

/// A member of the array: `members[i]` in the cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TargetSpec {
    /// A regular file, made and filled by raidlab; others are only ever read.
    File {
        /// Where.
        path: PathBuf,
        /// How much of it the array may use.
        size_bytes: u64,
        /// It was there when the run began: should it be gone, that is a failure, and none is made in its place.
        #[serde(default)]
        existing: bool,
    },
    /// A block device, the whole of it.
    Block {
        /// Its device file.
        path: PathBuf,
        /// The user has named this very device for overwriting.
        #[serde(default)]
        destroy: bool,
    },
    /// Memory of this process: no system call at all.
    Memory {
        /// How much.
        size_bytes: u64,
    },
    /// Completes at once and moves nothing: what is measured is raidlab itself.
    Null {
        /// How large it claims to be.
        size_bytes: u64,
    },
    /// A modelled disk, driven by the real clock: it answers when that disk would.
    Emulated {
        /// The model, which sets size and sector.
        device: Box<DeviceSpec>,
        /// Whether its bytes are kept, and where.
        #[serde(default)]
        content: EmulatedContent,
    },
}

impl TargetSpec {
    /// Whether one specification may stand for all members: nothing of it is one member's alone.
    pub(crate) fn is_shareable(&self) -> bool {
        match self {
            TargetSpec::Memory { .. } | TargetSpec::Null { .. } => true,
            TargetSpec::Emulated { content, .. } => !matches!(content, EmulatedContent::File(_)),
            TargetSpec::File { .. } | TargetSpec::Block { .. } => false,
        }
    }

    /// Whether its members are modelled disks.
    pub(crate) fn is_emulated(&self) -> bool {
        matches!(self, TargetSpec::Emulated { .. })
    }

    /// The file or device that it names.
    fn path(&self) -> Option<&PathBuf> {
        match self {
            TargetSpec::File { path, .. } | TargetSpec::Block { path, .. } => Some(path),
            TargetSpec::Emulated { content: EmulatedContent::File(path), .. } => Some(path),
            TargetSpec::Emulated { .. } | TargetSpec::Memory { .. } | TargetSpec::Null { .. } => None,
        }
    }
}

/// What a run will do to its targets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Intent<'a> {
    /// Whether it writes at all.
    pub writes: bool,
    /// Block devices named for overwriting.
    pub destroy: &'a [PathBuf],
    /// Through the page cache, even where O_DIRECT is possible.
    pub buffered: bool,
}

/// Where a target's bytes are.
#[derive(Debug)]
pub(crate) enum Store {
    Fd(File),
    Memory(MemoryMapping),
    Null,
    /// A modelled disk, and what it keeps.
    Emulated(Box<DeviceSpec>, OpenContent),
}

impl Store {
    /// The file or device behind it.
    fn file(&self) -> Option<&File> {
        match self {
            Store::Fd(file) | Store::Emulated(_, OpenContent::File(file)) => Some(file),
            Store::Memory(_) | Store::Null | Store::Emulated(..) => None,
        }
    }
}

/// An open target.
#[derive(Debug)]
pub(crate) struct Target {
    /// Key of its specification.
    pub key: String,
    pub facts: TargetFacts,
    /// The smallest sector that works at all; [`TargetFacts::sector_bytes`] is the smallest that works well.
    pub least_sector_bytes: u32,
    pub store: Store,
    /// It was made by raidlab and does not yet hold random bytes.
    pub needs_fill: bool,
    /// What raidlab knows of what it holds.
    pub stamped: Option<StampedSectors>,
}

/// Opens the target that `spec` describes; `key` is where that stands in the cell.
pub(crate) fn open(spec: &TargetSpec, key: &str, intent: Intent<'_>) -> Result<Target, LiveError> {
    let opened = open_kind(spec, key, intent);
    match &opened {
        Ok(Target { facts, needs_fill, .. }) => debug!(
            key,
            kind = facts.kind,
            path = facts.path,
            size_bytes = facts.size_bytes,
            sector_bytes = facts.sector_bytes,
            io = facts.io,
            needs_fill,
            "target opened"
        ),
        Err(error) => debug!(%error, "target refused"),
    }
    opened
}

fn open_kind(spec: &TargetSpec, key: &str, intent: Intent<'_>) -> Result<Target, LiveError> {
    match spec {
        TargetSpec::File { path, size_bytes, existing: true } => file::open_again(path, *size_bytes, key, intent),
        TargetSpec::File { path, size_bytes, existing: false } => file::open(path, *size_bytes, key, intent),
        TargetSpec::Block { path, destroy } => block::open(path, *destroy, key, intent),
        TargetSpec::Memory { size_bytes } => memory::open(*size_bytes, key),
        TargetSpec::Null { size_bytes } => memory::open_null(*size_bytes, key),
        TargetSpec::Emulated { device, content } => emulated::open(device, content, key, intent),
    }
}

/// Opens all of these but those that are missing; `root` is the key of their list. No two may be the same.
pub(crate) fn open_all(
    specs: &[TargetSpec],
    root: &str,
    is_missing: &dyn Fn(usize) -> bool,
    intent: Intent<'_>,
) -> Result<Vec<Option<Target>>, LiveError> {
    let mut targets: Vec<Option<Target>> = Vec::with_capacity(specs.len());
    for (i, spec) in specs.iter().enumerate() {
        if is_missing(i) {
            targets.push(None);
            continue;
        }
        let key = format!("{root}[{i}]");
        let twin = targets.iter().flatten().find(|other| is_same(spec, other));
        if let Some(twin) = twin {
            let message = format!("{} already stands at {}: every one must be named once", twin.name(), twin.key);
            return Err(LiveError::bad(format!("{key}.path"), message));
        }
        targets.push(Some(open(spec, &key, intent)?));
    }
    Ok(targets)
}

/// What these are; nothing of those that are missing.
pub(crate) fn facts_of(targets: &[Option<Target>]) -> Vec<Option<TargetFacts>> {
    targets.iter().map(|target| target.as_ref().map(|target| target.facts.clone())).collect()
}

/// The sector of all together: the largest that one of them needs, or what was asked for if that is larger.
pub(crate) fn sector(asked: Option<u32>, targets: &[Option<Target>]) -> Result<u32, LiveError> {
    let largest = targets.iter().flatten().map(|t| t.facts.sector_bytes).max();
    let Some(needed) = largest else {
        return Err(LiveError::bad("missing", "all members are missing"));
    };
    match asked {
        Some(asked) if !asked.is_power_of_two() => {
            Err(LiveError::bad("sector_bytes", format!("{asked} must be a power of two")))
        }
        asked => Ok(asked.unwrap_or(0).max(needed)),
    }
}

/// The same where requests are a user's own: one smaller than what works well is taken if it works at all.
pub(crate) fn sector_at_least(asked: Option<u32>, targets: &[Option<Target>]) -> Result<u32, LiveError> {
    let least = targets.iter().flatten().map(|t| t.least_sector_bytes).max().unwrap_or(0);
    let well = sector(asked, targets)?;
    Ok(asked.map_or(well, |asked| asked.max(least)))
}

impl Target {
    /// One that needs no fill, and of whose content nothing is known.
    fn new(key: &str, facts: TargetFacts, store: Store) -> Target {
        let least_sector_bytes = facts.sector_bytes;
        Target { key: key.to_string(), facts, least_sector_bytes, store, needs_fill: false, stamped: None }
    }

    /// Whether what is written to it is kept on something that may lie.
    pub(crate) fn keeps_content(&self) -> bool {
        matches!(self.store, Store::Fd(_) | Store::Memory(_))
    }

    /// How a sentence names it.
    pub(crate) fn name(&self) -> String {
        self.facts.path.clone().unwrap_or_else(|| format!("{} ({})", self.key, self.facts.kind))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(file) = self.store.file() {
            // A process that was being started meanwhile may hold a copy of the descriptor for a moment longer.
            let _ = file.unlock();
        }
    }
}

/// Whether `spec` names the very file or device that `other` is.
fn is_same(spec: &TargetSpec, other: &Target) -> bool {
    let Some(path) = spec.path() else { return false };
    let Ok(status) = std::fs::metadata(path) else { return false };
    let Some(file) = other.store.file() else { return false };
    let Ok(open) = file.metadata() else { return false };
    match status.rdev() {
        0 => (status.dev(), status.ino()) == (open.dev(), open.ino()),
        numbers => numbers == open.rdev(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_written_as_listed() {
        let texts = [
            r#"{"kind":"file","path":"/x/y","size_bytes":4096,"existing":false}"#,
            r#"{"kind":"block","path":"/dev/x","destroy":true}"#,
            r#"{"kind":"memory","size_bytes":4096}"#,
            r#"{"kind":"null","size_bytes":4096}"#,
            concat!(
                r#"{"kind":"emulated","device":{"kind":"fixed","capacity_bytes":4096,"sector_bytes":512,"#,
                r#""read_us":1.0,"write_us":1.0,"read_ns_per_byte":0.0,"write_ns_per_byte":0.0,"servers":1,"#,
                r#""scheduler":"fifo"},"content":{"file":"/x/y"}}"#
            ),
        ];
        for (kind, text) in TARGETS.iter().zip(texts) {
            let spec: TargetSpec = serde_json::from_str(text).expect("a target as the cell contract writes it");
            let again = serde_json::to_string(&spec).expect("plain data");
            assert_eq!(serde_json::from_str::<TargetSpec>(&again).expect("what was written"), spec);
            assert!(text.contains(&format!("\"kind\":\"{kind}\"")));
        }
        let harmless: TargetSpec = serde_json::from_str(r#"{"kind":"block","path":"/dev/x"}"#).expect("a block device");
        assert_eq!(harmless, TargetSpec::Block { path: "/dev/x".into(), destroy: false });
        assert!(serde_json::from_str::<TargetSpec>(r#"{"kind":"memory","size":1}"#).is_err());
    }
}
