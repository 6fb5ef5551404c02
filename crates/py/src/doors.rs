//! Questions about trees, devices, layouts and plans that need no run.

use crate::answer::dict;
use crate::error::{cell_error, from_json, spec_error};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use raidlab_array::plan::{MemberViews, NodeView, Planner, Scratch};
use raidlab_array::{ComputeKind, Layout, MapCell, MemberState, Piece, Plan, Policy, Space, Tree};
use raidlab_types::{Extent, OpKind, Volume};
use serde_json::{json, Value};

/// A tree from its text, as JSON text.
#[pyfunction]
pub(crate) fn parse_tree(text: &str) -> PyResult<String> {
    Ok(json!(Tree::parse(text).map_err(spec_error)?).to_string())
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
    let tree: Tree = from_json("tree", tree)?;
    dict(py, &raidlab_cell::tree_facts(&tree, member_bytes, sector_bytes).map_err(spec_error)?)
}

/// What a device model says of itself: capacity, sector, idle means of a 4 KiB read.
#[pyfunction]
pub(crate) fn device_facts<'py>(py: Python<'py>, device: &str) -> PyResult<Bound<'py, PyDict>> {
    let spec = raidlab_cell::device_from_json(device).map_err(spec_error)?;
    dict(py, &raidlab_cell::device_facts(&spec).map_err(spec_error)?)
}

/// What the first `rows` cells of every member hold: a list a member of `{kind, volume, chunk | node, row}`.
#[pyfunction]
pub(crate) fn layout_map<'py>(py: Python<'py>, tree: &str, rows: u64) -> PyResult<Bound<'py, PyDict>> {
    let tree: Tree = from_json("tree", tree)?;
    // Chunks of one sector each would lose their proportions in nested trees: keep bytes as sectors, a few rows long.
    let bytes = rows.saturating_mul(1 << 40).max(1 << 40);
    let layout = Layout::new(&tree, &vec![bytes; tree.leaves()], 1).map_err(spec_error)?;
    let map = layout.map(rows);
    let cell = |cell: &MapCell| match cell {
        MapCell::Data { volume, lba } => json!({"kind": "data", "volume": volume, "chunk": lba / map.cell_sectors}),
        MapCell::P { node, row } => json!({"kind": "p", "node": node, "row": row}),
        MapCell::Q { node, row } => json!({"kind": "q", "node": node, "row": row}),
        MapCell::Spare { number } => json!({"kind": "spare", "number": number}),
        MapCell::Unused => json!({"kind": "unused"}),
    };
    let members: Vec<Vec<Value>> = map.cells.iter().map(|column| column.iter().map(cell).collect()).collect();
    dict(py, &json!({"cell_bytes": map.cell_sectors, "members": members}))
}

fn piece(piece: &Piece, sector: u64) -> Value {
    let space = match piece.space {
        Space::User => "user",
        Space::Scratch => "scratch",
        Space::Discard => "discard",
    };
    json!({
        "space": space,
        "offset_bytes": u64::from(piece.offset) * sector,
        "bytes": u64::from(piece.sectors) * sector,
    })
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
    let tree: Tree = from_json("tree", tree)?;
    let policy: Policy = from_json("policy", policy)?;
    let layout = raidlab_cell::layout_of(&tree, member_bytes, sector_bytes).map_err(spec_error)?;
    let sector = u64::from(sector_bytes);
    for (key, value) in [("offset_bytes", offset_bytes), ("length_bytes", length_bytes)] {
        if value % sector != 0 {
            let message = format!("{value} is no multiple of the sector of {sector} bytes");
            return Err(cell_error(key, message));
        }
    }
    let Some(&Volume { capacity_sectors }) = layout.volumes().get(volume) else {
        let message = format!("volume {volume}; accepted: 0 to {}", layout.volumes().len() - 1);
        return Err(cell_error("volume", message));
    };
    let extent = Extent::new(offset_bytes / sector, length_bytes / sector);
    if extent.sectors == 0 || extent.end() > capacity_sectors || extent.sectors > u64::from(u32::MAX) {
        let message = format!(
            "{length_bytes} bytes at {offset_bytes}; accepted: within the volume of {} bytes",
            capacity_sectors * sector
        );
        return Err(cell_error("length_bytes", message));
    }
    let mut views = MemberViews::new(&layout);
    for leaf in missing {
        if leaf as usize >= layout.leaves() {
            let message = format!("member {leaf}; accepted: 0 to {}", layout.leaves() - 1);
            return Err(cell_error("missing", message));
        }
        views.set_state(&layout, leaf, MemberState::Missing);
    }
    let (mut scratch, mut plan) = (Scratch::default(), Plan::default());
    let planned =
        Planner { layout: &layout, views: &views, policy: &policy, bad: &[], scratch: &mut scratch, plan: &mut plan }
            .request(layout.volume_node(volume), kind == "write", extent, 0);
    planned.map_err(|e| cell_error("missing", e.to_string()))?;
    dict(py, &plan_value(&plan, sector))
}

fn plan_value(plan: &Plan, sector: u64) -> Value {
    let node = |i: usize| {
        let mut node = match plan.node(i) {
            NodeView::Device(access) => json!({
                "op": if access.kind == OpKind::Write { "write" } else { "read" },
                "member": access.leaf,
                "offset_bytes": access.extent.lba * sector,
                "bytes": access.extent.sectors * sector,
                "pieces": access.pieces.iter().map(|p| piece(p, sector)).collect::<Vec<_>>(),
                "pair_with": access.pair_with,
            }),
            NodeView::Compute(kind, segments) => {
                let name = match kind {
                    ComputeKind::Xor => "xor",
                    ComputeKind::Pq => "pq",
                    ComputeKind::Recover => "recover",
                    ComputeKind::Verify => "verify",
                };
                let (read, written) = plan.compute_sectors(segments);
                json!({"op": name, "read_bytes": read * sector, "write_bytes": written * sector})
            }
        };
        let after = (0..plan.len()).filter(|&j| plan.successors(j).any(|s| s as usize == i));
        node["after"] = after.collect();
        node
    };
    json!({
        "nodes": (0..plan.len()).map(node).collect::<Vec<_>>(),
        "reads": plan.reads(),
        "writes": plan.writes(),
        "scratch_bytes": u64::from(plan.scratch_sectors()) * sector,
        "text": plan.to_string(),
    })
}
