//! Where records come from.

use super::{Names, Record, TraceError};

/// A trace that is read on: a file behind a [`super::Parser`], or a generator.
pub trait Records {
    /// Appends the next records, in the order of the trace; false where there are no more. It may append none and say true.
    ///
    /// # Errors
    /// What cannot be read, with its place.
    fn fill(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError>;

    /// The volumes met so far: at least those of all records given.
    fn names(&self) -> &Names;

    /// What the trace is called in errors: its file.
    fn file(&self) -> &str;
}

impl<T: Records + ?Sized> Records for Box<T> {
    fn fill(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        (**self).fill(out)
    }

    fn names(&self) -> &Names {
        (**self).names()
    }

    fn file(&self) -> &str {
        (**self).file()
    }
}
