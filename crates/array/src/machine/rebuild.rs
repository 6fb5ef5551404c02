//! What the array does for itself: it rebuilds members that take the places of lost ones.
//!
//! A rebuild belongs to the lowest node that has borne the loss, so that nested trees need nothing of their own: what a child
//! of it held is worked out from its siblings and written to all of that child, of which every member is new or has missed
//! writes. It goes through the children unit by unit; a unit is a window as a client's is, with the locks of a write.
//!
//! A scrub goes through a node in the same way (`scrub.rs`).
//!
//! Invariants: `valid` of a member grows only by units that are done, and only as far as all before them are; a unit reads
//! nothing that lies above it on a member that is rebuilt; a member that fails is no longer rebuilt.

use super::gate::{ResyncGate, Turn};
use super::locks::{collect, LockMode, LockRange};
use super::scrub::Scrub;
use super::stripe_cache::{OwnRow, StripeCache};
use super::{Array, Event, Owner};
use crate::layout::{Layout, Node, NodeId};
use crate::level::{for_level, Level, Member, Personality};
use crate::plan::{place, BadBlockCounts, MemberViews, Plan, Planner, Scratch, WrongExtent};
use crate::policy::{MemberState, MemberView, UnitPlaces};
use crate::throttle::{Beside, Go, Pace, RebuildThrottle, Traffic};
use crate::weakness::Weakness;
use raidlab_types::number::{lcm, usize_from};
use raidlab_types::{Extent, Instant, Lba, LeafId, RequestError};
use std::collections::VecDeque;

/// The longest unit of a member.
const UNIT_BYTES: u64 = 512 << 10;

/// A tick of the kernel's clock.
const JIFFY_NS: u64 = 1_000_000;

/// When one wakes who sleeps for a jiffy (`schedule_timeout`): the one under way is not counted.
fn after_a_jiffy(now: Instant) -> Instant {
    Instant::from_ns((now.as_ns() / JIFFY_NS + 2) * JIFFY_NS)
}

/// Whether nothing but members lies below a node.
pub(super) fn has_members_only(layout: &Layout, node: NodeId) -> bool {
    layout.node(node).children.iter().all(|&child| matches!(layout.node(child).level, Level::Member(_)))
}

/// Notes that work goes on at that time, if not sooner.
fn wake_at(next: &mut Option<Instant>, at: Instant) {
    *next = Some(next.map_or(at, |earlier| earlier.min(at)));
}

/// A unit in flight.
#[derive(Debug, Clone, Copy)]
struct Unit {
    /// Sectors of each child.
    extent: Extent,
    begun: Instant,
    /// Of a member, what is there to do: nothing where it has a spare chunk that is free.
    bytes: u64,
    done: bool,
    /// Behind a gate.
    memory: Option<u32>,
}

/// A node of which members are rebuilt, or that is gone over.
#[derive(Debug)]
pub(super) struct Rebuild {
    pub(super) node: NodeId,
    /// It is a scrub.
    pub(super) scrubs: bool,
    /// The members it fills; none of a scrub.
    leaves: Vec<LeafId>,
    /// Its ancestors up to the topmost that is locked, the nearest first, each with the position of the one before.
    above: Vec<(NodeId, u32)>,
    /// Sectors of a child, and of a unit.
    end: u64,
    unit: u64,
    /// First sector that no unit has, and the end of what is done without a gap.
    next: u64,
    rebuilt: u64,
    units: VecDeque<Unit>,
    /// How many of these there may be.
    places: UnitPlaces,
    /// All places were taken, and it waits for idle ones.
    is_full: bool,
    in_flight: u32,
    sectors_in_flight: u64,
    pace: Pace,
    /// The volume in whose stripe cache it works, row by row.
    cached: Option<usize>,
    /// The volume whose gate it shuts, unit by unit.
    pub(super) gate: Option<usize>,
    /// It is to begin once no request is within that.
    suspends: bool,
    /// It has waited for a row, and goes on at this time.
    wakes_at: Option<Instant>,
    /// Too little can be read, another has taken its place, or its members have gone.
    pub(super) stopped: bool,
}

impl Rebuild {
    /// One that has not begun; `above` are the ancestors that are locked.
    pub(super) fn new(
        (node, above): (NodeId, Vec<(NodeId, u32)>),
        (end, unit, places): (u64, u64, UnitPlaces),
        pace: Pace,
        scrubs: bool,
    ) -> Rebuild {
        Rebuild {
            node,
            scrubs,
            leaves: Vec::new(),
            above,
            end,
            unit,
            next: 0,
            rebuilt: 0,
            units: VecDeque::with_capacity(if places.most == usize::MAX { 0 } else { places.most }),
            places,
            is_full: false,
            in_flight: 0,
            sectors_in_flight: 0,
            pace,
            cached: None,
            gate: None,
            suspends: false,
            wakes_at: None,
            stopped: false,
        }
    }

