//! The members' bad days: who fails, becomes slow or cannot be read in places and when, who takes the place, when the array
//! goes over what it holds, and when a run that waits for that is over.
//!
//! Purpose: the same for every clock. A driver asks when something is due ([`Outages::next_at`]), has it done
//! ([`Outages::take_step`]), and ends what a member is asked after its failure as [`Outages::outcome`] says.
//!
//! Invariant: a new member is put in once nothing more is to come from the old one.

use crate::layout::Layout;
use crate::machine::{Array, ScrubCounts, ScrubKind};
use crate::plan::BadBlockCounts;
use crate::policy::MemberState;
use crate::throttle::RebuildThrottle;
use raidlab_types::number::f64_from;
use raidlab_types::{Duration, Extent, Instant, Lba, LeafId, OpError, OpId, OpKind, RequestError, Seed, SpecError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How often it is looked whether something is still to come from a member that has failed.
const LOOK_EVERY: Duration = Duration::from_ns(1_000_000);

/// How often it is looked whether a scrub may begin: one goes on.
const LOOK_FOR_SCRUB_EVERY: Duration = Duration::from_ns(100_000_000);

/// A place that cannot be read: the physical sector of a disk.
const PLACE_BYTES: u64 = 4096;

/// The most places of one event.
const MOST_PLACES: u64 = 100_000;

/// The longest unit of a rebuild that may be asked for.
const LONGEST_UNIT: u64 = 16 << 20;

/// Members are rebuilt while the load runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RebuildSpec {
    /// How fast.
    pub throttle: RebuildThrottle,
    /// Nanoseconds from a failure to the moment at which a new member takes the place, or a distributed spare does where
    /// the tree has one that is free.
    #[serde(default)]
    pub after: u64,
    /// The run ends so many nanoseconds after the last member is whole, if it is not over by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<u64>,
    /// Bytes of each member that are restored in one step; a chunk, at most 512 KiB, when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<u64>,
}

impl RebuildSpec {
    /// At once, and the run goes on as long as its limits say.
    pub fn at(throttle: RebuildThrottle) -> Self {
        RebuildSpec { throttle, after: 0, watch: None, unit: None }
    }

    fn check(&self, sector_bytes: u32) -> Result<(), SpecError> {
        self.throttle.check().map_err(|(key, message)| SpecError::new(format!("rebuild.throttle.{key}"), message))?;
        match self.unit {
            Some(bytes) if bytes == 0 || bytes > LONGEST_UNIT || !bytes.is_multiple_of(u64::from(sector_bytes)) => {
                let message =
                    format!("{bytes} bytes; accepted: a multiple of the sector ({sector_bytes} bytes), at most 16 MiB");
                Err(SpecError::new("rebuild.unit", message))
            }
            _ => Ok(()),
        }
    }
}

/// What befalls a member while the load runs: it fails, becomes slow, or cannot be read in places. Or the array goes over what
/// it holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberEventSpec {
    /// When, in nanoseconds from the beginning of the run.
    pub at: u64,
    /// The member that fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail: Option<LeafId>,
    /// The member that becomes slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<LeafId>,
    /// How many times as long all takes it from then on; 1 ends that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<f64>,
    /// The member that can no longer be read in places of 4 KiB, until they are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<LeafId>,
    /// How many these are; they lie anywhere on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<u64>,
    /// The array begins to go over all it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub: Option<ScrubKind>,
    /// How fast it does; as md when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle: Option<RebuildThrottle>,
    /// The run ends so many nanoseconds after that is over, if it is not over by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<u64>,
}

impl MemberEventSpec {
    /// A failure.
    pub fn failure(at: u64, leaf: LeafId) -> Self {
        MemberEventSpec { at, fail: Some(leaf), ..MemberEventSpec::default() }
    }

    /// From `at` on, all takes the member so many times as long.
    pub fn slowness(at: u64, leaf: LeafId, times: f64) -> Self {
        MemberEventSpec { at, slow: Some(leaf), times: Some(times), ..MemberEventSpec::default() }
    }

