"""The command line: one file a subcommand.

Adding one: a file with a function of the subcommand's name, a line in `app`, a test.

Invariants:

- Data goes to standard output, everything else to standard error.
- Starting costs little: subcommands import what they need when they run (`raidlab --help` stays under 150 ms).
- Every failure a user can cause ends in one clear line a mistake and a documented exit code, never in a traceback.
"""

from raidlab.cli.app import main

__all__ = ["main"]
