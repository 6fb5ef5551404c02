"""Live runs of the small study: over files, over memory, over a loop device; what is refused; an interrupt."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conftest import unmount
from raidlab.analysis.checks import run_checks
from raidlab.api import analyse, run_study
from raidlab.cli.app import app
from raidlab.errors import CellFailedError, InputError, RefusedError
from raidlab.report import write_page
from raidlab.results import Run
from raidlab.run.progress import Silent
from raidlab.run.runner import run_request
from verdicts import OF_THE_MACHINE

CLI = [sys.executable, "-c", "from raidlab.cli import main\nif __name__ == '__main__': main()"]


@pytest.fixture(scope="module")
def live_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The small study over files, quickly."""
    from conftest import SMALL_STUDY

    folder = tmp_path_factory.mktemp("live")
    (folder / "study.toml").write_text(SMALL_STUDY.replace('duration = "30ms"', "requests = 400"), encoding="utf-8")
    (folder / "work").mkdir()
    run = run_study(folder / "study.toml", on=[f"{folder}/work/"], out=folder / "runs")
    if run.facts["status"] == "failed" and "io_uring" in str(run.facts["failure"]):
        pytest.skip(f"no io_uring here: {run.facts['failure']}")
    assert list((folder / "work").iterdir()) == [], "member files are taken away"
    return run


def test_a_live_run_is_complete_and_says_what_it_ran_on(live_run: Run) -> None:
    assert live_run.facts["status"] == "complete"
    members = live_run.facts["live_members"]
    assert len(members) == 8
    assert all(member["kind"] == "file" and member["made_by_raidlab"] and member["disks"] for member in members)
    assert set(live_run.cells["target"]) == {"live", "null"}


def test_members_of_one_disk_are_said_to_share_it(live_run: Run) -> None:
    findings = {finding.check: finding for finding in run_checks(analyse(live_run))}
    assert findings["shared_device"].verdict == "WARN"
    assert "one physical device" in findings["shared_device"].evidence
    assert "generator_limited" in findings
    assert findings["single_run"].verdict == "WARN"
    text = write_page(analyse(live_run)).read_text(encoding="utf-8")
    broken = {finding.check for finding in run_checks(analyse(live_run)) if finding.verdict == "INVALID"}
    assert broken <= OF_THE_MACHINE
    first = "No answer: " if broken else "does not judge separate disks"
    assert first in text[: text.index("<figure")], "before any figure"
    assert '<span class="option">--on</span> /disk1/' in text
    assert all(point.disks == 1 for point in analyse(live_run).points)


def test_the_order_of_live_cells_is_kept(live_run: Run) -> None:
    live = live_run.cells.filter(live_run.cells["target"] == "live")
    assert live["order"].n_unique() == live.height


def test_memory_members_run(small_study: Path, tmp_path: Path) -> None:
    run = run_study(small_study, on=["memory"], out=tmp_path / "runs", quick=True)
    assert run.facts["status"] == "complete"
    assert {finding.check for finding in run_checks(analyse(run)) if finding.verdict == "WARN"} >= {"shared_device"}


def test_bad_requests_are_failures_with_a_sentence() -> None:
    with pytest.raises(CellFailedError, match="missing field"):
        run_request("{}")


class _Listener(Silent):
    """Keeps what a run says it begins."""

    def __init__(self, said: list[str]) -> None:
        self._said = said

    def begin(self, title: str, total: int) -> None:
        """Note it."""
        self._said.append(f"{title} {total}")


def test_block_devices_are_refused_unless_given_up_and_mounted_ones_always(
    small_study: Path, tmp_path: Path, loops: Callable[[Path], str]
) -> None:
    text = small_study.read_text(encoding="utf-8")
    for name, tree in (
        ("raid0", "raid0(4, chunk=64KiB)"),
        ("raid5", "raid5(5, chunk=64KiB)"),
        ("raid10", "raid10(8, chunk=64KiB)"),
    ):
        text = text.replace(f'"{tree}"', f'"raid0(1, chunk={4 * len(name)}KiB)"')
    small_study.write_text(text, encoding="utf-8")
    backing, mounted = tmp_path / "backing.img", tmp_path / "mounted"
    backing.write_bytes(bytes(32 << 20))
    device = loops(backing)
    try:
        before = Path(device).read_bytes()
        with pytest.raises(RefusedError, match=f"--destroy {device}"):
            run_study(small_study, on=[device], out=tmp_path / "runs")
        assert Path(device).read_bytes() == before
        if subprocess.run(["mkfs.ext4", "-q", device], check=False).returncode == 0:
            mounted.mkdir()
            subprocess.run(["mount", device, str(mounted)], check=True)
            said: list[str] = []
            with pytest.raises(RefusedError, match=f"^--on: {device} is mounted on"):
                run_study(small_study, on=[device], out=tmp_path / "runs", destroy=[device], progress=_Listener(said))
            assert not said, "nothing is said to be measured"
            # Before it is said that there are too few of them.
            wide = tmp_path / "wide.toml"
            wide.write_text(text.replace("raid0(1, chunk=20KiB)", "raid0(4, chunk=20KiB)"), encoding="utf-8")
            wide.write_text(re.sub(r"\[\[compare\]\].*", "", wide.read_text(encoding="utf-8"), flags=re.S), "utf-8")
            with pytest.raises(RefusedError, match=f"^--on: {device} is mounted on"):
                run_study(wide, on=[device], out=tmp_path / "runs", destroy=[device])
            # Where a device is measured alone, nothing is measured before that is said either.
            for words in (["device", "fit"], ["probe"], ["measure"]):
                result = CliRunner().invoke(app, [*words, device, "--destroy", device])
                assert isinstance(result.exception, RefusedError), (words, result.output)
                assert f"--destroy: {device} is mounted on" in str(result.exception)
            unmount(mounted)
        subprocess.run(["blockdev", "--setro", device], check=True)
        with pytest.raises(RefusedError, match=f"^--on: {device} is read-only"):
            run_study(small_study, on=[device], out=tmp_path / "runs", destroy=[device])
        subprocess.run(["blockdev", "--setrw", device], check=True)
        (tmp_path / "link").symlink_to(device)
        with pytest.raises(InputError, match="is the same device as"):
            run_study(small_study, on=[f"{tmp_path}/link", device], out=tmp_path / "runs", destroy=[device])
        assert not list((tmp_path / "runs").glob("*")), "nothing was measured, so there is no run"
        run = run_study(small_study, on=[device], out=tmp_path / "runs", destroy=[device], quick=True)
        assert run.facts["status"] == "complete"
        assert run.facts["live_members"][0]["kind"] == "block"
    finally:
        subprocess.run(["umount", str(mounted)], check=False, capture_output=True)
