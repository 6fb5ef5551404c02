"""``raidlab device``: device models by themselves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from raidlab.cli.endings import code_of_status
from raidlab.cli.options import Json, argument, flag, number, option
from raidlab.cli.terminal import check_new_file, console, say, write_new_file, writing
from raidlab.errors import EXIT_INVALID_RESULT, InputError, OutputError

if TYPE_CHECKING:
    from rich.table import Table

    from raidlab.devices import DeviceFacts, Validation
    from raidlab.devices.published import ComparedFigure
    from raidlab.measure.fit import FitKind, FitRequest, FittedDevice, HeldOut

app = typer.Typer(
    name="device",
    help="Device models: list them, show one, import or fit one, hold one to its sheet or a trace.",
    no_args_is_help=True,
)

Device = Annotated[str, argument("DEVICE", "A device's name, the path of its file, or a parameter file of DiskSim's.")]

IMPORT_EXAMPLES = """\b
Examples:
  raidlab device import cheetah9LP.parv -o cheetah.toml
  raidlab device show ./cheetah.toml
  raidlab device validate ./cheetah.toml --trace cheetah9LP.trace"""


FIT_EXAMPLES = """\b
Examples:
  raidlab device fit /dev/sdx --out my-disk.toml
  raidlab device fit /mnt/disk/ --quick
  raidlab device fit /dev/sdx --destroy /dev/sdx --budget 10min --out my-disk.toml
  raidlab device fit /dev/sdx --keep my-disk.parquet --out my-disk.toml
  raidlab device fit --from my-disk.parquet --kind table --out my-table.toml
  raidlab device fit --trace my-disk.trace --out my-disk.toml"""


@app.command("list")
def list_devices(as_json: Json = False) -> None:
    """List the devices that can be named."""
    from dataclasses import asdict

    from raidlab.devices import catalogue_entries

    found = catalogue_entries()
    if as_json:
        print(json.dumps([asdict(device) for device in found], indent=2))
        return
    from raidlab.cli.output import plain_table, short_bytes

    rows = (
        (one.name, one.kind, "-" if one.capacity_bytes is None else short_bytes(one.capacity_bytes), one.description)
        for one in found
    )
    console().print(plain_table("", ("name", "kind", "capacity", "what it stands for"), rows))


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
    file: Annotated[str, argument("FILE", "A parameter file of DiskSim's: .parv, .diskspecs or .model.")],
    out: Annotated[str | None, option("DEVICE.toml", "Write it here, instead of printing.", "--out", "-o")] = None,
    disk: Annotated[str | None, option("NAME", "Which of the file's disks, if it has several.")] = None,
) -> None:
    """Import a disk from a DiskSim parameter file.

    What the model does not have is named, a line each, on standard error and in the file; a parameter that is not known
    is an error.
    """
    from raidlab.formats.disksim import import_disk
    from raidlab.formats.toml import toml_text

    check_new_file("--out", out)
    imported = import_disk(Path(file), disk)
    text = toml_text(imported.device, comments=[f"not modelled: {note}" for note in imported.notes])
    for note in imported.notes:
        say(str(note))
    if out is None:
        print(text, end="")
        return
    write_new_file("--out", out, text.encode())
    say(out)


@app.command("fit", epilog=FIT_EXAMPLES)
def fit_device(
    target: Annotated[
        str | None,
        argument(
            "TARGET",
            "A block device or a file (read only), a directory (a file is made in it, written and removed), or memory.",
        ),
    ] = None,
    kept: Annotated[
        str | None, option("PROBE.parquet", "Fit again from what --keep kept: nothing is measured.", "--from")
    ] = None,
    trace: Annotated[
        str | None,
        option("FILE", "Fit times recorded elsewhere, one request at a time: half are fitted, half predicted."),
    ] = None,
    keep: Annotated[str | None, option("PROBE.parquet", "Keep what was measured, for --from.")] = None,
    out: Annotated[
        str | None, option("DEVICE.toml", "Write the device here, instead of printing it.", "--out", "-o")
    ] = None,
    budget: Annotated[
        str | None,
        option(
            "TIME",
            "How long to measure; more where rates are limited or turns unlike. 90s by default, 20s with --quick.",
        ),
    ] = None,
    quick: Annotated[bool, flag("--quick", "Fewer sizes and depths.")] = False,
    kind: Annotated[
        Literal["auto", "hdd", "table"],
        option(
            "KIND",
            "hdd: a disk's mechanics, from 12min up; table: times by size and depth; auto: what predicts better.",
        ),
    ] = "auto",
    drain: Annotated[
        str | None,
        option("TIME", "Ask on for so long at the end: a cloud's credit may last an hour, and shows when it is gone."),
    ] = None,
    file_size: Annotated[
        str | None, option("SIZE", "The size of the file made in a directory; 512MiB by default.")
    ] = None,
    destroy: Annotated[
        list[str] | None, option("DEVICE", "The device once more, if it may be overwritten: writes are measured too.")
    ] = None,
    name: Annotated[str, option("NAME", "What to call it; by default as --out's file, else as its target.")] = "",
    seed: Annotated[int, number("The root of all randomness.", 0, 2**40)] = 1,
    as_json: Json = False,
) -> None:
    """Measure a device and fit a model to it, as a device file that every study takes.

    Times of random and sequential requests are measured by operation, size and depth. Others, between those, are held
    out, predicted from the rest, and said with their errors. Of a disk that turns, given 12 minutes, its tracks, zones,
    seeks, buffer and order of service are found too. A device is only read unless --destroy names it, and the
    model of one that was only read refuses writes.
    """
    from raidlab.formats.toml import toml_text
    from raidlab.measure.fit import FitRequest
    from raidlab.measure.words import parse_with
    from raidlab.study.units import BYTES_ACCEPTED, TIME_ACCEPTED, parse_bytes, parse_time_ns

    check_new_file("--out", out)
    check_new_file("--keep", keep, out)
    for place, text in (("--name", name), ("--out", out), ("TARGET", target), ("--trace", trace)):
        _check_shown(place, text)
    measuring = {"TARGET": target, "--budget": budget, "--quick": quick, "--destroy": destroy, "--keep": keep}
    measuring |= {"--drain": drain, "--file-size": file_size}
    if trace is not None:
        _refuse_beside("--trace", measuring | {"--from": kept, "--kind": kind == "hdd"})
        _fit_trace(trace, name, seed, out, as_json)
        return
    if kept is not None:
        _refuse_beside("--from", measuring | {"--seed": seed != 1})
        fitted = _fitted_from(kept, kind, name)
    elif target is None:
        raise InputError.one("TARGET", "is missing", accepted="a device, a file, a directory, memory, or --from FILE")
    else:
        asked = FitRequest(
            target=target,
            budget_ns=parse_with(parse_time_ns, "--budget", budget or ("20s" if quick else "90s"), TIME_ACCEPTED),
            quick=quick,
            destroy=destroy or [],
            file_bytes=None if file_size is None else parse_with(parse_bytes, "--file-size", file_size, BYTES_ACCEPTED),
            seed=seed,
            name=name or ("" if out is None else Path(out).stem),
            kind=kind,
            drain_ns=0 if drain is None else parse_with(parse_time_ns, "--drain", drain, TIME_ACCEPTED),
        )
        fitted = _measured_fit(asked)
    text = toml_text(fitted.document)
    try:
        if out is not None:
            write_new_file("--out", out, text.encode())
        if keep is not None and fitted.kept is not None:
            write_new_file("--keep", keep, fitted.kept.parquet())
    except OutputError:
        # What took minutes is not lost for it.
        print(text, end="")
        raise
    if as_json:
        print(json.dumps(fitted.document, indent=2))
    elif out is None:
        print(text, end="")
    else:
        _print_fit(fitted, out)
    for note in fitted.notes:
        say(f"note: {note}")


def _measured_fit(asked: FitRequest) -> FittedDevice:
    import sys

    from raidlab.measure.fit import fit_target
    from raidlab.run.interrupt import StopFlag
    from raidlab.run.progress import progress_on

    stop = StopFlag()
    try:
        return fit_target(asked, progress=progress_on(sys.stderr), stop=stop)
    except KeyboardInterrupt:
        say("interrupted: half a fit is none, so nothing is written")
        raise typer.Exit(code_of_status("interrupted", stop.signal_name)) from None


def _fitted_from(file: str, kind: FitKind, name: str) -> FittedDevice:
    from raidlab.measure.fit import fit_kept
    from raidlab.measure.fit.kept import KeptMeasurements

    return fit_kept(KeptMeasurements.read(Path(file)), kind, name)


def _fit_trace(file: str, name: str, seed: int, out: str | None, as_json: bool) -> None:
    from rich.text import Text

    from raidlab.cli.output import plain_table
    from raidlab.formats.toml import toml_text
    from raidlab.measure.fit.traced import fit_trace
    from raidlab.study.device import fit_warning

    fitted = fit_trace(file, name, seed)
    text = toml_text(fitted.document)
    if out is not None:
        write_new_file("--out", out, text.encode())
    if as_json:
        print(json.dumps(fitted.document, indent=2))
    elif out is None:
        print(text, end="")
    else:
        screen = console()
        half = fitted.requests - fitted.requests // 2
        title = f"{fitted.document['name']}: {fitted.requests - half} requests fitted, {half} held out and predicted"
        screen.print(Text(title, style="bold"))
        rows = (
            (
                one.name,
                f"{one.requests:,}",
                f"{one.measured_ms:.3f}",
                f"{one.modelled_ms:.3f}",
                f"{one.error_percent:+.1f}%",
            )
            for one in fitted.groups
        )
        head = ("held out", "requests", "measured ms", "model ms", "error")
        screen.print(plain_table("", head, rows, right=head[1:]))
        screen.print(f"Demerit {fitted.demerit_percent:.1f} % of the mean that was measured.")
        _print_use(out)
    warning = fit_warning("it", {"error_percent": fitted.error_percent, "demerit_percent": fitted.demerit_percent})
    if warning is not None:
        say(f"note: {warning}")


def _check_shown(place: str, text: str | None) -> None:
    """Refuse, before minutes of work, what would stand in a device file that nobody can read back."""
    from raidlab.study.words import without_control

    try:
        without_control(text or "").encode()
    except ValueError as error:
        message = "is not UTF-8" if isinstance(error, UnicodeError) else str(error)
        accepted = "one line of text, for it stands in the device file"
        raise InputError.one(place, message, value=repr(text), accepted=accepted) from None


def _refuse_beside(option_name: str, others: Mapping[str, object]) -> None:
    """What makes no sense where nothing is measured."""
    for other, value in others.items():
        if value:
            message = f"does not go with {option_name}, with which nothing is measured"
            raise InputError.one(other, message, accepted=f"it without {option_name}, or {option_name} alone")


def _refuse_without(option_name: str, given: object, what: str, others: Mapping[str, object]) -> None:
    """What is for something that was not asked for."""
    for other, value in others.items():
        if given is None and value:
            raise InputError.one(other, f"is for {what}, and none is named", accepted=f"it with {option_name}")


def _print_fit(fitted: FittedDevice, out: str) -> None:
    from rich.text import Text

    screen = console()
    document = fitted.document
    title = f"{document['name']}: {len(fitted.fitted)} situations fitted, {len(fitted.held_out)} held out and predicted"
    screen.print(Text(title, style="bold"))
    screen.print(_held_table(fitted.held_out))
    worst = max(abs(one.rate_error_percent) for one in fitted.held_out)
    screen.print(
        f"The file states an error of {fitted.error_percent:.1f} %: of what was not measured, the model gives the"
        f" throughput of nine turns in ten within that. Of the lines above, means of their turns, the worst is"
        f" {worst:.1f} % off. The second turns took {fitted.drift_percent:+.1f} % against the first."
    )
    _print_use(out)


def _held_table(held: Sequence[HeldOut]) -> Table:
    """What was held out: measured, and as the fitted device has it."""
    from raidlab.cli.output import plain_table

    rows = (
        (
            one.situation.name,
            _figure(one.measured.rate_per_s),
            _figure(one.modelled.rate_per_s),
            f"{one.rate_error_percent:+.1f}%",
            f"{one.time_error_percent(90):+.0f}%",
            f"{one.floor_percent:.1f}%",
        )
        for one in held
    )
    head = ("held out", "measured/s", "model/s", "error", "p90", "apart")
    return plain_table("", head, rows, right=head[1:])


def _print_use(out: str) -> None:
    """How a device that was fitted is used, and looked at."""
    named = out if os.sep in out else f"./{out}"
    console().print(f'In a study: device = "{named}"', soft_wrap=True)
    page = Path(out).with_suffix(".html")
    console().print(f"With pictures: raidlab device page {named} -o {page}", soft_wrap=True)


@app.command("page")
def draw_device(
    device: Device,
    out: Annotated[str, option("FILE.html", "Where it goes; a file that is there is not overwritten.", "--out", "-o")],
    seed: Annotated[int, number("What the requests are drawn from.", 0, 2**40)] = 1,
) -> None:
    """Draw a device on a page: what it was held to, what it does by itself, where each parameter comes from.

    The device is simulated alone: requests a second and response times by queue depth, of a disk its seeks and the rate
    at each place too. Figures that were printed of it, or held out when it was fitted, stand beside the model's.
    """
    from raidlab.devices.page import device_page, render_device_page

    check_new_file("--out", out)
    write_new_file("--out", out, render_device_page(device_page(device, seed), seed).encode())
    say(out)


@app.command("validate")
def validate_device(
    device: Device,
    trace: Annotated[
        str | None,
        option("FILE", "Requests measured on the real disk: 'R|W Hit|Miss LBN sectors service_us gap_us' a line."),
    ] = None,
    on: Annotated[
        str | None, option("TARGET", "Ask the device that was fitted again: is it still what its file says?")
    ] = None,
    destroy: Annotated[
        list[str] | None, option("DEVICE", "With --on: the device once more, if it may be overwritten.")
    ] = None,
    budget: Annotated[str | None, option("TIME", "With --on: how long to measure; 20s by default.")] = None,
    angles: Annotated[
        int | None, number("With --trace: initial angles to repeat the replay from, odd; 21 by default.")
    ] = None,
    seed: Annotated[int, number("What the angles, or the requests, are drawn from.", 0, 2**40)] = 0,
    out: Annotated[
        str | None, option("DIR", "With --trace: where the figure goes, as SVG and PNG; runs by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Hold a device model to what was printed of the device, to a trace of the real disk, or to the device itself.

    By itself, runs each [[published]] and [[held_out]] figure of the device's file in its own terms and prints both and
    the error. The exit code is 3 where validation fails: a published figure is missed, more of those that a fit held
    out are than chance explains, or the fit states an error above 15 %.

    With --trace, prints the mean response times, the demerit (the root mean square distance of the two distributions)
    as the median over initial angles, and the floor: what the model is from itself when only the initial angle differs.

    With --on, measures what was held out from a fit once more, in other places, and prints it beside the model. Where
    more of it is beyond the error that the file states than chance explains, or nearly all is a fifth slower or faster
    than it was, the device has changed: the exit code is 3, too.
    """
    if on is not None and trace is not None:
        raise InputError.one("--trace, --on", "one of them at most", accepted="a trace of the device, or itself")
    _refuse_without("--on", on, "the device that is asked again", {"--destroy": destroy, "--budget": budget})
    _refuse_without("--trace", trace, "the replay of a trace", {"--angles": angles is not None, "--out": out})
    if on is not None:
        _validate_again(device, on, destroy or [], budget or "20s", seed, as_json)
        return
    if trace is None:
        _validate_published(device, seed, as_json)
        return
    from raidlab.devices import validate
    from raidlab.devices.picture import picture
    from raidlab.directory import Directory

    validation = validate(device, trace, 21 if angles is None else angles, seed)
    out = "runs" if out is None else out
    with writing("--out", out):
        Path(out).mkdir(parents=True, exist_ok=True)
        with Directory.open(Path(out)) as folder:
            figures = picture(validation).save(folder)
    if as_json:
        print(_as_json(validation, figures))
    else:
        _print_validation(validation, figures)


