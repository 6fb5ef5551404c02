//! Runs of sectors: what is written and not yet on the members.
//!
//! Invariant: runs neither overlap nor touch.

use raidlab_types::Extent;
use std::collections::BTreeMap;

/// A set of sectors as runs, by their first sector.
#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: BTreeMap<u64, u64>,
}

impl Runs {
    #[cfg(test)]
    fn sectors(&self) -> u64 {
        self.runs.iter().map(|(start, end)| end - start).sum()
    }

    /// Adds sectors; how many of them were not there.
    pub(super) fn add(&mut self, extent: Extent) -> u64 {
        let (mut start, mut end, mut covered) = (extent.lba, extent.end(), 0);
        // Runs that overlap or touch are swallowed, from the last backwards.
        while let Some((&s, &e)) = self.runs.range(..=end).next_back() {
            if e < start {
                break;
            }
            covered += e.min(extent.end()).saturating_sub(s.max(extent.lba));
            self.runs.remove(&s);
            (start, end) = (start.min(s), end.max(e));
        }
        self.runs.insert(start, end);
        extent.sectors - covered
    }

    /// Whether all of it is there.
    pub(super) fn covers(&self, extent: Extent) -> bool {
        self.runs.range(..=extent.lba).next_back().is_some_and(|(_, &end)| end >= extent.end())
    }

    /// The first run within `within`, cut to it.
    pub(super) fn first_in(&self, within: Extent) -> Option<Extent> {
        let before = self.runs.range(..within.lba).next_back().filter(|(_, &end)| end > within.lba);
        let (&start, &end) = before.or_else(|| self.runs.range(within.lba..within.end()).next())?;
        let from = start.max(within.lba);
        Some(Extent::new(from, end.min(within.end()) - from))
    }

    /// Takes sectors out, which are all there.
    pub(super) fn remove(&mut self, extent: Extent) {
        let Some((&start, &end)) = self.runs.range(..=extent.lba).next_back() else { return };
        debug_assert!(end >= extent.end(), "only what is there is taken out");
        self.runs.remove(&start);
        if start < extent.lba {
            self.runs.insert(start, extent.lba);
        }
        if end > extent.end() {
            self.runs.insert(extent.end(), end);
        }
    }

    /// The first run at or behind a sector, else the first of all.
    pub(super) fn next_from(&self, lba: u64) -> Option<Extent> {
        let found = self.runs.range(lba..).next().or_else(|| self.runs.iter().next());
        found.map(|(&start, &end)| Extent::new(start, end - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_types::Seed;

    #[test]
    fn runs_agree_with_a_plain_set() {
        let mut rng = Seed::new(5).draws();
        for _ in 0..200 {
            let (mut runs, mut plain) = (Runs::default(), [false; 64]);
            for _ in 0..60 {
                let lba = rng.below(60);
                let extent = Extent::new(lba, 1 + rng.below(64 - lba));
                let span = lba as usize..extent.end() as usize;
                let there = plain[span.clone()].iter().filter(|&&x| x).count() as u64;
                assert_eq!(runs.covers(extent), there == extent.sectors);
                match rng.below(3) {
                    0 if runs.covers(extent) => {
                        runs.remove(extent);
                        plain[span].fill(false);
                    }
                    1 => {
                        let first = span.clone().find(|&i| plain[i]);
                        let found = runs.first_in(extent);
                        assert_eq!(found.map(|f| f.lba as usize), first);
                        assert!(found.is_none_or(|f| runs.covers(f) && extent.contains(f)));
                    }
                    _ => {
                        assert_eq!(runs.add(extent), extent.sectors - there);
                        plain[span].fill(true);
                    }
                }
                assert_eq!(runs.sectors(), plain.iter().filter(|&&x| x).count() as u64);
            }
        }
    }
}
