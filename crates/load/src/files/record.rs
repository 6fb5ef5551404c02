//! What is known of whole files besides their times: what they asked for, and how long each size took.

use super::access::AccessName;
use std::collections::BTreeMap;

/// Accesses of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccessTotals {
    /// How many were asked for.
    pub count: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Times they were found in the host's memory instead.
    pub found: u64,
    /// How many of them were answered, and in how long altogether.
    pub answered: u64,
    /// Their times from being asked for to being answered.
    pub time_ns: u64,
}

/// Files of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SizeTotals {
    /// How many were read.
    pub files: u64,
    /// Their times from the beginning to the end.
    pub time_ns: u128,
}

/// Counts of the measuring window.
#[derive(Debug, Clone, Default)]
pub struct FilesRecord {
    /// Files read.
    pub files: u64,
    /// Time of that until the inode was known.
    pub open_ns: u128,
    /// Time of that until the first cluster was taken in.
    pub first_byte_ns: u128,
    /// By size; only where sizes come from a table, so that they are few.
    pub by_size: BTreeMap<u64, SizeTotals>,
    accesses: [AccessTotals; AccessName::ALL.len()],
}

impl FilesRecord {
    /// Accesses of this name.
    pub fn accesses(&self, name: AccessName) -> &AccessTotals {
        &self.accesses[name as usize]
    }

    pub(super) fn accesses_mut(&mut self, name: AccessName) -> &mut AccessTotals {
        &mut self.accesses[name as usize]
    }
}
