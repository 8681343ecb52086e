"""NC706 path-missing."""

from __future__ import annotations

import pytest

from ncclcheck.model.fact import Missing, Why
from ncclcheck.model.facts import PathFact
from ncclcheck.model.snapshot import Snapshot
from tests.builders import cluster, everywhere, with_facts
from tests.checks.running import finding, run
from tests.fact_builders import path_fact


def seen(fact: PathFact) -> Snapshot:
    return with_facts(everywhere(cluster(3), paths=(path_fact(),)), "node02", paths=(fact,))


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ("absent", "does not exist"),
        ("denied", "may not be read"),
        ("timeout", "hangs"),
        ("error", "cannot be examined"),
    ],
)
def test_a_path_that_is_of_no_use_on_one_node(why: Why, words: str) -> None:
    found = finding("path-missing", seen(path_fact(kind=Missing(why, "/mnt/data: told"))))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert found.summary.startswith("--data /mnt/data ")
    assert words in found.summary
    assert "while node01 and node03 have it" in found.summary


def test_one_that_may_not_be_listed_or_hangs_then() -> None:
    assert "may not be read" in finding("path-missing", seen(path_fact(listed=False))).summary
    late = Missing("timeout", "no answer")
    assert "does not answer" in finding("path-missing", seen(path_fact(listed=late))).summary


def test_what_is_no_folder_and_no_file_is_of_no_use() -> None:
    for fact in (path_fact(kind="other"), path_fact(kind="file", purpose="shared")):
        found = finding("path-missing", everywhere(cluster(2), paths=(fact,)))
        assert (found.severity, found.hosts) == ("error", ("node01", "node02"))
    assert run("path-missing", everywhere(cluster(2), paths=(path_fact(kind="file"),))).outcome == "passed"


def test_a_dead_mount_below_it_is_named() -> None:
    late = Missing("timeout", "/mnt/data/archive does not answer")
    found = finding("path-missing", seen(path_fact(manifest=late)))
    assert (found.severity, found.hosts) == ("error", ("node02",))
    assert "/mnt/data/archive does not answer" in found.summary


def test_what_is_not_known_is_not_passed() -> None:
    assert run("path-missing", seen(path_fact(listed=Missing("absent", "not read")))).outcome == "unknown"


def test_without_paths_there_is_no_question() -> None:
    assert run("path-missing", everywhere(cluster(2), paths=())).outcome == "not_applicable"
