//! Readers of whole files, their host and its file system, on a clock that is told.
//!
//! Purpose: the load of an array whose clients read files. A reader opens a file (host work; the inode's block, unless the
//! host has it), then takes it in cluster by cluster (host work), asking for the next ones before it needs them; an indirect
//! block on the way is waited for before what is behind it can be asked for. The change of the inode is written later, at
//! nobody's cost but the array's.
//!
//! The driver's order at each event: [`Generator::handle_done`] and [`Generator::handle_work_done`] for what has ended, then
//! [`Generator::poll_request`] and [`Generator::poll_work`] until they give none, then wait for the next of these or for
//! [`Generator::poll_timeout`], until [`Generator::is_finished`].
//!
//! Invariants:
//! - A reader is a task of a closed loop, and a file one of its requests: what counts is what ends in the measuring window.
//! - At most `read_ahead_clusters` and one clusters of a reader are on their way.
//! - Inode blocks that have changed are written together, at multiples of their time; each of them once.

use super::access::{clusters, AccessName, Cluster};
use super::layout::{place, FilePlace};
use super::plan::{self, FileAmount, Sequence};
use super::record::FilesRecord;
use super::spec::{FileSystemSpec, FilesSpec};
use crate::generator::Generator;
use crate::recorder::{CompletedRequest, Recorder};
use crate::{Limits, LoadSpec, SizeSpec, SpecError, Volume};
use raidlab_types::lru::Lru;
use raidlab_types::number::{f64_from, u32_from, usize_from};
use raidlab_types::{Duration, Extent, Instant, Request, RequestKind, RequestTag, Seed};
use slab::Slab;
use std::collections::{BTreeSet, VecDeque};

/// Shortest and longest parts of a file system that make sense, in bytes.
const BLOCKS: std::ops::RangeInclusive<u64> = 512..=1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReaderStage {
    /// Has work at the host before anything is read.
    Opening,
    /// Waits for the inode.
    Inode,
    /// Waits for an indirect block.
    Indirect,
    /// Waits for the cluster it needs next.
    Waiting,
    /// Has work at the host with that cluster.
    Taking,
    /// Has nothing left to read.
    Done,
}

/// A block: volume and sector.
type BlockKey = (u32, u64);

#[derive(Debug, Clone)]
struct ReaderState {
    sequence: Sequence,
    stage: ReaderStage,
    file: u32,
    start: Instant,
    open_ns: u64,
    first_byte_ns: u64,
    clusters: Vec<Cluster>,
    arrived: Vec<bool>,
    /// Clusters asked for, and the one that is needed next.
    asked: usize,
    at: usize,
    /// The indirect block looked up last.
    indirect: Option<u64>,
}

/// Whose access it is.
#[derive(Debug, Clone, Copy)]
struct FileRequest {
    /// None for the write of an inode.
    reader: Option<u32>,
    name: AccessName,
    cluster: u32,
    asked: Instant,
}

/// The offered load of one run. The head of this file gives the order of calls.
#[derive(Debug, Clone)]
pub struct FileLoad {
    fs: FileSystemSpec,
    /// The host's work for a file, before anything is read and for each KiB of it.
    open_work: Duration,
    us_per_kib: f64,
    sector_bytes: u64,
    sizes: Vec<u64>,
    volume: Vec<u32>,
    places: Vec<FilePlace>,
    readers: Vec<ReaderState>,
    /// Inode blocks that the host keeps in memory. Indirect blocks are not among them: each leads to the blocks of one file,
    /// so that nobody would find it again before it is dropped.
    cache: Lru<BlockKey>,
    pending: Slab<FileRequest>,
    requests: VecDeque<Request>,
    work: VecDeque<(u32, Duration)>,
    /// Time between two writings of changed inode blocks, these in the order in which they changed, and when they are due.
    update_every: Option<Duration>,
    changed: Vec<BlockKey>,
    is_changed: BTreeSet<BlockKey>,
    update_at: Instant,
    begun: bool,
    busy_readers: u32,
    keeps_sizes: bool,
    recorder: Recorder,
    record: FilesRecord,
}

