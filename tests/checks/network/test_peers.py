"""The words for nodes that do not reach each other."""

from __future__ import annotations

from itertools import permutations

from ncclcheck.checks.network._peers import evidence, subject
from ncclcheck.checks.network._reach import Blame
from tests.probe_builders import probe


def test_every_explanation_has_its_words() -> None:
    ways = tuple(probe("tcp", source, target, "filtered") for source, target in permutations(range(2), 2))
    assert (
        subject(Blame("everyone", ("node01", "node02"), ways))
        == "no node can connect to any other node on eth0"
    )
    islands = Blame("islands", ("node01", "node02"), ways, ("node03", "node04"))
    assert "node01 and node02 and node03 and node04" not in subject(islands)
    assert subject(islands).startswith("the group of node01 and node02 and the group of node03 and node04")
    assert (
        subject(Blame("pairs", ("node01", "node02"), ways))
        == "2 connections between node01 and node02 fail on eth0"
    )


def test_of_many_directions_the_first_are_spelled_out() -> None:
    ways = tuple(probe("tcp", source, target, "filtered") for source, target in permutations(range(6), 2))
    pieces = evidence(ways)
    assert len(pieces) == 17
    assert pieces[-1].observed == "14 more"
