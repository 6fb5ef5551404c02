//! From a configuration to a simulation that can begin: everything is built here, and every key looked at.

use super::filling::CacheFilling;
use super::turns::Turns;
use super::{Observer, Sim};
use crate::blocks::BlockLayer;
use crate::cache::Cache;
use crate::config::{HostSpec, SimConfig};
use crate::conserve::Ledger;
use crate::events::Timers;
use crate::path::Phase;
use crate::walks::Walks;
use raidlab_array::{Array, Layout, Outages};
use raidlab_device::{Device, DeviceSpec};
use raidlab_load::files::FileLoad;
use raidlab_load::streams::StreamLoad;
use raidlab_load::trace::{Replay, TraceLoad};
use raidlab_load::{Generator, Load, RecordedLoad, RequestLog};
use raidlab_types::number::u32_from;
use raidlab_types::{Duration, Instant, Seed, SpecError, Volume};

/// The load of a trace.
pub(super) fn replaying(
    replay: Replay,
) -> impl FnOnce(&SimConfig, &[Volume], u32, Seed) -> Result<TraceLoad, SpecError> {
    move |config, volumes, sector_bytes, _| TraceLoad::new(replay, &config.load, &config.limits, volumes, sector_bytes)
}

/// A load of which each request leaves a row.
pub(super) fn recorded<L: Generator>(
    load: impl FnOnce(&SimConfig, &[Volume], u32, Seed) -> Result<L, SpecError>,
    log: RequestLog,
) -> impl FnOnce(&SimConfig, &[Volume], u32, Seed) -> Result<RecordedLoad<L>, SpecError> {
    move |config, volumes, sector_bytes, seed| {
        Ok(RecordedLoad::new(load(config, volumes, sector_bytes, seed)?, log, sector_bytes))
    }
}

/// The load of a configuration without files.
pub(super) fn requests(
    config: &SimConfig,
    volumes: &[Volume],
    sector_bytes: u32,
    seed: Seed,
) -> Result<Load, SpecError> {
    Load::new(&config.load, &config.workload, &config.limits, volumes, sector_bytes, seed)
}

/// That of one with streams.
pub(super) fn streams(
    config: &SimConfig,
    volumes: &[Volume],
    sector_bytes: u32,
    _seed: Seed,
) -> Result<StreamLoad, SpecError> {
    let Some(streams) = &config.streams else { unreachable!("the caller looked") };
    StreamLoad::new(streams, &config.limits, volumes, sector_bytes, config.path.ways.len())
}

/// That of one with files.
pub(super) fn files(
    config: &SimConfig,
    volumes: &[Volume],
    sector_bytes: u32,
    seed: Seed,
) -> Result<FileLoad, SpecError> {
    let Some(files) = &config.files else { unreachable!("the caller looked") };
    if config.streams.is_some() {
        return Err(SpecError::new("streams", "they do not go with whole files; accepted: either files or streams"));
    }
    for (key, is_whole) in [("missing", config.missing.is_empty()), ("events", config.events.is_empty())] {
        if !is_whole {
            return Err(SpecError::new(key, "whole files are read from arrays of which no member is lost; accepted: this key left out, or requests in place of files"));
        }
    }
    let load = FileLoad::new(files, &config.load, &config.workload.size, &config.limits, volumes, sector_bytes, seed)?;
    let HostSpec { file_us, file_us_per_kib, .. } = config.host;
    Ok(load.with_host_work(file_us, file_us_per_kib))
}

/// A device a member, and the sector they share.
fn devices(config: &SimConfig, leaves: usize) -> Result<(Vec<Device>, u32), SpecError> {
    let specs = &config.devices;
    if specs.len() != leaves && specs.len() != 1 {
        let message = format!("{} devices for {leaves} members; accepted: one, or one a member", specs.len());
        return Err(SpecError::new("members", message));
    }
    let largest = specs.iter().map(DeviceSpec::sector_bytes).max().unwrap_or(512);
    let sector_bytes = config.sector_bytes.unwrap_or(largest);
    let seed = Seed::new(config.seed).named("device");
    let build = |i: usize| {
        Device::new(&specs[i], sector_bytes, config.pair_pricing, seed.child(i as u64))
            .map_err(|e| SpecError::new(format!("members[{i}].{}", e.key), e.message))
    };
    let mut built = vec![build(0)?];
    for leaf in 1..leaves {
        let next = if specs.len() == 1 { built[0].twin(seed.child(leaf as u64)) } else { build(leaf)? };
        built.push(next);
    }
    Ok((built, sector_bytes))
}

