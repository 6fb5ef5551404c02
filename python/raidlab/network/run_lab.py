"""Start what a laboratory needs: a directory's server and an agent on each machine; or a machine that takes copies.

The server is one in user land, nfs-ganesha, which exports one directory inside one namespace.

Invariants:

- The key is made for this laboratory, lies in a folder that only its owner can read, and goes with it.
- The server and its port mapper see a `/run` and a state directory of their own (a mount namespace), so that they
  neither meet nor leave anything of the machine's own services. They end with the laboratory.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from raidlab.errors import CellFailedError, InputError
from raidlab.network.copy import CopyMachine
from raidlab.network.lab import Lab, comes_true, connect_from, lab_folder, network_lab, this_python
from raidlab.network.limits import ProcessCounter, Watch

_AGENT_PATIENCE_S = 20.0
_AGENT_PORT = 7070
_EXPORT = "/box"
_NFS_PORT = 2049
_NFS_PATIENCE_S = 30.0

_CONF = """\
NFS_CORE_PARAM {{ Protocols = 3; Enable_NLM = false; Enable_RQUOTA = false; }}
NFSv4 {{ Graceless = true; }}
EXPORT {{
    Export_Id = 1; Path = "{directory}"; Pseudo = "{export}"; Tag = "box"; Protocols = 3; Transports = TCP;
    Access_Type = RW; Squash = No_Root_Squash; SecType = sys, none;
    FSAL {{ Name = VFS; }}
}}
LOG {{ Default_Log_Level = WARN; }}
"""
_START = """\
set -e
mount --make-rprivate /
mount -t tmpfs raidlab /run
mkdir -p /run/ganesha /run/rpcbind /var/lib/nfs
mount -t tmpfs raidlab /var/lib/nfs
mkdir -p /var/lib/nfs/ganesha
rpcbind -w -f &
sleep 0.5
exec ganesha.nfsd -F -f "$1" -L "$2" -p /run/ganesha/raidlab.pid
"""


def agents_of(lab: Lab, directory: Path, folder: Path) -> tuple[list[str], bytes, list[Watch]]:
    """The addresses of agents that reach a directory through the laboratory's network, their key, what to watch.

    They are spoken to through sockets in ``folder``, so that no word of the controller's goes over a link.
    """
    key, key_file = _new_key(folder)
    place, server = _start_nfs(lab, directory, folder)
    sockets = []
    for number, namespace in enumerate(lab.machines):
        path = folder / f"agent-{number}"
        log = folder / f"agent-{number}.log"
        lab.start(namespace, [*this_python(), "agent", place, "--listen", f"unix:{path}", "--key", str(key_file)], log)
        sockets.append((path, log))
    if not comes_true(lambda: all(path.exists() for path, _log in sockets), _AGENT_PATIENCE_S):
        silent, log = next((path, log) for path, log in sockets if not path.exists())
        raise _not_listening(silent.name, "--lab", log)
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
        if not comes_true(lambda: _answers(lab, lab.server, lab.addresses[0], _AGENT_PORT), _AGENT_PATIENCE_S):
            raise _not_listening("its agent", "--machine", log)
        yield CopyMachine(name, address, key, partial(connect_from, lab.server))


def _not_listening(who: str, option: str, *logs: Path) -> CellFailedError:
    """The error about what was started and does not answer, with the last line of the first log that has one."""
    texts = (log.read_text(encoding="utf-8", errors="replace").strip().splitlines() for log in logs if log.is_file())
    last = next((lines[-1][-300:] for lines in texts if lines), "nothing")
    return CellFailedError(f"{who} does not listen; it says: {last}", kind="io", key=option)


def _new_key(folder: Path) -> tuple[bytes, Path]:
    key, file = secrets.token_hex(32).encode(), folder / "key"
    file.touch(mode=0o600)
    file.write_bytes(key)
    return key, file


def _start_nfs(lab: Lab, directory: Path, folder: Path) -> tuple[str, int]:
    """Export a directory in the laboratory's server: the place that machines name, and the server's process.

    Its configuration and log lie in ``folder``.
    """
    missing = [name for name in ("ganesha.nfsd", "rpcbind", "unshare") if shutil.which(name) is None]
    if missing:
        message = f"needs {', '.join(missing)}"
        raise InputError.one("--lab", message, accepted="install nfs-ganesha, nfs-ganesha-vfs and rpcbind")
    conf, start = folder / "ganesha.conf", folder / "start.sh"
    log, server_log = folder / "ganesha.log", folder / "server.log"
    conf.write_text(_CONF.format(directory=directory.resolve(), export=_EXPORT), encoding="utf-8")
    start.write_text(_START, encoding="utf-8")
    process = lab.start(lab.server, ["unshare", "--mount", "sh", str(start), str(conf), str(log)], server_log)

    def is_decided() -> bool:
        return process.poll() is not None or _answers(lab, lab.machines[0], lab.server_address, _NFS_PORT)

    if not comes_true(is_decided, _NFS_PATIENCE_S) or process.poll() is not None:
        raise _not_listening("the NFS server", "--lab", log, server_log)
    # Mounting needs the mapper to know the server, which comes a moment later.
    time.sleep(1.0)
    return f"nfs://{lab.server_address}{directory.resolve()}", process.pid


def _answers(lab: Lab, namespace: str, host: str, port: int) -> bool:
    """Whether something listens there, seen from a namespace."""
    trial = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1).close()"
    command = ["ip", "netns", "exec", namespace, "python3", "-c", trial, host, str(port)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
