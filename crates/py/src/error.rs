//! One error for all that a caller can get wrong: a sentence, and the key at fault.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use raidlab_live::LiveError;
use raidlab_types::SpecError;

create_exception!(_core, CellError, PyException, "Bad input or a failed run; `key` is the JSON path at fault.");

/// Builds a `CellError` about bad input.
pub(crate) fn cell_error(key: &str, message: impl AsRef<str>) -> PyErr {
    typed_error(key, message.as_ref(), "bad_input")
}

/// The error about a specification that makes no sense.
pub(crate) fn spec_error(error: SpecError) -> PyErr {
    cell_error(&error.key, error.message)
}

/// The error of a run on the real clock.
pub(crate) fn live_error(error: LiveError) -> PyErr {
    let kind = match error {
        LiveError::BadInput { .. } => "bad_input",
        LiveError::Refused { .. } => "refused",
        LiveError::Unsupported { .. } => "unsupported",
        LiveError::Io { .. } => "io",
    };
    typed_error(error.key(), &error.message(), kind)
}

/// Builds a `CellError` with its `key`, `message` and `kind` (bad_input, refused, unsupported, io).
fn typed_error(key: &str, message: &str, kind: &str) -> PyErr {
    let text = if key.is_empty() { message.to_owned() } else { format!("{key}: {message}") };
    let error = CellError::new_err(text);
    Python::attach(|py| {
        for (name, value) in [("key", key), ("message", message), ("kind", kind)] {
            // Setting an attribute of an exception fails only when memory is out; the text says most of it anyway.
            let _ = error.value(py).setattr(name, value);
        }
    });
    error
}

/// Reads JSON text into `T`; an error names the key.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(place: &str, text: &str) -> PyResult<T> {
    raidlab_cell::from_json(place, text).map_err(spec_error)
}
