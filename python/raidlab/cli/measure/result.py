"""What ``raidlab measure`` prints: tables at 80 columns, or with ``--json`` one document with stable keys.

In the tables a figure stands over its interval: how far the 95 % interval over repeats reaches to either side, in per
cent. The keys of the document are explained in docs/reference/results.md; none is ever renamed or removed within a
version of the schema.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.text import Text

from raidlab.analysis.checks import PASS, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.analysis.metrics.point import Point, points_of
from raidlab.analysis.metrics.result_rows import Row, identity, result_rows, target_rows
from raidlab.cli.output import VERDICT_STYLE, percent, short
from raidlab.cli.terminal import console
from raidlab.results.facts import Member, Volume
from raidlab.stats import taken_for_granted
from raidlab.stats.answer import Reason
from raidlab.study.expand import NULL
from raidlab.study.units import format_bytes, format_time_ns
from raidlab.study.workload import Workload

_LABEL, _WIDTH = 24, 8
# Milliseconds read better once the median request takes this long.
_MS_FROM_NS = 1_000_000
# Words for a column, instead of an interval.
_NO_INTERVAL = {
    Reason.TOO_FEW_SAMPLES: "too few",
    Reason.NOT_INDEPENDENT: "related",
    Reason.VARIANCE_NOT_FINITE: "±inf",
}
_TIMES = ("mean", "p50", "p90", "p99", "p99_9")
# Said even when all is well: they are figures a reader wants.
_ALWAYS_SAID = ("generator_limited",)
COSTS = (
    "cpu_user_per_request_us",
    "cpu_system_per_request_us",
    "context_switches_per_request",
    "device_read_bytes_percent",
    "device_write_bytes_percent",
)


def measurement_json(analysis: Analysis, findings: list[Finding], *, kept: bool) -> str:
    """The document; it names the run's folder where that is kept."""
    run = analysis.run
    facts = run.facts
    document = {
        "schema_version": facts["schema_version"],
        "raidlab": facts["raidlab"],
        "run": str(run.folder) if kept else None,
        "status": facts["status"],
        "failure": facts["failure"],
        "seed": facts["seed"],
        "argv": facts["argv"],
        "host": facts["host"],
        "times": facts["times"],
        "study": facts["study"]["text"],
        "measure": facts["measure"],
        "engine": facts["live_engine"],
        "targets": facts["live_members"],
        "machine": facts.get("machine"),
        "results": result_rows(run),
        "costs": [_cost_row(analysis, index, point) for index, point in enumerate(analysis.points)],
        "bound": _bound(analysis),
        "holds": run.holds.to_dicts(),
        "checks": [finding.row() for finding in findings],
    }
    return json.dumps(document, indent=2, allow_nan=False)


def _cost_row(analysis: Analysis, index: int, point: Point) -> Row:
    """What a point cost, and what each of several targets did."""
    names = subject_targets(analysis, point.array)
    keys = ("subject", "workload", "load", "depth", "rate_per_s")
    return {
        **dict(zip(keys, identity(point), strict=True)),
        **{kind: analysis.values[index][kind] for kind in COSTS},
        "depth_mean": point.weighted_mean("depth_mean"),
        "targets": target_rows(point, names) if len(names) > 1 else [],
    }


def subject_targets(analysis: Analysis, subject: str) -> list[str]:
    """The targets of a subject, in the user's words."""
    return [str(member.get("name")) for member in analysis.run.live_members(subject)]


def _bound(analysis: Analysis) -> list[Row]:
    """What raidlab itself can do with the same requests, to targets that complete at once."""
    return [
        {
            "subject": row["array"],
            "depth": row["depth"],
            "iops": row["all_requests"] * 1e9 / row["elapsed_ns"] if row["elapsed_ns"] else None,
        }
        for row in analysis.run.cells.iter_rows(named=True)
        if row["target"] == NULL
    ]


