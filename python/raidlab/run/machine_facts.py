"""What this machine did while it measured: its clocks, its processors; read at the beginning and at the end.

Adding a fact: a function here, its key in `results.facts.MachineNow` and in `machine_facts`, a test, and the check that
reads it.

Invariants:

- Nothing is changed, and nothing waits.
- What cannot be read is None.

Reference: clock_gettime(2), clock_getres(2), proc_stat(5), proc_pid_stat(5); the kernel's
Documentation/timers/timekeeping.rst, accounting/psi.rst (cpu, "some": the time in which at least one task waited for a
processor), admin-guide/pm/cpufreq.rst, cgroup-v1 and cgroup-v2 (cpu.stat), ABI/testing/sysfs-devices-system-cpu
(thermal_throttle) and sysfs-class-power.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from raidlab.results.facts import Clock, Machine, MachineNow, OtherPrograms, Processor
from raidlab.run.kernel_facts import Sources
from raidlab.run.kernel_facts.sources import read_text
from raidlab.run.target_facts.limits import groups_of

# The parent of the kernel's own threads, which work for whoever asks.
_KTHREADD = 2


class MachineWatch:
    """The facts at the beginning, and at the end whenever that is asked for."""

    def __init__(self, sources: Sources | None = None) -> None:
        self._sources = sources or Sources()
        self._before = machine_facts(self._sources)

    def facts(self) -> Machine:
        """``before`` and ``after``, the latter being now."""
        return {"before": self._before, "after": machine_facts(self._sources)}


def machine_facts(sources: Sources | None = None) -> MachineNow:
    """All facts, now."""
    sources = sources or Sources()
    return {"clock": _clock(sources), "processor": _processor(sources), "others": _others(sources)}


def _clock(sources: Sources) -> Clock:
    """The kernel's source, its resolution, and three clocks at one moment: that of the boot goes on in sleep."""
    return {
        "source": read_text(
            sources.sys / "devices" / "system" / "clocksource" / "clocksource0" / "current_clocksource"
        ),
        "resolution_ns": round(time.clock_getres(time.CLOCK_MONOTONIC) * 1e9),
        "monotonic_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC),
        "raw_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW),
        "boot_ns": time.clock_gettime_ns(time.CLOCK_BOOTTIME),
    }


def _processor(sources: Sources) -> Processor:
    """Counters since boot, and settings as they are."""
    cpus = sources.sys / "devices" / "system" / "cpu"
    steal, ticks = _ticks(sources)
    return {
        "stolen_ticks": steal,
        "all_ticks": ticks,
        "heat_events": _sum_of(cpus.glob("cpu[0-9]*/thermal_throttle/core_throttle_count")),
        "governor": read_text(cpus / "cpu0" / "cpufreq" / "scaling_governor"),
        "frequency_cap_khz": _number(cpus / "cpu0" / "cpufreq" / "scaling_max_freq"),
        "frequency_most_khz": _number(cpus / "cpu0" / "cpufreq" / "cpuinfo_max_freq"),
        "on_battery": _on_battery(sources.sys / "class" / "power_supply"),
        "quota_stops": _quota_stops(sources),
    }


def _ticks(sources: Sources) -> tuple[int | None, int | None]:
    """Ticks that the host of a virtual machine took, and all ticks, of all processors together."""
    text = read_text(sources.proc / "stat") or ""
    line = next((line for line in text.splitlines() if line.startswith("cpu ")), "")
    # What guests got is counted in user and nice too, so only the first eight are added up.
    ticks = [int(word) for word in line.split()[1:9] if word.isdigit()]
    return (ticks[7], sum(ticks)) if len(ticks) == 8 else (None, None)


def _quota_stops(sources: Sources) -> int | None:
    """How often the quota of a control group stopped this process, of all groups it is in; None without any."""
    stopped: list[int] = []
    try:
        folders = list(groups_of(sources, ("cpu",)))
    except OSError:
        folders = []
    for folder in folders:
        for line in (read_text(folder / "cpu.stat") or "").splitlines():
            key, _, value = line.partition(" ")
            if key == "nr_throttled" and value.isdigit():
                stopped.append(int(value))
    return sum(stopped) if stopped else None


def _on_battery(folder: Path) -> bool | None:
    """Whether it runs from a battery; None where nothing says."""
    supplies = list(folder.iterdir()) if folder.is_dir() else []
    mains = [read_text(supply / "online") for supply in supplies if read_text(supply / "type") == "Mains"]
    return None if not mains else "1" not in mains


def _sum_of(files: Iterable[Path]) -> int | None:
    found = [number for file in files if (number := _number(file)) is not None]
    return sum(found) if found else None


def _number(file: Path) -> int | None:
    text = read_text(file) or ""
    return int(text) if text.isdigit() else None


def _others(sources: Sources) -> OtherPrograms:
    """``programs``: ticks of each other program by its number; ``waited_us`` since boot; None where it is not told."""
    return {"programs": _programs(sources.proc), "waited_us": _waited_us(sources.proc)}


def _programs(proc: Path) -> dict[str, int] | None:
    """Ticks of every program but this one and those that it started."""
    found: dict[int, tuple[int, int]] = {}
    try:
        folders = [folder for folder in proc.iterdir() if folder.name.isdigit()]
    except OSError:
        return None
    for folder in folders:
        # The name in brackets may hold anything, brackets too.
        words = (read_text(folder / "stat") or "").rpartition(")")[2].split()
        if len(words) > 12:
            found[int(folder.name)] = (int(words[1]), int(words[11]) + int(words[12]))
    own = {os.getpid()}
    for _ in range(len(found)):
        more = {number for number, (parent, _) in found.items() if parent in own} - own
        if not more:
            break
        own |= more
    return {
        str(number): ticks
        for number, (parent, ticks) in found.items()
        if number not in own and _KTHREADD not in (number, parent)
    }


def _waited_us(proc: Path) -> int | None:
    line = (read_text(proc / "pressure" / "cpu") or "").partition("\n")[0]
    total = line.partition("total=")[2]
    return int(total) if line.startswith("some") and total.isdigit() else None
