"""NC703 nofile-low."""

from __future__ import annotations

from typing import Any

from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, with_facts
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, limits


def files(soft: Any, nodes: int = 2, hard: Any = 4096) -> Snapshot:
    return with_facts(cluster(nodes), "node02", limits=limits(nofile=soft, nofile_hard=hard))


def test_a_low_limit_is_judged_against_the_ranks_of_the_job() -> None:
    assert is_silent("nofile-low", files(1024, nodes=2))
    found = finding("nofile-low", files(1024, nodes=32))
    assert (found.severity, found.hosts) == ("warning", ("node02",))
    assert "may open 1024 files (a hard limit of 4096)" in found.summary
    assert "256 ranks" in found.summary
    assert found.fixes[0].commands == ("ulimit -n 4096",)


def test_one_that_leaves_no_room_for_the_sockets_is_an_error() -> None:
    assert finding("nofile-low", files(64)).severity == "error"


def test_where_the_hard_limit_is_low_too_the_container_has_to_lift_it() -> None:
    assert "--ulimit nofile" in finding("nofile-low", files(256, hard=256)).fixes[0].commands[0]
    assert finding("nofile-low", files(256, hard=None)).fixes[0].commands == ("ulimit -n 576",)


def test_unlimited_is_fine_and_unknown_is_not_passed() -> None:
    assert is_silent("nofile-low", files(None))
    assert run("nofile-low", files(GONE)).outcome == "unknown"
