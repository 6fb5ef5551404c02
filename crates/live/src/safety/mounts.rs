//! What is mounted where, from `/proc/self/mountinfo`.
//!
//! Reference: proc(5).

use super::numbers::DevNumbers;
use std::path::{Path, PathBuf};

/// One mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub numbers: DevNumbers,
    pub point: PathBuf,
    pub kind: String,
    pub source: String,
    pub options: String,
}

/// All that is mounted, in order; the last of several at one place is the visible one.
pub(crate) fn all() -> Vec<Mount> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(parse).collect()
}

/// The file system that holds `path`.
pub(crate) fn containing(path: &Path) -> Option<Mount> {
    let path = std::fs::canonicalize(path).ok()?;
    // The longest mount point wins, the last of equals.
    all().into_iter().filter(|m| path.starts_with(&m.point)).max_by_key(|m| m.point.as_os_str().len())
}

/// `36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/root rw,errors=continue`
fn parse(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(2);
    let numbers = DevNumbers::parse(fields.next()?)?;
    let point = PathBuf::from(unescape(fields.nth(1)?));
    let flags = fields.next()?;
    let mut of_system = after.split(' ');
    let (kind, source) = (of_system.next()?.to_string(), unescape(of_system.next()?));
    let options = match of_system.next() {
        Some(more) => format!("{flags};{more}"),
        None => flags.to_string(),
    };
    Some(Mount { numbers, point, kind, source, options })
}

/// Blanks and the like stand as `\040`.
fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let octal = text.get(i + 1..i + 4).filter(|_| bytes[i] == b'\\').and_then(|o| u8::from_str_radix(o, 8).ok());
        match octal {
            Some(byte) => {
                out.push(byte);
                i += 4;
            }
            None => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_and_without_optional_fields() {
        let line = r"36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 shared:3 - ext3 /dev/root rw,errors=continue";
        let mount = parse(line).expect("a line of proc(5)");
        assert_eq!(mount.numbers, DevNumbers { major: 98, minor: 0 });
        assert_eq!(mount.point, PathBuf::from("/mnt 2"));
        assert_eq!((mount.kind.as_str(), mount.source.as_str()), ("ext3", "/dev/root"));
        assert_eq!(mount.options, "rw,noatime;rw,errors=continue");
        assert!(parse("1 2 0:5 / /proc rw - proc proc rw").is_some());
        assert!(parse("garbage").is_none());
    }

    #[test]
    fn the_root_contains_everything() {
        assert!(containing(Path::new("/proc/self")).is_some_and(|m| m.kind == "proc"));
        assert!(all().iter().any(|m| m.point == Path::new("/")));
    }
}
