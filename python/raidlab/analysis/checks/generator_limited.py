"""Is raidlab itself the bottleneck?

The same requests are run once more where nothing but raidlab's own work is left. For arrays that is over members in
memory: the array's planning, the parity kernels, the bookkeeping, and the copying of every byte, which a device does by
itself; being a bound, it can warn but cannot prove a result invalid. For plain targets it is a target that completes at
once: what is left is the meter and nothing else, and where that takes most of a request's time, the figure is the
meter's. A meter that is kept from its processor asks for less, however little its own work is.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import INVALID, PASS, UNKNOWN, WARN, Finding
from raidlab.analysis.checks.knobs import is_measurement
from raidlab.analysis.checks.throttling import quota_stops
from raidlab.analysis.metrics import Analysis, Point
from raidlab.study.expand import NULL

NAME = "generator_limited"
_WARN_SHARE = 0.05
_INVALID_SHARE = 0.5
# Of the time of all threads together; one that never sleeps has no time left to ask for more.
_BUSY_SHARE = 0.95


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when raidlab's own cost can be more than 5 % of a request's time; INVALID beyond 50 % on plain targets."""
    if is_measurement(analysis):
        yield from _plain_targets(analysis)
    else:
        yield from _arrays(analysis)


def _rates(analysis: Analysis) -> dict[tuple[str, str], tuple[float, int, float]]:
    """What raidlab alone does, by array and workload, with the depth and the rate at which it was asked."""
    return {
        (row["array"], row["workload"]): (
            row["all_requests"] * 1e9 / row["elapsed_ns"],
            row["depth"],
            row["rate_per_s"],
        )
        for row in analysis.run.cells.iter_rows(named=True)
        if row["target"] == NULL and row["elapsed_ns"] and row["all_requests"]
    }


def _arrays(analysis: Analysis) -> Iterator[Finding]:
    rates = _rates(analysis)
    shares = []
    for point in analysis.points:
        null_rate, depth, rate = rates.get((point.array, point.workload), (0.0, 0, 0.0))
        at_that_load = (point.depth, point.rate_per_s) == (depth, rate)
        if point.target == "live" and null_rate and at_that_load and point.total("all_requests"):
            shares.append((point.per_s("all_requests") / null_rate, null_rate, point))
    if not shares:
        return
    share, null_rate, point = max(shares, key=lambda found: found[0])
    above = sum(1 for found, _, _ in shares if found > _WARN_SHARE)
    evidence = (
        f"Over memory raidlab does {null_rate:,.0f} requests/s ({point.array}, {point.workload}), copying included;"
        f" {point.per_s('all_requests'):,.0f} were measured: its own work can be up to {min(share, 1.0):.0%} of a"
        f" request's time there, and more than {_WARN_SHARE:.0%} in {above} of {len(shares)} heaviest loads."
    )
    remedy = "Read these figures as a lower bound of what the devices can do."
    yield Finding(NAME, "live", WARN if above else PASS, evidence, remedy if above else "")


def _plain_targets(analysis: Analysis) -> Iterator[Finding]:
    rates = _rates(analysis)
    # Each point against the meter with as many threads: what a device completes faster, it cannot count.
    found: list[tuple[float, float, Point]] = [
        (
            point.per_s("all_requests") / rates[point.array, point.workload][0],
            *rates[point.array, point.workload][:1],
            point,
        )
        for point in analysis.points
        if point.target == "live" and (point.array, point.workload) in rates
    ]
    if not found:
        yield from _not_bounded(analysis)
        return
    share, null_rate, point = max(found, key=lambda entry: entry[0])
    beyond = [(rate, each) for _, rate, each in found if each.load == "open" and each.rate_per_s > rate]
    if beyond:
        null_rate, point = max(beyond, key=lambda entry: entry[1].rate_per_s / entry[0])
        evidence = (
            f"{point.rate_per_s:,.0f} requests/s were offered ({point.array}), and with nothing to wait for raidlab "
            f"does {null_rate:,.0f}: raidlab is the limit, and not the target."
        )
        yield Finding(NAME, "live", INVALID, evidence, "Offer less with --rate, or give it more --workers.")
        return
    verdict = INVALID if share > _INVALID_SHARE else WARN if share > _WARN_SHARE else PASS
    evidence = (
        f"With nothing to wait for, raidlab does {null_rate:,.0f} requests/s with the same settings; "
        f"{point.per_s('all_requests'):,.0f} were measured ({point.array}, {point.level}): its own work is at most "
        f"{min(share, 1.0):.1%} of the time measured."
    )
    stops = quota_stops(analysis.run.facts.get("machine"))
    if verdict == PASS and stops:
        verdict = WARN
        evidence += f" But the quota of a control group stopped its threads {stops} times: they asked for less."
    busy = max((_busy_share(point, analysis) for _, _, point in found), default=0.0)
    if verdict == PASS and busy > _BUSY_SHARE:
        verdict = WARN
        evidence += (
            f" But its threads were busy for {busy:.0%} of that time, nearly all of it in the kernel: this is what so "
            "many threads can ask for."
        )
    remedy = {
        PASS: "",
        WARN: "Give it more threads with --workers, or read the figures as a lower bound."
        if not stops
        else "Raise cpu.max (cpu.cfs_quota_us) of the group, or read the figures as a lower bound.",
        INVALID: "The meter is the limit: give it more threads with --workers.",
    }[verdict]
    yield Finding(NAME, "live", verdict, evidence, remedy)


def _not_bounded(analysis: Analysis) -> Iterator[Finding]:
    """An answer for arrays, of which a measurement does not run the same over targets that complete at once."""
    meter = {"null", "memory"}
    if any(point.target == "live" for point in analysis.points) and any(
        member["kind"] not in meter for member in analysis.run.live_members()
    ):
        why = "only runs of a study bound the work of an array, by the same requests over members in memory"
        yield Finding(NAME, "live", UNKNOWN, f"Could not be determined, because {why}.", "Use raidlab run.")


def _busy_share(point: Point, analysis: Analysis) -> float:
    """How much of the time raidlab's threads were on a processor; 0 where they are told to be, or it is not known."""
    measure = analysis.run.facts.get("measure")
    user_ns, system_ns = point.counted("cpu_user_ns"), point.counted("cpu_system_ns")
    # Before an arrival of an open loop threads watch the clock: that is no work.
    if measure is None or user_ns is None or system_ns is None or measure["drive"]["busy"] or point.is_open:
        return 0.0
    return (user_ns + system_ns) / point.watched_ns if point.watched_ns else 0.0
