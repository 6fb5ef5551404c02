"""Start what a laboratory needs: a directory's server and an agent on each machine; or a machine that takes copies.

Invariant: the key is made for this laboratory, lies in a folder that only its owner can read, and goes with it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from raidlab.errors import CellFailedError
from raidlab.network.copy import CopyMachine
from raidlab.network.lab import Lab, comes_true, connect_from, lab_folder, network_lab, this_python
from raidlab.network.limits import ProcessCounter, Watch
from raidlab.network.server import answers, start_nfs

_PATIENCE_S = 20.0
_AGENT_PORT = 7070


def agents_of(lab: Lab, directory: Path, folder: Path) -> tuple[list[str], bytes, list[Watch]]:
    """The addresses of agents that reach a directory through the laboratory's network, their key, what to watch.

    They are spoken to through sockets in ``folder``, so that no word of the controller's goes over a link.
    """
    key, key_file = _new_key(folder)
    place, server = start_nfs(lab, directory, folder)
    sockets = []
    for number, namespace in enumerate(lab.machines):
        path = folder / f"agent-{number}"
        log = folder / f"agent-{number}.log"
        lab.start(namespace, [*this_python(), "agent", place, "--listen", f"unix:{path}", "--key", str(key_file)], log)
        sockets.append((path, log))
    if not comes_true(lambda: all(path.exists() for path, _log in sockets), _PATIENCE_S):
        silent, log = next((path, log) for path, log in sockets if not path.exists())
        raise _not_listening(silent.name, log, "--lab")
    watches: list[Watch] = [*lab.counters(), ProcessCounter("the server's work", server)]
    return [f"unix:{path}" for path, _log in sockets], key, watches


@contextmanager
def machine_in_lab(name: str, directory: Path, mbit_s: float) -> Iterator[CopyMachine]:
    """A machine of a laboratory that puts copies into a directory; its link, and this machine's to it, are shaped."""
    with lab_folder() as folder, network_lab(1, mbit_s, mbit_s) as lab:
        key, key_file = _new_key(folder)
        address, log = f"{lab.addresses[0]}:{_AGENT_PORT}", folder / "agent.log"
        command = [*this_python(), "agent", str(directory.resolve()), "--listen", address, "--key", str(key_file)]
        lab.start(lab.machines[0], command, log)
        if not comes_true(lambda: answers(lab, lab.server, lab.addresses[0], _AGENT_PORT), _PATIENCE_S):
            raise _not_listening("its agent", log, "--machine")
        yield CopyMachine(name, address, key, partial(connect_from, lab.server))


def _not_listening(who: str, log: Path, option: str) -> CellFailedError:
    said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["nothing"]
    return CellFailedError(f"{who} does not listen; it says: {said[-1]}", kind="io", key=option)


def _new_key(folder: Path) -> tuple[bytes, Path]:
    key, file = secrets.token_hex(32).encode(), folder / "key"
    file.touch(mode=0o600)
    file.write_bytes(key)
    return key, file
