//! Where requests begin.
//!
//! Purpose: the first sector of a request of given length on one volume. Kinds are listed in [`Address`]; to add one,
//! write its file, add a line here and to [`AddressSpec`].
//!
//! Invariants:
//! - A request lies within its volume: `start + sectors <= capacity` for every length up to [`Address::longest`].
//! - A start is a function of the random numbers of its request; for `sequential`, `strided`, `listed`
//!   and `mixed`, of what was drawn before it in the same stream too. Requests of a stream are drawn in order, whatever completes when.
//! - Memory is O(1) a volume, or O(streams), or a list that was given: no tables as long as the volume.

mod aligned_stripe;
mod hot_members;
mod listed;
mod mixed;
mod sequential;
mod strided;
mod uniform;
mod zipf;

use crate::error::{join, whole_sectors, SpecError};
use crate::spec::AddressSpec;
use crate::workload::TaskOperation;
use raidlab_types::CounterRng;

/// What an address kind must know of its volume.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AddressSpace {
    /// Bytes in a sector.
    pub(crate) sector_bytes: u32,
    /// Length of the volume.
    pub(crate) capacity_sectors: u64,
    /// Streams that run over this volume (tasks of different streams come in any order).
    pub(crate) streams: u32,
    /// What starts are multiples of; a sector where there is none.
    pub(crate) align_bytes: Option<u64>,
}

impl AddressSpace {
    /// The alignment in sectors.
    fn align(self) -> Result<u64, SpecError> {
        let Some(bytes) = self.align_bytes else { return Ok(1) };
        self.length("workload", "align", bytes)
    }

    /// A length that must be whole sectors and fit the volume; in sectors.
    fn length(self, key: &str, name: &str, bytes: u64) -> Result<u64, SpecError> {
        let sectors = whole_sectors(key, name, bytes, self.sector_bytes)?;
        self.fits(key, name, bytes, sectors)?;
        Ok(sectors)
    }

    fn fits(self, key: &str, name: &str, bytes: u64, sectors: u64) -> Result<(), SpecError> {
        if sectors <= self.capacity_sectors {
            return Ok(());
        }
        let volume = self.capacity_sectors * u64::from(self.sector_bytes);
        let message = format!("{bytes} bytes are more than the volume has; accepted: at most {volume} bytes");
        Err(SpecError::new(join(key, name), message))
    }
}

/// The kinds of addresses, for one volume.
#[derive(Debug, Clone)]
pub(crate) enum Address {
    Uniform(uniform::UniformAddress),
    Sequential(sequential::Sequential),
    Zipf(zipf::Zipf),
    HotMembers(hot_members::HotMembers),
    Strided(strided::Strided),
    Mixed(mixed::Mixed),
    Listed(listed::AddressList),
    AlignedStripe(aligned_stripe::AlignedStripe),
}

impl Address {
    pub(crate) fn new(spec: &AddressSpec, key: &str, site: AddressSpace) -> Result<Self, SpecError> {
        use AddressSpec as Spec;
        Ok(match spec {
            Spec::Uniform {} => Address::Uniform(uniform::UniformAddress::new(site)?),
            Spec::Sequential { .. } => Address::Sequential(sequential::Sequential::new(key, site)?),
            Spec::Zipf { theta } => Address::Zipf(zipf::Zipf::new(key, *theta, site)?),
            Spec::HotMembers { weights, chunk_bytes } => {
                Address::HotMembers(hot_members::HotMembers::new(key, weights, *chunk_bytes, site)?)
            }
            Spec::Strided { stride_bytes } => Address::Strided(strided::Strided::new(key, *stride_bytes, site)?),
            Spec::Mixed { sequential, local, local_sd_bytes, alike } => {
                let shares = (*sequential, *local);
                Address::Mixed(mixed::Mixed::new(key, shares, *local_sd_bytes, *alike, site)?)
            }
            Spec::Listed { offset_bytes } => Address::Listed(listed::AddressList::new(key, offset_bytes, site)?),
            Spec::AlignedStripe { stripe_bytes, chunk_bytes } => {
                Address::AlignedStripe(aligned_stripe::AlignedStripe::new(key, *stripe_bytes, *chunk_bytes, site)?)
            }
        })
    }

    /// Sectors of the longest request this kind can place.
    pub(crate) fn longest(&self) -> u64 {
        match self {
            Address::Uniform(kind) => kind.longest(),
            Address::Sequential(kind) => kind.longest(),
            Address::Zipf(kind) => kind.longest(),
            Address::HotMembers(kind) => kind.longest(),
            Address::Strided(kind) => kind.longest(),
            Address::Mixed(kind) => kind.longest(),
            Address::Listed(kind) => kind.longest(),
            Address::AlignedStripe(kind) => kind.longest(),
        }
    }

    /// Gives a request its first sector, the next one of this volume's stream `stream`; `mixed` may make it like the last.
    #[inline]
    pub(crate) fn place(&mut self, rng: &mut CounterRng, request: &mut TaskOperation, stream: u32) {
        let sectors = request.extent.sectors;
        request.extent.lba = match self {
            Address::Uniform(kind) => kind.draw(rng, sectors),
            Address::Sequential(kind) => kind.draw(sectors, stream),
            Address::Zipf(kind) => kind.draw(rng, sectors),
            Address::HotMembers(kind) => kind.draw(rng, sectors),
            Address::Strided(kind) => kind.draw(sectors, stream),
            Address::Mixed(kind) => kind.draw(rng, request, stream),
            Address::Listed(kind) => kind.draw(stream),
            Address::AlignedStripe(kind) => kind.draw(rng, sectors),
        };
    }
}

