//! Parity declustering: stripes of a few members over many children, so that each pair of children shares as many stripes as
//! any other, and what a lost one held is to be had from all others alike.
//!
//! A *block* is as many rows of chunks as a stripe has members, and as many stripes as there are children. A *base* says on
//! which child each member of the block's first stripe lies; every further stripe lies one child further on. Member `k` of
//! all of them lies in row `k` of the block, so that a row has one of each stripe. Blocks take the bases in turn.
//!
//! The bases are sought from one seed, step by step, until every distance between two children occurs equally often among
//! them: then they are a cyclic difference family, and the stripes a balanced block design. Where none is found in time, the
//! most even bases are taken: distances then differ by a few in all.
//!
//! Invariants: the members of a stripe lie on distinct children, and every row has its parity members together (so parity is
//! spread evenly in every block, not only over all); [`Declustering::held`] is the inverse of [`Declustering::place`].
//!
//! Reference: Holland, Gibson, *Parity declustering for continuous operation in redundant disk arrays*, ASPLOS 1992 (block
//! designs); Merchant, Yu, *Analytic modeling of clustered RAID with mapping based on nearly random permutation*, IEEE Trans.
//! Computers 45, 1996, and OpenZFS's dRAID (permutations, shifted by one from stripe to stripe) for where no design is known.

use raidlab_types::number::{gcd, u32_from};
use raidlab_types::{CounterRng, Seed};

/// The seed of all searches: a layout is a function of its numbers.
const SEED: u64 = 1992;
/// Steps of one search, a millisecond or some of them.
const STEPS: u32 = 20_000;
/// How many times as many bases as balance needs at least are tried, and how many there are at most.
const LONGEST: u64 = 3;
const MOST_BASES: u64 = 256;

/// How stripes lie on more children than they have members.
#[derive(Debug, Clone)]
pub(crate) struct Declustering {
    pub children: u32,
    /// Members of a stripe.
    pub width: u32,
    /// The bases one after another: child by member.
    bases: Box<[u32]>,
}

impl Declustering {
    pub(super) fn new(children: u32, width: u32) -> Declustering {
        let (n, w) = (u64::from(children), u64::from(width));
        let mut best = Search::new(children, width, 1);
        if width < children {
            let least = (n - 1) / gcd(n - 1, w * (w - 1));
            // With an even number, two children may be half of all apart: such a pair is met twice or not at all.
            let met = least * w * (w - 1) / (n - 1);
            let least = if n.is_multiple_of(2) && !met.is_multiple_of(2) { 2 * least } else { least };
            for times in (1..=LONGEST).take_while(|&times| times == 1 || times * least <= MOST_BASES) {
                let search = Search::new(children, width, (times * least).min(MOST_BASES)).run();
                if times == 1 || search.excess() < best.excess() {
                    best = search;
                }
                if best.excess() == 0 {
                    break;
                }
            }
        }
        let bases = best.orders.iter().flat_map(|order| &order[..width as usize]).copied().collect();
        Declustering { children, width, bases }
    }

    /// The child that holds member `position` of stripe `row`, and its row of chunks there.
    #[inline]
    pub(super) fn place(&self, row: u64, position: u32) -> (u32, u64) {
        let (block, shift) = (row / u64::from(self.children), u32_from(row % u64::from(self.children)));
        let child = self.base(block)[position as usize] + shift;
        let child = if child >= self.children { child - self.children } else { child };
        (child, block * u64::from(self.width) + u64::from(position))
    }

    /// The stripe of which the child holds a member in its row `row`, and which.
    pub(super) fn held(&self, child: u32, row: u64) -> (u64, u32) {
        let (block, position) = (row / u64::from(self.width), u32_from(row % u64::from(self.width)));
        let shift = (child + self.children - self.base(block)[position as usize]) % self.children;
        (block * u64::from(self.children) + u64::from(shift), position)
    }

    #[inline]
    fn base(&self, block: u64) -> &[u32] {
        let (width, bases) = (self.width as usize, self.bases.len() as u64 / u64::from(self.width));
        &self.bases[u32_from(block % bases) as usize * width..][..width]
    }
}

/// A search for bases whose distances are even.
struct Search {
    width: usize,
    /// All children in an order for each base, of which the first are in it.
    orders: Vec<Vec<u32>>,
    /// How often each distance occurs.
    distances: Vec<i64>,
    rng: CounterRng,
}

