//! Which files there are and who reads them: a pure function of the cell.
//!
//! Purpose: sizes, the place of each file (a directory, or a volume), and the lists they are dealt into, the same for both
//! clocks. Places and lists are both dealt by size: of every n files next to each other in size, each of n places (or lists)
//! gets one, at random. So every place and every list has its share of every size, and neither follows from the other.
//!
//! Invariants:
//! - Sizes, places, lists and sequences depend on the seed and the cell alone; the sizes not even on how many
//!   places, lists or readers there are.
//! - No file is in two lists.

use super::spec::{Numbers, Order};
use crate::{SizeSpec, Sizes, SpecError};
use raidlab_types::number::{f64_from, saturating_u64, u32_from, usize_from};
use raidlab_types::{CounterRng, Seed};

/// Longest file.
const LONGEST_BYTES: u64 = 1 << 40;
/// Most files: each costs some memory, and an entry in a directory.
const MOST_FILES: u64 = 10_000_000;

/// How many files are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAmount {
    /// So many.
    Count(u64),
    /// As many as fit into so many bytes.
    Bytes(u64),
}

impl FileAmount {
    /// From the two keys of which one must be there.
    pub fn of(count: Option<u64>, total_bytes: Option<u64>) -> Result<FileAmount, SpecError> {
        match (count, total_bytes) {
            (Some(0), None) => Err(SpecError::new("files.count", "0 must be at least 1")),
            (Some(n), None) if n > MOST_FILES => {
                Err(SpecError::new("files.count", format!("{n} must be at most {MOST_FILES}")))
            }
            (Some(n), None) => Ok(FileAmount::Count(n)),
            (None, Some(bytes)) => Ok(FileAmount::Bytes(bytes)),
            (Some(_), Some(_)) => Err(SpecError::new("files", "give either count or total_bytes, not both")),
            (None, None) => Err(SpecError::new("files", "give count or total_bytes")),
        }
    }
}

/// The size of every file, in the order in which they are made; `key` is where the specification stands.
///
/// # Errors
/// If the specification makes no sense, or too many or no files would come of it.
pub fn sizes(
    spec: &SizeSpec,
    key: &str,
    numbers: Numbers,
    wanted: FileAmount,
    seed: Seed,
) -> Result<Vec<u64>, SpecError> {
    // Built in either case: it checks the specification.
    let drawn = Sizes::new(spec, key, 1, LONGEST_BYTES, seed.named("sizes"))?;
    let found = match (numbers, spec) {
        (Numbers::Even, SizeSpec::Table { bytes, weights }) => {
            let mut found = even(bytes, weights, wanted);
            shuffle(&mut found, &mut seed.named("order").draws());
            found
        }
        (Numbers::Even, _) => {
            let message = "\"even\" needs sizes of kind \"table\"; others are \"drawn\"";
            return Err(SpecError::new("files.numbers", message));
        }
        (Numbers::Drawn, _) => draw(&drawn, wanted),
    };
    match (found.len() as u64, wanted) {
        (0, FileAmount::Bytes(total)) => {
            Err(SpecError::new("files.total_bytes", format!("{total} is less than the first file needs")))
        }
        (n, _) if n > MOST_FILES => {
            Err(SpecError::new("files.total_bytes", format!("more than {MOST_FILES} files would fit: ask for fewer")))
        }
        _ => Ok(found),
    }
}

fn draw(sizes: &Sizes, wanted: FileAmount) -> Vec<u64> {
    let mut left = match wanted {
        FileAmount::Count(n) => return (0..n).map(|i| sizes.bytes(i)).collect(),
        FileAmount::Bytes(total) => total,
    };
    let fits = |bytes: &u64| {
        let fits = *bytes <= left;
        left = left.saturating_sub(*bytes);
        fits
    };
    // One beyond the most, so that too many are seen to be too many.
    (0..=MOST_FILES).map(|i| sizes.bytes(i)).take_while(fits).collect()
}

