//! The way between a client and a disk: stations, what is paid at each, and in which order they are passed.
//!
//! Purpose: host processors, interfaces, switches, controllers, buses and links are all the same thing here, a station
//! with so many servers and a name. A request passes the *request path* above the array, each member operation the
//! *member path* below it. Both are lists of visits written from the client to the disk and compiled to flat lists of steps.
//!
//! Phases, in this order:
//! - `command`: on the way down, before anything else;
//! - `data`: down behind the command for a write, up in front of the status for a read, once for every transfer quantum, so
//!   that the stations of a long transfer work side by side and others get between;
//! - `status`: on the way up, after everything else;
//! - `bus`: below the array only: the station is the bus that the members are on, which they hold as their `[bus]` says.
//!
//! Invariants:
//! - On the way down visits are made in the order of the list, on the way up in the opposite order.
//! - A visit that costs nothing is left out when compiled.
//! - A cap is never a minimum of two rates: what limits is a queue at a station.
//!
//! Reference: E. D. Lazowska et al., *Quantitative System Performance*, 1984, chapter 10 (disk I/O paths as centres).

use crate::cache::CacheSpec;
use crate::config::HostSpec;
use raidlab_types::number::u32_from;
use raidlab_types::{Duration, OpKind, SpecError};
use serde::{Deserialize, Serialize};

/// The name of the station that [`HostSpec`] stands for.
pub const HOST_CPU: &str = "host cpu";
/// The part of the processors' work that is parity: shown beside the whole, and contained in it.
pub const HOST_PARITY: &str = "host cpu: parity";

/// A station: servers that work first come, first served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StationSpec {
    /// What visits and results call it.
    pub name: String,
    /// Servers, at least 1.
    #[serde(default = "one")]
    pub servers: u32,
}

fn one() -> u32 {
    1
}

/// When a visit is made. The head of this module tells what each one costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before anything else.
    Command,
    /// With the bytes.
    Data,
    /// After everything else.
    Status,
    /// While the disk has it: the station is its bus.
    Bus,
}

/// Which requests or operations make a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VisitKind {
    /// All.
    #[default]
    Both,
    /// Those that read.
    Read,
    /// Those that write.
    Write,
}

/// How the time of a visit varies about its mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Not at all.
    #[default]
    Constant,
    /// Exponentially: what a station does besides, arbitration and retries are not modelled one by one.
    Exponential,
}

/// One visit to a station.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VisitSpec {
    /// Which station.
    pub station: String,
    /// When.
    pub phase: Phase,
    /// What it costs each time, in microseconds; in phase `data` once a transfer.
    #[serde(default)]
    #[serde(rename = "cost", with = "raidlab_types::unit::ns_as_us")]
    pub cost_us: f64,
    /// The rate at which bytes pass, in MB/s (10^6); in phase `data` only. Absent: they cost nothing.
    pub mb_s: Option<f64>,
    /// Who makes it.
    #[serde(default)]
    pub on: VisitKind,
    /// Only these volumes (request path) or members (member path); absent: all.
    pub only: Option<Vec<u32>>,
    /// How its time varies.
    #[serde(default)]
    pub times: Distribution,
}

impl VisitSpec {
    /// Whether a volume or member makes it.
    fn is_of(&self, one: u32) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&one))
    }
}

/// A station that computes parity instead of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParitySpec {
    /// Which.
    pub station: String,
    /// Its work per KiB that a computation reads, in microseconds.
    #[serde(rename = "per_kib", with = "raidlab_types::unit::ns_as_us")]
    pub us_per_kib: f64,
}

/// Stations and paths. Empty: there are none but the host's processors, if these cost anything.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PathSpec {
    /// The stations, each with a name of its own.
    #[serde(rename = "station")]
    pub stations: Vec<StationSpec>,
    /// Above the array, from the client on.
    pub request_path: Vec<VisitSpec>,
    /// Below the array, to the disk.
    pub member_path: Vec<VisitSpec>,
    /// Longest piece in which bytes travel; absent: a transfer travels whole.
    #[serde(rename = "transfer_quantum")]
    pub transfer_quantum_bytes: Option<u64>,
    /// The same of writes above the array, where it differs.
    #[serde(rename = "write_quantum")]
    pub write_quantum_bytes: Option<u64>,
    /// The same below the array, where it differs.
    #[serde(rename = "member_quantum")]
    pub member_quantum_bytes: Option<u64>,
    /// Who computes parity, if not the host.
    pub parity: Option<ParitySpec>,
    /// Ways from the array's host to the other end of a stream, each a list of visits from the host outwards.
    pub ways: Vec<Vec<VisitSpec>>,
    /// Longest piece in which bytes go along them; absent: a block goes whole.
    #[serde(rename = "end_quantum")]
    pub end_quantum_bytes: Option<u64>,
    /// Caches between the request path and the array; of several for one volume the first counts.
    #[serde(rename = "cache")]
    pub caches: Vec<CacheSpec>,
}

