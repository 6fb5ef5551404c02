"""``raidlab measure``: a family of four, one file each; requests are meant where none of them is named.

Adding one: a file with a function of its name, a line below.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from raidlab.cli.measure import files, network, requests, streams

_DEFAULT = "requests"
EXAMPLES = """\b
Examples:
  raidlab measure /mnt/disk/ --rw randrw --read 70% --depth 1,8,32
  raidlab measure files /mnt/disk/ --readers 1,2,4
  raidlab measure streams memory /mnt/disk/written"""


class _RequestsByDefault(TyperGroup):
    """The four, the first of which need not be named."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What stands behind the name in the line of usage."""
        return [f"[{'|'.join(self.commands)}] ..."]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; where the first one is a target or an option of requests, requests are meant."""
        if args and not (args[0] in {*self.commands, *ctx.help_option_names} or self._is_misspelt(args[0])):
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)

    def _is_misspelt(self, word: str) -> bool:
        """Whether a word is no target and nearly one of the four: the answer names the one that may be meant."""
        is_target = os.sep in word or word.startswith("-") or Path(word).exists()
        return not is_target and bool(get_close_matches(word, self.commands))

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Offer the four, and what may stand first for requests: its options and targets."""
        default = self.commands[_DEFAULT]
        within = default.make_context(_DEFAULT, [], parent=ctx, resilient_parsing=True)
        targets = next(item for item in default.params if item.param_type_name == "argument")
        offered = [*super().shell_complete(ctx, incomplete), *default.shell_complete(within, incomplete)]
        known = {item.value for item in offered}
        return offered + [item for item in targets.shell_complete(within, incomplete) if item.value not in known]


app = typer.Typer(
    cls=_RequestsByDefault,
    help="Measure how fast requests, files, streams or a network are.\n\nWithout one of these words, requests: "
    "`raidlab measure TARGET...` takes all that `raidlab measure requests --help` lists. A target that is called like "
    "one of them is written ./files, or stands after the word requests.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=EXAMPLES,
)
app.command("requests", epilog=requests.EXAMPLES, short_help="Throughput, response times and costs of targets.")(
    requests.requests
)
app.command("files", epilog=files.EXAMPLES, short_help="Opening and reading whole files, alone and together.")(
    files.files
)
app.command("streams", epilog=streams.EXAMPLES, short_help="Moving data from end to end, alone and together.")(
    streams.streams
)
app.command("network", epilog=network.EXAMPLES, short_help="What machines get together from a storage.")(
    network.network
)

__all__ = ["app"]
