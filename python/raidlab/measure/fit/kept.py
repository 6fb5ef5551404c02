"""What a fit measured, as a Parquet file, from which the same fit can be made again with no device touched.

A row is a turn of a situation, with its times as a histogram, or a list of single requests, in the order in which they
were asked. The fit is done over: whoever asks for single requests is answered from the file.

Invariants:

- From a file that was kept, the same version of raidlab fits the same device, to the last digit.
- Requests that were not made are not answered: a fit that asks otherwise than the one that was kept is refused.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

import numpy as np
import polars as pl
from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from raidlab.errors import CellFailedError, InputError
from raidlab.histogram import Histogram
from raidlab.measure.fit.buckets import Drain
from raidlab.measure.fit.situations import Op, Placing, Situation
from raidlab.measure.fit.table import Sample
from raidlab.measure.fit.timed import Numbers, TimedRequests, TimedSubject
from raidlab.reading import json_value, read_bytes
from raidlab.results.damage import first_line, refused_in_words
from raidlab.results.parquet import decoded_size
from raidlab.study.words import MOST_IN_FLIGHT

_META = "raidlab.fit"
# A disk's mechanics take some 20,000 reads, loops a few hundred times a turn.
_MOST_BYTES, _MOST_DECODED, _MOST_ROWS = 64 << 20, 512 << 20, 100_000
Section = Literal["turn", "mechanics", "buckets", "drain"]
# Nanoseconds, bytes and requests are counted in 63 bits, and none of them comes near.
_BEYOND = 1 << 60
_LISTS = pl.List(pl.Int64)
_SCHEMA = pl.Schema(
    {
        "section": pl.String(),
        "op": pl.String(),
        "place": pl.String(),
        "size_bytes": pl.Int64(),
        "depth": pl.Int64(),
        "held_out": pl.Boolean(),
        "arrivals": pl.Boolean(),
        "span": pl.Float64(),
        "reads": pl.Float64(),
        "turn": pl.Int64(),
        "requests": pl.Int64(),
        "elapsed_ns": pl.Int64(),
        "mean_ns": pl.Float64(),
        "mean_of_all_ns": pl.Float64(),
        "processor_share": pl.Float64(),
        "warmup_ns": pl.Int64(),
        "value_ns": _LISTS,
        "count": _LISTS,
        "offset_bytes": _LISTS,
        "begin_ns": pl.List(pl.Float64),
        "end_ns": pl.List(pl.Float64),
        "failed": pl.String(),
    }
)


_Count = Annotated[int, Field(ge=1, le=_BEYOND)]
_OrNone = Annotated[int, Field(ge=0, le=_BEYOND)]
_TimeNs = Annotated[float, Field(gt=0, le=_BEYOND)]
_RequestBytes = Annotated[int, Field(ge=1, le=1 << 30)]
_AtNs = list[Annotated[float, Field(ge=-_BEYOND, le=_BEYOND)]]


class _TurnRow(TypedDict):
    """A turn of a situation."""

    section: Literal["turn"]
    op: Op
    place: Placing
    size_bytes: _RequestBytes
    depth: Annotated[int, Field(ge=0, le=MOST_IN_FLIGHT)]
    held_out: bool
    arrivals: bool
    span: Annotated[float, Field(gt=0, le=1)]
    reads: NotRequired[Annotated[float, Field(ge=0, le=1)]]
    turn: _OrNone
    requests: _Count
    elapsed_ns: _Count
    mean_ns: _TimeNs
    mean_of_all_ns: _TimeNs
    processor_share: Annotated[float, Field(ge=0, le=1 << 20)]
    warmup_ns: _OrNone
    value_ns: Annotated[list[_OrNone], Field(min_length=1)]
    count: list[_Count]


class _DrainRow(TypedDict):
    """What was done in each second at the end."""

    section: Literal["drain"]
    requests: _OrNone
    elapsed_ns: _OrNone
    value_ns: list[_Count]
    count: list[_OrNone]


class _ListRow(TypedDict):
    """Requests that were asked one after another; either their times or why they failed."""

    section: Literal["mechanics", "buckets"]
    op: Op
    size_bytes: _RequestBytes
    offset_bytes: list[_OrNone]
    begin_ns: NotRequired[_AtNs]
    end_ns: NotRequired[_AtNs]
    failed: NotRequired[str]


_ROWS: TypeAdapter[Any] = TypeAdapter(Annotated[_TurnRow | _DrainRow | _ListRow, Field(discriminator="section")])


@dataclass(frozen=True)
class KeptFacts:
    """What a fit was of, besides its measurements."""

    name: str
    capacity_bytes: int
    source: str
    seed: int
    budget_ns: int
    writes: bool


@dataclass(frozen=True)
class KeptList:
    """Requests that were asked one after another, and the answer: their times, or why they failed."""

    op: Op
    size_bytes: int
    offset_bytes: Numbers
    answer: TimedRequests | str


@dataclass
class KeptMeasurements:
    """All that a fit measured."""

    facts: KeptFacts
    samples: list[Sample] = field(default_factory=list)
    mechanics: list[KeptList] = field(default_factory=list)
    buckets: list[KeptList] = field(default_factory=list)
    drain: Drain | None = None

    def parquet(self) -> bytes:
        """As a file."""
        rows = [_row_of_sample(one) for one in self.samples]
        rows += [_row_of_list("mechanics", one) for one in self.mechanics]
        rows += [_row_of_list("buckets", one) for one in self.buckets]
        rows += [_row_of_drain(self.drain)] if self.drain is not None else []
        out = io.BytesIO()
        pl.DataFrame(rows, schema=_SCHEMA).write_parquet(out, metadata={_META: json.dumps(asdict(self.facts))})
        return out.getvalue()

    @classmethod
    def read(cls, file: Path) -> KeptMeasurements:
        """From a file; `InputError` where it is none that a fit has kept."""
        try:
            content = read_bytes(file, _MOST_BYTES)
        except OSError as error:
            raise InputError.one("--from", f"cannot be read: {error.strerror}", value=f"'{file}'") from None
        try:
            with refused_in_words():
                size = decoded_size(content)
                if size.rows > _MOST_ROWS or size.held_bytes(0) > _MOST_DECODED:
                    raise ValueError("is larger than any fit")
                facts = _facts(json_value(pl.read_parquet_metadata(io.BytesIO(content)).get(_META, "null")))
                table = pl.read_parquet(io.BytesIO(content))
                if table.schema != _SCHEMA:
                    raise ValueError("has other columns")
            found = cls(facts)
            for number, row in enumerate(table.iter_rows(named=True)):
                found._take(number, row)
        except (ValueError, TypeError, OverflowError) as error:
            message = f"holds no measurements of a fit ({first_line(error)})"
            accepted = "a file that 'raidlab device fit --keep' wrote"
            raise InputError.one("--from", message, value=f"'{file}'", accepted=accepted) from None
        if not found.samples:
            raise InputError.one("--from", "holds no turn of any situation", value=f"'{file}'")
        return found

    def _take(self, number: int, row: Mapping[str, object]) -> None:
        """Put in what a row says; a `ValueError` where that is nothing that a fit has measured."""
        try:
            found = _ROWS.validate_python({key: value for key, value in row.items() if value is not None})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(step) for step in first["loc"][1:3]) or "section"
            raise ValueError(f"row {number}: {where}: {first['msg']}") from None
        if len(found.get("value_ns", ())) != len(found.get("count", ())):
            raise ValueError(f"row {number}: times are damaged")
        if found["section"] == "turn":
            self.samples.append(_sample_of_row(found))
        elif found["section"] == "drain":
            self.drain = _drain_of_row(found)
        else:
            (self.mechanics if found["section"] == "mechanics" else self.buckets).append(_list_of_row(found))


@dataclass
class KeepingTimed:
    """A subject whose answers are kept."""

    subject: TimedSubject
    into: list[KeptList]

    @property
    def capacity_bytes(self) -> int:
        """What the subject holds."""
        return self.subject.capacity_bytes

    def ask_each(self, offset_bytes: Numbers, op: Op, size_bytes: int) -> TimedRequests:
        """Ask, and keep what comes of it, a failure too."""
        try:
            seen = self.subject.ask_each(offset_bytes, op, size_bytes)
        except CellFailedError as error:
            self.into.append(KeptList(op, size_bytes, offset_bytes, str(error)))
            raise
        self.into.append(KeptList(op, size_bytes, offset_bytes, seen))
        return seen

    def rest(self, time_ns: int) -> None:
        """Leave it alone."""
        self.subject.rest(time_ns)


@dataclass
class KeptTimed:
    """What was kept, in place of the subject that it was measured of."""

    capacity_bytes: int
    kept: Sequence[KeptList]

    def __post_init__(self) -> None:
        self._left: Iterator[KeptList] = iter(self.kept)

    def ask_each(self, offset_bytes: Numbers, op: Op, size_bytes: int) -> TimedRequests:
        """The next list, if it is the one that is asked for."""
        one = next(self._left, None)
        is_asked = one is not None and (one.op, one.size_bytes) == (op, size_bytes)
        if one is None or not is_asked or not np.array_equal(one.offset_bytes, offset_bytes):
            message = "has other requests than this version of raidlab, or this --kind, asks for"
            raise InputError.one("--from", message, accepted="--kind table, or measurements of this version")
        if isinstance(one.answer, str):
            raise CellFailedError(one.answer)
        return one.answer

    def rest(self, time_ns: int) -> None:
        """Nothing has to be waited for."""


def _facts(document: object) -> KeptFacts:
    kinds = {"str": str, "int": int, "bool": bool}
    wanted = {one.name: kinds[str(one.type)] for one in fields(KeptFacts)}
    if not isinstance(document, dict) or document.keys() != wanted.keys():
        raise ValueError("it does not say what it is of")
    if not all(type(document[key]) is kind for key, kind in wanted.items()):
        raise ValueError("what it says of itself is damaged")
    return KeptFacts(**document)


def _row_of_sample(one: Sample) -> dict[str, object]:
    row = asdict(one.situation) | {key: getattr(one, key) for key in _SAMPLE_KEYS}
    return row | {"section": "turn", "value_ns": one.times.value_ns.tolist(), "count": one.times.count.tolist()}


_SAMPLE_KEYS = ("turn", "requests", "elapsed_ns", "mean_ns", "mean_of_all_ns", "processor_share", "warmup_ns")


def _sample_of_row(row: _TurnRow) -> Sample:
    situation = Situation(**{one.name: row[one.name] for one in fields(Situation) if one.name in row})  # type: ignore[literal-required]
    if situation.place == "rewrite" and situation.op != "write":
        raise ValueError("what is written where it was read is no write")
    if not situation.depth and not situation.arrivals:
        raise ValueError("a closed loop has a depth of 0")
    times = Histogram.of({"value_ns": row["value_ns"], "count": row["count"]})
    return Sample(situation=situation, times=times, **{key: row[key] for key in _SAMPLE_KEYS})  # type: ignore[literal-required]


def _row_of_drain(one: Drain) -> dict[str, object]:
    """Seconds stand where a turn has its times."""
    counted: dict[str, object] = {"requests": one.before, "elapsed_ns": one.before_ns}
    return counted | {"section": "drain", "value_ns": list(one.end_ns), "count": list(one.requests)}


def _drain_of_row(row: _DrainRow) -> Drain:
    ends = tuple(row["value_ns"])
    if any(later <= earlier for earlier, later in pairwise((0, *ends))):
        raise ValueError("what was asked on at the end is damaged")
    return Drain(row["requests"], row["elapsed_ns"], ends, tuple(row["count"]))


def _row_of_list(section: Section, one: KeptList) -> dict[str, object]:
    row: dict[str, object] = {"section": section, "op": one.op, "size_bytes": one.size_bytes}
    row["offset_bytes"] = one.offset_bytes.tolist()
    if isinstance(one.answer, str):
        return row | {"failed": one.answer}
    # In the order in which they were begun, as they were asked.
    return row | {"begin_ns": one.answer.begin_ns.tolist(), "end_ns": one.answer.end_ns.tolist()}


def _list_of_row(row: _ListRow) -> KeptList:
    offsets = np.array(row["offset_bytes"], dtype=np.int64)
    answer: TimedRequests | str
    if "failed" in row:
        answer = row["failed"]
    else:
        begin, end = (np.array(row.get(key, ()), dtype=np.float64) for key in ("begin_ns", "end_ns"))
        if not len(begin) == len(end) == len(offsets) or not (begin <= end).all():
            raise ValueError("a list of requests is damaged")
        answer = TimedRequests(offsets, begin, end)
    return KeptList(row["op"], row["size_bytes"], offsets, answer)