/// Every size as often as its weight says, to within one: the largest remainders get what is left.
fn even(bytes: &[u64], weights: &[f64], wanted: FileAmount) -> Vec<u64> {
    let total_weight: f64 = weights.iter().sum();
    let mean = bytes.iter().zip(weights).map(|(&b, w)| f64_from(b) * w / total_weight).sum::<f64>();
    let mut count = match wanted {
        FileAmount::Count(n) => n,
        FileAmount::Bytes(total) => saturating_u64(f64_from(total) / mean).min(MOST_FILES + 1),
    };
    loop {
        let numbers = apportion(weights, total_weight, count);
        let sum: u64 = numbers.iter().zip(bytes).map(|(n, b)| n * b).sum();
        match wanted {
            // Rounding to whole files may have gone a little beyond.
            FileAmount::Bytes(total) if sum > total && count > 0 => count -= 1,
            _ => return numbers.iter().zip(bytes).flat_map(|(&n, &b)| std::iter::repeat_n(b, usize_from(n))).collect(),
        }
    }
}

fn apportion(weights: &[f64], total_weight: f64, count: u64) -> Vec<u64> {
    let exact: Vec<f64> = weights.iter().map(|w| w / total_weight * f64_from(count)).collect();
    let mut numbers: Vec<u64> = exact.iter().map(|share| saturating_u64(share.floor())).collect();
    let mut by_remainder: Vec<usize> = (0..weights.len()).collect();
    by_remainder.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let left = count - numbers.iter().sum::<u64>().min(count);
    by_remainder.iter().cycle().take(usize_from(left)).for_each(|&i| numbers[i] += 1);
    numbers
}

/// One of `n` hands for each file: of every `n` next to each other in size, each hand gets one, at random.
pub fn deal(sizes: &[u64], n: usize, seed: Seed) -> Vec<u32> {
    let mut random = seed.draws();
    let mut by_size: Vec<u32> = (0..u32_from(sizes.len())).collect();
    // Equal sizes in random order: which of them go where must not follow from when they were made.
    shuffle(&mut by_size, &mut random);
    by_size.sort_by_key(|&file| sizes[file as usize]);
    let mut hands: Vec<u32> = (0..u32_from(n)).collect();
    let mut dealt = vec![0; sizes.len()];
    for round in by_size.chunks(n) {
        shuffle(&mut hands, &mut random);
        round.iter().zip(&hands).for_each(|(&file, &hand)| dealt[file as usize] = hand);
    }
    dealt
}

/// The files of each of `n` lists.
pub fn lists(sizes: &[u64], n: usize, seed: Seed) -> Vec<Vec<u32>> {
    let mut lists = vec![Vec::new(); n];
    for (file, &list) in deal(sizes, n, seed.named("lists")).iter().enumerate() {
        lists[list as usize].push(u32_from(file));
    }
    lists
}

/// What one reader reads, one after another.
#[derive(Debug, Clone)]
pub struct Sequence {
    list: Vec<u32>,
    order: Order,
    random: CounterRng,
    at: usize,
}

impl Sequence {
    /// A walk through `list`.
    pub fn new(list: &[u32], order: Order, seed: Seed) -> Sequence {
        let mut sequence = Sequence { list: list.to_vec(), order, random: seed.draws(), at: 0 };
        shuffle(&mut sequence.list, &mut sequence.random);
        sequence
    }
}

impl Iterator for Sequence {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.list.is_empty() {
            return None;
        }
        if self.order == Order::Random {
            return Some(self.list[usize_from(self.random.below(self.list.len() as u64))]);
        }
        if self.at == self.list.len() {
            if self.order == Order::Once {
                return None;
            }
            shuffle(&mut self.list, &mut self.random);
            self.at = 0;
        }
        self.at += 1;
        Some(self.list[self.at - 1])
    }
}

