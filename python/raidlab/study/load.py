"""Read a study file and report every mistake in it, each in one line.

Invariants:

- Nothing is measured and nothing is written here.
- All mistakes of a file are collected before any is reported: parts that are sound on their own are checked further
  even when other parts are not.
- A `LoadedStudy` has passed every check that needs no device to be opened.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from raidlab.errors import Problem
from raidlab.reading import Plain
from raidlab.study.check import Geometry, Report, ValidParts, check_parts
from raidlab.study.expand import MOST_CELLS, count_cells
from raidlab.study.figure import StudyFigure
from raidlab.study.find import did_you_mean, find_study, nearest, parameter_names
from raidlab.study.parameters import MARK, Hardware, load_parameters, names_in, put_in
from raidlab.study.places import Place, line_index, line_of, value_at, value_text, written
from raidlab.study.schema import Array, Compare, Study
from raidlab.study.table_file import Reporter, parsed, shown_file, text_of
from raidlab.study.target import Emulated, Live, Modelled
from raidlab.study.words import ENGINES, SIMULATED
from raidlab.study.workload import Load, TraceReplay, Workload

if TYPE_CHECKING:
    from raidlab.study.grouped import Arrangement

_Part = TypeVar("_Part", bound=BaseModel)


@dataclass(frozen=True)
class LoadedStudy:
    """A study file that has passed its checks.

    Attributes
    ----------
    study : Study
        The validated content.
    file : pathlib.Path
        Where it was read.
    text : str
        The file's text, kept for provenance.
    geometry : Geometry
        The parsed trees and the device models, so that nothing is parsed twice.
    hardware : dict
        By target, the parameters that stand behind ``"$name"``.
    arrangement : Arrangement, optional
        How its arrays lie over groups of members, where the user has named some.
    """

    study: Study
    file: Path
    text: str
    geometry: Geometry
    hardware: dict[str, Hardware] = field(default_factory=dict)
    arrangement: Arrangement | None = None

    @property
    def sha256(self) -> str:
        """The hash of the file's text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def trace_file(self, trace: TraceReplay) -> Path:
        """The file of a trace: beside the study, unless its path is absolute.

        Parameters
        ----------
        trace : TraceReplay
            The load of a workload that replays a trace.
        """
        return (self.file.parent / trace.file).absolute()

    def sample_file(self) -> Path | None:
        """The user's own data that streams write, if the study names a file: beside it, unless its path is absolute."""
        data = self.study.live.data
        return None if data is None else (self.file.parent / data).absolute()

    def problem(self, place: Place, message: str, accepted: str | None = None) -> Problem:
        """A mistake at a place of the file that only showed later; the value is what the file says there.

        Parameters
        ----------
        place : tuple of str and int
            The keys and list positions that lead to the value.
        message : str
            What is wrong, as a sentence without its subject.
        accepted : str, optional
            What would be accepted.
        """
        document = tomllib.loads(self.text)
        # A short form (`size = "8KiB"`) stands for all that would lie below it.
        while place and not isinstance(value_at(document, place[:-1]), dict | list | None):
            place = place[:-1]
        value = value_at(document, place)
        return Problem(
            file=shown_file(self.file),
            where=written(place),
            message=message,
            value=None if value is None or isinstance(value, dict | list) else value_text(value),
            accepted=accepted,
            line=line_of(line_index(self.text), place),
        )


def load_study(name_or_file: str | Path) -> LoadedStudy:
    """Load and check a study.

    Parameters
    ----------
    name_or_file : str or pathlib.Path
        A study's name (``quickstart``) or the path of its file.

    Raises
    ------
    InputError
        With every mistake found, one line each.
    """
    file = find_study(str(name_or_file))
    return load_study_text(text_of(file, "a study file (TOML)"), file)


def load_study_text(text: str, file: Path, moved: Mapping[str, float] | None = None) -> LoadedStudy:
    """Load and check the text of a study file; ``file`` names it in errors and anchors relative paths.

    ``moved`` puts other values in the place of parameters of its hardware, as a fit does.
    """
    document = parsed(text, file)
    reporter = Reporter(file=shown_file(file), lines=line_index(text))
    hardware = _hardware(document, file, reporter.add, moved or {})
    document = put_in(document, {target: known.texts for target, known in hardware.items()})
    study = reporter.validated(Study, document)
    geometry = check_parts(_sound_parts(document), file, reporter.add)
    if study is not None:
        _check_cells(study, reporter.add)
    reporter.complain()
    assert study is not None, "a file without problems is a valid study"
    return LoadedStudy(study=study, file=file, text=text, geometry=geometry, hardware=hardware)


