"""``raidlab recommend``: which array to build."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from raidlab.cli.options import Json, argument, flag, number, option
from raidlab.cli.terminal import printing, say
from raidlab.errors import EXIT_INTERRUPTED, EXIT_OK, InputError

if TYPE_CHECKING:
    from raidlab.recommend import LoadedNeed

EXAMPLES = """\b
Examples:
  raidlab recommend need.toml
  raidlab recommend --devices 8xhdd-nearline-20tb --capacity 60TB --tolerate 2 --workload vm.fio --p99 100ms
  raidlab recommend need.toml --quick --json
  raidlab recommend need.toml --prices today.toml --out mail/"""

_DEVICES = re.compile(r"(\d+)[x*](.+)")
_LARGEST_DISK = 10**15
# A size or a price that is meant as one, right or wrong; other signs belong to a path.
_AMOUNT = re.compile(r"([+-]?[\d.,_]+ ?[A-Za-z]{0,3})?")
_DEVICES_ACCEPTED = (
    "a number, x and a device, such as 8xhdd-7200; 8xhdd-nearline-20tb:8TB is the same kind of 8 TB, "
    "8xhdd-7200@180 one with its price"
)
# Which flag stands for which key of the need.
_FLAGS = {
    "ask": "--ask",
    "seed": "--seed",
    "depth": "--depth",
    "devices": "--devices",
    "workload": "--workload",
    "need": "need",
    "search": "--levels",
    **{
        f"need.{key}": f"--{key.replace('_', '-')}"
        for key in (
            "capacity",
            "tolerate",
            "rate",
            "p50",
            "p90",
            "p95",
            "p99",
            "budget",
            "loss_per_year",
        )
    },
}


def recommend(
    need: Annotated[
        str | None, argument("[NEED.toml]", "What is needed; flags say the common case without it.")
    ] = None,
    devices: Annotated[
        list[str] | None, option("NxDEVICE[:SIZE][@PRICE]", "Disks at hand; may be repeated for other kinds.")
    ] = None,
    workload: Annotated[
        list[str] | None, option("FILE", "A fio job file (.fio), a study's name or file; may be repeated.")
    ] = None,
    capacity: Annotated[str | None, option("SIZE", "User data that must fit.")] = None,
    tolerate: Annotated[int | None, number("Disks that may fail before anything is lost.")] = None,
    rate: Annotated[str | None, option("N/s", "Requests that arrive, in place of the workload's own load.")] = None,
    p50: Annotated[str | None, option("TIME", "Half of all requests within this.", "--p50")] = None,
    p90: Annotated[str | None, option("TIME", "Nine of ten.", "--p90")] = None,
    p95: Annotated[str | None, option("TIME", "Nineteen of twenty.", "--p95")] = None,
    p99: Annotated[str | None, option("TIME", "All but one of a hundred.", "--p99")] = None,
    budget: Annotated[float | None, number("What all disks together may cost.")] = None,
    levels: Annotated[list[str] | None, option("LEVEL", "Only this level; may be repeated.")] = None,
    ask: Annotated[str | None, option("WHAT", "cheapest, fastest or pareto.")] = None,
    prices: Annotated[str | None, option("FILE", "Today's prices (TOML): a table [price], by device.")] = None,
    seed: Annotated[int | None, number("The root seed; the need's by default.")] = None,
    quick: Annotated[bool, flag("--quick", "A third of the runs: seconds, and less is told apart.")] = False,
    out: Annotated[str | None, option("DIR", "Write the answer, its page and a study that measures it here.")] = None,
    as_json: Json = False,
) -> None:
    """Say which array to build of the disks at hand: the cheapest or the fastest that meets a need.

    Arrays are simulated until they are told apart, with common seeds. It prints the ranking with intervals, what asking
    less would admit, and the commands that would build the first; nothing is built, and no disk is touched. Where
    nothing meets the need, it says by how much each goal would have to give.
    """
    from raidlab.cli.recommendation import print_recommendation
    from raidlab.recommend import load_need, make_recommendation, write_recommendation
    from raidlab.report.recommendation import write_recommendation_page
    from raidlab.results.folder import check_out
    from raidlab.results.recommendation import recommendation_text
    from raidlab.run.progress import progress_on
    from raidlab.study.device import fit_warning

    goals = {
        "capacity": capacity,
        "tolerate": tolerate,
        "rate": rate,
        "p50": p50,
        "p90": p90,
        "p95": p95,
        "p99": p99,
        "budget": budget,
    }
    said = {key: value for key, value in goals.items() if value is not None}
    if need is not None:
        beside = [
            *(f"--{key}" for key in said),
            *(["--devices"] if devices else []),
            *(["--workload"] if workload else []),
        ]
        if beside:
            message = "does not go with a file of needs, which says it"
            raise InputError.one(beside[0], message, accepted="either NEED.toml or flags")
        loaded = load_need(Path(need), _changed(ask, seed, levels), _prices(prices))
    else:
        loaded = _from_flags(devices or [], workload or [], said, _changed(ask, seed, levels), prices)
    if out is not None:
        check_out(Path(out))
    answer = make_recommendation(loaded, quick=quick, progress=progress_on(sys.stderr))
    for index, model in enumerate(loaded.models):
        if (warning := fit_warning(loaded.device_name(index), model.fit)) is not None:
            say(f"note: {warning}")
    if out is not None:
        write_recommendation(answer, Path(out))
        page = write_recommendation_page(answer, Path(out))
    with printing():
        if as_json:
            print(recommendation_text(answer), end="")
        else:
            print_recommendation(answer)
    if out is not None:
        say(f"page: {page}")
    raise typer.Exit(EXIT_OK if answer["status"] == "complete" else EXIT_INTERRUPTED)


def _changed(ask: str | None, seed: int | None, levels: list[str] | None) -> dict[str, Any]:
    """What flags say in the place of keys of the file."""
    found: dict[str, Any] = {key: value for key, value in (("ask", ask), ("seed", seed)) if value is not None}
    return {**found, "search": {"levels": levels}} if levels else found


def _prices(file: str | None) -> Path | None:
    return None if file is None else Path(file)


def _from_flags(
    devices: list[str], workloads: list[str], goals: dict[str, Any], changed: dict[str, Any], prices: str | None
) -> LoadedNeed:
    """The need that flags say."""
    from raidlab.recommend import need_of

    for name, given in (("--devices", devices), ("--workload", workloads)):
        if not given:
            message = "is missing, and there is no file of needs"
            accepted = _DEVICES_ACCEPTED if name == "--devices" else "a fio job file, or a study"
            raise InputError.one(name, message, accepted=f"{accepted}; or NEED.toml")
    document = {
        "devices": [held_device(word) for word in devices],
        "workload": [{"fio" if word.endswith((".fio", ".job")) else "study": word} for word in workloads],
        "need": goals,
        **changed,
    }
    return need_of(document, _FLAGS, _prices(prices))


def held_device(word: str) -> dict[str, Any]:
    """The table of devices that a flag says, such as ``8xhdd-7200:2TB@180``."""
    found = _DEVICES.fullmatch(word)
    if found is None:
        raise InputError.one(
            "--devices", "does not say how many of what", value=f"'{word}'", accepted=_DEVICES_ACCEPTED
        )
    device, price = _parted(found[2], "@")
    device, size = _parted(device, ":")
    if _AMOUNT.fullmatch(device):
        message = f"'{device}' is a size, and of which disk it does not say"
        raise InputError.one("--devices", message, value=f"'{word}'", accepted=_DEVICES_ACCEPTED)
    held: dict[str, Any] = {"device": device, "at_most": int(found[1])}
    if size is not None:
        _check_size(word, size)
        held |= {"device": {"like": device, "capacity_bytes": size}, "name": f"{device} of {size}"}
    if price is not None:
        held["price"] = _price(word, price)
    return held


def _check_size(word: str, size: str) -> None:
    """Refuse a size that no disk has."""
    from raidlab.study.units import DISK_SIZE_ACCEPTED, parse_disk_size

    try:
        bytes_of_one = parse_disk_size(size)
    except ValueError as error:
        message = f"'{size}' {error}" if str(error).startswith("is ") else str(error)
        raise InputError.one("--devices", message, value=f"'{word}'", accepted=DISK_SIZE_ACCEPTED) from None
    if bytes_of_one > _LARGEST_DISK:
        message, accepted = f"no disk has {size}", "at most 1PB: the size of one disk, not of all together"
        raise InputError.one("--devices", message, value=f"'{word}'", accepted=accepted)


def _price(word: str, price: str) -> float:
    try:
        value = float(price)
    except ValueError:
        value = 0.0
    if value <= 0:
        accepted = "a number above 0, such as 8xhdd-7200@180"
        raise InputError.one("--devices", f"'{price}' is not a price", value=f"'{word}'", accepted=accepted)
    return value


def _parted(word: str, sign: str) -> tuple[str, str | None]:
    """What stands before the last such sign, and the amount behind it; all of it and None where it has none."""
    before, found, amount = word.rpartition(sign)
    return (before, amount) if found and before and _AMOUNT.fullmatch(amount) else (word, None)
