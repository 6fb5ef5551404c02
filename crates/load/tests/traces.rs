//! Traces as a load: times, order, places, and how a replay ends.

use raidlab_load::trace::{BeyondEnd, Format, KindFilter, OtherVolumes, Parser, Replay, Text, TraceLoad, TraceSpec};
use raidlab_load::{ArrivalSpec, Generator, Limit, Limits, LoadSpec, SpecError, Volume};
use raidlab_types::{Request, RequestKind};
use std::collections::BTreeMap;

mod common;

/// A text in blocks of a few bytes.
fn text(lines: &str) -> Box<Text<impl Iterator<Item = Vec<u8>>>> {
    let blocks: Vec<Vec<u8>> = lines.as_bytes().chunks(7).map(<[u8]>::to_vec).collect();
    Box::new(Text { parser: Parser::new(Format::Alibaba, "t.csv"), blocks: blocks.into_iter() })
}

fn spec() -> TraceSpec {
    TraceSpec {
        file: "t.csv".into(),
        format: None,
        volumes: BTreeMap::new(),
        others: OtherVolumes::Refuse,
        beyond: BeyondEnd::Refuse,
        only: KindFilter::All,
    }
}

fn stamps(speed: f64) -> LoadSpec {
    LoadSpec::Open { arrival: ArrivalSpec::Trace { speed }, max_in_flight: None }
}

const VOLUMES: [Volume; 2] = [Volume { capacity_sectors: 1000 }; 2];

fn replay(spec: &TraceSpec, load: &LoadSpec, limits: &Limits, lines: &str) -> Result<TraceLoad, SpecError> {
    TraceLoad::new(Replay { spec: spec.clone(), records: text(lines) }, load, limits, &VOLUMES, 512)
}

/// What was issued, and when, if every request takes `service_ns`.
fn drive(load: &mut TraceLoad, service_ns: u64) -> Vec<(u64, Request)> {
    let driven = common::drive(load, &mut |now: u64, _: &Request| now + service_ns, |_, _| {});
    driven.into_iter().map(|d| (d.issued_ns, d.request)).collect()
}

/// Times in microseconds, from 100 on: reads and writes of both volumes.
const LINES: &str = "7,R,0,512,100\n9,W,512,1024,103\n7,R,1024,512,103\n7,W,0,512,110\n";

#[test]
fn time_stamps_are_exact() {
    let mut load = replay(&spec(), &stamps(1.0), &Limits::default(), LINES).unwrap();
    let issued = drive(&mut load, 50_000);
    let of = |&(at, r): &(u64, Request)| (at, r.volume, r.kind, r.extent.lba, r.extent.sectors);
    assert_eq!(
        issued.iter().map(of).collect::<Vec<_>>(),
        [
            (0, 0, RequestKind::Read, 0, 1),
            (3000, 1, RequestKind::Write, 1, 2),
            (3000, 0, RequestKind::Read, 2, 1),
            (10_000, 0, RequestKind::Write, 0, 1)
        ]
    );
    // Times of the answers are those of the requests, whatever was in flight; the window ends with the last of them.
    let all = load.recorder().all();
    assert_eq!((all.requests, all.response.mean_ns(), load.recorder().elapsed().as_ns()), (4, 50_000.0, 60_000));
    let replayed = load.replayed().unwrap();
    assert!(replayed.to_its_end && replayed.changes().is_empty(), "{replayed:?}");
    assert_eq!((replayed.requests, replayed.span_ns), (4, 10_000));
    assert_eq!(replayed.volumes, [("7".to_owned(), Some(0)), ("9".to_owned(), Some(1))]);
}

#[test]
fn a_speed_divides_the_times() {
    for (speed, wanted) in [(2.0, [0, 1500, 1500, 5000]), (0.5, [0, 6000, 6000, 20_000])] {
        let mut load = replay(&spec(), &stamps(speed), &Limits::default(), LINES).unwrap();
        assert_eq!(drive(&mut load, 1).iter().map(|issued| issued.0).collect::<Vec<_>>(), wanted);
    }
}

