"""The block ``disksim_disk``: buffer, commands, queue; with the bus and the controller it hangs on.

Invariant: a delay that would be added to the disk's times and is not is named.
"""

from __future__ import annotations

from raidlab.formats.disksim.fields import Fields, Note
from raidlab.formats.disksim.grammar import Block, Document, Node
from raidlab.reading import Plain

_READ_AHEAD = {0: "none", 1: "track", 2: "cylinder", 3: "segment", 4: "next_track"}
_WRITE_BACK = {0: "none", 1: "sequential", 2: "full"}
_PRESEEK = {0: "none", 1: "during_completion", 2: "before_completion"}
_KEEP_REQUESTED = {-1: "drop", 0: "keep", 1: "replace"}
_CACHING = {0: False, 1: True, 2: True}

# Scheduling policies by address and by cylinder are one here: addresses rise with cylinders.
_SCHEDULERS: dict[int, Plain] = {
    1: "fifo",
    2: "look",
    3: "clook",
    4: "sstf",
    5: "look",
    6: "clook",
    7: "sstf",
    8: "sptf",
    17: {"vscan": {"percent": 20}},
    18: {"vscan": {"percent": 20}},
}

# What the 53C700-based disks of 1992 wait for before they write, as DiskSim has it with `Extra write disconnect`.
_GATHER = {"gather_sectors": 10, "gather_long_sectors": 15, "long_from_sectors": 45}

_SNEAKY = ("Allow sneaky full read hits", "Allow sneaky partial read hits", "Allow sneaky intermediate read hits")
_IRRELEVANT = (
    "Model",
    "Scheduler",
    "Print stats",
    # Told to schedulers outside the disk.
    "Avg sectors per cylinder",
    # How DiskSim reckons, not what.
    "Calc sector by sector",
)


def electronics_keys(disk: Fields) -> dict[str, Plain]:
    """The keys of a device file that say what a disk's block says."""
    keys = {"commands": _commands(disk), "bus": _bus(disk), "buffer": _buffer(disk), **_queue(disk)}
    disk.irrelevant(_IRRELEVANT)
    disk.finish()
    return keys


def _commands(disk: Fields) -> dict[str, Plain]:
    scale = disk.number("Time scale for overheads")

    def ms(key: str) -> float:
        return disk.number(key) * scale

    commands: dict[str, Plain] = {"every_ms": ms("Per-request overhead time")}
    for kind in ("read", "write"):
        for result in ("hit", "miss"):
            for before in ("read", "write"):
                overhead_ms = ms(f"{kind.capitalize()} {result} over. after {before}")
                commands[f"{kind}_{result}_after_{before}_ms"] = overhead_ms
    commands |= {
        "read_completion_ms": ms("Read completion overhead"),
        "write_completion_ms": ms("Write completion overhead"),
        "data_preparation_ms": ms("Data preparation overhead"),
        "first_reselect_ms": ms("First reselect overhead"),
        "other_reselect_ms": ms("Other reselect overhead"),
        "read_disconnect_after_read_ms": ms("Read disconnect afterread"),
        "read_disconnect_after_write_ms": ms("Read disconnect afterwrite"),
        "write_disconnect_ms": ms("Write disconnect overhead"),
        # Neither this nor the time away is an overhead that the scale applies to.
        "minimum_write_seek_ms": disk.number("Minimum seek delay"),
    }
    extra: dict[str, Plain] = {
        "command_ms": ms("Extradisc command overhead"),
        "disconnect_ms": ms("Extradisc disconnect overhead"),
        "away_ms": disk.number("Extradisc inter-disconnect delay"),
        "second_disconnect_ms": ms("Extradisc 2nd disconnect overhead"),
        "seek_delay_ms": ms("Extradisc seek delta"),
        **_GATHER,
    }
    if disk.flag("Extra write disconnect"):
        commands["extra_write_disconnect"] = extra
    return commands


def _bus(disk: Fields) -> dict[str, Plain]:
    own_ms = disk.number("Bulk sector transfer time")
    bus_ms = _sector_ms(disk.document, disk.block, disk.notes)
    return {
        "read_sector_ms": max(own_ms, bus_ms[0]),
        "write_sector_ms": max(own_ms, bus_ms[1]),
        "hold_for_read": disk.flag("Hold bus entire read xfer"),
        "hold_for_write": disk.flag("Hold bus entire write xfer"),
        "never_disconnect": disk.flag("Never disconnect"),
    }


