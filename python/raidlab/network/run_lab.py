"""Start what a laboratory needs: the server of a directory, and an agent on each machine.

Invariant: the key is made for this laboratory, lies in a folder that only its owner can read, and goes with it.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path

from raidlab.errors import CellFailedError
from raidlab.network.lab import Lab, this_python
from raidlab.network.limits import ProcessCounter, Watch
from raidlab.network.server import start_nfs

_PATIENCE_S = 20.0


def agents_of(lab: Lab, directory: Path, folder: Path) -> tuple[list[str], bytes, list[Watch]]:
    """The addresses of agents that reach a directory through the laboratory's network, their key, what to watch.

    They are spoken to through sockets in ``folder``, so that no word of the controller's goes over a link.

    Raises
    ------
    InputError, CellFailedError
    """
    folder.chmod(0o700)
    key = secrets.token_hex(32).encode()
    key_file = folder / "key"
    key_file.touch(mode=0o600)
    key_file.write_bytes(key)
    place, server = start_nfs(lab, directory, folder)
    sockets = []
    for number, namespace in enumerate(lab.machines):
        path = folder / f"agent-{number}"
        log = folder / f"agent-{number}.log"
        lab.start(namespace, [*this_python(), "agent", place, "--listen", f"unix:{path}", "--key", str(key_file)], log)
        sockets.append((path, log))
    deadline = time.monotonic() + _PATIENCE_S
    while not all(path.exists() for path, _log in sockets):
        if time.monotonic() > deadline:
            silent, log = next((path, log) for path, log in sockets if not path.exists())
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["nothing"]
            raise CellFailedError(f"{silent.name} does not listen; it says: {said[-1]}", kind="io", key="--lab")
        time.sleep(0.1)
    watches: list[Watch] = [*lab.counters(), ProcessCounter("the server's work", server)]
    return [f"unix:{path}" for path, _log in sockets], key, watches
