"""The lab kernel as the scripts here use it: is it there, and did what it was booted for go well?

Invariant: nothing is built or installed here; what is missing is said in a sentence.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
_COMPLAINTS = ("refused", "not ", "write failed", "rewrite failed")


class LabError(Exception):
    """The lab could not run, or did not do what was asked; the text is one sentence for the user."""


def need_lab() -> None:
    """Say why there is no lab here, if there is none."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kernel = Path(os.environ.get("LAB") or cache / "raidlab-lab") / "linux"
    if not os.access(kernel, os.X_OK):
        build = os.path.relpath(HERE / "build-kernel.sh")
        raise LabError(f"The lab kernel is not built ({kernel} is missing): run {build} once, about 3 minutes.")
    if not shutil.which("mdadm", path="/usr/sbin:/usr/bin:/sbin:/bin"):
        raise LabError("mdadm is not installed: run apt-get install mdadm.")


def boot_lab(script: str, work: Path, **options: int) -> None:
    """Boot the lab once and run a script of this folder in it, which reads and leaves files in ``work``."""
    flags = [word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    command = [str(HERE / "boot.sh"), *flags, str(HERE / script), str(work)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    complaints = [line for line in result.stdout.splitlines() if line.startswith(_COMPLAINTS)]
    if complaints or result.returncode != 0:
        detail = "; ".join(complaints) or (result.stdout + result.stderr).strip()[-2000:] or "no output"
        raise LabError(f"The lab did not finish (status {result.returncode}): {detail}")
