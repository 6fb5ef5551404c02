"""Bars and curves out of block characters: what a chart shows, in the cells of a terminal.

Invariants:

- A bar is as long as asked, to an eighth of a cell; where the output knows no blocks, plain characters say the same.
- Curves of one plot share their scale; that of times is logarithmic, as response times grow by factors.

>>> Blocks().bar(0.5, 4), Blocks(False).bar(0.5, 4)
('██  ', '##  ')
>>> Blocks().curve([0, 1, 2, 4], 4), Blocks(False).curve([0, 1, 2, 4], 4)
('▁▃▅█', '.-+#')
>>> Blocks().log_curve([1, 10, 100], 1, 100)
'▁▅█'
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"
_PLAIN_HEIGHTS = ".:-=+*%#"


@dataclass(frozen=True)
class Blocks:
    """Draws with block characters, or without."""

    are_known: bool = True
    """Whether the output can show them."""

    @classmethod
    def of(cls, encoding: str | None) -> Blocks:
        """Those that an encoding can write."""
        try:
            (_EIGHTHS + _HEIGHTS).encode(encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            return cls(False)
        return cls(True)

    def bar(self, share: float, width: int) -> str:
        """A bar of a share (0 to 1) of so many cells, filled up with spaces."""
        eighths = round(8 * width * min(max(share, 0.0), 1.0))
        if not self.are_known:
            return f"{'#' * round(eighths / 8):<{width}}"
        whole, part = divmod(eighths, 8)
        return f"{'█' * whole + (_EIGHTHS[part] if part else ''):<{width}}"

    def curve(self, values: Sequence[float], most: float) -> str:
        """A curve from 0 to ``most``, a cell a value."""
        return self._characters([value / most if most > 0 else 0.0 for value in values])

    def log_curve(self, values: Sequence[float], least: float, most: float) -> str:
        """A curve of the logarithms of values above 0, from ``least`` to ``most``."""
        span = math.log(most / least)
        return self._characters([math.log(value / least) / span if span else 0.0 for value in values])

    def _characters(self, shares: Sequence[float]) -> str:
        """A character for each share from 0 to 1, as high as the share; what lies beyond is cut."""
        heights = _HEIGHTS if self.are_known else _PLAIN_HEIGHTS
        return "".join(heights[math.floor(min(max(share, 0.0), 1.0) * (len(heights) - 1) + 0.5)] for share in shares)
