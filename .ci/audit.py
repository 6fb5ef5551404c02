"""Ask pip-audit for known vulnerabilities of the packages of a lock file, and say so where it has nothing to ask.

A mirror of PyPI may have the packages and not what is known of them: pip-audit then leaves out each of them, and ends
as if all were well.

    python .ci/audit.py PIP-AUDIT LOCK

Ends with 1 when a package is known to be vulnerable, else with 0.
"""

from __future__ import annotations

import json
import subprocess
import sys


def verdict(told: str, lock: str) -> tuple[str, bool]:
    """What pip-audit's JSON says, in words, and whether it is bad."""
    try:
        packages = json.loads(told)["dependencies"]
    except (ValueError, KeyError):
        return f"{lock}: skipped, PyPI's vulnerability data cannot be reached", False
    left_out = [package["name"] for package in packages if "skip_reason" in package]
    vulnerable = [
        f"{lock}: {package['name']} {package['version']}: {flaw['id']}, mended in {' '.join(flaw['fix_versions'])}"
        for package in packages
        for flaw in package.get("vulns", ())
    ]
    if vulnerable:
        return "\n".join(vulnerable), True
    if len(left_out) == len(packages):
        return f"{lock}: skipped, this index has no vulnerability data", False
    if left_out:
        return f"{lock}: could not be asked about: {', '.join(left_out)}; nothing known of the others", False
    return f"{lock}: {len(packages)} packages, no known vulnerability", False


def main() -> int:
    """Ask, and say what came of it."""
    audit, lock = sys.argv[1:]
    command = [audit, "--disable-pip", "--require-hashes", "-r", lock, "--format", "json", "--progress-spinner", "off"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600).stdout
    except (OSError, subprocess.TimeoutExpired):
        told = ""
    words, bad = verdict(told, lock)
    print(words)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
