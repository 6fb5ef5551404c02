"""The flags of ``raidlab measure`` in the words of a study file.

Every flag stands for a key of a study's ``[[workload]]``, ``[load]`` or ``[live]``, and is validated by the very schema
that validates the file; so a flag and a key that are called alike mean the same.

Invariants:

- A text of the form ``kind:value,key=value`` is the table ``{ kind = .., .. }``; the first value, without a key, is
  that of the kind's main key.
- An error names the flag, the value and what is accepted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from raidlab.errors import CellFailedError, InputError, Problem
from raidlab.study.explain import explain
from raidlab.study.places import value_text
from raidlab.study.workload import Load, Workload

Document = dict[str, Any]
Model = TypeVar("Model", bound=BaseModel)

DEFAULT_DEPTH = 32
WORKLOAD_NAME = "measure"
# fio's words for the share of reads and the order of addresses.
RW = {
    "read": (1.0, "sequential"),
    "write": (0.0, "sequential"),
    "rw": (0.5, "sequential"),
    "randread": (1.0, "uniform"),
    "randwrite": (0.0, "uniform"),
    "randrw": (0.5, "uniform"),
}
_MAIN_KEY = {
    "fixed": "bytes",
    "exponential": "mean",
    "normal": "mean",
    "lognormal": "mean",
    "sequential": "streams",
    "zipf": "theta",
    "strided": "stride",
}
# What the engine says of a remedy that only files for it can ask for.
_ONLY_IN_FILES = ', or that end "buffered": true'
# Keys whose flag is called otherwise.
_FLAG_OF = {
    **dict.fromkeys(("bytes", "size", "sizes"), "--size"),
    "block_bytes": "--block",
    "cv2": "--arrival",
    "depths": "--depth",
    "duration": "--runtime",
    "open": "--rate",
    "rate_mb_s": "--rate",
}
# Keys whose flag is called like them, or gives them.
_ALIKE = ("address", "align", "buffers", "count", "data", "io", "lists", "readers")


class Flags:
    """Flags of one kind."""

    @property
    def given(self) -> list[str]:
        """The flags that were given."""
        return [f"--{key}" for key, value in vars(self).items() if value is not None]


@dataclass(frozen=True)
class WorkloadFlags(Flags):
    """What is asked of the targets; None where a flag was not given."""

    rw: str | None = None
    read: str | None = None
    address: str | None = None
    size: str | None = None
    align: str | None = None


@dataclass(frozen=True)
class LoadFlags(Flags):
    """How hard the targets are driven; None where a flag was not given."""

    depth: str | None = None
    rate: str | None = None
    arrival: str | None = None
    hold: str | None = None


def workload_document(flags: WorkloadFlags, *, volumes: int) -> Document:
    """The table ``[[workload]]`` of some flags, valid by the schema.

    ``volumes``: how many targets are measured at once; several get the same number of requests each.
    """
    if flags.rw is not None and flags.rw not in RW:
        raise InputError.one("--rw", "is not known", value=f"'{flags.rw}'", accepted=", ".join(RW))
    # A word for both directions leaves their shares open.
    says_share = flags.rw is not None and flags.rw not in ("rw", "randrw")
    for flag, given in (("--read", says_share and flags.read), ("--address", flags.rw and flags.address)):
        if given:
            raise InputError.one("--rw", f"says what {flag} says too", value=f"'{flags.rw}'", accepted="one of the two")
    read, address = RW[flags.rw] if flags.rw is not None else (1.0, "uniform")
    document: Document = {
        "name": WORKLOAD_NAME,
        "read": read if flags.read is None else parse_share("--read", flags.read),
        "size": parse_kind("4KiB" if flags.size is None else flags.size),
        "address": address if flags.address is None else parse_kind(flags.address),
    }
    if isinstance(document["address"], str):
        document["address"] = {"kind": document["address"]}
    if flags.align is not None:
        document["align"] = flags.align
    if volumes > 1:
        document["volumes"] = "even"
    validated(Workload, document)
    return document


def load_document(flags: LoadFlags) -> Document:
    """The table ``[load]`` of some flags, valid by the schema."""
    if flags.rate is not None and (flags.depth is not None or flags.hold is not None):
        other = "--depth" if flags.depth is not None else "--hold"
        raise InputError.one(
            "--rate", f"is an open loop and {other} a closed one: they are not mixed", accepted=f"--rate or {other}"
        )
    if flags.arrival is not None and flags.rate is None:
        raise InputError.one("--arrival", "says how requests arrive, but no --rate says how many", accepted="--rate N")
    document: Document = {}
    if flags.rate is not None:
        arrival = parse_kind("poisson" if flags.arrival is None else flags.arrival)
        table = {"arrival": arrival} if isinstance(arrival, str) else dict(arrival, arrival=arrival["kind"])
        table.pop("kind", None)
        if (table["arrival"] == "h2") != ("cv2" in table):
            raise InputError.one(
                "--arrival", "cv2 goes with h2, and h2 with cv2", value=f"'{flags.arrival}'", accepted="'h2:cv2=4'"
            )
        document["open"] = {**table, "rates_per_s": [_rate(word) for word in flags.rate.split(",")]}
    if flags.hold is not None:
        document["hold"] = _hold(flags.hold)
    if flags.depth is not None:
        document["depths"] = [_depth(word) for word in flags.depth.split(",")]
    elif not document:
        document["depths"] = [DEFAULT_DEPTH]
    validated(Load, document)
    return document


def parse_kind(text: str) -> str | Document:
    """Read ``8KiB``, ``exponential:8KiB``, ``normal:8KiB,sd=1KiB`` or ``table:4KiB=3,64KiB=1`` as the file would.

    Examples
    --------
    >>> parse_kind("normal:8KiB,sd=1KiB")
    {'kind': 'normal', 'mean': '8KiB', 'sd': '1KiB'}
    >>> parse_kind("table:4KiB=3,64KiB=1")
    {'kind': 'table', 'bytes': ['4KiB', '64KiB'], 'weights': [3, 1]}
    """
    kind, colon, rest = text.partition(":")
    if not colon:
        return text
    words = [word.strip() for word in rest.split(",") if word.strip()]
    if kind == "table":
        pairs = [word.partition("=") for word in words]
        return {
            "kind": kind,
            "bytes": [_value(size) for size, _, _ in pairs],
            "weights": [_value(weight) if weight else 1 for _, _, weight in pairs],
        }
    document: Document = {"kind": kind}
    for position, word in enumerate(words):
        key, equals, value = word.partition("=")
        if equals:
            document[key.strip()] = _value(value.strip())
        elif position == 0 and kind in _MAIN_KEY:
            document[_MAIN_KEY[kind]] = _value(word)
        else:
            document[word] = None
    return document


def parse_share(flag: str, text: str) -> float:
    """Read ``70%`` or ``0.7``.

    Examples
    --------
    >>> parse_share("--read", "70%")
    0.7
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
    share = float(match[1]) / (100 if match[2] else 1) if match else -1.0
    if not 0 <= share <= 1:
        raise InputError.one(flag, "is not a share", value=f"'{text}'", accepted="0% to 100%, or 0 to 1")
    return share


