"""Ctrl-C during a run: noted at once, acted on where nothing can be lost.

Invariants:

- While a run goes on, the first Ctrl-C only raises a flag; the run looks at it between cells, and the engine within
  one. So no result is ever cut in the middle of being written.
- A second Ctrl-C ends the program the ordinary way: somebody is in a hurry.
- Outside the main thread (in some notebooks) signals cannot be caught, and nothing is changed.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopFlag:
    """Whether the run is to stop."""

    def __init__(self) -> None:
        self._is_set = False

    def __call__(self) -> bool:
        """Whether Ctrl-C has been pressed."""
        return self._is_set

    def raise_flag(self) -> None:
        """Ask the run to stop."""
        self._is_set = True


@contextmanager
def catching_interrupts(stop: StopFlag) -> Iterator[None]:
    """Turn the first Ctrl-C into the flag, for as long as the context lasts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(_number: int, _frame: FrameType | None) -> None:
        if stop():
            raise KeyboardInterrupt
        stop.raise_flag()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def holding_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back: processes started meanwhile never see it, and this one sees it afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
