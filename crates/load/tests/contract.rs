//! The JSON words of `docs/internals/cell-contract.md`, and the keys that errors name.

mod common;

use common::*;
use raidlab_load::{Limits, Load, LoadSpec, WorkloadSpec};
use raidlab_types::Seed;
use serde_json::{from_value, json, Value};

/// Builds a load from the cell's parts as they stand in JSON; the error's key or text.
fn build(load: Value, workload: Value, measure: Value) -> Result<Load, String> {
    let load: LoadSpec = from_value(load).map_err(|e| e.to_string())?;
    let workload: WorkloadSpec = from_value(workload).map_err(|e| e.to_string())?;
    let limits: Limits =
        from_value(json!({"warmup": {"requests": 5}, "measure": measure})).map_err(|e| e.to_string())?;
    Load::new(&load, &workload, &limits, &[VOLUME], 512, Seed::new(1)).map_err(|e| e.key)
}

fn closed() -> Value {
    json!({"kind": "closed", "depth": 32})
}

fn plain() -> Value {
    json!({"read": 0.7, "size": {"kind": "fixed", "bytes": 8192}, "address": {"kind": "uniform"}, "align": 8192})
}

fn with(path: &str, value: Value) -> Value {
    let mut workload = plain();
    workload[path] = value;
    workload
}

#[test]
fn every_kind_of_the_contract_is_understood() {
    let run = |load, workload| {
        let mut load = build(load, workload, json!({"requests": 50})).unwrap();
        drive(&mut load, &mut single_server(1e5, 1), |_, _| {});
        assert_eq!(load.recorder().all().requests, 50);
    };
    run(closed(), plain());
    for arrival in [
        json!({"kind": "poisson", "rate_per_s": 300}),
        json!({"kind": "uniform", "rate_per_s": 300.5}),
        json!({"kind": "h2", "rate_per_s": 300, "cv2": 4}),
    ] {
        run(json!({"kind": "open", "arrival": arrival}), plain());
    }
    run(json!({"kind": "hold", "percentile": 90, "target": 200000000, "initial_depth": 8, "max_depth": 16}), plain());
    for size in [
        json!({"kind": "exponential", "mean": 6144}),
        json!({"kind": "normal", "mean": 1.5e6, "sd": 5e5}),
        json!({"kind": "lognormal", "mean": 65536, "sigma": 1}),
        json!({"kind": "table", "bytes": [512, 4096], "weights": [1, 3]}),
    ] {
        run(closed(), with("size", size));
    }
    for address in [
        json!({"kind": "uniform"}),
        json!({"kind": "sequential", "streams": 4}),
        json!({"kind": "zipf", "theta": 0.9}),
        json!({"kind": "hot_members", "weights": [1, 2, 1], "chunk": 8192}),
        json!({"kind": "strided", "stride": 1048576}),
        json!({"kind": "mixed", "sequential": 0.2, "local": 0.3, "local_sd": 20480000}),
        json!({"kind": "mixed", "sequential": 0.99}),
        json!({"kind": "mixed", "sequential": 0.5, "alike": true}),
        json!({"kind": "listed", "offset_bytes": [1048576, 0, 4096]}),
        json!({"kind": "aligned_stripe", "stripe": 409600, "chunk": 40960}),
    ] {
        run(closed(), with("address", address));
    }
    for align in [json!("sector"), json!(4096), json!(null)] {
        run(closed(), with("align", align));
    }
    run(closed(), with("task", json!([{"op": "read"}, {"op": "write", "same_extent_as": 0}])));
    run(closed(), with("volumes", json!("even")));
    run(closed(), with("volumes", json!({"weights": [1]})));
    run(closed(), with("volumes", json!({"shares": [1]})));
    run(closed(), with("span", json!(0.5)));
}

#[test]
fn unknown_words_are_refused() {
    let error = |load, workload| build(load, workload, json!({"requests": 1})).unwrap_err();
    assert!(error(json!({"kind": "closed", "depth": 1, "dept": 2}), plain()).contains("unknown field `dept`"));
    assert!(error(json!({"kind": "half_open"}), plain()).contains("unknown variant `half_open`"));
    assert!(error(closed(), with("reads", json!(1))).contains("unknown field `reads`"));
    assert!(error(closed(), with("align", json!("page"))).contains("a number of bytes, or \"sector\""));
    assert!(error(closed(), with("size", json!({"kind": "fixed", "bytes": -5}))).contains("-5"));
    assert!(error(closed(), with("task", json!([{"op": "read", "sise": 1}]))).contains("unknown field `sise`"));
}

#[test]
fn errors_name_their_key() {
    let key = |load, workload, measure| build(load, workload, measure).unwrap_err();
    let some = || json!({"requests": 1});
    assert_eq!(key(json!({"kind": "closed", "depth": 0}), plain(), some()), "load.depth");
    let open = json!({"kind": "open", "arrival": {"kind": "h2", "rate_per_s": 1, "cv2": 0.5}});
    assert_eq!(key(open, plain(), some()), "load.arrival.cv2");
    assert_eq!(key(closed(), with("read", json!(1.5)), some()), "workload.read");
    let mean = |bytes: f64| with("size", json!({"kind": "normal", "mean": bytes, "sd": 1}));
    assert_eq!(key(closed(), mean(-1.0), some()), "workload.size.mean");
    assert_eq!(key(closed(), mean(1e12), some()), "workload.size.mean");
    assert_eq!(key(closed(), with("align", json!(1000)), some()), "workload.align");
    let mut unaligned = with("size", json!({"kind": "fixed", "bytes": 1000}));
    unaligned["align"] = json!(null);
    assert_eq!(key(closed(), unaligned, some()), "workload.size.bytes");
    let streams = with("address", json!({"kind": "sequential", "streams": 0}));
    assert_eq!(key(closed(), streams, some()), "workload.address.streams");
    assert_eq!(key(closed(), with("volumes", json!({"weights": [1, 1]})), some()), "workload.volumes.weights");
    assert_eq!(key(closed(), with("volumes", json!({"shares": [1, 1]})), some()), "workload.volumes.shares");
    assert_eq!(key(closed(), with("volumes", json!({"shares": [0]})), some()), "workload.volumes.shares");
    assert_eq!(key(closed(), with("span", json!(0)), some()), "workload.span");
    assert_eq!(key(closed(), plain(), json!({})), "measure");
    assert_eq!(key(closed(), plain(), json!({"duration": -1})), "measure.duration");
}

#[test]
fn what_is_written_is_read_back() {
    let workload: WorkloadSpec = from_value(with("task", json!([{"op": "write", "same_extent_as": null}]))).unwrap();
    assert_eq!(from_value::<WorkloadSpec>(serde_json::to_value(&workload).unwrap()).unwrap(), workload);
    let limits: Limits = from_value(json!({"measure": {"duration": 1500000000, "requests": 3}})).unwrap();
    assert_eq!(from_value::<Limits>(serde_json::to_value(limits).unwrap()).unwrap(), limits);
}
