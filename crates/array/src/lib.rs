//! The sans-IO array: what operations on members serve a request, in what order, whatever fails.
//!
//! Purpose: the one implementation of every RAID level that the simulator, the live engine and the fault simulator share.
//! Two layers:
//! - *Plan* ([`plan`]): a pure function from (tree, member views, policy, request) to a small DAG of member operations
//!   and computations. A plan holds no bytes and prints itself.
//! - *Array* ([`Array`]): a state machine that runs plans: locks, failures in mid-request, windows of large requests.
//!
//! Invariants:
//! - No clock, file, thread or global randomness: time and results come in, operations come out (`clippy.toml`).
//! - Nothing is allocated per request once the pools have grown (`tests/no_alloc.rs` asserts it).
//! - No write of a window is issued before every pre-read of that window is complete. So a failure before the first
//!   write may be planned anew freely, and after it nothing old needs to be read again.
//! - All locks of a window are queued for at once, first come first served per key: waiting cannot form a circle.

#![cfg_attr(test, allow(clippy::pedantic, reason = "its casts: numbers of tests are small"))]

pub mod layout;
mod level;
mod machine;
mod outages;
pub mod plan;
mod policy;
mod spec;
mod throttle;
mod weakness;

pub use layout::{Layout, LayoutMap, MapCell, NodeId};
pub use machine::{
    Array, ArrayOp, ComputeWork, Event, SatOut, ScrubCounts, ScrubKind, ScrubMismatch, WindowId, OF_ARRAY,
};
pub use outages::{
    too_many_missing, Befallen, DataLoss, MemberEventSpec, Outages, RebuildResult, RebuildSpec, ScrubResult,
    UnreadableResult,
};
pub use plan::{ComputeKind, Piece, Plan, Space};
pub use policy::{
    ChunkAccesses, MemberState, MemberView, MirrorRead, ParityRead, ParityWrite, Policy, SitOut, WriteAfter,
};
pub use spec::{CopyKind, CopyLayout, Rotation, Tree};
pub use throttle::RebuildThrottle;
pub use weakness::Weakness;
