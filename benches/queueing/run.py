"""The simulator against queueing theory, over long runs.

Purpose: a simulator that is wrong by a few percent looks right in every plot. One server with random arrivals and a
request that waits for the last of n servers can be worked out, so they show whether queues, clocks and averages are
right.

One server: exponential, constant and any service times (Erlang of four stages, hyperexponential of a squared
coefficient of variation of 4), utilisations 0.1 to 0.95; theory is exact. Fork-join: RAID 0 over n disks of exponential
service, requests of a whole stripe; exact for two disks, for more Nelson and Tantawi's approximation, whose error they
state as below 5 %.

A cell is run with seed after seed, each from empty and with a warm-up, until the 99 % interval of the mean response
time over runs is narrower than +-0.7 % (+-1 % for what is approximate). It holds if theory lies within +-1 % of the
mean, an interval of more than 99 %: at exactly 99 %, one cell in a hundred would fail by chance. Seeds are fixed, so a
cell that fails fails again.

    python benches/queueing/run.py [--only m_m_1,fork_join] [--jobs 2] [--quick]

Status 1 if a cell does not hold. It takes some minutes; `--quick` leaves out utilisations above 0.7.

Reference: L. Kleinrock, Queueing Systems, volume 1, 1975; R. Nelson and A. N. Tantawi, IEEE Transactions on Computers
37(6), 1988.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from raidlab.analysis.model import FORMS, cells
from raidlab.run.runner import run_request
from raidlab.stats.replications import mean_so_far

SERVICE_US = 1000.0
UTILISATIONS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.95)
FORK_JOIN_UTILISATIONS = (0.1, 0.5, 0.9)
DISKS = (2, 4, 8, 16, 32)
QUICK_UTILISATION = 0.7
CONFIDENCE = 0.99
# Theory must lie so near, in percent of the mean; and how narrow the interval of the mean is made for that.
EXACT_PERCENT, NARROW_PERCENT = 1.0, 0.7
STATED_PERCENT, STATED_NARROW_PERCENT = 5.0, 1.0
# Runs of a cell: looked at after every few, given up after many.
RUNS_A_LOOK, MOST_RUNS = 5, 400


@dataclass(frozen=True)
class Cell:
    """One system at one load: what theory says, and how near it must be."""

    form: str
    label: str
    predicted_us: float
    cell: dict[str, Any]
    allowed_percent: float
    narrow_percent: float

    @property
    def cost(self) -> int:
        """Accesses of one run, by which the longest are begun first."""
        return int(self.cell["measure"]["requests"]) * max(1, len(self.cell["tree"].get("children", [])))


@dataclass(frozen=True)
class Found:
    """What the runs of a cell gave."""

    mean_us: float
    half_percent: float
    requests: int
    seconds: float

    def holds(self, cell: Cell) -> bool:
        """Whether the interval is narrow enough and theory within what is allowed."""
        return self.half_percent <= cell.narrow_percent and abs(self.error_percent(cell)) <= cell.allowed_percent

    def error_percent(self, cell: Cell) -> float:
        """Theory beside the simulation, in percent of the simulation."""
        return 100 * (cell.predicted_us / self.mean_us - 1)


def one_server() -> list[Cell]:
    """The cells of one server."""
    servers = [
        ("m_m_1", "", cells.exponential(SERVICE_US), 1.0),
        ("m_d_1", "", cells.fixed(SERVICE_US), 0.0),
        ("m_g_1", "Erlang, cv2 0.25, ", cells.erlang(SERVICE_US, 4), 0.25),
        ("m_g_1", "H2, cv2 4, ", cells.hyperexponential(SERVICE_US, 4.0), 4.0),
    ]
    found = []
    for form, label, device, cv2 in servers:
        for rho in UTILISATIONS:
            rate = rho * 1e6 / SERVICE_US
            parameters = {"rate_per_s": rate, "service_us": SERVICE_US} | ({"cv2": cv2} if form == "m_g_1" else {})
            # As long as waits remember each other: a fixed number of those times a run.
            requests = int(12_500 * (1 + cv2) / (1 - rho) ** 2)
            cell = cells.cell(device, {"kind": "member"}, cells.poisson(rate), requests=requests)
            predicted = FORMS[form].value(**parameters)
            found.append(Cell(form, f"{label}utilisation {rho:g}", predicted, cell, EXACT_PERCENT, NARROW_PERCENT))
    return found


def fork_join() -> list[Cell]:
    """The cells of requests that need all of several disks."""
    found = []
    for disks in DISKS:
        for rho in FORK_JOIN_UTILISATIONS:
            rate, chunk = rho * 1e6 / SERVICE_US, 4096
            predicted = FORMS["fork_join"].value(disks=disks, rate_per_s=rate, service_us=SERVICE_US)
            cell = cells.cell(
                cells.exponential(SERVICE_US),
                cells.stripe(disks, chunk),
                cells.poisson(rate),
                size_bytes=disks * chunk,
                requests=int(5_000 / (1 - rho) ** 2),
            )
            exact = disks == 2
            allowed, narrow = (EXACT_PERCENT, NARROW_PERCENT) if exact else (STATED_PERCENT, STATED_NARROW_PERCENT)
            label = f"{disks} disks, utilisation {rho:g}"
            found.append(Cell("fork_join", label, predicted, cell, allowed, narrow))
    return found


def run(cell: Cell) -> Found:
    """Run after run of a cell until its interval is narrow, or there are too many."""
    begin, means, half = time.monotonic(), list[float](), float("inf")
    while half > cell.narrow_percent and len(means) < MOST_RUNS:
        for _ in range(RUNS_A_LOOK):
            seed = zlib.crc32(f"{cell.form} {cell.label} {len(means)}".encode())
            answer = run_request(json.dumps({**cell.cell, "seed": seed}))
            means.append(cells.mean_response_us(answer))
        found = mean_so_far(means, CONFIDENCE)
        half = found.half_width_percent or float("inf")
    requests = len(means) * int(cell.cell["measure"]["requests"])
    return Found(sum(means) / len(means), half, requests, time.monotonic() - begin)


def table(todo: Sequence[Cell], jobs: int) -> int:
    """Run the cells, print a line for each in its place; how many do not hold."""
    print(f"{'':<38}{'theory':>11}{'simulated':>11}{'99 % +-':>9}{'error':>9}{'allowed':>9}{'requests':>10}{'s':>6}")
    failed = 0
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        # The longest first, so that none is left to run alone at the end.
        running = {id(cell): pool.submit(run, cell) for cell in sorted(todo, key=lambda cell: -cell.cost)}
        for cell in todo:
            found = running[id(cell)].result()
            holds = found.holds(cell)
            failed += not holds
            print(
                f"{cell.form + ': ' + cell.label:<38}{cell.predicted_us:>9.1f}us{found.mean_us:>9.1f}us"
                f"{found.half_percent:>8.2f}%{found.error_percent(cell):>+8.2f}%{cell.allowed_percent:>8.1f}%"
                f"{found.requests / 1e6:>9.2f}M{found.seconds:>6.0f}  {'holds' if holds else 'FAILS'}",
                flush=True,
            )
    return failed


def main() -> int:
    """Compare, and say how it ended."""
    parser = argparse.ArgumentParser(description="The simulator against queueing theory, over long runs.")
    parser.add_argument("--only", default="m_m_1,m_d_1,m_g_1,fork_join", help="forms, separated by commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cells run at a time")
    parser.add_argument("--quick", action="store_true", help="only utilisations up to 0.7")
    arguments = parser.parse_args()
    forms = arguments.only.split(",")
    todo = [cell for cell in one_server() + fork_join() if cell.form in forms]
    if arguments.quick:
        todo = [cell for cell in todo if float(cell.label.rpartition(" ")[2]) <= QUICK_UTILISATION]
    if not todo:
        parser.error(f"--only {arguments.only}: accepted: m_m_1, m_d_1, m_g_1, fork_join")
    failed = table(todo, max(1, arguments.jobs))
    print(f"{len(todo) - failed} of {len(todo)} cells hold")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
