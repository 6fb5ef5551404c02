//! What was acknowledged is read back once the load is over and the window closed: a write that was lost is found here.
//!
//! Invariants:
//! - It takes no longer than its budget and one request of each thread; what was not reached is not said to be right.
//! - Which writes come first is drawn, so that a budget that ends early leaves no part of a target out.

use crate::content::{ContentCheck, NotedWrite};
use crate::memory::MemoryMapping;
use crate::target::{Store, Target};
use raidlab_types::number::usize_from;
use raidlab_types::{Duration, Seed};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Reads under way at once.
const THREADS: usize = 16;
/// Reads back what a worker has noted.
pub(super) fn read_back(check: &mut ContentCheck, targets: &[Target], sector_bytes: u32, seed: u64, budget: Duration) {
    let mut noted = check.take_noted();
    shuffle(&mut noted, seed);
    let longest = usize_from(noted.iter().map(|written| written.extent.sectors).max().unwrap_or(0));
    let (until, next) = (Instant::now() + std::time::Duration::from_nanos(budget.as_ns()), AtomicUsize::new(0));
    let (check, noted) = (Mutex::new(check), &noted[..]);
    let work = || {
        let Ok(mut buffer) = MemoryMapping::new((longest * sector_bytes as usize).max(1)) else { return };
        while Instant::now() < until {
            let Some(written) = noted.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let bytes = &mut buffer.bytes_mut()[..usize_from(written.extent.sectors) * sector_bytes as usize];
            let at = written.extent.lba * u64::from(sector_bytes);
            let read = read(&targets[written.volume as usize], at, bytes);
            check.lock().unwrap_or_else(PoisonError::into_inner).read_back(written, read.then_some(bytes));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS.min(noted.len()) {
            // What cannot be started is not needed: the others do its work.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
    });
}

fn read(target: &Target, at: u64, bytes: &mut [u8]) -> bool {
    match &target.store {
        Store::Fd(file) => file.read_exact_at(bytes, at).is_ok(),
        Store::Memory(mapping) => {
            let there = mapping.at(at, bytes.len());
            // SAFETY: so many bytes are there, and no worker uses them any more.
            unsafe { std::ptr::copy_nonoverlapping(there, bytes.as_mut_ptr(), bytes.len()) };
            true
        }
        Store::Null | Store::Emulated(..) => false,
    }
}

fn shuffle(noted: &mut [NotedWrite], seed: u64) {
    let mut random = Seed::new(seed).named("read back").draws();
    for i in (1..noted.len()).rev() {
        noted.swap(i, usize_from(random.next_u64() % (i as u64 + 1)));
    }
}
