"""A measurement with fio as a witness: each point of the load, raidlab and fio in alternation on the same target.

Invariants:

- What is asked of targets is what `raidlab measure` would ask, word for word; only the order of things differs.
- Arrays that raidlab builds have no witness: fio knows none.
- Files made for directories are gone afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

from raidlab.errors import CellFailedError, InputError, RefusedError
from raidlab.measure.asked import Asked
from raidlab.measure.execute import in_words_of, made_members
from raidlab.measure.plan import DIRECT, Subject, plan_of
from raidlab.measure.request import measure_request
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Progress, Silent
from raidlab.run.witness import Witness, compare_with_fio, fio_version
from raidlab.study import Cell, expand
from raidlab.study.cell import DirectCell
from raidlab.study.check import count_leaves

DEFAULT_PAIRS = 5


@dataclass(frozen=True)
class Witnessed:
    """One target (or all at once) at one load, and what both tools say of it."""

    subject: str
    load: str
    witness: Witness


def measure_with_witness(
    asked: Asked, *, progress: Progress | None = None, stop: StopFlag | None = None
) -> list[Witnessed]:
    """Measure with fio beside raidlab; the repeats asked for are pairs.

    Parameters
    ----------
    asked : Asked
    progress : Progress, optional
    stop : StopFlag, optional
        Ends it; the pairs that are whole are given.

    Raises
    ------
    InputError, RefusedError, CellFailedError
    """
    fio_version()
    loaded, subjects = plan_of(asked)
    for subject in subjects:
        if subject.engine != DIRECT:
            message = "fio knows no arrays of raidlab's"
            raise InputError.one("--witness", message, value=f"'{subject.name}'", accepted="targets without a tree")
    if "hold" in asked.load:
        message = "a depth that is searched for is not the same in both tools"
        raise InputError.one("--witness", message, value="--hold", accepted="--depth or --rate")
    stopped = stop or StopFlag()
    found: list[Witnessed] = []
    leaves = {name: count_leaves(tree) for name, tree in loaded.geometry.trees.items()}
    with made_members(subjects, leaves) as members:
        for cell in expand(loaded.study, "live", seed=asked.seed).cells:
            if cell.repeat != 0 or stopped():
                continue
            subject = next(subject for subject in subjects if subject.name == cell.array.name)
            text = measure_request(loaded, cell, subject, members[subject.name], asked.drive)
            request = DirectCell.model_validate_json(text)
            try:
                witness = compare_with_fio(
                    request.model_copy(update={"destroy": list(asked.destroy)}),
                    pairs=asked.budget.repeats,
                    seed=cell.seed,
                    progress=progress or Silent(),
                    stop=stopped,
                )
            except KeyboardInterrupt:
                break
            except (RefusedError, CellFailedError) as error:
                raise type(error)(_said(subject, str(error))) from None
            found.append(Witnessed(subject.name, _load_words(cell), witness))
    return found


def _said(subject: Subject, message: str) -> str:
    return message if message.startswith("fio") else in_words_of(subject, message)


def _load_words(cell: Cell) -> str:
    return f"{cell.load.rate_per_s:g}/s" if cell.load.kind == "open" else f"depth {cell.load.depth}"
