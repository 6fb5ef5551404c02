//! Walks along the paths: who is at which station, and what follows when a leg has been walked.
//!
//! A walk takes the steps before the bytes, then the bytes in quanta, then the steps after them. The next quantum sets out
//! when the one before it has left the first station, so quanta of one transfer keep several stations busy at once, and
//! those of others get between.
//!
//! Invariants:
//! - A walk ends when its last step is done and all its quanta have arrived; then what follows is handed out, once.
//! - At the same time what was sent to a station first is taken first.
//! - Nothing is allocated once as many walks and quanta have been under way as ever will be.

use crate::config::HostSpec;
use crate::events::Jobs;
use crate::path::{self, cost, Distribution, Leg, PathSpec, Paths, VisitStep, HOST_CPU, HOST_PARITY};
use crate::station::Station;
use raidlab_device::SharedBus;
use raidlab_types::number::{f64_from, saturating_u64, u32_from};
use raidlab_types::{CounterRng, Duration, Instant, OpError, OpId, Operation, Request, RequestTag, Seed, SpecError};
use slab::Slab;

/// In place of a step: work that is on no path.
const NONE: u32 = u32::MAX;

/// What follows when a leg has been walked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Continuation {
    /// The request enters the array.
    Enter(Request),
    /// The client is told.
    Answer(RequestTag, bool),
    /// So many sectors of a read have reached the client.
    Arrived(RequestTag, u64),
    /// A write that its cache has is on its way back.
    Leave(RequestTag),
    /// The operation reaches its member.
    Start(Operation),
    /// The request of this tag, the so-manyth to have it, may issue its next operation.
    Next(u32, u32),
    /// The host has done a client's work.
    Worked(u32),
    /// A computation is done.
    Computed(OpId),
    /// The array is told of an operation.
    Completed(OpId, Result<(), OpError>),
}

#[derive(Debug, Clone, Copy)]
struct Walk {
    leg: Leg,
    /// Bytes that have not set out.
    left: u64,
    /// Quanta on their way.
    quanta: u32,
    /// Whether its first quantum pays what is paid once a transfer.
    pays: bool,
    then: Continuation,
}

/// Somebody at a station: a walk before or after its bytes, or one of its quanta.
#[derive(Debug, Clone, Copy)]
struct Walker {
    walk: u32,
    step: u32,
    bytes: u64,
    /// Pays what is paid once a transfer.
    pays: bool,
}

/// All stations and all who walk between them.
#[derive(Debug)]
pub(crate) struct Walks {
    pub paths: Paths,
    stations: Vec<Station>,
    parity: (u32, f64),
    /// What of the host's work is parity: counted there and here, so that requests and parity can be told apart.
    of_parity: Station,
    walks: Slab<Walk>,
    walkers: Slab<Walker>,
    in_service: Jobs,
    rng: CounterRng,
}

impl Walks {
    /// The stations of a path, with the host's processors as the first of them; none if nothing costs anything, unless
    /// clients have work of their own for the host.
    pub(crate) fn new(
        spec: &PathSpec,
        host: &HostSpec,
        volumes: usize,
        leaves: usize,
        seed: Seed,
        clients_work: bool,
    ) -> Result<Option<Walks>, SpecError> {
        if host.cpus == 0 {
            return Err(SpecError::new("host.cpus", "0; accepted: at least 1"));
        }
        let costs = [
            ("request", host.request_us),
            ("access", host.access_us),
            ("issue", host.issue_us),
            ("completion", host.completion_us),
            ("parity_per_kib", host.parity_us_per_kib),
            ("file", host.file_us),
            ("file_per_kib", host.file_us_per_kib),
        ];
        costs.iter().try_for_each(|(key, us)| cost(&format!("host.{key}"), *us).map(|_| ()))?;
        path::check_stations(spec)?;
        let paths = Paths::compile(spec, host, volumes, leaves)?;
        if host.is_free() && *spec == PathSpec::default() && !clients_work {
            return Ok(None);
        }
        let own = spec.stations.iter().map(|s| Station::new(&s.name, s.servers));
        let mut stations: Vec<Station> = [Station::new(HOST_CPU, host.cpus)].into_iter().chain(own).collect();
        for bus in paths.buses() {
            stations[bus as usize].bus.get_or_insert_default();
        }
        let parity = match &spec.parity {
            Some(parity) => (path::station_index(spec, &parity.station).unwrap_or(0), parity.us_per_kib),
            None => (0, host.parity_us_per_kib),
        };
        Ok(Some(Walks {
            paths,
            stations,
            parity: (parity.0, parity.1 * 1000.0 / 1024.0),
            of_parity: Station::new(HOST_PARITY, host.cpus),
            walks: Slab::new(),
            walkers: Slab::new(),
            in_service: Jobs::default(),
            rng: seed.draws(),
        }))
    }

