"""What several machines answered to one cell, put together as if one had done it.

Invariants:

- Counts and bytes are sums; histograms are added bucket by bucket; a mean is weighted by what it is a mean of. No
  percentile is ever averaged.
- The time is that from the first window opening to the last one closing: a total is never more than what was done in
  it.
- What cannot be put together (gaps between completions, the counters of one kernel) is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from raidlab.histogram import Histogram, Times
from raidlab.results.answer import (
    VERDICTS,
    Accounting,
    Backlog,
    CellAnswer,
    CheckAnswer,
    MemberAnswer,
    SecondHistograms,
    Snapshots,
    Tally,
    Verdict,
)
from raidlab.run.streams import StreamResult, StreamsResult
from raidlab.study.units import format_number

TOGETHER = "together"
# Of the shorter windows, what may lie outside the others' before a total says less than it seems to.
_ALMOST, _HARDLY = 0.99, 0.9


class Part(NamedTuple):
    """One machine's answer."""

    host: str
    answer: CellAnswer
    opened_ns: int
    """When its window opened, by the clock of the one who asked."""
    first_target: int
    """How many targets are before its own, among those of all hosts."""

    @property
    def closed_ns(self) -> int:
        """When it closed."""
        return self.opened_ns + self.answer["elapsed_ns"]


def merged(parts: Sequence[Part], seed: int, targets: int) -> CellAnswer:
    """One answer of all of them; of so many ``targets``, those of hosts that have not answered did nothing."""
    answers = [part.answer for part in parts]
    first = answers[0]
    facts = {
        **first["facts"],
        "targets": [target for answer in answers for target in answer["facts"]["targets"]],
        "hosts": [{"name": part.host, "opened_unix_ns": part.opened_ns} for part in parts],
    }
    found: CellAnswer = {
        "engine": first["engine"],
        "seed": seed,
        "elapsed_ns": max(part.closed_ns for part in parts) - min(part.opened_ns for part in parts),
        "read": _tally([answer["read"] for answer in answers]),
        "write": _tally([answer["write"] for answer in answers]),
        "all": _tally([answer["all"] for answer in answers]),
        "members": _members(parts, targets),
        "stations": [],
        "facts": facts,
        "checks": [_overlap(parts), *_checks(parts)],
        "interrupted": any(answer["interrupted"] for answer in answers),
        "requests": sum(answer.get("requests", 0) for answer in answers),
        "depth": sum(answer.get("depth") or 0.0 for answer in answers),
        "requests_of_run": _sums([answer.get("requests_of_run", {}) for answer in answers]),
        "accounting": _accounting(answers),
        "stopped_by": next((said for answer in answers if (said := answer.get("stopped_by"))), None),
    }
    if "sector_bytes" in first:
        found["sector_bytes"] = first["sector_bytes"]
    if "tasks" in first and "task" in first:
        found["tasks"] = sum(answer["tasks"] for answer in answers)
        found["task"] = _tally([answer["task"] for answer in answers])
    if all("snapshots" in answer for answer in answers):
        found["snapshots"] = _snapshots([answer["snapshots"] for answer in answers])
    if backlogs := [one for answer in answers if (one := answer.get("backlog"))]:
        found["backlog"] = _backlog(backlogs)
    return found


class StreamsPart(NamedTuple):
    """What one machine's streams did."""

    host: str
    result: StreamsResult
    began_ns: int
    """When its first stream started, by the clock of the one who asked."""


def merged_streams(parts: Sequence[StreamsPart]) -> StreamsResult:
    """The streams of all of them, each under its host's name, from the first start to the last end."""
    began_ns = min(part.began_ns for part in parts)
    streams: list[StreamResult] = []
    endpoints: list[dict[str, Any]] = []
    for part in parts:
        endpoints += [{**end, "stream": end["stream"] + len(streams)} for end in part.result.facts["endpoints"]]
        streams += [
            replace(one, name=f"{part.host}: {one.name}", start_ns=one.start_ns + part.began_ns - began_ns)
            for one in part.result.streams
        ]
    alike = [
        Part(
            part.host,
            cast(CellAnswer, {"elapsed_ns": part.result.elapsed_ns, "checks": part.result.checks}),
            part.began_ns,
            0,
        )
        for part in parts
    ]
    first = parts[0].result
    return StreamsResult(
        streams=tuple(streams),
        bytes=sum(part.result.bytes for part in parts),
        elapsed_ns=max(one.closed_ns for one in alike) - began_ns,
        facts={
            **first.facts,
            "endpoints": endpoints,
            "began_unix_ns": began_ns,
            "hosts": [{"name": part.host, "began_unix_ns": part.began_ns} for part in parts],
        },
        checks=[_overlap(alike), *_checks(alike)],
        stopped_by=next((f"{part.host}: {said}" for part in parts if (said := part.result.stopped_by)), None),
        interrupted=any(part.result.interrupted for part in parts),
    )


