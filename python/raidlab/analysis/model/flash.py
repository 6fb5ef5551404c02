"""How much a flash drive writes for each byte that it is given: write amplification in the steady state.

Both forms are for uniform random writes of single pages to a drive whose flash is ``spare_factor`` times what the data
need. Blocks that are erased or being filled count in neither.

First in, first out. A page that was written survives one round of the queue of blocks with a chance of exp(-a/A), a
the spare factor and A the write amplification, for a/A pages of the host's are written for each page of data meanwhile.
What survives is moved: 1 - 1/A = exp(-a/A). Solved for A it is a / (a + W(-a exp(-a))) with Lambert's W.

Greedy. Blocks lose pages in proportion to what they hold, one at a time, and are cleaned when they hold x - 1 of n. In
equilibrium there are n/i blocks that hold i pages for each that holds n; pages and blocks add up to what there is only
if a (n - x + 1)/n = ln((n + 1/2)/(x - 1/2)). Then A = n / (n - (x - 1)). For long blocks both forms meet.

Reference: P. Desnoyers, *Analytic Modeling of SSD Write Performance*, SYSTOR 2012, for both. The first is also in
L. Xiang and B. Kurkoski, *An Improved Analytical Expression for Write Amplification in NAND Flash*, ICNC 2012.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from raidlab.analysis.model import cells
from raidlab.analysis.model.form import Argument, Case, Form

_BLOCKS = 400


def fifo(spare_factor: float) -> float:
    """Write amplification when the block filled first is cleaned first; the spare factor is flash over user data."""
    alpha = _checked(spare_factor)
    return _root(lambda a: 1 - 1 / a - math.exp(-alpha / a), 1.0, 1e6)


def greedy(spare_factor: float, units_per_block: float) -> float:
    """Write amplification when the block that holds least is cleaned first.

    The spare factor is flash over user data; a block has so many pages, or mapping units if those are smaller.
    """
    alpha, n = _checked(spare_factor), units_per_block
    if not (n >= 2 and n == int(n)):
        raise ValueError(f"units_per_block = {n:g}: a whole number of at least 2 is needed")
    x = _root(lambda x: alpha * (n - x + 1) / n - math.log((n + 0.5) / (x - 0.5)), 0.5 + 1e-12, n)
    return n / (n - (x - 1))


def _checked(spare_factor: float) -> float:
    if not 1.001 <= spare_factor <= 100:
        raise ValueError(f"spare_factor = {spare_factor:g}: from 1.001 to 100 is needed")
    return spare_factor


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that is negative at `low` and positive at `high` crosses zero."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return (low + high) / 2


def _cases(victim: str) -> Iterator[Case]:
    for pages in (32, 64, 128, 256):
        for spare_percent in (5, 7, 10, 15, 25, 50):
            device = cells.flash(pages, _BLOCKS, spare_percent, victim)
            parameters = {"spare_factor": 1 + spare_percent / 100}
            if victim == "greedy":
                parameters["units_per_block"] = float(pages)
            writes = max(100_000, 2 * _BLOCKS * pages)
            cell = cells.cell(device, cells.MEMBER, cells.closed(32), read_fraction=0.0, requests=writes)
            yield Case(f"{pages} pages a block, {spare_percent} % spare", parameters, cell, cells.write_amplification)


_SPARE = Argument("spare_factor", "flash over user data, 1.1 for 10 % of spare")

FORMS = (
    Form(
        "flash_fifo",
        "write amplification of a flash drive that cleans its oldest block",
        "1",
        "Desnoyers 2012; Xiang and Kurkoski 2012",
        "Uniform random writes of single mapping units in the steady state, many blocks.",
        (_SPARE,),
        fifo,
        lambda: _cases("fifo"),
    ),
    Form(
        "flash_greedy",
        "write amplification of a flash drive that cleans the block which holds least",
        "1",
        "Desnoyers 2012",
        "Uniform random writes of single mapping units in the steady state, many blocks.",
        (_SPARE, Argument("units_per_block", "mapping units (pages, where those are not smaller) of a block")),
        greedy,
        lambda: _cases("greedy"),
    ),
)
