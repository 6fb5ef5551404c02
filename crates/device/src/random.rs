//! A device whose service times are drawn from a distribution with a name.
//!
//! Purpose: the servers that queueing theory speaks of, so that its formulas can be held against the simulator, and studies of
//! what variation alone costs. What was measured is `empirical`.
//!
//! Invariant: the service time of the device's i-th operation is a function of (seed, i, kind), whatever is served when; it
//! depends on neither address nor size.
//!
//! Reference: L. Kleinrock, *Queueing Systems*, volume 1, 1975, section 4.7 (Erlang and hyperexponential stages); W. Whitt,
//! *Approximating a Point Process by a Renewal Process I*, Operations Research 30 (1982), (3.7) (balanced means).

use crate::error::{whole_sectors, within};
use crate::fixed::{check_servers, default_sector_bytes, one, MAX_US};
use crate::service::Service;
use crate::{IdleMean, Provenance, SchedulerSpec, SpecError, ThrottleSpec};
use raidlab_types::number::saturating_u64;
use raidlab_types::{CounterRng, Duration, OpKind, Seed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most stages of an Erlang distribution: a product of so many random numbers is still far from nothing.
const MOST_STAGES: u32 = 16;

/// A distribution of service times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TimesSpec {
    /// Exponential: squared coefficient of variation 1.
    Exponential {
        /// Mean, in us.
        mean_us: f64,
    },
    /// The sum of equal exponential stages: squared coefficient of variation 1 / stages.
    Erlang {
        /// Mean of the sum, in us.
        mean_us: f64,
        /// How many stages.
        stages: u32,
    },
    /// One of two exponentials, each with half of the mean: squared coefficient of variation above 1.
    H2 {
        /// Mean, in us.
        mean_us: f64,
        /// Squared coefficient of variation.
        cv2: f64,
    },
}

/// Parameters of a device with random service times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomSpec {
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
    /// Service times of reads.
    pub read: TimesSpec,
    /// Service times of writes; also of flushes and discards.
    pub write: TimesSpec,
    /// Operations served at a time.
    #[serde(default = "one")]
    pub servers: u32,
    /// Order of service.
    #[serde(default)]
    pub scheduler: SchedulerSpec,
}

impl RandomSpec {
    /// Mean service time.
    pub(crate) fn idle_mean(&self, kind: OpKind) -> Result<IdleMean, SpecError> {
        Random::new(self, Seed::new(0))?;
        let (TimesSpec::Exponential { mean_us } | TimesSpec::Erlang { mean_us, .. } | TimesSpec::H2 { mean_us, .. }) =
            if kind == OpKind::Read { self.read } else { self.write };
        Ok(IdleMean::still(Duration::from_s_f64(mean_us / 1e6), Duration::ZERO))
    }
}

/// The compiled model.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    pub capacity_sectors: u64,
    pub servers: usize,
    read: ServiceTimes,
    write: ServiceTimes,
    /// Of the operations themselves, and of the writes of prepaid pairs.
    seeds: [Seed; 2],
}

impl Random {
    pub(crate) fn new(spec: &RandomSpec, seed: Seed) -> Result<Self, SpecError> {
        let capacity_sectors = whole_sectors(spec.capacity_bytes, spec.sector_bytes)?;
        Ok(Random {
            capacity_sectors,
            servers: check_servers(spec.servers)?,
            read: ServiceTimes::new("read", spec.read)?,
            write: ServiceTimes::new("write", spec.write)?,
            seeds: seeds(seed),
        })
    }

    /// The same device with draws of its own.
    pub(crate) fn twin(&self, seed: Seed) -> Self {
        Random { seeds: seeds(seed), ..*self }
    }

    /// The service of the device's operation number `sequence`, all of it overhead.
    #[inline]
    pub(crate) fn serve(&self, kind: OpKind, sequence: u64) -> Service {
        let times = if kind == OpKind::Read { &self.read } else { &self.write };
        Service { overhead: times.draw(self.seeds[0].child(sequence).draws()), ..Service::default() }
    }

    /// The write of a pair after its read, operation number `sequence`.
    pub(crate) fn serve_pair_write(&self, sequence: u64) -> Service {
        Service { overhead: self.write.draw(self.seeds[1].child(sequence).draws()), ..Service::default() }
    }
}

fn seeds(seed: Seed) -> [Seed; 2] {
    ["service", "pair"].map(|name| seed.named(name))
}

/// A compiled distribution: with chance `first_chance` exponentials of the first mean, else of the second; the sum of
/// `stages` of them.
#[derive(Debug, Clone, Copy)]
struct ServiceTimes {
    first_chance: f64,
    stage_mean_ns: [f64; 2],
    stages: u32,
}

