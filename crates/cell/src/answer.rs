//! What an engine answers, whoever asked: numbers, and columns of whole numbers.

use raidlab_array::{DataLoss, RebuildResult, SatOut, ScrubKind, ScrubResult, UnreadableResult};
use raidlab_device::Totals;
use raidlab_load::files::{AccessName, FilesRecord};
use raidlab_load::{Answer, Recorder, Snapshot, Tally, Times};
use raidlab_sim::{SimResult, HOST_CPU};
use raidlab_types::number::f64_from;
use serde_json::{json, Map, Value};

/// A part of an answer. A door writes columns as its own side has them.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A number, or what else JSON has.
    Plain(Value),
    /// A column of whole numbers.
    Column(Vec<u64>),
    /// Parts by name.
    Table(Table),
}

/// Parts by name, in the order in which they are told.
pub type Table = Vec<(&'static str, Part)>;

impl From<Part> for Value {
    /// As JSON has it: columns are lists.
    fn from(part: Part) -> Value {
        match part {
            Part::Plain(value) => value,
            Part::Column(numbers) => numbers.into(),
            Part::Table(parts) => {
                parts.into_iter().map(|(name, part)| (name.to_owned(), part.into())).collect::<Map<_, _>>().into()
            }
        }
    }
}

fn plain(value: impl Into<Value>) -> Part {
    Part::Plain(value.into())
}

fn column<Row>(rows: &[Row], of: fn(&Row) -> u64) -> Part {
    Part::Column(rows.iter().map(of).collect())
}

/// A histogram: the values that occurred, in ascending order, and how often each did.
pub fn histogram(times: &Times) -> Part {
    let rows: Vec<(u64, u64)> = times.columns().collect();
    Part::Table(vec![("value_ns", column(&rows, |r| r.0)), ("count", column(&rows, |r| r.1))])
}

/// What tallies have counted together. Histograms are not told once more: whoever reads them adds them up.
fn totals(of: &[&Tally]) -> Table {
    let sum = |part: fn(&Tally) -> u64| of.iter().copied().map(part).sum::<u64>();
    let requests = sum(|t| t.requests);
    let mean_ns = |times: fn(&Tally) -> &Times| {
        let sum_ns: u128 = of.iter().map(|&t| times(t).sum_ns()).sum();
        plain(f64_from(sum_ns) / f64_from(requests.max(1)))
    };
    vec![
        ("requests", plain(requests)),
        ("bytes", plain(sum(|t| t.bytes))),
        ("failed", plain(sum(|t| t.failed))),
        ("response_mean_ns", mean_ns(|t| &t.response)),
        ("service_mean_ns", mean_ns(|t| &t.service)),
    ]
}

fn tally(tally: &Tally) -> Part {
    let mut parts = totals(&[tally]);
    parts.push(("response", histogram(&tally.response)));
    // Nothing waits in a closed loop before it begins, and no time is told twice.
    if !tally.service.columns().eq(tally.response.columns()) {
        parts.push(("service", histogram(&tally.service)));
    }
    Part::Table(parts)
}

/// What a recorder says, of any engine.
pub fn recorded(recorder: &Recorder) -> Table {
    let (read, write) = (recorder.read(), recorder.write());
    let rows: Vec<Snapshot> = recorder.snapshots().collect();
    let seconds = recorder.second_histograms();
    let mut parts = vec![
        ("requests", plain(recorder.requests())),
        ("tasks", plain(recorder.tasks().map_or(recorder.requests(), |tasks| tasks.requests))),
        ("elapsed_ns", plain(recorder.elapsed().as_ns())),
        ("read", tally(read)),
        ("write", tally(write)),
        ("all", Part::Table(totals(&[read, write]))),
        ("depth", plain(recorder.mean_in_flight())),
    ];
    parts.extend(recorder.tasks().map(|tasks| ("task", tally(tasks))));
    parts.extend(recorder.gaps().map(|gaps| ("gaps", histogram(gaps))));
    let histograms = vec![
        ("time_ns", column(&seconds, |r| r.0)),
        ("value_ns", column(&seconds, |r| r.1)),
        ("count", column(&seconds, |r| r.2)),
    ];
    let snapshots = vec![
        ("time_ns", column(&rows, |s| s.time_ns)),
        ("requests", column(&rows, |s| s.requests)),
        ("bytes", column(&rows, |s| s.bytes)),
        ("response_sum_ns", column(&rows, |s| s.response_sum_ns)),
        ("histograms", Part::Table(histograms)),
    ];
    parts.push(("snapshots", Part::Table(snapshots)));
    parts
}

/// Means a request of where its time went: the host's work, waiting for members, their arms, rotation and transfer.
pub fn stages(requests: u64, host_cpu_ns: u64, members: &[Totals]) -> Value {
    let requests = f64_from(requests.max(1));
    let sum = |of: fn(&Totals) -> u64| f64_from(members.iter().map(of).sum::<u64>()) / requests;
    json!({
        "host_cpu_ns": f64_from(host_cpu_ns) / requests,
        "accesses": sum(|t| t.reads + t.writes),
        "queue_ns": sum(|t| t.wait_ns),
        "disconnect_ns": sum(|t| t.seek_ns + t.rotation_ns),
        "transfer_ns": sum(|t| t.transfer_ns),
        "overhead_ns": sum(|t| t.overhead_ns),
        "paired_ns": sum(|t| t.paired_ns),
    })
}

/// What a search for a depth found: between which depths, or that there is none.
pub fn held(answer: &Answer) -> Value {
    let (kind, depth, throughput, lower, upper) = match *answer {
        Answer::Between { depth, throughput, lower, upper } => ("between", depth, throughput, Some(lower), Some(upper)),
        Answer::NeverExceeded { last } => ("never_exceeded", f64::from(last.depth), last.throughput, Some(last), None),
        Answer::AlwaysExceeded { first } => {
            ("always_exceeded", f64::from(first.depth), first.throughput, None, Some(first))
        }
    };
    json!({"kind": kind, "depth": depth, "throughput": throughput, "lower": lower, "upper": upper})
}

/// What whole files asked for: accesses by name, times by size.
pub fn files(record: &FilesRecord) -> Value {
    let mean = |sum: u128, count: u64| f64_from(sum) / f64_from(count.max(1));
    let accesses = AccessName::ALL.map(|name| {
        let totals = record.accesses(name);
        json!({
            "name": name.name(),
            "count": totals.count,
            "bytes": totals.bytes,
            "found": totals.found,
            "mean_ns": mean(u128::from(totals.time_ns), totals.answered),
        })
    });
    let by_size = record.by_size.values();
    json!({
        "files": record.files,
        "open_mean_ns": mean(record.open_ns, record.files),
        "first_byte_mean_ns": mean(record.first_byte_ns, record.files),
        "accesses": accesses,
        "sizes": {
            "size_bytes": record.by_size.keys().collect::<Vec<_>>(),
            "files": by_size.clone().map(|size| size.files).collect::<Vec<_>>(),
            "time_ns": by_size.map(|size| u64::try_from(size.time_ns).unwrap_or(u64::MAX)).collect::<Vec<_>>(),
        },
    })
}

const SCRUB_BEFORE: &str = "Let a scrub find and mend what cannot be read before a member fails.";

/// Whether a member was whole before the run was over, and how long that took.
fn rebuild_check(rebuild: &RebuildResult) -> Value {
    let RebuildResult { leaf, failed_ns, begun_ns, rebuilt_bytes, member_bytes, elapsed_ns, .. } = *rebuild;
    let s = |ns: u64| f64_from(ns) / 1e9;
    let (seconds, mb) = (s(elapsed_ns), f64_from(rebuilt_bytes) / 1e6);
    let rate = if seconds > 0.0 { mb / seconds } else { 0.0 };
    let percent = 100.0 * f64_from(rebuilt_bytes) / f64_from(member_bytes.max(1));
    let why = if rebuild.has_worn_out { " for its read errors" } else { "" };
    let failed = failed_ns.map_or(String::new(), |ns| format!(" failed at {:.1} s{why},", s(ns)));
    let into = if rebuild.in_spare { " into a distributed spare" } else { "" };
    if let Some(at) = rebuild.stopped_ns {
        let evidence = format!(
            "DATA LOST: member {leaf}{failed} was rebuilt{into} up to {percent:.1} %; its rebuild stopped at {:.1} s, for too \
             little can be read of the others there.",
            s(at)
        );
        return json!({"name": "rebuild", "verdict": "INVALID", "evidence": evidence, "mend": SCRUB_BEFORE});
    }
    let evidence = match (failed_ns, begun_ns) {
        (None, None) => format!("Member {leaf} was to fail after the run was over."),
        (Some(_), None) => format!("Member {leaf}{failed} and none took its place."),
        _ if rebuild.is_over => format!("Member {leaf}{failed} was rebuilt{into} in {seconds:.1} s ({mb:.0} MB, {rate:.1} MB/s)."),
        _ => format!(
            "Member {leaf}{failed} was rebuilt{into} up to {percent:.1} % in {seconds:.1} s ({rate:.1} MB/s) when the run was over."
        ),
    };
    let verdict = if failed_ns.is_none() && begun_ns.is_none() { "WARN" } else { "PASS" };
    json!({"name": "rebuild", "verdict": verdict, "evidence": evidence, "mend": ""})
}

/// Whether places of a member were lost that went on a list of bad blocks as it was rebuilt.
fn places_check(rebuild: &RebuildResult) -> Option<Value> {
    let RebuildResult { leaf, lost_places, lost_bytes, .. } = *rebuild;
    let evidence = format!(
        "DATA LOST: as member {leaf} was rebuilt, too little could be read of the others in {lost_places} places ({:.0} KiB); \
         what lay there fails until it is written.",
        f64_from(lost_bytes) / 1024.0
    );
    (lost_places > 0)
        .then(|| json!({"name": "data_loss", "verdict": "WARN", "evidence": evidence, "mend": SCRUB_BEFORE}))
}

/// What a scrub has found, and how long it took.
fn scrub_check(scrub: &ScrubResult) -> Value {
    let ScrubResult { kind, begun_ns, elapsed_ns, is_over, done_bytes, all_bytes, mismatches, mended, .. } = *scrub;
    let (left_out_bytes, bare_bytes) = (scrub.left_out_bytes, scrub.bare_bytes);
    let (begun, took) = (f64_from(begun_ns) / 1e9, f64_from(elapsed_ns) / 1e9);
    // What is passed over takes no time.
    let mb = f64_from(done_bytes.saturating_sub(bare_bytes)) / 1e6;
    let percent = 100.0 * f64_from(done_bytes) / f64_from(all_bytes.max(1));
    let rate = if took > 0.0 { mb / took } else { 0.0 };
    let word = match kind {
        ScrubKind::Check => "check",
        ScrubKind::Repair => "repair",
        ScrubKind::Resync => "resync",
    };
    let is_cut_off = is_over && done_bytes < all_bytes;
    let how_far = if is_cut_off {
        format!("was cut off by a failure after {took:.1} s, with {percent:.1} % done")
    } else if is_over {
        format!("was over after {took:.1} s ({mb:.0} MB of members, {rate:.1} MB/s)")
    } else {
        format!("had done {percent:.1} % after {took:.1} s ({rate:.1} MB/s of members) when the run was over")
    };
    let written = if kind == ScrubKind::Repair { ", written anew" } else { "" };
    let of = |bytes: u64, what: &str| match bytes {
        0 => String::new(),
        _ => format!("; {:.1} MB {what}", f64_from(bytes) / 1e6),
    };
    let left_out = of(left_out_bytes, "could not be read")
        + &of(bare_bytes, "not gone over, for with the members that are gone nothing is left that could disagree");
    let found = match kind {
        ScrubKind::Resync => String::new(),
        _ => format!(" Mismatches: {mismatches} sectors{written}."),
    };
    let evidence = format!(
        "The {word} that began at {begun:.1} s {how_far}.{found} Unreadable sectors mended: {mended}{left_out}."
    );
    let finds = left_out_bytes + bare_bytes > 0 || is_cut_off || (kind != ScrubKind::Resync && mismatches > 0);
    let mend =
        if is_cut_off || bare_bytes > 0 { "Let another go over the array once its members are rebuilt." } else { "" };
    json!({"name": "scrub", "verdict": if finds { "WARN" } else { "PASS" }, "evidence": evidence, "mend": mend})
}

/// What befell the members of a run.
#[derive(Debug, Clone, Copy)]
pub struct BadDay<'a> {
    /// What became of each place.
    pub rebuilds: &'a [RebuildResult],
    /// Every scrub.
    pub scrubs: &'a [ScrubResult],
    /// Who was read last for being slow.
    pub sat_out: &'a [SatOut],
    /// The failure that was one too many.
    pub data_loss: Option<DataLoss>,
    /// What could not be read of members.
    pub unreadable: Option<UnreadableResult>,
    /// Requests that failed.
    pub failed: u64,
}

