"""The command line: one file a subcommand.

Adding one: a file with a function of the subcommand's name, a line in `app`, a test.

Invariants:

- Data goes to standard output, everything else to standard error.
- Starting costs little: subcommands import what they need when they run (`raidlab --help` stays under 150 ms).
- Every failure a user can cause ends in one clear line a mistake and a documented exit code, never in a traceback.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import NoReturn


def main() -> None:
    """Run the command line; the entry point of the console script."""
    # Modules take a while to be imported, and Ctrl-C meanwhile is no defect in the midst of one of them.
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, _leave)
    from raidlab.cli.app import main as run

    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run()
    except KeyboardInterrupt:
        _leave()


def _leave(*_signal: object) -> NoReturn:
    """Leave at once, as nothing has begun that would have to be ended."""
    with suppress(OSError):
        os.write(2, b"interrupted\n")
    # EXIT_INTERRUPTED; before the handler is there, as little as can be is imported.
    os._exit(130)


__all__ = ["main"]
