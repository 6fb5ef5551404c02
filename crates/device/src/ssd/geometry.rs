//! What a flash drive is made of, counted in mapping units.
//!
//! Invariants: addresses are `u32`s; a logical unit belongs to one die for good, and neighbours of a page belong to the
//! same one, so that no die ever holds more than its share, whatever is written.

/// Numbers of everything. A *page* and a *block* are those of all planes of a die together: they are programmed and
/// erased as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub dies: u32,
    pub units_per_page: u32,
    pub units_per_block: u32,
    /// With the one that is kept beyond capacity and spare, for the FTL to work with.
    pub blocks_per_die: u32,
    /// Logical units that a die holds.
    pub units_per_die: u32,
}

/// Stands for no unit and no block.
pub(crate) const NONE: u32 = u32::MAX;

impl Geometry {
    pub fn logical_units(&self) -> u32 {
        self.dies * self.units_per_die
    }

    pub fn physical_units(&self) -> u64 {
        u64::from(self.dies) * u64::from(self.blocks_per_die) * u64::from(self.units_per_block)
    }

    /// The die of a group of neighbouring logical units, as many as a page holds.
    #[inline]
    pub fn die_of_group(&self, group: u32) -> u32 {
        group % self.dies
    }

    /// The die of a logical unit.
    #[inline]
    pub fn die_of(&self, unit: u32) -> u32 {
        self.die_of_group(unit / self.units_per_page)
    }

    /// Flash over user data, the block kept for the FTL's work not counted: what write amplification depends on.
    pub fn spare_factor(&self) -> f64 {
        f64::from(self.blocks_per_die - 1) * f64::from(self.units_per_block) / f64::from(self.units_per_die)
    }
}
