"""What several machines answered to one cell, put together as if one had done it.

Invariants:

- Counts and bytes are sums; histograms are added bucket by bucket; a mean is weighted by what it is a mean of. No
  percentile is ever averaged.
- The time is that from the first window opening to the last one closing: a total is never more than what was done in
  it. Windows of one length are counted from one moment, so that it is also the time that all of them share.
- What cannot be put together (gaps between completions, the counters of one kernel) is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar, cast

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
    Totals,
    Verdict,
    times_of,
)
from raidlab.run.files import Column, FilesFill, FilesRead, FilesResult
from raidlab.run.streams import StreamResult, StreamsResult
from raidlab.study.units import format_number

R = TypeVar("R", FilesResult, StreamsResult)

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
    began_ns: int = 0
    """When it began to load; after its window has opened, that window is not whole."""

    @property
    def whole_from_ns(self) -> int:
        """From when on its window says what it did."""
        return max(self.opened_ns, self.began_ns)

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
        "hosts": [
            {"name": part.host, "began_unix_ns": part.began_ns, "opened_unix_ns": part.opened_ns} for part in parts
        ],
    }
    found: CellAnswer = {
        "engine": first["engine"],
        "seed": seed,
        "elapsed_ns": _elapsed_ns(parts),
        "read": _tally([answer["read"] for answer in answers]),
        "write": _tally([answer["write"] for answer in answers]),
        "all": _totals([answer["all"] for answer in answers]),
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
    if "tasks" in first:
        found["tasks"] = sum(answer["tasks"] for answer in answers)
    if "task" in first:
        found["task"] = _tally([answer["task"] for answer in answers])
    if all("snapshots" in answer for answer in answers):
        found["snapshots"] = _snapshots([answer["snapshots"] for answer in answers])
    if backlogs := [one for answer in answers if (one := answer.get("backlog"))]:
        found["backlog"] = _backlog(backlogs)
    return found


@dataclass(frozen=True)
class HostPart(Generic[R]):
    """What one machine's streams did, or its readers of whole files."""

    host: str
    result: R
    began_ns: int
    """When its first stream or file was begun, by the clock of the one who asked."""

    def window(self, elapsed_ns: int) -> Part:
        """So long from its beginning on, as the answer to a cell of which no more is asked."""
        answer = {"elapsed_ns": elapsed_ns, "checks": self.result.checks}
        return Part(self.host, cast(CellAnswer, answer), self.began_ns, 0, self.began_ns)


def merged_streams(parts: Sequence[HostPart[StreamsResult]]) -> StreamsResult:
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
    windows = [part.window(part.result.elapsed_ns) for part in parts]
    return StreamsResult(
        streams=tuple(streams),
        bytes=sum(part.result.bytes for part in parts),
        elapsed_ns=_elapsed_ns(windows),
        facts={**parts[0].result.facts, "endpoints": endpoints, **_facts(parts)},
        checks=[_overlap(windows), *_checks(windows)],
        stopped_by=_stopped_by(parts),
        interrupted=any(part.result.interrupted for part in parts),
    )


def merged_files(parts: Sequence[HostPart[FilesResult]]) -> FilesResult:
    """The files of all of them, written or read from the first start to the last end."""
    began_ns = min(part.began_ns for part in parts)
    fills = [part.result.fill for part in parts]
    windows = [
        part.window(part.result.read.elapsed_ns if fill is None else fill.elapsed_ns)
        for part, fill in zip(parts, fills, strict=True)
    ]
    directories: list[dict[str, Any]] = []
    size_bytes, directory = [], []
    # What each one's numbers and times are to be raised by.
    more: list[dict[str, int]] = []
    files = readers = 0
    for part in parts:
        own, records = part.result, part.result.read.records
        # Readers begin some time after their clock does, which the first file that is read does not.
        first_ns = int(records["start_ns"].min()) if len(records["start_ns"]) else 0
        more.append({"file": files, "reader": readers, "start_ns": part.began_ns - began_ns - first_ns})
        size_bytes.append(own.size_bytes)
        directory.append(own.directory + np.uint64(len(directories)))
        directories += [{**one, "path": f"{part.host}:{one['path']}"} for one in own.facts["directories"]]
        files += len(own.size_bytes)
        readers += int(records["reader"].max()) + 1 if len(records["reader"]) else 0
    written = [fill for fill in fills if fill is not None]
    return FilesResult(
        size_bytes=np.concatenate(size_bytes),
        directory=np.concatenate(directory),
        fill=None if len(written) < len(parts) else _merged_fill(written, more, _elapsed_ns(windows)),
        read=_merged_read([part.result.read for part in parts], more, _elapsed_ns(windows)),
        facts={**parts[0].result.facts, "directories": directories, **_facts(parts)},
        checks=[_overlap(windows), *_checks(windows)],
        stopped_by=_stopped_by(parts),
        interrupted=any(part.result.interrupted for part in parts),
    )