def _buffer(disk: Fields) -> dict[str, Plain]:
    segments = disk.whole("Number of buffer segments", 1)
    size = disk.whole("Segment size (in blks)", 1)
    read_ahead = disk.choice("Buffer continuous read", _READ_AHEAD)
    least, most = disk.whole("Minimum read-ahead (blks)"), disk.whole("Maximum read-ahead (blks)")
    if read_ahead == "none":
        least = 0
    if most < least or read_ahead == "none":
        most = least
    for key in _SNEAKY:
        disk.not_modelled(key, 0, "reads that overtake others through the buffer are not modelled")
    disk.not_modelled("Disconnect write if seek", 0, "is not modelled: a movement is finished before the next begins")
    disk.not_modelled("Write hit stop prefetch", 1, "a write stops reading ahead in any case")
    disk.not_modelled("Read directly to buffer", 1, "a sector buffer beside the segments is not modelled")
    # DiskSim 3.0 acts on these two and 4.0 does not: its own outputs for one disk are those of sectors in rising order.
    for key, ours in (("Immediate buffer read", "zero_latency_read"), ("Immediate buffer write", "zero_latency_write")):
        disk.whole(key, 0, 2)
        disk.not_modelled(key, 0, f"is without effect in DiskSim 4.0 and here; buffer.{ours} = true would have it")
    return {
        "segments": segments,
        "segment_sectors": size,
        "write_segments": disk.whole("Maximum number of write segments", 1, segments),
        "separate_write_segment": disk.flag("Use separate write segment"),
        "caching": disk.choice("Enable caching in buffer", _CACHING),
        "read_ahead": read_ahead,
        "minimum_read_ahead_sectors": least,
        "maximum_read_ahead_sectors": most,
        "keep_requested": disk.choice("Read-ahead over requested", _KEEP_REQUESTED),
        "read_ahead_on_hit": disk.flag("Read-ahead on idle hit"),
        "read_free_sectors": disk.flag("Read any free blocks"),
        "write_back": disk.choice("Fast write level", _WRITE_BACK),
        "combine_writes": disk.flag("Combine seq writes"),
        "read_hits_on_written": disk.flag("Allow read hits on write data"),
        "almost_read_hits": disk.flag("Allow almost read hits"),
        "transfer_partial_hits": disk.flag("Immed transfer partial hit"),
        "stop_within_sector": disk.flag("Stop prefetch in sector"),
        "read_watermark": disk.number("High (read) water mark", 0, 1),
        "write_watermark": disk.number("Low (write) water mark", 0, 1),
        "watermark_of_command": disk.flag("Set watermark by reqsize"),
        "write_prebuffering": disk.flag("Allow write prebuffering"),
        "preseek": disk.choice("Preseeking level", _PRESEEK),
    }


def _queue(disk: Fields) -> dict[str, Plain]:
    depth = max(disk.whole("Max queue length"), 1)
    driver = _driver(disk)
    if driver is not None and not driver.flag("Use queueing in subsystem"):
        # The driver keeps back whatever the disk could take besides.
        depth = 1
    queue = disk.inner("Scheduler")
    policy = queue.whole("Scheduling policy", 1)
    scheduler = _SCHEDULERS.get(policy, "fifo")
    # With one command at a time nothing is left to order.
    if depth > 1:
        if policy not in _SCHEDULERS:
            accepted = ", ".join(map(str, _SCHEDULERS))
            queue.note("Scheduling policy", f"is not modelled (accepted: {accepted}); first come, first served instead")
        for scheme in ("Sequential stream", "Overlapping request", "Scheduling timeout", "Scheduling priority"):
            queue.not_modelled(f"{scheme} scheme", 0, "is not modelled")
    keys: dict[str, Plain] = {"queue_depth": depth, "scheduler": scheduler if depth > 1 else "fifo"}
    if driver is not None and (order := _order_of_driver(driver)) != "fifo":
        keys["host_scheduler"] = order
    return keys


def _driver(disk: Fields) -> Fields | None:
    """The host's driver above the disk; None where the file has none, or one without a queue."""
    above = _above(disk.document, disk.block)
    for node in above:
        block = disk.document.named(disk.document.types.get(node.name, node.name))
        if block is not None and block.kind == "disksim_iodriver" and "Scheduler" in block.parameters:
            return Fields(block, disk.document, disk.notes)
    return None


def _order_of_driver(driver: Fields) -> Plain:
    """In which order the driver gives the disk what waits with it."""
    queue = driver.inner("Scheduler")
    policy = queue.whole("Scheduling policy", 1)
    order = _SCHEDULERS.get(policy)
    for scheme in ("Sequential stream", "Overlapping request", "Scheduling timeout", "Scheduling priority"):
        queue.not_modelled(f"{scheme} scheme", 0, "of the host's driver is not modelled")
    if order is None or order == "sptf":
        accepted = ", ".join(str(known) for known, word in _SCHEDULERS.items() if word != "sptf")
        why = f"of the host's driver is not modelled (accepted: {accepted}); first come, first served instead"
        queue.note("Scheduling policy", why)
        return "fifo"
    return order


def _above(document: Document, disk: Block) -> list[Node]:
    """The components above the disk, from the host down; none where the file has no topology."""
    return next((path for root in document.topology if (path := _path(root, document, disk.name)) is not None), [])


def _sector_ms(document: Document, disk: Block, notes: list[Note]) -> tuple[float, float]:
    """What the bus below which the disk hangs, and its controller, take for a sector, to the host and from it."""
    above = _above(document, disk)
    read_ms = write_ms = 0.0
    for node in reversed(above):
        block = document.named(document.types.get(node.name, node.name))
        if block is None:
            continue
        fields = Fields(block, document, notes)
        if block.kind == "disksim_bus":
            read_ms = max(read_ms, fields.number("Read block transfer time"))
            write_ms = max(write_ms, fields.number("Write block transfer time"))
            fields.not_modelled("Arbitration time", 0, "the wait for the bus is not modelled")
        elif block.kind == "disksim_ctlr":
            own_ms = fields.number("Bulk sector transfer time", default=0.0)
            read_ms, write_ms = max(read_ms, own_ms), max(write_ms, own_ms)
            fields.not_modelled("Scale for delays", 0, "the controller's own delays are not modelled")
            # Only what is next to the disk shares in its transfers.
            break
    return read_ms, write_ms


def _path(node: Node, document: Document, disk: str) -> list[Node] | None:
    """The components from one down to a disk of this type; None where none hangs below it."""
    if node.kind == "disksim_disk":
        return [] if document.types.get(node.name, node.name) == disk else None
    for below in node.below:
        path = _path(below, document, disk)
        if path is not None:
            return [node, *path]
    return None
