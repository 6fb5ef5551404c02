"""Work out every published figure of a study from a run.

Invariants:

- Every claim and every value of a declared table becomes a row; what cannot be worked out becomes a row that says why.
- A claim that nobody mapped is an error, unless nothing could check it.
- What a figure is called (fitted, predicted, ...) follows from its expression and from the fit, never from a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from raidlab.published.compare.clause import NOISE, Words, judged, least_of, unit_of, words_of
from raidlab.published.compare.row import (
    ARITHMETIC,
    FITTED,
    GIVEN,
    NOT_EVALUATED,
    Kind,
    Published,
    PublishedRow,
    Verdict,
    error_of,
)
from raidlab.published.quantities import KINDS, NotThereError, Reading, Source, read_measure
from raidlab.published.quantities.kind import each_of, repeats_of
from raidlab.stats.jackknife import interval_around
from raidlab.study.expression import DividesByZeroError, Expression, Operand, read
from raidlab.study.mapping import (
    COLUMNS,
    QUANTITIES,
    ClaimQuantity,
    Derived,
    Measures,
    Order,
    TableColumns,
    operands_of,
    order_id,
    row_id,
)
from raidlab.study.mapping import Mapping as StudyMapping
from raidlab.study.published import Claim, PublishedTable, number, read_claims, read_tables
from raidlab.study.units import format_bytes
from raidlab.study.words import is_simulated

_NOT_CHECKABLE = "none"
# What is so much a second is 0 where nothing was served.
_RATES = ("MB/s", "1/s")
# What the reason begins with where nothing was measured that a row asks for.
NOT_GIVEN = "the run does not give"
CLAIMS = "claims"
DERIVED = "derived"


@dataclass
class Evaluation:
    """A run beside what its study printed."""

    mapping: StudyMapping
    source: Source
    fitted_to: set[str]
    """Ids and tables to which parameters of this hardware were fitted, and what follows from those."""

    def rows(self, only: set[str] | None = None) -> Iterator[PublishedRow]:
        """All rows: claims, what is derived, tables; ``only`` those of some ids and tables."""
        claims = read_claims(self.mapping.published)
        said = {claim.id: claim.conditions for claim in claims}
        for claim in claims:
            # A claim that is a conclusion, too, is asked of every target (`conclusions_on`), this one among them.
            if claim.id not in self.mapping.quantities.conclusion and (only is None or claim.id in only):
                row = self._claim(claim)
                yield replace(row, of=without_ids(row.of, said))
        for name, derived in self.mapping.quantities.derived.items():
            if only is None:
                yield self._derived(name, derived)
        for columns in self.mapping.columns.table:
            for table in read_tables(self.mapping.published, columns.file):
                if only is None or table.name in only:
                    yield from self._table(columns, table)
        if only is None:
            yield from self._undeclared()

    def _undeclared(self) -> Iterator[PublishedRow]:
        """Tables that nobody declared."""
        declared = {
            table.name for one in self.mapping.columns.table for table in read_tables(self.mapping.published, one.file)
        }
        for table in read_tables(self.mapping.published, "*.csv"):
            if table.name not in declared:
                note = "columns.toml does not say what its columns are"
                yield PublishedRow(table.name, table.name, "", Published(""), "error", table=table.name, note=note)

    def _claim(self, claim: Claim) -> PublishedRow:
        mapped = self.mapping.quantities.claim.get(claim.id)
        note = mapped.note if mapped else ""
        of = (mapped.of if mapped else "") or claim.title

        def ended(verdict: Verdict, why: str) -> PublishedRow:
            unit = mapped.unit if mapped and mapped.unit else claim.unit
            published = Published(claim.value, claim.low, claim.high, unit)
            return PublishedRow(claim.where, claim.id, "", published, verdict, table=CLAIMS, note=why, of=of)

        if mapped is None:
            if claim.checkable_by == _NOT_CHECKABLE:
                return ended(NOT_EVALUATED, "no run could check it")
            return ended("error", "is not mapped to a quantity")
        if mapped.not_evaluated is not None:
            return ended(NOT_EVALUATED, mapped.not_evaluated)
        try:
            published = _published(claim, mapped)
        except ValueError as error:
            return ended("error", f"published/{CLAIMS}.csv: '{claim.value}' with published_with: {error}")
        text = mapped.value or mapped.holds or ""
        row = PublishedRow(claim.where, claim.id, text, published, "compared", table=CLAIMS, note=note, of=of)
        if mapped.holds is not None:
            # An order is printed in few words: what it is of stands in its conditions.
            says = f"{published.text} {published.unit}".strip()
            says = f"{says} ({claim.conditions})" if says and claim.conditions else says
            row = replace(row, says=mapped.of or says)
        place = f"{QUANTITIES}: claim.{claim.id}.{'value' if mapped.holds is None else 'holds'}"
        return self._of_quantities(row, text, place, holds=mapped.holds is not None, why=mapped.why)

    def _derived(self, name: str, derived: Derived) -> PublishedRow:
        """A figure beyond what was published."""
        text = derived.value or derived.holds or ""
        printed = Published(derived.printed, unit=derived.unit)
        row = PublishedRow(
            *(derived.where, name, text, printed, "compared"),
            table=DERIVED,
            note=derived.note,
            of=derived.of or name.replace("-", " "),
        )
        place = f"{QUANTITIES}: derived.{name}.{'value' if derived.holds is None else 'holds'}"
        return self._of_quantities(row, text, place, holds=derived.holds is not None, why=derived.why)

    def _of_quantities(self, row: PublishedRow, text: str, place: str, *, holds: bool, why: str = "") -> PublishedRow:
        measures = self.mapping.quantities.measure
        return self.with_why(self.worked_out(row, read(text), measures, {}, holds=holds, place=place), why)

    def _table(self, columns: TableColumns, table: PublishedTable) -> Iterator[PublishedRow]:
        """A row for each value and each order that a printed table has, line by line."""
        if columns.not_evaluated is not None:
            note = columns.not_evaluated
            row = PublishedRow(table.name, table.name, "", Published(""), NOT_EVALUATED, table=table.name, note=note)
            yield replace(row, of=f"{table_in_words(table.name)}, the whole table")
        for line in table.rows:
            keys = columns.keys_of(line)
            why = columns.skipped(keys)
            measures = columns.measures_of(table.name, keys, self.mapping.quantities.measure)
            for name, column in columns.column.items():
                if name not in line:
                    continue
                row = _printed_value(table.name, name, columns, keys, line)
                expression = read(column.value)
                if why is not None:
                    yield replace(row, verdict=NOT_EVALUATED, note=why, measures=_named(expression, measures))
                else:
                    place = f"{COLUMNS}: table '{columns.file}', column.{name}.value"
                    row = self.worked_out(row, expression, measures, operands_of(keys), holds=False, place=place)
                    yield self.with_why(row, columns.why_missed(f"{table.name}.csv", keys, name))
            for name, order in columns.order.items():
                if name in line:
                    yield self._ordered(table.name, name, order, keys, measures, line[name])

    def _ordered(
        self, table: str, column: str, order: Order, keys: dict[str, str], measures: Measures, printed: str
    ) -> PublishedRow:
        """Whether a printed order holds."""
        text = keys[order.by]
        note = order.note.get(text, "")
        row = PublishedRow(
            text, order_id(table, text), order.holds.get(text, ""), Published(printed), "error", table=table
        )
        row = replace(row, of=f"{column.replace('_', ' ')}: {text}")
        if (why := order.not_evaluated.get(text)) is not None:
            return replace(row, verdict=NOT_EVALUATED, note=why)
        if text not in order.holds:
            return replace(row, note=f"columns.toml does not say what the order in '{column}' means here")
        place = f"{COLUMNS}: table '{table}', order.{column}.holds, '{text}'"
        row = replace(row, note=note)
        return self.worked_out(row, read(row.quantity), measures, operands_of(keys), holds=True, place=place)

    def worked_out(
        self,
        row: PublishedRow,
        expression: Expression,
        measures: Measures,
        operands: Mapping[str, Operand],
        *,
        holds: bool,
        place: str,
    ) -> PublishedRow:
        """The row with the expression's value in it, or with what it says in words; ``place`` is the expression's."""
        known = Known(self, measures, operands)
        row = replace(row, measures=_named(expression, measures))
        try:
            # All readings are taken first, so that their repeats are known.
            value = None if holds else expression.value(known)
            for name in sorted(expression.names) if holds else ():
                known[name]
            repeats = known.repeats()
            if value is None or isinstance(value, bool):
                exact = {name for name in known.readings if not KINDS[str(measures[name]["kind"])].is_run}
                said = self.mapping.quantities
                words = Words(measures, said.called, said.reckoned)
                verdict, clauses = judged(expression, known, repeats, words, exact | set(operands))
            else:
                least = min(least_of(measures, expression), value)
                interval = interval_around(value, _of_each(expression, known), least)
        except NoReadingError as error:
            return replace(row, verdict=NOT_EVALUATED, note=f"{NOT_GIVEN}: {error}")
        except DividesByZeroError as error:
            return replace(row, verdict=NOT_EVALUATED, note=f"cannot be told: {known.zeros(error.names)}")
        except ValueError as error:
            return replace(row, verdict="error", note=f"{place}: {error}")
        kind = self.kind_of(row, [measures[name] for name in known.readings])
        if kind == GIVEN:
            row = replace(row, note="; ".join(filter(None, (row.note, self._why_given(row)))))
        if known.readings:
            row = replace(row, measures=tuple(measures[name] for name in known.readings))
        if value is None or isinstance(value, bool):
            readings = {name: reading.value for name, reading in known.readings.items()}
            return replace(row, verdict=verdict, kind=kind, clauses=tuple(clauses), readings=readings)
        distance = error_of(row.published, value)
        return replace(
            row,
            verdict="no published value" if distance is None else "compared",
            kind=kind,
            value=value,
            low=interval[0] if interval else None,
            high=interval[1] if interval else None,
            error=distance,
        )

    def with_why(self, row: PublishedRow, why: str) -> PublishedRow:
        """The row with the reason why it does not come out: that is of the study's own hardware, and of no other."""
        if not why or not (row.is_miss or row.verdict == NOISE) or self.source.target != self.mapping.quantities.target:
            return row
        return replace(row, note="; ".join(filter(None, (row.note, why))))

    def kind_of(self, row: PublishedRow, measures: Iterable[Mapping[str, object]]) -> Kind:
        """Whether a row was computed, given, fitted, predicted or measured."""
        if not any(KINDS[str(measure["kind"])].is_run for measure in measures):
            return ARITHMETIC
        if self._why_given(row):
            return GIVEN
        if self.is_fitted_to(row):
            return FITTED
        return "predicted" if is_simulated(self.source.target) else "measured"

    def is_fitted_to(self, row: PublishedRow) -> bool:
        """Whether parameters were fitted to it, or it follows from such."""
        return bool({row.id, row.table} & self.fitted_to) and not self.is_held_out(row)

    def _why_given(self, row: PublishedRow) -> str:
        """Why no run could have it otherwise, or where else it stands; a conclusion is asked of other disks, too."""
        given = {} if row.is_conclusion else self.mapping.quantities.given
        return next((why for pattern, why in given.items() if fnmatchcase(row.id, pattern)), "")

    def is_held_out(self, row: PublishedRow) -> bool:
        """Whether the study keeps a figure from its fit."""
        fit = self.mapping.quantities.fit
        return fit is not None and any(fnmatchcase(row.id, pattern) for pattern in fit.held_out)


