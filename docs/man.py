"""The man page, from the same application and tables as the reference of the command line.

    .venv/bin/python docs/generate.py            # writes docs/man/raidlab.1 too
    .venv/bin/python docs/generate.py --check    # status 1 if it is not up to date

Invariant: nothing on it is written by hand but its frame, so that it cannot say another thing than `--help`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "man" / "raidlab.1"
sys.path.insert(0, str(DOCS))

ENVIRONMENT = {
    "RAIDLAB_LOG": "off (the default), error, warn, info, debug or trace: tells on standard error what happens at the "
    "edges: what is opened, refused, tried again, fallen back from. Never anything of single requests.",
    "RAIDLAB_PARITY": "The parity kernels to use: naive, portable, avx2, avx512, gfni. "
    "The best the processor has by default.",
    "RAIDLAB_TRACEBACK": "Set to anything, it shows where an error arose, with the traceback.",
}


def page() -> str:
    """The whole page, as troff with the macros of man."""
    import raidlab
    from raidlab.cli.app import app
    from raidlab.errors import EXIT_CODES

    lines = [
        '.\\" Made by docs/man.py from the command line itself; do not edit.',
        f'.TH RAIDLAB 1 "" "raidlab {raidlab.__version__}" "User Commands"',
        ".SH NAME",
        "raidlab \\- compare arrangements of disks: measure them here, simulate them anywhere",
        ".SH SYNOPSIS",
        ".B raidlab",
        ".I COMMAND",
        ".RI [ OPTIONS ]",
        ".SH DESCRIPTION",
        _text(str(app.info.help)),
        ".PP",
        _text(
            "Results go to standard output, everything else to standard error. Reading is the default: a block device "
            "is written only if it is named in --destroy, and never while it is mounted or held."
        ),
        ".SH COMMANDS",
    ]
    for name, command in _commands():
        lines += _command(name, command)
    lines += [".SH EXIT STATUS", *(_item(str(code), meaning) for code, meaning in EXIT_CODES.items())]
    lines += [".SH ENVIRONMENT", *(_item(name, meaning) for name, meaning in ENVIRONMENT.items())]
    lines += [".SH FILES", _item("runs/", "Run folders, one a run: run.json, Parquet tables, figures, report.html.")]
    lines += [".SH SEE ALSO", ".BR fio (1),", ".BR mdadm (8)"]
    return "\n".join(lines) + "\n"


def _commands() -> Iterator[tuple[str, Any]]:
    from generate import commands

    yield from commands()


def _command(name: str, command: Any) -> Iterator[str]:
    arguments = [item for item in command.params if item.param_type_name == "argument"]
    options = [item for item in command.params if item.param_type_name == "option" and "--help" not in item.opts]
    yield f".SS {_text(' '.join([name, *(str(item.metavar) for item in arguments)]))}"
    yield _text(" ".join((command.help or "").split("\n\n")[0].split()))
    for item in arguments:
        yield _item(str(item.metavar), item.help or "", font="I")
    for item in options:
        metavar = item.metavar or ("" if item.is_flag else "VALUE")
        default = "" if item.is_flag or item.default in (None, "", (), []) else f" Default: {item.default}."
        yield _item(f"{', '.join(item.opts)} {metavar}".strip(), f"{item.help or ''}{default}")


def _item(word: str, meaning: str, font: str = "B") -> str:
    return f".TP\n.{font} {_text(word)}\n{_text(' '.join(meaning.split()))}"


def _text(text: str) -> str:
    """A line of text that troff takes for nothing else; hyphens are those that can be copied."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{safe}" if safe[:1] in (".", "'") else safe


def main() -> int:
    """Write the page, or check it."""
    is_current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page()
    if "--check" in sys.argv:
        if not is_current:
            print("docs/man/raidlab.1 is not up to date: run docs/generate.py")
        return 0 if is_current else 1
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
