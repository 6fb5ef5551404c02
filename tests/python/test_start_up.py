"""Starting costs little: neither the help of the command line nor a worker of the simulator imports anything heavy."""

from __future__ import annotations

import resource
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


def test_a_worker_of_the_simulator_imports_only_the_engine() -> None:
    probe = "import sys, raidlab.run.pool, raidlab._core; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {name.split(".")[0] for name in loaded}.isdisjoint({*HEAVY, "typer"})
    assert not [name for name in loaded if name.startswith("raidlab.study")], "each run would begin later"


def processor_time_s(program: str) -> float:
    """Processor time of one run of the interpreter."""
    # In microseconds, where `os.times` has ticks of ten milliseconds.
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_costs_a_few_times_an_interpreter_that_does_nothing() -> None:
    # Help takes 80 to 100 ms where an empty program takes 20. Pairs, and the quickest of each: a busy or slow machine
    # slows both. Importing any of the heavy packages alone would pass the bound.
    pairs = [(processor_time_s(HELP), processor_time_s("import json, argparse, inspect")) for _ in range(7)]
    quickest_help, quickest_empty = (min(times) for times in zip(*pairs, strict=True))
    assert quickest_help < 10 * max(quickest_empty, 0.010), (quickest_help, quickest_empty)
