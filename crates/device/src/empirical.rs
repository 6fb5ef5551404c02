//! A device whose service times are drawn from measured quantiles.
//!
//! Purpose: replay the distribution that was measured on a device nobody has a model of, without its dependence on address
//! or history. Reference: inverse transform sampling, linear between the given quantiles.
//!
//! Invariants: the service time of the device's i-th operation is a function of (seed, i, kind), whatever is served when;
//! it lies between the first and the last quantile given.

use crate::error::whole_sectors;
use crate::fixed::{check_servers, default_sector_bytes, one};
use crate::service::Service;
use crate::{IdleMean, Provenance, SchedulerSpec, SpecError, ThrottleSpec};
use raidlab_types::number::saturating_u64;
use raidlab_types::{Duration, OpKind, Seed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Parameters of a device known by its distribution of service times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmpiricalSpec {
    /// What the device is called.
    pub name: Option<String>,
    /// What was measured, and how.
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
    /// Quantiles of the service time of reads: `[probability, us]`, from probability 0 to 1.
    pub read: Vec<(f64, f64)>,
    /// Quantiles of the service time of writes; also used for flushes and discards.
    pub write: Vec<(f64, f64)>,
    /// Operations served at a time.
    #[serde(default = "one")]
    pub servers: u32,
    /// Order of service.
    #[serde(default)]
    pub scheduler: SchedulerSpec,
}

impl EmpiricalSpec {
    /// Mean service time of the distribution given; its size is part of what was measured.
    pub(crate) fn idle_mean(&self, kind: OpKind) -> Result<IdleMean, SpecError> {
        let mean_ns = Quantiles::new(key(kind), self.quantiles(kind))?.mean_ns();
        Ok(IdleMean::still(Duration::from_ns(mean_ns), Duration::ZERO))
    }

    fn quantiles(&self, kind: OpKind) -> &[(f64, f64)] {
        match kind {
            OpKind::Read => &self.read,
            _ => &self.write,
        }
    }
}

fn key(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Read => "read",
        _ => "write",
    }
}

/// The compiled model.
#[derive(Debug, Clone)]
pub(crate) struct Empirical {
    pub capacity_sectors: u64,
    pub servers: usize,
    read: Quantiles,
    write: Quantiles,
    seed: Seed,
}

impl Empirical {
    pub(crate) fn new(spec: &EmpiricalSpec, seed: Seed) -> Result<Self, SpecError> {
        let capacity_sectors = whole_sectors(spec.capacity_bytes, spec.sector_bytes)?;
        Ok(Empirical {
            capacity_sectors,
            servers: check_servers(spec.servers)?,
            read: Quantiles::new("read", &spec.read)?,
            write: Quantiles::new("write", &spec.write)?,
            seed: seed.named("service"),
        })
    }

    /// The same device with draws of its own.
    pub(crate) fn twin(&self, seed: Seed) -> Self {
        Empirical { seed: seed.named("service"), ..self.clone() }
    }

    /// The service of the device's operation number `sequence`, all of it overhead.
    #[inline]
    pub(crate) fn serve(&self, kind: OpKind, sequence: u64) -> Service {
        let probability = self.seed.child(sequence).draws().unit();
        let quantiles = match kind {
            OpKind::Read => &self.read,
            _ => &self.write,
        };
        Service { overhead: quantiles.quantile_ns(probability), ..Service::default() }
    }

    /// The write of a pair after its read, operation number `sequence`: a second draw of the same number.
    pub(crate) fn serve_pair_write(&self, sequence: u64) -> Service {
        let mut draws = self.seed.child(sequence).draws();
        draws.next_u64();
        Service { overhead: self.write.quantile_ns(draws.unit()), ..Service::default() }
    }
}

/// An inverse distribution function, linear between points.
#[derive(Debug, Clone)]
struct Quantiles {
    /// (probability, ns), both from 0 and never falling.
    points: Vec<(f64, f64)>,
}

impl Quantiles {
    fn new(key: &str, points: &[(f64, f64)]) -> Result<Self, SpecError> {
        let ends = points.first().map(|p| p.0) == Some(0.0) && points.last().map(|p| p.0) == Some(1.0);
        if points.len() < 2 || !ends {
            return Err(SpecError::new(key, "needs [probability, us] points from probability 0 to 1"));
        }
        for (i, pair) in points.windows(2).enumerate() {
            let ((p, us), (next_p, next_us)) = (pair[0], pair[1]);
            let in_order = p < next_p && (0.0..=next_us).contains(&us) && next_us <= 60e6;
            if !in_order {
                let message =
                    format!("[{next_p}, {next_us}] after [{p}, {us}]: probabilities must rise, times not fall");
                return Err(SpecError::new(format!("{key}[{}]", i + 1), message));
            }
        }
        if points[points.len() - 1].1 < 0.001 {
            return Err(SpecError::new(key, "all times are 0; accepted: times of which the last is at least 0.001 us"));
        }
        Ok(Quantiles { points: points.iter().map(|&(p, us)| (p, us * 1e3)).collect() })
    }

    /// The time below which a share `probability` in `[0, 1)` lies.
    fn quantile_ns(&self, probability: f64) -> u64 {
        let above = self.points.partition_point(|point| point.0 <= probability);
        let ((p0, t0), (p1, t1)) = (self.points[above - 1], self.points[above]);
        saturating_u64(t0 + (t1 - t0) * (probability - p0) / (p1 - p0) + 0.5)
    }

    fn mean_ns(&self) -> u64 {
        let area = |pair: &[(f64, f64)]| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0;
        saturating_u64(self.points.windows(2).map(area).sum::<f64>().round())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> EmpiricalSpec {
        let text =
            r#"{"capacity_bytes": 1048576, "read": [[0, 50], [0.5, 100], [1, 1000]], "write": [[0, 20], [1, 20]]}"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn draws_follow_the_quantiles_and_repeat() {
        let model = Empirical::new(&spec(), Seed::new(1)).unwrap();
        let n = 40_000;
        let times: Vec<u64> = (0..n).map(|i| model.serve(OpKind::Read, i).total()).collect();
        let below = times.iter().filter(|&&t| t < 100_000).count() as f64 / n as f64;
        assert!((below - 0.5).abs() < 0.01, "{below}");
        assert!(times.iter().all(|t| (50_000..=1_000_000).contains(t)));
        let mean = times.iter().sum::<u64>() as f64 / n as f64;
        let expected = spec().idle_mean(OpKind::Read).unwrap().total().as_ns() as f64;
        assert_eq!(expected, 312_500.0);
        assert!((mean / expected - 1.0).abs() < 0.02, "{mean}");
        assert_eq!(model.serve(OpKind::Write, 7).total(), 20_000);
        assert_eq!(model.serve(OpKind::Read, 7), Empirical::new(&spec(), Seed::new(1)).unwrap().serve(OpKind::Read, 7));
    }

    #[test]
    fn disordered_quantiles_are_named() {
        let refused = |read: &[(f64, f64)]| {
            Empirical::new(&EmpiricalSpec { read: read.to_vec(), ..spec() }, Seed::new(1)).unwrap_err().key
        };
        assert_eq!(refused(&[(0.0, 1.0), (0.5, 0.5), (1.0, 2.0)]), "read[1]");
        assert_eq!(refused(&[(0.0, 1.0), (0.9, 2.0)]), "read");
        assert_eq!(refused(&[]), "read");
        assert_eq!(refused(&[(0.0, 1.0), (0.5, f64::NAN), (1.0, 2.0)]), "read[1]");
    }
}
