//! Which backend runs.
//!
//! Purpose: decide once per process and say what was decided. An override that cannot be honoured stops the program:
//! a test or a benchmark that asked for one backend must never silently measure another.

use crate::engine::{Backend, Kernels};
use std::sync::OnceLock;

type Choice = (Backend, &'static Kernels);

/// The environment variable that overrides the choice.
const OVERRIDE: &str = "RAIDLAB_PARITY";

/// The backends that this processor and build can run, slowest first.
pub fn available() -> Vec<Backend> {
    Backend::ALL.iter().copied().filter(|backend| backend.is_available()).collect()
}

/// The backend that [`xor_raw`](crate::xor_raw) and the others run, chosen at the first call.
///
/// # Panics
/// If `RAIDLAB_PARITY` is set to something that is no backend, or to one that this processor lacks; whoever wants to
/// answer for that asks [`try_backend`] first.
pub fn backend() -> Backend {
    chosen().0
}

/// The same; what is wrong with `RAIDLAB_PARITY` and what is accepted is the error.
///
/// # Errors
/// If it is set to something that is no backend, or to one that this processor lacks.
pub fn try_backend() -> Result<Backend, &'static str> {
    choice().as_ref().map(|choice| choice.0).map_err(String::as_str)
}

/// The kernels of [`backend`].
#[inline]
pub(crate) fn kernels() -> &'static Kernels {
    chosen().1
}

#[inline]
fn chosen() -> Choice {
    *choice().as_ref().unwrap_or_else(|message| panic!("{OVERRIDE}: {message}"))
}

#[inline]
fn choice() -> &'static Result<Choice, String> {
    static CHOICE: OnceLock<Result<Choice, String>> = OnceLock::new();
    CHOICE.get_or_init(|| {
        // What is no text is no name either.
        let named = std::env::var_os(OVERRIDE).map(|name| name.to_string_lossy().into_owned());
        let backend = choose(named.as_deref())?;
        Ok((backend, backend.kernels().expect("only an available backend is chosen")))
    })
}

/// The best backend available, or the one named.
fn choose(named: Option<&str>) -> Result<Backend, String> {
    let available = available();
    let best = *available.last().expect("the naive backend is always available");
    let Some(named) = named.filter(|name| !name.is_empty()) else { return Ok(best) };
    available.iter().copied().find(|backend| backend.name() == named).ok_or_else(|| {
        let names: Vec<_> = available.iter().map(|backend| backend.name()).collect();
        format!("'{named}': is no parity backend of this processor; accepted: {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_chosen_unless_another_is_named() {
        assert_eq!(choose(None), Ok(*available().last().unwrap()));
        assert_eq!(choose(Some("")), choose(None));
        assert_eq!(choose(Some("naive")), Ok(Backend::Naive));
    }

    #[test]
    fn an_unknown_name_is_refused_with_what_there_is() {
        let message = choose(Some("mmx")).unwrap_err();
        assert!(message.contains("mmx") && message.contains("naive, portable"), "{message}");
    }

    #[test]
    fn every_available_backend_has_kernels() {
        assert!(available().iter().all(|backend| backend.kernels().is_some()));
        assert!(available().contains(&backend()));
    }
}
