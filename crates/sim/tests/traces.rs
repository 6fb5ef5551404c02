//! Traces on the virtual clock: the response of every request by hand, and that two replays are one.

use raidlab_array::Tree;
use raidlab_load::trace::{Format, Parser, Replay, Text, TraceSpec};
use raidlab_load::{ArrivalSpec, Limits, LoadSpec};
use raidlab_sim::{check, run_observed, SimConfig, SimResult};
use raidlab_types::SpecError;

mod common;

fn replay(spec: &str, text: &str) -> Replay {
    let spec: TraceSpec = serde_json::from_str(spec).expect("a replay");
    let blocks = std::iter::once(text.as_bytes().to_vec());
    let records = Text { parser: Parser::new(Format::Alibaba, "t.csv"), blocks };
    Replay { spec, records: Box::new(records) }
}

/// Disks that take 1 ms, whatever is asked.
fn config(tree: Tree, load: LoadSpec) -> SimConfig {
    let drawn = common::random(1.0, 4096);
    SimConfig { load, limits: Limits::default(), ..common::closed(tree, common::fixed(1000.0), drawn, 1) }
}

fn stamps() -> LoadSpec {
    LoadSpec::Open { arrival: ArrivalSpec::Trace { speed: 1.0 }, max_in_flight: None }
}

fn run(config: &SimConfig, text: &str) -> Result<SimResult, SpecError> {
    run_observed(config, Some(replay(r#"{"file": "t.csv"}"#, text)), &mut ())
}

#[test]
fn responses_are_those_of_the_queue_at_the_times_of_the_trace() {
    // One disk: at 0, 0.4 and 3 ms. The second waits 0.6 ms.
    let result =
        run(&config(Tree::member(), stamps()), "0,R,0,4096,100\n0,R,8192,4096,500\n0,W,0,4096,3100\n").unwrap();
    let all = result.recorder.all();
    assert_eq!((all.requests, result.recorder.read().requests), (3, 2));
    assert_eq!(all.response.mean_ns(), (1.0e6 + 1.6e6 + 1.0e6) / 3.0);
    assert_eq!(result.recorder.elapsed().as_ns(), 4_000_000);
    let replayed = result.replayed.expect("a replay");
    assert!(replayed.to_its_end);
    assert_eq!(replayed.span_ns, 3_000_000);
    // Three volumes side by side have nobody to wait for.
    let three = Tree::Independent { children: vec![Tree::member(); 3] };
    let text = "5,R,0,4096,100\n7,R,0,4096,100\n9,R,0,4096,100\n";
    assert_eq!(run(&config(three, stamps()), text).unwrap().recorder.all().response.mean_ns(), 1e6);
}

#[test]
fn two_replays_are_one_and_a_depth_is_kept() {
    let text: String = (0..500u64)
        .map(|i| format!("0,{},{},8192,{}\n", ["R", "W"][(i % 3 / 2) as usize], i * 7919 % 1000 * 8192, i * 900))
        .collect();
    let raid5 = || Tree::parity(1, 5, 4096, raidlab_array::Rotation::LeftSymmetric);
    for load in [stamps(), LoadSpec::Closed { depth: 8 }] {
        let once = || {
            let result = run(&config(raid5(), load.clone()), &text).unwrap();
            let all = result.recorder.all();
            (
                all.response.columns().collect::<Vec<_>>(),
                result.recorder.elapsed(),
                result.events,
                result.recorder.mean_in_flight(),
            )
        };
        assert_eq!(once(), once());
        if matches!(load, LoadSpec::Closed { .. }) {
            // The last seven end with fewer beside them.
            assert!((7.8..=8.0).contains(&once().3), "{}", once().3);
        }
    }
}

#[test]
fn a_fault_far_into_the_trace_is_an_error() {
    let cell = config(Tree::member(), stamps());
    let beyond = "0,R,0,4096,100\n0,R,1099511627776,4096,500\n";
    let error = run(&cell, beyond).map(drop).unwrap_err();
    assert_eq!(error.key, "trace");
    assert!(error.message.starts_with("t.csv:2: 'a read': 4096 bytes at 1099511627776 lie beyond volume 0"), "{error}");
    // A look at the beginning sees what is wrong there, and runs nothing.
    assert!(check(&cell, Some(replay(r#"{"file": "t.csv"}"#, beyond))).is_ok());
    assert_eq!(check(&cell, Some(replay(r#"{"file": "t.csv"}"#, "what\n"))).unwrap_err().key, "trace");
    let wrap = run_observed(&cell, Some(replay(r#"{"file": "t.csv", "beyond": "wrap"}"#, beyond)), &mut ()).unwrap();
    assert_eq!(wrap.replayed.expect("a replay").wrapped, 1);
}
