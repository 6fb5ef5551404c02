"""What modelled cells and runs gave before: a cache on disk, before whatever runner simulates them.

A modelled cell is a pure function of its request and the engine, so its answer need not be worked out twice. The tables
of a run that was modelled throughout are one of its study and raidlab's code, so they need not be put together twice.

Invariants:

- A key is the SHA-256 of all that decides the answer: the request, the compiled engine, what is in the trace; of tables
  what a run keeps of its study, seed and budget, and raidlab's whole code. Whatever changes one of them finds nothing.
- A file bears the SHA-256 of what it holds; one that does not fit is removed, and its cell simulated. How many there
  were is said once.
- A file is written aside and renamed: none is ever there in part. Where one cannot be written, no more are, which is
  said once and ends nothing.
- Only modelled cells that ran to their end are kept, and none that leaves a row a request; of runs, complete ones.
- It is bounded: what was used last stays.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile

from raidlab.errors import CellLostError
from raidlab.run.progress import Progress
from raidlab.run.runner import KeyedAnswer, Runner
from raidlab.written import WrittenAnswer, json_text

MOST_BYTES = 2 << 30
# Trimmed to somewhat less, so that it is not trimmed again at once.
_KEPT_SHARE = 0.9
_DIGEST_BYTES = 32
_BLOCK_BYTES = 1 << 20
# The number of the form below: another one reads no file of this.
_FORM = b"raidlab cell 2\n"


def default_folder() -> Path:
    """Where a user's caches are, as XDG says."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "raidlab" / "cells"


@cache
def engine_digest() -> str:
    """The SHA-256 of the compiled engine of this process."""
    from raidlab import _core

    return _file_digest(Path(_core.__file__)).hex()


@cache
def code_digest() -> str:
    """The SHA-256 of all that makes tables of a study: raidlab's code, its engine, the library that writes them."""
    import polars as pl

    package = Path(__file__).parent.parent
    found = hashlib.sha256(f"{engine_digest()}{pl.__version__}".encode())
    for file in sorted(package.rglob("*.py")):
        found.update(f"{file.relative_to(package)}".encode() + _file_digest(file))
    return found.hexdigest()


class KeptCells:
    """The cells kept in a folder, and the tables of whole runs.

    Attributes
    ----------
    folder : pathlib.Path
        Which.
    fault : OSError, optional
        Why nothing is kept any more.
    """

    def __init__(self, folder: Path | None = None, most_bytes: int = MOST_BYTES) -> None:
        self.folder, self._most_bytes = folder or default_folder(), most_bytes
        self.fault: OSError | None = None
        self._traces: dict[str, str] = {}
        self._is_dirty = False

    def place(self, request: str) -> Path | None:
        """The file of a request's answer, there or not; None where it is never kept."""
        asked = json.loads(request)
        if asked["engine"] != "sim":
            return None
        key = hashlib.sha256(_FORM + request.encode() + engine_digest().encode())
        if asked.get("trace"):
            file = asked["trace"]["file"]
            if file not in self._traces:
                try:
                    self._traces[file] = _file_digest(Path(file)).hex()
                except OSError:
                    return None
            key.update(self._traces[file].encode())
        return self._file(key.hexdigest())

    def _file(self, name: str) -> Path:
        return self.folder / name[:2] / name[2:]

    def get(self, place: Path) -> bytes | None:
        """What was kept, unchanged; None where there is nothing. A `ValueError` for what was changed."""
        try:
            content = place.read_bytes()
            os.utime(place)
        except OSError:
            return None
        body = content[_DIGEST_BYTES:]
        if hashlib.sha256(body).digest() != content[:_DIGEST_BYTES]:
            with suppress(OSError):
                place.unlink()
            raise ValueError(f"{place} was changed after it was written")
        return body

    def put(self, place: Path, body: bytes) -> None:
        """Keep something, unless something before it could not be."""
        self._write(place, (hashlib.sha256(body).digest(), body))

    def _write(self, place: Path, content: Iterable[bytes]) -> None:
        if self.fault is not None:
            return
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=place.parent, suffix=".new", delete=False) as aside:
                try:
                    aside.writelines(content)
                    aside.close()
                    os.replace(aside.name, place)  # noqa: PTH105 - a name, not a path
                except OSError:
                    Path(aside.name).unlink(missing_ok=True)
                    raise
            self._is_dirty = True
        except OSError as error:
            self.fault = error

    def tables_of(self, run: Mapping[str, object]) -> dict[str, Path] | None:
        """The files of the tables of a run, by their names; None where one of them is not kept.

        ``run`` is what decides them. Each file is called by its digest, to which whoever reads it holds it. A
        `ValueError` for a list of them that was changed.
        """
        listed = self.get(self._place_of_run(run))
        if listed is None:
            return None
        files = {name: self._file(digest) for name, digest in json.loads(listed).items()}
        try:
            for file in files.values():
                os.utime(file)
        except OSError:
            return None
        return files

    def put_tables(self, run: Mapping[str, object], folder: Path, digests: Mapping[str, str]) -> None:
        """Keep the tables of a run's folder, by their names and digests; none after something that could not be."""
        for name, digest in digests.items():
            file = self._file(digest)
            if not file.exists():
                with (folder / f"{name}.parquet").open("rb") as table:
                    self._write(file, iter(lambda: table.read(_BLOCK_BYTES), b""))
        self.put(self._place_of_run(run), json_text(digests).encode())

    def _place_of_run(self, run: Mapping[str, object]) -> Path:
        text = json.dumps(run, sort_keys=True)
        return self._file(hashlib.sha256(_FORM + code_digest().encode() + text.encode()).hexdigest())

    def trim(self) -> None:
        """Remove what was not used for longest, if the cache has grown beyond its bound."""
        if not self._is_dirty:
            return
        self._is_dirty = False
        found = []
        for file in self.folder.glob("??/*"):
            with suppress(OSError):
                facts = file.stat()
                found.append((facts.st_mtime_ns, facts.st_size, file))
        kept = sum(size for _, size, _ in found)
        if kept <= self._most_bytes:
            return
        for _, size, file in sorted(found):
            if kept <= self._most_bytes * _KEPT_SHARE:
                break
            with suppress(OSError):
                file.unlink()
                kept -= size


