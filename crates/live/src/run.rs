//! One cell on the real clock, from its description to its record.
//!
//! Order: check what can be checked, open the targets (the safety rules speak here), compile the tree and the load for
//! their sizes, fill what raidlab has made, run. So bad input costs nothing, and nothing is written before all of it
//! has been found good.

use crate::config::{ContentMode, Emulation, LiveConfig, OnProgress, RunStage};
use crate::content::{not_compared, Knowledge, Stamper, Verify};
use crate::direct::most_in_flight;
use crate::engine::{every_sector, Engine, OfferedLoad, StageEnd, Sweep};
use crate::error::LiveError;
use crate::result::{EngineFacts, LiveResult};
use crate::target::{self, EmulatedContent, Filling, Intent, Target, TargetSpec};
use raidlab_array::plan::MemberViews;
use raidlab_array::{too_many_missing, Array, Layout, MemberState, Outages, Tree};
use raidlab_device::PairPricing;
use raidlab_load::files::{FileLoad, FilesSpec};
use raidlab_load::trace::{KindFilter, Replay, TraceLoad};
use raidlab_load::{Generator, Load, RecordedLoad, RequestLog, StepOp, Volume, WorkloadSpec};
use raidlab_types::number::{u32_from, usize_from};
use raidlab_types::{LeafId, RequestKind, Seed, MIB};

/// Most sectors whose content can be verified: the table takes eight bytes for each.
const MOST_VERIFIED: u64 = 1 << 28;
/// Least and greatest speed of a run's clock.
const SLOWEST: f64 = 0.001;
const FASTEST: f64 = 10_000.0;
/// What a sector is at least.
const LEAST_SECTOR_BYTES: u32 = 512;
/// Requests of a sweep in flight.
const SWEEP_DEPTH: usize = 8;
/// Single sectors that are read back, in flight.
const READ_BACK_DEPTH: usize = 16;

/// Runs a cell; of the requests of a trace, if there is one, and then the workload of the configuration is not looked at. A
/// trace of which all is replayed counts as one that writes, whatever is in it. `observer` is told of progress about seven
/// times a second, and may end the run with what it has.
///
/// # Errors
/// Before the load runs: bad input, a refusal of the safety rules, a missing interface, a target that cannot be opened or
/// filled. What fails later, also a wrong line of a trace, is in [`LiveResult::stopped_by`], beside what was measured.
pub fn run(config: &LiveConfig, trace: Option<Replay>, observer: OnProgress<'_>) -> Result<LiveResult, LiveError> {
    match (trace, &config.files) {
        (Some(trace), _) => {
            let writes = trace.spec.only != KindFilter::Reads;
            run_load(config, writes, observer, |layout| replaying(config, trace, layout))
        }
        (None, None) => run_load(config, writes(&config.workload), observer, |layout| requests(config, layout)),
        (None, Some(spec)) => {
            let writes = spec.file_system.inode_update_s.is_some();
            run_load(config, writes, observer, |layout| files(config, spec, layout))
        }
    }
}

/// Runs a cell of which each request leaves a row in `log`.
///
/// # Errors
/// As [`run`]; and for whole files, whose requests are not kept one by one.
pub fn run_recorded(
    config: &LiveConfig,
    trace: Option<Replay>,
    log: RequestLog,
    observer: OnProgress<'_>,
) -> Result<LiveResult, LiveError> {
    if config.files.is_some() {
        let message = "are not kept of whole files; accepted: drawn requests, or a trace";
        return Err(LiveError::bad("records", message));
    }
    match trace {
        Some(trace) => {
            let writes = trace.spec.only != KindFilter::Reads;
            run_load(config, writes, observer, |layout| {
                Ok(RecordedLoad::new(replaying(config, trace, layout)?, log, layout.sector_bytes()))
            })
        }
        None => run_load(config, writes(&config.workload), observer, |layout| {
            Ok(RecordedLoad::new(requests(config, layout)?, log, layout.sector_bytes()))
        }),
    }
}

