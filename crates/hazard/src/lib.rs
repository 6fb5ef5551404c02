//! Members in memory and a runner that executes plans on them: one byte a sector, or real sectors for the golden files.
//!
//! The reference is a flat byte vector: whatever the tree, reading a volume back must give what was written.

#![allow(clippy::cast_lossless, clippy::cast_possible_truncation, reason = "numbers here are small")]
#![allow(missing_docs, reason = "what its fields and functions are called says it")]

pub mod fault;
pub mod machine;
pub mod model;
pub mod schedule;
pub mod shrink;
pub mod trees;

use raidlab_array::plan::{BadExtent, DeviceNode, MemberViews, NodeView, Planner, Scratch, Segment};
use raidlab_array::{
    ChunkAccesses, Layout, MapCell, MemberState, MirrorRead, ParityRead, ParityWrite, Piece, Plan, Policy, Space, Tree,
};
use raidlab_types::{gf, CounterRng, Extent, OpKind, RequestError};
use std::ops::Range;

/// Any way of writing and reading.
pub fn random_policy(rng: &mut CounterRng) -> Policy {
    use MirrorRead::{Primary, RoundRobin, RoundRobinSequential, ShortestQueue};
    use ParityWrite::{FewestAccesses, ReadModifyWrite, ReconstructWrite};
    let parity_write = [ReadModifyWrite, ReconstructWrite, FewestAccesses][rng.below(3) as usize];
    let parity_write_tie = [ReadModifyWrite, ReconstructWrite][rng.below(2) as usize];
    let parity_read = [ParityRead::Skip, ParityRead::ReadThrough][rng.below(2) as usize];
    let nearest = MirrorRead::Nearest { queue_override: Some(1) };
    let mirror_read = [Primary, RoundRobin, RoundRobinSequential, ShortestQueue, nearest][rng.below(5) as usize];
    Policy { parity_write, parity_write_tie, parity_read, mirror_read, ..Policy::default() }
}

/// The policy as it is, or in parts as md has it: by rows of one or two bytes, chunks apart, copies chosen as md does.
pub fn as_md_in_parts(rng: &mut CounterRng, policy: Policy) -> Policy {
    let parity_row_bytes = [0, 0, 1, 2][rng.below(4) as usize];
    let chunk_accesses = [ChunkAccesses::Joined, ChunkAccesses::Apart][rng.below(2) as usize];
    let mirror_read = match rng.below(6) {
        kind @ 0..2 => MirrorRead::Md { rotating: kind == 1 },
        _ => policy.mirror_read,
    };
    Policy { parity_row_bytes, chunk_accesses, mirror_read, ..policy }
}

/// Members, the compiled tree, and what the volumes should hold.
pub struct Bench {
    pub layout: Layout,
    /// Bytes in a sector of `members` and `flat`.
    pub sector: usize,
    pub views: MemberViews,
    pub policy: Policy,
    pub members: Vec<Vec<u8>>,
    pub flat: Vec<Vec<u8>>,
    pub scratch: Scratch,
    pub plan: Plan,
    pub bad: Vec<BadExtent>,
}

impl Bench {
    /// Members of `member_sectors` zeroed sectors of one byte (all-zero stripes have all-zero parity).
    pub fn new(tree: &Tree, member_sectors: u64, policy: Policy) -> Bench {
        Bench::with_sector(tree, member_sectors, policy, 1)
    }

    /// The same with sectors of `sector` bytes.
    pub fn with_sector(tree: &Tree, member_sectors: u64, policy: Policy, sector: usize) -> Bench {
        Bench::with_sizes(tree, &vec![member_sectors; tree.leaves()], policy, sector).expect("tree compiles")
    }

    /// Members of any sizes; `None` where one is too small for the tree.
    pub fn with_sizes(tree: &Tree, member_sectors: &[u64], policy: Policy, sector: usize) -> Option<Bench> {
        let layout = match Layout::new(tree, member_sectors, sector as u32) {
            Ok(layout) if layout.user_sectors() > 0 => layout,
            Ok(_) => return None,
            Err(error) if error.message.contains("too few for a chunk") => return None,
            Err(error) => panic!("{error}"),
        };
        let bytes = |sectors: u64| vec![0; sectors as usize * sector];
        Some(Bench {
            sector,
            views: MemberViews::new(&layout),
            policy,
            members: member_sectors.iter().map(|&s| bytes(s)).collect(),
            flat: layout.volumes().iter().map(|v| bytes(v.capacity_sectors)).collect(),
            scratch: Scratch::default(),
            plan: Plan::default(),
            bad: Vec::new(),
            layout,
        })
    }

    /// Whether every volume can still be read.
    pub fn has_all_volumes(&self) -> bool {
        (0..self.flat.len()).all(|volume| !self.views.is_lost(self.layout.volume_node(volume)))
    }

    pub fn set_missing(&mut self, leaf: usize, missing: bool) {
        let state = if missing { MemberState::Missing } else { MemberState::Online };
        self.views.set_state(&self.layout, leaf as u32, state);
    }

