"""How the direct engine is told to drive its targets.

Invariant: the keys are the engine's own, so that nothing is translated.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

# How much of the content is compared; `off` where another tool writes to the same places.
VERIFY = (FULL, SAMPLE, OFF) = ("full", "sample", "off")


@dataclass(frozen=True)
class Drive:
    """How the direct engine drives its targets; the keys are the engine's.

    Attributes
    ----------
    workers : int
        Threads.
    cpus : list of int
        Processors they are bound to; none if empty.
    interface : str
        ``auto``, ``io_uring`` or ``threads``.
    buffered, busy, poll_completions : bool
    batch : int or None
        Most requests submitted or taken in one turn.
    compressible_percent : int
    verify : str
        How much of what raidlab wrote is compared with what comes back: ``full``, ``sample`` or ``off``.
    """

    workers: int = 1
    cpus: tuple[int, ...] = ()
    interface: str = "auto"
    buffered: bool = False
    busy: bool = False
    poll_completions: bool = False
    batch: int | None = None
    compressible_percent: int = 0
    verify: str = SAMPLE

    @property
    def changed(self) -> list[str]:
        """The flags that differ from the defaults, for engines that have none of this."""
        plain = asdict(Drive(verify=self.verify))
        flags = {"compressible_percent": "--compressible", "poll_completions": "--poll-completions"}
        return [flags.get(key, f"--{key}") for key, value in asdict(self).items() if value != plain[key]]