pub(super) fn shuffle<T>(items: &mut [T], random: &mut CounterRng) {
    for i in (1..items.len()).rev() {
        items.swap(i, usize_from(random.below(i as u64 + 1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn ten_sizes() -> SizeSpec {
        SizeSpec::Table { bytes: (2..12).map(|i| i * 25_000).collect(), weights: vec![1.0; 10] }
    }

    fn counted(sizes: impl IntoIterator<Item = u64>) -> BTreeMap<u64, usize> {
        let mut counts = BTreeMap::new();
        sizes.into_iter().for_each(|size| *counts.entry(size).or_insert(0) += 1);
        counts
    }

    #[test]
    fn even_numbers_are_even_and_shuffled() {
        let made = |n, seed| {
            sizes(&ten_sizes(), "sizes", Numbers::Even, FileAmount::Count(n), Seed::new(seed)).expect("sizes")
        };
        assert!(counted(made(360, 1)).values().all(|&n| n == 36));
        assert!(counted(made(365, 1)).values().all(|&n| n == 36 || n == 37));
        assert_eq!(made(365, 1).len(), 365);
        assert_eq!(made(360, 1), made(360, 1));
        assert_ne!(made(360, 1), made(360, 2), "the order is the seed's");
        assert_ne!(made(360, 1)[..36].iter().min(), made(360, 1)[..36].iter().max());
    }

    #[test]
    fn as_many_as_fit_and_no_more() {
        for (numbers, spec) in [
            (Numbers::Even, ten_sizes()),
            (Numbers::Drawn, ten_sizes()),
            (Numbers::Drawn, SizeSpec::Exponential { mean_bytes: 5e4 }),
        ] {
            let made = sizes(&spec, "sizes", numbers, FileAmount::Bytes(5_000_000), Seed::new(3)).expect("sizes");
            let total: u64 = made.iter().sum();
            assert!(total <= 5_000_000 && total > 4_000_000, "{numbers:?} {spec:?}: {total}");
        }
        let none = sizes(&ten_sizes(), "sizes", Numbers::Even, FileAmount::Bytes(1000), Seed::new(3));
        assert_eq!(none.expect_err("nothing fits").key, "files.total_bytes");
        let drawn = sizes(&SizeSpec::Fixed { bytes: 9 }, "sizes", Numbers::Even, FileAmount::Count(1), Seed::new(3));
        assert_eq!(drawn.expect_err("no table").key, "files.numbers");
    }

    #[test]
    fn lists_are_disjoint_complete_and_alike_in_size_and_place() {
        let seed = Seed::new(5);
        let sizes = sizes(&ten_sizes(), "sizes", Numbers::Even, FileAmount::Count(720), seed).expect("sizes");
        let places = deal(&sizes, 6, seed.named("places"));
        let lists = lists(&sizes, 12, seed);
        let mut all: Vec<u32> = lists.concat();
        all.sort_unstable();
        assert_eq!(all, (0..720).collect::<Vec<u32>>());
        for list in &lists {
            let of_list = counted(list.iter().map(|&file| sizes[file as usize]));
            assert!(of_list.values().all(|&n| n == 6), "{of_list:?}");
            // 60 files over 6 directories: 10 each on average; were one to follow from the other, a list would lie in one.
            let in_places = counted(list.iter().map(|&file| u64::from(places[file as usize])));
            assert!(in_places.len() == 6 && in_places.values().all(|&n| n < 30), "{in_places:?}");
        }
        for place in 0..6 {
            let here = (0..720).filter(|&file| places[file] == place).map(|file| sizes[file]);
            assert!(counted(here).values().all(|&n| n == 12));
        }
    }

    #[test]
    fn sequences_keep_their_promise() {
        let list: Vec<u32> = (0..50).collect();
        let take = |order, n| Sequence::new(&list, order, Seed::new(1)).take(n).collect::<Vec<u32>>();
        let sorted = |mut files: Vec<u32>| {
            files.sort_unstable();
            files
        };
        assert_eq!(sorted(take(Order::Once, 200)), list);
        let twice = take(Order::Shuffled, 100);
        assert_eq!((sorted(twice[..50].to_vec()), sorted(twice[50..].to_vec())), (list.clone(), list.clone()));
        assert_ne!(twice[..50], twice[50..], "shuffled anew");
        let drawn = take(Order::Random, 100);
        assert_eq!(drawn.len(), 100);
        assert_ne!(sorted(drawn[..50].to_vec()), list, "with replacement");
        assert_eq!(Sequence::new(&[], Order::Random, Seed::new(1)).next(), None);
    }
}
