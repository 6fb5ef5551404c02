//! Every loss that P and Q can repair is repaired by its recipe, for every pair of blocks up to the widest stripe.

use raidlab_parity::recover::{self, recipes, Block, Recipe, RecoverError};
use raidlab_parity::{combine, pq};

const LEN: usize = 3;

/// A stripe of `count` data blocks with its P and Q.
struct Stripe {
    data: Vec<[u8; LEN]>,
    p: [u8; LEN],
    q: [u8; LEN],
}

impl Stripe {
    fn new(count: usize) -> Self {
        let data: Vec<_> = (0..count).map(|i| [i as u8, (i * 7 + 3) as u8, (i * i) as u8 ^ 0x5a]).collect();
        let (mut p, mut q) = ([0; LEN], [0; LEN]);
        pq(&mut p, &mut q, &data.iter().map(|d| &d[..]).collect::<Vec<_>>());
        Stripe { data, p, q }
    }

    fn block(&self, block: Block) -> [u8; LEN] {
        match block {
            Block::Data(i) => self.data[i],
            Block::P => self.p,
            Block::Q => self.q,
        }
    }

    /// Loses the blocks, makes them again from nothing but the others, and compares.
    fn assert_repaired(&self, missing: &[Block]) {
        let present: Vec<usize> = (0..self.data.len()).filter(|&i| !missing.contains(&Block::Data(i))).collect();
        let recipes = recipes(missing, &present).unwrap();
        assert_eq!(recipes.iter().map(|recipe| recipe.makes).collect::<Vec<_>>(), missing);
        for recipe in recipes {
            assert!(!missing.contains(&Block::P) || recipe.p == 0, "{missing:?} uses the lost P");
            assert!(!missing.contains(&Block::Q) || recipe.q == 0, "{missing:?} uses the lost Q");
            assert_eq!(self.make(&recipe, &present), self.block(recipe.makes), "{missing:?}");
        }
    }

    fn make(&self, recipe: &Recipe, present: &[usize]) -> [u8; LEN] {
        let mut inputs: Vec<&[u8]> = present.iter().map(|&i| &self.data[i][..]).collect();
        inputs.extend([&self.p[..], &self.q[..]]);
        // The widest stripe has more blocks than one call takes: leave out what is not needed, as an engine would.
        let (inputs, coefficients): (Vec<_>, Vec<_>) =
            inputs.into_iter().zip(recipe.coefficients()).filter(|(_, c)| *c != 0).unzip();
        let mut out = [0; LEN];
        combine(&mut out, &inputs, &coefficients);
        out
    }
}

fn all_blocks(count: usize) -> Vec<Block> {
    (0..count).map(Block::Data).chain([Block::P, Block::Q]).collect()
}

#[test]
fn every_one_and_every_two_losses() {
    for count in [1, 2, 3, 4, 8, 17] {
        let stripe = Stripe::new(count);
        for &first in &all_blocks(count) {
            stripe.assert_repaired(&[first]);
            for &second in all_blocks(count).iter().filter(|&&second| second != first) {
                stripe.assert_repaired(&[first, second]);
            }
        }
    }
}

#[test]
fn the_widest_stripe() {
    let stripe = Stripe::new(255);
    for (x, y) in [(0, 254), (1, 2), (127, 128), (254, 253), (0, 1)] {
        stripe.assert_repaired(&[Block::Data(x), Block::Data(y)]);
        stripe.assert_repaired(&[Block::Data(x), Block::P]);
        stripe.assert_repaired(&[Block::Q, Block::Data(y)]);
    }
    stripe.assert_repaired(&[Block::P, Block::Q]);
}

#[test]
fn a_data_block_by_q_alone() {
    let stripe = Stripe::new(9);
    for x in 0..9 {
        let present: Vec<usize> = (0..9).filter(|&i| i != x).collect();
        let recipe = recover::recover_one_data_with_q(x, &present);
        assert_eq!(recipe.p, 0);
        assert_eq!(stripe.make(&recipe, &present), stripe.data[x]);
    }
}

#[test]
fn a_single_loss_prefers_p_and_is_plain_xor() {
    let recipe = &recipes(&[Block::Data(1)], &[0, 2, 3]).unwrap()[0];
    assert_eq!(recipe, &Recipe { makes: Block::Data(1), data: vec![1, 1, 1], p: 1, q: 0 });
}

#[test]
fn too_much_is_refused() {
    assert_eq!(recipes(&[Block::Data(0), Block::P, Block::Q], &[1]), Err(RecoverError::TooManyLost(3)));
    assert_eq!(recipes(&[Block::Data(255)], &[1]), Err(RecoverError::IndexTooLarge(255)));
    assert_eq!(recipes(&[], &[0, 1]), Ok(vec![]));
}

#[test]
#[should_panic(expected = "both missing and present")]
fn a_block_cannot_be_missing_and_present() {
    let _ = recipes(&[Block::Data(1)], &[0, 1]);
}

#[test]
#[should_panic(expected = "the same to Q")]
fn a_block_cannot_be_missing_twice() {
    let _ = recipes(&[Block::Data(1), Block::Data(1)], &[0]);
}
