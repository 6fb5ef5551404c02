"""A measurement with fio as a witness: each point of the load, raidlab and fio in alternation on the same target.

Invariants:

- What is asked of targets is what `raidlab measure` would ask, word for word; only the order of things differs.
- Arrays that raidlab builds have no witness: fio knows none.
- Files made for directories are gone afterwards.
"""

from __future__ import annotations

from raidlab.errors import CellFailedError, InputError, RefusedError
from raidlab.measure.execute import made_members, measure_request
from raidlab.measure.plan import DIRECT, plan_of
from raidlab.measure.request import MeasureRequest
from raidlab.results.facts import ToolDocument
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Progress, Silent
from raidlab.run.witness import compare_with_fio, fio_version
from raidlab.study import expand
from raidlab.study.cell import DirectCell

DEFAULT_PAIRS = 5


class PointWithWitness(ToolDocument):
    """One target (or all at once) at one load, and what both tools say of it."""

    target: str
    load: str


def measure_with_witness(
    asked: MeasureRequest, *, progress: Progress | None = None, stop: StopFlag | None = None
) -> list[PointWithWitness]:
    """Measure with fio beside raidlab; the repeats asked for are pairs.

    Raising ``stop`` ends it; the pairs that are whole are given.
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
    stop = stop or StopFlag()
    found: list[PointWithWitness] = []
    with made_members(subjects, loaded.geometry.trees) as members:
        for cell in expand(loaded.study, "live", seed=asked.seed).cells:
            if cell.repeat != 0 or stop():
                continue
            subject = next(subject for subject in subjects if subject.name == cell.array.name)
            text = measure_request(loaded, cell, subject, members[subject.name], asked.drive)
            request = DirectCell.model_validate_json(text).model_copy(update={"destroy": list(asked.destroy)})
            try:
                both = compare_with_fio(
                    request, pairs=asked.budget.repeats, seed=cell.seed, progress=progress or Silent(), stop=stop
                )
            except KeyboardInterrupt:
                break
            except (RefusedError, CellFailedError) as error:
                raise (error if str(error).startswith("fio") else subject.error_at_target(error)) from None
            load = f"{cell.load.rate_per_s:g}/s" if cell.load.kind == "open" else f"depth {cell.load.depth}"
            found.append({"target": subject.name, "load": load, **both})
    return found