impl FileLoad {
    /// The readers that a cell describes, over these volumes: as many as the closed loop is deep.
    pub fn new(
        spec: &FilesSpec,
        load: &LoadSpec,
        sizes: &SizeSpec,
        limits: &Limits,
        volumes: &[Volume],
        sector_bytes: u32,
        seed: Seed,
    ) -> Result<FileLoad, SpecError> {
        let readers = readers(load)?;
        check(spec, readers, sector_bytes)?;
        let sector_bytes = u64::from(sector_bytes);
        let seed = seed.named("files");
        let keeps_sizes = matches!(sizes, SizeSpec::Table { .. } | SizeSpec::Fixed { .. });
        let wanted = FileAmount::of(spec.count, spec.total_bytes)?;
        let sizes = plan::sizes(sizes, "workload.size", spec.numbers, wanted, seed)?;
        let volume = plan::deal(&sizes, volumes.len(), seed.named("places"));
        let places = places(&spec.file_system, &sizes, &volume, volumes, sector_bytes, seed)?;
        let lists = plan::lists(&sizes, spec.lists as usize, seed);
        let reader = |k: u32| ReaderState {
            sequence: Sequence::new(
                &lists[k as usize % lists.len()],
                spec.order,
                seed.named("readers").child(u64::from(k)),
            ),
            stage: ReaderStage::Done,
            file: 0,
            start: Instant::ZERO,
            open_ns: 0,
            first_byte_ns: 0,
            clusters: Vec::new(),
            arrived: Vec::new(),
            asked: 0,
            at: 0,
            indirect: None,
        };
        Ok(FileLoad {
            fs: spec.file_system.clone(),
            open_work: Duration::ZERO,
            us_per_kib: 0.0,
            sector_bytes,
            sizes,
            volume,
            places,
            readers: (0..readers).map(reader).collect(),
            cache: Lru::new(spec.file_system.inode_cache_bytes / spec.file_system.block_bytes),
            pending: Slab::new(),
            requests: VecDeque::new(),
            work: VecDeque::new(),
            update_every: spec.file_system.inode_update_s.map(Duration::from_s_f64),
            changed: Vec::new(),
            is_changed: BTreeSet::new(),
            update_at: Instant::MAX,
            begun: false,
            busy_readers: readers,
            keeps_sizes,
            recorder: Recorder::new(limits, 1, false)?,
            record: FilesRecord::default(),
        })
    }

    /// The same readers, each of whom costs the host so many microseconds before anything of a file is read, and so many for
    /// each KiB (1024 bytes) of it.
    pub fn with_host_work(self, file_us: f64, file_us_per_kib: f64) -> FileLoad {
        FileLoad { open_work: Duration::from_s_f64(file_us / 1e6), us_per_kib: file_us_per_kib, ..self }
    }

    /// Size of every file, by number.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Volume of every file, by number.
    pub fn volumes(&self) -> &[u32] {
        &self.volume
    }

    fn inode_of(&self, file: u32) -> BlockKey {
        (self.volume[file as usize], self.places[file as usize].inode)
    }

    /// A reader begins its next file, if it has one and may.
    fn next_file(&mut self, reader: u32, now: Instant) {
        let r = &mut self.readers[reader as usize];
        let Some(file) = r.sequence.next() else {
            r.stage = ReaderStage::Done;
            self.busy_readers -= 1;
            if self.busy_readers == 0 {
                self.recorder.close_at(now);
            }
            return;
        };
        (r.file, r.start, r.stage) = (file, now, ReaderStage::Opening);
        (r.asked, r.at, r.indirect) = (0, 0, None);
        self.recorder.issued(now);
        let place = &self.places[file as usize];
        clusters(&self.fs, place, self.sizes[file as usize], self.sector_bytes, &mut r.clusters);
        r.arrived.clear();
        r.arrived.resize(r.clusters.len(), false);
        self.work.push_back((reader, self.open_work));
    }

    fn opened(&mut self, reader: u32, now: Instant) {
        let r = &mut self.readers[reader as usize];
        r.open_ns = now.since(r.start).as_ns();
        r.first_byte_ns = r.open_ns;
        if r.clusters.is_empty() {
            return self.end_file(reader, now);
        }
        self.go_on(reader, now);
    }

    /// Asks for the clusters that are due, then takes in the one that is needed, or waits for it.
    fn go_on(&mut self, reader: u32, now: Instant) {
        loop {
            let r = &self.readers[reader as usize];
            let due = r.at + self.fs.read_ahead_clusters as usize;
            let Some(&Cluster { lba, sectors, indirect, .. }) = r.clusters.get(r.asked).filter(|_| r.asked <= due)
            else {
                break;
            };
            let (volume, number) = (self.volume[r.file as usize], u32_from(r.asked));
            if let Some(block) = indirect.filter(|_| indirect != r.indirect) {
                let r = &mut self.readers[reader as usize];
                (r.indirect, r.stage) = (indirect, ReaderStage::Indirect);
                return self.ask(now, Some(reader), (AccessName::Indirect, 0), (volume, block), self.fs.block_bytes);
            }
            self.ask(now, Some(reader), (AccessName::Data, number), (volume, lba), sectors * self.sector_bytes);
            self.readers[reader as usize].asked += 1;
        }
        let r = &mut self.readers[reader as usize];
        r.stage = ReaderStage::Waiting;
        if r.arrived[r.at] {
            self.take(reader);
        }
    }

