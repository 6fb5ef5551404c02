"""One measurement from several machines at once: each is a worker of a Dask cluster and drives its share of the load.

Who the machines are, how they are started and how they trust each other is Dask's. Here each is given the same targets
(as it sees them), told when to begin, and what they answer is put together (`merge`) as if one machine had done it.

Invariants:

- Nobody begins before all are ready. They begin at one moment: each one's clock is compared with this one's beforehand,
  and how far apart they were is in the facts.
- A host that is lost is named; the others' part of the cell is kept, and what follows is theirs: the same load, on
  fewer machines.
- A host makes files only in its own targets, as a measurement there would, and removes them when the one who asked for
  them has gone, however he went.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from raidlab.errors import CellFailedError, EngineError, InputError, RaidlabError
from raidlab.measure.copies import OPTION, CopyTaker
from raidlab.measure.execute import members_at
from raidlab.measure.files import PATHS, files_of
from raidlab.measure.merge import TOGETHER, HostPart, Part, merged, merged_files, merged_streams
from raidlab.measure.places import Place, TargetSpec, wanted_targets
from raidlab.run.dask import Cluster
from raidlab.run.files import FilesResult, measure_files
from raidlab.run.interrupt import StopFlag
from raidlab.run.members import Members, made_folders
from raidlab.run.runner import Answer, InlineRunner, run_request
from raidlab.run.streams import StreamsResult, as_found_here, measure_streams
from raidlab.run.target_facts import note_state_after, opened_member
from raidlab.study.cell import FilesCell, GivenFiles, MadeFiles, StreamsCell
from raidlab.study.expand import derive_seed

if TYPE_CHECKING:
    from distributed import Client

    from raidlab.measure.request import MeasureRequest
    from raidlab.measure.turns import Turns
    from raidlab.results.answer import CellAnswer, CheckAnswer
    from raidlab.results.facts import HostFacts, Member

T = TypeVar("T")
OnHosts = TypeVar("OnHosts", FilesCell, StreamsCell)

# Between two machines' clocks so many answers are taken, and the quickest one is believed.
_CLOCK_LOOKS = 9
# From when all are told to when they begin: by then each has opened its targets and set up its buffers.
_LEAD_NS, _LONGEST_LEAD_NS = 1_000_000_000, 30_000_000_000
# How often a cell is run at most, where a host was too late for it to be one.
_TRIES = 3
_LOOK_EVERY_S = 0.1
_CLOSING_S = 30.0
_GONE_WITHIN_S = 10.0
# Of this process: which measurements that it takes part in are to stop.
_STOPPED: set[str] = set()


class HostAgent:
    """What drives the targets of one machine; it lives in a worker as long as whoever asked for it is connected."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._made = ExitStack()
        self._places: list[Place] = []
        self._files: MadeFiles | GivenFiles | None = None

    def open(self, words: Sequence[str], destroy: Sequence[str], file_bytes: int, *, writes: bool) -> list[TargetSpec]:
        """Look at the targets as this machine sees them."""
        found = wanted_targets(words, destroy, writes=writes, file_bytes=file_bytes)
        self._places = [place for target in found for place in target.places]
        return found

    def members(self) -> Members:
        """The targets as the engine takes them; in directories files are made, and removed by `close`."""
        return self._made.enter_context(members_at(self._places))

    def run(self, request: str) -> Answer:
        """Run a cell to its end, or until this measurement is stopped."""
        return run_request(request, lambda _share: self._session not in _STOPPED)

    def streams(self, cell: StreamsCell, *, keep: bool) -> StreamsResult:
        """Run streams between ends of this machine, to their end or until this measurement is stopped."""
        return measure_streams(as_found_here(cell), lambda _share: self._session not in _STOPPED, keep=keep)

    def open_files(self, paths: Sequence[str], made: MadeFiles) -> str:
        """Look at files as this machine sees them, or make room for some; which of the two it is."""
        self._files = files_of(paths, made)
        if isinstance(self._files, MadeFiles):
            # Several machines may well have the same directory.
            folders = self._made.enter_context(made_folders(self._files.directories, PATHS))
            places = [folder / "files-0" for folder in folders]
            for place in places:
                place.mkdir(0o700)
            self._files = self._files.model_copy(update={"directories": places})
        return self._files.kind

    def files(self, cell: FilesCell) -> FilesResult:
        """Write or read this machine's files, to the end or until this measurement is stopped."""
        own = cell.model_copy(update={"files": self._files})
        return measure_files(own, lambda _share: self._session not in _STOPPED)

    def facts(self, targets: list[Any]) -> list[Member]:
        """What the engine found of the targets, and what this machine knows besides."""
        return [opened_member(facts, place.kind) for facts, place in zip(targets, self._places, strict=True)]

    def facts_after(self, members: list[Member]) -> list[Member]:
        """The same, with the state of what lies below by now."""
        note_state_after(members)
        return members

    def take_copies(self, directory: str) -> None:
        """Be ready to take copies into a directory."""
        self._copies = CopyTaker(Path(directory), self._made)

    def take(self, host: str, total: int) -> tuple[int, bytes]:
        """Begin to take a copy (`CopyTaker.take`)."""
        return self._copies.take(host, total)

    def taken(self) -> str:
        """End it (`CopyTaker.taken`)."""
        return self._copies.taken()

    def close(self) -> None:
        """Remove what was made."""
        _STOPPED.discard(self._session)
        self._made.close()

    def __del__(self) -> None:
        self.close()


