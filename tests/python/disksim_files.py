"""A small set-up of DiskSim's, written for the tests: two heads, fifty cylinders, a bus that paces the disk."""

from __future__ import annotations

from pathlib import Path

SEEK = "Seek distances measured: 3\n1, 1.0\n10, 3.0\n49, 6.5\n"

ZONES = """
         dm_layout_g1_zone {
            First cylinder number = 0, Last cylinder number = 29, Blocks per track = 20,
            Offset of first block = 0.0, Skew for track switch = 3.0, Skew for cylinder switch = 5,
            Empty space at zone front = 40, Number of spares = 2, slips = [ 7, 41 ], defects = [ 100, 39 ]
         },
         dm_layout_g1_zone {
            First cylinder number = 30, Last cylinder number = 49, Blocks per track = 15,
            Offset of first block = 4, Skew for track switch = 2, Skew for cylinder switch = 4,
            Empty space at zone front = 0, Number of spares = 2, slips = [], defects = []
         }"""

G1 = f"""dm_layout_g1 {{
      LBN-to-PBN mapping scheme = 0, Sparing scheme used = 2, Rangesize for sparing = 1,
      Zones = [{ZONES} ]
   }}"""

MECHANICS = """dm_mech_g1 {
      Access time type = trackSwitchPlusRotation, Seek type = extracted, Full seek curve = small.seek,
      Average seek time = 4.0, Constant seek time = 5.0, Single cylinder seek time = 1.0, Full strobe seek time = 7.0,
      Add. write settling delay = -0.25, Head switch time = 0.8, Rotation speed (in rpms) = 6000,
      Percent error in rpms = 0.5, First ten seek times = [ 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9 ],
      HPL seek equation values = [ 20, 1.5, 0.4, 3.0, 0.05, -1.0 ]
   }"""

# 29 and 20 cylinders of 40 and 30 sectors, two spares each, less what the disk keeps.
SECTORS = 30 * 38 + 20 * 28 - 40


def model(layout: str = G1, mechanics: str = MECHANICS, sectors: int = SECTORS) -> str:
    return f"""dm_disk SMALL_model {{
   Block count = {sectors}, Number of data surfaces = 2, Number of cylinders = 50,
   Layout Model = {layout},
   Mechanical Model = {mechanics}
}} # end of SMALL_model
"""


PARAMETERS = {
    "Model": "source small.model",
    "Scheduler": """disksim_ioqueue {
      Scheduling policy = 3, Cylinder mapping strategy = 1, Write initiation delay = 0.0, Read initiation delay = 0.0,
      Sequential stream scheme = 0, Maximum concat size = 128, Overlapping request scheme = 0,
      Sequential stream diff maximum = 0, Scheduling timeout scheme = 0, Timeout time/weight = 6,
      Timeout scheduling = 4, Scheduling priority scheme = 0, Priority scheduling = 4 }""",
    "Max queue length": "8",
    "Bulk sector transfer time": "0.01",
    "Segment size (in blks)": "64",
    "Number of buffer segments": "4",
    "Print stats": "1",
    "Per-request overhead time": "0.05",
    "Time scale for overheads": "2.0",
    "Hold bus entire read xfer": "0",
    "Hold bus entire write xfer": "1",
    "Allow almost read hits": "1",
    "Allow sneaky full read hits": "0",
    "Allow sneaky partial read hits": "0",
    "Allow sneaky intermediate read hits": "0",
    "Allow read hits on write data": "1",
    "Allow write prebuffering": "0",
    "Preseeking level": "2",
    "Never disconnect": "0",
    "Avg sectors per cylinder": "35",
    "Maximum number of write segments": "2",
    "Use separate write segment": "0",
    "Low (write) water mark": "0.25",
    "High (read) water mark": "0.5",
    "Set watermark by reqsize": "1",
    "Calc sector by sector": "1",
    "Enable caching in buffer": "1",
    "Buffer continuous read": "4",
    "Minimum read-ahead (blks)": "2",
    "Maximum read-ahead (blks)": "30",
    "Read-ahead over requested": "-1",
    "Read-ahead on idle hit": "1",
    "Read any free blocks": "0",
    "Fast write level": "1",
    "Combine seq writes": "1",
    "Stop prefetch in sector": "0",
    "Disconnect write if seek": "0",
    "Write hit stop prefetch": "1",
    "Read directly to buffer": "1",
    "Immed transfer partial hit": "1",
    "Read hit over. after read": "0.1",
    "Read hit over. after write": "0.2",
    "Read miss over. after read": "0.3",
    "Read miss over. after write": "0.4",
    "Write hit over. after read": "0.5",
    "Write hit over. after write": "0.6",
    "Write miss over. after read": "0.7",
    "Write miss over. after write": "0.8",
    "Read completion overhead": "0.01",
    "Write completion overhead": "0.02",
    "Data preparation overhead": "0.03",
    "First reselect overhead": "0.04",
    "Other reselect overhead": "0.05",
    "Read disconnect afterread": "0.06",
    "Read disconnect afterwrite": "0.07",
    "Write disconnect overhead": "0.08",
    "Extra write disconnect": "0",
    "Extradisc command overhead": "0",
    "Extradisc disconnect overhead": "0",
    "Extradisc inter-disconnect delay": "0",
    "Extradisc 2nd disconnect overhead": "0",
    "Extradisc seek delta": "0",
    "Minimum seek delay": "1.5",
    "Immediate buffer read": "0",
    "Immediate buffer write": "0",
}


