//! The real clock: io_uring engine, buffers and targets, driving the same array and load.
//!
//! Purpose: to run a cell on real members (files, block devices, memory), with real parity computed, through the very
//! [`raidlab_array::Array`] and [`raidlab_load::Load`] that the simulator drives, and to record what came of it together
//! with what each target is.
//!
//! Invariants:
//! - Reading is the default. A block device that is mounted or held is never written; any other only when the user has
//!   named that very device; files are only overwritten when raidlab made them (`safety`, `target`).
//! - Results measured are never lost: what stops a run in its middle stands beside them.
//! - In steady state nothing is allocated per request, and there is no system call but the ring's.
//!
//! Code map: [`run()`] is the door; `target` opens and fills members, `safety` says which devices may be overwritten,
//! `engine` is the loop, `memory` its buffers, `content` what is written and checked.
//!
//! Reference: J. Axboe, *Efficient IO with io_uring*, 2019.

mod config;
mod content;
mod engine;
mod error;
mod memory;
mod result;
mod run;
mod safety;
mod target;

pub use config::{Content, Fault, FaultKind, LiveConfig, Progress, Stage};
pub use content::{Mismatch, VerifyReport};
pub use error::LiveError;
pub use result::{EngineFacts, FailedMember, LiveResult, MemberCounts, TracedOperation};
pub use run::run;
pub use target::{DeviceFacts, FilesystemFacts, TargetFacts, TargetSpec, TARGETS};
