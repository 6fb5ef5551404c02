"""Does each check bite, and does it bite nobody else?

Purpose: to know that a result which passes deserves to. Without flags, targets and runs are made to cheat (a cache in
front, zeros, holes, a degraded array, a throttle, somebody else's load, ...), and the check that should catch each must
say so. With `--false-alarms`, honest runs are made: 400 in virtual time, drawn from seeds, of which at most 2 in
100 may hold an INVALID or a WARN, counted per run over all checks together; and 60 on this machine, of which none may
hold an INVALID, and at most 2 in 100 a WARN that is not the machine's own: of what others do on it, or of how it
scatters. Time that the host of this machine took is recorded, and so is that of other programs; live runs that
were disturbed by either are left out, counted, and shown apart.

    apt-get install btrfs-progs e2fsprogs fuse3 libnbd-bin nbdkit nbdkit-plugin-python   # what some rigs are made with
    python benches/checks-bite/run.py [--only WORD] [--json FILE]                    # as root
    python benches/checks-bite/run.py --false-alarms [--virtual 400] [--live 60]     # live part as root

Status 1 if a check does not bite, or bites too often, or raidlab gives no answer, or no cheat could be made. Caught is
a cheat of which its check says what it should at least: of what nobody can know, such as a write cache that loses
power, UNKNOWN. Rigs are `rigs.py`, cheats `cheats.py`, honest runs `honest.py`.

What is touched, and taken away again: loop devices and zrams of its own, files below /dev/shm, /tmp and /var/tmp
(which must lie on a disk), mounts below /tmp, control groups (version 1; without, some rigs cannot be made), and
processors kept busy. No device that is there already is written.

Reference: docs/reference/checks.md.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import signal
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

from cheats import BY_TESTS, CHEATS, DISK, MEMORY, Cheat
from honest import Live, virtual_study
from rigs import Checks, NoAnswerError, UnavailableError

from raidlab.analysis.checks import CHECKS, INVALID, SEVERITY, WARN, run_checks
from raidlab.api import analyse, run_study
from raidlab.run import execute
from raidlab.run.runner import InlineRunner

MOST_ALARMS_SHARE = 0.02
# What is true of a machine on which others work, and on which a second is not like the next; and of a loop in memory.
OF_THE_MACHINE = ("background_load", "busy_processors", "kept_from_processor", "single_run")
OF_A_LOOP_IN_MEMORY = "cache"
# Of the time of all processors together.
MOST_STOLEN_SHARE = 0.02
MOST_OTHERS_SHARE = 0.25


def main() -> int:
    """Run the cheats or the honest runs; the exit status."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--only", default="", help="cheats whose title or check holds this word, such as sparse")
    words.add_argument("--false-alarms", action="store_true", help="honest runs in place of cheats")
    words.add_argument("--virtual", type=int, default=400, help="how many honest runs in virtual time")
    words.add_argument("--live", type=int, default=60, help="how many honest runs on this machine")
    words.add_argument("--first-seed", type=int, default=1, help="seed of the first honest run")
    words.add_argument("--json", type=Path, help="a file for what each run gave")
    given = words.parse_args()
    if not chosen(given.only):
        titles = "\n  ".join(f"{cheat.title} ({cheat.check})" for cheat in CHEATS)
        sys.exit(f"--only: no cheat holds {given.only!r}; accepted: a part of one of\n  {titles}")
    if given.json and not given.json.parent.is_dir():
        sys.exit(f"--json: {given.json.parent} is no directory; accepted: a file in one that is there")
    if (not given.false_alarms or given.live) and os.geteuid() != 0:
        sys.exit("loop devices, zram, control groups and mounts need root; accepted: --false-alarms --live 0 without")
    # Rigs take away what they made when they are left, as by Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    started = time.monotonic()
    rows, good = false_alarms(given) if given.false_alarms else bites(given.only)
    print(f"{time.monotonic() - started:.0f} s")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))
    return 0 if good else 1


def chosen(only: str) -> list[Cheat]:
    """The cheats whose title or check holds a word; all cheats without one."""
    return [cheat for cheat in CHEATS if only in cheat.title or only in cheat.check]


def bites(only: str) -> tuple[list[dict[str, Any]], bool]:
    """Run every cheat and print who caught it."""
    rows = []
    print(f"{'cheat':44}{'check':22}{'answer':9}")
    for cheat in chosen(only):
        row = _bite(cheat)
        rows.append(row)
        missed = not row["caught"] and row["verdict"] != "absent"
        print(f"{cheat.title:44}{cheat.check:22}{row['verdict']:9}{'  <-- NOT CAUGHT' if missed else ''}")
        print(textwrap.fill(row["evidence"], 100, initial_indent="    ", subsequent_indent="    "), flush=True)
    caught = sum(row["caught"] for row in rows)
    absent = sum(row["verdict"] == "absent" for row in rows)
    print(f"{caught} of {len(rows)} cheats were caught" + (f"; {absent} could not be made here" if absent else ""))
    if not only:
        without = {module.NAME for module in CHECKS} - {cheat.check for cheat in CHEATS} - set(BY_TESTS)
        for name, why in BY_TESTS.items():
            print(f"{name} bites in the tests only: here it would take {why}")
        print("".join(f"{name} has no cheat\n" for name in sorted(without)), end="")
    # Where nothing could be made, nothing was shown.
    return rows, bool(caught) and caught + absent == len(rows)


