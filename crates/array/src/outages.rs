//! The members' bad days: who fails or becomes slow and when, who takes the place, and when a run that waits for that is
//! over.
//!
//! Purpose: the same for every clock. A driver asks when something is due ([`Outages::next_at`]), has it done
//! ([`Outages::take_step`]), and ends what a member is asked after its failure as [`Outages::outcome`] says.
//!
//! Invariant: a new member is put in once nothing more is to come from the old one.

use crate::machine::Array;
use crate::policy::MemberState;
use crate::throttle::RebuildThrottle;
use raidlab_types::{Duration, Instant, LeafId, OpError, SpecError};
use serde::{Deserialize, Serialize};

/// How often it is looked whether something is still to come from a member that has failed.
const LOOK_EVERY: Duration = Duration::from_ns(1_000_000);

/// Members are rebuilt while the load runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RebuildSpec {
    /// How fast.
    pub throttle: RebuildThrottle,
    /// Nanoseconds from a failure to the moment at which a new member takes the place.
    #[serde(default)]
    pub after: u64,
    /// The run ends so many nanoseconds after the last member is whole, if it is not over by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<u64>,
}

impl RebuildSpec {
    /// At once, and the run goes on as long as its limits say.
    pub fn at(throttle: RebuildThrottle) -> Self {
        RebuildSpec { throttle, after: 0, watch: None }
    }
}

/// What befalls a member while the load runs: it fails, or it becomes slow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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
}

impl MemberEventSpec {
    /// A failure.
    pub fn failure(at: u64, leaf: LeafId) -> Self {
        MemberEventSpec { at, fail: Some(leaf), slow: None, times: None }
    }

    /// From `at` on, all takes the member so many times as long.
    pub fn slowness(at: u64, leaf: LeafId, times: f64) -> Self {
        MemberEventSpec { at, fail: None, slow: Some(leaf), times: Some(times) }
    }

    /// What there is to do, if the keys go together.
    fn step(&self) -> Option<Step> {
        match (self.fail, self.slow, self.times) {
            (Some(leaf), None, None) => Some(Step::Fail(leaf)),
            (None, Some(leaf), Some(times)) => Some(Step::Slow(leaf, times)),
            _ => None,
        }
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
    /// Bytes of it that hold what they should.
    pub rebuilt_bytes: u64,
    /// Bytes that its place in the array has.
    pub member_bytes: u64,
    /// How long it took from then, or how long it had until the run was over.
    pub elapsed_ns: u64,
    /// Whether it is whole.
    pub is_over: bool,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Fail(LeafId),
    Slow(LeafId, f64),
    Replace(LeafId),
    End,
}

/// What was done, of which a driver may want to know.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Befallen {
    /// The member answers no more.
    Failed(LeafId),
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
}