def _validate_again(device: str, target: str, destroy: Sequence[str], budget: str, seed: int, as_json: bool) -> None:
    import sys

    from raidlab.devices.catalogue import load
    from raidlab.measure.fit.again import AgainRequest, ask_again
    from raidlab.measure.fit.held_out import as_situation
    from raidlab.measure.words import parse_with
    from raidlab.run.interrupt import StopFlag
    from raidlab.run.progress import progress_on
    from raidlab.study.device_figures import published_figures
    from raidlab.study.units import TIME_ACCEPTED, parse_time_ns

    model = load(device)
    figures = [one for one in published_figures(model)[len(model.published) :] if one.unit == "IOPS"]
    held_out = {as_situation(one.read, one.address, one.size, one.depth, one.span): one.value for one in figures}
    budget_ns = parse_with(parse_time_ns, "--budget", budget, TIME_ACCEPTED)
    source = figures[0].source if figures else ""
    asked = AgainRequest(model, held_out, target, budget_ns, destroy, seed, source)
    stop = StopFlag()
    try:
        found = ask_again(asked, progress=progress_on(sys.stderr), stop=stop)
    except KeyboardInterrupt:
        say("interrupted: a part of it says nothing")
        raise typer.Exit(code_of_status("interrupted", stop.signal_name)) from None
    if as_json:
        print(json.dumps(found.as_json(), indent=2))
    else:
        console().print(_held_table(found.held))
        console().print(found.sentence)
    if found.left_out:
        why = f"only --destroy {target} measures them" if found.kind == "block" else f"a {found.kind} is only read"
        say(f"note: of its situations {found.left_out} write and were left out: {why}")
    if found.warning is not None:
        say(f"note: {found.warning}")
    if found.has_changed:
        raise typer.Exit(EXIT_INVALID_RESULT)


