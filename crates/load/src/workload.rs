//! What tasks ask for: the compiled workload.
//!
//! Purpose: the operations of task `i` of a stream, from the seed tree. Random words are taken in a fixed order (volume,
//! read or write, one word that seeds the size, then the address), so that another size distribution moves no
//! address and another mix moves neither.
//!
//! Invariants:
//! - The draws of task `i` of stream `s` belong to `seed.child(s).child(i)` (step k of a longer task to its child k).
//! - Tasks of a stream are drawn in order of `i`, all steps at once; what completes when has no influence.
//! - All steps of a task go to one volume; sizes are the same function of the seed on every volume.
//!
//! *Lanes* are streams of tasks: one for all, unless the workload is sequential (streams x volumes) or spread evenly
//! (one a volume). Lane `l` belongs to volume `l mod volumes`, there as stream `l / volumes`.

use crate::address::{Address, AddressSpace};
use crate::draw::WeightTable;
use crate::error::{at_least_one, join, weighted, SpecError};
use crate::size::{Size, SizeLimits};
use crate::spec::{AddressSpec, SizeSpec, StepOp, StepSpec, VolumeSpec, WorkloadSpec};
use raidlab_types::number::{f64_from, saturating_u64, u32_from};
use raidlab_types::{CounterRng, Extent, RequestKind, Seed, Volume};

/// The longest request there is, whatever the volume: half of what Linux moves in one call.
const MOST_REQUEST_BYTES: u64 = 1 << 30;
/// The most steps a task may have.
const MAX_STEPS: usize = 64;

/// One operation of a task, drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskOperation {
    pub(crate) volume: u32,
    pub(crate) kind: RequestKind,
    pub(crate) extent: Extent,
}

impl TaskOperation {
    /// What stands in a plan before it is drawn.
    pub(crate) const NONE: TaskOperation =
        TaskOperation { volume: 0, kind: RequestKind::Read, extent: Extent::new(0, 1) };
}

/// What a step does.
#[derive(Debug, Clone, Copy)]
enum StepKind {
    /// Read with this chance, else write.
    Mixed(f64),
    Always(RequestKind),
}

#[derive(Debug, Clone)]
struct TaskStep {
    operation: StepKind,
    size: Size,
    /// One a volume.
    address: Box<[Address]>,
    same_extent_as: Option<usize>,
}

#[derive(Debug, Clone)]
enum Spread {
    /// The lane says which.
    ByLane,
    Uniform,
    Weights(WeightTable),
}

/// The compiled workload.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    /// The seed of each lane.
    lanes: Box<[Seed]>,
    /// The share of each lane; empty where all are alike.
    shares: Box<[f64]>,
    volumes: u32,
    spread: Spread,
    steps: Box<[TaskStep]>,
}

impl Workload {
    pub(crate) fn new(
        spec: &WorkloadSpec,
        volumes: &[Volume],
        sector_bytes: u32,
        seed: Seed,
    ) -> Result<Self, SpecError> {
        if !(0.0..=1.0).contains(&spec.read_fraction) {
            let message = format!("{}; accepted: 0 to 1", spec.read_fraction);
            return Err(SpecError::new("workload.read", message));
        }
        let count = u32_from(volumes.len());
        let streams = streams(spec)?;
        let (spread, lanes) = spread(spec, count, streams)?;
        let shares = match &spec.volumes {
            VolumeSpec::Shares(shares) if streams.is_none() => shares.as_slice().into(),
            _ => Box::default(),
        };
        let share = span(spec)?;
        let site = |volume: &Volume| AddressSpace {
            sector_bytes,
            capacity_sectors: saturating_u64(f64_from(volume.capacity_sectors) * share)
                .clamp(1, volume.capacity_sectors),
            streams: streams.unwrap_or(1),
            align_bytes: spec.align_bytes(),
        };
        let sites: Vec<AddressSpace> = volumes.iter().map(site).collect();
        let steps = match &spec.task {
            None => vec![step(StepKind::Mixed(spec.read_fraction), spec, None, "workload", &sites)?],
            Some(task) => task_steps(task, spec, &sites)?,
        };
        let lanes = (0..u64::from(lanes)).map(|lane| seed.child(lane)).collect();
        Ok(Workload { lanes, shares, volumes: count, spread, steps: steps.into() })
    }

