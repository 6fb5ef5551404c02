"""Did the run get to its end?"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import PASS, WARN, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.study.expand import NULL

NAME = "incomplete"


def ended_words(status: str) -> str:
    """How a run ended that did not reach its end: it was interrupted, or it failed."""
    return "run was interrupted" if status == "interrupted" else f"run {status}"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN for a run that was interrupted or failed."""
    facts = analysis.run.facts
    if facts["status"] == "complete":
        yield Finding(NAME, "run", PASS, f"All {analysis.run.cells.height} cells were run.")
        return
    cells = analysis.run.cells.filter(analysis.run.cells["target"] != NULL)
    whole = cells.filter(~cells["interrupted"]).height
    cut = ", and what one measured that was cut short" if whole < cells.height else ""
    reason = f": {facts['failure']}" if facts["failure"] else ""
    evidence = f"The {ended_words(facts['status'])}{reason}; of the cells, the {whole} run until then are shown{cut}."
    yield Finding(NAME, "run", WARN, evidence, "Go on with raidlab run --resume, or run it again.")
