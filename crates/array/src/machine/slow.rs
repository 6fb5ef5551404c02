//! Members that are slower than their peers are read last for a while.
//!
//! A disk that tries again and again what it answers in the end is no member that has failed, and whatever waits for it waits
//! with it. What is read there can be had from the others, as if it could not be read: it *sits out*, is written as ever, and
//! is tried again after a rest.
//!
//! How fast a member serves is what it has done over the time that it had something to do, the past half forgotten at every
//! look. That is the same for one with a long queue and for one with a short one.
//!
//! Invariants: no more sit out than the levels above bear beside those that are not whole; a read goes around them only with
//! the locks of one that works out what is lost; whoever cannot be served without them reads them.
//!
//! Reference: Hao et al., *The Tail at Store*, FAST 2016: how often a disk is how much slower than its peers.

use super::scrub::is_within;
use super::Array;
use crate::layout::{Layout, NodeId};
use crate::plan::{BadExtent, Body};
use crate::policy::{MemberState, SitOut};
use raidlab_types::number::f64_from;
use raidlab_types::{Duration, Extent, Instant, LeafId, OpKind};
use serde::Serialize;

/// Looks at how fast members are, until one that is slow all the time sits out.
const LOOKS: u64 = 30;

/// A member sat out, or does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SatOut {
    /// Which.
    pub leaf: LeafId,
    /// From when.
    pub begun_ns: u64,
    /// When it was read again; none where it still sits out.
    pub ended_ns: Option<u64>,
    /// How long an operation took it, on the mean of the time for which it had been slow then, or how long one had taken so far
    /// if that is more.
    pub mean_ns: f64,
    /// How long the median of its peers took.
    pub peers_ns: f64,
}

/// What a member has done.
#[derive(Debug, Clone, Copy, Default)]
struct Served {
    busy_ns: f64,
    /// Up to the end of its last operation.
    ended_ns: f64,
    done: f64,
}

impl Served {
    /// Mean time of an operation; none of a member that has had nothing to do.
    fn mean_ns(self) -> Option<f64> {
        let done = if self.done > 0.0 { self.done } else { 1.0 };
        (self.busy_ns > 0.0).then_some(self.busy_ns / done)
    }

    /// The mean of those done since, or the time that one has taken so far if that is more.
    fn mean_since(self, then: Served) -> Option<f64> {
        let (busy_ns, ended_ns) = (self.busy_ns - then.busy_ns, (self.ended_ns - then.busy_ns).max(0.0));
        let mean_ns = ended_ns / (self.done - then.done).max(1.0);
        (busy_ns > 0.0).then_some(mean_ns.max(busy_ns - ended_ns))
    }
}

/// How fast a member is.
#[derive(Debug, Clone)]
struct MemberPace {
    /// The volume it belongs to.
    volume: NodeId,
    in_flight: u32,
    /// Up to when its time is counted.
    counted_to: Instant,
    /// Of late, by which it is judged. What is left of few operations says little while another takes long.
    late: Served,
    /// Since the run began; and of every member up to when this one became slow.
    all: Served,
    then: Vec<Served>,
    slow_since: Option<Instant>,
    rests_until: Option<Instant>,
}

impl MemberPace {
    fn count(&mut self, now: Instant) {
        if self.in_flight > 0 {
            let busy_ns = f64_from(now.since(self.counted_to).as_ns());
            self.late.busy_ns += busy_ns;
            self.all.busy_ns += busy_ns;
        }
        self.counted_to = now;
    }
}

/// Who is slow.
#[derive(Debug)]
pub(super) struct Slowness {
    policy: SitOut,
    next_look: Instant,
    members: Vec<MemberPace>,
    means: Vec<f64>,
    /// Those that sit out, as members that cannot be read.
    pub(super) out: Vec<BadExtent>,
    sat_out: Vec<SatOut>,
}

impl Slowness {
    /// Of every member, where the policy asks.
    pub(super) fn of_members(layout: &Layout, policy: Option<SitOut>) -> Option<Slowness> {
        let policy = policy?;
        let of = |leaf: LeafId| MemberPace {
            volume: (0..layout.volumes().len())
                .map(|volume| layout.volume_node(volume))
                .find(|&volume| is_within(layout, volume, layout.node_of(leaf)))
                .expect("every member belongs to a volume"),
            in_flight: 0,
            counted_to: Instant::ZERO,
            late: Served::default(),
            all: Served::default(),
            then: vec![Served::default(); layout.leaves()],
            slow_since: None,
            rests_until: None,
        };
        let members: Vec<MemberPace> = (0..).take(layout.leaves()).map(of).collect();
        let next_look = Instant::ZERO + look_every(policy);
        Some(Slowness { policy, next_look, members, means: Vec::new(), out: Vec::new(), sat_out: Vec::new() })
    }

    fn begun(&mut self, leaf: LeafId, now: Instant) {
        let member = &mut self.members[leaf as usize];
        member.count(now);
        member.in_flight += 1;
    }

    fn done(&mut self, leaf: LeafId, now: Instant) {
        let member = &mut self.members[leaf as usize];
        member.count(now);
        member.in_flight -= 1;
        for served in [&mut member.late, &mut member.all] {
            (served.ended_ns, served.done) = (served.busy_ns, served.done + 1.0);
        }
    }

    /// How long an operation takes a member, and the median of its peers, where `mean` says it of each.
    fn means(&mut self, leaf: LeafId, mean: impl Fn(&[MemberPace], usize) -> Option<f64>) -> Option<(f64, f64)> {
        let (leaf, members) = (leaf as usize, &self.members);
        let own = mean(members, leaf)?;
        let is_peer = |&other: &usize| other != leaf && members[other].volume == members[leaf].volume;
        self.means.clear();
        self.means.extend((0..members.len()).filter(is_peer).filter_map(|other| mean(members, other)));
        self.means.sort_unstable_by(f64::total_cmp);
        Some((own, *self.means.get(self.means.len() / 2)?))
    }

