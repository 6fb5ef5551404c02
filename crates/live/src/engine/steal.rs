//! Processor time that somebody else took: of a virtual machine, by its host.
//!
//! Reference: proc_stat(5), the line `cpu`: user, nice, system, idle, iowait, irq, softirq, steal, ...

use raidlab_types::number::f64_from;

/// Time of all processors in ticks: stolen, and in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    stolen: u64,
    all: u64,
}

fn read() -> Option<Ticks> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?)
}

fn parse(text: &str) -> Option<Ticks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // What guests got is counted in user and nice too, so only the first eight are added up.
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    Some(Ticks { stolen: *ticks.get(7)?, all: ticks.iter().sum() })
}

/// The share stolen over a stretch of time.
#[derive(Debug, Default)]
pub(super) struct Steal {
    begin: Option<Ticks>,
    end: Option<Ticks>,
}

impl Steal {
    /// The stretch begins (`on`) or ends.
    pub(super) fn watch(&mut self, on: bool) {
        *(if on { &mut self.begin } else { &mut self.end }) = read();
    }

    /// Of the time of all processors; none where the system does not say.
    pub(super) fn share(&self) -> Option<f64> {
        let (begin, end) = (self.begin?, self.end?);
        let all = end.all.saturating_sub(begin.all);
        (all > 0).then(|| f64_from(end.stolen.saturating_sub(begin.stolen)) / f64_from(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eighth_number_is_what_was_stolen() {
        let text = "cpu  10 20 30 40 50 6 7 8 99 99\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(parse(text), Some(Ticks { stolen: 8, all: 171 }));
        assert_eq!(parse("cpu  1 2 3 4\n"), None);
        let steal = Steal { begin: parse(text), end: parse("cpu  10 20 30 120 50 6 7 28 0 0\n") };
        assert_eq!(steal.share(), Some(0.2));
        assert_eq!(Steal::default().share(), None);
    }
}