    /// Whether a unit is left, and room for it.
    fn has_more(&mut self) -> bool {
        let most = if self.is_full { self.places.most_again } else { self.places.most };
        self.is_full = self.units.len() >= most;
        !self.stopped && self.next < self.end && !self.is_full
    }

    /// The locks of a unit: those that a write of the same stripes would take.
    pub(super) fn collect_unit(
        &self,
        (layout, views): (&Layout, &MemberViews),
        extent: Extent,
        row_sectors: u64,
        out: &mut Vec<LockRange>,
    ) {
        let node = layout.node(self.node);
        if node.bears == 0 {
            // A unit of what clients see.
            return collect(layout, self.node, extent, LockMode::Exclusive { row_sectors }, false, out);
        }
        let only = (!self.scrubs).then(|| views.only_partial(node)).flatten();
        let above = if views.is_weak(Weakness::RebuildLocksItsNodeOnly) { &[] } else { &self.above[..] };
        collect_own(layout, (self.node, above), (only, extent), row_sectors, out);
    }

    /// Whether its pace lets the next unit begin now; where it is known when it will, that is noted.
    fn may_begin(
        &mut self,
        now: Instant,
        sector_bytes: u64,
        (requests, requests_in_flight): (u64, u64),
        traffic: &[Traffic],
        next_work_at: &mut Option<Instant>,
    ) -> bool {
        let bytes = self.sectors_in_flight * sector_bytes;
        let beside = Beside { requests, requests_in_flight, units: self.in_flight, bytes, traffic };
        match self.pace.go(now, beside) {
            Go::Now => true,
            Go::At(at) => {
                wake_at(next_work_at, at);
                false
            }
            Go::Later => false,
        }
    }

    /// Whether superblocks say how far it has come as the next unit begins, where so many bytes of each member had been done
    /// when a step ended before: after each step, and with the first of a rebuild, that there is one.
    fn is_noted(&self, noted_bytes: u64) -> bool {
        self.pace.noted_bytes() > noted_bytes || self.next == 0 && !self.scrubs
    }

    /// The next unit begins.
    fn begin_unit(&mut self, now: Instant, (layout, views): (&Layout, &MemberViews)) -> Extent {
        let extent = Extent::new(self.next, self.unit.min(self.end - self.next));
        let bytes = self.sectors_to_do((layout, views), extent) * u64::from(layout.sector_bytes());
        self.next = extent.end();
        self.in_flight += 1;
        self.sectors_in_flight += extent.sectors;
        self.units.push_back(Unit { extent, begun: now, bytes, done: false, memory: None });
        self.pace.begin(now, bytes);
        extent
    }

    /// How many sectors of a unit are rebuilt of the member of which most are.
    fn sectors_to_do(&self, (layout, views): (&Layout, &MemberViews), extent: Extent) -> u64 {
        if layout.node(self.node).spares.is_empty() || self.scrubs {
            return extent.sectors;
        }
        let members = self.leaves.iter().filter_map(|&leaf| views.stands_for(layout, leaf));
        let used = |member, sectors| views.used_sectors(layout, member, sectors);
        members.map(|member| used(member, extent.end()) - used(member, extent.lba)).max().unwrap_or(0)
    }

    /// The place of a unit in flight among those that are: they follow each other without a gap.
    fn place_of(&self, extent: Extent) -> usize {
        let first = self.units.front().map_or(0, |unit| unit.extent.lba);
        usize_from((extent.lba - first) / self.unit)
    }

    /// The memory of a unit.
    pub(super) fn memory_of(&self, extent: Extent) -> Option<u32> {
        self.units[self.place_of(extent)].memory
    }

    /// Goes on in units of so many sectors, from what is done without a gap; nothing of it is in flight any more.
    fn go_on_in_units(&mut self, unit: u64, places: UnitPlaces) {
        (self.unit, self.places, self.is_full, self.cached) = (unit, places, false, None);
        self.rebuilt = self.rebuilt / unit * unit;
        self.next = self.rebuilt;
        (self.in_flight, self.sectors_in_flight) = (0, 0);
        self.units.clear();
    }
}

/// The locks of own work on `extent` of the children of a node, or of the `only` one that is written, below these ancestors.
pub(super) fn collect_own(
    layout: &Layout,
    (node, above): (NodeId, &[(NodeId, u32)]),
    (only, extent): (Option<u32>, Extent),
    row_sectors: u64,
    out: &mut Vec<LockRange>,
) {
    let of_node = layout.node(node);
    let mut top = (node, for_level!(of_node, level => level.covering_unit(of_node, only, extent)));
    for &(id, position) in above {
        let of_above = layout.node(id);
        top = (id, for_level!(of_above, level => level.covering(of_above, position, top.1)));
    }
    collect(layout, top.0, top.1, LockMode::Exclusive { row_sectors }, false, out);
}

