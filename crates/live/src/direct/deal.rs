//! Who does what: targets, depth, rate and volumes dealt to workers.
//!
//! Purpose: the whole of a load, divided so that it stays what was asked for. A target counts as much as any other, so a
//! worker's share is that of its targets: half a target where two workers drive one.
//!
//! Invariants:
//! - Shares of the depth add up to the depth exactly, and nobody has none.
//! - Rates add up to the rate. Poisson arrivals stay Poisson. Equal gaps are interleaved. Bursty ones (`h2`) become less
//!   bursty, as independent streams do when they are put together.
//! - Workers that share a target each have a part of it where they would otherwise do the same work or touch the same
//!   memory: sequential and strided addresses, and targets in memory. Else each has all of it.

use super::config::DirectConfig;
use super::span::Sectors;
use crate::error::LiveError;
use crate::target::TargetSpec;
use raidlab_load::{AddressSpec, ArrivalSpec, LoadSpec, VolumeSpec, WorkloadSpec};
use raidlab_types::number::{f64_from, gcd, saturating_u32, u32_from};
use raidlab_types::Duration;

/// What one worker drives.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Share {
    /// Its volumes, in order.
    pub parts: Vec<TargetPart>,
    /// Its load.
    pub load: LoadSpec,
    /// How much later its arrivals come.
    pub delay: Duration,
}

/// A target, or the part of it that is one worker's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TargetPart {
    pub target: usize,
    /// Number of the part, of how many equal ones.
    pub index: u64,
    pub of: u64,
}

impl TargetPart {
    /// Its sectors, where this is the span of the whole target that is used.
    pub(super) fn of_span(&self, span: Sectors, workload: &WorkloadSpec, sector_bytes: u32) -> Sectors {
        if self.of == 1 {
            return span;
        }
        let grain = grain_bytes(workload, sector_bytes) / u64::from(sector_bytes);
        let count = span.count / self.of / grain * grain;
        Sectors { first: span.first + self.index * count, count }
    }
}

/// Deals the targets and the load of a run.
pub(super) fn deal(config: &DirectConfig) -> Result<Vec<Share>, LiveError> {
    let workers = config.workers as usize;
    if workers == 0 || workers > 1024 {
        return Err(LiveError::bad("workers", format!("{workers} must be between 1 and 1024")));
    }
    let targets = config.targets.len();
    let mine = |worker: usize| -> Vec<usize> {
        if targets < workers {
            return vec![worker % targets];
        }
        (worker..targets).step_by(workers).collect()
    };
    let drivers = |target: usize| if targets < workers { (target..workers).step_by(targets).count() } else { 1 };
    let weight = |worker: usize| mine(worker).iter().map(|&target| 1.0 / f64_from(drivers(target))).sum::<f64>();
    let weights: Vec<f64> = (0..workers).map(weight).collect();
    if workers > 1 && matches!(config.workload.volumes, VolumeSpec::Weights(_) | VolumeSpec::Shares(_)) {
        let message = "weights and shares need one worker: with several, each has targets of its own";
        return Err(LiveError::bad("workload.volumes", message));
    }
    let listed = |address: &AddressSpec| matches!(address, AddressSpec::Listed { .. });
    if targets < workers && addresses(&config.workload).any(listed) {
        let message = format!("a list needs one worker a target; accepted: at most {targets}");
        return Err(LiveError::bad("workers", message));
    }
    let loads = divide(&config.load, &weights)?;
    let share = |(worker, (load, delay)): (usize, (LoadSpec, Duration))| {
        let part = |target: usize| {
            let of = if divided(config, target) { drivers(target) as u64 } else { 1 };
            TargetPart { target, index: if of > 1 { (worker / targets) as u64 } else { 0 }, of }
        };
        Share { parts: mine(worker).into_iter().map(part).collect(), load, delay }
    };
    Ok(loads.into_iter().enumerate().map(share).collect())
}

