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
//! With distributed spare space a base is an order of all children, and a block as many rows as there are, each shifted by
//! one: a row has the stripes of the base's first children side by side, and a spare chunk on each of the last. So what is
//! moved into spare space stays in its row, and no stripe has a member on a child that has a spare chunk of its row.
//!
//! Invariants: the members of a stripe lie on distinct children, and parity is spread evenly in every block, not only over
//! all; [`Declustering::held`] is the inverse of [`Declustering::place`].
//!
//! Reference: Holland, Gibson, *Parity declustering for continuous operation in redundant disk arrays*, ASPLOS 1992 (block
//! designs); Merchant, Yu, *Analytic modeling of clustered RAID with mapping based on nearly random permutation*, IEEE Trans.
//! Computers 45, 1996, and OpenZFS's dRAID (permutations, shifted by one from stripe to stripe) for where no design is known.

use raidlab_types::number::{gcd, u32_from};
use raidlab_types::{CounterRng, Seed};
use std::ops::Range;

/// The seed of all searches: a layout is a function of its numbers.
const SEED: u64 = 1992;
/// Steps of one search, a millisecond or some of them.
const STEPS: u32 = 20_000;
/// How many times as many bases as balance needs at least are tried, and how many there are at most.
const LONGEST: u64 = 3;
const MOST_BASES: u64 = 256;

/// What a child has in a row of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// The member of this number of a stripe.
    Member(u64, u32),
    /// The row's spare chunk of this number.
    Spare(u32),
}

/// How stripes lie on more children than they have members.
#[derive(Debug, Clone)]
pub(crate) struct Declustering {
    pub children: u32,
    /// Members of a stripe.
    pub width: u32,
    /// Spare chunks of a row.
    pub spares: u32,
    /// Stripes of a base: where nothing is spare one.
    groups: u32,
    /// The bases one after another: child by member, with spare space all children.
    bases: Box<[u32]>,
}

impl Declustering {
    pub(super) fn new(children: u32, width: u32, spares: u32) -> Declustering {
        let groups = if spares == 0 { 1 } else { (children - spares) / width };
        let (n, w) = (u64::from(children), u64::from(width));
        let mut best = Search::new(children, (width, groups), 1);
        if width < children {
            let distances = u64::from(groups) * w * (w - 1);
            let least = (n - 1) / gcd(n - 1, distances);
            // With an even number, two children may be half of all apart: such a pair is met twice or not at all.
            let met = least * distances / (n - 1);
            let least = if n.is_multiple_of(2) && !met.is_multiple_of(2) { 2 * least } else { least };
            for times in (1..=LONGEST).take_while(|&times| times == 1 || times * least <= MOST_BASES) {
                let search = Search::new(children, (width, groups), (times * least).min(MOST_BASES)).run();
                if times == 1 || search.excess() < best.excess() {
                    best = search;
                }
                if best.excess() == 0 {
                    break;
                }
            }
        }
        let used = if spares == 0 { width } else { children } as usize;
        let bases = best.orders.iter().flat_map(|order| &order[..used]).copied().collect();
        Declustering { children, width, spares, groups, bases }
    }

    /// Stripes that lie together in rows of their own, and how many rows of every child these are.
    pub(super) fn block(&self) -> (u64, u64) {
        match self.spares {
            0 => (u64::from(self.children), u64::from(self.width)),
            _ => (u64::from(self.groups), 1),
        }
    }

    /// The child that holds member `position` of a stripe, and its row of chunks there.
    #[inline]
    pub(super) fn place(&self, stripe: u64, position: u32) -> (u32, u64) {
        if self.spares > 0 {
            let (row, group) = (stripe / u64::from(self.groups), u32_from(stripe % u64::from(self.groups)));
            return (self.in_row(row, group * self.width + position), row);
        }
        let (block, shift) = (stripe / u64::from(self.children), u32_from(stripe % u64::from(self.children)));
        let child = self.shifted(self.base(block)[position as usize], shift);
        (child, block * u64::from(self.width) + u64::from(position))
    }