def print_measurement(analysis: Analysis, findings: list[Finding]) -> None:
    """Print what was measured: a table of figures, one of costs, the targets' facts, what the checks say."""
    out = console()
    rows = result_rows(analysis.run)
    out.print(Text(_question(analysis), style="bold"), soft_wrap=False)
    out.print(_figures(analysis, [row for row in rows if row["purpose"] == "sweep"] or rows))
    swept = [index for index, point in enumerate(analysis.points) if point.is_swept]
    if any(analysis.values[index][kind] is not None for index in swept for kind in COSTS):
        out.print(_costs(analysis))
    _print_holds(out, analysis)
    sentences = ["\n".join(_sentences(member)) for member in analysis.run.live_members()]
    for sentence in dict.fromkeys(sentences):
        count = sentences.count(sentence)
        out.print(Text(f"{count} x {sentence}" if count > 1 else sentence))
    _print_findings(out, findings)


def _question(analysis: Analysis) -> str:
    """What was asked, in words."""
    study, live = analysis.run.study, analysis.run.study.live
    text = workload_words(study.workload[0])
    measure = analysis.run.facts["measure"]
    low, high = measure["span_percent"]
    if (low, high) != (0, 100):
        text += f", in {low:g} to {high:g} % of the target"
    if live is not None and live.measure.duration is not None and live.warmup.duration is not None:
        found = [pilot["warmup_ns"] for pilot in measure["warmups"]] or [live.warmup.duration]
        times = " to ".join(dict.fromkeys(format_time_ns(time_ns) for time_ns in (min(found), max(found))))
        text += f"; {live.repeats} x {format_time_ns(live.measure.duration)}, each after {times} uncounted"
    return text


def workload_words(workload: Workload) -> str:
    """A workload in words: "random reads of 4 KiB"."""
    order = {"uniform": "random", "sequential": "sequential"}.get(workload.address.kind, workload.address.kind)
    if workload.task is not None:
        return f"{order} tasks of {len(workload.task)} requests"
    kinds = {1.0: "reads", 0.0: "writes"}.get(workload.read, "reads and writes")
    size = workload.size
    sizes = f"{format_bytes(size.mean)} in the mean ({size.kind})" if hasattr(size, "mean") else ""
    sizes = format_bytes(size.bytes) if size.kind == "fixed" else sizes or "several sizes"
    share = f", {workload.read:.0%} reads" if 0 < workload.read < 1 else ""
    return f"{order} {kinds} of {sizes}{share}"


def _figures(analysis: Analysis, rows: list[Row]) -> Text:
    medians = [row["response_time_ns_p50"] for row in rows if row["response_time_ns_p50"] is not None]
    unit, scale = ("ms", 1e6) if medians and min(medians) >= _MS_FROM_NS else ("us", 1e3)
    heads = ["IOPS", "MB/s", *(f"{name.replace('_', '.')}" for name in _TIMES)]
    text = Text("\n").append(f"{'response times in ' + unit:<{_LABEL}}{_line(heads)}\n", style="dim")
    points = {_key(point): point for point in [*points_of(analysis.run, cut=True), *points_of(analysis.run)]}
    for subject in dict.fromkeys(row["subject"] for row in rows):
        text.append(f"{subject}\n", style="bold")
        mine = [row for row in rows if row["subject"] == subject]
        both = len({row["operation"] for row in mine}) > 1
        for row in mine:
            label = f"  {_level(row)}{' ' + row['operation'] if both else ''}{'' if row['whole'] else ' (cut short)'}"
            text.append(_two_lines(label, row, scale))
        names = subject_targets(analysis, subject)
        if len(names) > 1 and analysis.run.facts["measure"]["subjects"][0]["engine"] == "direct":
            text.append(_targets(analysis, points[_key_of(mine[-1])], names, scale))
    for line in intervals_sentence(rows):
        text.append(f"{line}\n", style="dim")
    return text


def intervals_sentence(rows: Iterable[Row]) -> list[str]:
    """What stands behind the intervals of rows, at 80 columns; nothing where none has one."""
    repeats = {row["repeats"] for row in rows if any(row[key] is not None for key in row if key.endswith("low"))}
    if not repeats:
        return []
    many = " to ".join(str(number) for number in sorted({min(repeats), max(repeats)}))
    granted = taken_for_granted(min(repeats))
    said = f"Intervals (95 %) are over {many} repeats" + (f", {granted}" if granted else "")
    return textwrap.wrap(f"{said}.", 80, break_long_words=False)