def _validate_published(device: str, seed: int, as_json: bool) -> None:
    from raidlab.devices import compare_published
    from raidlab.devices.catalogue import load
    from raidlab.study.device import fit_error_percent, fit_warning

    model, found = load(device), compare_published(device, seed)
    error, warning = fit_error_percent(model.fit), fit_warning("it", model.fit)
    failures = list(_failures(found[: len(model.published)], found[len(model.published) :], error))
    if as_json:
        rows = [
            one.figure.model_dump()
            | {"modelled": one.modelled, "error_percent": one.error_percent, "is_met": one.is_met}
            for one in found
        ]
        document = {"device": device, "figures": rows, "fit": dict(model.fit), "failures": failures}
        print(json.dumps(document, indent=2))
    else:
        told = ("what was published of it", "published") if model.published else ("what its fit held out", "measured")
        _print_figures(device, told, found, error, failures)
    if warning is not None:
        say(f"note: {warning}")
    if failures:
        raise typer.Exit(EXIT_INVALID_RESULT)


def _failures(
    published: Sequence[ComparedFigure], held_out: Sequence[ComparedFigure], error: float | None
) -> Iterator[str]:
    """Why the validation of a device's file fails.

    Of what a fit has held out one in ten may be beyond the error that it states: more than chance has are too many.
    """
    from raidlab.measure.fit.held_out import most_by_chance
    from raidlab.study.device import MOST_FIT_ERROR_PERCENT

    allowed = most_by_chance(len(held_out)) if held_out and error is not None else 0
    for figures, are, most in ((published, "published", 0), (held_out, "held out", allowed)):
        missed = sum(not one.is_met for one in figures)
        if missed > most:
            chance = f" (chance has up to {most})" if most else ""
            yield f"{missed} of {len(figures)} figures {are} beyond 'at most'{chance}"
    if error is not None and error > MOST_FIT_ERROR_PERCENT:
        yield f"its fit states an error of {error:.3g} %, and {MOST_FIT_ERROR_PERCENT:g} % at most is accepted"


