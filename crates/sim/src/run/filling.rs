//! A warm-up that lasts until write caches are as full as the load keeps them.
//!
//! A drive that orders its writes takes them as fast as its bus while there is room, and as fast as its arm afterwards: what is
//! measured before is what an idle drive gives a burst. A cache of a thousand writes takes some ten thousand requests of an
//! array to fill, far more than queues take to be in their stride.
//!
//! Invariant: it ends, whatever the load: where a cache does not fill it has taken some times as much as it holds, and where
//! few writes come to a member, all members have had many operations.

use crate::config::SimConfig;
use raidlab_device::Device;
use raidlab_load::Limit;
use raidlab_types::number::u32_from;

/// A cache that has taken so many times what it holds, and was never full, has a load that it keeps up with.
const TIMES: u64 = 2;

/// Operations of all members at most, times what their caches hold.
const MOST_TIMES: u64 = 16;

/// Write caches that fill.
#[derive(Debug)]
pub(super) struct CacheFilling {
    /// Members that have one.
    members: Vec<u32>,
    most_operations: u64,
}

impl CacheFilling {
    /// None where nothing is to be waited for.
    pub(super) fn new(config: &SimConfig, devices: &[Device]) -> Option<CacheFilling> {
        let Limit { requests, duration_s } = config.limits.warmup;
        let warms_up = requests.is_some_and(|count| count > 0) || duration_s.is_some_and(|seconds| seconds > 0.0);
        let has_times = !config.events.is_empty() || config.rebuild.is_some();
        if !config.fill_caches || !warms_up || has_times || !config.workload.writes() {
            return None;
        }
        let is_there = |leaf: &u32| config.area_bytes.is_some() || !config.missing.contains(leaf);
        let room = |leaf: &u32| devices[*leaf as usize].write_cache_extents();
        let leaves = 0..u32_from(devices.len());
        let members: Vec<u32> = leaves.filter(is_there).filter(|leaf| room(leaf) > 0).collect();
        let most_operations = MOST_TIMES * members.iter().map(room).sum::<u64>();
        (!members.is_empty()).then_some(CacheFilling { members, most_operations })
    }

    /// Whether they are full, or as full as they will be.
    pub(super) fn is_over(&self, devices: &[Device]) -> bool {
        let mut members = self.members.iter().map(|&leaf| &devices[leaf as usize]);
        if members.clone().all(|device| device.has_filled_cache(TIMES)) {
            return true;
        }
        let operations = |device: &Device| device.totals().reads + device.totals().writes;
        members.by_ref().map(operations).sum::<u64>() >= self.most_operations
    }
}