    /// At `at` the array begins to go over what it holds.
    pub fn scrub(at: u64, kind: ScrubKind, throttle: RebuildThrottle) -> Self {
        MemberEventSpec { at, scrub: Some(kind), throttle: Some(throttle), ..MemberEventSpec::default() }
    }

    /// From `at` on, so many places of the member cannot be read until they are written.
    pub fn unreadable(at: u64, leaf: LeafId, places: u64) -> Self {
        MemberEventSpec { at, unreadable: Some(leaf), places: Some(places), ..MemberEventSpec::default() }
    }

    /// What there is to do, if the keys go together.
    fn step(&self) -> Option<Step> {
        let MemberEventSpec { fail, slow, times, unreadable, places, scrub, throttle, watch, .. } = *self;
        let of_member = match (fail, slow, times, unreadable, places) {
            (None, None, None, None, None) => {
                return scrub.map(|kind| Step::Scrub(kind, throttle.unwrap_or(RebuildThrottle::MD), watch));
            }
            (Some(leaf), None, None, None, None) => Step::Fail(leaf),
            (None, Some(leaf), Some(times), None, None) => Step::Slow(leaf, times),
            (None, None, None, Some(leaf), Some(places)) => Step::Spoil(leaf, places),
            _ => return None,
        };
        (scrub.is_none() && throttle.is_none() && watch.is_none()).then_some(of_member)
    }
}

/// How far the place of a member that failed or is rebuilt has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RebuildResult {
    /// Which.
    pub leaf: LeafId,
    /// When the one before it failed, if that was during the run.
    pub failed_ns: Option<u64>,
    /// When it took the place, if any did.
    pub begun_ns: Option<u64>,
    /// Bytes of it that were rebuilt.
    pub rebuilt_bytes: u64,
    /// Bytes that its place in the array has, without distributed spares that are free.
    pub member_bytes: u64,
    /// How long it took from then, or how long it had until the run was over.
    pub elapsed_ns: u64,
    /// Whether it is whole.
    pub is_over: bool,
    /// When it was given up, if it was: too little could be read of the others.
    pub stopped_ns: Option<u64>,
    /// The one before it had too many read errors.
    #[serde(skip)]
    pub has_worn_out: bool,
    /// What it held goes to a distributed spare, not to a new member.
    #[serde(skip)]
    pub in_spare: bool,
    /// Places that it was rebuilt without, since too little could be read of the others there.
    #[serde(skip)]
    pub lost_places: u64,
    /// Bytes that these are.
    #[serde(skip)]
    pub lost_bytes: u64,
}

/// How far a scrub has come, and what it has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ScrubResult {
    /// What it did where redundancy did not agree.
    pub kind: ScrubKind,
    /// When it began.
    pub begun_ns: u64,
    /// How long it took, or how long it had until the run was over.
    pub elapsed_ns: u64,
    /// Whether it is over.
    pub is_over: bool,
    /// Bytes that were gone over, of all members of redundant levels together; of nested ones of each level.
    pub done_bytes: u64,
    /// Bytes of these.
    pub all_bytes: u64,
    /// Sectors in which redundancy did not agree.
    pub mismatches: u64,
    /// Sectors that could not be read and were written anew.
    pub mended: u64,
    /// Bytes left out, since too little can be read of them.
    pub left_out_bytes: u64,
    /// Bytes of which nothing was compared, since no redundancy was left.
    pub bare_bytes: u64,
}

/// What could not be read of members, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct UnreadableResult {
    /// All of it.
    pub bytes: u64,
    /// That was met by a request and written anew from the others; whoever meets a sector twice counts it twice.
    pub repaired_bytes: u64,
    /// That still cannot be read, of members that are there.
    pub left_bytes: u64,
}

/// A member failed while so many others held not yet what they should that something can be given back no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DataLoss {
    /// When, in nanoseconds from the beginning of the run, which ends with it.
    pub at_ns: u64,
    /// Whose failure it was.
    pub leaf: LeafId,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Fail(LeafId),
    Slow(LeafId, f64),
    /// So many places of it cannot be read.
    Spoil(LeafId, u64),
    Replace(LeafId),
    /// How, at what pace, and how long the run goes on after it.
    Scrub(ScrubKind, RebuildThrottle, Option<u64>),
    End,
}