fn run_load<L: Generator>(
    config: &LiveConfig,
    asks_to_write: bool,
    observer: OnProgress<'_>,
    load: impl FnOnce(&Layout) -> Result<L, LiveError>,
) -> Result<LiveResult, LiveError> {
    // What takes the place of a member is written, and what a scrub mends, even where clients only read.
    let asks_to_write = asks_to_write || !config.events.is_empty();
    let (targets, layout) = open_array(config, config.content == ContentMode::Verify || asks_to_write)?;
    let (sector_bytes, volumes) = (layout.sector_bytes(), layout.volumes().to_vec());
    let mut load = load(&layout)?;
    load.keep_histograms();
    let mut run = CellRun { config, load, interrupted: false, stopped_by: None };
    let mut targets = run.fill(targets, sector_bytes, observer)?;
    if asks_to_write || config.content == ContentMode::Verify {
        let known = left_by(config);
        targets.iter_mut().flatten().try_for_each(|target| target.will_be_written(sector_bytes, known))?;
    }
    let mut array = Array::new(layout, config.policy);
    let outages = outages(config, &mut array)?;
    let mut engine = Engine::new(array, targets, config)?;
    engine.outages = outages;
    run.stages(&mut engine, &volumes, sector_bytes, observer);
    Ok(run.result(engine, sector_bytes))
}

/// What is to befall members.
fn outages(config: &LiveConfig, array: &mut Array) -> Result<Outages, LiveError> {
    let LiveConfig { missing, events, rebuild, files, .. } = config;
    if rebuild.is_some() && !missing.is_empty() {
        let message = "there is nothing in the places of missing members here; accepted: it beside events";
        return Err(LiveError::bad("rebuild", message));
    }
    // Readers know no failed requests.
    if events.iter().any(|event| event.slow.is_some()) {
        let message = "a member becomes slow, which only a modelled one can be told; accepted: fail";
        return Err(LiveError::bad("events", message));
    }
    if files.is_some() && !events.is_empty() {
        return Err(LiveError::bad("events", "whole files are read from arrays of which no member is lost; accepted: this key left out, or requests in place of files"));
    }
    Ok(Outages::new(array, missing, events, *rebuild, Seed::new(config.seed))?)
}

/// Opens an array's members, by the safety rules, and compiles its tree for them: all that does not depend on a load.
pub(crate) fn open_array(config: &LiveConfig, writes: bool) -> Result<(Vec<Option<Target>>, Layout), LiveError> {
    let specs = sound_specs(config)?;
    let missing = |leaf: usize| config.missing.contains(&u32_from(leaf));
    let intent = Intent { writes, destroy: &config.destroy, buffered: false };
    let targets = target::open_all(&specs, "members", &missing, intent)?;
    let sector_bytes = target::sector(config.sector_bytes, &targets)?;
    let layout = compile(config, &specs, &targets, sector_bytes)?;
    Ok((targets, layout))
}

/// Whether this could be run, as far as that can be said without opening anything, and of a trace as far as its beginning
/// says: nothing is read, made or written.
///
/// # Errors
/// Bad input, as [`run`] has it. A block device, whose size is not known unopened, is bad input too.
pub fn check(config: &LiveConfig, trace: Option<Replay>) -> Result<(), LiveError> {
    let specs = sound_specs(config)?;
    if let Some(leaf) = specs.iter().position(|spec| matches!(spec, TargetSpec::Block { .. })) {
        let message = "the size of a block device is not known unopened; accepted: a null member of its size";
        return Err(LiveError::bad(format!("members[{leaf}]"), message));
    }
    let sector_bytes = config.sector_bytes.unwrap_or(LEAST_SECTOR_BYTES);
    if !sector_bytes.is_power_of_two() {
        return Err(LiveError::bad("sector_bytes", format!("{sector_bytes}; accepted: a power of two")));
    }
    let unopened: Vec<Option<Target>> = specs.iter().map(|_| None).collect();
    let layout = compile(config, &specs, &unopened, sector_bytes)?;
    outages(config, &mut Array::new(layout.clone(), config.policy))?;
    match (trace, &config.files) {
        (Some(trace), _) => replaying(config, trace, &layout).map(drop),
        (None, None) => requests(config, &layout).map(drop),
        (None, Some(spec)) => files(config, spec, &layout).map(drop),
    }
}

/// A specification a leaf, and everything checked that needs no target.
fn sound_specs(config: &LiveConfig) -> Result<Vec<TargetSpec>, LiveError> {
    raidlab_parity::try_backend().map_err(|message| LiveError::bad("RAIDLAB_PARITY", message))?;
    let specs = target_specs(config)?;
    check_members(config)?;
    check_emulation(config, &specs)?;
    target::memory::check_total(&specs)?;
    Ok(specs)
}

