//! Rotating disks: zones, heads and skews, a seek curve, continuous rotation; no cache.
//!
//! - `spec`: the parameters, checked and compiled
//! - `geometry`: from an address to a cylinder, head, sector and angle
//! - `seek`: from a distance to a time
//! - `mechanism`: the service of one operation
//! - `mean`: expected times, worked out
//! - `reciprocal`: exact division by constants

mod geometry;
mod mean;
mod mechanism;
mod reciprocal;
mod seek;
mod spec;

pub(crate) use mechanism::Hdd;
pub use seek::SeekSpec;
pub use spec::{HddSpec, Skew, ZoneSpec};
