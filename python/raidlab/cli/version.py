"""``raidlab version``: the version, the commit, the machine."""

from __future__ import annotations


def version() -> None:
    """Print version, commit and machine."""
    from raidlab.results.provenance import host_facts, version_facts

    facts, host = version_facts(), host_facts()
    commit = f" ({facts['git_commit'][:12]}{', changed' if facts['git_dirty'] else ''})" if facts["git_commit"] else ""
    print(f"raidlab {facts['version']}{commit}")
    print(f"{host['cpu'] or host['machine']}, {host['cpus']} CPUs, Linux {host['kernel']}, Python {host['python']}")
