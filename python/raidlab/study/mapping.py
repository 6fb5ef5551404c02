"""``quantities.toml`` and ``columns.toml`` of a study: which quantity of a run each published figure speaks of.

Invariants:

- Data only: nothing here evaluates anything. Expressions are read, and every name in one is a measure or a key.
- What a measure's kind makes of its keys is the business of that kind (`raidlab.published.quantities`).
- Unknown keys are errors, as in a study file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from raidlab.errors import InputError
from raidlab.study.expression import read
from raidlab.study.find import did_you_mean, nearest, study_names
from raidlab.study.places import Place
from raidlab.study.published import PublishedTable, number, read_claims, read_tables
from raidlab.study.table_file import Reporter, read_table
from raidlab.study.words import Engines, Line, Prose, Table

QUANTITIES, COLUMNS = "quantities.toml", "columns.toml"
# What stands for a key in a text of a measure, and how long that may become.
_NAMED = re.compile(r"\{([^{}]*)\}")
_LONGEST_FILLED = 1 << 16
# A measure's own keys are those of its kind.
Measure = dict[str, object]
Measures = dict[str, Measure]


class ClaimQuantity(Table):
    """What a claim speaks of; one of ``value``, ``holds``, ``not_evaluated``."""

    value: Line | None = None
    """An expression whose value is in the published unit."""
    holds: Line | None = None
    """An expression that is true or false."""
    not_evaluated: Prose | None = None
    """Why it is not."""
    published_with: dict[str, float] = {}
    """Numbers for the names in a published formula, such as N."""
    unit: Line | None = None
    """The unit, where it is not the published one."""
    of: Line = ""
    """What it is a figure of, in words, where the claim's topic and conditions do not tell."""
    note: Prose = ""
    """A remark for the reader."""
    why: Prose = ""
    """Why the model of the study's hardware misses it; told where it does."""


class Derived(Table):
    """A figure that the study did not publish and its question asks for; one of ``value``, ``holds``."""

    value: Line | None = None
    """An expression."""
    holds: Line | None = None
    """An expression that is true or false."""
    unit: Line = ""
    """The unit of the value."""
    printed: Line = ""
    """What the study prints instead, where this checks its arithmetic."""
    of: Line = ""
    """What it is a figure of, in words, where its name does not tell."""
    where: Line = ""
    """The figure or section it belongs to."""
    note: Prose = ""
    """A remark for the reader."""
    why: Prose = ""
    """Why the model of the study's hardware misses what is printed; told where it does."""


class Conclusion(Table):
    """A conclusion of the study that can be tested on any hardware: it holds, fails, or is within the noise."""

    says: Prose
    """The conclusion in a sentence."""
    holds: Line
    """Comparisons (``<``, ``>``, ``about``) joined by ``and``, ``or``, ``not``."""
    on: Engines | None = None
    """The targets it is asked of, such as ``["original"]``, where on others it could not fail; all when left out."""
    where: Line = ""
    """The figure or section it belongs to."""
    note: Prose = ""
    """A remark for the reader."""
    why: Prose = ""
    """Why it fails on the model of the study's hardware; told where it does."""


class Column(Table):
    """A column of values."""

    value: Line
    """An expression whose value is in the printed unit."""
    up_to: Line | None = None
    """The column with the upper end, where this one holds the lower end of a range."""
    unit: Line
    """The unit."""
    note: Prose = ""
    """A remark for the reader."""


class Order(Table):
    """A column whose text is an order of arrays: which expression says whether it holds, row by row."""

    by: Line
    """The key whose printed text tells rows apart."""
    holds: dict[str, Line] = {}
    """By that text, an expression that is true or false."""
    not_evaluated: dict[str, Prose] = {}
    """By that text, why it is not."""
    note: dict[str, Prose] = {}
    """By that text, a remark for the reader."""


class Skip(Table):
    """Rows that are not compared."""

    rows: Line
    """An expression over the keys; true leaves a row out."""
    why: Prose
    """The reason, which the report prints."""


class Miss(Table):
    """Rows that the model of the study's hardware misses."""

    rows: Line
    """An expression over the keys; true where the reason holds."""
    column: Line | None = None
    """Of which column; of all when left out."""
    file: Line = "*"
    """Of which of the table's files, such as ``figure22.csv``; of all when left out."""
    why: Prose
    """The reason, told of those that miss."""


