//! Questions about trees, devices, layouts and plans that need no run.

use crate::error::{cell_error, from_json};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use raidlab_array::plan::{MemberViews, NodeView, Planner, Scratch};
use raidlab_array::{Layout, MapCell, MemberState, Piece, Plan, Policy, Space, Tree};
use raidlab_device::{Device, DeviceSpec, PairPricing};
use raidlab_types::number::f64_from;
use raidlab_types::{Extent, OpKind, Seed, SpecError, Volume};

/// A tree from its text, as JSON text.
#[pyfunction]
pub(crate) fn parse_tree(py: Python<'_>, text: &str) -> PyResult<String> {
    let tree = Tree::parse(text).map_err(|e| cell_error(py, &e.key, &e.message))?;
    serde_json::to_string(&tree).map_err(|e| cell_error(py, "tree", &e.to_string()))
}

fn compile(py: Python<'_>, tree: &Tree, member_bytes: u64, sector_bytes: u32) -> PyResult<Layout> {
    if sector_bytes == 0 {
        return Err(cell_error(py, "sector_bytes", "0; accepted: the bytes of a sector, such as 512 or 4096"));
    }
    let sizes = vec![member_bytes / u64::from(sector_bytes); tree.leaves()];
    Layout::new(tree, &sizes, sector_bytes).map_err(|e| cell_error(py, &e.key, &e.message))
}

/// Who uses a block device, as the end of the sentence "X is ..."; none for a free one.
#[pyfunction]
pub(crate) fn device_user(path: &str) -> Option<String> {
    raidlab_live::device_user(std::path::Path::new(path))
}

/// What an array over members of a size offers.
#[pyfunction]
pub(crate) fn tree_facts<'py>(
    py: Python<'py>,
    tree: &str,
    member_bytes: u64,
    sector_bytes: u32,
) -> PyResult<Bound<'py, PyDict>> {
    let tree: Tree = from_json(py, "tree", tree)?;
    let layout = compile(py, &tree, member_bytes, sector_bytes)?;
    let bytes = |sectors: u64| sectors * u64::from(sector_bytes);
    let out = PyDict::new(py);
    let volumes: Vec<u64> = layout.volumes().iter().map(|v| bytes(v.capacity_sectors)).collect();
    let raw = f64_from(member_bytes) * f64_from(layout.leaves());
    out.set_item("leaves", layout.leaves())?;
    out.set_item("volumes", volumes.len())?;
    out.set_item("volume_bytes", volumes)?;
    out.set_item("user_bytes", bytes(layout.user_sectors()))?;
    out.set_item("tolerance", tree.tolerance())?;
    out.set_item("storage_efficiency", f64_from(bytes(layout.user_sectors())) / raw)?;
    out.set_item("full_stripe_bytes", bytes(layout.full_stripe_sectors(0)))?;
    out.set_item("level", tree.level())?;
    Ok(out)
}

/// What a device model says of itself: capacity, sector, idle means of a 4 KiB read.
#[pyfunction]
pub(crate) fn device_facts<'py>(py: Python<'py>, device: &str) -> PyResult<Bound<'py, PyDict>> {
    let spec: DeviceSpec = from_json(py, "", device)?;
    let sector_bytes = spec.sector_bytes();
    let model = Device::new(&spec, sector_bytes, PairPricing::Queued, Seed::new(0))
        .map_err(|e| cell_error(py, &e.key, &e.message))?;
    let idle = spec.idle_mean(OpKind::Read, 4096).map_err(|e| cell_error(py, &e.key, &e.message))?;
    let out = PyDict::new(py);
    out.set_item("name", spec.name())?;
    out.set_item("sector_bytes", sector_bytes)?;
    out.set_item("capacity_bytes", model.capacity_sectors() * u64::from(sector_bytes))?;
    out.set_item("idle_overhead_ns", idle.overhead.as_ns())?;
    out.set_item("idle_seek_ns", idle.seek.as_ns())?;
    out.set_item("idle_rotation_ns", idle.rotation.as_ns())?;
    out.set_item("idle_transfer_ns", idle.transfer.as_ns())?;
    if let DeviceSpec::Ssd(ssd) = &spec {
        let wrong = |e: SpecError| cell_error(py, &e.key, &e.message);
        let flash = PyDict::new(py);
        flash.set_item("spare_factor", ssd.spare_factor().map_err(wrong)?)?;
        flash.set_item("units_per_block", ssd.units_per_block().map_err(wrong)?)?;
        flash.set_item("mapping_bytes", ssd.mapping_bytes)?;
        out.set_item("flash", flash)?;
    }
    Ok(out)
}

/// What the first `rows` cells of every member hold: a list a member of `{kind, volume, lba | node, row}`.
#[pyfunction]
pub(crate) fn layout_map<'py>(py: Python<'py>, tree: &str, rows: u64) -> PyResult<Bound<'py, PyDict>> {
    let tree: Tree = from_json(py, "tree", tree)?;
    // Chunks of one sector each would lose their proportions in nested trees: keep bytes as sectors, a few rows long.
    let bytes = rows.saturating_mul(1 << 40).max(1 << 40);
    let layout = Layout::new(&tree, &vec![bytes; tree.leaves()], 1).map_err(|e| cell_error(py, &e.key, &e.message))?;
    let map = layout.map(rows);
    let cell = |c: &MapCell| -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        let parity = |out: &Bound<'py, PyDict>, kind: &str, node: u32, row: u64| {
            out.set_item("kind", kind)?;
            out.set_item("node", node)?;
            out.set_item("row", row)
        };
        match c {
            MapCell::Data { volume, lba } => {
                out.set_item("kind", "data")?;
                out.set_item("volume", volume)?;
                out.set_item("chunk", lba / map.cell_sectors)?;
            }
            MapCell::P { node, row } => parity(&out, "p", *node, *row)?,
            MapCell::Q { node, row } => parity(&out, "q", *node, *row)?,
            MapCell::Unused => out.set_item("kind", "unused")?,
        }
        Ok(out)
    };
    let out = PyDict::new(py);
    out.set_item("cell_bytes", map.cell_sectors)?;
    let members: Vec<_> = map
        .cells
        .iter()
        .map(|column| PyList::new(py, column.iter().map(cell).collect::<PyResult<Vec<_>>>()?))
        .collect::<PyResult<_>>()?;
    out.set_item("members", PyList::new(py, members)?)?;
    Ok(out)
}

