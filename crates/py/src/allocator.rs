//! Memory that cannot be had ends the program in one clear line, not in an abort.
//!
//! Rust aborts (SIGABRT) where an allocation fails, in words about layouts. Under `ulimit -v`, or in a container, that is
//! a thing a user meets: it is said in a sentence, with the exit code of a measurement that failed. What was measured
//! until then lies in the run's folder, from which the run goes on.
//!
//! Invariant: nothing is allocated on the way out.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, whose failures are told.
pub(crate) struct SystemAllocator;

/// `EXIT_FAILED` of `errors.py`.
const EXIT_FAILED: i32 = 1;
const MESSAGE: &[u8] = b"error: out of memory (ulimit -v, a container's limit, or the machine's own); \
what a run had measured is kept in its folder\n";

#[cold]
fn end() -> ! {
    // SAFETY: the message is a constant of that length; `_exit` runs nothing of ours, and does not return.
    unsafe {
        libc::write(2, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(EXIT_FAILED)
    }
}

fn had(pointer: *mut u8) -> *mut u8 {
    if pointer.is_null() {
        end();
    }
    pointer
}

// SAFETY: every call goes to the system's allocator as it is; a null pointer is not handed on.
unsafe impl GlobalAlloc for SystemAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about the layout.
        had(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about the layout.
        had(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise that the pointer is of this allocator and layout.
        had(unsafe { System.realloc(pointer, layout, new_bytes) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise that the pointer is of this allocator and layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}