def _check_cells(study: Study, report: Report) -> None:
    """Refuse what has more cells than could be listed."""
    accepted = f"at most {MOST_CELLS:,} cells: arrays x workloads x loads x repeats"
    if len(study.array) * len(study.workload) > MOST_CELLS:
        message = f"{len(study.array):,} arrays stand beside {len(study.workload):,} workloads"
        report(("array",), message, None, accepted)
        return
    for target in ENGINES:
        if study.has_target(target) and count_cells(study, target) > MOST_CELLS:
            report(("load",), f"asks for more cells than a run can have on {target}", None, accepted)
            return


def _hardware(
    document: Mapping[str, Plain], file: Path, report: Report, moved: Mapping[str, float]
) -> dict[str, Hardware]:
    """The parameters of each target that names a file of them; every ``$name`` must be one of these."""
    found = {}
    for target in SIMULATED:
        section = document.get(target)
        if not isinstance(section, dict):
            continue
        named, hardware = section.get("parameters"), Hardware()
        if isinstance(named, str):
            try:
                hardware = load_parameters(named, file).moved(moved)
            except ValueError as error:
                report((target, "parameters"), str(error), named, ", ".join(parameter_names()) or "a path")
        known = hardware.parameters
        listed = [MARK + name for name in known]
        for place, name in names_in(section, (target,)):
            if name not in known:
                message = f"is no parameter of the hardware{did_you_mean(name, known)}"
                accepted = nearest(MARK + name, listed) if listed else "none: `parameters` names no file"
                report(place, message, MARK + name, accepted)
        found[target] = hardware
    return found


# Of an array whose tree or volume is a mistake nothing else can be said: another would be put in its place.
_WHAT_IT_IS = {"tree", "volume"}
# What is rebuilt. Where one of these is wrong or misspelt, nothing is said of a rebuild that lacks it.
_REBUILT = {"missing", "events"}


def _sound_parts(document: Mapping[str, Plain]) -> ValidParts:
    """The parts of a file that are valid on their own, each with its place, so that they can be checked together."""

    def one(model: type[_Part], value: object) -> _Part | None:
        if not isinstance(value, dict):
            return None
        # An unknown key has been reported; it must not hide what else is wrong with its table.
        known = {key: item for key, item in value.items() if key in model.model_fields}
        if any(did_you_mean(key, _REBUILT) for key in value.keys() - known.keys()):
            known.pop("rebuild", None)
        try:
            return model.model_validate(known)
        except ValidationError as error:
            wrong = {mistake["loc"][0] for mistake in error.errors(include_url=False) if mistake["loc"]}
        if wrong & _WHAT_IT_IS:
            return None
        wrong |= {"rebuild"} if wrong & _REBUILT else set()
        # Nor must a wrong value; where the key may be left out, the rest is checked without it.
        try:
            return model.model_validate({key: item for key, item in known.items() if key not in wrong})
        except ValidationError:
            return None

    def many(model: type[_Part], key: str) -> dict[int, _Part]:
        return {index: part for index, value in enumerate(listed(key)) if (part := one(model, value)) is not None}

    def listed(key: str) -> list[Plain]:
        value = document.get(key)
        return value if isinstance(value, list) else []

    def table(key: str) -> Mapping[str, Plain]:
        value = document.get(key)
        return value if isinstance(value, dict) else {}

    names = [array.get("name") for array in listed("array") if isinstance(array, dict)]
    return ValidParts(
        on=[str(word) for word in listed("on")],
        arrays=many(Array, "array"),
        workloads=many(Workload, "workload"),
        compares=many(Compare, "compare"),
        figures=many(StudyFigure, "figure"),
        load=one(Load, document.get("load")),
        sim=one(Modelled, document.get("sim")),
        original=one(Modelled, document.get("original")),
        emulated=one(Emulated, document.get("emulated", {})),
        live=one(Live, document.get("live")),
        has_section={key: isinstance(document.get(key), dict) for key in SIMULATED},
        load_says_something=any(table("load").get(key) for key in ("depths", "hold", "open")),
        emulates_device="device" in table("emulated"),
        array_names={name for name in names if isinstance(name, str)},
    )
