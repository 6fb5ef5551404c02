//! The requests of a trace, and where they come from.

use super::{Names, Parser, TraceError};
use raidlab_types::RequestKind;

/// A request as it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The line of the file it stands in, from 1.
    pub line: u64,
    /// When it was issued, in nanoseconds since the trace's own zero.
    pub time_ns: u64,
    /// Which volume: its number in [`super::Names`], in order of first appearance.
    pub volume: u32,
    /// Read or write.
    pub kind: RequestKind,
    /// Where it begins.
    pub offset_bytes: u64,
    /// How long it is; never 0, at most 4 GiB, and its end is within 64 bits.
    pub bytes: u64,
    /// How long it took where it was recorded, if the trace says so.
    pub response_ns: Option<u64>,
}

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

/// The records of a text that is there already, in blocks of any length.
#[derive(Debug)]
pub struct Text<B> {
    /// Reads the blocks.
    pub parser: Parser,
    /// What is left of the text.
    pub blocks: B,
}

impl<B: Iterator<Item = Vec<u8>>> Records for Text<B> {
    fn fill(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        match self.blocks.next() {
            Some(block) => self.parser.feed(&block, out).map(|()| true),
            None => self.parser.finish(out).map(|()| false),
        }
    }

    fn names(&self) -> &Names {
        self.parser.names()
    }

    fn file(&self) -> &str {
        self.parser.file()
    }
}
