//! Where io_uring is absent or forbidden: threads that each wait for one `pread` or `pwrite` at a time.
//!
//! Purpose: the same requests at the same depth, for systems (containers, old kernels) that allow no ring. A request
//! costs two locks and up to two wakes more than in the ring, so results say that they were measured this way.
//!
//! Invariants:
//! - At most as many requests are in service as there are threads; the rest wait in order of arrival.
//! - Threads end before this is dropped, so no memory is written to after that.

use super::slot::RequestSlot;
use crate::memory::LentMemory;
use raidlab_types::Duration;
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Most threads of a run: beyond, they would measure the scheduler.
pub(super) const MOST_THREADS: u32 = 256;
/// They do two calls and keep nothing.
const STACK_BYTES: usize = 64 << 10;

/// What a thread is to do.
#[derive(Clone, Copy)]
struct BlockingCall {
    tag: u32,
    fd: RawFd,
    writes: bool,
    memory: LentMemory,
    offset: libc::off_t,
}

#[derive(Default)]
struct JobQueues {
    /// None ends the thread that takes it.
    jobs: Mutex<VecDeque<Option<BlockingCall>>>,
    job_there: Condvar,
    done: Mutex<VecDeque<(u32, i64)>>,
    done_there: Condvar,
}

/// The threads of one worker.
pub(super) struct Threads {
    queues: Arc<JobQueues>,
    handles: Vec<JoinHandle<()>>,
    /// Taken from the queue and not yet reaped.
    ready: VecDeque<(u32, i64)>,
    in_flight: u32,
}

impl Threads {
    /// So many threads, waiting for work.
    pub(super) fn new(count: u32) -> io::Result<Threads> {
        let queues = Arc::new(JobQueues::default());
        let mut threads =
            Threads { queues, handles: Vec::new(), ready: VecDeque::with_capacity(count as usize), in_flight: 0 };
        for _ in 0..count {
            let queues = threads.queues.clone();
            let builder = std::thread::Builder::new().name("raidlab-io".into()).stack_size(STACK_BYTES);
            threads.handles.push(builder.spawn(move || work(&queues))?);
        }
        Ok(threads)
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Gives what is left of a request to the next thread that is free.
    ///
    /// # Safety
    /// The slot's memory stays valid and untouched until the tag comes back from [`Self::reap`], and the descriptor open.
    pub(super) unsafe fn start(&mut self, tag: u32, slot: &RequestSlot, fd: RawFd) {
        let RequestSlot { start, offset, left, writes, .. } = *slot;
        let offset = libc::off_t::try_from(offset).expect("targets end below 2^63 bytes");
        // SAFETY: the caller's promise.
        let memory = unsafe { LentMemory::new(start, left.min(crate::io::MOST_BYTES) as usize) };
        self.in_flight += 1;
        lock(&self.queues.jobs).push_back(Some(BlockingCall { tag, fd, writes, memory, offset }));
        self.queues.job_there.notify_one();
    }

    pub(super) fn reap(&mut self) -> Option<(u32, i64)> {
        if self.ready.is_empty() && self.in_flight > 0 {
            std::mem::swap(&mut self.ready, &mut lock(&self.queues.done));
        }
        let done = self.ready.pop_front()?;
        self.in_flight -= 1;
        Some(done)
    }

    /// Waits until something has come back, at most `limit` long.
    pub(super) fn wait(&mut self, limit: Duration) {
        if !self.ready.is_empty() {
            return;
        }
        let done = lock(&self.queues.done);
        let limit = std::time::Duration::from_nanos(limit.as_ns());
        let waited = self.queues.done_there.wait_timeout_while(done, limit, |done| done.is_empty());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        lock(&self.queues.jobs).extend(self.handles.iter().map(|_| None));
        self.queues.job_there.notify_all();
        self.handles.drain(..).for_each(|handle| drop(handle.join()));
    }
}

/// A thread that panicked holding a lock has changed nothing that is not whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(queues: &JobQueues) {
    while let Some(job) = next(queues) {
        let result = carry_out(&job);
        let mut done = lock(&queues.done);
        done.push_back((job.tag, result));
        // Only the first of several tells: the worker takes all there are.
        if done.len() == 1 {
            queues.done_there.notify_one();
        }
    }
}

/// The next job; none where the thread is to end.
fn next(queues: &JobQueues) -> Option<BlockingCall> {
    let jobs = queues.job_there.wait_while(lock(&queues.jobs), |jobs| jobs.is_empty());
    jobs.unwrap_or_else(PoisonError::into_inner).pop_front().flatten()
}

/// Bytes moved, or minus an error number.
fn carry_out(job: &BlockingCall) -> i64 {
    let BlockingCall { fd, writes, memory, offset, .. } = *job;
    let (start, len) = (memory.as_ptr(), memory.len());
    // SAFETY: whoever started the job keeps the memory until it comes back, and the descriptor open.
    let moved = unsafe {
        match writes {
            true => libc::pwrite(fd, start.cast(), len, offset),
            false => libc::pread(fd, start.cast(), len, offset),
        }
    };
    assert!(
        usize::try_from(moved).is_ok_and(|moved| moved <= len) || moved == -1,
        "the kernel has moved {moved} of {len}"
    );
    if moved < 0 {
        return -i64::from(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO));
    }
    moved as i64
}