impl PathSpec {
    /// The cache of a volume.
    pub(crate) fn cache_of(&self, volume: u32) -> Option<&CacheSpec> {
        self.caches.iter().find(|cache| cache.is_of(volume))
    }
}

/// One visit, compiled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct VisitStep {
    pub station: u32,
    pub fixed: Duration,
    pub ns_per_byte: f64,
    pub times: Distribution,
}

/// A run of steps, `from` to before `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StepRange {
    pub from: u32,
    pub to: u32,
}

impl StepRange {
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.from == self.to
    }
}

/// One way, down or up: steps before the bytes, with them, and after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Leg {
    pub before: StepRange,
    pub data: StepRange,
    pub after: StepRange,
    /// Longest piece in which bytes travel; 0 where none do.
    pub quantum_bytes: u64,
}

impl Leg {
    /// Whether it costs nothing.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.before.is_empty() && self.data.is_empty() && self.after.is_empty()
    }
}

/// The legs of one volume or member: to the array or the disk, and back.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Route {
    pub down: Leg,
    pub up: Leg,
}

/// All paths, compiled.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    pub steps: Vec<VisitStep>,
    /// By volume and by member: those of reads, and of writes.
    requests: Vec<[Route; 2]>,
    members: Vec<[Route; 2]>,
    /// What a write pays that a volume's cache answers.
    copies: Vec<Leg>,
    /// The ways of streams, towards the array and outwards.
    ways: Vec<[Leg; 2]>,
    /// By member: the station that is its bus.
    buses: Vec<Option<u32>>,
}

impl Paths {
    /// The way of a volume's request.
    #[inline]
    pub(crate) fn request(&self, volume: u32, writes: bool) -> &Route {
        &self.requests[volume as usize][usize::from(writes)]
    }

    /// The way of an operation of a member.
    #[inline]
    pub(crate) fn member(&self, leaf: u32, kind: OpKind) -> &Route {
        &self.members[leaf as usize][usize::from(kind != OpKind::Read)]
    }

    /// What a write of a volume pays that its cache answers.
    #[inline]
    pub(crate) fn copy(&self, volume: u32) -> Leg {
        self.copies[volume as usize]
    }

    /// The station that is a member's bus.
    pub(crate) fn bus(&self, leaf: u32) -> Option<u32> {
        self.buses[leaf as usize]
    }

