"""``--machine``: the other machine that streams of a study go to, real or of a laboratory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from raidlab.errors import InputError

if TYPE_CHECKING:
    from raidlab.network.copy import CopyMachine
    from raidlab.study import LoadedStudy

_LAB = "lab:"


@contextmanager
def far_machine(text: str, key: str | None, loaded: LoadedStudy | None) -> Iterator[CopyMachine]:
    """The machine that ``HOST:PORT`` or ``lab:DIR`` names, for as long as the context lasts."""
    from raidlab.network.copy import CopyMachine
    from raidlab.network.protocol import load_key
    from raidlab.network.run_lab import machine_in_lab

    if not text.startswith(_LAB):
        if key is None:
            raise InputError.one("--key", "is needed to speak to an agent", accepted="the file that it has too")
        machine = CopyMachine(text, text, load_key(Path(key)))
        machine.check()
        yield machine
        return
    directory = Path(text.removeprefix(_LAB))
    if not text.removeprefix(_LAB) or not directory.is_dir():
        raise InputError.one("--machine", "is no directory", value=f"'{text}'", accepted="lab:DIR, DIR a directory")
    with machine_in_lab(text, directory, _link_mbit_s(loaded)) as machine:
        machine.check()
        yield machine


def _link_mbit_s(loaded: LoadedStudy | None) -> float:
    """The rate that the study gives the links of its machine."""
    from raidlab.study.target import FarMachine

    sections = (loaded.study.live, loaded.study.emulated) if loaded is not None else ()
    said = [end.machine.link_mbit_s for section in sections for end in section.end if end.machine is not None]
    return said[0] if said else FarMachine().link_mbit_s
