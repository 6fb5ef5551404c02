//! Where on the array a record lies.
//!
//! Purpose: the trace's volumes become the array's, bytes become sectors.
//!
//! Invariants:
//! - A request lies within its volume, or is an error.
//! - Nothing is moved or widened without being counted.

use super::{BeyondEnd, Names, OtherVolumes, Record, ReplayCounts, TraceSpec};
use raidlab_types::number::u32_from;
use raidlab_types::{Extent, Volume};

/// The longest request there is, as in every load.
const MOST_REQUEST_BYTES: u64 = 1 << 30;

/// Why a record cannot be offered, and what would be accepted.
pub(super) struct PlaceError {
    pub(super) message: String,
    pub(super) accepted: String,
}

/// Finds the place of records.
#[derive(Debug, Clone)]
pub(super) struct VolumeMap {
    spec: TraceSpec,
    volumes: Box<[Volume]>,
    sector_bytes: u64,
    sector_shift: u32,
    /// By number of the trace's volume.
    targets: Vec<VolumeChoice>,
}

/// What becomes of a volume of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VolumeChoice {
    /// No request of it has been looked at.
    Unmet,
    LeftOut,
    /// The array's volume.
    Volume(u32),
}

impl VolumeMap {
    pub(super) fn new(spec: &TraceSpec, volumes: &[Volume], sector_bytes: u32) -> VolumeMap {
        VolumeMap {
            spec: spec.clone(),
            volumes: volumes.into(),
            sector_bytes: u64::from(sector_bytes),
            sector_shift: sector_bytes.trailing_zeros(),
            targets: Vec::new(),
        }
    }

    /// What becomes of a volume, as far as it is known.
    #[inline]
    pub(super) fn known(&self, number: u32) -> VolumeChoice {
        self.targets.get(number as usize).copied().unwrap_or(VolumeChoice::Unmet)
    }

    /// The first request of a volume.
    #[cold]
    pub(super) fn meet(&mut self, number: u32, names: &Names) -> Result<VolumeChoice, PlaceError> {
        let target = self.target(number, names.name(number))?;
        if self.targets.len() <= number as usize {
            self.targets.resize(number as usize + 1, VolumeChoice::Unmet);
        }
        self.targets[number as usize] = target;
        Ok(target)
    }

    fn target(&self, number: u32, name: &str) -> Result<VolumeChoice, PlaceError> {
        let by_table = !self.spec.volumes.is_empty();
        let wanted = if by_table { self.spec.volumes.get(name).copied() } else { Some(number) };
        let found = wanted.filter(|&volume| (volume as usize) < self.volumes.len());
        if found.is_some() || self.spec.others == OtherVolumes::LeaveOut {
            return Ok(found.map_or(VolumeChoice::LeftOut, VolumeChoice::Volume));
        }
        let has = self.volumes.len();
        let message = match (wanted, by_table) {
            (None, _) => format!("the trace's volume '{name}' is not in the table of volumes"),
            (Some(_), false) => {
                format!("the trace's volume '{name}' is number {} of its volumes, the array has {has}", number + 1)
            }
            (Some(volume), true) => format!("volume {volume} for '{name}' is none of the array's {has}"),
        };
        let accepted = "volumes = { \"its name\" = volume of the array, from 0 }, or others = \"leave_out\"";
        Err(PlaceError { message, accepted: accepted.to_owned() })
    }

    /// The sectors of a record on a volume of the array.
    #[inline]
    pub(super) fn extent(&self, record: &Record, volume: u32, count: &mut ReplayCounts) -> Result<Extent, PlaceError> {
        let first = record.offset_bytes >> self.sector_shift;
        // The end is within 64 bits, and so is its sector.
        let last = (record.offset_bytes + (record.bytes - 1)) >> self.sector_shift;
        let mut extent = Extent::new(first, last - first + 1);
        if (record.offset_bytes | record.bytes) & (self.sector_bytes - 1) != 0 {
            count.rounded += 1;
        }
        let capacity = self.volumes[volume as usize].capacity_sectors;
        if extent.sectors > MOST_REQUEST_BYTES >> self.sector_shift {
            return Err(PlaceError {
                message: format!("a request of {} bytes", record.bytes),
                accepted: format!("at most {MOST_REQUEST_BYTES} bytes"),
            });
        }
        if extent.end() > capacity {
            extent = self.beyond(record, extent, volume)?;
            count.wrapped += 1;
        }
        Ok(extent)
    }

    #[cold]
    fn beyond(&self, record: &Record, extent: Extent, volume: u32) -> Result<Extent, PlaceError> {
        let capacity = self.volumes[volume as usize].capacity_sectors;
        let has = capacity * self.sector_bytes;
        let fits = extent.sectors <= capacity;
        if self.spec.beyond == BeyondEnd::Wrap && fits {
            let lba = extent.lba % capacity;
            return Ok(Extent::new(lba.min(capacity - extent.sectors), extent.sectors));
        }
        let wrap = if fits { "; beyond = \"wrap\" takes addresses modulo the volume" } else { "" };
        Err(PlaceError {
            message: format!(
                "{} bytes at {} lie beyond volume {volume} of the array, which has {has} bytes",
                record.bytes, record.offset_bytes
            ),
            accepted: format!("requests within {has} bytes, or a larger array{wrap}"),
        })
    }

    /// Volumes of the trace that were met, with those of the array.
    pub(super) fn met(&self, names: &Names) -> Vec<(String, Option<u32>)> {
        let row = |(number, &target): (usize, &VolumeChoice)| match target {
            VolumeChoice::Unmet => None,
            VolumeChoice::LeftOut => Some((names.name(u32_from(number)).to_owned(), None)),
            VolumeChoice::Volume(volume) => Some((names.name(u32_from(number)).to_owned(), Some(volume))),
        };
        self.targets.iter().enumerate().filter_map(row).collect()
    }
}
