//! How fast a long trace replays: a week of 100 million requests to 36 volumes, each a RAID 5 of five zoned disks, with full
//! recording; and how fast each format is read.
//!
//! The week is made as it is replayed, by a function of the request's number: as text it would be 5 GB. So the reading of
//! text is measured apart, over a million lines in memory, and once together with the replay.
//!
//! `RAIDLAB_TRACE_REQUESTS` replays so many requests of the week instead of all.

// The one bench that is no criterion's: a run is a minute long, and its memory counts as much as its time.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // It times, and looks at its own memory.

use raidlab_array::{Policy, Rotation, Tree};
use raidlab_device::{DeviceSpec, PairPricing};
use raidlab_load::trace::{Format, Names, Parser, Record, Records, Replay, TraceError, TraceSpec, Writer};
use raidlab_load::{ArrivalSpec, Limits, LoadSpec, WorkloadSpec};
use raidlab_sim::{run_trace, HostSpec, PathSpec, SimConfig, SimResult};
use raidlab_types::{RequestKind, Seed, GIB, KIB};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

const WEEK_REQUESTS: u64 = 100_000_000;
const WEEK_NS: u64 = 7 * 24 * 3600 * 1_000_000_000;
const VOLUMES: u32 = 36;
const VOLUME_BYTES: u64 = 750 * GIB;
const LINES: u64 = 1_000_000;
const BATCH: u64 = 2048;
const BLOCK_BYTES: usize = 1 << 17;

/// The week: request `i` is a function of `i`, but that some follow the one before on their volume.
struct Week {
    seed: Seed,
    names: Names,
    next: u64,
    count: u64,
    time_ns: u64,
    mean_gap_ns: u64,
    /// Where the last request of each volume ended.
    ends: Vec<u64>,
}

impl Week {
    fn new(count: u64) -> Week {
        let mut names = Names::default();
        (0..VOLUMES).for_each(|volume| assert_eq!(names.number(volume.to_string().as_bytes()), volume));
        let ends = vec![0; VOLUMES as usize];
        Week { seed: Seed::new(36), names, next: 0, count, time_ns: 0, mean_gap_ns: WEEK_NS / WEEK_REQUESTS, ends }
    }

    /// 60 % reads; 4, 8, 16 or 64 KiB; a fifth of them sequential, the rest uniform over the volume; gaps uniform to twice
    /// their mean.
    fn record(&mut self) -> Record {
        let mut rng = self.seed.child(self.next).draws();
        let (words, place) = (rng.next_u64(), rng.next_u64());
        let volume = (words % u64::from(VOLUMES)) as u32;
        let bytes = [4, 4, 4, 8, 8, 16, 16, 64][(words >> 8 & 7) as usize] * KIB;
        let kind = if (words >> 16 & 0xff) * 10 < 6 * 256 { RequestKind::Read } else { RequestKind::Write };
        let is_sequential = (words >> 24 & 0xff) * 5 < 256;
        let follows = self.ends[volume as usize];
        let offset_bytes = if is_sequential && follows + bytes <= VOLUME_BYTES {
            follows
        } else {
            place % ((VOLUME_BYTES - 64 * KIB) / (4 * KIB)) * 4 * KIB
        };
        self.ends[volume as usize] = offset_bytes + bytes;
        self.time_ns += (words >> 32) % (2 * self.mean_gap_ns);
        self.next += 1;
        Record { line: self.next, time_ns: self.time_ns, volume, kind, offset_bytes, bytes, response_ns: None }
    }
}

impl Records for Week {
    fn fill(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        for _ in 0..BATCH.min(self.count - self.next) {
            let record = self.record();
            out.push(record);
        }
        Ok(self.next < self.count)
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn file(&self) -> &str {
        "the week"
    }
}

/// A text in memory, parsed block by block as a file would be.
struct Text {
    parser: Parser,
    text: Vec<u8>,
    at: usize,
}

impl Records for Text {
    fn fill(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        let end = self.text.len().min(self.at + BLOCK_BYTES);
        self.parser.feed(&self.text[self.at..end], out)?;
        self.at = end;
        Ok(end < self.text.len())
    }

    fn names(&self) -> &Names {
        self.parser.names()
    }

    fn file(&self) -> &str {
        self.parser.file()
    }
}

fn disk() -> DeviceSpec {
    let text = r#"{"kind": "hdd", "revolution_ms": 8.333, "heads": 4, "sector_bytes": 512,
        "zones": [{"cylinders": 20000, "sectors_per_track": 1600}, {"cylinders": 20000, "sectors_per_track": 1400},
                  {"cylinders": 20000, "sectors_per_track": 1200}, {"cylinders": 20000, "sectors_per_track": 900}],
        "seek": {"kind": "lee", "min_ms": 0.8, "avg_ms": 8.5, "max_ms": 18.0}, "read_overhead_ms": 0.1,
        "write_overhead_ms": 0.1}"#;
    serde_json::from_str(text).expect("a disk")
}

