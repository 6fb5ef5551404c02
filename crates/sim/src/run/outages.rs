//! The members' bad days: who fails and when, who takes the place, and when a run that waits for that is over.
//!
//! A member that fails answers what it had been asked with [`OpError::MemberGone`], at the time at which it would have
//! been done. The new one is put in once nothing more is to come from the old, and is of its kind: the same model goes on,
//! so its arm begins where that of the old one stood.

use super::{Observer, Sim};
use crate::config::{FailureSpec, RebuildSpec, SimConfig};
use raidlab_array::{Array, MemberState};
use raidlab_load::Generator;
use raidlab_types::{Duration, Instant, LeafId, OpError, SpecError};

/// How often it is looked whether something is still to come from a member that has failed.
const LOOK_EVERY: Duration = Duration::from_ns(1_000_000);

#[derive(Debug, Clone, Copy)]
enum Step {
    Fail(LeafId),
    Replace(LeafId),
    End,
}

/// What became of the place of a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outage {
    pub(super) leaf: LeafId,
    pub(super) failed_at: Option<Instant>,
    pub(super) begun_at: Option<Instant>,
    pub(super) whole_at: Option<Instant>,
}

/// See the [module's documentation](self).
#[derive(Debug, Default)]
pub(super) struct Outages {
    rebuild: Option<RebuildSpec>,
    pub(super) places: Vec<Outage>,
    /// Few: the earliest is searched for.
    steps: Vec<(Instant, Step)>,
    /// The time of the earliest, or never.
    pub(super) next_at: Option<Instant>,
    /// Members that have failed and are not yet replaced.
    dead: Vec<LeafId>,
}

impl Outages {
    /// Takes the missing members out of the array, and puts new ones in if that is asked for.
    pub(super) fn new(config: &SimConfig, array: &mut Array) -> Result<Self, SpecError> {
        check(config, array)?;
        let mut outages = Outages { rebuild: config.rebuild, ..Outages::default() };
        for &leaf in &config.missing {
            array.set_member_state(leaf, MemberState::Missing);
        }
        if let Some(RebuildSpec { throttle, .. }) = config.rebuild {
            for &leaf in config.missing.iter() {
                if !array.member(leaf).writes() {
                    let replaced = array.replace_member(Instant::ZERO, leaf, throttle);
                    replaced.map_err(|error| SpecError::new("missing", error.to_string()))?;
                }
                let begun_at = Some(Instant::ZERO);
                outages.places.push(Outage { leaf, failed_at: None, begun_at, whole_at: None });
            }
        }
        for &FailureSpec { at_ns, fail: leaf } in &config.events {
            outages.places.push(Outage { leaf, failed_at: None, begun_at: None, whole_at: None });
            outages.plan(Instant::from_ns(at_ns), Step::Fail(leaf));
        }
        Ok(outages)
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

    fn place(&mut self, leaf: LeafId) -> Option<&mut Outage> {
        self.places.iter_mut().find(|place| place.leaf == leaf)
    }

    /// How an operation of a member ends that has come to its end.
    #[inline]
    pub(super) fn outcome(&self, leaf: LeafId) -> Result<(), OpError> {
        if self.dead.is_empty() || !self.dead.contains(&leaf) {
            return Ok(());
        }
        Err(OpError::MemberGone)
    }

    /// A member is whole.
    pub(super) fn rebuilt(&mut self, now: Instant, leaf: LeafId) {
        if let Some(place) = self.place(leaf) {
            place.whole_at = Some(now);
        }
        let watch_ns = self.rebuild.and_then(|rebuild| rebuild.watch_ns);
        if let Some(watch_ns) = watch_ns.filter(|_| self.places.iter().all(|place| place.whole_at.is_some())) {
            self.plan(now + Duration::from_ns(watch_ns), Step::End);
        }
    }
}

/// Whether members may be missing and fail as is asked, and the missing ones lie in the array.
fn check(config: &SimConfig, array: &mut Array) -> Result<(), SpecError> {
    let SimConfig { missing, events, rebuild, .. } = config;
    let leaves = config.tree.leaves();
    let failing: Vec<LeafId> = events.iter().map(|event| event.fail).collect();
    for (key, leaf) in missing.iter().map(|leaf| ("missing", leaf)).chain(failing.iter().map(|leaf| ("events", leaf))) {
        if *leaf as usize >= leaves {
            let message = format!("member {leaf} of {leaves}; accepted: 0 to {}", leaves - 1);
            return Err(SpecError::new(key, message));
        }
    }
    if let Some(twice) = failing.iter().enumerate().find(|(i, leaf)| failing[..*i].contains(leaf) || missing.contains(leaf)) {
        let message = format!("member {} is lost twice; accepted: each member once", twice.1);
        return Err(SpecError::new("events", message));
    }
    if let Some(RebuildSpec { throttle, .. }) = rebuild {
        throttle.check().map_err(|(key, message)| SpecError::new(format!("rebuild.throttle.{key}"), message))?;
        if missing.is_empty() && events.is_empty() {
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

impl<L: Generator, O: Observer> Sim<'_, L, O> {
    /// Does what is due of what was planned.
    #[cold]
    pub(super) fn take_step(&mut self) {
        let now = self.now;
        match self.outages.take(now) {
            Some(Step::Fail(leaf)) => {
                self.outages.dead.push(leaf);
                self.array.set_member_state(leaf, MemberState::Failed);
                self.array.handle_time(now);
                if let Some(place) = self.outages.place(leaf) {
                    place.failed_at = Some(now);
                }
                if let Some(rebuild) = self.outages.rebuild {
                    self.outages.plan(now + Duration::from_ns(rebuild.after_ns), Step::Replace(leaf));
                }
            }
            Some(Step::Replace(leaf)) if self.array.member(leaf).in_flight > 0 => {
                self.outages.plan(now + LOOK_EVERY, Step::Replace(leaf));
            }
            Some(Step::Replace(leaf)) => {
                let Some(RebuildSpec { throttle, .. }) = self.outages.rebuild else { return };
                if self.array.replace_member(now, leaf, throttle).is_ok() {
                    self.outages.dead.retain(|&dead| dead != leaf);
                    if let Some(place) = self.outages.place(leaf) {
                        place.begun_at = Some(now);
                    }
                }
            }
            Some(Step::End) => self.load.recorder_mut().close_at(now),
            None => {}
        }
    }
}
