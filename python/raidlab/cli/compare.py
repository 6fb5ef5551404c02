"""``raidlab results compare``: two runs, or arrays or targets of runs, and what may be said of their difference."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raidlab.cli.endings import code_of
from raidlab.cli.options import Json, Out, argument, flag, option
from raidlab.cli.run_folders import RUNS, folder_of
from raidlab.cli.terminal import printing, say, writing
from raidlab.errors import InputError

if TYPE_CHECKING:
    from raidlab.analysis.checks import Finding
    from raidlab.analysis.metrics.run_comparison import ComparisonRow, RunComparison, Side

EXAMPLES = """\b
Examples:
  raidlab results compare before-2026-11-21-001 after-2026-11-21-001
  raidlab results compare last:raid5 last:raid10 --per disk
  raidlab results compare last@sim last@emulated
  raidlab results compare runs/a runs/b --metric response_time_ms_p99 --json
  raidlab results compare before after --report comparison.html"""
PER = ("array", "disk", "user_capacity")
_WIDTH = 80
# A's and B's figure, the answer, what could have been found; the rest is for the name.
_VALUE, _ANSWER, _FINDS = 8, 29, 7
_NAME = _WIDTH - 2 * (_VALUE + 1) - (_ANSWER + 2) - (_FINDS + 1)


def compare(
    a: Annotated[
        str,
        argument(
            "A",
            "What is compared with: a run folder, its name in --out, or 'last'; with :ARRAY one array of it, "
            "with @TARGET what it has on that target, with @TARGET:ARRAY both.",
        ),
    ],
    b: Annotated[str, argument("B", "What is compared: the same.")],
    metric: Annotated[
        list[str] | None,
        option(
            "METRIC",
            "throughput_mb_s, iops, response_time_ms_mean, _p50, _p90, _p99 or _p99_9; may be repeated. "
            "Throughput and p90 by default.",
        ),
    ] = None,
    per: Annotated[str, option("BASIS", "What rates are divided by: array, disk or user_capacity.")] = "array",
    unequal_capacity: Annotated[
        bool, flag("--unequal-capacity", "Compare arrays of different user capacity too.")
    ] = False,
    out: Out = RUNS,
    as_json: Json = False,
    report: Annotated[Path | None, option("FILE", "Also write the comparison as a page (HTML).")] = None,
) -> None:
    """Compare B with A: by how much it differs, how surely, and what difference could have been found.

    Repeats that were given the same requests are compared in pairs. What is not comparable is refused, with the reason.
    The exit code is 3 if a check says INVALID of what is compared.
    """
    from raidlab.analysis.metrics.repeat_figures import DEFAULT_KINDS, REPEAT_FIGURES
    from raidlab.analysis.metrics.run_comparison import compare_runs
    from raidlab.study.find import did_you_mean

    kinds = list(dict.fromkeys(metric or DEFAULT_KINDS))
    for place, words, known in (("--metric", kinds, tuple(REPEAT_FIGURES)), ("--per", [per], PER)):
        for word in words:
            if word not in known:
                hint = did_you_mean(word, known)
                raise InputError.one(place, f"is not known{hint}", value=f"'{word}'", accepted=", ".join(known))
    sides = [_side(words, out, place) for words, place in ((a, "A"), (b, "B"))]
    found = compare_runs(*sides, kinds=kinds, per=per, unequal_capacity=unequal_capacity)
    findings = _findings(found)
    with printing():
        if as_json:
            print(document_text(found, findings))
        else:
            _print(found, findings)
    if report is not None:
        _write_report(found, findings, report)
    raise typer.Exit(code_of(finding for one in findings for finding in one))


def _write_report(found: RunComparison, findings: list[list[Finding]], file: Path) -> None:
    from raidlab.directory import write_file
    from raidlab.report.comparison import render_comparison

    with writing("--report", file):
        write_file(file, render_comparison(found, findings).encode())
    say(f"report: {file}")


def _findings(found: RunComparison) -> list[list[Finding]]:
    """What the checks say of each side, as far as it concerns the targets that are compared."""
    from raidlab.analysis.checks import run_checks, that_concern
    from raidlab.analysis.metrics import Analysis

    sides = ((found.a.run, {row.a.target for row in found.rows}), (found.b.run, {row.b.target for row in found.rows}))
    # Two arrays of one run are judged once.
    of_a = run_checks(Analysis(found.a.run))
    of_b = of_a if _is_one_run(found) else run_checks(Analysis(found.b.run))
    return [
        that_concern(own, targets, among=run.cells["target"].unique().to_list())
        for (run, targets), own in zip(sides, (of_a, of_b), strict=True)
    ]


def _is_one_run(found: RunComparison) -> bool:
    """Whether both sides are of one run."""
    return found.a.run.folder.resolve() == found.b.run.folder.resolve()


def _side(words: str, out: Path, option: str) -> Side:
    """A run, or an array or a target of it, by its name."""
    from raidlab.analysis.metrics.run_comparison import Side
    from raidlab.results import load_run
    from raidlab.study.find import did_you_mean, nearest

    name, target, array = _parts(words, out, option)
    run = load_run(folder_of(name, out, option))
    targets = sorted(run.cells["target"].unique().to_list())
    for what, part, known in (("target", target, targets), ("array", array, [one.name for one in run.study.array])):
        if part is not None and part not in known:
            message = f"the run has no such {what}{did_you_mean(part, known)}"
            raise InputError.one(option, message, value=f"'{words}'", accepted=nearest(part, known))
    return Side(run, array, words, target)


def _parts(words: str, out: Path, option: str) -> tuple[str, str | None, str | None]:
    """RUN, TARGET and ARRAY of RUN@TARGET:ARRAY; a folder's own name may have such signs in it."""

    def cut(text: str, sign: str) -> tuple[str, str | None]:
        head, _, tail = text.rpartition(sign)
        return (text, None) if not head or folder_of(text, out, option).is_dir() else (head, tail)

    rest, array = cut(words, ":")
    name, target = cut(rest, "@")
    return name, target, array


