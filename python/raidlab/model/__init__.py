"""Closed forms: what theory says, to stand beside what is measured.

Invariant: pure functions of trees and numbers; nothing here knows a run.
"""

from raidlab.model.access_count import accesses, throughput_per_member_percent

__all__ = ["accesses", "throughput_per_member_percent"]
