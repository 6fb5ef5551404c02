"""What a load costs in energy: that of the modelled disks by what they draw, and of real processors by their counters.

The two are not the same thing, so they are two metrics. A modelled disk draws ``idle_watts`` of its file all the time,
and for the share of it that it was busy the difference to ``active_watts``; which of several parts of a flash drive
worked is not told apart, so its busiest part stands for all. Real processors count by themselves (RAPL), whoever they
worked for.

Invariant: where nothing says what a device draws, or nobody counts, there is no figure, and never 0.
"""

from __future__ import annotations

import polars as pl

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point
from raidlab.analysis.metrics.utilisation import FLASH_PARTS
from raidlab.results.facts import DevicePower
from raidlab.study.words import is_simulated

MJ_PER_J = 1000.0
UJ_PER_MJ = 1000.0


def power_of(point: Point) -> DevicePower | None:
    """What each of a point's modelled members draws; None where its file does not say, or it is no model."""
    facts = point.run.facts
    if not (is_simulated(point.target) or point.target == "emulated"):
        return None
    own = facts.get("array_sheets", {}).get(point.array)
    sheet = own if point.array in facts.get("array_devices", {}) else facts.get("sheets", {}).get(point.target)
    return None if sheet is None else sheet.get("power")


def disk_power_watts(point: Point) -> float | None:
    """The mean power of all members together."""
    power, elapsed_ns = power_of(point), point.total("elapsed_ns")
    if power is None or not elapsed_ns:
        return None
    rows = point.rows_of("members").filter(pl.col("busy_ns").is_not_null())
    if rows.is_empty():
        return None
    busy_ns = rows.select(_busy_ns().sum()).item()
    idle, active = power["idle_watts"], power["active_watts"]
    # A member that is not there draws nothing.
    members = len(set(rows["leaf"]) - set(point.missing))
    return float(members * idle + (active - idle) * busy_ns / elapsed_ns)


def _busy_ns() -> pl.Expr:
    """For how long a member was busy: a disk, or the busiest part of a flash drive."""
    of_flash = pl.max_horizontal(*FLASH_PARTS)
    of_others = pl.col("busy_ns") / pl.col("servers").fill_null(1)
    return pl.coalesce(of_flash, of_others)


def disk_energy_per_request_mj(point: Point) -> float | None:
    """The energy of all members over the requests completed."""
    watts, requests = disk_power_watts(point), point.total("all_requests")
    if watts is None or not requests:
        return None
    return watts * point.total("elapsed_ns") / 1e9 / requests * MJ_PER_J


def processor_energy_per_request_mj(point: Point) -> float | None:
    """The energy that the processors counted over the requests completed."""
    energy_uj, requests = point.counted("energy_uj"), point.total("all_requests")
    return None if energy_uj is None or not requests else energy_uj / UJ_PER_MJ / requests


METRICS = (
    Metric(
        kind="disk_power_watts",
        title="power of the disks",
        unit="W",
        meaning="what the modelled disks draw on average, by the watts of their file and how busy they were",
        compute=lambda point, reference: disk_power_watts(point),
    ),
    Metric(
        kind="disk_energy_per_request_mj",
        title="disk energy a request",
        unit="mJ",
        meaning="energy of the modelled disks, idle time included, divided by the requests completed",
        compute=lambda point, reference: disk_energy_per_request_mj(point),
    ),
    Metric(
        kind="processor_energy_per_request_mj",
        title="processor energy a request",
        unit="mJ",
        meaning="energy of this machine's processors by their own counters (RAPL), whoever they worked for, divided by "
        "the requests completed",
        compute=lambda point, reference: processor_energy_per_request_mj(point),
    ),
)
