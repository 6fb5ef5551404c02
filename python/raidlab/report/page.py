"""The report of a run: one HTML file that needs nothing else, and the figures as SVG and PNG beside it.

The page's text is in `templates/`, a file a part; `layout.html.j2` holds what all reports have in common.

Invariants:

- The page is self-contained: no font, no picture, no script is fetched, and its content policy forbids it. Figures are
  SVG within it; the script that shows tabs and tooltips is within it too, and everything can be read without it.
- The order is that of interest: the answer, what would mislead, figures and tables, checks, provenance, how to rerun.
- Nothing is worked out here but wording.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from raidlab.analysis.checks import SEVERITY, WARN, Finding, run_checks
from raidlab.analysis.checks.incomplete import ended_words
from raidlab.analysis.margins import keep_margins
from raidlab.analysis.metrics import METRICS, Analysis
from raidlab.analysis.metrics.accesses import accesses_by_file
from raidlab.errors import OutputError
from raidlab.errors import shown as shown_text
from raidlab.published.compare import PublishedComparison
from raidlab.published.compare.evaluate import table_in_words
from raidlab.published.rules import Choice
from raidlab.published.scorecard import Sheet
from raidlab.report.answer import margins_of_run
from raidlab.report.bad_days import headline, notes, rows_of, terabytes
from raidlab.report.cards import cards_of
from raidlab.report.choice import shown_choice
from raidlab.report.costs import costs_of
from raidlab.report.figures import Figure, bad_days, make_figures
from raidlab.report.figures.published import figures_of
from raidlab.report.figures.style import FONT, ON_DARK
from raidlab.report.figures.words import number
from raidlab.report.prediction import shown_predictions
from raidlab.report.provenance import arrays_of, gives_up, hardware_of, members_of, rerun_command
from raidlab.report.published import NAMED, NEAR, TargetConclusions, both, concluded, standing_in, unasked
from raidlab.report.sections import shown, target_title, targets_of
from raidlab.report.sheet import shown_sheet
from raidlab.report.simulator import BUILT, simulator_links
from raidlab.report.simulator import PAGE as SIMULATOR
from raidlab.stats import NOTHING_SHOWN_PERCENT
from raidlab.wrapping import unparted

PAGE = "report.html"
QUICK = "quick: for a first look, not for a decision"
FIGURES_FOLDER = "figures"
TEMPLATES = Path(__file__).parent / "templates"


def write_page(
    analysis: Analysis,
    published: PublishedComparison | None = None,
    choice: Choice | None = None,
    sheet: Sheet | None = None,
    *,
    left_out: str = "",
) -> Path:
    """Write the page and the figures into the run's folder; returns the page's path.

    ``left_out`` says why what was published does not stand beside the run.
    """
    figures = make_figures(analysis, published)
    try:
        with analysis.run.directory() as folder:
            with folder.child(FIGURES_FOLDER, make=True) as place:
                for figure in figures:
                    figure.save(place)
            findings = run_checks(analysis)
            keep_margins(margins_of_run(analysis, findings), folder)
            page = render(analysis, figures, findings, published, choice, sheet, left_out=left_out)
            if simulator_links(analysis):
                # Links hold wherever the folder goes.
                folder.replace(SIMULATOR, BUILT.read_bytes())
            return folder.replace(PAGE, page.encode())
    except OSError as error:
        raise OutputError(f"{error.filename or analysis.run.folder}: cannot be written: {error.strerror}") from None


def render(
    analysis: Analysis,
    figures: list[Figure],
    findings: list[Finding],
    published: PublishedComparison | None = None,
    choice: Choice | None = None,
    sheet: Sheet | None = None,
    *,
    left_out: str = "",
) -> str:
    """The page's text."""
    facts = analysis.run.facts
    worst_first = sorted(findings, key=lambda finding: -SEVERITY[finding.verdict])
    standing = standing_in(published, worst_first)
    conclusions = concluded(published, worst_first)
    days = rows_of(analysis)
    published_figures = list(figures_of(published)) if published is not None and standing and standing.errors else []
    return fill(
        "page.html.j2",
        study=analysis.run.study,
        facts=facts,
        quick=QUICK,
        ended=ended_words(facts["status"]),
        cards=cards_of(analysis, worst_first, has_published=standing is not None or bool(conclusions)),
        standing=standing,
        conclusions=conclusions,
        left_out=left_out,
        unasked=unasked(analysis, conclusions),
        has_intervals=_has_intervals(conclusions),
        target_titles={
            target: target_title(analysis, target) for target in {point.target for point in analysis.points}
        },
        published=published,
        published_figures=[shown(one) for one in published_figures],
        choice=shown_choice(choice) if choice is not None else None,
        sheet=shown_sheet(sheet) if sheet is not None else None,
        bad_days=days,
        bad_days_headline=headline(days) if days else "",
        bad_days_larger=terabytes(days),
        bad_day_notes=notes(days) if days else [],
        # Two panels a row: what clients get, and how long they wait.
        bad_day_figures=[replace(shown(one), is_wide=True) for one in figures if one.kind == bad_days.KIND],
        costs=costs_of(analysis),
        predictions=shown_predictions(analysis, worst_first, figures),
        folder=analysis.run.folder.name,
        simulator_links=simulator_links(analysis),
        accesses=accesses_by_file(analysis),
        near=NEAR,
        named=NAMED,
        nothing_shown=f"{NOTHING_SHOWN_PERCENT:g}",
        worst=[finding for finding in worst_first if SEVERITY[finding.verdict] >= SEVERITY[WARN]],
        targets=targets_of(analysis, figures, published, worst_first),
        findings=worst_first,
        verdicts=verdict_counts(findings),
        arrays=arrays_of(analysis, published),
        hardware=hardware_of(analysis, published),
        members=members_of(facts),
        metrics=METRICS,
        command=rerun_command(facts),
        gives_up=gives_up(facts),
        has_live=any(point.target in ("live", "emulated") for point in analysis.points),
        has_held=not analysis.run.holds.is_empty(),
        held_at=_held_at(analysis),
        cells=analysis.run.cells.height,
        requests=int(analysis.run.cells["all_requests"].sum()),
    )


