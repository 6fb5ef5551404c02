//! A device whose service time is a constant, plus an optional cost per byte, on one or several parallel servers.
//!
//! Purpose: solid-state devices to a first approximation, null devices, and tests whose answers can be worked out by hand.
//! Invariant: service depends on kind and size alone, never on address or time.

use crate::error::{us_to_ns, whole_sectors, within};
use crate::service::Service;
use crate::{IdleMean, Provenance, SchedulerSpec, SpecError, ThrottleSpec};
use raidlab_types::number::{f64_from, saturating_u64};
use raidlab_types::{Duration, OpKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Longest constant accepted, in microseconds: a minute.
pub(crate) const MAX_US: f64 = 60e6;

/// Parameters of a device with constant service time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedSpec {
    /// What the device is called.
    pub name: Option<String>,
    /// What it stands for.
    pub description: Option<String>,
    /// Where each parameter comes from.
    #[serde(default)]
    pub provenance: BTreeMap<String, Provenance>,
    /// Limits on the rate at which it takes operations.
    #[serde(default)]
    pub throttle: Vec<ThrottleSpec>,
    /// Capacity in bytes; what does not fill a sector is not used.
    pub capacity_bytes: u64,
    /// Logical block, in bytes.
    #[serde(default = "default_sector_bytes")]
    pub sector_bytes: u32,
    /// Service time of a read, in us.
    pub read_us: f64,
    /// Service time of a write, in us; also of a flush and a discard.
    pub write_us: f64,
    /// Further service time for each byte read, in ns.
    #[serde(default)]
    pub read_ns_per_byte: f64,
    /// Further service time for each byte written, in ns.
    #[serde(default)]
    pub write_ns_per_byte: f64,
    /// Operations served at a time; each takes the full service time.
    #[serde(default = "one")]
    pub servers: u32,
    /// Order of service.
    #[serde(default)]
    pub scheduler: SchedulerSpec,
}

pub(crate) fn default_sector_bytes() -> u32 {
    512
}

pub(crate) fn one() -> u32 {
    1
}

/// Refuses more servers than any calendar should hold.
pub(crate) fn check_servers(servers: u32) -> Result<usize, SpecError> {
    Ok(within("servers", servers, 1..=4096, "")? as usize)
}

impl FixedSpec {
    /// Mean times of an operation of `bytes` bytes.
    pub(crate) fn idle_mean(&self, kind: OpKind, bytes: u64) -> Result<IdleMean, SpecError> {
        let model = Fixed::new(self)?;
        let service = model.serve(kind, bytes.div_ceil(u64::from(self.sector_bytes)));
        Ok(IdleMean::still(Duration::from_ns(service.overhead), Duration::from_ns(service.transfer)))
    }
}

/// The compiled model.
#[derive(Debug, Clone)]
pub(crate) struct Fixed {
    pub capacity_sectors: u64,
    pub servers: usize,
    read_ns: u64,
    write_ns: u64,
    read_ns_per_sector: f64,
    write_ns_per_sector: f64,
}

impl Fixed {
    pub(crate) fn new(spec: &FixedSpec) -> Result<Self, SpecError> {
        let capacity_sectors = whole_sectors(spec.capacity_bytes, spec.sector_bytes)?;
        let rate = |key: &str, ns: f64| match (0.0..=1e6).contains(&ns) {
            true => Ok(ns * f64::from(spec.sector_bytes)),
            false => Err(SpecError::new(key, format!("{ns} ns must lie between 0 and 1000000 ns a byte"))),
        };
        let model = Fixed {
            capacity_sectors,
            servers: check_servers(spec.servers)?,
            read_ns: us_to_ns("read_us", spec.read_us, 0.0..=MAX_US)?,
            write_ns: us_to_ns("write_us", spec.write_us, 0.0..=MAX_US)?,
            read_ns_per_sector: rate("read_ns_per_byte", spec.read_ns_per_byte)?,
            write_ns_per_sector: rate("write_ns_per_byte", spec.write_ns_per_byte)?,
        };
        for (key, kind, us) in [("read_us", OpKind::Read, spec.read_us), ("write_us", OpKind::Write, spec.write_us)] {
            // Time would stand still, and a throughput would be a number divided by nothing.
            if model.serve(kind, 1).total() == 0 {
                let message = format!("{us} us and next to nothing a byte; accepted: at least 0.001 us");
                return Err(SpecError::new(key, message));
            }
        }
        Ok(model)
    }

    /// The service of an operation of `sectors` device sectors: the constant is overhead, the cost of bytes transfer.
    #[inline]
    pub(crate) fn serve(&self, kind: OpKind, sectors: u64) -> Service {
        let (overhead, per_sector) = match kind {
            OpKind::Read => (self.read_ns, self.read_ns_per_sector),
            OpKind::Write | OpKind::WriteZeroes => (self.write_ns, self.write_ns_per_sector),
            OpKind::Flush | OpKind::Discard => (self.write_ns, 0.0),
        };
        Service { overhead, transfer: saturating_u64(f64_from(sectors) * per_sector + 0.5), ..Service::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn spec(text: &str) -> FixedSpec {
        let head = r#"{"capacity_bytes": 1000000, "read_us": 100, "write_us": 20.5"#;
        serde_json::from_str(&format!("{head}{text}}}")).unwrap()
    }

    #[test]
    fn constant_and_per_byte() {
        let model = Fixed::new(&spec(r#", "read_ns_per_byte": 0.5"#)).unwrap();
        assert_eq!(model.capacity_sectors, 1953);
        assert_eq!(model.serve(OpKind::Read, 8), Service { overhead: 100_000, transfer: 2048, ..Service::default() });
        assert_eq!(model.serve(OpKind::WriteZeroes, 8).total(), 20_500);
        assert_eq!(model.serve(OpKind::Flush, 1).total(), 20_500);
        let mean = spec(r#", "read_ns_per_byte": 0.5"#).idle_mean(OpKind::Read, 4096).unwrap();
        assert_eq!(mean.total().as_ns(), 102_048);
    }

    #[test]
    fn bad_parameters_are_named() {
        let key = |text: &str| Fixed::new(&spec(text)).unwrap_err().key;
        assert_eq!(key(r#", "servers": 0"#), "servers");
        assert_eq!(key(r#", "sector_bytes": 1000"#), "sector_bytes");
        assert_eq!(key(r#", "write_ns_per_byte": -1"#), "write_ns_per_byte");
        let instant = FixedSpec { read_us: 0.0, ..spec("") };
        assert_eq!(Fixed::new(&instant).unwrap_err().key, "read_us");
        let instant = FixedSpec { write_us: 0.0001, ..spec("") };
        assert_eq!(Fixed::new(&instant).unwrap_err().key, "write_us");
        assert!(Fixed::new(&FixedSpec { read_us: 0.0, read_ns_per_byte: 1.0, ..spec("") }).is_ok());
        let tiny = FixedSpec { capacity_bytes: 511, ..spec("") };
        assert_eq!(Fixed::new(&tiny).unwrap_err().key, "capacity_bytes");
    }
}
