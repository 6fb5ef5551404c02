"""Emulated spindles: the members of ``--on emulated``, and what such a run needs.

Invariants:

- All members have one model, that of ``[emulated]`` or of ``[sim]``, and cost what they cost in the simulator.
- Only content kept in files touches a disk: they lie in a fresh subdirectory that is removed afterwards.
- What cannot be emulated is refused before anything is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from raidlab.errors import InputError
from raidlab.run.members import Members, member_files
from raidlab.run.targets import no_directory
from raidlab.study import LoadedStudy
from raidlab.study.check import KEEPING_WORDS
from raidlab.study.device import DeviceModel

EMULATED = "emulated"


def check_emulated(loaded: LoadedStudy) -> DeviceModel:
    """Refuse what cannot be emulated.

    Returns
    -------
    DeviceModel
        The model of all members.

    Raises
    ------
    InputError
        With the key of the study at fault.
    """
    study = loaded.study
    model = loaded.geometry.devices.get(EMULATED)
    if model is None:
        raise InputError.one(
            "--on",
            f"the study '{study.name}' says no device to emulate",
            value=f"'{EMULATED}'",
            accepted="a study with a table [sim], or with a device in [emulated]",
        )
    for index, array in enumerate(study.array):
        if study.pair_pricing(EMULATED, array) == "prepaid":
            raise InputError.one(
                f"array[{index}].pair_pricing" if array.pair_pricing == "prepaid" else "sim.pair_pricing",
                "a disk on a real clock cannot write what it has not been given",
                value="'prepaid'",
                accepted="'queued' or 'head', or one of them as emulated.pair_pricing",
            )
    return model


@contextmanager
def emulated_members(loaded: LoadedStudy, model: DeviceModel, count: int) -> Iterator[Members]:
    """Describe ``count`` emulated members, and take away afterwards what was made for their content.

    Yields
    ------
    list of dict
        Members as the engine takes them: exactly one, which stands for all, where no content lies in files.
    """
    content = loaded.study.emulated.content
    member: dict[str, Any] = {"kind": EMULATED, "device": model.parameters}
    if content in KEEPING_WORDS:
        yield [{**member, "content": content}]
        return
    words = ("emulated.content", "a smaller device")
    with member_files([_directory(content)], count, model.capacity_bytes, words) as files:
        yield [{**member, "content": {"file": str(file)}} for file in files]


def _directory(text: str) -> Path:
    directory = Path(text)
    if not directory.is_dir():
        raise no_directory("emulated.content", text, "there is no such directory", "none, memory, or another directory")
    return directory