    /// The stations that somebody visits, or has; last the part of the host's work that is parity, if any is.
    pub(crate) fn stations(&self) -> impl Iterator<Item = &Station> {
        let own = self.stations.iter().enumerate().filter(|(i, s)| *i > 0 || s.visits > 0).map(|(_, s)| s);
        own.chain(std::iter::once(&self.of_parity).filter(|part| part.visits > 0))
    }

    /// The bus that a member is on.
    pub(crate) fn bus(&self, leaf: u32) -> Option<&SharedBus> {
        self.paths.bus(leaf).and_then(|station| self.stations[station as usize].bus.as_ref())
    }

    /// Starts all totals anew.
    pub(crate) fn reset_totals(&mut self, now: Instant) {
        self.stations.iter_mut().for_each(|s| s.reset_totals(now));
        self.of_parity.reset_totals(now);
    }

    /// When the next of all walkers is done at its station.
    #[inline]
    pub(crate) fn next_at(&self) -> Instant {
        self.in_service.next_at()
    }

    /// A leg is to be walked with so many bytes; what follows, if that is at once. `pays`: whether they are the first of
    /// their transfer, which pay what is paid once.
    #[inline]
    pub(crate) fn walk(
        &mut self,
        now: Instant,
        leg: Leg,
        bytes: u64,
        pays: bool,
        then: Continuation,
    ) -> Option<Continuation> {
        if leg.is_empty() {
            return Some(then);
        }
        let id = self.begin(leg, bytes, then);
        self.walks[id as usize].pays = pays;
        if leg.before.is_empty() {
            return self.send_bytes(now, id);
        }
        self.set_out(now, id, leg.before.from, 0, true);
        None
    }

    /// Work at the host that is not on a path; what follows, if it costs nothing.
    pub(crate) fn work(&mut self, now: Instant, cost: Duration, then: Continuation) -> Option<Continuation> {
        self.work_at(now, 0, cost, then)
    }

    /// A computation that reads so many bytes.
    pub(crate) fn compute(&mut self, now: Instant, read_bytes: u64, then: Continuation) -> Option<Continuation> {
        let cost = Duration::from_ns(saturating_u64(f64_from(read_bytes) * self.parity.1));
        if self.parity.0 == 0 && cost > Duration::ZERO {
            self.of_parity.note(cost);
        }
        self.work_at(now, self.parity.0, cost, then)
    }

    fn work_at(&mut self, now: Instant, station: u32, cost: Duration, then: Continuation) -> Option<Continuation> {
        if cost == Duration::ZERO {
            return Some(then);
        }
        let id = self.begin(Leg::default(), 0, then);
        let walker = self.walker(Walker { walk: id, step: NONE, bytes: 0, pays: true });
        let done = self.stations[station as usize].arrive(now, cost);
        self.in_service.push(done, walker);
        None
    }

