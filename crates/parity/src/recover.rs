//! With which coefficients lost blocks are made again.
//!
//! Purpose: pure arithmetic, no block bytes: which present blocks times which coefficients sum to a lost one. The
//! answer is a [`Recipe`] for each lost block, run by [`combine`](crate::combine) or, two at once over the same inputs,
//! by [`combine2`](crate::combine2). [`recipes`] answers for any loss that P and Q can repair; the named functions are its cases.
//!
//! Invariants:
//! - Data blocks are named by their index in the stripe, the `i` of g^i in Q, whatever member holds them.
//! - `present` lists the data blocks that are read; a block in neither list counts as zero (as in a short stripe).
//!   A block that is both missing and present is an error of the caller, and panics.
//! - A coefficient of 0 means that the block is not needed and need not be read.
//!
//! With A = P + sum of the present d_i and B = Q + sum of the present g^i d_i, the sums that the lost blocks must make:
//! one lost, d_x = A = B / g^x; two lost, d_x + d_y = A and g^x d_x + g^y d_y = B, so d_x = (g^y A + B) / (g^x + g^y).
//!
//! Reference: H. P. Anvin, "The mathematics of RAID-6", sections 3 and 4.

use crate::gf;

/// A block of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Block {
    /// Data block with this index.
    Data(usize),
    /// The XOR parity.
    P,
    /// The parity over powers of g.
    Q,
}

/// How one lost block is made: the sum of these coefficients times the present blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// The block that it makes.
    pub makes: Block,
    /// A coefficient for each present data block, in the order they were given.
    pub data: Vec<u8>,
    /// The coefficient of P; 0 where P is not needed.
    pub p: u8,
    /// The coefficient of Q; 0 where Q is not needed.
    pub q: u8,
}

impl Recipe {
    /// All coefficients for the inputs "present data, then P, then Q".
    pub fn coefficients(&self) -> Vec<u8> {
        let mut list = self.data.clone();
        list.extend([self.p, self.q]);
        list
    }
}

/// Why lost blocks cannot be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoverError {
    /// P and Q repair two losses at most.
    #[error("{0} blocks of a stripe are lost, P and Q can make at most 2 again")]
    TooManyLost(usize),
    /// g^i repeats after 255 blocks, so two blocks would be indistinguishable.
    #[error("data block {0}: Q covers the indices 0 to 254")]
    IndexTooLarge(usize),
}

/// Recipes for all `missing` blocks of a stripe with P and Q, in the order of `missing`.
///
/// P is preferred to Q where either would do. For a stripe that has no Q, use [`recover_one_data_with_p`].
///
/// # Panics
/// If a block is missing twice, or both missing and present.
pub fn recipes(missing: &[Block], present: &[usize]) -> Result<Vec<Recipe>, RecoverError> {
    let indices = missing.iter().filter_map(|block| if let Block::Data(i) = block { Some(i) } else { None });
    if let Some(&index) = indices.chain(present).find(|&&i| i >= gf::ORDER) {
        return Err(RecoverError::IndexTooLarge(index));
    }
    let one = |recipe| Ok(vec![recipe]);
    let two = |(first, second): (Recipe, Recipe)| Ok(vec![first, second]);
    let swapped = |(first, second): (Recipe, Recipe)| Ok(vec![second, first]);
    match *missing {
        [] => Ok(Vec::new()),
        [Block::Data(x)] => one(recover_one_data_with_p(x, present)),
        [Block::P] => one(compute_p(present)),
        [Block::Q] => one(compute_q(present)),
        [Block::Data(x), Block::Data(y)] => two(recover_two_data_with_pq(x, y, present)),
        [Block::Data(x), Block::P] => two(recover_data_and_p(x, present)),
        [Block::P, Block::Data(x)] => swapped(recover_data_and_p(x, present)),
        [Block::Data(x), Block::Q] => two(recover_data_and_q(x, present)),
        [Block::Q, Block::Data(x)] => swapped(recover_data_and_q(x, present)),
        [Block::P, Block::Q] => two((compute_p(present), compute_q(present))),
        [Block::Q, Block::P] => two((compute_q(present), compute_p(present))),
        [Block::P, Block::P] | [Block::Q, Block::Q] => panic!("a block is missing twice"),
        _ => Err(RecoverError::TooManyLost(missing.len())),
    }
}

/// P from the data: every coefficient 1.
pub fn compute_p(present: &[usize]) -> Recipe {
    recipe(Block::P, present, |_| 1, 0, 0)
}

/// Q from the data: the powers of g.
pub fn compute_q(present: &[usize]) -> Recipe {
    recipe(Block::Q, present, gf::exp, 0, 0)
}