def _print_figures(
    device: str, told: tuple[str, str], found: Sequence[ComparedFigure], error: float | None, failures: Sequence[str]
) -> None:
    from rich.text import Text

    from raidlab.cli.output import plain_table

    out = console()
    beside, named = told
    out.print(Text(f"{device} beside {beside}", style="bold"))
    rows_of_text = (
        (
            one.figure.name,
            f"{_figure(one.figure.value)} {one.figure.unit}",
            _figure(one.modelled),
            f"{one.error_percent:+.1f} %" + ("" if one.is_met else " MISS"),
            f"{one.figure.tolerance_percent:g} %",
        )
        for one in found
    )
    head = ("figure", named, "model", "error", "at most")
    out.print(plain_table("", head, rows_of_text, right=head[1:]))
    for source in dict.fromkeys(one.figure.source for one in found):
        out.print(f"source: {source}")
    if error is not None:
        # A figure in a device's file may be off by no more than 100 %, whatever its fit says.
        capped = " No line is allowed more than 100 %." if error > 100 else ""
        within = f"the model gives the throughput of nine turns in ten within {error:.1f} %"
        out.print(f"'at most' is the error that its fit states: {within}.{capped}")
    if failures:
        out.print(f"Validation failed: {'; '.join(failures)}.")
    elif not all(one.is_met for one in found):
        out.print("Validation passed: no more of what its fit held out is beyond 'at most' than chance has.")


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _print_facts(facts: DeviceFacts) -> None:
    from rich.text import Text

    from raidlab.cli.output import plain_table, short_bytes
    from raidlab.devices import short_value
    from raidlab.study.units import format_number

    out = console()
    out.print(Text(f"{facts.name}: {facts.kind}" + (f", {facts.title}" if facts.title else ""), style="bold"))
    if facts.description:
        out.print(facts.description)
    times = ", ".join(f"{part} {format_number(ms)}" for part, ms in facts.idle_ms.items() if ms)
    total = sum(facts.idle_ms.values())
    out.print(f"capacity {short_bytes(facts.capacity_bytes)} in sectors of {facts.sector_bytes} bytes")
    out.print(f"a random read of 4 KiB when idle: {format_number(total)} ms" + (f" ({times})" if times else ""))
    if facts.flash:
        out.print(
            f"flash: {facts.flash['spare_factor']:.4g} times the capacity, in blocks of"
            f" {facts.flash['units_per_block']} units of {short_bytes(int(facts.flash['mapping_bytes']))}"
        )
    rows = []
    for key, value in facts.parameters.items():
        source = facts.source_of(key)
        rows.append((key, short_value(value), "-" if source is None else ": ".join(source)))
    out.print(plain_table("", ("parameter", "value", "source"), rows))


def _as_json(validation: Validation, figures: list[Path]) -> str:
    means = validation.means_ms()
    document = {
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
    return json.dumps(document, indent=2)


def _print_validation(validation: Validation, figures: list[Path]) -> None:
    from rich.text import Text

    from raidlab.cli.output import plain_table

    out = console()
    title = f"{validation.device} against {validation.trace}, {len(validation.measured_ms)} requests"
    out.print(Text(title, style="bold"))
    means = ((name, *(f"{mean:.3f}" for mean in pair)) for name, pair in validation.means_ms().items() if pair)
    out.print(plain_table("", ("mean response, ms", "measured", "model"), means, right=("measured", "model")))
    low, high, count = min(validation.demerits_ms), max(validation.demerits_ms), len(validation.demerits_ms)
    of = f" (median of {count} initial angles, {low:.3f} to {high:.3f})" if count > 1 else ""
    out.print(f"demerit {validation.demerit_ms:.3f} ms, {validation.demerit_percent:.1f} % of the measured mean{of}")
    if validation.floor_ms is not None:
        out.print(f"floor   {validation.floor_ms:.3f} ms (the model against itself from another angle)")
    for figure in figures:
        out.print(f"figure  {figure}", soft_wrap=True)
