"""From targets and flags to a study of them, so that everything that reads a study's run reads a measurement too.

Each *subject* of a measurement is an array of that study: all targets at once (each a volume of its own, named
``total``), one target by itself, or an array built over targets. The study's text is kept with the result.

Invariants:

- The study is valid by the schema, and its text gives it back.
- A target's requests depend on the seed, the workload and the load, never on the target: two targets measured one
  after the other see the same requests.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from raidlab.errors import EngineError, InputError
from raidlab.formats.toml import toml_text
from raidlab.measure.places import Place, TargetSpec, wanted_targets
from raidlab.measure.request import MeasureRequest, RequestedTimes
from raidlab.measure.words import Document, flag_of
from raidlab.study import LoadedStudy
from raidlab.study.cell import Drive
from raidlab.study.check import Geometry, chunk_sizes, count_leaves, writes
from raidlab.study.schema import Study
from raidlab.study.tree import Tree
from raidlab.study.units import format_bytes, parse_time_ns
from raidlab.study.workload import Workload

if TYPE_CHECKING:
    from raidlab._core import TreeFacts
    from raidlab.measure.hosts import Hosts

TOTAL = "total"
DIRECT, ARRAY = "direct", "live"

# The sector that arrays over targets have, as in a live study.
ARRAY_SECTOR_BYTES = 4096

Failure = TypeVar("Failure", bound=EngineError)


@dataclass(frozen=True)
class ResultLine:
    """What one line of the result is about."""

    name: str
    engine: str
    """``direct`` (plain targets) or ``live`` (an array over them)."""
    tree: str
    places: tuple[Place, ...]
    """One a volume, or what the array's members are dealt over."""

    def error_at_target(self, error: Failure) -> Failure:
        """An error of the engine, said of the target as the user wrote it, or of the flag whose value it is about.

        Examples
        --------
        >>> targets = ResultLine("total", "direct", "", (Place("a", "file", 1), Place("b", "file", 1)))
        >>> str(targets.error_at_target(EngineError("targets[1]: gone", key="targets[1]")))
        "TARGET: 'b': gone"
        """
        number = re.match(r"(?:targets|members)\[(\d+)\]", error.key)
        if number is None:
            return error.at(flag_of(error.key) or f"TARGET: '{self.name}'")
        word = self.places[int(number[1]) % len(self.places)].word
        return error.at(f"TARGET: '{word}'")


@dataclass
class TargetGeometry(Geometry):
    """Sizes of targets, which need not be equal, in place of those of members."""

    sizes: dict[str, list[int]] = field(default_factory=dict)

    def facts(self, array: str, member_bytes: int, sector_bytes: int) -> TreeFacts:
        """What `raidlab.results` asks of an array."""
        if array not in self.sizes:
            return super().facts(array, member_bytes, sector_bytes)
        sizes = self.sizes[array]
        return {"leaves": len(sizes), "user_bytes": sum(sizes), "storage_efficiency": 1.0}


def plan_of(asked: MeasureRequest, hosts: Hosts | None = None) -> tuple[LoadedStudy, list[ResultLine]]:
    """The study of all that is asked, and its subjects; nothing is opened. With ``hosts``, targets are theirs.

    Raises `InputError` or `RefusedError` for what cannot be measured.
    """
    writes = writes_at_all(asked.workload)
    if hosts is None:
        wanted = wanted_targets(
            asked.targets, asked.destroy, writes=writes, file_bytes=asked.file_bytes, span=asked.span
        )
    else:
        wanted = hosts.open(asked, writes=writes)
    subjects = subjects_of(wanted, each=asked.each)
    check_depths(subjects, asked.load, asked.drive.workers)
    check_drive(subjects, asked.drive)
    loaded = study_of(
        subjects,
        words=asked.targets,
        seed=asked.seed,
        workload=asked.workload,
        load=asked.load,
        budget=asked.budget,
    )
    _check_rates(loaded.study, asked.budget.runtime)
    return loaded, subjects


def _check_rates(study: Study, runtime: str) -> None:
    """Refuse a rate at which nobody is expected while it is measured: the first arrival is waited for, however long."""
    least = 1e9 / parse_time_ns(runtime)
    loads = [study.load, *(workload.load for workload in study.workload)]
    rates = [rate for load in loads if load is not None and load.open is not None for rate in load.open.rates_per_s]
    if too_low := [rate for rate in rates if rate < least]:
        message = f"is less than one request in the runtime of {runtime}"
        raise InputError.one("--rate", message, value=f"{too_low[0]:g}/s", accepted=f"{least:g}/s or more")


def subjects_of(wanted: Sequence[TargetSpec], *, each: bool) -> list[ResultLine]:
    """What is measured by itself: all targets at once, or one after the other (``each``)."""
    arrays = [target for target in wanted if target.tree is not None]
    if arrays and len(wanted) > 1 and not each:
        raise InputError.one(
            "TARGET", "an array is measured by itself", value=f"'{arrays[0].word}'", accepted="one target, or --each"
        )
    if len(wanted) == 1 or each:
        names = _unique([target.title for target in wanted])
        return [_subject(name, target) for name, target in zip(names, wanted, strict=True)]
    places = tuple(place for target in wanted for place in target.places)
    return [ResultLine(TOTAL, DIRECT, f"independent({len(places)})", places)]