    /// Streams of tasks.
    pub(crate) fn lanes(&self) -> u32 {
        u32_from(self.lanes.len())
    }

    /// The share of the depth that each lane has, in any unit; empty where all are alike.
    pub(crate) fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// Requests of a task.
    pub(crate) fn steps(&self) -> usize {
        self.steps.len()
    }

    /// The only request of task `index` of `lane`. To be called in order of `index`.
    #[inline]
    pub(crate) fn draw_one(&mut self, lane: u32, index: u64) -> TaskOperation {
        let mut rng = self.lanes[lane as usize].child(index).draws();
        let (volume, stream) = self.volume(lane, &mut rng);
        self.steps[0].draw(&mut rng, volume, stream)
    }

    /// All requests of task `index` of `lane`. To be called in order of `index`.
    pub(crate) fn draw_task(&mut self, lane: u32, index: u64, out: &mut [TaskOperation]) {
        let task = self.lanes[lane as usize].child(index);
        let (volume, stream) = self.volume(lane, &mut task.draws());
        for k in 0..self.steps.len() {
            let mut drawn = self.steps[k].draw(&mut task.child(k as u64).draws(), volume, stream);
            if let Some(earlier) = self.steps[k].same_extent_as {
                drawn.extent = out[earlier].extent;
            }
            out[k] = drawn;
        }
    }

    /// The task's volume, and the lane's stream on it. Takes one word, whether it is needed or not.
    #[inline]
    fn volume(&self, lane: u32, rng: &mut CounterRng) -> (u32, u32) {
        let word = rng.next_u64();
        match &self.spread {
            // Without volumes to choose from, neither a division nor a draw is needed.
            Spread::ByLane if self.volumes == 1 => (0, lane),
            Spread::ByLane => (lane % self.volumes, lane / self.volumes),
            Spread::Uniform => (u32_from((u128::from(word) * u128::from(self.volumes)) >> 64), 0),
            Spread::Weights(weighted) => (u32_from(weighted.pick(word)), 0),
        }
    }
}

impl TaskStep {
    #[inline]
    fn draw(&mut self, rng: &mut CounterRng, volume: u32, stream: u32) -> TaskOperation {
        let chance = rng.unit();
        let kind = match self.operation {
            StepKind::Always(kind) => kind,
            StepKind::Mixed(read) if chance < read => RequestKind::Read,
            StepKind::Mixed(_) => RequestKind::Write,
        };
        let sectors = self.size.draw(rng);
        let mut drawn = TaskOperation { volume, kind, extent: Extent::new(0, sectors) };
        self.address[volume as usize].place(rng, &mut drawn, stream);
        drawn
    }
}

/// Streams a volume, if any step is sequential: the most that one of them asks for.
fn streams(spec: &WorkloadSpec) -> Result<Option<u32>, SpecError> {
    let steps = spec.task.iter().flatten().enumerate();
    let of_steps = steps.filter_map(|(k, s)| s.address.as_ref().map(|a| (format!("workload.task[{k}].address"), a)));
    let mut most = None;
    for (key, address) in std::iter::once(("workload.address".to_owned(), &spec.address)).chain(of_steps) {
        if let AddressSpec::Sequential { streams, .. } = address {
            most = most.max(Some(at_least_one(&key, "streams", *streams)?));
        }
    }
    Ok(most)
}

/// How much of each volume is used.
fn span(spec: &WorkloadSpec) -> Result<f64, SpecError> {
    let share = spec.span.unwrap_or(1.0);
    if share > 0.0 && share <= 1.0 {
        return Ok(share);
    }
    Err(SpecError::new("workload.span", format!("{share}; accepted: above 0, up to 1")))
}

