//! What a drive has behind it when the first operation comes.
//!
//! A drive in its steady state has been overwritten several times. That is worked out without time, once for all drives
//! of one geometry: the state is kept, and each drive starts from a copy, on which it makes some writes of its own so
//! that members of an array do not clean in step. What came of these is kept too, as arrays that are compared with common
//! seeds begin with the same drives: copying one takes a tenth of the time.
//!
//! Without time no die has more to do than another, so pages that may go to any go to all in turn.
//!
//! Invariant: the state of a drive is a function of its geometry, victim choice, placement, initial state and seed; that it is kept
//! changes nothing but how long it takes.

use super::blocks::Victim;
use super::ftl::{Ftl, Placement};
use super::geometry::FlashGeometry;
use super::spec::{FlashModel, Initial};
use raidlab_types::number::{f64_from, u32_from, usize_from};
use raidlab_types::{CounterRng, Seed};
use std::sync::{Arc, Mutex, PoisonError};

type DriveState = (FlashGeometry, Victim, Placement, Initial);

/// A state of drives, or that of the drive of a seed.
type KeptState = (DriveState, Option<Seed>);

/// The states that were asked for last.
static KEPT: Mutex<Vec<(KeptState, Arc<Ftl>)>> = Mutex::new(Vec::new());
/// Eight drives of one 64th of a terabyte, and what they begin from.
const KEPT_BYTES: usize = 320 << 20;

/// Write amplification has settled when it differs by no more than this between parts of a turn.
const SETTLED: f64 = 0.01;
/// A turn is as many writes as the drive has units; it is looked at in parts.
const PARTS: u64 = 4;
const MOST_PARTS: u64 = 40 * PARTS;
/// Writes of its own that a drive begins with, as a share of a turn.
const OWN: u64 = 16;

/// Writes whose tables are fetched together: one after another, each would wait for memory.
const AHEAD: usize = 32;

/// A drive as it is when the first operation comes.
pub(crate) fn prepared(model: &FlashModel, seed: Seed) -> Ftl {
    if model.spec.initial == Initial::Fresh {
        return Ftl::new(model.geometry, model.spec.victim, model.spec.placement);
    }
    let state = (model.geometry, model.spec.victim, model.spec.placement, model.spec.initial);
    let own = (model.spec.initial == Initial::Steady).then_some(seed);
    let mut ftl = Ftl::clone(&kept((state, own)));
    ftl.begin();
    ftl
}

/// Works a state out, or takes the one that was worked out before. Whoever wants the same at the same time waits.
fn kept(key: KeptState) -> Arc<Ftl> {
    let (state, seed) = key;
    let common = seed.map(|seed| (seed, kept((state, None))));
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let found = match kept.iter().position(|(of, _)| *of == key) {
        Some(place) => kept.remove(place),
        None => (key, Arc::new(common.map_or_else(|| worked_out(state), |(seed, common)| with_its_own(&common, seed)))),
    };
    let ftl = Arc::clone(&found.1);
    kept.push(found);
    let mut bytes = kept.iter().map(|(_, ftl)| ftl.bytes()).sum::<usize>();
    while bytes > KEPT_BYTES && kept.len() > 1 {
        bytes -= kept.remove(0).1.bytes();
    }
    ftl
}

/// The drive of a seed, after some writes of its own.
fn with_its_own(common: &Ftl, seed: Seed) -> Ftl {
    let mut ftl = common.clone();
    let units = u64::from(ftl.geometry().logical_units());
    overwrite(&mut ftl, &mut seed.named("precondition").draws(), units / OWN);
    ftl
}

fn worked_out((geometry, victim, placement, initial): DriveState) -> Ftl {
    let mut ftl = Ftl::new(geometry, victim, placement);
    (0..geometry.logical_units()).for_each(|unit| ftl.write(unit, &mut ()));
    if initial == Initial::Steady {
        settle(&mut ftl, u64::from(geometry.logical_units()));
    }
    ftl
}

/// Overwrites until write amplification is that of a turn and of half a turn ago, and for two turns at least.
fn settle(ftl: &mut Ftl, units: u64) {
    let mut rng = Seed::new(0).named("steady state").draws();
    let mut seen: Vec<f64> = Vec::new();
    let back = |seen: &[f64], parts: usize| seen[seen.len() - 1] / seen[seen.len() - 1 - parts] - 1.0;
    while (seen.len() as u64) < MOST_PARTS {
        let before = ftl.counts;
        overwrite(ftl, &mut rng, (units / PARTS).max(1));
        let (host, moved) = (ftl.counts.host - before.host, ftl.counts.moved - before.moved);
        seen.push(1.0 + f64_from(moved) / f64_from(host));
        let turn = usize_from(PARTS);
        if seen.len() > 2 * turn && [turn, turn / 2].iter().all(|&ago| back(&seen, ago).abs() <= SETTLED) {
            return;
        }
    }
}

fn overwrite(ftl: &mut Ftl, rng: &mut CounterRng, writes: u64) {
    let units = u64::from(ftl.geometry().logical_units());
    let mut next = [0; AHEAD];
    let mut left = usize_from(writes);
    while left > 0 {
        let next = &mut next[..left.min(AHEAD)];
        left -= next.len();
        next.iter_mut().for_each(|unit| *unit = u32_from(rng.below(units)));
        ftl.fetch(next);
        next.iter().for_each(|&unit| ftl.write(unit, &mut ()));
    }
}
