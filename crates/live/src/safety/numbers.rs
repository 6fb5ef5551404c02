//! Device numbers: the only true name of a block device.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// `major:minor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct DevNumbers {
    pub major: u32,
    pub minor: u32,
}

impl fmt::Display for DevNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl DevNumbers {
    /// From the word that `stat` gives.
    pub(crate) fn of(word: u64) -> DevNumbers {
        DevNumbers { major: libc::major(word), minor: libc::minor(word) }
    }

    /// From `254:1`.
    pub(crate) fn parse(text: &str) -> Option<DevNumbers> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(DevNumbers { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// Where sysfs describes the device.
    pub(crate) fn sysfs(self) -> PathBuf {
        PathBuf::from(format!("/sys/dev/block/{self}"))
    }

    /// Whether `name` (a path, or `major:minor`) names this very device.
    pub(crate) fn is_named_by(self, name: &Path) -> bool {
        if name.to_str().and_then(DevNumbers::parse) == Some(self) {
            return true;
        }
        let is_block = |m: &std::fs::Metadata| std::os::unix::fs::FileTypeExt::is_block_device(&m.file_type());
        std::fs::metadata(name).is_ok_and(|m| is_block(&m) && DevNumbers::of(m.rdev()) == self)
    }

    /// The device itself, its partitions, and the disk it is a partition of: writing one changes, or may change, these.
    pub(crate) fn related(self) -> Vec<DevNumbers> {
        let mut all = vec![self];
        let Ok(here) = std::fs::canonicalize(self.sysfs()) else { return all };
        let numbers_in = |dir: &Path| DevNumbers::parse(&std::fs::read_to_string(dir.join("dev")).ok()?);
        if here.join("partition").exists() {
            all.extend(here.parent().and_then(numbers_in));
        }
        let entries = std::fs::read_dir(&here).into_iter().flatten().flatten().map(|entry| entry.path());
        all.extend(entries.filter(|dir| dir.join("partition").exists()).filter_map(|dir| numbers_in(&dir)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_named() {
        let numbers = DevNumbers { major: 7, minor: 3 };
        assert_eq!(DevNumbers::parse("7:3\n"), Some(numbers));
        assert_eq!(DevNumbers::parse("7"), None);
        assert!(numbers.is_named_by(Path::new("7:3")));
        assert!(!numbers.is_named_by(Path::new("7:30")));
        assert!(!numbers.is_named_by(Path::new("/dev/null")));
        assert_eq!(numbers.sysfs(), PathBuf::from("/sys/dev/block/7:3"));
    }
}