/// The members' bad days: who fails and when, who takes the place, and when a run that waits for that is over.
#[derive(Debug, Default)]
pub struct Outages {
    rebuild: Option<RebuildSpec>,
    places: Vec<Place>,
    /// Few: the earliest is searched for.
    steps: Vec<(Instant, Step)>,
    next_at: Option<Instant>,
    /// Members that have failed and are not yet replaced.
    dead: Vec<LeafId>,
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
    ) -> Result<Self, SpecError> {
        check(array, missing, events, rebuild)?;
        let mut outages = Outages { rebuild, ..Outages::default() };
        for &leaf in missing {
            array.set_member_state(leaf, MemberState::Missing);
        }
        if let Some(RebuildSpec { throttle, .. }) = rebuild {
            for &leaf in missing {
                if !array.member(leaf).writes() {
                    let replaced = array.replace_member(Instant::ZERO, leaf, throttle);
                    replaced.map_err(|error| SpecError::new("missing", error.to_string()))?;
                }
                let begun_at = Some(Instant::ZERO);
                outages.places.push(Place { leaf, failed_at: None, begun_at, whole_at: None });
            }
        }
        for event in events {
            if let Some(leaf) = event.fail {
                outages.places.push(Place { leaf, failed_at: None, begun_at: None, whole_at: None });
            }
            event.step().into_iter().for_each(|step| outages.plan(Instant::from_ns(event.at), step));
        }
        Ok(outages)
    }

    /// When the next thing is due, if any is.
    #[inline]
    pub fn next_at(&self) -> Option<Instant> {
        self.next_at
    }

    /// Whether anything befalls anybody.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
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

    /// How an operation of a member ends that has come to its end.
    ///
    /// # Errors
    /// Of one that has failed.
    #[inline]
    pub fn outcome(&self, leaf: LeafId) -> Result<(), OpError> {
        if self.dead.is_empty() || !self.dead.contains(&leaf) {
            return Ok(());
        }
        Err(OpError::MemberGone)
    }

    /// A member is whole.
    pub fn rebuilt(&mut self, now: Instant, leaf: LeafId) {
        if let Some(place) = self.place(leaf) {
            place.whole_at = Some(now);
        }
        let watch_ns = self.rebuild.and_then(|rebuild| rebuild.watch);
        if let Some(watch_ns) = watch_ns.filter(|_| self.places.iter().all(|place| place.whole_at.is_some())) {
            self.plan(now + Duration::from_ns(watch_ns), Step::End);
        }
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
                if let Some(rebuild) = self.rebuild {
                    self.plan(now + Duration::from_ns(rebuild.after), Step::Replace(leaf));
                }
                Befallen::Failed(leaf)
            }
            Some(Step::Slow(leaf, times)) => Befallen::Slowed(leaf, times),
            Some(Step::Replace(leaf)) if array.member(leaf).in_flight > 0 => {
                self.plan(now + LOOK_EVERY, Step::Replace(leaf));
                Befallen::Nothing
            }
            Some(Step::Replace(leaf)) => {
                let Some(RebuildSpec { throttle, .. }) = self.rebuild else { return Befallen::Nothing };
                if array.replace_member(now, leaf, throttle).is_err() {
                    return Befallen::Nothing;
                }
                self.dead.retain(|&dead| dead != leaf);
                if let Some(place) = self.place(leaf) {
                    place.begun_at = Some(now);
                }
                Befallen::Replaced(leaf)
            }
            Some(Step::End) => Befallen::End,
            None => Befallen::Nothing,
        }
    }

    /// How far every place has come at `now`; `sectors` says how many a member has.
    pub fn results(&self, now: Instant, array: &Array, sectors: impl Fn(LeafId) -> u64) -> Vec<RebuildResult> {
        let sector_bytes = u64::from(array.layout().sector_bytes());
        let of = |&Place { leaf, failed_at, begun_at, whole_at }: &Place| {
            let member_sectors = sectors(leaf) - array.layout().data_offset(leaf);
            RebuildResult {
                leaf,
                failed_ns: failed_at.map(Instant::as_ns),
                begun_ns: begun_at.map(Instant::as_ns),
                rebuilt_bytes: begun_at.map_or(0, |_| array.member(leaf).valid.min(member_sectors) * sector_bytes),
                member_bytes: member_sectors * sector_bytes,
                elapsed_ns: begun_at.map_or(0, |begun_at| whole_at.unwrap_or(now).since(begun_at).as_ns()),
                is_over: whole_at.is_some(),
            }
        };
        self.places.iter().map(of).collect()
    }
}

/// Whether members may be missing and fail as is asked.
fn check(
    array: &mut Array,
    missing: &[LeafId],
    events: &[MemberEventSpec],
    rebuild: Option<RebuildSpec>,
) -> Result<(), SpecError> {
    let leaves = array.layout().leaves();
    let failing: Vec<LeafId> = events.iter().filter_map(|event| event.fail).collect();
    let slow: Vec<LeafId> = events.iter().filter_map(|event| event.slow).collect();
    if events.iter().any(|event| event.step().is_none()) {
        let message = "one does not say what befalls which member; accepted: fail, or slow with times";
        return Err(SpecError::new("events", message));
    }
    if let Some(times) = events.iter().filter_map(|event| event.times).find(|times| !(1.0..=1e6).contains(times)) {
        return Err(SpecError::new("events", format!("times = {times}; accepted: a number from 1 to 1000000")));
    }
    for (key, lost) in [("missing", missing), ("events", &failing), ("events", &slow)] {
        if let Some(leaf) = lost.iter().find(|leaf| **leaf as usize >= leaves) {
            let message = format!("member {leaf} of {leaves}; accepted: 0 to {}", leaves - 1);
            return Err(SpecError::new(key, message));
        }
    }
    let is_twice = |(i, leaf): (usize, &LeafId)| failing[..i].contains(leaf) || missing.contains(leaf);
    if let Some(i) = (0..failing.len()).find(|&i| is_twice((i, &failing[i]))) {
        let message = format!("member {} is lost twice; accepted: each member once", failing[i]);
        return Err(SpecError::new("events", message));
    }
    if let Some(RebuildSpec { throttle, .. }) = rebuild {
        throttle.check().map_err(|(key, message)| SpecError::new(format!("rebuild.throttle.{key}"), message))?;
        if missing.is_empty() && failing.is_empty() {
            let message = "no member is missing; accepted: beside missing = [2] or events";
            return Err(SpecError::new("rebuild", message));
        }
    }
    for (key, lost) in [("missing", missing), ("events", &failing)] {
        lost.iter().for_each(|&leaf| array.set_member_state(leaf, MemberState::Missing));
        if !array.bears_its_losses() {
            let message = format!("members {lost:?} are more than this array can lose");
            return Err(SpecError::new(key, message));
        }
    }
    failing.iter().for_each(|&leaf| array.set_member_state(leaf, MemberState::Online));
    Ok(())
}
