#!/usr/bin/env python3
"""Hold the simulator to real Linux md: the same requests over the same exact disks, in the lab kernel and simulated.

Prints one table: a line a case with md's figures, the simulator's, how far apart they are and the verdict. Exit status
1 when a case is outside its bounds, 2 when the lab could not run, and why. ``--write`` keeps md's figures in
``tests/md-witness``, where a quick test compares the simulator with them; ``--committed`` does that here, without
booting anything. Run it with raidlab's own Python: ``.venv/bin/python tests/md-lab/witness.py``.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from lab import LabError, boot_lab, need_lab  # noqa: E402
from witness_cases import (  # noqa: E402
    MEMBER_MIB,
    SPAN_MIB,
    Case,
    Figures,
    Verdict,
    cases,
    judge,
    simulate,
)

COMMITTED = HERE.parent / "md-witness"
FIGURES = "md.csv"
MADE_WITH = "made-with.txt"
FIELDS = tuple(field.name for field in dataclasses.fields(Figures))
DECIMALS = {"iops": 3, "reads": 4, "writes": 4}
# Cases of a boot: of some 250 arrays made one after another in one kernel, md once and again hung in the next.
AT_ONCE = 100


def run_md(wanted: list[Case], work: Path) -> dict[Case, Figures]:
    """Run the cases on real md: a boot for each hundred of a service time."""
    need_lab()
    found: dict[Case, Figures] = {}
    for service_ns in dict.fromkeys(case.service_ns for case in wanted):
        of_service = [case for case in wanted if case.service_ns == service_ns]
        for first in range(0, len(of_service), AT_ONCE):
            found |= boot(of_service[first : first + AT_ONCE], service_ns, work)
    return found


def boot(wanted: list[Case], service_ns: int, work: Path) -> dict[Case, Figures]:
    """Boot the lab once for cases of one service time."""
    plan = [
        f"{case.name} {case.level} {case.chunk_kib or '-'} {case.layout or '-'} {case.members} {case.read_percent}"
        f" {case.depth} {case.requests} {SPAN_MIB} {case.seed} {case.block_bytes}"
        f" {case.block_bytes if case.align_bytes is None else case.align_bytes}"
        f" {','.join(map(str, case.missing)) or '-'}\n"
        for case in wanted
    ]
    (work / "plan").write_text("".join(plan))
    (work / "results").unlink(missing_ok=True)
    disks = max(case.members for case in wanted)
    boot_lab(
        "md-witness.sh",
        work,
        disks=disks,
        service_ns=service_ns,
        size_mb=MEMBER_MIB,
        memory_mb=2048,
        limit_s=1200,
    )
    found = {}
    for case, line in zip(wanted, (work / "results").read_text().splitlines(), strict=True):
        name, *words = line.split()
        said = dict(word.split("=") for word in words)
        if name != case.name or int(said["requests"]) != case.requests:
            raise LabError(f"the lab ran another case than {case.name}: {line}")
        addresses = [int(word) for word in (work / f"addresses-{case.name}").read_text().split()]
        if addresses != case.offsets:
            raise LabError(f"loadgen asked for other places than those the simulator is given ({case.name})")
        found[case] = figures_of(case, said)
    return found


def figures_of(case: Case, said: dict[str, str]) -> Figures:
    """The figures in a line of the lab's results."""
    return Figures(
        **{key: float(said[key]) for key in FIELDS if key in said and key not in ("reads", "writes")},
        reads=int(said["member_reads"]) / case.requests,
        writes=int(said["member_writes"]) / case.requests,
        bytes=(int(said["member_read_bytes"]) + int(said["member_write_bytes"])) / case.requests,
    )


def read_committed() -> dict[Case, Figures]:
    """Md's figures of the last ``--write``."""
    by_name = {case.name: case for case in cases()}
    with (COMMITTED / FIGURES).open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        by_name[row["case"]]: Figures(**{field: float(row[field]) for field in FIELDS})
        for row in rows
        if row["case"] in by_name
    }


def write_committed(found: dict[Case, Figures], versions: str) -> None:
    """Keep md's figures."""
    COMMITTED.mkdir(exist_ok=True)
    with (COMMITTED / FIGURES).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("case", *FIELDS))
        for case, md in found.items():
            figures = dataclasses.asdict(md).items()
            writer.writerow((case.name, *(f"{value:.{DECIMALS.get(key, 1)}f}" for key, value in figures)))
    (COMMITTED / MADE_WITH).write_text(versions)


HEADER = (
    f"{'case':38} {'IOPS: md':>10} {'simulated':>10} {'error':>7}   {'p90 error ms: read':>18} {'write':>7}"
    f"   {'members R+W: md':>15} {'simulated':>13} {'bytes':>7}  verdict"
)


def table_line(case: Case, md: Figures, simulated: Figures, verdict: Verdict) -> str:
    """One case."""
    members_md, members = (f"{f.reads:.3f}+{f.writes:.3f}" for f in (md, simulated))
    word = "holds" if not verdict.outside else f"OUTSIDE: {', '.join(verdict.outside)}"
    read_p90, write_p90 = (error / 1000 for error in verdict.p90_errors_us)
    return (
        f"{case.name:38} {md.iops:10.1f} {simulated.iops:10.1f} {100 * verdict.iops_error:+6.2f}%"
        f"   {read_p90:+18.2f} {write_p90:+7.2f}"
        f"   {members_md:>15} {members:>13} {100 * (simulated.bytes / md.bytes - 1):+6.2f}%  {word}"
    )


def compare(figures: dict[Case, Figures]) -> int:
    """Print the table; how many cases are outside."""
    print(HEADER)
    verdicts: dict[Case, Verdict] = {}
    for case, md in figures.items():
        simulated = simulate(case)
        verdicts[case] = judge(case, md, simulated)
        print(table_line(case, md, simulated, verdicts[case]), flush=True)
    outside = sum(bool(verdict.outside) for verdict in verdicts.values())
    worst = max(verdicts, key=lambda case: abs(verdicts[case].iops_error))
    print(
        f"{len(verdicts)} cases, {outside} outside; largest error of IOPS"
        f" {100 * verdicts[worst].iops_error:+.2f} % ({worst.name})"
    )
    return outside


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="The simulator beside real Linux md over the same exact disks.")
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--write",
        action="store_true",
        help="keep md's figures in tests/md-witness; with --only, those beside the others",
    )
    action.add_argument("--committed", action="store_true", help="boot nothing: compare with the figures kept there")
    parser.add_argument("--only", default="", metavar="WORD", help="cases whose name contains this")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="also keep what the lab wrote in DIR")
    arguments = parser.parse_args()
    wanted = [case for case in cases() if arguments.only in case.name]
    if not wanted:
        parser.error(f"--only {arguments.only}: no case is called so, such as {cases()[0].name}")
    if arguments.committed:
        known = read_committed()
        return int(compare({case: known[case] for case in wanted if case in known}) > 0)
    try:
        with tempfile.TemporaryDirectory(prefix="md-witness.") as folder:
            found = run_md(wanted, Path(folder))
            versions = (Path(folder) / "versions").read_text()
            if arguments.keep:
                shutil.copytree(folder, arguments.keep, dirs_exist_ok=True)
    except LabError as error:
        print(f"witness.py: {error}", file=sys.stderr)
        return 2
    if arguments.write:
        kept = read_committed() | found
        write_committed({case: kept[case] for case in cases() if case in kept}, versions)
    return int(compare(found) > 0)


if __name__ == "__main__":
    sys.exit(main())