/// What was done, of which a driver may want to know.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Befallen {
    /// The member answers no more.
    Failed(LeafId),
    /// The member answers no more, and with it data are lost: the run is over.
    Lost(LeafId),
    /// All that it begins from now on takes the member so many times as long.
    Slowed(LeafId, f64),
    /// A new one is in its place. What it holds is of no account: nothing that was not rebuilt is read.
    Replaced(LeafId),
    /// The run is over.
    End,
    /// Nothing yet.
    Nothing,
}

/// What became of the place of a member.
#[derive(Debug, Clone, Copy)]
struct Place {
    leaf: LeafId,
    failed_at: Option<Instant>,
    begun_at: Option<Instant>,
    whole_at: Option<Instant>,
    stopped_at: Option<Instant>,
    has_worn_out: bool,
    in_spare: bool,
    lacks: BadBlockCounts,
}

impl Place {
    fn of(leaf: LeafId) -> Place {
        let lacks = BadBlockCounts::default();
        let (has_worn_out, in_spare) = (false, false);
        Place { leaf, failed_at: None, begun_at: None, whole_at: None, stopped_at: None, has_worn_out, in_spare, lacks }
    }
}

/// A scrub that has begun.
#[derive(Debug, Clone, Copy)]
struct ScrubPass {
    kind: ScrubKind,
    watch: Option<u64>,
    begun_at: Instant,
    over_at: Option<Instant>,
    /// Once it is over.
    found: ScrubCounts,
}

/// The members' bad days: who fails and when, who takes the place, and when a run that waits for that is over.
#[derive(Debug, Default)]
pub struct Outages {
    rebuild: Option<RebuildSpec>,
    places: Vec<Place>,
    scrubs: Vec<ScrubPass>,
    /// Few: the earliest is searched for.
    steps: Vec<(Instant, Step)>,
    next_at: Option<Instant>,
    /// Members that have failed and are not yet replaced.
    dead: Vec<LeafId>,
    /// Sectors of members' data areas that cannot be read until they are written.
    unreadable: BTreeSet<(LeafId, Lba)>,
    /// How many of them there were.
    spoiled: u64,
    /// Where they lie.
    seed: Option<Seed>,
    data_loss: Option<DataLoss>,
}

impl Outages {
    /// Takes the missing members out of the array, and puts new ones in if that is asked for.
    ///
    /// # Errors
    /// Where that makes no sense for the array; the error names the key.
    pub fn new(
        array: &mut Array,
        missing: &[LeafId],
        events: &[MemberEventSpec],
        rebuild: Option<RebuildSpec>,
        seed: Seed,
    ) -> Result<Self, SpecError> {
        check(array, missing, events, rebuild)?;
        let mut outages = Outages { rebuild, seed: Some(seed.named("unreadable")), ..Outages::default() };
        array.set_rebuild_unit(rebuild.and_then(|rebuild| rebuild.unit));
        for &leaf in missing {
            array.set_member_state(leaf, MemberState::Missing);
        }
        if let Some(RebuildSpec { throttle, .. }) = rebuild {
            for &leaf in missing {
                let mut in_spare = false;
                if !array.member(leaf).writes() {
                    let begun = begin_rebuild(array, Instant::ZERO, leaf, throttle);
                    in_spare = !begun.map_err(|error| SpecError::new("missing", error.to_string()))?;
                }
                outages.places.push(Place { begun_at: Some(Instant::ZERO), in_spare, ..Place::of(leaf) });
            }
        }
        for event in events {
            outages.places.extend(event.fail.map(Place::of));
            event.step().into_iter().for_each(|step| outages.plan(Instant::from_ns(event.at), step));
        }
        Ok(outages)
    }

    /// When the next thing is due, if any is.
    #[inline]
    pub fn next_at(&self) -> Option<Instant> {
        self.next_at
    }

