//! One device, one request after another: the replay of a trace measured on a real disk.

use crate::answer::{columns, Column};
use crate::error::{cell_error, from_json, spec_error};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use raidlab_device::{Completion, Device, DeviceSpec, PairPricing};
use raidlab_types::{Duration, Extent, Instant, OpId, OpKind, Operation, Seed};

/// The requests, a column each; sectors are the device's own.
struct Requests<'a> {
    is_write: &'a [u8],
    lba: &'a [u64],
    sectors: &'a [u64],
    gap_ns: &'a [u64],
}

impl Requests<'_> {
    /// What is wrong with them for a device of this capacity, and where.
    fn fault(&self, capacity: u64) -> Option<(usize, String)> {
        let lengths = [self.lba.len(), self.sectors.len(), self.gap_ns.len()];
        if lengths.iter().any(|&length| length != self.is_write.len()) {
            return Some((0, "the columns differ in length".into()));
        }
        (0..self.lba.len()).find_map(|i| {
            let end = self.lba[i].saturating_add(self.sectors[i]);
            let outside = self.sectors[i] == 0 || end > capacity;
            outside.then(|| (i, format!("sectors {} to {end}; accepted: within the device's {capacity}", self.lba[i])))
        })
    }

    fn operation(&self, i: usize) -> Operation {
        Operation {
            id: OpId(i as u64),
            tag: 0,
            leaf: 0,
            kind: if self.is_write[i] != 0 { OpKind::Write } else { OpKind::Read },
            extent: Extent::new(self.lba[i], self.sectors[i]),
            force_unit_access: false,
            pair_with: None,
        }
    }

    /// Each request is given `gap_ns` of the one before after that one is complete.
    fn replay(&self, device: &mut Device) -> Vec<Completion> {
        let mut now = Instant::ZERO;
        let mut done = Vec::with_capacity(self.lba.len());
        for i in 0..self.lba.len() {
            device.handle_op(now, self.operation(i));
            while let Some(at) = device.poll_timeout() {
                done.extend(std::iter::from_fn(|| device.poll_done(at)));
            }
            now = done[i].done + Duration::from_ns(self.gap_ns[i]);
        }
        done
    }
}

/// Replays requests on one device, one at a time: the times of each, a column a part.
#[pyfunction]
pub(crate) fn device_replay<'py>(
    py: Python<'py>,
    device: &str,
    is_write: PyReadonlyArray1<'py, u8>,
    lba: PyReadonlyArray1<'py, u64>,
    sectors: PyReadonlyArray1<'py, u64>,
    gap_ns: PyReadonlyArray1<'py, u64>,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let spec: DeviceSpec = from_json("", device)?;
    let mut device =
        Device::new(&spec, spec.sector_bytes(), PairPricing::Queued, Seed::new(seed)).map_err(spec_error)?;
    let requests = Requests {
        is_write: is_write.as_slice()?,
        lba: lba.as_slice()?,
        sectors: sectors.as_slice()?,
        gap_ns: gap_ns.as_slice()?,
    };
    if let Some(i) = requests.is_write.iter().position(|&write| write != 0 && !spec.takes_writes()) {
        return Err(cell_error(&format!("request[{i}]"), "only reads of this device were measured, and this writes"));
    }
    if let Some((i, message)) = requests.fault(device.capacity_sectors()) {
        return Err(cell_error(&format!("request[{i}]"), message));
    }
    let parts: [Column<Completion>; 5] = [
        ("response_ns", |c| c.done.since(c.arrived).as_ns()),
        ("overhead_ns", |c| c.overhead.as_ns()),
        ("seek_ns", |c| c.seek.as_ns()),
        ("rotation_ns", |c| c.rotation.as_ns()),
        ("transfer_ns", |c| c.transfer.as_ns()),
    ];
    columns(py, &requests.replay(&mut device), parts)
}
