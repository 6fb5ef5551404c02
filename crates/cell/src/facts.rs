//! What trees and devices say of themselves, without a run.

use raidlab_array::{Layout, Tree};
use raidlab_device::{Device, DeviceSpec, PairPricing};
use raidlab_types::number::f64_from;
use raidlab_types::{OpKind, Seed, SpecError};
use serde_json::{json, Value};

/// The layout of a tree over members that are all of `member_bytes`.
///
/// # Errors
/// Where the sector is 0, or the members are too small for the tree.
pub fn layout_of(tree: &Tree, member_bytes: u64, sector_bytes: u32) -> Result<Layout, SpecError> {
    if sector_bytes == 0 {
        return Err(SpecError::new("sector_bytes", "0; accepted: the bytes of a sector, such as 512 or 4096"));
    }
    let sizes = vec![member_bytes / u64::from(sector_bytes); tree.leaves()];
    Layout::new(tree, &sizes, sector_bytes)
}

/// What an array over members of a size offers.
///
/// # Errors
/// As [`layout_of`] has them.
pub fn tree_facts(tree: &Tree, member_bytes: u64, sector_bytes: u32) -> Result<Value, SpecError> {
    let layout = layout_of(tree, member_bytes, sector_bytes)?;
    let bytes = |sectors: u64| sectors * u64::from(sector_bytes);
    let user_bytes = bytes(layout.user_sectors());
    let volumes: Vec<u64> = layout.volumes().iter().map(|v| bytes(v.capacity_sectors)).collect();
    Ok(json!({
        "leaves": layout.leaves(),
        "volumes": volumes.len(),
        "volume_bytes": volumes,
        "user_bytes": user_bytes,
        "losses_borne": tree.losses_borne(),
        "tolerance": tree.tolerance(),
        "storage_efficiency": f64_from(user_bytes) / (f64_from(member_bytes) * f64_from(layout.leaves())),
        "full_stripe_bytes": bytes(layout.full_stripe_sectors(0)),
        "level": tree.level(),
    }))
}

/// What a device model says of itself: capacity, sector, idle means of a 4 KiB read.
///
/// # Errors
/// Where its parameters make no sense.
pub fn device_facts(spec: &DeviceSpec) -> Result<Value, SpecError> {
    let sector_bytes = spec.sector_bytes();
    let model = Device::new(spec, sector_bytes, PairPricing::Queued, Seed::new(0))?;
    let idle = spec.idle_mean(OpKind::Read, 4096)?;
    let mut facts = json!({
        "name": spec.name(),
        "sector_bytes": sector_bytes,
        "capacity_bytes": model.capacity_sectors() * u64::from(sector_bytes),
        "idle_overhead_ns": idle.overhead.as_ns(),
        "idle_seek_ns": idle.seek.as_ns(),
        "idle_rotation_ns": idle.rotation.as_ns(),
        "idle_transfer_ns": idle.transfer.as_ns(),
    });
    if let DeviceSpec::Ssd(ssd) = spec {
        facts["flash"] = json!({
            "spare_factor": ssd.spare_factor()?,
            "units_per_block": ssd.units_per_block()?,
            "mapping_bytes": ssd.mapping_bytes,
        });
    }
    Ok(facts)
}
