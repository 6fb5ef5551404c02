//! `mixed`: some requests go on where the last one ended, some begin near its start, the rest anywhere.
//!
//! Purpose: the three ways of moving that DiskSim's synthetic generators mix, by which its figures are compared with ours.
//! A near request lies a normally distributed distance from the start of the last, drawn anew where that leaves the
//! volume; one that would go on beyond the end of the volume begins anywhere. What goes on may be asked to be as long as the
//! last and to do the same, as it is there.
//!
//! Invariants: of the places where a request fits, a uniform one takes each with the same chance; where the last request
//! was is known for each stream, so that streams do not follow one another. Two random words, one more for each distance
//! drawn anew; all of them come last in a request, so that their number moves nothing.
//!
//! Reference: J. S. Bucy, J. Schindler, S. W. Schlosser, G. R. Ganger, *The DiskSim Simulation Environment Version 4.0
//! Reference Manual*, CMU-PDL-08-101, 2008, section 4.2.

use super::AddressSpace;
use crate::draw;
use crate::error::{join, positive, SpecError};
use crate::workload::TaskOperation;
use raidlab_types::number::{f64_from, i64_from, saturating_i64};
use raidlab_types::{CounterRng, Extent, Lba, RequestKind};

/// Distances drawn before a request is placed anywhere instead: at the very end of a volume one in two stays within it, and
/// where sixteen do not, the spread is so much wider than the volume that anywhere is what they tend to.
const MOST_TRIES: u32 = 16;

/// The last request of a stream, and where the next one that goes on begins; of a stream that has not begun, beyond every
/// volume.
#[derive(Debug, Clone, Copy)]
struct Last {
    kind: RequestKind,
    extent: Extent,
    next: u64,
}

const NOT_BEGUN: Last = Last { kind: RequestKind::Read, extent: Extent::new(u64::MAX, 0), next: u64::MAX };

/// Starts that follow, keep near, or jump.
#[derive(Debug, Clone)]
pub(crate) struct Mixed {
    capacity_sectors: u64,
    align_sectors: u64,
    /// Chance to go on, and to do that or stay near.
    sequential: f64,
    bound: f64,
    /// Standard deviation of the distance, in aligned places.
    spread_places: f64,
    /// What goes on is as long as the last and does the same.
    alike: bool,
    last: Box<[Last]>,
}

impl Mixed {
    pub(crate) fn new(
        key: &str,
        (sequential, local): (f64, f64),
        local_sd_bytes: Option<f64>,
        alike: bool,
        site: AddressSpace,
    ) -> Result<Self, SpecError> {
        for (name, share, most) in [("sequential", sequential, 1.0), ("local", local, 1.0 - sequential)] {
            // Shares written in decimals need not add up to one exactly.
            if !(0.0..=most + 1e-9).contains(&share) {
                let message = format!("{share}; accepted: 0 to 1, both shares together at most 1");
                return Err(SpecError::new(join(key, name), message));
            }
        }
        let align_sectors = site.align()?;
        let place_bytes = f64_from(align_sectors) * f64::from(site.sector_bytes);
        let spread_places = match local_sd_bytes {
            Some(bytes) => positive(key, "local_sd", bytes)? / place_bytes,
            None if local > 0.0 => {
                let message = format!("is missing, and local = {local}; accepted: a size above 0");
                return Err(SpecError::new(join(key, "local_sd"), message));
            }
            None => 0.0,
        };
        Ok(Mixed {
            capacity_sectors: site.capacity_sectors,
            align_sectors,
            sequential,
            bound: sequential + local,
            spread_places,
            alike,
            last: vec![NOT_BEGUN; site.streams as usize].into(),
        })
    }

    pub(crate) fn longest(&self) -> u64 {
        self.capacity_sectors
    }