    /// Whether anything befalls anybody, or the array goes over what it holds.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty() && self.scrubs.is_empty()
    }

    fn plan(&mut self, at: Instant, step: Step) {
        self.steps.push((at, step));
        self.next_at = self.steps.iter().map(|(at, _)| *at).min();
    }

    fn take(&mut self, now: Instant) -> Option<Step> {
        let due = self.steps.iter().position(|(at, _)| *at <= now)?;
        let (_, step) = self.steps.remove(due);
        self.next_at = self.steps.iter().map(|(at, _)| *at).min();
        Some(step)
    }

    fn place(&mut self, leaf: LeafId) -> Option<&mut Place> {
        self.places.iter_mut().find(|place| place.leaf == leaf)
    }

    /// How the operation `id` of a member ends, whose own end has come.
    ///
    /// # Errors
    /// Of a member that has failed, and of a read of what cannot be read.
    #[inline]
    pub fn outcome(&mut self, array: &Array, id: OpId, leaf: LeafId) -> Result<(), OpError> {
        if self.dead.is_empty() && self.unreadable.is_empty() {
            return Ok(());
        }
        self.outcome_on_bad_days(array, id, leaf)
    }

    #[cold]
    fn outcome_on_bad_days(&mut self, array: &Array, id: OpId, leaf: LeafId) -> Result<(), OpError> {
        if self.is_gone(leaf) {
            return Err(OpError::MemberGone);
        }
        let Some((_, kind, extent)) = array.moves(id) else { return Ok(()) };
        let met = |&(_, lba): &(LeafId, Lba)| lba;
        let mut within = self.unreadable.range((leaf, extent.lba)..(leaf, extent.end())).map(met);
        match kind {
            OpKind::Read => {
                let Some(first) = within.next() else { return Ok(()) };
                let sectors = 1 + (first + 1..).zip(within).take_while(|(next, lba)| next == lba).count() as u64;
                Err(OpError::Media(Extent::new(first + array.layout().data_offset(leaf), sectors)))
            }
            OpKind::Write | OpKind::WriteZeroes => {
                let all: Vec<Lba> = within.collect();
                all.iter().for_each(|&lba| {
                    self.unreadable.remove(&(leaf, lba));
                });
                Ok(())
            }
            OpKind::Flush | OpKind::Discard => Ok(()),
        }
    }

    /// Whether a member has failed, and none has taken its place.
    #[inline]
    pub fn is_gone(&self, leaf: LeafId) -> bool {
        self.dead.contains(&leaf)
    }

    /// What could not be read of members so far, and what became of it; none where nothing was to be so.
    pub fn unreadable(&self, array: &Array) -> Option<UnreadableResult> {
        let bytes = |sectors: u64| sectors * u64::from(array.layout().sector_bytes());
        let is_there = |&&(leaf, _): &&(LeafId, Lba)| array.member(leaf).writes();
        (self.spoiled > 0).then(|| UnreadableResult {
            bytes: bytes(self.spoiled),
            repaired_bytes: bytes(array.repaired_sectors()),
            left_bytes: bytes(self.unreadable.iter().filter(is_there).count() as u64),
        })
    }

    /// Places of a member cannot be read from now on, no two of them the same (R. W. Floyd, CACM 30, 1987).
    fn spoil(&mut self, layout: &Layout, leaf: LeafId, places: u64, nth: usize) {
        let Some(seed) = self.seed else { return };
        let mut draws = seed.child(u64::from(leaf)).child(nth as u64).draws();
        let (of_place, all) = (sectors_of_place(layout), places_of(layout, leaf));
        let mut drawn = BTreeSet::new();
        for last in all.saturating_sub(places)..all {
            let place = draws.below(last + 1);
            drawn.insert(if drawn.contains(&place) { last } else { place });
        }
        let before = self.unreadable.len();
        let sectors = |place: u64| place * of_place..(place + 1) * of_place;
        self.unreadable.extend(drawn.into_iter().flat_map(sectors).map(|lba| (leaf, lba)));
        self.spoiled += (self.unreadable.len() - before) as u64;
    }

    /// The failure that was one too many, if there was one.
    pub fn data_loss(&self) -> Option<DataLoss> {
        self.data_loss
    }

    /// A member is whole.
    pub fn rebuilt(&mut self, now: Instant, leaf: LeafId, array: &Array) {
        if let Some(place) = self.place(leaf) {
            (place.whole_at, place.lacks) = (Some(now), array.bad_blocks(leaf));
        }
        let watch_ns = self.rebuild.and_then(|rebuild| rebuild.watch);
        if let Some(watch_ns) = watch_ns.filter(|_| self.places.iter().all(|place| place.whole_at.is_some())) {
            self.plan(now + Duration::from_ns(watch_ns), Step::End);
        }
    }

    /// The array has found a member gone: where it had too many read errors it is one that failed, and is replaced as
    /// any.
    pub fn failed(&mut self, now: Instant, leaf: LeafId, array: &Array) {
        if !array.has_too_many_read_errors(leaf) {
            return;
        }
        let place = Place { failed_at: Some(now), has_worn_out: true, ..Place::of(leaf) };
        match self.place(leaf) {
            Some(known) => *known = place,
            None => self.places.push(place),
        }
        if let Some(rebuild) = self.rebuild {
            self.plan(now + Duration::from_ns(rebuild.after), Step::Replace(leaf));
        }
    }

    /// A member is rebuilt no further: too little can be read of the others.
    pub fn stopped(&mut self, now: Instant, leaf: LeafId) {
        if let Some(place) = self.place(leaf) {
            place.stopped_at = Some(now);
        }
    }

    /// A scrub is over.
    pub fn scrubbed(&mut self, now: Instant, array: &Array) {
        let Some(pass) = self.scrubs.last_mut().filter(|pass| pass.over_at.is_none()) else { return };
        (pass.over_at, pass.found) = (Some(now), array.scrub_counts());
        if let Some(watch_ns) = pass.watch {
            self.plan(now + Duration::from_ns(watch_ns), Step::End);
        }
    }

    /// How far every scrub has come at `now`.
    pub fn scrub_results(&self, now: Instant, array: &Array) -> Vec<ScrubResult> {
        let bytes = |sectors: u64| sectors * u64::from(array.layout().sector_bytes());
        let of = |&ScrubPass { kind, begun_at, over_at, found, .. }: &ScrubPass| {
            let found = if over_at.is_some() { found } else { array.scrub_counts() };
            ScrubResult {
                kind,
                begun_ns: begun_at.as_ns(),
                elapsed_ns: over_at.unwrap_or(now).since(begun_at).as_ns(),
                is_over: over_at.is_some(),
                done_bytes: bytes(found.done),
                all_bytes: bytes(found.all),
                mismatches: found.mismatches,
                mended: found.mended,
                left_out_bytes: bytes(found.left_out),
                bare_bytes: bytes(found.bare),
            }
        };
        self.scrubs.iter().map(of).collect()
    }

    /// Does one thing that is due.
    #[cold]
    pub fn take_step(&mut self, now: Instant, array: &mut Array) -> Befallen {
        match self.take(now) {
            Some(Step::Fail(leaf)) => {
                self.dead.push(leaf);
                array.set_member_state(leaf, MemberState::Failed);
                array.handle_time(now);
                if let Some(place) = self.place(leaf) {
                    place.failed_at = Some(now);
                }
                if array.has_lost_data() {
                    self.data_loss = Some(DataLoss { at_ns: now.as_ns(), leaf });
                    return Befallen::Lost(leaf);
                }
                if let Some(rebuild) = self.rebuild {
                    self.plan(now + Duration::from_ns(rebuild.after), Step::Replace(leaf));
                }
                Befallen::Failed(leaf)
            }
            Some(Step::Slow(leaf, times)) => Befallen::Slowed(leaf, times),
            Some(Step::Spoil(leaf, places)) => {
                self.spoil(array.layout(), leaf, places, self.steps.len());
                Befallen::Nothing
            }
            // Another has taken the place already.
            Some(Step::Replace(leaf)) if array.member(leaf).writes() => Befallen::Nothing,
            Some(Step::Replace(leaf)) if array.member(leaf).in_flight > 0 && !array.has_spare_for(leaf) => {
                self.plan(now + LOOK_EVERY, Step::Replace(leaf));
                Befallen::Nothing
            }
            Some(Step::Replace(leaf)) => {
                let Some(RebuildSpec { throttle, .. }) = self.rebuild else { return Befallen::Nothing };
                let Ok(is_new) = begin_rebuild(array, now, leaf, throttle) else { return Befallen::Nothing };
                if let Some(place) = self.place(leaf) {
                    (place.begun_at, place.in_spare) = (Some(now), !is_new);
                }
                if !is_new {
                    return Befallen::Nothing;
                }
                self.dead.retain(|&dead| dead != leaf);
                self.unreadable.retain(|&(of, _)| of != leaf);
                Befallen::Replaced(leaf)
            }
            Some(Step::Scrub(kind, throttle, watch)) => {
                // One after the other.
                if array.scrub(now, kind, throttle).is_err() {
                    self.plan(now + LOOK_FOR_SCRUB_EVERY, Step::Scrub(kind, throttle, watch));
                } else {
                    let found = ScrubCounts::default();
                    self.scrubs.push(ScrubPass { kind, watch, begun_at: now, over_at: None, found });
                }
                Befallen::Nothing
            }
            Some(Step::End) => Befallen::End,
            None => Befallen::Nothing,
        }
    }

    /// How far every place has come at `now`; `sectors` says how many a member has.
    pub fn results(&self, now: Instant, array: &Array, sectors: impl Fn(LeafId) -> u64) -> Vec<RebuildResult> {
        let sector_bytes = u64::from(array.layout().sector_bytes());
        // What nobody can read any more after a failure too many gives no rebuild up: the run is over.
        let is_lost = |at: &Instant| self.data_loss.is_some_and(|loss| loss.at_ns <= at.as_ns());
        let of = |&Place { leaf, failed_at, begun_at, whole_at, stopped_at, has_worn_out, in_spare, lacks }: &Place| {
            let member_sectors = array.used_sectors(leaf, sectors(leaf) - array.layout().data_offset(leaf));
            let lacks = if whole_at.is_some() { lacks } else { array.bad_blocks(leaf) };
            RebuildResult {
                leaf,
                failed_ns: failed_at.map(Instant::as_ns),
                begun_ns: begun_at.map(Instant::as_ns),
                rebuilt_bytes: begun_at.map_or(0, |_| array.rebuilt_sectors(leaf).min(member_sectors) * sector_bytes),
                member_bytes: member_sectors * sector_bytes,
                elapsed_ns: begun_at
                    .map_or(0, |begun_at| whole_at.or(stopped_at).unwrap_or(now).since(begun_at).as_ns()),
                is_over: whole_at.is_some(),
                stopped_ns: stopped_at.filter(|at| whole_at.is_none() && !is_lost(at)).map(Instant::as_ns),
                has_worn_out,
                in_spare,
                lost_places: lacks.entries,
                lost_bytes: lacks.sectors * sector_bytes,
            }
        };
        self.places.iter().map(of).collect()
    }
}

