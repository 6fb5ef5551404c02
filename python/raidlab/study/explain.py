"""Turn Pydantic's validation errors into sentences that name the key, the value and what is accepted.

Invariants:

- One mistake in the file gives one explanation, at the key as the file has it: names of variants that Pydantic puts
  into its locations (``fixed``, ``IdleMultiple``) never reach the user.
- An unknown key always lists the keys that are accepted there, and a close match when there is one.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from raidlab.study.find import did_you_mean
from raidlab.study.places import Place, value_at
from raidlab.study.units import BYTES_ACCEPTED, TIME_ACCEPTED

_BYTES_KEYS = {
    "size",
    "bytes",
    "mean",
    "sd",
    "chunk",
    "stripe",
    "stride",
    "member_size",
    "sector",
    "align",
    "transfer_quantum",
    "member_quantum",
    "write_quantum",
    "line",
    "fetch",
    "read_ahead",
    "write_back_up_to",
    "dirty_room",
    "read_room",
}
_TIME_KEYS = {"duration", "target", "request", "access", "issue", "completion", "parity_per_kib", "per_kib", "cost"}
_PLAIN = {
    "string_type": ("is not text", "text in quotes"),
    "bool_type": ("is not true or false", "true or false"),
    "int_type": ("is not a whole number", "a whole number"),
    "int_parsing": ("is not a whole number", "a whole number"),
    "int_from_float": ("is not a whole number", "a whole number"),
    "float_type": ("is not a number", "a number"),
    "float_parsing": ("is not a number", "a number"),
    "finite_number": ("is not finite", "a finite number"),
    "list_type": ("is not a list", "a list in brackets"),
    "dict_type": ("is not a table", "a table of keys"),
    "model_type": ("is not a table", "a table of keys"),
    "model_attributes_type": ("is not a table", "a table of keys"),
    "too_short": ("is empty", "at least one element"),
    "string_too_short": ("is empty", "some text"),
    "string_pattern_mismatch": ("is not a name", "small letters, digits and hyphens, such as 'my-study'"),
}
_SHARE_ACCEPTED = "a share from 0 (all writes) to 1 (all reads)"


@dataclass(frozen=True)
class Explanation:
    """One mistake at one place of the file."""

    place: Place
    message: str
    value: object
    accepted: str | None


def explain(model: type[BaseModel], document: dict[str, Any], error: ValidationError) -> Iterator[Explanation]:
    """Explain each mistake of a validation error.

    Parameters
    ----------
    model : type
        The model that was validated.
    document : dict
        The parsed file.
    error : pydantic.ValidationError

    Yields
    ------
    Explanation
    """
    # A union reports a mistake once for every variant it tried; the user made it once, in the variant he meant.
    meant: dict[Place, Any] = {}
    for item in error.errors(include_url=False):
        place = _place_in(document, item["loc"])
        if _is_of_another_variant(value_at(document, place), item):
            continue
        meant.setdefault(place, item)
    for place, item in meant.items():
        yield _explain_one(model, document, place, item)


def _explain_one(model: type[BaseModel], document: dict[str, Any], place: Place, item: Any) -> Explanation:
    kind, context, key = item["type"], item.get("ctx", {}), str(place[-1]) if place else ""
    value = value_at(document, place)
    if kind == "extra_forbidden":
        keys = sorted(_keys_at(model, document, place[:-1]))
        return Explanation(place, f"unknown key{did_you_mean(key, keys)}", None, ", ".join(keys))
    if kind == "missing":
        return Explanation(place, "is missing", None, _accepted_for(key))
    if kind in ("literal_error", "union_tag_invalid", "enum"):
        # A discriminated union reports its table; the fault is the word that names the kind.
        word = value.get("kind") if isinstance(value, dict) else value
        names = [
            name.strip().strip("'")
            for name in re.split(r",| or ", str(context.get("expected", context.get("expected_tags", ""))))
        ]
        names = [name for name in names if name]
        return Explanation(place, f"is not known here{did_you_mean(str(word), names)}", word, ", ".join(names))
    if kind == "union_tag_not_found":
        return Explanation((*place, "kind"), "is missing", None, 'the name of a kind, such as kind = "uniform"')
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal"):
        return Explanation(place, *_out_of_range(key, kind, context, value))
    if kind == "value_error":
        message = str(context.get("error", item["msg"]))
        plain = "text without control characters" if "control character" in message else None
        # A table that is wrong as a whole is too long to be shown.
        return Explanation(place, message, None if isinstance(value, dict) else value, plain or _accepted_for(key))
    if kind in ("string_too_long", "too_long"):
        units = "letters" if kind == "string_too_long" else "elements"
        return Explanation(place, "is too long", value, f"at most {context['max_length']} {units}")
    message, accepted = _PLAIN.get(kind, (item["msg"][:1].lower() + item["msg"][1:], None))
    return Explanation(place, message, value, _accepted_for(key) or accepted)


def _is_of_another_variant(value: object, item: Any) -> bool:
    """Whether a mistake is only that a table is no single value, or a single value no table, where both are known."""
    of_reader = any(_is_reader(step) for step in item["loc"])
    if isinstance(value, dict):
        return of_reader
    is_union = any(isinstance(step, str) and step[:1].isupper() for step in item["loc"])
    return is_union and item["type"] in ("model_type", "dict_type")


def _is_reader(step: str | int) -> bool:
    """Whether a step is Pydantic's name for a function of ours, such as ``function-before[parse_time_ns(), int]``."""
    return isinstance(step, str) and step.startswith("function-")


