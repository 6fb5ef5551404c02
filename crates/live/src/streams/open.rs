//! Opening the ends of all streams: every file, device and array once, however many streams use it.
//!
//! Purpose: one place where the safety rules are asked, with all that will be done to a target known: who reads it, who
//! writes it, how far.
//!
//! Invariants:
//! - What one stream writes no other reads or writes: their parts of a target must not overlap.
//! - A source that raidlab makes is filled before the start; a sink is not.

use super::array::OpenArray;
use super::config::{EndOfStream, EndpointSpec, StreamsConfig};
use super::ends::{FileRegion, StreamBlocks};
use super::result::EndpointFacts;
use crate::config::OnProgress;
use crate::content::{Knowledge, Stamper};
use crate::error::LiveError;
use crate::page_cache;
use crate::target::{self, direct, fill_all, Filling, Intent, Store, Target, TargetSpec};
use raidlab_types::number::u32_from;
use raidlab_types::Seed;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a path leads to, whatever it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Identity {
    Device(u64),
    File(u64, u64),
    /// A file that is not there yet: its directory, and its name.
    New(u64, u64, PathBuf),
    /// An array of the cell and its volume.
    Array(usize, u32),
}

impl Identity {
    fn of(end: &EndpointSpec) -> Option<Identity> {
        match end {
            EndpointSpec::File { path, .. } | EndpointSpec::Block { path, .. } => Identity::of_path(path),
            EndpointSpec::Array { array, volume, .. } => Some(Identity::Array(*array, *volume)),
            _ => None,
        }
    }

    fn of_path(path: &Path) -> Option<Identity> {
        match std::fs::metadata(path) {
            Ok(status) if status.rdev() != 0 => Some(Identity::Device(status.rdev())),
            Ok(status) => Some(Identity::File(status.dev(), status.ino())),
            Err(_) => {
                let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let status = std::fs::metadata(parent).ok()?;
                Some(Identity::New(status.dev(), status.ino(), path.file_name()?.into()))
            }
        }
    }
}

/// One stream's part of a target: from which byte, and until which.
#[derive(Debug, Clone, Copy)]
struct EndUse {
    of: EndOfStream,
    begin: u64,
    end: u64,
}

/// What is filled is stamped in sectors of this.
const FILL_SECTOR_BYTES: u32 = 4096;

/// A file, device or volume with all who use it.
#[derive(Debug)]
struct SharedTarget {
    identity: Option<Identity>,
    spec: EndpointSpec,
    uses: Vec<EndUse>,
    target: Option<Target>,
}

/// All files, devices and arrays of a cell, open.
#[derive(Debug)]
pub(super) struct OpenTargets {
    shared: Vec<SharedTarget>,
    /// Taken out when they begin to serve.
    pub arrays: Vec<OpenArray>,
}

impl OpenTargets {
    /// Opens all files, devices and arrays that the streams name.
    pub(super) fn new(config: &StreamsConfig, blocks: &[StreamBlocks]) -> Result<OpenTargets, LiveError> {
        let mut shared: Vec<SharedTarget> = Vec::new();
        for (of, spec) in config.ends() {
            let Some(begin) = spec.offset_bytes() else { continue };
            let Some(end) = begin.checked_add(blocks[of.stream].bytes) else {
                return Err(LiveError::bad(format!("{}.offset_bytes", of.key()), format!("{begin} is too large")));
            };
            let (used, identity) = (EndUse { of, begin, end }, Identity::of(spec));
            match shared.iter_mut().find(|other| identity.is_some() && other.identity == identity) {
                None => shared.push(SharedTarget { identity, spec: spec.clone(), uses: vec![used], target: None }),
                Some(other) => {
                    other.check(&used, spec)?;
                    other.uses.push(used);
                }
            }
        }
        let is_written = |number: usize| {
            let is_it = |s: &&SharedTarget| matches!(s.identity, Some(Identity::Array(array, _)) if array == number);
            shared.iter().filter(is_it).any(SharedTarget::is_written)
        };
        let open = |number| OpenArray::new(config, number, is_written(number));
        let arrays = (0..config.arrays.len()).map(open).collect::<Result<Vec<OpenArray>, LiveError>>()?;
        for one in &mut shared {
            one.open(config, &arrays)?;
            one.check_alignment(config, &arrays)?;
        }
        Ok(OpenTargets { shared, arrays })
    }

