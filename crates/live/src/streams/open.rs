//! Opening the ends of all streams: every file, device and array once, however many streams use it.
//!
//! Purpose: one place where the safety rules are asked, with all that will be done to a target known: who reads it, who
//! writes it, how far.
//!
//! Invariants:
//! - What one stream writes no other reads or writes: their parts of a target must not overlap.
//! - A source that raidlab makes is filled before the start; a sink is not.

use super::array::OpenArray;
use super::config::{EndpointSpec, StreamsConfig};
use super::ends::{Blocks, Part};
use super::result::EndpointFacts;
use crate::config::Progress;
use crate::content::{Known, Stamper};
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

/// One stream's part of a target.
#[derive(Debug, Clone, Copy)]
struct Use {
    stream: usize,
    is_source: bool,
    begin: u64,
    end: u64,
}

/// What is filled is stamped in sectors of this.
const FILL_SECTOR_BYTES: u32 = 4096;

/// A file, device or volume with all who use it.
#[derive(Debug)]
struct Shared {
    identity: Option<Identity>,
    spec: EndpointSpec,
    uses: Vec<Use>,
    target: Option<Target>,
}

/// All files, devices and arrays of a cell, open.
#[derive(Debug)]
pub(super) struct Opened {
    shared: Vec<Shared>,
    /// Taken out when they begin to serve.
    arrays: Vec<OpenArray>,
}

/// `streams[3].sink`.
pub(super) fn key_of(stream: usize, is_source: bool) -> String {
    format!("streams[{stream}].{}", side(is_source))
}

/// The key to look at when an end fails: its path, where it has one.
pub(super) fn place_of(config: &StreamsConfig, stream: usize, is_source: bool) -> String {
    let key = key_of(stream, is_source);
    match end_of(config, stream, is_source) {
        EndpointSpec::File { .. } | EndpointSpec::Block { .. } => format!("{key}.path"),
        _ => key,
    }
}

/// How a sentence names an end.
pub(super) fn name(config: &StreamsConfig, stream: usize, is_source: bool) -> String {
    name_of(end_of(config, stream, is_source))
}

fn side(is_source: bool) -> &'static str {
    if is_source {
        "source"
    } else {
        "sink"
    }
}

/// Where an end that is a part of something begins.
fn offset(end: &EndpointSpec) -> Option<u64> {
    match end {
        EndpointSpec::File { offset_bytes, .. }
        | EndpointSpec::Block { offset_bytes, .. }
        | EndpointSpec::Array { offset_bytes, .. } => Some(*offset_bytes),
        _ => None,
    }
}

fn is_buffered(end: &EndpointSpec) -> bool {
    matches!(end, EndpointSpec::File { buffered: true, .. } | EndpointSpec::Block { buffered: true, .. })
}

fn name_of(end: &EndpointSpec) -> String {
    match end {
        EndpointSpec::File { path, .. } | EndpointSpec::Block { path, .. } => path.display().to_string(),
        EndpointSpec::Array { array, volume, .. } => format!("volume {volume} of array {array}"),
        other => other.kind().to_string(),
    }
}

fn end_of(config: &StreamsConfig, stream: usize, is_source: bool) -> &EndpointSpec {
    let spec = &config.streams[stream];
    if is_source {
        &spec.source
    } else {
        &spec.sink
    }
}

impl Opened {
    /// Opens all files, devices and arrays that the streams name.
    pub(super) fn new(config: &StreamsConfig, blocks: &[Blocks]) -> Result<Opened, LiveError> {
        let mut shared: Vec<Shared> = Vec::new();
        for (stream, spec) in config.streams.iter().enumerate() {
            for (is_source, end) in [(true, &spec.source), (false, &spec.sink)] {
                let Some(begin) = offset(end) else { continue };
                let key = key_of(stream, is_source);
                let Some(last) = begin.checked_add(blocks[stream].bytes) else {
                    return Err(LiveError::bad(format!("{key}.offset_bytes"), format!("{begin} is too large")));
                };
                let used = Use { stream, is_source, begin, end: last };
                let identity = Identity::of(end);
                match shared.iter_mut().find(|other| identity.is_some() && other.identity == identity) {
                    None => shared.push(Shared { identity, spec: end.clone(), uses: vec![used], target: None }),
                    Some(other) => {
                        other.check(&used, end, &key)?;
                        other.uses.push(used);
                    }
                }
            }
        }
        let is_written = |number: usize| {
            let is_it = |s: &&Shared| matches!(s.identity, Some(Identity::Array(array, _)) if array == number);
            shared.iter().filter(is_it).any(Shared::is_written)
        };
        let open = |number| OpenArray::new(config, number, is_written(number));
        let arrays = (0..config.arrays.len()).map(open).collect::<Result<Vec<OpenArray>, LiveError>>()?;
        for one in &mut shared {
            one.open(config, &arrays)?;
            one.check_alignment(config, &arrays)?;
        }
        Ok(Opened { shared, arrays })
    }

    /// The arrays, to serve those who have ports; they are here no longer.
    pub(super) fn take_arrays(&mut self) -> Vec<OpenArray> {
        std::mem::take(&mut self.arrays)
    }