/// How long the area of a member is, where all are areas of one device.
fn area_of(config: &SimConfig, device: &Device, sector_bytes: u64) -> Result<Option<u64>, SpecError> {
    let Some(bytes) = config.area_bytes else { return Ok(None) };
    let on_a_bus = config.path.member_path.iter().any(|visit| visit.phase == Phase::Bus);
    let not_with = [
        ("events", !config.events.is_empty()),
        ("rebuild", config.rebuild.is_some()),
        ("path.member_path", on_a_bus),
        ("policy", config.policy.merge_bytes > 0 || config.policy.plug),
    ];
    if let Some((key, _)) = not_with.into_iter().find(|&(_, is_there)| is_there) {
        let message = "does not go with members that are areas of one device; accepted: no events, rebuilds, buses or \
                       merging there, or a device a member";
        return Err(SpecError::new(key, message));
    }
    let longest = device.capacity_sectors() / config.tree.leaves() as u64 * sector_bytes;
    if bytes == 0 || bytes % sector_bytes > 0 || bytes > longest {
        let message = format!("{bytes}; accepted: a multiple of {sector_bytes}, at most {longest}");
        return Err(SpecError::new("area_bytes", message));
    }
    Ok(Some(bytes / sector_bytes))
}

/// The cache of each volume; empty where none has one.
fn caches(config: &SimConfig, layout: &Layout) -> Result<Vec<Option<Cache>>, SpecError> {
    let (specs, sector_bytes) = (&config.path.caches, u64::from(layout.sector_bytes()));
    for (i, spec) in specs.iter().enumerate() {
        spec.check(&format!("path.cache[{i}]"), sector_bytes)?;
    }
    if !specs.is_empty() && config.host.issue_us > 0.0 {
        let message = format!("{}; accepted: 0 where caches stand between host and array", config.host.issue_us);
        return Err(SpecError::new("host.issue", message));
    }
    if specs.is_empty() {
        return Ok(Vec::new());
    }
    let of = |i: usize, capacity_sectors: u64| {
        let spec = config.path.cache_of(u32_from(i))?;
        // Where nothing is striped, what is gathered before it is destaged is as long as a fetch.
        let (stripe, fetch) = (layout.full_stripe_sectors(i).max(1), spec.fetch_bytes / sector_bytes);
        let gathered = if stripe < fetch { fetch / stripe * stripe } else { stripe };
        Some(Cache::new(spec, sector_bytes, capacity_sectors, gathered))
    };
    Ok(layout.volumes().iter().enumerate().map(|(i, volume)| of(i, volume.capacity_sectors)).collect())
}

impl<'o, L: Generator, O: Observer> Sim<'o, L, O> {
    pub(super) fn new(
        config: &SimConfig,
        load: impl FnOnce(&SimConfig, &[Volume], u32, Seed) -> Result<L, SpecError>,
        observer: &'o mut O,
    ) -> Result<Self, SpecError> {
        config.tree.validate()?;
        let leaves = config.tree.leaves();
        let (mut devices, sector_bytes) = devices(config, config.area_bytes.map_or(leaves, |_| 1))?;
        let area_sectors = area_of(config, &devices[0], u64::from(sector_bytes))?;
        let sizes: Vec<u64> = match area_sectors {
            Some(sectors) => vec![sectors; leaves],
            None => devices.iter().map(Device::capacity_sectors).collect(),
        };
        let layout = Layout::new(&config.tree, &sizes, sector_bytes)?;
        let seed = Seed::new(config.seed).named("load");
        let mut load = load(config, layout.volumes(), sector_bytes, seed)?;
        if config.rebuild.is_some() || !config.events.is_empty() {
            // Days are told apart by their seconds.
            load.keep_histograms();
        }
        let volumes = layout.volumes().len();
        let merging = config.policy.merge_bytes > 0 || config.policy.plug;
        let longest = config.policy.merge_bytes / u64::from(sector_bytes);
        let blocks = merging.then(|| BlockLayer::new(longest, u64::from(sector_bytes)));
        let turns = Turns::new(config, merging)?;
        let blocks = if turns.is_some() { blocks.map(BlockLayer::in_turns) } else { blocks };
        let mut array = Array::new(layout, config.policy);
        array.expect_no_bytes();
        array.write_superblocks();
        let outages =
            Outages::new(&mut array, &config.missing, &config.events, config.rebuild, Seed::new(config.seed))?;
        let walk_seed = Seed::new(config.seed).named("walks");
        let walks = Walks::new(&config.path, &config.host, volumes, leaves, walk_seed, L::WORKS)?;
        for (leaf, device) in (0..).zip(&mut devices) {
            if let Some(bus) = walks.as_ref().and_then(|walks| walks.bus(leaf)) {
                let place = |e: SpecError| SpecError::new(format!("members[{leaf}].{}", e.key), e.message);
                device.share_bus(bus).map_err(place)?;
            }
        }
        let caches = caches(config, array.layout())?;
        let filling = CacheFilling::new(config, &devices).filter(|_| L::DRAWS);
        load.recorder_mut().wait(filling.is_some());
        Ok(Sim {
            now: Instant::ZERO,
            array,
            load,
            timers: Timers::new(devices.len(), merging),
            devices,
            area_sectors,
            walks,
            blocks,
            issue_cost: Duration::from_s_f64(config.host.issue_us / 1e6),
            sector_bytes: u64::from(sector_bytes),
            requests: Vec::new(),
            caches,
            arriving: Vec::new(),
            answered: false,
            issuers: Vec::new(),
            handled: 0,
            turns,
            measuring: false,
            filling,
            ledger: Ledger::default(),
            outages,
            observer,
        })
    }
}
