//! One error for all that a caller can get wrong: a sentence, and the key at fault.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(_core, CellError, PyException, "Bad input or a failed run; `key` is the JSON path at fault.");

/// Builds a `CellError` about bad input.
pub(crate) fn cell_error(py: Python<'_>, key: &str, message: &str) -> PyErr {
    typed_error(py, key, message, "bad_input")
}

/// Builds a `CellError` with its `key`, `message` and `kind` (bad_input, refused, unsupported, io).
pub(crate) fn typed_error(py: Python<'_>, key: &str, message: &str, kind: &str) -> PyErr {
    let text = if key.is_empty() { message.to_owned() } else { format!("{key}: {message}") };
    let error = CellError::new_err(text);
    let value = error.value(py);
    // Setting an attribute of an exception instance fails only when memory is out; the text carries both anyway.
    let _ = value.setattr("key", key);
    let _ = value.setattr("message", message);
    let _ = value.setattr("kind", kind);
    error
}

/// What serde says, in the words of our own errors. The text is one line that nobody has written: where in it is of no use.
fn plain(told: &str) -> String {
    let told = told.split(" at line ").next().unwrap_or(told);
    match told.strip_prefix("unknown variant `").and_then(|rest| rest.split_once("`, expected ")) {
        Some((_, known)) => {
            format!("is not known here; accepted: {}", known.trim_start_matches("one of ").replace('`', ""))
        }
        None => told.to_owned(),
    }
}

/// Reads JSON text into `T`; an error names the key.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(py: Python<'_>, place: &str, text: &str) -> PyResult<T> {
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut reader).map_err(|e| {
        let path = e.path().to_string();
        let key = match (place, path.as_str()) {
            ("", path) => path.to_owned(),
            (place, "." | "") => place.to_owned(),
            (place, path) => format!("{place}.{path}"),
        };
        cell_error(py, &key, &plain(&e.inner().to_string()))
    })
}
