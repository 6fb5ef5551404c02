"""What the command line prints: tables of a run, and studies.

Invariants:

- Everything here goes to standard output and reads well at 80 columns.
- Nothing is worked out here but wording and rounding.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raidlab.analysis.bad_days import bad_days
from raidlab.analysis.checks import PASS, Finding
from raidlab.analysis.margins import BestMargins
from raidlab.analysis.metrics import Analysis, ComparedArray, Comparison, Point
from raidlab.cli.terminal import console
from raidlab.report.answer import PER_WORDS, TableAnswer, answers, margins_of_run
from raidlab.report.bad_days import notes, rows_of
from raidlab.report.costs import cost_sentence, costs_of
from raidlab.report.prediction import SAID, ratio_of, shown_predictions
from raidlab.report.sections import failures_words, space_words, stream_rows, target_title
from raidlab.results.volumes import volume_words
from raidlab.study import LoadedStudy, expand, study_names
from raidlab.study.check import engine_of
from raidlab.study.units import format_number, format_time_ns
from raidlab.study.words import ENGINES
from raidlab.study.workload import CopyStream, Load, Workload
from raidlab.wrapping import wrapped

_WIDTH = 80
_PERCENTILES = (50, 90, 99)
# So wide is the column beside the reference.
_VERSUS = 9
# Longer lists of arrays and workloads are counted where not all is asked for.
_FEW, _FEW_VALUES = 12, 4
# Longer tables are told array by array; the report has them all.
_MOST_ROWS = 60
# What is told also where it is as it should be: that files came from where they are said to, how accurate the meter is.
_ALWAYS_TOLD = ("page_cache", "read_again", "zone_spread", "second_tool")
VERDICT_STYLE = {"PASS": "green", "UNKNOWN": "dim", "WARN": "yellow", "INVALID": "bold red"}


def print_run(analysis: Analysis, findings: list[Finding]) -> None:
    """Print the tables of a run: the first group in full, the others as shares; then checks and the answer."""
    out, costs = console(), costs_of(analysis)
    for target in dict.fromkeys(point.target for point in analysis.points):
        out.print(Text(f"\n{target_title(analysis, target)}", style="bold"))
        print_tables(out, analysis, target)
        if target == "live":
            print_standing(out, analysis)
        if costs is not None and (cost := cost_sentence(costs, target)):
            out.print(Text("\n".join(wrapped(cost)), style="dim"))
    print_findings(out, findings)
    print_predictions(out, analysis, findings)
    print_bad_days(out, analysis)
    if analysis.run.study.compare:
        margins = margins_of_run(analysis, findings)
        for answer in answers(analysis, findings):
            said = f"{answer.caution} {answer.sentence}".strip()
            out.print(Text(f"\n{answer.title}: ", style="bold").append(Text(said, style="not bold")))
            _print_margins(out, answer, [one for one in margins if one.target == answer.target])


def print_bad_days(out: Console, analysis: Analysis) -> None:
    """Print what the day was like of every array that scrubbed, had a slow member, lost one or had one rebuilt."""
    rows = rows_of(analysis)
    for row in rows:
        for line in wrapped(f"{row.array}, {row.workload}, {row.level}: {row.sentence}", hanging=2):
            out.print(Text(line))
    for note in notes(rows) if rows else ():
        out.print(Text("\n".join(wrapped(note)), style="dim"))


def _print_margins(out: Console, answer: TableAnswer, margins: list[BestMargins]) -> None:
    """What would change each best of an answer: the nearest margins."""
    is_of_many = len(answer.clauses) > 1 or bool(answer.others)
    for one in margins:
        work = f"{one.workload}: " if is_of_many else ""
        for line in wrapped(f"{work}{one.sentence}", indent=2, hanging=4) if one.sentence else ():
            out.print(Text(line))


def print_standing(out: Console, analysis: Analysis) -> None:
    """Print what the arrays are that stand already: not raidlab's."""
    for name, array in analysis.run.standing.items():
        out.print(Text(f"{name}: not raidlab's, {volume_words(array, analysis.run.live_members(name))}"))


