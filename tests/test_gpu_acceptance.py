"""scripts/gpu_acceptance, as far as it can be run without a GPU."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "gpu_acceptance"
# nccl-tests 2.19.6, all_reduce_perf -b 8 -e 8388608 -f 1048576 -g 8
TABLE = """\
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    12.34    0.00    0.00      0    12.10    0.00    0.00    N/A
     8388608       2097152     float     sum      -1    81.49  102.94  180.14      0    80.39  104.35  182.61      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 90.6875
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script as a module."""
    loader = SourceFileLoader("gpu_acceptance", str(SCRIPT))
    spec = spec_from_loader("gpu_acceptance", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_times_of_nccl_tests_are_those_in_place_or_out_of_place(script: ModuleType) -> None:
    assert script.times_of(TABLE, in_place=True) == {8: 12.10, 8 << 20: 80.39}
    assert script.times_of(TABLE, in_place=False) == {8: 12.34, 8 << 20: 81.49}


def test_nccl_tests_runs_where_it_is_and_is_not_missed_where_it_is_not(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = script.World("one rank on each of 8 GPUs", 8, {}, "8,8M")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert script._nccl_tests("all_reduce", world).sound
    program = tmp_path / "all_reduce_perf"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{TABLE}END\n")
    program.chmod(0o755)
    monkeypatch.setenv("NCCL_TESTS", str(tmp_path))
    found = script._nccl_tests("all_reduce", world)
    assert (found.times_us, found.sound) == ({8: 12.10, 8 << 20: 80.39}, True)
    program.write_text("#!/bin/sh\necho no GPU >&2\nexit 3\n")
    failed = script._nccl_tests("all_reduce", world)
    assert (failed.times_us, failed.sound) == ({}, False)
    assert "no GPU" in failed.remarks[0]


def test_each_goal_is_named_met_or_missed(script: ModuleType) -> None:
    """10 % of nccl-tests at 8 B, 1 % from 1 MiB on."""

    def said(size: int, own_us: float, tests_us: float | None) -> list[str]:
        goals = script.goals_of(size, own_us, {"nccl-tests": tests_us, "the bare loop": 10.0})
        return [goal.said("all_reduce", is_judged=True) for goal in goals]

    assert said(8, 10.9, 10.0) == [
        "- goal: all_reduce of 8 B within 10% of nccl-tests: met (9.0% off)",
        "- goal: all_reduce of 8 B within 10% of the bare loop: met (9.0% off, for information)",
    ]
    assert "missed (11.0% off)" in said(8, 11.1, 10.0)[0]
    assert "1% of nccl-tests: met (0.9% off)" in said(1 << 20, 10.09, 10.0)[0]
    assert "missed (1.5% off)" in said(1 << 20, 10.15, 10.0)[0]
    assert "not measured" in said(1 << 20, 10.0, None)[0]
    assert said(64 << 10, 99.0, 10.0) == []


@pytest.mark.parametrize(
    ("ranks", "shared", "own_us", "is_sound"),
    [(2, {}, 100.5, True), (2, {}, 102.0, False), (1, {}, 102.0, True), (2, {"NCCL_X": "1"}, 102.0, True)],
)
def test_goals_are_judged_beside_nccl_tests_on_several_gpus(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    ranks: int,
    shared: dict[str, str],
    own_us: float,
    is_sound: bool,
) -> None:
    op = "all_gather" if ranks == 1 else "all_reduce"
    told = script.NcclTests({16 << 20: 100.0}, True, [])
    monkeypatch.setattr(script, "_nccl_tests", lambda *_: told)
    monkeypatch.setattr(script, "_loop", lambda *_: 100.0)
    lines: list[str] = []
    points = [{"op": op, "size_bytes": 16 << 20, "time_us": {"mean": own_us}}]
    assert script._compare(lines, script.World("a world", ranks, shared, "16M"), points) is is_sound
    assert any(line.startswith(f"- goal: {op} of 16777216 B within 1% of nccl-tests") for line in lines)


def test_without_a_gpu_it_says_so_and_writes_nothing(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    ended = subprocess.run(
        [sys.executable, SCRIPT, "--page", page], capture_output=True, text=True, check=False, timeout=120
    )
    if ended.returncode != 3:
        pytest.skip("there is a GPU here")
    assert "nothing was measured" in ended.stderr
    assert not page.exists()