def _of_each(expression: Expression, known: Known) -> list[float]:
    """What an expression comes to, as each repeat adds to it."""
    try:
        return each_of(known.repeats(), expression.value)
    except KeyError:
        # Where it branches, some repeats may turn another way than all together, to names that nothing had asked for.
        for name in sorted(expression.names):
            known[name]
        return each_of(known.repeats(), expression.value)


def _printed_value(
    table: str, name: str, columns: TableColumns, keys: dict[str, str], line: Mapping[str, str]
) -> PublishedRow:
    """The row of one value of a printed table, before the run is asked for it; ``up_to`` makes the value a range."""
    column = columns.column[name]
    if column.up_to:
        printed = Published("", line[name], line.get(column.up_to, ""), column.unit)
    else:
        printed = Published(line[name], unit=column.unit)
    return PublishedRow(
        *(table, row_id(table, keys, name), column.value, printed, "compared"),
        table=table,
        note=column.note,
        of=_cell_in_words(table, keys, columns.key, name, column.unit),
    )


def _named(expression: Expression, measures: Measures) -> tuple[Mapping[str, object], ...]:
    """The measures that an expression names."""
    return tuple(measures[name] for name in sorted(expression.names & set(measures)))


def without_ids(text: str, said: Mapping[str, str]) -> str:
    """A text with what claims and conclusions say in place of the ids by which it names them.

    An id that could be a word of the text, with no hyphen in it, is none.

    Examples
    --------
    >>> without_ids("conclusion: as u00-read; write", {"u00-read": "three nodes", "write": "a claim"})
    'conclusion: as three nodes; write'
    """
    return re.sub(r"\w+(?:-\w+)+", lambda word: said.get(word[0], word[0]), text)


