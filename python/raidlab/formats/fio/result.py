"""Read the results that fio 3 writes as JSON (``--output-format=json`` or ``json+``) into raidlab's words.

Invariants:

- fio's times count from submission, so they are *service* times here, never response times: an open loop of fio's does
  not tell how late a request was offered.
- Times of several jobs or directions are only put together where fio gave whole histograms (``json+``); percentiles are
  never averaged.
- Trims are counted apart and are in no sum.

Reference: fio's HOWTO, "JSON+ output". A histogram of fio's has 64 buckets to a power of two; a value is the lower end
of its bucket, so a percentile is up to 1.6 % low.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from raidlab.errors import InputError
from raidlab.histogram import Histogram

_ACCEPTED = "the output of fio 3 with --output-format=json or json+"


@dataclass(frozen=True)
class FioDirection:
    """What one job did in one direction."""

    requests: int = 0
    bytes: int = 0
    elapsed_ns: int = 0
    """How long it ran; fio keeps whole milliseconds."""
    service_mean_ns: float | None = None
    service_percentiles_ns: dict[float, int] = field(default_factory=dict)
    """Percentile to time, as far as fio printed them."""
    service: Histogram | None = None
    """Only with ``json+``."""

    @property
    def iops(self) -> float:
        """Requests a second."""
        return self.requests / (self.elapsed_ns / 1e9) if self.elapsed_ns else 0.0

    @property
    def throughput_mb_s(self) -> float:
        """Megabytes (10^6) a second."""
        return self.bytes / 1e6 / (self.elapsed_ns / 1e9) if self.elapsed_ns else 0.0

    def percentile_ns(self, percentile: float) -> int | None:
        """A percentile of service time: from the histogram where there is one, else as fio printed it."""
        if self.service is not None:
            return self.service.percentile_ns(percentile)
        return self.service_percentiles_ns.get(percentile)


@dataclass(frozen=True)
class FioJob:
    """One job of a result (one group of clones where fio reported them together)."""

    name: str
    group: int
    error: int
    read: FioDirection
    write: FioDirection
    trims: int
    user_cpu_percent: float
    system_cpu_percent: float
    context_switches: int
    options: dict[str, str]

    @property
    def all(self) -> FioDirection:
        """Reads and writes together."""
        return together([self.read, self.write])


@dataclass(frozen=True)
class FioResult:
    """A run of fio's."""

    version: str
    """``fio-3.33``."""
    jobs: tuple[FioJob, ...]

    @property
    def all(self) -> FioDirection:
        """All jobs together, as if they ran at once: so for a file without ``stonewall``."""
        return together([direction for job in self.jobs for direction in (job.read, job.write)])


def parse_result(text: str, source: str = "fio's output") -> FioResult:
    """Read what fio 3 wrote; lines before the JSON (its warnings) are passed over. Errors call it ``source``."""
    try:
        document = json.loads(text[_begin(text) :])
        version = str(document["fio version"])
        if not version.startswith("fio-3"):
            message = "its times have other units"
            raise InputError.one("fio version", message, value=version, accepted="fio-3", file=source)
        # A client of fio's servers says the same under another name.
        jobs = document["jobs"] if "jobs" in document else document["client_stats"]
        return FioResult(version, tuple(_job(job) for job in jobs))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        missing = f"has no {error}" if isinstance(error, KeyError) else f"is not a result of fio's: {error}"
        raise InputError.one("", missing, accepted=_ACCEPTED, file=source) from None


def together(parts: list[FioDirection]) -> FioDirection:
    """Several directions or jobs that ran at once, as one."""
    busy = [part for part in parts if part.requests]
    if not busy:
        return FioDirection(elapsed_ns=max((part.elapsed_ns for part in parts), default=0))
    if len(busy) == 1:
        return busy[0]
    requests = sum(part.requests for part in busy)
    means = [part.service_mean_ns for part in busy]
    known = [part.service for part in busy if part.service is not None]
    return FioDirection(
        requests,
        sum(part.bytes for part in busy),
        max(part.elapsed_ns for part in busy),
        None if None in means else sum((part.service_mean_ns or 0.0) * part.requests for part in busy) / requests,
        {},
        Histogram.merged(known) if len(known) == len(busy) else None,
    )


def _begin(text: str) -> int:
    """Where the JSON begins: the first line that opens a brace."""
    place = 0 if text.startswith("{") else text.find("\n{") + 1
    if not text[place : place + 1] == "{":
        raise ValueError("there is no JSON in it")
    return place


def _job(job: dict[str, Any]) -> FioJob:
    return FioJob(
        name=str(job["jobname"]),
        group=int(job.get("groupid", 0)),
        error=int(job.get("error", 0)),
        read=_direction(job["read"]),
        write=_direction(job["write"]),
        trims=int(job.get("trim", {}).get("total_ios", 0)),
        user_cpu_percent=float(job.get("usr_cpu", 0.0)),
        system_cpu_percent=float(job.get("sys_cpu", 0.0)),
        context_switches=int(job.get("ctx", 0)),
        options={str(name): str(value) for name, value in job.get("job options", {}).items()},
    )


def _direction(part: dict[str, Any]) -> FioDirection:
    # `lat` is submission and completion together; without lat_percentiles only `clat` has percentiles.
    total, completion = part.get("lat_ns", {}), part.get("clat_ns", {})
    having = total if "percentile" in total or "bins" in total else completion
    return FioDirection(
        requests=int(part["total_ios"]),
        bytes=int(part["io_bytes"]),
        elapsed_ns=int(part["runtime"]) * 10**6,
        service_mean_ns=float(total["mean"]) if "mean" in total else None,
        service_percentiles_ns={
            float(percentile): int(value) for percentile, value in having.get("percentile", {}).items()
        },
        service=_histogram(having.get("bins")),
    )


def _histogram(bins: dict[str, int] | None) -> Histogram | None:
    if not bins:
        return None
    ordered = sorted((int(value), int(count)) for value, count in bins.items())
    return Histogram.of({"value_ns": [value for value, _ in ordered], "count": [count for _, count in ordered]})
