"""What each load cost: processors, by who worked, and energy; nothing is said where nothing is known.

Invariant: nothing is worked out here but wording and rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from raidlab.analysis.metrics import Analysis, Point

# Who worked most, by name.
_MOST_THREADS = 3
_PERCENTS = ("host_cpu_percent", "kernel_threads_cpu_percent", "machine_cpu_percent")
_ENERGIES = ("disk_power_watts", "disk_energy_per_request_mj", "processor_energy_per_request_mj")
# The heads of their columns: metrics' own titles are longer than a table of so many is wide.
_HEADS = {
    "host_cpu_percent": "raidlab, %",
    "kernel_threads_cpu_percent": "kernel threads, %",
    "machine_cpu_percent": "all programs, %",
    "disk_power_watts": "disks, W",
    "disk_energy_per_request_mj": "disks, mJ a request",
    "processor_energy_per_request_mj": "processors, mJ a request",
}


@dataclass(frozen=True)
class CostRow:
    """What one load of an array cost."""

    target: str
    array: str
    workload: str
    level: str
    values: dict[str, float | None]
    threads: str
    """The kernel's busiest threads by name, with their share of the processors."""


@dataclass(frozen=True)
class Costs:
    """What a run cost, load by load, and which columns have anything in them."""

    rows: list[CostRow]
    kinds: tuple[str, ...]
    """Of the metrics that are shown, those that are known of any load."""

    @property
    def heads(self) -> dict[str, str]:
        """The head of each column, by metric."""
        return {kind: _HEADS[kind] for kind in self.kinds}


def costs_of(analysis: Analysis) -> Costs | None:
    """What a run cost, its heaviest loads only; None where the machine was not watched, and no device says its watts.

    Processors are those of real runs: what a simulator charges to a modelled host stands with the data path.
    """
    heaviest: dict[tuple[str, str, str], tuple[Point, dict[str, float | None]]] = {}
    for index, point in enumerate(analysis.points):
        key = (point.target, point.array, point.workload)
        if point.is_swept and (key not in heaviest or point.level_value >= heaviest[key][0].level_value):
            heaviest[key] = (point, analysis.values[index])
    rows = [
        CostRow(point.target, point.array, point.workload, point.level, values, _threads(point))
        for point, values in heaviest.values()
        if any(values[kind] is not None for kind in (*_PERCENTS[1:], *_ENERGIES))
    ]
    kinds = tuple(kind for kind in (*_PERCENTS, *_ENERGIES) if any(row.values[kind] is not None for row in rows))
    return Costs(rows, kinds) if rows else None


def _threads(point: Point) -> str:
    cpus, elapsed_ns = point.run.facts["host"]["cpus"], point.total("elapsed_ns")
    mine = point.rows_of("kernel_threads")
    if mine.is_empty() or not cpus or not elapsed_ns:
        return ""
    by_name = mine.group_by("thread").agg(pl.col("cpu_ns").sum()).sort("cpu_ns", "thread", descending=[True, False])
    shares = [(name, 100 * ns / (cpus * elapsed_ns)) for name, ns in by_name.head(_MOST_THREADS).iter_rows()]
    return ", ".join(f"{name} {share:.1f} %" for name, share in shares if share >= 0.05)


def cost_sentence(costs: Costs, target: str) -> str:
    """What a target cost at its heaviest load, in a sentence; empty where that is not known."""
    known = [row for row in costs.rows if row.target == target and row.values["machine_cpu_percent"] is not None]
    if not known:
        return ""
    most = max(known, key=lambda row: row.values["machine_cpu_percent"] or 0.0)
    own, kernel, whole = (most.values[kind] for kind in _PERCENTS)
    said = [f"raidlab {own:.0f} %"] if own is not None else []
    said += [f"the kernel's own threads {kernel:.0f} %{f' ({most.threads})' if most.threads else ''}"] if kernel else []
    said += [f"all programs {whole:.0f} %"] if whole is not None else []
    return f"Of this machine's processors, at most ({most.array}, {most.workload}, {most.level}): {', '.join(said)}."