def fill(template: str, *, beside: Path = TEMPLATES, **values: Any) -> str:
    """A page from a file of `TEMPLATES`, or ``beside``, and what it names; all pages have one style and one script."""
    environment = Environment(
        loader=FileSystemLoader([beside, TEMPLATES]),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=number,
        percent=percent,
        groupby_kept=_grouped,
        strong=_strong,
        both=both,
        kept=lambda text: _whole(unparted(text)),
        four=four,
        options=_whole,
        parted=_parted,
        table_in_words=table_in_words,
    )
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    page = environment.get_template(template).render(
        style=Markup(f"{style}{chart_style()}"), script=Markup(script), **values
    )
    # What a stranger's run says of itself acts on no terminal, and turns nothing around that stands beside it.
    return shown_text(page)


def chart_style() -> str:
    """The style rules that give charts their font, and their colours on dark paper."""
    sides = ("fill", "stroke")
    rules = [f'.chart [{side}="{light}"] {{ {side}: {dark}; }}' for light, dark in ON_DARK.items() for side in sides]
    return (
        f".chart {{ font-family: {FONT}; }}\n@media screen and (prefers-color-scheme: dark) {{ {' '.join(rules)} }}\n"
    )


def verdict_counts(findings: Iterable[Finding]) -> str:
    """How many checks say what, the worst first."""
    words = [finding.verdict for finding in findings]
    ordered = sorted(set(words), key=lambda word: -SEVERITY[word])
    return ", ".join(f"{words.count(word)} {word}" for word in ordered)


def _grouped(rows: Iterable[Any], attribute: str) -> list[tuple[Any, list[Any]]]:
    """Rows by an attribute, in the order in which they come."""
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        groups.setdefault(getattr(row, attribute), []).append(row)
    return list(groups.items())


def _held_at(analysis: Analysis) -> str:
    """What is equal where a response time is held: its percentile, or where loads hold several, the time."""
    percentiles = analysis.run.holds["percentile"].unique().to_list()
    return f"p{percentiles[0]:g}" if len(percentiles) == 1 else "response time"


def _has_intervals(conclusions: Iterable[TargetConclusions]) -> bool:
    """Whether any conclusion was judged by more than one run."""
    rows = [row for one in conclusions for row in one.rows if row.is_judged]
    return not rows or not all(row.is_single for row in rows)


def _whole(text: str) -> Markup:
    """Text whose options (``--on``), devices (``hdd-7200``) and counts (``6-disk``) are not parted at their hyphens.

    Examples
    --------
    >>> _whole("a 6-disk array of well-known disks")
    Markup('a <span class="option">6-disk</span> array of well-known disks')
    """
    parts = re.split(r"(?<![\w-])(--[a-z-]+|[a-z]+-[a-z0-9-]*\d[a-z0-9-]*|\d+-[a-z]+)", text)
    return Markup("").join(
        Markup('<span class="option">{}</span>').format(part) if index % 2 else part for index, part in enumerate(parts)
    )


def _parted(name: str) -> Markup:
    """A name of several words that may be parted between them, and is not elsewhere where a column is narrow."""
    return Markup("<wbr>").join(re.findall(r"(?:[^_./:,-]|(?<=\d)\.(?=\d))+[_./:,-]*|[_./:,-]+", unparted(name)))


def _strong(figure: str) -> Markup:
    """A figure set off from its interval; a number is not parted from its unit."""
    value, rest = re.split(r"(?=, | \(|; )", f"{unparted(figure)}, ", maxsplit=1)
    return Markup("<b>{}</b>{}").format(value, rest.removesuffix(", "))


def four(value: float) -> str:
    """Four digits, or all of a larger number.

    Examples
    --------
    >>> four(32954.7), four(0.082916)
    ('32,955', '0.08292')
    """
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def percent(value: float | None) -> str:
    """A share; one decimal where it is small."""
    return "-" if value is None else f"{value:.0f} %" if value >= 10 else f"{value:.1f} %"
