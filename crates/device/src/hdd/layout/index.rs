//! An index of repeated patterns, written out.
//!
//! A node is a list of entries. An entry lays its child, another node or a track, down again and again: each time some
//! addresses, cylinders and degrees further. The addresses of the index are those of the disk plus what slips left out.
//!
//! Invariants: the depth of nodes is bounded, for a node may only name earlier ones; every address is found exactly once.
//!
//! Reference: `layout_g4` of the diskmodel library of DiskSim 4.0.

use super::{SectorTable, TableBuilder, FRACTION};
use crate::hdd::layout_spec::{ChildSpec, NodeSpec};
use crate::SpecError;
use raidlab_types::number::{f64_from, saturating_u128};

/// What a device file says of an index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Index<'a> {
    pub sectors: u64,
    pub tracks: &'a [(u32, u32, u32)],
    pub nodes: &'a [Vec<NodeSpec>],
    pub slips: &'a [(u64, i64)],
    pub remaps: &'a [(u64, u64, u32, u32, u32, u32)],
    pub heads: u32,
    pub revolution_ns: u64,
}

/// Consecutive positions of the index on one track.
#[derive(Debug, Clone, Copy)]
struct TrackRun {
    position: u64,
    sectors: u64,
    cylinder: u32,
    head: u32,
    angle_fixed: u128,
    sectors_per_track: u32,
}

/// Where a node is laid down.
#[derive(Debug, Clone, Copy)]
struct NodeOrigin {
    position: u64,
    /// One past the last position that may be used.
    end: u64,
    cylinder: i64,
    angle: f64,
}

