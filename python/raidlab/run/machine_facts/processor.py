"""What can slow the processors down: heat, a cap on their frequency, a battery, a quota, a host that takes them away.

Reference: proc_stat(5); the kernel's Documentation/admin-guide/pm/cpufreq.rst, cgroup-v1 and cgroup-v2 (cpu.stat),
Documentation/ABI/testing/sysfs-devices-system-cpu (thermal_throttle), sysfs-class-power.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from raidlab.results.facts import Processor
from raidlab.run.kernel_facts import Sources
from raidlab.run.target_facts.limits import groups_of
from raidlab.run.target_facts.stack import read_word_plain


def fact(sources: Sources) -> Processor:
    """Counters since boot, and settings as they are."""
    cpus = sources.sys / "devices" / "system" / "cpu"
    steal, ticks = _ticks(sources)
    return {
        "stolen_ticks": steal,
        "all_ticks": ticks,
        "heat_events": _sum_of(cpus.glob("cpu[0-9]*/thermal_throttle/core_throttle_count")),
        "governor": read_word_plain(cpus / "cpu0" / "cpufreq" / "scaling_governor"),
        "frequency_cap_khz": _number(cpus / "cpu0" / "cpufreq" / "scaling_max_freq"),
        "frequency_most_khz": _number(cpus / "cpu0" / "cpufreq" / "cpuinfo_max_freq"),
        "on_battery": _on_battery(sources.sys / "class" / "power_supply"),
        "quota_stops": _quota_stops(sources),
    }


def _ticks(sources: Sources) -> tuple[int | None, int | None]:
    """Ticks that the host of a virtual machine took, and all ticks, of all processors together."""
    text = read_word_plain(sources.proc / "stat") or ""
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
        for line in (read_word_plain(folder / "cpu.stat") or "").splitlines():
            key, _, value = line.partition(" ")
            if key == "nr_throttled" and value.isdigit():
                stopped.append(int(value))
    return sum(stopped) if stopped else None


def _on_battery(folder: Path) -> bool | None:
    """Whether it runs from a battery; None where nothing says."""
    supplies = list(folder.iterdir()) if folder.is_dir() else []
    mains = [read_word_plain(supply / "online") for supply in supplies if read_word_plain(supply / "type") == "Mains"]
    return None if not mains else "1" not in mains


def _sum_of(files: Iterable[Path]) -> int | None:
    found = [number for file in files if (number := _number(file)) is not None]
    return sum(found) if found else None


def _number(file: Path) -> int | None:
    text = read_word_plain(file) or ""
    return int(text) if text.isdigit() else None