/// The ancestors of a leaf, the nearest first, each with the position of the one before.
pub(super) fn ancestors(layout: &Layout, leaf: LeafId) -> Vec<(NodeId, u32)> {
    ancestors_of(layout, layout.node_of(leaf))
}

/// Those of the ancestors, the nearest first, that a unit locks with its node: up to the topmost that bears losses.
fn locked(layout: &Layout, above: &[(NodeId, u32)]) -> Vec<(NodeId, u32)> {
    let bears = |&(id, _): &(NodeId, u32)| layout.node(id).bears > 0;
    let locked = above.iter().rposition(bears).map_or(0, |topmost| topmost + 1);
    above[..locked].to_vec()
}

/// The same of a node.
pub(super) fn locked_above(layout: &Layout, id: NodeId) -> Vec<(NodeId, u32)> {
    locked(layout, &ancestors_of(layout, id))
}

/// The ancestors of a node.
fn ancestors_of(layout: &Layout, mut id: NodeId) -> Vec<(NodeId, u32)> {
    let mut found = Vec::new();
    // A parent comes before its children.
    for node in layout.nodes[..id as usize].iter().rev() {
        if let Some(position) = node.children.iter().position(|&child| child == id) {
            found.push((node.id, place(position)));
            id = node.id;
        }
    }
    found
}

/// Calls `visit` with every leaf below the node, and the sectors of it that the node's `extent` is of.
fn leaf_shares(layout: &Layout, id: NodeId, extent: Extent, visit: &mut dyn FnMut(LeafId, Extent)) {
    let node = layout.node(id);
    match node.level {
        Level::Member(Member { leaf }) => visit(leaf, extent),
        _ => for_level!(node, level => level.for_each_share(node, extent, |child, part| {
            leaf_shares(layout, child, part, visit);
        })),
    }
}

/// Sectors of a node's children that are used, and the length of a unit of them, of `asked` bytes if it is asked to be.
pub(super) fn measures(layout: &Layout, node: &Node, asked: Option<u64>) -> (u64, u64) {
    let (mut end, all) = (0, Extent::new(0, node.capacity));
    for_level!(node, level => level.for_each_share(node, all, |_, part| end = end.max(part.end())));
    let longest = (asked.unwrap_or(UNIT_BYTES) / u64::from(layout.sector_bytes())).max(1);
    let alignment = node.children.iter().map(|&child| layout.node(child).alignment).fold(1, lcm);
    let unit = match for_level!(node, level => level.chunk()) {
        Some(chunk) if alignment == 1 && asked.is_none() => chunk.min(longest),
        // Whole stripes of what stripes below, so that these are written without being read.
        _ => alignment * (longest / alignment).max(1),
    };
    (end, unit)
}

impl Array {
    /// Puts a new member in the place of one that is missing or has failed, and begins to rebuild it: what the others give
    /// back is written to it, at the pace of `throttle`, from the next [`Array::handle_time`] on. Operations in flight for the old member must be completed for what
    /// they were; none of them is for the new one. Where a node has lost more than it bears, nothing is rebuilt before
    /// enough of its members are replaced.
    ///
    /// # Errors
    /// When too little is left to rebuild it from.
    pub fn replace_member(
        &mut self,
        now: Instant,
        leaf: LeafId,
        throttle: RebuildThrottle,
    ) -> Result<(), RequestError> {
        debug_assert!(!self.views.leaf(leaf).writes(), "member {leaf} is there");
        if self.source_of(leaf).is_none() {
            return Err(RequestError::BeyondTolerance { node: self.layout.volume_node(0), extent: None });
        }
        (self.now, self.throttle) = (now, throttle);
        self.forget_read_errors(leaf);
        if self.views.is_weak(Weakness::NewMemberIsBelieved) {
            self.set_member_state(leaf, MemberState::Online);
            return Ok(());
        }
        self.views.set_state(&self.layout, leaf, MemberState::Rebuilding);
        self.epoch = self.epoch.wrapping_add(1);
        self.rebuild_around(leaf);
        self.end_caches();
        // Others may be replaced at the same time, and are rebuilt with it.
        self.next_work_at = Some(now);
        Ok(())
    }

    /// How many sectors of a member have been rebuilt, or of the distributed spare in which it comes to stand: `Lba::MAX` of one
    /// that is whole.
    pub fn rebuilt_sectors(&self, leaf: LeafId) -> u64 {
        let view = self.views.leaf(leaf);
        let sectors = |view: &MemberView| if view.is_whole() { Lba::MAX } else { view.rebuilt };
        view.spare.map_or(0, |spare| sectors(self.views.leaf(spare))).max(sectors(view))
    }

    /// How many of so many first sectors of a member are there to be rebuilt: free distributed spares hold nothing.
    pub fn used_sectors(&self, leaf: LeafId, sectors: u64) -> u64 {
        self.views.used_sectors(&self.layout, leaf, sectors)
    }

