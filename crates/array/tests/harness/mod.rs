//! Members in memory, one byte a sector, and runners that execute plans and whole arrays on them.
//!
//! The reference is a flat byte vector: whatever the tree, reading a volume back must give what was written.
#![allow(dead_code)] // Each test binary uses its own part.

use raidlab_array::plan::{BadExtent, MemberViews, NodeView, Planner, Scratch, Segment};
use raidlab_array::{Layout, MemberState, Plan, Policy, Space, Tree};
use raidlab_types::{gf, CounterRng, Extent, OpKind, RequestError};

/// Members, the compiled tree, and what the volumes should hold.
pub struct Bench {
    pub layout: Layout,
    pub views: MemberViews,
    pub policy: Policy,
    pub members: Vec<Vec<u8>>,
    pub flat: Vec<Vec<u8>>,
    pub scratch: Scratch,
    pub plan: Plan,
    pub bad: Vec<BadExtent>,
}

impl Bench {
    /// All members hold `rows` times `unit` sectors of zeroes (all-zero stripes have all-zero parity).
    pub fn new(tree: &Tree, member_sectors: u64, policy: Policy) -> Bench {
        let layout = Layout::new(tree, &vec![member_sectors; tree.leaves()], 1).expect("tree compiles");
        Bench {
            views: MemberViews::new(&layout),
            policy,
            members: vec![vec![0; member_sectors as usize]; layout.leaves()],
            flat: layout.volumes().iter().map(|v| vec![0; v.capacity_sectors as usize]).collect(),
            scratch: Scratch::default(),
            plan: Plan::default(),
            bad: Vec::new(),
            layout,
        }
    }

    pub fn set_missing(&mut self, leaf: usize, missing: bool) {
        let state = if missing { MemberState::Missing } else { MemberState::Online };
        self.views.set_state(&self.layout, leaf as u32, state);
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
        let node = self.layout.volumes()[volume].node;
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
        let plan = &self.plan;
        let mut scratch = vec![0xA5; plan.scratch_sectors() as usize];
        let mut pending: Vec<u32> = (0..plan.len()).map(|i| plan.pending(i)).collect();
        let mut done = vec![false; plan.len()];
        let mut reads = plan.reads();
        for _ in 0..plan.len() {
            let is_write = |i: usize| matches!(plan.node(i), NodeView::Device(d) if d.kind == OpKind::Write);
            let ready: Vec<usize> =
                (0..plan.len()).filter(|&i| !done[i] && pending[i] == 0 && (reads == 0 || !is_write(i))).collect();
            assert!(!ready.is_empty(), "the plan is stuck:\n{plan}");
            let i = ready[rng.below(ready.len() as u64) as usize];
            match plan.node(i) {
                NodeView::Device(d) => {
                    let state = self.views.leaf(d.leaf).state;
                    assert_eq!(state, MemberState::Online, "an operation on a missing member:\n{plan}");
                    let bad = self.bad.iter().any(|b| b.leaf == d.leaf && b.extent.overlaps(d.extent));
                    assert!(!(bad && d.kind == OpKind::Read), "a read of bad sectors:\n{plan}");
                    reads -= (d.kind == OpKind::Read) as u32;
                    let member = &mut self.members[d.leaf as usize];
                    let mut at = d.extent.lba as usize;
                    for p in d.pieces {
                        let n = p.sectors as usize;
                        let memory = match p.space {
                            Space::User => Some(&mut user[p.offset as usize..p.offset as usize + n]),
                            Space::Scratch => Some(&mut scratch[p.offset as usize..p.offset as usize + n]),
                            Space::Discard => None,
                        };
                        match (memory, d.kind) {
                            (Some(m), OpKind::Read) => m.copy_from_slice(&member[at..at + n]),
                            (Some(m), _) => member[at..at + n].copy_from_slice(m),
                            (None, kind) => assert_eq!(kind, OpKind::Read, "a write from nowhere"),
                        }
                        at += n;
                    }
                    assert_eq!(at as u64, d.extent.end(), "pieces do not fill the extent");
                }
                NodeView::Compute(_, segments) => {
                    segments.iter().for_each(|s| combine(plan, s, user, &mut scratch));
                }
            }
            done[i] = true;
            plan.successors(i).for_each(|s| pending[s as usize] -= 1);
        }
    }

    /// Writes `extent` with fresh content and keeps the flat vector in step.
    pub fn write(&mut self, volume: usize, extent: Extent, rng: &mut CounterRng) -> Result<(), RequestError> {
        let mut user: Vec<u8> = (0..extent.sectors).map(|_| rng.next_u64() as u8).collect();
        self.run(volume, true, extent, &mut user, rng)?;
        self.flat[volume][extent.lba as usize..extent.end() as usize].copy_from_slice(&user);
        Ok(())
    }

    /// Reads `extent` and compares with the flat vector.
    pub fn check(&mut self, volume: usize, extent: Extent, rng: &mut CounterRng) {
        let mut user = vec![0x5A; extent.sectors as usize];
        self.run(volume, false, extent, &mut user, rng).expect("within tolerance");
        let expected = &self.flat[volume][extent.lba as usize..extent.end() as usize];
        assert_eq!(user, expected, "reading {extent} of volume {volume}:\n{}", self.plan);
    }

    /// Reads every volume whole.
    pub fn check_all(&mut self, rng: &mut CounterRng) {
        for v in 0..self.flat.len() {
            self.check(v, Extent::new(0, self.flat[v].len() as u64), rng);
        }
    }

    /// Fills every volume.
    pub fn fill(&mut self, rng: &mut CounterRng) {
        for v in 0..self.flat.len() {
            self.write(v, Extent::new(0, self.flat[v].len() as u64), rng).expect("all members are online");
        }
    }
}

/// Executes a segment of a computation, a byte a sector.
pub fn combine(plan: &Plan, s: &Segment, user: &mut [u8], scratch: &mut [u8]) {
    for i in 0..s.sectors as usize {
        let mut sums = [0u8; 2];
        for input in plan.inputs(s) {
            let at = input.offset as usize + i;
            let byte = match input.space {
                Space::User => user[at],
                Space::Scratch => scratch[at],
                Space::Discard => panic!("an input that was dropped"),
            };
            (0..2).for_each(|k| sums[k] ^= gf::mul(input.coefficients[k], byte));
        }
        for (k, output) in s.outputs.iter().enumerate() {
            match output {
                Some((Space::User, offset)) => user[*offset as usize + i] = sums[k],
                Some((Space::Scratch, offset)) => scratch[*offset as usize + i] = sums[k],
                Some((Space::Discard, _)) => panic!("an output that is dropped"),
                None => {}
            }
        }
    }
}

/// All sets of at most `most` of `n` members, as lists.
pub fn subsets(n: usize, most: usize) -> Vec<Vec<usize>> {
    (0..1u32 << n)
        .filter(|bits| bits.count_ones() as usize <= most)
        .map(|bits| (0..n).filter(|i| bits >> i & 1 == 1).collect())
        .collect()
}