/// The load of a configuration without files.
fn requests(config: &LiveConfig, layout: &Layout) -> Result<Load, LiveError> {
    let seed = Seed::new(config.seed).named("load");
    let (volumes, sector_bytes) = (layout.volumes(), layout.sector_bytes());
    Ok(Load::new(&config.load, &config.workload, &config.limits, volumes, sector_bytes, seed)?)
}

/// The load of a trace.
fn replaying(config: &LiveConfig, trace: Replay, layout: &Layout) -> Result<TraceLoad, LiveError> {
    Ok(TraceLoad::new(trace, &config.load, &config.limits, layout.volumes(), layout.sector_bytes())?)
}

/// That of a configuration with files.
fn files(config: &LiveConfig, files: &FilesSpec, layout: &Layout) -> Result<FileLoad, LiveError> {
    // Readers know no failed requests.
    if !config.missing.is_empty() {
        return Err(LiveError::bad("missing", "whole files are read from arrays of which no member is lost; accepted: this key left out, or requests in place of files"));
    }
    let (sizes, volumes, seed) = (&config.workload.size, layout.volumes(), Seed::new(config.seed));
    Ok(FileLoad::new(files, &config.load, sizes, &config.limits, volumes, layout.sector_bytes(), seed)?)
}

/// A specification a leaf.
fn target_specs(config: &LiveConfig) -> Result<Vec<TargetSpec>, LiveError> {
    config.tree.validate().map_err(|e| LiveError::bad("tree", e.to_string()))?;
    let leaves = config.tree.leaves();
    match &config.targets[..] {
        [one] if one.is_shareable() => Ok(vec![one.clone(); leaves]),
        many if many.len() == leaves => Ok(many.to_vec()),
        many => {
            let message = format!("{} targets for {leaves} members: one each is needed", many.len());
            Err(LiveError::bad("members", message))
        }
    }
}

fn check_members(config: &LiveConfig) -> Result<(), LiveError> {
    let leaves = config.tree.leaves();
    let inside = |leaf: LeafId, key: String| match (leaf as usize) < leaves {
        true => Ok(()),
        false => Err(LiveError::bad(key, format!("member {leaf} does not exist: there are 0 to {}", leaves - 1))),
    };
    for (i, &leaf) in config.missing.iter().enumerate() {
        inside(leaf, format!("missing[{i}]"))?;
    }
    let null = |spec: &TargetSpec| matches!(spec, TargetSpec::Null { .. });
    if config.content == ContentMode::Verify && config.targets.iter().any(null) {
        return Err(LiveError::bad("content", "a null member keeps nothing, so nothing can be verified"));
    }
    for (i, fault) in config.faults.iter().enumerate() {
        inside(fault.leaf, format!("faults[{i}].leaf"))?;
    }
    Ok(())
}

/// Speed, pricing and content, of which emulated members want their own.
fn check_emulation(config: &LiveConfig, specs: &[TargetSpec]) -> Result<(), LiveError> {
    let Emulation { speed, pair_pricing } = config.emulation;
    let is_missing = |leaf: usize| config.missing.contains(&u32_from(leaf));
    let present = || specs.iter().enumerate().filter(|(leaf, _)| !is_missing(*leaf)).map(|(_, spec)| spec);
    if !(speed.is_finite() && (SLOWEST..=FASTEST).contains(&speed)) {
        return Err(LiveError::bad("speed", format!("{speed}; accepted: a number from {SLOWEST} to {FASTEST}")));
    }
    if speed != 1.0 && !present().all(TargetSpec::is_emulated) {
        let message = format!("{speed}: real members go no faster; accepted: 1, or emulated members only");
        return Err(LiveError::bad("speed", message));
    }
    if pair_pricing == PairPricing::Prepaid && present().any(TargetSpec::is_emulated) {
        let message = "prepaid: on a real clock a disk cannot write what it has not been given; accepted: queued, head";
        return Err(LiveError::bad("pair_pricing", message));
    }
    let keeps_nothing = |spec: &TargetSpec| match spec {
        TargetSpec::Emulated { content, .. } => *content == EmulatedContent::None,
        _ => false,
    };
    let unmeasured = |spec: &TargetSpec| match spec {
        TargetSpec::Emulated { device, .. } => !device.takes_writes(),
        _ => false,
    };
    if writes(&config.workload) && present().any(unmeasured) {
        let message = "only reads of this device were measured, and this writes; accepted: loads that only read";
        return Err(LiveError::bad("members", message));
    }
    if config.content == ContentMode::Verify && present().any(keeps_nothing) {
        let message = "verify: emulated members with content \"none\" keep nothing; accepted: \"memory\" or a file";
        return Err(LiveError::bad("content", message));
    }
    Ok(())
}

