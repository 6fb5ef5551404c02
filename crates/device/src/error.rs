//! What is wrong with a device's parameters.

use raidlab_types::number::saturating_u64;

/// A parameter that cannot be used, named by its key in the file, and what would be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct DeviceError {
    /// Path of the parameter within the device's own table, such as `zones[2].sectors_per_track`.
    pub key: String,
    /// The value found and what would be accepted.
    pub message: String,
}

impl DeviceError {
    /// The parameter `key` is wrong, as `message` says.
    pub(crate) fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        DeviceError { key: key.into(), message: message.into() }
    }
}

/// Milliseconds as whole nanoseconds; refuses what is negative, not a number, or longer than `max_ms`.
pub(crate) fn ms_to_ns(key: &str, ms: f64, max_ms: f64) -> Result<u64, DeviceError> {
    if (0.0..=max_ms).contains(&ms) {
        Ok(saturating_u64((ms * 1e6).round()))
    } else {
        Err(DeviceError::new(key, format!("{ms} ms must lie between 0 and {max_ms} ms")))
    }
}

/// Refuses a sector size that is no power of two from 512 B to 64 KiB.
pub(crate) fn check_sector_bytes(sector_bytes: u32) -> Result<(), DeviceError> {
    if sector_bytes.is_power_of_two() && (512..=65_536).contains(&sector_bytes) {
        Ok(())
    } else {
        Err(DeviceError::new("sector_bytes", format!("{sector_bytes} must be a power of two from 512 to 65536")))
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
