"""A request split over several disks is done when the last of them is: fork-join queues.

The two-disk case is exact (Flatto and Hahn 1984); Nelson and Tantawi scale it to more disks and give an error below 5 %
for up to 32.

Reference: R. Nelson, A. N. Tantawi, *Approximate Analysis of Fork/Join Synchronization in Parallel Queues*, IEEE
Transactions on Computers 37(6), 1988.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.model import cells
from raidlab.analysis.model.form import Argument, Case, Form
from raidlab.analysis.model.queues import harmonic, utilisation

_CHUNK_BYTES = 4096


def response_us(disks: float, rate_per_s: float, service_us: float) -> float:
    """Mean response time in us of Poisson requests that each visit all of 2 to 32 disks; service is exponential."""
    n = int(disks)
    if n != disks or not 2 <= n <= 32:
        raise ValueError(f"disks = {disks:g}: a whole number from 2 to 32 is needed")
    rho = utilisation(rate_per_s, service_us)
    ratio = harmonic(n) / harmonic(2)
    two = (1.5 - rho / 8) * service_us / (1 - rho)
    return (ratio + (1 - ratio) * 4 * rho / 11) * two


def _cases() -> Iterator[Case]:
    for disks in (2, 4, 8, 16):
        for rho in (0.1, 0.5, 0.9):
            cell = cells.cell(
                cells.exponential(1000.0),
                cells.stripe(disks, _CHUNK_BYTES),
                cells.poisson(rho * 1e3),
                size_bytes=disks * _CHUNK_BYTES,
                requests=int(60_000 / (1 - rho)),
            )
            parameters = {"disks": float(disks), "rate_per_s": rho * 1e3, "service_us": 1000.0}
            yield Case(f"{disks} disks, utilisation {rho:g}", parameters, cell, cells.mean_response_us)


FORMS = (
    Form(
        "fork_join",
        "mean response time of requests that need all of several disks",
        "us",
        "Nelson and Tantawi 1988, equation for K servers",
        "Poisson arrivals, independent exponential service times, 2 to 32 disks; stated error below 5 %.",
        (
            Argument("disks", "how many each request needs"),
            Argument("rate_per_s", "requests a second"),
            Argument("service_us", "mean service time of a disk"),
        ),
        response_us,
        _cases,
    ),
)