    /// The stations that are buses.
    pub(crate) fn buses(&self) -> impl Iterator<Item = u32> + '_ {
        self.buses.iter().flatten().copied()
    }

    /// A way of a stream, from the array's host outwards or towards it.
    #[inline]
    pub(crate) fn way(&self, way: u32, outward: bool) -> Leg {
        self.ways[way as usize][usize::from(outward)]
    }

    /// Compiles both paths for so many volumes and members. `host` comes first on both.
    pub(crate) fn compile(path: &PathSpec, host: &HostSpec, volumes: usize, leaves: usize) -> Result<Paths, SpecError> {
        let mut paths = Paths::default();
        let request = with_host(&path.request_path, &[(Phase::Command, host.request_us)]);
        let member =
            with_host(&path.member_path, &[(Phase::Command, host.access_us), (Phase::Status, host.completion_us)]);
        for (key, list, count) in
            [("request_path", &path.request_path, volumes), ("member_path", &path.member_path, leaves)]
        {
            for (i, visit) in list.iter().enumerate() {
                check_visit(&format!("path.{key}[{i}]"), visit, path, count)?;
            }
        }
        for (i, cache) in path.caches.iter().enumerate() {
            let key = format!("path.cache[{i}]");
            for (k, visit) in cache.copy_path.iter().enumerate() {
                check_visit(&format!("{key}.copy_path[{k}]"), visit, path, volumes)?;
            }
            if let Some(&one) = cache.only.iter().flatten().find(|&&one| one as usize >= volumes) {
                return Err(SpecError::new(format!("{key}.only"), format!("{one}; accepted: 0 to {}", volumes - 1)));
            }
        }
        let station = |visit: &VisitSpec| station_index(path, &visit.station).unwrap_or(0);
        let quantum = path.transfer_quantum_bytes.unwrap_or(u64::MAX);
        let write_quantum = path.write_quantum_bytes.unwrap_or(quantum);
        let member_quantum = path.member_quantum_bytes.unwrap_or(quantum);
        for volume in 0..u32_from(volumes) {
            let ways = paths.ways(&request, volume, [write_quantum, quantum], station);
            paths.requests.push(ways);
            let copy = path.cache_of(volume).map_or(&[][..], |cache| &cache.copy_path[..]);
            let copy = paths.ways(copy, volume, [quantum, quantum], station)[1].down;
            paths.copies.push(copy);
        }
        for (i, way) in path.ways.iter().enumerate() {
            for (k, visit) in way.iter().enumerate() {
                check_visit(&format!("path.ways[{i}][{k}]"), visit, path, path.ways.len())?;
            }
            let quantum = path.end_quantum_bytes.unwrap_or(u64::MAX);
            let ways = paths.ways(way, u32_from(i), [quantum, quantum], station);
            paths.ways.push(both_ways(ways));
        }
        for leaf in 0..u32_from(leaves) {
            let ways = paths.ways(&member, leaf, [member_quantum, member_quantum], station);
            paths.members.push(ways);
            let mut buses = path.member_path.iter().enumerate().filter(|(_, v)| v.phase == Phase::Bus && v.is_of(leaf));
            paths.buses.push(buses.next().map(|(_, visit)| station(visit)));
            if let Some((i, _)) = buses.next() {
                let message = format!("member {leaf} is on a bus already; accepted: one bus a member");
                return Err(SpecError::new(format!("path.member_path[{i}].phase"), message));
            }
        }
        Ok(paths)
    }

    fn ways(
        &mut self,
        visits: &[VisitSpec],
        of: u32,
        quanta: [u64; 2],
        station: impl Fn(&VisitSpec) -> u32,
    ) -> [Route; 2] {
        [(false, VisitKind::Write), (true, VisitKind::Read)].map(|(writes, other)| {
            let mine = |v: &&VisitSpec| v.on != other && v.is_of(of);
            let of_phase = |phase| -> Vec<VisitStep> {
                let steps = visits.iter().filter(mine).filter(|v| v.phase == phase).map(|v| step(v, station(v)));
                steps.filter(|s| s.fixed > Duration::ZERO || s.ns_per_byte > 0.0).collect()
            };
            let (command, mut data, mut status) =
                (of_phase(Phase::Command), of_phase(Phase::Data), of_phase(Phase::Status));
            status.reverse();
            let [mut down, mut up] = quanta.map(|quantum_bytes| Leg { quantum_bytes, ..Leg::default() });
            down.before = self.span(&command);
            if writes {
                down.data = self.span(&data);
            } else {
                data.reverse();
                up.data = self.span(&data);
            }
            up.after = self.span(&status);
            Route { down, up }
        })
    }

    fn span(&mut self, steps: &[VisitStep]) -> StepRange {
        let from = u32_from(self.steps.len());
        self.steps.extend_from_slice(steps);
        StepRange { from, to: u32_from(self.steps.len()) }
    }
}

/// The legs of a way, towards the host and outwards. To the other end what goes outwards is a write: its bytes go down the
/// list, those that come from there go up it.
fn both_ways([reads, writes]: [Route; 2]) -> [Leg; 2] {
    [Leg { before: reads.down.before, ..reads.up }, Leg { after: writes.up.after, ..writes.down }]
}

fn with_host(visits: &[VisitSpec], host: &[(Phase, f64)]) -> Vec<VisitSpec> {
    let visit = |&(phase, us): &(Phase, f64)| VisitSpec {
        station: HOST_CPU.to_string(),
        phase,
        cost_us: us,
        mb_s: None,
        on: VisitKind::Both,
        only: None,
        times: Distribution::Constant,
    };
    host.iter().map(visit).chain(visits.iter().cloned()).collect()
}

fn step(visit: &VisitSpec, station: u32) -> VisitStep {
    let ns_per_byte = visit.mb_s.map_or(0.0, |mb_s| 1e3 / mb_s);
    VisitStep { station, fixed: Duration::from_s_f64(visit.cost_us / 1e6), ns_per_byte, times: visit.times }
}

/// The host's processors are station 0; the path's own stand behind.
pub(crate) fn station_index(path: &PathSpec, name: &str) -> Option<u32> {
    if name == HOST_CPU {
        return Some(0);
    }
    path.stations.iter().position(|s| s.name == name).map(|i| u32_from(i) + 1)
}

