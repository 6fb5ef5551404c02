//! Whole files: opening and reading them through a file system, one after another, by one reader or many.
//!
//! Purpose: the question of file retrieval: how long does a program wait for a file, and how much longer when others read
//! at the same time? Files are made (which is measured too) or given; each reading is recorded.
//!
//! Order: check what can be checked, claim the directories (the safety rules speak here), plan, write, empty the page
//! cache, read. So bad input costs nothing.
//!
//! Invariants:
//! - Only files that raidlab made are written or removed (`set`); given files are only read.
//! - No file is timed from the page cache without its record saying so.
//! - What was measured is kept, whatever ends the run.
//!
//! Code map: `config` what is asked, `set` raidlab's own subdirectory, `place` looks at file systems, `fill`
//! writes, `read` reads one file, `readers` many, `content` compares, `result` what came of it. Which files there are and who reads them is
//! [`raidlab_load::files::plan`], for both clocks.
//!
//! Reference: the workload of J. Hauser et al., file retrieval from disk arrays, 1996: mean time of one file alone, and
//! what each further process adds.

mod config;
mod content;
mod fill;
mod place;
mod read;
mod readers;
mod result;
mod set;

pub use config::{BlockBytes, FileSource, FilesConfig, FilesMeasure, FilesWarmup, IoMode, SyncRule};
pub use raidlab_load::files::{Numbers, Order};
pub use result::{DirectoryFacts, FilesResult, FillRecord, FillResult, ReadRecord, ReadResult, CACHE_UNKNOWN};

use crate::begin;
use crate::config::{ByteProgress, OnProgress, RunStage};
use crate::content::{not_compared, Verify};
use crate::directory::open_regular;
use crate::error::{plain, LiveError};
use crate::io::Clock;
use crate::memory::MemoryMapping;
use crate::page_cache;
use crate::target::direct::{self, Access};
use content::FileCheck;
use fill::{sectors_of, Filler, PlannedFile};
use place::{buffers, check_room, choose, empty_cache, facts_of};
use raidlab_load::files::plan::{self, FileAmount, Sequence};
use raidlab_types::number::u32_from;
use raidlab_types::Seed;
use read::FileToRead;
use readers::{ListReader, ReadLimits};
use set::Set;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most readers: each is a thread.
const MOST_READERS: u32 = 4096;
/// Longest read call that the system carries out in one piece.
const LONGEST_CALL: u64 = 0x7fff_f000;

/// Runs a cell. `observer` is told of progress about seven times a second, and may end the run with what it has.
///
/// # Errors
/// Before anything is measured: bad input, a refusal of the safety rules, something this system lacks. What fails later
/// is in [`FilesResult::stopped_by`], beside what was measured.
pub fn run(config: &FilesConfig, observer: OnProgress<'_>) -> Result<FilesResult, LiveError> {
    check(config)?;
    begin::check(config.begin_at_unix_ns)?;
    match &config.files {
        FileSource::Made { .. } => run_made(config, observer),
        FileSource::List { paths } => run_list(config, paths, observer),
    }
}

fn check(config: &FilesConfig) -> Result<(), LiveError> {
    if config.readers > MOST_READERS {
        return Err(LiveError::bad("readers", format!("{} must be at most {MOST_READERS}", config.readers)));
    }
    if config.lists == 0 || (config.lists > 1 && config.lists < config.readers) {
        let message = format!("{} must be 1, or at least one a reader ({})", config.lists, config.readers);
        return Err(LiveError::bad("lists", message));
    }
    if let BlockBytes::Bytes(bytes) = config.block_bytes {
        if bytes == 0 || bytes > LONGEST_CALL || (config.io != IoMode::Buffered && bytes % 512 != 0) {
            let message = format!("{bytes} must be a multiple of 512 (or \"io\": \"buffered\"), and at most 2 GiB");
            return Err(LiveError::bad("block_bytes", message));
        }
    }
    let FilesMeasure { files, duration_s } = config.measure;
    if duration_s.is_some_and(|s| !(s.is_finite() && s > 0.0)) {
        return Err(LiveError::bad("measure.duration", "must be a finite number above 0"));
    }
    if files == Some(0) {
        return Err(LiveError::bad("measure.files", "0 must be at least 1"));
    }
    if config.readers > 0 && config.order != Order::Once && files.is_none() && duration_s.is_none() {
        let message = "give files or a duration: only \"order\": \"once\" ends by itself";
        return Err(LiveError::bad("measure", message));
    }
    if config.drop_caches {
        page_cache::may_drop_everything().map_err(|e| LiveError::Unsupported {
            key: "drop_caches".into(),
            message: format!("the kernel's caches cannot be dropped here: {}", plain(&e)),
        })?;
    }
    Ok(())
}

