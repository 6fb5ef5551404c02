//! Where data and parity of a stripe lie: the six rotations, as Linux md computes them.
//!
//! Reference: `raid5_compute_sector` in Linux's drivers/md/raid5.c for the rules; the committed maps under `tests/golden`
//! are what real md wrote.
//!
//! Invariants: in every stripe the positions of data 0..D, P and Q are distinct and together all members; `column_at` is
//! the inverse of `position_of`. Q's coefficients go by physical order from the member after Q, skipping P: member `k`
//! places after Q (P not counted) has coefficient 2^k.

use super::spread::{Declustering, Held};
use crate::spec::Rotation;
use raidlab_types::number::u32_from;

/// Parameters of a parity node.
#[derive(Debug, Clone)]
pub(crate) struct ParityLayout {
    /// Sectors of a chunk.
    pub chunk: u64,
    /// Members of a stripe.
    pub members: u32,
    pub parities: u32,
    pub rotation: Rotation,
    /// Where members of a stripe lie that has fewer than there are children; else each lies on the child of its number.
    pub spread: Option<Declustering>,
}

/// What a member holds in one stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Data chunk of this number, counted from the start of the stripe.
    Data(u32),
    /// The parity.
    P,
    /// The second parity.
    Q,
}

impl ParityLayout {
    /// Data chunks in a stripe.
    #[inline]
    pub(crate) fn data(&self) -> u32 {
        self.members - self.parities
    }

    /// The child that holds the member at `position` of stripe `row`, and its row of chunks there.
    #[inline]
    pub(super) fn place(&self, row: u64, position: u32) -> (u32, u64) {
        self.spread.as_ref().map_or((position, row), |spread| spread.place(row, position))
    }

    /// What a child has in its row `row`.
    pub(super) fn held(&self, child: u32, row: u64) -> Held {
        self.spread.as_ref().map_or(Held::Member(row, child), |spread| spread.held(child, row))
    }

    /// How many stripes lie together in rows of their own, and in how many rows of every child.
    pub(super) fn block(&self) -> (u64, u64) {
        self.spread.as_ref().map_or((1, 1), Declustering::block)
    }

    /// Sectors of a block on a child, and of the node.
    pub(super) fn block_sectors(&self) -> (u64, u64) {
        let (stripes, rows) = self.block();
        (self.chunk * rows, self.chunk * u64::from(self.data()) * stripes)
    }

    /// Member that holds P in stripe `row`.
    #[inline]
    pub(crate) fn p_position(&self, row: u64) -> u32 {
        let n = self.members;
        match self.rotation {
            Rotation::LeftSymmetric | Rotation::LeftAsymmetric => n - 1 - u32_from(row % u64::from(n)),
            Rotation::RightSymmetric | Rotation::RightAsymmetric => u32_from(row % u64::from(n)),
            Rotation::ParityFirst => 0,
            Rotation::ParityLast => self.data(),
        }
    }

    /// Member that holds Q, given that of P: the next one, around the end.
    #[inline]
    pub(crate) fn q_position(&self, p: u32) -> u32 {
        if p + 1 == self.members {
            0
        } else {
            p + 1
        }
    }

    /// Member that holds data chunk `column`, given that of P.
    #[inline]
    pub(crate) fn position_of(&self, p: u32, column: u32) -> u32 {
        match self.rotation {
            Rotation::LeftSymmetric | Rotation::RightSymmetric => {
                let position = p + self.parities + column;
                if position >= self.members {
                    position - self.members
                } else {
                    position
                }
            }
            _ if self.parities == 2 && p + 1 == self.members => column + 1,
            _ if column >= p => column + self.parities,
            _ => column,
        }
    }

    /// What the member at `position` holds, given the member of P.
    pub(super) fn role_at(&self, p: u32, position: u32) -> Role {
        if position == p {
            return Role::P;
        }
        if self.parities == 2 && position == self.q_position(p) {
            return Role::Q;
        }
        let column = match self.rotation {
            Rotation::LeftSymmetric | Rotation::RightSymmetric => {
                (position + self.members - p - self.parities) % self.members
            }
            _ if self.parities == 2 && p + 1 == self.members => position - 1,
            _ if position > p => position - self.parities,
            _ => position,
        };
        Role::Data(column)
    }

    /// Exponent of 2 that multiplies the data at `position` in Q, given the member of P.
    #[inline]
    pub(crate) fn q_exponent(&self, p: u32, position: u32) -> u32 {
        let n = self.members;
        let q = self.q_position(p);
        // Places after Q, around the end; P lies n - 1 places after Q, behind all data, so it needs no skipping.
        let places = position + n - q;
        (if places >= n { places - n } else { places }) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stripe_is_a_permutation() {
        for rotation in Rotation::ALL {
            for parities in 1..=2 {
                for members in parities + 1..=9 {
                    let l = ParityLayout { chunk: 1, members, parities, rotation, spread: None };
                    for row in 0..3 * members as u64 {
                        check_row(&l, row);
                    }
                }
            }
        }
    }

    fn check_row(l: &ParityLayout, row: u64) {
        let p = l.p_position(row);
        let mut exponents = Vec::new();
        let mut seen = vec![false; l.members as usize];
        seen[p as usize] = true;
        if l.parities == 2 {
            seen[l.q_position(p) as usize] = true;
        }
        for column in 0..l.data() {
            let position = l.position_of(p, column);
            assert!(!std::mem::replace(&mut seen[position as usize], true), "{l:?} row {row}");
            assert_eq!(l.role_at(p, position), Role::Data(column));
            if l.parities == 2 {
                exponents.push(l.q_exponent(p, position));
            }
        }
        assert!(seen.iter().all(|&s| s));
        exponents.sort_unstable();
        assert!(exponents.iter().enumerate().all(|(i, &e)| e == i as u32), "{l:?} row {row}: {exponents:?}");
    }
}