def specs(**changes: str) -> str:
    """The disk's block, with some parameters set otherwise (underscores for blanks); None leaves one out."""
    wanted = {**PARAMETERS, **{key.replace("_", " "): value for key, value in changes.items()}}
    lines = ",\n   ".join(f"{key} = {value}" for key, value in wanted.items())
    return f"disksim_disk SMALL {{\n   {lines}\n}}\n"


SET_UP = """# a small set-up
disksim_global Global { Init Seed = 42, Real Seed = 42, Stat definition file = statdefs }
disksim_stats Stats { bus stats = disksim_bus_stats { Print bus idle stats = 1 } }
disksim_iodriver DRIVER0 { type = 1, Constant access time = 0.0, Use queueing in subsystem = 1,
   Scheduler = disksim_ioqueue { Scheduling policy = 1, Sequential stream scheme = 0, Overlapping request scheme = 0,
      Scheduling timeout scheme = 0, Scheduling priority scheme = 0 } }
disksim_bus BUS0 { type = 1, Arbitration type = 1, Arbitration time = 0.0,
   Read block transfer time = 0.0, Write block transfer time = 0.0, Print stats = 0 }
disksim_bus BUS1 { type = 1, Arbitration type = 1, Arbitration time = 0.0,
   Read block transfer time = 0.0512, Write block transfer time = 0.0256, Print stats = 1 }
disksim_ctlr CTLR0 { type = 1, Scale for delays = 0.0, Bulk sector transfer time = 0.0, Maximum queue length = 0,
   Print stats = 1 } /* the simple kind
   of controller */
source small.diskspecs
instantiate [ bus0 ] as BUS0
instantiate [ bus1 ] as BUS1
instantiate [ disk0 .. disk2 ] as SMALL
instantiate [ driver0 ] as DRIVER0
instantiate [ ctlr0 ] as CTLR0
topology disksim_iodriver driver0 [ disksim_bus bus0 [ disksim_ctlr ctlr0 [ disksim_bus bus1 [
   disksim_disk disk0 [], disksim_disk disk1 [], disksim_disk disk2 [] ] ] ] ]
disksim_logorg org0 { Addressing mode = Parts, devices = [ disk0 .. disk2 ], Stripe unit = 2056 }
"""


def write(
    folder: Path, *, set_up: str = SET_UP, spec: str | None = None, disk: str | None = None, **others: str
) -> Path:
    """Write a set-up; returns the file to import."""
    texts = {
        "small.parv": set_up,
        "small.diskspecs": specs() if spec is None else spec,
        "small.model": model() if disk is None else disk,
        "small.seek": SEEK,
        **{name.replace("__", "."): text for name, text in others.items()},
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "small.parv"
