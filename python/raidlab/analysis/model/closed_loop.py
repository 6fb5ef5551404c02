"""How busy the disks of an array are when a fixed number of requests is outstanding.

For requests of one disk each the answer is exact with exponential service times: the closed network of N equal queues,
whose utilisation is L / (L + N - 1). Lee and Katz write it as 1 / (1 + (1/L)(1/p - 1 + gamma)), with p the chance that
a request needs a given disk, and gamma for what is lost because a request waits for the last of its disks.

Their gamma is fitted to simulations; ours follows from the case that can be solved by hand, one request outstanding:
then a disk is busy for p of a service time in every longest-of-n, so gamma = (max/mean - 1) / p.

Reference: E. K. Lee, R. H. Katz, *An Analytic Performance Model of Disk Arrays*, SIGMETRICS 1993. The form is theirs,
the value of gamma is not.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.model import cells
from raidlab.analysis.model.form import Argument, Case, Form
from raidlab.analysis.model.queues import harmonic

_CHUNK_BYTES = 4096


def utilisation(disks: float, outstanding: float, disks_a_request: float = 1.0) -> float:
    """Mean utilisation of the disks, 0 to 1, with so many requests outstanding; each needs some disks at once."""
    if not (disks >= 1 and outstanding >= 1 and 1 <= disks_a_request <= disks):
        raise ValueError("at least one disk and one request are needed, and a request of 1 to all disks")
    p = disks_a_request / disks
    gamma = (harmonic(round(disks_a_request)) - 1) / p
    return 1 / (1 + (1 / p - 1 + gamma) / outstanding)


def _cases() -> Iterator[Case]:
    for disks, needed in ((4, 1), (10, 1), (10, 2), (10, 5), (10, 10)):
        for depth in (1, 8, 64):
            cell = cells.cell(
                cells.exponential(1000.0),
                cells.stripe(disks, _CHUNK_BYTES),
                cells.closed(depth),
                size_bytes=needed * _CHUNK_BYTES,
                requests=60_000,
            )
            parameters = {"disks": float(disks), "outstanding": float(depth), "disks_a_request": float(needed)}
            yield Case(f"{needed} of {disks} disks, {depth} outstanding", parameters, cell, cells.mean_utilisation)


FORMS = (
    Form(
        "lee_katz",
        "mean utilisation of an array's disks with so many requests outstanding",
        "of 1",
        "Lee and Katz 1993 (form); gamma exact for one request outstanding, ours",
        "Closed loop over equal disks, requests spread evenly; exact for one disk a request and exponential service.",
        (
            Argument("disks", "disks of the array"),
            Argument("outstanding", "requests in flight"),
            Argument("disks_a_request", "disks that each request needs at once", 1.0),
        ),
        utilisation,
        _cases,
    ),
)
