"""Is raidlab itself the bottleneck?

The same requests are run once more over members in memory, where nothing but raidlab's own work is left: the array's
planning, the parity kernels, the bookkeeping, and the copying of every byte, which a device does by itself. So what
that takes of a request's time in the measurement is an upper bound of what raidlab can have added to it; being a bound,
it can warn but cannot prove a result invalid.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.checks.finding import PASS, WARN, Finding
from raidlab.metrics import Analysis
from raidlab.study.expand import NULL

NAME = "generator_limited"
_WARN_SHARE = 0.05


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when raidlab's own cost can be more than 5 % of the measured time of a request."""
    rates = {
        (row["array"], row["workload"], row["depth"], row["rate_per_s"]): row["all_requests"] * 1e9 / row["elapsed_ns"]
        for row in analysis.run.cells.iter_rows(named=True)
        if row["target"] == NULL and row["elapsed_ns"]
    }
    shares = []
    for point in analysis.points:
        null_rate = rates.get((point.array, point.workload, point.depth, point.rate_per_s))
        if point.target == "live" and null_rate and point.total("all_requests"):
            shares.append((point.per_s("all_requests") / null_rate, null_rate, point))
    if not shares:
        return
    share, null_rate, point = max(shares, key=lambda found: found[0])
    above = sum(1 for found, _, _ in shares if found > _WARN_SHARE)
    evidence = (
        f"Over memory raidlab does {null_rate:,.0f} requests/s ({point.array}, {point.workload}), copying included;"
        f" {point.per_s('all_requests'):,.0f} were measured: its own work can be up to {min(share, 1.0):.0%} of a"
        f" request's time there, and more than {_WARN_SHARE:.0%} in {above} of {len(shares)} heaviest loads."
    )
    mend = "Read these figures as a lower bound of what the devices can do."
    yield Finding(NAME, "live", WARN if above else PASS, evidence, mend if above else "")
