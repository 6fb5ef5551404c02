//! The Python door: `raidlab._core`.
//!
//! Purpose: nothing but translation. A cell comes in as JSON text, plain numbers and NumPy columns go out; the contract is
//! `docs/internals/cell-contract.md`.
//!
//! Invariants: bad input becomes `CellError(message)` with `.key`, never a panic; the interpreter lock is released while a
//! run goes on; a pending signal (Ctrl-C) stops a run and keeps what was measured.

mod allocator;
mod answer;
mod cell;
mod direct;
mod doors;
mod error;
mod files;
mod log;
mod records;
mod replay;
mod search;
mod streams;
mod trace;

use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: allocator::SystemAllocator = allocator::SystemAllocator;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("CellError", m.py().get_type::<error::CellError>())?;
    m.add_class::<search::DepthSearch>()?;
    m.add_function(wrap_pyfunction!(cell::run_cell, m)?)?;
    m.add_function(wrap_pyfunction!(cell::check_cell, m)?)?;
    m.add_function(wrap_pyfunction!(cell::member_operations, m)?)?;
    m.add_function(wrap_pyfunction!(log::log_to_stderr, m)?)?;
    m.add_function(wrap_pyfunction!(doors::parse_tree, m)?)?;
    m.add_function(wrap_pyfunction!(doors::tree_facts, m)?)?;
    m.add_function(wrap_pyfunction!(doors::device_facts, m)?)?;
    m.add_function(wrap_pyfunction!(doors::device_user, m)?)?;
    m.add_function(wrap_pyfunction!(replay::device_replay, m)?)?;
    m.add_function(wrap_pyfunction!(trace::trace_formats, m)?)?;
    m.add_function(wrap_pyfunction!(trace::trace_format, m)?)?;
    m.add_function(wrap_pyfunction!(trace::trace_summary, m)?)?;
    m.add_function(wrap_pyfunction!(trace::trace_convert, m)?)?;
    m.add_function(wrap_pyfunction!(trace::trace_columns, m)?)?;
    m.add_function(wrap_pyfunction!(doors::layout_map, m)?)?;
    m.add_function(wrap_pyfunction!(doors::plan_io, m)?)?;
    Ok(())
}
