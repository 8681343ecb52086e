"""How hosts are named."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.checks.hosts import job_size, named, not_heard_to_the_end, not_reported, verb
from ncclcheck.model.finding import NotKnown
from ncclcheck.model.snapshot import Silent
from tests.builders import cluster, seen_alone, with_silent


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        ((), ""),
        (("node01",), "node01"),
        (("node01", "node02", "node01"), "node01 and node02"),
        (("a", "b", "c"), "a, b and c"),
        (("node01", "node02", "node03", "node07"), "node[01-03,07]"),
        (("ip-10-0-0-1", "ip-10-0-0-2", "x", "y"), "ip-10-0-0-[1-2],x,y"),
        (("a[", "b", "c", "d"), "a[, b, c and 1 more"),
    ],
)
def test_a_few_are_listed_and_many_are_folded(hosts: tuple[str, ...], words: str) -> None:
    assert named(hosts) == words


def test_verbs_agree() -> None:
    assert (verb(("a",), "has", "have"), verb(("a", "b"), "has", "have")) == ("has", "have")


def test_a_node_that_is_alone_knows_from_its_launcher_how_many_there_are() -> None:
    assert job_size(seen_alone(cluster(4), "node03")) == 4
    assert job_size(cluster(1)) == 1
    assert job_size(replace(cluster(2), claims=())) == 2


def test_a_node_that_fell_silent_later_has_reported() -> None:
    later = replace(cluster(3), silent=(Silent("node02", 1, "end", 6.0),))
    assert list(not_reported(later)) == []
    assert list(not_heard_to_the_end(later)) == [NotKnown("stopped answering", ("node02",))]
    both = with_silent(later, "node03")
    assert list(not_reported(both)) == [NotKnown("did not report", ("node03",))]
    assert [answer.hosts for answer in not_heard_to_the_end(both)] == [("node03",), ("node02",)]