/// Whether workers that share this target must each have a part of it.
fn divided(config: &DirectConfig, target: usize) -> bool {
    let in_order =
        |address: &AddressSpec| matches!(address, AddressSpec::Sequential { .. } | AddressSpec::Strided { .. });
    matches!(config.targets[target], TargetSpec::Memory { .. }) || addresses(&config.workload).any(in_order)
}

/// The address of the workload and those of its steps.
fn addresses(workload: &WorkloadSpec) -> impl Iterator<Item = &AddressSpec> {
    let steps = workload.task.iter().flatten().filter_map(|step| step.address.as_ref());
    std::iter::once(&workload.address).chain(steps)
}

/// Every part of a target begins on a multiple of this many bytes, so that alignments hold on the target too.
fn grain_bytes(workload: &WorkloadSpec, sector_bytes: u32) -> u64 {
    let align = |address: &AddressSpec| match address {
        AddressSpec::Uniform {}
        | AddressSpec::Sequential { .. }
        | AddressSpec::Zipf { .. }
        | AddressSpec::Strided { .. }
        | AddressSpec::Mixed { .. } => workload.align_bytes().unwrap_or(1),
        AddressSpec::HotMembers { chunk_bytes, .. } => *chunk_bytes,
        AddressSpec::Listed { .. } => 1,
        AddressSpec::AlignedStripe { stripe_bytes, .. } => *stripe_bytes,
    };
    let common = |a: u64, b: u64| a / gcd(a, b.max(1)) * b.max(1);
    addresses(workload).map(align).fold(u64::from(sector_bytes), common)
}

/// The load of each worker, and how much later its arrivals come.
fn divide(load: &LoadSpec, weights: &[f64]) -> Result<Vec<(LoadSpec, Duration)>, LiveError> {
    let workers = weights.len();
    if workers == 1 {
        return Ok(vec![(load.clone(), Duration::ZERO)]);
    }
    let now = |load| (load, Duration::ZERO);
    match load {
        LoadSpec::Closed { depth } => {
            let shares = whole_shares(*depth, weights, "load.depth")?;
            Ok(shares.into_iter().map(|depth| now(LoadSpec::Closed { depth })).collect())
        }
        LoadSpec::Open { arrival, max_in_flight } => {
            let limits = match max_in_flight {
                Some(most) => whole_shares(*most, weights, "load.max_in_flight")?.into_iter().map(Some).collect(),
                None => vec![None; workers],
            };
            let total: f64 = weights.iter().sum();
            let one = |(worker, max_in_flight): (usize, Option<u32>)| {
                let arrival = with_rate(arrival, weights[worker] / total);
                let delay = match arrival {
                    ArrivalSpec::Uniform { rate_per_s } if rate_per_s > 0.0 => {
                        Duration::from_s_f64(f64_from(worker) / f64_from(workers) / rate_per_s)
                    }
                    _ => Duration::ZERO,
                };
                (LoadSpec::Open { arrival, max_in_flight }, delay)
            };
            Ok(limits.into_iter().enumerate().map(one).collect())
        }
        LoadSpec::Hold { .. } => {
            let message = "hold needs one worker: several cannot move one depth together";
            Err(LiveError::bad("load.kind", message))
        }
    }
}

fn with_rate(arrival: &ArrivalSpec, share: f64) -> ArrivalSpec {
    match *arrival {
        ArrivalSpec::Poisson { rate_per_s } => ArrivalSpec::Poisson { rate_per_s: rate_per_s * share },
        ArrivalSpec::Uniform { rate_per_s } => ArrivalSpec::Uniform { rate_per_s: rate_per_s * share },
        ArrivalSpec::H2 { rate_per_s, cv2 } => ArrivalSpec::H2 { rate_per_s: rate_per_s * share, cv2 },
        // No trace is dealt to several workers; the load itself says that there is none.
        ArrivalSpec::Trace { speed } => ArrivalSpec::Trace { speed },
    }
}

