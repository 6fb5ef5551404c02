"""Did what was to befall members come before the run was over?

How long a run lasts is not always known before: a warm-up may be counted in requests, and a rebuild may end it. What is
sure to come too late is refused before anything runs. A failure that did not come is told by `rebuild`.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import PASS, WARN, Finding
from raidlab.analysis.metrics import Analysis

NAME = "events"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN for each array and load whose run was over before an event that is no failure; PASS where all came."""
    events = {array.name: [one for one in array.events if one.fail is None] for array in analysis.run.study.array}
    for point in analysis.points:
        seconds = analysis.run.of_cells("snapshots", point.cells[:1])
        if not events.get(point.array) or seconds.is_empty():
            continue
        # The last second is cut short by the end of the run.
        late = [one.in_words for one in events[point.array] if one.at >= max(seconds["time_ns"])]
        where = f"{point.array}, {point.workload}, {point.level}"
        if late:
            more = f", and {len(late) - 1} more" if late[1:] else ""
            evidence = f"{where}: the run was over before this came: {late[0]}{more}."
            yield Finding(NAME, point.target, WARN, evidence, "Measure for longer, or let it come sooner.")
        else:
            yield Finding(NAME, point.target, PASS, f"{where}: all that was to befall members did.")
