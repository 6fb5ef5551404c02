"""What a result rests on: arrays, hardware with the provenance of each parameter, members, the command to run it again.

Invariant: a parameter says whether it was published, fitted (to what) or assumed, or that nothing is known of it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from raidlab.analysis.metrics import Analysis, Point
from raidlab.published.compare import PublishedComparison, parameters_of
from raidlab.published.compare.evaluate import table_in_words
from raidlab.results.facts import BlockDevice, Device, Facts, Origin
from raidlab.results.volumes import volume_words
from raidlab.study.parameters import Parameter

_NO_PARAMETERS = ("name", "description", "provenance", "kind")
_WORDS = {True: "yes", False: "no", None: "-"}
# A list longer than this is told by its length.
_LONGEST = 3
# Of parameters without a source so many are named where they are counted.
_MOST_NAMED = 6
_NO_DEVICE: BlockDevice = {"name": ""}


@dataclass(frozen=True)
class ParameterRow:
    """One parameter of modelled hardware."""

    name: str
    value: str
    status: str
    to: str
    why: str


@dataclass(frozen=True)
class ModelledHardware:
    """The modelled hardware of a target, or a device that one array has of its own."""

    title: str
    description: str
    rows: list[ParameterRow]

    @property
    def counts(self) -> str:
        """How many parameters have which provenance."""
        words = [row.status for row in self.rows if row.status]
        told = [f"{words.count(word)} {word}" for word in dict.fromkeys(words)]
        return ", ".join([*told, *self._unsaid()])

    def _unsaid(self) -> list[str]:
        """Which parameters nothing is said of, as the count alone would leave a reader to look for them."""
        names = [row.name for row in self.rows if not row.status]
        if not names:
            return []
        shown = ", ".join(names[:_MOST_NAMED])
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        return [f"{len(names)} without a word of where they come from ({shown}{more})"]


def hardware_of(analysis: Analysis, published: PublishedComparison | None = None) -> list[ModelledHardware]:
    """The modelled hardware of a run: of each target its parameters and its device, then devices of single arrays.

    What parameters were fitted to is told in the words of what was ``published``.
    """
    facts = analysis.run.facts
    called = {row.id: row.title for row in published.rows} if published is not None else {}
    found = []
    for target in analysis.targets:
        parameters = parameters_of(analysis, target)
        if parameters:
            to = {
                name: "; ".join(called.get(it, table_in_words(it)) for it in one.to) for name, one in parameters.items()
            }
            rows = [
                ParameterRow(name, _with_unit(one), one.status, to[name], one.why) for name, one in parameters.items()
            ]
            found.append(ModelledHardware(f"The path ({target})", "", rows))
        device = facts["devices"].get(target)
        if device:
            found.append(_device(device, f"{device.get('name') or device['kind']} ({target})"))
    for array, device in facts.get("array_devices", {}).items():
        found.append(_device(device, f"{device.get('name') or device['kind']} (of {array})"))
    return [one for one in found if one.rows]


def _with_unit(parameter: Parameter) -> str:
    return f"{parameter.value:.5g}" + ("" if parameter.unit == "1" else f" {parameter.unit}")


def _device(device: Device, title: str) -> ModelledHardware:
    said = device.get("provenance", {})
    rows = []
    for name, value in _flat({key: value for key, value in device.items() if key not in _NO_PARAMETERS}):
        # What is said of a table holds for its keys.
        whole = name.split(".", maxsplit=1)[0]
        known: Origin = said.get(name) or said.get(whole) or {}
        rows.append(ParameterRow(name, value, known.get("status", ""), "", known.get("why", "")))
    return ModelledHardware(title, str(device.get("description") or ""), rows)


def _flat(device: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    for key, value in device.items():
        name = f"{before}{key}"
        if isinstance(value, dict):
            yield from _flat(value, f"{name}.")
        elif isinstance(value, list):
            yield name, f"{len(value)} entries" if len(value) > _LONGEST else ", ".join(str(one) for one in value)
        elif value is not None:
            yield name, f"{value:g}" if isinstance(value, float) else str(value)


def arrays_of(analysis: Analysis, published: PublishedComparison | None = None) -> list[dict[str, Any]]:
    """The arrays that were compared, with their trees, and what sentences about what was ``published`` call them."""
    called = published.called if published is not None else {}
    first: dict[str, Point] = {}
    for point in analysis.points:
        first.setdefault(point.array, point)
    return [
        {
            "name": f"{array.name} ({called[array.name]})" if array.name in called else array.name,
            "group": array.group,
            "tree": array.arrangement,
            "volume": volume_words(array, analysis.run.live_members(array.name)) if array.volume else "",
            "members": first[array.name].members,
            "efficiency": _percent(first[array.name]),
            "pair_pricing": array.pair_pricing,
        }
        for array in analysis.run.study.array
        if array.name in first
    ]


def _percent(point: Point) -> float | None:
    return None if point.storage_efficiency is None else 100 * point.storage_efficiency


def members_of(facts: Facts) -> list[dict[str, str]]:
    """The live members and the disks below them."""
    found = []
    for member in facts["live_members"]:
        device, filesystem = member.get("device") or _NO_DEVICE, member.get("filesystem")
        found.append(
            {
                "path": member.get("path") or member["kind"],
                "io": member["io"],
                "disks": ", ".join(member["disks"]) or "-",
                "rotational": _WORDS[device.get("rotational")],
                "scheduler": device.get("scheduler") or "-",
                "write_cache": device.get("write_cache") or "-",
                "filesystem": filesystem["kind"] if filesystem is not None else "-",
            }
        )
    return found


def rerun_command(facts: Facts) -> str:
    """The command that runs the same again, with the seed spelt out; empty where none of raidlab's was recorded.

    A run folder may come from a stranger, and whoever reads the page types what stands there: it gives up no device.
    """
    argv = list(facts["argv"])
    if argv[:1] != ["raidlab"]:
        return ""
    while "--destroy" in argv:
        at = argv.index("--destroy")
        del argv[at : at + 2]
    argv = [word for word in argv if not word.startswith("--destroy=")]
    return shlex.join(argv if "--seed" in argv else [*argv, "--seed", str(facts["seed"])])


def gives_up(facts: Facts) -> bool:
    """Whether a run was allowed to overwrite devices, which `rerun_command` leaves out."""
    return any(word.partition("=")[0] == "--destroy" for word in facts["argv"])