def _merged_fill(each: Sequence[FilesFill], more: Sequence[Mapping[str, int]], elapsed_ns: int) -> FilesFill:
    return FilesFill(
        files=sum(fill.files for fill in each),
        bytes=sum(fill.bytes for fill in each),
        elapsed_ns=elapsed_ns,
        # Only what every one of them took for making content is taken off: a rate is never more than it was.
        content_ns=min(fill.content_ns for fill in each),
        sync_ns=max(fill.sync_ns for fill in each),
        records=_records([fill.records for fill in each], more),
    )


def _merged_read(each: Sequence[FilesRead], more: Sequence[Mapping[str, int]], elapsed_ns: int) -> FilesRead:
    files = sum(read.files for read in each)

    def mean(of: Sequence[float]) -> float:
        return sum(read.files * value for read, value in zip(each, of, strict=True)) / max(files, 1)

    return FilesRead(
        files=files,
        bytes=sum(read.bytes for read in each),
        warmup_files=sum(read.warmup_files for read in each),
        elapsed_ns=elapsed_ns if files else 0,
        open=Histogram.merged(read.open for read in each),
        first_byte=Histogram.merged(read.first_byte for read in each),
        total=Histogram.merged(read.total for read in each),
        open_mean_ns=mean([read.open_mean_ns for read in each]),
        first_byte_mean_ns=mean([read.first_byte_mean_ns for read in each]),
        total_mean_ns=mean([read.total_mean_ns for read in each]),
        cached_files=sum(read.cached_files for read in each),
        cached_bytes=sum(read.cached_bytes for read in each),
        unknown_files=sum(read.unknown_files for read in each),
        records=_records([read.records for read in each], more),
    )


def _records(each: Sequence[Mapping[str, Column]], more: Sequence[Mapping[str, int]]) -> dict[str, Column]:
    return {
        key: np.concatenate(
            [(one[key].astype(np.int64) + by.get(key, 0)).astype(np.uint64) for one, by in zip(each, more, strict=True)]
        )
        for key in each[0]
    }


def _elapsed_ns(windows: Sequence[Part]) -> int:
    """From the first one's beginning to the last one's end."""
    return max(part.closed_ns for part in windows) - min(part.opened_ns for part in windows)


def _facts(parts: Sequence[HostPart[Any]]) -> dict[str, Any]:
    return {
        "began_unix_ns": min(part.began_ns for part in parts),
        "hosts": [{"name": part.host, "began_unix_ns": part.began_ns} for part in parts],
    }


def _stopped_by(parts: Sequence[HostPart[Any]]) -> str | None:
    return next((f"{part.host}: {said}" for part in parts if (said := part.result.stopped_by)), None)


def _totals(each: Sequence[Totals]) -> Totals:
    requests = sum(one["requests"] for one in each)

    def mean(of: Sequence[float]) -> float:
        return sum(one["requests"] * value for one, value in zip(each, of, strict=True)) / max(requests, 1)

    return {
        "requests": requests,
        "bytes": sum(one["bytes"] for one in each),
        "failed": sum(one["failed"] for one in each),
        "response_mean_ns": mean([one["response_mean_ns"] for one in each]),
        "service_mean_ns": mean([one["service_mean_ns"] for one in each]),
    }


def _tally(each: Sequence[Tally]) -> Tally:
    return {
        **_totals(each),
        "response": _times([times_of(one, "response") for one in each]),
        "service": _times([times_of(one, "service") for one in each]),
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
    common = max(0, min(part.closed_ns for part in parts) - max(part.whole_from_ns for part in parts))
    share = common / max(1, min(part.answer["elapsed_ns"] for part in parts))
    last = max(parts, key=lambda part: part.began_ns)
    apart_ms = (last.began_ns - min(part.began_ns for part in parts)) / 1e6
    verdict: Verdict = "PASS" if share >= _ALMOST else "WARN" if share >= _HARDLY else "INVALID"
    return {
        "name": TOGETHER,
        "verdict": verdict,
        "evidence": f"{len(parts)} hosts began within {format_number(apart_ms)} ms, {last.host} last; "
        f"their windows share {share:.2%} of the shortest",
        "mend": "" if verdict == "PASS" else "Measure for longer, or keep the hosts' clocks together (NTP or PTP).",
    }
