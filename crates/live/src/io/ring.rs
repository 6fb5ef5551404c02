//! The io_uring of one worker: set up once, files and buffers registered, entries pushed and answers reaped.
//!
//! Invariants:
//! - `in_flight` counts entries pushed and not yet reaped; the ring is not dropped before it is 0, so the kernel never
//!   writes to memory that is gone.
//! - No more is in flight than completions have room for, so none is ever lost or held back by the kernel.
//! - Registration of buffers is an optimisation: where the limit on locked memory forbids it, operations go on without.
//!
//! Reference: J. Axboe, *Efficient IO with io_uring*, 2019; io_uring_setup(2), io_uring_enter(2), io_uring_register(2).

use crate::error::{plain, LiveError};
use crate::memory::MemoryMapping;
use io_uring::{opcode, squeue, types, IoUring};
use raidlab_types::number::u32_from;
use raidlab_types::Duration;
use rustix::io::{preadv2, Errno, ReadWriteFlags};
use std::io::{self, IoSliceMut};
use std::mem::ManuallyDrop;
use std::os::fd::{BorrowedFd, RawFd};
use tracing::debug;

/// Entries of the submission queue: more are pushed in several batches.
const ENTRIES: u32 = 1024;
/// Room for completions, and so the most that may be in flight.
const MOST_IN_FLIGHT: u32 = ENTRIES * 4;
/// Most bytes of one entry: below MAX_RW_COUNT, and a multiple of every page size. The kernel itself splits at the
/// device's limit.
pub(crate) const MOST_BYTES: u64 = 1 << 30;
/// Slots for registered buffers, one a slab of memory.
const BUFFERS: u32 = 1024;
/// Longest buffer the kernel registers.
const LONGEST_BUFFER: usize = 1 << 30;

/// Whether slabs of memory are known to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Registration {
    /// So far all of them; the next gets this index.
    Next(u16),
    /// The kernel or the limit on locked memory forbade some.
    Refused,
}

/// The ring.
pub(crate) struct Ring {
    ring: IoUring,
    in_flight: u32,
    registration: Registration,
}

impl Ring {
    /// A ring that knows `files` by their position (-1 for none). With `poll_completions` the devices are asked for
    /// completions and raise no interrupts; that needs O_DIRECT and a driver that can.
    pub(crate) fn new(files: &[RawFd], poll_completions: bool) -> Result<Ring, LiveError> {
        let unsupported = |what: &str, e: io::Error| LiveError::Unsupported {
            key: "engine".into(),
            message: format!("io_uring {what} ({}); live runs need it, Linux 5.11 or later", plain(&e)),
        };
        let defers = !files.iter().any(|&fd| fd >= 0 && goes_to_workers(fd));
        let ring = set_up(poll_completions, defers).map_err(|e| unsupported("is not available here", e))?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            let old = io::Error::from(io::ErrorKind::Unsupported);
            return Err(unsupported("of this kernel is too old", old));
        }
        ring.submitter().register_files(files).map_err(|e| unsupported("refused to register the members", e))?;
        let registration = match ring.submitter().register_buffers_sparse(BUFFERS) {
            Ok(()) => Registration::Next(0),
            Err(error) => {
                debug!(%error, "the kernel registers no buffers, going on without");
                Registration::Refused
            }
        };
        debug!(files = files.len(), poll_completions, defers, "io_uring set up");
        Ok(Ring { ring, in_flight: 0, registration })
    }

    /// Makes memory known to the kernel; none where that is forbidden.
    ///
    /// The memory must stay mapped until the ring is dropped.
    pub(crate) fn register(&mut self, start: *mut u8, len: usize) -> Option<u16> {
        let Registration::Next(index) = self.registration else { return None };
        assert!(!start.is_null() && len > 0, "{len} bytes at {start:p} are no memory to register");
        let buffer = libc::iovec { iov_base: start.cast(), iov_len: len };
        if u32::from(index) >= BUFFERS || len > LONGEST_BUFFER {
            debug!(index, len, "memory is not registered: there is no room for it, going on without");
            self.registration = Registration::Refused;
            return None;
        }
        // SAFETY: slabs are dropped after the ring (order of the engine's fields).
        let result = unsafe { self.ring.submitter().register_buffers_update(u32::from(index), &[buffer], None) };
        if let Err(error) = &result {
            debug!(%error, index, len, "memory is not registered, going on without");
        }
        self.registration = if result.is_ok() { Registration::Next(index + 1) } else { Registration::Refused };
        result.is_ok().then_some(index)
    }

    /// Whether all memory is registered.
    pub(crate) fn all_registered(&self) -> bool {
        matches!(self.registration, Registration::Next(_))
    }

    /// Entries pushed and not yet reaped.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether nothing more may be pushed before something has been reaped.
    pub(crate) fn is_full(&self) -> bool {
        self.in_flight >= MOST_IN_FLIGHT
    }

    /// Queues an entry for the next submission; the ring must not be full.
    ///
    /// # Safety
    /// All memory the entry names stays valid until it is reaped.
    pub(crate) unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        assert!(!self.is_full(), "more is in flight than completions have room for");
        // SAFETY: passed on to the caller.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // The queue is full: hand over what is in it.
            retry(|| self.ring.submit())?;
        }
        self.in_flight += 1;
        Ok(())
    }

    /// Submits what is queued, without waiting.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        let pending = u32_from(self.ring.submission().len());
        // Completions of a ring with deferred work are made only when they are asked for.
        const GET_EVENTS: u32 = 1;
        // SAFETY: no argument is passed.
        retry(|| unsafe { self.ring.submitter().enter::<libc::sigset_t>(pending, 0, GET_EVENTS, None) })?;
        Ok(())
    }

    /// Submits what is queued and waits for a completion, at most `limit` long.
    pub(crate) fn submit_and_wait(&mut self, limit: Duration) -> io::Result<()> {
        let ns = limit.as_ns();
        let time = types::Timespec::new().sec(ns / 1_000_000_000).nsec((ns % 1_000_000_000) as u32);
        let arguments = types::SubmitArgs::new().timespec(&time);
        match self.ring.submitter().submit_with_args(1, &arguments) {
            Err(e) if !matches!(e.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)) => {
                Err(e)
            }
            _ => Ok(()),
        }
    }

    /// Reads so many bytes and forgets them: does this file answer at all? Nothing else may be in flight.
    pub(crate) fn try_read(&mut self, file: u32, offset: u64, bytes: u32) -> io::Result<()> {
        // Given back only once the kernel is done with it; should waiting fail, rather never.
        let mut memory = ManuallyDrop::new(MemoryMapping::new(bytes as usize)?);
        let target = (memory.as_ptr(), u64::from(bytes));
        let entry = transfer(false, types::Fixed(file), target, None, offset, 0);
        // SAFETY: the memory outlives the entry.
        unsafe { self.push(&entry) }?;
        loop {
            self.submit_and_wait(Duration::from_ms(100))?;
            if let Some((_, result)) = self.reap() {
                // SAFETY: dropped once, and not used afterwards.
                unsafe { ManuallyDrop::drop(&mut memory) };
                return if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) };
            }
        }
    }

    /// The next completion: what it was pushed with, and the result (a length, or minus an error number).
    #[inline]
    pub(crate) fn reap(&mut self) -> Option<(u64, i32)> {
        let entry = self.ring.completion().next()?;
        assert!(self.in_flight > 0, "the kernel answers what it was not asked");
        self.in_flight -= 1;
        Some((entry.user_data(), entry.result()))
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.in_flight > 0 {
            if let Err(error) = self.submit_and_wait(Duration::from_ms(100)) {
                // The kernel may still write to memory that is given back after this: going on would be worse than the end.
                eprintln!("raidlab: requests are in flight that cannot be waited for: {error}");
                std::process::abort();
            }
            while self.reap().is_some() {}
        }
        // The kernel tears a ring down some time after its descriptor is closed; the members' files, with their locks and
        // claims, must be free when the run is over.
        let _ = self.ring.submitter().unregister_files();
    }
}