fn piece<'py>(py: Python<'py>, p: &Piece, sector: u64) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let space = match p.space {
        Space::User => "user",
        Space::Scratch => "scratch",
        Space::Discard => "discard",
    };
    out.set_item("space", space)?;
    out.set_item("offset_bytes", u64::from(p.offset) * sector)?;
    out.set_item("bytes", u64::from(p.sectors) * sector)?;
    Ok(out)
}

/// The plan of one request: `text`, and `nodes` as dictionaries.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // The arguments of a command line, one to one.
pub(crate) fn plan_io<'py>(
    py: Python<'py>,
    tree: &str,
    sector_bytes: u32,
    member_bytes: u64,
    policy: &str,
    kind: &str,
    offset_bytes: u64,
    length_bytes: u64,
    missing: Vec<u32>,
    volume: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let tree: Tree = from_json(py, "tree", tree)?;
    let policy: Policy = from_json(py, "policy", policy)?;
    let layout = compile(py, &tree, member_bytes, sector_bytes)?;
    let sector = u64::from(sector_bytes);
    for (key, value) in [("offset_bytes", offset_bytes), ("length_bytes", length_bytes)] {
        if value % sector != 0 {
            let message = format!("{value} is no multiple of the sector of {sector} bytes");
            return Err(cell_error(py, key, &message));
        }
    }
    let Some(&Volume { capacity_sectors }) = layout.volumes().get(volume) else {
        let message = format!("volume {volume}; accepted: 0 to {}", layout.volumes().len() - 1);
        return Err(cell_error(py, "volume", &message));
    };
    let extent = Extent::new(offset_bytes / sector, length_bytes / sector);
    if extent.sectors == 0 || extent.end() > capacity_sectors || extent.sectors > u64::from(u32::MAX) {
        let message = format!(
            "{length_bytes} bytes at {offset_bytes}; accepted: within the volume of {} bytes",
            capacity_sectors * sector
        );
        return Err(cell_error(py, "length_bytes", &message));
    }
    let mut views = MemberViews::new(&layout);
    for leaf in missing {
        if leaf as usize >= layout.leaves() {
            let message = format!("member {leaf}; accepted: 0 to {}", layout.leaves() - 1);
            return Err(cell_error(py, "missing", &message));
        }
        views.set_state(&layout, leaf, MemberState::Missing);
    }
    let (mut scratch, mut plan) = (Scratch::default(), Plan::default());
    let planned =
        Planner { layout: &layout, views: &views, policy: &policy, bad: &[], scratch: &mut scratch, plan: &mut plan }
            .request(layout.volume_node(volume), kind == "write", extent, 0);
    planned.map_err(|e| cell_error(py, "missing", &e.to_string()))?;
    plan_dict(py, &plan, sector)
}

fn plan_dict<'py>(py: Python<'py>, plan: &Plan, sector: u64) -> PyResult<Bound<'py, PyDict>> {
    let nodes = PyList::empty(py);
    for i in 0..plan.len() {
        let node = PyDict::new(py);
        match plan.node(i) {
            NodeView::Device(d) => {
                node.set_item("op", if d.kind == OpKind::Write { "write" } else { "read" })?;
                node.set_item("member", d.leaf)?;
                node.set_item("offset_bytes", d.extent.lba * sector)?;
                node.set_item("bytes", d.extent.sectors * sector)?;
                let pieces: Vec<_> = d.pieces.iter().map(|p| piece(py, p, sector)).collect::<PyResult<_>>()?;
                node.set_item("pieces", PyList::new(py, pieces)?)?;
                node.set_item("pair_with", d.pair_with)?;
            }
            NodeView::Compute(kind, segments) => {
                let name = match kind {
                    raidlab_array::ComputeKind::Xor => "xor",
                    raidlab_array::ComputeKind::Pq => "pq",
                    raidlab_array::ComputeKind::Recover => "recover",
                };
                let (read, written) = plan.compute_sectors(segments);
                node.set_item("op", name)?;
                node.set_item("read_bytes", read * sector)?;
                node.set_item("write_bytes", written * sector)?;
            }
        }
        let before: Vec<usize> = (0..plan.len()).filter(|&j| plan.successors(j).any(|s| s as usize == i)).collect();
        node.set_item("after", before)?;
        nodes.append(node)?;
    }
    let out = PyDict::new(py);
    out.set_item("nodes", nodes)?;
    out.set_item("reads", plan.reads())?;
    out.set_item("writes", plan.writes())?;
    out.set_item("scratch_bytes", u64::from(plan.scratch_sectors()) * sector)?;
    out.set_item("text", plan.to_string())?;
    Ok(out)
}