def print_predictions(out: Console, analysis: Analysis, findings: list[Finding]) -> None:
    """Print every array that has a twin beside it: load by load, the verdict, and what may be behind it."""
    for one in shown_predictions(analysis, findings):
        rows = (
            (
                *(load.workload, load.level.replace("queue depth", "depth"), load.unit),
                *(short(load.measured), short(load.predicted), ratio_of(load), SAID[load.verdict]),
            )
            for load in one.prediction.loads
        )
        headings = ("workload", "load", "unit", "measured", "predicted", "share", "verdict")
        out.print(Text(f"\n{one.title}", style="bold"))
        out.print(plain_table("", headings, rows, right=headings[3:6]))
        out.print(Text("\n".join(wrapped(one.basis)), style="dim"))
        for cause in one.prediction.causes:
            text = f"{cause.direction.upper()}, {cause.kind}: {cause.evidence} {cause.remedy}".strip()
            out.print("\n".join(wrapped(text)), markup=False, highlight=False)
        if one.unexplained:
            out.print("\n".join(wrapped(one.unexplained)), markup=False, highlight=False)
        out.print(Text("\n".join(wrapped(one.headline)), style="bold"))


def print_tables(out: Console, analysis: Analysis, target: str) -> None:
    """Print the tables of a target: the first group in full, the others as shares; points where none is compared."""
    for position, compare in enumerate(analysis.run.study.compare):
        mine = analysis.compared(target, compare.group)
        if mine:
            out.print(_full(mine) if position == 0 else _shares(mine))
    if not analysis.run.study.compare and any(not _is_of_streams(analysis, point) for point in analysis.points):
        out.print(_points(analysis, target))
    if not analysis.run.streams.is_empty():
        out.print(_streams(analysis, target))


def print_findings(out: Console, findings: list[Finding]) -> None:
    """Print what the checks say, with what to do about it; those that pass in one line."""
    for finding in findings:
        if finding.verdict != PASS or finding.check in _ALWAYS_TOLD:
            text = Text(f"{finding.verdict} {finding.check} ({finding.target}): ", style=VERDICT_STYLE[finding.verdict])
            out.print(text.append(Text(f"{finding.evidence} {finding.remedy}", style="default")))
    worse = {finding.check for finding in findings if finding.verdict != PASS}
    passed = [
        f"{finding.check} ({finding.target})" if finding.check in worse else finding.check
        for finding in findings
        if finding.verdict == PASS
    ]
    if passed:
        out.print(Text(f"PASS {', '.join(dict.fromkeys(passed))}", style=VERDICT_STYLE[PASS]))


def print_json(analysis: Analysis, findings: list[Finding]) -> None:
    """Print a run as JSON: its folder, its points with all metrics, its response-time targets, bad days and checks."""
    document = {
        "run": str(analysis.run.folder),
        "status": analysis.run.facts["status"],
        "seed": analysis.run.facts["seed"],
        "points": analysis.table.to_dicts(),
        "holds": analysis.run.holds.to_dicts(),
        "bad_days": [day.row() for day in bad_days(analysis)],
        "checks": [finding.row() for finding in findings],
    }
    print(json.dumps(document, indent=2))


