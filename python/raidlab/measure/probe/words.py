"""The answer of a probe in words: what it is, how sure that is, what else it may be and what would tell.

Invariant: whatever is said here is in the answer; no figure is worked out anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.measure.probe.answer import ProbeAnswer, ProbeLine
from raidlab.measure.probe.hypotheses import Hypothesis
from raidlab.measure.probe.judge import CandidateClass
from raidlab.reading import Plain
from raidlab.study.units import format_bytes, format_time_ns

# Of arrays that nothing told apart so many are named in a terminal; the document has them all.
_SHOWN = 8
_MEMBER = "what its members are (--member DEVICE, a name or a file of 'raidlab device fit')"
# By the kind of target.
_WRITES = {
    "block": "writes (--destroy {}, which destroys what is on it)",
    "file": "writes (of a block device, with --destroy; a file is only read)",
    "sim": "writes (--destroy sim)",
}


def sentence(answer: ProbeAnswer) -> str:
    """The answer in a sentence or two."""
    return _named(answer) + (_WRITES_CACHED if answer.writes_cached else "")


_WRITES_CACHED = " A cache answers writes before they are on the members, so writes told nothing."


def _named(answer: ProbeAnswer) -> str:
    if answer.verdict == "a cache answers":
        return (
            f"A cache answers: what was just read came {answer.cache_ratio:.0f} times as fast as the rest, so what is "
            "below it is not seen."
        )
    if answer.verdict == "members unknown":
        return f"Cannot tell: {answer.notes[-1]}. This needs {needed(answer)}."
    first = answer.classes[0]
    if answer.verdict == "no known array":
        near = first.arrays[0].title
        return f"No known array: the nearest, {near}, leaves residuals of {first.chi2**0.5:.1f} sigma."
    if answer.verdict == "sure":
        return f"Sure ({_percent(first)}){_if_small(answer)}: {first.arrays[0].title}."
    more = f": needs {needed(answer)}" if answer.needs else ", whatever is asked"
    if answer.verdict == "sure of a class":
        one_of = f"that it is one of {len(first.arrays)}{_if_small(answer)}"
        return f"Sure ({_percent(first)}) {one_of}. Cannot tell {_either(first)}{more}."
    second = "others" if answer.runner_up is None else answer.runner_up.title
    return f"Not sure: cannot tell {first.arrays[0].title} from {second}{more}."


def _if_small(answer: ProbeAnswer) -> str:
    """Of which arrays that is said where not all could be seen."""
    seen_in = answer.seen_in_bytes
    return f", among arrays that can be seen in {format_bytes(seen_in)}" if seen_in else ""


def needed(answer: ProbeAnswer) -> str:
    """What would tell more, in words."""
    words = {"--destroy": _WRITES[answer.kind].format(answer.title), "--member": _MEMBER}
    return " or ".join(words.get(one, one) for one in answer.needs)


def _either(group: CandidateClass) -> str:
    shown = [one.title for one in group.arrays[:2]]
    return " from ".join(shown) if len(shown) == 2 else shown[0]


def _percent(group: CandidateClass) -> str:
    return f"{min(99.9, 100 * group.probability):.1f} %"


def candidate_rows(answer: ProbeAnswer) -> Iterator[tuple[str, str]]:
    """Probability and arrays, a row an array; the probability stands at the first of a class.

    Of many in a class the rest is counted.
    """
    for group in answer.classes:
        for number, one in enumerate(group.arrays[:_SHOWN]):
            yield ("" if number else _percent(group)), one.title
        if (more := len(group.arrays) - _SHOWN) > 0:
            yield "", f"and {more} more that the tests do not tell from these"


def as_document(answer: ProbeAnswer) -> dict[str, Plain]:
    """The answer for programs."""
    return {
        "target": answer.title,
        "verdict": answer.verdict,
        "sentence": sentence(answer),
        "classes": [
            {
                "probability": round(group.probability, 4),
                "chi2_per_test": round(group.chi2, 3),
                "arrays": [_array(one) for one in group.arrays],
            }
            for group in answer.classes
        ],
        "runner_up": "" if answer.runner_up is None else answer.runner_up.title,
        "needs": list(answer.needs),
        "read_latency_ns": round(answer.latency_ns),
        "read_again_ratio": round(answer.cache_ratio, 2),
        "measured_s": round(answer.busy_ns / 1e9, 1),
        "tests": [_test(line) for line in answer.lines],
        "writes_cached": answer.writes_cached,
        "notes": list(answer.notes),
    }


def _array(one: Hypothesis) -> dict[str, Plain]:
    return {
        "title": one.title,
        "tree": one.tree_text,
        "level": one.shape.level,
        "members": one.shape.members,
        "chunk_bytes": one.chunk_bytes,
        "detail": one.shape.detail,
        "write_policy": one.write_policy if one.shape.has_parity else "",
    }


def _test(line: ProbeLine) -> dict[str, Plain]:
    found: dict[str, Plain] = {
        "name": line.name,
        "op": line.op,
        "depth": line.depth,
        "rate_per_s": round(line.rate_per_s, 2),
        "predicted_per_s": round(line.predicted_per_s, 2),
        "residual_sigma": round(line.residual_sigma, 2),
    }
    second = line.runner_up_per_s
    return found if second is None else found | {"runner_up_per_s": round(second, 2)}


def measured_words(answer: ProbeAnswer) -> str:
    """How much was asked."""
    return f"{len(answer.lines)} tests, {format_time_ns(answer.busy_ns // 10**8 * 10**8)} of measuring"