    fn take(&mut self, reader: u32) {
        let r = &mut self.readers[reader as usize];
        r.stage = ReaderStage::Taking;
        let us = f64_from(r.clusters[r.at].bytes) / 1024.0 * self.us_per_kib;
        self.work.push_back((reader, Duration::from_s_f64(us / 1e6)));
    }

    fn end_file(&mut self, reader: u32, now: Instant) {
        let ReaderState { file, start, open_ns, first_byte_ns, .. } = self.readers[reader as usize];
        let bytes = self.sizes[file as usize];
        if self.recorder.is_measuring() {
            let record = &mut self.record;
            record.files += 1;
            record.open_ns += u128::from(open_ns);
            record.first_byte_ns += u128::from(first_byte_ns);
            if self.keeps_sizes {
                let of_size = record.by_size.entry(bytes).or_default();
                of_size.files += 1;
                of_size.time_ns += u128::from(now.since(start).as_ns());
            }
        }
        self.recorder.left(now);
        self.recorder.request_done(
            now,
            &CompletedRequest { kind: RequestKind::Read, bytes, intended: start, issued: start, ok: true },
        );
        self.recorder.advance(now, true);
        if let Some(every) = self.update_every {
            let key = self.inode_of(file);
            if self.is_changed.insert(key) {
                self.changed.push(key);
            }
            if self.update_at == Instant::MAX {
                let every = every.as_ns().max(1);
                self.update_at = Instant::from_ns((now.as_ns() / every + 1) * every);
            }
        }
        self.next_file(reader, now);
    }

    fn ask(&mut self, now: Instant, reader: Option<u32>, what: (AccessName, u32), (volume, lba): BlockKey, bytes: u64) {
        let (name, cluster) = what;
        if self.recorder.is_measuring() {
            let totals = self.record.accesses_mut(name);
            totals.count += 1;
            totals.bytes += bytes;
        }
        let tag = self.pending.insert(FileRequest { reader, name, cluster, asked: now }) as RequestTag;
        let kind = if name == AccessName::InodeUpdate { RequestKind::Write } else { RequestKind::Read };
        let extent = Extent::new(lba, bytes / self.sector_bytes);
        self.requests.push_back(Request { tag, volume, kind, extent, force_unit_access: false });
    }
}

impl Generator for FileLoad {
    const WORKS: bool = true;

    fn poll_request(&mut self, now: Instant) -> Option<Request> {
        self.recorder.observe(now);
        if self.is_finished() {
            return None;
        }
        if !self.begun {
            self.begun = true;
            (0..u32_from(self.readers.len())).for_each(|reader| self.next_file(reader, now));
        }
        if self.update_at <= now {
            self.update_at = Instant::MAX;
            self.is_changed.clear();
            for key in std::mem::take(&mut self.changed) {
                self.ask(now, None, (AccessName::InodeUpdate, 0), key, self.fs.block_bytes);
            }
        }
        self.requests.pop_front()
    }