class CachedRunner:
    """A runner before another one, which answers what is in the cache.

    Attributes
    ----------
    found : int
        How many cells were answered from there.
    """

    def __init__(self, runner: Runner, kept: KeptCells, progress: Progress) -> None:
        self._runner, self._cache, self._progress = runner, kept, progress
        self._waiting: deque[tuple[Hashable, str, Path]] = deque()
        self._asked: dict[Hashable, Path] = {}
        self._damaged: list[Path] = []
        self.found = 0

    def submit(self, key: Hashable, request: str) -> None:
        """Queue a request."""
        place = self._cache.place(request)
        if place is None:
            self._runner.submit(key, request)
        elif place.exists():
            self._waiting.append((key, request, place))
        else:
            self._ask(key, request, place)

    def _ask(self, key: Hashable, request: str, place: Path) -> None:
        self._asked[key] = place
        self._runner.submit(key, request)

    def next_done(self) -> KeyedAnswer | None:
        """The next answer: what is kept first, one at a time, for all of it may not fit into memory."""
        while self._waiting:
            key, request, place = self._waiting.popleft()
            try:
                text = self._cache.get(place)
            except ValueError:
                self._damaged.append(place)
                text = None
            if text is not None:
                self.found += 1
                self._progress.known()
                return key, WrittenAnswer(text)
            self._ask(key, request, place)
        try:
            done = self._runner.next_done()
        except CellLostError as error:
            self._asked.pop(error.cell, None)
            raise
        if done is not None:
            self._keep(done)
        return done

    def _keep(self, done: KeyedAnswer) -> None:
        key, answer = done
        place = self._asked.pop(key, None)
        if place is None or self._cache.fault is not None:
            return
        if not isinstance(answer, WrittenAnswer):
            # One that was cut short.
            if answer.get("interrupted"):
                return
            answer = WrittenAnswer.of(answer)
        self._cache.put(place, answer.text)
        if self._cache.fault is not None:
            reason = self._cache.fault.strerror or str(self._cache.fault)
            self._progress.note(
                f"nothing more is kept of what is simulated: {self._cache.folder} cannot be written ({reason}); "
                "XDG_CACHE_HOME names another place, --no-cache asks for none"
            )

    def close(self) -> list[KeyedAnswer]:
        """Drop what is queued, and give what was finished meanwhile."""
        self._waiting.clear()
        finished = self._runner.close()
        for done in finished:
            self._keep(done)
        self._cache.trim()
        if self._damaged:
            first, *others = self._damaged
            more = f" and {len(others)} more in {self._cache.folder}" if others else ""
            self._progress.note(f"changed after it was written, so simulated again: {first}{more}")
            self._damaged.clear()
        return finished


def _file_digest(file: Path) -> bytes:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()
