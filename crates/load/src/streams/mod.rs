//! Sequential streams between two ends each, on a clock that is told.
//!
//! Purpose: the load of those who copy: from memory to an array, from an array to a tape, from an array over a network to
//! somebody's disk, several at once. The question is how fast each goes, alone and among the others, and which of its ends
//! it waits for. On the virtual clock [`StreamLoad`] stands for the copying programs and the file system that they use.
//!
//! Code map: `spec` the words of a cell and whether they make sense, `side` one end of a stream, `load` all streams,
//! `record` what came of each, [`tape`] a drive that both clocks use.
//!
//! Invariants:
//! - No clock and no file: time is an argument. Nothing is drawn: a run follows from its description.
//! - Blocks leave in order and arrive in order, each once.
//!
//! Reference: I. Bird et al., *Evaluating RAID in the Real World*, Jefferson Lab, 1998 (tests of streams to and from a tape).

mod load;
mod record;
mod side;
mod spec;
pub mod tape;

pub use load::{Carry, StreamLoad};
pub use record::{SideRecord, StreamRecord};
pub use spec::{EndSpec, StreamSpec};