def _bite(cheat: Cheat) -> dict[str, Any]:
    row: dict[str, Any] = {"cheat": cheat.title, "check": cheat.check, "least": cheat.least}
    try:
        found = cheat.run()
    except UnavailableError as error:
        return {**row, "verdict": "absent", "evidence": str(error), "caught": False, "others": []}
    except NoAnswerError as error:
        return {**row, "verdict": "failed", "evidence": str(error), "caught": False, "others": []}
    mine = [finding for finding in found if finding["check"] == cheat.check]
    worst = max(mine, key=lambda finding: SEVERITY[finding["verdict"]], default=None)
    verdict = worst["verdict"] if worst else "nothing"
    return {
        **row,
        "verdict": verdict,
        "evidence": f"{worst['evidence']} {worst['mend']}".strip() if worst else "The check said nothing.",
        "caught": SEVERITY.get(verdict, 0) >= SEVERITY[cheat.least],
        "others": [f"{finding['verdict']} {finding['check']}" for finding in found if finding not in mine],
    }


def false_alarms(given: argparse.Namespace) -> tuple[list[dict[str, Any]], bool]:
    """Run the honest runs and count who complains."""
    # What a cell of the simulator answers does not depend on the process; starting some for each run would take longer
    # than the runs.
    execute.PoolRunner = lambda stop, records, **_: InlineRunner(stop, records=records)  # type: ignore[assignment,misc]
    rows = [_virtual(seed) for seed in range(given.first_seed, given.first_seed + given.virtual)]
    alarmed = sum(bool(row["findings"]) for row in rows)
    good = alarmed <= MOST_ALARMS_SHARE * len(rows)
    if rows:
        invalid, warned = _counts(rows)
        print(
            f"virtual time: {len(rows)} runs, {invalid} with an INVALID, {warned} with a WARN, {alarmed} with either "
            f"({alarmed / len(rows):.2%}; at most {MOST_ALARMS_SHARE:.0%})"
        )
        _by_check(rows)
    live = _live(given) if given.live else []
    counted = [row for row in live if row["counts"]]
    beyond = sum(map(_goes_beyond_machine, counted))
    if live:
        print(f"{beyond} counted with a WARN beyond the machine's own (at most {MOST_ALARMS_SHARE:.0%})")
        good &= bool(counted) and not _counts(counted)[0] and beyond <= MOST_ALARMS_SHARE * len(counted)
    return rows + live, good


def _live(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Run the live runs, and print what came of them; those that were disturbed apart."""
    rows, makers = [], Live(MEMORY, DISK)
    for number in range(given.first_seed, given.first_seed + given.live):
        kind, found, taken, why = makers.run(number)
        row = _row(f"{kind} {number}", found or [])
        stolen, crowded = taken.stolen > MOST_STOLEN_SHARE, taken.others > MOST_OTHERS_SHARE
        state = "absent" if found is None else "stolen" if stolen else "crowded" if crowded else "counted"
        rows.append({**row, **vars(taken), "kind": kind, "state": state, "why": why, "counts": state == "counted"})
        print(f"{kind} {number}: {row['verdict'] or why}, {state}", file=sys.stderr, flush=True)
    states = collections.Counter(row["state"] for row in rows)
    shares = sorted(row["stolen"] for row in rows)
    print(
        f"live: {len(rows)} runs; the host took {shares[len(shares) // 2]:.2%} of the processors in the median and "
        f"{shares[-1]:.2%} at most\n  {states['stolen']} disturbed by it (over {MOST_STOLEN_SHARE:.0%}), "
        f"{states['crowded']} by other programs (over {MOST_OTHERS_SHARE:.0%}), {states['absent']} could not be made"
    )
    for state, most in (("counted", "at most 0"), ("stolen", "not counted"), ("crowded", "not counted")):
        mine = [row for row in rows if row["state"] == state]
        if mine:
            invalid, warned = _counts(mine)
            print(f"{len(mine)} {state}: {invalid} with an INVALID ({most}), {warned} with a WARN")
            _by_check(mine)
    return rows


def _goes_beyond_machine(row: dict[str, Any]) -> bool:
    """Whether a live run holds a WARN that an honest one on a machine of its own would not."""
    own = {*OF_THE_MACHINE, OF_A_LOOP_IN_MEMORY} if row["kind"] == "loop" else set(OF_THE_MACHINE)
    return any(found["verdict"] == WARN and found["check"] not in own for found in row["findings"])


def _virtual(seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="raidlab-honest-") as place:
        file = Path(place) / "study.toml"
        file.write_text(virtual_study(seed), encoding="utf-8")
        findings = run_checks(analyse(run_study(file, on=["sim"], out=Path(place) / "runs")))
    return _row(f"seed {seed}", [finding.row() for finding in findings])


def _row(run: str, found: Checks) -> dict[str, Any]:
    worst = max((finding["verdict"] for finding in found), key=lambda verdict: SEVERITY[verdict], default="")
    bad = [finding for finding in found if finding["verdict"] in (WARN, INVALID)]
    return {"run": run, "verdict": worst, "findings": bad}


def _counts(rows: list[dict[str, Any]]) -> tuple[int, int]:
    """How many runs hold an INVALID, and how many a WARN."""
    return tuple(  # type: ignore[return-value]
        sum(any(finding["verdict"] == verdict for finding in row["findings"]) for row in rows)
        for verdict in (INVALID, WARN)
    )


def _by_check(rows: list[dict[str, Any]]) -> None:
    """Who complained how often, with one of the sentences."""
    said = collections.Counter((found["verdict"], found["check"]) for row in rows for found in row["findings"])
    for (verdict, name), count in said.most_common():
        row, one = next(
            (row["run"], found)
            for row in rows
            for found in row["findings"]
            if (found["verdict"], found["check"]) == (verdict, name)
        )
        print(
            textwrap.fill(f"{verdict} {name} in {count} runs; {row}: {one['evidence']}", 100, subsequent_indent="    ")
        )


if __name__ == "__main__":
    sys.exit(main())
