"""``python -m raidlab``: the same as the command ``raidlab``."""

from raidlab.cli import main

if __name__ == "__main__":
    main()
