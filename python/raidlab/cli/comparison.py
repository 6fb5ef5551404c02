"""What the command line prints of a comparison with published figures, and of the parameters behind it.

Invariant: nothing is worked out here but wording and rounding.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from raidlab.cli.output import plain_table
from raidlab.cli.terminal import console
from raidlab.fit import Fitted
from raidlab.published.compare import Comparison, Errors, Row, errors_of
from raidlab.study.parameters import Parameter

_STYLES = {"error": "bold red", "fails": "yellow", "within the noise": "yellow", "holds": "green"}
_QUIET = ("not evaluated",)


def print_comparison(comparison: Comparison, *, all_rows: bool) -> None:
    """Print every figure, then the errors of each table, then parameters against data points."""
    out = console()
    by_table: dict[str, list[Row]] = {}
    for row in comparison.rows:
        if all_rows or row.verdict not in _QUIET:
            by_table.setdefault(row.table, []).append(row)
    for name, rows in by_table.items():
        out.print(Text(f"\n{name}", style="bold"))
        for row in rows:
            out.print(_line(row), soft_wrap=True)
    summary = plain_table("\nerrors, beyond half of the last printed digit")
    for heading in ("", "kind", "figures", "median", "largest", "where"):
        summary.add_column(heading, overflow="fold", justify="left" if heading in ("", "kind", "where") else "right")
    for errors in errors_of(comparison.rows):
        summary.add_row(*_errors(errors))
    out.print(summary)
    out.print(Text(_counts(comparison)))


def _line(row: Row) -> Text:
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


def _errors(errors: Errors) -> tuple[str, ...]:
    return (
        errors.table,
        errors.kind,
        str(errors.count),
        f"{errors.median:.2g} {errors.unit}",
        f"{errors.largest:.3g} {errors.unit}",
        errors.worst if errors.largest else "",
    )


def _counts(comparison: Comparison) -> str:
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
    table = plain_table(title)
    for heading in ("parameter", "value", "unit", "status", "to", "why"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "value" else "left")
    for name, one in parameters.items():
        table.add_row(name, f"{one.value:.5g}", one.unit, one.status, ", ".join(one.to), one.why)
    console().print(table)


def print_fit(found: Fitted) -> None:
    """Print what a fit found: parameters, the errors of what it was held to, and of what was left out."""
    out = console()
    table = plain_table("parameters")
    for heading in ("", "before", "found"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, value in found.values.items():
        table.add_row(name, f"{found.before[name]:.5g}", f"{value:.5g}")
    out.print(table)
    summary = plain_table("\nerrors of the figures it was held to")
    for heading in ("", "kind", "figures", "median", "largest", "where"):
        summary.add_column(heading, overflow="fold")
    for errors in errors_of(found.rows):
        summary.add_row(*_errors(errors))
    out.print(summary)
    if found.left_out:
        left = plain_table("\neach left out in turn, predicted from the rest")
        for heading in ("", "figures", "median", "largest", "not identified by the rest"):
            left.add_column(heading, overflow="fold")
        for one in found.left_out:
            unknown = ", ".join(one.unidentified) or "-"
            left.add_row(one.group, str(one.count), f"{one.median:.2g}", f"{one.largest:.3g}", unknown)
        out.print(left)
    out.print(Text(f"{len(found.values)} parameters against {len(found.rows)} data points; {found.trials} trials"))
