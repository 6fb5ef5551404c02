//! The array goes over all it holds, and sees whether it is what its redundancy says: a scrub.
//!
//! It goes node by node, those below first, as a rebuild goes through one node: unit by unit, each a window with the locks of
//! a write, at the pace of a throttle. A unit reads all of its rows and compares ([`Planner::verify`]); what cannot be read, and
//! where that is asked for what is wrong, is written anew from the rest ([`Planner::restore`]) and looked at once more. While
//! members are rebuilt no unit begins.
//!
//! Who is wrong is said by whoever has the bytes ([`ComputeWork::mismatches`]): of RAID 6 with all its members and of three
//! copies the one that differs, else nobody. Then the data, or the first copy, is believed, as Linux md does always.
//!
//! [`Planner::verify`]: crate::plan::Planner::verify
//! [`Planner::restore`]: crate::plan::Planner::restore

use super::rebuild::{measures, Rebuild};
use super::{split, Array, ComputeWork, Event, Owner, WindowPhase};
use crate::layout::{Layout, Node, NodeId};
use crate::level::{for_level, Content, Personality};
use crate::plan::{place, ComputeKind, Input, Planner, Space, WrongExtent};
use crate::throttle::RebuildThrottle;
use crate::weakness::Weakness;
use raidlab_types::{gf, Extent, Instant, OpId, RequestError, SpecError};
use serde::{Deserialize, Serialize};

/// How often a unit is mended before what is still wrong is left as it is.
const MENDED_AT_MOST: u8 = 2;

/// What a scrub does where redundancy does not agree, in the words of Linux md's `sync_action`. All of them mend what cannot
/// be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScrubKind {
    /// It counts.
    Check,
    /// It counts, and writes anew what is wrong.
    Repair,
    /// It does not compare: parities and all copies but the first are written anew, from the rest.
    Resync,
}

/// What a scrub has found so far, in sectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScrubCounts {
    /// Gone over, of all children of the nodes that have redundancy.
    pub done: u64,
    /// How many these have.
    pub all: u64,
    /// Where redundancy did not agree; a sector of every child is one.
    pub mismatches: u64,
    /// That could not be read, and could be written anew.
    pub mended: u64,
    /// Of children, that were left out, since too little of them can be read.
    pub left_out: u64,
    /// Of children, of which nothing was compared: those that are gone leave nothing that could disagree.
    pub bare: u64,
}

/// A sector of every input of a segment that are not what they say of one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScrubMismatch {
    segment: u32,
    sector: u32,
    /// Number of the input that is wrong, where they say so.
    culprit: Option<usize>,
}

/// A scrub under way.
#[derive(Debug)]
pub(super) struct Scrub {
    kind: ScrubKind,
    throttle: RebuildThrottle,
    /// Nodes whose turn has not come.
    to_come: Vec<NodeId>,
}

impl Scrub {
    /// Whether all is read and compared.
    pub(super) fn compares(&self) -> bool {
        self.kind != ScrubKind::Resync
    }
}

impl ComputeWork<'_> {
    /// Tells where a computation that verifies has found that its inputs do not agree, once it is done: `sector_of` gives a
    /// sector of scratch memory.
    pub fn mismatches<'m>(&self, sector_of: impl Fn(u32) -> &'m [u8], mut tell: impl FnMut(ScrubMismatch)) {
        if self.kind != ComputeKind::Verify {
            return;
        }
        for (number, segment) in (0..).zip(self.segments) {
            let sums = || segment.outputs.iter().flatten().map(|(_, offset)| offset);
            for sector in 0..segment.sectors {
                if sums().all(|offset| sector_of(offset + sector).iter().all(|&byte| byte == 0)) {
                    continue;
                }
                let culprit = match segment.outputs {
                    [Some((Space::Scratch, first)), Some((Space::Scratch, second))] => {
                        let sums = [first, second].map(|offset| sector_of(offset + sector));
                        culprit(self.plan.inputs(segment), sums)
                    }
                    _ => None,
                };
                tell(ScrubMismatch { segment: number, sector, culprit });
            }
        }
    }
}

/// The only input of which a change makes both sums what they are.
fn culprit(inputs: &[Input], [first, second]: [&[u8]; 2]) -> Option<usize> {
    let explains = |input: &Input| {
        let [a, b] = input.coefficients;
        first.iter().zip(second).all(|(&s, &t)| gf::mul(a, t) == gf::mul(b, s))
    };
    let mut found = inputs.iter().enumerate().filter(|(_, input)| explains(input)).map(|(number, _)| number);
    let culprit = found.next()?;
    found.next().is_none().then_some(culprit)
}

