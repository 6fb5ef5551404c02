"""The wheel in a clean environment, from outside the source tree and without a toolchain: `make test-wheel`.

Packages that raidlab depends on come from the index of pip; without one the tests are skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WHEELS = sorted((ROOT / "dist").glob("*.whl"))

pytestmark = pytest.mark.skipif(not WHEELS, reason="no wheel in dist/: `make wheel` builds one")


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment in which nothing but the wheel was installed."""
    place = tmp_path_factory.mktemp("wheel")
    venv.create(place, with_pip=True)
    words = [place / "bin/pip", "install", "--quiet", "--disable-pip-version-check", WHEELS[-1]]
    done = subprocess.run(words, env=bare(place), capture_output=True, text=True, check=False)
    if "No matching distribution" in done.stderr or "Could not fetch" in done.stderr:
        pytest.skip("the packages that raidlab depends on are not to be had here")
    assert done.returncode == 0, done.stderr
    return place / "bin"


def bare(home: Path) -> dict[str, str]:
    """An environment without Rust, without the source tree, and with a home directory of its own."""
    kept = {key: os.environ[key] for key in ("PIP_INDEX_URL", "SSL_CERT_FILE", "https_proxy") if key in os.environ}
    return kept | {"PATH": "/usr/bin:/bin", "HOME": str(home), "COLUMNS": "100"}


def run(programs: Path, place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command in a folder of its own."""
    return subprocess.run(
        [programs / "raidlab", *words], cwd=place, env=bare(place), capture_output=True, text=True, check=False
    )


def test_lists_its_studies(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, "study", "list")
    assert done.returncode == 0, done.stderr
    for study in ("quickstart", "chen1990", "hauser1996", "uselton2000", "jlab1998", "ou2007"):
        assert study in done.stdout


def test_simulates_and_reports(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, "run", "quickstart", "--on", "sim", "--quick")
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("runs/*/report.html"))


def test_measures(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, "measure", "null", "--runtime", "500ms", "--json")
    # A null target stands at raidlab's own bound: on a busy machine the check of the generator says so (3).
    assert done.returncode in (0, 3), done.stderr
    assert '"null"' in done.stdout


def test_runs_on_any_python_of_its_abi() -> None:
    name = WHEELS[-1].name
    assert "cp311-abi3-manylinux" in name, name
    assert sys.version_info >= (3, 11)


def test_holds_what_is_published_and_nothing_of_the_tree_besides() -> None:
    with zipfile.ZipFile(WHEELS[-1]) as wheel:
        names = wheel.namelist()
    assert any(name.endswith("_shared/studies/chen1990/study.toml") for name in names)
    assert any(name.endswith("_shared/devices/hdd-7200.toml") for name in names)
    assert any(name.endswith("licenses/THIRD-PARTY-NOTICES") for name in names)
    assert not [name for name in names if "/tests/" in name or name.endswith(".rs")]


def test_source_distribution_holds_files_where_the_tree_has_links() -> None:
    (sources,) = (ROOT / "dist").glob("*.tar.gz")
    with tarfile.open(sources) as archive:
        members = {member.name.split("/", 1)[1]: member for member in archive.getmembers()}
    for name in ("_shared/studies/chen1990/study.toml", "_shared/devices/original/fc-10k.toml"):
        assert members[f"python/raidlab/{name}"].isfile()
    assert "Cargo.lock" in members
