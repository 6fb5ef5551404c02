//! Rotating disks.
//!
//! - `spec` (with `zone_spec`, `layout_spec`, `buffer_spec`): the parameters; `compile`: those of a disk with everything, checked
//! - `seek`: from a distance to a time
//! - `geometry`, `mechanism`: a plain disk (equal tracks in zones, no buffer), priced by arithmetic alone: the hot path
//! - `layout`: where sectors lie, however it is described
//! - `drive`: a disk with everything
//! - `shared_bus`: where it is not the disk's alone
//! - `mean`: expected times, worked out
//! - `reciprocal`: exact division by constants

mod buffer_spec;
mod compile;
mod drive;
mod geometry;
mod layout;
mod layout_spec;
mod mean;
mod mechanism;
mod reciprocal;
mod seek;
mod shared_bus;
mod spec;
mod zone_spec;

pub use buffer_spec::{
    BufferSpec, BusSpec, CommandSpec, ExtraDisconnect, KeepRequested, Preseek, ReadAhead, WriteBack,
};
pub(crate) use drive::Drive;
pub use layout_spec::{BandSpec, ChildSpec, LayoutSpec, NodeSpec};
pub(crate) use mechanism::Hdd;
pub use seek::SeekSpec;
pub use shared_bus::SharedBus;
pub use spec::HddSpec;
pub use zone_spec::{Mapping, Skew, Sparing, ZoneSpec};