    /// Has rebuilds that begin from now on go by units of so many bytes of each member, or by a row of chunks.
    pub fn set_rebuild_unit(&mut self, bytes: Option<u64>) {
        self.rebuild_unit = bytes;
    }

    /// Where what `leaf` should hold can be had: the ancestors from the lowest that bears the loss of all below it that may
    /// be lost, and the child of that one.
    pub(super) fn source_of(&self, leaf: LeafId) -> Option<(Vec<(NodeId, u32)>, NodeId)> {
        let mut above = ancestors(&self.layout, leaf);
        let gives = |&(id, _): &(NodeId, u32)| self.layout.node(id).bears > 0 && self.gives_all(id);
        above.drain(..above.iter().position(gives)?);
        let (node, position) = above[0];
        Some((above, self.layout.node(node).child(position)))
    }

    /// Whether everything of the node can be given back. Of one that may not: what members that are rebuilt hold already can
    /// be all that is wanted of them, since the copies of a chunk may lie anywhere on theirs. They are rebuilt from their
    /// beginning on, so what is there of the last places of their kind is there of all.
    fn gives_all(&self, id: NodeId) -> bool {
        if !self.views.is_unsure(id) {
            return true;
        }
        let node = self.layout.node(id);
        let sectors = if node.repeats { node.alignment.min(node.capacity) } else { node.capacity };
        let (scratch, plan) = (&mut Scratch::default(), &mut Plan::default());
        let planner =
            Planner { layout: &self.layout, views: &self.views, policy: &self.policy, bad: &[], scratch, plan };
        planner.is_readable(id, Extent::new(node.capacity - sectors, sectors))
    }

    /// Begins to rebuild what a change of `leaf` makes necessary, if anything: the child of the node that gives it back, all
    /// of it where more than one member is concerned.
    pub(super) fn rebuild_around(&mut self, leaf: LeafId) {
        let Some((above, child)) = self.source_of(leaf) else { return };
        if self.views.is_lost(child) || !self.views.is_partial(child) {
            return;
        }
        let trusted = self.views.is_weak(Weakness::LostNodeIsTrusted);
        if !matches!(self.layout.node(child).level, Level::Member(_)) && !trusted {
            self.views.distrust_all(&self.layout, child);
            self.epoch = self.epoch.wrapping_add(1);
        }
        self.begin_rebuild(&above);
    }

    /// Whether members are being rebuilt.
    pub fn is_rebuilding(&self) -> bool {
        self.rebuilds.iter().any(|(_, work)| !work.scrubs)
    }

    /// Whether it works for itself: members are rebuilt, or it goes over what it holds.
    pub fn is_at_work(&self) -> bool {
        !self.rebuilds.is_empty() || self.repairs_in_flight > 0
    }

