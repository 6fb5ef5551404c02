//! Device models that price operations: what a disk, or something simpler, would have taken for them.
//!
//! Purpose: one sans-IO model per kind of device, driven by the simulator's virtual clock or, for emulated spindles, by
//! the real one. An operation goes in with [`Device::handle_op`], [`Device::poll_timeout`] says when to come back,
//! [`Device::poll_done`] hands the completion out.
//!
//! Invariants:
//! - No clock, file, thread or global randomness: the same spec, seed and calls give the same answers on every machine.
//! - Time is whole nanoseconds. A disk's angle is the time modulo one revolution, so it never drifts.
//! - A device is work conserving: it never idles while an operation waits that its throttle has let pass, and its busy time is exactly the sum of the
//!   parts it reports ([`Totals`]).
//! - No allocation per operation once the queues have grown to the largest depth seen.
//!
//! Not modelled: reads that overtake others through a disk's buffer, partial writes of a segment, thermal recalibration;
//! of flash, what the header of `ssd` names.
//!
//! Adding a model: one file (or folder), one variant of [`DeviceSpec`] and of the private `Model`, one test. Adding a
//! scheduler: see the list in `scheduler/mod.rs`.

#![cfg_attr(test, allow(clippy::pedantic, reason = "its casts: numbers of tests are small"))]

mod calendar;
mod device;
mod empirical;
mod error;
mod fixed;
mod hdd;
mod pair;
mod random;
mod scheduler;
mod service;
mod spec;
mod ssd;
mod table;
mod throttle;
mod timeline;

pub use device::Device;
pub use empirical::EmpiricalSpec;
pub use error::SpecError;
pub use fixed::FixedSpec;
pub use hdd::{
    BandSpec, BufferSpec, BusSpec, ChildSpec, CommandSpec, ExtraDisconnect, HddSpec, KeepRequested, LayoutSpec,
    Mapping, NodeSpec, Preseek, ReadAhead, SeekSpec, SharedBus, Skew, Sparing, WriteBack, ZoneSpec,
};
pub use random::{RandomSpec, TimesSpec};
pub use scheduler::SchedulerSpec;
pub use service::{Completion, FlashTotals, IdleMean, Totals};
pub use spec::{DeviceSpec, PairPricing, Provenance, ProvenanceStatus};
pub use ssd::{Cleaning, Initial, Placement, SsdSpec, Victim};
pub use table::{MeasuredOp, MeasuredSpec, Neighbourhood};
pub use throttle::{BucketLevel, LimitedKind, ThrottleSpec};
