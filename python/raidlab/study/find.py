"""Where study and device files are looked for.

Invariants:

- A name is looked up in a fixed order, and the first hit wins: beside what names it, in the current directory, then
  among the files that come with raidlab.
- Something that looks like a path (it has a separator or ends in ``.toml``) is a path and never a name.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from raidlab.errors import InputError

# So many names are listed; of more the nearest.
_FEW, _NEAREST = 12, 5
# Fewer letters begin too many names to be a hint.
_LEAST_BEGINNING = 3
# What files of parameters end in, which stand beside device files.
PARAMETERS_ENDING = ".parameters.toml"


def shared_roots() -> list[Path]:
    """The directories that hold ``studies`` and ``devices``: the current one, then what comes with raidlab."""
    package = Path(__file__).resolve().parent.parent
    # An installed package carries both folders as `_shared`; a source tree has them beside `python`.
    candidates = [Path.cwd(), package / "_shared", package.parent.parent]
    return [root for root in candidates if (root / "studies").is_dir() or (root / "devices").is_dir()]


def study_names() -> dict[str, Path]:
    """Every study that can be run by name, with its file, in alphabetical order."""
    found: dict[str, Path] = {}
    for root in shared_roots():
        for file in sorted((root / "studies").glob("*/study.toml")):
            found.setdefault(file.parent.name, file)
    return dict(sorted(found.items()))


def find_study(name_or_file: str) -> Path:
    """Find a study file by name (``quickstart``), path, or the directory that holds a ``study.toml``."""
    if not name_or_file.strip():
        message = "is empty (an unset variable of the shell?)"
        raise InputError.one("study", message, value="''", accepted="a name or path")
    path = Path(name_or_file)
    try:
        path.is_dir()
    except OSError as error:
        message = f"cannot be looked at: {error.strerror}"
        raise InputError.one("study", message, value=f"'{name_or_file}'", accepted="a name or path") from None
    if looks_like_path(name_or_file) or path.is_dir():
        if path.is_dir() and (path / "study.toml").is_file():
            return path / "study.toml"
        # That it is a pipe, say, is told by whoever opens it.
        if path.exists() and not path.is_dir():
            return path
        if looks_like_path(name_or_file):
            message = "is a directory without a study.toml" if path.is_dir() else "there is no such file"
            raise InputError.one("study", message, value=f"'{name_or_file}'", accepted="a study file (TOML)")
    names = study_names()
    if name_or_file in names:
        return names[name_or_file]
    message = f"there is no study of this name{did_you_mean(name_or_file, names)}"
    accepted = f"{', '.join(names) or 'none found here'}, or the path of a study file"
    raise InputError.one("study", message, value=f"'{name_or_file}'", accepted=accepted)


def find_device(name: str, beside: Path) -> Path | None:
    """Find a device file by name (``hdd-7200``) or by path relative to the study file; None when there is none."""
    roots = (beside.parent, *(root / "devices" for root in shared_roots()))
    for candidate in [root / (name if name.endswith(".toml") else f"{name}.toml") for root in roots]:
        # A name too long for a file is that of no file.
        with suppress(OSError):
            if candidate.is_file():
                return candidate
    path = beside.parent / name
    with suppress(OSError):
        # Whatever it is, it is what was meant: who reads it says what is wrong with it.
        return path if looks_like_path(name) and path.exists() else None
    return None


def find_parameters(name: str, beside: Path) -> Path | None:
    """Find a file of parameters by name (``original/amdahl5890``) or path, as `find_device` does."""
    return find_device(name if name.endswith(".toml") else f"{name}{PARAMETERS_ENDING}", beside)


def device_names() -> list[str]:
    """Every device file that can be named without a path."""
    return [name for name in _names() if not name.endswith(PARAMETERS_ENDING.removesuffix(".toml"))]


def parameter_names() -> list[str]:
    """Every file of parameters that can be named without a path."""
    ending = PARAMETERS_ENDING.removesuffix(".toml")
    return [name.removesuffix(ending) for name in _names() if name.endswith(ending)]


def _names() -> list[str]:
    names = {
        str(file.relative_to(root / "devices").with_suffix(""))
        for root in shared_roots()
        for file in (root / "devices").rglob("*.toml")
    }
    return sorted(names)


def looks_like_path(text: str) -> bool:
    """Whether a word on the command line is meant as a path rather than a name."""
    return os.sep in text or text in (".", "..") or text.endswith(".toml")


def nearest(word: str, known: Iterable[str]) -> str:
    """The names there are, of many the nearest few and how many others.

    Examples
    --------
    >>> nearest("raid6", ["raid5", "raid10"])
    'raid5, raid10'
    >>> nearest("depth 7", [f"depth {n}" for n in range(100)])
    'depth 7, depth 97, depth 87, depth 79, depth 78 and 95 others'
    """
    names = list(known)
    if len(names) <= _FEW:
        return ", ".join(names) or "none"
    close = difflib.get_close_matches(word, names, n=_NEAREST, cutoff=0.0)
    return f"{', '.join(close)} and {len(names) - len(close)} others"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint such as ``; did you mean 'depths'?`` or nothing."""
    names = list(known)
    begun = [name for name in names if len(word) >= _LEAST_BEGINNING and name.startswith(word)]
    close = begun or difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""