/// Files of raidlab's own: planned, written unless they are there, read.
fn run_made(config: &FilesConfig, observer: OnProgress<'_>) -> Result<FilesResult, LiveError> {
    let FileSource::Made { directories, sizes, numbers, count, total_bytes, sync, keep } = &config.files else {
        unreachable!("the caller looked")
    };
    let seed = Seed::new(config.seed).named("files");
    let sizes = plan::sizes(sizes, "files.sizes", *numbers, FileAmount::of(*count, *total_bytes)?, seed)?;
    if directories.is_empty() {
        return Err(LiveError::bad("files.directories", "name at least one"));
    }
    let mut sets: Vec<Set> = Vec::with_capacity(directories.len());
    for (i, directory) in directories.iter().enumerate() {
        let key = format!("files.directories[{i}]");
        if let Some(twin) = directories[..i].iter().find(|other| is_same(other, directory)) {
            let message = format!("{} is {} once more: each needs its own", directory.display(), twin.display());
            return Err(LiveError::bad(key, message));
        }
        sets.push(Set::claim(directory, &key, *keep)?);
    }
    let directory = plan::deal(&sizes, sets.len(), seed.named("places"));
    let access: Vec<Access> = sets.iter().map(|set| set.access).collect();
    let direct = choose(config, &access, |i| (format!("files.directories[{i}]"), &directories[i]))?;
    let mut buffers = buffers(config, &sizes)?;

    let files = planned(&sizes, &directory);
    let missing = missing(config.seed, &mut sets, &files)?;
    check_room(directories, &missing)?;
    let mut result = FilesResult { size_bytes: sizes.clone(), directory, ..FilesResult::default() };
    result.directories = directories.iter().zip(&direct).map(|(path, &direct)| facts_of(path, direct, true)).collect();
    if !missing.is_empty()
        && !fill(config, &mut sets, &direct, &missing, (*sync, &mut buffers[0]), &mut result, observer)
    {
        return Ok(result);
    }
    for set in &mut sets {
        if !result.goes_on(set.write_marker(true).map(ControlFlow::Continue)) {
            return Ok(result);
        }
    }
    let readable = |file: &PlannedFile| FileToRead {
        path: sets[file.set as usize].file(file.number),
        size_bytes: file.size_bytes,
        direct: direct[file.set as usize],
        key: format!("files.directories[{}]", file.set),
    };
    let readables: Vec<FileToRead> = files.iter().map(readable).collect();
    let first_sectors: Vec<u64> = files.iter().map(|file| file.first_sector).collect();
    read(config, &readables, &first_sectors, buffers, &mut result, observer);
    Ok(result)
}

/// Files of others: only read.
fn run_list(config: &FilesConfig, paths: &[PathBuf], observer: OnProgress<'_>) -> Result<FilesResult, LiveError> {
    if paths.is_empty() {
        return Err(LiveError::bad("files.paths", "name at least one file"));
    }
    let mut result = FilesResult::default();
    let mut readables: Vec<FileToRead> = Vec::with_capacity(paths.len());
    // By directory, in order of appearance: what was found on its first file.
    let mut known: Vec<(PathBuf, bool)> = Vec::new();
    for (i, path) in paths.iter().enumerate() {
        let key = format!("files.paths[{i}]");
        let bad = |text: String| LiveError::bad(key.clone(), format!("{}: {text}", path.display()));
        let status = std::fs::metadata(path).map_err(|e| bad(plain(&e)))?;
        if !status.is_file() {
            return Err(bad("not a regular file".into()));
        }
        let parent = path.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf);
        let at = match known.iter().position(|(directory, _)| *directory == parent) {
            Some(at) => at,
            None => {
                let file = open_regular(path).map_err(|e| bad(plain(&e)))?;
                let direct = choose(config, &[direct::enable(&file, false)], |_| (key.clone(), path))?[0];
                result.directories.push(facts_of(&parent, direct, false));
                known.push((parent, direct));
                known.len() - 1
            }
        };
        result.size_bytes.push(status.len());
        result.directory.push(u32_from(at));
        readables.push(FileToRead { path: path.clone(), size_bytes: status.len(), direct: known[at].1, key });
    }
    let buffers = buffers(config, &result.size_bytes)?;
    read(config, &readables, &[], buffers, &mut result, observer);
    Ok(result)
}

fn is_same(one: &Path, other: &Path) -> bool {
    let numbers = |path: &Path| std::fs::metadata(path).ok().map(|status| (status.dev(), status.ino()));
    numbers(one).is_some_and(|found| numbers(other) == Some(found))
}