/// Whether the workload writes at all.
pub(crate) fn writes(workload: &WorkloadSpec) -> bool {
    match &workload.task {
        Some(steps) => steps.iter().any(|step| step.op == StepOp::Write),
        None => workload.read_fraction < 1.0,
    }
}

/// The tree for these members; a missing one is as large as the smallest.
fn compile(
    config: &LiveConfig,
    specs: &[TargetSpec],
    targets: &[Option<Target>],
    sector_bytes: u32,
) -> Result<Layout, LiveError> {
    let smallest = targets.iter().flatten().map(|t| t.facts.size_bytes).min().unwrap_or(0);
    let size = |(spec, target): (&TargetSpec, &Option<Target>)| {
        let bytes = match (target, spec) {
            (Some(target), _) => target.facts.size_bytes,
            (
                None,
                TargetSpec::File { size_bytes, .. }
                | TargetSpec::Memory { size_bytes }
                | TargetSpec::Null { size_bytes },
            ) => *size_bytes,
            (None, TargetSpec::Emulated { device, .. }) => target::capacity_bytes(device).unwrap_or(smallest),
            (None, TargetSpec::Block { .. }) => smallest,
        };
        bytes / u64::from(sector_bytes)
    };
    let sizes: Vec<u64> = specs.iter().zip(targets).map(size).collect();
    let layout = Layout::new(&config.tree, &sizes, sector_bytes)?;
    let mut views = MemberViews::new(&layout);
    config.missing.iter().for_each(|&leaf| views.set_state(&layout, leaf, MemberState::Missing));
    if (0..layout.volumes().len()).any(|v| views.is_lost(layout.volume_node(v))) {
        return Err(too_many_missing(&layout, &config.missing).into());
    }
    if config.content == ContentMode::Verify && layout.user_sectors() > MOST_VERIFIED {
        let message = format!("{} sectors: at most {MOST_VERIFIED} can be verified", layout.user_sectors());
        return Err(LiveError::bad("content", message));
    }
    Ok(layout)
}

/// What is known of members when the run has written to them: their sectors bear stamps of the array's places, but for
/// parity, which bears none.
fn left_by(config: &LiveConfig) -> Knowledge {
    fn has_parity(tree: &Tree) -> bool {
        matches!(tree, Tree::Parity { .. } | Tree::Declustered { .. }) || tree.children().iter().any(has_parity)
    }
    match config.verify == Verify::Off || config.content == ContentMode::Verify || has_parity(&config.tree) {
        true => Knowledge::Nothing,
        false => Knowledge::Sound,
    }
}

/// Whether all members that are there keep what is written to them on something that may lie.
fn keep_content(engine: &Engine) -> bool {
    engine.targets.iter().flatten().all(Target::keeps_content)
}

/// A cell that runs.
struct CellRun<'a, L> {
    config: &'a LiveConfig,
    load: L,
    interrupted: bool,
    stopped_by: Option<LiveError>,
}

