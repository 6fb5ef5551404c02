"""Turn Pydantic's validation errors into sentences that name the key, the value and what is accepted.

Invariants:

- One mistake in the file gives one explanation, at the key as the file has it: names of variants that Pydantic puts
  into its locations (``fixed``, ``IdleMultiple``) never reach the user.
- An unknown key always lists the keys that are accepted there, and a close match when there is one.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic_core import ErrorDetails

from raidlab.reading import Plain
from raidlab.study.find import did_you_mean
from raidlab.study.places import Place, value_at
from raidlab.study.units import (
    BYTES_ACCEPTED,
    DISK_SIZE_ACCEPTED,
    MOMENT_ACCEPTED,
    RATE_ACCEPTED,
    TIME_ACCEPTED,
    format_bytes,
    format_time_ns,
    parse_bytes,
    parse_disk_size,
    parse_moment_ns,
    parse_rate_per_s,
    parse_time_ns,
)
from raidlab.study.words import size_from_text

# What is read by a function of ours, and by which words.
_READ_BY: dict[object, str] = {
    parse_bytes: BYTES_ACCEPTED,
    parse_disk_size: DISK_SIZE_ACCEPTED,
    size_from_text: BYTES_ACCEPTED,
    parse_time_ns: TIME_ACCEPTED,
    parse_moment_ns: MOMENT_ACCEPTED,
    parse_rate_per_s: RATE_ACCEPTED,
}
_TABLE = "a table of keys"
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
    "dict_type": ("is not a table", _TABLE),
    "model_type": ("is not a table", _TABLE),
    "model_attributes_type": ("is not a table", _TABLE),
    "too_short": ("is empty", "at least one element"),
    "string_too_short": ("is empty", "some text"),
    "string_pattern_mismatch": ("is not a name", "small letters, digits and hyphens, such as 'my-study'"),
}
_BOUNDS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}
_SHARE_ACCEPTED = "a share from 0 (all writes) to 1 (all reads)"


@dataclass(frozen=True)
class Explanation:
    """One mistake at one place of the file."""

    place: Place
    message: str
    value: object
    accepted: str | None


def explain(model: type[BaseModel], document: Mapping[str, Plain], error: ValidationError) -> Iterator[Explanation]:
    """Explain each mistake of a document that is not what a model wants."""
    # A union reports a mistake once for every variant it tried; the user made it once, in the variant he meant.
    first_at: dict[Place, ErrorDetails] = {}
    for item in error.errors(include_url=False):
        place = _place_in(document, item["loc"])
        if _is_of_another_variant(value_at(document, place), item):
            continue
        first_at.setdefault(place, item)
    for place, item in first_at.items():
        yield _explain_one(model, document, place, item)


def truths_for_numbers(model: type[BaseModel], document: Any) -> Iterator[Explanation]:
    """Each true and false of a document where a number is wanted, as which Pydantic takes them."""
    for place in _truths(document, ()):
        kinds = _kinds_at_key(model, document, place)
        if kinds & {int, float} and not kinds & {bool, Any, object}:
            message, accepted = _PLAIN["float_type" if float in kinds else "int_type"]
            yield Explanation(
                place, message, value_at(document, place), _accepted_at(model, document, place) or accepted
            )


def _truths(value: Plain, place: Place) -> Iterator[Place]:
    """Where true and false stand."""
    if isinstance(value, bool):
        yield place
    elif isinstance(value, Mapping | list):
        for step, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _truths(inner, (*place, step))


def _kinds_at_key(model: type[BaseModel], document: Plain, place: Place) -> set[Any]:
    """What the innermost key of a table takes, alone, in a list or by names."""
    for end in range(len(place), 0, -1):
        fields = [
            table.model_fields.get(str(place[end - 1])) for table in _tables_at(model, document, place[: end - 1])
        ]
        if found := [info.annotation for info in fields if info is not None]:
            return {kind for annotation in found for kind in _leaves(annotation)}
    return set()


def _leaves(annotation: Any) -> Iterator[Any]:
    """The types that an annotation is made of."""
    parts = get_args(annotation)
    if not parts or get_origin(annotation) is Literal:
        yield annotation
    if get_origin(annotation) in (Annotated, dict):
        parts = parts[:1] if get_origin(annotation) is Annotated else parts[1:]
    for part in parts:
        yield from _leaves(part)


def _explain_one(
    model: type[BaseModel], document: Mapping[str, Plain], place: Place, item: ErrorDetails
) -> Explanation:
    kind, context, key = item["type"], item.get("ctx", {}), str(place[-1]) if place else ""
    value = value_at(document, place)
    if kind == "extra_forbidden":
        keys = sorted({name for table in _tables_at(model, document, place[:-1]) for name in table.model_fields})
        return Explanation(place, f"unknown key{did_you_mean(key, keys)}", None, ", ".join(keys))
    if kind == "missing" and isinstance(value, str):
        # The name of a kind stands for a table of it, and that needs more.
        needed = (*place, str(item["loc"][-1]))
        form = _accepted_at(model, document, needed) or _form_at(model, document, needed)
        table = f'{{ kind = "{value}", {needed[-1]} = ... }}{f" with {form}" if form else ""}'
        return Explanation(place, f"needs {needed[-1]}", value, table)
    if kind == "missing":
        return Explanation(
            place, "is missing", None, _accepted_at(model, document, place) or _form_at(model, document, place)
        )
    if kind in ("literal_error", "union_tag_invalid", "enum"):
        # A discriminated union reports its table; the fault is the word that names the kind.
        word = value.get("kind") if isinstance(value, dict) else value
        expected = str(context.get("expected", context.get("expected_tags", "")))
        names = [name for part in re.split(r",| or ", expected) if (name := part.strip().strip("'"))]
        return Explanation(place, f"is not known here{did_you_mean(str(word), names)}", word, ", ".join(names))
    if kind == "union_tag_not_found":
        return Explanation((*place, "kind"), "is missing", None, _kinds_at(model, document, place))
    if kind in _BOUNDS:
        word, key_of_limit = _BOUNDS[kind]
        noun, limit = _as_written(value, context[key_of_limit])
        bound = f"{word} {limit}"
        if key == "read":
            return Explanation(place, "a share of reads must lie between 0 and 1", value, _SHARE_ACCEPTED)
        return Explanation(place, f"must be {bound}", value, f"{noun} {bound}")
    if kind == "value_error":
        message = str(context.get("error", item["msg"]))
        plain = "text without control characters" if "control character" in message else None
        # A table that is wrong as a whole is too long to be shown.
        return Explanation(
            place, message, None if isinstance(value, dict) else value, plain or _accepted_at(model, document, place)
        )
    if kind in ("string_too_long", "too_long"):
        units = "letters" if kind == "string_too_long" else "elements"
        return Explanation(place, "is too long", value, f"at most {context['max_length']} {units}")
    message, accepted = _PLAIN.get(kind, (item["msg"][:1].lower() + item["msg"][1:], None))
    words = _table_at(model, document, place) if accepted == _TABLE else accepted
    return Explanation(place, message, value, _accepted_at(model, document, place) or words)


def _as_written(value: object, limit: float) -> tuple[str, str]:
    """What a value is, and a limit of it in the form in which it is written: that of a time or a size has a unit."""
    if isinstance(value, str):
        for noun, parse, formatted in (
            ("a time", parse_moment_ns, format_time_ns),
            ("a size", parse_bytes, format_bytes),
        ):
            with suppress(ValueError):
                parse(value)
                return noun, formatted(int(limit))
    return "a number", str(limit) if isinstance(limit, int) else f"{limit:g}"


def _is_of_another_variant(value: object, item: ErrorDetails) -> bool:
    """Whether a mistake is only that a table is no single value, or a single value no table, where both are known."""
    of_reader = any(_is_reader(step) for step in item["loc"])
    if isinstance(value, dict):
        return of_reader
    is_union = any(isinstance(step, str) and step[:1].isupper() for step in item["loc"])
    return is_union and item["type"] in ("model_type", "dict_type")


def _is_reader(step: str | int) -> bool:
    """Whether a step is Pydantic's name for a function of ours, such as ``function-before[parse_time_ns(), int]``."""
    return isinstance(step, str) and step.startswith("function-")


