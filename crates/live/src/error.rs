//! What can go wrong with a live run, and where.
//!
//! Purpose: one clear sentence with the key of the cell's JSON text at fault, so that the study file's own key can be
//! named. `Refused` is kept apart from bad input: it is the safety rules speaking, and no value makes it go away but the
//! one it names.

use raidlab_types::SpecError;
use std::io;

/// Why a live run did not start, or stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LiveError {
    /// A value that makes no sense, or not here.
    #[error("{key}: {message}")]
    BadInput {
        /// JSON path from the root of the cell.
        key: String,
        /// The value found and what would be accepted.
        message: String,
    },
    /// Writing would endanger what is not raidlab's.
    #[error("{key}: {message}")]
    Refused {
        /// JSON path from the root of the cell.
        key: String,
        /// What stands there, and what would be accepted, if anything.
        message: String,
    },
    /// This system lacks what the run needs.
    #[error("{key}: {message}")]
    Unsupported {
        /// JSON path from the root of the cell.
        key: String,
        /// What is missing.
        message: String,
    },
    /// A target failed in a way that is no member's failure, or that the array does not bear.
    #[error("{key}: {target}: {message}")]
    Io {
        /// JSON path from the root of the cell.
        key: String,
        /// The target's path, or what it is.
        target: String,
        /// The system's error number; 0 where there is none.
        errno: i32,
        /// What was being done and what the system said.
        message: String,
    },
}

impl LiveError {
    /// JSON path of the value at fault, from the root of the cell.
    pub fn key(&self) -> &str {
        match self {
            LiveError::BadInput { key, .. }
            | LiveError::Refused { key, .. }
            | LiveError::Unsupported { key, .. }
            | LiveError::Io { key, .. } => key,
        }
    }

    /// The sentence without the key.
    pub fn message(&self) -> String {
        match self {
            LiveError::BadInput { message, .. }
            | LiveError::Refused { message, .. }
            | LiveError::Unsupported { message, .. } => message.clone(),
            LiveError::Io { target, message, .. } => format!("{target}: {message}"),
        }
    }

    /// The same, of something that stands at `place` in the cell.
    pub(crate) fn below(self, place: &str) -> LiveError {
        self.at(|key| format!("{place}.{key}"))
    }

    /// The same under another key.
    pub(crate) fn at(mut self, new_key: impl FnOnce(&str) -> String) -> LiveError {
        let (LiveError::BadInput { key, .. }
        | LiveError::Refused { key, .. }
        | LiveError::Unsupported { key, .. }
        | LiveError::Io { key, .. }) = &mut self;
        *key = new_key(key);
        self
    }

    pub(crate) fn bad(key: impl Into<String>, message: impl Into<String>) -> LiveError {
        LiveError::BadInput { key: key.into(), message: message.into() }
    }

    pub(crate) fn refused(key: impl Into<String>, message: impl Into<String>) -> LiveError {
        LiveError::Refused { key: key.into(), message: message.into() }
    }

    pub(crate) fn io(key: impl Into<String>, target: impl Into<String>, doing: &str, error: &io::Error) -> LiveError {
        LiveError::Io {
            key: key.into(),
            target: target.into(),
            errno: error.raw_os_error().unwrap_or(0),
            message: format!("{doing}: {}", plain(error)),
        }
    }
}

/// The system's sentence without "(os error 28)".
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error") {
        Some(at) => text[..at].to_string(),
        None => text,
    }
}

impl From<SpecError> for LiveError {
    fn from(error: SpecError) -> Self {
        LiveError::BadInput { key: error.key, message: error.message }
    }
}