def _subject(name: str, target: TargetSpec) -> ResultLine:
    if target.tree is None:
        return ResultLine(name, DIRECT, "independent(1)", target.places)
    return ResultLine(name, ARRAY, target.tree, target.places)


def _unique(names: list[str]) -> list[str]:
    """The same word twice (``memory memory``) makes two names."""
    found: list[str] = []
    for name in names:
        count = sum(1 for other in found if other == name or other.startswith(f"{name} #"))
        found.append(name if count == 0 else f"{name} #{count + 1}")
    return found


def study_of(
    subjects: Sequence[ResultLine],
    *,
    words: Sequence[str],
    seed: int,
    workload: Document,
    load: Document,
    budget: RequestedTimes,
) -> LoadedStudy:
    """The study that measures these subjects; ``words`` are the targets in the user's words."""
    document: Document = {
        "name": "measure",
        "title": f"How fast is {', '.join(words)}?",
        "on": list(words),
        "seed": seed,
        "array": [{"name": subject.name, "tree": subject.tree} for subject in subjects],
        "workload": [workload],
        "load": load,
        "live": {
            "warmup": {"duration": f"{budget.fixed_warmup_ns}ns"},
            "measure": {"duration": budget.runtime},
            "repeats": budget.repeats,
        },
    }
    text = toml_text(document)
    study = Study.model_validate(tomllib.loads(text))
    geometry = TargetGeometry()
    for subject in subjects:
        geometry.trees[subject.name] = _parsed(subject.tree)
        if subject.engine == DIRECT:
            geometry.sizes[subject.name] = [place.used_bytes for place in subject.places]
        _check_fit(subject, geometry.trees[subject.name], study.workload[0])
    return LoadedStudy(study=study, file=Path("measure"), text=text, geometry=geometry)


def check_depths(subjects: Sequence[ResultLine], load: Document, workers: int) -> None:
    """Targets that are measured at once, and workers, share the depth; each must get something of it."""
    most = max((len(subject.places) for subject in subjects if subject.engine == DIRECT), default=1)
    for depth in load.get("depths", []):
        for count, what in ((most, "targets"), (workers, "workers")):
            if depth < count:
                other = ", or --each" if what == "targets" else ", or fewer --workers"
                raise InputError.one(
                    "--depth",
                    f"{depth} outstanding over {count} {what} leaves some with nothing",
                    accepted=f"at least {count}, counted over all {what} together{other}",
                )


def check_drive(subjects: Sequence[ResultLine], drive: Drive) -> None:
    """The array engine is one thread with a ring of its own; it takes none of the flags that drive plain targets."""
    array = next((subject for subject in subjects if subject.engine == ARRAY), None)
    plain = Drive(verify=drive.verify)
    changed = [key for key, value in drive if value != getattr(plain, key)]
    if array is not None and changed:
        flag = f"--{changed[0].removesuffix('_percent').replace('_', '-')}"
        raise InputError.one(flag, "is not for arrays", value=f"'{array.name}'", accepted="it with plain targets only")


def writes_at_all(workload: Document) -> bool:
    """Whether a workload writes."""
    return writes(Workload.model_validate(workload))


def _parsed(tree: str) -> Tree:
    from raidlab import _core

    try:
        return cast(Tree, json.loads(_core.parse_tree(tree)))
    except _core.CellError as error:
        raise InputError.one("TARGET", str(error).removeprefix(f"'{tree}': "), value=f"'{tree}'") from None


def _check_fit(subject: ResultLine, tree: Tree, workload: Workload) -> None:
    """A request must fit into the smallest target, a chunk into sectors, members onto what is given."""
    largest = workload.size.typical_bytes
    for place in subject.places:
        if place.used_bytes == 0:
            low, high = (100 * share for share in place.span)
            raise InputError.one(
                "--span",
                f"is less than a page of 4 KiB of '{place.word}', which holds {format_bytes(place.size_bytes)}",
                value=f"'{low:g}%-{high:g}%'",
                accepted="a larger part",
            )
        if largest > place.used_bytes:
            raise InputError.one(
                "TARGET",
                f"holds {format_bytes(place.used_bytes)}, and a request is {format_bytes(largest)}",
                value=f"'{place.word}'",
                accepted=f"a larger target, or a --size of at most {format_bytes(place.used_bytes)}",
            )
    if subject.engine == DIRECT:
        return
    for chunk in chunk_sizes(tree):
        if chunk % ARRAY_SECTOR_BYTES:
            accepted = f"a multiple of {ARRAY_SECTOR_BYTES} bytes"
            raise InputError.one(
                "TARGET", f"has a chunk of {chunk} bytes", value=f"'{subject.name}'", accepted=accepted
            )
    devices = [place for place in subject.places if place.kind == "block"]
    if devices and count_leaves(tree) > len(devices):
        raise InputError.one(
            "TARGET",
            f"has {count_leaves(tree)} members, and {len(devices)} block devices are given",
            value=f"'{subject.name}'",
            accepted="as many devices as members",
        )
    if any(place.kind in ("file", "null") for place in subject.places):
        raise InputError.one(
            "TARGET",
            "an array cannot be built over files that exist, nor over null",
            value=f"'{subject.name}'",
            accepted="directories, block devices or memory",
        )