    /// The earliest walker is done at its station; what follows, if its walk ends with that.
    #[inline]
    pub(crate) fn proceed(&mut self, now: Instant) -> Option<Continuation> {
        let id = self.in_service.pop()?;
        let Walker { walk, step, .. } = self.walkers[id as usize];
        let leg = &self.walks[walk as usize].leg;
        if step == NONE {
            self.dismiss(id);
            return Some(self.end(walk));
        }
        let next = step + 1;
        // Spans of a leg never overlap, so the step tells in which of them the walker is.
        let inside = |span: path::StepRange| span.from <= step && step < span.to;
        if inside(leg.data) {
            let (is_first, is_last) = (step == leg.data.from, next == leg.data.to);
            if is_first && self.walks[walk as usize].left > 0 {
                self.send_quantum(now, walk, false);
            }
            if !is_last {
                self.visit(now, id, next);
                return None;
            }
            self.dismiss(id);
            let all = &mut self.walks[walk as usize];
            all.quanta -= 1;
            return if all.quanta == 0 && all.left == 0 { self.after_bytes(now, walk) } else { None };
        }
        let span = if inside(leg.before) { leg.before } else { leg.after };
        if next < span.to {
            self.visit(now, id, next);
            return None;
        }
        let is_before = span == leg.before;
        self.dismiss(id);
        if is_before {
            self.send_bytes(now, walk)
        } else {
            Some(self.end(walk))
        }
    }

    fn send_bytes(&mut self, now: Instant, walk: u32) -> Option<Continuation> {
        let Walk { leg, left, pays, .. } = self.walks[walk as usize];
        if leg.data.is_empty() || left == 0 {
            return self.after_bytes(now, walk);
        }
        self.send_quantum(now, walk, pays);
        None
    }

    fn send_quantum(&mut self, now: Instant, walk: u32, pays: bool) {
        let all = &mut self.walks[walk as usize];
        let bytes = all.left.min(all.leg.quantum_bytes);
        (all.left, all.quanta) = (all.left - bytes, all.quanta + 1);
        let step = all.leg.data.from;
        self.set_out(now, walk, step, bytes, pays);
    }

    fn after_bytes(&mut self, now: Instant, walk: u32) -> Option<Continuation> {
        let after = self.walks[walk as usize].leg.after;
        if after.is_empty() {
            return Some(self.end(walk));
        }
        self.set_out(now, walk, after.from, 0, true);
        None
    }

    #[inline]
    fn set_out(&mut self, now: Instant, walk: u32, step: u32, bytes: u64, pays: bool) {
        let id = self.walker(Walker { walk, step, bytes, pays });
        self.visit(now, id, step);
    }

    #[inline]
    fn visit(&mut self, now: Instant, id: u32, step: u32) {
        let VisitStep { station, fixed, ns_per_byte, times } = self.paths.steps[step as usize];
        let walker = &mut self.walkers[id as usize];
        walker.step = step;
        let bytes = Duration::from_ns(saturating_u64(f64_from(walker.bytes) * ns_per_byte));
        let mean = if walker.pays { fixed + bytes } else { bytes };
        let cost = match times {
            Distribution::Constant => mean,
            Distribution::Exponential => {
                Duration::from_ns(saturating_u64(f64_from(mean.as_ns()) * -libm::log(self.rng.unit_positive())))
            }
        };
        let done = self.stations[station as usize].arrive(now, cost);
        self.in_service.push(done, id);
    }

    fn begin(&mut self, leg: Leg, bytes: u64, then: Continuation) -> u32 {
        u32_from(self.walks.insert(Walk { leg, left: bytes, quanta: 0, pays: true, then }))
    }

    fn end(&mut self, walk: u32) -> Continuation {
        self.walks.remove(walk as usize).then
    }

    fn walker(&mut self, walker: Walker) -> u32 {
        u32_from(self.walkers.insert(walker))
    }

    fn dismiss(&mut self, id: u32) {
        self.walkers.remove(id as usize);
    }
}