def document_text(found: RunComparison, findings: list[list[Finding]]) -> str:
    """A comparison as JSON."""
    document = {
        "a": _side_document(found.a, findings[0]),
        "b": _side_document(found.b, findings[1]),
        "per": found.per,
        "comparisons": sum(1 for row in found.rows if row.difference.p is not None),
        "rows": [_row_document(row) for row in found.rows],
        "geometric_means": [
            {"metric": kind, "ratio": answer.value, "ratio_low": answer.low, "ratio_high": answer.high, "rows": rows}
            for kind, answer in found.geometric_means().items()
            if (rows := sum(1 for row in found.rows if row.figure.kind == kind))
        ],
        "refused": [vars(one) for one in found.refused],
        "notes": found.notes,
    }
    return json.dumps(document, indent=2)


def _side_document(side: Side, findings: list[Finding]) -> dict[str, object]:
    return {
        "run": str(side.run.folder),
        "array": side.array,
        "target": side.target,
        "seed": side.run.facts["seed"],
        "checks": [finding.row() for finding in findings],
    }


def _row_document(row: ComparisonRow) -> dict[str, object]:
    difference = row.difference
    ends = difference.interval or (None, None)
    return {
        "target_a": row.a.target,
        "target_b": row.b.target,
        "array_a": row.a.array,
        "array_b": row.b.array,
        "workload": row.a.workload,
        "load": row.level,
        "operation": row.operation,
        "metric": row.figure.kind,
        "a": row.values[0],
        "b": row.values[1],
        "merged_a": row.merged[0],
        "merged_b": row.merged[1],
        "ratio": difference.ratio.value,
        "ratio_low": ends[0],
        "ratio_high": ends[1],
        "ratio_confidence": None if ends[0] is None else 1 - (difference.level or 1 - difference.ratio.confidence),
        "single_low": difference.ratio.low,
        "single_high": difference.ratio.high,
        "p": difference.p,
        "shown": difference.shown,
        "method": difference.ratio.method,
        "paired": row.is_paired,
        "repeats_a": len(row.each[0]),
        "repeats_b": len(row.each[1]),
        "found_percent": difference.found_percent(),
    }


def _print(found: RunComparison, findings: list[list[Finding]]) -> None:
    from raidlab.report.differences import footnotes, how

    count = sum(1 for row in found.rows if row.difference.p is not None)
    per = "" if found.per == "array" else f"; rates per {found.per.replace('_', ' ')}"
    print(f"A  {found.a.words}\nB  {found.b.words}")
    print(f"B against A{how(count)}{per}")
    for kind in dict.fromkeys(row.figure.kind for row in found.rows):
        _print_figure(found, kind)
    print()
    _say(" ".join(footnotes(found)))
    for note in found.notes:
        _say(f"NOTE {note}")
    for line in _verdicts(found, findings):
        _say(line)
    for one in found.refused:
        _say(f"NOT COMPARED {one.what}: {one.reason}")


def _print_figure(found: RunComparison, kind: str) -> None:
    """All rows of one figure, a line each, below a line for each array and workload."""
    from raidlab.report.differences import mean_words, subject_of

    rows = [row for row in found.rows if row.figure.kind == kind]
    title = rows[0].figure.title
    print()
    if len(title) > _NAME:
        print(title)
        title = ""
    print(f"{title:<{_NAME}} {'A':>{_VALUE}} {'B':>{_VALUE}}  {'B against A':<{_ANSWER}} {'finds':>{_FINDS}}")
    for subject in dict.fromkeys(subject_of(row, found.rows) for row in rows):
        print(subject)
        for row in rows:
            if subject_of(row, found.rows) == subject:
                _print_row(row)
    mean = found.geometric_means().get(kind)
    if mean is not None:
        print(f"{'geometric mean of the ratios':<{_NAME + 2 * (_VALUE + 1)}}  {mean_words(mean)}")


def _print_row(row: ComparisonRow) -> None:
    from raidlab.report.differences import answer_words, four_digits, load_words, percent

    finds = row.difference.found_percent()
    figures = " ".join(f"{four_digits(value):>{_VALUE}}" for value in row.values)
    tail = "-" if finds is None else f"{percent(finds)} %"
    name = f"  {load_words(row.level)}"
    print(f"{name:<{_NAME}} {figures}  {answer_words(row.difference):<{_ANSWER}} {tail:>{_FINDS}}")


def _say(text: str) -> None:
    print(textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False))


def _verdicts(found: RunComparison, findings: list[list[Finding]]) -> Iterator[str]:
    """A line for each side of which a check says INVALID, WARN or UNKNOWN; `results show` has the evidence."""
    from raidlab.analysis.checks import INVALID, UNKNOWN, WARN, words_of

    sides = ["A and B"] if _is_one_run(found) and findings[0] == findings[1] else ["A", "B"]
    for side, own in zip(sides, findings, strict=False):
        if words := words_of(own, (INVALID, WARN, UNKNOWN)):
            what = " (do not use its figures)" if words.startswith(INVALID) else ""
            yield f"CHECKS of {side}: {words}{what}"
