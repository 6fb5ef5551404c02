"""Limits that control groups set on the I/O of this process to the devices below a target.

Both hierarchies are looked at, version 1 (``blkio.throttle.*``) and version 2 (``io.max``), in the group of this
process and in all above it.

Reference: the kernel's Documentation/admin-guide/cgroup-v1/blkio-controller.rst and cgroup-v2.rst, section IO.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from raidlab.results.facts import ControlGroupLimit, Limits
from raidlab.run.kernel_facts import Sources
from raidlab.run.kernel_facts.stack import StackedDevice

_V1 = {
    "blkio.throttle.read_bps_device": "read_bytes_per_s",
    "blkio.throttle.write_bps_device": "write_bytes_per_s",
    "blkio.throttle.read_iops_device": "read_requests_per_s",
    "blkio.throttle.write_iops_device": "write_requests_per_s",
}
_V2 = {
    "rbps": "read_bytes_per_s",
    "wbps": "write_bytes_per_s",
    "riops": "read_requests_per_s",
    "wiops": "write_requests_per_s",
}


def fact(path: Path, stack: list[StackedDevice], sources: Sources) -> Limits:
    """``found``: a list of ``device``, ``what``, ``value`` and ``group``."""
    found: list[ControlGroupLimit] = []
    for folder in groups_of(sources, ("blkio", "io")):
        for numbers, what, value in _limits_in(folder):
            names = [layer.name for layer in stack if numbers in (layer.numbers, _numbers(layer.disk))]
            found += [{"device": name, "what": what, "value": value, "group": str(folder)} for name in names]
    return {"found": found}


def groups_of(sources: Sources, controllers: tuple[str, ...]) -> Iterator[Path]:
    """The directories of this process's control groups and all above, in both hierarchies."""
    for line in (sources.proc / "self" / "cgroup").read_text(encoding="utf-8").splitlines():
        _, names, inside = line.split(":", 2)
        for root in _roots(sources, names, controllers):
            group = root / inside.lstrip("/")
            for folder in (group, *group.parents):
                if folder.is_dir():
                    yield folder
                if folder == root:
                    break


def _roots(sources: Sources, names: str, controllers: tuple[str, ...]) -> list[Path]:
    base = sources.sys / "fs" / "cgroup"
    if not names:
        return [root for root in (base, base / "unified") if (root / "cgroup.controllers").exists()]
    return [base / names] if set(names.split(",")) & set(controllers) and (base / names).is_dir() else []


def _limits_in(folder: Path) -> Iterator[tuple[str, str, int]]:
    for file, what in _V1.items():
        for numbers, rest in _lines(folder / file):
            if rest and rest[0].isdigit():
                yield numbers, what, int(rest[0])
    for numbers, rest in _lines(folder / "io.max"):
        for word in rest:
            key, _, value = word.partition("=")
            if key in _V2 and value.isdigit():
                yield numbers, _V2[key], int(value)


def _lines(file: Path) -> Iterator[tuple[str, list[str]]]:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError:
        return
    for line in text.splitlines():
        words = line.split()
        if words:
            yield words[0], words[1:]


def _numbers(disk: Path) -> str:
    try:
        return (disk / "dev").read_text(encoding="utf-8").strip()
    except OSError:
        return ""
