"""Trials of a fit: a study with other values of its parameters, run in the simulator, read like any run.

Invariants:

- Only cells that the fitted figures read are run, always with the same seeds: two trials differ by their parameters
  alone.
- A trial is a function of its values; nothing is kept between trials but the workers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from raidlab.analysis.metrics import Analysis
from raidlab.errors import InputError
from raidlab.published.compare import Evaluation, PublishedRow
from raidlab.published.compare.row import GIVEN
from raidlab.published.quantities import Need, Source, checked_measure
from raidlab.results.memory import run_in_memory
from raidlab.results.outcome import CellOutcome
from raidlab.run.request import cell_request
from raidlab.run.runner import Runner
from raidlab.study import Cell, LoadedStudy, load_study_text, make_cell
from raidlab.study.device import moved_device
from raidlab.study.expand import load_of
from raidlab.study.expression import read
from raidlab.study.mapping import Mapping as StudyMapping
from raidlab.study.published import read_tables

DEVICE = "device."


@dataclass
class TrialRunner:
    """Runs trials of one study by a runner, which is kept open."""

    loaded: LoadedStudy
    mapping: StudyMapping
    runner: Runner

    def __post_init__(self) -> None:
        fit = self.mapping.quantities.fit
        assert fit is not None, "a study without a fit is refused before"
        self._quick = fit.quick
        self._has_quick_depths = fit.quick_depths
        self._to = set(fit.to)
        self._cells = self._needed()

    @property
    def target(self) -> str:
        """Where trials run."""
        return self.mapping.quantities.target

    def rows(self, points: Sequence[Mapping[str, float]]) -> list[list[PublishedRow]]:
        """The fitted figures for each set of values, run side by side."""
        studies = [self._moved(point) for point in points]
        waiting: dict[Hashable, tuple[int, Cell]] = {}
        for index, study in enumerate(studies):
            for cell in self._cells:
                model = study.geometry.device(self.target, cell.array.name)
                text = cell_request(
                    study, cell, members=[model.parameters], sector_bytes=model.sector_bytes, quick=self._quick
                )
                waiting[index, cell.name] = (index, cell)
                self.runner.submit((index, cell.name), text)
        outcomes: list[list[CellOutcome]] = [[] for _ in studies]
        while (done := self.runner.next_done()) is not None:
            index, cell = waiting[done[0]]
            outcomes[index].append(CellOutcome(cell, 0, done[1]))
        return [self._rows(study, found) for study, found in zip(studies, outcomes, strict=True)]

    def _rows(self, study: LoadedStudy, outcomes: list[CellOutcome]) -> list[PublishedRow]:
        source = Source(Analysis(run_in_memory(study, outcomes)), self.target, self.mapping.published)
        evaluation = Evaluation(self.mapping, source, self._to)
        rows = (row for row in evaluation.rows(self._to) if row.verdict == "compared" and row.value is not None)
        return [row for row in rows if row.kind != GIVEN and not evaluation.is_held_out(row)]

    def _moved(self, values: Mapping[str, float]) -> LoadedStudy:
        own = {name: value for name, value in values.items() if not name.startswith(DEVICE)}
        study = load_study_text(self.loaded.text, self.loaded.file, own)
        keys = {name.removeprefix(DEVICE): value for name, value in values.items() if name.startswith(DEVICE)}
        if not keys:
            return study
        devices = dict(study.geometry.devices)
        devices[self.target] = moved_device(devices[self.target], keys)
        return replace(study, geometry=replace(study.geometry, devices=devices))

    def _needed(self) -> list[Cell]:
        """The cells that the fitted figures read."""
        study = self.loaded.study
        arrays = {array.name: array for array in study.array}
        works = {work.name: work for work in study.workload}
        needs = {need for measure in self._measures() for need in self._of(measure)}
        ordered = sorted(needs, key=lambda need: (need[0], need[1], need[2]))
        return [
            make_cell(self.target, arrays[array], works[work], load, 0, study.seed) for array, work, load in ordered
        ]

    def _of(self, measure: Mapping[str, object]) -> set[Need]:
        kind, keys = checked_measure(measure)
        needs = kind.needs(keys, self.loaded.study)
        if needs is None:
            message = "reads what only a search finds, which a fit does not run"
            raise InputError.one("quantities.toml: fit.to", message, value=f"'{measure}'")
        return self._fewer(needs) if self._has_quick_depths else needs

    def _fewer(self, needs: set[Need]) -> set[Need]:
        """Of a sweep only the depths that ``--quick`` runs; what is read at one depth stays."""
        study = self.loaded.study
        arrays = {array.name: array for array in study.array}
        works = {work.name: work for work in study.workload}
        found: set[Need] = set()
        for array, work in {(need[0], need[1]) for need in needs}:
            mine = {need for need in needs if need[:2] == (array, work)}
            quick = load_of(study, arrays[array], works[work]).quick_depths
            kept = {need for need in mine if quick is not None and need[2].depth in quick}
            found |= kept if len(mine) > 1 and len(kept) > 1 else mine
        return found

    def _measures(self) -> list[Mapping[str, object]]:
        """Every measure of the figures the fit is held to."""
        common = self.mapping.quantities.measure
        found: list[Mapping[str, object]] = []
        for name in sorted(self._to & set(self.mapping.quantities.claim)):
            text = self.mapping.quantities.claim[name].value
            found += [common[part] for part in sorted(read(text).names if text else ())]
        for columns in self.mapping.columns.table:
            for table in read_tables(self.mapping.published, columns.file):
                if table.name in self._to:
                    found += columns.needed(table, common)
        return found
