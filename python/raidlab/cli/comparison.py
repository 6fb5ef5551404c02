"""What the command line prints of a comparison with published figures, and of the parameters behind it.

Invariant: nothing is worked out here but wording and rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raidlab.cli.output import plain_table
from raidlab.cli.terminal import console
from raidlab.published.compare import Errors, PublishedComparison, PublishedRow, errors_of, held_words
from raidlab.published.compare.row import ARITHMETIC, GIVEN, NOT_EVALUATED
from raidlab.run.fit import FitResult
from raidlab.stats import NOTHING_SHOWN_PERCENT
from raidlab.study.parameters import Parameter
from raidlab.study.units import format_number
from raidlab.wrapping import wrapped

_STYLES = {"error": "bold red", "fails": "yellow", "within the noise": "yellow", "holds": "green"}
_REST = (("no published value", "without a published value"), (NOT_EVALUATED, NOT_EVALUATED))
_INDENT = 6


def print_comparison(comparison: PublishedComparison, *, all_rows: bool, details: bool) -> None:
    """Print the errors of each table, what misses and what was concluded; every row before them with ``all_rows``."""
    out = console()
    by_table: dict[str, list[PublishedRow]] = {}
    for row in comparison.published if all_rows else comparison.errors:
        by_table.setdefault(row.table, []).append(row)
    for name, rows in by_table.items():
        out.print(Text(f"\n{name}", style="bold"))
        for row in rows:
            for line in _lines(row, details=details):
                out.print(line)
    out.print(_errors("\nerrors, beyond what rounding explains (half of the last digit, 5 % at most)", comparison.rows))
    misses = [row for row in comparison.published if row.is_miss and row.is_counted and row.value is not None]
    if misses and not all_rows:
        headings = ("", "published", "here", "error", "kind")
        cells = (
            (
                *(row.title, f"{row.published.text} {row.published.unit}", f"{row.value:.4g}"),
                *(f"{row.error:+.3g} {row.error_unit}", row.kind),
            )
            for row in sorted(misses, key=lambda row: -abs(row.error or 0.0))
        )
        out.print(
            plain_table(
                "\nwhat misses (--all says why, where that is known)",
                headings,
                cells,
                right=("published", "here", "error"),
            )
        )
    _print_judged("what the study claims of its own hardware", [*comparison.published], out, details=details)
    print_conclusions(comparison, details=details)
    out.print(Text(_counts(comparison)))


def print_conclusions(comparison: PublishedComparison, *, details: bool = False) -> None:
    """Print what the study concludes, and what came out here, for each target of the run."""
    for target in dict.fromkeys(row.table for row in comparison.conclusions):
        rows = [row for row in comparison.conclusions if row.table == target]
        _print_judged(f"the study's {target}", rows, console(), details=details)


def _print_judged(title: str, rows: Sequence[PublishedRow], out: Console, *, details: bool) -> None:
    """Claims and conclusions that were tested: what the study says, and what came out here."""
    found = [row for row in rows if row.is_judged]
    if not found:
        return
    out.print(Text(f"\n{title}", style="bold"))
    run = [row for row in found if row.kind != ARITHMETIC]
    if run and all(row.is_single for row in run):
        said = f"One run, without intervals: what differs by less than {NOTHING_SHOWN_PERCENT:g} % is within the noise."
        out.print(Text("\n".join(wrapped(said)), style="dim"))
    for row in found:
        for line in _lines(row, details=details):
            out.print(line)


def _lines(row: PublishedRow, *, details: bool) -> Iterator[Text]:
    """A row in lines of at most 80 columns; its expression and what stands behind its names with ``details``."""
    printed = f"{row.published.text} {row.published.unit}".strip()
    if row.is_judged:
        # What it rests on, where that is more than a count of it.
        basis = f" ({row.kind})" if row.kind else ""
        yield from _wrapped(f"{row.verdict}{basis}: ", row.says or printed or row.title, style=_STYLES[row.verdict])
        said = [row.sentence, row.note, *([f"{row.id}: {row.details}"] if details else [])]
    elif row.value is not None:
        error = "" if row.error is None else f"  {row.error:+.3g} {row.error_unit}"
        beside = f", printed {printed}" if row.published.text else f" {row.published.unit}, not printed"
        said = [f"{row.value:.4g}{beside}{error}  {row.kind}"]
        # Why a figure misses, or does not count, is said with it.
        said += [row.note] if details or row.is_miss or row.kind == GIVEN else []
        yield from _wrapped(row.title, "", style="yellow" if row.is_miss else "")
    else:
        said = [row.note]
        # A mistake is for whoever writes the study, and by its id.
        name = row.id if row.verdict == "error" else row.title
        yield from _wrapped(f"{row.verdict}: ", name, style=_STYLES.get(row.verdict, "dim"))
    if details and not row.is_judged:
        said.append(row.id)
    for text in filter(None, said):
        for line in wrapped(text, indent=_INDENT):
            yield Text(line, style="dim")


def _wrapped(head: str, text: str, *, style: str) -> Iterator[Text]:
    for index, line in enumerate(wrapped(f"{head}{text}", indent=2, hanging=4)):
        cut = 2 + len(head) if index == 0 else 0
        yield Text("").append(line[:cut], style=style).append(line[cut:])


def _errors(title: str, rows: Sequence[PublishedRow]) -> Table:
    errors = errors_of(rows)
    has_left_out = any(one.left_out for one in errors)
    found = [
        [
            *(one.table, one.kind, str(one.count)),
            *(f"{one.median:.2g} {one.unit}", f"{format_number(one.largest)} {one.unit}"),
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
    return "" if one.left_out is None else f"{one.left_out[0]:.2g}, {format_number(one.left_out[1])} {one.unit}"


def _counts(comparison: PublishedComparison) -> str:
    rows = [row for row in comparison.rows if row.kind != GIVEN]
    verdicts = [row.verdict for row in rows]
    bounds = [row for row in rows if row.verdict == "compared" and row.published.is_bound]
    parts = [f"{verdicts.count('compared') - len(bounds)} figures compared"]
    if bounds:
        parts.append(f"{sum(not row.is_miss for row in bounds)} of {len(bounds)} printed bounds kept")
    if given := len(comparison.rows) - len(rows):
        parts.append(f"{given} given and not counted")
    parts += [f"{verdicts.count(word)} {said}" for word, said in _REST if word in verdicts]
    if comparison.errors:
        parts.append(f"{len(comparison.errors)} ERRORS in the mapping")
    others = sum(parameter.status != "fitted" for parameter in comparison.parameters.values())
    fitted = f"{len(comparison.fitted)} fitted parameters against {comparison.data_points} data points"
    # To hardware other than the study's own nothing printed was fitted.
    hardware = [f"{fitted}; {others} published or assumed."] if others or comparison.data_points else []
    held = f"{held_words(comparison.asked, f'conclusions and claims hold on {comparison.target}')}."
    lines = [*([held] if comparison.asked else []), f"{'; '.join(parts)}.", *hardware]
    return "\n".join("\n".join(wrapped(line)) for line in lines)


def print_parameters(hardware: str, parameters: Mapping[str, Parameter], *, all_rows: bool) -> None:
    """Print parameters with where each comes from; how many come from where unless ``all_rows``."""
    if not all_rows:
        known = Counter(parameter.status for parameter in parameters.values())
        told = ", ".join(f"{count} {status}" for status, count in known.items())
        for line in wrapped(f"parameters of {hardware}: {told} (--all lists them)", hanging=2):
            console().print(Text(line))
        return
    rows = (
        (name, f"{one.value:.5g}", one.unit, one.status, ", ".join(one.to), one.why) for name, one in parameters.items()
    )
    headings = ("parameter", "value", "unit", "status", "to", "why")
    console().print(plain_table(f"\nparameters of {hardware}", headings, rows, right=("value",)))


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
