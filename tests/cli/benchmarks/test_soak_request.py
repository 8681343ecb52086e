"""What the options of `soak` ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ncclcheck.cli.benchmarks.soak_request import soak_request
from ncclcheck.cli.request import run_options
from ncclcheck.model.errors import UsageError


def test_options_become_a_request() -> None:
    found = soak_request(
        {
            "duration": "2h", "every": "30s", "drop": "10%", "duty": "50", "size": "1M",
            "ops": [("allreduce", "all_to_all")], "state": "there", "until_finding": True,
        }
    )  # fmt: skip
    assert (found.duration_s, found.every_s, found.drop, found.duty) == (7200.0, 30.0, 0.1, 0.5)
    assert (found.ops, found.size_bytes) == (("all_reduce", "all_to_all"), 1 << 20)
    assert (found.folder, found.resumes, found.until_finding) == ("there", False, True)


def test_without_options_it_is_an_hour_in_a_folder_of_its_own() -> None:
    found = soak_request({})
    assert found.duration_s == 3600.0
    assert found.folder.startswith("ncclcheck-soak-")
    assert (found.every_s, found.ops, found.size_bytes) == (None, (), None)
    assert soak_request({"resume": "d"}).resumes


@pytest.mark.parametrize(
    "given",
    [
        {"duration": "soon"}, {"duration": "1s"}, {"duration": "9d"}, {"every": "0"}, {"drop": "1%"},
        {"drop": "x"}, {"duty": "0"}, {"duty": "101%"}, {"size": "1M-2M"}, {"state": "a", "resume": "b"},
    ],
)  # fmt: skip
def test_what_is_impossible_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        soak_request(given)


def test_bounds_are_told_as_people_write_them() -> None:
    with pytest.raises(UsageError, match=r"from 0\.5s to 10m,"):
        soak_request({"every": "1h"})
    with pytest.raises(UsageError, match=r"from 10s to 1[0-9.]*h,"):
        soak_request({"duration": "9d"})


@pytest.mark.parametrize(
    ("given", "least"),
    [
        ({"duration": "60s"}, "4m"),
        ({"duration": "10s", "every": "0.5s"}, "17s"),
        ({"ops": [("all",)]}, ""),
        ({"every": "5m"}, "89m"),
        ({"duration": "10m", "ops": [("allreduce", "all_to_all")], "every": "30s"}, "18m"),
    ],
)
def test_one_that_is_too_short_for_a_verdict_is_refused_with_the_least_that_makes_sense(
    given: dict[str, Any], least: str
) -> None:
    if not least:
        assert soak_request(given)
        return
    with pytest.raises(UsageError, match=f"too short.* take {least}: give a longer --duration") as told:
        soak_request(given)
    assert "16 blocks" in str(told.value)
    assert soak_request({**given, "duration": least})
    assert soak_request({**given, "resume": "d"})  # it has blocks already


def test_a_policy_says_what_the_command_line_does_not(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text('[soak]\nduration = "2h"\ndrop = 8\n[try]\ngain = "5%"\n')
    soak = run_options("soak", {"expect": str(file)}).bench.soak
    assert soak is not None
    assert (soak.duration_s, soak.drop) == (7200.0, 0.08)
    own = run_options("soak", {"expect": str(file), "drop": "10%"}).bench.soak
    assert own is not None
    assert (own.duration_s, own.drop) == (7200.0, 0.1)
    trying = run_options("bench", {"expect": str(file), "try_": ("NCCL_ALGO=Tree",)}).bench.tries
    assert trying is not None
    assert trying.gain == 0.05
    assert run_options("bench", {"expect": str(file)}).bench.tries is None


def test_a_timeout_that_cuts_the_soak_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--timeout 60 .*--duration"):
        run_options("soak", {"duration": "10m", "timeout": 60.0})
    assert run_options("soak", {"duration": "10m", "timeout": 900.0}).timeout_s == 900.0


def test_the_whole_run_has_time_for_the_soak() -> None:
    options = run_options("soak", {"duration": "10m"})
    assert options.timeout_s > 700
    assert options.bench.soak is not None
    assert run_options("bench", {}).bench.soak is None
