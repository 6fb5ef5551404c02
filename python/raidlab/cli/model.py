"""``raidlab model``: closed forms, and how far the simulator agrees with them."""

from __future__ import annotations

import json
import math
import sys
import zlib
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from raidlab.cli.options import Json, argument
from raidlab.errors import InputError

app = typer.Typer(help="Closed forms: what theory says, and how far the simulator agrees.", no_args_is_help=True)

KIND_HELP = "A closed form; `raidlab model list` names them."
EXAMPLES = """\b
Examples:
  raidlab model value m_m_1 rate_per_s=80 service_us=10000
  raidlab model value calculator disks=8 disk_iops=150 read_share=0.7 write_penalty=4"""


@app.command("list")
def list_forms() -> None:
    """Name the closed forms."""
    from raidlab.analysis.model import FORMS

    for kind, form in FORMS.items():
        print(f"{kind:<20}{form.title}")


@app.command("show")
def show(kind: Annotated[str, argument("FORM", KIND_HELP)]) -> None:
    """Say what a closed form is for: its source, where it applies, its parameters."""
    form = _form(kind)
    print(f"{form.kind}: {form.title} ({form.unit})")
    print(f"source: {form.source}")
    print(f"applies: {form.applies}")
    for parameter in form.parameters:
        default = "" if parameter.default is None else f" (default {parameter.default:g})"
        print(f"  {parameter.name:<18}{parameter.meaning}{default}")


@app.command("value", epilog=EXAMPLES)
def value(
    kind: Annotated[str, argument("FORM", KIND_HELP)],
    given: Annotated[list[str] | None, argument("NAME=NUMBER...", "Its parameters.")] = None,
) -> None:
    """Compute a closed form."""
    form = _form(kind)
    try:
        found = form.value(**dict(_assignments(given or [])))
    except ValueError as error:
        raise InputError.one("model value", str(error)) from None
    print(f"{found:.6g} {form.unit}")


@app.command("check")
def check(
    kinds: Annotated[list[str] | None, argument("FORM...", "Only these; all when left out.")] = None,
    as_json: Json = False,
) -> None:
    """Hold closed forms against the simulator on a grid, and print the error at each point."""
    from raidlab.analysis.model import FORMS

    forms = [_form(kind) for kind in kinds] if kinds else list(FORMS.values())
    rows = [row for form in forms for row in _grid(form, quiet=as_json)]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    for kind in dict.fromkeys(row["form"] for row in rows):
        errors = sorted(abs(row["error_percent"]) for row in rows if row["form"] == kind)
        print(f"{kind}: median error {errors[len(errors) // 2]:.2g} %, largest {errors[-1]:.2g} %")


def _grid(form: Any, *, quiet: bool) -> Iterator[dict[str, Any]]:
    from raidlab.run.runner import run_request

    cases = list(form.cases())
    if cases and not quiet:
        print(f"{form.kind}: {form.title}\n  {'':<38}{'form':>12}{'simulated':>12}{'error':>9}")
    for case in cases:
        predicted = form.value(**case.parameters)
        # A seed of its own for each case: with one for all, all would err to the same side.
        seed = zlib.crc32(f"{form.kind} {case.label}".encode())
        seen = case.observe(run_request(json.dumps({**case.cell, "seed": seed})))
        error = 100 * (predicted - seen) / seen
        if not quiet:
            print(f"  {case.label:<38}{predicted:>12.5g}{seen:>12.5g}{error:>+8.2f}%")
            sys.stdout.flush()
        yield {
            "form": form.kind,
            "case": case.label,
            "predicted": predicted,
            "simulated": seen,
            "error_percent": error,
            "unit": form.unit,
        }


def _form(kind: str) -> Any:
    from raidlab.analysis.model import FORMS
    from raidlab.study.find import did_you_mean

    if kind not in FORMS:
        message = f"is no closed form{did_you_mean(kind, FORMS)}"
        raise InputError.one("model", message, value=f"'{kind}'", accepted=", ".join(FORMS))
    return FORMS[kind]


def _assignments(given: list[str]) -> Iterator[tuple[str, float]]:

    for word in given:
        name, separator, text = word.partition("=")
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not separator or not math.isfinite(number):
            raise InputError.one("model value", "is no parameter", value=f"'{word}'", accepted="NAME=NUMBER")
        yield name, number