#[test]
fn as_fast_as_a_depth_allows() {
    let mut load = replay(&spec(), &LoadSpec::Closed { depth: 2 }, &Limits::default(), LINES).unwrap();
    let issued = drive(&mut load, 1000);
    assert_eq!(issued.iter().map(|issued| issued.0).collect::<Vec<_>>(), [0, 0, 1000, 1000]);
    assert_eq!(load.recorder().all().response.mean_ns(), 1000.0);
    assert_eq!(load.recorder().mean_in_flight(), 2.0);
}

#[test]
fn waiting_counts_from_the_time_stamp() {
    let load = LoadSpec::Open { arrival: ArrivalSpec::Trace { speed: 1.0 }, max_in_flight: Some(1) };
    let mut load = replay(&spec(), &load, &Limits::default(), LINES).unwrap();
    let issued = drive(&mut load, 5000);
    assert_eq!(issued.iter().map(|issued| issued.0).collect::<Vec<_>>(), [0, 5000, 10_000, 15_000]);
    // 5, then 7, 12 and 10 microseconds after their time.
    assert_eq!(load.recorder().all().response.mean_ns(), 8500.0);
    assert_eq!((load.backlog().max_delay_ns, load.backlog().max_in_flight), (7000, 1));
}

#[test]
fn it_ends_where_the_limits_say() {
    let amount = |requests| Limit { requests: Some(requests), duration_s: None };
    let limits = Limits { warmup: amount(1), measure: amount(2) };
    let mut load = replay(&spec(), &LoadSpec::Closed { depth: 1 }, &limits, LINES).unwrap();
    drive(&mut load, 1000);
    assert_eq!((load.recorder().all().requests, load.recorder().elapsed().as_ns()), (2, 2000));
    assert!(!load.replayed().unwrap().to_its_end);
    let limits = Limits { warmup: amount(9), measure: amount(2) };
    let mut load = replay(&spec(), &LoadSpec::Closed { depth: 1 }, &limits, LINES).unwrap();
    drive(&mut load, 1000);
    let fault = load.fault().expect("it ended before it was warm").to_string();
    assert!(fault.contains("4 requests end within the warm-up"), "{fault}");
}

#[test]
fn nothing_is_left_out_moved_or_widened_unseen() {
    let lines = "1,R,0,512,1\n1,W,100,512,2\n1,R,511488,1024,3\n2,R,0,512,2\n";
    let wrap = TraceSpec { beyond: BeyondEnd::Wrap, ..spec() };
    let mut load = replay(&wrap, &stamps(1.0), &Limits::default(), lines).unwrap();
    let issued = drive(&mut load, 1);
    let places: Vec<(u64, u64)> = issued.iter().map(|(_, r)| (r.extent.lba, r.extent.sectors)).collect();
    // The second touches two sectors, the third is moved to end at the end, the fourth comes with the third.
    assert_eq!(places, [(0, 1), (0, 2), (998, 2), (0, 1)]);
    assert_eq!(issued.iter().map(|issued| issued.0).collect::<Vec<_>>(), [0, 1000, 2000, 2000]);
    let replayed = load.replayed().unwrap();
    assert_eq!((replayed.rounded, replayed.wrapped, replayed.out_of_order, replayed.left_out), (1, 1, 1, 0));
    assert_eq!(replayed.changes().len(), 3);

    let reads = TraceSpec { only: KindFilter::Reads, ..wrap.clone() };
    let mut load = replay(&reads, &stamps(1.0), &Limits::default(), lines).unwrap();
    assert!(drive(&mut load, 1).iter().all(|(_, r)| r.kind == RequestKind::Read));
    assert_eq!((load.replayed().unwrap().requests, load.replayed().unwrap().left_out), (3, 1));
    let writes = TraceSpec { only: KindFilter::Writes, ..wrap };
    let mut load = replay(&writes, &stamps(1.0), &Limits::default(), lines).unwrap();
    assert_eq!(drive(&mut load, 1).len(), 1);
}