/// Has a lost member rebuilt: in a distributed spare where there is one for it, else as a new member in its place. Whether
/// there is a new one.
fn begin_rebuild(
    array: &mut Array,
    now: Instant,
    leaf: LeafId,
    throttle: RebuildThrottle,
) -> Result<bool, RequestError> {
    if array.has_spare_for(leaf) {
        return array.spare_member(now, leaf, throttle).map(|()| false);
    }
    array.replace_member(now, leaf, throttle).map(|()| true)
}

/// Whether members may be missing and fail as is asked. A failure that comes after another's place is taken is allowed
/// whether that one is whole by then or not: only the run can tell.
fn check(
    array: &mut Array,
    missing: &[LeafId],
    events: &[MemberEventSpec],
    rebuild: Option<RebuildSpec>,
) -> Result<(), SpecError> {
    check_events(array.layout(), events)?;
    check_members(array.layout().leaves(), missing, events)?;
    check_places(array.layout(), events)?;
    let failures = failures(events);
    if let Some(rebuild) = rebuild {
        rebuild.check(array.layout().sector_bytes())?;
        let may_wear_out = array.limits_read_errors() && events.iter().any(|event| event.unreadable.is_some());
        if missing.is_empty() && failures.is_empty() && !may_wear_out {
            let message =
                "no member is missing; accepted: beside missing = [2] or events that take one out, or unreadable \
                           with policy.max_read_errors";
            return Err(SpecError::new("rebuild", message));
        }
    }
    missing.iter().for_each(|&leaf| array.set_member_state(leaf, MemberState::Missing));
    if !array.bears_its_losses() {
        return Err(too_many_missing(array.layout(), missing));
    }
    if rebuild.is_some() {
        // New ones take their places as the run begins.
        missing.iter().for_each(|&leaf| array.set_member_state(leaf, MemberState::Online));
    }
    let still_missing = if rebuild.is_some() { &[] } else { missing };
    let mut in_order = failures;
    in_order.sort_by_key(|(_, event)| event.at);
    for (n, &(i, event)) in in_order.iter().enumerate() {
        let is_away = |earlier: &Failure| rebuild.is_none_or(|rebuild| earlier.at + rebuild.after >= event.at);
        let away: Vec<Failure> = in_order[..n].iter().map(|&(_, earlier)| earlier).filter(is_away).collect();
        // Of those away, so many have to be back before it is borne.
        let too_many = (0..=away.len()).find(|&back| bears(array, &away[back..], event));
        if too_many != Some(0) {
            let back = too_many.filter(|_| rebuild.is_some()).map(|back| away[back - 1]);
            let after = rebuild.map_or(0, |rebuild| rebuild.after);
            let message = why_too_many(array.layout().tolerance(), still_missing, &away, back.map(|one| (one, after)));
            return Err(SpecError::new(format!("events[{i}].fail"), message));
        }
    }
    Ok(())
}