impl BadDay<'_> {
    /// What the engine says of it.
    pub fn checks(&self) -> Vec<Value> {
        let mut checks: Vec<Value> = self.rebuilds.iter().map(rebuild_check).collect();
        checks.extend(self.rebuilds.iter().filter_map(places_check));
        checks.extend(self.scrubs.iter().map(scrub_check));
        checks.extend(self.unreadable.map(|found| unreadable_check(found, self.failed)));
        checks.extend(self.sat_out.iter().map(sat_out_check));
        checks.extend(self.data_loss.map(|loss| data_loss_check(loss, self.rebuilds)));
        checks
    }
}

/// Who was slow, and how long it was read last.
fn sat_out_check(SatOut { leaf, begun_ns, ended_ns, mean_ns, peers_ns }: &SatOut) -> Value {
    let s = |ns: &u64| f64_from(*ns) / 1e9;
    let until = ended_ns.as_ref().map_or("the run was over".to_string(), |ns| format!("{:.1} s", s(ns)));
    let evidence = format!(
        "Member {leaf} took {:.2} ms for an operation where the median of its peers took {:.2} ms: it sat out from {:.1} s \
         until {until}.",
        mean_ns / 1e6,
        peers_ns / 1e6,
        s(begun_ns)
    );
    json!({"name": "sat_out", "verdict": "WARN", "evidence": evidence, "mend": ""})
}

