"""What is inside this box: ``raidlab probe`` names an array from timing alone.

- ``hypotheses``: the arrays that a target may be, by the engine's own layouts
- ``ask``: what is asked of a target, real or simulated
- ``plan``: which tests there are
- ``predict``: what each array would give, simulated
- ``judge``: how likely each is, and what timing cannot tell apart
- ``identify``: the way from the first question to the answer
- ``words``, ``picture``: the answer in words, and the tests that decided, drawn

Invariants:

- A probe reads only, unless the target is named to be overwritten.
- Nothing that the system knows of the target (its driver, ``mdstat``, its name) is looked at: timing is the only input.
- "Sure" is said only of a class of 95 % or more that explains the tests; otherwise the answer says what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from raidlab.errors import CellFailedError, InputError
from raidlab.measure.execute import made_members
from raidlab.measure.places import single_target
from raidlab.measure.plan import DIRECT, ResultLine
from raidlab.measure.probe.answer import LEAST_MEMBERS, MOST_MEMBERS, ProbeAnswer, ProbeLine, ProbeRequest
from raidlab.measure.probe.ask import TargetBox, simulated_box
from raidlab.measure.probe.hypotheses import policy_of_tree
from raidlab.measure.probe.identify import MOST_TESTS, Prober
from raidlab.run.interrupt import StopFlag, catching_signals
from raidlab.run.progress import Progress, Silent
from raidlab.study.cell import CellCache, Opaque
from raidlab.study.device import DeviceModel
from raidlab.study.units import format_time_ns

# Of a test on the real clock; some time goes into looking for a cache and for a depth.
_LEAST_SLOT_NS, _MOST_SLOT_NS = 100_000_000, 3_000_000_000
_TURNS = MOST_TESTS + 12


def probe_target(
    word: str,
    asked: ProbeRequest,
    destroy: Sequence[str] = (),
    *,
    progress: Progress | None = None,
    stop: StopFlag | None = None,
) -> ProbeAnswer:
    """Name what a block device or a file is made of.

    Raises
    ------
    RaidlabError
        Before anything is asked for what cannot be, or must not be, probed.
    KeyboardInterrupt
        Where it was to stop.
    """
    target = single_target(
        word,
        destroy,
        ("block", "file"),
        otherwise="is nothing whose members could be told",
        accepted="a block device or a file",
    )
    place = target.places[0]
    slot_ns = min(_MOST_SLOT_NS, asked.budget_ns // _TURNS)
    if slot_ns < _LEAST_SLOT_NS:
        least = format_time_ns(_LEAST_SLOT_NS * _TURNS)
        message = f"{_TURNS} turns are asked at most, and this leaves {format_time_ns(slot_ns)} for each"
        budget = f"'{format_time_ns(asked.budget_ns)}'"
        raise InputError.one("--budget", message, value=budget, accepted=f"at least {least}")
    line = ResultLine(target.title, DIRECT, "independent(1)", target.places)
    stop = stop or StopFlag()
    with catching_signals(stop), made_members([line], {line.name: {"kind": "member"}}) as members:
        subject = TargetBox(members[line.name][0], place.used_bytes, asked.seed, stop, slot_ns, tuple(destroy))
        try:
            found = Prober(subject, asked, progress or Silent(), stop).answer()
            return replace(found, kind="block" if place.kind == "block" else "file")
        except CellFailedError as error:
            raise line.error_at_target(error) from None


def probe_simulated(
    tree: Opaque,
    device: DeviceModel,
    asked: ProbeRequest,
    progress: Progress | None = None,
    *,
    cache: CellCache | None = None,
) -> ProbeAnswer:
    """Probe a simulated array, of which it is known what it is: Linux md's choices over members of this kind."""
    policy = policy_of_tree(tree, rotating=device.parameters["kind"] == "hdd")
    try:
        subject = simulated_box(tree, device.parameters, policy, asked.seed, cache)
        return replace(Prober(subject, asked, progress or Silent()).answer(), kind="sim")
    except CellFailedError as error:
        raise error.at(f"--sim: '{asked.title}'") from None


__all__ = [
    "LEAST_MEMBERS",
    "MOST_MEMBERS",
    "ProbeAnswer",
    "ProbeLine",
    "ProbeRequest",
    "probe_simulated",
    "probe_target",
]
