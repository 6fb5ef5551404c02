//! Addresses and ranges, counted in sectors.

use serde::{Deserialize, Serialize};

/// Logical block address: a sector number within a volume, a node or a leaf.
pub type Lba = u64;

/// A non-empty run of sectors `[lba, lba + sectors)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Extent {
    /// First sector.
    pub lba: Lba,
    /// Number of sectors.
    pub sectors: u64,
}

impl Extent {
    /// The run of `sectors` sectors that starts at `lba`.
    #[inline]
    pub const fn new(lba: Lba, sectors: u64) -> Self {
        Extent { lba, sectors }
    }

    /// One past the last sector.
    #[inline]
    pub const fn end(self) -> Lba {
        self.lba + self.sectors
    }

    /// Whether the two runs share a sector.
    #[inline]
    pub const fn overlaps(self, other: Extent) -> bool {
        self.lba < other.end() && other.lba < self.end()
    }

    /// Whether `other` lies within this run.
    #[inline]
    pub const fn contains(self, other: Extent) -> bool {
        self.lba <= other.lba && other.end() <= self.end()
    }
}

impl std::fmt::Display for Extent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}, {})", self.lba, self.end())
    }
}

/// A volume that requests may name: the whole array, or a child of an `independent` root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Volume {
    /// Its length, as users see it.
    pub capacity_sectors: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_strict_at_the_ends() {
        let a = Extent::new(4, 4);
        assert!(!a.overlaps(Extent::new(0, 4)));
        assert!(!a.overlaps(Extent::new(8, 1)));
        assert!(a.overlaps(Extent::new(7, 9)));
        assert!(a.contains(Extent::new(5, 3)) && !a.contains(Extent::new(5, 4)));
    }
}
