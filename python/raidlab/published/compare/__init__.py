"""A run beside what its study published: rows, their errors, and the file they are written to.

Invariants:

- Nothing here runs anything, and nothing here knows a study by name.
- ``comparison.csv`` is a function of the run and of the study's own folder.
"""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass, field, replace

from raidlab.analysis.metrics import Analysis
from raidlab.published.compare.basis import fitted_figures, with_basis
from raidlab.published.compare.conclude import conclusions_on
from raidlab.published.compare.evaluate import CLAIMS, DERIVED, Evaluation, without_ids
from raidlab.published.compare.left_out import read_left_out, write_left_out
from raidlab.published.compare.row import (
    FITTED,
    MISS_PERCENT,
    MISS_POINTS,
    Published,
    PublishedRow,
    error_of,
)
from raidlab.published.compare.summary import (
    FILE,
    HEADER,
    Errors,
    bases_of,
    errors_of,
    held_counts,
    held_words,
    write_csv,
)
from raidlab.published.quantities import Source
from raidlab.study.mapping import Mapping, ids_of
from raidlab.study.parameters import Parameter


@dataclass(frozen=True)
class PublishedComparison:
    """A run beside what its study published."""

    rows: list[PublishedRow]
    """Claims, tables, and the study's conclusions on every target of the run."""
    parameters: dict[str, Parameter]
    """Of the hardware, each with its provenance; empty on real members."""
    target: str
    """The target whose figures stand beside the published ones."""
    fitted_to: frozenset[str] = frozenset()
    """Ids of the figures that parameters were fitted to, without those that follow from them."""
    of_device: tuple[str, ...] = ()
    """What the target's device says of itself that was fitted."""
    called: abc.Mapping[str, str] = field(default_factory=dict)
    """What arrays are called in sentences, where not as in the study."""
    is_elsewhere: bool = False
    """Whether the target is no model of the study's own hardware, whose figures are then no errors of it."""

    @property
    def fitted(self) -> list[str]:
        """The names of the parameters that were fitted, the device's last."""
        return [*(name for name, parameter in self.parameters.items() if parameter.status == "fitted"), *self.of_device]

    @property
    def errors(self) -> list[PublishedRow]:
        """Rows that are mistakes of the mapping."""
        return [row for row in self.rows if row.verdict == "error"]

    @property
    def conclusions(self) -> list[PublishedRow]:
        """The study's conclusions, target by target."""
        return [row for row in self.rows if row.is_conclusion]

    @property
    def asked(self) -> list[PublishedRow]:
        """What the study says of the target that could be tested there: conclusions and claims, each once."""
        conclusions = [row for row in self.conclusions if row.figure == self.target]
        # What is only derived was not published.
        claims = [row for row in self.published if row.is_counted and row.table != DERIVED]
        return [row for row in (*conclusions, *claims) if row.is_judged]

    @property
    def published(self) -> list[PublishedRow]:
        """The rest: what was published, and what is derived."""
        return [row for row in self.rows if not row.is_conclusion]

    @property
    def data_points(self) -> int:
        """How many figures the fit was held to."""
        return sum(row.id in self.fitted_to for row in self.rows if row.kind == FITTED and row.verdict == "compared")


def compare_run(analysis: Analysis, mapping: Mapping) -> PublishedComparison:
    """Set what a study published beside a run, and test its conclusions on each of the run's targets."""
    target = target_of(analysis, mapping)
    parameters = parameters_of(analysis, target)
    fitted_to = {name for parameter in parameters.values() for name in parameter.to}
    follows: set[str] = set()
    if mapping.quantities.fit is not None:
        fitted_to |= set(mapping.quantities.fit.to)
        follows = set(mapping.quantities.fit.follows)
    is_model = target in analysis.run.facts["devices"]
    is_elsewhere = target not in (mapping.quantities.target, "emulated")
    is_fitted = is_model and not is_elsewhere
    evaluation = Evaluation(
        mapping, Source(analysis, target, mapping.published), fitted_to | follows if is_fitted else set()
    )
    rows = list(evaluation.rows())
    if is_elsewhere:
        # What was printed of one hardware is no error of another.
        rows = [replace(row, error=None) for row in rows]
    elif is_model:
        left_out = read_left_out(mapping.folder)
        rows = [replace(row, left_out=left_out.get(row.id)) if row.kind == FITTED else row for row in rows]
    own = conclusions_on(mapping, evaluation.source, evaluation.fitted_to)
    fitted = fitted_figures(row for row in (*rows, *own) if row.kind and evaluation.is_fitted_to(row))
    rows = [with_basis(row, fitted) for row in rows]
    for name in analysis.targets:
        # Nothing was fitted to hardware other than the study's own.
        rows += (
            [with_basis(row, fitted) for row in own]
            if name == target
            else conclusions_on(mapping, Source(analysis, name, mapping.published))
        )
    said = {row.id: f"'{row.title}'" for row in rows if row.table == CLAIMS or row.is_conclusion}
    # A mistake names the key where it is.
    rows = [row if row.verdict == "error" else replace(row, note=without_ids(row.note, said)) for row in rows]
    held_to = {row.id for row in rows if evaluation.is_fitted_to(row) and not {row.id, row.table} & follows}
    of_device = _fitted_of_device(analysis, target)
    called = mapping.quantities.called
    return PublishedComparison(rows, parameters, target, frozenset(held_to), of_device, called, is_elsewhere)


def _fitted_of_device(analysis: Analysis, target: str) -> tuple[str, ...]:
    device = analysis.run.facts["devices"].get(target)
    said = device.get("provenance", {}) if device is not None else {}
    return tuple(f"device.{name}" for name, one in said.items() if one.get("status") == "fitted")


def target_of(analysis: Analysis, mapping: Mapping) -> str:
    """The target of a run that is compared: that of the study's own hardware if it is there, else the first."""
    targets = analysis.targets
    wanted = mapping.quantities.target
    return wanted if wanted in targets or not targets else targets[0]


def parameters_of(analysis: Analysis, target: str) -> dict[str, Parameter]:
    """The parameters that a run's hardware had."""
    known = analysis.run.facts.get("hardware", {}).get(target, {})
    return {
        name: Parameter.model_validate({key: value for key, value in one.items() if key != "text"})
        for name, one in known.items()
    }


__all__ = [
    "FILE",
    "HEADER",
    "MISS_PERCENT",
    "MISS_POINTS",
    "Errors",
    "Evaluation",
    "Published",
    "PublishedComparison",
    "PublishedRow",
    "bases_of",
    "compare_run",
    "error_of",
    "errors_of",
    "held_counts",
    "held_words",
    "ids_of",
    "parameters_of",
    "write_csv",
    "write_left_out",
]
