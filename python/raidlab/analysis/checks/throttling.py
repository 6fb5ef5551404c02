"""Was anything held back: the devices by a control group, the processors by heat, power, a quota, or their host?

A figure under a limit is the limit. It looks like any other figure, only steadier.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import INVALID, PASS, UNKNOWN, WARN, Finding
from raidlab.analysis.checks.members import MemberVerdict, over_members, passed, unknown
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Machine, Member

NAME = "throttling"
# Closer to a limit than this, the limit is what was measured.
_AT_LIMIT_SHARE = 0.8
_MOST_STEAL_SHARE = 0.05
_COLUMNS = {
    "read_bytes_per_s": "read_bytes",
    "write_bytes_per_s": "write_bytes",
    "read_requests_per_s": "read_requests",
    "write_requests_per_s": "write_requests",
}


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN where something was held back; INVALID where a figure comes to 80 % of a device's limit or more."""
    rates = _rates(analysis)
    yield from over_members(NAME, analysis, lambda member: judge(member, rates))
    machine = analysis.run.facts.get("machine")
    if machine is not None:
        yield of_machine(machine, "run")


def _rates(analysis: Analysis) -> dict[str, float]:
    """The highest rate of each kind that was measured."""
    points = [point for point in analysis.points if point.target == "live"]
    return {what: max((point.per_s(column) for point in points), default=0.0) for what, column in _COLUMNS.items()}


def judge(member: Member, rates: dict[str, float] | None = None) -> MemberVerdict | None:
    """By the limits of control groups on the devices below a target."""
    facts = member.get("limits")
    if facts is None:
        return None
    if "unknown" in facts:
        return unknown(f"the control groups of this process cannot be read: {facts['unknown']}")
    if not facts["found"]:
        devices = ", ".join(layer["name"] for layer in member.get("stack", []))
        return passed(f"No control group limits I/O to {devices or 'this target'}.")
    shares = [((rates or {}).get(limit["what"], 0.0) / max(limit["value"], 1), limit) for limit in facts["found"]]
    share, limit = max(shares, key=lambda pair: pair[0])
    evidence = (
        f"The control group {limit['group']} limits {limit['device']} to {limit['value']:,} "
        f"{limit['what'].removesuffix('_per_s').replace('_', ' ')}/s"
    )
    remedy = "Take the limit away, or measure from a control group without one."
    if share >= _AT_LIMIT_SHARE:
        rate = (rates or {})[limit["what"]]
        return MemberVerdict(INVALID, f"{evidence}, and {rate:,.0f} were measured: the limit was measured.", remedy)
    return MemberVerdict(WARN, f"{evidence}.", remedy)


def of_machine(machine: Machine, target: str) -> Finding:
    """By the processors' counters before and after."""
    before, after = machine["before"]["processor"], machine["after"]["processor"]
    stolen, ticks = (
        _growth(before["stolen_ticks"], after["stolen_ticks"]),
        _growth(before["all_ticks"], after["all_ticks"]),
    )
    steal = (stolen or 0) / ticks if ticks else None
    wrong, remedy = [], []
    if heat := _growth(before["heat_events"], after["heat_events"]):
        wrong.append(f"processors were slowed by heat {heat} times")
        remedy.append("Cool the machine.")
    if stops := quota_stops(machine):
        wrong.append(f"the processor quota of a control group stopped its processes {stops} times")
        remedy.append("Raise cpu.max (cpu.cfs_quota_us) of the group.")
    if steal is not None and steal > _MOST_STEAL_SHARE:
        wrong.append(f"the host took {steal:.0%} of the processors' time")
        remedy.append("Measure when the host is less busy.")
    cap, most = after["frequency_cap_khz"], after["frequency_most_khz"]
    if cap is not None and most is not None and cap < most:
        wrong.append(f"the frequency is capped at {cap / 1e6:.2f} of {most / 1e6:.2f} GHz")
        remedy.append("Raise scaling_max_freq.")
    if after["on_battery"]:
        wrong.append("it runs from a battery")
        remedy.append("Plug it in.")
    if wrong:
        return Finding(NAME, target, WARN, f"Of this machine: {'; '.join(wrong)}.", " ".join(remedy))
    untold = [
        words
        for words, fact in (("heat", after["heat_events"]), ("frequency", most))
        if fact is None
    ]  # fmt: skip
    told = "" if steal is None else f"The host took {steal:.1%} of the processors' time. "
    if len(untold) == 2 and steal is None:
        return Finding(NAME, target, UNKNOWN, "Could not be determined, because the kernel tells nothing of it here.")
    rest = f"; {' and '.join(untold)} could not be determined, because the kernel tells nothing of it" if untold else ""
    return Finding(NAME, target, PASS, f"{told}No quota, heat or cap was seen to hold the processors back{rest}.")


def quota_stops(machine: Machine | None) -> int:
    """How often the quota of a control group stopped this process while it measured."""
    if machine is None:
        return 0
    return _growth(machine["before"]["processor"]["quota_stops"], machine["after"]["processor"]["quota_stops"]) or 0


def _growth(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