class TableColumns(Table):
    """Which columns of a printed table are keys, and which are values."""

    file: Line
    """A file name in ``published``, or a pattern such as ``figure1?.csv``."""
    key: dict[str, Line] = {}
    """A name for each column that tells rows apart."""
    skip: list[Skip] = []
    """Rows left out."""
    miss: list[Miss] = []
    """Why rows miss."""
    measure: Measures = {}
    """Measures of its own; ``{file}`` and ``{key}`` in their texts are replaced row by row."""
    column: dict[str, Column] = {}
    """The columns of values."""
    order: dict[str, Order] = {}
    """The columns of orders; a row that is in neither of an order's tables is an error in the report."""
    word: dict[str, dict[str, Line]] = {}
    """Further texts for measures: by the printed text of the key ``from``, or by the name of the table where that is
    ``file``, the word that the study uses."""
    not_evaluated: Prose | None = None
    """Why a table without columns of values is not compared."""

    def words(self, keys: dict[str, str]) -> dict[str, str]:
        """The study's words for the keys of a row; a key without a word of its own stays as printed."""
        found = {}
        for name, words in self.word.items():
            printed = keys.get(words.get("from", ""), "")
            found[name] = words.get(printed, printed)
        return found

    def keys_of(self, line: dict[str, str]) -> dict[str, str]:
        """The keys of a row, as printed."""
        return {name: line.get(column, "") for name, column in self.key.items()}

    def measures_of(self, table: str, keys: dict[str, str], common: Measures) -> Measures:
        """The measures for a row, its keys put into their texts."""
        texts = {**keys, **self.words({**keys, "file": table}), "file": table}
        return {name: filled(measure, texts) for name, measure in {**common, **self.measure}.items()}

    def skipped(self, keys: dict[str, str]) -> str | None:
        """Why a row is left out; None for one that is not."""
        return next((skip.why for skip in self.skip if self._picks("skip", skip.rows, keys)), None)

    def why_missed(self, file: str, keys: dict[str, str], column: str) -> str:
        """Why the model misses a value of a row, where the study says it."""
        mine = (miss for miss in self.miss if miss.column in (None, column) and fnmatchcase(file, miss.file))
        return "; ".join(miss.why for miss in mine if self._picks("miss", miss.rows, keys))

    def _picks(self, key: str, rows: str, keys: dict[str, str]) -> bool:
        """Whether an expression over the keys picks a row."""
        try:
            return bool(read(rows).value(operands_of(keys)))
        except ValueError as error:
            message = f"cannot be asked of the row {', '.join(keys.values())}: {error}"
            raise InputError.one(f"{COLUMNS}: table '{self.file}', {key}.rows", message) from None

    def needed(self, table: PublishedTable, common: Measures) -> list[Measure]:
        """Every measure that the rows of a table need."""
        texts = [column.value for column in self.column.values()]
        texts += [text for order in self.order.values() for text in order.holds.values()]
        names = {name for text in texts for name in read(text).names}
        found = []
        for line in table.rows:
            keys = self.keys_of(line)
            if self.skipped(keys) is None:
                measures = self.measures_of(table.name, keys, common)
                found += [measures[name] for name in sorted(names & set(measures))]
        return found


def filled(measure: Measure, texts: dict[str, str]) -> Measure:
    """A measure with words in the place of ``{name}`` in its texts."""
    return {key: _filled(item, texts) for key, item in measure.items()}


def _filled(value: object, texts: dict[str, str]) -> object:
    """Each name once: what a word brings is not filled again, or a few lines would fill the memory."""
    if isinstance(value, str):
        most = len(value) + value.count("{") * max(map(len, texts.values()), default=0)
        if most > _LONGEST_FILLED:
            message = f"has a text of a measure that is too long with its keys put in: up to {most:,} characters"
            raise InputError.one(COLUMNS, message, value=f"'{value}'", accepted=f"up to {_LONGEST_FILLED:,}")
        return _NAMED.sub(lambda found: texts.get(found[1], found[0]), value)
    return filled(value, texts) if isinstance(value, dict) else value


def operands_of(keys: dict[str, str]) -> dict[str, float | str]:
    """Keys as an expression takes them: numbers where they are."""
    return {name: text if (found := number(text)) is None else found for name, text in keys.items()}


class Fit(Table):
    """What ``raidlab study fit`` moves, and what it holds that to."""

    parameters: dict[str, Annotated[list[float], Field(min_length=2, max_length=2)]]
    """The parameters of the hardware, or ``device.key`` of its device file, each with its bounds."""
    to: list[Line]
    """Ids of claims, names of tables."""
    follows: list[Line] = []
    """Ids of claims and of rows, names of tables, that a choice was made for: not fitted to, yet no predictions."""
    held_out: list[Line] = []
    """Ids of figures that the fit has never seen, though their tables are listed; ``*`` stands for any text."""
    leave_out: Literal["table", "row", "claim"] = "claim"
    """What is left out in turn, to see how well the rest predicts it."""
    quick: bool = True
    """Whether each trial runs with the quick budget."""
    quick_depths: bool = False
    """Whether of sweeps only the depths of ``--quick`` are run."""
    note: Prose = ""
    """A remark for the reader."""


