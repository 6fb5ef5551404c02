"""File systems of btrfs: the profile of the data, the devices and their errors, free space.

Sysfs answers nearly everything, to everybody. What the profile costs and what is left comes from ``btrfs filesystem
usage``, and which device is called what from ``btrfs device stats``, where the tool is there and may be asked.

Reference: btrfs(5), btrfs-filesystem(8), btrfs-device(8).
"""

from __future__ import annotations

import re
from pathlib import Path

from raidlab.results.facts import Volume, VolumeMember
from raidlab.run.kernel_facts.sources import FactReader, Sources, read_word

KIND = "btrfs"

# Data of one stripe goes to a device in pieces of this size; it is fixed in btrfs.
_STRIPE_BYTES = 64 * 1024
_STRIPED = {"raid0", "raid10", "raid5", "raid6"}
# Lines of `btrfs filesystem usage -b` that decide whether there is room, and what redundancy takes.
_USAGE = {
    "Device size": "size_bytes",
    "Device unallocated": "unallocated_bytes",
    "Device missing": "missing_bytes",
    "Used": "used_bytes",
    "Free (estimated)": "free_bytes",
}


def folder_of(source: str, sources: Sources) -> Path | None:
    """Where sysfs describes the file system that is mounted from a device; None when it knows none."""
    name = Path(source).resolve().name
    systems = sources.sys / "fs" / "btrfs"
    if not systems.is_dir():
        return None
    return next((entry for entry in sorted(systems.iterdir()) if (entry / "devices" / name).exists()), None)


def devices(folder: Path) -> list[Path]:
    """The block devices of a file system, as sysfs describes them."""
    return [entry.resolve() for entry in sorted((folder / "devices").iterdir())]


def facts(folder: Path, mount_point: str, sources: Sources) -> Volume:
    """What a btrfs file system is.

    ``folder``: its directory in sysfs, from `folder_of`. ``mount_point``: where it is mounted, for the tool.
    """
    reading = FactReader()
    profiles = {what: _profiles(folder / "allocation" / what) for what in ("data", "metadata")}
    level = " and ".join(profiles["data"]) or None
    if level is None:
        reading.unknown["level"] = "sysfs lists no profile of the data"
    by_id = _device_infos(folder)
    if not by_id:
        reading.unknown["state"] = "this kernel does not list devices by number (devinfo)"
    named = _names_by_id(reading, mount_point, sources)
    missing = sum(1 for info in by_id.values() if info["state"] == "missing")
    action = reading.text("activity", folder / "exclusive_operation")
    read_policy = read_word(folder / "read_policy")
    return {
        "kind": KIND,
        "name": mount_point,
        "level": level,
        "chunk_bytes": _STRIPE_BYTES if set(profiles["data"]) & _STRIPED else None,
        "state": None if not by_id else "degraded" if missing else "optimal",
        "kernel_state": "several profiles" if len(profiles["data"]) > 1 else None,
        "activity": "idle" if action == "none" else action,
        "activity_share": None,
        "missing_members": missing if by_id else None,
        "members": [{**info, "name": named.get(number, f"device {number}")} for number, info in by_id.items()]
        or [{"name": device.name, "state": None, "kernel_state": None} for device in devices(folder)],
        "details": {
            "uuid": folder.name,
            "metadata": " and ".join(profiles["metadata"]) or None,
            "checksum": reading.text("checksum", folder / "checksum"),
            # Which of several copies is read; older kernels have one way only and no file that says so.
            **({} if read_policy is None else {"read_policy": read_policy}),
            **_usage(reading, mount_point, sources),
        },
        "unknown": reading.unknown,
    }


def _profiles(folder: Path) -> list[str]:
    """Profiles in use: each is a directory with its own totals."""
    if not folder.is_dir():
        return []
    return [entry.name for entry in sorted(folder.iterdir()) if (entry / "total_bytes").exists()]


def _device_infos(folder: Path) -> dict[str, VolumeMember]:
    """What sysfs says of each device by its number; what it is called is known elsewhere."""
    found: dict[str, VolumeMember] = {}
    entries = (folder / "devinfo").iterdir() if (folder / "devinfo").is_dir() else []
    for entry in sorted(entries, key=lambda entry: int(entry.name) if entry.name.isdigit() else 0):
        reading = FactReader()
        missing = reading.text("missing", entry / "missing") == "1"
        replaced = reading.text("replace_target", entry / "replace_target") == "1"
        errors = reading.text("errors", entry / "error_stats")
        found[entry.name] = {
            "state": "missing" if missing else "rebuilding" if replaced else "online",
            "kernel_state": None,
            "errors": None if errors is None else _error_counts(errors),
        }
    return found


def _error_counts(text: str) -> dict[str, int]:
    """``write_errs 0`` and so on, a line each; anything else (``invalid``) gives nothing."""
    pairs = (line.split() for line in text.splitlines())
    return {words[0]: int(words[1]) for words in pairs if len(words) == 2 and words[1].isdigit()}


def _names_by_id(reading: FactReader, mount_point: str, sources: Sources) -> dict[str, str]:
    """Which device has which number: ``btrfs filesystem show`` ends its lines with the path."""
    text = reading.tool(("member names",), sources, ["btrfs", "filesystem", "show", "--raw", mount_point])
    found = re.findall(r"devid\s+(\d+)\s.*?path\s+(\S+)", text or "")
    return {number: Path(path).name for number, path in found if path != "missing"}


def _usage(reading: FactReader, mount_point: str, sources: Sources) -> dict[str, int | float]:
    words = ["btrfs", "filesystem", "usage", "-b", mount_point]
    text = reading.tool(("usage",), sources, words)
    return parse_usage(text) if text is not None else {}


def parse_usage(text: str) -> dict[str, int | float]:
    r"""The figures of ``btrfs filesystem usage -b`` that matter here.

    Examples
    --------
    >>> parse_usage("Overall:\n    Device size:\t\t 943718400\n    Data ratio:\t 1.50\n")
    {'size_bytes': 943718400, 'data_ratio': 1.5}
    """
    overall = text.partition("\n\n")[0]
    found: dict[str, int | float] = {}
    for line in overall.splitlines():
        key, _, value = line.strip().partition(":")
        number = value.split()[0] if value.split() else ""
        if key in _USAGE and number.isdigit():
            found[_USAGE[key]] = int(number)
        if key == "Data ratio":
            found["data_ratio"] = float(number)
    return found
