"""How hard and how long a job runs, in the words of a cell.

Invariants:

- A job without a rate is a closed loop of its depth; one with a rate is an open loop that keeps at most its depth in
  flight, which is what fio does when it falls behind.
- Loads of the clones of a job add up: depths and rates of a cell are those of all its workers together.
"""

from __future__ import annotations

from dataclasses import dataclass

from raidlab.errors import Problem
from raidlab.formats.fio.options import Job
from raidlab.formats.fio.values import WAITING_ENGINES
from raidlab.study.cell import (
    CellLoad,
    ClosedLoad,
    HeldLoad,
    Limit,
    OpenLoad,
    PoissonArrival,
    UniformArrival,
)


@dataclass(frozen=True)
class JobLoad:
    """The load of one clone: a depth, and a rate of arrivals or a percentile to be held."""

    depth: int
    rate_per_s: float | None = None
    arrival: str = "uniform"
    held_ns: int | None = None
    percentile: float = 0.0

    def times(self, clones: int) -> CellLoad:
        """The load of so many clones together."""
        depth = self.depth * clones
        if self.held_ns is not None:
            return HeldLoad(percentile=self.percentile, target=self.held_ns, initial_depth=clones, max_depth=depth)
        if self.rate_per_s is None:
            return ClosedLoad(depth=depth)
        arrival = PoissonArrival if self.arrival == "poisson" else UniformArrival
        return OpenLoad(arrival=arrival(rate_per_s=self.rate_per_s * clones), max_in_flight=depth)


def depth_of(job: Job) -> int:
    """What one clone keeps in flight: engines that wait for each request have one, whatever iodepth says."""
    return 1 if job.ioengine in WAITING_ENGINES else job.iodepth


def load_of(job: Job, mean_bytes: float, least_bytes: int) -> JobLoad | Problem:
    """The load of one clone of a job with requests of these sizes: fio turns ``rate_iops`` to bytes with the least."""
    depth = depth_of(job)
    given = [(option, rate) for option, rate in (("rate", job.rate), ("rate_iops", job.rate_iops)) if rate is not None]
    if job.latency_target_ns is not None:
        if given:
            return job.problem(given[0][0], "a job either keeps a rate or holds a percentile", "one of them")
        if job.latency_percentile == 100.0:
            message = "raidlab holds a percentile within a time, not all requests"
            return job.problem("latency_target_ns", message, "with latency_percentile=... below 100")
        return JobLoad(depth, held_ns=job.latency_target_ns, percentile=job.latency_percentile)
    if not given:
        return JobLoad(depth)
    if len(given) > 1:
        return job.problem("rate_iops", "fio takes either rate or rate_iops", "one of them")
    option, rate = given[0]
    wanted = [value for value, way in ((rate.read, job.rw.reads), (rate.write, job.rw.writes)) if way]
    paced = [value for value in wanted if value is not None]
    if not paced:
        return JobLoad(depth)
    if len(paced) < len(wanted):
        message = "reads and writes of one job are either both paced or both not"
        return job.problem(option, message, "a rate for both directions, or a job for each")
    share = paced[0] / sum(paced)
    if len(paced) == 2 and abs(share - job.rwmixread / 100) > 0.005:
        # fio paces each direction by itself, so that the rates and not rwmixread decide the mix.
        message = f"these rates make {share:.0%} of the requests reads, and rwmixread is {job.rwmixread} %"
        return job.problem(option, message, "rates that agree with rwmixread, or a job for each direction")
    total = sum(paced)
    per_s = total / mean_bytes if option == "rate" else total * least_bytes / mean_bytes
    return JobLoad(depth, per_s, "poisson" if job.rate_process == "poisson" else "uniform")


def amounts(job: Job, bytes_each: int, mean_bytes: float, clones: int, most_ns: int | None) -> tuple[Limit, Limit]:
    """When measuring ends and when it begins: ``measure`` and ``warmup`` of a cell of so many clones.

    Each clone goes through ``bytes_each``; neither lasts longer than ``most_ns``.
    """
    runtime_ns = job.runtime_ns
    requests = None
    if not (job.time_based and runtime_ns):
        wanted = bytes_each if job.io_size is None else job.io_size.of(bytes_each)
        requests = max(int(wanted * job.loops * clones / mean_bytes), 1)
    if most_ns is not None:
        runtime_ns = min(runtime_ns or most_ns, most_ns)
    ramp_ns = job.ramp_time_ns if most_ns is None else min(job.ramp_time_ns, most_ns)
    return Limit(requests=requests, duration=runtime_ns or None), Limit(duration=ramp_ns or None)
