"""Paths of the command line, side by side."""

from __future__ import annotations

from ncclcheck.checks.host._paths import checked_paths, none_given
from tests.builders import cluster, everywhere, with_facts
from tests.fact_builders import GONE, path_fact


def test_the_nth_path_of_each_node_is_the_same_one() -> None:
    two = (path_fact(path="/a"), path_fact("shared"), path_fact(path="/b"))
    snapshot = with_facts(everywhere(cluster(2), paths=two), "node02", paths=(path_fact(path="/A"), *two[1:]))
    found = checked_paths(snapshot, "data")
    assert [[place.fact.path for place in one.places] for one in found] == [["/a", "/A"], ["/b", "/b"]]
    assert found[0].words == "--data /a"


def test_only_where_every_node_says_so_there_is_none() -> None:
    nothing = everywhere(cluster(2), paths=())
    assert len(list(none_given(nothing, checked_paths(nothing, "data"), "--data"))) == 1
    partly = with_facts(nothing, "node02", paths=GONE)
    assert list(none_given(partly, checked_paths(partly, "data"), "--data")) == []
