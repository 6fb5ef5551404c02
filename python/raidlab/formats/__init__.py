"""Files of other tools: what they say, in raidlab's words, and the other way round.

Invariants:

- This package reads and writes text and starts nothing: running what a file asks for is `run`'s.
- What raidlab cannot honour is an error that names the line, never a silent default.
"""