def _accepted_at(model: type[BaseModel], document: Plain, place: Place) -> str | None:
    """What a key accepts that has a reader of ours; of an item of a list what the list's key does."""
    while place and isinstance(place[-1], int):
        place = place[:-1]
    if not place or place[-1] == "read":
        return _SHARE_ACCEPTED if place else None
    fields = [table.model_fields.get(str(place[-1])) for table in _tables_at(model, document, place[:-1])]
    found = (_reader_in(info.annotation, info.metadata) for info in fields if info is not None)
    return next((accepted for accepted in found if accepted), None)


def _kinds_at(model: type[BaseModel], document: Plain, place: Place) -> str | None:
    """The names of the kinds that a table may be of; None where it is of none."""
    kinds = sorted({str(kind) for table in _tables_at(model, document, place) for kind in _kinds(table)})
    return ", ".join(kinds) or None


def _table_at(model: type[BaseModel], document: Plain, place: Place) -> str:
    """What a table may be that is none: of which kind, or with which keys where only one may stand there."""
    kinds, tables = _kinds_at(model, document, place), _tables_at(model, document, place)
    if kinds:
        return f"a kind or a table of one: {kinds}"
    return f"{_TABLE}: {', '.join(sorted(tables.pop().model_fields))}" if len(tables) == 1 else _TABLE


