"""Starting costs little: the command line's help imports nothing heavy, and is quick."""

from __future__ import annotations

import os
import subprocess
import sys

HELP = "import sys; sys.argv = ['raidlab', '--help']\nfrom raidlab.cli import main\nmain()"
HEAVY = ("pydantic", "polars", "altair", "rich", "numpy", "duckdb", "jinja2", "vl_convert")


def test_help_imports_nothing_heavy() -> None:
    probe = HELP.replace(
        "main()", "import atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main()"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    loaded = {name.split(".")[0] for name in done.stderr.split()}
    assert loaded.isdisjoint(HEAVY), loaded & set(HEAVY)
    assert "Exit codes" in done.stdout


def test_help_takes_less_than_150_ms_of_processor_time() -> None:
    def once() -> float:
        before = os.times()
        subprocess.run([sys.executable, "-c", HELP], stdout=subprocess.DEVNULL, check=False)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    # Processor time of the quickest of five: what the program costs, whatever else the machine is doing.
    assert min(once() for _ in range(5)) < 0.150
