//! Opening the ends of all streams: every file and device once, however many streams use it.
//!
//! Purpose: one place where the safety rules are asked, with all that will be done to a target known: who reads it, who
//! writes it, how far.
//!
//! Invariants:
//! - What one stream writes no other reads or writes: their parts of a target must not overlap.
//! - A source that raidlab makes is filled before the start; a sink is not.

use super::config::{EndpointSpec, StreamsConfig};
use super::ends::{Blocks, Part};
use super::result::EndpointFacts;
use crate::config::Progress;
use crate::error::LiveError;
use crate::page_cache;
use crate::target::{self, direct, fill_all, Filling, Intent, Store, Target, TargetSpec};
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
}

impl Identity {
    fn of(path: &Path) -> Option<Identity> {
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

/// A file or device with all who use it.
#[derive(Debug)]
struct Shared {
    identity: Option<Identity>,
    spec: EndpointSpec,
    uses: Vec<Use>,
    target: Option<Target>,
}

/// All files and devices of a cell, open.
#[derive(Debug)]
pub(super) struct Opened(Vec<Shared>);

/// `streams[3].to`.
pub(super) fn key_of(stream: usize, is_source: bool) -> String {
    format!("streams[{stream}].{}", side(is_source))
}

fn side(is_source: bool) -> &'static str {
    if is_source {
        "from"
    } else {
        "to"
    }
}

/// Path, offset and whether it is buffered, of an end that has these.
fn place(spec: &EndpointSpec) -> Option<(&Path, u64, bool)> {
    match spec {
        EndpointSpec::File { path, offset_bytes, buffered }
        | EndpointSpec::Block { path, offset_bytes, buffered, .. } => Some((path, *offset_bytes, *buffered)),
        _ => None,
    }
}

impl Opened {
    /// Opens all files and devices that the streams name.
    pub fn new(config: &StreamsConfig, blocks: &[Blocks]) -> Result<Opened, LiveError> {
        let mut all: Vec<Shared> = Vec::new();
        for (stream, spec) in config.streams.iter().enumerate() {
            for (is_source, end) in [(true, &spec.from), (false, &spec.to)] {
                let Some((path, begin, buffered)) = place(end) else { continue };
                let key = key_of(stream, is_source);
                let Some(last) = begin.checked_add(blocks[stream].bytes) else {
                    return Err(LiveError::bad(format!("{key}.offset_bytes"), format!("{begin} is too large")));
                };
                let used = Use { stream, is_source, begin, end: last };
                let identity = Identity::of(path);
                match all.iter_mut().find(|shared| identity.is_some() && shared.identity == identity) {
                    None => all.push(Shared { identity, spec: end.clone(), uses: vec![used], target: None }),
                    Some(shared) => {
                        shared.check(&used, buffered, path, &key)?;
                        shared.uses.push(used);
                    }
                }
            }
        }
        for shared in &mut all {
            shared.open(config)?;
            shared.check_alignment(config)?;
        }
        Ok(Opened(all))
    }

    /// Fills what raidlab has made and streams read.
    pub fn fill(
        &mut self,
        seed: u64,
        observer: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, LiveError> {
        let seed = Seed::new(seed).named("fill");
        let sources = self.0.iter_mut().enumerate().filter(|(_, shared)| shared.uses.iter().any(|u| u.is_source));
        let targets = sources.filter_map(|(i, shared)| Some((i as u64, shared.target.as_mut()?)));
        fill_all(targets, &|number| Filling::Random(seed.child(number).draws()), observer)
    }

    /// Puts the sources out of the page cache; then says what every end is, and what of it is still there.
    pub fn facts(&self, config: &StreamsConfig) -> Result<Vec<EndpointFacts>, LiveError> {
        let mut facts = Vec::new();
        for (stream, spec) in config.streams.iter().enumerate() {
            for (is_source, end) in [(true, &spec.from), (false, &spec.to)] {
                let shared = self.shared(stream, is_source);
                let target = shared.and_then(|shared| shared.target.as_ref());
                let mut cached_bytes = None;
                if let (true, Some(Target { store: Store::Fd(file), facts, .. })) = (is_source, target) {
                    let key = format!("{}.path", key_of(stream, is_source));
                    let fail = |e| {
                        LiveError::io(
                            key,
                            target.map_or_else(String::new, Target::name),
                            "dropping it from the page cache",
                            &e,
                        )
                    };
                    page_cache::evict(file).map_err(fail)?;
                    cached_bytes = page_cache::cached_bytes(file, facts.size_bytes);
                }
                let target = target.map(|target| target.facts.clone());
                let stream = stream as u32;
                facts.push(EndpointFacts { stream, side: side(is_source), kind: end.kind(), target, cached_bytes });
            }
        }
        Ok(facts)
    }

    /// The part of a file or device that this end is.
    pub fn part(&self, stream: usize, is_source: bool) -> Option<Part<'_>> {
        let shared = self.shared(stream, is_source)?;
        let used = shared.uses.iter().find(|u| u.stream == stream && u.is_source == is_source)?;
        match shared.target.as_ref().map(|target| &target.store) {
            Some(Store::Fd(file)) => Some(Part { file, offset_bytes: used.begin }),
            _ => None,
        }
    }