def parse_span(text: str) -> tuple[float, float]:
    """Read ``10%`` (the beginning) or ``40%-60%``.

    Examples
    --------
    >>> parse_span("10%"), parse_span("40%-60%")
    ((0.0, 0.1), (0.4, 0.6))
    """
    first, dash, second = text.partition("-")
    low, high = (
        (parse_share("--span", first), parse_share("--span", second)) if dash else (0.0, parse_share("--span", text))
    )
    if low >= high:
        raise InputError.one("--span", "is empty", value=f"'{text}'", accepted="such as 10% or 40%-60%")
    return low, high


def parse_cpus(text: str | None) -> tuple[int, ...]:
    """Read ``0,2`` or ``0-3``.

    Examples
    --------
    >>> parse_cpus("0,4-6")
    (0, 4, 5, 6)
    """
    found: list[int] = []
    for word in (text or "").split(",") if text is not None else []:
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", word)
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise InputError.one("--cpus", "is not a list of processors", value=f"'{text}'", accepted="such as 0,2-3")
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return tuple(dict.fromkeys(found))


def known_cpus(cpus: tuple[int, ...]) -> tuple[int, ...]:
    """The same processors, if the machine has them all."""
    most = (os.cpu_count() or 1) - 1
    for cpu in cpus:
        if cpu > most:
            accepted = f"0 to {most}" if most else "0"
            raise InputError.one("--cpus", "there is no such processor here", value=f"'{cpu}'", accepted=accepted)
    return cpus