fn config() -> SimConfig {
    let raid5 = Tree::parity(1, 5, 64 << 10, Rotation::LeftSymmetric);
    let unused = r#"{"size": {"kind": "fixed", "bytes": 4096}, "address": {"kind": "uniform"}}"#;
    SimConfig {
        tree: Tree::Independent { children: vec![raid5; VOLUMES as usize] },
        policy: Policy::default(),
        devices: vec![disk()],
        pair_pricing: PairPricing::Queued,
        missing: vec![],
        host: HostSpec::default(),
        path: PathSpec::default(),
        load: LoadSpec::Open { arrival: ArrivalSpec::Trace { speed: 1.0 }, max_in_flight: None },
        workload: serde_json::from_str::<WorkloadSpec>(unused).expect("a workload"),
        files: None,
        limits: Limits::default(),
        sector_bytes: None,
        seed: 1,
    }
}

fn replay(records: Box<dyn Records + Send>) -> (SimResult, f64) {
    let spec: TraceSpec = serde_json::from_str(r#"{"path": ""}"#).expect("a replay");
    let begun = Instant::now();
    let result = run_trace(&config(), Replay { spec, records }, &mut ()).expect("it replays");
    (result, begun.elapsed().as_secs_f64())
}

/// The first lines of the week in a format; none where it cannot be written.
fn text(format: Format) -> Option<Vec<u8>> {
    let (mut week, mut writer, mut out) = (Week::new(LINES), Writer::new(format), String::new());
    for _ in 0..LINES {
        let record = week.record();
        writer.write(&record, &week.names, "the week", &mut out).ok()?;
    }
    Some(out.into_bytes())
}

/// Most memory this process ever had, in MB.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib * 1024.0 / 1e6)
}

/// Leaves the week's time where the table of speeds (`benches/speeds`) looks, in the shape of criterion's files. One run has
/// no interval.
fn leave_for_the_table(count: u64, seconds: f64) -> std::io::Result<()> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("cargo's folder lies in the target folder");
    let name = "sim/a week of 100 M requests, 36 volumes of RAID 5";
    let folder = target.join("criterion").join(name).join("new");
    let ns = seconds * 1e9;
    let interval = json!({"confidence_level": 0.95, "lower_bound": ns, "upper_bound": ns});
    let estimates = json!({"median": {"point_estimate": ns, "confidence_interval": interval}});
    std::fs::create_dir_all(&folder)?;
    std::fs::write(
        folder.join("benchmark.json"),
        json!({"full_id": name, "throughput": {"Elements": count}}).to_string(),
    )?;
    std::fs::write(folder.join("estimates.json"), estimates.to_string())
}

fn main() {
    // Cargo also starts benches to have them tested; a week is no test.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let asked = std::env::var("RAIDLAB_TRACE_REQUESTS").ok();
    let count = asked.map_or(WEEK_REQUESTS, |text| text.parse().expect("RAIDLAB_TRACE_REQUESTS is a number"));
    let (result, seconds) = replay(Box::new(Week::new(count)));
    let all = result.recorder.all();
    assert_eq!(all.requests, count, "every request is replayed");
    let events = result.events as f64 / count as f64;
    println!(
        "a week on 36 x RAID 5: {count} requests ({:.1} % reads) in {seconds:.1} s, {:.3} M requests/s, {:.0} MB at most, \
         {:.1} days of the virtual clock, {events:.2} events a request, mean response {:.2} ms",
        100.0 * result.recorder.read().requests as f64 / count as f64,
        count as f64 / seconds / 1e6,
        peak_mb(),
        result.recorder.elapsed().as_s_f64() / 86_400.0,
        all.response.mean_ns() / 1e6,
    );
    if count == WEEK_REQUESTS {
        leave_for_the_table(count, seconds).expect("the target folder can be written");
    }
    for format in Format::ALL {
        let Some(text) = text(format) else { continue };
        let (mut parser, mut batch, mut records) = (Parser::new(format, "the week"), Vec::new(), 0);
        let begun = Instant::now();
        for block in text.chunks(BLOCK_BYTES) {
            batch.clear();
            parser.feed(block, &mut batch).expect("what was written can be read");
            records += batch.len() as u64;
        }
        let seconds = begun.elapsed().as_secs_f64();
        assert_eq!(records, LINES);
        println!(
            "reading {:<9} {:.2} M lines/s, {:.0} MB/s",
            format.name(),
            LINES as f64 / seconds / 1e6,
            text.len() as f64 / seconds / 1e6
        );
    }
    let text = text(Format::Alibaba).expect("it can be written");
    let (result, seconds) = replay(Box::new(Text { parser: Parser::new(Format::Alibaba, "the week"), text, at: 0 }));
    assert_eq!(result.recorder.all().requests, LINES);
    println!("a million lines of alibaba, read and replayed: {:.3} M requests/s", LINES as f64 / seconds / 1e6);
}
