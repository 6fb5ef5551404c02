"""What a recommendation says, as ``recommendation.json`` holds it: written by `raidlab.recommend`, read by reports.

Invariant: plain data in base units; words are those of the terminal and of the page alike.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from typing_extensions import TypedDict

from raidlab.errors import InputError
from raidlab.reading import json_value, read_text
from raidlab.study.units import format_bytes, format_number, format_time_ns

RECOMMENDATION = "recommendation.json"
VERSION = 3
# Of the tools that would build an array, the one whose layouts are those simulated.
SIMULATED_TOOL = "mdadm"
# What an array misses by what it is, whatever a run shows.
_BY_SHAPE = ("at_most", "capacity", "tolerate", "budget", "watts", "loss_per_year")
TOO_SLOW = "Too slow, of each level of which none meets the need the nearest"
# Levels as they are written for a reader, the simplest first.
LEVEL_TITLES = {
    "raid0": "RAID 0",
    "raid1": "RAID 1",
    "raid10": "RAID 10",
    "raid10n3": "3-copy RAID 10",
    "raid10n4": "4-copy RAID 10",
    "raid01": "RAID 0+1",
    "raid5": "RAID 5",
    "raid6": "RAID 6",
    "raid50": "RAID 50",
    "raid60": "RAID 60",
}

# From so many hours on a time is told in days.
_IN_DAYS = 72


class MissedNeed(TypedDict):
    """A need that an array misses, in base units, and the same in words."""

    need: str
    has: float
    wants: float
    words: str


class ArrayFigures(TypedDict):
    """What was simulated of an array; intervals (95 %) only where it was confirmed."""

    requests_per_s: float
    requests_per_s_interval: list[float] | None
    mb_s: float
    within_ms: dict[str, float]
    rebuild_mb_s: float | None
    """Beside the work, as a rebuild begins; None where it was not asked for, or was not simulated."""
    rebuild_hours: float | None
    """Of a whole disk at that rate."""
    repeats: int


class RecommendedArray(TypedDict):
    """An array that was looked at, and what was found of it."""

    name: str
    tree: str
    device: str
    level: str
    members: int
    spares: int
    disks: int
    chunk_bytes: int | None
    user_bytes: int
    tolerance: int
    cost: float | None
    watts: float | None
    loss_per_year: float | None
    verdict: Literal["meets", "not decided", "misses"]
    rank: int | None
    figures: ArrayFigures | None
    against_first: str | None
    is_tied: bool
    on_front: bool
    missed: list[MissedNeed]


class Dropped(TypedDict):
    """What a rule left out."""

    rule: str
    arrays: int
    example: str


class Relaxation(TypedDict):
    """What asking less would admit."""

    need: str
    words: str
    admits: str
    gain: str


class AnswerTurn(TypedDict):
    """One thing that would change the answer: where it turns, who is first beyond, and how that is known."""

    axis: str
    """A key of the need, ``read`` (in percent), ``depth`` or ``rate``, the price of a disk or what its file assumes."""
    now: float
    turns_at: float
    low: float | None
    high: float | None
    instead: str
    how: str
    """``counted``, ``reckoned`` or ``simulated``."""
    words: str


class Recommendation(TypedDict):
    """The answer to a need."""

    version: int
    raidlab: str
    name: str
    title: str
    asked: str
    seed: int
    status: Literal["complete", "interrupted"]
    answer: str | None
    sentence: str
    needs: list[str]
    work: list[str]
    basis: list[str]
    figure: str
    percentiles: list[str]
    has_prices: bool
    looked_at: int
    simulated: int
    cells: int
    arrays: list[RecommendedArray]
    dropped: list[Dropped]
    relaxations: list[Relaxation]
    turns: list[AnswerTurn]
    """The nearest first; none where nothing meets the need."""
    unturned: list[str]
    """Along what nothing turns."""
    unseen: list[str]
    """What would change the answer was not looked at along this."""
    commands: dict[str, list[str]]
    study: str


def too_slow_words(document: Recommendation) -> list[str]:
    """A line for each level of which no array meets the need: the nearest that its speed alone keeps from it.

    Each says what it misses by how much, and how long it is rebuilt where that was simulated.
    """
    others = {one["level"] for one in document["arrays"] if one["verdict"] != "misses"}
    nearest: dict[str, tuple[float, str]] = {}
    for one in document["arrays"]:
        figures, missed = one["figures"], one["missed"]
        if one["level"] in others or figures is None or any(miss["need"] in _BY_SHAPE for miss in missed) or not missed:
            continue
        far = math.fsum(abs(math.log(max(miss["has"], 1e-9) / miss["wants"])) for miss in missed)
        if one["level"] not in nearest or far < nearest[one["level"]][0]:
            hours = None if any(miss["need"] == "rebuild" for miss in missed) else figures["rebuild_hours"]
            rebuilt = "" if hours is None else f" (rebuilt in {hours_words(hours)})"
            said = "; ".join(miss["words"] for miss in missed)
            nearest[one["level"]] = far, f"{one['name']}: {said}{rebuilt}"
    return [words for _, words in nearest.values()]


def relaxations_title(document: Recommendation) -> str:
    """What stands above what asking less would admit."""
    if document["answer"] is not None:
        return "What asking less would admit"
    if all("," in one["need"] for one in document["relaxations"]):
        return "Each array that was looked at misses several goals. What would have to give, any one of these lines"
    return "What would have to give, any one of these"


def front_words(document: Recommendation) -> list[str]:
    """A line for each array that none is shown to beat in every respect, the cheapest first.

    Of arrays that differ in their chunk alone it is the fastest. None where something else was asked.
    """
    if document["asked"] != "pareto":
        return []
    fastest: dict[tuple[object, ...], tuple[float, RecommendedArray]] = {}
    for one in document["arrays"]:
        if one["on_front"] and one["verdict"] == "meets" and one["figures"] is not None:
            rate = one["figures"]["requests_per_s"]
            key = (one["cost"], one["disks"], one["device"], one["level"], one["loss_per_year"])
            if key not in fastest or fastest[key][0] < rate:
                fastest[key] = (rate, one)
    ordered = sorted(fastest.values(), key=lambda found: (found[1]["cost"] or found[1]["disks"], found[0]))
    return [", ".join(_front_parts(one, rate)) for rate, one in ordered]


def _front_parts(one: RecommendedArray, rate: float) -> Iterator[str]:
    yield one["name"] if one["cost"] is None else f"{money_words(one['cost'])}: {one['name']}"
    yield f"{rate:,.0f} requests/s"
    if one["loss_per_year"] is not None:
        yield f"loss a year {chance_words(one['loss_per_year'])}"


def front_title(document: Recommendation) -> str:
    """What stands above `front_words`."""
    what = "cost" if document["has_prices"] else "number of disks"
    return f"Beaten by none in {what}, throughput and yearly loss together"


def recommendation_text(document: Recommendation) -> str:
    """As the file holds it."""
    return json.dumps(document, indent=2) + "\n"


def read_recommendation(file: Path) -> Recommendation:
    """Read what `recommendation_text` wrote."""
    try:
        document: Recommendation = json_value(read_text(file))
        if document["version"] != VERSION:
            raise ValueError(f"is of version {document['version']}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"holds no recommendation: {error}"
        raise InputError.one(str(file), message, accepted="what raidlab recommend --out wrote") from None
    return document


def size_words(count: float) -> str:
    """A disk's or an array's size, as they are sold.

    Examples
    --------
    >>> size_words(3_999_999_991_808), size_words(15e9)
    ('4 TB', '15 GB')
    """
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= 0.9995 * scale:
            return f"{count / scale:.4g} {unit}"
    return format_bytes(int(count))


def money_words(cost: float) -> str:
    """What something costs, in no currency."""
    return f"{cost:,.0f}" if cost >= 100 or cost == int(cost) else f"{cost:,.2f}"


def hours_words(hours: float) -> str:
    """A long time.

    Examples
    --------
    >>> [hours_words(hours) for hours in (0.01, 15.32, 1104)]
    ['36 s', '15.3 h', '46 days']
    """
    if hours >= _IN_DAYS:
        return f"{format_number(hours / 24)} days"
    return f"{format_number(hours)} h" if hours >= 1 else format_time_ns(3600e9 * hours)


def chance_words(chance: float) -> str:
    """A chance, as one in so many whatever its size: those of a column can be compared.

    Examples
    --------
    >>> [chance_words(chance) for chance in (0.3, 0.00593, 1 / 1510, 0.0)]
    ['1 in 3.3', '1 in 170', '1 in 1,500', '0']
    """
    if chance <= 0:
        return "0"
    count = float(f"{1 / chance:.2g}")
    return f"1 in {count:,.0f}" if count >= 10 else f"1 in {count:g}"