def _full(comparisons: list[Comparison]) -> Text:
    """One table for all workloads of a group: a line with the workload's name, then a line an array."""
    compare = comparisons[0].compare
    held = next((row.held for comparison in comparisons for row in comparison.rows if row.held is not None), None)
    names = max(len(row.array) for comparison in comparisons for row in comparison.rows)
    unit = _time_unit([row.values for comparison in comparisons for row in comparison.rows])
    # A name that is too long for its column is another's in front of it: then it stands below.
    versus, against = f"vs {compare.reference}", ""
    if len(versus) > _VERSUS:
        versus, against = "vs ref.", f"against {compare.reference}, "
    columns = [
        *(("dsk", 3), ("MB/s", 6), ("IOPS", 6)),
        *((f"p{percentile} {unit[0]}", 6) for percentile in _PERCENTILES),
        (f"IO/s=p{held.percentile:g}" if held else "MB/s/dsk", 8),
        (versus, _VERSUS),
        *([(f"=p{held.percentile:g}", 6)] if held else []),
    ]
    first = min(names + 2, _WIDTH - sum(width for _, width in columns) - len(columns))
    heading = f"{'':<{first}}" + "".join(f" {title[:width]:>{width}}" for title, width in columns)
    text = Text(f"{compare.title}\n").append(f"{heading}\n", style="dim")
    for comparison in comparisons:
        text.append(f"{comparison.workload}", style="bold").append(f"  at {comparison.load}\n", style="dim")
        for row in comparison.rows:
            cells = zip(_cells(row, unit, held is not None), columns, strict=True)
            name, style = f"  {row.array}", "dim" if row.array == compare.reference else ""
            if len(name) > first:
                # What is too long for its column has a line of its own.
                text.append(f"{name}\n", style=style)
                name = ""
            line = f"{name:<{first}}" + "".join(f" {cell:>{width}}" for cell, (_, width) in cells)
            text.append(f"{line}\n", style=style)
    text.append(f"'{versus}' is {against}{PER_WORDS[compare.per]}", style="dim")
    if held is not None:
        at = f"p{held.percentile:g}"
        text.append(f"; '={at}': the same where all keep one {at}", style="dim")
    space = space_words(comparisons) if compare.equal == "members" else ""
    borne = failures_words(row.point for comparison in comparisons for row in comparison.rows)
    for said in (space and f"user capacity in members: {space}", borne):
        for line in wrapped(said) if said else ():
            text.append(f"\n{line}", style="dim")
    return text.append("\n")


def _time_unit(points: list[dict[str, float | None]]) -> tuple[str, float]:
    """The unit in which a table's response times are readable, and how many of it a millisecond has."""
    known = [time for values in points if (time := values["response_time_ms_p99"]) is not None]
    return ("us", 1000.0) if known and max(known) < 1 else ("ms", 1.0)


def _times(values: dict[str, float | None], unit: tuple[str, float]) -> list[str]:
    found = [values[f"response_time_ms_p{percentile}"] for percentile in _PERCENTILES]
    return [short(None if time is None else time * unit[1]) for time in found]


def _cells(row: ComparedArray, unit: tuple[str, float], with_held: bool) -> list[str]:
    values = row.values
    cells = [
        str(row.point.disks),
        short(values["throughput_mb_s"]),
        short(values["iops"]),
        *_times(values, unit),
    ]
    share = percent(values["relative_throughput_percent"])
    if not with_held:
        return [*cells, short(values["throughput_per_disk_mb_s"]), share]
    if row.held is None:
        return [*cells, "-", share, "-"]
    more = ">" if row.held.is_lower_bound else ""
    known = more if row.held.relative_percent is not None else ""
    return [*cells, more + short(row.held.iops), share, known + percent(row.held.relative_percent)]


def _shares(comparisons: list[Comparison]) -> Table:
    """Only the shares of the reference: a row a workload, a column an array."""
    compare = comparisons[0].compare
    unequal = ", unequal user capacity" if compare.equal == "members" else ""
    arrays = [row.array for row in comparisons[0].rows]
    rows = (
        (comparison.workload, *(percent(row.values["relative_throughput_percent"]) for row in comparison.rows))
        for comparison in comparisons
    )
    title = f"{compare.title}{unequal}: % of {compare.reference}, {PER_WORDS[compare.per]}"
    table = plain_table(title, ["", *arrays], rows, right=arrays)
    table.columns[0].min_width = 20
    return table


