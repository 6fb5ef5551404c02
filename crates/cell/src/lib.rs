//! The cell contract: what every door to the engines reads, and what the simulator answers.
//!
//! Purpose: one description of a cell, whoever brings it. `py` hands cells of Python to both clocks, `web` those of a page
//! to the virtual one; both read and answer with what stands here, so that the same text gives the same figures.
//!
//! Invariants:
//! - Text comes in, values go out; nothing is opened and nothing is timed.
//! - What is wrong is a [`SpecError`](raidlab_types::SpecError): a sentence, and the JSON path at fault.
//!
//! Reference: `docs/internals/cell-contract.md`.

mod answer;
mod facts;
mod read;
mod spec;

pub use answer::{files, held, histogram, of_sim, recorded, stages, BadDay, Part, Table};
pub use facts::{device_facts, layout_of, tree_facts};
pub use read::{device_from_json, from_json};
pub use spec::{CellSpec, EngineName, LiveWords, Unheeded};
