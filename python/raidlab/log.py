"""What happens at raidlab's edges, told on standard error to whoever asks for it with ``RAIDLAB_LOG``.

What is opened, refused, tried again, fallen back from, made, resumed and found: enough to see why a run went another
way than was thought. The engine tells it by Rust's ``tracing``, Python by ``logging`` below the name ``raidlab``; both
write the same lines.

Invariants:

- Without the variable nothing is told, and nothing is imported for it.
- Nothing is told of single requests.
"""

from __future__ import annotations

import os
import time

from raidlab.errors import InputError

VARIABLE = "RAIDLAB_LOG"
LEVELS = ("off", "error", "warn", "info", "debug", "trace")


def start() -> None:
    """Tell what happens, down to the level that the environment names; nothing where it names none."""
    level = os.environ.get(VARIABLE, "").lower()
    if level not in LEVELS[1:]:
        return
    import logging

    from raidlab import _core

    _core.log_to_stderr(level)
    form = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)5s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
    form.converter = time.gmtime
    lines = logging.StreamHandler()
    lines.setFormatter(form)
    logger = logging.getLogger("raidlab")
    logger.addHandler(lines)
    # Python has no level below debugging.
    logger.setLevel(logging.DEBUG if level == "trace" else level.upper())
    logger.propagate = False


def check() -> None:
    """Whether the environment names a level that there is.

    Raises `InputError` where it does not.
    """
    level = os.environ.get(VARIABLE, "")
    if level and level.lower() not in LEVELS:
        raise InputError.one(VARIABLE, "is no level", value=f"'{level}'", accepted=", ".join(LEVELS))