    #[inline]
    pub(crate) fn draw(&mut self, rng: &mut CounterRng, request: &mut TaskOperation, stream: u32) -> Lba {
        let (chance, last) = (rng.unit(), self.last[stream as usize]);
        let sectors = if self.alike { last.extent.sectors } else { request.extent.sectors };
        let room = self.capacity_sectors - request.extent.sectors;
        let start = if chance < self.sequential && last.next <= self.capacity_sectors - sectors {
            request.extent.sectors = sectors;
            request.kind = if self.alike { last.kind } else { request.kind };
            last.next
        } else if chance < self.bound && chance >= self.sequential && last.extent.lba != u64::MAX {
            self.near(rng, last.extent.lba, room)
        } else {
            self.anywhere(rng, room)
        };
        let extent = Extent::new(start, request.extent.sectors);
        // Sizes are mostly multiples of the alignment already, as in `sequential`.
        let next =
            if self.align_sectors > 1 { extent.end().next_multiple_of(self.align_sectors) } else { extent.end() };
        self.last[stream as usize] = Last { kind: request.kind, extent, next };
        start
    }

    fn near(&self, rng: &mut CounterRng, last_start: u64, room: u64) -> Lba {
        for _ in 0..MOST_TRIES {
            let places = draw::normal(rng) * self.spread_places;
            // Rounded to the nearest place; `as` saturates, and so do the sums, so that what is too far leaves the volume.
            let places = saturating_i64(places + 0.5f64.copysign(places));
            let distance = places.saturating_mul(i64_from(self.align_sectors));
            let start = i64_from(last_start);
            if let Ok(start) = u64::try_from(start.saturating_add(distance)) {
                if start <= room {
                    return start;
                }
            }
        }
        self.anywhere(rng, room)
    }

    fn anywhere(&self, rng: &mut CounterRng, room: u64) -> Lba {
        let places = if self.align_sectors > 1 { room / self.align_sectors } else { room } + 1;
        rng.below(places) * self.align_sectors
    }
}

#[cfg(test)]
mod tests {
    use crate::address::test_support::{chi2_equal, draw, site, starts};
    use crate::address::{Address, AddressSpace};
    use crate::spec::AddressSpec;
    use crate::workload::TaskOperation;
    use raidlab_types::{Extent, RequestKind, Seed};

    fn spec(sequential: f64, local: f64, local_sd_bytes: f64) -> AddressSpec {
        AddressSpec::Mixed { sequential, local, local_sd_bytes: Some(local_sd_bytes), alike: false }
    }

    fn aligned(capacity_sectors: u64, align_bytes: u64) -> AddressSpace {
        AddressSpace { align_bytes: Some(align_bytes), ..site(capacity_sectors) }
    }

    #[test]
    fn shares_and_distances_are_those_asked_for() {
        // A volume so wide that a jump is never near by chance: what follows and what is within 8 deviations tell the kinds.
        let (n, sd) = (60_000u64, 1000.0 * 512.0);
        let starts = starts(&spec(0.2, 0.3, sd), site(1 << 40), 8, n);
        let gaps: Vec<f64> = starts.windows(2).map(|w| w[1] as f64 - w[0] as f64).collect();
        let follow = gaps.iter().filter(|&&gap| gap == 8.0).count() as f64 / n as f64;
        let near: Vec<f64> = gaps.iter().copied().filter(|gap| *gap != 8.0 && gap.abs() < 8000.0).collect();
        // Five standard errors of a binomial share are below 0.01; near requests fall on the very next place now and then.
        assert!((follow - 0.2).abs() < 0.01 && (near.len() as f64 / n as f64 - 0.3).abs() < 0.01, "{follow}");
        // Of 18,000 distances the mean's standard error is 7.5 sectors, the deviation's 0.5 %.
        let mean = near.iter().sum::<f64>() / near.len() as f64;
        let deviation = (near.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / near.len() as f64).sqrt();
        assert!(mean.abs() < 40.0 && (deviation / 1000.0 - 1.0).abs() < 0.03, "{mean} {deviation}");
    }

    #[test]
    fn jumps_are_uniform_over_aligned_places() {
        // 100 sectors, aligned to 8, requests of 8: 12 places. Chi-squared, 11 degrees of freedom: 99.99 % quantile 37.4.
        let mut counts = [0; 12];
        for start in starts(&spec(0.0, 0.0, 512.0), aligned(100, 4096), 8, 60_000) {
            assert_eq!(start % 8, 0);
            counts[(start / 8) as usize] += 1;
        }
        assert!(chi2_equal(&counts) < 37.4, "{counts:?}");
    }

