"""What raidlab is built from and tested with: exact files, allowed licences, and the notices that a wheel owes."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ["requirements.lock", "requirements-dev.lock", ".ci/tools.lock"]
LOCKS += [f"{folder}/requirements.lock" for folder in ("benches/fuzz", "tests/wheel")]
needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_hashes(name):
    text = re.sub(r"#.*", "", (ROOT / name).read_text()).replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip()]
    assert lines
    for line in lines:
        assert re.match(r"[a-z0-9._-]+==\S+( ; .+?)?( +--hash=sha256:[0-9a-f]{64})+ *$", line), line


def test_the_users_packages_are_the_developers():
    def pins(name: str) -> set[str]:
        return {line.split()[0] for line in (ROOT / name).read_text().splitlines() if "==" in line}

    assert pins("requirements.lock") < pins("requirements-dev.lock")


def test_nothing_is_installed_or_built_but_what_is_locked():
    recipes = (ROOT / ".ci/run").read_text() + (ROOT / "Makefile").read_text()
    commands = [line for line in recipes.splitlines() if not line.strip().startswith(("#", "echo"))]
    installs = [line for line in commands if re.search(r"pip\"? install", line)]
    builds = [
        line for line in commands if re.search(r"\b(cargo (test|clippy|doc|bench|build|deny)|maturin develop)\b", line)
    ]
    assert len(installs) >= 2 and all("--require-hashes" in line for line in installs), installs
    assert len(builds) >= 4 and all("--locked" in line for line in builds), builds


@pytest.fixture(scope="module")
def crates() -> tuple[ModuleType, dict[str, Any]]:
    module = script("crates")
    return module, module.metadata()


@needs_cargo
def test_all_crates_are_allowed(crates):
    module, known = crates
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    assert module.problems(known, rules) == []


@needs_cargo
def test_a_crate_that_is_not_allowed_is_named(crates):
    module, known = crates
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    rules["bans"]["deny"].append({"crate": "serde"})
    foreign = [package for package in known["packages"] if package["source"] is not None]
    changed = [{**foreign[0], "license": "GPL-3.0-only"}, {**foreign[1], "source": "git+https://example.org/x"}]
    found = module.problems({**known, "packages": [*foreign[2:], *changed]}, rules)
    assert [line.split(":")[0].split()[0] for line in found] == ["serde", foreign[0]["name"], foreign[1]["name"]]


@needs_cargo
def test_the_notices_are_those_of_the_locked_crates(crates):
    module, known = crates
    assert (ROOT / "THIRD-PARTY-NOTICES").read_text() == module.notices(known), "make notices"
    names = {package["name"] for package in module.linked(known)}
    assert {"pyo3", "io-uring", "numpy"} <= names
    assert not names & {"syn", "proptest", "criterion"}, "what only builds or tests is in no wheel"


def test_the_wheel_has_the_notices():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license-files"] == ["LICENSE", "THIRD-PARTY-NOTICES"]


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT OR GPL-3.0-only", True),
        ("Unlicense/MIT", True),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", False),
        ("GPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False),
    ],
)
def test_licences_with_a_choice(expression, allowed):
    assert script("crates").is_allowed(expression, {"MIT", "Apache-2.0"}) == allowed


def test_an_audit_says_what_it_could_not_ask():
    verdict = script("audit").verdict
    known = {"name": "a", "version": "1", "vulns": []}
    unknown = {"name": "b", "skip_reason": "not found"}
    flaw = {"name": "c", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
    for packages, words, bad in (
        ([known], "1 packages, no known vulnerability", False),
        ([unknown], "skipped, this index has no vulnerability data", False),
        ([known, unknown], "could not be asked about: b; nothing known of the others", False),
        ([known, unknown, flaw], "c 2: PYSEC-1, mended in 3", True),
    ):
        assert verdict(json.dumps({"dependencies": packages}), "x.lock") == (f"x.lock: {words}", bad)
    assert verdict("", "x.lock") == ("x.lock: skipped, PyPI's vulnerability data cannot be reached", False)