/// The nodes with redundancy, those below before those above.
fn redundant(layout: &Layout) -> impl Iterator<Item = NodeId> + '_ {
    layout.nodes.iter().filter(|node| node.bears > 0).map(|node| node.id).rev()
}

/// Whether `id` is the node or lies below it.
pub(super) fn is_within(layout: &Layout, node: NodeId, id: NodeId) -> bool {
    node == id || layout.node(node).children.iter().any(|&child| is_within(layout, child, id))
}

/// Sectors of the node that those above it use: what lies behind may hold anything, once the node was lost and came back.
fn used_sectors(layout: &Layout, id: NodeId) -> u64 {
    let node = layout.node(id);
    let of_parent = |parent: &&Node| parent.children.contains(&id);
    let Some(parent) = layout.nodes.iter().find(of_parent) else { return node.capacity };
    let position = parent.children.iter().position(|&child| child == id).map_or(0, place);
    let (mut end, used) = (0, used_sectors(layout, parent.id));
    if used == 0 {
        return 0;
    }
    for_level!(parent, level => level.for_each_share(parent, Extent::new(0, used), |child, part| {
        if child == id {
            end = end.max(part.end());
        }
    }));
    // The last row may not have a chunk for every child.
    let is_used = |lba: u64| match for_level!(parent, level => level.content(parent, position, lba)) {
        Content::Data(up) => up < used,
        Content::Other(_) => true,
        Content::Unused => false,
    };
    while end > 0 && !is_used(end - 1) {
        end -= 1;
    }
    // Stripes are written whole.
    end.next_multiple_of(node.alignment).min(node.capacity)
}

/// Sectors of each child that a scrub goes over, and of a unit: chunks are compared with their first copies.
fn measures_of_scrub(layout: &Layout, id: NodeId) -> (u64, u64) {
    let (node, used) = (layout.node(id), used_sectors(layout, id));
    let mut end = 0;
    if used == 0 {
        return (0, 1);
    }
    for_level!(node, level => level.for_each_share(node, Extent::new(0, used), |_, part| {
        if part.lba == 0 {
            end = end.max(part.end());
        }
    }));
    (end, measures(layout, node, None).1)
}

/// The node with redundancy that a unit is of, and its part of that.
fn redundant_part(layout: &Layout, id: NodeId, extent: Extent) -> (NodeId, Extent) {
    let (node, mut part) = (layout.node(id), (id, extent));
    if node.bears == 0 {
        // No unit is longer than a chunk.
        for_level!(node, level => level.for_each_share(node, extent, |child, share| part = (child, share)));
    }
    part
}

impl Array {
    /// Begins to go over all that the array holds, at the pace of `throttle`, from the next [`Array::handle_time`] on. Its
    /// end comes as [`Event::ScrubDone`].
    ///
    /// # Errors
    /// When another scrub is under way, or the array has no redundancy.
    pub fn scrub(&mut self, now: Instant, kind: ScrubKind, throttle: RebuildThrottle) -> Result<(), SpecError> {
        if self.scrub.is_some() {
            return Err(SpecError::new("scrub", "another is under way; accepted: one after the other"));
        }
        let to_come: Vec<NodeId> = redundant(&self.layout).collect();
        if to_come.is_empty() {
            let message = "this array has no redundancy to compare; accepted: a tree with copies or parity";
            return Err(SpecError::new("scrub", message));
        }
        let sectors = |&id: &NodeId| measures_of_scrub(&self.layout, id).0 * self.layout.node(id).children.len() as u64;
        let all = to_come.iter().map(sectors).sum();
        self.now = now;
        self.scrub_counts = ScrubCounts { all, ..ScrubCounts::default() };
        self.scrub = Some(Scrub { kind, throttle, to_come });
        self.begin_scrubs();
        self.next_work_at = Some(now);
        Ok(())
    }

    /// Breaks a scrub off: what is in flight of it comes back. Its end is told as any.
    pub fn stop_scrub(&mut self) {
        let Some(scrub) = &mut self.scrub else { return };
        scrub.to_come.clear();
        self.rebuilds.iter_mut().filter(|(_, work)| work.scrubs).for_each(|(_, work)| work.stopped = true);
        self.drop_stopped();
    }

    /// What the scrub under way, or the last one, has found.
    pub fn scrub_counts(&self) -> ScrubCounts {
        self.scrub_counts
    }

    /// Whether a scrub is under way.
    pub fn is_scrubbing(&self) -> bool {
        self.scrub.is_some()
    }

