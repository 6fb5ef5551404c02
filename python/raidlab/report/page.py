"""The report of a run: one HTML file that needs nothing else, and the figures as SVG and PNG beside it.

Invariants:

- The page is self-contained: no script, no font, no picture is fetched; figures are SVG within it.
- The order is that of interest: the answer, what would mislead, figures and tables, checks, provenance, how to rerun.
- Nothing is worked out here but wording.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, select_autoescape
from markupsafe import Markup

from raidlab.beside import Comparison as Published
from raidlab.beside import Row as PublishedRow
from raidlab.beside import errors_of
from raidlab.checks import PASS, Finding, run_checks
from raidlab.figures import Figure, make_figures
from raidlab.figures.figure import key_of
from raidlab.figures.own import own_key
from raidlab.metrics import METRICS, Analysis, Comparison, Point
from raidlab.metrics.utilisation import Part, limit_of, parts_of
from raidlab.report.answer import PER_WORDS, TARGET_WORDS, answers
from raidlab.study.units import format_bytes

PAGE = "report.html"
FIGURES_FOLDER = "figures"


@dataclass(frozen=True)
class _Section:
    """One table of the study on one target."""

    title: str
    note: str | None
    reference: str
    per: str
    equal: str
    figures: list[dict[str, Any]]
    comparisons: list[Comparison]
    path: list[_PathRow]


@dataclass(frozen=True)
class _PathRow:
    """How busy the parts of the data path were under one array and workload, and which was the limit."""

    workload: str
    array: str
    parts: list[Part]
    limit: Part | None


def write_page(analysis: Analysis, published: Published | None = None) -> Path:
    """Write the page and the figures into the run's folder; returns the page's path.

    Parameters
    ----------
    analysis : Analysis
    published : Comparison, optional
        The run beside what its study published.
    """
    folder = analysis.run.folder
    figures = make_figures(analysis)
    (folder / FIGURES_FOLDER).mkdir(exist_ok=True)
    for figure in figures:
        figure.save(folder / FIGURES_FOLDER)
    page = folder / PAGE
    page.write_text(render(analysis, figures, run_checks(analysis), published), encoding="utf-8")
    return page


def render(
    analysis: Analysis, figures: list[Figure], findings: list[Finding], published: Published | None = None
) -> str:
    """The page's text.

    Parameters
    ----------
    analysis : Analysis
    figures : list of Figure
    findings : list of Finding
    published : Comparison, optional
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=select_autoescape(default=True),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=_number, percent=_percent, bytes=format_bytes)
    facts = analysis.run.facts
    return environment.get_template("page.html.j2").render(
        study=analysis.run.study,
        facts=facts,
        answers=answers(analysis, findings),
        shared=next((found for found in findings if found.check == "shared_device" and found.verdict != PASS), None),
        targets=_targets(analysis, figures, published),
        foreign=analysis.run.foreign,
        findings=findings,
        arrays=_arrays(analysis),
        members=_members(facts),
        metrics=METRICS,
        command=shlex.join(rerun_command(facts)),
        has_live=any(point.target in ("live", "emulated") for point in analysis.points),
        has_held=not analysis.run.holds.is_empty(),
        published=published,
        errors=errors_of(published.rows) if published else [],
        cells=analysis.run.cells.height,
        requests=int(analysis.run.cells["all_requests"].sum()),
    )


def rerun_command(facts: dict[str, Any]) -> list[str]:
    """The command that runs the same again, with the seed spelt out."""
    argv = [str(word) for word in facts["argv"]]
    return argv if "--seed" in argv else [*argv, "--seed", str(facts["seed"])]


