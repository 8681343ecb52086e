"""What the options of `soak` ask for."""

from __future__ import annotations

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


def test_a_timeout_that_cuts_the_soak_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--timeout 60 .*--duration"):
        run_options("soak", {"duration": "10m", "timeout": 60.0})
    assert run_options("soak", {"duration": "10m", "timeout": 900.0}).timeout_s == 900.0


def test_the_whole_run_has_time_for_the_soak() -> None:
    options = run_options("soak", {"duration": "10m"})
    assert options.timeout_s > 700
    assert options.bench.soak is not None
    assert run_options("bench", {}).bench.soak is None
