"""Device models by themselves: which there are, what one says, and how close one comes to a real disk.

- ``catalogue``: the files that can be named, and a file's facts and provenance
- ``published``: a model beside the figures that were printed of its device
- ``validation``: a measured trace replayed through a model
- ``picture``: both distributions, drawn
- ``alone``: what a device does by itself; ``page``: that, what it was held to and its parameters, as a page

Invariant: nothing here opens a device; a trace is a file, and its replay is the simulator's.
"""

from raidlab.devices.catalogue import CatalogueEntry, DeviceFacts, catalogue_entries, describe, short_value
from raidlab.devices.published import ComparedFigure, compare_published
from raidlab.devices.validation import Validation, validate

__all__ = [
    "CatalogueEntry",
    "ComparedFigure",
    "DeviceFacts",
    "Validation",
    "catalogue_entries",
    "compare_published",
    "describe",
    "short_value",
    "validate",
]