/// Checks the stations themselves.
pub(crate) fn check_stations(path: &PathSpec) -> Result<(), SpecError> {
    for (i, station) in path.stations.iter().enumerate() {
        let key = |field: &str| format!("path.station[{i}].{field}");
        if station.servers == 0 {
            return Err(SpecError::new(key("servers"), "0; accepted: at least 1"));
        }
        let taken = path.stations[..i].iter().any(|other| other.name == station.name);
        if [HOST_CPU, HOST_PARITY, ""].contains(&station.name.as_str()) || taken {
            let message = format!("'{}'; accepted: a name that no other station has, nor the host", station.name);
            return Err(SpecError::new(key("name"), message));
        }
    }
    let quanta = [
        ("transfer_quantum", path.transfer_quantum_bytes),
        ("write_quantum", path.write_quantum_bytes),
        ("member_quantum", path.member_quantum_bytes),
        ("end_quantum", path.end_quantum_bytes),
    ];
    for (key, quantum) in quanta {
        if quantum == Some(0) {
            return Err(SpecError::new(format!("path.{key}"), "0; accepted: at least 1"));
        }
    }
    if let Some(parity) = &path.parity {
        known_station("path.parity.station", &parity.station, path)?;
        cost("path.parity.per_kib", parity.us_per_kib)?;
    }
    Ok(())
}

fn check_visit(key: &str, visit: &VisitSpec, path: &PathSpec, count: usize) -> Result<(), SpecError> {
    known_station(&format!("{key}.station"), &visit.station, path)?;
    cost(&format!("{key}.cost"), visit.cost_us)?;
    if let Some(mb_s) = visit.mb_s {
        if !(mb_s.is_finite() && mb_s > 0.0) {
            return Err(SpecError::new(format!("{key}.mb_s"), format!("{mb_s}; accepted: a rate above 0")));
        }
        if !matches!(visit.phase, Phase::Data | Phase::Bus) {
            let message = format!("{mb_s}; accepted: only in phase \"data\", where bytes pass");
            return Err(SpecError::new(format!("{key}.mb_s"), message));
        }
    }
    if visit.phase == Phase::Bus {
        check_bus(key, visit, path)?;
    }
    match visit.only.iter().flatten().find(|&&one| one as usize >= count) {
        Some(one) => Err(SpecError::new(format!("{key}.only"), format!("{one}; accepted: 0 to {}", count - 1))),
        None => Ok(()),
    }
}

/// A bus is held as its disks say, by one of them at a time, and by nobody else.
fn check_bus(key: &str, visit: &VisitSpec, path: &PathSpec) -> Result<(), SpecError> {
    let wrong = |name: &str, message: &str| Err(SpecError::new(format!("{key}.{name}"), message));
    let station = path.stations.iter().find(|station| station.name == visit.station);
    let all = [&path.request_path, &path.member_path].into_iter().chain(&path.ways).flatten();
    let others = all.chain(path.caches.iter().flat_map(|cache| &cache.copy_path));
    if !key.starts_with("path.member_path") {
        return wrong("phase", "\"bus\" is the bus of disks; accepted: in the member path");
    }
    if station.is_none_or(|station| station.servers != 1) {
        return wrong("station", "a bus serves one disk at a time; accepted: a station with 1 server");
    }
    if others.clone().any(|other| other.station == visit.station && other.phase != Phase::Bus)
        || path.parity.as_ref().is_some_and(|parity| parity.station == visit.station)
    {
        return wrong("station", "a bus is held by its disks alone; accepted: a station that nothing else visits");
    }
    let plain = visit.cost_us == 0.0 && visit.mb_s.is_none() && visit.on == VisitKind::Both;
    if !plain || visit.times != Distribution::Constant {
        return wrong(
            "phase",
            "\"bus\" says all; accepted beside it: station, only; its times are those of the device's [bus]",
        );
    }
    Ok(())
}

fn known_station(key: &str, name: &str, path: &PathSpec) -> Result<(), SpecError> {
    if station_index(path, name).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = path.stations.iter().map(|s| s.name.as_str()).chain([HOST_CPU]).collect();
    Err(SpecError::new(key, format!("'{name}' is no station; accepted: {}", names.join(", "))))
}

/// A cost in microseconds, checked.
pub(crate) fn cost(key: &str, us: f64) -> Result<Duration, SpecError> {
    match us.is_finite() && us >= 0.0 {
        true => Ok(Duration::from_s_f64(us / 1e6)),
        false => Err(SpecError::new(key, format!("{us}; accepted: a time of at least 0"))),
    }
}
