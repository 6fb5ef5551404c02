"""What a check answers.

Invariants:

- A verdict is PASS, WARN or INVALID, and comes with the evidence in a sentence that holds the figures.
- A check that does not apply to a run gives no finding; one that applies always gives one, PASS included.
"""

from __future__ import annotations

from dataclasses import dataclass

PASS, WARN, INVALID = "PASS", "WARN", "INVALID"
SEVERITY = {PASS: 0, WARN: 1, INVALID: 2}


@dataclass(frozen=True)
class Finding:
    """The answer of one check about one target.

    Attributes
    ----------
    check : str
        The check's name, which is its file's.
    target : str
    verdict : str
        ``PASS``, ``WARN`` or ``INVALID``.
    evidence : str
        A sentence with the figures it rests on.
    mend : str
        What to do about it; empty for PASS.
    """

    check: str
    target: str
    verdict: str
    evidence: str
    mend: str = ""
