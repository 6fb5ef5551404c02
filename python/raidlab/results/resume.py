"""Going on with a run that did not reach its end: what it was, what is done, and whether the rest would fit it.

Invariants:

- What is done is never run again, and what was cut short is.
- A run goes on only as what it was: the same study, seed, targets, budget and version of raidlab; and, where its cells
  are timed by a real clock, on the same machine. Anything else would be two runs in one table.
- Whoever has opened a run to go on with it holds its lock: nobody finishes or resumes it meanwhile.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from raidlab.directory import Directory
from raidlab.errors import InputError, OutputError
from raidlab.results.facts import Facts, Member, RunTimes, UnfinishedFacts
from raidlab.results.finish import RUN, WRONG_PARTS, ended, known_parts, last_written, wrong_folder
from raidlab.results.folder import devices_of, study_facts
from raidlab.results.load import facts_in
from raidlab.results.parts import MOST_RESUMED_BYTES, PARTS, KnownAnswers, PartsFile
from raidlab.results.provenance import host_facts, version_facts
from raidlab.study import LoadedStudy
from raidlab.study.words import is_simulated

_LOG = logging.getLogger(__name__)

_HOST_FACTS: dict[Literal["cpu", "cpus", "machine", "kernel"], str] = {
    "cpu": "processor",
    "cpus": "number of processors",
    "machine": "architecture",
    "kernel": "kernel",
}
# Firmware and kernels keep a little of the memory for themselves, and not always the same.
_MEMORY_TOLERANCE = 0.01
# What makes a member another one; paths, free space and numbers of devices change from boot to boot.
_MEMBER_FACTS = ("kind", "size_bytes", "sector_bytes", "io")
_DEVICE_FACTS = ("model", "rotational", "scheduler", "write_cache", "logical_block_bytes")


@dataclass(frozen=True)
class Unfinished:
    """A run that can go on."""

    folder: Path
    parts: PartsFile
    """Locked, and open for appending."""
    facts: UnfinishedFacts
    """What the run wrote when it began, and of its members."""
    answers: KnownAnswers
    """What the engine answered to each cell that ran to its end, by the cell's name."""
    holds: tuple[tuple[float, ...], ...]
    """The ranks of the response-time targets that are done."""
    times_before: RunTimes
    """Its times, the last session ended when its last part was written."""

    @property
    def study(self) -> str:
        """The study as the command named it."""
        words = self.facts["argv"]
        return words[2] if len(words) > 2 else self.facts["study"]["name"]

    @property
    def live_members(self) -> list[Member]:
        """Facts of the live members, as far as they were known."""
        return list(self.facts.get("live_members", []))

    def refuse_other(self, loaded: LoadedStudy, *, seed: int, targets: Sequence[str], quick: bool) -> None:
        """Refuse, with one sentence for all that differs, to go on as another run than it was."""
        differences = [
            *self._other_order(loaded, seed=seed, targets=targets, quick=quick),
            *self._other_version(),
            *(() if all(map(is_simulated, self.facts["targets"])) else self._other_host()),
        ]
        if differences:
            accepted = "the same study, seed, targets, raidlab and (but for simulations) machine, or a new run"
            raise self._is_another("; ".join(differences), accepted)

    def refuse_other_machine(self, name: str | None) -> None:
        """Refuse to go on with another machine at the far end of streams, or with none, than there was."""
        then = self.facts.get("far_machine")
        if then != name:
            accepted = f"--machine {then}" if then else "no --machine, or a new run"
            raise self._is_another(f"its streams went to {then or 'no machine'}, not to {name or 'none'}", accepted)

    def _other_order(self, loaded: LoadedStudy, *, seed: int, targets: Sequence[str], quick: bool) -> Iterator[str]:
        facts = self.facts
        if facts["study"]["name"] != loaded.study.name:
            yield f"it ran the study '{facts['study']['name']}', not '{loaded.study.name}'"
        elif facts["study"]["sha256"] != loaded.sha256:
            yield f"the study '{loaded.study.name}' has changed since"
        elif facts["study"].get("traces", {}) != study_facts(loaded)["study"].get("traces", {}):
            yield "a trace of the study has changed since"
        elif facts["devices"] != _as_written(devices_of(loaded.geometry.devices)) or facts.get(
            "array_devices", {}
        ) != _as_written(devices_of(loaded.geometry.own_devices)):
            yield "a device of the study has changed since"
        if facts["seed"] != seed:
            yield f"its seed was {facts['seed']}, not {seed}"
        if facts["targets"] != list(targets):
            yield f"it ran on {' '.join(facts['targets'])}, not on {' '.join(targets)}"
        if facts["quick"] != quick:
            yield f"it was {'' if facts['quick'] else 'not '}--quick"

    def _other_version(self) -> Iterator[str]:
        then, now = self.facts["raidlab"], version_facts()
        if then["version"] != now["version"]:
            yield f"it was run by raidlab {then['version']}, and this is {now['version']}"
        elif then["git_commit"] != now["git_commit"]:
            short = [str(facts["git_commit"] or "an installed one")[:12] for facts in (then, now)]
            yield f"it was run by raidlab of commit {short[0]}, and this is {short[1]}"
        elif then["git_dirty"] != now["git_dirty"]:
            yield f"it was run by a raidlab with{'' if then['git_dirty'] else 'out'} uncommitted changes"

    def _other_host(self) -> Iterator[str]:
        then, now = self.facts["host"], host_facts()
        for key, word in _HOST_FACTS.items():
            if then[key] != now[key]:
                yield f"the machine's {word} was {then[key]}, and is {now[key]}"
        before, after = then["memory_kib"] or 0, now["memory_kib"] or 0
        if abs(before - after) > _MEMORY_TOLERANCE * max(before, after):
            yield f"the machine's memory was {before} KiB, and is {after} KiB"

    def refuse_other_members(self, members: Sequence[Member]) -> None:
        """Refuse to go on over other live members than there were."""
        for number, (then, now) in enumerate(zip(self.live_members, members, strict=False)):
            for key, before, after in _changes(then, _as_written(now)):
                difference = f"the {key} of member {number} was {before}, and is {after}"
                raise self._is_another(difference, "the members it ran on, or a new run")

    def _is_another(self, difference: str, accepted: str) -> InputError:
        """The error of going on as another run than it was."""
        message = f"cannot go on as what it was: {difference}"
        return InputError.one("--resume", message, value=f"'{self.folder}'", accepted=accepted)

    def close(self) -> None:
        """Let others have it."""
        self.parts.close()