impl ServiceTimes {
    fn new(key: &str, spec: TimesSpec) -> Result<Self, SpecError> {
        let key = |name: &str| format!("{key}.{name}");
        let mean_ns = |mean_us: f64| Ok(within(&key("mean_us"), mean_us, 0.001..=MAX_US, " us")? * 1e3);
        match spec {
            TimesSpec::Exponential { mean_us } => {
                Ok(ServiceTimes { first_chance: 1.0, stage_mean_ns: [mean_ns(mean_us)?; 2], stages: 1 })
            }
            TimesSpec::Erlang { mean_us, stages } => {
                let stages = within(&key("stages"), stages, 1..=MOST_STAGES, "")?;
                Ok(ServiceTimes {
                    first_chance: 1.0,
                    stage_mean_ns: [mean_ns(mean_us)? / f64::from(stages); 2],
                    stages,
                })
            }
            TimesSpec::H2 { mean_us, cv2 } => {
                // Beyond a thousand the long times come so rarely that no run sees the mean.
                let cv2 = within(&key("cv2"), cv2, 1.0..=1000.0, "")?;
                let p = 0.5 * (1.0 + ((cv2 - 1.0) / (cv2 + 1.0)).sqrt());
                let half_ns = mean_ns(mean_us)? / 2.0;
                Ok(ServiceTimes { first_chance: p, stage_mean_ns: [half_ns / p, half_ns / (1.0 - p)], stages: 1 })
            }
        }
    }

    #[inline]
    fn draw(&self, mut rng: CounterRng) -> u64 {
        // The logarithm of a product is the sum of the logarithms: one call for all stages.
        let product = (0..self.stages).fold(1.0, |product, _| product * rng.unit_positive());
        let second = self.first_chance < 1.0 && rng.unit() >= self.first_chance;
        saturating_u64(-libm::log(product) * self.stage_mean_ns[usize::from(second)] + 0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(read: &str) -> RandomSpec {
        let write = r#"{"kind": "exponential", "mean_us": 10}"#;
        serde_json::from_str(&format!(r#"{{"capacity_bytes": 1048576, "read": {read}, "write": {write}}}"#)).unwrap()
    }

    /// Mean in us and squared coefficient of variation of `n` reads.
    fn moments(read: &str, n: u64) -> (f64, f64) {
        let model = Random::new(&spec(read), Seed::new(5)).unwrap();
        let times: Vec<f64> = (0..n).map(|i| model.serve(OpKind::Read, i).total() as f64 / 1e3).collect();
        let mean = times.iter().sum::<f64>() / n as f64;
        (mean, times.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / n as f64 / (mean * mean))
    }

    #[test]
    fn times_have_the_mean_and_the_variation_asked_for() {
        // 200,000 draws: the mean's standard error is sqrt(cv2 / n), that of cv2 at most 0.7 % here; the bounds are five.
        let n = 200_000;
        for (read, mean_us, cv2) in [
            (r#"{"kind": "exponential", "mean_us": 100}"#, 100.0, 1.0),
            (r#"{"kind": "erlang", "mean_us": 100, "stages": 4}"#, 100.0, 0.25),
            (r#"{"kind": "h2", "mean_us": 100, "cv2": 4}"#, 100.0, 4.0f64),
        ] {
            let (mean, seen) = moments(read, n);
            assert!((mean / mean_us - 1.0).abs() < 5.0 * (cv2 / n as f64).sqrt(), "{read}: mean {mean}");
            assert!((seen / cv2 - 1.0).abs() < 0.05, "{read}: cv2 {seen}");
            assert_eq!(spec(read).idle_mean(OpKind::Read).unwrap().total().as_ns(), 100_000);
        }
    }

    #[test]
    fn exponential_times_are_exponential() {
        // Kolmogorov-Smirnov at 1e-5: sqrt(n) D < 2.47.
        let model = Random::new(&spec(r#"{"kind": "exponential", "mean_us": 100}"#), Seed::new(7)).unwrap();
        let n = 50_000u64;
        let mut times: Vec<u64> = (0..n).map(|i| model.serve(OpKind::Read, i).total()).collect();
        times.sort_unstable();
        let below = |t: u64| 1.0 - libm::exp(-(t as f64) / 1e5);
        let distance = |(k, &t): (usize, &u64)| (below(t) - (k as f64 + 0.5) / n as f64).abs();
        let d = times.iter().enumerate().map(distance).fold(0.0, f64::max);
        assert!(d * (n as f64).sqrt() < 2.47, "D {d}");
    }

    #[test]
    fn draws_repeat_and_belong_to_their_device() {
        let one = Random::new(&spec(r#"{"kind": "h2", "mean_us": 100, "cv2": 4}"#), Seed::new(1)).unwrap();
        let other = one.twin(Seed::new(2));
        assert_eq!(one.serve(OpKind::Read, 7), one.twin(Seed::new(1)).serve(OpKind::Read, 7));
        assert_ne!(one.serve(OpKind::Read, 7), other.serve(OpKind::Read, 7));
        assert_ne!(one.serve(OpKind::Write, 7), one.serve_pair_write(7));
    }

    #[test]
    fn bad_parameters_are_named() {
        let key = |read| Random::new(&spec(read), Seed::new(1)).unwrap_err().key;
        assert_eq!(key(r#"{"kind": "exponential", "mean_us": 0}"#), "read.mean_us");
        assert_eq!(key(r#"{"kind": "erlang", "mean_us": 1, "stages": 17}"#), "read.stages");
        assert_eq!(key(r#"{"kind": "h2", "mean_us": 1, "cv2": 0.5}"#), "read.cv2");
    }
}
