//! What happens at the engine's edges, told on standard error to whoever asks for it.

use pyo3::prelude::*;
use tracing::level_filters::LevelFilter;

/// From here on the engine tells on standard error what it opens, refuses, tries again and falls back from, down to this
/// level. False where there is no such level, or where somebody has said before where it goes.
#[pyfunction]
pub(crate) fn log_to_stderr(level: &str) -> bool {
    let Ok(level) = level.parse::<LevelFilter>() else { return false };
    let lines = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_ansi(false);
    // Where standard error is closed, nobody reads that either.
    lines.log_internal_errors(false).try_init().is_ok()
}
