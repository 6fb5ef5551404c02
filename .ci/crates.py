"""The crates that raidlab is built from: are their licences and sources allowed, and what do their licences say?

Purpose: what must hold wherever raidlab can be built. `check` reads deny.toml, as cargo-deny does, and names each crate
whose licence or source it does not allow, or that it bans. `notices` prints the licences of all crates that are linked
into the module of the wheel, as their authors ask for; `make notices` keeps that as THIRD-PARTY-NOTICES.

    python .ci/crates.py check
    python .ci/crates.py notices

Ends with 0 when all is allowed, 1 otherwise.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LICENCE_FILES = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE)", re.IGNORECASE)
MODULE = "raidlab-py"
HEAD = """Third-party notices of raidlab

The compiled module of raidlab's wheel contains these crates, under the licences that follow, and the standard library
of Rust (https://www.rust-lang.org), under MIT or Apache-2.0.
"""


def metadata() -> dict[str, Any]:
    """What cargo knows of the workspace and all that it is built from."""
    command = ["cargo", "metadata", "--locked", "--all-features", "--format-version", "1"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Whether a licence expression (SPDX) leaves a choice that is allowed.

    What has ``AND`` beside ``OR`` without brackets is read as if the brackets were around ``OR``, which allows less.
    """
    choices = expression.replace("/", " OR ").split(" AND ")
    return all(any(one.strip(" ()") in allowed for one in choice.split(" OR ")) for choice in choices)


def problems(known: dict[str, Any], rules: dict[str, Any]) -> list[str]:
    """A line for each crate that the rules do not allow."""
    allowed = set(rules["licenses"]["allow"])
    sources = {f"registry+{index}" for index in rules["sources"]["allow-registry"]}
    banned = {one["crate"] for one in rules["bans"]["deny"]}
    foreign = [package for package in known["packages"] if package["source"] is not None]
    lines = []
    for package in foreign:
        name, licence = f"{package['name']} {package['version']}", package["license"]
        if licence is None or not is_allowed(licence, allowed):
            lines.append(f"{name}: its licence is '{licence}'; accepted: {', '.join(sorted(allowed))}")
        if package["source"] not in sources:
            lines.append(f"{name}: comes from {package['source']}; accepted: {', '.join(sorted(sources))}")
        if package["name"] in banned:
            lines.append(f"{name}: is banned")
    with (ROOT / "Cargo.lock").open("rb") as lock:
        for package in tomllib.load(lock)["package"]:
            if "source" in package and "checksum" not in package:
                lines.append(f"{package['name']} {package['version']}: has no checksum in Cargo.lock")
    return lines


def linked(known: dict[str, Any]) -> list[dict[str, Any]]:
    """The crates of others that are part of the compiled module: no macros, and nothing that only builds or tests."""
    packages = {package["id"]: package for package in known["packages"]}
    nodes = {node["id"]: node for node in known["resolve"]["nodes"]}
    todo = [one for one, package in packages.items() if package["name"] == MODULE]
    found: dict[str, dict[str, Any]] = {}
    while todo:
        one = todo.pop()
        if one in found or any("proc-macro" in target["kind"] for target in packages[one]["targets"]):
            continue
        found[one] = packages[one]
        todo += [use["pkg"] for use in nodes[one]["deps"] if any(kind["kind"] is None for kind in use["dep_kinds"])]
    foreign = (package for package in found.values() if package["source"] is not None)
    return sorted(foreign, key=lambda package: (package["name"], package["version"]))


def notices(known: dict[str, Any]) -> str:
    """Names, versions and licences, and each licence's text once, with who has it."""
    who: dict[str, list[str]] = defaultdict(list)
    lines = [HEAD]
    for package in linked(known):
        name = f"{package['name']} {package['version']}"
        lines.append(f"{name}: {package['license']}, https://crates.io/crates/{package['name']}")
        folder = Path(package["manifest_path"]).parent
        files = [file for file in sorted(folder.iterdir()) if file.is_file() and LICENCE_FILES.search(file.name)]
        if not files:
            raise SystemExit(f"{name} comes without the text of its licence: add it here by hand")
        for file in files:
            text = "\n".join(line.rstrip() for line in file.read_text(encoding="utf-8", errors="replace").splitlines())
            who[text.strip("\n")].append(name)
    for text, names in sorted(who.items(), key=lambda item: item[1]):
        lines += ["", "=" * 80, ", ".join(dict.fromkeys(names)), "", text]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Do what the word says."""
    known = metadata()
    if sys.argv[1:] == ["notices"]:
        print(notices(known), end="")
        return 0
    found = problems(known, tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8")))
    print("\n".join(found) or "licences and sources of all crates are allowed")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