/// One lost data block from the others and P, as in RAID 5: every coefficient 1.
///
/// # Panics
/// If `missing` is also present.
pub fn recover_one_data_with_p(missing: usize, present: &[usize]) -> Recipe {
    check_absent(&[missing], present);
    recipe(Block::Data(missing), present, |_| 1, 1, 0)
}

/// One lost data block from the others and Q: d_x = g^-x B.
///
/// # Panics
/// If `missing` is also present.
pub fn recover_one_data_with_q(missing: usize, present: &[usize]) -> Recipe {
    check_absent(&[missing], present);
    let inverse = gf::inv(gf::exp(missing));
    recipe(Block::Data(missing), present, |i| gf::mul(inverse, gf::exp(i)), 0, inverse)
}

/// Two lost data blocks from the others, P and Q; in the order asked.
///
/// # Panics
/// If the two are the same (modulo 255), or one is also present.
pub fn recover_two_data_with_pq(x: usize, y: usize, present: &[usize]) -> (Recipe, Recipe) {
    check_absent(&[x, y], present);
    let (gx, gy) = (gf::exp(x), gf::exp(y));
    assert!(gx != gy, "data blocks {x} and {y} are the same to Q");
    let scale = gf::inv(gx ^ gy);
    // d_x = (g^y A + B) / (g^x + g^y), and the same with x and y exchanged: P enters by A, Q by B, d_i by both.
    let solve = |makes, other: u8| {
        recipe(Block::Data(makes), present, |i| gf::mul(scale, other ^ gf::exp(i)), gf::mul(scale, other), scale)
    };
    (solve(x, gy), solve(y, gx))
}

/// A lost data block and lost P from the other data and Q; P is written in terms of what is present.
///
/// # Panics
/// If `missing` is also present.
pub fn recover_data_and_p(missing: usize, present: &[usize]) -> (Recipe, Recipe) {
    let data = recover_one_data_with_q(missing, present);
    let p = Recipe { makes: Block::P, data: data.data.iter().map(|c| c ^ 1).collect(), ..data };
    (data, p)
}

/// A lost data block and lost Q from the other data and P; Q is written in terms of what is present.
///
/// # Panics
/// If `missing` is also present.
pub fn recover_data_and_q(missing: usize, present: &[usize]) -> (Recipe, Recipe) {
    let gx = gf::exp(missing);
    let q = recipe(Block::Q, present, |i| gf::exp(i) ^ gx, gx, 0);
    (recover_one_data_with_p(missing, present), q)
}

fn recipe(makes: Block, present: &[usize], coefficient: impl Fn(usize) -> u8, p: u8, q: u8) -> Recipe {
    Recipe { makes, data: present.iter().map(|&i| coefficient(i)).collect(), p, q }
}

fn check_absent(missing: &[usize], present: &[usize]) {
    for index in missing {
        assert!(!present.contains(index), "data block {index} is both missing and present");
    }
}

/// Makes data block `missing` from the other data blocks (index and bytes of each) and P.
///
/// # Panics
/// If `missing` is also present, or lengths differ.
pub fn recover_data_with_p(out: &mut [u8], missing: usize, data: &[(usize, &[u8])], p: &[u8]) {
    let (indices, mut inputs) = split(data);
    let recipe = recover_one_data_with_p(missing, &indices);
    inputs.push(p);
    crate::combine(out, &inputs, &[&recipe.data[..], &[recipe.p]].concat());
}

/// Makes data block `missing` from the other data blocks (index and bytes of each) and Q.
///
/// # Panics
/// If `missing` is also present, or lengths differ.
pub fn recover_data_with_q(out: &mut [u8], missing: usize, data: &[(usize, &[u8])], q: &[u8]) {
    let (indices, mut inputs) = split(data);
    let recipe = recover_one_data_with_q(missing, &indices);
    inputs.push(q);
    crate::combine(out, &inputs, &[&recipe.data[..], &[recipe.q]].concat());
}

/// Makes two data blocks, `(index, output)` each, from the other data blocks (index and bytes of each), P and Q.
///
/// # Panics
/// If the two are the same, one is also present, or lengths differ.
pub fn recover_two_data(
    first: (usize, &mut [u8]),
    second: (usize, &mut [u8]),
    data: &[(usize, &[u8])],
    p: &[u8],
    q: &[u8],
) {
    let (indices, mut inputs) = split(data);
    let (x, y) = recover_two_data_with_pq(first.0, second.0, &indices);
    inputs.extend([p, q]);
    crate::combine2(first.1, second.1, &inputs, &x.coefficients(), &y.coefficients());
}

fn split<'a>(data: &[(usize, &'a [u8])]) -> (Vec<usize>, Vec<&'a [u8]>) {
    data.iter().copied().unzip()
}