def _points(analysis: Analysis, target: str) -> Table:
    """All points of a target, for a study that compares nothing."""
    mine = [(point, analysis.values[index]) for index, point in enumerate(analysis.points) if point.target == target]
    unit = _time_unit([values for _, values in mine])
    figures = ("MB/s", "IOPS", *(f"p{percentile} {unit[0]}" for percentile in _PERCENTILES))
    told = [(point, values) for point, values in mine if point.is_swept and not _is_of_streams(analysis, point)]
    if len(told) > _MOST_ROWS:
        return _by_array([(point.array, values["throughput_mb_s"]) for point, values in told], "points")
    rows = (
        (
            *(point.array, point.workload, point.short_level),
            *(short(values[kind]) for kind in ("throughput_mb_s", "iops")),
            *_times(values, unit),
        )
        for point, values in told
    )
    return plain_table("", ("array", "workload", "load", *figures), rows, right=figures)


def _by_array(rates: list[tuple[str, float | None]], things: str) -> Table:
    """What is too much to be listed: for each array how many, and their least and greatest rate."""
    title = f"{len(rates)} {things}, all of them in the report"
    of_each: dict[str, list[float | None]] = {}
    for array, rate in rates:
        of_each.setdefault(array, []).append(rate)
    rows = []
    for array, found in of_each.items():
        known = [rate for rate in found if rate is not None]
        rows.append((array, str(len(found)), *(short(end(known, default=None)) for end in (min, max))))
    figures = (things, "least MB/s", "most MB/s")
    return plain_table(title, ("array", *figures), rows, right=figures)


def _is_of_streams(analysis: Analysis, point: Point) -> bool:
    """Whether its figures are those of streams, which have a table of their own."""
    return any(work.name == point.workload and work.streams is not None for work in analysis.run.study.workload)


def _streams(analysis: Analysis, target: str) -> Table:
    """Every stream of a target, by `stream_rows`."""
    told = stream_rows(analysis, target)
    if len(told) > _MOST_ROWS:
        return _by_array([(row.array, row.mb_s) for row in told], "streams")
    rows = (
        (
            *(row.array, row.workload, row.stream, str(row.each), short(row.mb_s)),
            *("" if row.tape_stops is None else f"{row.tape_stops:.3g}", row.bound_by),
        )
        for row in told
    )
    figures = ("each", "MB/s", "tape stops", "bound by")
    return plain_table("streams", ("array", "workload", "stream", *figures), rows, right=figures)


def plain_table(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[str] = ()
) -> Table:
    """A table without a frame; the columns of the headings in ``right`` are set to the right."""
    from rich import box

    table = Table(title=title or None, title_justify="left", title_style="", box=box.SIMPLE_HEAD)
    table.padding, table.pad_edge, table.show_edge = (0, 1, 0, 0), False, False
    for heading in headings:
        table.add_column(heading, overflow="fold", justify="right" if heading in right else "left")
    for row in rows:
        table.add_row(*row)
    return table


def short(value: float | None) -> str:
    """A figure of about three significant digits in at most five places."""
    if value is None:
        return "-"
    if value >= 10_000:
        return f"{value / 1000:.0f}k" if value < 10_000_000 else f"{value / 1e6:.0f}M"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def short_bytes(count: int) -> str:
    """A size in decimal units, as disks are sold."""
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{format_number(value)} {unit}"


def percent(value: float | None) -> str:
    """A share; one decimal where it is small."""
    return "-" if value is None else f"{value:.0f}%" if value >= 10 else f"{value:.1f}%"


def print_studies() -> None:
    """Print the studies that can be run by name, with their titles."""
    from raidlab.reading import read_text, toml

    out = console()
    found = study_names()
    width = max([14, *(len(name) + 2 for name in found)])
    for name, file in found.items():
        try:
            title = str(toml(read_text(file)).get("title", ""))
        except (OSError, ValueError) as error:
            title = f"cannot be read: {error}"
        for index, line in enumerate(wrapped(f"{name:<{width}}{title}", hanging=width)):
            cut = width if index == 0 else 0
            out.print(Text(line[:cut], style="bold").append(Text(line[cut:], style="not bold")))


