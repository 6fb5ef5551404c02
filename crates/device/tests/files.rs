//! The device files that ship: they parse, they compile, and every parameter says where it comes from.

mod common;

use common::*;
use raidlab_device::{DeviceSpec, PairPricing};
use std::collections::BTreeSet;

const ALL: [&str; 12] = [
    AMDAHL,
    HDD_7200,
    HDD_7200_BARE,
    NEARLINE_4TB,
    NEARLINE_20TB,
    SAS_10K,
    LOW_LATENCY,
    FIXED,
    SSD_SATA,
    SSD_NVME,
    CLOUD_GP3,
    CLOUD_GP2,
];

/// Every parameter a file sets, a table of parameters by its own keys where provenance does so too.
fn parameters(text: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let table: toml::Table = toml::from_str(text).unwrap();
    let sourced: BTreeSet<String> = table["provenance"].as_table().unwrap().keys().cloned().collect();
    let about = ["kind", "name", "description", "provenance", "published", "power"];
    let mut set = BTreeSet::new();
    for (key, value) in table.iter().filter(|(key, _)| !about.contains(&key.as_str())) {
        match value.as_table() {
            Some(inner) if !sourced.contains(key) => set.extend(inner.keys().map(|k| format!("{key}.{k}"))),
            _ => _ = set.insert(key.clone()),
        }
    }
    (set, sourced)
}

#[test]
fn every_parameter_of_every_file_has_a_provenance() {
    for text in ALL {
        let spec = file(text);
        let (set, sourced) = parameters(text);
        assert_eq!(set, sourced, "{:?}", spec.name());
        assert!(spec.provenance().values().all(|p| !p.why.is_empty()));
        assert!(device(&spec, PairPricing::Queued).capacity_sectors() > 0);
    }
}

#[test]
fn a_file_survives_the_way_through_json() {
    for text in ALL {
        let spec = file(text);
        let back: DeviceSpec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
        assert_eq!(back, spec);
    }
}

#[test]
fn what_is_wrong_is_named_by_key() {
    let wrong = |from: &str, to: &str| {
        assert!(AMDAHL.contains(from), "{from}");
        let spec = file(&AMDAHL.replace(from, to));
        raidlab_device::Device::new(&spec, 4096, PairPricing::Queued, raidlab_types::Seed::new(1)).unwrap_err().key
    };
    assert_eq!(wrong("cylinders = 885", "cylinders = 0"), "zones[0].cylinders");
    assert_eq!(wrong("sectors_per_track = 10", "sectors_per_track = 70000"), "zones[0].sectors_per_track");
    assert_eq!(wrong("revolution_ms = 16.7", "revolution_ms = -1"), "revolution_ms");
    assert_eq!(wrong("revolution_ms = 16.7", "revolution_ms = 16.7\nrpm = 3600"), "revolution_ms");
    assert_eq!(wrong("revolution_ms = 16.7", "rpm = 0"), "rpm");
    assert_eq!(wrong("heads = 15", "heads = 0"), "heads");
    assert_eq!(wrong("track_gap_ms = 0.5", "track_gap_ms = 9.0"), "track_gap_ms");
    assert_eq!(wrong("track_skew = { ms = 0.0 }", "track_skew = { ms = -1.0 }"), "track_skew");
    assert_eq!(wrong("avg_ms = 15.0", "avg_ms = -9.0"), "seek.avg_ms");
    assert_eq!(wrong("sector_bytes = 4096", "sector_bytes = 4000"), "sector_bytes");
}
