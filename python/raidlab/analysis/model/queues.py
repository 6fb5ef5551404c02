"""One server with random arrivals: M/M/1, M/D/1 and M/G/1, and several servers: M/M/c.

They bound what a disk in an open loop can do: with a real disk's service times M/G/1 is right as long as requests are
independent of each other and served in the order of arrival.

References: F. Pollaczek, 1930, and A. Khinchine, 1932, for M/G/1; A. K. Erlang, 1917, for M/M/c; all in L. Kleinrock,
*Queueing Systems*, volume 1, 1975, chapters 3 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from raidlab.analysis.model import cells
from raidlab.analysis.model.form import Argument, Case, Form
from raidlab.study.cell import Opaque

_RATE = Argument("rate_per_s", "arrivals a second")
_SERVICE = Argument("service_us", "mean service time")
_LOADS = (0.1, 0.5, 0.8, 0.95)


def utilisation(rate_per_s: float, service_us: float, servers: float = 1) -> float:
    """The share of time a server is busy; 1 and beyond is a `ValueError`, for the queue grows for ever."""
    rho = rate_per_s * service_us / 1e6 / servers
    if not 0 <= rho < 1:
        raise ValueError(f"a utilisation of {rho:.3g}: below 1 is needed, beyond it the queue grows for ever")
    return rho


def m_g_1_response_us(rate_per_s: float, service_us: float, cv2: float) -> float:
    """Mean response time of M/G/1 in microseconds, by Pollaczek and Khinchine.

    ``cv2`` is the squared coefficient of variation of service times: 0 constant, 1 exponential.
    """
    if cv2 < 0:
        raise ValueError(f"cv2 = {cv2}: at least 0 is needed")
    rho = utilisation(rate_per_s, service_us)
    return service_us * (1 + rho * (1 + cv2) / (2 * (1 - rho)))


def m_m_1_response_us(rate_per_s: float, service_us: float) -> float:
    """Mean response time of M/M/1, in microseconds."""
    return service_us / (1 - utilisation(rate_per_s, service_us))


def m_d_1_response_us(rate_per_s: float, service_us: float) -> float:
    """Mean response time of M/D/1, in microseconds."""
    return m_g_1_response_us(rate_per_s, service_us, 0.0)


def m_m_c_response_us(rate_per_s: float, service_us: float, servers: float) -> float:
    """Mean response time of M/M/c by Erlang's C formula, in microseconds."""
    count = int(servers)
    if count != servers or count < 1:
        raise ValueError(f"servers = {servers:g}: a whole number of at least 1 is needed")
    rho = utilisation(rate_per_s, service_us, count)
    offered = rho * count
    # Erlang's B by its recursion, which never overflows; C from B.
    blocked = 1.0
    for k in range(1, count + 1):
        blocked = offered * blocked / (k + offered * blocked)
    waits = blocked / (1 - rho * (1 - blocked))
    return service_us * (1 + waits / (count * (1 - rho)))


def _single(kind: str, device: Opaque, service_us: float, cv2: float = 1.0) -> Iterator[Case]:
    for rho in _LOADS:
        rate = rho * 1e6 / service_us
        # The error of a mean grows as the load nears 1, and with the variation: so must the number of requests.
        requests = int(200_000 * (1 + cv2) / (1 - rho))
        cell = cells.cell(device, {"kind": "member"}, cells.poisson(rate), requests=requests)
        parameters = {"rate_per_s": rate, "service_us": service_us}
        extra = {"cv2": cv2} if kind == "m_g_1" else {}
        yield Case(f"utilisation {rho:g}", {**parameters, **extra}, cell, cells.mean_response_us)


def _many() -> Iterator[Case]:
    for servers in (2, 8):
        device = {**cells.exponential(1000.0), "servers": servers}
        for rho in _LOADS[1:]:
            rate = rho * 1e3 * servers
            cell = cells.cell(device, {"kind": "member"}, cells.poisson(rate), requests=int(400_000 / (1 - rho)))
            parameters = {"rate_per_s": rate, "service_us": 1000.0, "servers": float(servers)}
            yield Case(f"{servers} servers, utilisation {rho:g}", parameters, cell, cells.mean_response_us)


FORMS = (
    Form(
        "m_m_1",
        "mean response time of one server, exponential service times",
        "us",
        "Kleinrock 1975, chapter 3",
        "Poisson arrivals, exponential service times, first come first served.",
        (_RATE, _SERVICE),
        m_m_1_response_us,
        lambda: _single("m_m_1", cells.exponential(1000.0), 1000.0),
    ),
    Form(
        "m_d_1",
        "mean response time of one server, constant service time",
        "us",
        "Kleinrock 1975, chapter 5",
        "Poisson arrivals, constant service time, first come first served.",
        (_RATE, _SERVICE),
        m_d_1_response_us,
        lambda: _single("m_d_1", cells.fixed(1000.0), 1000.0),
    ),
    Form(
        "m_g_1",
        "mean response time of one server, any service times",
        "us",
        "Pollaczek 1930, Khinchine 1932; Kleinrock 1975, chapter 5",
        "Poisson arrivals, independent service times of any distribution, first come first served.",
        (_RATE, _SERVICE, Argument("cv2", "squared coefficient of variation of service times")),
        m_g_1_response_us,
        lambda: _single("m_g_1", cells.hyperexponential(1000.0, 4.0), 1000.0, 4.0),
    ),
    Form(
        "m_m_c",
        "mean response time of several servers with one queue, exponential service times",
        "us",
        "Erlang 1917; Kleinrock 1975, chapter 3",
        "Poisson arrivals, exponential service times, one queue, first come first served.",
        (_RATE, _SERVICE, Argument("servers", "how many")),
        m_m_c_response_us,
        _many,
    ),
)


def harmonic(n: int) -> float:
    """1 + 1/2 + ... + 1/n: the mean of the longest of n exponential times, in units of their mean."""
    return math.fsum(1 / k for k in range(1, n + 1))
