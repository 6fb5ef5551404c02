"""The study of a prediction: an array that stands already, and the twin that is to say how fast it should be.

A study of the user's gives the work and the budget. Its arrays, its path and what it compares are left out: here there
are two arrays, the one that stands and its model, which are asked the same.

Invariants:

- The study is complete by itself: it can be kept, changed and run like any other.
- What the user's study asks and this one does not is said.
- Nothing is written that the user has not given up: work that writes is left out unless it may.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raidlab.errors import InputError, RefusedError
from raidlab.formats.toml import toml_text
from raidlab.results.facts import Volume
from raidlab.run.kernel_facts import Sources, volumes_below
from raidlab.run.kernel_facts.sources import read_text
from raidlab.run.kernel_facts.stack import stack_below
from raidlab.run.targets import LivePlace, resolve_targets
from raidlab.run.twin import Twin, UnmodelledError, twin_of_volumes
from raidlab.run.volumes import volume_bytes
from raidlab.study import LoadedStudy
from raidlab.study.check import writes
from raidlab.study.device import DeviceModel, load_device
from raidlab.study.find import device_names, nearest
from raidlab.study.load import load_study_text
from raidlab.study.units import format_bytes
from raidlab.study.workload import Workload

_TWIN = "predicted"
# Of what a study says of a target, what a prediction takes over.
_OF_SIM = ("warmup", "measure", "repeats", "quick")
_OF_LIVE = ("member_size", "sector", "verify", "warmup", "measure", "repeats", "quick")
# Three are the fewest that show how far to trust a difference.
_REPEATS = 3
_DEPTHS = [1, 8, 32]
# Rounding to whole chunks and superblocks take less than this.
_LARGER = 1.02
_LONGEST_NAME = 40
_ROTATING_KINDS = ("hdd",)


@dataclass(frozen=True)
class PredictionStudy:
    """A study that measures an array and simulates its twin."""

    text: str
    on: tuple[str, ...]
    """What it is run on."""
    twin: Twin
    notes: tuple[str, ...]
    """What of the user's study is left out, and what the twin leaves out, a sentence each."""


def prediction_study(
    volume: str,
    device: str,
    loaded: LoadedStudy,
    *,
    tree: str | None = None,
    destroy: Sequence[str] = (),
    quick: bool = False,
    sources: Sources | None = None,
) -> PredictionStudy:
    """The study that sets an array beside its prediction.

    Parameters
    ----------
    volume : str
        The array's block device, a directory of its file system, or a file there.
    device : str
        The model of its members.
    loaded : LoadedStudy
        Whose workloads and loads are run.
    tree : str, optional
        What it is made of, in the words of its owner, where the kernel cannot tell.
    destroy : sequence of str
        Block devices that may be overwritten.
    quick : bool
        Take the size of files from the quick budget.
    sources : Sources, optional
        Where facts are read; this system's, if left out.

    Raises
    ------
    InputError
        Where there is no such volume or device, or where raidlab has no model of it.
    """
    place = _place_of(volume, destroy)
    path = place.path
    assert path is not None, "a volume is somewhere"
    model = _device_model(device)
    sources = sources or Sources()
    volumes = volumes_below(path, sources)
    twin = _twin_of(path, volumes, model, tree, sources)
    live = loaded.study.live
    file_bytes = (live.quick.member_size if quick else None) or live.member_size
    size = volume_bytes({_TWIN: place}, file_bytes)[_TWIN]
    may_write = place.kind == "directory" or place.given_up
    workloads, notes = _workloads(loaded, may_write=may_write, volume=volume)
    document = _document(loaded, volume, twin, device, size, workloads)
    text = toml_text(document, comments=["written by raidlab predict; raidlab run runs it again"])
    found = PredictionStudy(text, tuple(_targets(volume)), twin, ())
    return replace(found, notes=(*notes, *twin.left_out, *_of_place(place, volumes), *_of_size(found, loaded, size)))


def _place_of(volume: str, destroy: Sequence[str]) -> LivePlace:
    """Where the volume is, by the rules of every volume."""
    if not Path(volume).exists() and "/" not in volume:
        message = "is no place of an array"
        raise InputError.one("VOLUME", message, value=f"'{volume}'", accepted="a path such as /dev/md0 or /mnt/box/")
    for device in destroy:
        if Path(device).resolve() != Path(volume).resolve():
            raise InputError.one("--destroy", "is not the volume", value=f"'{device}'", accepted=f"'{volume}'")
    path = Path(volume)
    if path.is_file():
        return LivePlace("file", path)
    try:
        (target,) = resolve_targets([volume], destroy)
    except InputError as error:
        problem = error.problems[0]
        raise InputError([replace(problem, where=problem.where.replace("--on", "VOLUME"))]) from None
    except RefusedError as error:
        raise RefusedError(str(error).replace("--on", "VOLUME", 1)) from None
    return target.places[0]


def _device_model(device: str) -> DeviceModel:
    try:
        return load_device(device, Path.cwd() / "-")
    except ValueError as error:
        accepted = f"{nearest(device, device_names())}, or the path of a device file (TOML)"
        raise InputError.one("--device", str(error), value=f"'{device}'", accepted=accepted) from None


