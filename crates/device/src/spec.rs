//! What a device file says: the kind of device and its parameters.
//!
//! Invariant: a spec that [`Device::new`](crate::Device::new) accepts prices every operation within its capacity; what is
//! wrong with one that it refuses is named by key.

use crate::{EmpiricalSpec, FixedSpec, HddSpec, IdleMean, RandomSpec, SpecError, SsdSpec, ThrottleSpec};
use raidlab_types::OpKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Parameters of one device, tagged by `kind`.
///
/// Each kind also takes `name`, `description` and a `[provenance]` table, which change nothing in the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum DeviceSpec {
    /// A rotating disk.
    Hdd(Box<HddSpec>),
    /// A constant service time on one or several servers.
    Fixed(FixedSpec),
    /// Service times drawn from measured quantiles.
    Empirical(EmpiricalSpec),
    /// Service times drawn from a distribution with a name.
    Random(RandomSpec),
    /// A flash drive.
    Ssd(Box<SsdSpec>),
}

type Common<'a> = (u32, Option<&'a str>, &'a BTreeMap<String, Provenance>, &'a [ThrottleSpec]);

impl DeviceSpec {
    /// Mean times of one operation of `bytes` bytes on an idle device, each sector equally likely to be asked for.
    pub fn idle_mean(&self, kind: OpKind, bytes: u64) -> Result<IdleMean, SpecError> {
        match self {
            DeviceSpec::Hdd(spec) => spec.idle_mean(kind, bytes),
            DeviceSpec::Fixed(spec) => spec.idle_mean(kind, bytes),
            DeviceSpec::Empirical(spec) => spec.idle_mean(kind, bytes),
            DeviceSpec::Random(spec) => spec.idle_mean(kind),
            DeviceSpec::Ssd(spec) => spec.idle_mean(kind, bytes),
        }
    }

    /// What every kind has: logical block, name, where its parameters come from, limits.
    fn common(&self) -> Common<'_> {
        match self {
            DeviceSpec::Hdd(spec) => (spec.sector_bytes, spec.name.as_deref(), &spec.provenance, &spec.throttle),
            DeviceSpec::Fixed(spec) => (spec.sector_bytes, spec.name.as_deref(), &spec.provenance, &spec.throttle),
            DeviceSpec::Empirical(spec) => (spec.sector_bytes, spec.name.as_deref(), &spec.provenance, &spec.throttle),
            DeviceSpec::Random(spec) => (spec.sector_bytes, spec.name.as_deref(), &spec.provenance, &spec.throttle),
            DeviceSpec::Ssd(spec) => (spec.sector_bytes, spec.name.as_deref(), &spec.provenance, &spec.throttle),
        }
    }

    /// The device's own logical block, in bytes.
    pub fn sector_bytes(&self) -> u32 {
        self.common().0
    }

    /// The device's own name, if its file gives one.
    pub fn name(&self) -> Option<&str> {
        self.common().1
    }

    /// Where its parameters come from, by parameter.
    pub fn provenance(&self) -> &BTreeMap<String, Provenance> {
        self.common().2
    }

    /// Whether it can be written; not where only its reads were measured.
    pub fn takes_writes(&self) -> bool {
        match self {
            DeviceSpec::Empirical(spec) => spec.takes_writes(),
            DeviceSpec::Hdd(spec) => !spec.reads_only,
            _ => true,
        }
    }

    /// Limits on the rate at which it takes operations.
    pub fn throttle(&self) -> &[ThrottleSpec] {
        self.common().3
    }
}

/// How a read-modify-write pair (a read and the write of the same extent, tied by `pair_with`) is priced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairPricing {
    /// Two visits, each in its turn.
    #[default]
    Queued,
    /// Two visits; the write is served before everything that waits, but for writes of earlier pairs. A write that is
    /// there at the very time at which a read of a pair ends goes before whatever would have been started then.
    Head,
    /// One visit: the device stays with the extent after the read, through the turnaround and until the write is on
    /// the medium. The write completes no earlier than that and than its own arrival, and costs nothing more. A
    /// pricing for simulation without content: a real device cannot write what it has not been given.
    Prepaid,
}

/// Where a parameter comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// How much trust it deserves.
    pub status: ProvenanceStatus,
    /// The source, or the reason.
    pub why: String,
}

/// How a parameter came to its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProvenanceStatus {
    /// Printed by a source.
    Published,
    /// Measured on a device of ours.
    Measured,
    /// Chosen so that the model reproduces printed or measured figures.
    Fitted,
    /// Plausible, unsupported.
    Assumed,
    /// Taken over from another device, as it is or scaled.
    Derived,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_selects_and_unknown_keys_are_refused() {
        let text = r#"{"kind": "fixed", "name": "x", "capacity_bytes": 1048576, "read_us": 100, "write_us": 50}"#;
        let spec: DeviceSpec = serde_json::from_str(text).unwrap();
        assert_eq!(spec.name(), Some("x"));
        let back: DeviceSpec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
        assert_eq!(back, spec);
        let error = serde_json::from_str::<DeviceSpec>(&text.replace("read_us", "red_us")).unwrap_err();
        assert!(error.to_string().contains("red_us"), "{error}");
        assert!(serde_json::from_str::<DeviceSpec>(r#"{"kind": "tape"}"#).is_err());
        assert_eq!(serde_json::from_str::<PairPricing>("\"prepaid\"").unwrap(), PairPricing::Prepaid);
    }
}
