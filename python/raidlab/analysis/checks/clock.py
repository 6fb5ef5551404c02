"""Can the clock be trusted?

Every figure is a count over a time. A slow clock source costs a microsecond at every reading, a coarse one cannot see a
short request, one that is being put right goes faster or slower than a second a second, and none of them notices that
the machine slept.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import PASS, UNKNOWN, WARN, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Machine

NAME = "clock"
# Sources that are read without leaving the processor, or nearly so, and agree between processors.
_GOOD = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "xen", "timebase", "tod")
_COARSE_SHARE = 0.05
_MOST_SLEW_PPM = 500.0
# Over a shorter time the readings themselves are no better than this.
_LEAST_SLEW_NS = 10_000_000_000
_SLEPT_NS = 50_000_000


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN for a slow or coarse clock source, a slew of over 500 ppm, or a machine that slept meanwhile."""
    machine = analysis.run.facts.get("machine")
    if machine is None:
        return
    medians = [
        value
        for point in analysis.points
        if point.target == "live" and (value := point.response.percentile_ns(50)) is not None
    ]
    yield of_machine(machine, "run", fastest_ns=min(medians, default=None))


def of_machine(machine: Machine, target: str, *, fastest_ns: float | None = None) -> Finding:
    """By the clock source, its resolution, and how far three clocks went between before and after."""
    before, after = machine["before"]["clock"], machine["after"]["clock"]
    source = after["source"]
    if source is None:
        why = "sysfs names no clock source here"
        return Finding(NAME, target, UNKNOWN, f"Could not be determined, because {why}.")
    wrong = []
    if source not in _GOOD:
        wrong.append(f"the clock source {source} is slow to read")
    if before["source"] not in (None, source):
        wrong.append(f"the kernel changed it from {before['source']} to {source} meanwhile")
    if fastest_ns is not None and after["resolution_ns"] > _COARSE_SHARE * fastest_ns:
        wrong.append(f"it tells {after['resolution_ns']} ns apart, and the fastest median is {fastest_ns:.0f} ns")
    passed_ns = after["monotonic_ns"] - before["monotonic_ns"]
    raw_ns, boot_ns = after["raw_ns"] - before["raw_ns"], after["boot_ns"] - before["boot_ns"]
    slew_ppm = abs(passed_ns / raw_ns - 1) * 1e6 if raw_ns > _LEAST_SLEW_NS else 0.0
    if slew_ppm > _MOST_SLEW_PPM:
        wrong.append(f"it was put right by {slew_ppm:.0f} ppm while measuring")
    if boot_ns - passed_ns > _SLEPT_NS:
        wrong.append(f"the machine slept for {(boot_ns - passed_ns) / 1e9:.1f} s meanwhile")
    if wrong:
        remedy = "Boot with clocksource=tsc if the processor's is stable, let the clock settle, keep the machine awake."
        return Finding(NAME, target, WARN, f"Source {source}: {'; '.join(wrong)}.", remedy)
    slewed = f", and went at its own rate to {slew_ppm:.0f} ppm" if raw_ns > _LEAST_SLEW_NS else ""
    evidence = f"The clock source is {source}; it tells {after['resolution_ns']} ns apart{slewed}."
    return Finding(NAME, target, PASS, evidence)
