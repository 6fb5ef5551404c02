//! `emulated`: a member that answers in the time a modelled disk would take, on the real clock.
//!
//! Purpose: the live half of a study where there are no disks, and something real to hold the simulator against. The
//! model prices operations (`engine/spindles.rs` drives it); what they carry is kept in memory, in a file, or not at all.
//!
//! Invariants:
//! - Size and sector are the model's, so that an array of emulated members is laid out as a simulated one.
//! - With content `none` no memory is taken, whatever the capacity.
//! - A content file obeys the rules of member files: only one that raidlab made is ever written. It goes through the page
//!   cache: the model says how long an operation takes, and the host should be quicker than that.

use super::facts::EmulatedFacts;
use super::{file, Intent, Store, Target, TargetFacts};
use crate::error::LiveError;
use crate::memory::MemoryMapping;
use raidlab_device::{Device, DeviceSpec, PairPricing};
use raidlab_types::number::usize_from;
use raidlab_types::{Seed, SpecError};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Where the bytes of an emulated member are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmulatedContent {
    /// Nowhere: reads bring what happens to be in memory. For measuring time alone.
    #[default]
    None,
    /// In memory of this process.
    Memory,
    /// In a file that raidlab makes.
    File(PathBuf),
}

/// What an open emulated member keeps.
#[derive(Debug)]
pub(crate) enum OpenContent {
    Nothing,
    Memory(MemoryMapping),
    File(File),
}

/// Opens an emulated member; `key` is where it stands in the cell.
pub(super) fn open(
    spec: &DeviceSpec,
    content: &EmulatedContent,
    key: &str,
    intent: Intent<'_>,
) -> Result<Target, LiveError> {
    let size_bytes = capacity_bytes(spec).map_err(|e| LiveError::bad(format!("{key}.device.{}", e.key), e.message))?;
    let (kept, needs_fill, name) = match content {
        EmulatedContent::File(path) => return open_file(spec, path, size_bytes, key, intent),
        EmulatedContent::None => (OpenContent::Nothing, false, "none"),
        EmulatedContent::Memory => {
            let doing = format!("taking {size_bytes} bytes");
            let mapping = MemoryMapping::new(usize_from(size_bytes))
                .map_err(|e| LiveError::io(format!("{key}.content"), "memory", &doing, &e))?;
            (OpenContent::Memory(mapping), true, "memory")
        }
    };
    let mut facts = TargetFacts::of_memory(size_bytes, 0);
    describe(&mut facts, spec, name);
    let mut target = Target::new(key, facts, Store::Emulated(Box::new(spec.clone()), kept));
    target.needs_fill = needs_fill;
    Ok(target)
}

/// Capacity of the modelled disk in bytes.
pub(crate) fn capacity_bytes(spec: &DeviceSpec) -> Result<u64, SpecError> {
    let sector_bytes = spec.sector_bytes();
    let device = Device::new(spec, sector_bytes, PairPricing::Queued, Seed::new(0))?;
    Ok(device.capacity_sectors() * u64::from(sector_bytes))
}

/// Opens the content as a member file is opened, then takes it over.
fn open_file(
    spec: &DeviceSpec,
    path: &Path,
    size_bytes: u64,
    key: &str,
    intent: Intent<'_>,
) -> Result<Target, LiveError> {
    // What the opening of member files says of `path` and `size_bytes` stands elsewhere here.
    let in_content = |at: &str| format!("{key}.{}", if at.ends_with(".path") { "content.file" } else { "device" });
    let mut target =
        file::open(path, size_bytes, key, Intent { buffered: true, ..intent }).map_err(|e| e.at(in_content))?;
    let nothing = Store::Emulated(Box::new(spec.clone()), OpenContent::Nothing);
    if let Store::Fd(file) = std::mem::replace(&mut target.store, nothing) {
        target.store = Store::Emulated(Box::new(spec.clone()), OpenContent::File(file));
    }
    describe(&mut target.facts, spec, "file");
    Ok(target)
}

fn describe(facts: &mut TargetFacts, spec: &DeviceSpec, content: &'static str) {
    (facts.kind, facts.io, facts.sector_bytes) = ("emulated", "emulated", spec.sector_bytes());
    facts.emulated = Some(EmulatedFacts { device: spec.name().map(str::to_string), content });
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: &str = r#"{"kind":"fixed","capacity_bytes":1049000,"read_us":1,"write_us":1}"#;

    #[test]
    fn content_is_written_as_the_cell_says_it() {
        let read = |text: &str| serde_json::from_str::<EmulatedContent>(text);
        assert_eq!(read("\"none\"").unwrap(), EmulatedContent::None);
        assert_eq!(read("\"memory\"").unwrap(), EmulatedContent::Memory);
        assert_eq!(read(r#"{"file":"/x"}"#).unwrap(), EmulatedContent::File("/x".into()));
        assert!(read("\"disk\"").is_err());
    }

    #[test]
    fn size_and_sector_are_the_models() {
        let spec: DeviceSpec = serde_json::from_str(MODEL).unwrap();
        let intent = Intent { writes: true, destroy: &[], buffered: false };
        let target = open(&spec, &EmulatedContent::None, "members[0]", intent).unwrap();
        assert_eq!((target.facts.size_bytes, target.facts.sector_bytes), (1049000 / 512 * 512, 512));
        assert!(!target.needs_fill);
        let bad: DeviceSpec = serde_json::from_str(&MODEL.replace("1049000", "100")).unwrap();
        let error = open(&bad, &EmulatedContent::None, "members[3]", intent).unwrap_err();
        assert_eq!(error.key(), "members[3].device.capacity_bytes");
    }
}