/// What could not be read of members, and what became of it.
fn unreadable_check(UnreadableResult { bytes, repaired_bytes, left_bytes }: UnreadableResult, failed: u64) -> Value {
    let kib = |bytes: u64| f64_from(bytes) / 1024.0;
    let others = match bytes.saturating_sub(repaired_bytes + left_bytes) {
        0 => String::new(),
        rest => format!(
            "; the other {:.0} KiB were mended by a scrub, or written over, or went with their member",
            kib(rest)
        ),
    };
    let evidence = format!(
        "{:.0} KiB of members could not be read. {:.0} KiB were met by requests and written anew from the other members; \
         {:.0} KiB still cannot be read{others}. Requests failed: {failed}.",
        kib(bytes),
        kib(repaired_bytes),
        kib(left_bytes)
    );
    json!({"name": "unreadable", "verdict": if failed > 0 { "WARN" } else { "PASS" }, "evidence": evidence, "mend": ""})
}

fn data_loss_check(DataLoss { at_ns, leaf }: DataLoss, rebuilds: &[RebuildResult]) -> Value {
    let is_begun =
        |one: &&RebuildResult| one.leaf != leaf && !one.is_over && (one.failed_ns.or(one.begun_ns)).is_some();
    let others = rebuilds.iter().filter(is_begun).map(|one| {
        let percent = 100.0 * f64_from(one.rebuilt_bytes) / f64_from(one.member_bytes.max(1));
        format!("member {} was rebuilt ({percent:.1} % done)", one.leaf)
    });
    let (others, s): (Vec<String>, f64) = (others.collect(), f64_from(at_ns) / 1e9);
    let evidence = format!(
        "DATA LOST: member {leaf} failed at {s:.1} s, before {}. That is more than the array bears, and the run ended there.",
        others.join(" and ")
    );
    json!({"name": "data_loss", "verdict": "INVALID", "evidence": evidence, "mend": ""})
}

