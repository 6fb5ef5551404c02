"""What ``raidlab measure --witness fio`` does and prints.

Invariants:

- Both absolute figures stand beside every ratio, and the interval beside the ratio.
- Results go to standard output at 80 columns, or as one JSON document; all else to standard error.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from raidlab.cli.endings import code_of_status

if TYPE_CHECKING:
    from raidlab.measure import MeasureRequest
    from raidlab.measure.witness import PointWithWitness
    from raidlab.results.facts import ToolRatio

_TITLES = {
    "iops": ("IOPS", 1.0),
    "throughput_mb_s": ("MB/s", 1.0),
    "service_time_ns_p50": ("p50 us", 1e3),
    "service_time_ns_p90": ("p90 us", 1e3),
    "service_time_ns_p99": ("p99 us", 1e3),
}


def witness_and_print(asked: MeasureRequest, *, as_json: bool) -> int:
    """Measure with fio beside raidlab, print, and return the exit code."""
    from raidlab.cli.terminal import printing, say
    from raidlab.measure.witness import measure_with_witness
    from raidlab.run.interrupt import StopFlag, catching_signals
    from raidlab.run.progress import progress_on

    stop = StopFlag()
    with catching_signals(stop):
        points = measure_with_witness(asked, progress=progress_on(sys.stderr), stop=stop)
        with printing():
            if as_json:
                print(json.dumps({"witness": points}, indent=2))
            else:
                for point in points:
                    print(witness_text(point))
    if stop():
        say("interrupted; the pairs that were whole are shown above")
    return code_of_status("interrupted" if stop() else "complete", stop.signal_name)


def repeats_of(tool: str | None, repeats: int | None) -> int | None:
    """How many repeats, or pairs, the flags ask for; refuses a witness that raidlab does not know."""
    from raidlab.errors import InputError
    from raidlab.measure.witness import DEFAULT_PAIRS

    if tool not in (None, "fio"):
        raise InputError.one("--witness", "is not a tool that raidlab calls", value=f"'{tool}'", accepted="fio")
    return repeats if tool is None or repeats is not None else DEFAULT_PAIRS


def refuse_beside_witness(flags: dict[str, str | None]) -> None:
    """Refuse flags that were given (others have None) and mean nothing where raidlab and fio run in pairs."""
    from raidlab.errors import InputError

    for flag, value in flags.items():
        if value is not None:
            message = "has no meaning beside --witness"
            raise InputError.one(
                flag, message, value=f"'{value}'", accepted="--json for all figures, --repeats for pairs"
            )


def witness_text(point: PointWithWitness) -> str:
    """The table of one point."""
    from raidlab.run.witness import FIO_RESOLUTION

    count = len(point["pairs"])
    # A path may be longer than a line; the rest is not.
    pairs = f"{count} pair{'s' if count != 1 else ''} in drawn order"
    lines = [point["target"], f"{point['load']}: raidlab beside {point['tool']}, {pairs}"]
    lines.append(f"{'':<10}{'raidlab':>12}{'fio':>12}{'ratio':>9}   95 % interval of the ratio")
    lines += [_row(ratio) for ratio in point["ratios"]]
    lines.append("A ratio is the median of the pairs' ratios, not that of the columns' medians.")
    lines.append(f"Times are from submission to completion; fio's are no finer than {FIO_RESOLUTION:.1%}.")
    lines += [f"not the same: {difference}" for difference in point["differences"]]
    return "\n".join(lines) + "\n"


def _row(ratio: ToolRatio) -> str:
    from raidlab.cli.measure.result import figure

    title, scale = _TITLES[ratio["figure"]]
    own, fio = figure(ratio["raidlab"] / scale), figure(ratio["fio"] / scale)
    interval = "none for one pair" if ratio["low"] is None else f"{ratio['low']:.3f} to {ratio['high']:.3f}"
    return f"  {title:<8}{own:>12}{fio:>12}{ratio['ratio']:>9.3f}   {interval}"
