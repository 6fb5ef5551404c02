"""What the command line prints of a comparison with published figures, and of the parameters behind it.

Invariant: nothing is worked out here but wording and rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from raidlab.cli.output import plain_table
from raidlab.cli.terminal import console
from raidlab.fit import FitResult
from raidlab.published.compare import Errors, PublishedComparison, PublishedRow, errors_of
from raidlab.study.parameters import Parameter

_STYLES = {"error": "bold red", "fails": "yellow", "within the noise": "yellow", "holds": "green"}
_QUIET = ("not evaluated",)


def print_comparison(comparison: PublishedComparison, *, all_rows: bool) -> None:
    """Print every figure, then the errors of each table, then parameters against data points."""
    out = console()
    by_table: dict[str, list[PublishedRow]] = {}
    for row in comparison.rows:
        if all_rows or row.verdict not in _QUIET:
            by_table.setdefault(row.table, []).append(row)
    for name, rows in by_table.items():
        out.print(Text(f"\n{name}", style="bold"))
        for row in rows:
            out.print(_line(row), soft_wrap=True)
    out.print(_errors("\nerrors, beyond half of the last printed digit", comparison.rows))
    out.print(Text(_counts(comparison)))


def _line(row: PublishedRow) -> Text:
    text = Text(f"  {row.id:<42} ")
    if row.verdict == "compared" and row.value is not None and row.error is not None:
        text.append(f"{row.published.text:>12} {row.published.unit[:14]:<14} {row.value:>9.4g} ")
        text.append(f"{row.error:>+7.2g} {row.error_unit}", style="yellow" if row.is_miss else "")
        return text.append(f"  {row.kind}", style="dim")
    if row.value is not None:
        return text.append(f"{'-':>12} {row.published.unit[:14]:<14} {row.value:>9.4g}").append(
            f"  {row.verdict}", style="dim"
        )
    text.append(row.verdict, style=_STYLES.get(row.verdict, "dim"))
    return text.append(f": {row.note}" if row.note else "", style="dim")


def _errors(title: str, rows: Sequence[PublishedRow]) -> Table:
    errors = errors_of(rows)
    has_left_out = any(one.left_out for one in errors)
    found = [
        [
            *(one.table, one.kind, str(one.count)),
            *(f"{one.median:.2g} {one.unit}", f"{one.largest:.3g} {one.unit}"),
            *((_left_out(one),) if has_left_out else ()),
            one.worst if one.largest else "",
        ]
        for one in errors
    ]
    headings = ("", "kind", "figures", "median", "largest", *(("without it",) if has_left_out else ()), "where")
    return plain_table(title, headings, found, right=("figures", "median", "largest"))


def _or_dash(value: float | None, form: str) -> str:
    """A number, or that there is none."""
    return "-" if value is None else format(value, form)


def _left_out(one: Errors) -> str:
    """What a table's figures would have been predicted as without it: median and largest error."""
    return "" if one.left_out is None else f"{one.left_out[0]:.2g}, {one.left_out[1]:.3g} {one.unit}"


def _counts(comparison: PublishedComparison) -> str:
    verdicts = [row.verdict for row in comparison.rows]
    parts = [f"{verdicts.count('compared')} figures compared"]
    parts += [
        f"{verdicts.count(word)} {word}"
        for word in ("holds", "fails", "within the noise", "no published value", "not evaluated")
    ]
    if comparison.errors:
        parts.append(f"{len(comparison.errors)} ERRORS in the mapping")
    fitted = f"{len(comparison.fitted)} fitted parameters against {comparison.data_points} data points"
    others = sum(parameter.status != "fitted" for parameter in comparison.parameters.values())
    return f"{'; '.join(parts)}\n{fitted}; {others} published or assumed\n"


def print_parameters(title: str, parameters: Mapping[str, Parameter]) -> None:
    """Print parameters with where each comes from."""
    rows = (
        (name, f"{one.value:.5g}", one.unit, one.status, ", ".join(one.to), one.why) for name, one in parameters.items()
    )
    headings = ("parameter", "value", "unit", "status", "to", "why")
    console().print(plain_table(title, headings, rows, right=("value",)))


def print_fit(found: FitResult) -> None:
    """Print what a fit found: parameters, the errors of what it was held to, and of what was left out."""
    out = console()
    values = ((name, f"{found.before[name]:.5g}", f"{value:.5g}") for name, value in found.values.items())
    out.print(plain_table("parameters", ("", "before", "found"), values, right=("before", "found")))
    out.print(_errors("\nerrors of the figures it was held to", found.rows))
    if found.left_out:
        rows = (
            (
                *(one.group, str(one.count), _or_dash(one.median, ".2g"), _or_dash(one.largest, ".3g")),
                ", ".join(one.unidentified) or "-",
            )
            for one in found.left_out
        )
        headings = ("", "figures", "median", "largest", "not identified by the rest")
        out.print(plain_table("\neach left out in turn, predicted from the rest", headings, rows))
        fitted = {row.id: row.value for row in found.rows}
        figures = (
            (row.id, f"{row.published.text} {row.published.unit}", f"{fitted[row.id]:.4g}", _or_dash(row.value, ".4g"))
            for one in found.left_out
            for row in one.rows
        )
        columns = ("", "published", "fitted", "without it")
        out.print(plain_table("\nevery figure as the rest predicts it", columns, figures, right=columns[1:]))
    out.print(Text(f"{len(found.values)} parameters against {len(found.rows)} data points; {found.trials} trials"))
