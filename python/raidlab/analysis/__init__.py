"""What a run says: points and their metrics, closed forms to hold them against, and checks that judge them.

Invariant: an analysis reads a run; it never starts one.
"""