/// The answer of a simulated cell, without what its recorder says; `checks` are those of the door.
pub fn of_sim(seed: u64, result: &SimResult, mut checks: Vec<Value>) -> Value {
    let bad_day = BadDay {
        rebuilds: &result.rebuilds,
        scrubs: &result.scrubs,
        sat_out: &result.sat_out,
        data_loss: result.data_loss,
        unreadable: result.unreadable,
        failed: result.recorder.all().failed,
    };
    checks.extend(bad_day.checks());
    let of_host = result.stations.iter().filter(|station| station.name == HOST_CPU).map(|station| station.busy_ns);
    let totals: Vec<Totals> = result.members.iter().map(|member| member.totals).collect();
    json!({
        "engine": "sim",
        "seed": seed,
        "hold": result.hold,
        "members": result.members,
        "stations": result.stations,
        "stages": stages(result.recorder.requests(), of_host.sum(), &totals),
        "sector_bytes": result.sector_bytes,
        "user_bytes": result.user_bytes,
        "backlog": result.backlog,
        "files": result.files.as_ref().map(files),
        "streams": result.streams,
        "facts": {},
        "checks": checks,
        "rebuilds": result.rebuilds,
        "scrubs": result.scrubs,
        "replayed": result.replayed,
        "interrupted": result.interrupted,
    })
}
