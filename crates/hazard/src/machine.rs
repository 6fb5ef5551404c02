//! A small deterministic simulator of a whole [`Array`]: members in memory, one byte a sector, everything that may happen
//! in any order happens in an order drawn from one seed.
//!
//! Operations take effect at one random moment and complete at a later one. A member that dies answers what is in flight
//! with an error, whether the operation took effect, half of it, or nothing.

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

use super::fault::{FaultRates, MemberFault, MemberFaultKind, SCRUBS};
use super::model::ReferenceModel;
use super::trees::{sound, Losses};
use super::{combine, move_pieces, subsets, Bench};
use raidlab_array::{Array, ArrayOp, Event, Layout, MemberState, Policy, RebuildThrottle, ScrubKind, Tree, OF_ARRAY};
use raidlab_types::{
    CounterRng, Extent, Instant, LeafId, OpError, OpId, OpKind, Operation, Request, RequestError, RequestKind, Seed,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Steps after which what has not ended is called hung: the longest runs take some thousands.
const MOST_STEPS: u64 = 100_000;
/// From this one on nothing more goes wrong: stripes that are spread bear that so many members are rebuilt at once, and so
/// begin anew with each that is replaced, that a rebuild need not end while members die.
const CALM_FROM: u64 = 20_000;

struct OperationInFlight {
    op: ArrayOp,
    /// `Some` once it took effect: how it will be answered.
    outcome: Option<Result<(), OpError>>,
}

struct RequestInFlight {
    request: Request,
    user: Vec<u8>,
    began: u64,
    /// What a read may give.
    allowed: Option<ReferenceModel>,
}

fn random_throttle(rng: &mut CounterRng) -> RebuildThrottle {
    match rng.below(3) {
        0 => RebuildThrottle::Rate { kib_s: 500_000.0 },
        1 => RebuildThrottle::Share { fraction: 0.5 },
        _ => RebuildThrottle::Idle,
    }
}

/// What goes wrong.
pub struct FaultSource {
    /// How often, and whether within what the tree bears.
    pub rates: FaultRates,
    /// These, in order, instead of any drawn.
    pub given: Option<Vec<MemberFault>>,
}

/// The simulator.
pub struct Machine {
    pub array: Array,
    /// The order of everything.
    rng: CounterRng,
    /// Request i is drawn from child i, so that it is the same without those before it.
    requests: Seed,
    /// What new members hold, by step.
    contents: Seed,
    trouble: CounterRng,
    /// When scrubs begin, and what rots.
    scrubs: CounterRng,
    tree: Tree,
    sizes: Vec<u64>,
    given: FaultSource,
    /// What has gone wrong, in order.
    pub faults: Vec<MemberFault>,
    members: Vec<Vec<u8>>,
    dead: Vec<bool>,
    /// Dead for having failed to write, and still answers.
    answers: Vec<bool>,
    bad: BTreeSet<(usize, u64)>,
    volumes: Vec<ReferenceModel>,
    flying: Vec<OperationInFlight>,
    names: BTreeSet<OpId>,
    live: BTreeMap<u64, RequestInFlight>,
    scratch: Vec<Vec<u8>>,
    /// Steps so far.
    pub now: u64,
    /// Time that passed while nothing but time was waited for.
    slept_ns: u64,
    /// Requests so far.
    pub offered: usize,
    /// Of all operations, in order, and of how each ended: equal for equal seeds.
    pub digest: u64,
    /// Which of `schedule::LEVELS` the tree is.
    pub level: usize,
    /// Requests done with success and with an error, members rebuilt.
    pub succeeded: u64,
    pub failed: u64,
    pub rebuilt: u64,
    /// Members that began to be rebuilt into a distributed spare.
    pub spared: u64,
    /// Members that were taken out for their read errors.
    pub worn_out: u64,
    /// Sectors that they were rebuilt without.
    pub given_up: u64,
    /// Times that a member sat out for being slow.
    pub sat_out: u64,
    /// Scrubs that were done, and sectors that had rotted.
    pub scrubbed: u64,
    pub rotten: u64,
    rots: bool,
}

impl Machine {
    /// A filled array, whose every choice comes from `seed` but those of `order`; `None` where a member is too small for the
    /// tree.
    pub fn new(
        tree: &Tree,
        sizes: &[u64],
        policy: Policy,
        faults: FaultSource,
        seed: Seed,
        order: Seed,
    ) -> Option<Machine> {
        let mut bench = Bench::with_sizes(tree, sizes, policy, 1)?;
        bench.fill(&mut seed.child(0).draws());
        Some(Machine {
            array: Array::new(Layout::new(tree, sizes, 1).ok()?, policy),
            rng: order.draws(),
            requests: seed.child(1),
            contents: seed.child(2),
            trouble: seed.child(3).draws(),
            scrubs: seed.child(4).draws(),
            tree: tree.clone(),
            sizes: sizes.to_vec(),
            given: faults,
            faults: Vec::new(),
            dead: vec![false; bench.members.len()],
            answers: vec![false; bench.members.len()],
            members: bench.members,
            bad: BTreeSet::new(),
            volumes: bench.flat.iter().map(|content| ReferenceModel::new(content)).collect(),
            flying: Vec::new(),
            names: BTreeSet::new(),
            live: BTreeMap::new(),
            scratch: Vec::new(),
            now: 1,
            slept_ns: 0,
            offered: 0,
            digest: 0,
            level: 0,
            succeeded: 0,
            failed: 0,
            rebuilt: 0,
            spared: 0,
            worn_out: 0,
            given_up: 0,
            sat_out: 0,
            scrubbed: 0,
            rotten: 0,
            rots: false,
        })
    }

    /// Offers the requests of these numbers, at most `depth` at a time, and runs until all is quiet.
    pub fn run(&mut self, requests: &[u64], depth: usize) {
        while self.offered < requests.len() || !self.live.is_empty() || self.array.is_at_work() {
            self.now += 1;
            assert!(self.now < MOST_STEPS, "requests or rebuilds that do not end");
            let may_offer = self.offered < requests.len() && self.live.len() < depth;
            if let Some(due) = self.array.poll_timeout() {
                if self.flying.is_empty() && !may_offer {
                    // Nothing else happens before then.
                    self.slept_ns += due.as_ns().saturating_sub(self.instant().as_ns());
                }
                if due <= self.instant() {
                    self.array.handle_time(self.instant());
                }
            }
            // Drawn in any case: what comes after the last request is the same without those before it.
            let offers = self.chance(300);
            if may_offer && (self.flying.is_empty() || offers) {
                self.offer(requests[self.offered]);
                self.offered += 1;
            }
            self.make_trouble();
            // Sometimes operations and events stay unpolled for a while.
            if self.flying.is_empty() || self.chance(800) {
                self.poll_ops();
            }
            self.advance();
            self.poll_events();
        }
        assert!(self.flying.is_empty() && self.names.is_empty(), "operations left behind");
        self.sat_out = self.array.sat_out().len() as u64;
        assert_eq!(self.array.poll_op(), None, "an operation after the end");
        if let Err(what) = self.array.check_idle() {
            panic!("the idle array still has {what}");
        }
    }

    /// The array's time: a nanosecond a step, and what was slept through.
    fn instant(&self) -> Instant {
        Instant::from_ns(self.now + self.slept_ns)
    }

    fn is_silent(&self, leaf: usize) -> bool {
        self.dead[leaf] && !self.answers[leaf]
    }

    fn chance(&mut self, in_1000: u64) -> bool {
        in_1000 > 0 && self.rng.below(1000) < in_1000
    }

    /// Takes a member out, or kills it behind the array's back.
    fn kill(&mut self, leaf: usize, tell: bool) {
        (self.dead[leaf], self.answers[leaf]) = (true, false);
        if tell {
            self.array.set_member_state(leaf as LeafId, MemberState::Failed);
        }
    }

    fn offer(&mut self, number: u64) {
        let mut rng = self.requests.child(number).draws();
        let volume = rng.below(self.array.layout().volumes().len() as u64) as usize;
        let capacity = self.array.layout().volumes()[volume].capacity_sectors;
        let lba = rng.below(capacity);
        let most = if rng.below(4) == 0 { capacity - lba } else { (capacity - lba).min(6) };
        let extent = Extent::new(lba, 1 + rng.below(most));
        let kind = match rng.below(20) {
            0 => RequestKind::Flush,
            1..=9 => RequestKind::Read,
            _ => RequestKind::Write,
        };
        // Clients fill the extent of a flush with anything.
        let extent = if kind == RequestKind::Flush { Extent::new(u64::MAX, u64::MAX) } else { extent };
        self.request(number, volume, kind, extent, &mut rng);
    }

    /// Hands one request to the array.
    fn request(&mut self, tag: u64, volume: usize, kind: RequestKind, extent: Extent, rng: &mut CounterRng) {
        let request = Request { tag, volume: volume as u32, kind, extent, force_unit_access: false };
        let sectors = if kind == RequestKind::Flush { 0 } else { extent.sectors };
        let user: Vec<u8> = (0..sectors).map(|_| rng.next_u64() as u8).collect();
        let allowed = (kind == RequestKind::Read).then(|| self.volumes[volume].snapshot(extent));
        if kind == RequestKind::Write {
            self.volumes[volume].begin(tag, extent.lba, &user);
            for read in self.live.values_mut().filter(|l| l.request.volume as usize == volume) {
                let at = read.request.extent;
                if let (Some(allowed), true) = (&mut read.allowed, at.overlaps(extent)) {
                    let (lo, hi) = (at.lba.max(extent.lba), at.end().min(extent.end()));
                    allowed.begin(tag, lo - at.lba, &user[(lo - extent.lba) as usize..(hi - extent.lba) as usize]);
                }
            }
        }
        self.live.insert(tag, RequestInFlight { request, user, began: self.now, allowed });
        self.array.handle_request(self.instant(), request);
    }

    /// Whether the tree would still bear all losses if these came on top: as they are, and as far as the array knows of
    /// them (a nested node of which more has died than the array has noticed is lost, and not known to be). And once all is
    /// rebuilt: a new member that has died unnoticed may count as whole, and the spare that it was filled from be free.
    fn bears(&self, leaf: Option<usize>, sector: Option<(usize, u64)>) -> bool {
        let known = |l: usize| Some(l) == leaf || !self.array.member(l as LeafId).writes();
        let gone = |l: usize| known(l) || self.dead[l];
        let frees_spare = |l: usize| self.spare_of(l, true) != self.spare_of(l, false);
        self.bears_missing(&gone, sector, true)
            && self.bears_missing(&known, sector, true)
            && (!(0..self.dead.len()).any(frees_spare) || self.bears_missing(&gone, sector, false))
    }

    /// The distributed spare in which a member stands, and up to which sector: now, or once all is rebuilt.
    fn spare_of(&self, leaf: usize, now: bool) -> Option<(u32, u64)> {
        let (number, valid) = self.array.spare_of(leaf as LeafId)?;
        match now {
            true => Some((number, valid)),
            false => (!self.array.member(leaf as LeafId).writes()).then_some((number, u64::MAX)),
        }
    }

    /// The same where the array takes members out for their read errors: whichever of those that have bad sectors it
    /// takes, as its members are now, and once all that are gone are replaced. It takes those alone that it can do
    /// without.
    fn bears_wear(&self, leaf: Option<usize>, sector: Option<(usize, u64)>) -> bool {
        let is_refused = |flying: &OperationInFlight| matches!(flying.outcome, Some(Err(OpError::Media(_))));
        let refuses = |l: usize| {
            let of_leaf = |flying: &OperationInFlight| matches!(flying.op, ArrayOp::Device(o) if o.leaf as usize == l);
            self.flying.iter().any(|flying| is_refused(flying) && of_leaf(flying))
        };
        let is_bad = |l: usize| self.bad.iter().chain(&sector).any(|&(of, _)| of == l) || refuses(l);
        let suspects: Vec<usize> = (0..self.dead.len()).filter(|&l| is_bad(l)).collect();
        let view = |l: usize| self.array.member(l as LeafId);
        let is_quiet = leaf.is_none() && (0..self.dead.len()).all(|l| view(l).is_whole() && !self.dead[l]);
        let mut sets = subsets(suspects.len(), suspects.len());
        sets.sort_by_key(|taken| Reverse(taken.len()));
        [true, false].into_iter().skip(usize::from(is_quiet)).all(|now| {
            let mut largest: Vec<&Vec<usize>> = Vec::new();
            sets.iter().all(|taken| {
                let is_taken = |l: usize| taken.iter().any(|&i| suspects[i] == l);
                // One that is being rebuilt may be whole by then, even if it dies now.
                let known = |l: usize| is_taken(l) || now && !view(l).writes();
                let gone = |l: usize| is_taken(l) || now && (Some(l) == leaf || self.dead[l] || !view(l).writes());
                let spare = |l: usize| self.spare_of(l, now);
                let losses = Losses { members: &self.sizes, missing: &known, bad: &|_, _| false, spare: &spare };
                // What is borne without more is borne without fewer.
                if largest.iter().any(|more| taken.iter().all(|i| more.contains(i))) || self.is_any_lost(&losses) {
                    return true;
                }
                largest.push(taken);
                self.bears_missing(&gone, sector, now)
            })
        })
    }

    /// Whether a member was rebuilt without this sector of its data.
    fn lacks(&self, leaf: usize, lba: u64) -> bool {
        self.array.has_bad_block(leaf as LeafId, Extent::new(lba, 1))
    }

    /// Whether the tree bears it that these members are missing and what is unreadable now, `now` also where members
    /// are not yet rebuilt.
    fn bears_missing(&self, missing: &dyn Fn(usize) -> bool, sector: Option<(usize, u64)>, now: bool) -> bool {
        let bad = |l: usize, lba: u64| {
            let at = (l, lba + self.array.layout().data_offset(l as LeafId));
            let rebuilt = !now || self.array.member(l as LeafId).reads(Extent::new(lba, 1));
            self.bad.contains(&at) || self.lacks(l, lba) || sector == Some(at) || !(missing(l) || rebuilt)
        };
        let spare = |l: usize| self.spare_of(l, now);
        let losses = Losses { members: &self.sizes, missing, bad: &bad, spare: &spare };
        !self.is_any_lost(&losses) && sound(&self.tree, 0, &losses)
    }

    /// Whether a volume has lost more members than it bears.
    fn is_any_lost(&self, losses: &Losses) -> bool {
        let volumes: &[Tree] = match &self.tree {
            Tree::Independent { children } => children,
            tree => std::slice::from_ref(tree),
        };
        let mut first = 0;
        volumes.iter().any(|volume| {
            first += volume.leaves();
            super::trees::lost(volume, first - volume.leaves(), losses)
        })
    }

    /// What goes wrong in this step.
    fn make_trouble(&mut self) {
        let Some(given) = &mut self.given.given else { return self.draw_trouble() };
        let now = self.now;
        let is_due = |fault: &mut MemberFault| fault.at <= now && fault.kind != MemberFaultKind::WriteError;
        let due: Vec<MemberFault> = given.extract_if(.., is_due).collect();
        for fault in due {
            // Somebody may not be known to be gone yet.
            let waits = matches!(fault.kind, MemberFaultKind::Replacement | MemberFaultKind::Spare);
            if !self.befall(fault) && waits {
                self.given.given.get_or_insert_default().push(fault);
            }
        }
    }

    fn draw_trouble(&mut self) {
        if self.now >= CALM_FROM {
            return self.replace_all();
        }
        let FaultRates { deaths, bad_sectors, replacements, .. } = self.given.rates;
        if self.given.rates.scrubs > 0 && self.scrubs.below(1000) < self.given.rates.scrubs {
            let kind = SCRUBS[self.scrubs.below(3) as usize];
            self.befall(MemberFault { at: self.now, leaf: 0, kind: MemberFaultKind::Scrub(kind) });
        }
        let (at, rng) = (self.now, &mut self.trouble);
        let mut chance = |in_1000| in_1000 > 0 && rng.below(1000) < in_1000;
        let (dies, told, is_new, is_bad) = (chance(deaths), chance(300), chance(replacements), chance(bad_sectors));
        if !(dies || is_new || is_bad) {
            return;
        }
        let leaf = self.trouble.below(self.dead.len() as u64) as usize;
        let lba = self.trouble.below(self.sizes[leaf]);
        // Mostly a spare, where there is one: the new member comes later.
        let is_spared = is_new && self.array.has_spare_for(leaf as LeafId) && self.trouble.below(4) > 0;
        let all = [
            (dies, MemberFaultKind::Death { told }),
            (is_new, if is_spared { MemberFaultKind::Spare } else { MemberFaultKind::Replacement }),
            (is_bad, MemberFaultKind::BadSector { lba }),
        ];
        for (_, kind) in all.into_iter().filter(|(is_so, _)| *is_so) {
            self.befall(MemberFault { at, leaf, kind });
        }
    }

    /// Puts a new member wherever one is known to be gone.
    fn replace_all(&mut self) {
        for leaf in 0..self.dead.len() {
            self.befall(MemberFault { at: self.now, leaf, kind: MemberFaultKind::Replacement });
        }
    }

    /// Lets it happen, if it may; whether it has.
    fn befall(&mut self, fault: MemberFault) -> bool {
        let MemberFault { leaf, kind, .. } = fault;
        let happens = match kind {
            MemberFaultKind::Death { .. } => self.may_befall(Some(leaf), None),
            MemberFaultKind::BadSector { lba } => self.may_befall(None, Some((leaf, lba))),
            MemberFaultKind::WriteError => false,
            MemberFaultKind::Replacement => self.replace(leaf),
            MemberFaultKind::Spare => self.spare(leaf),
            MemberFaultKind::Scrub(kind) => self.scrub(kind),
        };
        match kind {
            MemberFaultKind::Death { told } if happens => self.kill(leaf, told),
            MemberFaultKind::BadSector { lba } if happens => self.spoil((leaf, lba)),
            _ => {}
        }
        if happens {
            self.faults.push(MemberFault { at: self.now, ..fault });
        }
        happens
    }

    fn may_befall(&self, leaf: Option<usize>, sector: Option<(usize, u64)>) -> bool {
        let wears_out = self.array.limits_read_errors();
        self.given.rates.beyond || self.bears(leaf, sector) && (!wears_out || self.bears_wear(leaf, sector))
    }

    /// Whether a write of `leaf` that takes effect now is to fail.
    fn write_fails(&mut self, leaf: usize) -> bool {
        let (now, rate) = (self.now, self.given.rates.write_errors);
        let is_due =
            |fault: &MemberFault| fault.at <= now && fault.leaf == leaf && fault.kind == MemberFaultKind::WriteError;
        let asked = match &mut self.given.given {
            None => rate > 0 && self.trouble.below(1000) < rate,
            Some(given) => given.iter().position(is_due).map(|i| given.remove(i)).is_some(),
        };
        let fails = asked && self.may_befall(Some(leaf), None);
        if fails {
            self.faults.push(MemberFault { at: now, leaf, kind: MemberFaultKind::WriteError });
        }
        fails
    }

    /// Makes one sector of a member unreadable, and what it held unknown.
    fn spoil(&mut self, (leaf, lba): (usize, u64)) {
        self.bad.insert((leaf, lba));
        self.members[leaf][lba as usize] ^= 0x3C;
    }

    fn poll_ops(&mut self) {
        while let Some(op) = self.array.poll_op() {
            let id = match op {
                ArrayOp::Device(Operation { id, leaf, extent, kind, .. }) => {
                    let (view, offset) = (self.array.member(leaf), self.array.layout().data_offset(leaf));
                    let of_data = || Extent::new(extent.lba - offset, extent.sectors);
                    assert!(view.writes(), "an operation for a member that is known to be gone");
                    assert!(kind != OpKind::Read || view.reads(of_data()), "a read of what is not rebuilt");
                    assert!(kind == OpKind::Flush || extent.end() <= self.sizes[leaf as usize], "beyond the device");
                    assert!(kind == OpKind::Flush || extent.lba >= self.array.layout().data_offset(leaf));
                    id
                }
                ArrayOp::Compute { id, .. } => id,
            };
            assert!(self.names.insert(id), "handed out twice: {op:?}");
            self.digest_operation(&op);
            self.flying.push(OperationInFlight { op, outcome: None });
            if self.chance(100) {
                break;
            }
        }
    }

    fn digest_operation(&mut self, op: &ArrayOp) {
        let ArrayOp::Device(Operation { leaf, extent, kind, .. }) = *op else { return self.mix(u64::MAX) };
        [u64::from(leaf), extent.lba, extent.sectors, kind as u64].into_iter().for_each(|word| self.mix(word));
    }

    /// FNV-1a, a word at a time.
    fn mix(&mut self, word: u64) {
        self.digest = (self.digest ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    }

    /// One operation takes effect, or completes.
    fn advance(&mut self) {
        if self.flying.is_empty() {
            return;
        }
        let i = self.rng.below(self.flying.len() as u64) as usize;
        if self.flying[i].outcome.is_none() {
            let op = self.flying[i].op;
            self.flying[i].outcome = Some(self.effect(&op));
            if self.chance(500) {
                return;
            }
        }
        let OperationInFlight { op, outcome } = self.flying.swap_remove(i);
        let (id, leaf) = match op {
            ArrayOp::Device(o) => (o.id, Some(o.leaf as usize)),
            ArrayOp::Compute { id, .. } => (id, None),
        };
        let died = leaf.is_some_and(|l| self.is_silent(l)) && self.chance(500);
        let result = if died { Err(OpError::MemberGone) } else { outcome.unwrap_or(Ok(())) };
        assert!(self.names.remove(&id));
        self.mix(u64::from(result.is_ok()));
        self.array.handle_op_done(self.instant(), id, result);
    }

    /// Puts a new member, full of garbage, in the place of one that is known to be gone and has nothing more to answer.
    fn replace(&mut self, leaf: usize) -> bool {
        let of_leaf = |flying: &OperationInFlight| matches!(flying.op, ArrayOp::Device(o) if o.leaf as usize == leaf);
        if self.array.member(leaf as LeafId).writes() || self.flying.iter().any(of_leaf) {
            return false;
        }
        let mut rng = self.contents.child(self.now).draws();
        let throttle = random_throttle(&mut rng);
        self.array.set_rebuild_unit([None, Some(1 + rng.below(8))][rng.below(2) as usize]);
        let replaced = self.array.replace_member(self.instant(), leaf as LeafId, throttle).is_ok();
        if replaced {
            self.members[leaf].iter_mut().for_each(|sector| *sector = rng.next_u64() as u8);
            (self.dead[leaf], self.answers[leaf]) = (false, false);
            self.bad.retain(|&(l, _)| l != leaf);
        }
        replaced
    }

    /// Has a member that is known to be gone rebuilt into a distributed spare, if one is free.
    fn spare(&mut self, leaf: usize) -> bool {
        let mut rng = self.contents.child(self.now).draws();
        let throttle = random_throttle(&mut rng);
        self.array.set_rebuild_unit([None, Some(1 + rng.below(8))][rng.below(2) as usize]);
        let spared = self.array.spare_member(self.instant(), leaf as LeafId, throttle).is_ok();
        self.spared += u64::from(spared);
        spared
    }

    /// Begins a scrub, unless one is under way or there is nothing to compare.
    fn scrub(&mut self, kind: ScrubKind) -> bool {
        let throttle = random_throttle(&mut self.contents.child(self.now).draws());
        self.array.scrub(self.instant(), kind, throttle).is_ok()
    }

    /// Changes sectors of members behind the array's back, where the others tell which, and has a scrub put them right: one
    /// that checks counts them, one that repairs counts and mends as many, and then there are none.
    pub fn rot_and_mend(&mut self) {
        // Nothing else goes wrong meanwhile.
        self.given.given = Some(Vec::new());
        // What was drawn before depends on whether faults are drawn or given, and this must not.
        let mut rng = self.contents.child(self.now).draws();
        let is_whole = |l: usize| !self.dead[l] && self.array.member(l as LeafId).is_whole();
        let is_bad = |l: usize| self.bad.iter().any(|&(leaf, _)| leaf == l);
        let rottable = super::trees::rottable(&self.tree, &|l| is_whole(l) && !is_bad(l));
        for (leaf, may_rot) in rottable {
            if rng.below(2) == 0 {
                continue;
            }
            let offset = self.array.layout().data_offset(leaf as LeafId);
            for _ in 0..1 + rng.below(3) {
                let lba = rng.below(self.sizes[leaf]);
                if lba >= offset && may_rot(lba - offset) {
                    self.members[leaf][lba as usize] ^= 1 + rng.below(255) as u8;
                }
            }
        }
        let [checked, repaired, left] = [ScrubKind::Check, ScrubKind::Repair, ScrubKind::Check].map(|kind| {
            self.rots = true;
            if self.scrub(kind) {
                self.run(&[], 1);
            }
            self.rots = false;
            self.array.scrub_counts().mismatches
        });
        // What is mended below is not seen again above.
        let (most, least) = (checked, checked.min(1));
        assert!(
            (least..=most).contains(&repaired) && left == 0,
            "{checked} mismatches, {repaired} repaired, {left} left"
        );
        self.rotten += repaired;
    }

    fn effect(&mut self, op: &ArrayOp) -> Result<(), OpError> {
        let (ArrayOp::Device(Operation { id, tag, .. }) | ArrayOp::Compute { id, tag, .. }) = *op;
        let (part, needed) = self.array.scratch_of(id);
        if self.scratch.len() <= part as usize {
            self.scratch.resize(part as usize + 1, Vec::new());
        }
        let mut scratch = std::mem::take(&mut self.scratch[part as usize]);
        if scratch.len() < needed as usize {
            scratch.resize(needed as usize, 0xA5);
        }
        let of_client = tag != OF_ARRAY;
        let mut user = match of_client {
            true => std::mem::take(&mut self.live.get_mut(&tag).expect("the request is still running").user),
            false => Vec::new(),
        };
        let result = match op {
            ArrayOp::Device(o) => self.device_effect(o, &mut user, &mut scratch),
            ArrayOp::Compute { .. } => {
                let work = self.array.compute(id).expect("a computation");
                work.segments.iter().for_each(|s| combine(work.plan, s, 1, &mut user, &mut scratch));
                let mut found = Vec::new();
                work.mismatches(|sector| &scratch[sector as usize..=sector as usize], |one| found.push(one));
                found.into_iter().for_each(|mismatch| self.array.note_mismatch(id, mismatch));
                Ok(())
            }
        };
        if of_client {
            self.live.get_mut(&tag).expect("the request is still running").user = user;
        }
        self.scratch[part as usize] = scratch;
        result
    }

    fn device_effect(&mut self, o: &Operation, user: &mut [u8], scratch: &mut [u8]) -> Result<(), OpError> {
        let leaf = o.leaf as usize;
        if o.kind == OpKind::Flush {
            return if self.is_silent(leaf) { Err(OpError::MemberGone) } else { Ok(()) };
        }
        let bad: Vec<u64> = (o.extent.lba..o.extent.end()).filter(|&s| self.bad.contains(&(leaf, s))).collect();
        if let (OpKind::Read, false, Some(&first)) = (o.kind, self.is_silent(leaf), bad.first()) {
            // Some devices name the sector, some only the operation, some talk nonsense.
            return Err(OpError::Media(match self.rng.below(8) {
                0 | 1 => o.extent,
                2 => Extent::new(u64::MAX, 7),
                _ => Extent::new(first, 1),
            }));
        }
        let breaks = o.kind == OpKind::Write && self.write_fails(leaf);
        if breaks || self.is_silent(leaf) {
            self.half_write(o, user, scratch);
            if breaks {
                // What it has not written is lost; whether it also falls silent is another matter.
                (self.dead[leaf], self.answers[leaf]) = (true, self.chance(500));
            }
            return Err(if breaks { OpError::Media(o.extent) } else { OpError::MemberGone });
        }
        let pieces = self.array.pieces(o.id);
        move_pieces(&mut self.members[leaf], o.kind, o.extent, pieces, 1, user, scratch);
        if o.kind == OpKind::Write {
            bad.iter().for_each(|&s| {
                self.bad.remove(&(leaf, s));
            });
        }
        Ok(())
    }

    /// What a dying member makes of an operation: nothing, all, or every other sector; memory read into is garbage.
    fn half_write(&mut self, o: &Operation, user: &mut [u8], scratch: &mut [u8]) {
        let before = self.members[o.leaf as usize].clone();
        let pieces = self.array.pieces(o.id);
        if o.kind == OpKind::Read {
            let mut garbage = vec![0x77; before.len()];
            move_pieces(&mut garbage, o.kind, o.extent, pieces, 1, user, scratch);
            return;
        }
        let member = &mut self.members[o.leaf as usize];
        move_pieces(member, o.kind, o.extent, pieces, 1, user, scratch);
        let keep = self.rng.below(3);
        for (i, sector) in member.iter_mut().enumerate() {
            if keep == 0 || (keep == 1 && i % 2 == 0) {
                *sector = before[i];
            }
        }
    }

    fn poll_events(&mut self) {
        while let Some(event) = self.array.poll_event() {
            let Event::RequestDone { tag, result } = event else {
                // Of a node that was lost, and is again, something may be unreadable that nobody uses, and so stop it.
                let stopped = matches!(event, Event::RebuildStopped { .. }) && !self.given.rates.beyond;
                assert!(!(stopped && self.is_sound()), "a rebuild that is given up: {event:?}");
                self.rebuilt += u64::from(matches!(event, Event::MemberRebuilt { .. }));
                if let Event::MemberRebuilt { leaf } = event {
                    let lost = self.array.bad_blocks(leaf).sectors;
                    // What a nested node lacks those above give back.
                    let may_lack = self.given.rates.beyond || nodes_above(&self.tree, leaf as usize) > 1;
                    assert!(may_lack || lost == 0, "{lost} sectors of member {leaf} were given up");
                    self.given_up += lost;
                }
                if let Event::MemberFailed { leaf } = event {
                    self.worn_out += u64::from(self.array.has_too_many_read_errors(leaf));
                }
                if event == Event::ScrubDone {
                    self.note_scrub();
                }
                continue;
            };
            let live = self.live.remove(&tag).expect("a request is reported once");
            let Request { volume, kind, extent, .. } = live.request;
            if kind == RequestKind::Write {
                self.volumes[volume as usize].end(tag, extent, live.began, self.now, result.is_ok());
            }
            match result {
                Ok(()) => {
                    self.succeeded += 1;
                    let wrong = live.allowed.and_then(|allowed| allowed.first_wrong(&live.user));
                    assert_eq!(wrong, None, "request {tag} read {extent} of volume {volume}");
                }
                Err(RequestError::BeyondTolerance { .. }) if self.given.rates.beyond => self.failed += 1,
                Err(error) => panic!("request {tag}, {kind:?} of {extent}: {error}"),
            }
        }
        assert_eq!(self.array.in_flight() as usize, self.live.len());
    }

    /// A scrub is over: where all is within what the tree bears, and nothing has rotted, redundancy agrees everywhere.
    fn note_scrub(&mut self) {
        self.scrubbed += 1;
        let found = self.array.scrub_counts();
        if !self.given.rates.beyond {
            assert!(self.rots || found.mismatches == 0, "a scrub that finds what nobody has changed: {found:?}");
        }
    }

    /// When all is quiet: the content is what some order of the writes leaves, and every redundancy agrees.
    pub fn check(&mut self) {
        let policy = Policy::default();
        let mut bench = Bench::with_sizes(&self.tree, &self.sizes, policy, 1).expect("as before");
        bench.members.clone_from(&self.members);
        let is_gone = |l: usize| self.dead[l] || !self.array.member(l as u32).is_whole();
        // First those that stand in spares, so that never more are lost than is borne.
        for (l, (number, valid)) in (0..self.dead.len()).filter_map(|l| Some((l, self.array.spare_of(l as u32)?))) {
            bench.set_missing(l, true);
            bench.views.take_spare(&bench.layout, l as u32, number);
            bench.views.fill_spare(&bench.layout, l as u32, valid);
        }
        (0..self.dead.len()).filter(|&l| is_gone(l)).for_each(|l| bench.set_missing(l, true));
        for &(leaf, lba) in &self.bad {
            let offset = bench.layout.data_offset(leaf as u32);
            if let Some(lba) = lba.checked_sub(offset) {
                let extent = Extent::new(lba, 1);
                bench.bad.push(raidlab_array::plan::BadExtent { leaf: leaf as u32, extent });
            }
        }
        for leaf in 0..self.sizes.len() {
            for lba in (0..self.sizes[leaf]).filter(|&lba| self.lacks(leaf, lba)) {
                bench.bad.push(raidlab_array::plan::BadExtent { leaf: leaf as u32, extent: Extent::new(lba, 1) });
            }
        }
        for (v, model) in self.volumes.iter().enumerate() {
            let mut content = vec![0; bench.flat[v].len()];
            let all = bench.whole(v);
            bench.run(v, false, all, &mut content, &mut self.rng).expect("within tolerance");
            assert_eq!(model.first_wrong(&content), None, "volume {v} after all is quiet");
            bench.flat[v] = content;
        }
        for more in 0..self.dead.len() {
            if bench.views.leaf(more as u32).is_whole() && self.bears(Some(more), None) {
                bench.set_missing(more, true);
                bench.check_all(&mut self.rng);
                bench.set_missing(more, false);
            }
        }
    }

    /// Whether nothing is lost that the tree does not bear.
    pub fn is_sound(&self) -> bool {
        self.bears(None, None)
    }
}

/// How many nodes of its volume are above a member.
fn nodes_above(tree: &Tree, leaf: usize) -> usize {
    let mut first = 0;
    for child in tree.children() {
        if leaf < first + child.leaves() {
            let itself = usize::from(!matches!(tree, Tree::Independent { .. }));
            return itself + nodes_above(child, leaf - first);
        }
        first += child.leaves();
    }
    0
}
