//! The virtual clock: drives the array, the offered load and the device models through simulated time.
//!
//! Purpose: predict what an array of modelled devices does under a load, with the very array and generator that the live
//! engine runs. No bytes move.
//!
//! Invariants:
//! - Everything is a function of the configuration and its seed: two runs give the same result on every machine. Events
//!   at the same time are ordered: devices by leaf, then stations by sequence, then arrivals.
//! - The simulator's path is made of stations only: c first-come-first-served servers each. A cap follows from a queue.
//! - Nothing is allocated per request once the queues have grown.

#![cfg_attr(test, allow(clippy::pedantic, reason = "its casts: numbers of tests are small"))]

mod blocks;
mod cache;
mod config;
mod conserve;
mod events;
mod path;
mod result;
mod run;
mod station;
mod walks;

pub use cache::{CacheSpec, DestageWhen};
pub use config::{HostSpec, SimConfig};
pub use path::{Distribution, ParitySpec, PathSpec, Phase, StationSpec, VisitKind, VisitSpec, HOST_CPU, HOST_PARITY};
pub use result::{MemberResult, SimResult, StationResult};
pub use run::{check, run, run_observed, run_recorded, Observer, Progress};