def target_title(analysis: Analysis, target: str) -> str:
    """How a target is called: its word, and what it is made of."""
    study, facts = analysis.run.study, analysis.run.facts
    if target == "live":
        kinds = sorted({member["kind"] for member in facts["live_members"]})
        return f"{TARGET_WORDS[target]}: {', '.join(kinds)} members"
    section = study.original if target == "original" else study.sim
    parameters = facts["devices"][target]
    if target == "emulated":
        name = parameters.get("name") or "a modelled device"
        return f"{TARGET_WORDS[target]}: {name}, at speed {study.emulated.speed:g}"
    name = (section.hardware if section is not None else None) or parameters.get("name") or "a modelled device"
    return f"{TARGET_WORDS[target]}: {name}"


def _targets(analysis: Analysis, figures: list[Figure], published: Published | None) -> list[dict[str, Any]]:
    found = []
    for target in dict.fromkeys(point.target for point in analysis.points):
        sections = []
        for compare in analysis.run.study.compare:
            mine = [
                comparison
                for comparison in analysis.comparisons
                if comparison.target == target and comparison.compare.group == compare.group
            ]
            if mine:
                sections.append(
                    _Section(
                        compare.title,
                        compare.note,
                        compare.reference,
                        PER_WORDS[compare.per],
                        compare.equal,
                        [
                            _shown(figure)
                            for figure in figures
                            if figure.key == key_of(figure.kind, compare.group, target)
                        ],
                        mine,
                        _path(mine),
                    )
                )
        found.append(
            {
                "key": target,
                "title": target_title(analysis, target),
                "sections": sections,
                "own": _own(analysis, figures, target, published),
            }
        )
    return found


def _own(analysis: Analysis, figures: list[Figure], target: str, published: Published | None) -> list[dict[str, Any]]:
    """The figures under the study's own names, each with the claims that are tested on it."""
    rows: dict[str, PublishedRow] = {}
    if published is not None:
        # Each target has its own conclusions; one stands beside what was published.
        rows = {row.id: row for row in published.published if target == published.target}
        rows |= {row.id: row for row in published.conclusions if row.figure == target}
    by_key = {figure.key: figure for figure in figures}
    found = []
    for spec in analysis.run.study.figure:
        figure = by_key.get(own_key(spec, target))
        if figure is not None:
            found.append({**_shown(figure), "claims": [rows[name] for name in spec.claims if name in rows]})
    return found


def _path(comparisons: list[Comparison]) -> list[_PathRow]:
    rows = []
    for comparison in comparisons:
        for row in comparison.rows:
            parts = parts_of(row.point)
            if parts:
                rows.append(_PathRow(comparison.workload, row.array, parts, limit_of(parts)))
    return rows


def _shown(figure: Figure) -> dict[str, Any]:
    return {
        "title": figure.title,
        "caption": figure.caption,
        "svgs": [Markup(svg) for svg in figure.panel_svgs()],
    }


def _arrays(analysis: Analysis) -> list[dict[str, Any]]:
    first: dict[str, Point] = {}
    for point in analysis.points:
        first.setdefault(point.array, point)
    return [
        {
            "name": array.name,
            "group": array.group,
            "tree": array.tree,
            "members": first[array.name].members,
            "efficiency": 100 * float(first[array.name].rows[0]["storage_efficiency"]),
            "pair_pricing": array.pair_pricing,
        }
        for array in analysis.run.study.array
        if array.name in first
    ]


def _members(facts: dict[str, Any]) -> list[dict[str, str]]:
    words = {True: "yes", False: "no", None: "-"}
    found = []
    for member in facts["live_members"]:
        device, filesystem = member.get("device") or {}, member.get("filesystem") or {}
        found.append(
            {
                "path": member.get("path") or member["kind"],
                "io": member["io"],
                "disks": ", ".join(member["disks"]) or "-",
                "rotational": words[device.get("rotational")],
                "scheduler": device.get("scheduler") or "-",
                "write_cache": device.get("write_cache") or "-",
                "filesystem": filesystem.get("kind") or "-",
            }
        )
    return found


def _number(value: float | None) -> str:
    """Three significant digits, and no more than the eye needs."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3g}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} %" if value >= 10 else f"{value:.1f} %"