/// How tasks find their volume, and the number of lanes.
fn spread(spec: &WorkloadSpec, volumes: u32, streams: Option<u32>) -> Result<(Spread, u32), SpecError> {
    if let Some(streams) = streams {
        let lanes = streams.checked_mul(volumes).filter(|&lanes| lanes <= 1 << 16);
        let message = || format!("{streams} streams on each of {volumes} volumes; accepted: at most 65536 in all");
        return Ok((Spread::ByLane, lanes.ok_or_else(|| SpecError::new("workload.address.streams", message()))?));
    }
    Ok(match &spec.volumes {
        VolumeSpec::Weights(weights) if weights.len() != volumes as usize => {
            let message = format!("{} weights for {volumes} volumes; accepted: one each", weights.len());
            return Err(SpecError::new("workload.volumes.weights", message));
        }
        VolumeSpec::Weights(weights) => (Spread::Weights(weighted("workload.volumes", "weights", weights)?), 1),
        VolumeSpec::Shares(shares) if shares.len() != volumes as usize => {
            let message = format!("{} shares for {volumes} volumes; accepted: one each", shares.len());
            return Err(SpecError::new("workload.volumes.shares", message));
        }
        VolumeSpec::Shares(shares) if !shares.iter().all(|share| share.is_finite() && *share > 0.0) => {
            let message = "a volume without a share; accepted: finite numbers above 0";
            return Err(SpecError::new("workload.volumes.shares", message));
        }
        VolumeSpec::Shares(_) => (Spread::ByLane, volumes),
        VolumeSpec::Even => (Spread::ByLane, volumes),
        VolumeSpec::Uniform if volumes == 1 => (Spread::ByLane, 1),
        VolumeSpec::Uniform => (Spread::Uniform, 1),
    })
}

fn task_steps(task: &[StepSpec], spec: &WorkloadSpec, sites: &[AddressSpace]) -> Result<Vec<TaskStep>, SpecError> {
    if task.is_empty() || task.len() > MAX_STEPS {
        let message = format!("a task of {} steps; accepted: 1 to {MAX_STEPS}", task.len());
        return Err(SpecError::new("workload.task", message));
    }
    let one = |(k, own): (usize, &StepSpec)| {
        let key = format!("workload.task[{k}]");
        if own.same_extent_as.is_some_and(|earlier| earlier >= k) {
            let message = "is no earlier step; accepted: a number below its own, counted from 0";
            return Err(SpecError::new(join(&key, "same_extent_as"), message));
        }
        let kind = match own.op {
            StepOp::Read => RequestKind::Read,
            StepOp::Write => RequestKind::Write,
        };
        step(StepKind::Always(kind), spec, Some(own), &key, sites)
    };
    task.iter().enumerate().map(one).collect()
}

