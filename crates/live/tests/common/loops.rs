//! Loop and zram devices for tests that need real block devices: only as root, gone afterwards even after a panic.

use super::Place;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Why loop devices cannot be had here, if so.
pub(crate) fn unavailable() -> Option<String> {
    let id = Command::new("id").arg("-u").output().ok()?;
    if id.stdout.trim_ascii() != b"0" {
        return Some("it needs root for loop devices".to_string());
    }
    for tool in ["losetup", "mkfs.ext4", "mount", "blkid"] {
        if Command::new(tool).arg("--version").output().is_err() && Command::new(tool).arg("-V").output().is_err() {
            return Some(format!("it needs {tool}"));
        }
    }
    (!Path::new("/dev/loop-control").exists()).then(|| "this kernel has no loop devices".to_string())
}

/// Skips the calling test with a printed reason where loop devices cannot be had.
#[macro_export]
macro_rules! need_loops {
    () => {
        if let Some(reason) = common::loops::unavailable() {
            println!("skipped: {reason}");
            return;
        }
    };
}

/// A loop device over a file of zeroes, and perhaps a mount of it.
pub(crate) struct Loop {
    device: PathBuf,
    mounted: Option<PathBuf>,
    swapped_on: bool,
}

fn must(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

impl Loop {
    /// Over `name` in `place`, with this logical block.
    pub(crate) fn new(place: &Place, name: &str, bytes: u64, block: u32) -> Loop {
        let path = place.path(name);
        std::fs::File::create(&path).and_then(|f| f.set_len(bytes)).expect("a file behind the loop device");
        Loop::over(path, block)
    }

    /// Over a file that exists.
    pub(crate) fn over(path: PathBuf, block: u32) -> Loop {
        let block = block.to_string();
        let device = must(Command::new("losetup").args(["-f", "-P", "--show", "-b", &block]).arg(&path));
        // A loop device that somebody made read-only stays so for whoever gets it next.
        must(Command::new("blockdev").arg("--setrw").arg(&device));
        Loop { device: device.into(), mounted: None, swapped_on: false }
    }

    pub(crate) fn device(&self) -> &Path {
        &self.device
    }

    pub(crate) fn make_ext4(&self) {
        must(Command::new("mkfs.ext4").args(["-q", "-F", "-L", "precious"]).arg(&self.device));
    }

    pub(crate) fn mount(&mut self, at: PathBuf) {
        self.mount_device(self.device.clone(), at);
    }

    fn mount_device(&mut self, device: PathBuf, at: PathBuf) {
        std::fs::create_dir_all(&at).expect("a mount point");
        must(Command::new("mount").arg(device).arg(&at));
        self.mounted = Some(at);
    }

    /// Cuts it in two halves; returns the partitions. The kernel is told directly: it may know no partition tables.
    pub(crate) fn partition(&self) -> Option<[PathBuf; 2]> {
        let sectors = self.head_and_size().1 / 512;
        for (number, start) in [(1, 2048), (2, sectors / 2)] {
            let (number, start, length) = (number.to_string(), start.to_string(), (sectors / 4).to_string());
            let done = Command::new("addpart").arg(&self.device).args([&number, &start, &length]).status();
            done.ok().filter(|status| status.success())?;
        }
        let part = |n: u32| PathBuf::from(format!("{}p{n}", self.device.display()));
        Some([part(1), part(2)])
    }

    pub(crate) fn mount_partition(&mut self, partition: &Path, at: PathBuf) {
        must(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(partition));
        self.mount_device(partition.to_path_buf(), at);
    }

    /// Whether the kernel took it as swap.
    pub(crate) fn swap_on(&mut self) -> bool {
        must(Command::new("mkswap").arg(&self.device));
        self.swapped_on = Command::new("swapon").arg(&self.device).status().is_ok_and(|status| status.success());
        self.swapped_on
    }

    /// The first bytes of the device.
    pub(crate) fn head(&self) -> Vec<u8> {
        self.head_and_size().0
    }

    fn head_and_size(&self) -> (Vec<u8>, u64) {
        let mut bytes = vec![0; 1 << 20];
        let mut file = std::fs::File::open(&self.device).expect("the device");
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).expect("its first MiB");
        let size = std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).expect("its size");
        (bytes, size)
    }
}

impl Loop {
    /// The kernel lets go of the file behind it when the last who looks at the device has closed it: later than `losetup`
    /// returns, where something that watches devices has it open.
    fn wait_until_detached(&self) {
        let name = self.device.file_name().expect("a device has a name");
        let bound = Path::new("/sys/block").join(name).join("loop");
        let deadline = Instant::now() + Duration::from_secs(20);
        while bound.exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if let Some(point) = &self.mounted {
            let _ = Command::new("umount").arg(point).status();
        }
        if self.swapped_on {
            let _ = Command::new("swapoff").arg(&self.device).status();
        }
        let _ = Command::new("losetup").arg("-d").arg(&self.device).status();
        self.wait_until_detached();
    }
}

/// A compressed disk in memory that fails writes (EIO) once it is full: a disk that really breaks.
pub(crate) struct Zram {
    number: String,
}

impl Zram {
    /// Of `bytes`, of which it can hold `limit`; none where the kernel has no such thing.
    pub(crate) fn new(bytes: u64, limit: u64) -> Option<Zram> {
        let number = std::fs::read_to_string("/sys/class/zram-control/hot_add").ok()?.trim().to_string();
        let zram = Zram { number };
        zram.set("disksize", bytes)?;
        zram.set("mem_limit", limit)?;
        Some(zram)
    }

    pub(crate) fn device(&self) -> PathBuf {
        PathBuf::from(format!("/dev/zram{}", self.number))
    }

    fn set(&self, name: &str, value: u64) -> Option<()> {
        std::fs::write(format!("/sys/block/zram{}/{name}", self.number), value.to_string()).ok()
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        // A process that another test is starting may hold a copy of the descriptor for a moment longer.
        for _ in 0..100 {
            if std::fs::write("/sys/class/zram-control/hot_remove", &self.number).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}
