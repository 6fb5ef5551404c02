"""A device that was fitted, asked again: is it still what its file says?

Only what was held out is asked for again, in other places, and set beside the file as the fit has done: turn by turn,
within the error that the file states. That every turn of a situation is beyond it happens in a tenth of all at most,
if the device is as it was; more than chance has of them is another device. So is one that is a fifth slower, or
faster, than when it was fitted, in the median and nearly everywhere: a file that is far off hides no such change.

Reference: the sign test, for what all situations have in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from raidlab.errors import InputError
from raidlab.measure.fit import DRIFT_REFUSED, kind_described, may_write, measured_samples, member_of
from raidlab.measure.fit.held_out import SURE, HeldOut, most_by_chance, predicted
from raidlab.measure.fit.situations import Situation, slots
from raidlab.measure.fit.subject import TargetSubject
from raidlab.measure.fit.table import together
from raidlab.measure.places import Place, single_target
from raidlab.reading import Plain
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Progress, Silent
from raidlab.stats.special import binomial_cdf
from raidlab.study.device import MOST_FIT_ERROR_PERCENT, DeviceModel, fit_error_percent
from raidlab.study.units import format_bytes

# A device that stands still is as far off as that.
_NEARLY_ANYTHING = 100.0
# What a target may hold more or less than the file says.
_ANOTHER_SIZE = 0.01


@dataclass(frozen=True)
class AgainRequest:
    """All that asking again is told."""

    model: DeviceModel
    held_out: Mapping[Situation, float]
    """What its file holds out, and the requests a second that were measured of it then."""
    target: str
    budget_ns: int
    destroy: Sequence[str] = ()
    """The device, once more, if it may be overwritten."""
    seed: int = 0
    source: str = ""
    """Of what that was measured, as its file says it."""


@dataclass(frozen=True)
class AskedAgain:
    """A device beside what its file says of it."""

    held: tuple[HeldOut, ...]
    stated_percent: float
    """The error that the file states of a throughput."""
    before_per_s: tuple[float, ...]
    """What was measured of each when it was fitted."""
    left_out: int = 0
    """Situations with writes, which the target may not be given."""
    kind: str = "block"
    """Of the target."""

    @property
    def beyond(self) -> tuple[HeldOut, ...]:
        """What was farther off than stated, every time."""
        return tuple(one for one in self.held if min(map(abs, one.turn_errors_percent)) > self.stated_percent)

    @property
    def by_chance(self) -> int:
        """How many may be beyond of a device that is as it was, with 99 %."""
        return most_by_chance(len(self.held))

    @property
    def _ratios(self) -> list[float]:
        return [one.measured.rate_per_s / before for one, before in zip(self.held, self.before_per_s, strict=True)]

    @property
    def rate_change_percent(self) -> float:
        """How much faster it is than when it was fitted, in the median situation."""
        return 100 * (median(self._ratios) - 1)

    @property
    def has_shifted(self) -> bool:
        """Whether it is faster, or slower, than it was, in more situations than chance has, and by a fifth."""
        moved = [ratio > 1 for ratio in self._ratios if ratio != 1]
        most = max(sum(moved), len(moved) - sum(moved))
        if abs(self.rate_change_percent) < DRIFT_REFUSED or 2 * most <= len(moved):
            return False
        first, cdf = binomial_cdf(len(moved), 0.5)
        return most > first and 2 * (1 - float(cdf[most - 1 - first])) < 1 - SURE

    @property
    def has_changed(self) -> bool:
        """Whether more than chance explains is beyond, or all of it has shifted."""
        return len(self.beyond) > self.by_chance or self.has_shifted

    @property
    def can_tell(self) -> bool:
        """Whether there is much that it could be and is not."""
        return self.has_changed or self.stated_percent < _NEARLY_ANYTHING

    @property
    def sentence(self) -> str:
        """What came of it, in words."""
        rate_change = self.rate_change_percent
        change = f"{abs(rate_change):.0f} % {'faster' if rate_change > 0 else 'slower'}"
        within = f"{len(self.held) - len(self.beyond)} of {len(self.held)} are within the {self.stated_percent:.3g} %"
        if not self.can_tell:
            return (
                f"Cannot tell: an error of {self.stated_percent:.3g} %, which its file states, is nearly anything. "
                f"It is {change} than when it was fitted, in the median; fit it again where nothing else is at work."
            )
        if not self.has_changed:
            return (
                f"It is still what its file says: {within} that it states, and it is {change} than then in the median."
            )
        least = len(self.held) - self.by_chance
        why = f"chance would leave {least} or more" if len(self.beyond) > self.by_chance else "but they moved one way"
        return (
            f"It has changed: {within} that its file states ({why}), and it is {change} than when it was fitted, in "
            "the median; fit it again."
        )

    @property
    def warning(self) -> str | None:
        """What cannot be seen of a device whose file is far off; None where that is little."""
        if self.stated_percent <= MOST_FIT_ERROR_PERCENT:
            return None
        stated, least = f"{self.stated_percent:.3g} %", f"{DRIFT_REFUSED:g} % or more"
        return f"its file states an error of {stated}: of smaller changes only one of {least} that all share is seen"

    def as_json(self) -> dict[str, Plain]:
        """The same for programs."""
        return {
            "situations": [
                {
                    "name": one.situation.name,
                    "measured_per_s": one.measured.rate_per_s,
                    "modelled_per_s": one.modelled.rate_per_s,
                    "turn_errors_percent": list(one.turn_errors_percent),
                }
                for one in self.held
            ],
            "stated_percent": self.stated_percent,
            "beyond": len(self.beyond),
            "beyond_by_chance": self.by_chance,
            "rate_change_percent": self.rate_change_percent,
            "has_shifted": self.has_shifted,
            "has_changed": self.has_changed,
            "can_tell": self.can_tell,
            "left_out": self.left_out,
        }


def ask_again(asked: AgainRequest, *, progress: Progress | None = None, stop: StopFlag | None = None) -> AskedAgain:
    """Measure what was held out once more, and set it beside the file.

    Raises
    ------
    RaidlabError
        Where the file is of no fit, the target is another size or may not be measured, or fails.
    KeyboardInterrupt
        Where it was to stop.
    """
    model, error = asked.model, fit_error_percent(asked.model.fit)
    if error is None or not asked.held_out:
        message = "states no error of a fit to hold a target to"
        accepted = "a file of 'raidlab device fit TARGET'"
        raise InputError.one("DEVICE", message, value=f"'{model.name}'", accepted=accepted)
    try:
        target = single_target(
            asked.target,
            asked.destroy,
            ("file", "directory", "block", "memory"),
            otherwise="is no device that could be asked",
            accepted=f"what the device was fitted to, of {format_bytes(model.capacity_bytes)}",
            file_bytes=model.capacity_bytes,
        )
    except InputError as wrong:
        raise InputError([replace(one, where=one.where.replace("TARGET", "--on")) for one in wrong.problems]) from None
    place = target.places[0]
    _check_kind(place, asked.source)
    _check_size(place, model)
    allowed = [one for one in asked.held_out if one.op == "read" or may_write(place)]
    plan = slots(allowed, asked.budget_ns, asked.seed)
    stop = stop or StopFlag()
    with member_of(target, stop) as member:
        samples = measured_samples(TargetSubject(member, asked.seed, stop), plan, progress or Silent(), "asking again")
    held = predicted(model.parameters, together(samples), asked.seed)
    before = tuple(asked.held_out[one.situation] for one in held)
    return AskedAgain(tuple(held), error, before, len(asked.held_out) - len(allowed), place.kind)


_IN_FILES = ("file", "directory")
_KINDS = {"block": "a block device", "directory": "a directory", "file": "a file", "memory": "memory"}


def _check_kind(place: Place, source: str) -> None:
    """Refuse what cannot be the device that was fitted, such as a directory of a file system on it."""
    fitted = kind_described(source)
    if fitted is None or fitted == place.kind or {fitted, place.kind} == set(_IN_FILES):
        return
    message = f"is {_KINDS[place.kind]}, and what was fitted is {_KINDS[fitted]}"
    accepted = "a file or a directory" if fitted in _IN_FILES else _KINDS[fitted]
    raise InputError.one("--on", message, value=f"'{place.word}'", accepted=accepted)


def _check_size(place: Place, model: DeviceModel) -> None:
    if abs(place.used_bytes / model.capacity_bytes - 1) > _ANOTHER_SIZE:
        message = f"holds {format_bytes(place.used_bytes)}, so it is not the device that was fitted"
        accepted = f"a target of {format_bytes(model.capacity_bytes)}"
        raise InputError.one("--on", message, value=f"'{place.word}'", accepted=accepted)
