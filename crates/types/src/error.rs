//! What is wrong with a value that somebody wrote, and where.

/// Bad input: the key at fault and what would be accepted there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct SpecError {
    /// Path of the key in the table that was read, such as `workload.size.mean` or `zones[2].sectors_per_track`.
    pub key: String,
    /// The value found and what would be accepted.
    pub message: String,
}

impl SpecError {
    /// An error at `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        SpecError { key: key.into(), message: message.into() }
    }
}
