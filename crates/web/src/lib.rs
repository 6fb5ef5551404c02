//! The door to a browser: the virtual clock behind a few functions of plain numbers.
//!
//! Purpose: nothing but translation, as `py` does it for Python. A page writes JSON text into [`room`], calls a door, and
//! finds JSON text in the same place: `{"answer": ..}`, or `{"error": {"key", "message"}}` in the words that every door has.
//! The answer of [`run_cell`] is that of the [cell contract](../../../docs/internals/cell-contract.md), columns as lists.
//!
//! Invariants:
//! - One call at a time, as a worker of a page makes them; nothing is kept between calls but the room for text.
//! - A cell gives the same text here and behind any other door: whatever could differ (transcendental functions, orders of
//!   maps) is kept out of the crates below.

use raidlab_array::Tree;
use raidlab_cell::{CellSpec, EngineName, Part, Unheeded};
use raidlab_load::{DepthSearch, Point};
use raidlab_types::SpecError;
use serde::Deserialize;
use serde_json::{json, Value};
use std::cell::RefCell;

thread_local! {
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes room for a question of so many bytes, and says where it is to be written.
#[no_mangle]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    TEXT.with_borrow_mut(|text| {
        text.clear();
        text.resize(bytes, 0);
        text.as_mut_ptr()
    })
}

/// Where the answer of the last call begins.
#[no_mangle]
pub extern "C" fn text() -> *const u8 {
    TEXT.with_borrow(|text| text.as_ptr())
}

/// Runs the cell in the room; returns the length of its answer.
#[no_mangle]
pub extern "C" fn run_cell() -> usize {
    answered(simulated)
}

/// What a tree is: `{"text", "member_bytes", "sector_bytes"}` in the room gives the tree of a cell, and its facts.
#[no_mangle]
pub extern "C" fn tree() -> usize {
    answered(tree_of)
}

/// What a device model in the room says of itself.
#[no_mangle]
pub extern "C" fn device() -> usize {
    answered(|text| raidlab_cell::device_facts(&raidlab_cell::device_from_json(text)?))
}

/// The search for the depth at which a percentile equals a target: `{"percentile", "target_ns", "max_depth", "points"}`
/// gives `{"next"}`, the depth to run next, or `{"found"}`.
#[no_mangle]
pub extern "C" fn search() -> usize {
    answered(searched)
}

fn answered(door: impl Fn(&str) -> Result<Value, SpecError>) -> usize {
    TEXT.with_borrow_mut(|text| {
        let answer = std::str::from_utf8(text).map_err(|error| SpecError::new("", error.to_string())).and_then(door);
        let told = match answer {
            Ok(answer) => json!({ "answer": answer }),
            Err(SpecError { key, message }) => json!({"error": {"key": key, "message": message}}),
        };
        *text = told.to_string().into_bytes();
        text.len()
    })
}

fn simulated(text: &str) -> Result<Value, SpecError> {
    let spec: CellSpec<Unheeded> = CellSpec::read(text)?;
    if spec.engine == EngineName::Live {
        return Err(SpecError::new("engine", "live: a page has no disks; accepted: sim"));
    }
    if spec.trace.is_some() {
        return Err(SpecError::new("trace", "a page opens no files; accepted: a workload"));
    }
    let seed = spec.seed;
    let result = raidlab_sim::run(&spec.sim()?)?;
    let mut answer = raidlab_cell::of_sim(seed, &result, Vec::new());
    for (name, part) in raidlab_cell::recorded(&result.recorder) {
        answer[name] = Part::into(part);
    }
    Ok(answer)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TreeQuestion {
    text: String,
    member_bytes: u64,
    sector_bytes: u32,
}

fn tree_of(text: &str) -> Result<Value, SpecError> {
    let asked: TreeQuestion = raidlab_cell::from_json("", text)?;
    let tree = Tree::parse(&asked.text)?;
    let mut facts = raidlab_cell::tree_facts(&tree, asked.member_bytes, asked.sector_bytes)?;
    facts["tree"] = json!(tree);
    Ok(facts)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchQuestion {
    percentile: f64,
    target_ns: u64,
    max_depth: u32,
    points: Vec<Point>,
}

fn searched(text: &str) -> Result<Value, SpecError> {
    let asked: SearchQuestion = raidlab_cell::from_json("", text)?;
    let mut search = DepthSearch::new(asked.percentile, asked.target_ns, asked.max_depth)?;
    // A search is told only what it asks for: what is known of other depths must not lead it elsewhere than in a study.
    while let Some(depth) = search.next() {
        let Some(known) = asked.points.iter().find(|point| point.depth == depth) else {
            return Ok(json!({ "next": depth }));
        };
        search.report(depth, known.percentile_ns, known.throughput);
    }
    Ok(json!({ "found": search.answer().map(|answer| raidlab_cell::held(&answer)) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(door: extern "C" fn() -> usize, question: &str) -> Value {
        TEXT.set(question.into());
        let bytes = door();
        TEXT.with_borrow(|text| {
            assert_eq!(bytes, text.len());
            serde_json::from_slice(text).expect("an answer is JSON")
        })
    }

    fn cell(engine: &str) -> Value {
        json!({
            "engine": engine, "seed": 1, "tree": {"kind": "member"}, "content": "random", "verify": "off",
            "members": [{"kind": "fixed", "capacity_bytes": 1 << 30, "read_us": 100.0, "write_us": 100.0}],
            "load": {"kind": "closed", "depth": 2},
            "workload": {"read": 1.0, "size": {"kind": "fixed", "bytes": 4096}, "address": {"kind": "uniform"}},
            "measure": {"requests": 50},
        })
    }

    #[test]
    fn a_question_is_answered_in_the_room_it_was_asked_in() {
        assert!(!room(10).is_null());
        let facts = told(tree, r#"{"text": "raid5(4)", "member_bytes": 1073741824, "sector_bytes": 512}"#);
        assert_eq!((&facts["answer"]["tolerance"], &facts["answer"]["tree"]["parities"]), (&json!(1), &json!(1)));
    }

    #[test]
    fn only_what_a_page_can_run_is_run() {
        assert_eq!(told(run_cell, &cell("live").to_string())["error"]["key"], "engine");
        let traced = json!({"trace": {"file": "t"}, "workload": null});
        let mut asked = cell("sim");
        asked.as_object_mut().expect("an object").extend(traced.as_object().expect("an object").clone());
        assert_eq!(told(run_cell, &asked.to_string())["error"]["key"], "trace");
        assert_eq!(told(run_cell, "{}")["error"]["message"], "missing field `engine`");
    }

    #[test]
    fn a_search_asks_for_depths_until_it_has_found_one() {
        let asked = |points: Value| {
            let question = json!({"percentile": 90.0, "target_ns": 100, "max_depth": 8, "points": points});
            told(search, &question.to_string())["answer"].clone()
        };
        let point = |depth: u32, ns: u64| json!({"depth": depth, "percentile_ns": ns, "throughput": f64::from(depth)});
        assert_eq!(asked(json!([])), json!({"next": 1}));
        assert_eq!(asked(json!([point(1, 80)])), json!({"next": 2}));
        let found = asked(json!([point(1, 80), point(2, 120), point(8, 10)]));
        assert_eq!((&found["found"]["kind"], &found["found"]["depth"]), (&json!("between"), &json!(1.5)));
    }
}