def _two_lines(label: str, row: Row, scale: float) -> Text:
    names = ["iops", "throughput_mb_s", *(f"response_time_ns_{name}" for name in _TIMES)]
    values = [row[name] for name in names]
    values[2:] = [None if value is None else value / scale for value in values[2:]]
    text = Text()
    text.append(f"{_label(label)}{_line([figure(value) for value in values])}\n")
    halves = [half_width(row, name) for name in names]
    if any(halves):
        text.append(f"{'':<{_LABEL}}{_line([half or '' for half in halves])}\n", style="dim")
    return text


def half_width(row: Row, name: str) -> str | None:
    """How far an interval reaches, to its longer side, such as "±1.2%", or why several repeats have none."""
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    if not value or low is None or high is None:
        return _NO_INTERVAL.get(row[f"{name}_no_interval"]) if value and row["repeats"] > 1 else None
    half = 100 * max(high - value, value - low) / value
    return f"±{half:.1f}%" if half < 10 else f"±{half:.0f}%" if half < 1000 else ">±999%"


def _targets(analysis: Analysis, point: Point, names: list[str], scale: float) -> Text:
    """Each target of several that were measured at once: how it shared in the last line above."""
    text = Text(f"  of this, each target (mean: time at the target), {point.level}\n", style="dim")
    for row in target_rows(point, names):
        mean = row["service_time_ns_mean"]
        times = None if mean is None else mean / scale
        figures = [figure(row["iops"]), figure(row["throughput_mb_s"]), figure(times)]
        target = _label(f"    {row['target']}")
        text.append(f"{target}{_line(figures)}\n")
    return text


def _costs(analysis: Analysis) -> Text:
    heads = ["user us", "sys us", "switches", "dev. read", "dev. wrote"]
    widths = (9, 9, 10, 13, 13)
    text = Text(f"{'a request cost':<{_LABEL}}", style="dim")
    text.append("".join(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True)) + "\n")
    for index, point in enumerate(analysis.points):
        if not point.is_swept:
            continue
        values = [analysis.values[index][kind] for kind in COSTS]
        cells = [short(value) for value in values[:3]] + [percent(value) for value in values[3:]]
        line = "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        text.append(f"{_label(f'{point.array}, {_point_level(point)}')}{line}\n", style="not dim")
    return text


def figure(value: float | None) -> str:
    """A figure of three significant digits in at most six places.

    Examples
    --------
    >>> [figure(value) for value in (0.1234, 1234, 16966, 319366, 4_412_345, None)]
    ['0.12', '1234', '17.0k', '319k', '4.41M', '-']
    """
    if value is None or value < 10_000:
        return short(value)
    scaled, unit = (value / 1e3, "k") if value < 1e6 else (value / 1e6, "M")
    return f"{scaled:.0f}{unit}" if scaled >= 100 else f"{scaled:.1f}{unit}" if scaled >= 10 else f"{scaled:.2f}{unit}"


def _label(text: str) -> str:
    """What stands before a line of figures: above it, where it is long."""
    return f"{text:<{_LABEL}}" if len(text) < _LABEL else f"{text}\n{'':<{_LABEL}}"


def _line(cells: list[str]) -> str:
    return "".join(f"{cell:>{_WIDTH}}" for cell in cells)


def _level(row: Row) -> str:
    return f"{row['rate_per_s']:g}/s offered" if row["load"] == "open" else f"depth {row['depth']}"


def _point_level(point: Point) -> str:
    return f"{point.rate_per_s:g}/s" if point.load == "open" else f"depth {point.depth}"


def _key(point: Point) -> tuple[Any, ...]:
    return point.array, point.load, point.depth, point.rate_per_s


def _key_of(row: Row) -> tuple[Any, ...]:
    return row["subject"], row["load"], row["depth"], row["rate_per_s"]


