//! What a run leaves.

use super::{Observer, Sim};
use crate::result::{MemberResult, SimResult, StationResult};
use crate::station::Station;
use crate::walks::Walks;
use raidlab_device::Device;
use raidlab_load::Generator;
use raidlab_types::number::u32_from;

impl<L: Generator, O: Observer> Sim<'_, L, O> {
    pub(super) fn result(mut self, interrupted: bool) -> SimResult {
        let layout = self.array.layout();
        let (sector_bytes, user_sectors) = (layout.sector_bytes(), layout.user_sectors());
        let station = |s: &Station| StationResult {
            name: s.name.clone(),
            visits: s.visits,
            busy_ns: s.busy_ns(self.now),
            wait_ns: s.wait_ns,
            servers: s.servers(),
        };
        let now = self.now;
        let member = |(leaf, d): (usize, &mut Device)| MemberResult {
            leaf: u32_from(leaf),
            totals: *d.totals(),
            servers: d.servers(),
            flash: d.flash(now),
        };
        SimResult {
            members: self.devices.iter_mut().enumerate().map(member).collect(),
            stations: self.walks.iter().flat_map(Walks::stations).map(station).collect(),
            hold: self.load.hold(),
            backlog: self.load.backlog(),
            files: self.load.files().cloned(),
            replayed: self.load.replayed(),
            streams: self.load.streams(),
            recorder: self.load.recorder().clone(),
            sector_bytes,
            user_bytes: user_sectors * u64::from(sector_bytes),
            events: self.handled,
            interrupted,
        }
    }
}
