"""What the simple access-count model says: throughput per disk in percent of an array without redundancy."""

from __future__ import annotations

from raidlab.analysis.model import throughput_per_member_percent
from raidlab.published.quantities.kind import Kind, NotThereError, PointKeys, Reading, Source


class Keys(PointKeys):
    """What a measure of this kind says; of drawn sizes the mean counts."""


def read(keys: Keys, source: Source) -> Reading | None:
    """The model's value."""
    study = source.run.study
    workload = next((one for one in study.workload if one.name == keys.workload), None)
    if workload is None or keys.array not in {one.name for one in study.array}:
        raise NotThereError(f"the study has no array '{keys.array}' under '{keys.workload}'")
    if workload.trace is not None:
        raise NotThereError(f"'{keys.workload}' replays a trace, which has no mean size before it is read")
    if keys.array in source.run.standing:
        raise NotThereError(f"'{keys.array}' stands already: the model counts the accesses of raidlab's own trees")
    if any(one.missing for one in study.array if one.name == keys.array):
        raise NotThereError(f"'{keys.array}' lacks members: the model counts the accesses of whole arrays")
    tree = source.run.tree(keys.array)
    try:
        return Reading(throughput_per_member_percent(tree, workload.size.typical_bytes, workload.read))
    except ValueError as error:
        raise NotThereError(str(error)) from None


KIND = Kind("access_count", "the simple access-count model", Keys, read, is_run=False)