class Quantities(Table):
    """``quantities.toml``."""

    target: Literal["original", "sim"] = "original"
    """Where the study is run for the comparison."""
    measure: Measures = {}
    """Numbers taken from a run, by name."""
    called: dict[str, Line] = {}
    """What arrays are called in sentences, where their names in the study do not tell."""
    reckoned: dict[str, Line] = {}
    """What sentences call what is reckoned of several measures, by its formula as it stands; a name in it that is no
    measure stands for all that are called so as far as their last ``_``."""
    claim: dict[str, ClaimQuantity] = {}
    """What each claim speaks of, by its id."""
    derived: dict[str, Derived] = {}
    """Further figures to be worked out, by names of their own."""
    conclusion: dict[str, Conclusion] = {}
    """What is tested on every target of a run, by names of their own."""
    given: dict[Line, Prose] = {}
    """What is shown and not counted, by its id (``*`` stands for any text), and why: an input of the model, true by
    definition, or what another row says."""
    fit: Fit | None = None
    """The fit of the hardware's parameters."""


class Columns(Table):
    """``columns.toml``."""

    table: list[TableColumns] = []
    """The printed tables."""


@dataclass(frozen=True)
class Mapping:
    """Both files of a study."""

    quantities: Quantities
    columns: Columns
    folder: Path
    """The study's own folder; ``published`` lies in it."""

    @property
    def published(self) -> Path:
        """The folder with what the study printed."""
        return self.folder / "published"


def ids_of(mapping: Mapping) -> list[str]:
    """The ids of every figure that a study printed: of claims, and of the columns of values of its tables."""
    ids = [claim.id for claim in read_claims(mapping.published)]
    for columns in mapping.columns.table:
        for table in read_tables(mapping.published, columns.file):
            for line in table.rows:
                ids += [row_id(table.name, columns.keys_of(line), name) for name in columns.column if name in line]
    return ids


def row_id(table: str, keys: dict[str, str], column: str) -> str:
    """What a figure of a table is called: table, keys and column."""
    return f"{table}:{','.join(text for text in keys.values() if text)}:{column}"


def order_id(table: str, text: str) -> str:
    """What a printed order is called: table, and the text of its key."""
    return f"{table}:{text}"


def has_mapping(study_file: Path) -> bool:
    """Whether a study says what its published figures speak of."""
    return (study_file.parent / QUANTITIES).is_file()


def load_mapping(study_file: Path) -> Mapping:
    """Read both files beside a study file."""
    folder = study_file.parent
    if not has_mapping(study_file):
        message = f"published nothing to compare with: there is no {QUANTITIES} beside it"
        published = [name for name, file in study_names().items() if has_mapping(file)]
        accepted = f"a study with published figures: {', '.join(published)}"
        raise InputError.one("study", message, value=f"'{study_file}'", accepted=accepted)
    quantities, reporter = read_table(folder / QUANTITIES, Quantities)
    arrays = (measure.get(key) for measure in quantities.measure.values() for key in ("array", "reference"))
    # Of what is no name the measure's kind tells.
    measured = {name for name in arrays if isinstance(name, str)}
    for name in quantities.called:
        if name not in measured:
            reporter.add(("called", name), "is no array of any measure")
    stems = {name.rpartition("_")[0] or name for name in quantities.measure} | set(quantities.measure)
    for formula in quantities.reckoned:
        check_expression(("reckoned", formula), formula, stems, reporter, unknown="is the beginning of no measure")
    for name, claim in quantities.claim.items():
        said = [key for key in ("value", "holds", "not_evaluated") if getattr(claim, key) is not None]
        if len(said) != 1:
            reporter.add(("claim", name), f"says {len(said)} of value, holds, not_evaluated", accepted="exactly one")
        _check_expressions(("claim", name), claim, quantities.measure, reporter)
    for name, derived in quantities.derived.items():
        if (derived.value is None) == (derived.holds is None):
            reporter.add(("derived", name), "needs an expression", accepted="either value or holds")
        _check_expressions(("derived", name), derived, quantities.measure, reporter)
    for name, conclusion in quantities.conclusion.items():
        place = ("conclusion", name, "holds")
        check_expression(place, conclusion.holds, quantities.measure, reporter, holds=True, measured=True)
        _check_depends(place, conclusion.holds, reporter)
    reporter.complain()
    found = Mapping(quantities, _load_columns(folder, quantities.measure), folder)
    _check_given(found, reporter)
    reporter.complain()
    return found