    /// Puts a new member in the place of `leaf`, rebuilt up to `valid`: what lies behind is garbage, as is all of the
    /// others that have to be rebuilt with it.
    pub fn set_rebuilding(&mut self, leaf: usize, valid: u64) {
        self.views.set_state(&self.layout, leaf as u32, MemberState::Rebuilding);
        self.views.set_valid(leaf as u32, valid);
        for (l, member) in self.members.iter_mut().enumerate() {
            let view = self.views.leaf(l as u32);
            if view.state == MemberState::Rebuilding {
                let valid = view.valid.saturating_add(self.layout.data_offset(l as u32)) as usize * self.sector;
                member.iter_mut().skip(valid).for_each(|byte| *byte ^= 0x69);
            }
        }
    }

    /// Has a member of a flat tree that is missing stand in a distributed spare, filled with what it holds up to `valid`.
    pub fn set_spared(&mut self, leaf: usize, number: u32, valid: u64) {
        self.views.take_spare(&self.layout, leaf as u32, number);
        self.views.fill_spare(&self.layout, leaf as u32, valid);
        let map = self.layout.map(self.members[leaf].len() as u64);
        for lba in 0..valid.min(self.members[leaf].len() as u64) {
            let (row, byte) = ((lba / map.cell_sectors) as usize, self.members[leaf][lba as usize]);
            let mut at = leaf;
            // Who has the spare chunk may stand in a spare itself.
            while let Some((number, _)) = self.views.spare_of(&self.layout, at as u32) {
                let is_spare = |cells: &Vec<MapCell>| cells[row] == MapCell::Spare { number };
                match map.cells.iter().position(is_spare) {
                    Some(holder) if holder != at && holder != leaf => at = holder,
                    _ => break,
                }
                self.members[at][lba as usize] = byte;
            }
        }
    }

    /// Plans and executes one request on `volume`, choosing among ready nodes with `rng`.
    pub fn run(
        &mut self,
        volume: usize,
        write: bool,
        extent: Extent,
        user: &mut [u8],
        rng: &mut CounterRng,
    ) -> Result<(), RequestError> {
        let node = self.layout.volume_node(volume);
        Planner {
            layout: &self.layout,
            views: &self.views,
            policy: &self.policy,
            bad: &self.bad,
            scratch: &mut self.scratch,
            plan: &mut self.plan,
        }
        .request(node, write, extent, 0)?;
        self.execute(user, rng);
        Ok(())
    }

    fn execute(&mut self, user: &mut [u8], rng: &mut CounterRng) {
        let plan = std::mem::take(&mut self.plan);
        let mut scratch = vec![0xA5; plan.scratch_sectors() as usize * self.sector];
        let mut pending: Vec<u32> = (0..plan.len()).map(|i| plan.pending(i)).collect();
        let is_write = |i: usize| matches!(plan.node(i), NodeView::Device(d) if d.kind == OpKind::Write);
        let (mut ready, mut held): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut reads = plan.barrier_reads();
        let hold = |i: usize, reads: u32| reads > 0 && is_write(i);
        for i in (0..plan.len()).filter(|&i| pending[i] == 0) {
            if hold(i, reads) { &mut held } else { &mut ready }.push(i);
        }
        for _ in 0..plan.len() {
            assert!(!ready.is_empty(), "the plan is stuck:\n{plan}");
            let i = ready.swap_remove(rng.below(ready.len() as u64) as usize);
            match plan.node(i) {
                NodeView::Device(d) => {
                    reads = reads.saturating_sub((d.kind == OpKind::Read) as u32);
                    self.execute_device(&plan, &d, user, &mut scratch);
                }
                NodeView::Compute(_, segments) => {
                    segments.iter().for_each(|s| combine(&plan, s, self.sector, user, &mut scratch));
                }
            }
            for s in plan.successors(i).map(|s| s as usize) {
                pending[s] -= 1;
                if pending[s] == 0 {
                    if hold(s, reads) { &mut held } else { &mut ready }.push(s);
                }
            }
            if reads == 0 {
                ready.append(&mut held);
            }
        }
        self.plan = plan;
    }

    fn execute_device(&mut self, plan: &Plan, d: &DeviceNode<'_>, user: &mut [u8], scratch: &mut [u8]) {
        let view = self.views.leaf(d.leaf);
        let serves = if d.kind == OpKind::Read { view.reads(d.extent) } else { view.writes() };
        assert!(serves, "an operation on a missing member, or where it is not yet rebuilt:\n{plan}");
        let bad = self.bad.iter().any(|b| b.leaf == d.leaf && b.extent.overlaps(d.extent));
        assert!(!(bad && d.kind == OpKind::Read), "a read of bad sectors:\n{plan}");
        let offset = self.layout.data_offset(d.leaf);
        let device = Extent::new(d.extent.lba + offset, d.extent.sectors);
        if d.kind == OpKind::Write {
            // Writing a bad sector mends it.
            self.bad.retain(|b| b.leaf != d.leaf || !d.extent.contains(b.extent));
        }
        move_pieces(&mut self.members[d.leaf as usize], d.kind, device, d.pieces, self.sector, user, scratch);
    }