def _print_holds(out: Console, analysis: Analysis) -> None:
    """At which depth a response-time target is met."""
    for row in analysis.run.holds.filter(analysis.run.holds["repeat"] == 0).iter_rows(named=True):
        target = f"p{row['percentile']:g} = {format_time_ns(row['target_ns'])}"
        words = {
            "between": f"is met at depth {row['depth']:.1f}",
            "never_exceeded": f"is met even at depth {row['depth']:g}, the deepest tried",
            "always_exceeded": "is not met even at depth 1",
        }.get(row["bound"], f"is met at depth {row['depth']}")
        rate = "" if row["bound"] == "always_exceeded" else f", {short(row['throughput_bytes_per_s'] / 1e6)} MB/s"
        out.print(Text(f"{row['array']}: {target} {words}{rate}"))


def _sentences(member: Member) -> list[str]:
    """What a target is, and the kernel's arrays below it."""
    found = [_target_sentence(member)]
    after = {(volume["kind"], volume["name"]): volume for volume in member.get("volumes_after", [])}
    for volume in member.get("volumes", []):
        found.append("  " + volume_sentence(volume))
        later = after.get((volume["kind"], volume["name"]))
        if later is not None and (later["state"], later["activity"]) != (volume["state"], volume["activity"]):
            found.append(f"  afterwards {volume['name']} was {_state_words(later)}")
    return found


def _target_sentence(member: Member) -> str:
    parts = [member["kind"], format_bytes(member.get("size_bytes") or 0)]
    if member["io"] not in (member["kind"], "memory"):
        parts.append(member["io"])
    system, device = member.get("filesystem"), member.get("device")
    if system is not None and member["kind"] == "file":
        parts.append(system["kind"])
    if device is not None:
        parts.append(device["name"] + (f" ({device['scheduler']})" if device.get("scheduler") else ""))
    if member["disks"] and (device is None or member["disks"] != [device.get("disk")]):
        parts.append(f"on {', '.join(member['disks'])}")
    return f"{member.get('name')}: {', '.join(parts)}"


def volume_sentence(volume: Volume) -> str:
    """An array or volume of the kernel's in one line; what is not known is said with its reason.

    Examples
    --------
    >>> volume_sentence({"kind": "md", "name": "md0", "level": "raid5", "chunk_bytes": 65536, "state": "optimal",
    ...     "activity": "idle", "activity_share": None, "missing_members": 0,
    ...     "members": [{"state": "online"}] * 3, "unknown": {}})
    'md0: md raid5, chunk 64 KiB, 3 of 3 members online, optimal'
    """
    parts = [f"{volume['kind']} {volume['level'] or 'of unknown level'}"]
    if volume["chunk_bytes"]:
        parts.append(f"chunk {format_bytes(volume['chunk_bytes'])}")
    states = [member["state"] for member in volume["members"]]
    if states and None not in states:
        parts.append(f"{states.count('online')} of {len(states)} members online")
    parts.append(_state_words(volume))
    text = f"{volume['name']}: {', '.join(parts)}"
    reasons: dict[str, list[str]] = {}
    for fact, reason in volume["unknown"].items():
        reasons.setdefault(reason, []).append(fact.replace("_", " "))
    for reason, facts in reasons.items():
        text += f"; {', '.join(facts)} could not be determined, because {reason}"
    return text


def _state_words(volume: Volume) -> str:
    text = volume["state"] or "state unknown"
    if volume["activity"] not in (None, "idle"):
        share = volume["activity_share"]
        text += f", busy with {volume['activity']}" + (f" ({share:.0%} done)" if share is not None else "")
    return text


def _print_findings(out: Console, findings: list[Finding]) -> None:
    for finding in findings:
        if finding.verdict != PASS or finding.check in _ALWAYS_SAID:
            text = Text(f"{finding.verdict} {finding.check}: ", style=VERDICT_STYLE[finding.verdict])
            out.print(text.append(Text(f"{finding.evidence} {finding.remedy}".strip(), style="default")))
    quiet = [finding.check for finding in findings if finding.verdict == PASS and finding.check not in _ALWAYS_SAID]
    if quiet:
        out.print(Text(f"PASS {', '.join(dict.fromkeys(quiet))}", style=VERDICT_STYLE[PASS]))
