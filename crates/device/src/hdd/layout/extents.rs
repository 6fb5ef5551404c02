//! A map of extents, as a tool reads it from a disk, written out.
//!
//! The angle of a track grows from the first track of its band, in order of address, by the track skew at each change of head
//! and by the cylinder skew at each change of cylinder.
//!
//! Invariant: a track that is met again (behind a remapped sector, say) keeps its angle.
//!
//! Reference: `layout_g2` of the diskmodel library of DiskSim 4.0.

use super::{SectorTable, TableBuilder};
use crate::SpecError;

/// A band, checked for itself; angles in 2^-20 ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExtentBand {
    pub first_cylinder: u32,
    pub last_cylinder: u32,
    pub sectors_per_track: u32,
    pub start_fixed: u64,
    pub track_skew_fixed: u64,
    pub cylinder_skew_fixed: u64,
}

/// Writes a map out. Each extent is (first address, cylinder, head, first sector, sectors).
pub(crate) fn build(
    bands: &[ExtentBand],
    extents: &[(u64, u32, u32, u32, u64)],
    heads: u32,
    revolution_ns: u64,
    cylinders: Option<u32>,
) -> Result<SectorTable, SpecError> {
    let mut builder = TableBuilder::new(revolution_ns);
    // Angle of sector 0 of each track met so far.
    let mut angles: Vec<Option<u128>> = Vec::new();
    let mut before: Option<(usize, u32, u32)> = None;
    let mut last_fixed = 0u128;
    for (i, &(lba, cylinder, head, sector, sectors)) in extents.iter().enumerate() {
        let wrong = |message: String| SpecError::new(format!("layout.extents[{i}]"), message);
        if lba != builder.next() {
            return Err(wrong(format!("begins at {lba}; the address that follows is {}", builder.next())));
        }
        let found = bands.iter().position(|band| (band.first_cylinder..=band.last_cylinder).contains(&cylinder));
        let band_index = found.ok_or_else(|| wrong(format!("cylinder {cylinder} lies in no band")))?;
        let band = &bands[band_index];
        if head >= heads || sectors == 0 || u64::from(sector) + sectors > u64::from(band.sectors_per_track) {
            let message = format!(
                "head {head}, sectors {sector} to {}; accepted: heads below {heads}, {} sectors a track",
                u64::from(sector) + sectors,
                band.sectors_per_track
            );
            return Err(wrong(message));
        }
        let track = cylinder as usize * heads as usize + head as usize;
        if track >= angles.len() {
            angles.resize(track + 1, None);
        }
        let angle_fixed = *angles[track].get_or_insert_with(|| {
            last_fixed = match before {
                Some((same, c, _)) if same == band_index && c != cylinder => {
                    last_fixed + u128::from(band.cylinder_skew_fixed)
                }
                Some((same, _, _)) if same == band_index => last_fixed + u128::from(band.track_skew_fixed),
                _ => u128::from(band.start_fixed),
            };
            before = Some((band_index, cylinder, head));
            last_fixed
        });
        let length = builder.length(band.sectors_per_track, revolution_ns);
        let offset = u128::from(sector) * u128::from(builder.length_fixed(length));
        builder.push(sectors, (cylinder, head), angle_fixed + offset, length)?;
    }
    builder.finish(cylinders)
}