    /// Fills what raidlab has made and streams read.
    pub(super) fn fill(&mut self, seed: u64, observer: OnProgress<'_>) -> Result<ControlFlow<()>, LiveError> {
        let seed = Seed::new(seed).named("fill");
        let is_read = |shared: &SharedTarget| shared.uses.iter().any(|used| used.of.is_source);
        let sources = self.shared.iter_mut().filter(|shared| is_read(shared)).filter_map(|s| s.target.as_mut());
        let members = self.arrays.iter_mut().flat_map(|array| array.targets.iter_mut().flatten());
        let targets = sources.chain(members).enumerate().map(|(i, target)| (i as u64, target));
        // What streams write over it has no stamps of its own.
        let stamper = Stamper::of_this_run(seed.as_u64(), FILL_SECTOR_BYTES);
        let stopped = fill_all(targets, &|number| Filling::Random(seed.child(number).draws(), stamper), observer)?;
        let ends = self.shared.iter_mut().filter(|shared| shared.is_written()).filter_map(|s| s.target.as_mut());
        let members =
            self.arrays.iter_mut().filter(|array| array.writes).flat_map(|array| array.targets.iter_mut().flatten());
        ends.chain(members).try_for_each(|target| target.will_be_written(FILL_SECTOR_BYTES, Knowledge::Nothing))?;
        Ok(stopped)
    }

    /// Puts the sources out of the page cache; then says what every end is, and what of it is still there.
    pub(super) fn facts(&self, config: &StreamsConfig) -> Result<Vec<EndpointFacts>, LiveError> {
        let one = |(end, spec): (EndOfStream, &EndpointSpec)| {
            let target = self.shared(end).and_then(|shared| shared.target.as_ref());
            let mut cached_bytes = None;
            if let (true, Some(Target { store: Store::Fd(file), facts, .. })) = (end.is_source, target) {
                let fail = |e| LiveError::io(end.place(config), spec.name(), "dropping it from the page cache", &e);
                page_cache::evict(file).map_err(fail)?;
                cached_bytes = page_cache::cached_bytes(file, facts.size_bytes);
            }
            Ok(EndpointFacts {
                stream: u32_from(end.stream),
                side: end.side(),
                kind: spec.kind(),
                target: target.map(|target| target.facts.clone()),
                array: if let EndpointSpec::Array { array, .. } = spec { Some(*array) } else { None },
                cached_bytes,
            })
        };
        config.ends().map(one).collect()
    }

    /// The part of a file or device that this end is.
    pub(super) fn part(&self, end: EndOfStream) -> Option<FileRegion<'_>> {
        let shared = self.shared(end)?;
        let used = shared.uses.iter().find(|used| used.of == end)?;
        match shared.target.as_ref().map(|target| &target.store) {
            Some(Store::Fd(file)) => Some(FileRegion { file, offset_bytes: used.begin }),
            _ => None,
        }
    }

    fn shared(&self, end: EndOfStream) -> Option<&SharedTarget> {
        self.shared.iter().find(|shared| shared.uses.iter().any(|used| used.of == end))
    }
}

impl SharedTarget {
    fn is_written(&self) -> bool {
        self.uses.iter().any(|used| !used.of.is_source)
    }