#[test]
fn volumes_by_table_or_by_appearance() {
    let table = |rows: &[(&str, u32)]| rows.iter().map(|&(name, volume)| (name.to_owned(), volume)).collect();
    let chosen = TraceSpec { volumes: table(&[("9", 0)]), others: OtherVolumes::LeaveOut, ..spec() };
    let mut load = replay(&chosen, &stamps(1.0), &Limits::default(), LINES).unwrap();
    let issued = drive(&mut load, 1);
    // The clock begins with the first request offered.
    assert_eq!(issued.iter().map(|(at, r)| (*at, r.volume)).collect::<Vec<_>>(), [(0, 0)]);
    assert_eq!(load.replayed().unwrap().left_out, 3);
    let both = TraceSpec { volumes: table(&[("9", 1), ("7", 1)]), ..spec() };
    let mut load = replay(&both, &stamps(1.0), &Limits::default(), LINES).unwrap();
    assert!(drive(&mut load, 1).iter().all(|(_, r)| r.volume == 1));

    let of = |spec: &TraceSpec, lines: &str| match replay(spec, &stamps(1.0), &Limits::default(), lines) {
        Err(error) => error.to_string(),
        Ok(mut load) => {
            drive(&mut load, 1);
            load.fault().expect("a fault").to_string()
        }
    };
    let missing = TraceSpec { volumes: table(&[("7", 0)]), ..spec() };
    assert!(of(&missing, LINES).contains("t.csv:2: 'a write': the trace's volume '9' is not in the table"));
    let none = TraceSpec { volumes: table(&[("7", 2)]), ..spec() };
    assert!(of(&none, LINES).contains("volume 2 for '7' is none of the array's 2"));
    let three = "1,R,0,512,1\n2,R,0,512,2\n3,R,0,512,3\n";
    assert!(
        of(&spec(), three).contains("the trace's volume '3' is number 3 of its volumes, the array has 2"),
        "{}",
        of(&spec(), three)
    );
}

#[test]
fn what_cannot_be_offered_ends_the_run_with_its_line() {
    let beyond = "1,R,0,512,1\n1,R,512000,512,2\n1,R,0,512,3\n";
    let mut load = replay(&spec(), &stamps(1.0), &Limits::default(), beyond).unwrap();
    assert_eq!(drive(&mut load, 1).len(), 1);
    let fault = load.fault().expect("a fault").to_string();
    assert!(fault.contains("t.csv:2: 'a read': 512 bytes at 512000 lie beyond volume 0 of the array"), "{fault}");
    assert!(fault.contains("beyond = \"wrap\""), "{fault}");
    // What is longer than the volume cannot be wrapped either.
    let wrap = TraceSpec { beyond: BeyondEnd::Wrap, ..spec() };
    let long = replay(&wrap, &stamps(1.0), &Limits::default(), "1,R,0,512512,1\n").map(drop).unwrap_err();
    assert!(!long.message.contains("wrap"), "{long}");
    let bad = "1,R,0,512,1\n1,R,0,512,2\nnot a request\n";
    let mut load = replay(&spec(), &stamps(1.0), &Limits::default(), bad).unwrap();
    drive(&mut load, 1);
    assert!(load.fault().expect("a fault").message.starts_with("t.csv:3: 'not a request': "), "{:?}", load.fault());
}

#[test]
fn words_that_make_no_sense_are_refused_with_their_key() {
    let key =
        |load: &LoadSpec, lines: &str| replay(&spec(), load, &Limits::default(), lines).map(drop).unwrap_err().key;
    assert_eq!(key(&stamps(0.0), LINES), "load.arrival.speed");
    assert_eq!(key(&LoadSpec::Closed { depth: 0 }, LINES), "load.depth");
    let poisson = LoadSpec::Open { arrival: ArrivalSpec::Poisson { rate_per_s: 1.0 }, max_in_flight: None };
    assert_eq!(key(&poisson, LINES), "load.kind");
    assert_eq!(key(&stamps(1.0), "\n"), "trace");
    let only = TraceSpec { only: KindFilter::Writes, ..spec() };
    let none = replay(&only, &stamps(1.0), &Limits::default(), "1,R,0,512,1\n").map(drop).unwrap_err();
    assert!(none.message.contains("no request to offer"), "{none}");
    // And a trace's times are no arrivals without a trace.
    let drawn: raidlab_load::WorkloadSpec =
        serde_json::from_str(r#"{"size": {"kind": "fixed", "bytes": 512}, "address": {"kind": "uniform"}}"#).unwrap();
    let limits = Limits { measure: Limit { requests: Some(1), duration_s: None }, ..Limits::default() };
    let seed = raidlab_types::Seed::new(1);
    let error = raidlab_load::Load::new(&stamps(1.0), &drawn, &limits, &VOLUMES, 512, seed).unwrap_err();
    assert_eq!(error.key, "load.arrival.kind");
}