/// `total` in whole shares by weight, at least 1 each: what is left over goes to the largest remainders, the first first.
fn whole_shares(total: u32, weights: &[f64], key: &str) -> Result<Vec<u32>, LiveError> {
    let workers = u32_from(weights.len());
    if total < workers {
        let message = format!("{total} must be at least 1 for each of the {workers} workers");
        return Err(LiveError::bad(key, message));
    }
    let sum: f64 = weights.iter().sum();
    let free = f64::from(total - workers);
    // Everybody has one; the rest goes by what each lacks to its share.
    let lacks: Vec<f64> = weights.iter().map(|w| (f64::from(total) * w / sum - 1.0).max(0.0)).collect();
    let lack: f64 = lacks.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let exact: Vec<f64> = lacks.iter().map(|l| free * l / lack).collect();
    let mut shares: Vec<u32> = exact.iter().map(|e| 1 + saturating_u32(e.floor())).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    let remainder = |i: &usize| exact[*i] - exact[*i].floor();
    order.sort_by(|a, b| remainder(b).total_cmp(&remainder(a)));
    let left = total - shares.iter().sum::<u32>();
    order.iter().cycle().take(left as usize).for_each(|&i| shares[i] += 1);
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_load::Align;

    #[test]
    fn depths_are_divided_exactly_and_nobody_has_none() {
        let even = |total, n| whole_shares(total, &vec![1.0; n], "load.depth").unwrap();
        assert_eq!(even(7, 2), [4, 3]);
        assert_eq!(even(8, 3), [3, 3, 2]);
        assert_eq!(even(3, 3), [1, 1, 1]);
        // Three targets over two workers: two thirds and one third.
        assert_eq!(whole_shares(6, &[2.0, 1.0], "d").unwrap(), [4, 2]);
        assert_eq!(whole_shares(3, &[100.0, 1.0, 1.0], "d").unwrap(), [1, 1, 1]);
        for total in 5..200 {
            let shares = whole_shares(total, &[0.25, 0.25, 0.5, 3.0, 1.0], "d").unwrap();
            assert_eq!(shares.iter().sum::<u32>(), total);
            assert!(shares.iter().all(|&s| s > 0), "{shares:?}");
        }
        assert_eq!(whole_shares(2, &[1.0; 3], "load.depth").unwrap_err().key(), "load.depth");
    }

    #[test]
    fn rates_add_up_and_equal_gaps_interleave() {
        let arrival = ArrivalSpec::Uniform { rate_per_s: 1000.0 };
        let load = LoadSpec::Open { arrival, max_in_flight: Some(5) };
        let shares = divide(&load, &[1.0, 1.0]).unwrap();
        let part =
            |most| LoadSpec::Open { arrival: ArrivalSpec::Uniform { rate_per_s: 500.0 }, max_in_flight: Some(most) };
        assert_eq!(shares, [(part(3), Duration::ZERO), (part(2), Duration::from_ms(1))]);
        let hold = LoadSpec::Hold { percentile: 90.0, target_ms: 1.0, initial_depth: 4, max_depth: 8 };
        assert_eq!(divide(&hold, &[1.0, 1.0]).unwrap_err().key(), "load.kind");
        assert_eq!(divide(&hold, &[1.0]).unwrap(), [(hold, Duration::ZERO)]);
    }

    #[test]
    fn parts_begin_on_common_multiples() {
        let workload = |align| WorkloadSpec {
            address: AddressSpec::Sequential { streams: 1 },
            align: Some(align),
            ..WorkloadSpec::default()
        };
        assert_eq!(grain_bytes(&workload(Align::SECTOR), 512), 512);
        assert_eq!(grain_bytes(&workload(Align::Bytes(6144)), 4096), 12288);
        let part = |index, of| {
            let span = Sectors { first: 7, count: 103 };
            TargetPart { target: 0, index, of }.of_span(span, &workload(Align::Bytes(8192)), 4096)
        };
        assert_eq!(part(0, 1), Sectors { first: 7, count: 103 });
        assert_eq!((part(0, 3), part(2, 3)), (Sectors { first: 7, count: 34 }, Sectors { first: 75, count: 34 }));
    }
}