/// Whether each says one thing.
fn check_events(layout: &Layout, events: &[MemberEventSpec]) -> Result<(), SpecError> {
    for (i, event) in events.iter().enumerate() {
        if event.step().is_none() {
            let message = "does not say what befalls which member; accepted: fail, slow with times, unreadable with places, or scrub";
            return Err(SpecError::new(format!("events[{i}]"), message));
        }
        if event.scrub.is_some() && !layout.has_redundancy() {
            let message = "this array has no redundancy to compare; accepted: a tree with copies or parity";
            return Err(SpecError::new(format!("events[{i}].scrub"), message));
        }
        if let Some(Err((key, message))) = event.throttle.map(|throttle| throttle.check()) {
            return Err(SpecError::new(format!("events[{i}].throttle.{key}"), message));
        }
        if let Some(times) = event.times.filter(|times| !(1.0..=1e6).contains(times)) {
            let message = format!("{times}; accepted: a number from 1 to 1000000");
            return Err(SpecError::new(format!("events[{i}].times"), message));
        }
    }
    Ok(())
}

/// Sectors of a place that cannot be read.
fn sectors_of_place(layout: &Layout) -> u64 {
    (PLACE_BYTES / u64::from(layout.sector_bytes())).max(1)
}

/// How many places a member has.
fn places_of(layout: &Layout, leaf: LeafId) -> u64 {
    layout.node(layout.node_of(leaf)).capacity / sectors_of_place(layout)
}

