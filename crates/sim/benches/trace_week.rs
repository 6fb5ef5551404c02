//! How fast a long trace replays: a week of 100 million requests to 36 volumes, each a RAID 5 of five zoned disks, with full
//! recording; and how fast each format is read.
//!
//! The week is made as it is replayed, by a function of the request's number: as text it would be 5 GB. So the reading of
//! text is measured apart, over lines in memory, and once together with the replay.
//!
//! A turn is a tenth of the week; the others are repeated ten times. Medians are written as criterion writes its own, so
//! that one table has them all. `RAIDLAB_TRACE_REQUESTS` replays so many requests of the week instead of all.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "numbers here are small")]
// The one bench that is no criterion's: a run is a minute long, and its memory counts as much as its time.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // It times, and looks at its own memory.

use raidlab_array::{Rotation, Tree};
use raidlab_load::trace::{Format, Names, Parser, Record, Records, Replay, Text, TraceError, TraceSpec, Writer};
use raidlab_load::{ArrivalSpec, Limits, LoadSpec};
use raidlab_sim::{run_observed, SimConfig, SimResult};
use raidlab_types::{RequestKind, Seed, GIB, KIB};
use serde_json::json;
use std::path::Path;
use std::sync::mpsc::{channel, Sender};
use std::time::Instant;

#[path = "../tests/common/mod.rs"]
mod common;

const WEEK_REQUESTS: u64 = 100_000_000;
const WEEK_NS: u64 = 7 * 24 * 3600 * 1_000_000_000;
const VOLUMES: u32 = 36;
const VOLUME_BYTES: u64 = 750 * GIB;
/// Lines of text, and how often they are read.
const LINES: u64 = 250_000;
const TURNS: u64 = 10;
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
    /// Told how long each tenth took.
    turns: Sender<f64>,
    turn_begun: Instant,
}