    /// Whether one more may use it.
    fn check(&self, used: &EndUse, spec: &EndpointSpec) -> Result<(), LiveError> {
        let (key, name) = (used.of.key(), spec.name());
        if self.spec.is_buffered() != spec.is_buffered() {
            let message = format!("{name} is buffered in one stream and not in another");
            return Err(LiveError::bad(format!("{key}.buffered"), message));
        }
        let writes = |other: &EndUse| !other.of.is_source || !used.of.is_source;
        let overlaps = |other: &&EndUse| writes(other) && other.begin < used.end && used.begin < other.end;
        let Some(other) = self.uses.iter().find(overlaps) else { return Ok(()) };
        let message = format!(
            "bytes {} to {} of {name} overlap with those of {}: what one writes no other may use",
            used.begin,
            used.end,
            other.of.key()
        );
        Err(LiveError::bad(format!("{key}.offset_bytes"), message))
    }

    fn open(&mut self, config: &StreamsConfig, arrays: &[OpenArray]) -> Result<(), LiveError> {
        let key = self.uses[0].of.key();
        let end = self.uses.iter().map(|u| u.end).max().unwrap_or(0);
        let destroy = |u: &EndUse| matches!(u.of.spec(config), EndpointSpec::Block { destroy: true, .. });
        let spec = match &self.spec {
            EndpointSpec::File { path, .. } => {
                TargetSpec::File { path: path.clone(), size_bytes: end.max(4096), existing: false }
            }
            EndpointSpec::Block { path, .. } => {
                TargetSpec::Block { path: path.clone(), destroy: self.uses.iter().any(destroy) }
            }
            EndpointSpec::Array { array, volume, .. } => {
                let Some(found) = arrays.get(*array) else {
                    let message = format!("{array}: the cell has {} arrays, counted from 0", arrays.len());
                    return Err(LiveError::bad(format!("{key}.array"), message));
                };
                let Some(has) = found.volume_bytes(*volume) else {
                    let volumes = found.layout.volumes().len();
                    let message = format!("{volume}: the array has {volumes} volumes, counted from 0");
                    return Err(LiveError::bad(format!("{key}.volume"), message));
                };
                return self.check_end(has);
            }
            _ => return Ok(()),
        };
        let intent = Intent { writes: self.is_written(), destroy: &config.destroy, buffered: self.spec.is_buffered() };
        let target = target::open(&spec, &key, intent)?;
        let has = target.facts.size_bytes;
        self.target = Some(target);
        self.check_end(has)
    }

    /// Whether all streams end within the bytes there are.
    fn check_end(&self, has: u64) -> Result<(), LiveError> {
        let Some(EndUse { of, end, .. }) = self.uses.iter().find(|used| used.end > has) else { return Ok(()) };
        let message = format!("the stream would end at byte {end} of {}, which has {has}", self.spec.name());
        Err(LiveError::bad(format!("streams[{}].bytes", of.stream), message))
    }

    /// Past the page cache, and in arrays, only whole sectors can be moved.
    fn check_alignment(&self, config: &StreamsConfig, arrays: &[OpenArray]) -> Result<(), LiveError> {
        let (align, hint) = match (&self.spec, &self.target) {
            (EndpointSpec::Array { array, .. }, _) => (arrays[*array].layout.sector_bytes(), ""),
            (_, Some(Target { store: Store::Fd(file), facts, .. })) if facts.io == "direct" => {
                let align = if facts.kind == "block" { facts.sector_bytes } else { direct::alignment(file) };
                (align, ", or that end \"buffered\": true")
            }
            _ => return Ok(()),
        };
        for used in &self.uses {
            let stream = used.of.stream;
            let values = [
                (format!("{}.offset_bytes", used.of.key()), used.begin),
                (format!("streams[{stream}].block_bytes"), config.streams[stream].block_bytes),
                (format!("streams[{stream}].bytes"), used.end - used.begin),
            ];
            if let Some((key, value)) = values.into_iter().find(|(_, v)| !v.is_multiple_of(u64::from(align))) {
                let message = format!("{value} must be a multiple of {align} for {}{hint}", self.spec.name());
                return Err(LiveError::bad(key, message));
            }
        }
        Ok(())
    }
}
