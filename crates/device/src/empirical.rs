//! A device whose service times are drawn from measured quantiles.
//!
//! Purpose: replay what was measured on a device nobody has a model of. Either one distribution of all reads and one of all
//! writes, or a table of them by situation (`table.rs`). Reference: inverse transform sampling, linear between the given
//! quantiles.
//!
//! Invariants: the service time of the device's i-th operation is a function of (seed, i, situation), whatever is served
//! when; without a table it lies between the first and the last quantile given.

use crate::error::whole_sectors;
use crate::fixed::{check_servers, default_sector_bytes, one};
use crate::service::{Command, Service};
use crate::table::{MeasuredSpec, SituationTable};
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
    /// Quantiles of the service time of reads: `[probability, us]`, from probability 0 to 1. None with `measured`.
    #[serde(default)]
    pub read: Vec<(f64, f64)>,
    /// Quantiles of the service time of writes; also used for flushes and discards. None with `measured`.
    #[serde(default)]
    pub write: Vec<(f64, f64)>,
    /// The probabilities of the quantiles in `measured`, from 0 to 1.
    #[serde(default)]
    pub probabilities: Vec<f64>,
    /// Times by situation, in place of `read` and `write`. A device of which no writes are given takes none.
    #[serde(default)]
    pub measured: Vec<MeasuredSpec>,
    /// Operations served at a time.
    #[serde(default = "one")]
    pub servers: u32,
    /// Order of service.
    #[serde(default)]
    pub scheduler: SchedulerSpec,
}

impl EmpiricalSpec {
    /// Mean service time of an operation of `bytes` bytes at a random place when nothing else is there; without a table
    /// size is part of what was measured.
    pub(crate) fn idle_mean(&self, kind: OpKind, bytes: u64) -> Result<IdleMean, SpecError> {
        let mean_ns = match self.table()? {
            Some(table) => table.idle_mean_ns(kind, bytes, self.capacity_bytes),
            None => Quantiles::new(key(kind), self.quantiles(kind))?.mean_ns(),
        };
        Ok(IdleMean::still(Duration::from_ns(mean_ns), Duration::ZERO))
    }

    /// Whether it says how long writes take.
    pub(crate) fn takes_writes(&self) -> bool {
        self.measured.is_empty() || self.measured.iter().any(MeasuredSpec::is_write)
    }

    fn table(&self) -> Result<Option<SituationTable>, SpecError> {
        if self.measured.is_empty() {
            return Ok(None);
        }
        for (key, quantiles) in [("read", &self.read), ("write", &self.write)] {
            if !quantiles.is_empty() {
                return Err(SpecError::new(key, "stands beside [[measured]]; accepted: one of the two"));
            }
        }
        SituationTable::new(&self.probabilities, &self.measured).map(Some)
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
    times: DrawnTimes,
    sector_bytes: u32,
    seed: Seed,
}

/// What times are drawn from; in boxes, for no device is to be larger for it.
#[derive(Debug, Clone)]
enum DrawnTimes {
    /// Of reads and of writes.
    Plain(Box<[Quantiles; 2]>),
    Situations(Box<SituationTable>),
}

impl Empirical {
    pub(crate) fn new(spec: &EmpiricalSpec, seed: Seed) -> Result<Self, SpecError> {
        let capacity_sectors = whole_sectors(spec.capacity_bytes, spec.sector_bytes)?;
        let times = match spec.table()? {
            Some(table) => DrawnTimes::Situations(Box::new(table)),
            None => DrawnTimes::Plain(Box::new([
                Quantiles::new("read", &spec.read)?,
                Quantiles::new("write", &spec.write)?,
            ])),
        };
        let (servers, sector_bytes) = (check_servers(spec.servers)?, spec.sector_bytes);
        Ok(Empirical { capacity_sectors, servers, times, sector_bytes, seed: seed.named("service") })
    }

    /// The same device with draws of its own.
    pub(crate) fn twin(&self, seed: Seed) -> Self {
        let times = match &self.times {
            DrawnTimes::Plain(quantiles) => DrawnTimes::Plain(quantiles.clone()),
            DrawnTimes::Situations(table) => DrawnTimes::Situations(Box::new(table.twin())),
        };
        Empirical { seed: seed.named("service"), times, ..*self }
    }

    /// The service of the device's operation number `sequence`, all of it overhead; with it `present` are there.
    #[inline]
    pub(crate) fn serve(&mut self, command: &Command, sequence: u64, present: usize) -> Service {
        let probability = self.seed.child(sequence).draws().unit();
        self.draw(command, probability, present)
    }

    /// The write of a pair after its read, operation number `sequence`: a second draw of the same number.
    pub(crate) fn serve_pair_write(&mut self, read: &Command, sequence: u64, present: usize) -> Service {
        let mut draws = self.seed.child(sequence).draws();
        draws.next_u64();
        let probability = draws.unit();
        self.draw(&Command { kind: OpKind::Write, ..*read }, probability, present)
    }

    #[inline]
    fn draw(&mut self, command: &Command, probability: f64, present: usize) -> Service {
        let overhead = match &mut self.times {
            DrawnTimes::Plain(quantiles) => {
                quantiles[usize::from(command.kind != OpKind::Read)].quantile_ns(probability)
            }
            DrawnTimes::Situations(table) => table.quantile_ns(command, self.sector_bytes, present, probability),
        };
        Service { overhead, ..Service::default() }
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

    fn serve(model: &mut Empirical, kind: OpKind, sequence: u64) -> Service {
        model.serve(&Command { kind, lba: 0, sectors: 8, durable: false, entered: 0, now: 0 }, sequence, 1)
    }

    #[test]
    fn draws_follow_the_quantiles_and_repeat() {
        let mut model = Empirical::new(&spec(), Seed::new(1)).unwrap();
        let n = 40_000;
        let times: Vec<u64> = (0..n).map(|i| serve(&mut model, OpKind::Read, i).total()).collect();
        let below = times.iter().filter(|&&t| t < 100_000).count() as f64 / n as f64;
        assert!((below - 0.5).abs() < 0.01, "{below}");
        assert!(times.iter().all(|t| (50_000..=1_000_000).contains(t)));
        let mean = times.iter().sum::<u64>() as f64 / n as f64;
        let expected = spec().idle_mean(OpKind::Read, 4096).unwrap().total().as_ns() as f64;
        assert_eq!(expected, 312_500.0);
        assert!((mean / expected - 1.0).abs() < 0.02, "{mean}");
        assert_eq!(serve(&mut model, OpKind::Write, 7).total(), 20_000);
        let mut other = Empirical::new(&spec(), Seed::new(1)).unwrap();
        assert_eq!(serve(&mut model, OpKind::Read, 7), serve(&mut other, OpKind::Read, 7));
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