    /// When [`Array::handle_time`] is to be called, if nothing else happens before.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next_work_at
    }

    /// Time has passed: what had to wait for it goes on.
    pub fn handle_time(&mut self, now: Instant) {
        self.now = now;
        self.go_on();
    }

    /// Begins to rebuild what the first of these ancestors gives back of its children, from their beginning.
    pub(super) fn begin_rebuild(&mut self, above: &[(NodeId, u32)]) {
        let (node, above) = (above[0].0, &above[1..]);
        let mut leaves = Vec::new();
        // One that still gives all it holds is not written here: what it lacks is its own affair.
        for &child in self.layout.node(node).children.iter().filter(|&&child| !self.gives_all(child)) {
            let whole = Extent::new(0, self.layout.node(child).capacity);
            leaf_shares(&self.layout, child, whole, &mut |leaf, _| {
                if self.views.leaf(leaf).state == MemberState::Rebuilding && !leaves.contains(&leaf) {
                    leaves.push(leaf);
                }
            });
        }
        leaves.extend(self.views.spares_to_fill(self.layout.node(node)));
        for (_, other) in &mut self.rebuilds {
            other.leaves.retain(|leaf| !leaves.contains(leaf));
            other.stopped |= other.leaves.is_empty() && !other.scrubs;
        }
        let measures = measures(&self.layout, self.layout.node(node), self.rebuild_unit);
        let above = locked(&self.layout, above);
        let rebuild = self.new_work((node, above), measures, self.throttle, false);
        self.rebuilds.insert(Rebuild { leaves, ..rebuild });
        self.drop_stopped();
    }

    /// Work that has not begun: in a stripe cache where that can do it, else in units.
    pub(super) fn new_work(
        &mut self,
        (node, above): (NodeId, Vec<(NodeId, u32)>),
        (end, unit): (u64, u64),
        throttle: RebuildThrottle,
        scrubs: bool,
    ) -> Rebuild {
        let has_parity = for_level!(self.layout.node(node), level => level.locks_stripes());
        let sector_bytes = u64::from(self.layout.sector_bytes());
        let mut places = self.policy.unit_places(has_parity, unit * sector_bytes);
        if !scrubs && !has_members_only(&self.layout, node) {
            // A nested level is not written where it holds nothing yet, for the unit to come has what was written. So
            // none may be done, and not count yet, since one before it is not.
            places = UnitPlaces { most: 1, most_again: 1 };
        }
        if !scrubs && self.views.fills_spares(self.layout.node(node)) {
            // All children are written, and each is to have as much to do as one alone.
            places.most *= self.layout.node(node).children.len();
            places.most_again = places.most;
        }
        let pace = Pace::new(throttle, has_parity, self.now);
        let cached = self.works_in_cache(node, scrubs);
        let gate = self.gate_above(node).filter(|_| scrubs || self.rebuild_unit.is_none());
        let behind = gate.and_then(|volume| self.gates[volume].as_ref());
        let Some(unit) = behind.map(ResyncGate::unit).or(cached.map(|_| self.row_sectors)) else {
            return Rebuild::new((node, above), (end, unit, places), pace, scrubs);
        };
        self.traffic.resize(self.views.leaves.len(), Traffic::default());
        let pace = pace.in_steps(end * sector_bytes, &self.traffic, self.now);
        // How many there are in flight is the affair of the cache, or of the gate.
        let places = UnitPlaces { most: usize::MAX, most_again: usize::MAX };
        let work = Rebuild::new((node, above), (end, unit, places), pace, scrubs);
        Rebuild { cached, gate, suspends: gate.is_some() && !scrubs, ..work }
    }

    /// The volume whose cache can work on the node.
    fn works_in_cache(&self, node: NodeId, scrubs: bool) -> Option<usize> {
        let volume = (0..self.caches.len()).find(|&volume| self.layout.volume_node(volume) == node)?;
        let cache = self.caches[volume].as_ref().filter(|cache| !cache.is_ending())?;
        let is_whole = cache.lost() == 0 && self.scrub.as_ref().is_some_and(Scrub::compares);
        let is_free = cache.worker() == OwnRow::Free
            && !self.rebuilds.iter().any(|(_, work)| work.cached == Some(volume) && work.in_flight > 0);
        // A unit that is asked for is what is rebuilt at a time, whatever a cache would take.
        let may = if scrubs { is_whole } else { self.rebuild_unit.is_none() };
        (is_free && may).then_some(volume)
    }

    /// Whether all members of the volume that are rebuilt are so in its cache.
    pub(super) fn rebuilds_in_cache(&self, volume: usize) -> bool {
        self.rebuilds.iter().any(|(_, work)| work.cached == Some(volume) && !work.scrubs && !work.stopped)
    }

    /// What was done in a volume's cache, which has ended, goes on in units.
    pub(super) fn leave_cache(&mut self, volume: usize) {
        let Array { rebuilds, layout, policy, rebuild_unit, .. } = self;
        for (_, work) in rebuilds.iter_mut().filter(|(_, work)| work.cached == Some(volume)) {
            let node = layout.node(work.node);
            let has_parity = for_level!(node, level => level.locks_stripes());
            let (_, unit) = measures(layout, node, rebuild_unit.filter(|_| !work.scrubs));
            work.go_on_in_units(unit, policy.unit_places(has_parity, unit * u64::from(layout.sector_bytes())));
        }
        self.drop_stopped();
    }

    /// Lets the caches' own work go on, once they have nothing else to do; false where nothing came of it.
    pub(super) fn work_in_caches(&mut self) -> bool {
        if !self.rebuilds.iter().any(|(_, work)| work.cached.is_some()) {
            return false;
        }
        if !self.worker_is_woken && self.caches.iter().flatten().any(StripeCache::has_worked) {
            // It is another thread, which runs once md's has handed on what it has gathered. Clients hear before, and what they
            // ask for then is gathered with what begins here.
            (self.worker_is_woken, self.next_work_at) = (true, Some(self.now));
            return false;
        }
        self.worker_is_woken = false;
        let begun = self.units_begun;
        for id in 0..self.rebuilds.capacity() {
            let Some(volume) = self.rebuilds.get(id).and_then(|work| work.cached) else { continue };
            while let Some(number) = self.caches[volume].as_mut().and_then(StripeCache::poll_worked) {
                let extent = Extent::new(number * self.row_sectors, self.row_sectors);
                self.end_unit(place(id), extent, false);
            }
        }
        self.go_on();
        self.units_begun != begun
    }

    /// Begins as many rows as there are.
    fn begin_rows(&mut self, id: usize, volume: usize) {
        let sector_bytes = u64::from(self.layout.sector_bytes());
        let requests = (self.requests_taken, self.requests.len() as u64);
        loop {
            let (Some(rebuild), Some(cache)) = (self.rebuilds.get_mut(id), self.caches[volume].as_mut()) else {
                return;
            };
            match cache.worker() {
                OwnRow::Waits(_) => return,
                OwnRow::Has(_) => {
                    let at = *rebuild.wakes_at.get_or_insert(after_a_jiffy(self.now));
                    if self.now < at {
                        wake_at(&mut self.next_work_at, at);
                        return;
                    }
                    rebuild.wakes_at = None;
                    cache.work_on_held();
                }
                OwnRow::Free => {
                    if !rebuild.has_more() {
                        return;
                    }
                    let noted = rebuild.pace.noted_bytes();
                    if !rebuild.may_begin(self.now, sector_bytes, requests, &self.traffic, &mut self.next_work_at) {
                        return;
                    }
                    let is_noted = self.writes_superblocks && rebuild.is_noted(noted);
                    if !rebuild.scrubs {
                        cache.set_valid(rebuild.pace.noted_bytes() / sector_bytes / self.row_sectors);
                    }
                    let begins = cache.work_on(rebuild.next / self.row_sectors);
                    if is_noted {
                        self.write_superblocks_of_cache(volume);
                    }
                    if !begins {
                        return;
                    }
                }
            }
            self.rebuilds[id].begin_unit(self.now, (&self.layout, &self.views));
            self.units_begun += 1;
        }
    }

    /// Begins as many units as the gate lets begin. Md takes a spare in while nobody is within (`md_start_sync`), and works
    /// before who was kept out meanwhile comes back.
    fn work_behind_gate(&mut self, id: usize, volume: usize) {
        let (rebuild, Some(gate)) = (&mut self.rebuilds[id], self.gates[volume].as_mut()) else { return };
        if rebuild.suspends && gate.suspend() {
            return;
        }
        let was_suspended = std::mem::take(&mut rebuild.suspends);
        self.begin_behind_gate(id, volume);
        if let Some(gate) = self.gates[volume].as_mut().filter(|_| was_suspended) {
            gate.resume(&mut self.let_in);
        }
    }

    fn begin_behind_gate(&mut self, id: usize, volume: usize) {
        let sector_bytes = u64::from(self.layout.sector_bytes());
        let requests = (self.requests_taken, self.requests.len() as u64);
        loop {
            let (Some(rebuild), Some(gate)) = (self.rebuilds.get_mut(id), self.gates[volume].as_mut()) else {
                return;
            };
            if gate.is_free() {
                if !rebuild.has_more() {
                    return;
                }
                let noted = rebuild.pace.noted_bytes();
                if !rebuild.may_begin(self.now, sector_bytes, requests, &self.traffic, &mut self.next_work_at) {
                    return;
                }
                if self.writes_superblocks && rebuild.is_noted(noted) {
                    gate.is_to_write();
                }
                gate.ask(place(id), rebuild.next, (self.now, after_a_jiffy(self.now)));
            } else if !gate.is_asked_by(place(id)) {
                return;
            }
            if gate.is_shut() && !self.events.is_empty() {
                // Clients hear first that their requests are done, and may be back at the gate before the unit begins.
                self.next_work_at = Some(self.now);
                return;
            }
            match gate.turn(self.now, rebuild.next) {
                Turn::Now => self.begin_unit(id),
                Turn::At(at) => return wake_at(&mut self.next_work_at, at),
                Turn::Later => return,
            }
        }
    }

    /// The next unit begins, as a window.
    fn begin_unit(&mut self, id: usize) {
        let extent = self.rebuilds[id].begin_unit(self.now, (&self.layout, &self.views));
        let Rebuild { gate, units, scrubs, .. } = &mut self.rebuilds[id];
        if let (Some(gate), Some(unit)) = (gate.and_then(|v| self.gates[v].as_mut()), units.back_mut()) {
            unit.memory = gate.take_memory(!*scrubs);
        }
        self.units_begun += 1;
        let window = self.new_window(Owner::Rebuild(place(id)), extent);
        let unit = &mut self.windows[window as usize];
        unit.wrong.clear();
        unit.mends = false;
        self.lock(window);
    }

    /// Begins as many units as may begin, and notes when the next may.
    pub(super) fn go_on(&mut self) {
        loop {
            let begun = self.units_begun;
            self.next_work_at = None;
            self.give_way_to_rebuilds();
            (0..self.rebuilds.capacity()).for_each(|id| self.begin_units(id));
            self.run_unblocked();
            // A unit without anything to do is over already.
            if self.units_begun == begun {
                return;
            }
        }
    }

    /// A scrub begins nothing while a member is rebuilt, and so does not keep the gate that it has asked for.
    fn give_way_to_rebuilds(&mut self) {
        if self.gates.is_empty() || !self.is_rebuilding() {
            return;
        }
        for id in 0..self.rebuilds.capacity() {
            let Some(scrub) = self.rebuilds.get(id).filter(|work| work.scrubs) else { continue };
            if let Some(gate) = scrub.gate.and_then(|volume| self.gates[volume].as_mut()) {
                gate.forget(place(id), scrub.next, &mut self.let_in);
            }
        }
    }

    fn begin_units(&mut self, id: usize) {
        let sector_bytes = u64::from(self.layout.sector_bytes());
        let requests = (self.requests_taken, self.requests.len() as u64);
        let is_rebuilding = self.is_rebuilding();
        while let Some(rebuild) = self.rebuilds.get_mut(id) {
            if !rebuild.has_more() || rebuild.scrubs && is_rebuilding {
                return;
            }
            if let Some(volume) = rebuild.cached {
                return self.begin_rows(id, volume);
            }
            if let Some(volume) = rebuild.gate {
                return self.work_behind_gate(id, volume);
            }
            if !rebuild.may_begin(self.now, sector_bytes, requests, &self.traffic, &mut self.next_work_at) {
                return;
            }
            self.begin_unit(id);
        }
    }

    /// Whether a unit of a rebuild that cannot be planned goes on without what cannot be had. Of members alone: what a
    /// nested level lacks is not known by its members.
    #[cold]
    pub(super) fn begins_to_salvage(&mut self, id: u32) -> bool {
        let Owner::Rebuild(work) = self.windows[id as usize].owner else { return false };
        let Rebuild { node, scrubs, stopped, .. } = self.rebuilds[work as usize];
        // Where the node itself is lost, what is above it gives all of it back later.
        let may = self.policy.bad_blocks
            && !(scrubs || stopped || self.views.is_lost(node))
            && self.layout.node(node).bears > 0
            && has_members_only(&self.layout, node)
            // What spare space lacks is on no list.
            && !self.views.fills_spares(self.layout.node(node));
        let window = &mut self.windows[id as usize];
        let begins = may && !window.salvages;
        if begins {
            // What is bad is known by now: all that lies between is one operation again.
            (window.salvages, window.run_sectors) = (true, 0);
        }
        begins
    }

    /// Notes what a plan goes without as bad blocks of the members that are rebuilt; false where a list is full.
    pub(super) fn note_lost(&mut self) -> bool {
        for number in 0..self.scratch.lost.len() {
            let WrongExtent { child, extent } = self.scratch.lost[number];
            let Level::Member(Member { leaf }) = self.layout.node(child).level else { continue };
            let is_new = self.views.leaf(leaf).state == MemberState::Rebuilding;
            if is_new && !self.views.add_bad_block(&self.layout, leaf, extent) {
                return false;
            }
        }
        true
    }

    /// Whether some of these sectors of a member's data area are among those.
    pub fn has_bad_block(&self, leaf: LeafId, extent: Extent) -> bool {
        self.views.bad_blocks().overlap(leaf, extent)
    }

    /// How much of a member its rebuild has gone without, and nobody has written since.
    pub fn bad_blocks(&self, leaf: LeafId) -> BadBlockCounts {
        self.views.bad_blocks().counts(leaf)
    }

    /// A unit is done, or could not be.
    pub(super) fn end_unit(&mut self, id: u32, extent: Extent, failed: bool) {
        let Rebuild { node, scrubs, .. } = self.rebuilds[id as usize];
        if scrubs {
            self.count_scrubbed(node, extent, failed);
        }
        let rebuild = &mut self.rebuilds[id as usize];
        let place = rebuild.place_of(extent);
        if let Some(gate) = rebuild.gate.and_then(|volume| self.gates[volume].as_mut()) {
            gate.give_back_memory(rebuild.units[place].memory);
            gate.open(extent.lba, &mut self.let_in);
        }
        rebuild.in_flight -= 1;
        rebuild.sectors_in_flight -= extent.sectors;
        let unit = &mut rebuild.units[place];
        debug_assert!(unit.extent == extent && !unit.done, "a unit in flight is known");
        let failed = failed && !scrubs && !self.views.is_weak(Weakness::FailedUnitsCount);
        unit.done = !failed;
        rebuild.pace.end(self.now, unit.begun, unit.bytes);
        rebuild.stopped |= failed;
        while let Some(unit) = rebuild.units.front().filter(|unit| unit.done) {
            rebuild.rebuilt = unit.extent.end();
            rebuild.units.pop_front();
        }
        if self.views.is_weak(Weakness::ValidOverGaps) {
            let done = rebuild.units.iter().filter(|unit| unit.done).map(|unit| unit.extent.end());
            rebuild.rebuilt = done.fold(rebuild.rebuilt, u64::max);
        }
        if self.views.is_weak(Weakness::ValidFromTheBeginning) {
            rebuild.rebuilt = rebuild.next;
        }
        if !rebuild.stopped {
            self.note_rebuilt(id);
        }
        self.drop_stopped();
    }

    /// The members hold what they should as far as all is done; where that is everything, the work is over.
    fn note_rebuilt(&mut self, id: u32) {
        let Rebuild { node, leaves, end, unit, rebuilt, gate, pace, .. } = &mut self.rebuilds[id as usize];
        let unit_left_out = if self.views.is_weak(Weakness::LastUnitLeftOut) { *unit } else { 0 };
        if *rebuilt + unit_left_out >= *end {
            let leaves = std::mem::take(leaves);
            if self.rebuilds.remove(id as usize).scrubs {
                return self.begin_scrubs();
            }
            for leaf in leaves {
                // A spare is not needed any more where the member is whole.
                let Some(member) = self.views.stands_for(&self.layout, leaf) else { continue };
                self.set_member_state(leaf, MemberState::Online);
                self.events.push_back(Event::MemberRebuilt { leaf: member });
            }
            return;
        }
        for &leaf in leaves.iter() {
            let Some(member) = self.views.stands_for(&self.layout, leaf) else { continue };
            let (mut sectors, part) = (0, Extent::new(0, *rebuilt));
            for &child in &self.layout.node(*node).children {
                leaf_shares(&self.layout, child, part, &mut |of, share| {
                    sectors += if of == member { share.sectors } else { 0 };
                });
            }
            self.views.set_rebuilt(leaf, self.views.used_sectors(&self.layout, member, sectors));
        }
        let sector_bytes = u64::from(self.layout.sector_bytes());
        // As md tells the member's superblock.
        let noted = gate.map_or(*rebuilt, |_| (pace.noted_bytes() / sector_bytes).min(*rebuilt));
        if noted == 0 || leaves.is_empty() {
            return;
        }
        let (views, part) = (&mut self.views, Extent::new(0, noted));
        for spare in leaves.iter().filter(|&&leaf| leaf as usize >= self.layout.leaves()) {
            views.set_valid(*spare, noted);
        }
        for &child in &self.layout.node(*node).children {
            leaf_shares(&self.layout, child, part, &mut |leaf, share| {
                // A level may keep what follows it elsewhere: what is done there does not yet count.
                if leaves.contains(&leaf) && share.lba <= views.leaf(leaf).valid {
                    views.set_valid(leaf, share.end());
                }
            });
        }
    }

    /// A member was lost: it is rebuilt no more, nor is what lies below a node that is lost with it.
    pub(super) fn leave_rebuilds(&mut self) {
        if self.views.is_weak(Weakness::FailedStaysInRebuild) {
            return;
        }
        let (layout, views) = (&self.layout, &self.views);
        for (_, rebuild) in &mut self.rebuilds {
            let Rebuild { node, leaves, .. } = rebuild;
            // Where the node is lost itself, by neighbours that hold a chunk together, what is above it takes over later.
            let is_lost = views.is_lost(*node);
            if rebuild.scrubs {
                // What is left of it cannot be compared.
                rebuild.stopped |= is_lost;
                continue;
            }
            leaves.retain(|&leaf| !is_lost && views.leaf(leaf).state == MemberState::Rebuilding);
            for &child in layout.node(*node).children.iter().filter(|&&child| views.is_lost(child)) {
                let whole = Extent::new(0, layout.node(child).capacity);
                leaf_shares(layout, child, whole, &mut |lost, _| leaves.retain(|&leaf| leaf != lost));
            }
            rebuild.stopped |= rebuild.leaves.is_empty();
        }
        self.drop_stopped();
    }

    /// Forgets those that have stopped, once nothing of them is in flight.
    pub(super) fn drop_stopped(&mut self) {
        let (rebuilds, events, mut scrubs) = (&mut self.rebuilds, &mut self.events, false);
        let (caches, gates, let_in) = (&mut self.caches, &mut self.gates, &mut self.let_in);
        let (views, layout) = (&self.views, &self.layout);
        rebuilds.retain(|id, rebuild| {
            if let Some(gate) = rebuild.gate.filter(|_| rebuild.stopped).and_then(|v| gates[v].as_mut()) {
                gate.forget(place(id), rebuild.next, let_in);
                if std::mem::take(&mut rebuild.suspends) {
                    gate.resume(let_in);
                }
            }
            let goes_on = !rebuild.stopped || rebuild.in_flight > 0;
            if !goes_on {
                if let Some(cache) = rebuild.cached.and_then(|volume| caches[volume].as_mut()) {
                    cache.stop_worker();
                }
                scrubs |= rebuild.scrubs;
                let members = rebuild.leaves.drain(..).filter_map(|leaf| views.stands_for(layout, leaf));
                events.extend(members.map(|leaf| Event::RebuildStopped { leaf }));
            }
            goes_on
        });
        if !self.let_in.is_empty() {
            self.next_work_at = Some(self.now);
        }
        if scrubs {
            self.begin_scrubs();
        }
    }
}
