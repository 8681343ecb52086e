"""The section `matrix` of the report, whose fields others read."""

from __future__ import annotations

import msgspec

from ncclcheck.model.benchmarks.matrix import leaf_name
from tests.matrix_builders import HOSTS, LEAVES, two_leaves


def test_the_largest_leaf_is_leaf01_and_names_sort_as_numbers_do() -> None:
    assert (leaf_name(0, 2), leaf_name(9, 120)) == ("leaf01", "leaf010")
    assert two_leaves().named_leaves == {"leaf01": LEAVES[0], "leaf02": LEAVES[1]}


def test_its_names_are_those_of_the_contract() -> None:
    written = msgspec.to_builtins(two_leaves())
    assert {"cells", "leaves", "flat", "oversubscription", "order"} <= written.keys()
    assert {"from", "to", "gbit_s", "latency_us", "tests"} == written["cells"][0].keys()
    assert written["leaves"] == LEAVES
    assert written["flat"] is False
    assert {"ratio", "low", "high"} <= written["oversubscription"].keys()
    assert written["order"] == HOSTS