/// Whether no member is to have more places than it has that cannot be read.
fn check_places(layout: &Layout, events: &[MemberEventSpec]) -> Result<(), SpecError> {
    for (i, event) in events.iter().enumerate() {
        let Some((leaf, places)) = event.unreadable.zip(event.places) else { continue };
        let most = places_of(layout, leaf).min(MOST_PLACES);
        if !(1..=most).contains(&places) {
            let message =
                format!("member {leaf} has {} places of 4 KiB; accepted: 1 to {most}", places_of(layout, leaf));
            return Err(SpecError::new(format!("events[{i}].places"), message));
        }
    }
    Ok(())
}

/// A member fails.
#[derive(Debug, Clone, Copy)]
struct Failure {
    at: u64,
    fail: LeafId,
}

/// The failures among the events, and which event each is.
fn failures(events: &[MemberEventSpec]) -> Vec<(usize, Failure)> {
    let one = |(i, event): (usize, &MemberEventSpec)| event.fail.map(|fail| (i, Failure { at: event.at, fail }));
    events.iter().enumerate().filter_map(one).collect()
}

/// Whether the array bears a failure while others are away.
fn bears(array: &mut Array, away: &[Failure], event: Failure) -> bool {
    let lost = || away.iter().chain([&event]).map(|one| one.fail);
    lost().for_each(|leaf| array.set_member_state(leaf, MemberState::Missing));
    let bears = array.bears_its_losses();
    lost().for_each(|leaf| array.set_member_state(leaf, MemberState::Online));
    bears
}

