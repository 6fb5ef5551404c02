"""``raidlab device``: device models by themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from raidlab.devices import DeviceFacts, Validation

app = typer.Typer(
    name="device", help="Device models: list them, show one, import one, hold one to a trace.", no_args_is_help=True
)

Device = Annotated[
    str,
    typer.Argument(metavar="DEVICE", help="A device's name, the path of its file, or a parameter file of DiskSim's."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

IMPORT_EXAMPLES = """\b
Examples:
  raidlab device import cheetah9LP.parv -o cheetah.toml
  raidlab device show ./cheetah.toml
  raidlab device validate ./cheetah.toml --trace cheetah9LP.trace"""


@app.command("list")
def list_devices(as_json: Json = False) -> None:
    """List the devices that can be named."""
    from dataclasses import asdict

    from raidlab.devices import listed

    found = listed()
    if as_json:
        print(json.dumps([asdict(device) for device in found], indent=2))
        return
    from raidlab.cli.output import plain_table, short_bytes
    from raidlab.cli.terminal import console

    rows = plain_table("")
    for heading in ("name", "kind", "capacity", "what it stands for"):
        rows.add_column(heading, overflow="fold")
    for device in found:
        capacity = "-" if device.capacity_bytes is None else short_bytes(device.capacity_bytes)
        rows.add_row(device.name, device.kind, capacity, device.description)
    console().print(rows)


@app.command("show")
def show(device: Device, as_json: Json = False) -> None:
    """Show what a device file says, what follows from it, and where each parameter comes from."""
    from dataclasses import asdict

    from raidlab.devices import describe

    facts = describe(device)
    if as_json:
        print(json.dumps(asdict(facts), indent=2))
    else:
        _print_facts(facts)


@app.command("import", epilog=IMPORT_EXAMPLES)
def import_device(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A parameter file of DiskSim's: .parv, .diskspecs or .model.")
    ],
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="DEVICE.toml", help="Write it here, instead of printing.")
    ] = None,
    disk: Annotated[
        str | None, typer.Option("--disk", metavar="NAME", help="Which of the file's disks, if it has several.")
    ] = None,
) -> None:
    """Import a disk from a DiskSim parameter file.

    What the model does not have is named, a line each, on standard error and in the file; a parameter that is not known
    is an error.
    """
    from raidlab.cli.terminal import say
    from raidlab.directory import write_file
    from raidlab.errors import InputError
    from raidlab.formats.disksim import device_toml, import_disk

    imported = import_disk(Path(file), disk)
    text = device_toml(imported.device, comments=[f"not modelled: {note}" for note in imported.notes])
    for note in imported.notes:
        say(str(note))
    if out is None:
        print(text, end="")
        return
    try:
        write_file(Path(out), text.encode())
    except OSError as error:
        raise InputError.one("--out", f"cannot be written: {error.strerror}", value=f"'{out}'") from None
    say(out)


@app.command("validate")
def validate_device(
    device: Device,
    trace: Annotated[
        str,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="Requests measured on the real disk: 'R|W Hit|Miss LBN sectors service_us gap_us' a line.",
        ),
    ],
    angles: Annotated[int, typer.Option("--angles", help="Initial angles to repeat the replay from; odd.")] = 21,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**40, help="What the angles are drawn from.")] = 0,
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Where the figure goes, as SVG and PNG.")] = "runs",
    as_json: Json = False,
) -> None:
    """Hold a device model to a trace that was measured on the real disk.

    Prints the mean response times, the demerit (the root mean square distance of the two distributions) as the median
    over initial angles, and the floor: what the model is from itself when only the initial angle differs.
    """
    from raidlab.devices import validate
    from raidlab.devices.picture import picture
    from raidlab.directory import Directory
    from raidlab.errors import InputError

    validation = validate(device, trace, angles, seed)
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        with Directory.open(Path(out)) as folder:
            figures = picture(validation).save(folder)
    except OSError as error:
        raise InputError.one("--out", f"cannot be written: {error.strerror}", value=f"'{out}'") from None
    if as_json:
        print(json.dumps(_as_json(validation, figures), indent=2))
    else:
        _print_validation(validation, figures)


def _print_facts(facts: DeviceFacts) -> None:
    from rich.text import Text

    from raidlab.cli.output import plain_table, short_bytes
    from raidlab.cli.terminal import console

    out = console()
    out.print(Text(f"{facts.name}: {facts.kind}" + (f", {facts.title}" if facts.title else ""), style="bold"))
    if facts.description:
        out.print(facts.description)
    times = ", ".join(f"{part} {ms:.3g}" for part, ms in facts.idle_ms.items() if ms)
    total = sum(facts.idle_ms.values())
    out.print(f"capacity {short_bytes(facts.capacity_bytes)} in sectors of {facts.sector_bytes} bytes")
    out.print(f"a random read of 4 KiB when idle: {total:.3g} ms" + (f" ({times})" if times else ""))
    if facts.flash:
        out.print(
            f"flash: {facts.flash['spare_factor']:.4g} times the capacity, in blocks of"
            f" {facts.flash['units_per_block']} units of {short_bytes(int(facts.flash['mapping_bytes']))}"
        )
    rows = plain_table("")
    for heading in ("parameter", "value", "source"):
        rows.add_column(heading, overflow="fold")
    for key, value in facts.parameters.items():
        source = facts.provenance.get(key) or facts.provenance.get(key.split(".")[0])
        rows.add_row(key, _shown(value), "-" if source is None else f"{source['status']}: {source['why']}")
    out.print(rows)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    if len(text) <= 60:
        return text.strip('"')
    return f"{len(value)} entries" if isinstance(value, (list, dict)) else text[:57] + "..."


def _as_json(validation: Validation, figures: list[Path]) -> dict[str, Any]:
    means = validation.means_ms()
    return {
        "device": validation.device,
        "trace": validation.trace,
        "requests": len(validation.measured_ms),
        "angles": len(validation.demerits_ms),
        "seed": validation.seed,
        "mean_ms": {
            name: None if pair is None else {"measured": pair[0], "model": pair[1]} for name, pair in means.items()
        },
        "demerit_ms": validation.demerit_ms,
        "demerit_percent": validation.demerit_percent,
        "demerit_lowest_ms": min(validation.demerits_ms),
        "demerit_highest_ms": max(validation.demerits_ms),
        "floor_ms": validation.floor_ms,
        "figures": [str(figure) for figure in figures],
    }


def _print_validation(validation: Validation, figures: list[Path]) -> None:
    from rich.text import Text

    from raidlab.cli.output import plain_table
    from raidlab.cli.terminal import console

    out = console()
    title = f"{validation.device} against {validation.trace}, {len(validation.measured_ms)} requests"
    out.print(Text(title, style="bold"))
    rows = plain_table("")
    for heading in ("mean response, ms", "measured", "model"):
        rows.add_column(heading, justify="left" if heading.startswith("mean") else "right")
    for name, pair in validation.means_ms().items():
        if pair is not None:
            rows.add_row(name, f"{pair[0]:.3f}", f"{pair[1]:.3f}")
    out.print(rows)
    low, high, count = min(validation.demerits_ms), max(validation.demerits_ms), len(validation.demerits_ms)
    of = f" (median of {count} initial angles, {low:.3f} to {high:.3f})" if count > 1 else ""
    out.print(f"demerit {validation.demerit_ms:.3f} ms, {validation.demerit_percent:.1f} % of the measured mean{of}")
    if validation.floor_ms is not None:
        out.print(f"floor   {validation.floor_ms:.3f} ms (the model against itself from another angle)")
    for figure in figures:
        out.print(f"figure  {figure}", soft_wrap=True)