def _out_of_range(key: str, kind: str, context: dict[str, Any], value: object) -> tuple[str, object, str]:
    word, limit = {
        "greater_than": ("above", "gt"),
        "greater_than_equal": ("at least", "ge"),
        "less_than": ("below", "lt"),
        "less_than_equal": ("at most", "le"),
    }[kind]
    edge = context.get(limit)
    bound = f"{word} {edge}" if isinstance(edge, int) else f"{word} {edge:g}"
    if key == "read":
        return "a share of reads must lie between 0 and 1", value, _SHARE_ACCEPTED
    return f"must be {bound}", value, f"a number {bound}"


def _accepted_for(key: str) -> str | None:
    if key in _BYTES_KEYS:
        return BYTES_ACCEPTED
    if key in _TIME_KEYS:
        return TIME_ACCEPTED
    return _SHARE_ACCEPTED if key == "read" else None


def _place_in(document: Any, location: tuple[str | int, ...]) -> Place:
    """The part of a Pydantic location that exists in the file; what is left over are names of variants."""
    place: Place = ()
    current: Any = document
    for position, step in enumerate(location):
        in_table = isinstance(current, dict) and step in current
        in_list = isinstance(current, list) and isinstance(step, int) and step < len(current)
        if in_table or in_list:
            current = current[step]
        elif isinstance(current, dict) and position == len(location) - 1 and not _is_reader(step):
            return (*place, step)
        else:
            continue
        place = (*place, step)
    return place


def _keys_at(model: type[BaseModel], document: Any, place: Place) -> set[str]:
    """The keys that are accepted in the table at a place."""
    candidates: set[type[BaseModel]] = {model}
    current: Any = document
    for step in place:
        current = current[step]
        if isinstance(step, str):
            fields = [found.model_fields[step] for found in candidates if step in found.model_fields]
            candidates = {inner for info in fields for inner in _models_in(info.annotation)}
    kind = current.get("kind") if isinstance(current, dict) else None
    of_kind = {found for found in candidates if kind is not None and kind in _kinds(found)}
    return {name for found in (of_kind or candidates) for name in found.model_fields}


def _models_in(annotation: Any) -> set[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    if get_origin(annotation) in (list, Union, Annotated, types.UnionType):
        return {model for inner in get_args(annotation) for model in _models_in(inner)}
    return set()


def _kinds(model: type[BaseModel]) -> tuple[Any, ...]:
    info = model.model_fields.get("kind")
    return get_args(info.annotation) if info is not None else ()
