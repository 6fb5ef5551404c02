//! What is wrong with a device's parameters.

use raidlab_types::number::saturating_u64;
pub use raidlab_types::SpecError;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// A number within bounds; `unit` is written behind numbers, such as " ms".
pub(crate) fn within<N: Copy + Display + PartialOrd>(
    key: &str,
    value: N,
    bounds: RangeInclusive<N>,
    unit: &str,
) -> Result<N, SpecError> {
    if bounds.contains(&value) {
        return Ok(value);
    }
    let (least, most) = bounds.into_inner();
    Err(SpecError::new(key, format!("{value}{unit} must lie between {least} and {most}{unit}")))
}

/// Milliseconds as whole nanoseconds; refuses what is negative, not a number, or longer than `max_ms`.
pub(crate) fn ms_to_ns(key: &str, ms: f64, max_ms: f64) -> Result<u64, SpecError> {
    Ok(saturating_u64((within(key, ms, 0.0..=max_ms, " ms")? * 1e6).round()))
}

/// The same of microseconds.
pub(crate) fn us_to_ns(key: &str, us: f64, bounds_us: RangeInclusive<f64>) -> Result<u64, SpecError> {
    Ok(saturating_u64((within(key, us, bounds_us, " us")? * 1e3).round()))
}

/// Refuses a sector size that is no power of two from 512 B to 64 KiB.
pub(crate) fn check_sector_bytes(sector_bytes: u32) -> Result<(), SpecError> {
    if sector_bytes.is_power_of_two() && (512..=65_536).contains(&sector_bytes) {
        Ok(())
    } else {
        Err(SpecError::new("sector_bytes", format!("{sector_bytes} must be a power of two from 512 to 65536")))
    }
}

/// Sectors of a device of so many bytes; what does not fill one is not used.
pub(crate) fn whole_sectors(capacity_bytes: u64, sector_bytes: u32) -> Result<u64, SpecError> {
    check_sector_bytes(sector_bytes)?;
    match capacity_bytes / u64::from(sector_bytes) {
        0 => Err(SpecError::new("capacity_bytes", format!("{capacity_bytes} holds no sector of {sector_bytes} bytes"))),
        sectors => Ok(sectors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_key_and_the_value() {
        let error = ms_to_ns("seek.min_ms", -1.0, 100.0).unwrap_err();
        assert_eq!(error.to_string(), "seek.min_ms: -1 ms must lie between 0 and 100 ms");
        assert!(ms_to_ns("x", f64::NAN, 1.0).is_err());
        assert_eq!(ms_to_ns("x", 0.25, 1.0), Ok(250_000));
        assert!(check_sector_bytes(4096).is_ok() && check_sector_bytes(520).is_err());
    }
}
