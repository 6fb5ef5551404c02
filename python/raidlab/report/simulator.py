"""Links from a report to the simulator's page (`docs/site/simulator`), with the settings of what was simulated.

Invariants:

- A link is only there where the page can ask the same: common levels of equal disks or equal space, one chunk,
  requests of one size, a closed loop, the disks alone. What it cannot ask is left out and not approached.
- The page is built by ``make web``; without it there are no links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from raidlab.analysis.metrics import Analysis
from raidlab.study.find import device_names
from raidlab.study.schema import Array, Policy, Study
from raidlab.study.target import Modelled
from raidlab.study.units import parse_bytes
from raidlab.study.workload import DrawnRequests, Workload

PAGE = "simulator.html"
BUILT = Path(__file__).with_name(PAGE)
_TREE = re.compile(r"(raid0|raid1|raid10|raid5|raid6|raid50|raid60)\((\d+)(?:, *chunk=(\w+))?\)")
_DEFAULT_CHUNK = "64KiB"
_KIB = 1024
# How many disks beside those of the data; RAID 10 has as many again.
_MORE = {"raid0": 0, "raid5": 1, "raid6": 2, "raid50": 2, "raid60": 4}
_MOST_DISKS, _LEAST_LEVELS = 24, 2
_MOST_DEPTH = 256
_ROUNDING = 1e-9
# What a section says of itself without what lies between client and disks.
_OF_DISKS = {"device", "hardware", "parameters", "warmup", "measure", "repeats", "quick"}


@dataclass(frozen=True)
class SimulatorLink:
    """A link with its words."""

    table: str
    """The title of the table whose arrays it sets."""
    workload: str
    address: str


@dataclass(frozen=True)
class _Level:
    name: str
    disks: int
    chunk: str


def simulator_links(analysis: Analysis) -> list[SimulatorLink]:
    """A link for each table and workload that the page can ask about; none where there is no page."""
    study = analysis.run.study
    if not BUILT.exists() or "sim" not in analysis.targets or study.sim is None or not _is_plain(study, study.sim):
        return []
    return list(_links(analysis, study, study.sim))


def _links(analysis: Analysis, study: Study, section: Modelled) -> Iterator[SimulatorLink]:
    for compare in study.compare:
        arrays = _arrays_of([array for array in study.array if array.group == compare.group and array.runs_on("sim")])
        for workload in study.workload:
            work, load = _work_of(workload), _load_of(analysis, workload)
            if arrays and work and load and workload.arrays is None and analysis.swept("sim", workload.name):
                words = {"device": str(section.device), **arrays, **work, **load}
                yield SimulatorLink(compare.title, workload.name, f"{PAGE}#{urlencode(words, safe=',')}")


def _is_plain(study: Study, section: Modelled) -> bool:
    """Whether a study simulates disks of the library alone, by the default policy."""
    said = section.model_fields_set - _OF_DISKS
    return section.device in device_names() and not said and study.policy == Policy()


def _arrays_of(arrays: list[Array]) -> dict[str, str] | None:
    """The arrays of a table, as far as they are common levels; None where what they share is not one number."""
    own = {"name", "tree", "group", "on"}
    found = [_TREE.fullmatch(array.tree) for array in arrays if array.model_fields_set <= own]
    levels = [_Level(one[1], int(one[2]), one[3] or _DEFAULT_CHUNK) for one in found if one]
    names = [level.name for level in levels]
    chunks = {_size_text(parse_bytes(level.chunk)) for level in levels if level.name != "raid1"}
    if len(levels) < _LEAST_LEVELS or len(set(names)) < len(names) or len(chunks) != 1:
        return None
    members, spaces = {level.disks for level in levels}, {_space(level) for level in levels}
    equal, counts = ("members", members) if len(members) == 1 else ("user_capacity", spaces)
    if len(counts) != 1 or max(counts) > _MOST_DISKS:
        return None
    return {"disks": str(counts.pop()), "equal": equal, "levels": ",".join(names), "chunk": chunks.pop()}


def _space(level: _Level) -> int:
    """Of how many disks a level has the space."""
    if level.name == "raid1":
        return 1
    return level.disks // 2 if level.name == "raid10" else level.disks - _MORE[level.name]


def _work_of(workload: Workload) -> dict[str, str] | None:
    """The requests of a workload; None where the page has no such."""
    percent = 100 * workload.read
    said = workload.model_fields_set & set(DrawnRequests.model_fields) - {"read", "size", "address"}
    is_other = said or any(getattr(workload, key) is not None for key in ("files", "trace", "streams", "count"))
    pattern = _pattern_of(workload)
    if is_other or workload.size.kind != "fixed" or pattern is None or workload.size.bytes % _KIB:
        return None
    if abs(percent - round(percent)) > _ROUNDING:
        return None
    return {"read": str(round(percent)), "size": _size_text(workload.size.bytes), "pattern": pattern}


def _size_text(size_bytes: int) -> str:
    return f"{size_bytes // _KIB}KiB"


def _pattern_of(workload: Workload) -> str | None:
    address = workload.address
    if address.kind == "uniform":
        return "random"
    if address.kind == "mixed":
        return "sequential" if (address.sequential, address.local, address.alike) == (0.99, 0.0, False) else None
    return "hot" if address.kind == "zipf" and address.theta == 0.9 else None


def _load_of(analysis: Analysis, workload: Workload) -> dict[str, str] | None:
    """The response time that is held, else the heaviest load; None where neither is one number."""
    held = {(row["percentile"], row["target_ns"]) for row in analysis.run.hold_rows("sim", workload.name)}
    depth = max((point.level_value for point in analysis.swept("sim", workload.name) if not point.is_open), default=0)
    if not 1 <= depth <= _MOST_DEPTH:
        return None
    goal = {}
    if len(held) == 1:
        percentile, target_ns = held.pop()
        goal = {"p90": f"{target_ns / 1e6:.6f}".rstrip("0").rstrip(".") + "ms"} if percentile == 90 else {}
    return {"depth": f"{depth:g}", **goal}