impl Search {
    fn new(children: u32, width: u32, bases: u64) -> Search {
        let seed = Seed::new(SEED).child(u64::from(children)).child(u64::from(width)).child(bases);
        let orders = (0..bases).map(|_| (0..children).collect()).collect();
        let mut search =
            Search { width: width as usize, orders, distances: vec![0; children as usize], rng: seed.draws() };
        for base in 0..search.orders.len() {
            for member in 0..search.width {
                search.count(base, member, 1, 0..member);
            }
        }
        search
    }

    /// Adds the distances of one member of a base to others.
    fn count(&mut self, base: usize, member: usize, times: i64, others: impl Iterator<Item = usize>) {
        let (order, n) = (&self.orders[base], self.distances.len());
        for other in others.filter(|&other| other != member) {
            let apart = (order[member] as usize + n - order[other] as usize) % n;
            self.distances[apart] += times;
            self.distances[n - apart] += times;
        }
    }

    /// How far the distances are from as even as they can be: a sum of squares above its least.
    fn excess(&self) -> i64 {
        let distances = &self.distances[1..];
        let (total, n) = (distances.iter().sum::<i64>(), i64::try_from(distances.len()).unwrap_or(i64::MAX));
        let (low, above) = (total / n, total % n);
        let least = above * (low + 1) * (low + 1) + (n - above) * low * low;
        distances.iter().map(|times| times * times).sum::<i64>() - least
    }

    /// Exchanges members for children that are not in the base, as long as that makes distances no less even; now and then
    /// it may a little.
    fn run(mut self) -> Search {
        let mut excess = self.excess();
        for _ in 0..STEPS {
            if excess == 0 {
                break;
            }
            let (bases, inside) = (self.orders.len() as u64, self.width as u64);
            let outside = self.distances.len() as u64 - inside;
            let [base, member, other] =
                [self.rng.below(bases), self.rng.below(inside), inside + self.rng.below(outside)]
                    .map(|drawn| u32_from(drawn) as usize);
            self.exchange(base, member, other);
            let now = self.excess();
            if now <= excess || (now <= excess + 4 && self.rng.below(50) == 0) {
                excess = now;
            } else {
                self.exchange(base, member, other);
            }
        }
        self
    }

    fn exchange(&mut self, base: usize, member: usize, other: usize) {
        self.count(base, member, -1, 0..self.width);
        self.orders[base].swap(member, other);
        self.count(base, member, 1, 0..self.width);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each pair of children shares a stripe, over all bases.
    fn shared(spread: &Declustering) -> Vec<u64> {
        let n = spread.children as usize;
        let mut times = vec![0; n * n];
        for row in 0..(spread.bases.len() / spread.width as usize * n) as u64 {
            let on: Vec<usize> = (0..spread.width).map(|member| spread.place(row, member).0 as usize).collect();
            for &a in &on {
                on.iter().filter(|&&b| a != b).for_each(|&b| times[a * n + b] += 1);
            }
            let mut distinct = on.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), on.len(), "{spread:?} stripe {row}: {on:?}");
        }
        (0..n * n).filter(|pair| pair / n != pair % n).map(|pair| times[pair]).collect()
    }

    #[test]
    fn each_pair_of_children_shares_as_many_stripes_as_any_other() {
        for children in 2..=24 {
            for width in 2..=children {
                let spread = Declustering::new(children, width);
                let times = shared(&spread);
                assert!(times.iter().all(|&n| n == times[0] && n > 0), "{children} {width}: {times:?}");
            }
        }
    }

    #[test]
    fn where_no_design_is_found_pairs_are_nearly_even() {
        for (children, width) in [(29, 8), (34, 12), (40, 9), (60, 10), (90, 10)] {
            let times = shared(&Declustering::new(children, width));
            let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
            let mean = times.iter().sum::<u64>() as f64 / times.len() as f64;
            assert!((most - least) as f64 <= 0.25 * mean + 2.0, "{children} {width}: {least} to {most}, mean {mean}");
        }
    }

    #[test]
    fn every_row_of_every_child_is_of_one_stripe() {
        for (children, width) in [(4, 3), (5, 5), (6, 3), (7, 3), (21, 5), (31, 10)] {
            let spread = Declustering::new(children, width);
            let rows = 2 * spread.bases.len() as u64;
            let mut seen = vec![false; rows as usize * children as usize];
            for row in 0..rows / u64::from(width) * u64::from(children) {
                for position in 0..width {
                    let (child, at) = spread.place(row, position);
                    assert_eq!(spread.held(child, at), (row, position));
                    let place = at as usize * children as usize + child as usize;
                    assert!(!std::mem::replace(&mut seen[place], true), "{spread:?}: {child} {at}");
                }
            }
            assert!(seen.iter().all(|&seen| seen));
        }
    }
}
