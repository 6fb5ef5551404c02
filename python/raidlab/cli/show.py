"""What ``raidlab results show`` prints: a run as a report, in the order of the page.

First the answer, then what a study published, plots, tables, and what the checks say.

Invariants:

- Every line fits 80 columns, and nothing is said by colour alone.
- Nothing is worked out here but wording and rounding.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from raidlab.analysis.checks import SEVERITY, Finding
from raidlab.analysis.checks.incomplete import ended_words
from raidlab.analysis.metrics import Analysis, Comparison, Point
from raidlab.analysis.metrics.relative_throughput import share_basis
from raidlab.cli.blocks import Blocks
from raidlab.cli.output import VERDICT_STYLE, print_bad_days, print_findings, print_tables, short
from raidlab.cli.terminal import console
from raidlab.published.compare import PublishedComparison
from raidlab.report.answer import PER_WORDS, Clause
from raidlab.report.cards import Card, cards_of
from raidlab.report.page import verdict_counts
from raidlab.report.published import Standing, both, concluded, standing_in
from raidlab.report.sections import target_title
from raidlab.wrapping import WIDTH, wrapped

_BAR, _CURVE = 18, 8
_MARKS = {"ahead": "+", "level": "=", "behind": "-"}
# Workloads have so many letters before a clause.
_WORK = 28


def print_report(analysis: Analysis, findings: list[Finding], published: PublishedComparison | None) -> None:
    """Print a run as a report, beside what its study published if that is given."""
    out = console()
    worst_first = sorted(findings, key=lambda finding: -SEVERITY[finding.verdict])
    _print_head(out, analysis)
    standing = standing_in(published, findings)
    conclusions = concluded(published, worst_first)
    if standing is not None:
        _print_published(out, standing)
    for one in conclusions:
        if standing is not None and published is not None and one.target == published.target:
            continue
        out.print(_wrapped(f"{target_title(analysis, one.target)}: {one.sentence}."))
    for card in cards_of(analysis, worst_first, has_published=standing is not None or bool(conclusions)):
        _print_card(out, card)
    print_bad_days(out, analysis)
    blocks = Blocks.of(sys.stdout.encoding)
    for target in dict.fromkeys(point.target for point in analysis.points):
        out.print(Text(f"\n{target_title(analysis, target)}", style="bold"))
        for line in _plots(analysis, target, blocks):
            out.print(line)
        out.print()
        print_tables(out, analysis, target)
    out.print(Text(f"\nChecks: {verdict_counts(findings)}", style="bold"))
    print_findings(out, worst_first)


def _print_head(out: Console, analysis: Analysis) -> None:
    facts = analysis.run.facts
    out.print(Text(analysis.run.study.title, style="bold"))
    quick = ", quick: for a first look" if facts["quick"] else ""
    out.print(Text(f"{analysis.run.study.name}, {facts['times']['started'][:10]}, seed {facts['seed']}{quick}", "dim"))
    if facts["status"] != "complete":
        out.print(Text(f"The {ended_words(facts['status'])}; what was measured until then is shown.", "bold"))


def _print_published(out: Console, standing: Standing) -> None:
    out.print(Text("\nBeside what the study published", style="bold"))
    out.print(_wrapped(f"{standing.headline} {standing.details}"))
    for row in standing.named:
        for line in wrapped(f"x {row.title}: {both(row)}", indent=2, hanging=4):
            out.print(Text(line))
    if standing.named and len(standing.misses) > len(standing.named):
        out.print(Text(f"  and {len(standing.misses) - len(standing.named)} more: raidlab study compare", style="dim"))


def _print_card(out: Console, card: Card) -> None:
    out.print(Text(f"\n{card.title}", style="bold"))
    out.print(_wrapped(card.headline))
    if card.clauses:
        out.print(_wrapped(f"{card.basis}{card.reference_note}:", style="dim"))
        for clause in card.clauses:
            for line in _clause_lines(clause):
                out.print(Text(line))
            one = card.margins.get(clause.workload)
            for line in wrapped(one.sentence, indent=6) if one is not None and one.sentence else ():
                out.print(Text(line, style="dim"))
    if card.others:
        out.print(_wrapped(card.others))
    for one in card.apart:
        if one.sentence:
            out.print(_wrapped(one.sentence, style="dim"))
    for line in (card.failures_borne, card.sureness):
        if line:
            out.print(_wrapped(line, style="dim"))
    for verdict in ("INVALID", "WARN", "UNKNOWN"):
        names = [finding.check for finding in card.care if finding.verdict == verdict]
        if names:
            out.print(_wrapped(f"{verdict} {', '.join(names)}", style=VERDICT_STYLE[verdict]))


def _clause_lines(clause: Clause) -> list[str]:
    """A mark, the workload, and what is said; what does not fit stands below, where it began."""
    figure = f": {clause.figure}" if clause.figure else ""
    said = wrapped(f"{clause.said}{figure}", width=WIDTH - _WORK - 5)
    head = f"  {_MARKS.get(clause.standing, ' ')} {_cut(clause.workload, _WORK):<{_WORK}} "
    return [f"{head if index == 0 else ' ' * len(head)}{line}" for index, line in enumerate(said)]


def _plots(analysis: Analysis, target: str, blocks: Blocks) -> Iterator[Text]:
    """Of the first table: bars of shares, and curves of throughput and of p90 over the sweep."""
    tables = analysis.run.study.compare
    comparisons = analysis.compared(target, tables[0].group) if tables else []
    if not comparisons:
        return
    compare = comparisons[0].compare
    names = min(14, max(len(row.array) for comparison in comparisons for row in comparison.rows))
    said = (
        f"Bars: % of {compare.reference}, {PER_WORDS[compare.per]}. Curves, from the lightest load of the sweep to the"
        f" heaviest: {_unit(compare.per)}; the 90th percentile of response time in ms (log)."
    )
    yield _wrapped(said, style="dim")
    for comparison in comparisons:
        yield from _plot(analysis, comparison, names, blocks)


def _plot(analysis: Analysis, comparison: Comparison, names: int, blocks: Blocks) -> Iterator[Text]:
    per = comparison.compare.per
    sweeps = {row.array: _sweep(analysis, comparison, row.array) for row in comparison.rows}
    rates = {array: [_rate(point, per) for point, _ in points] for array, points in sweeps.items()}
    times = {array: [time for _, time in points if time] for array, points in sweeps.items()}
    shares = [row.values["relative_throughput_percent"] or 0.0 for row in comparison.rows]
    most_rate = max((rate for each in rates.values() for rate in each), default=0.0)
    every_time = [time for each in times.values() for time in each]
    ends = (min(every_time), max(every_time)) if every_time else (1.0, 1.0)
    yield Text(comparison.workload, style="bold").append(f"  at {comparison.load}", style="not bold dim")
    for row, share in zip(comparison.rows, shares, strict=True):
        own, waits = rates[row.array], times[row.array]
        known = row.values["relative_throughput_percent"] is not None
        bar = blocks.bar(share / max(*shares, 1.0), _BAR) if known else " " * _BAR
        percent = f"{share:.0f}%" if known else "-"
        curve = blocks.curve(own[:_CURVE], most_rate)
        wait = blocks.log_curve(waits[:_CURVE], *ends)
        yield Text(
            f"  {_cut(row.array, names):<{names}} {bar} {percent:>5} {curve:<{_CURVE}} {_span(own):<11} "
            f"{wait:<{_CURVE}} {_span(waits)}".rstrip()
        )


def _sweep(analysis: Analysis, comparison: Comparison, array: str) -> list[tuple[Point, float | None]]:
    """The points of an array's sweep, the lightest load first, with their p90."""
    found = [
        (point, analysis.values[index]["response_time_ms_p90"])
        for index, point in enumerate(analysis.points)
        if (point.target, point.workload, point.array) == (comparison.target, comparison.workload, array)
        and point.is_swept
    ]
    return sorted(found, key=lambda one: one[0].level_value)


def _rate(point: Point, per: str) -> float:
    scale = 1e6 if per == "user_capacity" else 1e-6
    return point.per_s("all_bytes") / share_basis(point, per) * scale


def _unit(per: str) -> str:
    return {"disk": "MB/s a disk", "user_capacity": "MB/s a TB"}.get(per, "MB/s")


def _span(values: list[float]) -> str:
    return f"{short(values[0])}-{short(values[-1])}" if values else ""


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}~"


def _wrapped(text: str, style: str = "") -> Text:
    return Text("\n".join(wrapped(text)), style=style)
