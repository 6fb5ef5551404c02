//! What is wrong with a load, and where: checks that several kinds share.
//!
//! Purpose: a key is its path from the root of the cell; messages end with what is accepted, and most of them are made here,
//! so that the wording is the same everywhere.
//!
//! Invariant: validation happens when a load is built, never while it runs.

use crate::draw::WeightTable;
use crate::load::MOST_IN_FLIGHT;
use raidlab_types::number::f64_from;
pub use raidlab_types::SpecError;

/// `parent.name`, or `name` alone at the root.
pub(crate) fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() {
        name.to_owned()
    } else {
        format!("{parent}.{name}")
    }
}

/// A finite number above zero.
pub(crate) fn positive(parent: &str, name: &str, value: f64) -> Result<f64, SpecError> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(SpecError::new(join(parent, name), format!("{value}; accepted: a finite number above 0")))
}

/// A number of bytes that is at least one sector and a whole number of them; returned in sectors.
pub(crate) fn whole_sectors(parent: &str, name: &str, bytes: u64, sector_bytes: u32) -> Result<u64, SpecError> {
    let sector = u64::from(sector_bytes);
    if bytes > 0 && bytes.is_multiple_of(sector) {
        return Ok(bytes / sector);
    }
    let message = format!("{bytes} bytes are not whole sectors; accepted: a multiple of {sector} bytes");
    Err(SpecError::new(join(parent, name), message))
}

/// A count of at least one.
pub(crate) fn at_least_one(parent: &str, name: &str, value: u32) -> Result<u32, SpecError> {
    if value > 0 {
        return Ok(value);
    }
    Err(SpecError::new(join(parent, name), "0; accepted: at least 1"))
}

/// A number in flight at once: at least one, and no more than anything here can bear.
pub(crate) fn depth(parent: &str, name: &str, value: u32) -> Result<u32, SpecError> {
    if (1..=MOST_IN_FLIGHT).contains(&value) {
        return Ok(value);
    }
    Err(SpecError::new(join(parent, name), format!("{value}; accepted: 1 to {MOST_IN_FLIGHT}")))
}

/// A mean size that some request of this volume can have; returned in sectors, as a fraction.
pub(crate) fn mean_sectors(
    parent: &str,
    mean_bytes: f64,
    sector_bytes: u32,
    longest_sectors: u64,
) -> Result<f64, SpecError> {
    let mean = positive(parent, "mean", mean_bytes)? / f64::from(sector_bytes);
    if mean >= 1.0 && mean <= f64_from(longest_sectors) {
        return Ok(mean);
    }
    let most = longest_sectors * u64::from(sector_bytes);
    let what = if mean < 1.0 { "less than one sector" } else { "more than the longest request possible" };
    let message = format!("{mean_bytes} bytes are {what}; accepted: {sector_bytes} to {most} bytes");
    Err(SpecError::new(join(parent, "mean"), message))
}

/// Weights that are finite, not negative and not all zero.
pub(crate) fn weighted(parent: &str, name: &str, weights: &[f64]) -> Result<WeightTable, SpecError> {
    WeightTable::new(weights).ok_or_else(|| {
        let message = "no weights to draw by; accepted: finite numbers of at least 0, at least one of them above 0";
        SpecError::new(join(parent, name), message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_key_and_the_value() {
        let error = positive("load.arrival", "rate_per_s", -1.0).unwrap_err();
        assert_eq!(error.to_string(), "load.arrival.rate_per_s: -1; accepted: a finite number above 0");
        assert_eq!(whole_sectors("", "bytes", 1000, 512).unwrap_err().key, "bytes");
        assert_eq!(whole_sectors("", "bytes", 1024, 512), Ok(2));
        assert!(at_least_one("address", "streams", 0).is_err());
        assert_eq!(depth("load", "depth", 1 << 16), Ok(1 << 16));
        for bad in [0, (1 << 16) + 1, u32::MAX] {
            assert_eq!(depth("load", "depth", bad).unwrap_err().key, "load.depth");
        }
    }

    #[test]
    fn a_mean_lies_between_one_sector_and_the_longest_request() {
        assert!(mean_sectors("s", 511.0, 512, 10).is_err());
        assert!(mean_sectors("s", 512.0 * 11.0, 512, 10).is_err());
        assert_eq!(mean_sectors("s", 768.0, 512, 10), Ok(1.5));
        assert!(mean_sectors("s", f64::NAN, 512, 10).is_err());
    }

    #[test]
    fn weights_are_checked() {
        for bad in [&[][..], &[0.0, 0.0], &[-1.0, 2.0], &[f64::INFINITY]] {
            assert_eq!(weighted("size", "weights", bad).unwrap_err().key, "size.weights");
        }
        assert!(weighted("size", "weights", &[0.0, 1.0]).is_ok());
    }
}