def open_unfinished(folder: Path) -> Unfinished | None:
    """Open a run to go on with it; None if it is complete."""
    if not (folder / PARTS).is_file() or _is_complete(folder):
        _refuse_incomplete(folder)
        return None
    try:
        # Before it is opened: cutting half a line off is writing.
        written = last_written(folder)
        parts = PartsFile(folder / PARTS, resumed=True)
    except BlockingIOError:
        raise wrong_folder(folder, "is still being written by its run", "a run that has ended") from None
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror}") from None
    except WRONG_PARTS as error:
        raise wrong_folder(folder, f"has parts that are not raidlab's: {error}") from None
    try:
        facts, cells, holds = known_parts(folder, MOST_RESUMED_BYTES)
        if facts["command"] != RUN:
            raise _not_resumable(folder, f"was made by raidlab {facts['command']}, which begins anew each time")
        whole = cells.answers()
        ranks = tuple(tuple(record["rank"]) for record in holds)
        _LOG.debug("%s goes on: %d cells are done, %d were cut short", folder, len(whole), len(cells) - len(whole))
        return Unfinished(folder, parts, facts, whole, ranks, ended(facts["times"], written))
    except (*WRONG_PARTS, AttributeError) as error:
        parts.close()
        raise wrong_folder(folder, f"has parts that are not raidlab's: {error}") from None
    except BaseException:
        parts.close()
        raise


def _is_complete(folder: Path) -> bool:
    """Whether a run was killed after it had written all, and before it had removed its parts."""
    facts = _facts(folder)
    return facts is not None and facts["status"] == "complete"


def _refuse_incomplete(folder: Path) -> None:
    """A complete run needs no parts; what else has none cannot go on."""
    facts = _facts(folder)
    if facts is None:
        raise _not_resumable(folder, f"has no {PARTS}: nothing had been written of it")
    if facts["command"] != RUN:
        raise _not_resumable(folder, f"was made by raidlab {facts['command']}, which begins anew each time")
    if facts["status"] != "complete":
        raise _not_resumable(folder, f"has no {PARTS} to go on from")


def _facts(folder: Path) -> Facts | None:
    """What ``run.json`` says; None where there is none that can be read."""
    try:
        with Directory.open(folder) as place:
            return facts_in(place)
    except (OSError, InputError):
        return None


def _not_resumable(folder: Path, message: str) -> InputError:
    accepted = "a folder of raidlab run that was interrupted, failed or killed"
    return InputError.one("--resume", message, value=f"'{folder}'", accepted=accepted)


def _changes(then: Member, now: Member) -> Iterator[tuple[str, object, object]]:
    """What makes a live member another one, before and now."""
    pairs: list[tuple[str, Mapping[str, object], Mapping[str, object], tuple[str, ...]]] = [
        ("", then, now, _MEMBER_FACTS),
        ("filesystem's ", then.get("filesystem") or {}, now.get("filesystem") or {}, ("kind",)),
        ("device's ", then.get("device") or {}, now.get("device") or {}, _DEVICE_FACTS),
    ]
    for whose, before, after, keys in pairs:
        for key in keys:
            if before.get(key) != after.get(key):
                yield f"{whose}{key}", before.get(key), after.get(key)


def _as_written(value: Any) -> Any:
    """A value as it is read back from JSON."""
    return json.loads(json.dumps(value))