/// A step with its own size and address, or else the workload's.
fn step(
    operation: StepKind,
    spec: &WorkloadSpec,
    own: Option<&StepSpec>,
    key: &str,
    sites: &[AddressSpace],
) -> Result<TaskStep, SpecError> {
    let place = |own: bool, name: &str| join(if own { key } else { "workload" }, name);
    let own_address: Option<&AddressSpec> = own.and_then(|s| s.address.as_ref());
    let own_size: Option<&SizeSpec> = own.and_then(|s| s.size.as_ref());
    let address_key = place(own_address.is_some(), "address");
    let address_spec = own_address.unwrap_or(&spec.address);
    let address: Result<Box<[Address]>, SpecError> =
        sites.iter().map(|&site| Address::new(address_spec, &address_key, site)).collect();
    let address = address.map_err(|error| match &error.key[..] {
        // An alignment that nobody gave is the size.
        "workload.align" if spec.align.is_none() => SpecError::new("workload.size.bytes", error.message),
        _ => error,
    })?;
    let sector_bytes = sites[0].sector_bytes;
    let placed = address.iter().map(Address::longest).min().unwrap_or(0);
    let longest_sectors = placed.min(MOST_REQUEST_BYTES / u64::from(sector_bytes)).max(1);
    let room = SizeLimits { sector_bytes, longest_sectors };
    let size = Size::new(own_size.unwrap_or(&spec.size), &place(own_size.is_some(), "size"), room)?;
    Ok(TaskStep { operation, size, address, same_extent_as: own.and_then(|s| s.same_extent_as) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOLUMES: [Volume; 4] = [Volume { capacity_sectors: 1000 }; 4];

    fn spec(volumes: VolumeSpec) -> WorkloadSpec {
        let (size, address) = (SizeSpec::Fixed { bytes: 512 }, AddressSpec::Uniform {});
        WorkloadSpec { read_fraction: 0.5, size, address, align: None, span: None, volumes, task: None }
    }

    fn compile(spec: &WorkloadSpec) -> Workload {
        Workload::new(spec, &VOLUMES, 512, Seed::new(1)).unwrap()
    }

    #[test]
    fn volumes_are_drawn_with_their_chances() {
        // Chi-squared, 3 degrees of freedom: 99.99 % quantile 21.1; 40,000 draws find a share wrong by 0.01 with 99 %.
        for (volumes, weights) in
            [(VolumeSpec::Uniform, [1.0; 4]), (VolumeSpec::Weights(vec![0.4, 1.6, 1.0, 1.0]), [0.4, 1.6, 1.0, 1.0])]
        {
            let mut workload = compile(&spec(volumes));
            let mut counts = [0.0; 4];
            (0..40_000).for_each(|i| counts[workload.draw_one(0, i).volume as usize] += 1.0);
            let cell = |(c, w): (&f64, f64)| (c - w * 1e4).powi(2) / (w * 1e4);
            let chi2: f64 = counts.iter().zip(weights).map(cell).sum();
            assert!(chi2 < 21.1, "{counts:?}");
        }
    }

    #[test]
    fn lanes_belong_to_volumes_in_turn() {
        let mut even = compile(&spec(VolumeSpec::Even));
        assert_eq!(even.lanes(), 4);
        assert_eq!((0..4).map(|lane| even.draw_one(lane, 0).volume).collect::<Vec<_>>(), [0, 1, 2, 3]);
        let address = AddressSpec::Sequential { streams: 2 };
        let mut sequential = compile(&WorkloadSpec { address, ..spec(VolumeSpec::Uniform) });
        assert_eq!(sequential.lanes(), 8);
        let drawn = sequential.draw_one(6, 0);
        assert_eq!((drawn.volume, drawn.extent.lba), (2, 500));
    }

    #[test]
    fn a_span_is_the_front_of_every_volume() {
        let mut front = compile(&WorkloadSpec { span: Some(0.25), ..spec(VolumeSpec::Even) });
        let starts: Vec<u64> = (0..2000).map(|i| front.draw_one((i % 4) as u32, i).extent.lba).collect();
        assert!(starts.iter().all(|&lba| lba < 250) && starts.iter().any(|&lba| lba > 240));
        for wrong in [0.0, -0.5, 1.5, f64::NAN] {
            let spec = WorkloadSpec { span: Some(wrong), ..spec(VolumeSpec::Even) };
            assert_eq!(Workload::new(&spec, &VOLUMES, 512, Seed::new(1)).unwrap_err().key, "workload.span");
        }
    }

    #[test]
    fn read_and_write_come_in_their_shares() {
        for read_fraction in [0.0, 0.3, 1.0] {
            let mut workload = compile(&WorkloadSpec { read_fraction, ..spec(VolumeSpec::Uniform) });
            let reads = (0..40_000).filter(|&i| workload.draw_one(0, i).kind == RequestKind::Read).count() as f64;
            // Five standard deviations of a binomial.
            let bound = 5.0 * (40_000.0 * read_fraction * (1.0 - read_fraction)).sqrt();
            assert!((reads - 40_000.0 * read_fraction).abs() <= bound, "{reads} at {read_fraction}");
        }
    }

    #[test]
    fn sizes_are_bounded_by_the_smallest_volume() {
        let volumes = [Volume { capacity_sectors: 1000 }, Volume { capacity_sectors: 10 }];
        let size = SizeSpec::Fixed { bytes: 11 * 512 };
        let error = Workload::new(&WorkloadSpec { size, ..spec(VolumeSpec::Uniform) }, &volumes, 512, Seed::new(1));
        assert_eq!(error.unwrap_err().key, "workload.size.bytes");
    }

    #[test]
    fn sizes_are_bounded_on_huge_volumes_too() {
        let huge = [Volume { capacity_sectors: 1 << 50 }];
        let of = |bytes| WorkloadSpec { size: SizeSpec::Fixed { bytes }, ..spec(VolumeSpec::Uniform) };
        assert!(Workload::new(&of(1 << 30), &huge, 512, Seed::new(1)).is_ok());
        let error = Workload::new(&of((1 << 30) + 512), &huge, 512, Seed::new(1)).unwrap_err();
        assert!(error.message.ends_with("accepted: at most 1073741824 bytes"), "{error}");
    }
}
