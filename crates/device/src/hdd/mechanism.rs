//! The moving parts: an arm with its heads over platters that never stop.
//!
//! Purpose: the service of one operation as overhead, then arm or head movement, then rotation, then transfer, which goes
//! on over tracks, cylinders and zones.
//!
//! Invariants:
//! - The angle at time t is `(t + phase) mod revolution`: all disks turn at exactly the speed of their spec, each from its
//!   own seeded angle.
//! - A transfer loses time at each track boundary only by the movement and the wait that the skew leaves. Both are the same
//!   at every boundary of a kind within a zone, hence computed once; a transfer costs time proportional to the zones
//!   it touches, not to the tracks.
//! - After an operation the arm stays over the last sector's track.
//!
//! Reference: C. Ruemmler and J. Wilkes, *An introduction to disk drive modeling*, IEEE Computer 27(3), 1994.

use super::geometry::{DiskGeometry, SectorPlace, Zone};
use super::seek::SeekTable;
use crate::service::Service;
use raidlab_types::number::u32_from;
use raidlab_types::{Instant, OpKind, Seed};
use std::sync::Arc;

/// Movement and wait where a run crosses to the next track, in ns.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Crossing {
    pub seek: u64,
    pub rotation: u64,
}

/// Steps to the next head and to the next cylinder.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Crossings {
    pub head: Crossing,
    pub cylinder: Crossing,
}

/// What is true of every disk of one model.
#[derive(Debug)]
pub(crate) struct Plant {
    pub geometry: DiskGeometry,
    pub seek: SeekTable,
    pub head_switch_ns: u64,
    pub read_overhead_ns: u64,
    pub write_overhead_ns: u64,
    pub write_settle_ns: u64,
    pub turnaround_ns: u64,
    /// For reads and for writes, by zone.
    pub steps: [Box<[Crossings]>; 2],
}

/// One disk.
#[derive(Debug, Clone)]
pub(crate) struct Hdd {
    plant: Arc<Plant>,
    /// Angle at time 0, in ns.
    phase: u64,
    cylinder: u32,
    head: u32,
}

/// How far the disk with this seed has turned at time 0.
fn initial_angle_ns(seed: Seed, revolution_ns: u64) -> u64 {
    seed.named("angle").draws().below(revolution_ns)
}

impl Hdd {
    pub(crate) fn new(plant: Plant, seed: Seed) -> Self {
        let phase = initial_angle_ns(seed, plant.geometry.revolution.divisor());
        Hdd { plant: Arc::new(plant), phase, cylinder: 0, head: 0 }
    }

