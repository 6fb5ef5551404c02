"""DiskSim's parameter files and validation traces.

- ``grammar``: the text, as blocks of parameters
- ``layout``, ``mechanics``, ``electronics``: what each block says of a disk, as keys of a device file
- ``importer``: a whole file, as a device file
- ``trace``: validation traces

Invariants:

- A parameter is modelled, known to be irrelevant to the disk, or named as not modelled; anything else is an error.
- A value that cannot be represented is an error or is named, never replaced by another in silence.

Reference: G. Ganger, B. Worthington, Y. Patt, *The DiskSim simulation environment, version 4.0: reference manual*
(Carnegie Mellon University, 2008), and the documentation of its library diskmodel.
"""

from raidlab.formats.disksim.importer import DiskImport, import_disk
from raidlab.formats.disksim.trace import TraceColumns, read_trace

__all__ = ["DiskImport", "TraceColumns", "import_disk", "read_trace"]
