//! What a flash drive is made of, counted in mapping units.
//!
//! Invariants: addresses are `u32`s; physical units are numbered block by block, and blocks die by die.

/// Numbers of everything. A *page* and a *block* are those of all planes of a die together: they are programmed and
/// erased as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlashGeometry {
    pub dies: u32,
    pub units_per_page: u32,
    pub units_per_block: u32,
    /// With the one that is kept beyond capacity and spare, for the FTL to work with.
    pub blocks_per_die: u32,
    /// Logical units for each die: what one holds where all hold the same.
    pub units_per_die: u32,
}

/// Stands for no unit and no block.
pub(crate) const NONE: u32 = u32::MAX;

impl FlashGeometry {
    pub(crate) fn logical_units(&self) -> u32 {
        self.dies * self.units_per_die
    }

    pub(crate) fn physical_units(&self) -> u64 {
        u64::from(self.dies) * u64::from(self.blocks_per_die) * u64::from(self.units_per_block)
    }

    /// The die of an address, where addresses belong to dies: groups of units, as many as a page holds, go round.
    #[inline]
    pub(crate) fn die_of_address(&self, unit: u32) -> u32 {
        unit / self.units_per_page % self.dies
    }

    /// The die that a physical unit lies on.
    #[inline]
    pub(crate) fn die_of(&self, physical: u32) -> u32 {
        physical / (self.blocks_per_die * self.units_per_block)
    }

    /// Valid units that a die may hold, so that it can always be cleaned: a block for spare and one to work with are left.
    pub(crate) fn most_held(&self) -> u32 {
        (self.blocks_per_die - 2) * self.units_per_block
    }

    /// Flash over user data, the block kept for the FTL's work not counted: what write amplification depends on.
    pub(crate) fn spare_factor(&self) -> f64 {
        f64::from(self.blocks_per_die - 1) * f64::from(self.units_per_block) / f64::from(self.units_per_die)
    }
}