    /// Another disk of the same model, its arm parked at cylinder 0; shares what is compiled.
    pub(crate) fn twin(&self, seed: Seed) -> Self {
        let phase = initial_angle_ns(seed, self.plant.geometry.revolution.divisor());
        Hdd { plant: Arc::clone(&self.plant), phase, cylinder: 0, head: 0 }
    }

    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.plant.geometry.capacity
    }

    /// Movement and wait of an operation that would begin at `at`.
    pub(crate) fn positioning_ns(&self, at: Instant, kind: OpKind, lba: u64) -> u64 {
        let (overhead, write) = match kind {
            OpKind::Read => (self.plant.read_overhead_ns, false),
            OpKind::Write | OpKind::WriteZeroes => (self.plant.write_overhead_ns, true),
            OpKind::Flush | OpKind::Discard => return 0,
        };
        let geometry = &self.plant.geometry;
        let place = geometry.place(lba);
        let seek = self.movement(&place, write);
        seek + self.rotation(at.as_ns() + overhead + seek, geometry.angle_ns(&place))
    }

    /// The service of an operation that starts at `start`.
    #[inline]
    pub(crate) fn serve(&mut self, start: Instant, kind: OpKind, lba: u64, sectors: u64) -> Service {
        let (overhead, write) = match kind {
            OpKind::Read => (self.plant.read_overhead_ns, false),
            OpKind::Write | OpKind::WriteZeroes => (self.plant.write_overhead_ns, true),
            // Nothing is cached, so nothing is left to do.
            OpKind::Flush | OpKind::Discard => {
                return Service { overhead: self.plant.write_overhead_ns, ..Service::default() };
            }
        };
        self.visit(start.as_ns(), overhead, write, lba, sectors)
    }

    /// The write of a pair directly after its read ended at `start`: the turnaround, then the same extent again.
    pub(crate) fn serve_pair_write(&mut self, start: Instant, lba: u64, sectors: u64) -> Service {
        self.visit(start.as_ns(), self.plant.turnaround_ns, true, lba, sectors)
    }

    #[inline(always)]
    fn visit(&mut self, start: u64, overhead: u64, write: bool, lba: u64, sectors: u64) -> Service {
        let plant = &*self.plant;
        let geometry = &plant.geometry;
        let place = geometry.place(lba);
        let seek = self.movement(&place, write);
        let rotation = self.rotation(start + overhead + seek, geometry.angle_ns(&place));
        let zone = &geometry.zones[place.zone];
        let end = place.sector + sectors;
        // What the common case needs stays in registers: no part of it is ever passed by reference.
        let (more, cylinder, head) = if end <= zone.per_track.divisor() {
            let transfer = zone.length_ns(end) - zone.length_ns(place.sector);
            (Service { transfer, ..Service::default() }, place.cylinder, place.head)
        } else {
            plant.transfer_on(place, write, sectors)
        };
        (self.cylinder, self.head) = (cylinder, head);
        Service { overhead, seek: seek + more.seek, rotation: rotation + more.rotation, transfer: more.transfer }
    }

    /// From `at` to when `angle` comes round.
    #[inline(always)]
    fn rotation(&self, at: u64, angle: u64) -> u64 {
        let revolution = &self.plant.geometry.revolution;
        let arrived = revolution.rem(at + self.phase);
        if angle >= arrived {
            angle - arrived
        } else {
            angle + revolution.divisor() - arrived
        }
    }

    /// Time to bring the right head over the track.
    #[inline(always)]
    fn movement(&self, place: &SectorPlace, write: bool) -> u64 {
        let plant = &*self.plant;
        let distance = self.cylinder.abs_diff(place.cylinder);
        if distance == 0 && self.head == place.head {
            return 0;
        }
        let moved = if distance == 0 { plant.head_switch_ns } else { u64::from(plant.seek.ns(distance)) };
        moved + if write { plant.write_settle_ns } else { 0 }
    }
}

impl Plant {
    /// The transfer of `sectors` sectors from `place` on, more than its track holds, with the movements and waits on its
    /// way; and the cylinder and head where it ends.
    #[inline(never)]
    fn transfer_on(&self, place: SectorPlace, write: bool, sectors: u64) -> (Service, u32, u32) {
        let mut sum = Service::default();
        let service = &mut sum;
        let (mut index, mut track) = (place.zone, place.track);
        let zone = &self.geometry.zones[index];
        let on_first = zone.per_track.divisor() - place.sector;
        service.transfer += self.geometry.usable_ns - zone.length_ns(place.sector);
        let mut left = sectors - on_first;
        loop {
            let zone = &self.geometry.zones[index];
            let steps = &self.steps[usize::from(write)][index];
            (track, left) = self.rest_of_zone(zone, steps, track, left, service);
            if left == 0 {
                let (cylinder, head) = self.geometry.heads.div_rem(track);
                return (sum, zone.first_cylinder + u32_from(cylinder), u32_from(head));
            }
            // The first track of the next zone follows like that of any next cylinder.
            let next = &self.geometry.zones[index + 1];
            take_steps(service, 1, &steps.cylinder);
            let here = left.min(next.per_track.divisor());
            service.transfer += next.length_ns(here);
            (index, track, left) = (index + 1, 0, left - here);
        }
    }

    /// The part of a transfer that lies on the tracks of `zone` after `track`; returns the last track and what is left.
    fn rest_of_zone(&self, zone: &Zone, steps: &Crossings, track: u64, left: u64, service: &mut Service) -> (u64, u64) {
        let (whole, tail) = zone.per_track.div_rem(left);
        let tracks = (whole + u64::from(tail > 0)).min(zone.tracks - 1 - track);
        let cylinders = self.geometry.heads.div_rem(track + tracks).0 - self.geometry.heads.div_rem(track).0;
        take_steps(service, cylinders, &steps.cylinder);
        take_steps(service, tracks - cylinders, &steps.head);
        let whole_here = whole.min(tracks);
        let tail_here = if whole_here < tracks { tail } else { 0 };
        service.transfer += whole_here * self.geometry.usable_ns + zone.length_ns(tail_here);
        (track + tracks, left - whole_here * zone.per_track.divisor() - tail_here)
    }
}

fn take_steps(service: &mut Service, count: u64, step: &Crossing) {
    service.seek += count * step.seek;
    service.rotation += count * step.rotation;
}