def _form_at(model: type[BaseModel], document: Plain, place: Place) -> str | None:
    """What a key without a reader of ours accepts, by its type alone: "a list in brackets"."""
    tables = _tables_at(model, document, place[:-1])
    fields = [table.model_fields[str(place[-1])] for table in tables if str(place[-1]) in table.model_fields]
    for form in (_plain_of(info.annotation) for info in fields):
        error = {list: "list_type", int: "int_type", float: "float_type", bool: "bool_type", str: "string_type"}.get(
            form
        )
        if error is not None:
            return _PLAIN[error][1]
    return None


def _plain_of(annotation: Any) -> Any:
    """The plain type that an annotation stands for, ``list`` of ``list[Device]``."""
    if get_origin(annotation) is Annotated:
        return _plain_of(get_args(annotation)[0])
    return get_origin(annotation) or annotation


def _reader_in(annotation: Any, metadata: Iterable[object] = ()) -> str | None:
    """What a type accepts, by the function that reads it; a table's keys speak for themselves."""
    own = (_READ_BY.get(item.func) for item in metadata if isinstance(item, BeforeValidator))
    if (accepted := next((words for words in own if words), None)) is not None:
        return accepted
    if get_origin(annotation) not in (list, Union, Annotated, types.UnionType):
        return None
    inner, *rest = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return _reader_in(inner, rest)
    return next((words for part in (inner, *rest) if (words := _reader_in(part)) is not None), None)


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


def _tables_at(model: type[BaseModel], document: Any, place: Place) -> set[type[BaseModel]]:
    """What the table at a place may be, as far as its ``kind`` tells."""
    candidates: set[type[BaseModel]] = {model}
    # What a table holds whose keys are names of anything.
    by_name: set[type[BaseModel]] = set()
    current: Any = document
    for step in place:
        current = current[step]
        if isinstance(step, str):
            fields = [found.model_fields[step] for found in candidates if step in found.model_fields]
            candidates = by_name | {inner for info in fields for inner in _models_in(info.annotation)}
            by_name = {inner for info in fields for inner in _models_by_name(info.annotation)}
    # The name of a kind stands for a table of it.
    kind = current.get("kind") if isinstance(current, dict) else current if isinstance(current, str) else None
    return {found for found in candidates if kind is not None and kind in _kinds(found)} or candidates


def _models_in(annotation: Any) -> set[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    if get_origin(annotation) in (list, Union, Annotated, types.UnionType):
        return {model for inner in get_args(annotation) for model in _models_in(inner)}
    return set()


def _models_by_name(annotation: Any) -> set[type[BaseModel]]:
    if get_origin(annotation) is dict:
        return _models_in(get_args(annotation)[1])
    inner = get_args(annotation) if get_origin(annotation) in (Union, Annotated, types.UnionType) else ()
    return {model for part in inner for model in _models_by_name(part)}


def _kinds(model: type[BaseModel]) -> tuple[Any, ...]:
    info = model.model_fields.get("kind")
    return get_args(info.annotation) if info is not None else ()