    /// The child that has the spare chunk of this number of a row.
    pub(super) fn spare(&self, row: u64, number: u32) -> u32 {
        self.in_row(row, self.groups * self.width + number)
    }

    /// What the child has in its row `row`.
    pub(super) fn held(&self, child: u32, row: u64) -> Held {
        if self.spares > 0 {
            let place = (0..self.children).find(|&place| self.in_row(row, place) == child).unwrap_or(0);
            let (group, position) = (place / self.width, place % self.width);
            return match place.checked_sub(self.groups * self.width) {
                Some(number) => Held::Spare(number),
                None => Held::Member(row * u64::from(self.groups) + u64::from(group), position),
            };
        }
        let (block, position) = (row / u64::from(self.width), u32_from(row % u64::from(self.width)));
        let shift = (child + self.children - self.base(block)[position as usize]) % self.children;
        Held::Member(block * u64::from(self.children) + u64::from(shift), position)
    }

    /// The child at a place of the base in a row, where there is spare space.
    fn in_row(&self, row: u64, place: u32) -> u32 {
        let (block, shift) = (row / u64::from(self.children), u32_from(row % u64::from(self.children)));
        self.shifted(self.base(block)[place as usize], shift)
    }

    #[inline]
    fn shifted(&self, child: u32, shift: u32) -> u32 {
        let child = child + shift;
        if child >= self.children {
            child - self.children
        } else {
            child
        }
    }

    #[inline]
    fn base(&self, block: u64) -> &[u32] {
        let used = if self.spares == 0 { self.width } else { self.children } as usize;
        let bases = self.bases.len() as u64 / used as u64;
        &self.bases[u32_from(block % bases) as usize * used..][..used]
    }
}

/// A search for bases whose distances are even.
struct Search {
    width: usize,
    /// Members of all stripes of a base.
    inside: usize,
    /// All children in an order for each base, of which the first are in it, stripe by stripe.
    orders: Vec<Vec<u32>>,
    /// How often each distance occurs.
    distances: Vec<i64>,
    rng: CounterRng,
}

impl Search {
    fn new(children: u32, (width, groups): (u32, u32), bases: u64) -> Search {
        let seed = Seed::new(SEED).child(u64::from(children)).child(u64::from(width)).child(bases);
        let orders = (0..bases).map(|_| (0..children).collect()).collect();
        let (distances, inside) = (vec![0; children as usize], (width * groups) as usize);
        let mut search = Search { width: width as usize, inside, orders, distances, rng: seed.draws() };
        for base in 0..search.orders.len() {
            for member in 0..inside {
                search.count(base, member, 1, search.stripe(member).start..member);
            }
        }
        search
    }

