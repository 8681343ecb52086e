"""What runs again and what is left out: the rules of conftest.py, in a run of pytest of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import clean_environment

pytestmark = pytest.mark.slow  # each starts pytest
ROOT = Path(__file__).parents[1]
RULES = "pytest_ignore_collect, pytest_runtest_protocol, pytest_runtest_setup, pytest_terminal_summary"
SECOND_TIME = """
import pytest
RUNS = []
@pytest.mark.{mark}
def test_it():
    RUNS.append(1)
    assert len(RUNS) > 1
"""


def ran(
    folder: Path, test: str, much: float = 1.0, *, select: str = "", **environ: str
) -> subprocess.CompletedProcess[str]:
    """pytest over one file under our rules, where `much` is the share of stolen time from which a failure is none."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    alone\n    lab\n    further\n    slow\n")
    (folder / "conftest.py").write_text(
        f"from tests import stolen_time\nfrom tests.conftest import {RULES}\nstolen_time.MUCH = {much}\n"
    )
    (folder / "test_it.py").write_text(test)
    # pytest removes what older runs left in the folder for temporary files, and that can take minutes
    own = {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder), "NCCLCHECK_TEST_COUNTS": "", **environ}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", select], cwd=folder,
        capture_output=True, text=True, timeout=60, check=False, env=clean_environment(**own),
    )  # fmt: skip


@pytest.mark.parametrize("mark", ["alone", "lab"])
def test_what_failed_while_the_cores_were_taken_away_runs_again_and_that_is_said(
    tmp_path: Path, mark: str
) -> None:
    done = ran(tmp_path, SECOND_TIME.format(mark=mark), much=-1.0)
    assert done.returncode == 0, done.stdout
    assert "ran again" in done.stdout
    assert "of the cores: test_it.py::test_it" in done.stdout


def test_a_failure_on_cores_of_ones_own_is_a_failure_and_so_is_a_third_one(tmp_path: Path) -> None:
    assert "1 failed" in ran(tmp_path, SECOND_TIME.format(mark="alone")).stdout
    always = "import pytest\n@pytest.mark.alone\ndef test_it():\n    assert False\n"
    done = ran(tmp_path, always, much=-1.0)
    assert done.returncode == 1
    assert done.stdout.count("of the cores: test_it.py::test_it") == 2  # times that it ran again


def test_a_further_case_is_left_out_when_its_time_is_over_and_only_then(tmp_path: Path) -> None:
    test = "import pytest\n@pytest.mark.further\ndef test_it():\n    pass\n"
    assert "1 passed" in ran(tmp_path, test).stdout
    late = ran(tmp_path, test, NCCLCHECK_TEST_FURTHER_UNTIL="1")
    assert "1 test: a further case, and no time was left for it" in late.stdout


@pytest.mark.parametrize("processes", ["0", "2"])
def test_every_part_adds_its_counts_once_and_an_error_is_a_failure(tmp_path: Path, processes: str) -> None:
    test = """
import pytest
@pytest.fixture
def broken():
    assert False
def test_passes(): pass
def test_fails(): assert False
def test_has_no_fixture(broken): pass
def test_is_skipped(): pytest.skip("no reason")
"""
    counts, failed = tmp_path / "counts", tmp_path / "failed"
    counts.write_text("7 0 0\n")
    ran(
        tmp_path,
        test,
        PYTEST_ADDOPTS=f"-n {processes}",
        NCCLCHECK_TEST_COUNTS=str(counts),
        NCCLCHECK_TEST_FAILED=str(failed),
    )
    assert counts.read_text() == "7 0 0\n1 2 1\n"
    assert failed.read_text().split() == ["test_it.py::test_fails", "test_it.py::test_has_no_fixture"]


BROKEN_IMPORT = """
import pytest, no_such_module
pytestmark = [pytest.mark.lab, pytest.mark.slow]
def test_it(): pass
"""


@pytest.mark.parametrize(
    ("select", "is_imported"),
    [
        ("", True),
        ("lab", True),
        ("lab and slow", True),
        ("not alone", True),
        ("slow or lab", True),
        ("not lab", False),
        ("not alone and not slow", False),
        ("lab and alone", False),
    ],
)
def test_a_file_in_which_no_test_is_selected_is_not_imported(
    tmp_path: Path, select: str, is_imported: bool
) -> None:
    assert ("no_such_module" in ran(tmp_path, BROKEN_IMPORT, select=select).stdout) is is_imported
