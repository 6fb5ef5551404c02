"""Closed forms: what theory says, to stand beside what is measured.

Adding one: a `Form` in the list `FORMS` of a file that is listed here, with its cases, and a test.

Invariant: pure functions of trees and numbers; nothing here knows a run.
"""

from raidlab.analysis.model import adjusted, closed_loop, flash, fork_join, queues, reliability, rules
from raidlab.analysis.model.access_count import accesses, throughput_per_member_percent
from raidlab.analysis.model.form import Form

FORMS: dict[str, Form] = {
    form.kind: form
    for room in (queues, fork_join, closed_loop, adjusted, rules, flash, reliability)
    for form in room.FORMS
}

__all__ = ["FORMS", "accesses", "throughput_per_member_percent"]
