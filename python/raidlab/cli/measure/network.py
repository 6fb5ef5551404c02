"""``raidlab measure network``: what machines get together from a storage on the network, and what limits them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from raidlab.cli.options import argument, flag, number, option

if TYPE_CHECKING:
    from raidlab.network.tests import NetworkRow, NetworkTestPlan

EXAMPLES = """\b
Examples:
  raidlab measure network 10.0.0.11:7070 10.0.0.12:7070 10.0.0.13:7070 --key key
  raidlab measure network --lab /mnt/box --machines 4 --link 100 --server-link 1000"""


def network(
    agents: Annotated[
        list[str] | None, argument("AGENT...", "HOST:PORT of each machine where `raidlab agent` runs.")
    ] = None,
    key: Annotated[str | None, option("FILE", "The key that the agents have.")] = None,
    lab: Annotated[
        str | None, option("DIR", "Instead of agents: a server of DIR and machines, in network namespaces (root).")
    ] = None,
    machines: Annotated[int, number("How many, in the laboratory.", 1, 32)] = 4,
    link: Annotated[float, number("Mbit/s of each machine's link there.", 1, 10_000)] = 100,
    server_link: Annotated[float, number("Mbit/s of the server's link there.", 1, 10_000)] = 100,
    size: Annotated[str, option("SIZE", "How much each machine moves in a step.")] = "64MiB",
    block: Annotated[str, option("SIZE", "How much is moved at a time.")] = "256KiB",
    repeats: Annotated[int, number("How often each step is run.", 1, 100)] = 3,
    as_json: Annotated[bool, flag("--json", "Print the result as JSON instead of a table.")] = False,
) -> None:
    """Measure what one machine, two, ... all get from a storage together, and name what limits them."""
    from raidlab.cli.terminal import say
    from raidlab.errors import InputError
    from raidlab.measure.words import parse_with
    from raidlab.study.units import BYTES_ACCEPTED, parse_bytes

    total = parse_with(parse_bytes, "--size", size, BYTES_ACCEPTED)
    block_bytes = parse_with(parse_bytes, "--block", block, BYTES_ACCEPTED)
    if (lab is None) == (not agents):
        raise InputError.one("AGENT", "nothing to drive", accepted="agents, or --lab DIR: one of them")
    if lab is not None:
        rows = _in_lab(lab, machines, link, server_link, (total, block_bytes, repeats))
    else:
        if key is None:
            raise InputError.one("--key", "is needed to speak to agents", accepted="the file that they have too")
        rows = _with_agents(agents or [], key, (total, block_bytes, repeats))
    if not rows:
        say("nothing had been measured yet")
    print(_json(rows) if as_json else _table(rows))


def _with_agents(agents: list[str], key: str, amounts: tuple[int, int, int]) -> list[NetworkRow]:
    from pathlib import Path

    from raidlab.cli.terminal import say
    from raidlab.network.protocol import load_key
    from raidlab.network.tests import NetworkTestPlan

    say("what the storage keeps of files in its own memory cannot be put out from here: move more than it has")
    return _run(agents, load_key(Path(key)), NetworkTestPlan(*amounts))


def _in_lab(
    directory: str, machines: int, link: float, server_link: float, amounts: tuple[int, int, int]
) -> list[NetworkRow]:
    from pathlib import Path

    from raidlab.errors import InputError
    from raidlab.network.lab import lab_folder, network_lab
    from raidlab.network.run_lab import agents_of
    from raidlab.network.tests import NetworkTestPlan

    place = Path(directory)
    if not place.is_dir():
        raise InputError.one("--lab", "is no directory", value=f"'{directory}'", accepted="a directory")
    with lab_folder() as made, network_lab(machines, link, server_link) as lab:
        agents, key, watches = agents_of(lab, place, made)
        return _run(agents, key, NetworkTestPlan(*amounts, watches=watches, directory=place))


def _run(agents: list[str], key: bytes, asked: NetworkTestPlan) -> list[NetworkRow]:
    from contextlib import ExitStack

    from raidlab.cli.terminal import say
    from raidlab.network.controller import AgentMachine
    from raidlab.network.tests import run_tests

    rows: list[NetworkRow] = []
    with ExitStack() as open_machines:
        driven = []
        for address in agents:
            machine = AgentMachine(address, key)
            open_machines.callback(machine.close)
            driven.append(machine)
        try:
            for row in run_tests(driven, asked, say):
                rows.append(row)
        except KeyboardInterrupt:
            say("stopping: what was measured is kept")
    return rows


def _table(rows: list[NetworkRow]) -> str:
    lines = [f"{'test':<24}{'':<7}{'MB/s':>7}{'95 % interval':>17}{'each':>15}  limit"]
    for row in rows:
        interval = "single run" if row.low is None or row.high is None else f"{row.low:.3g} to {row.high:.3g}"
        each = f"{row.slowest_mb_s:.3g} to {row.fastest_mb_s:.3g}"
        limit = f"{row.limit.name} ({row.limit.detail})" if row.limit.detail else row.limit.name
        lines.append(f"{row.test:<24}{row.work:<7}{row.total_mb_s:>7.3g}{interval:>17}{each:>15}  {limit}")
    return "\n".join(lines)


def _json(rows: list[NetworkRow]) -> str:
    import json
    from dataclasses import asdict

    return json.dumps({"results": [asdict(row) for row in rows]}, indent=2)
