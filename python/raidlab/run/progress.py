"""Progress of a long run, on standard error: a bar with the time left on a terminal, plain lines otherwise.

Invariants:

- Standard output is never touched: it belongs to the data.
- Redrawing is slow on purpose (four times a second): the display must not disturb a live measurement.
- Plain lines come at every tenth of the work, and never more often than every two seconds.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from raidlab.errors import shown

if TYPE_CHECKING:
    from rich.progress import Progress as RichBar
    from rich.progress import TaskID

_REDRAWS_PER_S = 4
_PLAIN_LINE_EVERY_S = 2.0


class Progress:
    """What a run tells about itself; this one tells nobody: for notebooks and tests."""

    def begin(self, title: str, total: int, unit: str = "cell") -> None:
        """A new stretch of work of ``total`` steps begins; ``unit`` is what a step is called."""

    def expect(self, total: int) -> None:
        """By what is known now, the stretch has so many steps."""

    def advance(self, steps: int = 1) -> None:
        """One step is done, or several."""

    def known(self) -> None:
        """The result of the step that is done next was there already: it says nothing of how long others take."""

    def note(self, text: str) -> None:
        """Something worth a sentence happens."""

    def end(self) -> None:
        """The stretch is over, done or not."""


Silent = Progress


class PlainLines(Progress):
    """One line for every tenth of the work."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._title, self._total, self._done, self._unit = "", 0, 0, "cell"
        self._began_s = self._spoke_s = self._advanced_s = 0.0
        # Of what was there already: how much, how long that took, and whether the next step is of it.
        self._known, self._known_s, self._next_is_known = 0, 0.0, False

    def begin(self, title: str, total: int, unit: str = "cell") -> None:
        """Say what begins."""
        self._title, self._total, self._done, self._unit = title, total, 0, unit
        self._known, self._known_s, self._next_is_known = 0, 0.0, False
        self._began_s = self._spoke_s = self._advanced_s = time.monotonic()
        self._say(f"{title}: {self._counted(total)} to run")

    def expect(self, total: int) -> None:
        """Reckon with another total from now on."""
        self._total = total

    def advance(self, steps: int = 1) -> None:
        """Count, and say so now and then."""
        self._done += steps
        now_s = time.monotonic()
        if self._next_is_known:
            self._known += steps
            self._known_s += now_s - self._advanced_s
        self._advanced_s, self._next_is_known = now_s, False
        tenths = [done * 10 // max(self._total, 1) for done in (self._done - steps, self._done)]
        if tenths[1] > tenths[0] and now_s - self._spoke_s >= _PLAIN_LINE_EVERY_S:
            self._spoke_s = now_s
            self._say(f"{self._title}: {self._where(now_s)}")

    def _where(self, now_s: float) -> str:
        """How far it is; nobody knows how many steps a search still takes that took more than was expected."""
        if self._done == self._total:
            return f"{self._done:,} of about {self._counted(self._total)}"
        if self._done > self._total:
            done = self._counted(self._done)
            return f"{done}, about {self._total:,} were expected: searches take as many as they need"
        where, made = f"{self._done:,} of about {self._counted(self._total)}", self._done - self._known
        if self._known:
            where = f"{where}, {self._known:,} of them known before"
        if not made:
            return where
        seconds = (now_s - self._began_s - self._known_s) / made * (self._total - self._done)
        return f"{where}, {seconds:.0f} s left"

    def known(self) -> None:
        """Leave the next step out of what is left to wait for."""
        self._next_is_known = True

    def note(self, text: str) -> None:
        """Say it."""
        self._say(text)

    def end(self) -> None:
        """Say how long it took."""
        self._say(f"{self._title}: {self._counted(self._done)} in {time.monotonic() - self._began_s:.1f} s")

    def _counted(self, count: int) -> str:
        return f"{count:,} {self._unit}{'' if count == 1 else 's'}"

    def _say(self, text: str) -> None:
        # A terminal that has closed, or a full disk behind standard error, is no reason to stop measuring.
        with suppress(OSError, ValueError):
            print(shown(text), file=self._stream, flush=True)


class Bar(Progress):
    """A bar with the time left."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar: RichBar | None = None
        self._task: TaskID | None = None
        self._total = 0
        self._done = 0

    def begin(self, title: str, total: int, unit: str = "cell") -> None:
        """Draw an empty bar."""
        from rich import progress as rich
        from rich.console import Console
        from rich.markup import escape

        self._bar = rich.Progress(
            rich.TextColumn("{task.description}"),
            rich.BarColumn(bar_width=None),
            rich.MofNCompleteColumn(),
            rich.TimeElapsedColumn(),
            rich.TextColumn("left"),
            rich.TimeRemainingColumn(),
            console=Console(file=self._stream),
            refresh_per_second=_REDRAWS_PER_S,
        )
        self._total, self._done = total, 0
        self._task = self._bar.add_task(escape(shown(title)), total=total)
        self._bar.start()

    def expect(self, total: int) -> None:
        """Have the bar end elsewhere."""
        self._total = total

    def advance(self, steps: int = 1) -> None:
        """Move the bar; the total grows when searches need more steps than expected."""
        if self._bar is not None and self._task is not None:
            self._done += steps
            self._total = max(self._total, self._done)
            self._bar.update(self._task, completed=self._done, total=self._total)

    def note(self, text: str) -> None:
        """Print above the bar."""
        if self._bar is not None:
            self._bar.console.print(shown(text), highlight=False, markup=False)
        else:
            print(shown(text), file=self._stream, flush=True)

    def end(self) -> None:
        """Leave the full bar on the screen: the work is over, whatever was expected."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=max(self._done, 1))
            self._bar.stop()
            self._bar = self._task = None


def progress_on(stream: TextIO = sys.stderr) -> Progress:
    """The display that suits a stream: a bar on a terminal, plain lines elsewhere."""
    return Bar(stream) if stream.isatty() else PlainLines(stream)
