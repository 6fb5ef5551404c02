//! What can be wrong with a simulation's configuration, and where.

use raidlab_types::SpecError as DeviceError;
use raidlab_load::LoadError;

/// Bad input: the key path at fault (as in a cell's JSON text) and what would be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct SimError {
    /// JSON path from the root of the cell.
    pub key: String,
    /// The value found and what would be accepted.
    pub message: String,
}

impl SimError {
    pub(crate) fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        SimError { key: key.into(), message: message.into() }
    }

    pub(crate) fn device(index: usize, error: DeviceError) -> Self {
        SimError::new(format!("members[{index}].{}", error.key), error.message)
    }
}

impl From<LoadError> for SimError {
    fn from(error: LoadError) -> Self {
        SimError { key: error.key, message: error.message }
    }
}
