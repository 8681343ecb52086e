"""Which nodes list their files, and what differs between two lists."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.measure.file_lists import differences, to_compare
from ncclcheck.model.facts import Code
from ncclcheck.model.snapshot import FileNames, Snapshot
from tests.builders import cluster, node, with_facts
from tests.fact_builders import code_path, some


def with_tree(snapshot: Snapshot, host: str, sha256: str) -> Snapshot:
    code: Code = some(node(snapshot, host).facts.code)
    return with_facts(snapshot, host, code=replace(code, paths=(replace(code_path(), tree_sha256=sha256),)))


def test_equal_code_is_not_compared() -> None:
    assert to_compare(cluster(4)) == {}


def test_one_node_of_each_content_is_asked_the_usual_one_first() -> None:
    snapshot = with_tree(with_tree(cluster(5), "node01", "c" * 64), "node04", "d" * 64)
    assert to_compare(snapshot) == {"/work/train": ("node02", "node01", "node04")}


def test_what_differs_is_counted_and_the_first_ten_are_named() -> None:
    wanted = {"/work/train": ("node02", "node01")}
    usual = {"a": "1", "b": "1", **{f"m{number:02}": "1" for number in range(11)}}
    own = {"a": "2", "b": "1", "new": "1"}
    (found,) = differences(wanted, {("node02", "/work/train"): usual, ("node01", "/work/train"): own})
    assert (found.host, found.compared_with) == ("node01", "node02")
    assert (found.changed, found.extra) == (FileNames(1, ("a",)), FileNames(1, ("new",)))
    assert (found.missing.count, len(found.missing.first)) == (11, 10)


def test_a_list_that_did_not_come_is_not_compared() -> None:
    assert differences({"/p": ("node02", "node01")}, {("node02", "/p"): {}}) == ()
