//! The words every raidlab crate shares.
//!
//! Purpose: one vocabulary (see `docs/reference/glossary.md`) for time, addresses, requests, operations, ids and seeds,
//! so that the array, the offered load, the device models and both clocks mean the same thing by the same name.
//!
//! Invariants:
//! - Time is `u64` nanoseconds, an [`Instant`] is a point on *some* clock (virtual or real) and is always an argument:
//!   nothing here, nor in any crate that knows only this one, can read a clock.
//! - Addresses count *sectors* of the array ([`Lba`]); what a sector is in bytes is a property of the array.
//! - Randomness is a pure function of a [`Seed`]: request `i` of a stream is the same whatever completes when.

#![cfg_attr(test, allow(clippy::pedantic, reason = "its casts: numbers of tests are small"))]

mod address;
mod error;
pub mod gf;
pub mod lru;
pub mod number;
mod operation;
mod request;
mod seed;
mod time;
pub mod unit;

pub use address::{Extent, Lba, Volume};
pub use error::SpecError;
pub use operation::{LeafId, OpError, OpId, OpKind, Operation};
pub use request::{Request, RequestError, RequestKind, RequestTag};
pub use seed::{CounterRng, Seed};
pub use time::{Duration, Instant};

/// Bytes in a KiB.
pub const KIB: u64 = 1024;
/// Bytes in a MiB.
pub const MIB: u64 = 1024 * KIB;
/// Bytes in a GiB.
pub const GIB: u64 = 1024 * MIB;
