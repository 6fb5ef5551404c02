"""How long n tasks take: one after another (dashed), and all at once.

Reference: figure 8 of S. Hauser, L. Berman, G. Thoma, *Is the bang worth the buck?*, 1996.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from raidlab.figures.figure import Figure, Panel, data_of
from raidlab.figures.style import PANEL_HEIGHT, PANEL_WIDTH, colours_of
from raidlab.figures.words import of_lines

KIND = "total_time"
_ALONE, _AT_ONCE = "one after another", "at once"


def total_time_figure(times: Mapping[str, Sequence[tuple[float, float]]], unit: str) -> Figure:
    """The figure, of times that were worked out elsewhere.

    Parameters
    ----------
    times : mapping
        By arrangement, for 1, 2, ... tasks: one after another, and at once.
    unit : str
    """
    rows: list[dict[str, Any]] = [
        {"line": name, "n": number, "how": how, "time": time}
        for name, found in times.items()
        for number, pair in enumerate(found, start=1)
        for how, time in zip((_ALONE, _AT_ONCE), pair, strict=True)
    ]
    names = list(times)
    colours = colours_of(names)
    chart = (
        alt.Chart(data_of(rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("n:Q", title="files", axis=alt.Axis(tickCount=6, tickMinStep=1)),
            y=alt.Y("time:Q", title=f"total time ({unit})", axis=alt.Axis(tickCount=5)),
            color=alt.Color(
                "line:N",
                title=None,
                sort=names,
                scale=alt.Scale(domain=names, range=[colours[name] for name in names]),
                legend=alt.Legend(columns=2, labelLimit=380),
            ),
            strokeDash=alt.StrokeDash(
                "how:N", title=None, scale=alt.Scale(domain=[_AT_ONCE, _ALONE], range=[[1, 0], [5, 4]])
            ),
        )
        .properties(width=PANEL_WIDTH + 90, height=PANEL_HEIGHT + 50, title="total time")
    )
    said = of_lines(
        {
            f"{name} ({how})": [(row["n"], row["time"]) for row in rows if (row["line"], row["how"]) == (name, how)]
            for name in names
            for how in (_AT_ONCE, _ALONE)
        },
        "files",
        f"total time ({unit})",
    )
    title = "Total time of several files"
    caption = "At once: the first file's time, and what each further one adds. Dashed: one after another."
    return Figure(KIND, "total-time", title, caption, (Panel("total time", chart, said),))
