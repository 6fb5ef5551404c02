//! What may be said of a cache.

use crate::path::VisitSpec;
use raidlab_types::SpecError;
use serde::{Deserialize, Serialize};

/// When writes that were answered early are destaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DestageWhen {
    /// A stripe as soon as it is whole, and parts of one when room is needed.
    #[default]
    StripeIsWhole,
    /// Nothing before room is needed.
    RoomIsNeeded,
}

/// Caches above the array, one a volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// The volumes that have one; absent: all.
    pub only: Option<Vec<u32>>,
    /// The least that is fetched; a whole number of sectors.
    #[serde(rename = "line")]
    pub line_bytes: u64,
    /// The most that is fetched at once; a whole number of lines.
    #[serde(rename = "fetch")]
    pub fetch_bytes: u64,
    /// Room for what was read or destaged.
    #[serde(rename = "read_room")]
    pub read_room_bytes: u64,
    /// How far beyond a sequential read is fetched; 0: nothing is.
    #[serde(rename = "read_ahead", default)]
    pub read_ahead_bytes: u64,
    /// The longest sequential read that has anything fetched ahead; absent: any has.
    #[serde(rename = "read_ahead_up_to", default)]
    pub read_ahead_up_to_bytes: Option<u64>,
    /// The longest write that is answered before it is on the members; 0: none is.
    #[serde(rename = "write_back_up_to", default)]
    pub write_back_up_to_bytes: u64,
    /// Room for what is not yet on the members.
    #[serde(rename = "dirty_room")]
    pub dirty_room_bytes: u64,
    /// When writes that were answered early are destaged.
    #[serde(default)]
    pub destage_when: DestageWhen,
    /// How many stripes are destaged at a time.
    #[serde(default = "one")]
    pub destages: u32,
    /// What a write pays that is answered before it is on the members, such as its copy in another controller.
    #[serde(default)]
    pub copy_path: Vec<VisitSpec>,
}

fn one() -> u32 {
    1
}

impl CacheSpec {
    /// Whether a volume has this cache.
    pub(crate) fn is_of(&self, volume: u32) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&volume))
    }

    /// Checks the sizes against one another.
    pub(crate) fn check(&self, key: &str, sector_bytes: u64) -> Result<(), SpecError> {
        let multiple = |name: &str, value: u64, of: u64| match value > 0 && value.is_multiple_of(of) {
            true => Ok(()),
            false => Err(SpecError::new(format!("{key}.{name}"), format!("{value}; accepted: a multiple of {of}"))),
        };
        multiple("line", self.line_bytes, sector_bytes)?;
        multiple("fetch", self.fetch_bytes, self.line_bytes)?;
        for (name, value) in [("dirty_room", self.dirty_room_bytes), ("read_room", self.read_room_bytes)] {
            if value == 0 {
                return Err(SpecError::new(format!("{key}.{name}"), "0; accepted: at least 1"));
            }
        }
        match self.destages {
            0 => Err(SpecError::new(format!("{key}.destages"), "0; accepted: at least 1")),
            _ => Ok(()),
        }
    }
}