    /// A computation that verifies has found a sector that is wrong; to be told before it is done.
    pub fn note_mismatch(&mut self, id: OpId, mismatch: ScrubMismatch) {
        let (window, _) = split(id);
        let window = &mut self.windows[window as usize];
        if matches!(window.owner, Owner::Repair(_)) {
            // It writes what could not be read, and nothing else.
            return;
        }
        self.scrub_counts.mismatches += 1;
        let repairs = self.scrub.as_ref().is_some_and(|scrub| scrub.kind == ScrubKind::Repair);
        if !repairs || self.views.is_weak(Weakness::RepairWritesNothing) {
            return;
        }
        let (_, inputs) = window.plan.verified(mismatch.segment);
        let origins = &window.plan.origins[inputs.start as usize..inputs.end as usize];
        for (number, origin) in origins.iter().enumerate() {
            let is_wrong = mismatch.culprit.map_or(origin.follows, |culprit| culprit == number);
            if is_wrong != self.views.is_weak(Weakness::RepairTakesWrongSide) {
                let extent = Extent::new(origin.extent.lba + u64::from(mismatch.sector), 1);
                note_wrong(&mut window.wrong, WrongExtent { child: origin.child, extent });
            }
        }
    }

    /// Begins to go over the nodes below which all has been gone over; where nothing is left, the scrub is over.
    pub(super) fn begin_scrubs(&mut self) {
        let mut place = 0;
        loop {
            let (layout, views, rebuilds) = (&self.layout, &self.views, &self.rebuilds);
            let Some(scrub) = &mut self.scrub else { return };
            if place >= scrub.to_come.len() {
                break;
            }
            let id = scrub.to_come[place];
            let others =
                scrub.to_come.iter().copied().chain(rebuilds.iter().filter(|(_, w)| w.scrubs).map(|(_, w)| w.node));
            if others.filter(|&other| other != id).any(|other| is_within(layout, id, other)) {
                place += 1;
                continue;
            }
            scrub.to_come.remove(place);
            let (mut id, (mut end, unit)) = (id, measures_of_scrub(layout, id));
            if let Some(gate) = self.gates.iter().flatten().find(|gate| is_within(layout, gate.node(), id)) {
                if layout.node(gate.node()).bears == 0 {
                    // A stripe of mirrors is gone over in the order of what clients see, as one.
                    id = gate.node();
                    end = layout.node(id).capacity;
                    scrub.to_come.retain(|&other| !is_within(layout, id, other));
                }
            }
            // What lies in a node that is lost is the business of the node above.
            if views.is_lost(id) || end == 0 {
                continue;
            }
            let above = super::rebuild::locked_above(&self.layout, id);
            let throttle = scrub.throttle;
            let work = self.new_work((id, above), (end, unit), throttle, true);
            self.rebuilds.insert(work);
        }
        if !self.rebuilds.iter().any(|(_, work)| work.scrubs) {
            self.scrub = None;
            self.events.push_back(Event::ScrubDone);
        }
    }

    /// What is planned of a unit of the array's own work: what members lack is written; of a scrub it is compared, or what is
    /// known to be unreadable or wrong is written anew.
    #[cold]
    pub(super) fn plan_unit(&mut self, id: u32) -> Result<(), RequestError> {
        let window = &mut self.windows[id as usize];
        let (node, scrubs, kind) = match window.owner {
            Owner::Rebuild(work) => {
                let &Rebuild { node, scrubs, .. } = &self.rebuilds[work as usize];
                (node, scrubs, self.scrub.as_ref().map(|scrub| scrub.kind))
            }
            Owner::Repair(node) => (node, true, None),
            Owner::Client(_) => unreachable!("a window of own work"),
        };
        let (node, extent) = redundant_part(&self.layout, node, window.extent);
        if scrubs {
            std::mem::swap(&mut self.scratch.wrong, &mut window.wrong);
        }
        self.scratch.scrubs = scrubs;
        let mut planner = Planner {
            layout: &self.layout,
            views: &self.views,
            policy: &self.policy,
            bad: &window.bad,
            scratch: &mut self.scratch,
            plan: &mut window.plan,
        };
        if !scrubs {
            planner.scratch.salvages = window.salvages;
            let planned = planner.restore(node, extent);
            if !std::mem::take(&mut self.scratch.salvages) || planned.is_err() || self.scratch.lost.is_empty() {
                return planned;
            }
            if self.look_closer(id) {
                return self.plan_unit(id);
            }
            return if self.note_lost() { planned } else { Err(RequestError::BeyondTolerance { node, extent: None }) };
        }
        if extent.lba == 0 && kind.is_some() && planner.views.is_weak(Weakness::ScrubLeavesOutUnits) {
            std::mem::swap(&mut self.scratch.wrong, &mut window.wrong);
            self.scratch.scrubs = false;
            window.plan.clear();
            return Ok(());
        }
        let resyncs = kind == Some(ScrubKind::Resync) && window.second_looks == 0;
        if resyncs && planner.scratch.wrong.is_empty() {
            let known = planner.verify(node, extent);
            if known.is_ok() {
                let Planner { scratch, plan, .. } = &mut planner;
                let follow = plan.origins.iter().filter(|origin| origin.follows);
                follow.for_each(|&o| note_wrong(&mut scratch.wrong, WrongExtent { child: o.child, extent: o.extent }));
            }
        }
        window.mends = !planner.bad.is_empty() || !planner.scratch.wrong.is_empty();
        let planned = if window.mends { planner.restore(node, extent) } else { planner.verify(node, extent) };
        if planned.is_ok() && !window.mends && planner.plan.is_empty() {
            self.scrub_counts.bare += extent.sectors * self.layout.node(node).children.len() as u64;
        }
        self.scratch.scrubs = false;
        std::mem::swap(&mut self.scratch.wrong, &mut window.wrong);
        planned
    }

