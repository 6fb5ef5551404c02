//! `block`: a whole block device, read by default, written only as the safety rules allow.

use super::direct::{self, Access};
use super::{Intent, Store, Target, TargetFacts};
use crate::error::{plain, LiveError};
use crate::safety::{self, numbers::DevNumbers};
use rustix::fs::ioctl_blksszget;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

pub(super) fn open(path: &Path, named: bool, key: &str, intent: Intent<'_>) -> Result<Target, LiveError> {
    let path_key = format!("{key}.path");
    let fail = |doing: &str, e: &io::Error| LiveError::io(&path_key, path.display().to_string(), doing, e);
    let found =
        std::fs::metadata(path).map_err(|e| LiveError::bad(&path_key, format!("{}: {}", path.display(), plain(&e))))?;
    if !found.file_type().is_block_device() {
        let message = format!("{} is not a block device; a regular file's kind is \"file\"", path.display());
        return Err(LiveError::bad(&path_key, message));
    }
    let numbers = DevNumbers::of(found.rdev());
    let named = named || intent.destroy.iter().any(|name| numbers.is_named_by(name));
    let (file, signature) = if intent.writes {
        let allowed = safety::may_overwrite(path, numbers, named, &path_key)?;
        (allowed.device, Some(allowed.signature))
    } else {
        (File::open(path).map_err(|e| fail("opening to read", &e))?, None)
    };
    let size_bytes = (&file).seek(SeekFrom::End(0)).map_err(|e| fail("reading its size", &e))?;
    if size_bytes == 0 {
        return Err(LiveError::bad(&path_key, format!("{} has a size of 0 (no medium?)", path.display())));
    }
    let block = ioctl_blksszget(&file).map_err(|e| fail("reading its logical block size", &e.into()))?;
    let access = direct::enable(&file, intent.buffered);
    let mut facts = TargetFacts::of_block(path, numbers, size_bytes, access);
    facts.sector_bytes = match access {
        Access::Direct { align_bytes } => align_bytes.max(block),
        Access::Buffered => block,
    };
    facts.overwritten_signature = signature;
    Ok(Target::new(key, facts, Store::Fd(file)))
}
