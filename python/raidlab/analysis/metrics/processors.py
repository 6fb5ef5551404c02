"""How much of the host's processors a load takes, and for what: parity, or requests; and what one request costs.

In the simulator it is what the station of the host's processors did, with the part of it that was parity; on real
members the time of raidlab's own threads, user and system, over all processors of the machine, of which nobody tells
apart what was parity: there, a level with parity is set beside one without. Work that the kernel does in threads of its
own (md's, a loop device's, a file system's) is not in it; it has a metric of its own, and so has the whole machine,
other programs included.
"""

from __future__ import annotations

from raidlab.analysis.metrics.metric import Metric
from raidlab.analysis.metrics.point import Point

NS_PER_US = 1000
# As the simulator calls them (`raidlab_sim::HOST_CPU`, `HOST_PARITY`).
HOST_CPU, HOST_PARITY = "host cpu", "host cpu: parity"


def host_cpu_percent(point: Point) -> float | None:
    """The share of all processors' time; None where nothing was charged to them, or counted."""
    simulated = _station_percent(point, HOST_CPU)
    if simulated is not None:
        return simulated
    spent = [point.counted(column) for column in ("cpu_user_ns", "cpu_system_ns")]
    cpus, elapsed_ns = point.run.facts["host"]["cpus"], point.total("elapsed_ns")
    if None in spent or not cpus or not elapsed_ns:
        return None
    return 100 * sum(one or 0.0 for one in spent) / (float(cpus) * elapsed_ns)


def host_parity_percent(point: Point) -> float | None:
    """The part of it that was parity; None where nobody tells it apart."""
    if _station_percent(point, HOST_CPU) is None:
        return None
    return _station_percent(point, HOST_PARITY) or 0.0


def host_requests_percent(point: Point) -> float | None:
    """The rest of it: requests, accesses, their completions, copies."""
    parity, whole = host_parity_percent(point), host_cpu_percent(point)
    return None if parity is None or whole is None else whole - parity


def machine_percent(point: Point, column: str) -> float | None:
    """A column of the machine's time, as a share of all processors' time; None where nobody tells."""
    spent, cpus, elapsed_ns = point.counted(column), point.run.facts["host"]["cpus"], point.total("elapsed_ns")
    return None if spent is None or not cpus or not elapsed_ns else 100 * spent / (float(cpus) * elapsed_ns)


def _station_percent(point: Point, name: str) -> float | None:
    rows = [point.run.station_rows.get((cell, name)) for cell in point.cells]
    elapsed_ns = point.total("elapsed_ns")
    known = [row for row in rows if row is not None]
    if not known or not elapsed_ns:
        return None
    busy_ns = float(sum(row["busy_ns"] or 0 for row in known))
    return 100 * busy_ns / ((known[0]["servers"] or 1) * elapsed_ns)


def counted_per_request(point: Point, *columns: str) -> float | None:
    """What these columns of raidlab's own threads add up to, a request; None where one of them was not counted."""
    counts = [point.counted(column) for column in columns]
    requests = point.total("all_requests")
    if not requests or any(count is None for count in counts):
        return None
    return sum(count for count in counts if count is not None) / requests


def processor_time_us(point: Point, column: str) -> float | None:
    """A column of processor time a request, in microseconds; None where it was not counted."""
    spent_ns = counted_per_request(point, column)
    return None if spent_ns is None else spent_ns / NS_PER_US


def _a_request(kind: str, title: str, column: str, whose: str) -> Metric:
    return Metric(
        kind=kind,
        title=title,
        unit="us",
        meaning=f"processor time of {whose}, divided by the requests completed",
        compute=lambda point, reference: processor_time_us(point, column),
    )


def _of_machine(kind: str, title: str, column: str, what: str) -> Metric:
    return Metric(
        kind=kind,
        title=title,
        unit="%",
        meaning=f"share of this machine's processors that {what}",
        compute=lambda point, reference: machine_percent(point, column),
    )


METRICS = (
    Metric(
        kind="host_cpu_percent",
        title="processors",
        unit="%",
        meaning="share of the host's processors that was busy; on real members with raidlab's own threads",
        compute=lambda point, reference: host_cpu_percent(point),
    ),
    Metric(
        kind="host_parity_percent",
        title="processors, parity",
        unit="%",
        meaning="the part of host_cpu_percent that computed parity; simulator only",
        compute=lambda point, reference: host_parity_percent(point),
    ),
    Metric(
        kind="host_requests_percent",
        title="processors, requests",
        unit="%",
        meaning="the rest of host_cpu_percent: requests, accesses and their completions, copies; simulator only",
        compute=lambda point, reference: host_requests_percent(point),
    ),
    _a_request("cpu_user_per_request_us", "user CPU a request", "cpu_user_ns", "raidlab's threads in their own code"),
    _a_request("cpu_system_per_request_us", "system CPU a request", "cpu_system_ns", "raidlab's threads in the kernel"),
    _of_machine(
        "machine_cpu_percent",
        "processors, all programs",
        "machine_busy_ns",
        "was busy, whoever for: raidlab, the kernel, other programs",
    ),
    _of_machine(
        "kernel_threads_cpu_percent",
        "processors, kernel threads",
        "kernel_threads_ns",
        "the kernel's own threads took: md's, a file system's, workers",
    ),
    _a_request(
        "kernel_threads_cpu_per_request_us", "kernel threads a request", "kernel_threads_ns", "the kernel's own threads"
    ),
    Metric(
        kind="context_switches_per_request",
        title="context switches a request",
        unit="1",
        meaning="context switches of raidlab's threads, divided by the requests completed",
        compute=lambda point, reference: counted_per_request(point, "voluntary_switches", "involuntary_switches"),
    ),
)
