"""An NFS server in user land for the laboratory: nfs-ganesha, which exports one directory inside one namespace.

Invariants:

- It and its port mapper see a `/run` and a state directory of their own (a mount namespace), so that they neither
  meet nor leave anything of the machine's own services.
- It ends with the laboratory, and its folder goes with it.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from raidlab.errors import CellFailedError, InputError
from raidlab.network.lab import Lab, comes_true

EXPORT = "/box"
_NFS_PORT = 2049
_PATIENCE_S = 30.0

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


def start_nfs(lab: Lab, directory: Path, folder: Path) -> tuple[str, int]:
    """Export a directory in the laboratory's server: the place that machines name, and the server's process.

    Its configuration and log lie in ``folder``.

    Raises
    ------
    InputError
        Where there is no server to start.
    CellFailedError
        When it does not answer.
    """
    missing = [name for name in ("ganesha.nfsd", "rpcbind", "unshare") if shutil.which(name) is None]
    if missing:
        message = f"needs {', '.join(missing)}"
        raise InputError.one("--lab", message, accepted="install nfs-ganesha, nfs-ganesha-vfs and rpcbind")
    conf, log, start = folder / "ganesha.conf", folder / "ganesha.log", folder / "start.sh"
    conf.write_text(_CONF.format(directory=directory.resolve(), export=EXPORT), encoding="utf-8")
    start.write_text(_START, encoding="utf-8")
    process = lab.start(
        lab.server, ["unshare", "--mount", "sh", str(start), str(conf), str(log)], folder / "server.log"
    )

    def is_there() -> bool:
        return answers(lab, lab.machines[0], lab.server_address, _NFS_PORT)

    if not comes_true(lambda: process.poll() is not None or is_there(), _PATIENCE_S) or process.poll() is not None:
        raise CellFailedError(f"the NFS server does not answer: {_last_words(folder)}", kind="io", key="--lab")
    # Mounting needs the mapper to know the server, which comes a moment later.
    time.sleep(1.0)
    return f"nfs://{lab.server_address}{directory.resolve()}", process.pid


def answers(lab: Lab, namespace: str, host: str, port: int) -> bool:
    """Whether something listens there, seen from a namespace."""
    trial = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1).close()"
    command = ["ip", "netns", "exec", namespace, "python3", "-c", trial, host, str(port)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _last_words(folder: Path) -> str:
    for name in ("ganesha.log", "server.log"):
        file = folder / name
        lines = file.read_text(errors="replace").splitlines() if file.is_file() else []
        if lines:
            return lines[-1][-300:]
    return "it says nothing"
