//! Several readers at once: one thread each, each with its own sequence of files.
//!
//! Purpose: the time a file takes when 1, 2, ... n others are being read. All start together. Every start of a file
//! takes a ticket: the first ones are warm-up, the next count, and then no more are given. So the numbers of both are
//! exact, however fast each reader is.
//!
//! Invariants:
//! - A file begun is read to its end and counts, unless the run is stopped; then those in flight are dropped.
//! - The first error stops all readers; what they have measured stays.

use super::config::FilesMeasure;
use super::content::FileCheck;
use super::fill::SECTOR_BYTES;
use super::read::{read_file, FileToRead};
use super::result::{ReadRecord, ReadResult};
use crate::config::{OnProgress, RunProgress, RunStage};
use crate::content::ContentReport;
use crate::error::LiveError;
use crate::io::Clock;
use crate::memory::MemoryMapping;
use crate::workers::run_watched;
use raidlab_load::files::plan::Sequence;
use raidlab_types::number::{f64_from, saturating_u64, u32_from, usize_from};
use raidlab_types::Duration;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};

/// What all readers share.
struct ReadRun<'a> {
    files: &'a [FileToRead],
    clock: Clock,
    tickets: AtomicU64,
    warmup: u64,
    /// Tickets beyond this are not given.
    last_ticket: u64,
    limit_ns: u64,
    /// When the first file that counts was begun, plus one; 0 before.
    opened_ns: AtomicU64,
    stop: AtomicBool,
    failure: Mutex<Option<LiveError>>,
    barrier: Barrier,
}

/// How long to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadLimits {
    pub warmup_files: u64,
    pub measure: FilesMeasure,
    /// All that there is to read, where it ends by itself.
    pub available: Option<u64>,
}

/// One who reads: what, into which memory, and what it compares.
pub(super) struct ListReader<'a> {
    pub sequence: Sequence,
    pub buffer: MemoryMapping,
    pub check: Option<FileCheck<'a>>,
}

/// Reads with one thread a reader; the report is of what was compared.
pub(super) fn run(
    files: &[FileToRead],
    readers: Vec<ListReader<'_>>,
    limits: ReadLimits,
    clock: Clock,
    observer: OnProgress<'_>,
) -> (ReadResult, ContentReport, Result<ControlFlow<()>, LiveError>) {
    let shared = ReadRun {
        files,
        clock,
        tickets: AtomicU64::new(0),
        warmup: limits.warmup_files,
        last_ticket: limits.measure.files.map_or(u64::MAX, |n| limits.warmup_files.saturating_add(n)),
        limit_ns: limits.measure.duration_s.map_or(u64::MAX, |s| saturating_u64(s * 1e9)),
        opened_ns: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        failure: Mutex::new(None),
        barrier: Barrier::new(readers.len()),
    };
    let mut outcome = ControlFlow::Continue(());
    let shared_ref = &shared;
    let numbered = readers.into_iter().enumerate();
    let works = numbered.map(|(number, reader)| move || shared_ref.read(u32_from(number), reader)).collect();
    let done = run_watched(works, &mut || {
        if outcome.is_continue() && observer(shared.progress(&limits)).is_break() {
            outcome = ControlFlow::Break(());
            shared.stop.store(true, Ordering::Relaxed);
        }
    });
    let mut content = ContentReport::of_sectors(usize_from(SECTOR_BYTES));
    let mut records = Vec::new();
    for (of_reader, report) in done {
        records.extend(of_reader);
        content.merge(&report.unwrap_or_default());
    }
    let warmup = shared.tickets.load(Ordering::Relaxed).min(shared.warmup);
    let failure = shared.failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    (ReadResult::of(records, warmup), content, failure.map_or(Ok(outcome), Err))
}

impl ReadRun<'_> {
    fn read(&self, number: u32, reader: ListReader<'_>) -> (Vec<ReadRecord>, Option<ContentReport>) {
        let ListReader { sequence, mut buffer, mut check } = reader;
        let mut records = Vec::with_capacity(1024);
        self.barrier.wait();
        for file in sequence {
            let Some(ticket) = self.ticket() else { break };
            let wanted = &self.files[file as usize];
            match read_file((number, file), wanted, &mut buffer, check.as_mut(), self.clock, &|| self.stopped()) {
                Ok(Some(record)) if ticket >= self.warmup => records.push(record),
                Ok(_) => {}
                Err(error) => self.fail(error),
            }
        }
        (records, check.map(FileCheck::into_report))
    }

    /// Leave to begin a file, with its number.
    fn ticket(&self) -> Option<u64> {
        if self.stopped() {
            return None;
        }
        let opened = self.opened_ns.load(Ordering::Relaxed);
        let now = self.clock.now().as_ns();
        if opened > 0 && now.saturating_sub(opened - 1) >= self.limit_ns {
            return None;
        }
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        if ticket >= self.last_ticket {
            return None;
        }
        if ticket >= self.warmup {
            // Whoever is first; a neighbour may already have been.
            let _ = self.opened_ns.compare_exchange(0, now + 1, Ordering::Relaxed, Ordering::Relaxed);
        }
        Some(ticket)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn fail(&self, error: LiveError) {
        // The first cause is the one worth telling.
        self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    fn progress(&self, limits: &ReadLimits) -> RunProgress {
        let begun = self.tickets.load(Ordering::Relaxed);
        let now = self.clock.now();
        let wanted = limits.measure.files.map(|n| n + limits.warmup_files).into_iter().chain(limits.available).min();
        let by_count = wanted.map_or(0.0, |n| f64_from(begun) / f64_from(n.max(1)));
        let opened = self.opened_ns.load(Ordering::Relaxed);
        let measured = if opened > 0 { now.as_ns().saturating_sub(opened - 1) } else { 0 };
        let by_time = if self.limit_ns < u64::MAX { f64_from(measured) / f64_from(self.limit_ns.max(1)) } else { 0.0 };
        let fraction = by_count.max(by_time).min(1.0);
        let elapsed = Duration::from_ns(now.as_ns());
        RunProgress { stage: RunStage::Running, fraction, requests: begun, elapsed }
    }
}