fn planned(sizes: &[u64], directory: &[u32]) -> Vec<PlannedFile> {
    let mut next = 0;
    let one = |(number, (&size_bytes, &set)): (usize, (&u64, &u32))| {
        let first_sector = next;
        next += sectors_of(size_bytes);
        PlannedFile { number: u32_from(number), size_bytes, set, first_sector }
    };
    sizes.iter().zip(directory).enumerate().map(one).collect()
}

/// The files that are not there already, in order; sets of an earlier run that differ are emptied.
fn missing(seed: u64, sets: &mut [Set], files: &[PlannedFile]) -> Result<Vec<PlannedFile>, LiveError> {
    for (i, set) in sets.iter_mut().enumerate() {
        let of_set = files.iter().filter(|file| file.set as usize == i);
        set.prepare(set::identity(seed, of_set.map(|f| (f.number, f.size_bytes, f.first_sector))))?;
    }
    let is_there = |file: &PlannedFile| {
        let set = &sets[file.set as usize];
        let found = std::fs::symlink_metadata(set.file(file.number));
        set.complete && found.is_ok_and(|status| status.is_file() && status.len() == file.size_bytes)
    };
    let missing: Vec<PlannedFile> = files.iter().filter(|file| !is_there(file)).copied().collect();
    for file in &missing {
        sets[file.set as usize].begin_again(file.number)?;
    }
    Ok(missing)
}

/// Writes what is missing; whether the run goes on.
fn fill(
    config: &FilesConfig,
    sets: &mut [Set],
    direct: &[bool],
    missing: &[PlannedFile],
    (sync, buffer): (SyncRule, &mut MemoryMapping),
    result: &mut FilesResult,
    observer: OnProgress<'_>,
) -> bool {
    // Several machines that only write do it at one time.
    if config.readers == 0 && !result.goes_on(Ok(begin::wait(config.begin_at_unix_ns, observer))) {
        return false;
    }
    let total = missing.iter().map(|file| file.size_bytes).sum();
    let mut progress = ByteProgress::new(RunStage::Filling, total, observer);
    let clock = Clock::start();
    if config.readers == 0 {
        result.began_unix_ns = begin::began_unix_ns_of(clock);
    }
    let mut filler = Filler { sets, direct, seed: config.seed, sync, buffer, clock };
    let mut filled = FillResult { records: Vec::with_capacity(missing.len()), ..FillResult::default() };
    let outcome = filler.write_all(missing, &mut filled, &mut |bytes| progress.add(bytes));
    filled.elapsed_ns = clock.now().as_ns();
    result.fill = Some(filled);
    result.goes_on(outcome)
}

/// Empties the page cache of the files, then lets the readers read. `first_sectors`, by file, where raidlab wrote them.
fn read(
    config: &FilesConfig,
    files: &[FileToRead],
    first_sectors: &[u64],
    buffers: Vec<MemoryMapping>,
    result: &mut FilesResult,
    observer: OnProgress<'_>,
) {
    if config.readers == 0 {
        return;
    }
    if !result.goes_on(empty_cache(config, files, observer)) {
        return;
    }
    let seed = Seed::new(config.seed).named("files");
    let sizes: Vec<u64> = files.iter().map(|file| file.size_bytes).collect();
    let lists = plan::lists(&sizes, config.lists as usize, seed);
    let list_of = |reader: usize| &lists[reader % lists.len()];
    let sequence =
        |reader: usize| Sequence::new(list_of(reader), config.order, seed.named("readers").child(reader as u64));
    let available = (config.order == Order::Once)
        .then(|| (0..config.readers as usize).map(|reader| list_of(reader).len() as u64).sum());
    let limits = ReadLimits { warmup_files: config.warmup.files, measure: config.measure, available };
    let reader = |(i, buffer): (usize, MemoryMapping)| ListReader {
        sequence: sequence(i),
        buffer,
        check: FileCheck::new(config.verify, config.seed, u32_from(i), first_sectors),
    };
    if !result.goes_on(Ok(begin::wait(config.begin_at_unix_ns, observer))) {
        return;
    }
    let readers = buffers.into_iter().skip(1).enumerate().map(reader).collect();
    let clock = Clock::start();
    let (found, compared, outcome) = readers::run(files, readers, limits, clock, observer);
    if let Some(first) = found.records.first() {
        result.began_unix_ns = begin::began_unix_ns_of(clock) + first.start_ns;
    }
    result.read = found;
    result.content = Some(match (config.verify, first_sectors) {
        (Verify::Off, _) => not_compared("it was switched off", "Leave --verify off away."),
        (_, []) => not_compared("raidlab did not write these files", "Name a directory, in which raidlab makes files."),
        _ => compared.check(&|file| files[file as usize].path.display().to_string()),
    });
    result.goes_on(outcome);
}