    /// Fills what raidlab has made and streams read.
    pub(super) fn fill(
        &mut self,
        seed: u64,
        observer: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, LiveError> {
        let seed = Seed::new(seed).named("fill");
        let is_read = |shared: &Shared| shared.uses.iter().any(|used| used.is_source);
        let sources = self.shared.iter_mut().filter(|shared| is_read(shared)).filter_map(|s| s.target.as_mut());
        let members = self.arrays.iter_mut().flat_map(|array| array.targets.iter_mut().flatten());
        let targets = sources.chain(members).enumerate().map(|(i, target)| (i as u64, target));
        // What streams write over it has no stamps of its own.
        let stamper = Stamper::of_this_run(seed.as_u64(), FILL_SECTOR_BYTES);
        let stopped = fill_all(targets, &|number| Filling::Random(seed.child(number).draws(), stamper), observer)?;
        let ends = self.shared.iter_mut().filter(|shared| shared.is_written()).filter_map(|s| s.target.as_mut());
        let members =
            self.arrays.iter_mut().filter(|array| array.writes).flat_map(|array| array.targets.iter_mut().flatten());
        ends.chain(members).try_for_each(|target| target.will_be_written(FILL_SECTOR_BYTES, Known::Nothing))?;
        Ok(stopped)
    }

    /// Puts the sources out of the page cache; then says what every end is, and what of it is still there.
    pub(super) fn facts(&self, config: &StreamsConfig) -> Result<Vec<EndpointFacts>, LiveError> {
        let mut facts = Vec::new();
        for (stream, spec) in config.streams.iter().enumerate() {
            for (is_source, end) in [(true, &spec.source), (false, &spec.sink)] {
                let target = self.shared(stream, is_source).and_then(|shared| shared.target.as_ref());
                let mut cached_bytes = None;
                if let (true, Some(Target { store: Store::Fd(file), facts, .. })) = (is_source, target) {
                    let key = format!("{}.path", key_of(stream, is_source));
                    let fail = |e| LiveError::io(key, name_of(end), "dropping it from the page cache", &e);
                    page_cache::evict(file).map_err(fail)?;
                    cached_bytes = page_cache::cached_bytes(file, facts.size_bytes);
                }
                facts.push(EndpointFacts {
                    stream: u32_from(stream),
                    side: side(is_source),
                    kind: end.kind(),
                    target: target.map(|target| target.facts.clone()),
                    array: if let EndpointSpec::Array { array, .. } = end { Some(*array) } else { None },
                    cached_bytes,
                });
            }
        }
        Ok(facts)
    }

    /// The part of a file or device that this end is.
    pub(super) fn part(&self, stream: usize, is_source: bool) -> Option<Part<'_>> {
        let shared = self.shared(stream, is_source)?;
        let used = shared.uses.iter().find(|u| u.stream == stream && u.is_source == is_source)?;
        match shared.target.as_ref().map(|target| &target.store) {
            Some(Store::Fd(file)) => Some(Part { file, offset_bytes: used.begin }),
            _ => None,
        }
    }

    fn shared(&self, stream: usize, is_source: bool) -> Option<&Shared> {
        self.shared.iter().find(|shared| shared.uses.iter().any(|u| u.stream == stream && u.is_source == is_source))
    }
}

impl Shared {
    fn is_written(&self) -> bool {
        self.uses.iter().any(|used| !used.is_source)
    }

    /// Whether one more may use it.
    fn check(&self, used: &Use, end: &EndpointSpec, key: &str) -> Result<(), LiveError> {
        if is_buffered(&self.spec) != is_buffered(end) {
            let message = format!("{} is buffered in one stream and not in another", name_of(end));
            return Err(LiveError::bad(format!("{key}.buffered"), message));
        }
        let overlaps =
            |other: &&Use| (!other.is_source || !used.is_source) && other.begin < used.end && used.begin < other.end;
        match self.uses.iter().find(overlaps) {
            None => Ok(()),
            Some(other) => {
                let message = format!(
                    "bytes {} to {} of {} overlap with those of {}: what one writes no other may use",
                    used.begin,
                    used.end,
                    name_of(end),
                    key_of(other.stream, other.is_source)
                );
                Err(LiveError::bad(format!("{key}.offset_bytes"), message))
            }
        }
    }

    fn open(&mut self, config: &StreamsConfig, arrays: &[OpenArray]) -> Result<(), LiveError> {
        let first = self.uses[0];
        let key = key_of(first.stream, first.is_source);
        let end = self.uses.iter().map(|u| u.end).max().unwrap_or(0);
        let destroy = |u: &Use| {
            let end = end_of(config, u.stream, u.is_source);
            matches!(end, EndpointSpec::Block { destroy: true, .. })
        };
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
        let intent = Intent { writes: self.is_written(), destroy: &config.destroy, buffered: is_buffered(&self.spec) };
        let target = target::open(&spec, &key, intent)?;
        let has = target.facts.size_bytes;
        self.target = Some(target);
        self.check_end(has)
    }

    /// Whether all streams end within the bytes there are.
    fn check_end(&self, has: u64) -> Result<(), LiveError> {
        match self.uses.iter().find(|used| used.end > has) {
            None => Ok(()),
            Some(Use { stream, end, .. }) => {
                let message = format!("the stream would end at byte {end} of {}, which has {has}", name_of(&self.spec));
                Err(LiveError::bad(format!("streams[{stream}].bytes"), message))
            }
        }
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
            let block = config.streams[used.stream].block_bytes;
            let values = [
                (format!("{}.offset_bytes", key_of(used.stream, used.is_source)), used.begin),
                (format!("streams[{}].block_bytes", used.stream), block),
                (format!("streams[{}].bytes", used.stream), used.end - used.begin),
            ];
            if let Some((key, value)) = values.into_iter().find(|(_, v)| !v.is_multiple_of(u64::from(align))) {
                let message = format!("{value} must be a multiple of {align} for {}{hint}", name_of(&self.spec));
                return Err(LiveError::bad(key, message));
            }
        }
        Ok(())
    }
}