impl<L: Generator> CellRun<'_, L> {
    /// Fills what raidlab has made with random bytes, or all members with zeroes if they are to be verified.
    fn fill(
        &mut self,
        mut targets: Vec<Option<Target>>,
        sector_bytes: u32,
        observer: OnProgress<'_>,
    ) -> Result<Vec<Option<Target>>, LiveError> {
        let seed = Seed::new(self.config.seed).named("fill");
        let stamper = Stamper::of_this_run(seed.as_u64(), sector_bytes);
        let filling = |leaf| match self.config.content {
            ContentMode::Random => Filling::Random(seed.child(leaf).draws(), stamper),
            ContentMode::Verify => Filling::Zeroes,
        };
        let numbered = targets.iter_mut().enumerate().filter_map(|(leaf, t)| Some((leaf as u64, t.as_mut()?)));
        self.interrupted |= target::fill_all(numbered, &filling, observer)?.is_break();
        Ok(targets)
    }

    /// The stages of a run, each only if the one before went well.
    fn stages(&mut self, engine: &mut Engine, volumes: &[Volume], sector_bytes: u32, observer: OnProgress<'_>) {
        let verify = self.config.content == ContentMode::Verify;
        let step_sectors = (usize_from(MIB) / sector_bytes as usize).max(1);
        let sweep = |kind| Sweep::new(every_sector(volumes, step_sectors), kind, SWEEP_DEPTH);
        if verify {
            engine.verify();
            let outcome = engine.drive(&mut sweep(RequestKind::Write), RunStage::Writing, observer);
            self.note(outcome);
        }
        if let Some(load) = self.load.rehearsal().filter(|_| self.goes_on()) {
            self.stopped_by = engine.foresee(load).err();
        }
        let compares = self.compares(engine);
        if compares {
            engine.compare(self.config.verify, most_in_flight(&self.config.load).unwrap_or(1));
        }
        if self.goes_on() {
            let mut offered = OfferedLoad { load: &mut self.load, limits: self.config.limits };
            let outcome = engine.drive(&mut offered, RunStage::Running, observer);
            self.note(outcome);
            if let Some(fault) = self.load.fault() {
                self.stopped_by.get_or_insert(LiveError::from(fault.clone()));
            }
        }
        if compares && self.goes_on() {
            let budget = self.config.verify.budget(self.load.recorder().elapsed());
            let outcome = engine.read_back(READ_BACK_DEPTH, budget, observer);
            self.note(outcome);
        }
        // What is lost cannot be read.
        if verify && self.goes_on() && engine.outages.data_loss().is_none() {
            let outcome = engine.drive(&mut sweep(RequestKind::Read), RunStage::Checking, observer);
            self.note(outcome);
        }
    }

    /// Whether contents can be compared: members are real, and all there.
    fn compares(&self, engine: &Engine) -> bool {
        let config = self.config;
        let whole = config.missing.is_empty() && config.faults.is_empty();
        let whole = whole && config.events.iter().all(|event| event.scrub.is_some());
        config.content == ContentMode::Random && whole && keep_content(engine)
    }

    /// Why nothing was compared, and what to do; nothing where members keep nothing, or every sector was verified.
    fn why_not_compared(&self, engine: &Engine) -> Option<(&'static str, &'static str)> {
        if self.config.content == ContentMode::Verify || !keep_content(engine) {
            None
        } else if self.config.verify == Verify::Off {
            Some(("it was switched off", "Leave --verify off away."))
        } else {
            let why = "a member was missing, and what it held is worked out from redundancy that was never written";
            Some((why, "Measure the same array with all its members too."))
        }
    }

    fn goes_on(&self) -> bool {
        !self.interrupted && self.stopped_by.is_none()
    }

    fn note(&mut self, outcome: Result<StageEnd, LiveError>) {
        match outcome {
            Ok(ended) => self.interrupted |= ended == StageEnd::Interrupted,
            Err(error) => self.stopped_by = Some(error),
        }
    }

    fn result(self, engine: Engine, sector_bytes: u32) -> LiveResult {
        let recorder = self.load.recorder().clone();
        let (interface, registered_buffers) = engine.interface();
        let lateness = engine.lateness();
        let volume = |volume: u32| format!("volume {volume} of the array");
        let content_check = match engine.content() {
            Some(report) => Some(report.check(&volume)),
            None => self.why_not_compared(&engine).map(|(why, mend)| not_compared(why, mend)),
        };
        let unreadable = engine.unreadable();
        let sat_out = engine.sat_out().to_vec();
        LiveResult {
            elapsed: recorder.elapsed(),
            recorder,
            backlog: self.load.backlog(),
            hold: self.load.hold(),
            replayed: self.load.replayed(),
            files: self.load.files().cloned(),
            members: engine.counts(),
            targets: target::facts_of(&engine.targets),
            engine: EngineFacts {
                interface,
                registered_buffers,
                sector_bytes,
                parity_backend: raidlab_parity::backend().name(),
                accounts: engine.accounts,
                speed: self.config.emulation.speed,
                lateness,
            },
            accounting: engine.accounting(),
            interrupted: self.interrupted,
            stopped_by: self.stopped_by,
            checks: lateness.and_then(|lateness| lateness.check()).into_iter().chain(content_check).collect(),
            content: engine.content().cloned(),
            verify: engine.verifier.map(|verifier| verifier.into_report()),
            failed_members: engine.failed_members,
            rebuilds: engine.rebuilds,
            scrubs: engine.scrubs,
            sat_out,
            data_loss: engine.outages.data_loss(),
            unreadable,
            trace: engine.trace,
            inputs: engine.inputs,
        }
    }
}
