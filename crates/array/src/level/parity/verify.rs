//! Whether the parities of RAID 5 and RAID 6 agree with the data: a scrub.
//!
//! Of every band all is read that can be, and what its sums differ by from zero is worked out: with all members of RAID 6
//! two of them, which say together who is wrong; with one missing, the one in which that one has no part.

use super::{Band, ParityLayout, StripePlanner};
use crate::layout::Node;
use crate::plan::{ComputeKind, PlanResult, Planner, ReadOrigin, Space};
use raidlab_types::{gf, Extent};

impl ParityLayout {
    /// Plans what tells whether `extent` of every child is what the others say.
    pub(super) fn verify_rows(&self, planner: &mut Planner<'_>, node: &Node, extent: Extent) -> PlanResult {
        let compute = planner.compute(ComputeKind::Verify);
        planner.with_stripe_work(|planner, work| {
            for (row, band) in self.bands(extent, planner.scratch.restored_run, true) {
                StripePlanner { planner: &mut *planner, node, row, work: &mut *work }.verify(band, compute);
            }
            planner.hand_on(node, &mut work.reads, false)
        })
    }
}

impl StripePlanner<'_, '_> {
    fn verify(&mut self, band: Band, compute: u32) {
        let (row, members, parities) = (self.row, self.row.layout.members, self.row.layout.parities);
        let mut missing = (0..members).filter(|&position| !self.position_readable(band, position));
        let gone = missing.next();
        // Nothing is left that could disagree.
        if parities == 1 && gone.is_some() || missing.next().is_some() {
            return;
        }
        let without = gone.map(|position| self.in_sums(position));
        let data_is_gone = gone.is_some_and(|position| !self.is_parity(position));
        for position in (0..members).filter(|&position| Some(position) != gone) {
            let [p, q] = self.in_sums(position);
            // The two sums, or that of them in which what is gone has no part.
            let coefficients = without.map_or([p, q], |[a, b]| [gf::mul(b, p) ^ gf::mul(a, q), 0]);
            let Some(source) = self.source(band, position) else { continue };
            let (_, offset) = self.read_to_scratch(band, position, compute);
            // Of RAID 6 without a column of data P stands in for it.
            let follows = self.is_parity(position) && !(data_is_gone && position == row.p);
            let origin = ReadOrigin { child: source.child, extent: source.extent, follows };
            self.planner.verified_input(offset, coefficients, origin);
        }
        let sums = if parities == 2 && gone.is_none() { 2 } else { 1 };
        let mut outputs = [None; 2];
        for output in &mut outputs[..sums] {
            *output = Some((Space::Scratch, self.planner.allocate(band.sectors())));
        }
        self.planner.segment(compute, band.sectors(), outputs);
    }

    fn is_parity(&self, position: u32) -> bool {
        (0..self.row.layout.parities).any(|k| self.row.parity_position(k) == position)
    }

    /// What the child at `position` is multiplied by in the sum that P makes zero, and in that of Q.
    fn in_sums(&self, position: u32) -> [u8; 2] {
        let row = self.row;
        if position == row.p {
            return [1, 0];
        }
        if self.is_parity(position) {
            return [0, 1];
        }
        let is_it = |&column: &u32| row.position(column) == position;
        let column = (0..row.layout.data()).find(is_it).expect("a position that is no parity holds a column of data");
        [1, row.q_coefficient(column)]
    }
}