def _cell_in_words(table: str, keys: Mapping[str, str], key_columns: Mapping[str, str], column: str, unit: str) -> str:
    """A cell of a table: keys that are numbers with their names and units, the column without its unit.

    Examples
    --------
    >>> _cell_in_words("figure26", {"count": "100", "block": "65536"}, {"block": "block_bytes"}, "rate_mb_s", "MB/s")
    'figure 26, count 100, block 64 KiB: rate'
    """
    found = [
        f"{name.replace('_', ' ')} {_sized(text, key_columns.get(name, name))}" if number(text) is not None else text
        for name, text in keys.items()
    ]
    told = column.removesuffix("_" + unit.lower().replace("/", "_")).replace("_", " ")
    return f"{', '.join([table_in_words(table), *(text.replace('_', ' ') for text in found if text)])}: {told}"


def _sized(text: str, column: str) -> str:
    """A number with the unit that its column's name says.

    Examples
    --------
    >>> _sized("65536", "block_size_bytes_corrected"), _sized("16", "stripe_unit_kb"), _sized("8", "jobs")
    ('64 KiB', '16 KB', '8')
    """
    words = column.split("_")
    if "bytes" in words:
        return format_bytes(round(number(text) or 0))
    return next((f"{text} {word.upper()}" for word in words if word in ("kb", "mb", "gb")), text)