    /// The members of the stripe that a member is of; none of a child that is not in the base.
    fn stripe(&self, member: usize) -> Range<usize> {
        let first = member / self.width * self.width;
        first..if member < self.inside { first + self.width } else { first }
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

    /// Exchanges members for children that are not in the base, or for members of other stripes where it has several, as long
    /// as that makes distances no less even; now and then it may a little.
    fn run(mut self) -> Search {
        let mut excess = self.excess();
        for _ in 0..STEPS {
            if excess == 0 {
                break;
            }
            let (bases, inside) = (self.orders.len() as u64, self.inside as u64);
            let others = if self.inside == self.width { inside } else { 0 };
            let all = self.distances.len() as u64;
            let [base, member, other] =
                [self.rng.below(bases), self.rng.below(inside), others + self.rng.below(all - others)]
                    .map(|drawn| u32_from(drawn) as usize);
            if self.stripe(member).contains(&other) {
                continue;
            }
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
        [member, other].iter().for_each(|&one| self.count(base, one, -1, self.stripe(one)));
        self.orders[base].swap(member, other);
        [member, other].iter().for_each(|&one| self.count(base, one, 1, self.stripe(one)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of chunks after which everything begins anew.
    fn rows_of_all_bases(spread: &Declustering) -> u64 {
        spread.bases.len() as u64
    }

    /// How often each pair of children shares a stripe, over all bases.
    fn shared(spread: &Declustering) -> Vec<u64> {
        let n = spread.children as usize;
        let mut times = vec![0; n * n];
        let (stripes, rows) = spread.block();
        for row in 0..rows_of_all_bases(spread) / rows * stripes {
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
                let spread = Declustering::new(children, width, 0);
                let times = shared(&spread);
                assert!(times.iter().all(|&n| n == times[0] && n > 0), "{children} {width}: {times:?}");
            }
        }
    }

    #[test]
    fn where_no_design_is_found_pairs_are_nearly_even() {
        for (children, width) in [(29, 8), (34, 12), (40, 9), (60, 10), (90, 10)] {
            let times = shared(&Declustering::new(children, width, 0));
            let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
            let mean = times.iter().sum::<u64>() as f64 / times.len() as f64;
            assert!((most - least) as f64 <= 0.25 * mean + 2.0, "{children} {width}: {least} to {most}, mean {mean}");
        }
    }

    #[test]
    fn every_row_of_every_child_is_of_one_stripe_or_spare() {
        for (children, width, spares) in [
            (4, 3, 0),
            (5, 5, 0),
            (6, 3, 0),
            (7, 3, 0),
            (21, 5, 0),
            (31, 10, 0),
            (4, 3, 1),
            (5, 3, 2),
            (11, 5, 1),
            (14, 4, 2),
        ] {
            let spread = Declustering::new(children, width, spares);
            let rows = 2 * rows_of_all_bases(&spread);
            let mut seen = vec![false; rows as usize * children as usize];
            let mut see = |child: u32, at: u64| {
                let place = at as usize * children as usize + child as usize;
                assert!(!std::mem::replace(&mut seen[place], true), "{spread:?}: {child} {at}");
            };
            let (stripes, of_rows) = spread.block();
            for stripe in 0..rows / of_rows * stripes {
                for position in 0..width {
                    let (child, at) = spread.place(stripe, position);
                    assert_eq!(spread.held(child, at), Held::Member(stripe, position));
                    see(child, at);
                }
            }
            for (row, number) in (0..rows).flat_map(|row| (0..spares).map(move |number| (row, number))) {
                let child = spread.spare(row, number);
                assert_eq!(spread.held(child, row), Held::Spare(number));
                see(child, row);
            }
            assert!(seen.iter().all(|&seen| seen));
        }
    }

    #[test]
    fn beside_spare_chunks_pairs_share_as_evenly_and_stripes_stay_in_their_row() {
        for (children, width, spares) in
            [(4, 3, 1), (5, 3, 2), (7, 3, 1), (9, 4, 1), (11, 5, 1), (14, 4, 2), (14, 6, 2), (21, 5, 1), (31, 10, 1)]
        {
            let spread = Declustering::new(children, width, spares);
            let times = shared(&spread);
            let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
            assert!(most - least <= if children > 24 { 2 } else { 0 }, "{spread:?}: {least} to {most}");
            for stripe in 0..1000 {
                let rows: Vec<u64> = (0..width).map(|position| spread.place(stripe, position).1).collect();
                assert!(rows.iter().all(|&row| row == rows[0]), "{children} {width} {spares}: {rows:?}");
            }
        }
    }

    #[test]
    fn what_a_child_held_goes_to_all_others_alike() {
        let spread = Declustering::new(11, 5, 1);
        let mut goes_to = vec![0; 11];
        for row in (0..11).filter(|&row| spread.held(4, row) != Held::Spare(0)) {
            goes_to[spread.spare(row, 0) as usize] += 1;
        }
        assert_eq!(goes_to, [1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1]);
    }
}
