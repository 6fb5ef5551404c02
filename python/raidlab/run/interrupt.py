"""Signals that ask a run to stop: noted at once, acted on where nothing can be lost.

Ctrl-C, a terminal that closes (SIGHUP) and a polite kill (SIGTERM) mean the same: stop, and keep what was measured.

Invariants:

- While a run goes on, the first signal only raises a flag; the run looks at it between cells, and the engine within
  one. So no result is ever cut in the middle of being written.
- The second says that somebody is in a hurry: workers are ended where they are. What they were measuring is lost, what
  is done is not. Only the fourth ends the program wherever it is: impatient fingers press three times.
- A signal that was ignored when raidlab started stays ignored, as ``nohup`` wants it; Ctrl-C alone is always heard.
- Outside the main thread (in some notebooks) signals cannot be caught, and nothing is changed.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_URGENT_COUNT = 2
_LAST_COUNT = 4


class StopFlag:
    """Whether the run is to stop, and why."""

    def __init__(self) -> None:
        self._heard: list[int] = []

    def __call__(self) -> bool:
        """Whether the run has been asked to stop."""
        return bool(self._heard)

    def raise_flag(self, number: int = signal.SIGINT) -> None:
        """Ask the run to stop, for the sake of a signal."""
        self._heard.append(number)

    @property
    def is_urgent(self) -> bool:
        """Whether it has been asked more than once."""
        return len(self._heard) >= _URGENT_COUNT

    @property
    def is_last(self) -> bool:
        """Whether it has been asked so often that nothing is to be waited for."""
        return len(self._heard) >= _LAST_COUNT

    @property
    def signal_name(self) -> str | None:
        """The first signal heard, such as ``SIGINT``; None when there was none."""
        return signal.Signals(self._heard[0]).name if self._heard else None


@contextmanager
def catching_signals(stop: StopFlag) -> Iterator[None]:
    """Turn signals into the flag, for as long as the context lasts; contexts for one flag may be nested."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(number: int, _frame: FrameType | None) -> None:
        stop.raise_flag(number)
        if stop.is_last:
            raise KeyboardInterrupt

    heard = [one for one in SIGNALS if one == signal.SIGINT or signal.getsignal(one) is not signal.SIG_IGN]
    # A handler that is not Python's own reads as None and could not be put back.
    before = {number: signal.signal(number, note) for number in heard if signal.getsignal(number) is not None}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def holding_signals() -> Iterator[None]:
    """Hold signals back: processes started meanwhile never see them, and this one sees them afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set(SIGNALS))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