def _tally(each: Sequence[Tally]) -> Tally:
    requests = sum(one["requests"] for one in each)

    def mean(of: Sequence[float]) -> float:
        return sum(one["requests"] * value for one, value in zip(each, of, strict=True)) / max(requests, 1)

    return {
        "requests": requests,
        "bytes": sum(one["bytes"] for one in each),
        "failed": sum(one["failed"] for one in each),
        "response": _times([one["response"] for one in each]),
        "service": _times([one["service"] for one in each]),
        "response_mean_ns": mean([one["response_mean_ns"] for one in each]),
        "service_mean_ns": mean([one["service_mean_ns"] for one in each]),
    }


def _times(each: Sequence[Times]) -> Times:
    whole = Histogram.merged(Histogram.of(one) for one in each)
    return {"value_ns": whole.value_ns, "count": whole.count}


def _members(parts: Sequence[Part], targets: int) -> list[MemberAnswer]:
    found: list[MemberAnswer] = [
        {"leaf": leaf, "reads": 0, "writes": 0, "read_bytes": 0, "write_bytes": 0} for leaf in range(targets)
    ]
    for part in parts:
        for member in part.answer["members"]:
            leaf = part.first_target + member["leaf"]
            found[leaf] = cast(MemberAnswer, {**member, "leaf": leaf})
    return found


def _sums(each: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {key: sum(one.get(key, 0) for one in each) for key in each[0]}


def _accounting(answers: Sequence[CellAnswer]) -> Accounting:
    each = [one for answer in answers if (one := answer.get("accounting")) is not None]
    whole: Accounting = {
        "user_ns": sum(one["user_ns"] for one in each),
        "system_ns": sum(one["system_ns"] for one in each),
        "voluntary_switches": sum(one["voluntary_switches"] for one in each),
        "involuntary_switches": sum(one["involuntary_switches"] for one in each),
        "workers": [worker for one in each for worker in one.get("workers", [])],
    }
    waited = [one.get("waited_ns") for one in each]
    if None not in waited:
        whole["waited_ns"] = sum(cast(list[int], waited))
    return whole


def _backlog(each: Sequence[Backlog]) -> Backlog:
    return {
        "max_waiting": sum(one["max_waiting"] for one in each),
        "final_waiting": sum(one["final_waiting"] for one in each),
        "max_in_flight": sum(one["max_in_flight"] for one in each),
        "max_delay_ns": max(one["max_delay_ns"] for one in each),
    }


def _snapshots(each: Sequence[Snapshots]) -> Snapshots:
    """The seconds of all: they began together, so that one's second is the others'."""
    whole = _added(each, ("time_ns",), ("requests", "bytes", "response_sum_ns"))
    histograms = [one["histograms"] for one in each if "histograms" in one]
    if histograms:
        whole["histograms"] = cast(SecondHistograms, _added(histograms, ("time_ns", "value_ns"), ("count",)))
    return cast(Snapshots, whole)


def _added(each: Sequence[Mapping[str, Any]], keys: Sequence[str], sums: Sequence[str]) -> dict[str, Any]:
    """Rows with the same keys made one, and the rest of them added up; ascending by the keys."""
    rows = np.stack([np.concatenate([np.asarray(one[key], dtype=np.uint64) for one in each]) for key in keys])
    distinct, inverse = np.unique(rows, axis=1, return_inverse=True)
    found: dict[str, Any] = dict(zip(keys, distinct, strict=True))
    for key in sums:
        total = np.zeros(distinct.shape[1], dtype=np.uint64)
        np.add.at(total, inverse.ravel(), np.concatenate([np.asarray(one[key], dtype=np.uint64) for one in each]))
        found[key] = total
    return found


def _checks(parts: Sequence[Part]) -> list[CheckAnswer]:
    """One check of a name: the worst verdict, and what each host says that came to it."""
    by_name: dict[str, list[tuple[str, CheckAnswer]]] = {}
    for part in parts:
        for check in part.answer["checks"]:
            by_name.setdefault(check["name"], []).append((part.host, check))
    found: list[CheckAnswer] = []
    for name, each in by_name.items():
        worst = max((check["verdict"] for _, check in each), key=VERDICTS.index)
        saying = [(host, check) for host, check in each if check["verdict"] == worst]
        evidence = "; ".join(f"{host}: {check['evidence'].rstrip('.')}" for host, check in saying)
        found.append({"name": name, "verdict": worst, "evidence": evidence, "mend": saying[0][1]["mend"]})
    return found


def _overlap(parts: Sequence[Part]) -> CheckAnswer:
    """Whether the windows lie on one another."""
    opened, closed = [part.opened_ns for part in parts], [part.closed_ns for part in parts]
    common = max(0, min(closed) - max(opened))
    share = common / max(1, min(part.answer["elapsed_ns"] for part in parts))
    last = max(parts, key=lambda part: part.opened_ns)
    apart_ms = (max(opened) - min(opened)) / 1e6
    verdict: Verdict = "PASS" if share >= _ALMOST else "WARN" if share >= _HARDLY else "INVALID"
    return {
        "name": TOGETHER,
        "verdict": verdict,
        "evidence": f"the windows of {len(parts)} hosts opened within {format_number(apart_ms)} ms, "
        f"{last.host}'s last; they share {share:.2%} of the shortest",
        "mend": "" if verdict == "PASS" else "Measure for longer, or keep the hosts' clocks together (NTP or PTP).",
    }