/// Whether each exists, and is lost once.
fn check_members(leaves: usize, missing: &[LeafId], events: &[MemberEventSpec]) -> Result<(), SpecError> {
    let mut lost: Vec<LeafId> = Vec::new();
    let of_missing = missing.iter().enumerate().map(|(i, &leaf)| (format!("missing[{i}]"), leaf));
    let of_failures = failures(events).into_iter().map(|(i, failure)| (format!("events[{i}].fail"), failure.fail));
    let slow = |(i, event): (usize, &MemberEventSpec)| event.slow.map(|leaf| (format!("events[{i}].slow"), leaf));
    let of_slow = events.iter().enumerate().filter_map(slow);
    let spoiled =
        |(i, event): (usize, &MemberEventSpec)| event.unreadable.map(|leaf| (format!("events[{i}].unreadable"), leaf));
    let of_spoiled = events.iter().enumerate().filter_map(spoiled);
    for (key, leaf) in of_missing.chain(of_failures).chain(of_slow).chain(of_spoiled) {
        if leaf as usize >= leaves {
            return Err(SpecError::new(key, format!("there is no such member; accepted: 0 to {}", leaves - 1)));
        }
        if key.ends_with("slow") || key.ends_with("unreadable") {
            // It may become slow and quick again, and bad more than once.
            continue;
        }
        if lost.contains(&leaf) {
            return Err(SpecError::new(key, "this member is named before; accepted: each member once"));
        }
        lost.push(leaf);
    }
    Ok(())
}

/// That so many cannot be missing.
pub fn too_many_missing(layout: &Layout, missing: &[LeafId]) -> SpecError {
    let accepted = match layout.tolerance() {
        0 => "[]".to_string(),
        1 => "[] or one of the members, such as [0]".to_string(),
        n => format!("at most {n} members whichever they are, or more that it bears"),
    };
    let (names, bears) = (named(missing), borne(layout.tolerance()));
    let message = format!("{names} cannot be missing: this array bears {bears}; accepted: {accepted}");
    SpecError::new("missing", message)
}

fn named(members: &[LeafId]) -> String {
    let names: Vec<String> = members.iter().map(ToString::to_string).collect();
    format!("member{} {}", if members.len() == 1 { "" } else { "s" }, names.join(", "))
}

fn borne(tolerance: usize) -> String {
    match tolerance {
        0 => "no failure".to_string(),
        1 => "the loss of any one member".to_string(),
        n => format!("the loss of any {n} members"),
    }
}

/// Why a failure is certain to lose data: who is gone when it comes, and whose place is to be taken first (`back`, and how
/// long after its failure it is).
fn why_too_many(tolerance: usize, missing: &[LeafId], away: &[Failure], back: Option<(Failure, u64)>) -> String {
    let gone: Vec<LeafId> = missing.iter().copied().chain(away.iter().map(|event| event.fail)).collect();
    if gone.is_empty() || tolerance == 0 {
        let of_it = if tolerance == 0 { "" } else { " of this member" };
        return format!("this array bears no failure{of_it}; accepted: a tree with redundancy, or no events");
    }
    let (names, bears) = (named(&gone), borne(tolerance));
    let why = format!("data would be lost: {names} would still be gone then, and this array bears {bears}");
    match back {
        Some((one, after)) => {
            let s = f64_from(one.at + after) / 1e9;
            format!("{why}; accepted: at later than {s} s, when a new one is in the place of member {}", one.fail)
        }
        None => format!("{why}; accepted: fewer failures, or a rebuild and this one after it"),
    }
}