    /// Writes `extent` with fresh content and keeps the flat vector in step.
    pub fn write(&mut self, volume: usize, extent: Extent, rng: &mut CounterRng) -> Result<(), RequestError> {
        let mut user: Vec<u8> = (0..extent.sectors as usize * self.sector).map(|_| rng.next_u64() as u8).collect();
        self.run(volume, true, extent, &mut user, rng)?;
        let bytes = bytes(extent, self.sector);
        self.flat[volume][bytes].copy_from_slice(&user);
        Ok(())
    }

    /// Reads `extent` and compares with the flat vector.
    pub fn check(&mut self, volume: usize, extent: Extent, rng: &mut CounterRng) {
        let mut user = vec![0x5A; extent.sectors as usize * self.sector];
        self.run(volume, false, extent, &mut user, rng).expect("within tolerance");
        let expected = &self.flat[volume][bytes(extent, self.sector)];
        assert_eq!(user, expected, "reading {extent} of volume {volume}:\n{}", self.plan);
    }

    /// All sectors of a volume.
    pub fn whole(&self, volume: usize) -> Extent {
        Extent::new(0, (self.flat[volume].len() / self.sector) as u64)
    }

    /// Reads every volume whole.
    pub fn check_all(&mut self, rng: &mut CounterRng) {
        for v in 0..self.flat.len() {
            self.check(v, self.whole(v), rng);
        }
    }

    /// Fills every volume.
    pub fn fill(&mut self, rng: &mut CounterRng) {
        for v in 0..self.flat.len() {
            self.write(v, self.whole(v), rng).expect("all members are online");
        }
    }
}

/// The bytes that `extent` is.
pub fn bytes(extent: Extent, sector: usize) -> Range<usize> {
    extent.lba as usize * sector..extent.end() as usize * sector
}

/// Executes a device operation on `extent` of `member`.
pub fn move_pieces(
    member: &mut [u8],
    kind: OpKind,
    extent: Extent,
    pieces: &[Piece],
    sector: usize,
    user: &mut [u8],
    scratch: &mut [u8],
) {
    let mut at = extent.lba;
    for p in pieces {
        let device = &mut member[bytes(Extent::new(at, p.sectors as u64), sector)];
        let memory = bytes(Extent::new(p.offset as u64, p.sectors as u64), sector);
        match (p.space, kind) {
            (Space::User, OpKind::Read) => user[memory].copy_from_slice(device),
            (Space::Scratch, OpKind::Read) => scratch[memory].copy_from_slice(device),
            (Space::Discard, OpKind::Read) => {}
            (Space::User, _) => device.copy_from_slice(&user[memory]),
            (Space::Scratch, _) => device.copy_from_slice(&scratch[memory]),
            (Space::Discard, _) => panic!("a write from nowhere"),
        }
        at += p.sectors as u64;
    }
    assert_eq!(at, extent.end(), "pieces do not fill the extent");
}

/// Executes a segment of a computation.
pub fn combine(plan: &Plan, s: &Segment, sector: usize, user: &mut [u8], scratch: &mut [u8]) {
    let run = |offset: u32| bytes(Extent::new(offset as u64, s.sectors as u64), sector);
    let mut sums = [0, 1].map(|k| vec![0u8; if s.outputs[k].is_some() { run(0).len() } else { 0 }]);
    for input in plan.inputs(s) {
        let block = match input.space {
            Space::User => &user[run(input.offset)],
            Space::Scratch => &scratch[run(input.offset)],
            Space::Discard => panic!("an input that was dropped"),
        };
        for (sum, c) in sums.iter_mut().zip(input.coefficients) {
            add_product(sum, c, block);
        }
    }
    for (output, sum) in s.outputs.iter().zip(&sums) {
        match output {
            Some((Space::User, offset)) => user[run(*offset)].copy_from_slice(sum),
            Some((Space::Scratch, offset)) => scratch[run(*offset)].copy_from_slice(sum),
            Some((Space::Discard, _)) => panic!("an output that is dropped"),
            None => {}
        }
    }
}

/// `sum += c * block` over GF(2^8).
fn add_product(sum: &mut [u8], c: u8, block: &[u8]) {
    match c {
        0 => {}
        1 => sum.iter_mut().zip(block).for_each(|(s, b)| *s ^= b),
        c => sum.iter_mut().zip(block).for_each(|(s, b)| *s ^= gf::mul(c, *b)),
    }
}

/// All sets of at most `most` of `n` members, as lists.
pub fn subsets(n: usize, most: usize) -> Vec<Vec<usize>> {
    (0..1u32 << n)
        .filter(|bits| bits.count_ones() as usize <= most)
        .map(|bits| (0..n).filter(|i| bits >> i & 1 == 1).collect())
        .collect()
}