    /// Since when the member has been slower by more than the policy says, if it is.
    fn slow_since(&mut self, leaf: LeafId, now: Instant) -> Option<Instant> {
        let (own, peers) = self.means(leaf, |members, of| members[of].late.mean_ns())?;
        if own <= self.policy.times * peers {
            return None;
        }
        if self.members[leaf as usize].slow_since.is_none() {
            let mut then = std::mem::take(&mut self.members[leaf as usize].then);
            then.iter_mut().zip(&self.members).for_each(|(then, member)| *then = member.all);
            self.members[leaf as usize].then = then;
        }
        self.members[leaf as usize].slow_since.or(Some(now))
    }

    /// The means since the member became slow: of who has had nothing to do since, those before.
    fn means_while_slow(&mut self, leaf: LeafId) -> Option<(f64, f64)> {
        self.means(leaf, |members, of| {
            let MemberPace { all, late, .. } = members[of];
            all.mean_since(members[leaf as usize].then[of]).or(late.mean_ns())
        })
    }

    /// It is read as ever from now on.
    fn end(&mut self, leaf: LeafId, now: Instant) {
        self.out.retain(|out| out.leaf != leaf);
        let member = &mut self.members[leaf as usize];
        (member.rests_until, member.slow_since) = (None, None);
        member.late = Served::default();
        if let Some(last) = self.sat_out.iter_mut().rfind(|sat_out| sat_out.leaf == leaf) {
            last.ended_ns = Some(now.as_ns());
        }
    }
}

fn look_every(policy: SitOut) -> Duration {
    Duration::from_ns((policy.hold / LOOKS).max(1))
}

impl Array {
    /// A member begins with an operation of a window.
    #[inline]
    pub(super) fn note_begun(&mut self, leaf: LeafId, kind: OpKind) {
        if let Some(slowness) = self.slowness.as_mut().filter(|_| kind != OpKind::Flush) {
            slowness.begun(leaf, self.now);
        }
    }

    /// A member is done with an operation of a window, whatever became of it.
    #[inline]
    pub(super) fn note_done(&mut self, window: u32, node: u32) {
        let Some(slowness) = &mut self.slowness else { return };
        if let Body::Device { leaf, kind, .. } = self.windows[window as usize].plan.nodes[node as usize].body {
            if kind != OpKind::Flush {
                slowness.done(leaf, self.now);
            }
        }
        if slowness.next_look <= self.now {
            self.look_for_slow_members();
        }
    }

    /// Whether some member sits out.
    #[inline]
    pub(super) fn has_members_out(&self) -> bool {
        self.slowness.as_ref().is_some_and(|slowness| !slowness.out.is_empty())
    }

    #[cold]
    fn look_for_slow_members(&mut self) {
        let Some(mut slowness) = self.slowness.take() else { return };
        let now = self.now;
        slowness.next_look = now + look_every(slowness.policy);
        slowness.members.iter_mut().for_each(|member| member.count(now));
        for leaf in (0..).take(slowness.members.len()) {
            match slowness.members[leaf as usize].rests_until {
                Some(until) if until <= now => slowness.end(leaf, now),
                Some(_) => {}
                None => self.look_at(&mut slowness, leaf),
            }
        }
        for member in &mut slowness.members {
            let Served { busy_ns, ended_ns, done } = member.late;
            member.late = Served { busy_ns: busy_ns / 2.0, ended_ns: ended_ns / 2.0, done: done / 2.0 };
        }
        self.slowness = Some(slowness);
    }

    /// Has a member sit out that has been slow for long enough, where the levels bear that.
    fn look_at(&self, slowness: &mut Slowness, leaf: LeafId) {
        let slow_since = slowness.slow_since(leaf, self.now);
        slowness.members[leaf as usize].slow_since = slow_since;
        let Some(since) = slow_since else { return };
        if self.now.since(since).as_ns() < slowness.policy.hold || !self.bears_out(slowness, leaf) {
            return;
        }
        let Some((mean_ns, peers_ns)) = slowness.means_while_slow(leaf) else { return };
        let rest = Duration::from_ns(slowness.policy.rest);
        slowness.members[leaf as usize].rests_until = Some(self.now + rest);
        let extent = Extent::new(0, self.layout.node(self.layout.node_of(leaf)).capacity);
        slowness.out.push(BadExtent { leaf, extent });
        slowness.sat_out.push(SatOut { leaf, begun_ns: self.now.as_ns(), ended_ns: None, mean_ns, peers_ns });
    }

    /// Whether the member's volume gives back all it should without it and those that sit out.
    fn bears_out(&self, slowness: &Slowness, leaf: LeafId) -> bool {
        let mut without = self.views.clone();
        for out in slowness.out.iter().map(|out| out.leaf).chain([leaf]) {
            without.set_state(&self.layout, out, MemberState::Failed);
        }
        !without.is_unsure(slowness.members[leaf as usize].volume)
    }

    /// A member has come or gone: nobody sits out whom others may need now.
    pub(super) fn end_sitting_out(&mut self) {
        let now = self.now;
        if let Some(slowness) = &mut self.slowness {
            while let Some(&BadExtent { leaf, .. }) = slowness.out.first() {
                slowness.end(leaf, now);
            }
        }
    }

    /// The members that sat out, and those that do.
    pub fn sat_out(&self) -> &[SatOut] {
        self.slowness.as_ref().map_or(&[], |slowness| &slowness.sat_out)
    }
}