    /// Whether a unit of a scrub whose plan has run is to be planned once more: what is wrong is mended, what was mended is
    /// looked at.
    #[cold]
    pub(super) fn goes_over_again(&mut self, id: u32) -> bool {
        let window = &self.windows[id as usize];
        match window.owner {
            Owner::Repair(_) if window.mends => self.count_repaired(id),
            Owner::Rebuild(work) if self.rebuilds[work as usize].scrubs => return self.scrubs_again(id),
            _ => {}
        }
        false
    }

    fn scrubs_again(&mut self, id: u32) -> bool {
        let window = &mut self.windows[id as usize];
        if window.mends {
            self.scrub_counts.mended += window.bad_sectors();
            window.forget_bad();
            window.wrong.clear();
            window.second_looks += 1;
            window.run_sectors = 0;
            let is_resync = self.scrub.as_ref().is_some_and(|scrub| scrub.kind == ScrubKind::Resync);
            if is_resync || window.second_looks > MENDED_AT_MOST {
                return false;
            }
        } else if window.wrong.is_empty() || window.second_looks >= MENDED_AT_MOST {
            return false;
        }
        window.phase = WindowPhase::Waiting;
        self.runnable.push_back(id);
        true
    }

    /// A unit of a scrub is over.
    pub(super) fn count_scrubbed(&mut self, node: NodeId, extent: Extent, failed: bool) {
        let (node, extent) = redundant_part(&self.layout, node, extent);
        let sectors = extent.sectors * self.layout.node(node).children.len() as u64;
        self.scrub_counts.done += sectors;
        self.scrub_counts.left_out += if failed { sectors } else { 0 };
    }
}

/// Adds sectors that are wrong, to those before them where they go on.
fn note_wrong(list: &mut Vec<WrongExtent>, wrong: WrongExtent) {
    let goes_on = |last: &&mut WrongExtent| last.child == wrong.child && last.extent.end() == wrong.extent.lba;
    match list.iter_mut().rev().take(4).find(goes_on) {
        Some(last) => last.extent.sectors += wrong.extent.sectors,
        None => list.push(wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_three_copies_and_of_raid_6_the_one_that_differs_is_named() {
        let input = |coefficients| Input { space: Space::Scratch, offset: 0, coefficients };
        let copies = [input([1, 1]), input([1, 0]), input([0, 1])];
        assert_eq!(culprit(&copies, [&[5, 0], &[5, 0]]), Some(0));
        assert_eq!(culprit(&copies, [&[5, 1], &[0, 0]]), Some(1));
        assert_eq!(culprit(&copies, [&[0, 0], &[5, 9]]), Some(2));
        assert_eq!(culprit(&copies, [&[5, 0], &[5, 9]]), None, "two of them differ");
        let columns: Vec<Input> =
            (0..4).map(|i| input([1, gf::exp(i)])).chain([input([1, 0]), input([0, 1])]).collect();
        for (wrong, column) in columns.iter().enumerate() {
            let sums = column.coefficients.map(|c| [gf::mul(c, 7), gf::mul(c, 200)]);
            assert_eq!(culprit(&columns, [&sums[0], &sums[1]]), Some(wrong));
        }
    }
}