def _stop(session: str) -> None:
    _STOPPED.add(session)


def _clock_ns() -> int:
    return time.time_ns()


@dataclass
class LoadHost:
    """One of the machines."""

    name: str
    address: str
    """The worker's, as Dask says it."""
    agent: Any
    clock_offset_ns: int
    """Its clock minus this machine's."""
    clock_uncertainty_ns: int
    """Half of what the quickest answer took."""
    targets: int = 0
    is_lost: bool = False

    @property
    def facts(self) -> HostFacts:
        """What a run keeps of it."""
        return {
            "name": self.name,
            "address": self.address,
            "targets": self.targets,
            "clock_offset_ns": self.clock_offset_ns,
            "clock_uncertainty_ns": self.clock_uncertainty_ns,
        }


class HostLostError(Exception):
    """A machine has gone."""


class Hosts:
    """The machines of a cluster that measure together; a context, at whose end they are let go.

    Parameters
    ----------
    address : str
        A Dask scheduler's.
    count : int, optional
        How many of its machines take part, in the order of their names; all of them if left out.
    only : str, optional
        The name of the one that does.

    Raises
    ------
    InputError
        Where there is no such cluster, or it has fewer machines.
    """

    def __init__(
        self, address: str, count: int | None = None, stop: StopFlag | None = None, *, only: str | None = None
    ) -> None:
        self._stop = stop or StopFlag()
        self._session = f"{socket.gethostname()}-{os.getpid()}-{time.time_ns()}"
        self._cluster = Cluster(address)
        self.hosts: list[LoadHost] = []
        self._lead_ns = _LEAD_NS
        try:
            self._connect(count, only)
        except BaseException:
            self._cluster.close()
            raise

    @property
    def _client(self) -> Client:
        return self._cluster.client

    def _connect(self, count: int | None, only: str | None) -> None:
        workers = self._workers()
        named = sorted((str(facts.get("name", address)), address) for address, facts in workers.items())
        if only is not None:
            known = [_short(*host) for host in named]
            if only not in known:
                accepted = f"HOST:/DIR, HOST one of {', '.join(known)}"
                raise InputError.one(OPTION, "the cluster has no such host", value=f"'{only}'", accepted=accepted)
            named = [host for host in named if _short(*host) == only]
        if count is not None and count > len(named):
            raise InputError.one(
                "--hosts", f"the cluster has {len(named)}", value=str(count), accepted=f"1 to {len(named)}"
            )
        for name, address in named[:count]:
            agent = self._client.submit(
                HostAgent,
                self._session,
                actor=True,
                workers=[address],
                pure=False,
                key=f"raidlab-{self._session}-{name}",
            )
            offset_ns, uncertainty_ns = self._clock(address)
            host = LoadHost(_short(name, address), address, None, offset_ns, uncertainty_ns)
            host.agent = self._result(host, agent)
            self.hosts.append(host)

    def _workers(self) -> dict[str, Any]:
        scheduler = self._client.scheduler
        # Where the scheduler has gone, nobody is there any more.
        with suppress(OSError):
            # Not what `scheduler_info` gives: that is replaced every two seconds by one that leaves the workers out.
            if scheduler is not None:
                return cast("dict[str, Any]", self._client.sync(scheduler.identity, n_workers=-1)["workers"])
        return {}

    def _clock(self, address: str) -> tuple[int, int]:
        """How far a machine's clock is ahead of this one's, and how well that is known."""
        looks = []
        for _ in range(_CLOCK_LOOKS):
            asked = time.time_ns()
            theirs = cast(int, self._client.run(_clock_ns, workers=[address])[address])
            took = time.time_ns() - asked
            looks.append((took // 2, theirs - asked - took // 2))
        uncertainty_ns, offset_ns = min(looks)
        return offset_ns, uncertainty_ns

    @property
    def lost(self) -> list[str]:
        """What is to be said of hosts that were lost on the way."""
        return [f"host {host.name} ({host.address}) is lost" for host in self.hosts if host.is_lost]

    def say_lost(self, turns: Turns[Any, Any]) -> None:
        """What was measured in turns to its end has failed nevertheless, if hosts were lost meanwhile."""
        if self.lost and turns.status == "complete":
            turns.status, turns.failure = "failed", "; ".join(self.lost)

    @property
    def living(self) -> list[LoadHost]:
        """Those that are not lost."""
        return [host for host in self.hosts if not host.is_lost]

    def ask(self, ask: Callable[[LoadHost], Any], among: Container[str] | None = None) -> list[tuple[LoadHost, Any]]:
        """Ask all that live at once (or those of these names), and wait for their answers; who is lost has none."""
        asked, found = [], []
        try:
            for host in self.living:
                if among is None or host.name in among:
                    # An actor that is known to be gone says so at once.
                    with suppress(RuntimeError):
                        asked.append((host, ask(host)))
                        continue
                    host.is_lost = True
            for host, future in asked:
                with suppress(HostLostError):
                    found.append((host, self._result(host, future)))
        except BaseException:
            self.stop()
            raise
        if not found:
            raise CellFailedError("; ".join(self.lost), "lost", "--cluster")
        return found

    def _result(self, host: LoadHost, future: Any) -> Any:
        """What a host answers; `HostLostError` where it is gone."""
        stopped = False
        while True:
            if self._stop() and not stopped:
                self.stop()
                stopped = True
            try:
                return future.result(timeout=_LOOK_EVERY_S)
            except TimeoutError:
                pass
            except InputError as error:
                raise InputError(
                    [replace(problem, message=f"on {host.name}: {problem.message}") for problem in error.problems]
                ) from None
            except EngineError as error:
                raise self._said_of(host, error) from None
            except RaidlabError:
                raise
            except (OSError, ValueError, RuntimeError) as error:
                if not self._is_gone(host, _GONE_WITHIN_S):
                    raise CellFailedError(f"host {host.name}: {error}", "io", "--cluster") from None
            if self._is_gone(host):
                host.is_lost = True
                raise HostLostError

    def _said_of(self, host: LoadHost, error: EngineError) -> EngineError:
        """A host's error, where its targets are some of those of all."""
        target = re.match(r"targets\[(\d+)\]", error.key)
        key = error.key if target is None else f"targets[{int(target[1]) + self._before(host)}]"
        said = f"on {host.name}: {error.message}" if target is None else error.message
        return type(error)(f"{key}: {said}" if key else said, error.kind, key)

    def _before(self, host: LoadHost) -> int:
        """How many targets are before a host's own, among those of all."""
        return sum(other.targets for other in self.hosts[: self.hosts.index(host)])

    def _is_gone(self, host: LoadHost, within_s: float = 0.0) -> bool:
        """Whether the scheduler knows a host no more, now or a moment later: it may hear of it after we do."""
        until_s = time.monotonic() + within_s
        while host.address in self._workers():
            if time.monotonic() >= until_s:
                return False
            time.sleep(_LOOK_EVERY_S)
        return True

    def open(self, asked: MeasureRequest, *, writes: bool) -> list[TargetSpec]:
        """The targets of all hosts, one host's after another's, each said with its host's name."""
        each = self.ask(lambda host: host.agent.open(asked.targets, asked.destroy, asked.file_bytes, writes=writes))
        found = []
        self._need_all()
        for host, targets in each:
            host.targets = len(targets)
            for target in targets:
                if target.tree is not None:
                    accepted = "plain targets"
                    raise InputError.one(
                        "TARGET", "is an array, and hosts drive none", value=f"'{target.word}'", accepted=accepted
                    )
                places = tuple(replace(place, word=f"{host.name}:{place.word}") for place in target.places)
                found.append(replace(target, word=places[0].word, name="", places=places))
        return found

    @contextmanager
    def made_members(self) -> Iterator[Members]:
        """The targets of all hosts as the engine takes them."""
        each = self.ask(lambda host: host.agent.members())
        self._need_all()
        yield [member for _, members in each for member in members]

    def _need_all(self) -> None:
        """Before anything is measured, a host that is lost ends it."""
        if self.lost:
            raise CellFailedError("; ".join(self.lost), "lost", "--cluster")

    def member_facts(self, targets: Sequence[Any]) -> list[Member]:
        """What is known of each target, as its own host sees it."""
        self._need_all()
        parts = self._split(targets)
        found: list[Member] = []
        for host, members in self.ask(lambda host: host.agent.facts(parts[host.name])):
            for member in members:
                # Two machines may well have disks of one name.
                member["disks"] = [f"{host.name}:{disk}" for disk in member["disks"]]
            found += members
        self._need_all()
        return found

    def member_facts_after(self, members: list[Member]) -> None:
        """Note what became of what lies below the targets, where a host still knows."""
        parts = self._split(members)
        for host, after in self.ask(lambda host: host.agent.facts_after(parts[host.name])):
            for before, now in zip(parts[host.name], after, strict=True):
                before.update(now)

    def _split(self, each: Sequence[T]) -> dict[str, list[T]]:
        """By host, what is given for the targets of all."""
        begin, found = 0, {}
        for host in self.hosts:
            found[host.name] = list(each[begin : begin + host.targets])
            begin += host.targets
        return found

    def run(self, request: str, reads: Mapping[str, float] | None = None) -> CellAnswer:
        """Run a cell on all of them, begun together; again, with more time to get ready, where one of them was late.

        ``reads``: run it only on hosts of these names, each with this share of reads.
        """
        asked = json.loads(request)
        return self._in_time(lambda: self._run_once(asked, reads), lambda answer: answer["checks"])

    def streams(self, cell: StreamsCell, *, keep: bool) -> StreamsResult:
        """The same with streams: each host runs all of them, between ends of its own."""

        def once() -> tuple[StreamsResult, int]:
            parts, late_ns = self._begun(cell, lambda agent, own: agent.streams(own, keep=keep))
            return merged_streams(parts), late_ns

        return self._in_time(once, lambda result: result.checks)

    def open_files(self, paths: Sequence[str], made: MadeFiles) -> MadeFiles | GivenFiles:
        """What the paths mean on all of them: directories to make files in, or files that are there."""
        kinds = {host.name: kind for host, kind in self.ask(lambda host: host.agent.open_files(paths, made))}
        self._need_all()
        if len(set(kinds.values())) > 1:
            says = {"made": "directories", "list": "files"}
            raise InputError.one(
                PATHS,
                "is not the same on all hosts: " + ", ".join(f"{says[kind]} on {name}" for name, kind in kinds.items()),
                value=f"'{' '.join(paths)}'",
                accepted="directories on all of them, or files",
            )
        found = [Path(path) for path in paths]
        if "list" in kinds.values():
            return GivenFiles(paths=found)
        return made.model_copy(update={"directories": found, "keep": True})

    def files(self, cell: FilesCell) -> FilesResult:
        """The same with whole files: each host reads its own, or writes them where nobody is to read."""

        def once() -> tuple[FilesResult, int]:
            parts, late_ns = self._begun(cell, lambda agent, own: agent.files(own))
            return merged_files(parts), late_ns

        # What has been written is there, and is not written again.
        return self._in_time(once, lambda result: result.checks) if cell.readers else once()[0]

    def _in_time(self, once: Callable[[], tuple[T, int]], checks: Callable[[T], Sequence[CheckAnswer]]) -> T:
        for left in reversed(range(_TRIES)):
            answer, late_ns = once()
            is_apart = next(check for check in checks(answer) if check["name"] == TOGETHER)["verdict"] != "PASS"
            if not is_apart or not left or self._stop():
                break
            self._lead_ns = min(self._lead_ns + 2 * late_ns, _LONGEST_LEAD_NS)
        return answer

    def _begun(self, cell: OnHosts, ask: Callable[[Any, OnHosts], Any]) -> tuple[list[HostPart[Any]], int]:
        """What all that live answer to a cell that each runs as a whole, and by how much the last began too late."""
        begin_at_ns = time.time_ns() + self._lead_ns
        cells = {
            host.name: cell.model_copy(
                update={
                    # The same for as long as it lives: files that it has made are known by it.
                    "seed": derive_seed(cell.seed, f"host {number}"),
                    "begin_at_unix_ns": begin_at_ns + host.clock_offset_ns,
                }
            )
            for number, host in enumerate(self.hosts)
        }
        parts = [
            HostPart(host.name, result, result.facts["began_unix_ns"] - host.clock_offset_ns)
            for host, result in self.ask(lambda host: ask(host.agent, cells[host.name]))
        ]
        return parts, max(part.began_ns for part in parts) - begin_at_ns

    def _run_once(self, asked: dict[str, Any], reads: Mapping[str, float] | None) -> tuple[CellAnswer, int]:
        """The answer of all that live, and by how much the last of them began too late."""
        begin_at_ns = time.time_ns() + self._lead_ns
        texts = self._shares(asked, begin_at_ns, reads)
        warmup_ns = (asked.get("warmup") or {}).get("duration") or 0
        parts, late_ns = [], 0
        for host, answer in self.ask(lambda host: host.agent.run(texts[host.name]), texts):
            began_ns = answer["facts"]["engine"]["began_unix_ns"] - host.clock_offset_ns
            late_ns = max(late_ns, began_ns - begin_at_ns)
            # Counted from the moment asked for, whoever was late.
            opened_ns = begin_at_ns + warmup_ns
            parts.append(Part(host.name, answer, opened_ns, self._before(host), began_ns))
        return merged(parts, asked["seed"], len(asked["targets"])), late_ns

    def _shares(self, asked: dict[str, Any], begin_at_ns: int, reads: Mapping[str, float] | None) -> dict[str, str]:
        """What each that lives is to do: its own targets, its share of the depth or the rate, requests of its own."""
        targets, spans = self._split(asked["targets"]), self._split(asked.get("spans") or [])
        living = [host for host in self.living if reads is None or host.name in reads]
        found = {}
        for number, host in enumerate(living):
            own = {
                "targets": targets[host.name],
                "spans": spans[host.name],
                "seed": derive_seed(asked["seed"], f"host {number}"),
                "load": share_of(asked["load"], number, len(living)),
                "workload": asked["workload"] if reads is None else {**asked["workload"], "read": reads[host.name]},
                "begin_at_unix_ns": begin_at_ns + host.clock_offset_ns,
            }
            found[host.name] = json.dumps({**asked, **own}, sort_keys=True)
        return found

    def runner(self) -> HostsRunner:
        """What runs cells on all of them."""
        return HostsRunner(self, self._stop)

    def stop(self) -> None:
        """Have all of them end what they are doing."""
        living = [host.address for host in self.hosts if host.address in self._workers()]
        if living:
            with suppress(OSError, TimeoutError):
                self._client.run(_stop, self._session, workers=living, on_error="ignore")

    def close(self) -> None:
        """Have them remove what they made, and let them go."""
        for host in self.hosts:
            with suppress(Exception):
                if host.agent is not None and host.address in self._workers():
                    host.agent.close().result(timeout=_CLOSING_S)
        self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _short(name: str, address: str) -> str:
    """What a worker is called: its name, if somebody gave it one, else where it is."""
    return address.partition("//")[2] if name == address else name


def share_of(load: dict[str, Any], number: int, count: int) -> dict[str, Any]:
    """One host's share of a load."""
    found = dict(load)
    for key in ("depth", "max_in_flight"):
        if found.get(key) is not None:
            found[key] = found[key] // count + (number < found[key] % count)
    if "arrival" in found:
        found["arrival"] = {**found["arrival"], "rate_per_s": found["arrival"]["rate_per_s"] / count}
    return found


class HostsRunner(InlineRunner):
    """Runs one request after another on all hosts at once, in the order they were submitted."""

    def __init__(self, hosts: Hosts, stop: StopFlag) -> None:
        super().__init__(stop)
        self._hosts = hosts

    def _run(self, key: Hashable, request: str) -> Answer:
        del key
        return cast(Answer, self._hosts.run(request))