def _load_columns(folder: Path, measures: Measures) -> Columns:
    if not (folder / COLUMNS).is_file():
        return Columns()
    columns, reporter = read_table(folder / COLUMNS, Columns)
    for index, table in enumerate(columns.table):
        _check_table(index, table, measures, reporter)
        files = [f"{one.name}.csv" for one in read_tables(folder / "published", table.file)]
        if not files:
            reporter.add(
                ("table", index, "file"), "is no table in published/", table.file, "a file's name, or a pattern"
            )
        for line, miss in enumerate(table.miss):
            if not any(fnmatchcase(file, miss.file) for file in files):
                reporter.add(("table", index, "miss", line, "file"), "is no file of this table", miss.file, table.file)
    reporter.complain()
    return columns


def _check_given(mapping: Mapping, reporter: Reporter) -> None:
    """Refuse a name of what is given that no figure has: it would be counted after all."""
    # A claim that is a conclusion, too, is asked of other disks, where it may come out otherwise.
    claims_and_rows = set(ids_of(mapping)) - set(mapping.quantities.conclusion)
    known = sorted(claims_and_rows | set(_order_ids(mapping)) | set(mapping.quantities.derived))
    for pattern in mapping.quantities.given:
        if not any(fnmatchcase(name, pattern) for name in known):
            message = f"names no figure{did_you_mean(pattern, known)}"
            reporter.add(("given", pattern), message, pattern, nearest(pattern, known))


def _order_ids(mapping: Mapping) -> Iterator[str]:
    for columns in mapping.columns.table:
        for table in read_tables(mapping.published, columns.file):
            for order in columns.order.values():
                yield from (order_id(table.name, columns.keys_of(line)[order.by]) for line in table.rows)


def _check_expressions(place: Place, of: ClaimQuantity | Derived, measures: Measures, reporter: Reporter) -> None:
    for key in ("value", "holds"):
        if (text := getattr(of, key)) is not None:
            check_expression((*place, key), text, measures, reporter, holds=key == "holds")


def _check_depends(place: Place, text: str, reporter: Reporter) -> None:
    """Refuse a conclusion that no run could make fail."""
    try:
        names = read(text).names
    except ValueError:
        return
    if not names:
        reporter.add(place, "speaks of no measure", text, "a comparison of measures")


def _check_table(index: int, table: TableColumns, measures: Measures, reporter: Reporter) -> None:
    place = ("table", index)
    known = {*measures, *table.measure}
    for name, column in table.column.items():
        check_expression((*place, "column", name, "value"), column.value, known, reporter, keys=table.key)
    for name, order in table.order.items():
        if order.by not in table.key:
            reporter.add((*place, "order", name, "by"), "is no key", order.by, ", ".join(table.key))
        for text, expression in order.holds.items():
            check_expression(
                (*place, "order", name, "holds", text), expression, known, reporter, keys=table.key, holds=True
            )
    for line, skip in enumerate(table.skip):
        check_expression((*place, "skip", line, "rows"), skip.rows, (), reporter, keys=table.key, holds=None)
    for line, miss in enumerate(table.miss):
        check_expression((*place, "miss", line, "rows"), miss.rows, (), reporter, keys=table.key, holds=None)
        if miss.column is not None and miss.column not in table.column:
            reporter.add(
                (*place, "miss", line, "column"), "is no column of values", miss.column, ", ".join(table.column)
            )


def check_expression(
    place: Place,
    text: str,
    numbers: Iterable[str],
    reporter: Reporter,
    *,
    keys: Iterable[str] = (),
    holds: bool | None = False,
    measured: bool = False,
    unknown: str = "is neither a measure nor a key",
) -> None:
    """Note what is wrong with an expression over ``numbers`` and, if they may be texts, ``keys``.

    It is a number, or with ``holds`` comparisons that may be undecided, with None anything. What is ``measured`` is not
    asked whether it is equal.
    """
    numbers = set(numbers)
    known = numbers | set(keys)
    try:
        expression = read(text)
        for name in sorted(expression.names - known):
            reporter.add(place, f"{unknown}{did_you_mean(name, known)}", name, nearest(name, known))
        kind = expression.kind(numbers)
        if holds:
            expression.check_decidable(measured=measured)
    except ValueError as error:
        reporter.add(place, str(error))
        return
    if holds is False and kind == "truth":
        reporter.add(place, "is true or false", text, "an expression with a number as its value")