def streams_words(streams: list[CopyStream]) -> str:
    """The ends of streams, in a line."""
    return ", ".join(f"{stream.source} to {stream.sink}" for stream in streams)


def _print_load(load: Load, of: str) -> None:
    """The depths or rates of a study or of one of its workloads, and the response time that is held."""
    out = console()
    offered = "depths " + str(load.depths) if load.open is None else "rates/s " + str(load.open.rates_per_s)
    out.print(f"load{of}: {offered}")
    if load.hold is not None:
        target = load.hold.target
        at = format_time_ns(target) if isinstance(target, int) else f"{target.times_idle:g} x idle {target.of}"
        out.print(f"hold{of}: p{load.hold.percentile:g} at {at}")


def _workload_row(workload: Workload, *, all_rows: bool) -> tuple[str, str, str, str]:
    if workload.trace is not None:
        return workload.name, workload.trace.only, "of the trace", workload.trace.file
    size = workload.size
    shown = ", ".join(f"{key} {_listed(value, all_rows=all_rows)}" for key, value in size if key != "kind")
    place = workload.address.kind if workload.streams is None else streams_words(workload.streams)
    return workload.name, f"{workload.read:.0%}", f"{size.kind}: {shown}", place


def _listed(value: object, *, all_rows: bool) -> str:
    """A value of a study; a long list by its least and largest."""
    if not isinstance(value, list) or all_rows or len(value) <= _FEW_VALUES:
        return str(value)
    return f"{len(value)} from {min(value)} to {max(value)}"


def print_study(loaded: LoadedStudy, *, all_rows: bool) -> None:
    """Print what a study asks: targets, cells, loads, arrays, workloads; long tables as a line unless ``all_rows``."""
    study, out = loaded.study, console()
    out.print(Text(f"{study.name}: {study.title}", style="bold"))
    if study.description:
        out.print("\n".join(wrapped(study.description.strip())))
    _print_cells(loaded)
    _print_load(study.load, "")
    own = [workload for workload in study.workload if workload.load is not None]
    if all_rows or len(study.workload) <= _FEW:
        for workload in own:
            _print_load(workload.load or study.load, f" of {workload.name}")
    elif own:
        out.print(f"{len(own)} workloads have loads of their own")
    if all_rows or len(study.array) <= _FEW:
        arrays = ((array.name, array.group, array.arrangement) for array in study.array)
        out.print(plain_table("arrays", ("name", "group", "tree"), arrays))
    else:
        groups = Counter(array.group for array in study.array)
        told = ", ".join(f"{name} {count}" for name, count in groups.items())
        out.print("\n".join(wrapped(f"{len(study.array)} arrays (--all lists them), by group: {told}", hanging=2)))
    if all_rows or len(study.workload) <= _FEW:
        rows = (_workload_row(workload, all_rows=all_rows) for workload in study.workload)
        out.print(plain_table("workloads", ("name", "reads", "size", "address"), rows))
    else:
        told = ", ".join(workload.name for workload in study.workload[:_FEW])
        others = f" and {len(study.workload) - _FEW} others" if len(study.workload) > _FEW else ""
        out.print("\n".join(wrapped(f"{len(study.workload)} workloads (--all lists them): {told}{others}", hanging=2)))


def _print_cells(loaded: LoadedStudy) -> None:
    """On what a study can be run, and how many cells that takes."""
    study, out = loaded.study, console()
    for name in ENGINES:
        if study.has_target(name):
            full, quick = (expand(study, name, seed=study.seed, quick=quick) for quick in (False, True))
            on = "by default" if name in {engine_of(word) for word in study.default_targets} else "when asked"
            out.print(
                f"{name} ({on}): {len(full.cells)} cells, {len(full.holds)} searches; "
                f"quick {len(quick.cells)} and {len(quick.holds)}"
            )
