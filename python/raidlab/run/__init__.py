"""Running a study: targets, members, the pool of workers, the order of things.

Invariants:

- This package knows `study` and the engine, and nothing that comes after it: results are written by the writer
  that a session is handed.
- Nothing outside this package starts a measurement.
- Importing it costs next to nothing. The simulator's workers are processes that import `run.pool`: what they do not
  need is imported when it is used, or each simulated run would begin half a second later.
"""
