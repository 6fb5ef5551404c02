//! What a run over whole files answers.

use crate::error::LiveError;
use crate::result::Check;
use crate::target::{DeviceFacts, FilesystemFacts};
use raidlab_load::Times;
use serde::Serialize;
use std::ops::ControlFlow;

/// What of a file is in the page cache, where that cannot be known.
pub const CACHE_UNKNOWN: u64 = u64::MAX;

/// The record of a run.
#[derive(Debug, Clone, Default)]
pub struct FilesResult {
    /// Size of every file, by number.
    pub size_bytes: Vec<u64>,
    /// Position of every file's directory in `directories`.
    pub directory: Vec<u32>,
    /// What the directories are.
    pub directories: Vec<DirectoryFacts>,
    /// How the files were written, if they were in this run.
    pub fill: Option<FillResult>,
    /// How they were read.
    pub read: ReadResult,
    /// When the first file that counts was begun, by the machine's clock: read, or written where none was; 0 if neither.
    pub began_unix_ns: u64,
    /// Whether the observer stopped it.
    pub interrupted: bool,
    /// Whether the files held what raidlab wrote, where any were read.
    pub content: Option<Check>,
    /// What stopped it before its end, if something did; what was measured till then is here.
    pub stopped_by: Option<LiveError>,
}

impl FilesResult {
    /// Takes note of how a part of the run ended; whether the next may begin.
    pub(super) fn goes_on(&mut self, outcome: Result<ControlFlow<()>, LiveError>) -> bool {
        match outcome {
            Ok(flow) => self.interrupted = flow.is_break(),
            Err(error) => self.stopped_by = Some(error),
        }
        !self.interrupted && self.stopped_by.is_none()
    }
}

/// A directory in which files lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DirectoryFacts {
    /// Where it is.
    pub path: String,
    /// `direct` or `buffered`: how its files are read.
    pub io: &'static str,
    /// The file system it lies in.
    pub filesystem: Option<FilesystemFacts>,
    /// `major:minor` of the file system.
    pub st_dev: Option<String>,
    /// The block device beneath, where there is one.
    pub device: Option<DeviceFacts>,
    /// Whether raidlab made the files.
    pub made_by_raidlab: bool,
}

/// How files were written, one after another.
#[derive(Debug, Clone, Default)]
pub struct FillResult {
    /// One a file, in order.
    pub records: Vec<FillRecord>,
    /// From the first creation to the last end, making the content included.
    pub elapsed_ns: u64,
    /// Time of that in which content was made.
    pub content_ns: u64,
    /// Time of synchronising all at the end, if so asked.
    pub sync_ns: u64,
}

/// The writing of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FillRecord {
    /// Its number.
    pub file: u32,
    /// Its size.
    pub size_bytes: u64,
    /// When it was begun, counted from the beginning of the filling.
    pub start_ns: u64,
    /// Creating and opening it.
    pub create_ns: u64,
    /// All write calls.
    pub write_ns: u64,
    /// Synchronising it.
    pub sync_ns: u64,
    /// All of these and closing it; not the making of its content.
    pub total_ns: u64,
}

/// How files were read.
#[derive(Debug, Clone, Default)]
pub struct ReadResult {
    /// One a file read that counts, in order of the start.
    pub records: Vec<ReadRecord>,
    /// Files that were read before and do not count.
    pub warmup_files: u64,
    /// From the first start to the last end of those that count.
    pub elapsed_ns: u64,
    /// Times of opening.
    pub open: Times,
    /// Times to the first byte (the end of the first read call), opening included.
    pub first_byte: Times,
    /// Times of opening and reading.
    pub total: Times,
}

/// The reading of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRecord {
    /// Who read it.
    pub reader: u32,
    /// Its number.
    pub file: u32,
    /// Its size.
    pub size_bytes: u64,
    /// When it was begun, counted from when the readers started.
    pub start_ns: u64,
    /// Opening.
    pub open_ns: u64,
    /// Opening and the first read call.
    pub first_byte_ns: u64,
    /// Opening and reading all of it.
    pub total_ns: u64,
    /// Bytes that were in the page cache before it was read; [`CACHE_UNKNOWN`] where that cannot be known.
    pub cached_bytes: u64,
}

impl ReadResult {
    /// Builds the histograms from the records.
    pub(super) fn of(mut records: Vec<ReadRecord>, warmup_files: u64) -> ReadResult {
        records.sort_by_key(|r| (r.start_ns, r.reader));
        let mut result = ReadResult { warmup_files, ..ReadResult::default() };
        for r in &records {
            result.open.record(r.open_ns);
            result.first_byte.record(r.first_byte_ns);
            result.total.record(r.total_ns);
        }
        let start = records.first().map_or(0, |r| r.start_ns);
        result.elapsed_ns = records.iter().map(|r| r.start_ns + r.total_ns).max().unwrap_or(0) - start;
        result.records = records;
        result
    }

    /// Bytes of all files read.
    pub fn bytes(&self) -> u64 {
        self.records.iter().map(|r| r.size_bytes).sum()
    }

    /// Files of which something was in the page cache before, and how many bytes that was.
    pub fn cached(&self) -> (u64, u64) {
        let cached = self.records.iter().filter(|r| r.cached_bytes != 0 && r.cached_bytes != CACHE_UNKNOWN);
        cached.fold((0, 0), |(files, bytes), r| (files + 1, bytes + r.cached_bytes))
    }

    /// Files of which nobody can say what was in the page cache.
    pub fn unknown(&self) -> u64 {
        self.records.iter().filter(|r| r.cached_bytes == CACHE_UNKNOWN).count() as u64
    }
}
