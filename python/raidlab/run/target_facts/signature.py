"""What stands on a block device, as libblkid's tool names it: a file system, a member of an array, nothing.

Reference: blkid(8), section "Exit code".
"""

from __future__ import annotations

from pathlib import Path

from raidlab.results.facts import Signature
from raidlab.run.kernel_facts import Sources
from raidlab.run.kernel_facts.stack import StackedDevice

# What `blkid` answers when it has found nothing; the sentence is that of `kernel_facts.sources.ask_tool`.
_NOTHING = "ended with code 2"


def fact(path: Path, _stack: list[StackedDevice], sources: Sources) -> Signature:
    """``kind``: its name, such as ``ext4``; None for a blank device. Files have no such fact."""
    if not path.is_block_device():
        return {"kind": None}
    try:
        text = sources.ask(["blkid", "-p", "-o", "export", str(path)])
    except OSError as error:
        return {"kind": None} if _NOTHING in str(error) else {"kind": None, "unknown": str(error)}
    lines = dict(line.partition("=")[::2] for line in text.splitlines())
    return {"kind": lines.get("TYPE"), "usage": lines.get("USAGE")}
