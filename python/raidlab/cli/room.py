"""Whether this process may have what any measurement needs: address space, threads, open files.

Libraries that cannot have them (OpenBLAS, jemalloc, Polars, V8) warn, abort, or raise SIGINT as if somebody had pressed
Ctrl-C, each while it is being loaded. So it is tried beforehand, by taking as much and letting it go.
"""

from __future__ import annotations

import mmap
import os
import threading

# What raidlab's libraries map while they are loaded, and what they add for each processor (stacks, arenas).
_LEAST_BYTES = 3 << 29
_BYTES_PER_PROCESSOR = 64 << 20
# Threads of Polars, OpenBLAS, jemalloc, Tokio and DuckDB for each processor, and those that are as many on any machine,
# V8's and our own among them: with two processors a run with its report has 19, a query 23.
_THREADS_PER_PROCESSOR = 4
_OWN_THREADS = 14
# Open at once beside what is open now: figures need that many.
_FILES = 20


def make_sure_of_room() -> None:
    """Try whether all of that can be had; what cannot is raised as Python itself would raise it later."""
    opened: list[int] = []
    try:
        for _ in range(_FILES):
            opened.append(os.open("/dev/null", os.O_RDONLY))
    finally:
        for descriptor in opened:
            os.close(descriptor)
    processors = len(os.sched_getaffinity(0))
    try:
        mmap.mmap(
            -1,
            _LEAST_BYTES + processors * _BYTES_PER_PROCESSOR,
            flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
            # Only addresses: nothing that could be written is asked for.
            prot=0,
        ).close()
    except OSError:
        raise MemoryError from None
    ended = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(processors * _THREADS_PER_PROCESSOR + _OWN_THREADS):
            thread = threading.Thread(target=ended.wait, daemon=True)
            thread.start()
            started.append(thread)
    finally:
        ended.set()
        for thread in started:
            thread.join()