/// Whether the kernel gives what is asked of a file to threads of its own, since the file cannot promise not to wait
/// (zram, and drivers of old). One block at its beginning is read to see.
fn goes_to_workers(fd: RawFd) -> bool {
    const BLOCK_BYTES: usize = 4096;
    let Ok(mut memory) = MemoryMapping::new(BLOCK_BYTES) else { return false };
    // SAFETY: whoever makes a ring keeps its files open meanwhile.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    let read = preadv2(file, &mut [IoSliceMut::new(memory.bytes_mut())], 0, ReadWriteFlags::NOWAIT);
    read == Err(Errno::OPNOTSUPP)
}

/// The cheapest ring this kernel offers: if that `defers`, with work deferred to the waiting thread (6.1), else without
/// interrupts (5.19), else plain. Threads of the kernel's would wake the waiting thread once more for deferred work.
fn set_up(poll_completions: bool, defers: bool) -> io::Result<IoUring> {
    let sized = || {
        let mut builder = IoUring::builder();
        builder.setup_cqsize(MOST_IN_FLIGHT);
        if poll_completions {
            builder.setup_iopoll();
        }
        builder
    };
    let invalid = |e: &io::Error| e.raw_os_error() == Some(libc::EINVAL);
    let with_workers = || match sized().setup_coop_taskrun().build(ENTRIES) {
        Err(e) if invalid(&e) => {
            debug!("the kernel cannot do without interrupts (5.19 can), falling back to a plain ring");
            sized().build(ENTRIES)
        }
        other => other,
    };
    if !defers {
        return with_workers();
    }
    match sized().setup_single_issuer().setup_defer_taskrun().build(ENTRIES) {
        Err(e) if invalid(&e) => {
            debug!("the kernel cannot defer work to the waiting thread (6.1 can), falling back to a ring without");
            with_workers()
        }
        other => other,
    }
}

/// The entry that moves `len` bytes between memory (in the registered buffer of this index, if any) and `file`.
#[inline]
pub(crate) fn transfer(
    writes: bool,
    file: types::Fixed,
    (start, len): (*mut u8, u64),
    registered: Option<u16>,
    offset: u64,
    flags: i32,
) -> squeue::Entry {
    assert!(!start.is_null() && len > 0, "{len} bytes at {start:p} are no memory to move");
    let len = len.min(MOST_BYTES) as u32;
    match (writes, registered) {
        (false, Some(index)) => opcode::ReadFixed::new(file, start, len, index).offset(offset).build(),
        (false, None) => opcode::Read::new(file, start, len).offset(offset).build(),
        (true, Some(index)) => opcode::WriteFixed::new(file, start, len, index).offset(offset).rw_flags(flags).build(),
        (true, None) => opcode::Write::new(file, start, len).offset(offset).rw_flags(flags).build(),
    }
}

fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