    /// How a sentence names this end.
    pub fn name(&self, stream: usize, is_source: bool, config: &StreamsConfig) -> String {
        let spec = &config.streams[stream];
        let end = if is_source { &spec.from } else { &spec.to };
        place(end).map_or_else(|| end.kind().to_string(), |(path, ..)| path.display().to_string())
    }

    fn shared(&self, stream: usize, is_source: bool) -> Option<&Shared> {
        self.0.iter().find(|shared| shared.uses.iter().any(|u| u.stream == stream && u.is_source == is_source))
    }
}

impl Shared {
    /// Whether one more may use it.
    fn check(&self, used: &Use, buffered: bool, path: &Path, key: &str) -> Result<(), LiveError> {
        if place(&self.spec).is_some_and(|(_, _, other)| other != buffered) {
            let message = format!("{} is buffered in one stream and not in another", path.display());
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
                    path.display(),
                    key_of(other.stream, other.is_source)
                );
                Err(LiveError::bad(format!("{key}.offset_bytes"), message))
            }
        }
    }

    fn open(&mut self, config: &StreamsConfig) -> Result<(), LiveError> {
        let first = self.uses[0];
        let key = key_of(first.stream, first.is_source);
        let writes = self.uses.iter().any(|u| !u.is_source);
        let end = self.uses.iter().map(|u| u.end).max().unwrap_or(0);
        let destroy = |u: &Use| {
            let spec = &config.streams[u.stream];
            let end = if u.is_source { &spec.from } else { &spec.to };
            matches!(end, EndpointSpec::Block { destroy: true, .. })
        };
        let spec = match &self.spec {
            EndpointSpec::File { path, .. } => TargetSpec::File { path: path.clone(), size_bytes: end.max(4096) },
            EndpointSpec::Block { path, .. } => {
                TargetSpec::Block { path: path.clone(), destroy: self.uses.iter().any(destroy) }
            }
            _ => return Ok(()),
        };
        let buffered = place(&self.spec).is_some_and(|(_, _, buffered)| buffered);
        let target = target::open(&spec, &key, Intent { writes, destroy: &config.destroy, buffered })?;
        if target.facts.size_bytes < end {
            let user = self.uses.iter().find(|u| u.end == end).unwrap_or(&first);
            let (name, has) = (target.name(), target.facts.size_bytes);
            let message = format!("the stream would end at byte {end} of {name}, which has {has}");
            return Err(LiveError::bad(format!("streams[{}].bytes", user.stream), message));
        }
        self.target = Some(target);
        Ok(())
    }

    /// Past the page cache only whole sectors can be moved.
    fn check_alignment(&self, config: &StreamsConfig) -> Result<(), LiveError> {
        let Some(Target { store: Store::Fd(file), facts, .. }) = &self.target else { return Ok(()) };
        if facts.io != "direct" {
            return Ok(());
        }
        let align = if facts.kind == "block" { facts.sector_bytes } else { direct::alignment(file) };
        for used in &self.uses {
            let block = config.streams[used.stream].block_bytes;
            let key = key_of(used.stream, used.is_source);
            let values = [
                (format!("{key}.offset_bytes"), used.begin),
                (format!("streams[{}].block_bytes", used.stream), block),
                (format!("streams[{}].bytes", used.stream), used.end - used.begin),
            ];
            if let Some((key, value)) = values.into_iter().find(|(_, v)| !v.is_multiple_of(u64::from(align))) {
                let name = facts.path.clone().unwrap_or_default();
                let message =
                    format!("{value} must be a multiple of {align} for {name}, or that end \"buffered\": true");
                return Err(LiveError::bad(key, message));
            }
        }
        Ok(())
    }
}