impl Week {
    fn new(count: u64, turns: Sender<f64>) -> Week {
        let mut names = Names::default();
        (0..VOLUMES).for_each(|volume| assert_eq!(names.number(volume.to_string().as_bytes()), volume));
        Week {
            seed: Seed::new(36),
            names,
            next: 0,
            count,
            time_ns: 0,
            mean_gap_ns: WEEK_NS / WEEK_REQUESTS,
            ends: vec![0; VOLUMES as usize],
            turns,
            turn_begun: Instant::now(),
        }
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
        let turn = self.next * TURNS / self.count;
        for _ in 0..BATCH.min(self.count - self.next) {
            let record = self.record();
            out.push(record);
        }
        if self.next * TURNS / self.count > turn {
            let taken_s = std::mem::replace(&mut self.turn_begun, Instant::now()).elapsed().as_secs_f64();
            self.turns.send(taken_s).expect("somebody listens");
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

fn config() -> SimConfig {
    let raid5 = Tree::parity(1, 5, 64 << 10, Rotation::LeftSymmetric);
    let tree = Tree::Independent { children: vec![raid5; VOLUMES as usize] };
    let load = LoadSpec::Open { arrival: ArrivalSpec::Trace { speed: 1.0 }, max_in_flight: None };
    let unused = common::random(1.0, 4096);
    SimConfig { load, limits: Limits::default(), ..common::closed(tree, common::zoned_disk(), unused, 1) }
}

fn replay(records: Box<dyn Records + Send>) -> (SimResult, f64) {
    let spec: TraceSpec = serde_json::from_str(r#"{"file": ""}"#).expect("a replay");
    let begun = Instant::now();
    let result = run_observed(&config(), Some(Replay { spec, records }), &mut ()).expect("it replays");
    (result, begun.elapsed().as_secs_f64())
}

/// The first lines of the week in a format; none where it cannot be written.
fn text(format: Format) -> Option<Vec<u8>> {
    let (mut week, mut writer, mut out) = (Week::new(LINES, channel().0), Writer::new(format), String::new());
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

/// Time this process has had a processor, in seconds: what a busy machine does not stretch.
fn processor_s() -> f64 {
    let told = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    told.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).map_or(f64::NAN, |ns| ns / 1e9)
}

/// Prints the median rate of turns that counted so much each, and leaves it where the table of speeds (`benches/speeds`)
/// looks, in the shape of criterion's files. The interval is from the second shortest to the second longest of ten, which
/// covers the median with 98 %.
fn report(name: &str, amount: u64, mut turns_s: Vec<f64>) {
    turns_s.sort_by(f64::total_cmp);
    let (low, high) = (turns_s[1.min(turns_s.len() - 1)], turns_s[turns_s.len().saturating_sub(2)]);
    let median = turns_s[turns_s.len() / 2];
    let rate = |seconds: f64| amount as f64 / seconds / 1e6;
    println!("{name:<50} {:>7.3} M/s [{:.3}, {:.3}]", rate(median), rate(high), rate(low));
    let about = json!({"full_id": name, "throughput": {"Elements": amount}});
    let interval = json!({"confidence_level": 0.95, "lower_bound": low * 1e9, "upper_bound": high * 1e9});
    let estimates = json!({"median": {"point_estimate": median * 1e9, "confidence_interval": interval}});
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("cargo's folder lies in the target folder");
    let folder = target.join("criterion").join(name).join("new");
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join("benchmark.json"), about.to_string()))
        .and_then(|()| std::fs::write(folder.join("estimates.json"), estimates.to_string()));
    written.expect("the target folder can be written");
}

fn week(count: u64) {
    let (tell, told) = channel();
    let before_s = processor_s();
    let (result, seconds) = replay(Box::new(Week::new(count, tell)));
    let processor_s = processor_s() - before_s;
    let all = result.recorder.all();
    assert_eq!(all.requests, count, "every request is replayed");
    println!(
        "{count} requests ({:.1} % reads), {:.2} days of the virtual clock, {:.2} events a request, mean response {:.2} ms",
        100.0 * result.recorder.read().requests as f64 / count as f64,
        result.recorder.elapsed().as_s_f64() / 86_400.0,
        result.events as f64 / count as f64,
        all.response.mean_ns() / 1e6,
    );
    println!(
        "in {seconds:.1} s, {:.3} M requests/s; {processor_s:.1} s of processor time, {:.3} M/s; {:.0} MB at most",
        count as f64 / seconds / 1e6,
        count as f64 / processor_s / 1e6,
        peak_mb(),
    );
    let part = if count == WEEK_REQUESTS { "" } else { "part of " };
    report(&format!("sim/{part}a week of 100 M requests, 36 volumes of RAID 5"), count / TURNS, told.iter().collect());
}

fn read(format: Format, text: &[u8]) -> f64 {
    let (mut parser, mut batch, mut records) = (Parser::new(format, "the week"), Vec::new(), 0);
    let begun = Instant::now();
    for block in text.chunks(BLOCK_BYTES) {
        batch.clear();
        parser.feed(block, &mut batch).expect("what was written can be read");
        records += batch.len() as u64;
    }
    assert_eq!(records, LINES);
    begun.elapsed().as_secs_f64()
}

fn main() {
    // Cargo also starts benches to have them tested; a week is no test.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let asked = std::env::var("RAIDLAB_TRACE_REQUESTS").ok();
    week(asked.map_or(WEEK_REQUESTS, |text| text.parse().expect("RAIDLAB_TRACE_REQUESTS is a number")));
    for format in Format::ALL {
        let Some(text) = text(format) else { continue };
        report(&format!("trace/reading {}", format.name()), LINES, (0..TURNS).map(|_| read(format, &text)).collect());
    }
    let text = text(Format::Alibaba).expect("it can be written");
    let once = |_| {
        let parser = Parser::new(Format::Alibaba, "the week");
        let blocks: Vec<Vec<u8>> = text.chunks(BLOCK_BYTES).map(<[u8]>::to_vec).collect();
        let (result, seconds) = replay(Box::new(Text { parser, blocks: blocks.into_iter() }));
        assert_eq!(result.recorder.all().requests, LINES);
        seconds
    };
    report("trace/reading alibaba and replaying it", LINES, (0..TURNS).map(once).collect());
}