impl Index<'_> {
    /// Writes the index out.
    pub(crate) fn build(&self, cylinders: Option<u32>) -> Result<SectorTable, SpecError> {
        self.check()?;
        let mut pieces = Vec::new();
        let origin = NodeOrigin { position: 0, end: u64::MAX, cylinder: 0, angle: 0.0 };
        self.lay(self.nodes.len() - 1, origin, &mut pieces)?;
        pieces.sort_by_key(|piece| piece.position);
        let mut builder = TableBuilder::new(self.revolution_ns);
        let mut remaps = self.remaps.to_vec();
        remaps.sort_unstable_by_key(|remap| remap.0);
        for stay in self.runs_of_addresses()? {
            self.write(stay, &pieces, &remaps, &mut builder)?;
        }
        builder.finish(cylinders)
    }

    fn check(&self) -> Result<(), SpecError> {
        let wrong = |key: String, message: String| Err(SpecError::new(key, message));
        if self.nodes.is_empty() || self.sectors == 0 {
            return wrong("layout.nodes".into(), "an index needs a node and at least one sector".into());
        }
        for (i, &(low, high, per_track)) in self.tracks.iter().enumerate() {
            if low > high || high >= per_track || per_track > 65_536 {
                let message = format!("[{low}, {high}, {per_track}]: first, last and number of a track's sectors");
                return wrong(format!("layout.tracks[{i}]"), message);
            }
        }
        for (n, node) in self.nodes.iter().enumerate() {
            for (e, entry) in node.iter().enumerate() {
                let key = format!("layout.nodes[{n}][{e}]");
                let known = match entry.child {
                    // Earlier ones only: a circle would never end.
                    ChildSpec::Node(child) => (child as usize) < n,
                    ChildSpec::Track { track, head } => (track as usize) < self.tracks.len() && head < self.heads,
                };
                if !known {
                    return wrong(key, "its child is no earlier node, track or head".into());
                }
                let finite = entry.angle.is_finite() && entry.turn.is_finite();
                if entry.sectors == 0 || entry.run_sectors == 0 || !finite {
                    return wrong(key, "sectors, run_sectors and angles must be above 0 and finite".into());
                }
            }
        }
        Ok(())
    }

    /// Lays a node down; the pieces come in no particular order.
    fn lay(&self, node: usize, at: NodeOrigin, pieces: &mut Vec<TrackRun>) -> Result<(), SpecError> {
        for entry in &self.nodes[node] {
            let mut done = 0;
            let mut repetition = 0i64;
            while done < entry.run_sectors && at.position + entry.lba + done < at.end {
                let position = at.position + entry.lba + done;
                let here = entry.sectors.min(entry.run_sectors - done);
                let step = if entry.run_cylinders < 0 { -repetition } else { repetition };
                let origin = NodeOrigin {
                    position,
                    end: at.end.min(position.saturating_add(here)),
                    cylinder: at.cylinder + entry.cylinder + step * entry.cylinders,
                    angle: at.angle + entry.angle + f64_from(repetition) * entry.turn,
                };
                match entry.child {
                    ChildSpec::Node(child) => self.lay(child as usize, origin, pieces)?,
                    ChildSpec::Track { track, head } => pieces.push(self.piece(track, head, origin)?),
                }
                done += entry.sectors;
                repetition += 1;
            }
        }
        Ok(())
    }

    fn piece(&self, track: u32, head: u32, at: NodeOrigin) -> Result<TrackRun, SpecError> {
        let (low, high, per_track) = self.tracks[track as usize];
        let cylinder = u32::try_from(at.cylinder).ok().filter(|&cylinder| cylinder < 1 << 24);
        let cylinder = cylinder.ok_or_else(|| {
            SpecError::new("layout.nodes", format!("address {} lies on cylinder {}", at.position, at.cylinder))
        })?;
        let angle = at.angle - libm::floor(at.angle);
        let angle_fixed = saturating_u128(angle * f64_from(self.revolution_ns << FRACTION));
        let sectors = u64::from(high - low + 1);
        let sectors = sectors.min(at.end - at.position);
        Ok(TrackRun { position: at.position, sectors, cylinder, head, angle_fixed, sectors_per_track: per_track })
    }

    /// The disk's addresses as runs of (address, sectors, position in the index).
    fn runs_of_addresses(&self) -> Result<Vec<(u64, u64, u64)>, SpecError> {
        let mut runs = Vec::with_capacity(self.slips.len() + 1);
        let (mut lba, mut shift) = (0u64, 0i64);
        for (i, &(position, count)) in self.slips.iter().enumerate() {
            // The slip comes into force at the first address that would be found at its position or beyond.
            let until = position.saturating_add_signed(-shift).min(self.sectors);
            if until > lba {
                runs.push((lba, until - lba, lba.saturating_add_signed(shift)));
                lba = until;
            }
            shift += count;
            if shift < 0 && lba < shift.unsigned_abs() {
                return Err(SpecError::new(format!("layout.slips[{i}]"), "gives back more than was left out"));
            }
        }
        if self.sectors > lba {
            runs.push((lba, self.sectors - lba, lba.saturating_add_signed(shift)));
        }
        Ok(runs)
    }

    fn write(
        &self,
        (first, sectors, position): (u64, u64, u64),
        pieces: &[TrackRun],
        remaps: &[(u64, u64, u32, u32, u32, u32)],
        builder: &mut TableBuilder,
    ) -> Result<(), SpecError> {
        let (mut lba, end) = (first, first + sectors);
        while lba < end {
            let next = remaps.partition_point(|remap| remap.0 + remap.1 <= lba);
            if let Some(&(from, count, cylinder, head, sector, per_track)) = remaps.get(next) {
                if from <= lba {
                    let here = (from + count).min(end) - lba;
                    let angle = track_angle(cylinder, head, pieces);
                    let length = builder.length(per_track, self.revolution_ns);
                    let offset = u128::from(u64::from(sector) + lba - from) * u128::from(builder.length_fixed(length));
                    builder.push(here, (cylinder, head), angle + offset, length)?;
                    lba += here;
                    continue;
                }
            }
            let stop = remaps.get(next).map_or(end, |remap| remap.0.min(end));
            let at = position + (lba - first);
            let found = pieces.partition_point(|piece| piece.position <= at).checked_sub(1).map(|i| &pieces[i]);
            let piece = found.filter(|piece| at < piece.position + piece.sectors).ok_or_else(|| {
                SpecError::new("layout.nodes", format!("no entry covers position {at} of the index (address {lba})"))
            })?;
            let skipped = at - piece.position;
            let here = (piece.sectors - skipped).min(stop - lba);
            let length = builder.length(piece.sectors_per_track, self.revolution_ns);
            let offset = u128::from(skipped) * u128::from(builder.length_fixed(length));
            builder.push(here, (piece.cylinder, piece.head), piece.angle_fixed + offset, length)?;
            lba += here;
        }
        Ok(())
    }
}

/// Angle of sector 0 of a track that something is remapped to; a track of spares alone has none in the index: any is as good.
fn track_angle(cylinder: u32, head: u32, pieces: &[TrackRun]) -> u128 {
    let found = pieces.iter().find(|piece| (piece.cylinder, piece.head) == (cylinder, head));
    found.map_or(0, |piece| piece.angle_fixed)
}
