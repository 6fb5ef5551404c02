//! Lines that hold what was read: which are there, which are on their way, which goes first when room is needed.
//!
//! Invariant: a line on its way is never given up; one that is there is given up in the order of its last use.

use raidlab_types::number::usize_from;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy)]
struct CacheLine {
    /// Last use; meaningless while it is on its way.
    stamp: u64,
    is_there: bool,
}

#[derive(Debug)]
pub(super) struct Lines {
    lines: BTreeMap<u64, CacheLine>,
    by_use: BTreeMap<u64, u64>,
    stamp: u64,
    most: usize,
}

impl Lines {
    pub(super) fn new(most: u64) -> Lines {
        Lines { lines: BTreeMap::new(), by_use: BTreeMap::new(), stamp: 0, most: usize_from(most.max(1)) }
    }

    /// Whether a line is there.
    pub(super) fn is_there(&self, line: u64) -> bool {
        self.lines.get(&line).is_some_and(|l| l.is_there)
    }

    /// Whether a line is there or on its way.
    pub(super) fn is_known(&self, line: u64) -> bool {
        self.lines.contains_key(&line)
    }

    /// A line is fetched.
    pub(super) fn begin(&mut self, line: u64) {
        self.lines.insert(line, CacheLine { stamp: 0, is_there: false });
    }

    /// A line is used, if it is there.
    pub(super) fn touch(&mut self, line: u64) {
        let Some(found) = self.lines.get_mut(&line).filter(|l| l.is_there) else { return };
        self.by_use.remove(&found.stamp);
        self.stamp += 1;
        found.stamp = self.stamp;
        self.by_use.insert(self.stamp, line);
    }

    /// A line is there now; others may be given up for it.
    pub(super) fn arrive(&mut self, line: u64) {
        if let Some(old) = self.lines.get(&line).filter(|l| l.is_there) {
            self.by_use.remove(&old.stamp);
        }
        self.stamp += 1;
        self.lines.insert(line, CacheLine { stamp: self.stamp, is_there: true });
        self.by_use.insert(self.stamp, line);
        while self.by_use.len() > self.most {
            let Some((_, given_up)) = self.by_use.pop_first() else { return };
            self.lines.remove(&given_up);
        }
    }

    /// Lines that are there.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_use.len()
    }
}