    #[test]
    fn what_goes_on_leaves_no_gap_and_jumps_at_the_end() {
        let starts = starts(&spec(1.0, 0.0, 512.0), aligned(40, 2048), 3, 200);
        let jumps = starts.windows(2).filter(|w| w[1] != w[0] + 4).count();
        assert!(starts.iter().all(|start| start % 4 == 0 && *start <= 36));
        // From a uniform place it takes 5.5 requests on average to come to the end: 36 jumps, give or take 3.
        assert!((20..55).contains(&jumps), "{jumps} of 200");
    }

    #[test]
    fn a_spread_far_wider_than_the_volume_is_uniform() {
        let mut counts = [0; 10];
        starts(&spec(0.0, 1.0, 1e15), site(10), 1, 40_000).iter().for_each(|&s| counts[s as usize] += 1);
        // 9 degrees of freedom: 99.99 % quantile 33.7.
        assert!(chi2_equal(&counts) < 33.7, "{counts:?}");
    }

    #[test]
    fn streams_follow_themselves_alone() {
        let site = AddressSpace { sector_bytes: 512, capacity_sectors: 1 << 30, streams: 2, align_bytes: None };
        let mut address = Address::new(&spec(1.0, 0.0, 512.0), "a", site).unwrap();
        let mut rng = Seed::new(3).draws();
        let first = [0, 1].map(|stream| draw(&mut address, &mut rng, 4, stream));
        let second = [0, 1].map(|stream| draw(&mut address, &mut rng, 4, stream));
        assert_eq!(second, first.map(|start| start + 4));
    }

    #[test]
    fn what_goes_on_is_like_the_last_where_asked_for() {
        let spec = AddressSpec::Mixed { sequential: 0.5, local: 0.2, local_sd_bytes: Some(1e6), alike: true };
        let mut address = Address::new(&spec, "a", site(1 << 30)).unwrap();
        let mut drawn: Vec<TaskOperation> = Vec::new();
        for i in 0..2000 {
            let mut rng = Seed::new(5).child(i).draws();
            let kind = if rng.unit() < 0.5 { RequestKind::Read } else { RequestKind::Write };
            let extent = Extent::new(0, 1 + rng.below(64));
            drawn.push(TaskOperation { volume: 0, kind, extent });
            address.place(&mut rng, &mut drawn[i as usize], 0);
        }
        let goes_on = |w: &&[TaskOperation]| w[1].extent.lba == w[0].extent.end();
        let like = |w: &[TaskOperation]| (w[0].kind, w[0].extent.sectors) == (w[1].kind, w[1].extent.sectors);
        // 1000 go on, give or take 22; of the others one in 128 is alike by chance.
        assert!((900..1100).contains(&drawn.windows(2).filter(goes_on).count()));
        assert!(drawn.windows(2).filter(goes_on).all(like));
        assert!(drawn.windows(2).filter(|w| !goes_on(w)).filter(|w| like(w)).count() < 40);
    }

    #[test]
    fn shares_and_the_spread_are_checked_with_their_key() {
        let key = |spec| Address::new(&spec, "w.address", site(100)).unwrap_err().key;
        assert_eq!(key(spec(1.5, 0.0, 512.0)), "w.address.sequential");
        assert_eq!(key(spec(0.6, 0.6, 512.0)), "w.address.local");
        assert_eq!(key(spec(f64::NAN, 0.0, 512.0)), "w.address.sequential");
        assert_eq!(key(spec(0.2, 0.3, 0.0)), "w.address.local_sd");
        assert!(Address::new(&spec(0.9, 0.1, 512.0), "w.address", site(100)).is_ok());
        let without = |local| AddressSpec::Mixed { sequential: 0.5, local, local_sd_bytes: None, alike: false };
        assert_eq!(key(without(0.1)), "w.address.local_sd");
        assert!(Address::new(&without(0.0), "w.address", site(100)).is_ok());
    }
}
