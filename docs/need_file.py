"""The reference page of needs (`raidlab recommend`), from the types, defaults and docstrings of the schema.

.venv/bin/python docs/generate.py            # writes docs/reference/need-file.md too
.venv/bin/python docs/generate.py --check    # status 1 if it is not up to date
"""

from __future__ import annotations

import sys
from pathlib import Path

from study_file import page_of, write

from raidlab.recommend.need import Need
from raidlab.study.units import BYTES_ACCEPTED, RATE_ACCEPTED, TIME_ACCEPTED
from raidlab.study.workload import Workload

PAGE = Path(__file__).resolve().parent / "reference" / "need-file.md"
_HEAD = """\
# The need

What `raidlab recommend` is asked, in TOML: disks, work, and what the array must meet. This page is made from the schema
(`docs/generate.py`); [which array to build](../how-to/recommend-an-array.md) goes through one.

- Sizes: {sizes}. Those of disks and arrays (`capacity`)
  have a unit; disks are sold in powers of ten: `60TB`.
- Times: {times}.
- Rates: {rates}.
- A workload may also be written in full, with the keys of [a study's](study-file.md#workload).
- Unknown keys are errors.
"""


def page() -> str:
    """The whole page, as Markdown."""
    head = _HEAD.format(sizes=BYTES_ACCEPTED, times=TIME_ACCEPTED, rates=RATE_ACCEPTED)
    return page_of(Need, head, (Workload,))


def main() -> int:
    """Write the page, or check it."""
    return write(PAGE, page())


if __name__ == "__main__":
    sys.exit(main())
