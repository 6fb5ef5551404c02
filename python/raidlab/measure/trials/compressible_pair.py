"""Write compressible and incompressible data in turn: where one is faster, something below compresses.

Invariants:

- Nothing is written unless the target was given up for it; the engine opens what is written, and nobody else.
- Which of a pair comes first alternates.
"""

from __future__ import annotations

from raidlab.measure.trials.target import TrialTarget, compared, scan
from raidlab.results.facts import Trials

KEY = "compressible_pair"

PAIRS = 5
_PART_BYTES = 32 << 20
_BLOCK_BYTES = 128 << 10
_DEPTH = 4


def tried(target: TrialTarget) -> Trials:
    """How many times as fast compressible data were written, with an interval; over the first part of the target."""
    part = min(_PART_BYTES, target.size_bytes // _BLOCK_BYTES * _BLOCK_BYTES)
    if not target.writable or not part:
        return {}
    rates: dict[int, list[float]] = {0: [], 100: []}
    for number in range(PAIRS):
        for percent in (0, 100) if number % 2 else (100, 0):
            options = {"depth": _DEPTH, "block": _BLOCK_BYTES, "seed": number + 1, "compressible_percent": percent}
            rates[percent].append(scan(target, 0, part, read=0.0, **options))
    pair = compared(rates[100], rates[0])
    return {} if pair is None else {"compressible_pair": pair}