def flag_of(key: str) -> str | None:
    """The flag that gives a key of a cell; None where none does.

    Examples
    --------
    >>> flag_of("workload.size.sigma"), flag_of("load.open.cv2"), flag_of("targets[0]")
    ('--size', '--arrival', None)
    """
    names = reversed(re.sub(r"\[\d+\]", "", key).split("."))
    flags = (_FLAG_OF.get(name, f"--{name}" if name in _ALIKE else None) for name in names)
    return next((flag for flag in flags if flag), None)


def said_of_flag(error: CellFailedError, otherwise: str) -> CellFailedError:
    """An error of the engine about a key of a cell, said of its flag, or of the arguments where it has none.

    Examples
    --------
    >>> told = CellFailedError("streams[0].block_bytes: 7 is too little", "bad_input", "streams[0].block_bytes")
    >>> str(said_of_flag(told, "FROM TO"))
    '--block: 7 is too little'
    """
    told = str(error.at(flag_of(error.key) or otherwise))
    return CellFailedError(told.removesuffix(_ONLY_IN_FILES), error.kind)


def parse_counts(flag: str, text: str) -> tuple[int, ...]:
    """Read ``1,2,4``.

    Examples
    --------
    >>> parse_counts("--readers", "1,4,2")
    (1, 2, 4)
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() and int(word) >= 1 for word in words):
        raise InputError.one(flag, "is not a list of numbers above 0", value=f"'{text}'", accepted="such as 1,2,4")
    return tuple(sorted({int(word) for word in words}))


def parse_with(read: Callable[[str], int], flag: str, text: str, accepted: str) -> int:
    """Read a size or a time, with an error that names the flag."""
    try:
        return read(text)
    except ValueError as error:
        raise InputError.one(flag, str(error), value=f"'{text}'", accepted=accepted) from None


def validated(model: type[Model], document: Document) -> Model:
    """What a document says; what the schema refuses is refused by the names of the flags."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        problems = []
        for mistake in explain(model, document, error):
            key = str(mistake.place[0]) if mistake.place else ""
            inner = ".".join(str(step) for step in mistake.place[1:] if isinstance(step, str))
            message = f"{inner}: {mistake.message}" if inner else mistake.message
            value = None if mistake.value is None else value_text(mistake.value)
            problems.append(Problem("", flag_of(f"{key}.{inner}") or f"--{key}", message, value, mistake.accepted))
        raise InputError(problems) from None


def _value(text: str) -> int | float | str:
    """A number where it is one; sizes and words stay text."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _rate(word: str) -> float:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:/s)?\s*", word)
    if match is None or float(match[1]) <= 0:
        raise InputError.one("--rate", "is not a rate above 0", value=f"'{word}'", accepted="such as 1000/s or 100,200")
    return float(match[1])


def _depth(word: str) -> int:
    if not word.strip().isdigit() or int(word) < 1:
        raise InputError.one("--depth", "is not a queue depth", value=f"'{word}'", accepted="such as 32 or 1,8,32")
    return int(word)


def _hold(text: str) -> Document:
    match = re.fullmatch(r"\s*p(\d+(?:\.\d+)?)\s*=\s*(\S.*?)\s*", text)
    if match is None:
        raise InputError.one("--hold", "is not a percentile and a time", value=f"'{text}'", accepted="such as p90=20ms")
    return {"percentile": float(match[1]), "target": match[2]}