    fn poll_work(&mut self) -> Option<(u32, Duration)> {
        self.work.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.update_at.min(self.recorder.deadline())).filter(|&at| at != Instant::MAX)
    }

    /// Arrays of whole files lose no members, and what one could not read has failed its cell by then.
    fn handle_done(&mut self, now: Instant, tag: RequestTag, _ok: bool) {
        self.recorder.observe(now);
        let FileRequest { reader, name, cluster, asked } = self.pending.remove(usize_from(tag));
        if self.recorder.is_measuring() {
            let totals = self.record.accesses_mut(name);
            totals.answered += 1;
            totals.time_ns += now.since(asked).as_ns();
        }
        let Some(reader) = reader else { return };
        let ReaderState { file, .. } = self.readers[reader as usize];
        match name {
            AccessName::Inode => {
                self.cache.keep(self.inode_of(file));
                self.opened(reader, now);
            }
            AccessName::Indirect => self.go_on(reader, now),
            AccessName::Data => {
                let r = &mut self.readers[reader as usize];
                r.arrived[cluster as usize] = true;
                if r.stage == ReaderStage::Waiting && r.at == cluster as usize {
                    self.take(reader);
                }
            }
            AccessName::InodeUpdate => {}
        }
    }

    fn handle_work_done(&mut self, now: Instant, reader: u32) {
        self.recorder.observe(now);
        let r = &mut self.readers[reader as usize];
        match r.stage {
            ReaderStage::Opening => {
                let key = self.inode_of(self.readers[reader as usize].file);
                if self.cache.touch(key) {
                    if self.recorder.is_measuring() {
                        self.record.accesses_mut(AccessName::Inode).found += 1;
                    }
                    return self.opened(reader, now);
                }
                self.readers[reader as usize].stage = ReaderStage::Inode;
                self.ask(now, Some(reader), (AccessName::Inode, 0), key, self.fs.block_bytes);
            }
            ReaderStage::Taking => {
                if r.at == 0 {
                    r.first_byte_ns = now.since(r.start).as_ns();
                }
                r.at += 1;
                if r.at == r.clusters.len() {
                    return self.end_file(reader, now);
                }
                self.go_on(reader, now);
            }
            _ => {}
        }
    }

    fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    fn recorder_mut(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    fn files(&self) -> Option<&FilesRecord> {
        Some(&self.record)
    }
}

/// Where all files lie: each volume is laid out for itself.
fn places(
    fs: &FileSystemSpec,
    sizes: &[u64],
    volume: &[u32],
    volumes: &[Volume],
    sector_bytes: u64,
    seed: Seed,
) -> Result<Vec<FilePlace>, SpecError> {
    let mut places = vec![FilePlace::default(); sizes.len()];
    for (number, of) in volumes.iter().enumerate() {
        let files: Vec<usize> = (0..sizes.len()).filter(|&file| volume[file] as usize == number).collect();
        let own: Vec<u64> = files.iter().map(|&file| sizes[file]).collect();
        let seed = seed.named("layout").child(number as u64);
        let laid = place(fs, &own, of.capacity_sectors * sector_bytes, sector_bytes, seed)?;
        files.iter().zip(laid).for_each(|(&file, own)| places[file] = own);
    }
    Ok(places)
}

fn readers(load: &LoadSpec) -> Result<u32, SpecError> {
    match load {
        LoadSpec::Closed { depth } => crate::error::depth("load", "depth", *depth),
        _ => Err(SpecError::new("load.kind", "whole files are read by so many readers; accepted: \"closed\"")),
    }
}

fn check(spec: &FilesSpec, readers: u32, sector_bytes: u32) -> Result<(), SpecError> {
    let lists = spec.lists;
    if lists == 0 || (lists > 1 && lists < readers) {
        return Err(SpecError::new(
            "files.lists",
            format!("{lists}; accepted: 1, or at least one a reader ({readers})"),
        ));
    }
    let fs = &spec.file_system;
    let block = fs.block_bytes;
    if !BLOCKS.contains(&block) || !block.is_multiple_of(u64::from(sector_bytes)) {
        let message = format!("{block}; accepted: a multiple of {sector_bytes} from 512 bytes to 1 GiB");
        return Err(SpecError::new("files.file_system.block", message));
    }
    for (key, bytes) in [("cluster", fs.cluster_bytes), ("group", fs.group_bytes)] {
        if bytes == 0 || bytes > 1 << 40 || !bytes.is_multiple_of(block) {
            let message = format!("{bytes}; accepted: a multiple of the block's {block} bytes, up to 1 TiB");
            return Err(SpecError::new(format!("files.file_system.{key}"), message));
        }
    }
    for (key, n) in [("inodes_per_block", fs.inodes_per_block), ("blocks_per_indirect", fs.blocks_per_indirect)] {
        if n == 0 || n > 1 << 32 {
            return Err(SpecError::new(
                format!("files.file_system.{key}"),
                format!("{n}; accepted: 1 to {}", 1u64 << 32),
            ));
        }
    }
    if let Some(run) = fs.run_bytes.filter(|&run| !(run.is_finite() && run >= f64_from(block))) {
        let message = format!("{run}; accepted: at least a block's {block} bytes");
        return Err(SpecError::new("files.file_system.run", message));
    }
    match fs.inode_update_s.filter(|every| !(every.is_finite() && *every >= 0.0)) {
        Some(every) => {
            let message = format!("{every} s; accepted: a time of at least 0");
            Err(SpecError::new("files.file_system.inode_update", message))
        }
        None => Ok(()),
    }
}
