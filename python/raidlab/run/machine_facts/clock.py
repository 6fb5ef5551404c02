"""The clocks: which source the kernel reads, how fine it is, and how it goes against the hardware's own rate.

Reference: clock_gettime(2), clock_getres(2); the kernel's Documentation/timers/timekeeping.rst.
"""

from __future__ import annotations

import time

from raidlab.results.facts import Clock
from raidlab.run.kernel_facts import Sources
from raidlab.run.target_facts.stack import read_word_plain


def fact(sources: Sources) -> Clock:
    """The source, the resolution, and three clocks at one moment; that of the boot goes on while the machine sleeps."""
    return {
        "source": read_word_plain(
            sources.sys / "devices" / "system" / "clocksource" / "clocksource0" / "current_clocksource"
        ),
        "resolution_ns": round(time.clock_getres(time.CLOCK_MONOTONIC) * 1e9),
        "monotonic_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC),
        "raw_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW),
        "boot_ns": time.clock_gettime_ns(time.CLOCK_BOOTTIME),
    }
