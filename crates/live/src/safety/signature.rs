//! What stands on a block device, according to libblkid's own tool.
//!
//! `blkid -p` probes the device itself, past its cache, and knows every file system, RAID superblock and partition table
//! that util-linux knows. Where it is missing or fails, that is said, and nothing is taken for blank.
//!
//! Reference: blkid(8), section "Exit code".

use std::path::Path;
use std::process::{Command, Stdio};

/// Where util-linux puts it when `PATH` does not lead there (users often have no `sbin`).
const PLACES: [&str; 4] = ["blkid", "/usr/sbin/blkid", "/sbin/blkid", "/usr/bin/blkid"];

/// What stands on the device, as the end of the sentence "X is a block device and ...".
pub(super) fn describe(path: &Path) -> String {
    for tool in PLACES {
        let mut command = Command::new(tool);
        command.args(["-p", "-o", "export"]).arg(path).env("LC_ALL", "C").stdin(Stdio::null());
        if let Ok(output) = command.output() {
            return judge(output.status.code(), &String::from_utf8_lossy(&output.stdout));
        }
    }
    unknown("blkid is not installed")
}

fn judge(code: Option<i32>, answer: &str) -> String {
    match code {
        Some(0) => found(answer),
        Some(2) => "no signature was found on it".to_string(),
        Some(8) => "holds several signatures at once".to_string(),
        _ => unknown("blkid failed"),
    }
}

fn unknown(why: &str) -> String {
    format!("what it holds could not be determined ({why})")
}

/// Reads `KEY=value` lines; those of the partition's own entry say nothing about what is in it.
fn found(answer: &str) -> String {
    let value = |key: &str| {
        let of_key = |line: &str| line.strip_prefix(key)?.strip_prefix('=').map(str::to_string);
        answer.lines().find_map(of_key)
    };
    let label = value("LABEL").map(|label| format!(" \"{label}\"")).unwrap_or_default();
    match (value("TYPE"), value("PTTYPE")) {
        (Some(kind), _) => format!("holds {kind}{label}"),
        (None, Some(table)) => format!("holds a partition table ({table})"),
        (None, None) => "no signature was found on it".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_blkid_are_understood() {
        let ext4 = "DEVNAME=/dev/x\nLABEL=home\nUUID=1-2\nBLOCK_SIZE=4096\nTYPE=ext4\nUSAGE=filesystem\n";
        assert_eq!(judge(Some(0), ext4), "holds ext4 \"home\"");
        assert_eq!(judge(Some(0), "DEVNAME=/dev/x\nPTTYPE=gpt\n"), "holds a partition table (gpt)");
        assert_eq!(judge(Some(0), "DEVNAME=/dev/x1\nPART_ENTRY_TYPE=0x83\n"), "no signature was found on it");
        assert_eq!(judge(Some(2), ""), "no signature was found on it");
        assert!(judge(Some(8), "").contains("several"));
        assert!(judge(Some(4), "").contains("could not be determined"));
        assert!(judge(None, "").contains("could not be determined"));
    }
}