#[cfg(test)]
pub(crate) mod test_support {
    use super::*;
    use raidlab_types::{Extent, Lba, Seed};

    /// Where a read lies that is to have so many sectors, the next one of a stream.
    pub(crate) fn place(address: &mut Address, rng: &mut CounterRng, sectors: u64, stream: u32) -> Extent {
        let mut request = TaskOperation { extent: Extent::new(0, sectors), ..TaskOperation::NONE };
        address.place(rng, &mut request, stream);
        request.extent
    }

    /// Its first sector.
    pub(crate) fn draw(address: &mut Address, rng: &mut CounterRng, sectors: u64, stream: u32) -> Lba {
        place(address, rng, sectors, stream).lba
    }

    /// A volume of so many sectors of 512 bytes, one stream.
    pub(crate) fn site(capacity_sectors: u64) -> AddressSpace {
        AddressSpace { sector_bytes: 512, capacity_sectors, streams: 1, align_bytes: None }
    }

    /// `n` starts of requests of `sectors` sectors in one stream.
    pub(crate) fn starts(spec: &AddressSpec, site: AddressSpace, sectors: u64, n: u64) -> Vec<Lba> {
        let mut address = Address::new(spec, "workload.address", site).unwrap();
        (0..n).map(|i| draw(&mut address, &mut Seed::new(40).child(i).draws(), sectors, 0)).collect()
    }

    /// Chi-squared of counts against equal shares.
    pub(crate) fn chi2_equal(counts: &[u64]) -> f64 {
        let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        counts.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::test_support::*;
    use super::*;
    use proptest::prelude::*;
    use raidlab_types::Seed;

    /// One of each kind, with units of `unit` sectors of 512 bytes.
    fn kinds(unit: u64) -> Vec<AddressSpec> {
        let bytes = unit * 512;
        vec![
            AddressSpec::Uniform {},
            AddressSpec::Sequential { streams: 1 },
            AddressSpec::Zipf { theta: 0.99 },
            AddressSpec::HotMembers { weights: vec![3.0, 1.0, 1.0], chunk_bytes: bytes },
            AddressSpec::HotMembers { weights: vec![0.0, 1.0], chunk_bytes: bytes },
            AddressSpec::Strided { stride_bytes: 3 * bytes },
            AddressSpec::Mixed { sequential: 0.3, local: 0.4, local_sd_bytes: Some(2.5 * bytes as f64), alike: false },
            AddressSpec::Mixed { sequential: 0.1, local: 0.9, local_sd_bytes: Some(1e12), alike: true },
            AddressSpec::Listed { offset_bytes: vec![5 * bytes, 0, 7 * bytes, bytes] },
            AddressSpec::AlignedStripe { stripe_bytes: 4 * bytes, chunk_bytes: bytes },
        ]
    }

    proptest! {
        #[test]
        fn no_request_leaves_its_volume(
            unit in 1u64..9, units in 8u64..40, extra in 0u64..9, share in 0.0f64..1.0, seed: u64, streams in 1u32..4
        ) {
            let capacity = unit * units + extra.min(unit - 1);
            let alignments = [None, Some(unit * 512)];
            for (spec, align_bytes) in kinds(unit).into_iter().flat_map(|spec| alignments.map(|align| (spec.clone(), align))) {
                let site = AddressSpace { sector_bytes: 512, capacity_sectors: capacity, streams, align_bytes };
                let mut address = Address::new(&spec, "a", site).unwrap();
                let longest = address.longest();
                prop_assert!(longest >= 1 && longest <= capacity);
                for i in 0..50 {
                    let mut rng = Seed::new(seed).child(i).draws();
                    // Half of the requests of any length, half of the longest.
                    let sectors = if i % 2 == 0 { longest } else { 1 + (rng.unit() * share * longest as f64) as u64 };
                    // One that goes on may be as long as the one before instead.
                    let placed = place(&mut address, &mut rng, sectors.min(longest), i as u32 % streams);
                    prop_assert!(placed.end() <= capacity, "{spec:?} {placed} of {sectors} in {capacity}");
                }
            }
        }
    }

    #[test]
    fn lengths_are_checked_with_their_key() {
        let at = |spec: AddressSpec, site| Address::new(&spec, "w.address", site).unwrap_err().key;
        for align_bytes in [700, 512 * 101] {
            let site = AddressSpace { align_bytes: Some(align_bytes), ..site(100) };
            assert_eq!(at(AddressSpec::Uniform {}, site), "workload.align");
        }
        let key = |spec| at(spec, site(100));
        assert_eq!(key(AddressSpec::Zipf { theta: 0.0 }), "w.address.theta");
        assert_eq!(key(AddressSpec::Strided { stride_bytes: 0 }), "w.address.stride");
        let hot = |weights| AddressSpec::HotMembers { weights, chunk_bytes: 512 * 40 };
        assert_eq!(key(hot(vec![])), "w.address.weights");
        assert_eq!(key(hot(vec![1.0; 3])), "w.address.chunk");
        assert_eq!(key(AddressSpec::AlignedStripe { stripe_bytes: 1536, chunk_bytes: 1024 }), "w.address.stripe");
    }
}
