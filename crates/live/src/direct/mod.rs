//! The direct engine: plain targets, each a volume of the load, without an array between.
//!
//! Purpose: to measure targets as they are, with a meter that costs next to nothing: the reference that arrays are held
//! against, and `raidlab measure`. Load, record, targets, memory and content are those of the array's engine.
//!
//! A thread a worker; each has its own load (a share of the depth or rate), ring, memory and record. The calling thread
//! supervises: it tells the observer how far the run is, and stops the workers when told to.
//!
//! Invariants:
//! - Every request submitted is counted once: as completed, as failed, or as in flight at the end.
//! - What was measured is kept, whatever stops the run.
//! - Where something had to be given up (io_uring, registered memory), the result says so.
//!
//! Code map: `span` says which part of a target is its volume, `deal` divides the load, `worker_pool` sets workers up and
//! watches over them, `worker` is the loop of one, `slot` a request on its way, `transport` hands it to the ring or to
//! `threads`, `shared` is what threads tell one another, `result` the answer; `crate::usage` is what it cost.

mod config;
mod deal;
mod read_back;
mod result;
mod shared;
mod slot;
mod span;
mod threads;
mod transport;
mod worker;
mod worker_pool;

pub use config::{DirectConfig, Interface};
pub use result::{DirectFacts, DirectResult, RequestCounts};
pub use span::TargetSpan;

use crate::begin;
use crate::config::OnProgress;
use crate::content::{Knowledge, Stamper, Verify};
use crate::error::LiveError;
use crate::run::writes;
use crate::target::{self, Filling, Intent, Target, TargetSpec};
use deal::{deal, Share, TargetPart};
use raidlab_load::{Generator, Load, LoadSpec, Volume};
use raidlab_types::Seed;
use shared::SharedWindow;
use span::Sectors;
use worker_pool::WorkerPool;

/// Runs a cell over plain targets. `observer` is told of progress about seven times a second, and may end the run with
/// what it has.
///
/// # Errors
/// Before the load runs: bad input, a refusal of the safety rules, a missing interface, a target that cannot be opened or
/// filled. What fails later is in [`DirectResult::stopped_by`], beside what was measured.
pub fn run(config: &DirectConfig, observer: OnProgress<'_>) -> Result<DirectResult, LiveError> {
    check(config)?;
    target::memory::check_total(&config.targets)?;
    let intent = Intent { writes: writes(&config.workload), destroy: &config.destroy, buffered: config.buffered };
    let targets = target::open_all(&config.targets, "targets", &|_| false, intent)?;
    let sector_bytes = target::sector_at_least(config.sector_bytes, &targets)?;
    let mut targets: Vec<Target> = targets.into_iter().flatten().collect();
    let parts = span::volumes(&config.spans, &targets, sector_bytes)?;
    let shares = deal(config)?;
    let loads = loads(config, &shares, &parts, sector_bytes)?;
    let seed = Seed::new(config.seed);
    let fill_seed = seed.named("fill");
    let stamper = Stamper::of_this_run(fill_seed.as_u64(), sector_bytes);
    let filling = |number| Filling::Random(fill_seed.child(number).draws(), stamper);
    let numbered = targets.iter_mut().enumerate().map(|(i, target)| (i as u64, target));
    let stopped = target::fill_all(numbered, &filling, observer)?.is_break();
    if intent.writes {
        // A run that does not compare may stand beside a tool that writes as it likes.
        let known = if config.verify == Verify::Off { Knowledge::Nothing } else { Knowledge::Placed };
        targets.iter_mut().try_for_each(|target| target.will_be_written(sector_bytes, known))?;
    }
    WorkerPool::new(config, &targets, &parts, sector_bytes, shares).run(loads, stopped, observer)
}

/// The load of each worker.
fn loads(
    config: &DirectConfig,
    shares: &[Share],
    parts: &[Sectors],
    sector_bytes: u32,
) -> Result<Vec<Load>, LiveError> {
    let seed = Seed::new(config.seed).named("load");
    let alone = shares.len() == 1;
    let limits = if alone { config.limits() } else { SharedWindow::limits_of_one(&config.limits()) };
    let one = |(i, share): (usize, &Share)| -> Result<Load, LiveError> {
        let volume = |part: &TargetPart| Volume {
            capacity_sectors: part.of_span(parts[part.target], &config.workload, sector_bytes).count,
        };
        let volumes: Vec<Volume> = share.parts.iter().map(volume).collect();
        // Alone it asks for the very requests that the other engines would.
        let seed = if alone { seed } else { seed.named("worker").child(i as u64) };
        let mut load = Load::new(&share.load, &config.workload, &limits, &volumes, sector_bytes, seed)?;
        load.delay_arrivals(share.delay);
        load.keep_histograms();
        Ok(load)
    };
    shares.iter().enumerate().map(one).collect()
}

/// What can be checked before anything is opened.
fn check(config: &DirectConfig) -> Result<(), LiveError> {
    if config.targets.is_empty() || config.targets.len() > 1 << 16 {
        let message = format!("{} targets: there must be between 1 and 65536", config.targets.len());
        return Err(LiveError::bad("targets", message));
    }
    if let Some(i) = config.targets.iter().position(TargetSpec::is_emulated) {
        let message = "an emulated disk is a member of a tree: its engine is \"live\", with {\"kind\": \"member\"}";
        return Err(LiveError::bad(format!("targets[{i}].kind"), message));
    }
    begin::check(config.begin_at_unix_ns)?;
    if config.batch == Some(0) {
        return Err(LiveError::bad("batch", "0 must be at least 1"));
    }
    if config.poll_completions && config.interface == Interface::Threads {
        return Err(LiveError::bad("poll_completions", "threads cannot ask for completions: that needs io_uring"));
    }
    if config.compressible_percent > 100 {
        let message = format!("{} must lie between 0 and 100", config.compressible_percent);
        return Err(LiveError::bad("compressible_percent", message));
    }
    Ok(())
}

/// The most requests that may be in flight at once, as far as the load says.
pub(crate) fn most_in_flight(load: &LoadSpec) -> Option<u32> {
    match load {
        LoadSpec::Closed { depth } => Some(*depth),
        LoadSpec::Open { max_in_flight, .. } => *max_in_flight,
        LoadSpec::Hold { max_depth, .. } => Some(*max_depth),
    }
}