def table_in_words(table: str) -> str:
    """A table's name as people write it.

    Examples
    --------
    >>> table_in_words("figure26")
    'figure 26'
    """
    return re.sub(r"(?<=[a-z])(?=\d)", " ", table).replace("_", " ")


class NoReadingError(Exception):
    """The run does not have what a measure takes."""


class Known(dict[str, Operand]):
    """What stands behind the names of an expression; measures are read when they are asked for, each once."""

    def __init__(self, evaluation: Evaluation, measures: Measures, operands: Mapping[str, Operand]) -> None:
        super().__init__(operands)
        self.readings: dict[str, Reading] = {}
        self._operands, self._evaluation, self._measures = dict(operands), evaluation, measures

    def __missing__(self, name: str) -> float:
        if name not in self.readings:
            try:
                reading = read_measure(self._measures[name], self._evaluation.source)
            except NotThereError as error:
                raise NotThereError(f"measure.{name}: {error}") from None
            if reading is None:
                called = self._evaluation.mapping.quantities.called
                raise NoReadingError(", ".join(words_of(self._measures[name], called).values()))
            self.readings[name] = reading
        return self.readings[name].value

    def zeros(self, names: frozenset[str]) -> str:
        """Which of the figures that a divisor is made of are 0, in words."""
        found = sorted(name for name in names & self.readings.keys() if not self.readings[name].value)
        if not found:
            return "what it is divided by is 0"
        called = self._evaluation.mapping.quantities.called
        words = " and ".join(", ".join(words_of(self._measures[name], called).values()) for name in found)
        is_rate = any(unit_of(self._measures[name]) in _RATES for name in found)
        return f"no requests were served: {words} is 0" if is_rate else f"{words} is 0"

    def repeats(self) -> list[dict[str, Operand]]:
        """What stands behind the names in each repeat; empty where not every reading that varies has as many."""
        return [{**self._operands, **each} for each in repeats_of(self.readings)]


def _published(claim: Claim, mapped: ClaimQuantity) -> Published:
    """What was printed; a formula with its names given becomes the number it stands for."""
    unit, value = mapped.unit or claim.unit, claim.value
    if value and number(value) is None and mapped.published_with and mapped.value is not None:
        formula = read(value)
        if lacking := sorted(formula.names - set(mapped.published_with)):
            raise ValueError(f"there is no number for '{lacking[0]}'")
        value = f"{float(formula.value(mapped.published_with)):.4g}"
    return Published(value, claim.low, claim.high, unit)
