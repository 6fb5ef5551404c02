//! The real clock: io_uring engine, buffers and targets, driving the same array and load.
//!
//! Purpose: to run a cell on real members (files, block devices, memory, modelled disks), with real parity computed, through the very
//! [`raidlab_array::Array`] and [`raidlab_load::Load`] that the simulator drives, and to record what came of it together
//! with what each target is.
//!
//! Invariants:
//! - Reading is the default. A block device that is mounted or held is never written; any other only when the user has
//!   named that very device; files are only overwritten when raidlab made them (`safety`, `target`).
//! - Results measured are never lost: what stops a run in its middle stands beside them.
//! - In steady state nothing is allocated per request, and there is no system call but the ring's (and those that move
//!   the content of emulated members, where it lies in a file).
//!
//! Code map: [`run()`] is the door; `target` opens and fills members, `safety` says which devices may be overwritten,
//! `engine` is the loop, `memory` its buffers, `content` what is written and checked.
//!
//! Reference: J. Axboe, *Efficient IO with io_uring*, 2019.
//!
//! ```
//! use raidlab_array::Tree;
//! use raidlab_live::{run, LiveConfig, TargetSpec};
//! use raidlab_load::{Limit, Limits, LoadSpec, SizeSpec, WorkloadSpec};
//! use std::ops::ControlFlow;
//!
//! let (tree, targets) = (Tree::parse("raid5:5:64KiB").unwrap(), vec![TargetSpec::Memory { size_bytes: 1 << 20 }]);
//! let config = LiveConfig {
//!     missing: vec![2],
//!     load: LoadSpec::Closed { depth: 8 },
//!     workload: WorkloadSpec { read_fraction: 0.7, size: SizeSpec::Fixed { bytes: 8192 }, ..WorkloadSpec::default() },
//!     limits: Limits { warmup: Limit::default(), measure: Limit { requests: Some(1000), duration_s: None } },
//!     ..LiveConfig::new(tree, targets)
//! };
//! let result = run(&config, None, &mut |progress| {
//!     eprintln!("{:3.0} %", 100.0 * progress.fraction);
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!(result.recorder.all().requests, 1000);
//! assert_eq!(result.members[2].reads, 0);
//! # Ok::<(), raidlab_live::LiveError>(())
//! ```

#![cfg_attr(test, allow(clippy::pedantic, reason = "its casts: numbers of tests are small"))]

mod begin;
mod config;
mod content;
pub mod direct;
mod directory;
mod engine;
mod error;
pub mod files;
mod io;
mod lateness;
mod machine;
mod memory;
mod page_cache;
mod result;
mod run;
mod safety;
pub mod streams;
mod target;
mod usage;
mod workers;

pub use config::{ContentMode, Emulation, Fault, FaultKind, LiveConfig, RunProgress, RunStage};
pub use content::{ContentReport, Mismatch, Verify, VerifyReport, Wrong, WrongKind};
pub use directory::open_regular;
pub use engine::{Account, Accounts};
pub use error::LiveError;
pub use lateness::Lateness;
pub use machine::{KernelThread, MachineUsage};
pub use result::{
    ArrayInput, Check, EngineFacts, FailedMember, LiveResult, Mechanics, MemberCounts, TracedOperation, Verdict,
};
pub use run::{check, run, run_recorded};
pub use safety::device_user;
pub use target::{DeviceFacts, EmulatedContent, EmulatedFacts, FilesystemFacts, TargetFacts, TargetSpec, TARGETS};
pub use usage::{Accounting, DeviceTraffic, Usage};
