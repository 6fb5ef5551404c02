"""Study files: what they may say, how they are read and checked, and how they expand into cells.

Invariants:

- Data only: nothing in this package measures, writes or starts anything.
- This package knows no other package of raidlab but the engine's tree parser.
"""

from raidlab.study.expand import Cell, Expansion, HoldTask, LoadPoint, budget, expand, make_cell
from raidlab.study.find import study_names
from raidlab.study.load import LoadedStudy, load_study, load_study_text
from raidlab.study.schema import Study

__all__ = [
    "Cell",
    "Expansion",
    "HoldTask",
    "LoadPoint",
    "LoadedStudy",
    "Study",
    "budget",
    "expand",
    "load_study",
    "load_study_text",
    "make_cell",
    "study_names",
]
