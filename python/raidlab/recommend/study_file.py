"""A study that measures the first arrays of an answer on the user's own disks.

Invariant: it loads as it is; the need's own trace and device files are named by paths that lead there from anywhere.
"""

from __future__ import annotations

from pathlib import Path

from raidlab.formats.toml import toml_text
from raidlab.reading import Plain
from raidlab.recommend.candidates import Contender
from raidlab.recommend.cells import CONFIRM_TIMES, device_of, study_document
from raidlab.recommend.load import LoadedNeed
from raidlab.study.check import EQUAL_TOLERANCE
from raidlab.study.find import find_device
from raidlab.study.units import format_bytes

_MEMBER_SIZE = "4GiB"
_REPEATS = 5


def study_text(loaded: LoadedNeed, candidates: list[Contender], warm_up: int, *, is_met: bool) -> str:
    """The study of some arrays, in the simulator and, with ``--on``, on real members.

    ``is_met`` says whether they meet the need, or only come nearest to it.
    """
    arrays: list[dict[str, Plain]] = [
        {"name": candidate.name, "tree": candidate.shape.text, "device": _device(loaded, candidate)}
        for candidate in candidates
    ]
    is_same = len({candidate.shape.device for candidate in candidates}) == 1 and candidates[0].shape.scheduler is None
    requests = CONFIRM_TIMES * loaded.need.effort.requests
    document = study_document(loaded, arrays, requests=requests, warm_up=warm_up, repeats=_REPEATS)
    if is_same:
        # An array with a device of its own is only simulated.
        arrays = [{key: value for key, value in array.items() if key != "device"} for array in arrays]
    sim = document["sim"]
    assert isinstance(sim, dict), "the study is simulated"
    document |= {
        "title": document["title"],
        "on": ["sim"],
        "array": arrays,
        "sim": {**sim, "device": _device(loaded, candidates[0])},
        "live": {"member_size": _MEMBER_SIZE, "measure": {"duration": "20s"}, "repeats": _REPEATS},
        "compare": _compare(candidates),
    }
    widest = max(candidate.shape.members for candidate in candidates)
    places = " ".join(f"--on /mnt/{number + 1}/" for number in range(widest))
    return toml_text(document, [*_comments(loaded, len(candidates), is_met=is_met), f"  raidlab run FILE {places}"])


def _compare(candidates: list[Contender]) -> list[dict[str, Plain]]:
    """One table of all, if they have as many members or as much space; arrays that share neither are not compared."""
    sizes = [candidate.user_bytes for candidate in candidates]
    is_like = {
        "members": len({candidate.shape.members for candidate in candidates}) == 1,
        "user_capacity": max(sizes) - min(sizes) <= EQUAL_TOLERANCE * max(sizes),
    }
    table: dict[str, Plain] = {"group": "all", "title": "The arrays recommended", "reference": candidates[0].name}
    return [{**table, "equal": equal, "per": "array"} for equal, holds in is_like.items() if holds][:1]


def _comments(loaded: LoadedNeed, count: int, *, is_met: bool) -> list[str]:
    found = f"The first {count} arrays that `raidlab recommend` found for '{loaded.need.name}'."
    nearest = f"No array meets '{loaded.need.name}'; `raidlab recommend` found these {count} to come nearest."
    return [
        f"{found if is_met else nearest} As it is it is",
        f"simulated; a directory on each disk measures it there, with files of {format_bytes(4 * 2**30)} on each:",
    ]


def _device(loaded: LoadedNeed, candidate: Contender) -> str | dict[str, Plain]:
    device = device_of(loaded, candidate.shape)
    if not isinstance(device, str):
        return device
    file = find_device(device, loaded.file)
    is_path = file is not None and (loaded.file.parent / device).is_file()
    return str(Path(loaded.file.parent / device).absolute()) if is_path else device