def _twin_of(path: Path, volumes: Sequence[Volume], model: DeviceModel, tree: str | None, sources: Sources) -> Twin:
    """The twin, by what its owner says or by what the kernel knows."""
    from raidlab import _core

    rotating = model.parameters.get("kind") in _ROTATING_KINDS
    if tree is not None:
        try:
            _core.parse_tree(tree)
        except _core.CellError as error:
            raise InputError.one(
                "--tree", error.message, value=f"'{tree}'", accepted="'raid6(8, chunk=256KiB)'"
            ) from None
        return Twin(tree, left_out=("what it is made of is its owner's word, not the kernel's",))
    stack = [] if volumes else stack_below(path, sources)
    own_name = None if not stack else read_text(stack[0].disk / "device" / "model")
    try:
        return twin_of_volumes(volumes, model=own_name, rotating=rotating)
    except UnmodelledError as error:
        accepted = "an array that raidlab has a model of, or --tree TREE, which says what it comes closest to"
        raise InputError.one("VOLUME", f"cannot be predicted: {error}", value=f"'{path}'", accepted=accepted) from None


def _workloads(loaded: LoadedStudy, *, may_write: bool, volume: str) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The tables of the workloads that are run on both, and which are not, with the reason."""
    kept: list[Mapping[str, Any]] = []
    reasons: dict[str, list[str]] = {}
    tables = tomllib.loads(loaded.text)["workload"]
    for workload, table in zip(loaded.study.workload, tables, strict=True):
        reason = _why_not(workload, may_write=may_write, volume=volume)
        if reason:
            reasons.setdefault(reason, []).append(workload.name)
            continue
        own = {key: value for key, value in table.items() if key not in ("arrays", "on")}
        if workload.trace is not None:
            own["trace"] = {**table["trace"], "file": str(loaded.trace_file(workload.trace))}
        if "load" in own:
            own["load"] = _load(own["load"])
        kept.append(own)
    notes = [f"left out: {', '.join(names)} ({reason})" for reason, names in reasons.items()]
    if not kept:
        raise InputError.one(
            "--study",
            f"nothing of '{loaded.study.name}' can be asked of both: {'; '.join(notes)}",
            accepted="a study with requests that read, or --destroy for a volume that may be overwritten",
        )
    return kept, notes


def _why_not(workload: Workload, *, may_write: bool, volume: str) -> str:
    if not (workload.runs_on("live") and workload.runs_on("sim")):
        return "not for both halves"
    if workload.files is not None or workload.streams is not None:
        return "whole files and streams go through a file system, which is not predicted"
    if writes(workload) and not may_write:
        return f"it writes, and {volume} is not to be overwritten"
    return ""


def _load(table: Mapping[str, Any]) -> dict[str, Any]:
    """A load without the response time that it holds: that is a search, and the two would be asked differently."""
    load = {key: value for key, value in table.items() if key != "hold"}
    return load if load.get("depths") or load.get("open") else {**load, "depths": _DEPTHS}


def _name_of(volume: str) -> str:
    return Path(volume).resolve().name or "root"


def _targets(volume: str) -> list[str]:
    """What the study is run on: what stands there, and the simulator."""
    return [f"{_name_of(volume)}={Path(volume).absolute()}", "sim"]


def _document(
    loaded: LoadedStudy, volume: str, twin: Twin, device: str, size: int, workloads: list[Mapping[str, Any]]
) -> dict[str, Any]:
    said = tomllib.loads(loaded.text)
    name = _name_of(volume)
    of_sim = {key: value for key, value in said.get("sim", {}).items() if key in _OF_SIM}
    of_live = {key: value for key, value in said.get("live", {}).items() if key in _OF_LIVE}
    array: dict[str, Any] = {
        "name": f"{name} {_TWIN}",
        "tree": twin.tree,
        "twin_of": name,
        "user_size": size,
        **({"policy": dict(twin.policy)} if twin.policy else {}),
    }
    path = Path(device)
    return {
        "name": f"predict-{said['name']}"[:_LONGEST_NAME].rstrip("-"),
        "title": f"Is {Path(volume).absolute()} as fast as its disks allow?",
        "description": f"The work of '{said['name']}' on what stands there, and in the simulator on its twin.",
        "on": _targets(volume),
        "seed": said.get("seed", 1),
        "array": [{"name": name, "volume": str(Path(volume).absolute())}, array],
        "workload": workloads,
        "load": _load(said["load"]),
        "sim": {"device": str(path.absolute()) if path.is_file() else device, "repeats": _REPEATS, **of_sim},
        "live": of_live,
    }


def _of_place(place: LivePlace, volumes: Sequence[Volume]) -> list[str]:
    """What is not known of where the requests go."""
    if place.kind == "block":
        return []
    return ["where the file lies on the disks is not known: the model takes their beginning"]


def _of_size(found: PredictionStudy, loaded: LoadedStudy, size: int) -> list[str]:
    """That the model is smaller than what it stands for, where it is."""
    twin = load_study_text(found.text, loaded.file)
    whole = next(iter(twin.geometry.user_bytes["sim"].values()))
    if size <= whole * _LARGER:
        return []
    return [
        f"the array holds {format_bytes(size)}, its model {format_bytes(whole)}: its requests lie further apart than "
        "the model's"
    ]
