"""What a check answers.

Invariants:

- A verdict is PASS, UNKNOWN, WARN or INVALID, and comes with the evidence in a sentence that holds the figures.
- UNKNOWN is the answer "could not be determined, because ...": neither a fault nor an all-clear.
- A check that does not apply to a run gives no finding; one that applies always gives one, PASS included.
"""

from __future__ import annotations

from dataclasses import dataclass

PASS, UNKNOWN, WARN, INVALID = "PASS", "UNKNOWN", "WARN", "INVALID"
SEVERITY = {PASS: 0, UNKNOWN: 1, WARN: 2, INVALID: 3}


@dataclass(frozen=True)
class Finding:
    """The answer of one check about one target.

    Attributes
    ----------
    check : str
        The check's name, which is its file's.
    target : str
    verdict : str
        ``PASS``, ``UNKNOWN``, ``WARN`` or ``INVALID``.
    evidence : str
        A sentence with the figures it rests on.
    mend : str
        The flag or the action that would mend it; empty for PASS.
    """

    check: str
    target: str
    verdict: str
    evidence: str
    mend: str = ""
